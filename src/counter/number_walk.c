/*
 * number_walk.c
 *		Interruptible loops over the numbers of dense counters.
 */
#include "pg/pg_compat.h"

#include "core/bulk.h"
#include "counter/number_walk.h"
#include "miscadmin.h"

bool
combine_numbers(uint8 *into, const uint8 *from, uint64 size, uint32 counter_bits,
				bf_combination combination)
{
	bool		fits = true;

	for (uint64 at = 0; at < size && fits; at += CHUNK_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		fits = bf_combine_numbers(into + at, from + at, Min(CHUNK_BYTES, size - at),
								  counter_bits, combination);
	}
	return fits;
}

void
decay_numbers(uint8 *numbers, uint64 size, uint32 counter_bits, uint32 by)
{
	for (uint64 at = 0; at < size; at += CHUNK_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		bf_decay_numbers(numbers + at, Min(CHUNK_BYTES, size - at), counter_bits, by);
	}
}

uint64
sum_numbers(const bf_filter *dense)
{
	uint64		size = bf_payload_size(dense);
	uint64		sum = 0;

	for (uint64 at = 0; at < size; at += CHUNK_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		sum += bf_sum_of_numbers(dense->payload + at, Min(CHUNK_BYTES, size - at),
								 dense->params.counter_bits);
	}
	return sum;
}

/* Bytes of bits whose numbers are read between two checks for interrupts. */
#define PIECE_BITS_BYTES 4096

uint64
count_numbers(const bf_filter *dense, uint32 level)
{
	uint64		size = dense->params.m / 8;
	uint8		bits[PIECE_BITS_BYTES];
	uint64		count = 0;

	for (uint64 at = 0; at < size; at += PIECE_BITS_BYTES)
	{
		uint64		piece = Min(PIECE_BITS_BYTES, size - at);

		CHECK_FOR_INTERRUPTS();
		bf_threshold(bits, dense->payload + at * dense->params.counter_bits, 8 * piece,
					 dense->params.counter_bits, level);
		count += bf_popcount(bits, piece);
	}
	return count;
}

void
write_threshold(const bf_filter *dense, uint32 level, uint8 *bits)
{
	uint64		size = dense->params.m / 8;

	for (uint64 at = 0; at < size; at += PIECE_BITS_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		bf_threshold(bits + at, dense->payload + at * dense->params.counter_bits,
					 8 * Min(PIECE_BITS_BYTES, size - at), dense->params.counter_bits, level);
	}
}

/* Combines `run` blocks into one. */
static void
fold_block(uint8 *into, const uint8 *from, uint64 run, uint32 counter_bits, bf_combination combination)
{
	Size		block = BF_BLOCK_BYTES * counter_bits;
	uint64		step = CHUNK_BYTES / block;

	memcpy(into, from, block);
	for (uint64 at = 1; at < run; at++)
	{
		if (at % step == 0)
			CHECK_FOR_INTERRUPTS();
		bf_combine_numbers(into, from + at * block, block, counter_bits, combination);
	}
}

Bloomfilter *
make_folded_counter(const bf_filter *dense, const bf_params *params, bf_combination combination)
{
	bf_filter	header = {.params = *params, .levels = dense->levels};
	Size		block = BF_BLOCK_BYTES * params->counter_bits;
	uint64		run = dense->params.m / params->m;
	uint8	   *payload;
	Bloomfilter *value = make_value(&header, false, &payload);

	for (uint64 at = 0; at < bf_payload_size(&header); at += block)
	{
		if (at % CHUNK_BYTES == 0)
			CHECK_FOR_INTERRUPTS();
		fold_block(payload + at, dense->payload + at * run, run, params->counter_bits, combination);
	}
	return value;
}
