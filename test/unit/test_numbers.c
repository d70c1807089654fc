/*
 * test_numbers.c
 *		The numbers of elements in a counter, against an array of integers.
 */
#include "dense.h"
#include "hash.h"
#include "model.h"
#include "reference.h"
#include "tap.h"

static const uint32_t widths[] = {4, 8, 16};

/* A counter beside its model. */
typedef struct pair
{
	bf_params	params;
	bf_shape	shape;
	uint32_t	cell_bits;
	uint32_t	limit;
	size_t		size;			/* of the counter in bytes */
	uint8_t    *memory;
	uint8_t    *numbers;		/* at any alignment in memory */
	int64_t    *model;
} pair;

static pair
make_pair(bf_params params, uint32_t cell_bits, size_t offset)
{
	pair		made = {.params = params, .shape = bf_shape_of(&params), .cell_bits = cell_bits};

	made.limit = cell_bits == 4 ? 15 : cell_bits == 8 ? 255 : 65535;
	made.size = params.m * cell_bits / 8;
	made.memory = allocate(made.size + offset);
	made.numbers = made.memory + offset;
	made.model = allocate(params.m * sizeof(*made.model));
	return made;
}

/* Sets all numbers of both to the same random ones. */
static void
randomize(pair *of, uint64_t *state)
{
	for (uint64_t i = 0; i < of->params.m; i++)
	{
		int64_t		low = (int64_t) random_below(state, 3);
		uint64_t	kind = random_below(state, 8);

		of->model[i] = kind == 0 ? of->limit - low : kind < 4 ? low :
			(int64_t) random_below(state, of->limit + 1);
		ref_set_number(of->numbers, of->cell_bits, i, (uint32_t) of->model[i]);
	}
}

static void
free_pair(pair *of)
{
	free(of->memory);
	free(of->model);
}

static int64_t
model_read(const pair *of, uint64_t hash)
{
	uint64_t	positions[BF_MAX_K];
	uint32_t	count = ref_positions(&of->params, hash, positions);
	int64_t		least = INT64_MAX;

	for (uint32_t i = 0; i < count; i++)
		least = of->model[positions[i]] < least ? of->model[positions[i]] : least;
	return least;
}

static void
model_change(pair *of, uint64_t hash, char operation, int64_t number)
{
	uint64_t	positions[BF_MAX_K];
	uint32_t	count = ref_positions(&of->params, hash, positions);

	for (uint32_t i = 0; i < count; i++)
		of->model[positions[i]] = ref_combined(operation, of->model[positions[i]], number, of->limit);
}

static uint32_t
read_of(const pair *of, uint64_t hash)
{
	return bf_cells_read(of->numbers, &of->shape, of->cell_bits, hash);
}

/* Changes the counter alone. */
static void
change(pair *of, uint64_t hash, char operation, uint32_t number)
{
	bf_numbers_prefetch(of->numbers, &of->shape, of->cell_bits, hash);
	if (operation == '+')
		bf_numbers_change(of->numbers, &of->shape, of->cell_bits, hash, BF_SUM, number);
	else if (operation == '-')
		bf_numbers_change(of->numbers, &of->shape, of->cell_bits, hash, BF_DIFFERENCE, number);
	else
		bf_numbers_change(of->numbers, &of->shape, of->cell_bits, hash, BF_GREATER, number);
}

static bool
same(const pair *of)
{
	for (uint64_t i = 0; i < of->params.m; i++)
	{
		if (ref_number(of->numbers, of->cell_bits, i) != of->model[i])
			return false;
	}
	return true;
}

static void
test_access(void)
{
	uint64_t	state = 1;

	is(bf_cell_limit(1), 1, "limit of 1 bit");
	is(bf_cell_limit(4), 15, "limit of 4 bits");
	is(bf_cell_limit(8), 255, "limit of 8 bits");
	is(bf_cell_limit(16), 65535, "limit of 16 bits");
	for (int w = 0; w < 3; w++)
	{
		for (uint64_t i = 0; i < 64 * 16; i++)
		{
			pair		of = make_pair(params_of(BF_CLASSIC, 1, 64), widths[w], i % 5);
			uint64_t	position = i % 64;
			uint32_t	number = widths[w] == 4 ? (uint32_t) i / 64 : (uint32_t) random_below(&state, of.limit + 1);

			randomize(&of, &state);
			each(bf_number_at(of.numbers, widths[w], position) == of.model[position], "number at %" PRIu64, position);
			bf_set_number(of.numbers, widths[w], position, number);
			of.model[position] = number;
			each(bf_number_at(of.numbers, widths[w], position) == number, "number set at %" PRIu64, position);
			each(same(&of), "another number than %" PRIu64 " changed", position);
			free_pair(&of);
		}
	}
	passed("single numbers");
}

/* The bytes as the format's text says it, without help from other code. */
static void
test_bytes(void)
{
	static const uint8_t wanted[] = {0x21, 0x43, 0x02, 0x01};
	uint8_t		got[4] = {0};

	bf_set_number(got, 4, 0, 1);
	bf_set_number(got, 4, 1, 2);
	bf_set_number(got, 8, 1, 0x43);
	bf_set_number(got, 16, 1, 0x0102);
	ok(memcmp(got, wanted, 4) == 0, "low half first, and little-endian");
	is(bf_number_at(wanted, 4, 3), 4, "number 3 of 4 bits");
	is(bf_number_at(wanted, 8, 2), 2, "number 2 of 8 bits");
	is(bf_number_at(wanted, 16, 0), 0x4321, "number 0 of 16 bits");
}

static void
compare_two(uint32_t a, uint32_t b, uint32_t limit)
{
	each(bf_combine_two(BF_SUM, a, b, limit) == ref_combined('+', a, b, limit), "%u + %u", a, b);
	each(bf_combine_two(BF_GREATER, a, b, limit) == ref_combined('>', a, b, limit), "greater of %u, %u", a, b);
	each(bf_combine_two(BF_LESSER, a, b, limit) == ref_combined('<', a, b, limit), "lesser of %u, %u", a, b);
	if (a >= b || a == limit)
		each(bf_combine_two(BF_DIFFERENCE, a, b, limit) == ref_combined('-', a, b, limit), "%u - %u", a, b);
}

static void
test_combine_two(void)
{
	for (uint32_t a = 0; a <= 255; a++)
	{
		for (uint32_t b = 0; b <= 255; b++)
		{
			compare_two(a, b, 255);
			if (a <= 15 && b <= 15)
				compare_two(a, b, 15);
			compare_two(a < 128 ? a : 65280 + a, b < 128 ? b : 65280 + b, 65535);
		}
	}
	passed("combinations of two numbers");
}

/* One operation on both. */
static void
compare_operation(pair *of, uint64_t hash, uint64_t *state)
{
	int64_t		before = model_read(of, hash);
	char		operation = "+->"[random_below(state, 3)];
	uint32_t	number = (uint32_t) random_below(state, random_below(state, 2) ? 4 : of->limit + 1);

	if (operation == '-' && number > before && before != of->limit)
		number = (uint32_t) before;
	each(read_of(of, hash) == before, "hash %" PRIu64 " reads %u before", hash, read_of(of, hash));
	change(of, hash, operation, number);
	model_change(of, hash, operation, number);
	each(read_of(of, hash) == model_read(of, hash), "hash %" PRIu64 " reads %u after %c %u", hash,
		 read_of(of, hash), operation, number);
}

static void
compare_rule(bf_params params, uint32_t cell_bits, uint64_t *state)
{
	size_t		offset = random_below(state, 64);
	pair		of = make_pair(params, cell_bits, offset);

	memset(of.memory, 0xA5, offset);
	if (random_below(state, 3) != 0)
		randomize(&of, state);
	for (int i = 0; i < 12; i++)
	{
		uint64_t	hash = i < 2 ? (uint64_t) -i : next_random(state);

		for (int j = 0; j < 4; j++)
			compare_operation(&of, hash, state);
	}
	each(same(&of), "layout %d, k %" PRIu32 ", m %" PRIu64 ", %u bits", (int) params.layout, params.k,
		 params.m, cell_bits);
	for (size_t i = 0; i < offset; i++)
		each(of.memory[i] == 0xA5, "written before the start");
	free_pair(&of);
}

static void
test_rule(void)
{
	uint64_t	state = 2;

	for (int w = 0; w < 3; w++)
	{
		for (uint32_t k = 1; k <= 32; k++)
		{
			for (uint64_t units = 1; units <= 12; units = units * 3 / 2 + 1)
			{
				compare_rule(params_of(BF_BLOCKED, k, units * 512), widths[w], &state);
				compare_rule(params_of(BF_CLASSIC, k, units * 64), widths[w], &state);
			}
			/* classic counters with a block of the blocked layout */
			compare_rule(params_of(BF_CLASSIC, k, 512), widths[w], &state);
		}
	}
	passed("add, remove, raise and read follow the model, for every k and width");
}

/* Positions beyond 2^31 bits, in memory that is mostly never touched. */
static void
test_largest(void)
{
	for (int w = 0; w < 3; w++)
	{
		for (int layout = 0; layout < 2; layout++)
		{
			bf_params	params = params_of((bf_layout) layout, 8, (UINT64_C(1) << 31) / widths[w]);
			bf_shape	shape = bf_shape_of(&params);
			uint8_t    *numbers = allocate(UINT64_C(1) << 28);

			for (uint64_t i = 0; i < 50; i++)
			{
				uint64_t	hash = i == 0 ? UINT64_MAX : bf_hash_word(i, 0);

				bf_numbers_change(numbers, &shape, widths[w], hash, BF_SUM, 3);
				for (uint32_t j = 0; j < 8; j++)
					each(ref_number(numbers, widths[w], ref_bit(&params, hash, j)) >= 3, "position %u", j);
				each(bf_cells_read(numbers, &shape, widths[w], hash) == 3, "hash %" PRIu64, hash);
			}
			free(numbers);
		}
	}
	passed("the largest counters");
}

/* A hash with fewer distinct positions than k. */
static uint64_t
colliding_hash(const bf_params *params, uint64_t *state)
{
	uint64_t	positions[BF_MAX_K];
	uint64_t	hash;

	do
		hash = next_random(state);
	while (ref_positions(params, hash, positions) == params->k);
	return hash;
}

static void
compare_duplicates(const bf_params *params, uint32_t cell_bits, uint64_t *state)
{
	pair		of = make_pair(*params, cell_bits, 1);
	uint64_t	hash = colliding_hash(params, state);
	uint64_t	positions[BF_MAX_K];
	uint32_t	count = ref_positions(params, hash, positions);
	uint64_t	sum = 0;

	each(count < params->k, "no duplicate");
	change(&of, hash, '+', 3);
	change(&of, hash, '+', 2);
	for (uint64_t i = 0; i < params->m; i++)
		sum += ref_number(of.numbers, cell_bits, i);
	each(sum == 5 * count, "%" PRIu64 " in %u positions", sum, count);
	for (uint32_t i = 0; i < count; i++)
		each(ref_number(of.numbers, cell_bits, positions[i]) == 5, "position %u of %" PRIu64, i, hash);
	each(read_of(&of, hash) == 5, "hash %" PRIu64, hash);
	change(&of, hash, '-', 4);
	each(read_of(&of, hash) == 1, "hash %" PRIu64 " after removal", hash);
	change(&of, hash, '-', 1);
	each(same(&of), "something is left of hash %" PRIu64, hash);
	free_pair(&of);
}

static void
test_duplicates(void)
{
	uint64_t	state = 4;

	for (int i = 0; i < 200; i++)
	{
		for (int w = 0; w < 3; w++)
		{
			bf_params	blocked = params_of(BF_BLOCKED, 2 + (uint32_t) i % 31, 1024);
			bf_params	classic = params_of(BF_CLASSIC, 2 + (uint32_t) i % 31, 192);

			compare_duplicates(&blocked, widths[w], &state);
			compare_duplicates(&classic, widths[w], &state);
		}
	}
	passed("a position that occurs twice changes once");
}

/* At 4 bits two positions may share a byte. */
static void
test_neighbours(void)
{
	uint64_t	state = 5;
	int			shared = 0;

	for (int i = 0; i < 3000; i++)
	{
		bf_params	params = params_of(BF_BLOCKED, 2, 512);
		pair		of = make_pair(params, 4, 0);
		uint64_t	hash = next_random(&state);
		uint64_t	first = ref_bit(&params, hash, 0);
		uint64_t	second = ref_bit(&params, hash, 1);

		if (first != second && first / 2 == second / 2)
		{
			shared++;
			change(&of, hash, '+', 7);
			model_change(&of, hash, '+', 7);
			each(of.numbers[first / 2] == 0x77, "both halves of byte %" PRIu64, first / 2);
			each(same(&of), "hash %" PRIu64, hash);
		}
		free_pair(&of);
	}
	ok(shared > 3, "%d hashes have both positions in one byte", shared);
	passed("two positions in one byte");
}

static void
test_saturation(void)
{
	for (int w = 0; w < 3; w++)
	{
		pair		of = make_pair(params_of(BF_BLOCKED, 6, 512), widths[w], 3);
		uint64_t	full = bf_hash_word(1, 0);
		uint64_t	other = bf_hash_word(2, 0);

		change(&of, full, '+', of.limit - 1);
		each(read_of(&of, full) == of.limit - 1, "just below the limit");
		change(&of, full, '-', 1);
		change(&of, full, '+', 1);
		each(read_of(&of, full) == of.limit - 1, "down and up again");
		change(&of, full, '+', of.limit);
		each(read_of(&of, full) == of.limit, "at the limit");
		change(&of, full, '+', 1);
		change(&of, full, '-', 1);
		change(&of, full, '-', of.limit);
		change(&of, full, '>', 1);
		each(read_of(&of, full) == of.limit, "the limit stays");

		/* Numbers of an element that are below the limit change alone. */
		model_change(&of, full, '+', of.limit);
		change(&of, other, '+', 2);
		model_change(&of, other, '+', 2);
		each(same(&of), "an element added to saturated numbers");
		change(&of, other, '-', 2);
		model_change(&of, other, '-', 2);
		each(same(&of), "an element removed from saturated numbers");
		free_pair(&of);
	}
	passed("saturation stays");
}

/* Until a number saturates, removing what was added restores every byte. */
static void
compare_round_trip(const bf_params *params, uint32_t cell_bits)
{
	pair		of = make_pair(*params, cell_bits, 0);
	uint8_t    *before = allocate(of.size);

	for (uint64_t i = 0; i < 20; i++)
		change(&of, bf_hash_word(i, 1), '+', 1);
	memcpy(before, of.numbers, of.size);
	for (uint64_t i = 100; i < 140; i++)
		change(&of, bf_hash_word(i, 1), '+', 1);
	for (uint64_t i = 100; i < 140; i++)
		each(read_of(&of, bf_hash_word(i, 1)) >= 1, "element %" PRIu64 " is lost", i);
	for (uint64_t i = 139; i >= 100; i--)
		change(&of, bf_hash_word(i, 1), '-', 1);
	each(memcmp(of.numbers, before, of.size) == 0, "not restored at %u bits", cell_bits);
	for (uint64_t i = 0; i < 20; i++)
		change(&of, bf_hash_word(i, 1), '>', 1);
	each(memcmp(of.numbers, before, of.size) == 0, "raising to 1 changes what reads 1");
	for (uint64_t i = 0; i < 20; i++)
		change(&of, bf_hash_word(i, 1), '-', 1);
	each(same(&of), "not empty again at %u bits", cell_bits);
	free(before);
	free_pair(&of);
}

static void
test_round_trips(void)
{
	for (int w = 0; w < 3; w++)
	{
		bf_params	blocked = params_of(BF_BLOCKED, 6, 512 * 20);
		bf_params	classic = params_of(BF_CLASSIC, 7, 64 * 101);

		compare_round_trip(&blocked, widths[w]);
		compare_round_trip(&classic, widths[w]);
	}
	passed("removing what was added restores the counter");
}

/* An absent element reads 0 except at the false-positive rate. */
static void
test_absent(void)
{
	double		expected = 20000 * model_rate(6, 100, 5000);

	for (int w = 0; w < 3; w++)
	{
		pair		of = make_pair(params_of(BF_BLOCKED, 6, 512 * 100), widths[w], 0);
		uint64_t	wrong = 0;

		for (uint64_t i = 0; i < 1000; i++)
			each(read_of(&of, bf_hash_word(i, 0)) == 0, "an empty counter reads more than 0");
		for (uint64_t i = 0; i < 5000; i++)
			change(&of, bf_hash_word(i, 0), '+', 1);
		for (uint64_t i = 0; i < 5000; i++)
			each(read_of(&of, bf_hash_word(i, 0)) >= 1, "element %" PRIu64 " is lost", i);
		for (uint64_t i = 5000; i < 25000; i++)
			wrong += read_of(&of, bf_hash_word(i, 0)) > 0;
		ok(fabs((double) wrong - expected) < 6 * sqrt(expected), "%" PRIu64 " of 20000 absent elements read "
		   "more than 0, %.1f by theory", wrong, expected);
		free_pair(&of);
	}
	passed("absent elements read 0");
}

int
main(void)
{
	test_access();
	test_bytes();
	test_combine_two();
	test_rule();
	test_largest();
	test_duplicates();
	test_neighbours();
	test_saturation();
	test_round_trips();
	test_absent();
	return done();
}
