/*
 * info.c
 *		bloom_info: the parameters and the condition of a value as a row.
 */
#include "pg/pg_compat.h"

#include "access/htup_details.h"
#include "core/layout.h"
#include "funcapi.h"
#include "pg/sql_function.h"
#include "utils/builtins.h"
#include "value/measure.h"
#include "value/parameters.h"
#include "value/value.h"

/*
 * A filter is overfull if its current rate exceeds this multiple of the
 * requested rate.  At capacity the rate of a filter varies by a few percent, or
 * by a third in the smallest filters.
 */
#define OVERFULL_FACTOR 1.5

/* The columns of bloom_info of a counter in the order of its declaration. */
enum
{
	INFO_LAYOUT,
	INFO_ELEMENT_TYPE,
	INFO_REPRESENTATION,
	INFO_CONTENTS,
	INFO_COUNTER_BITS,
	INFO_CELLS,
	INFO_HASHES,
	INFO_CELLS_SET,
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

/* That of a filter lacks these. */
static bool
is_of_counters(int column)
{
	return column == INFO_CONTENTS || column == INFO_COUNTER_BITS || column == INFO_SATURATED ||
		column == INFO_TOTAL;
}

typedef struct InfoRow
{
	Datum		values[INFO_COLUMNS];
	bool		nulls[INFO_COLUMNS];
} InfoRow;

static void
describe_params(const bf_params *params, InfoRow *row)
{
	row->values[INFO_LAYOUT] = CStringGetTextDatum(bf_layout_name(params->layout));
	row->values[INFO_ELEMENT_TYPE] = ObjectIdGetDatum(params->element_class);
	row->values[INFO_COUNTER_BITS] = Int32GetDatum((int32) params->cell_bits);
	row->values[INFO_CELLS] = Int64GetDatum((int64) params->m);
	row->values[INFO_HASHES] = Int32GetDatum((int32) params->k);
	row->values[INFO_CAPACITY] = Int64GetDatum((int64) filter_capacity(params));
	row->values[INFO_REQUESTED_RATE] = Float4GetDatum(params->rate);
	row->values[INFO_SEED] = Int64GetDatum((int64) params->seed);
	row->nulls[INFO_ELEMENT_TYPE] = params->element_class == BF_CLASS_NONE;
	row->nulls[INFO_CELLS] = row->nulls[INFO_CAPACITY] = params->m == 0;
}

static void
describe_contents(const bf_filter *filter, InfoRow *row)
{
	FilterMeasures measures = measure_filter(filter);
	bool		counter = bf_kind_of(&filter->params) == BF_COUNTER;
	bool		saturates = counter && !filter->sparse;
	bool		has_total = counter && !filter->levels;

	row->values[INFO_REPRESENTATION] = CStringGetTextDatum(filter->sparse ? "sparse" : "dense");
	if (counter)
		row->values[INFO_CONTENTS] = CStringGetTextDatum(filter->levels ? "levels" : "counts");
	row->values[INFO_CELLS_SET] = Int64GetDatum((int64) measures.cells_set);
	if (saturates)
		row->values[INFO_SATURATED] = Int64GetDatum((int64) count_cells(filter, bf_cell_limit(filter->params.cell_bits)));
	row->values[INFO_FILL] = Float8GetDatum((double) measures.cells_set / (double) filter->params.m);
	row->values[INFO_FULL_BLOCKS] = Int64GetDatum((int64) measures.full_blocks);
	row->values[INFO_CARDINALITY] = Float8GetDatum(measures.cardinality);
	if (has_total)
		row->values[INFO_TOTAL] = Float8GetDatum(measure_total(filter));
	row->values[INFO_CURRENT_RATE] = Float8GetDatum(measures.rate);
	row->values[INFO_BYTES] = Int64GetDatum((int64) (VARHDRSZ + bf_encoded_size(filter)));
	row->values[INFO_OVERFULL] = BoolGetDatum(measures.rate > OVERFULL_FACTOR * filter->params.rate);
	row->nulls[INFO_CELLS_SET] = row->nulls[INFO_FILL] = row->nulls[INFO_FULL_BLOCKS] = filter->sparse;
	row->nulls[INFO_SATURATED] = !saturates;
	row->nulls[INFO_TOTAL] = !has_total;
}

/* Moves the columns of filters to the front, and returns their number. */
static int
drop_columns_of_counters(InfoRow *row)
{
	int			count = 0;

	for (int i = 0; i < INFO_COLUMNS; i++)
	{
		row->values[count] = row->values[i];
		row->nulls[count] = row->nulls[i];
		count += !is_of_counters(i);
	}
	return count;
}

/* The function's row type, which must have this many columns; cached per call site. */
static TupleDesc
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

static Datum
describe(FunctionCallInfo fcinfo, bf_kind kind)
{
	InfoRow		row = {0};
	int			columns;
	TupleDesc	descriptor;
	bf_filter	filter;

	open_value(PG_GETARG_DATUM(0), kind, &filter);
	describe_params(&filter.params, &row);
	describe_contents(&filter, &row);
	columns = kind == BF_FILTER ? drop_columns_of_counters(&row) : INFO_COLUMNS;
	descriptor = info_descriptor(fcinfo, columns);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, row.values, row.nulls)));
}

SQL_FUNCTION(bloomfilter_info, describe(fcinfo, BF_FILTER))
SQL_FUNCTION(bloomcounter_info, describe(fcinfo, BF_COUNTER))
