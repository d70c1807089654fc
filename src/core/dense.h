/*
 * dense.h
 *		The cells of an element in a dense filter or counter.
 *
 * One bit has the fast paths of block.h, more have those of numbers.h.
 */
#ifndef BF_DENSE_H
#define BF_DENSE_H

#include <string.h>

#include "block.h"
#include "bulk.h"
#include "number_bulk.h"
#include "numbers.h"
#include "sparse.h"

/* What an element reads in its block, the least of its cells: 0 if it is absent. */
static inline __attribute__((always_inline)) uint32_t
bf_block_read(const uint8_t *block, const bf_shape *shape, uint32_t cell_bits, uint64_t hash)
{
	if (cell_bits == 1)
		return bf_block_contains(block, shape, hash);
	return bf_block_number(block, shape, cell_bits, hash);
}

/* The same in a whole payload. */
static inline __attribute__((always_inline)) uint32_t
bf_cells_read(const uint8_t *payload, const bf_shape *shape, uint32_t cell_bits, uint64_t hash)
{
	return bf_block_read(payload + bf_block_offset(shape, hash) * cell_bits, shape, cell_bits, hash);
}

/* Combines each of an element's cells with a number: see bf_numbers_change(). */
static inline void
bf_cells_change(uint8_t *payload, const bf_shape *shape, uint32_t cell_bits, uint64_t hash,
				bf_combination combination, uint32_t number)
{
	if (cell_bits == 1)
		bf_bits_add(payload, shape, hash);
	else
		bf_numbers_change(payload, shape, cell_bits, hash, combination, number);
}

/* How an element changes a dense payload. */
typedef struct bf_update
{
	bf_shape	shape;
	uint32_t	cell_bits;
	bf_combination combination; /* BF_SUM or BF_GREATER; of bits both set them */
} bf_update;

static inline bf_update
bf_update_of(const bf_params *params, bf_combination combination)
{
	bf_update	update = {bf_shape_of(params), params->cell_bits, combination};

	assert(combination == BF_SUM || combination == BF_GREATER);
	return update;
}

/*
 * Functions of their own: inlined, they would slow down the path for bits in
 * bf_dense_add() by a fifth.
 */
static inline void
bf_numbers_add(uint8_t *numbers, const bf_shape *shape, uint32_t cell_bits, uint64_t hash, uint32_t number)
{
	bf_numbers_change(numbers, shape, cell_bits, hash, BF_SUM, number);
}

static inline void
bf_numbers_raise(uint8_t *numbers, const bf_shape *shape, uint32_t cell_bits, uint64_t hash, uint32_t number)
{
	bf_numbers_change(numbers, shape, cell_bits, hash, BF_GREATER, number);
}

/* Adds an element with a number, which bits ignore. */
static inline void
bf_dense_add(uint8_t *payload, const bf_update *update, uint64_t hash, uint32_t number)
{
	if (update->cell_bits == 1)
		bf_bits_add(payload, &update->shape, hash);
	else if (update->combination == BF_GREATER)
		bf_numbers_raise(payload, &update->shape, update->cell_bits, hash, number);
	else
		bf_numbers_add(payload, &update->shape, update->cell_bits, hash, number);
}

/* Prefetches what bf_dense_add() will write. */
static inline __attribute__((always_inline)) void
bf_dense_prefetch(const uint8_t *payload, const bf_update *update, uint64_t hash)
{
	if (update->cell_bits == 1)
		bf_bits_prefetch(payload, &update->shape, hash);
	else
		bf_numbers_prefetch(payload, &update->shape, update->cell_bits, hash);
}

/* Adds the hashes [from, to) of a sparse filter to a dense payload. */
static inline void
bf_expand(const bf_filter *filter, uint64_t from, uint64_t to, const bf_update *update, uint8_t *payload)
{
	assert(filter->sparse && from <= to && to <= filter->nhashes);
	for (uint64_t i = from; i < to; i++)
		bf_dense_add(payload, update, bf_hash_at(filter->payload, i), bf_number_of(filter, i));
}

/*
 * Sets each cell of dst to its combination with that of src; sizes as in
 * number_bulk.h.  Of bits the greater is the OR, the lesser the AND.  False if a
 * difference does not exist: see bf_combine_numbers().
 */
static inline bool
bf_combine_cells(uint8_t *dst, const uint8_t *src, size_t size, uint32_t cell_bits,
				 bf_combination combination)
{
	assert(cell_bits > 1 || combination != BF_DIFFERENCE);
	if (cell_bits > 1)
		return bf_combine_numbers(dst, src, size, cell_bits, combination);
	if (combination == BF_LESSER)
		bf_and(dst, src, size);
	else
		bf_or(dst, src, size);
	return true;
}

/*
 * Writes nblocks blocks of BF_BLOCK_BITS cells, each the combination of `run`
 * consecutive blocks of src.  The two must not overlap.
 */
static inline void
bf_fold_cells(uint8_t *dst, const uint8_t *src, size_t nblocks, size_t run, uint32_t cell_bits,
			  bf_combination combination)
{
	size_t		block = BF_BLOCK_BYTES * cell_bits;

	if (cell_bits == 1)
	{
		bf_fold(dst, src, nblocks, run);
		return;
	}
	for (size_t i = 0; i < nblocks; i++, dst += block)
	{
		memcpy(dst, src, block);
		src += block;
		for (size_t j = 1; j < run; j++, src += block)
			bf_combine_numbers(dst, src, block, cell_bits, combination);
	}
}

#endif							/* BF_DENSE_H */
