/*
 * bloom_intersect_agg.c
 *		bloom_intersect_agg: the intersection of the filters in a column.
 *
 * The state is the intersection of the filters so far.  It keeps their size even
 * if an empty filter without one is among them, so filters that do not combine
 * are an error in any order.
 */
#include "pg/pg_compat.h"

#include "core/bulk.h"
#include "core/compatible.h"
#include "filter/errors.h"
#include "filter/setops.h"
#include "filter/walk.h"
#include "pg/aggregate_context.h"

PG_FUNCTION_INFO_V1(bloomfilter_intersect_agg_add);

/*
 * Transition and combine function.  An aggregate may change its state in place
 * (xaggr.sgml, "Support Functions for Aggregates"): nodeAgg.c has copied it to
 * the aggregate's memory.  That copy may still be compressed, have a short
 * header or point to a TOAST table; such a state is replaced.
 */
Datum
bloomfilter_intersect_agg_add(PG_FUNCTION_ARGS)
{
	Datum		state = PG_GETARG_DATUM(0);
	bf_filter	left;
	bf_filter	right;
	bf_params	params;

	(void) require_aggregate(fcinfo);
	open_filter(state, &left);
	open_filter(PG_GETARG_DATUM(1), &right);
	params = combine_params(&left.params, &right.params);
	if (!VARATT_IS_4B_U(DatumGetPointer(state)) || left.sparse || right.sparse ||
		!bf_equal_params(&left.params, &params))
		PG_RETURN_POINTER(intersect_filters(&left, &right, &params));
	combine_bytes((uint8 *) left.payload, right.payload, left.params.m / 8, bf_and);
	PG_RETURN_DATUM(state);
}
