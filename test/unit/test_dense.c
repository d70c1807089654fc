/*
 * test_dense.c
 *		The elements of a dense payload, added one by one or expanded from a sparse
 *		filter, and combinations of payloads, against the rule computed cell by
 *		cell.
 */
#include "dense.h"
#include "reference.h"
#include "sparse.h"
#include "stream.h"
#include "tap.h"

#define MOST 300				/* elements */

static const uint32_t widths[] = {1, 4, 8, 16};

static bf_params
random_params(uint64_t *state)
{
	bool		classic = random_below(state, 2);
	bf_params	params = params_of(classic ? BF_CLASSIC : BF_BLOCKED, 1 + (uint32_t) random_below(state, 32),
								   classic ? 64 * (1 + random_below(state, 40)) : 512 * (1 + random_below(state, 6)));

	params.cell_bits = widths[random_below(state, 4)];
	return params;
}

static size_t
payload_size(const bf_params *params)
{
	return params->m / 8 * params->cell_bits;
}

static uint32_t
random_number(const bf_params *params, uint64_t *state)
{
	uint32_t	limit = (1u << params->cell_bits) - 1;

	return 1 + (uint32_t) random_below(state, random_below(state, 2) && limit > 3 ? 3 : limit);
}

/* Random cells, many of them 0. */
static uint8_t *
random_payload(const bf_params *params, uint64_t *state)
{
	uint8_t    *payload = allocate(payload_size(params));

	random_bytes(state, payload, payload_size(params));
	for (size_t i = 0; i < payload_size(params); i++)
		payload[i] &= (uint8_t) next_random(state);
	return payload;
}

static void
test_update(void)
{
	uint64_t	state = 1;

	for (int i = 0; i < 100; i++)
	{
		bf_params	params = random_params(&state);
		bf_shape	shape = bf_shape_of(&params);
		bf_update	update = bf_update_of(&params, i % 2 ? BF_GREATER : BF_SUM);

		each(update.combination == (i % 2 ? BF_GREATER : BF_SUM) && update.cell_bits == params.cell_bits &&
			 update.shape.nblocks == shape.nblocks && update.shape.block_bits == shape.block_bits &&
			 update.shape.k == params.k, "update %d", i);
	}
	passed("an update has the parameters of its filter");
}

static void
test_add(void)
{
	uint64_t	state = 2;

	for (int i = 0; i < 2000; i++)
	{
		bf_params	params = random_params(&state);
		bool		raises = random_below(&state, 2);
		bf_update	update = bf_update_of(&params, raises ? BF_GREATER : BF_SUM);
		uint8_t    *payload = allocate(payload_size(&params));
		uint8_t    *wanted = allocate(payload_size(&params));
		uint64_t	last = 0;

		for (int j = 0; j < 30; j++)
		{
			uint64_t	hash = j < 2 ? (uint64_t) -j : random_below(&state, 3) == 0 ? last : next_random(&state);
			uint32_t	number = random_number(&params, &state);

			bf_dense_prefetch(payload, &update, hash);
			bf_dense_add(payload, &update, hash, number);
			ref_change(wanted, &params, hash, raises ? '>' : '+', number);
			last = hash;
		}
		each(memcmp(payload, wanted, payload_size(&params)) == 0, "layout %d, k %u, m %" PRIu64 ", %u bits, raises %d",
			 (int) params.layout, params.k, params.m, params.cell_bits, raises);
		free(payload);
		free(wanted);
	}
	passed("elements added to filters, counts and levels");
}

/* What elements read in random cells, in their blocks and in all. */
static void
test_read(void)
{
	uint64_t	state = 4;
	uint64_t	absent = 0;

	for (int i = 0; i < 2000; i++)
	{
		bf_params	params = random_params(&state);
		bf_shape	shape = bf_shape_of(&params);
		uint64_t	block_size = params.layout == BF_BLOCKED ? 64 * params.cell_bits : payload_size(&params);
		uint8_t    *payload = random_payload(&params, &state);

		for (size_t j = 0; j < payload_size(&params); j++)
			payload[j] |= (uint8_t) (next_random(&state) | next_random(&state));
		for (int j = 0; j < 20; j++)
		{
			uint64_t	hash = j < 2 ? (uint64_t) -j : next_random(&state);
			uint32_t	wanted = ref_read(payload, &params, hash);
			uint64_t	block = ref_bit(&params, hash, 0) * params.cell_bits / 8 / block_size;

			each(bf_cells_read(payload, &shape, params.cell_bits, hash) == wanted, "hash %" PRIu64, hash);
			each(bf_block_read(payload + block * block_size, &shape, params.cell_bits, hash) == wanted,
				 "hash %" PRIu64 " in block %" PRIu64, hash, block);
			absent += wanted == 0;
		}
		free(payload);
	}
	passed("elements read in filters and counters");
	ok(absent > 4000 && absent < 36000, "%" PRIu64 " of 40000 elements read 0", absent);
}

/* A sparse filter or counter of random elements, not aligned in memory. */
typedef struct sparse_value
{
	bf_filter	filter;
	uint64_t	hashes[MOST];
	uint32_t	numbers[MOST];
	uint8_t		memory[3 + 10 * MOST];
} sparse_value;

static void
draw(sparse_value *of, const bf_params *params, uint64_t *state)
{
	size_t		count = random_below(state, MOST);

	of->filter = (bf_filter) {.params = *params, .sparse = true, .payload = of->memory + 3};
	for (size_t i = 0; i < count; i++)
		of->hashes[i] = i == 0 ? 0 : i == 1 ? UINT64_MAX : next_random(state);
	of->filter.nhashes = sort_hashes(of->hashes, count);
	for (size_t i = 0; i < count; i++)
		of->numbers[i] = random_number(params, state);
	put_hashes(of->memory + 3, of->hashes, of->filter.nhashes);
	if (params->cell_bits > 1)
		put_numbers(of->memory + 3 + 8 * of->filter.nhashes, of->numbers, of->filter.nhashes);
}

static void
compare_expanded(const sparse_value *of, bool raises, uint64_t *state)
{
	const bf_params *params = &of->filter.params;
	bf_update	update = bf_update_of(params, raises ? BF_GREATER : BF_SUM);
	size_t		size = payload_size(params);
	uint8_t    *payload = random_payload(params, state);	/* something that is there already */
	uint8_t    *wanted = allocate(size);
	uint64_t	part = random_below(state, of->filter.nhashes + 1);

	memcpy(wanted, payload, size);
	for (uint64_t i = 0; i < part; i++)
		ref_change(wanted, params, of->hashes[i], raises ? '>' : '+', of->numbers[i]);
	for (uint64_t i = 0; i < part; i += 7)
		bf_expand(&of->filter, i, i + 7 < part ? i + 7 : part, &update, payload);
	each(memcmp(payload, wanted, size) == 0, "%" PRIu64 " of %" PRIu64 " elements, raises %d", part,
		 of->filter.nhashes, raises);
	for (uint64_t i = part; i < of->filter.nhashes; i++)
		ref_change(wanted, params, of->hashes[i], raises ? '>' : '+', of->numbers[i]);
	bf_expand(&of->filter, part, part, &update, payload);
	bf_expand(&of->filter, part, of->filter.nhashes, &update, payload);
	each(memcmp(payload, wanted, size) == 0, "layout %d, k %u, m %" PRIu64 ", %u bits, raises %d",
		 (int) params->layout, params->k, params->m, params->cell_bits, raises);
	free(payload);
	free(wanted);
}

static void
test_expand(void)
{
	uint64_t	state = 3;
	sparse_value *of = allocate(sizeof(*of));

	for (int i = 0; i < 400; i++)
	{
		bf_params	params = random_params(&state);

		draw(of, &params, &state);
		compare_expanded(of, false, &state);
		compare_expanded(of, true, &state);
	}
	free(of);
	passed("sparse filters and counters expanded in parts, by adding and by raising");
}

/* The expected combination; false if a difference does not exist. */
static bool
combine_cells(uint8_t *dst, const uint8_t *src, const bf_params *params, char operation)
{
	uint32_t	limit = (1u << params->cell_bits) - 1;
	bool		exists = true;

	for (uint64_t i = 0; i < params->m; i++)
	{
		int64_t		result = ref_combined(operation, ref_number(dst, params->cell_bits, i),
										  ref_number(src, params->cell_bits, i), limit);

		exists = exists && result >= 0;
		ref_set_number(dst, params->cell_bits, i, (uint32_t) result);
	}
	return exists;
}

static void
test_combine(void)
{
	static const char operations[] = {[BF_SUM] = '+',[BF_DIFFERENCE] = '-',[BF_GREATER] = '>',[BF_LESSER] = '<'};
	uint64_t	state = 5;

	for (int i = 0; i < 4000; i++)
	{
		bf_params	params = params_of(BF_BLOCKED, 1, 512 * (1 + random_below(&state, 4)));
		bf_combination combination = (bf_combination) (i % 4);
		uint8_t    *dst;
		uint8_t    *src;
		uint8_t    *wanted;
		bool		exists;

		params.cell_bits = widths[combination == BF_DIFFERENCE ? 1 + i / 4 % 3 : i / 4 % 4];
		dst = random_payload(&params, &state);
		src = random_payload(&params, &state);
		wanted = allocate(payload_size(&params));
		memcpy(wanted, dst, payload_size(&params));
		if (combination == BF_DIFFERENCE && i % 3 != 0)
			combine_cells(src, dst, &params, '<');
		exists = combine_cells(wanted, src, &params, operations[combination]);
		each(bf_combine_cells(dst, src, payload_size(&params), params.cell_bits, combination) == exists,
			 "%c of %u bits exists or not", operations[combination], params.cell_bits);
		each(!exists || memcmp(dst, wanted, payload_size(&params)) == 0, "%c of %u bits",
			 operations[combination], params.cell_bits);
		free(dst);
		free(src);
		free(wanted);
	}
	passed("combinations of filters and of counters");
}

/*
 * Two elements that share all positions: counts add up, levels do not, and what
 * is read is never below the truth.
 */
static void
test_shared(void)
{
	static const uint64_t hashes[] = {5, UINT64_C(0xC000000000000005)};
	bf_params	params = params_of(BF_CLASSIC, 1, 64);
	uint8_t		payload[20];
	bf_filter	counter = {.params = params, .sparse = true, .nhashes = 2, .payload = payload};
	bf_update	update;
	uint8_t		counts[32] = {0};
	uint8_t		levels[32] = {0};
	uint64_t	first = ref_bit(&params, hashes[0], 0);
	uint64_t	second = ref_bit(&params, hashes[1], 0);

	counter.params.cell_bits = 4;
	put_hashes(payload, hashes, 2);
	put_numbers(payload + 16, (uint32_t[]) {9, 4}, 2);
	update = bf_update_of(&counter.params, BF_SUM);
	bf_expand(&counter, 0, 2, &update, counts);
	bf_expand(&counter, 0, 1, &update, counts);
	update = bf_update_of(&counter.params, BF_GREATER);
	bf_expand(&counter, 0, 2, &update, levels);
	bf_expand(&counter, 0, 1, &update, levels);
	ok(first != second, "two positions");
	is(ref_number(counts, 4, first), 15, "counts: 9 twice saturate");
	is(ref_number(counts, 4, second), 4, "the other one is added once");
	is(ref_number(levels, 4, first), 9, "levels: 9 twice are 9");
	is(ref_number(levels, 4, second), 4, "and 4 is 4");
}

int
main(void)
{
	test_update();
	test_add();
	test_read();
	test_expand();
	test_combine();
	test_shared();
	return done();
}
