/*
 * rows.c
 *		The bits of a filter at the shape of the index.
 */
#include "pg/pg_compat.h"

#include "bloomslices/bloomslices.h"
#include "core/block.h"
#include "core/bulk.h"
#include "miscadmin.h"
#include "value/entries.h"

/* Interrupts are checked once per this many blocks. */
#define CHUNK_BLOCKS	(CHUNK_BYTES / BF_BLOCK_BYTES)

/* Filters that cannot give an index its shape have the same kind whether it has one or not. */
static bool
can_give_shape(const bf_filter *filter)
{
	const bf_params *params = &filter->params;

	return params->layout == BF_BLOCKED && params->m > 0 && params->element_class != BF_CLASS_NONE &&
		!bf_is_empty(filter);
}

/* Would most bits be set, so that they rule out hardly any key? */
static bool
would_saturate(const SlicesShape *shape, const bf_filter *filter)
{
	uint64		nbits = (uint64) shape->nblocks * BF_BLOCK_BITS;

	return filter->sparse ? filter->nhashes > nbits / shape->k : filter->params.m > 2 * nbits;
}

static RowKind
kind_of(const SlicesShape *shape, const bf_filter *filter)
{
	const bf_params *params = &filter->params;

	if (bf_is_empty(filter) && params->element_class == BF_CLASS_NONE)
		return ROW_EMPTY;
	if (!can_give_shape(filter) || !is_complete_shape(shape) ||
		params->element_class != shape->element_class || params->seed != shape->seed)
		return ROW_CANDIDATE;
	if (params->k == shape->k && bf_shape_of(params).nblocks == shape->nblocks)
		return filter->sparse ? ROW_SPARSE : ROW_EXACT;
	if (would_saturate(shape, filter))
		return ROW_CANDIDATE;
	return filter->sparse || params->k >= shape->k ? ROW_FLAGGED : ROW_CANDIDATE;
}

static void
expand_hashes(const bf_shape *shape, const bf_filter *filter, uint8 *bits)
{
	EntryWalk	walk = walk_entries(filter);

	zero_bytes(bits, (uint64) shape->nblocks * BF_BLOCK_BYTES);
	while (next_entry(&walk))
		bf_bits_add(bits, shape, walk.hash);
}

/* The least hash whose block is this one or a later one. */
static inline uint64
first_hash_of(const bf_shape *shape, uint64 block)
{
	return ((block << 32) + shape->nblocks - 1) / shape->nblocks << 32;
}

/*
 * Each block becomes the union of those that share hashes with it, so it has the bits
 * of all their elements.  A filter of more hash functions has more bits: its first k are
 * the same.
 */
static void
resize_blocks(const bf_shape *shape, const bf_filter *filter, uint8 *bits)
{
	bf_shape	other = bf_shape_of(&filter->params);
	uint64		work = 0;

	for (uint64 block = 0; block < shape->nblocks; block++)
	{
		uint64		from = bf_block_of(&other, first_hash_of(shape, block));
		uint64		to = block + 1 == shape->nblocks ? other.nblocks - 1 :
			bf_block_of(&other, first_hash_of(shape, block + 1) - 1);

		memcpy(bits + block * BF_BLOCK_BYTES, filter->payload + from * BF_BLOCK_BYTES, BF_BLOCK_BYTES);
		for (uint64 more = from + 1; more <= to; more++)
		{
			bf_or(bits + block * BF_BLOCK_BYTES, filter->payload + more * BF_BLOCK_BYTES, BF_BLOCK_BYTES);
			if (++work % CHUNK_BLOCKS == 0)
				CHECK_FOR_INTERRUPTS();
		}
		if (++work % CHUNK_BLOCKS == 0)
			CHECK_FOR_INTERRUPTS();
	}
}

RowKind
slices_row_bits(const SlicesShape *shape, const bf_filter *filter, uint8 *bits)
{
	RowKind		kind = kind_of(shape, filter);
	bf_shape	index_shape = slices_bf_shape(shape);

	if (bits == NULL || !kind_has_bits(kind))
		return kind;
	if (filter->sparse)
		expand_hashes(&index_shape, filter, bits);
	else if (kind == ROW_EXACT)
		copy_bytes(bits, filter->payload, (uint64) shape->nblocks * BF_BLOCK_BYTES);
	else
		resize_blocks(&index_shape, filter, bits);
	return kind;
}

bool
complete_shape(SlicesShape *shape, const bf_filter *filter)
{
	const bf_params *params = &filter->params;

	if (is_complete_shape(shape))
		return true;
	if (!can_give_shape(filter))
		return false;
	if (shape->nblocks > 0)
	{
		SlicesShape with_class = *shape;

		with_class.element_class = params->element_class;
		if (!kind_has_bits(kind_of(&with_class, filter)))
			return false;
		*shape = with_class;
		return true;
	}
	*shape = (SlicesShape)
	{
		.element_class = params->element_class, .nblocks = bf_shape_of(params).nblocks, .k = params->k,
			.rate = params->rate, .seed = params->seed
	};
	return true;
}
