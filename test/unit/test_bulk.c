/*
 * test_bulk.c
 *		The loops over whole filters, against plain loops over bytes and bits.
 *
 * Sizes up to 2400 bytes reach every path of the vector loops and their
 * remainders, with each instruction set of this machine.
 */
#include "bulk.h"
#include "lesser_cpus.h"
#include "reference.h"
#include "tap.h"

#define MOST 2400				/* bytes */

/*
 * Two operands and the expected result, each at the requested offset from
 * alignment.
 */
typedef struct operands
{
	uint8_t    *memory[3];
	uint8_t    *a;
	uint8_t    *b;
	uint8_t    *wanted;
} operands;

static operands
make_operands(size_t size, size_t a_offset, size_t b_offset, uint64_t *state)
{
	operands	of;

	of.memory[0] = allocate(size + a_offset);
	of.memory[1] = allocate(size + b_offset);
	of.memory[2] = allocate(size);
	of.a = of.memory[0] + a_offset;
	of.b = of.memory[1] + b_offset;
	of.wanted = of.memory[2];
	random_bytes(state, of.memory[0], size + a_offset);
	random_bytes(state, of.memory[1], size + b_offset);
	return of;
}

static void
free_operands(operands *of)
{
	for (int i = 0; i < 3; i++)
		free(of->memory[i]);
}

static void
compare_words(size_t size, size_t a_offset, size_t b_offset, uint64_t *state)
{
	operands	of = make_operands(size, a_offset, b_offset, state);
	uint8_t		before = of.memory[0][0];

	for (size_t i = 0; i < size; i++)
		of.wanted[i] = of.a[i] | of.b[i];
	each(bf_popcount(of.a, size) == ref_count(of.a, size), "popcount of %zu", size);
	each(bf_popcount_or(of.a, of.b, size) == ref_count(of.wanted, size), "popcount of OR %zu", size);
	bf_or(of.a, of.b, size);
	each(memcmp(of.a, of.wanted, size) == 0, "OR of %zu at %zu and %zu", size, a_offset, b_offset);

	random_bytes(state, of.a, size);
	for (size_t i = 0; i < size; i++)
		of.wanted[i] = of.a[i] & of.b[i];
	bf_and(of.a, of.b, size);
	each(memcmp(of.a, of.wanted, size) == 0, "AND of %zu at %zu and %zu", size, a_offset, b_offset);
	each(a_offset == 0 || of.memory[0][0] == before, "written before the start");
	free_operands(&of);
}

static void
test_words(void)
{
	static const size_t offsets[][2] = {{0, 0}, {1, 0}, {0, 3}, {5, 7}};
	uint64_t	state = 1;

	for (size_t size = 0; size <= MOST; size += 8)
	{
		for (int i = 0; i < 4; i++)
			compare_words(size, offsets[i][0], offsets[i][1], &state);
	}
	passed("OR, AND and popcount at every size");
	for (size_t a_offset = 0; a_offset < 64; a_offset++)
	{
		for (size_t b_offset = 0; b_offset < 64; b_offset += 9)
			compare_words(200, a_offset, b_offset, &state);
	}
	passed("OR, AND and popcount at every alignment");
}

/* Counts that overflow a byte, or a vector lane of bytes. */
static void
test_extremes(void)
{
	enum {SIZE = 1 << 20};
	uint8_t    *ones = allocate(SIZE);
	uint8_t    *zeros = allocate(SIZE);

	memset(ones, 255, SIZE);
	is(bf_popcount(ones, SIZE), 8 * SIZE, "popcount of all bits");
	is(bf_popcount(zeros, SIZE), 0, "popcount of no bits");
	is(bf_popcount_or(ones, zeros, SIZE), 8 * SIZE, "popcount of all or none");
	ok(bf_is_subset(zeros, ones, SIZE), "no bits are a subset of all bits");
	ok(!bf_is_subset(ones, zeros, SIZE), "all bits are not a subset of no bits");
	free(ones);
	free(zeros);
}

/* A single missing bit is found wherever it is. */
static void
compare_subset(size_t size, size_t step, uint64_t *state)
{
	operands	of = make_operands(size, 1, 2, state);

	for (size_t i = 0; i < size; i++)
		of.b[i] |= of.a[i];
	each(bf_is_subset(of.a, of.b, size), "%zu bytes are no subset", size);
	each(bf_is_subset(of.a, of.a, size), "%zu bytes are none of themselves", size);
	for (size_t bit = random_below(state, step); bit < 8 * size; bit += step)
	{
		uint8_t		mask = (uint8_t) (1 << bit % 8);
		uint8_t		a = of.a[bit / 8];
		uint8_t		b = of.b[bit / 8];

		of.a[bit / 8] |= mask;
		of.b[bit / 8] &= (uint8_t) ~mask;
		each(!bf_is_subset(of.a, of.b, size), "bit %zu of %zu bytes", bit, size);
		of.a[bit / 8] = a;
		of.b[bit / 8] = b;
	}
	free_operands(&of);
}

static void
test_subset(void)
{
	uint64_t	state = 2;

	for (size_t size = 0; size <= MOST; size += 8)
		compare_subset(size, size <= 264 ? 1 : 199, &state);
	passed("subsets, and each bit that a subset must not have");
}

static void
test_histogram(void)
{
	uint64_t	state = 3;

	for (size_t nblocks = 0; nblocks < 200; nblocks++)
	{
		operands	of = make_operands(nblocks * 64, nblocks % 8, 0, &state);
		bf_histogram *got = allocate(sizeof(*got));
		bf_histogram *wanted = allocate(sizeof(*wanted));

		/* Random bytes alone would give no blocks with few bits. */
		for (size_t i = 0; i < nblocks * 64; i++)
			of.a[i] = i / 64 % 3 == 0 ? of.a[i] & of.b[i] : i / 64 % 7 == 1 ? 255 : i / 64 % 7 == 2 ? 0 : of.a[i];
		got->blocks[300] = wanted->blocks[300] = 5;
		got->most_set = wanted->most_set = 300;
		got->most_unset = wanted->most_unset = 212;
		for (size_t i = 0; i < nblocks; i++)
		{
			uint32_t	set = (uint32_t) ref_count(of.a + i * 64, 64);

			wanted->blocks[set]++;
			wanted->most_set = set > wanted->most_set ? set : wanted->most_set;
			wanted->most_unset = 512 - set > wanted->most_unset ? 512 - set : wanted->most_unset;
		}
		bf_count_blocks(of.a, nblocks, got);
		each(memcmp(got, wanted, sizeof(*got)) == 0, "%zu blocks", nblocks);
		free(got);
		free(wanted);
		free_operands(&of);
	}
	passed("the histogram of blocks, added to an earlier one");
}

static void
reference_fold(uint8_t *dst, const uint8_t *src, size_t nblocks, size_t run)
{
	for (size_t i = 0; i < nblocks * run * 64; i++)
	{
		uint8_t    *to = &dst[i / 64 / run * 64 + i % 64];

		*to = i / 64 % run == 0 ? src[i] : *to | src[i];
	}
}

/*
 * Into other memory, onto its own start, and onto itself from a lower
 * address.
 */
static void
compare_fold(size_t nblocks, size_t run, uint64_t *state)
{
	size_t		size = nblocks * run * 64;
	operands	of = make_operands(size, nblocks % 4, run % 3, state);
	size_t		below = random_below(state, 200);
	uint8_t    *overlapping = allocate(size + below);
	uint8_t    *apart = allocate(nblocks * 64);

	reference_fold(of.wanted, of.a, nblocks, run);
	bf_fold(apart, of.a, nblocks, run);
	each(memcmp(apart, of.wanted, nblocks * 64) == 0, "%zu runs of %zu", nblocks, run);

	memcpy(of.b, of.a, size);
	bf_fold(of.b, of.b, nblocks, run);
	each(memcmp(of.b, of.wanted, nblocks * 64) == 0, "%zu runs of %zu in place", nblocks, run);
	each(memcmp(of.b + nblocks * 64, of.a + nblocks * 64, size - nblocks * 64) == 0,
		 "%zu runs of %zu in place: written too far", nblocks, run);

	memcpy(overlapping + below, of.a, size);
	bf_fold(overlapping, overlapping + below, nblocks, run);
	each(memcmp(overlapping, of.wanted, nblocks * 64) == 0, "%zu runs of %zu from %zu below",
		 nblocks, run, below);
	free(apart);
	free(overlapping);
	free_operands(&of);
}

static void
test_fold(void)
{
	uint64_t	state = 4;

	for (size_t nblocks = 0; nblocks < 20; nblocks++)
	{
		for (size_t run = 1; run < 20; run++)
			compare_fold(nblocks, run, &state);
	}
	passed("folding, into other memory and in place");
}

static void
test_all(void)
{
	test_words();
	test_extremes();
	test_subset();
	test_histogram();
	test_fold();
}

int
main(void)
{
	test_all();
	on_lesser_cpus(test_all);
	return done();
}
