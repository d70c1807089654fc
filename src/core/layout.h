/*
 * layout.h
 *		What the two layouts do differently.
 *
 * Blocked (Putze, Sanders and Singler 2007): all bits of an element lie in one
 * block of 512 bits, a cache line.  Classic (Bloom 1970): the filter is one
 * block.  Only this header asks which layout a filter has; all other code works
 * on the shape.
 */
#ifndef BF_LAYOUT_H
#define BF_LAYOUT_H

#include "filter.h"
#include "sizing.h"

/* Where the bits of an element can be. */
typedef struct bf_shape
{
	uint32_t	nblocks;
	uint32_t	block_bits;
	uint32_t	k;
} bf_shape;

static inline bf_shape
bf_shape_of(const bf_params *params)
{
	bf_shape	shape = {1, (uint32_t) params->m, params->k};

	if (params->layout == BF_BLOCKED)
	{
		shape.nblocks = (uint32_t) (params->m / BF_BLOCK_BITS);
		shape.block_bits = BF_BLOCK_BITS;
	}
	return shape;
}

/*
 * Are the blocks cache lines?  A classic filter of one such block has the same
 * bits as a blocked one.
 */
static inline bool
bf_has_small_blocks(const bf_shape *shape)
{
	return shape->block_bits == BF_BLOCK_BITS;
}

/* A number of bits is a multiple of this. */
static inline uint32_t
bf_size_unit(bf_layout layout)
{
	return layout == BF_BLOCKED ? BF_BLOCK_BITS : BF_WORD_BITS;
}

/*
 * Can a dense filter be folded to a smaller size?  A filter that sizes itself is
 * folded at the end, so it needs such a layout, too.
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
 * The m for n >= 1 elements, or 0 if no filter is large enough.  Blocked: from
 * 65 blocks on 2 n elements take exactly twice the m of n.
 */
static inline uint64_t
bf_bits_for(bf_solutions *solutions, bf_layout layout, uint32_t k, double rate, uint64_t n)
{
	return layout == BF_BLOCKED ? bf_blocked_bits(solutions, k, rate, n)
		: bf_classic_bits(solutions, k, rate, n);
}

/*
 * The most elements for which m bits keep the expected rate at or under
 * rate < 1.  Any n elements fit into the m for n.
 */
static inline uint64_t
bf_capacity(bf_solutions *solutions, bf_layout layout, uint32_t k, double rate, uint64_t m)
{
	return layout == BF_BLOCKED ? bf_blocked_capacity(solutions, k, rate, m)
		: bf_classic_capacity(solutions, k, rate, m);
}

#endif							/* BF_LAYOUT_H */
