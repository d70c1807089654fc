/*
 * number_bulk.h
 *		Loops over the numbers of counters.
 *
 * Sizes are in bytes and multiples of 32.  Alignment is not needed.  As in
 * bulk.h, each loop uses the widest vector instructions of the CPU, and no
 * loop checks for cancel requests.
 */
#ifndef BF_NUMBER_BULK_H
#define BF_NUMBER_BULK_H

#include "numbers.h"

/*
 * Sets each number of dst to its combination with that of src; the two must not
 * overlap.  False if a difference does not exist, because a number of dst is
 * below the limit and below that of src; dst is then undefined.
 */
extern bool bf_combine_numbers(uint8_t *dst, const uint8_t *src, size_t size, uint32_t cell_bits,
							   bf_combination combination);

/* Lowers every number, the limit too, by 0 .. limit; none below 0. */
extern void bf_decay_numbers(uint8_t *numbers, size_t size, uint32_t cell_bits, uint32_t by);

/*
 * Sets bit i, in the order of a filter's bits, if number i is at least level,
 * and clears it otherwise.  npositions is a multiple of 64; level is in
 * 1 .. limit.  The two must not overlap.
 */
extern void bf_threshold(uint8_t *bits, const uint8_t *numbers, size_t npositions, uint32_t cell_bits,
						 uint32_t level);

extern uint64_t bf_sum_of_numbers(const uint8_t *numbers, size_t size, uint32_t cell_bits);

#endif							/* BF_NUMBER_BULK_H */
