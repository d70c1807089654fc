/*
 * number_walk.h
 *		Interruptible loops over the numbers of dense counters.
 *
 * Sizes are in bytes.
 */
#ifndef BF_NUMBER_WALK_H
#define BF_NUMBER_WALK_H

#include "core/number_bulk.h"
#include "filter/value.h"

/* bf_combine_numbers() for any size. */
extern bool combine_numbers(uint8 *into, const uint8 *from, uint64 size, uint32 counter_bits,
							bf_combination combination);

/* bf_decay_numbers() for any size. */
extern void decay_numbers(uint8 *numbers, uint64 size, uint32 counter_bits, uint32 by);

/* The sum of all numbers. */
extern uint64 sum_numbers(const bf_filter *dense);

/* How many numbers of a dense counter are at least level. */
extern uint64 count_numbers(const bf_filter *dense, uint32 level);

/* Writes the bits of a Bloom filter of what reads level or more. */
extern void write_threshold(const bf_filter *dense, uint32 level, uint8 *bits);

/*
 * A dense counter folded to the size in params.  Numbers that fall together are
 * combined by BF_SUM or BF_GREATER.
 */
extern Bloomfilter *make_folded_counter(const bf_filter *dense, const bf_params *params,
										bf_combination combination);

#endif							/* BF_NUMBER_WALK_H */
