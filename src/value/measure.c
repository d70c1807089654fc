/*
 * measure.c
 *		Counts, estimates and the current rate of one filter, and the SQL functions
 *		that return one of these.
 */
#include "pg/pg_compat.h"

#include "core/estimate.h"
#include "core/format.h"
#include "core/number_bulk.h"
#include "pg/sql_function.h"
#include "value/entries.h"
#include "value/measure.h"

/* Bytes of bits that are read between two checks for interrupts. */
#define PIECE_BYTES (8 * 1024)

/*
 * The bytes [from, from + size) of the bits that tell which cells of a dense
 * filter are at least level.  scratch takes size bytes of them.
 */
static const uint8 *
read_bits(const bf_filter *dense, uint32 level, uint64 from, uint64 size, uint8 *scratch)
{
	uint32		cell_bits = dense->params.cell_bits;

	CHECK_FOR_INTERRUPTS();
	if (cell_bits == 1)
		return dense->payload + from;
	bf_threshold(scratch, dense->payload + from * cell_bits, 8 * size, cell_bits, level);
	return scratch;
}

uint64
count_cells(const bf_filter *dense, uint32 level)
{
	uint64		total = dense->params.m / 8;
	uint64		count = 0;
	uint8		scratch[PIECE_BYTES];

	for (uint64 at = 0; at < total; at += PIECE_BYTES)
	{
		uint64		size = Min(PIECE_BYTES, total - at);

		count += bf_popcount(read_bits(dense, level, at, size, scratch), size);
	}
	return count;
}

static void
tally_bits(const bf_filter *dense, const bf_shape *shape, bf_tally *tally)
{
	uint64		total = dense->params.m / 8;
	uint8		scratch[PIECE_BYTES];

	for (uint64 at = 0; at < total; at += PIECE_BYTES)
	{
		uint64		size = Min(PIECE_BYTES, total - at);

		bf_tally_add(tally, shape, read_bits(dense, 1, at, size, scratch), size);
	}
}

FilterMeasures
measure_filter(const bf_filter *filter)
{
	FilterMeasures measures = {0};
	bf_shape	shape = bf_shape_of(&filter->params);
	bf_tally	tally = {0};

	if (filter->sparse)
	{
		measures.cardinality = (double) filter->nhashes;
		measures.rate = bf_current_rate_sparse(filter->nhashes);
		return measures;
	}
	tally_bits(filter, &shape, &tally);
	measures.cells_set = bf_tally_bits(&tally, &shape);
	measures.full_blocks = bf_tally_full_blocks(&tally, &shape);
	measures.cardinality = bf_cardinality(&shape, measures.cells_set);
	measures.rate = bf_current_rate(&tally, &shape);
	return measures;
}

double
measure_cardinality(const bf_filter *filter)
{
	bf_shape	shape = bf_shape_of(&filter->params);

	return filter->sparse ? (double) filter->nhashes : bf_cardinality(&shape, count_cells(filter, 1));
}

double
measure_rate(const bf_filter *filter)
{
	bf_shape	shape = bf_shape_of(&filter->params);
	bf_tally	tally = {0};

	if (filter->sparse)
		return bf_current_rate_sparse(filter->nhashes);
	tally_bits(filter, &shape, &tally);
	return bf_current_rate(&tally, &shape);
}

static uint64
sum_of_entries(const bf_filter *counter)
{
	EntryWalk	walk = walk_entries(counter);
	uint64		sum = 0;

	while (next_entry(&walk))
		sum += walk.number;
	return sum;
}

static uint64
sum_of_cells(const bf_filter *dense)
{
	uint64		size = bf_payload_size(dense);
	uint64		sum = 0;

	for (uint64 at = 0; at < size; at += CHUNK_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		sum += bf_sum_of_numbers(dense->payload + at, Min(CHUNK_BYTES, size - at), dense->params.cell_bits);
	}
	return sum;
}

double
measure_total(const bf_filter *counter)
{
	bf_shape	shape = bf_shape_of(&counter->params);

	return counter->sparse ? (double) sum_of_entries(counter) : bf_total(&shape, sum_of_cells(counter));
}

static Datum
estimate(FunctionCallInfo fcinfo, bf_kind kind, double (*measure) (const bf_filter *))
{
	bf_filter	filter;

	open_value(PG_GETARG_DATUM(0), kind, &filter);
	PG_RETURN_FLOAT8(measure(&filter));
}

SQL_FUNCTION(bloomfilter_cardinality, estimate(fcinfo, BF_FILTER, measure_cardinality))
SQL_FUNCTION(bloomfilter_fpp, estimate(fcinfo, BF_FILTER, measure_rate))
SQL_FUNCTION(bloomcounter_cardinality, estimate(fcinfo, BF_COUNTER, measure_cardinality))
SQL_FUNCTION(bloomcounter_fpp, estimate(fcinfo, BF_COUNTER, measure_rate))
