/*
 * estimate.h
 *		What the bits of a filter tell about the set they came from.
 */
#ifndef BF_ESTIMATE_H
#define BF_ESTIMATE_H

#include <stdint.h>

#include "bulk.h"
#include "format.h"

/*
 * The most likely number of distinct elements of a filter with that many bits
 * set; infinite if all are.  With one block this is the estimator of
 * Swamidass and Baldi (2007); with many it allows for an element's bits
 * sharing a block, without which it would be low by k / 1024.
 */
extern double bf_cardinality(const bf_shape *shape, uint64_t bits_set);

/* The number of bits set in all blocks of a histogram. */
extern uint64_t bf_histogram_bits(const bf_histogram *histogram);

/*
 * The false-positive rate that bits give now: the mean over blocks of
 * (share of bits set)^k.  The share over the whole filter to the k-th power
 * would be too low, since the fuller blocks answer most of the false yeses.
 */
extern double bf_current_rate_blocked(const bf_shape *shape, const bf_histogram *histogram);
extern double bf_current_rate_classic(const bf_shape *shape, uint64_t bits_set);

/* The rate of a sparse filter: the chance that two 64-bit hashes are equal. */
extern double bf_current_rate_sparse(uint64_t nhashes);

/*
 * |A and B| from |A|, |B| and |A or B|: inclusion and exclusion, kept between
 * 0 and the smaller of the two.  NaN where a saturated filter leaves nothing
 * to tell it from.
 */
extern double bf_intersection_of(double a, double b, double a_or_b);

#endif							/* BF_ESTIMATE_H */
