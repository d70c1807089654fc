/*
 * element.h
 *		Hashing SQL values.
 */
#ifndef BF_ELEMENT_H
#define BF_ELEMENT_H

#include "pg/pg_compat.h"

#include "core/filter.h"
#include "fmgr.h"
#include "lib/stringinfo.h"

/* Hashes a value.  Frees what it allocates. */
typedef uint64 (*HashElement) (Datum value, uint64 seed);

/*
 * Appends the canonical bytes of a value.  Their bf_hash_bytes() is the hash, so
 * that whoever keeps them can compute it for any seed.
 */
typedef void (*AppendElement) (Datum value, StringInfo target);

/*
 * How values of one SQL type are hashed.  Values of one class that are equal in
 * SQL have equal hashes, even if their types differ.
 */
typedef struct ElementType
{
	uint32		element_class;	/* a bf_class */
	HashElement hash;
	HashElement hash_unpadded;	/* as char(n), without blanks; or NULL */
	AppendElement append;
	bool		is_stable;		/* the hash of a value never changes */
} ElementType;

/*
 * The hash function to look up a value in a filter of filter_class, or NULL if
 * the filter cannot answer.  SQL ignores trailing blanks when it compares
 * char(n) with most strings, so a filter of char(n) answers any string by its
 * form without them.  A filter of other strings cannot answer a char(n),
 * because its elements may end in blanks.
 */
static inline HashElement
lookup_hash(const ElementType *element, uint32 filter_class)
{
	if (likely(filter_class == element->element_class))
		return element->hash;
	return filter_class == BF_CLASS_BPCHAR ? element->hash_unpadded : NULL;
}

/* Finds how a type is hashed, ignoring the collation; false if unsupported. */
extern bool find_hash_function(Oid type, ElementType *element);

/*
 * The same with the collation, for the planner, which must not fail: also false
 * if hashing could raise an error.  That is the case for text under a
 * nondeterministic collation, and in an encoding with characters that have no
 * UTF-8 form.
 */
extern bool find_element_type(Oid type, Oid collation, ElementType *element);

/* The same with errors for what is not supported. */
extern void require_element_type(Oid type, Oid collation, ElementType *element);

/* The type of the current function's argument; an error if it is unknown. */
extern Oid	type_of_argument(FunctionCallInfo fcinfo, int argument);

/*
 * Finds how the type of the current function's argument is hashed; an error if
 * unsupported.  Reads the catalog, so callers keep the result per call site.
 */
extern void resolve_element_type(FunctionCallInfo fcinfo, int argument, ElementType *element);

/* The same, cached in fn_extra, which the function must not use otherwise. */
extern const ElementType *element_type_of_argument(FunctionCallInfo fcinfo, int argument);

#endif							/* BF_ELEMENT_H */
