/*
 * base_filter.h
 *		The filter that bloom_agg(element, filter) adds to, row after row.
 *
 * It is to be the same in all rows of a group.  Otherwise it would depend on
 * the order of rows, and in a parallel plan on the workers, what is in the
 * result.
 */
#ifndef BF_BASE_FILTER_H
#define BF_BASE_FILTER_H

#include "pg_compat.h"

#include "fmgr.h"

/* How much of one in memory is compared: the whole of any that fits into a table's row. */
#define COMPARED_BYTES	BLCKSZ

/* The filter of a group's first row. */
typedef struct BaseFilter
{
	bool		given;			/* false if it is NULL */
	Size		size;			/* of the value as it came: a TOAST pointer, or the whole */
	Size		kept;			/* of it here */
	char		bytes[FLEXIBLE_ARRAY_MEMBER];	/* the first of them */
} BaseFilter;

/*
 * Is an argument of the aggregate a constant or a parameter of the query, which
 * cannot change?  Then there is nothing to compare.
 */
extern bool is_constant_argument(FunctionCallInfo fcinfo, int argument);

/* Remembers the first row's, in the given memory context. */
extern BaseFilter *remember_base(Datum value, bool isnull, MemoryContext context);

/* Is another form or copy of a value that filter?  Fetches both. */
extern bool is_base_elsewhere(const BaseFilter *base, Datum value);

/*
 * Is a row's filter that of the first row?  NULL is none but itself.  If the
 * first row's is large and not stored, only COMPARED_BYTES are looked at.
 */
static inline bool
is_base(const BaseFilter *base, Datum value, bool isnull)
{
	if (isnull || !base->given)
		return isnull && !base->given;
	return (VARSIZE_ANY(DatumGetPointer(value)) == base->size &&
			memcmp(DatumGetPointer(value), base->bytes, base->kept) == 0) ||
		is_base_elsewhere(base, value);
}

#endif							/* BF_BASE_FILTER_H */
