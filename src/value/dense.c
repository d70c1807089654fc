/*
 * dense.c
 *		Interruptible loops over the cells of dense filters.
 */
#include "pg/pg_compat.h"

#include "miscadmin.h"
#include "value/dense.h"

bool
combine_cells(uint8 *into, const uint8 *from, uint64 size, uint32 cell_bits,
			  bf_combination combination)
{
	bool		fits = true;

	for (uint64 at = 0; at < size && fits; at += CHUNK_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		fits = bf_combine_cells(into + at, from + at, Min(CHUNK_BYTES, size - at), cell_bits, combination);
	}
	return fits;
}

/* Combines `run` blocks into one, many more than a chunk. */
static void
fold_long_run(uint8 *into, const uint8 *from, uint64 run, uint32 cell_bits, bf_combination combination)
{
	Size		block = BF_BLOCK_BYTES * cell_bits;
	uint64		step = CHUNK_BYTES / block;
	uint8		part[BF_BLOCK_BYTES * 16];

	bf_fold_cells(into, from, 1, step, cell_bits, combination);
	for (uint64 at = step; at < run; at += step)
	{
		CHECK_FOR_INTERRUPTS();
		bf_fold_cells(part, from + at * block, 1, Min(step, run - at), cell_bits, combination);
		bf_combine_cells(into, part, block, cell_bits, combination);
	}
}

BloomValue *
make_folded_value(const bf_filter *dense, const bf_params *params, bf_combination combination)
{
	bf_filter	header = {.params = *params, .levels = dense->levels};
	uint32		cell_bits = params->cell_bits;
	Size		block = BF_BLOCK_BYTES * cell_bits;
	uint64		run = dense->params.m / params->m;
	uint64		step = Max(CHUNK_BYTES / block / run, 1);
	uint64		nblocks = params->m / BF_BLOCK_BITS;
	const uint8 *from = dense->payload;
	uint8	   *payload;
	BloomValue *value = make_value(&header, false, &payload);

	for (uint64 at = 0; at < nblocks; at += step)
	{
		uint64		count = Min(step, nblocks - at);

		CHECK_FOR_INTERRUPTS();
		if (run * block > CHUNK_BYTES)
			fold_long_run(payload + at * block, from, run, cell_bits, combination);
		else
			bf_fold_cells(payload + at * block, from, count, run, cell_bits, combination);
		from += count * run * block;
	}
	return value;
}
