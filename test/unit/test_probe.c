/*
 * test_probe.c
 *		Reading elements of dense filters and counters, whole and piece by piece,
 *		against the rule computed cell by cell.
 */
#include "probe.h"
#include "reference.h"
#include "tap.h"

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

/* Random cells, of which one in `zeros` is 0. */
static uint8_t *
random_cells(const bf_params *params, uint64_t zeros, uint64_t *state)
{
	uint32_t	limit = (1u << params->cell_bits) - 1;
	uint8_t    *numbers = allocate(params->m / 8 * params->cell_bits);

	for (uint64_t i = 0; i < params->m; i++)
	{
		uint32_t	number = random_below(state, 4) == 0 ? limit : 1 + (uint32_t) random_below(state, limit);

		ref_set_number(numbers, params->cell_bits, i, random_below(state, zeros) == 0 ? 0 : number);
	}
	return numbers;
}

/* Reads the pieces of a lookup, each into memory of its own; the number that it finds. */
static uint32_t
look_up(const bf_params *params, const uint8_t *numbers, uint64_t hash, uint32_t *pieces)
{
	bf_lookup	lookup = bf_lookup_start(params, hash);
	uint64_t	offset;
	uint32_t	size;

	*pieces = 0;
	while (bf_lookup_next(&lookup, &offset, &size))
	{
		uint8_t    *piece = allocate(size);
		bool		possible;

		each(offset + size <= params->m / 8 * params->cell_bits, "piece at %" PRIu64, offset);
		memcpy(piece, numbers + offset, size);
		possible = bf_lookup_test(&lookup, piece);
		free(piece);
		++*pieces;
		if (!possible)
			return 0;
	}
	return lookup.number;
}

/* How many throws a classic lookup reads: up to the first 0. */
static uint32_t
throws_read(const bf_params *params, const uint8_t *numbers, uint64_t hash)
{
	uint32_t	throws = 0;

	while (throws < params->k &&
		   ref_number(numbers, params->cell_bits, ref_bit(params, hash, throws)) != 0)
		throws++;
	return throws < params->k ? throws + 1 : throws;
}

static void
test_dense(void)
{
	uint64_t	state = 1;
	uint64_t	absent = 0;
	uint64_t	probes = 0;

	for (int i = 0; i < 3000; i++)
	{
		bf_params	params = random_params(&state);
		bool		small = params.layout == BF_BLOCKED || params.m == 512;
		uint8_t    *numbers = random_cells(&params, 20, &state);
		bf_filter	filter = {.params = params, .levels = i % 2, .payload = numbers};

		for (int j = 0; j < 20; j++)
		{
			uint64_t	hash = j < 2 ? (uint64_t) -j : next_random(&state);
			uint32_t	wanted = ref_read(numbers, &params, hash);
			uint32_t	pieces;

			each(bf_read(&filter, hash) == wanted, "number of %" PRIu64 ": %u, wanted %u", hash,
				 bf_read(&filter, hash), wanted);
			each(bf_contains(&filter, hash) == (wanted > 0), "probe for %" PRIu64, hash);
			each(look_up(&params, numbers, hash, &pieces) == wanted, "lookup of %" PRIu64, hash);
			each(pieces == (small ? 1 : throws_read(&params, numbers, hash)), "%u pieces for %" PRIu64, pieces, hash);
			absent += wanted == 0;
			probes++;
		}
		free(numbers);
	}
	passed("filters and counters read whole and piece by piece");
	ok(absent > probes / 10 && absent < probes * 9 / 10, "%" PRIu64 " of %" PRIu64 " elements read 0", absent, probes);
}

/* Each single cell decides what an element reads. */
static void
test_every_cell_counts(void)
{
	uint64_t	state = 2;

	for (int i = 0; i < 3000; i++)
	{
		bf_params	params = random_params(&state);
		uint32_t	limit = (1u << params.cell_bits) - 1;
		size_t		size = params.m / 8 * params.cell_bits;
		uint8_t    *numbers = allocate(size);
		bf_filter	filter = {.params = params, .payload = numbers};
		uint64_t	hash = next_random(&state);
		uint32_t	less = (uint32_t) random_below(&state, limit);
		uint32_t	pieces;

		each(bf_read(&filter, hash) == 0, "an empty filter");
		memset(numbers, 255, size);
		each(bf_read(&filter, hash) == limit && look_up(&params, numbers, hash, &pieces) == limit, "a full filter");
		ref_set_number(numbers, params.cell_bits, ref_bit(&params, hash, (uint32_t) random_below(&state, params.k)), less);
		each(bf_read(&filter, hash) == less && look_up(&params, numbers, hash, &pieces) == less,
			 "hash %" PRIu64 " with one number of %u", hash, less);
		free(numbers);
	}
	passed("an element reads the least of its cells");
}

/* The offsets of the largest filters and counters, beyond 2^31 bits. */
static void
compare_offsets(bf_layout layout, uint32_t width, uint64_t hash)
{
	bf_params	params = params_of(layout, 8, (UINT64_C(1) << 31) / width);
	bf_lookup	lookup;
	uint64_t	offset;
	uint32_t	size;
	uint32_t	i = 0;

	params.cell_bits = width;
	lookup = bf_lookup_start(&params, hash);
	for (; bf_lookup_next(&lookup, &offset, &size); i++)
	{
		uint64_t	bit = ref_bit(&params, hash, i) * width;

		if (layout == BF_BLOCKED)
			each(offset == bit / (512 * width) * 64 * width && size == 64 * width, "block of %" PRIu64, hash);
		else
		{
			each(offset == bit / 8 && size == (width == 16 ? 2 : 1), "number %u of %" PRIu64, i, hash);
			each(bf_lookup_test(&lookup, (const uint8_t *) "\377\377"), "number %u of %" PRIu64, i, hash);
		}
	}
	each(i == (layout == BF_BLOCKED ? 1 : 8), "%u pieces", i);
}

static void
test_offsets(void)
{
	uint64_t	state = 3;

	for (int i = 0; i < 1000; i++)
	{
		uint64_t	hash = i < 4 ? (uint64_t) -i : next_random(&state);

		for (int w = 0; w < 4; w++)
		{
			compare_offsets(BF_BLOCKED, widths[w], hash);
			compare_offsets(BF_CLASSIC, widths[w], hash);
		}
	}
	passed("pieces of the largest filters and counters lie where the format says");
}

int
main(void)
{
	test_dense();
	test_every_cell_counts();
	test_offsets();
	return done();
}
