/*
 * test_block.c
 *		From elements to hashes and from hashes to bits: known answers, the
 *		rule in 128-bit arithmetic, and the distribution.
 */
#include "block.h"
#include "hash.h"
#include "reference.h"
#include "tap.h"

/* From another implementation of the specification, in unbounded integers. */
static void
test_known_hashes(void)
{
	uint8_t		bytes[100];

	for (int i = 0; i < 100; i++)
		bytes[i] = (uint8_t) i;
	is(bf_hash_bytes("", 0, 0), UINT64_C(0xEF46DB3751D8E999), "XXH64 of nothing");
	is(bf_hash_bytes("a", 1, 0), UINT64_C(0xD24EC4F1A98C6E5B), "XXH64 of a letter");
	is(bf_hash_bytes(bytes, 100, 5), UINT64_C(0x9C502A83DCB7C69E), "XXH64 of 100 bytes");
	is(bf_hash_word(0, 0), UINT64_C(0x34C96ACDCADB1BBB), "XXH64 of the number 0");
	is(bf_hash_word(42, 7), UINT64_C(0x1889DE22BDD8972C), "XXH64 of 42 with seed 7");
	is(bf_hash_word(UINT64_MAX, 0), UINT64_C(0x85D136ADB773C6C9), "XXH64 of -1");
	is(bf_hash_word(UINT64_C(0x0123456789ABCDEF), UINT64_C(0xFEDCBA9876543210)),
	   UINT64_C(0x113DB519CB4CD195), "XXH64 of a long number with a long seed");
}

static void
test_scale(void)
{
	static const uint64_t edges[] = {
		0, 1, UINT32_MAX, UINT64_C(1) << 32, UINT64_C(1) << 63, UINT64_MAX - 1, UINT64_MAX,
		UINT64_C(0xFFFFFFFF00000000), UINT64_C(0x7FFFFFFFFFFFFFFF)
	};
	uint64_t	state = 1;

	for (int i = 0; i < 300000; i++)
	{
		uint32_t	bound = i % 3 == 0 ? UINT32_C(1) << 31 :
			(uint32_t) (1 + (random_below(&state, UINT64_C(1) << 31) >> (i % 31)));
		uint64_t	y = i % 7 == 0 ? edges[i / 7 % 9] : next_random(&state);

		each(bf_scale(y, bound) == (uint64_t) (((uint128) y * bound) >> 64),
			 "%" PRIu64 " to %" PRIu32, y, bound);
	}
	passed("scaling is the high word of the 128-bit product");
}

/*
 * Adds hashes by the core and by the rule. Some are extremes or next to block
 * bounds.
 */
static void
compare_rule(const bf_params *params, uint64_t *state)
{
	bf_shape	shape = bf_shape_of(params);
	size_t		size = params->m / 8;
	uint8_t    *bits = allocate(size);
	uint8_t    *wanted = allocate(size);
	uint8_t    *shared = allocate(size);

	for (int i = 0; i < 60; i++)
	{
		uint64_t	hash = next_random(state);

		if (i < 20)
			hash = i < 10 ? (uint64_t) i : (uint64_t) -i;
		else if (i < 40)
			hash = (UINT64_MAX / shape.nblocks) * random_below(state, shape.nblocks) +
				random_below(state, 3) - 1;
		bf_bits_prefetch(bits, &shape, hash);
		bf_bits_add(bits, &shape, hash);
		bf_bits_add_shared(shared, &shape, hash);
		ref_add(wanted, params, hash);
		each(bf_block_of(&shape, hash) < shape.nblocks, "block of hash %" PRIu64, hash);
		each(bf_bits_contain(bits, &shape, hash), "hash %" PRIu64 " is lost", hash);
	}
	each(memcmp(bits, wanted, size) == 0 && memcmp(shared, wanted, size) == 0,
		 "layout %d, k %" PRIu32 ", m %" PRIu64, (int) params->layout, params->k, params->m);
	for (int i = 0; i < 200; i++)
	{
		uint64_t	hash = next_random(state);

		each(bf_bits_contain(bits, &shape, hash) == ref_contains(bits, params, hash),
			 "probe for %" PRIu64, hash);
	}
	free(bits);
	free(wanted);
	free(shared);
}

static void
test_rule(void)
{
	uint64_t	state = 2;

	for (uint32_t k = 1; k <= 32; k++)
	{
		for (uint64_t units = 1; units <= 1000; units = units * 3 / 2 + 1)
		{
			bf_params	blocked = params_of(BF_BLOCKED, k, units * 512);
			bf_params	classic = params_of(BF_CLASSIC, k, units * 64);

			compare_rule(&blocked, &state);
			compare_rule(&classic, &state);
		}
	}
	/* Classic filters of one block of the blocked layout. */
	for (uint32_t k = 1; k <= 32; k++)
	{
		bf_params	classic = params_of(BF_CLASSIC, k, 512);

		compare_rule(&classic, &state);
	}
	passed("adding and probing follow the rule, for every k and many sizes");
}

/* The block follows the format, up to the largest number of blocks. */
static void
test_block_of(void)
{
	uint64_t	state = 3;

	for (int i = 0; i < 100000; i++)
	{
		bf_shape	shape = {.nblocks = (uint32_t) (1 + random_below(&state, 1 << 22)),
			.block_bits = 512, .k = 1};
		uint64_t	hash = next_random(&state) >> (i % 8 == 0 ? i % 64 : 0);
		uint64_t	next = hash + random_below(&state, UINT64_MAX - hash);
		uint64_t	block = (uint64_t) ((uint128) (hash >> 32) * shape.nblocks >> 32);

		each(bf_block_of(&shape, hash) == block, "block of %" PRIu64, hash);
		each(bf_block_offset(&shape, hash) == block * 64, "offset of %" PRIu64, hash);
		each(bf_block_of(&shape, next) >= block, "not monotone at %" PRIu64, hash);
	}
	passed("blocks are as the format says, and monotone in the hash");
}

/*
 * Chi-square of counts that should be equal. With this many degrees of
 * freedom it is nearly normal, and 5 sigma do not happen by chance.
 */
static void
even(const uint64_t *counts, size_t cells, const char *name)
{
	double		total = 0;
	double		sum = 0;

	for (size_t i = 0; i < cells; i++)
		total += (double) counts[i];
	for (size_t i = 0; i < cells; i++)
		sum += pow((double) counts[i] - total / (double) cells, 2);
	sum = (sum / (total / (double) cells) - (double) (cells - 1)) / sqrt(2.0 * (double) (cells - 1));
	ok(fabs(sum) < 5, "%s: %.1f sigma from even", name, sum);
}

static uint64_t
only_bit(const uint8_t *bits, size_t size)
{
	for (size_t i = 0; i < size; i++)
	{
		for (uint64_t j = 0; j < 8; j++)
		{
			if (bits[i] >> j & 1)
				return 8 * i + j;
		}
	}
	return UINT64_MAX;
}

/* The first bit that the core sets for an element. */
static uint64_t
first_bit(const bf_shape *shape, uint64_t hash)
{
	uint8_t		block[512] = {0};
	bf_shape	single = *shape;

	single.k = 1;
	bf_block_add(block, &single, hash);
	return only_bit(block, shape->block_bits / 8);
}

static void
test_uniform(void)
{
	enum {HASHES = 200000};
	static uint64_t blocks[1000],
				bits[512],
				classic[960],
				pairs[16 * 16],
				joint[20 * 16];
	bf_shape	shape = {.nblocks = 1000, .block_bits = 512, .k = 1};
	bf_shape	odd = {.nblocks = 1, .block_bits = 960, .k = 1};

	for (uint64_t i = 0; i < HASHES; i++)
	{
		uint64_t	hash = bf_hash_word(i, 0);
		uint64_t	bit = first_bit(&shape, hash);

		blocks[bf_block_of(&shape, hash)]++;
		bits[bit]++;
		classic[first_bit(&odd, hash)]++;
		/* An element's second bit is the first bit of the product. */
		pairs[bit / 32 * 16 + first_bit(&shape, hash * BF_GENERATOR) / 32]++;
		joint[bf_block_of(&shape, hash) / 50 * 16 + bit / 32]++;
	}
	even(blocks, 1000, "blocks of 1000");
	even(bits, 512, "bits of 512");
	even(classic, 960, "bits of a classic filter of 960");
	even(pairs, 16 * 16, "first and second bit");
	even(joint, 20 * 16, "block and bit");
}

/*
 * The distribution of all 32 bits of an element, and how often two of them
 * coincide.
 */
static void
test_all_throws(void)
{
	enum {HASHES = 20000};
	static uint64_t bits[512];
	bf_params	params = params_of(BF_BLOCKED, 32, 512);
	bf_shape	shape = bf_shape_of(&params);
	sample		distinct = {0};
	double		expected = 512 * (1 - pow(1 - 1.0 / 512, 32));

	for (uint64_t i = 0; i < HASHES; i++)
	{
		uint8_t		block[64] = {0};

		bf_block_add(block, &shape, bf_hash_word(i, 1));
		for (uint64_t bit = 0; bit < 512; bit++)
			bits[bit] += ref_is_set(block, bit);
		sample_add(&distinct, (double) ref_count(block, 64));
	}
	even(bits, 512, "all bits of elements with k = 32");
	ok(fabs(sample_mean(&distinct) / expected - 1) < 0.005,
	   "32 throws set %.3f different bits, %.3f by theory", sample_mean(&distinct), expected);
}

static void
test_no_false_negative(void)
{
	for (uint32_t k = 1; k <= 32; k += k < 8 ? 1 : 6)
	{
		for (int layout = 0; layout < 2; layout++)
		{
			bf_params	params = params_of((bf_layout) layout, k, 512 * 77);
			bf_shape	shape = bf_shape_of(&params);
			uint8_t    *bits = allocate(params.m / 8);

			for (uint64_t i = 0; i < 5000; i++)
				bf_bits_add(bits, &shape, bf_hash_word(i, k));
			for (uint64_t i = 0; i < 5000; i++)
				each(bf_bits_contain(bits, &shape, bf_hash_word(i, k)), "element %" PRIu64, i);
			free(bits);
		}
	}
	passed("no false negative");
}

int
main(void)
{
	test_known_hashes();
	test_scale();
	test_rule();
	test_block_of();
	test_uniform();
	test_all_throws();
	test_no_false_negative();
	return done();
}
