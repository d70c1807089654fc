/*
 * base_filter.h
 *		The filter that bloom_agg(element, filter) adds to, row after row.
 *
 * It must be the same in all rows of a group.  Otherwise the result would
 * depend on the order of rows, and in a parallel plan on the workers.
 */
#ifndef BF_BASE_FILTER_H
#define BF_BASE_FILTER_H

#include "pg/pg_compat.h"

#include "access/detoast.h"
#include "fmgr.h"

/* The filter of a group's first row. */
typedef struct BaseFilter
{
	bool		given;			/* false if it is NULL */
	bool		stored;			/* as a TOAST pointer */
	char		pointer[TOAST_POINTER_SIZE];
	Size		size;			/* of the whole value, detoasted */
	uint64		hash;			/* of all its bytes, if it is compared */
} BaseFilter;

/*
 * Is an argument of the aggregate a constant or a parameter of the query, which
 * cannot change?  Then there is nothing to compare.
 */
extern bool is_constant_argument(FunctionCallInfo fcinfo, int argument);

/*
 * Remembers the first row's, in the given memory context.  Only one that is
 * compared can be asked about by is_base().
 */
extern BaseFilter *remember_base(Datum value, bool isnull, bool compared, MemoryContext context);

/* Is a row's filter that of the first row?  NULL matches only NULL. */
extern bool is_base(const BaseFilter *base, Datum value, bool isnull);

/*
 * The value as it is stored, if the base is and a filter has the same bytes;
 * else the filter.  An UPDATE that gets the stored value writes no copy of it.
 */
extern Datum stored_base_or(const BaseFilter *base, Datum filter);

#endif							/* BF_BASE_FILTER_H */
