/*
 * estimate.h
 *		Estimates of cardinality and false-positive rate from a filter's bits.
 */
#ifndef BF_ESTIMATE_H
#define BF_ESTIMATE_H

#include "bulk.h"
#include "layout.h"

/*
 * The most likely number of distinct elements of a filter with bits_set bits
 * set; infinite if all are set.  With one block this is the estimator of
 * Swamidass and Baldi (2007).  With many blocks it accounts for the bits of an
 * element sharing a block; ignoring that would bias it low by k / 1024.
 */
extern double bf_cardinality(const bf_shape *shape, uint64_t bits_set);

/*
 * The number of elements with repetitions of a dense counter of counts, from the
 * sum of its numbers: an element adds to its distinct positions.
 */
extern double bf_total(const bf_shape *shape, uint64_t sum_of_numbers);

/* Counts of a dense filter's bits.  Initialize to all zeros. */
typedef struct bf_tally
{
	bf_histogram small_blocks;	/* if bf_has_small_blocks() */
	uint64_t	bits_set;		/* otherwise */
} bf_tally;

/* Counts a piece of a filter: whole small blocks, or part of a large block. */
extern void bf_tally_add(bf_tally *tally, const bf_shape *shape, const uint8_t *bits, size_t size);

/* The number of bits set, and of blocks in which every bit is set. */
extern uint64_t bf_tally_bits(const bf_tally *tally, const bf_shape *shape);
extern uint64_t bf_tally_full_blocks(const bf_tally *tally, const bf_shape *shape);

/*
 * The current false-positive rate: the mean over all blocks of
 * (share of bits set)^k.  The share in the whole filter to the k-th power would
 * be too low, because the fuller blocks cause most false positives.  Before all
 * pieces are counted the result is a lower bound.
 */
extern double bf_current_rate(const bf_tally *tally, const bf_shape *shape);

/* The rate of a sparse filter: the probability of a hash collision. */
extern double bf_current_rate_sparse(uint64_t nhashes);

/*
 * |A and B| from |A|, |B| and |A or B| by inclusion and exclusion, clamped to
 * 0 .. min(|A|, |B|).  NaN if |A or B| is infinite.
 */
extern double bf_intersection_of(double a, double b, double a_or_b);

#endif							/* BF_ESTIMATE_H */
