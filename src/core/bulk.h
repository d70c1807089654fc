/*
 * bulk.h
 *		Loops over all the bits of a filter.
 *
 * Sizes are in bytes and multiples of 8.  Nothing needs alignment.  Each runs
 * at about the speed of memory, picks the widest vector instructions that the
 * CPU has when it is called, and never stops early to look for a cancel
 * request: a caller hands over a large filter in pieces.
 */
#ifndef BF_BULK_H
#define BF_BULK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filter.h"

/*
 * How many blocks have how many of their bits set; all zeros for no blocks.  A
 * small filter has few different fills, so their bounds are kept, too.
 */
typedef struct bf_histogram
{
	uint32_t	blocks[BF_BLOCK_BITS + 1];	/* a filter has at most 2^22 blocks */
	uint32_t	most_set;		/* bits of any block */
	uint32_t	most_unset;
} bf_histogram;

extern void bf_or(uint8_t *dst, const uint8_t *src, size_t size);
extern void bf_and(uint8_t *dst, const uint8_t *src, size_t size);

extern uint64_t bf_popcount(const uint8_t *bits, size_t size);
extern uint64_t bf_popcount_or(const uint8_t *a, const uint8_t *b, size_t size);

/* Is every bit of sub set in super? */
extern bool bf_is_subset(const uint8_t *sub, const uint8_t *super, size_t size);

/* Adds nblocks blocks of the blocked layout to a histogram. */
extern void bf_count_blocks(const uint8_t *bits, size_t nblocks, bf_histogram *histogram);

/*
 * Writes nblocks blocks, each the OR of a run of `run` blocks of src.  dst may
 * be src, or overlap it from below.
 */
extern void bf_fold(uint8_t *dst, const uint8_t *src, size_t nblocks, size_t run);

#endif							/* BF_BULK_H */
