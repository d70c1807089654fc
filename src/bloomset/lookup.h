/*
 * lookup.h
 *		Asking the sets of a tree for a value.
 */
#ifndef BF_LOOKUP_H
#define BF_LOOKUP_H

#include "pg/pg_compat.h"

#include "bloomset/tree.h"
#include "fmgr.h"

/* How values of one SQL type are looked up in the sets of a tree. */
typedef struct Lookup
{
	HashElement hash;
	Oid			type;			/* of the values that are hashed, no domain */
	uint32		element_class;	/* of the sets */
	bool		converts;		/* from text, by `input` */
	FmgrInfo	input;
	Oid			input_parameter;
} Lookup;

/*
 * Prepares the lookup of the values of a function's argument; an error if they are
 * not comparable with those of the tree, or by their bytes.  `input` is allocated in the
 * context.
 */
extern void prepare_lookup(Lookup *lookup, const SetTree *tree, FunctionCallInfo fcinfo,
						   int argument, MemoryContext context);

/*
 * The same as prepare_lookup() for the elements of a function's argument, an array.  Text is
 * not converted.
 */
extern void prepare_lookup_of_elements(Lookup *lookup, const SetTree *tree, Oid element_type,
									   FunctionCallInfo fcinfo, int argument);

/*
 * Raises an error unless SQL has an operator for the values and those of the tree.  Enums are
 * hashed as their labels, but not compared with text.
 */
extern void require_operator(const Lookup *lookup, const SetTree *tree);

/* A value whose hash for a seed is kept, as most sets of a tree have the same. */
typedef struct LookedUp
{
	Datum		value;
	bool		hashed;
	uint64		seed;
	uint64		hash;
} LookedUp;

/* The argument of a call as the lookup needs it. */
extern LookedUp looked_up_value(Lookup *lookup, Datum value);

/* False if the sets of a leaf prove that none of its rows has the value. */
extern bool leaf_may_contain(const SetLeaf *leaf, const Lookup *lookup, LookedUp *value);

/*
 * The same of many values, of which a list of positions names those to ask for.  Shortens
 * the list to those that the leaf may contain, and returns its length.
 */
extern int	shorten_candidates(const SetLeaf *leaf, const Lookup *lookup, LookedUp *values,
							   int *candidates, int count);

#endif							/* BF_LOOKUP_H */
