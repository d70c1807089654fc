/*
 * info.c
 *		Cardinalities, rates and what else a filter tells about itself.
 */
#include "pg_compat.h"

#include <math.h>

#include "access/htup_details.h"
#include "core/bulk.h"
#include "core/estimate.h"
#include "errors.h"
#include "fmgr.h"
#include "funcapi.h"
#include "measure.h"
#include "params.h"
#include "setops.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(bloomfilter_cardinality);
PG_FUNCTION_INFO_V1(bloomfilter_union_cardinality);
PG_FUNCTION_INFO_V1(bloomfilter_intersection_cardinality);
PG_FUNCTION_INFO_V1(bloomfilter_jaccard);
PG_FUNCTION_INFO_V1(bloomfilter_fpp);
PG_FUNCTION_INFO_V1(bloomfilter_info);
PG_FUNCTION_INFO_V1(bloomfilter_bytes);

/*
 * A filter is overfull when its present rate is this many times the one that
 * was asked for.  A filter at its capacity strays from its rate by a few
 * percent, the smallest ones by a third.
 */
#define OVERFULL_FACTOR 1.5

Datum
bloomfilter_cardinality(PG_FUNCTION_ARGS)
{
	bf_filter	filter;

	open_filter(PG_GETARG_DATUM(0), &filter);
	PG_RETURN_FLOAT8(measure_cardinality(&filter));
}

Datum
bloomfilter_fpp(PG_FUNCTION_ARGS)
{
	bf_filter	filter;

	open_filter(PG_GETARG_DATUM(0), &filter);
	PG_RETURN_FLOAT8(measure_rate(&filter));
}

/* |A|, |B| and |A or B|. */
typedef struct PairCounts
{
	double		left;
	double		right;
	double		united;
} PairCounts;

/*
 * Where both are dense and of different sizes the larger one is folded: that
 * gives exactly the bits that its elements set at the smaller size.  All three
 * counts come from the same bits, so that their errors cancel.
 */
static PairCounts
count_pair(const bf_filter *left, const bf_filter *right)
{
	PairCounts	counts = {(double) left->nhashes, (double) right->nhashes, 0};
	bf_params	params = left->params;
	bf_shape	shape;
	uint64		set[3] = {0};
	bf_mismatch mismatch = bf_compare_folded(&left->params, &right->params);
	FilterWalk	walk;

	if (mismatch != BF_MATCH)
		report_mismatch(mismatch, &left->params, &right->params);
	if (left->sparse && right->sparse)
	{
		counts.united = (double) merge_hashes(left, right, bf_merge_union, NULL);
		return counts;
	}
	if (left->sparse || right->sparse)
		params = left->sparse ? right->params : left->params;
	else
		params.m = Min(left->params.m, right->params.m);
	shape = bf_shape_of(&params);

	start_walk(&walk, params.m, left, right);
	while (next_piece(&walk))
	{
		set[0] += left->sparse ? 0 : bf_popcount(walk.left, walk.size);
		set[1] += right->sparse ? 0 : bf_popcount(walk.right, walk.size);
		set[2] += bf_popcount_or(walk.left, walk.right, walk.size);
	}
	end_walk(&walk);
	if (!left->sparse)
		counts.left = bf_cardinality(&shape, set[0]);
	if (!right->sparse)
		counts.right = bf_cardinality(&shape, set[1]);
	counts.united = bf_cardinality(&shape, set[2]);
	return counts;
}

static PairCounts
count_arguments(FunctionCallInfo fcinfo)
{
	bf_filter	left;
	bf_filter	right;

	open_filter(PG_GETARG_DATUM(0), &left);
	open_filter(PG_GETARG_DATUM(1), &right);
	return count_pair(&left, &right);
}

Datum
bloomfilter_union_cardinality(PG_FUNCTION_ARGS)
{
	PG_RETURN_FLOAT8(count_arguments(fcinfo).united);
}

Datum
bloomfilter_intersection_cardinality(PG_FUNCTION_ARGS)
{
	PairCounts	counts = count_arguments(fcinfo);

	PG_RETURN_FLOAT8(bf_intersection_of(counts.left, counts.right, counts.united));
}

/* |A and B| / |A or B|; two empty sets are equal, so 1. */
Datum
bloomfilter_jaccard(PG_FUNCTION_ARGS)
{
	PairCounts	counts = count_arguments(fcinfo);

	if (counts.united == 0)
		PG_RETURN_FLOAT8(1);
	PG_RETURN_FLOAT8(bf_intersection_of(counts.left, counts.right, counts.united) /
					 counts.united);
}

/* Columns of bloom_info, in the order of its declaration. */
enum
{
	INFO_LAYOUT,
	INFO_ELEMENT_TYPE,
	INFO_REPRESENTATION,
	INFO_BITS,
	INFO_HASHES,
	INFO_BITS_SET,
	INFO_FILL,
	INFO_FULL_BLOCKS,
	INFO_CARDINALITY,
	INFO_CAPACITY,
	INFO_REQUESTED_RATE,
	INFO_CURRENT_RATE,
	INFO_BYTES,
	INFO_OVERFULL,
	INFO_SEED,
	INFO_COLUMNS
};

/* The description of a row of bloom_info, made once for each call site. */
static TupleDesc
info_descriptor(FunctionCallInfo fcinfo)
{
	TupleDesc	descriptor = fcinfo->flinfo->fn_extra;
	MemoryContext caller;

	if (descriptor != NULL)
		return descriptor;
	caller = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE ||
		descriptor->natts != INFO_COLUMNS)
		elog(ERROR, "bloom_info is not declared as its library expects");
	fcinfo->flinfo->fn_extra = BlessTupleDesc(descriptor);
	MemoryContextSwitchTo(caller);
	return descriptor;
}

Datum
bloomfilter_info(PG_FUNCTION_ARGS)
{
	TupleDesc	descriptor = info_descriptor(fcinfo);
	Datum		values[INFO_COLUMNS];
	bool		nulls[INFO_COLUMNS] = {false};
	bf_filter	filter;
	const bf_params *params = &filter.params;
	FilterMeasures measures;

	open_filter(PG_GETARG_DATUM(0), &filter);
	measures = measure_filter(&filter);

	values[INFO_LAYOUT] = CStringGetTextDatum(layout_name(params->layout));
	values[INFO_ELEMENT_TYPE] = ObjectIdGetDatum(params->element_class);
	values[INFO_REPRESENTATION] = CStringGetTextDatum(filter.sparse ? "sparse" : "dense");
	values[INFO_BITS] = Int64GetDatum((int64) params->m);
	values[INFO_HASHES] = Int32GetDatum((int32) params->k);
	values[INFO_BITS_SET] = Int64GetDatum((int64) measures.bits_set);
	values[INFO_FILL] = Float8GetDatum((double) measures.bits_set / (double) params->m);
	values[INFO_FULL_BLOCKS] = Int64GetDatum((int64) measures.full_blocks);
	values[INFO_CARDINALITY] = Float8GetDatum(measures.cardinality);
	values[INFO_CAPACITY] = Int64GetDatum((int64) filter_capacity(params));
	values[INFO_REQUESTED_RATE] = Float4GetDatum(params->rate);
	values[INFO_CURRENT_RATE] = Float8GetDatum(measures.rate);
	values[INFO_BYTES] = Int64GetDatum((int64) (VARHDRSZ + bf_encoded_size(&filter)));
	values[INFO_OVERFULL] = BoolGetDatum(measures.rate > OVERFULL_FACTOR * params->rate);
	values[INFO_SEED] = Int64GetDatum((int64) params->seed);

	nulls[INFO_ELEMENT_TYPE] = params->element_class == BF_CLASS_NONE;
	nulls[INFO_BITS_SET] = nulls[INFO_FILL] = nulls[INFO_FULL_BLOCKS] = filter.sparse;
	nulls[INFO_BITS] = nulls[INFO_CAPACITY] = params->m == 0;
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls)));
}

/* The size of a value with that capacity, once it is full. */
Datum
bloomfilter_bytes(PG_FUNCTION_ARGS)
{
	bf_layout	layout = layout_from_name(text_to_cstring(PG_GETARG_TEXT_PP(2)));
	bf_params	params = solve_params(PG_GETARG_FLOAT8(0), PG_GETARG_FLOAT8(1), layout, 0);
	bf_filter	full = {.params = params};

	PG_RETURN_INT64((int64) (VARHDRSZ + bf_encoded_size(&full)));
}
