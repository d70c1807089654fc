/*
 * estimate.h
 *		What the bits of a filter tell about the set they came from.
 */
#ifndef BF_ESTIMATE_H
#define BF_ESTIMATE_H

#include <stdint.h>

#include "bulk.h"
#include "layout.h"

/*
 * The most likely number of distinct elements of a filter with that many bits
 * set; infinite if all are.  With one block this is the estimator of
 * Swamidass and Baldi (2007); with many it allows for an element's bits
 * sharing a block, without which it would be low by k / 1024.
 */
extern double bf_cardinality(const bf_shape *shape, uint64_t bits_set);

/* What is counted of the bits of a dense filter; all zeros at first. */
typedef struct bf_tally
{
	bf_histogram small_blocks;
	uint64_t	bits_set;		/* of one large block */
} bf_tally;

/* Counts a piece of the filter: whole blocks, or any part of one large block. */
extern void bf_tally_add(bf_tally *tally, const bf_shape *shape, const uint8_t *bits, size_t size);

/* All bits that are set, and the blocks that have no other. */
extern uint64_t bf_tally_bits(const bf_tally *tally, const bf_shape *shape);
extern uint64_t bf_tally_full_blocks(const bf_tally *tally, const bf_shape *shape);

/*
 * The false-positive rate that bits give now: the mean over blocks of
 * (share of bits set)^k.  The share over the whole filter to the k-th power
 * would be too low, since the fuller blocks answer most of the false yeses.
 * Before all pieces are counted it is a lower bound.
 */
extern double bf_current_rate(const bf_tally *tally, const bf_shape *shape);

/* The rate of a sparse filter: the chance that two 64-bit hashes are equal. */
extern double bf_current_rate_sparse(uint64_t nhashes);

/*
 * |A and B| from |A|, |B| and |A or B|: inclusion and exclusion, kept between
 * 0 and the smaller of the two.  NaN where a saturated filter leaves nothing
 * to tell it from.
 */
extern double bf_intersection_of(double a, double b, double a_or_b);

#endif							/* BF_ESTIMATE_H */
