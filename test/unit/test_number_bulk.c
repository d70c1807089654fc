/*
 * test_number_bulk.c
 *		The loops over whole counters, against loops over single numbers.
 *
 * Every pair of numbers occurs at 4 and 8 bits.  Sizes up to 2400 bytes reach
 * every path of the vector loops and their remainders, with each instruction
 * set of this machine.
 */
#include "lesser_cpus.h"
#include "number_bulk.h"
#include "reference.h"
#include "tap.h"

#define MOST 2400				/* bytes */

static const uint32_t widths[] = {4, 8, 16};

static const char operations[] = {[BF_SUM] = '+',[BF_DIFFERENCE] = '-',[BF_GREATER] = '>',[BF_LESSER] = '<'};

/* Numbers where a carry, a sign or the limit begins. */
static const uint32_t edges[] = {
	0, 1, 2, 7, 8, 14, 15, 16, 127, 128, 129, 254, 255, 256, 257, 32767, 32768, 32769, 65279, 65280, 65533,
	65534, 65535
};

#define EDGES (sizeof(edges) / sizeof(edges[0]))

/* Half of them random, the others near 0 and the limit. */
static uint32_t
some_number(uint64_t *state, uint32_t cell_bits)
{
	uint32_t	limit = (1u << cell_bits) - 1;
	uint32_t	kind = (uint32_t) random_below(state, 4);
	uint32_t	low = (uint32_t) random_below(state, 3);

	return kind == 0 ? low : kind == 1 ? limit - low : (uint32_t) random_below(state, limit + 1);
}

/* Memory at an offset from alignment, without room behind it. */
typedef struct area
{
	uint8_t    *memory;
	uint8_t    *bytes;
} area;

static area
make_area(size_t size, size_t offset)
{
	area		made = {.memory = allocate(size + offset)};

	made.bytes = made.memory + offset;
	memset(made.memory, 0xA5, offset);
	return made;
}

/* Frees an area if nothing was written before it. */
static void
free_area(area *of)
{
	for (uint8_t *at = of->memory; at < of->bytes; at++)
		each(*at == 0xA5, "written before the start");
	free(of->memory);
}

static void
fill(uint8_t *bytes, size_t size, uint32_t cell_bits, uint64_t *state)
{
	for (size_t i = 0; i < size * 8 / cell_bits; i++)
		ref_set_number(bytes, cell_bits, i, some_number(state, cell_bits));
}

/* Computes the expected result; false if a difference does not exist. */
static bool
reference_combine(uint8_t *wanted, const uint8_t *a, const uint8_t *b, size_t size, uint32_t cell_bits,
				  bf_combination combination)
{
	bool		exists = true;

	for (size_t i = 0; i < size * 8 / cell_bits; i++)
	{
		int64_t		result = ref_combined(operations[combination], ref_number(a, cell_bits, i),
										  ref_number(b, cell_bits, i), (1 << cell_bits) - 1);

		exists = exists && result >= 0;
		ref_set_number(wanted, cell_bits, i, (uint32_t) result);
	}
	return exists;
}

/* Lowers each number of b to that of a. */
static void
make_fit(uint8_t *b, const uint8_t *a, size_t size, uint32_t cell_bits)
{
	for (size_t i = 0; i < size * 8 / cell_bits; i++)
	{
		if (ref_number(b, cell_bits, i) > ref_number(a, cell_bits, i))
			ref_set_number(b, cell_bits, i, ref_number(a, cell_bits, i));
	}
}

static void
compare_combine(size_t size, size_t a_offset, size_t b_offset, uint32_t cell_bits,
				bf_combination combination, uint64_t *state)
{
	area		a = make_area(size, a_offset);
	area		b = make_area(size, b_offset);
	uint8_t    *wanted = allocate(size);
	bool		exists;

	fill(a.bytes, size, cell_bits, state);
	fill(b.bytes, size, cell_bits, state);
	if (combination == BF_DIFFERENCE)
		make_fit(b.bytes, a.bytes, size, cell_bits);
	exists = reference_combine(wanted, a.bytes, b.bytes, size, cell_bits, combination);
	each(exists, "no reference");
	each(bf_combine_numbers(a.bytes, b.bytes, size, cell_bits, combination), "%c of %zu bytes refused",
		 operations[combination], size);
	each(memcmp(a.bytes, wanted, size) == 0, "%c of %zu bytes at %zu and %zu, %u bits",
		 operations[combination], size, a_offset, b_offset, cell_bits);
	free_area(&a);
	free_area(&b);
	free(wanted);
}

static void
test_combine(void)
{
	uint64_t	state = 1;

	for (int i = 0; i < 3; i++)
	{
		for (bf_combination op = BF_SUM; op <= BF_LESSER; op++)
		{
			for (size_t size = 0; size <= MOST; size += size < 600 ? 32 : 160)
			{
				compare_combine(size, 0, 0, widths[i], op, &state);
				compare_combine(size, 3, 5, widths[i], op, &state);
			}
			for (size_t offset = 0; offset < 64; offset++)
				compare_combine(160, offset, 63 - offset, widths[i], op, &state);
		}
	}
	passed("combinations at every width, size and alignment");
}

/* Every pair of bytes: at 4 bits all pairs of two numbers beside each other. */
static void
compare_pairs(uint32_t cell_bits, bf_combination combination)
{
	enum {SIZE = 256 * 256};
	uint8_t    *a = allocate(SIZE);
	uint8_t    *b = allocate(SIZE);
	uint8_t    *wanted = allocate(SIZE);

	for (int i = 0; i < SIZE; i++)
	{
		a[i] = (uint8_t) (i / 256);
		b[i] = (uint8_t) i;
	}
	if (combination == BF_DIFFERENCE)
		make_fit(b, a, SIZE, cell_bits);
	each(reference_combine(wanted, a, b, SIZE, cell_bits, combination), "no reference");
	each(bf_combine_numbers(a, b, SIZE, cell_bits, combination), "refused");
	for (int i = 0; i < SIZE; i++)
		each(a[i] == wanted[i], "%d %c %d at %u bits: %d, wanted %d", i / 256, operations[combination], b[i],
			 cell_bits, a[i], wanted[i]);
	free(a);
	free(b);
	free(wanted);
}

static void
compare_edges(bf_combination combination)
{
	for (size_t i = 0; i < EDGES; i++)
	{
		for (size_t j = 0; j < EDGES; j++)
		{
			uint8_t		a[32] = {0};
			uint8_t		b[32] = {0};
			int64_t		wanted = ref_combined(operations[combination], edges[i], edges[j], 65535);

			ref_set_number(a, 16, 9, edges[i]);
			ref_set_number(b, 16, 9, edges[j]);
			each(bf_combine_numbers(a, b, 32, 16, combination) == (wanted >= 0), "%u %c %u: exists or not",
				 edges[i], operations[combination], edges[j]);
			each(wanted < 0 || ref_number(a, 16, 9) == wanted, "%u %c %u", edges[i],
				 operations[combination], edges[j]);
		}
	}
}

static void
test_pairs(void)
{
	for (bf_combination op = BF_SUM; op <= BF_LESSER; op++)
	{
		compare_pairs(4, op);
		compare_pairs(8, op);
		compare_edges(op);
	}
	passed("combinations of every pair of bytes, and of edges at 16 bits");
}

/* One number that does not fit is found wherever it is. */
static void
compare_misfit(size_t size, uint32_t cell_bits, uint64_t *state)
{
	uint32_t	limit = (1u << cell_bits) - 1;
	size_t		count = size * 8 / cell_bits;
	uint8_t    *a = allocate(size);
	uint8_t    *b = allocate(size);
	uint8_t    *dst = allocate(size);

	fill(a, size, cell_bits, state);
	fill(b, size, cell_bits, state);
	make_fit(b, a, size, cell_bits);
	for (size_t i = 0; i < count; i++)
	{
		uint32_t	kept_a = ref_number(a, cell_bits, i);
		uint32_t	kept_b = ref_number(b, cell_bits, i);
		uint32_t	less = (uint32_t) random_below(state, limit);

		ref_set_number(a, cell_bits, i, less);
		ref_set_number(b, cell_bits, i, i % 2 ? less + 1 : limit);
		memcpy(dst, a, size);
		each(!bf_combine_numbers(dst, b, size, cell_bits, BF_DIFFERENCE), "%zu of %zu bytes, %u bits",
			 i, size, cell_bits);
		ref_set_number(a, cell_bits, i, kept_a);
		ref_set_number(b, cell_bits, i, kept_b);
	}
	memcpy(dst, a, size);
	each(bf_combine_numbers(dst, b, size, cell_bits, BF_DIFFERENCE), "%zu bytes should fit", size);
	free(a);
	free(b);
	free(dst);
}

static void
test_misfits(void)
{
	uint64_t	state = 2;

	for (int i = 0; i < 3; i++)
	{
		for (size_t size = 32; size <= 640; size += size < 256 ? 32 : 96)
			compare_misfit(size, widths[i], &state);
	}
	passed("each number that does not fit is found");
}

static void
compare_decay(size_t size, size_t offset, uint32_t cell_bits, uint32_t by, uint64_t *state)
{
	area		of = make_area(size, offset);
	uint8_t    *wanted = allocate(size);

	fill(of.bytes, size, cell_bits, state);
	for (size_t i = 0; i < size * 8 / cell_bits; i++)
	{
		uint32_t	number = ref_number(of.bytes, cell_bits, i);

		ref_set_number(wanted, cell_bits, i, number < by ? 0 : number - by);
	}
	bf_decay_numbers(of.bytes, size, cell_bits, by);
	each(memcmp(of.bytes, wanted, size) == 0, "%zu bytes of %u bits by %u", size, cell_bits, by);
	free_area(&of);
	free(wanted);
}

static void
test_decay(void)
{
	uint64_t	state = 3;

	for (uint32_t by = 0; by <= 15; by++)
		compare_decay(4096, 1, 4, by, &state);
	for (uint32_t by = 0; by <= 255; by++)
		compare_decay(4096, 2, 8, by, &state);
	for (size_t i = 0; i < EDGES; i++)
		compare_decay(4096, 3, 16, edges[i], &state);
	passed("decay by every number, at 16 bits by edges");
	for (int i = 0; i < 3; i++)
	{
		for (size_t size = 0; size <= MOST; size += 32)
			compare_decay(size, size / 32 % 64, widths[i], 1, &state);
	}
	passed("decay at every size");
}

static void
compare_threshold(size_t npositions, size_t offset, uint32_t cell_bits, uint32_t level, uint64_t *state)
{
	size_t		size = npositions * cell_bits / 8;
	area		of = make_area(size, offset);
	area		bits = make_area(npositions / 8, offset / 2);
	uint8_t    *wanted = allocate(npositions / 8);

	fill(of.bytes, size, cell_bits, state);
	for (size_t i = 0; i < npositions; i++)
	{
		/* Random numbers alone would rarely be next to the level. */
		if (random_below(state, 3) == 0)
			ref_set_number(of.bytes, cell_bits, i, level - (uint32_t) random_below(state, 2));
		if (ref_number(of.bytes, cell_bits, i) >= level)
			ref_set(wanted, i);
	}
	random_bytes(state, bits.bytes, npositions / 8);
	bf_threshold(bits.bytes, of.bytes, npositions, cell_bits, level);
	each(memcmp(bits.bytes, wanted, npositions / 8) == 0, "%zu positions of %u bits, level %u", npositions,
		 cell_bits, level);
	free_area(&of);
	free_area(&bits);
	free(wanted);
}

static void
test_threshold(void)
{
	uint64_t	state = 4;

	for (uint32_t level = 1; level <= 15; level++)
		compare_threshold(4096, 1, 4, level, &state);
	for (uint32_t level = 1; level <= 255; level++)
		compare_threshold(2048, 2, 8, level, &state);
	for (size_t i = 1; i < EDGES; i++)
		compare_threshold(2048, 3, 16, edges[i], &state);
	passed("every level, at 16 bits edges");
	for (int i = 0; i < 3; i++)
	{
		for (size_t npositions = 0; npositions <= 5000; npositions += npositions < 1500 ? 64 : 320)
			compare_threshold(npositions, npositions / 64 % 64, widths[i], 1 + 3 * (npositions % 7 == 0), &state);
	}
	passed("levels at every size");
}

static void
test_sum(void)
{
	enum {SIZE = 1 << 20};
	uint64_t	state = 5;
	uint8_t    *full = allocate(SIZE);

	memset(full, 255, SIZE);
	is(bf_sum_of_numbers(full, SIZE, 4), UINT64_C(2) * SIZE * 15, "sum of 4 bits at the limit");
	is(bf_sum_of_numbers(full, SIZE, 8), UINT64_C(255) * SIZE, "sum of 8 bits at the limit");
	is(bf_sum_of_numbers(full, SIZE, 16), UINT64_C(65535) * SIZE / 2, "sum of 16 bits at the limit");
	free(full);
	for (int i = 0; i < 3; i++)
	{
		for (size_t size = 0; size <= 5000; size += size < MOST ? 32 : 160)
		{
			area		of = make_area(size, size / 32 % 64);
			uint64_t	wanted = 0;

			fill(of.bytes, size, widths[i], &state);
			for (size_t j = 0; j < size * 8 / widths[i]; j++)
				wanted += ref_number(of.bytes, widths[i], j);
			each(bf_sum_of_numbers(of.bytes, size, widths[i]) == wanted, "%zu bytes of %u bits", size, widths[i]);
			free_area(&of);
		}
	}
	passed("sums at every size");
}

static void
test_all(void)
{
	test_combine();
	test_pairs();
	test_misfits();
	test_decay();
	test_threshold();
	test_sum();
}

int
main(void)
{
	test_all();
	on_lesser_cpus(test_all);
	return done();
}
