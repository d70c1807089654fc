/*
 * element.h
 *		From an SQL value to its hash.
 */
#ifndef BF_ELEMENT_H
#define BF_ELEMENT_H

#include "postgres.h"
#include "fmgr.h"

/*
 * How values of one SQL type are hashed.  hash() leaves nothing behind in the
 * current memory context, and values that are equal in SQL have equal hashes
 * whatever type of their class they come in.
 */
typedef struct ElementType
{
	uint32		element_class;	/* a bf_class */
	uint64		(*hash) (Datum value, uint64 seed);
	bool		is_stable;		/* one value has one hash for good */
} ElementType;

/*
 * Finds out how a type is hashed; false if it cannot be, which includes text
 * under a nondeterministic collation.  For callers that must not fail.
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
