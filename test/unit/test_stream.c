/*
 * test_stream.c
 *		Reading filters at another size, against filters built at that size.
 */
#include "block.h"
#include "dense.h"
#include "reference.h"
#include "sparse.h"
#include "stream.h"
#include "tap.h"

#define MOST 400				/* elements */

typedef struct elements
{
	uint64_t	hashes[MOST];
	size_t		count;
} elements;

/* Sorted hashes, both ends of the range and close neighbours included. */
static void
draw(elements *set, size_t count, uint64_t *state)
{
	for (size_t i = 0; i < count; i++)
	{
		uint64_t	near = i > 0 ? set->hashes[i - 1] : 0;

		set->hashes[i] = i % 4 == 3 ? near + 1 : next_random(state);
	}
	if (count > 2)
	{
		set->hashes[0] = 0;
		set->hashes[1] = UINT64_MAX;
	}
	set->count = sort_hashes(set->hashes, count);
}

static uint8_t *
build(const elements *set, const bf_params *params)
{
	uint8_t    *bits = allocate(params->m / 8);

	for (size_t i = 0; i < set->count; i++)
		ref_add(bits, params, set->hashes[i]);
	return bits;
}

static bf_filter
dense(bf_params params, const uint8_t *bits)
{
	return (bf_filter) {.params = params, .payload = bits};
}

/* Not aligned, as in a stored value. */
static bf_filter
sparse(bf_params params, const elements *set, uint8_t *memory)
{
	put_hashes(memory + 3, set->hashes, set->count);
	return (bf_filter) {
		.params = params, .sparse = true, .nhashes = set->count, .payload = memory + 3
	};
}

/*
 * Reads a filter at m bits, a piece at a time, each with its own scratch
 * memory.
 */
static uint8_t *
read_all(const bf_filter *filter, uint64_t m, size_t piece)
{
	uint8_t    *bits = allocate(m / 8);
	bf_params	params = filter->params;
	bf_stream	stream;

	params.m = m;
	stream = bf_stream_start(filter, &params);
	for (uint64_t from = 0; from < m / 8; from += piece)
	{
		size_t		size = m / 8 - from < piece ? m / 8 - from : piece;
		uint8_t    *scratch = allocate(size);
		const uint8_t *got;

		memset(scratch, 0xA5, size);
		got = bf_stream_read(&stream, from, size, scratch);
		memcpy(bits + from, got, size);
		free(scratch);
	}
	return bits;
}

/* In pieces of several sizes, some of which do not divide the whole. */
static void
compare(const bf_filter *filter, uint64_t m, const uint8_t *wanted, const char *what)
{
	static const size_t pieces[] = {64, 128, 192, 704, 4096, 1 << 20};

	for (int i = 0; i < 6; i++)
	{
		uint8_t    *got = read_all(filter, m, pieces[i]);

		each(memcmp(got, wanted, m / 8) == 0, "%s: %" PRIu64 " as %" PRIu64 " bits, pieces of %zu",
			 what, filter->params.m, m, pieces[i]);
		free(got);
	}
}

static void
compare_sizes(uint32_t k, uint64_t nblocks, uint64_t times, uint64_t *state)
{
	elements	set;
	bf_params	small = params_of(BF_BLOCKED, k, nblocks * 512);
	bf_params	large = params_of(BF_BLOCKED, k, nblocks * times * 512);
	uint8_t    *small_bits;
	uint8_t    *large_bits;
	bf_filter	filter;

	draw(&set, random_below(state, MOST), state);
	small_bits = build(&set, &small);
	large_bits = build(&set, &large);
	filter = dense(large, large_bits);
	compare(&filter, small.m, small_bits, "folded");
	free(small_bits);
	free(large_bits);
}

static void
test_dense_blocked(void)
{
	uint64_t	state = 1;

	for (uint64_t nblocks = 1; nblocks <= 40; nblocks = nblocks * 3 / 2 + 1)
	{
		for (uint64_t times = 1; times <= 12; times++)
			compare_sizes(1 + (uint32_t) random_below(&state, 32), nblocks, times, &state);
	}
	passed("folding equals building at that size");
}

static void
test_sparse_blocked(void)
{
	uint64_t	state = 2;
	uint8_t    *memory = allocate(3 + 8 * MOST);

	for (uint64_t nblocks = 1; nblocks <= 200; nblocks = nblocks * 5 / 4 + 1)
	{
		for (size_t count = 0; count < MOST; count = count * 6 + 1)
		{
			bf_params	own = params_of(BF_BLOCKED, 1 + (uint32_t) random_below(&state, 32), 512 * 777);
			bf_params	params = own;
			elements	set;
			bf_filter	filter;
			uint8_t    *bits;

			params.m = nblocks * 512;
			draw(&set, count, &state);
			bits = build(&set, &params);
			filter = sparse(own, &set, memory);
			compare(&filter, params.m, bits, "sparse");
			free(bits);
		}
	}
	free(memory);
	passed("a sparse filter can be read at any size");
}

/* Also a classic filter, whose size may not be a multiple of blocks. */
static void
test_same_size(void)
{
	uint64_t	state = 3;

	for (uint64_t words = 1; words < 100; words++)
	{
		bf_params	params = params_of(words % 8 ? BF_CLASSIC : BF_BLOCKED, 7, words * 64);
		elements	set;
		uint8_t    *bits;
		bf_filter	filter;
		bf_stream	stream;

		draw(&set, words, &state);
		bits = build(&set, &params);
		filter = dense(params, bits);
		compare(&filter, params.m, bits, "same size");
		stream = bf_stream_start(&filter, &params);
		for (uint64_t from = 0; from < words * 8; from += 64)
			each(bf_stream_read(&stream, from, words * 8 - from < 64 ? words * 8 - from : 64, NULL)
				 == bits + from, "%" PRIu64 " words are copied", words);
		free(bits);
	}
	passed("a filter of the requested size is read in place");
}

static void
test_expand(void)
{
	uint64_t	state = 4;
	uint8_t    *memory = allocate(3 + 8 * MOST);

	for (int i = 0; i < 300; i++)
	{
		bf_params	params = params_of(i % 2 ? BF_CLASSIC : BF_BLOCKED,
									   1 + (uint32_t) random_below(&state, 32),
									   512 * (1 + random_below(&state, 50)) + (i % 2 ? 64 : 0));
		bf_update	update = bf_update_of(&params, BF_SUM);
		elements	set;
		bf_filter	filter;
		uint8_t    *wanted;
		uint8_t    *bits = allocate(params.m / 8);
		uint64_t	half;

		draw(&set, random_below(&state, MOST), &state);
		wanted = build(&set, &params);
		filter = sparse(params, &set, memory);
		half = random_below(&state, set.count + 1);
		bf_expand(&filter, half, set.count, &update, bits);
		bf_expand(&filter, half, half, &update, bits);
		for (uint64_t j = 0; j < half; j++)
			bf_expand(&filter, j, j + 1, &update, bits);
		each(memcmp(bits, wanted, params.m / 8) == 0, "filter %d", i);
		free(bits);
		free(wanted);
	}
	free(memory);
	passed("expanding hashes in parts sets the bits of all");
}

/* Sets the bits of the requested hashes only, and keeps those already set. */
static void
test_expand_part(void)
{
	uint8_t		memory[3 + 8 * 4];
	elements	set = {.hashes = {10, 20, 30, 40}, .count = 4};
	elements	middle = {.hashes = {20, 30}, .count = 2};
	bf_params	params = params_of(BF_CLASSIC, 3, 640);
	bf_update	update = bf_update_of(&params, BF_SUM);
	bf_filter	filter = sparse(params, &set, memory);
	uint8_t    *wanted = build(&middle, &params);
	uint8_t    *bits = allocate(80);

	ref_set(wanted, 639);
	ref_set(bits, 639);
	bf_expand(&filter, 1, 3, &update, bits);
	ok(memcmp(bits, wanted, 80) == 0, "expanding a part of the hashes sets no other bits");
	free(wanted);
	free(bits);
}

/* Hashes out of order are found, because a block would lie before its piece. */
static void
test_disorder(void)
{
	uint8_t		memory[3 + 8 * 3];
	elements	set = {.hashes = {UINT64_MAX - 1, UINT64_MAX, 5}, .count = 3};
	bf_params	params = params_of(BF_BLOCKED, 3, 512 * 4);
	bf_filter	filter = sparse(params, &set, memory);
	bf_stream	stream = bf_stream_start(&filter, &params);
	uint8_t		scratch[64 * 2];

	ok(bf_stream_read(&stream, 0, 64 * 2, scratch) == scratch, "the first piece has none of the hashes");
	ok(bf_stream_read(&stream, 64 * 2, 64 * 2, scratch) == NULL, "the second finds one of the first");
}

/* More hashes for one block than one call adds. */
static void
test_unfinished(void)
{
	enum {COUNT = 2 * BF_STREAM_HASHES + 1};
	uint8_t    *memory = allocate(8 * COUNT);
	bf_params	params = params_of(BF_BLOCKED, 1, 512 * 8);
	bf_filter	filter = {.params = params, .sparse = true, .nhashes = COUNT, .payload = memory};
	bf_stream	stream = bf_stream_start(&filter, &params);
	uint8_t    *wanted = allocate(params.m / 8);
	uint8_t		scratch[64 * 8];
	int			calls = 1;

	for (uint64_t i = 0; i < COUNT; i++)
	{
		for (int j = 0; j < 8; j++)
			memory[8 * i + (uint64_t) j] = (uint8_t) (i * UINT64_C(0x10001) >> 8 * j);
		ref_add(wanted, &params, i * UINT64_C(0x10001));
	}
	ok(bf_stream_read(&stream, 0, params.m / 8, scratch) == scratch && stream.unfinished, "a piece is unfinished");
	is(stream.next_hash, BF_STREAM_HASHES, "after the hashes of one call");
	for (; stream.unfinished; calls++)
		each(bf_stream_continue(&stream, 0, params.m / 8, scratch) == scratch, "call %d", calls);
	is((uint64_t) calls, 3, "three calls finish it");
	ok(memcmp(scratch, wanted, params.m / 8) == 0, "with the bits of all hashes");
	passed("every call returns the piece");
	free(wanted);
	free(memory);
}

int
main(void)
{
	test_dense_blocked();
	test_sparse_blocked();
	test_same_size();
	test_expand();
	test_expand_part();
	test_disorder();
	test_unfinished();
	return done();
}
