/*
 * integers.h
 *		A set of integers as one bit for each from the least to the greatest.
 *
 * Exact, and one load to test.  Worth its memory where the integers are dense, as the keys
 * of a table numbered from 1 are.
 */
#ifndef BF_INTEGERS_H
#define BF_INTEGERS_H

#include "assertions.h"
#include <stdbool.h>
#include <stdint.h>

/* No integer if the least is above the greatest. */
typedef struct bf_range
{
	int64_t		least;
	int64_t		greatest;
} bf_range;

static const bf_range bf_empty_range = {.least = INT64_MAX, .greatest = INT64_MIN};

static inline void
bf_range_add(bf_range *range, int64_t value)
{
	if (value < range->least)
		range->least = value;
	if (value > range->greatest)
		range->greatest = value;
}

/* How far a value is above the least one.  Wraps around for a lower value: beyond all others. */
static inline uint64_t
bf_range_offset(const bf_range *range, int64_t value)
{
	return (uint64_t) value - (uint64_t) range->least;
}

/* The offset of the greatest value, one less than the number of bits. */
static inline uint64_t
bf_range_last(const bf_range *range)
{
	assert(range->least <= range->greatest);
	return bf_range_offset(range, range->greatest);
}

static inline void
bf_integers_add(uint8_t *bits, const bf_range *range, int64_t value)
{
	uint64_t	offset = bf_range_offset(range, value);

	assert(offset <= bf_range_last(range));
	bits[offset / 8] |= (uint8_t) (1u << (offset % 8));
}

static inline bool
bf_integers_contain(const uint8_t *bits, const bf_range *range, int64_t value)
{
	uint64_t	offset = bf_range_offset(range, value);

	return offset <= bf_range_last(range) && (bits[offset / 8] >> (offset % 8) & 1) != 0;
}

#endif							/* BF_INTEGERS_H */
