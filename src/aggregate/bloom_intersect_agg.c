/*
 * bloom_intersect_agg.c
 *		bloom_intersect_agg: the intersection of the filters in a column.
 *
 * The state is the intersection so far.  The aggregate needs no final function.
 */
#include "pg/pg_compat.h"

#include "core/bulk.h"
#include "core/compatible.h"
#include "filter/setops.h"
#include "filter/walk.h"
#include "pg/aggregate_context.h"

PG_FUNCTION_INFO_V1(bloomfilter_intersect_agg_add);

/*
 * Transition and combine function.  PostgreSQL keeps a copy of the state in the
 * aggregate's memory, which may be changed in place if it is neither compressed
 * nor stored out of line (xaggr.sgml, "Aggregate Support Functions").
 */
Datum
bloomfilter_intersect_agg_add(PG_FUNCTION_ARGS)
{
	Datum		state = PG_GETARG_DATUM(0);
	bf_filter	left;
	bf_filter	right;

	(void) require_aggregate(fcinfo);
	open_filter(state, &left);
	open_filter(PG_GETARG_DATUM(1), &right);
	if (!VARATT_IS_4B_U(DatumGetPointer(state)) || left.sparse || right.sparse ||
		!bf_equal_params(&left.params, &right.params))
		PG_RETURN_POINTER(intersect_filters(&left, &right));
	combine_bytes((uint8 *) left.payload, right.payload, left.params.m / 8, bf_and);
	PG_RETURN_DATUM(state);
}
