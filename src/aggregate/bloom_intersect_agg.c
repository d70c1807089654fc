/*
 * bloom_intersect_agg.c
 *		bloom_intersect_agg: the intersection of the filters in a column.
 *
 * The state is the intersection of the filters so far.  It keeps their size even
 * if an empty filter without one is among them, so filters that do not combine
 * are an error in any order.
 */
#include "pg/pg_compat.h"

#include "core/compatible.h"
#include "pg/aggregate_context.h"
#include "value/combine.h"
#include "value/dense.h"
#include "value/parameters.h"

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
	bf_filter	result = {0};

	(void) require_aggregate(fcinfo);
	open_value(state, BF_FILTER, &left);
	open_value(PG_GETARG_DATUM(1), BF_FILTER, &right);
	result.params = combine_params(&left.params, &right.params);
	if (!VARATT_IS_4B_U(DatumGetPointer(state)) || left.sparse || right.sparse ||
		!bf_equal_params(&left.params, &result.params))
		PG_RETURN_POINTER(combine_filters(&left, &right, &result, BF_LESSER));
	combine_cells((uint8 *) left.payload, right.payload, bf_payload_size(&left), left.params.cell_bits,
				  BF_LESSER);
	PG_RETURN_DATUM(state);
}
