/*
 * layout.h
 *		The differences between the two layouts.
 *
 * Blocked (Putze, Sanders and Singler 2007): all bits of an element lie in one
 * block of 512 bits, a cache line.  Classic (Bloom 1970): the filter is one
 * block.  Only this header tests the layout; all other code uses the shape.
 */
#ifndef BF_LAYOUT_H
#define BF_LAYOUT_H

#include "filter.h"
#include "sizing.h"

/*
 * A filter's blocks.  An element sets at most k bits, all in one block.  In a
 * counter, numbers take the place of bits.
 */
typedef struct bf_shape
{
	uint32_t	nblocks;
	uint32_t	block_bits;
	uint32_t	k;
} bf_shape;

/* The size of a filter in bits is a multiple of this. */
static inline uint32_t
bf_size_unit(bf_layout layout)
{
	return layout == BF_BLOCKED ? BF_BLOCK_BITS : BF_WORD_BITS;
}

static inline bf_shape
bf_shape_of(const bf_params *params)
{
	bf_shape	shape = {1, (uint32_t) params->m, params->k};

	assert(params->k >= 1 && params->k <= BF_MAX_K);
	assert(params->m <= BF_MAX_BITS && params->m % bf_size_unit(params->layout) == 0);
	if (params->layout == BF_BLOCKED)
	{
		shape.nblocks = (uint32_t) (params->m / BF_BLOCK_BITS);
		shape.block_bits = BF_BLOCK_BITS;
	}
	return shape;
}

/*
 * True if a block is a cache line.  This includes a classic filter of
 * BF_BLOCK_BITS bits, which has the same bits as a blocked filter of one block.
 */
static inline bool
bf_has_small_blocks(const bf_shape *shape)
{
	return shape->block_bits == BF_BLOCK_BITS;
}

/*
 * True if dense filters of this layout can be folded to smaller sizes.  A
 * self-sizing filter needs such a layout, because its last step is a fold.
 */
static inline bool
bf_layout_folds(bf_layout layout)
{
	return layout == BF_BLOCKED;
}

static inline const char *
bf_layout_name(bf_layout layout)
{
	return layout == BF_BLOCKED ? "blocked" : "classic";
}

/* The number of hash functions for a rate. */
static inline uint32_t
bf_k_for_rate(bf_layout layout, double rate)
{
	return layout == BF_BLOCKED ? bf_blocked_k(rate) : bf_classic_k(rate);
}

/*
 * The m for n >= 1 elements, or 0 if the largest filter is too small.  In the
 * blocked layout, m for 2n is exactly twice m for n once m exceeds 64 blocks.
 */
static inline uint64_t
bf_bits_for(bf_solutions *solutions, bf_layout layout, uint32_t k, double rate, uint64_t n)
{
	return layout == BF_BLOCKED ? bf_blocked_bits(solutions, k, rate, n)
		: bf_classic_bits(solutions, k, rate, n);
}

/*
 * The most elements for which m bits keep the expected rate at or below rate,
 * which must be below 1.  At least n for m = bf_bits_for(n).
 */
static inline uint64_t
bf_capacity(bf_solutions *solutions, bf_layout layout, uint32_t k, double rate, uint64_t m)
{
	return layout == BF_BLOCKED ? bf_blocked_capacity(solutions, k, rate, m)
		: bf_classic_capacity(solutions, k, rate, m);
}

#endif							/* BF_LAYOUT_H */
