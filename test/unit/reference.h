/*
 * reference.h
 *		What the tests compare the core with: the format's rule and the loops
 *		over bits, as directly as doc/format.md states them.
 */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"

__extension__ typedef unsigned __int128 uint128;

/* Steele, Lea and Flood's splitmix64: the same numbers on every run. */
static inline uint64_t
next_random(uint64_t *state)
{
	uint64_t	z = *state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* A random number in 0 .. bound - 1. */
static inline uint64_t
random_below(uint64_t *state, uint64_t bound)
{
	return (uint64_t) (((uint128) next_random(state) * bound) >> 64);
}

static inline void
random_bytes(uint64_t *state, uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t) next_random(state);
}

/*
 * Allocates exactly that size, so that the sanitizer guards every byte behind
 * it.
 */
static inline void *
allocate(size_t size)
{
	void	   *memory = calloc(size > 0 ? size : 1, 1);

	if (memory == NULL)
		abort();
	return memory;
}

static inline bf_params
params_of(bf_layout layout, uint32_t k, uint64_t m)
{
	return (bf_params) {
		.layout = layout, .k = k, .element_class = BF_CLASS_INT8, .rate = 0.01f, .m = m, .cell_bits = 1
	};
}

/* The number of bit i of the k bits of an element in a whole filter. */
static inline uint64_t
ref_bit(const bf_params *params, uint64_t hash, uint32_t i)
{
	uint64_t	bits = params->layout == BF_CLASSIC ? params->m : 512;
	uint64_t	nblocks = params->m / bits;
	uint64_t	block = (uint64_t) (((uint128) (hash >> 32) * nblocks) >> 32);
	uint64_t	y = hash;

	for (uint32_t times = 0; times <= i; times++)
		y *= UINT64_C(0x9E3779B97F4A7C15);
	return block * bits + (uint64_t) (((uint128) y * bits) >> 64);
}

static inline void
ref_set(uint8_t *bits, uint64_t bit)
{
	bits[bit / 8] |= (uint8_t) (1 << bit % 8);
}

static inline bool
ref_is_set(const uint8_t *bits, uint64_t bit)
{
	return bits[bit / 8] >> bit % 8 & 1;
}

static inline void
ref_add(uint8_t *bits, const bf_params *params, uint64_t hash)
{
	for (uint32_t i = 0; i < params->k; i++)
		ref_set(bits, ref_bit(params, hash, i));
}

static inline bool
ref_contains(const uint8_t *bits, const bf_params *params, uint64_t hash)
{
	for (uint32_t i = 0; i < params->k; i++)
	{
		if (!ref_is_set(bits, ref_bit(params, hash, i)))
			return false;
	}
	return true;
}

static inline uint64_t
ref_count(const uint8_t *bits, size_t size)
{
	uint64_t	count = 0;

	for (size_t i = 0; i < size * 8; i++)
		count += ref_is_set(bits, i);
	return count;
}

/*
 * The number in cell i.  Cells are little-endian without gaps, so bit j of cell
 * i is bit i * cell_bits + j in the order of a filter's bits.
 */
static inline uint32_t
ref_number(const uint8_t *numbers, uint32_t cell_bits, uint64_t i)
{
	uint32_t	number = 0;

	for (uint32_t j = 0; j < cell_bits; j++)
		number |= (uint32_t) ref_is_set(numbers, i * cell_bits + j) << j;
	return number;
}

static inline void
ref_set_number(uint8_t *numbers, uint32_t cell_bits, uint64_t i, uint32_t number)
{
	for (uint32_t j = 0; j < cell_bits; j++)
	{
		uint64_t	bit = i * cell_bits + j;

		numbers[bit / 8] &= (uint8_t) ~(1 << bit % 8);
		if (number >> j & 1)
			ref_set(numbers, bit);
	}
}

/*
 * An element's distinct cells in a whole filter, those of ref_bit(); returns how
 * many.
 */
static inline uint32_t
ref_positions(const bf_params *params, uint64_t hash, uint64_t *positions)
{
	uint64_t	bits = params->layout == BF_CLASSIC ? params->m : 512;
	uint64_t	first = (uint64_t) (((uint128) (hash >> 32) * (params->m / bits)) >> 32) * bits;
	uint64_t	y = hash;
	uint32_t	count = 0;

	for (uint32_t i = 0; i < params->k; i++)
	{
		uint64_t	position;
		uint32_t	j = 0;

		y *= UINT64_C(0x9E3779B97F4A7C15);
		position = first + (uint64_t) (((uint128) y * bits) >> 64);
		while (j < count && positions[j] != position)
			j++;
		if (j == count)
			positions[count++] = position;
	}
	return count;
}

/* What an element reads in a dense filter or counter. */
static inline uint32_t
ref_read(const uint8_t *numbers, const bf_params *params, uint64_t hash)
{
	uint64_t	positions[BF_MAX_K];
	uint32_t	count = ref_positions(params, hash, positions);
	uint32_t	least = UINT32_MAX;

	for (uint32_t i = 0; i < count; i++)
	{
		uint32_t	number = ref_number(numbers, params->cell_bits, positions[i]);

		least = number < least ? number : least;
	}
	return least;
}

/*
 * A sum, difference, maximum or minimum of two numbers, in integers that do
 * not overflow; negative if a difference does not exist.
 */
static inline int64_t
ref_combined(char operation, int64_t a, int64_t b, int64_t limit)
{
	if (operation == '+')
		return a + b > limit ? limit : a + b;
	if (operation == '-')
		return a == limit ? limit : a - b;
	if (operation == '>')
		return a > b ? a : b;
	return a < b ? a : b;
}

/* Combines the cells of an element with one number; of bits + and > set them. */
static inline void
ref_change(uint8_t *numbers, const bf_params *params, uint64_t hash, char operation, uint32_t number)
{
	int64_t		limit = (INT64_C(1) << params->cell_bits) - 1;
	uint64_t	positions[BF_MAX_K];
	uint32_t	count = ref_positions(params, hash, positions);

	for (uint32_t i = 0; i < count; i++)
	{
		int64_t		old = ref_number(numbers, params->cell_bits, positions[i]);

		ref_set_number(numbers, params->cell_bits, positions[i],
					   (uint32_t) ref_combined(operation, old, number, limit));
	}
}

static inline int
compare_hashes(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

/* Sorts hashes, drops duplicates, and returns how many remain. */
static inline size_t
sort_hashes(uint64_t *hashes, size_t count)
{
	size_t		kept = 0;

	qsort(hashes, count, sizeof(*hashes), compare_hashes);
	for (size_t i = 0; i < count; i++)
	{
		if (i == 0 || hashes[i] != hashes[i - 1])
			hashes[kept++] = hashes[i];
	}
	return kept;
}

/* Hashes as a sparse payload. */
static inline void
put_hashes(uint8_t *payload, const uint64_t *hashes, size_t count)
{
	for (size_t i = 0; i < count * 8; i++)
		payload[i] = (uint8_t) (hashes[i / 8] >> 8 * (i % 8));
}

/* Numbers as they follow the hashes in the sparse payload of a counter. */
static inline void
put_numbers(uint8_t *numbers, const uint32_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		numbers[2 * i] = (uint8_t) values[i];
		numbers[2 * i + 1] = (uint8_t) (values[i] >> 8);
	}
}

/* Mean and its standard error, of values added one by one. */
typedef struct sample
{
	double		count;
	double		sum;
	double		squares;
} sample;

static inline void
sample_add(sample *of, double value)
{
	of->count++;
	of->sum += value;
	of->squares += value * value;
}

static inline double
sample_mean(const sample *of)
{
	return of->sum / of->count;
}

static inline double
sample_error(const sample *of)
{
	double		mean = sample_mean(of);

	return sqrt(fmax(of->squares / of->count - mean * mean, 0) / (of->count - 1));
}

#endif							/* REFERENCE_H */
