/*
 * slices.c
 *		Bits of many filters, stored by position, for several instruction sets
 *		(cpu.h).
 */
#include "slices.h"

#include <string.h>

#include "bytes.h"
#include "cpu.h"

/* Rows of a pass: each slice then receives about a cache line at a time. */
#define PASS_ROWS 512

_Static_assert(PASS_ROWS % 64 == 0, "a pass consists of whole words");

BODY uint32_t
lesser(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Swaps the squares of distance * distance bits right above and left below. */
BODY void
swap_squares(uint64_t *matrix, uint32_t distance, uint64_t mask)
{
	for (uint32_t square = 0; square < 64; square += 2 * distance)
	{
		for (uint32_t i = square; i < square + distance; i++)
		{
			uint64_t	swapped = ((matrix[i] >> distance) ^ matrix[i + distance]) & mask;

			matrix[i] ^= swapped << distance;
			matrix[i + distance] ^= swapped;
		}
	}
}

/* Transposes 64 * 64 bits. */
BODY void
transpose(uint64_t *matrix)
{
	swap_squares(matrix, 32, UINT64_C(0x00000000FFFFFFFF));
	swap_squares(matrix, 16, UINT64_C(0x0000FFFF0000FFFF));
	swap_squares(matrix, 8, UINT64_C(0x00FF00FF00FF00FF));
	swap_squares(matrix, 4, UINT64_C(0x0F0F0F0F0F0F0F0F));
	swap_squares(matrix, 2, UINT64_C(0x3333333333333333));
	swap_squares(matrix, 1, UINT64_C(0x5555555555555555));
}

/* The first size <= 8 bytes of a word; its other bytes are zero. */
BODY uint64_t
load_part(const uint8_t *p, uint32_t size)
{
	uint8_t		word[8] = {0};

	if (size == 8)
		return bf_load64(p);
	memcpy(word, p, size);
	return bf_load64(word);
}

BODY void
store_part(uint8_t *p, uint64_t value, uint32_t size)
{
	uint8_t		word[8];

	if (size == 8)
	{
		bf_store64(p, value);
		return;
	}
	bf_store64(word, value);
	memcpy(p, word, size);
}

/* Transposes 8 bytes of at most 64 rows to size <= 8 bytes of each of 64 slices. */
BODY void
slice_column(const uint8_t *const *rows, uint32_t nrows, uint32_t column, uint32_t size,
			 uint32_t slice_bytes, uint8_t *slices)
{
	uint64_t	matrix[64] = {0};

	for (uint32_t i = 0; i < nrows; i++)
		matrix[i] = bf_load64(rows[i] + column);
	transpose(matrix);
	for (uint32_t i = 0; i < 64; i++)
		store_part(slices + (size_t) i * slice_bytes, matrix[i], size);
}

BODY void
bf_slice_part_body(const uint8_t *const *rows, uint32_t nrows, uint32_t part_bytes, uint32_t slice_bytes,
				   uint8_t *slices)
{
	assert(part_bytes <= slice_bytes && nrows <= 8 * part_bytes);
	for (uint32_t pass = 0; pass < 8 * part_bytes; pass += PASS_ROWS)
	{
		for (uint32_t column = 0; column < BF_BLOCK_BYTES; column += 8)
		{
			uint8_t    *to = slices + (size_t) 8 * column * slice_bytes;
			uint32_t	end = lesser(pass + PASS_ROWS, 8 * part_bytes);

			for (uint32_t row = pass; row < end; row += 64)
				slice_column(rows + row, row < nrows ? lesser(nrows - row, 64) : 0, column,
							 lesser(part_bytes - row / 8, 8), slice_bytes, to + row / 8);
		}
	}
}

/* The inverse, for at least one row. */
BODY void
unslice_column(const uint8_t *slices, uint32_t slice_bytes, uint32_t nrows, uint8_t *rows)
{
	uint64_t	matrix[64];

	for (uint32_t i = 0; i < 64; i++)
		matrix[i] = load_part(slices + (size_t) i * slice_bytes, (nrows + 7) / 8);
	transpose(matrix);
	for (uint32_t i = 0; i < nrows; i++)
		bf_store64(rows + (size_t) i * BF_BLOCK_BYTES, matrix[i]);
}

BODY void
bf_unslice_rows_body(const uint8_t *slices, uint32_t slice_bytes, uint32_t nrows, uint8_t *rows)
{
	assert(nrows <= 8 * slice_bytes);
	for (uint32_t pass = 0; pass < nrows; pass += PASS_ROWS)
	{
		for (uint32_t column = 0; column < BF_BLOCK_BYTES; column += 8)
		{
			const uint8_t *from = slices + (size_t) 8 * column * slice_bytes;
			uint32_t	end = lesser(pass + PASS_ROWS, nrows);

			for (uint32_t row = pass; row < end; row += 64)
				unslice_column(from + row / 8, slice_bytes, lesser(nrows - row, 64),
							   rows + (size_t) row * BF_BLOCK_BYTES + column);
		}
	}
}

void
bf_rows_first(uint64_t *set, uint32_t nwords, uint32_t nrows)
{
	uint32_t	whole = nrows / 64;

	assert(nrows <= 64 * nwords);
	memset(set, 0xFF, whole * sizeof(*set));
	memset(set + whole, 0, (nwords - whole) * sizeof(*set));
	if (nrows % 64 > 0)
		set[whole] = (UINT64_C(1) << nrows % 64) - 1;
}

BODY bool
bf_slice_and_body(uint64_t *restrict set, const uint8_t *restrict slice, uint32_t slice_bytes)
{
	uint32_t	whole = slice_bytes / 8;
	uint32_t	rest = slice_bytes % 8;
	uint64_t	left = 0;

	assert(slice_bytes >= 8);
	for (uint32_t i = 0; i < whole; i++)
		left |= set[i] &= bf_load64(slice + 8 * i);
	if (rest > 0)
		left |= set[whole] &= bf_load64(slice + slice_bytes - 8) >> 8 * (8 - rest);
	return left != 0;
}

static uint64_t *
sum_of(const bf_counts *counts, uint32_t level)
{
	return counts->planes + (size_t) 2 * level * counts->nwords;
}

static uint64_t *
waiting_of(const bf_counts *counts, uint32_t level)
{
	return sum_of(counts, level) + counts->nwords;
}

static bool
is_waiting(const bf_counts *counts, uint32_t level)
{
	return counts->added >> level & 1;
}

void
bf_counts_init(bf_counts *counts, uint64_t *planes, uint32_t nwords, uint64_t most)
{
	counts->planes = planes;
	counts->nwords = nwords;
	counts->nlevels = bf_counts_levels(most);
	counts->added = 0;
	memset(planes, 0, bf_counts_words(nwords, most) * sizeof(*planes));
}

/* Adds two sets to a sum; the carries replace one of them. */
BODY void
add_two(uint64_t *restrict sum, const uint64_t *restrict waiting, uint64_t *restrict set, uint32_t nwords)
{
	for (uint32_t i = 0; i < nwords; i++)
	{
		uint64_t	either = waiting[i] ^ set[i];
		uint64_t	carry = (waiting[i] & set[i]) | (sum[i] & either);

		sum[i] ^= either;
		set[i] = carry;
	}
}

BODY void
bf_counts_add_body(bf_counts *counts, uint64_t *set)
{
	uint32_t	level = 0;

	for (; is_waiting(counts, level); level++)
		add_two(sum_of(counts, level), waiting_of(counts, level), set, counts->nwords);
	assert(level < counts->nlevels);
	memcpy(waiting_of(counts, level), set, counts->nwords * sizeof(*set));
	counts->added++;
}

/*
 * Adds up each level, from the lowest.  The sum so far reaches the lower bits of
 * least, unless the highest bit that differs is set in least.
 */
static uint64_t
word_at_least(const bf_counts *counts, uint64_t least, uint32_t word)
{
	uint64_t	carry = 0;
	uint64_t	reached = UINT64_MAX;

	for (uint32_t level = 0; level < counts->nlevels; level++)
	{
		uint64_t	sum = sum_of(counts, level)[word];
		uint64_t	waiting = is_waiting(counts, level) ? waiting_of(counts, level)[word] : 0;
		uint64_t	bits = sum ^ waiting ^ carry;

		carry = (sum & waiting) | (carry & (sum ^ waiting));
		reached = least >> level & 1 ? reached & bits : reached | bits;
	}
	assert(carry == 0);
	return reached;
}

void
bf_counts_at_least(const bf_counts *counts, uint64_t least, uint64_t *set)
{
	if (least > counts->added)
		memset(set, 0, counts->nwords * sizeof(*set));
	else
	{
		for (uint32_t word = 0; word < counts->nwords; word++)
			set[word] = word_at_least(counts, least, word);
	}
}

uint64_t
bf_count_of(const bf_counts *counts, uint32_t row)
{
	uint64_t	count = 0;

	assert(row / 64 < counts->nwords);
	for (uint32_t level = 0; level < counts->nlevels; level++)
	{
		count += (sum_of(counts, level)[row / 64] >> row % 64 & 1) << level;
		if (is_waiting(counts, level))
			count += (waiting_of(counts, level)[row / 64] >> row % 64 & 1) << level;
	}
	return count;
}

DISPATCH(void, bf_slice_part,
		 (const uint8_t *const *rows, uint32_t nrows, uint32_t part_bytes, uint32_t slice_bytes,
		  uint8_t *slices),
		 (rows, nrows, part_bytes, slice_bytes, slices))
DISPATCH(void, bf_unslice_rows, (const uint8_t *slices, uint32_t slice_bytes, uint32_t nrows, uint8_t *rows),
		 (slices, slice_bytes, nrows, rows))
DISPATCH(bool, bf_slice_and, (uint64_t *set, const uint8_t *slice, uint32_t slice_bytes),
		 (set, slice, slice_bytes))
DISPATCH(void, bf_counts_add, (bf_counts *counts, uint64_t *set), (counts, set))
