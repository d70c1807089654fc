/*
 * sizing.h
 *		How many bits and hash functions n elements need at a rate p, and back.
 *
 * The model is the exact mean over all sets of n random elements: how full
 * blocks are is a binomial mixture, and within a block the rate is the
 * probability that k further throws hit only occupied bits.  The textbook's
 * (1 - e^(-kn/m))^k leaves out both effects and undersizes: a blocked filter
 * by 3 % at p = 0.01, and any filter of few bits at small p.
 */
#ifndef BF_SIZING_H
#define BF_SIZING_H

#include <stdint.h>

#include "format.h"

/* What may be asked for. */
#define BF_MIN_RATE		1e-9
#define BF_MAX_RATE		0.5

/* The k for a rate, which depends on nothing else but the layout. */
extern uint32_t bf_k_for_rate(bf_layout layout, double rate);

/*
 * The expected false-positive rate of a filter that holds n elements.
 * Microseconds to a millisecond.
 */
extern double bf_expected_rate(bf_layout layout, uint32_t k, uint64_t m, uint64_t n);

/*
 * The least m that keeps the expected rate of n elements at or under rate,
 * or 0 if more than BF_MAX_BITS were needed.
 */
extern uint64_t bf_bits_for(bf_layout layout, uint32_t k, double rate, uint64_t n);

/* The most elements for which m bits keep the expected rate at or under rate < 1. */
extern uint64_t bf_capacity(bf_layout layout, uint32_t k, double rate, uint64_t m);

#endif							/* BF_SIZING_H */
