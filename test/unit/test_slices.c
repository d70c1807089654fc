/*
 * test_slices.c
 *		Bit slices, sets of rows and their counts, against loops over single bits.
 *
 * Slabs have every size, and numbers of rows at the edges of bytes, words, tiles
 * and passes.  Everything has exactly its size in memory of its own, so that the
 * sanitizer guards the bytes behind it.
 */
#include "lesser_cpus.h"
#include "reference.h"
#include "slices.h"
#include "tap.h"

#define MOST_TILES 512
#define MOST_ROWS (127 * MOST_TILES)

/* Slabs up to this size; with each lesser instruction set only smaller ones. */
static uint32_t most_tiles = MOST_TILES;

/* Rows in one buffer a tile, at odd addresses. */
static uint8_t *tiles[MOST_TILES];
static const uint8_t *rows[MOST_ROWS];

static void
make_rows(void)
{
	uint64_t	state = 1;

	for (uint32_t i = 0; i < MOST_TILES; i++)
	{
		tiles[i] = allocate(1 + 127 * 64);
		random_bytes(&state, tiles[i], 1 + 127 * 64);
		for (uint32_t j = 0; j < 127; j++)
			rows[i * 127 + j] = tiles[i] + 1 + j * 64;
	}
	memset(tiles[0] + 1, 0, 64);
	memset(tiles[0] + 1 + 126 * 64, 255, 64);
}

static uint8_t *
garbage(size_t size)
{
	uint8_t    *bytes = allocate(size);

	memset(bytes, 0xA5, size);
	return bytes;
}

static uint8_t *
reference_slices(uint32_t nrows, uint32_t slice_bytes)
{
	uint8_t    *slices = allocate((size_t) 512 * slice_bytes);

	for (uint32_t p = 0; p < 512; p++)
	{
		uint8_t    *slice = slices + (size_t) p * slice_bytes;

		for (uint32_t r = 0; r < nrows; r++)
		{
			if (ref_is_set(rows[r], p))
				ref_set(slice, r);
		}
	}
	return slices;
}

static bool
same_rows(const uint8_t *got, uint32_t from, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
	{
		if (memcmp(got + (size_t) 64 * i, rows[from + i], 64) != 0)
			return false;
	}
	return true;
}

static void
compare_unslicing(const uint8_t *slices, uint32_t slice_bytes, uint32_t from, uint32_t count)
{
	uint8_t    *got = garbage((size_t) 64 * count);

	bf_unslice_rows(slices + from / 8, slice_bytes, count, got);
	each(same_rows(got, from, count), "%u rows from %u of slices of %u bytes", count, from, slice_bytes);
	free(got);
}

static void
compare_slices(uint32_t nrows, uint32_t slice_bytes)
{
	size_t		size = (size_t) 512 * slice_bytes;
	uint8_t    *wanted = reference_slices(nrows, slice_bytes);
	uint8_t    *got = garbage(size);

	bf_slice_rows(rows, nrows, slice_bytes, got);
	each(memcmp(got, wanted, size) == 0, "slices of %u rows in %u bytes", nrows, slice_bytes);
	compare_unslicing(wanted, slice_bytes, 0, nrows);
	free(got);
	free(wanted);
}

static void
test_slices(void)
{
	for (uint32_t t = 4; t <= most_tiles; t *= 2)
	{
		const uint32_t counts[] = {0, 1, 7, 8, 63, 64, 65, 126, 127, 128, 511, 512, 513,
		1015, 1016, 127 * t - 1, 127 * t};

		each(bf_slice_bytes_of(t) == 127 * t / 8, "%u tiles", t);
		each(bf_sliced_rows(t) == (t == 4 ? 504 : 127 * t), "rows of %u tiles", t);
		for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		{
			if (counts[i] <= bf_sliced_rows(t))
				compare_slices(counts[i], 127 * t / 8);
		}
	}
	passed("slices of slabs of every size, and their rows again");
	for (uint32_t nrows = 0; nrows <= 1016; nrows += nrows < 140 || nrows > 1000 ? 1 : 13)
		compare_slices(nrows, 127);
	passed("slices of a slab of 8 tiles of every size");
	for (uint32_t nrows = 0; nrows <= 504; nrows++)
		compare_slices(nrows, 63);
	passed("slices of a slab of 4 tiles of every size");
}

/* A slab sliced in parts is the same slab; bytes outside of a part stay. */
static void
compare_parts(uint32_t nrows, uint32_t part_bytes, uint32_t slice_bytes)
{
	size_t		size = (size_t) 512 * slice_bytes;
	uint8_t    *wanted = reference_slices(nrows, slice_bytes);
	uint8_t    *got = garbage(size);

	for (uint32_t from = 0; from < slice_bytes; from += part_bytes)
	{
		uint32_t	part = slice_bytes - from < part_bytes ? slice_bytes - from : part_bytes;
		uint32_t	left = nrows > 8 * from ? nrows - 8 * from : 0;
		uint32_t	count = left < 8 * part ? left : 8 * part;

		bf_slice_part(rows + 8 * from, count, part, slice_bytes, got + from);
		each(from + part == slice_bytes || got[from + part] == 0xA5, "written behind part %u", from);
		compare_unslicing(wanted, slice_bytes, 8 * from, count);
	}
	each(memcmp(got, wanted, size) == 0, "%u rows in parts of %u of %u bytes", nrows, part_bytes, slice_bytes);
	free(got);
	free(wanted);
}

static void
test_parts(void)
{
	static const uint32_t parts[] = {1, 3, 8, 64, 127, 200};

	for (uint32_t t = 4; t <= 32; t *= 2)
	{
		for (int i = 0; i < 6; i++)
		{
			compare_parts(bf_sliced_rows(t), parts[i], 127 * t / 8);
			compare_parts(bf_sliced_rows(t) - 501, parts[i], 127 * t / 8);
		}
	}
	passed("slabs in parts");
}

/* The AND of a random set, whose rows are few, with a random slice. */
static void
compare_and(uint32_t slice_bytes, uint32_t offset, uint64_t few, uint64_t *state)
{
	uint32_t	nwords = bf_slice_words(slice_bytes);
	uint64_t   *set = allocate(nwords * sizeof(*set));
	uint64_t   *wanted = allocate(nwords * sizeof(*set));
	uint8_t    *memory = allocate(offset + slice_bytes);
	bool		any = false;

	random_bytes(state, memory, offset + slice_bytes);
	for (uint32_t r = 0; r < 64 * nwords; r++)
	{
		bool		in = random_below(state, few) == 0;
		bool		both = in && r < 8 * slice_bytes && ref_is_set(memory + offset, r);

		set[r / 64] |= (uint64_t) in << r % 64;
		wanted[r / 64] |= (uint64_t) both << r % 64;
		any |= both;
	}
	each(bf_slice_and(set, memory + offset, slice_bytes) == any, "any of %u bytes", slice_bytes);
	each(memcmp(set, wanted, nwords * sizeof(*set)) == 0, "AND of %u bytes", slice_bytes);
	free(memory);
	free(wanted);
	free(set);
}

/* A single row of both is found wherever it is. */
static void
compare_single_row(uint32_t slice_bytes, uint32_t row)
{
	uint32_t	nwords = bf_slice_words(slice_bytes);
	uint64_t   *set = allocate(nwords * sizeof(*set));
	uint8_t    *slice = allocate(slice_bytes);

	memset(set, 0xFF, nwords * sizeof(*set));
	each(!bf_slice_and(set, slice, slice_bytes), "no row in %u bytes", slice_bytes);
	memset(set, 0xFF, nwords * sizeof(*set));
	ref_set(slice, row);
	each(bf_slice_and(set, slice, slice_bytes), "row %u in %u bytes", row, slice_bytes);
	each(set[row / 64] == UINT64_C(1) << row % 64, "row %u of %u bytes", row, slice_bytes);
	each(bf_rows_count(set, nwords) == 1, "only row %u of %u bytes", row, slice_bytes);
	free(slice);
	free(set);
}

static void
test_and(void)
{
	uint64_t	state = 2;

	for (uint32_t t = 4; t <= MOST_TILES; t *= 2)
	{
		each(bf_slice_words(127 * t / 8) == (127 * t + 63) / 64, "words of a set of %u tiles", t);
		for (uint32_t few = 1; few <= 1000000; few *= 10)
		{
			for (uint32_t offset = 0; offset < 9; offset++)
				compare_and(127 * t / 8, offset, few, &state);
		}
	}
	passed("AND with slices of every size");
	for (uint32_t t = 4; t <= 32; t *= 2)
	{
		for (uint32_t row = 0; row < bf_sliced_rows(t); row++)
			compare_single_row(127 * t / 8, row);
	}
	passed("AND that leaves one row");
}

/* Rows of a set that also has bits beyond the last row. */
static void
compare_visits(uint32_t nrows, uint64_t few, uint64_t *state)
{
	uint32_t	nwords = (nrows + 63) / 64;
	uint64_t   *set = allocate(nwords * sizeof(*set));
	uint32_t	row;

	for (uint32_t r = 0; r < 64 * nwords; r++)
		set[r / 64] |= (uint64_t) (random_below(state, r < nrows ? few : 4) == 0) << r % 64;
	row = bf_next_row(set, nrows, 0);
	for (uint32_t r = 0; r < nrows; r++)
	{
		if ((set[r / 64] >> r % 64 & 1) == 0)
			continue;
		each(row == r, "row %u of %u, wanted %u", row, nrows, r);
		row = bf_next_row(set, nrows, row + 1);
	}
	each(row == nrows && bf_next_row(set, nrows, nrows) == nrows, "row %u after the last of %u", row, nrows);
	free(set);
}

static void
compare_first(uint32_t nwords, uint32_t nrows)
{
	uint64_t   *set = (uint64_t *) garbage(nwords * sizeof(*set));

	bf_rows_first(set, nwords, nrows);
	for (uint32_t r = 0; r < 64 * nwords; r++)
		each((set[r / 64] >> r % 64 & 1) == (r < nrows), "row %u of the first %u", r, nrows);
	each(bf_rows_count(set, nwords) == nrows, "number of the first %u rows", nrows);
	free(set);
}

static void
compare_or(uint32_t nwords, uint64_t *state)
{
	uint64_t   *set = allocate(nwords * sizeof(*set));
	uint64_t   *other = allocate(nwords * sizeof(*set));
	uint64_t   *wanted = allocate(nwords * sizeof(*set));

	for (uint32_t i = 0; i < nwords; i++)
	{
		set[i] = next_random(state) & next_random(state);
		other[i] = next_random(state) & next_random(state);
		wanted[i] = set[i] | other[i];
	}
	bf_rows_or(set, other, nwords);
	each(memcmp(set, wanted, nwords * sizeof(*set)) == 0, "OR of %u words", nwords);
	free(wanted);
	free(other);
	free(set);
}

/* Few rows of either are in both. */
static void
compare_rows_and(uint32_t nwords, uint64_t few, uint64_t *state)
{
	uint64_t   *set = allocate(nwords * sizeof(*set));
	uint64_t   *other = allocate(nwords * sizeof(*set));
	uint64_t   *wanted = allocate(nwords * sizeof(*set));
	bool		any = false;

	for (uint32_t r = 0; r < 64 * nwords; r++)
	{
		bool		both = random_below(state, few) == 0;
		bool		in = both || random_below(state, 2) == 0;
		bool		in_other = both || !in;

		set[r / 64] |= (uint64_t) in << r % 64;
		other[r / 64] |= (uint64_t) in_other << r % 64;
		wanted[r / 64] |= (uint64_t) both << r % 64;
		any |= both;
	}
	for (uint32_t r = 0; r < 64 * nwords; r++)
		each(bf_has_row(wanted, r) == ((wanted[r / 64] & UINT64_C(1) << r % 64) != 0), "row %u of a set", r);
	each(bf_rows_and(set, other, nwords) == any, "any of the AND of %u words", nwords);
	each(memcmp(set, wanted, nwords * sizeof(*set)) == 0, "AND of %u words", nwords);
	free(wanted);
	free(other);
	free(set);
}

/* The rows of a set whose blocks have a bit, as slices say; blocks hold nothing else. */
static void
compare_with_bit(uint32_t nrows, uint32_t bit, uint64_t few, uint64_t *state)
{
	uint32_t	nwords = (nrows + 63) / 64;
	uint8_t    *blocks = allocate((size_t) 64 * nrows);
	uint64_t   *set = allocate(nwords * sizeof(*set));
	uint64_t   *wanted = allocate(nwords * sizeof(*set));
	bool		any = false;

	random_bytes(state, blocks, (size_t) 64 * nrows);
	for (uint32_t r = 0; r < nrows; r++)
	{
		bool		in = random_below(state, few) == 0;
		bool		both = in && ref_is_set(blocks + (size_t) 64 * r, bit);

		set[r / 64] |= (uint64_t) in << r % 64;
		wanted[r / 64] |= (uint64_t) both << r % 64;
		any |= both;
	}
	each(bf_rows_with_bit(set, nrows, blocks, bit) == any, "any of %u rows with bit %u", nrows, bit);
	each(memcmp(set, wanted, nwords * sizeof(*set)) == 0, "%u rows with bit %u", nrows, bit);
	free(wanted);
	free(set);
	free(blocks);
}

static void
test_blocks(void)
{
	uint64_t	state = 5;

	for (uint32_t nwords = 0; nwords < 40; nwords++)
	{
		for (uint64_t few = 1; few <= 1000000; few *= 100)
			compare_rows_and(nwords, few, &state);
	}
	passed("AND of sets");
	for (uint32_t bit = 0; bit < 512; bit++)
	{
		for (uint64_t few = 1; few <= 1000; few *= 10)
			compare_with_bit(bit % 128, bit, few, &state);
	}
	for (uint32_t nrows = 0; nrows <= 130; nrows++)
		compare_with_bit(nrows, nrows * 7 % 512, 2, &state);
	passed("rows of a set with a bit, of blocks that are not sliced");
}

static void
test_sets(void)
{
	uint64_t	state = 3;

	for (uint32_t nrows = 0; nrows < 400; nrows++)
	{
		compare_first((nrows + 63) / 64, nrows);
		compare_first((nrows + 63) / 64 + 2, nrows);
		compare_or(nrows, &state);
		for (uint64_t few = 1; few <= 1000; few *= 10)
			compare_visits(nrows, few, &state);
	}
	compare_visits(65024, 5000, &state);
	compare_visits(65023, 5000, &state);
	passed("first rows, OR, and visits of rows in order");
}

/* Which rows are in at least that many sets, by the counters of the model. */
static void
compare_at_least(const bf_counts *counts, const uint32_t *model, uint64_t least)
{
	uint64_t   *set = (uint64_t *) garbage(counts->nwords * sizeof(*set));

	bf_counts_at_least(counts, least, set);
	for (uint32_t r = 0; r < 64 * counts->nwords; r++)
		each((set[r / 64] >> r % 64 & 1) == (model[r] >= least),
			 "row %u, %u sets, at least %" PRIu64, r, model[r], least);
	free(set);
}

static void
compare_counts(const bf_counts *counts, const uint32_t *model, uint32_t added, uint64_t *state)
{
	const uint64_t leasts[] = {0, 1, 2, added / 2, added, added + 1, 2 * added + 1, UINT64_MAX, UINT64_C(1) << 32,
	random_below(state, added + 1), random_below(state, added + 1)};

	for (uint32_t r = 0; r < 64 * counts->nwords; r++)
		each(bf_count_of(counts, r) == model[r], "count of row %u, %u added", r, added);
	for (size_t i = 0; i < sizeof(leasts) / sizeof(*leasts); i++)
		compare_at_least(counts, model, leasts[i]);
}

/* Low rows are in few sets, the highest row is in all. */
static void
compare_additions(uint32_t nwords, uint32_t most, uint64_t *state)
{
	uint64_t   *planes = (uint64_t *) garbage(bf_counts_words(nwords, most) * sizeof(*planes));
	uint32_t   *model = allocate(64 * nwords * sizeof(*model));
	bf_counts	counts;

	bf_counts_init(&counts, planes, nwords, most);
	for (uint32_t added = 0;; added++)
	{
		uint64_t   *set;

		if (added < 20 || added % 509 == 0 || added == most ||
			(added & (added + 1)) == 0 || (added & (added - 1)) == 0)
			compare_counts(&counts, model, added, state);
		if (added == most)
			break;
		set = allocate(nwords * sizeof(*set));
		for (uint32_t r = 0; r < 64 * nwords; r++)
		{
			bool		in = random_below(state, 64 * nwords) <= r;

			set[r / 64] |= (uint64_t) in << r % 64;
			model[r] += in;
		}
		bf_counts_add(&counts, set);
		free(set);
	}
	free(model);
	free(planes);
}

static void
test_counts(void)
{
	uint64_t	state = 4;

	for (uint32_t most = 0; most <= 20; most++)
		compare_additions(3, most, &state);
	for (uint32_t nwords = 1; nwords <= 35; nwords += nwords < 20 ? 1 : 5)
		compare_additions(nwords, 40, &state);
	compare_additions(1, 255, &state);
	compare_additions(2, 256, &state);
	compare_additions(4, 4095, &state);
	compare_additions(17, 5000, &state);
	passed("counts, and rows in at least some sets");
}

static void
test_all(void)
{
	test_slices();
	test_parts();
	test_and();
	test_sets();
	test_blocks();
	test_counts();
	most_tiles = 32;
}

int
main(void)
{
	make_rows();
	test_all();
	on_lesser_cpus(test_all);
	for (uint32_t i = 0; i < MOST_TILES; i++)
		free(tiles[i]);
	return done();
}
