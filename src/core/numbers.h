/*
 * numbers.h
 *		The numbers of an element in a counter.
 *
 * A counter has the blocks of a filter, with a number of cell_bits (4, 8 or 16)
 * in place of each bit: block_bits of a shape is the count of numbers in a
 * block.  At 4 bits a byte holds two numbers, the first one in
 * its low half.  At 16 bits a number is little-endian.
 *
 * The largest number that the width holds is the limit.  It means "that or
 * more", so it stays under addition and subtraction.
 */
#ifndef BF_NUMBERS_H
#define BF_NUMBERS_H

#include "block.h"
#include "bytes.h"
#include "layout.h"

/* How two cells become one. */
typedef enum bf_combination
{
	BF_SUM,						/* the limit if the sum is larger */
	BF_DIFFERENCE,				/* a - b, but the limit if a is the limit */
	BF_GREATER,
	BF_LESSER
} bf_combination;

/*
 * Combines two numbers in 0 .. limit.  A difference needs a >= b, or a at the
 * limit.  The vector loops call this too, with limit 0xF0 for the high half of
 * a byte, so every case uses comparison, addition and subtraction only.
 */
static inline __attribute__((always_inline)) uint32_t
bf_combine_two(bf_combination combination, uint32_t a, uint32_t b, uint32_t limit)
{
	uint32_t	room = limit - b;

	switch (combination)
	{
		case BF_SUM:
			return (a < room ? a : room) + b;
		case BF_DIFFERENCE:
			return a == limit ? a : a - b;
		case BF_GREATER:
			return a > b ? a : b;
		case BF_LESSER:
			break;
	}
	return a < b ? a : b;
}

/* Can b be subtracted from a?  From the limit, which stays, any number can. */
static inline bool
bf_has_difference(uint32_t a, uint32_t b, uint32_t limit)
{
	return a >= b || a == limit;
}

static inline __attribute__((always_inline)) uint32_t
bf_number_at(const uint8_t *numbers, uint32_t cell_bits, uint64_t position)
{
	if (cell_bits == 4)
		return (uint32_t) numbers[position / 2] >> position % 2 * 4 & 15;
	if (cell_bits == 8)
		return numbers[position];
	return bf_load16(numbers + position * 2);
}

static inline __attribute__((always_inline)) void
bf_set_number(uint8_t *numbers, uint32_t cell_bits, uint64_t position, uint32_t number)
{
	uint32_t	shift = position % 2 * 4;

	if (cell_bits == 4)
		numbers[position / 2] = (uint8_t) ((numbers[position / 2] & 0xF0 >> shift) | number << shift);
	else if (cell_bits == 8)
		numbers[position] = (uint8_t) number;
	else
		bf_store16(numbers + position * 2, (uint16_t) number);
}

/* The number that y selects, or least if that is less. */
static inline __attribute__((always_inline)) uint32_t
bf_lesser_at(const uint8_t *block, uint32_t block_bits, uint32_t cell_bits, uint64_t y, uint32_t least)
{
	uint32_t	number = bf_number_at(block, cell_bits, bf_bit_of(y, block_bits));

	return number < least ? number : least;
}

/*
 * The least of an element's k numbers.  Like bf_test_all(), this branches once
 * per four numbers, and is always inlined so that block_bits and cell_bits
 * can be constants.
 */
static inline __attribute__((always_inline)) uint32_t
bf_least_number(const uint8_t *block, uint32_t block_bits, uint32_t cell_bits, uint32_t k, uint64_t hash)
{
	uint32_t	least = bf_cell_limit(cell_bits);

	for (; k >= 4 && least > 0; k -= 4)
	{
		least = bf_lesser_at(block, block_bits, cell_bits, hash * BF_GENERATOR, least);
		least = bf_lesser_at(block, block_bits, cell_bits, hash * BF_GENERATOR_2, least);
		least = bf_lesser_at(block, block_bits, cell_bits, hash * BF_GENERATOR_3, least);
		hash *= BF_GENERATOR_4;
		least = bf_lesser_at(block, block_bits, cell_bits, hash, least);
	}
	for (; k > 0 && least > 0; k--)
	{
		hash *= BF_GENERATOR;
		least = bf_lesser_at(block, block_bits, cell_bits, hash, least);
	}
	return least;
}

/*
 * Combines an element's numbers with one number.  Reads all of them before it
 * writes, so that a position that occurs twice changes once.
 */
static inline __attribute__((always_inline)) void
bf_change_numbers(uint8_t *block, uint32_t block_bits, uint32_t cell_bits, uint32_t k, uint64_t hash,
				  bf_combination combination, uint32_t number)
{
	uint32_t	limit = bf_cell_limit(cell_bits);
	uint32_t	positions[BF_MAX_K];
	uint32_t	numbers[BF_MAX_K];

	for (uint32_t i = 0; i < k; i++)
	{
		positions[i] = (uint32_t) bf_next_bit(&hash, block_bits);
		numbers[i] = bf_combine_two(combination, bf_number_at(block, cell_bits, positions[i]),
									number, limit);
	}
	for (uint32_t i = 0; i < k; i++)
		bf_set_number(block, cell_bits, positions[i], numbers[i]);
}

#define BF_USUAL_K			6	/* of the default rate in the blocked layout */

/*
 * The same for the default rate, width and layout.  Unrolled, the arrays are
 * registers, which saves a fifth of the time.
 */
static inline __attribute__((always_inline)) void
bf_change_usual_numbers(uint8_t *block, uint64_t hash, bf_combination combination, uint32_t number)
{
	uint32_t	positions[BF_USUAL_K];
	uint32_t	numbers[BF_USUAL_K];

#pragma GCC unroll 6
	for (int i = 0; i < BF_USUAL_K; i++)
	{
		positions[i] = (uint32_t) bf_next_bit(&hash, BF_BLOCK_BITS);
		numbers[i] = bf_combine_two(combination, bf_number_at(block, 4, positions[i]), number, 15);
	}
#pragma GCC unroll 6
	for (int i = 0; i < BF_USUAL_K; i++)
		bf_set_number(block, 4, positions[i], numbers[i]);
}

/* The least number of an element in its block: 0 if it is absent. */
static inline uint32_t
bf_block_number(const uint8_t *block, const bf_shape *shape, uint32_t cell_bits, uint64_t hash)
{
	assert(bf_is_cell_bits(cell_bits) && cell_bits > 1);
	if (bf_has_small_blocks(shape) && cell_bits == 4)
		return bf_least_number(block, BF_BLOCK_BITS, 4, shape->k, hash);
	return bf_least_number(block, shape->block_bits, cell_bits, shape->k, hash);
}

/*
 * Combines each of an element's numbers with a number.  A difference needs
 * bf_has_difference() of what the element reads.
 */
static inline __attribute__((always_inline)) void
bf_numbers_change(uint8_t *numbers, const bf_shape *shape, uint32_t cell_bits, uint64_t hash,
				  bf_combination combination, uint32_t number)
{
	uint8_t    *block = numbers + bf_block_offset(shape, hash) * cell_bits;

	assert(combination != BF_DIFFERENCE ||
		   bf_has_difference(bf_block_number(block, shape, cell_bits, hash), number, bf_cell_limit(cell_bits)));
	if (!bf_has_small_blocks(shape))
		bf_change_numbers(block, shape->block_bits, cell_bits, shape->k, hash, combination, number);
	else if (cell_bits != 4)
		bf_change_numbers(block, BF_BLOCK_BITS, cell_bits, shape->k, hash, combination, number);
	else if (shape->k != BF_USUAL_K)
		bf_change_numbers(block, BF_BLOCK_BITS, 4, shape->k, hash, combination, number);
	else
		bf_change_usual_numbers(block, hash, combination, number);
}

/*
 * Prefetches the cache lines of an element's numbers.  At 4 bits those are most
 * of the block's four lines, if number 0 is aligned to 64 bytes.  Always
 * inlined, because gcc 12 removes calls of a function that only prefetches.
 */
static inline __attribute__((always_inline)) void
bf_numbers_prefetch(const uint8_t *numbers, const bf_shape *shape, uint32_t cell_bits, uint64_t hash)
{
	const uint8_t *block = numbers + bf_block_offset(shape, hash) * cell_bits;

	if (bf_has_small_blocks(shape) && cell_bits == 4)
	{
		for (int i = 0; i < 4; i++)
			__builtin_prefetch(block + i * 64, 1);
		return;
	}
	for (uint32_t i = 0; i < shape->k; i++)
		__builtin_prefetch(block + bf_next_bit(&hash, shape->block_bits) * cell_bits / 8, 1);
}

#endif							/* BF_NUMBERS_H */
