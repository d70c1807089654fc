/*
 * bulk.h
 *		Loops over the bits of filters.
 *
 * Sizes are in bytes and multiples of 8.  Alignment is not needed.  Each loop
 * runs at about memory speed and uses the widest vector instructions of the
 * CPU.  No loop checks for cancel requests, so callers pass a large filter in
 * pieces.
 */
#ifndef BF_BULK_H
#define BF_BULK_H

#include "filter.h"

_Static_assert(BF_MAX_BITS / BF_BLOCK_BITS <= UINT32_MAX, "a counter of bf_histogram holds all blocks");

/* True if two ranges do not overlap, as assertions of the loops demand. */
static inline bool
bf_apart(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
	return (uintptr_t) a + a_size <= (uintptr_t) b || (uintptr_t) b + b_size <= (uintptr_t) a;
}

/*
 * blocks[i] is the number of blocks with i bits set; most_set and most_unset
 * bound the range of i in use.  Initialize to all zeros.
 */
typedef struct bf_histogram
{
	uint32_t	blocks[BF_BLOCK_BITS + 1];	/* at most 2^22 in a filter */
	uint32_t	most_set;		/* maximum over the blocks */
	uint32_t	most_unset;
} bf_histogram;

/* dst |= src and dst &= src; the two must not overlap. */
extern void bf_or(uint8_t *dst, const uint8_t *src, size_t size);
extern void bf_and(uint8_t *dst, const uint8_t *src, size_t size);

extern uint64_t bf_popcount(const uint8_t *bits, size_t size);
extern uint64_t bf_popcount_or(const uint8_t *a, const uint8_t *b, size_t size);

/* True if every bit of sub is set in super. */
extern bool bf_is_subset(const uint8_t *sub, const uint8_t *super, size_t size);

/* Adds nblocks blocks of BF_BLOCK_BITS bits to a histogram. */
extern void bf_count_blocks(const uint8_t *bits, size_t nblocks, bf_histogram *histogram);

/*
 * Writes nblocks blocks of BF_BLOCK_BITS bits, each the OR of `run` consecutive
 * blocks of src.  The two may overlap if dst <= src.
 */
extern void bf_fold(uint8_t *dst, const uint8_t *src, size_t nblocks, size_t run);

#endif							/* BF_BULK_H */
