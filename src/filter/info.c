/*
 * info.c
 *		bloom_info: the parameters and the condition of a filter as a row.
 */
#include "pg/pg_compat.h"

#include "access/htup_details.h"
#include "core/layout.h"
#include "filter/info.h"
#include "filter/measure.h"
#include "filter/params.h"
#include "filter/value.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(bloomfilter_info);

/*
 * A filter is overfull if its current rate exceeds this multiple of the
 * requested rate.  At capacity the rate of a filter varies by a few percent, or
 * by a third in the smallest filters.
 */
#define OVERFULL_FACTOR 1.5

/* The columns of bloom_info in the order of its declaration. */
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

TupleDesc
info_descriptor(FunctionCallInfo fcinfo, int columns)
{
	TupleDesc	descriptor = fcinfo->flinfo->fn_extra;
	MemoryContext caller;

	if (descriptor != NULL)
		return descriptor;
	caller = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE ||
		descriptor->natts != columns)
		elog(ERROR, "bloom_info has an unexpected result type");
	fcinfo->flinfo->fn_extra = BlessTupleDesc(descriptor);
	MemoryContextSwitchTo(caller);
	return descriptor;
}

bool
is_overfull(const bf_params *params, double rate)
{
	return rate > OVERFULL_FACTOR * params->rate;
}

Datum
bloomfilter_info(PG_FUNCTION_ARGS)
{
	TupleDesc	descriptor = info_descriptor(fcinfo, INFO_COLUMNS);
	Datum		values[INFO_COLUMNS];
	bool		nulls[INFO_COLUMNS] = {false};
	bf_filter	filter;
	const bf_params *params = &filter.params;
	FilterMeasures measures;

	open_filter(PG_GETARG_DATUM(0), &filter);
	measures = measure_filter(&filter);

	values[INFO_LAYOUT] = CStringGetTextDatum(bf_layout_name(params->layout));
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
	values[INFO_OVERFULL] = BoolGetDatum(is_overfull(params, measures.rate));
	values[INFO_SEED] = Int64GetDatum((int64) params->seed);

	nulls[INFO_ELEMENT_TYPE] = params->element_class == BF_CLASS_NONE;
	nulls[INFO_BITS_SET] = nulls[INFO_FILL] = nulls[INFO_FULL_BLOCKS] = filter.sparse;
	nulls[INFO_BITS] = nulls[INFO_CAPACITY] = params->m == 0;
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls)));
}
