/*
 * threshold.c
 *		The Bloom filter of what a counter reads often enough.
 */
#include "pg/pg_compat.h"

#include "core/number_bulk.h"
#include "pg/sql_function.h"
#include "value/entries.h"
#include "value/parameters.h"
#include "value/threshold.h"

/* The sparse filter of the hashes whose number is at least level. */
static BloomValue *
select_hashes(const bf_filter *counter, uint32 level, bf_filter *result)
{
	EntryWriter writer = write_entries(result, counter->nhashes);
	EntryWalk	walk = walk_entries(counter);

	while (next_entry(&walk))
	{
		if (walk.number >= level)
			put_entry(&writer, walk.hash, 1);
	}
	if (writer.count == 0)
		result->params.element_class = BF_CLASS_NONE;
	return finish_entries(&writer);
}

/* A counter can stay sparse for longer than a filter of the same size. */
static BloomValue *
threshold_sparse(const bf_filter *counter, uint32 level, bf_filter *result)
{
	BloomValue *selected = select_hashes(counter, level, result);
	bf_filter	dense;
	uint8	   *bits;
	BloomValue *value;

	if (result->nhashes <= bf_sparse_limit(&result->params))
		return selected;
	value = make_dense_value(result, BF_GREATER, &dense, &bits);
	pfree(selected);
	return value;
}

/* Bytes of bits whose numbers are read between two checks for interrupts. */
#define PIECE_BITS_BYTES 4096

static BloomValue *
threshold_dense(const bf_filter *dense, uint32 level, const bf_filter *result)
{
	uint32		cell_bits = dense->params.cell_bits;
	uint64		size = dense->params.m / 8;
	uint8	   *bits;
	BloomValue *value = make_value(result, false, &bits);

	for (uint64 at = 0; at < size; at += PIECE_BITS_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		bf_threshold(bits + at, dense->payload + at * cell_bits, 8 * Min(PIECE_BITS_BYTES, size - at),
					 cell_bits, level);
	}
	return value;
}

BloomValue *
make_threshold(const bf_filter *counter, uint32 level)
{
	bf_filter	result = {.params = counter->params};

	result.params.cell_bits = 1;
	return counter->sparse ? threshold_sparse(counter, level, &result)
		: threshold_dense(counter, level, &result);
}

/* Level 1 if there is no argument for it. */
static Datum
to_filter(FunctionCallInfo fcinfo)
{
	bf_filter	counter;
	uint32		level = 1;

	open_value(PG_GETARG_DATUM(0), BF_COUNTER, &counter);
	if (PG_NARGS() > 1)
		level = check_number("level", PG_GETARG_INT32(1), counter.params.cell_bits);
	PG_RETURN_POINTER(make_threshold(&counter, level));
}

SQL_FUNCTION(bloomcounter_at_least, to_filter(fcinfo))
SQL_FUNCTION(bloomcounter_to_filter, to_filter(fcinfo))
