/*
 * slices.h
 *		Bits of many filters, stored by position instead of by filter.
 *
 * Rows are the same block of many filters, 64 bytes each.  Slice p holds bit p
 * of every row: bit r of the slice, in the order of a filter's bits, is bit p of
 * row r.  A key selects at most k slices, and their AND is the set of rows that
 * contain it.  This is the index of BitFunnel (Goodwin et al. 2017), BIGSI and
 * COBS (Bingmann et al. 2019).
 *
 * A tile is 127 rows, because a page holds no more blocks.  A slab of t tiles
 * has slices of 127 * t / 8 bytes, rounded down.  t is a power of two, so that
 * pages hold whole slices, and at least 4: one of 4 tiles has room for 504 rows.
 *
 * A set of rows is an array of words: row r is bit r % 64 of word r / 64.  It has
 * bf_slice_words() words; some of the last one's bits may belong to no row.
 *
 * As in bulk.h, no loop checks for cancel requests.
 */
#ifndef BF_SLICES_H
#define BF_SLICES_H

#include "bulk.h"

#define BF_TILE_ROWS	127
#define BF_SLICED_BYTES	8128	/* on a page */
#define BF_LEAST_TILES	4		/* of a slab */
#define BF_MOST_TILES	512

_Static_assert(BF_TILE_ROWS * BF_BLOCK_BYTES == BF_SLICED_BYTES, "a page holds a block of a tile");
_Static_assert(BF_TILE_ROWS * BF_MOST_TILES / 8 == BF_SLICED_BYTES, "a page holds whole slices");

/* The size of a slice of a slab of that many tiles. */
static inline uint32_t
bf_slice_bytes_of(uint32_t tiles)
{
	assert(tiles >= BF_LEAST_TILES && tiles <= BF_MOST_TILES && (tiles & (tiles - 1)) == 0);
	return BF_TILE_ROWS * tiles / 8;
}

/* The number of rows of such a slab. */
static inline uint32_t
bf_sliced_rows(uint32_t tiles)
{
	return 8 * bf_slice_bytes_of(tiles);
}

/* The number of words of a set of the rows of a slice. */
static inline uint32_t
bf_slice_words(uint32_t slice_bytes)
{
	return (slice_bytes + 7) / 8;
}

/*
 * Writes bytes 0 .. part_bytes - 1 of 512 consecutive slices from nrows rows, at
 * most 8 * part_bytes; the bits of missing rows are cleared.  rows[i] points to
 * the 64 bytes of row i.  To slice a large slab in parts, pass the rows from
 * 8 * n on and slices + n.
 */
extern void bf_slice_part(const uint8_t *const *rows, uint32_t nrows, uint32_t part_bytes,
						  uint32_t slice_bytes, uint8_t *slices);

/* Writes 512 consecutive slices from nrows rows, at most 8 * slice_bytes. */
static inline void
bf_slice_rows(const uint8_t *const *rows, uint32_t nrows, uint32_t slice_bytes, uint8_t *slices)
{
	bf_slice_part(rows, nrows, slice_bytes, slice_bytes, slices);
}

/*
 * The inverse: writes rows 0 .. nrows - 1, which are consecutive.  Reads only
 * these rows' bytes of each slice, so slices + n has the rows from 8 * n on.
 */
extern void bf_unslice_rows(const uint8_t *slices, uint32_t slice_bytes, uint32_t nrows, uint8_t *rows);

/* The set of rows 0 .. nrows - 1, at most 64 * nwords. */
extern void bf_rows_first(uint64_t *set, uint32_t nwords, uint32_t nrows);

/*
 * Keeps only the rows of a set that are also in a slice.  False if none is left,
 * so that no further slice need be read.
 */
extern bool bf_slice_and(uint64_t *set, const uint8_t *slice, uint32_t slice_bytes);

/*
 * The same of a bit of blocks that are not sliced: row i has the 64 bytes at
 * blocks + 64 * i, and the set has no row from nrows on.
 */
static inline bool
bf_rows_with_bit(uint64_t *set, uint32_t nrows, const uint8_t *blocks, uint32_t bit)
{
	uint64_t	any = 0;

	assert(bit < BF_BLOCK_BITS);
	blocks += bit / 8;
	for (uint32_t first = 0; first < nrows; first += 64, set++)
	{
		uint64_t	kept = 0;

		for (uint64_t left = *set; left != 0; left &= left - 1)
		{
			uint32_t	i = (uint32_t) __builtin_ctzll(left);

			kept |= (uint64_t) (blocks[(size_t) (first + i) * BF_BLOCK_BYTES] >> bit % 8 & 1) << i;
		}
		*set = kept;
		any |= kept;
	}
	return any != 0;
}

/* Adds the rows of another set. */
static inline void
bf_rows_or(uint64_t *set, const uint64_t *other, uint32_t nwords)
{
	bf_or((uint8_t *) set, (const uint8_t *) other, (size_t) nwords * sizeof(uint64_t));
}

/* Keeps only the rows that are also in another set.  False if none is left. */
static inline bool
bf_rows_and(uint64_t *set, const uint64_t *other, uint32_t nwords)
{
	uint64_t	any = 0;

	for (uint32_t i = 0; i < nwords; i++)
		any |= set[i] &= other[i];
	return any != 0;
}

static inline bool
bf_has_row(const uint64_t *set, uint32_t row)
{
	return set[row / 64] >> row % 64 & 1;
}

static inline uint64_t
bf_rows_count(const uint64_t *set, uint32_t nwords)
{
	return bf_popcount((const uint8_t *) set, (size_t) nwords * sizeof(uint64_t));
}

/*
 * The first row of a set that is at least row and below nrows; nrows if there is
 * none.  This visits all of them:
 *
 * for (row = bf_next_row(set, nrows, 0); row < nrows; row = bf_next_row(set, nrows, row + 1))
 */
static inline uint32_t
bf_next_row(const uint64_t *set, uint32_t nrows, uint32_t row)
{
	uint64_t	word;

	if (row >= nrows)
		return nrows;
	word = set[row / 64] & UINT64_MAX << row % 64;
	for (row = row / 64 * 64; word == 0; word = set[row / 64])
	{
		row += 64;
		if (row >= nrows)
			return nrows;
	}
	row += (uint32_t) __builtin_ctzll(word);
	return row < nrows ? row : nrows;
}

/*
 * Counts for each row how many sets it is in.
 *
 * Level i has two planes, whose bits count 2^i: the sum, and a set that waits for
 * another one, if bit i of `added` is set.  Every second set that reaches a level
 * is added to the sum together with the one that waits, and the carries go to the
 * next level.  An addition thus costs two passes on average, however many levels
 * there are and whatever the sets hold.
 */
typedef struct bf_counts
{
	uint64_t   *planes;			/* two of each level */
	uint32_t	nwords;			/* of a set, and of a plane */
	uint32_t	nlevels;
	uint64_t	added;			/* number of sets */
} bf_counts;

/* The number of levels for up to that many sets. */
static inline uint32_t
bf_counts_levels(uint64_t most)
{
	return most == 0 ? 0 : 64 - (uint32_t) __builtin_clzll(most);
}

/* The number of words of all planes for up to that many sets. */
static inline size_t
bf_counts_words(uint32_t nwords, uint64_t most)
{
	return (size_t) 2 * bf_counts_levels(most) * nwords;
}

/* Starts at zero, for up to most sets; planes has bf_counts_words() words. */
extern void bf_counts_init(bf_counts *counts, uint64_t *planes, uint32_t nwords, uint64_t most);

/* Adds a set, which is destroyed. */
extern void bf_counts_add(bf_counts *counts, uint64_t *set);

/* The set of rows that are in at least that many sets; of all, if least is 0. */
extern void bf_counts_at_least(const bf_counts *counts, uint64_t least, uint64_t *set);

/* The number of sets that hold a row. */
extern uint64_t bf_count_of(const bf_counts *counts, uint32_t row);

#endif							/* BF_SLICES_H */
