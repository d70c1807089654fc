/*
 * info.c
 *		bloom_info: the parameters and the condition of a counter as a row.
 */
#include "pg/pg_compat.h"

#include "access/htup_details.h"
#include "core/layout.h"
#include "core/numbers.h"
#include "counter/estimates.h"
#include "counter/number_walk.h"
#include "filter/info.h"
#include "filter/measure.h"
#include "filter/params.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(bloomcounter_info);

/* The columns of bloom_info in the order of its declaration. */
enum
{
	INFO_LAYOUT,
	INFO_ELEMENT_TYPE,
	INFO_REPRESENTATION,
	INFO_CONTENTS,
	INFO_COUNTER_BITS,
	INFO_POSITIONS,
	INFO_HASHES,
	INFO_POSITIONS_SET,
	INFO_SATURATED,
	INFO_FILL,
	INFO_FULL_BLOCKS,
	INFO_CARDINALITY,
	INFO_TOTAL,
	INFO_CAPACITY,
	INFO_REQUESTED_RATE,
	INFO_CURRENT_RATE,
	INFO_BYTES,
	INFO_OVERFULL,
	INFO_SEED,
	INFO_COLUMNS
};

/* The columns about a dense counter's numbers. */
static void
describe_numbers(const bf_filter *counter, const FilterMeasures *measures, Datum *values)
{
	uint32		limit = bf_number_limit(counter->params.counter_bits);

	values[INFO_POSITIONS_SET] = Int64GetDatum((int64) measures->bits_set);
	values[INFO_SATURATED] = Int64GetDatum((int64) count_numbers(counter, limit));
	values[INFO_FILL] = Float8GetDatum((double) measures->bits_set / (double) counter->params.m);
	values[INFO_FULL_BLOCKS] = Int64GetDatum((int64) measures->full_blocks);
}

Datum
bloomcounter_info(PG_FUNCTION_ARGS)
{
	TupleDesc	descriptor = info_descriptor(fcinfo, INFO_COLUMNS);
	Datum		values[INFO_COLUMNS];
	bool		nulls[INFO_COLUMNS] = {false};
	bf_filter	counter;
	const bf_params *params = &counter.params;
	FilterMeasures measures;

	open_counter(PG_GETARG_DATUM(0), &counter);
	measures = measure_filter(&counter);

	values[INFO_LAYOUT] = CStringGetTextDatum(bf_layout_name(params->layout));
	values[INFO_ELEMENT_TYPE] = ObjectIdGetDatum(params->element_class);
	values[INFO_REPRESENTATION] = CStringGetTextDatum(counter.sparse ? "sparse" : "dense");
	values[INFO_CONTENTS] = CStringGetTextDatum(counter.levels ? "levels" : "counts");
	values[INFO_COUNTER_BITS] = Int32GetDatum((int32) params->counter_bits);
	values[INFO_POSITIONS] = Int64GetDatum((int64) params->m);
	values[INFO_HASHES] = Int32GetDatum((int32) params->k);
	values[INFO_CARDINALITY] = Float8GetDatum(measures.cardinality);
	values[INFO_CAPACITY] = Int64GetDatum((int64) filter_capacity(params));
	values[INFO_REQUESTED_RATE] = Float4GetDatum(params->rate);
	values[INFO_CURRENT_RATE] = Float8GetDatum(measures.rate);
	values[INFO_BYTES] = Int64GetDatum((int64) (VARHDRSZ + bf_encoded_size(&counter)));
	values[INFO_OVERFULL] = BoolGetDatum(is_overfull(params, measures.rate));
	values[INFO_SEED] = Int64GetDatum((int64) params->seed);
	if (!counter.sparse)
		describe_numbers(&counter, &measures, values);
	if (!counter.levels)
		values[INFO_TOTAL] = Float8GetDatum(measure_total(&counter));

	nulls[INFO_ELEMENT_TYPE] = params->element_class == BF_CLASS_NONE;
	nulls[INFO_POSITIONS_SET] = nulls[INFO_SATURATED] = nulls[INFO_FILL] = nulls[INFO_FULL_BLOCKS] = counter.sparse;
	nulls[INFO_TOTAL] = counter.levels;
	nulls[INFO_POSITIONS] = nulls[INFO_CAPACITY] = params->m == 0;
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls)));
}
