/*
 * decay.c
 *		bloom_decay: a counter with all numbers lowered.
 */
#include "pg/pg_compat.h"

#include "core/number_bulk.h"
#include "value/entries.h"
#include "value/parameters.h"

PG_FUNCTION_INFO_V1(bloomcounter_decay);

static BloomValue *
decay_sparse(const bf_filter *counter, uint32 by)
{
	bf_filter	result = {.params = counter->params, .levels = true};
	EntryWriter writer = write_entries(&result, counter->nhashes);
	EntryWalk	walk = walk_entries(counter);

	while (next_entry(&walk))
	{
		if (walk.number > by)
			put_entry(&writer, walk.hash, walk.number - by);
	}
	return finish_entries(&writer);
}

static BloomValue *
decay_dense(const bf_filter *counter, uint32 by)
{
	bf_filter	levels = *counter;
	bf_filter	result;
	uint8	   *numbers;
	BloomValue *value;
	uint64		size;

	levels.levels = true;
	value = make_dense_value(&levels, BF_GREATER, &result, &numbers);
	size = bf_payload_size(&result);
	for (uint64 at = 0; at < size; at += CHUNK_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		bf_decay_numbers(numbers + at, Min(CHUNK_BYTES, size - at), result.params.cell_bits, by);
	}
	return value;
}

Datum
bloomcounter_decay(PG_FUNCTION_ARGS)
{
	bf_filter	counter;
	uint32		by;

	open_value(PG_GETARG_DATUM(0), BF_COUNTER, &counter);
	by = check_number("by", PG_GETARG_INT32(1), counter.params.cell_bits);
	if (bf_is_empty(&counter))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	PG_RETURN_POINTER(counter.sparse ? decay_sparse(&counter, by) : decay_dense(&counter, by));
}
