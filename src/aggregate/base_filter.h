/*
 * base_filter.h
 *		The filter to which bloom_agg(element, filter) adds elements.
 *
 * It must be the same in all rows of a group.  Otherwise the result would
 * depend on the order of the rows and, in a parallel plan, on the workers.
 */
#ifndef BF_BASE_FILTER_H
#define BF_BASE_FILTER_H

#include "pg/pg_compat.h"

#include "fmgr.h"

/* The base filter in a group's first row. */
typedef struct BaseFilter BaseFilter;

/*
 * Is an argument of the aggregate a constant or a parameter of the query?  Then
 * it cannot change within a group.
 */
extern bool is_constant_argument(FunctionCallInfo fcinfo, int argument);

/* Remembers the first row's filter.  is_base() requires can_change. */
extern BaseFilter *remember_base(Datum value, bool isnull, bool can_change, MemoryContext context);

/* Is a row's filter equal to the first row's?  NULL matches only NULL. */
extern bool is_base(const BaseFilter *base, Datum value, bool isnull);

/*
 * Replaces a result that is equal to a stored base by the base's TOAST pointer.
 * An UPDATE then reuses the stored value instead of writing a copy.
 */
extern Datum reuse_stored_base(const BaseFilter *base, Datum result);

#endif							/* BF_BASE_FILTER_H */
