/*
 * element.h
 *		From an SQL value to its hash.
 */
#ifndef BF_ELEMENT_H
#define BF_ELEMENT_H

#include "postgres.h"

#include "core/filter.h"
#include "fmgr.h"

/* Leaves nothing behind in the current memory context. */
typedef uint64 (*HashElement) (Datum value, uint64 seed);

/*
 * How values of one SQL type are hashed.  Values that are equal in SQL have
 * equal hashes whatever type of their class they come in.
 */
typedef struct ElementType
{
	uint32		element_class;	/* a bf_class */
	HashElement hash;
	HashElement hash_unpadded;	/* of a string without its trailing blanks, else NULL */
	bool		is_stable;		/* one value has one hash for good */
} ElementType;

/*
 * How a value is hashed to look it up in a filter whose elements have a class;
 * NULL if the filter cannot answer.  SQL compares char(n) with most strings
 * without trailing blanks, so a filter of char(n) answers all strings that way.
 * A filter of other strings cannot answer a char(n): its elements may end in
 * blanks.
 */
static inline HashElement
lookup_hash(const ElementType *element, uint32 filter_class)
{
	if (likely(filter_class == element->element_class))
		return element->hash;
	return filter_class == BF_CLASS_BPCHAR ? element->hash_unpadded : NULL;
}

/* How a type is hashed, leaving its collation aside; false if it cannot be. */
extern bool find_hash_function(Oid type, ElementType *element);

/*
 * Finds out how a type is hashed; false if it cannot be, or if that could raise
 * an error for some value: text under a nondeterministic collation, or in an
 * encoding that has characters without a form in UTF-8.
 */
extern bool find_element_type(Oid type, Oid collation, ElementType *element);

/*
 * How the type of the running function's argument is hashed; an error if it
 * cannot be.  Costs catalog look-ups, so it is for once per call site.
 */
extern void resolve_element_type(FunctionCallInfo fcinfo, int argument, ElementType *element);

/* The same, remembered in fn_extra, which the function must not use otherwise. */
extern const ElementType *element_type_of_argument(FunctionCallInfo fcinfo, int argument);

#endif							/* BF_ELEMENT_H */
