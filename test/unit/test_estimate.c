/*
 * test_estimate.c
 *		Cardinality and current rate, against known sets.
 */
#include "block.h"
#include "estimate.h"
#include "hash.h"
#include "number_bulk.h"
#include "numbers.h"
#include "reference.h"
#include "tap.h"

static uint64_t next_word;		/* elements and probes never repeat */

static uint8_t *
build(const bf_params *params, uint64_t n)
{
	bf_shape	shape = bf_shape_of(params);
	uint8_t    *bits = allocate(params->m / 8);

	for (uint64_t i = 0; i < n; i++)
		bf_bits_add(bits, &shape, bf_hash_word(next_word++, params->seed));
	return bits;
}

/*
 * The mean estimate over sets is n, except for the bias of a logarithm. That
 * is Var(X) / (2 m k q^2) for X bits set of m, where q is the share of empty
 * bits. Throws exclude one another, so Var(X) is less than m q (1 - q).
 * Unequally loaded blocks add m q^2 (k a)^2 / 1024 at a = k n / m.
 */
static void
compare_cardinality(bf_layout layout, uint32_t k, uint64_t m, uint64_t n)
{
	bf_params	params = params_of(layout, k, m);
	bf_shape	shape = bf_shape_of(&params);
	sample		estimates = {0};
	double		load = (double) k * (double) n / (double) m;
	double		q = exp(-load);
	double		uneven = layout == BF_CLASSIC ? 0 : pow(k * load, 2) / 1024;
	double		bias = ((1 - q) / q + uneven) / (2.0 * k);
	uint64_t	sets = 1000000 / (n * k) + 30;

	for (uint64_t i = 0; i < sets; i++)
	{
		uint8_t    *bits = build(&params, n);

		sample_add(&estimates, bf_cardinality(&shape, ref_count(bits, m / 8)));
		free(bits);
	}
	each(fabs(sample_mean(&estimates) - (double) n) < 4 * sample_error(&estimates) + bias,
		 "layout %d, k %" PRIu32 ", m %" PRIu64 ", n %" PRIu64 ": %.3f +- %.3f, bias to %.3f",
		 (int) layout, k, m, n, sample_mean(&estimates), sample_error(&estimates), bias);
}

static void
test_cardinality(bf_layout layout, const char *name)
{
	static const uint32_t ks[] = {1, 3, 6, 12, 32};
	static const double fills[] = {0.02, 0.2, 0.5, 0.75};

	for (int i = 0; i < 5; i++)
	{
		for (uint64_t m = 512; m <= 65536; m *= 16)
		{
			for (int j = 0; j < 4; j++)
				compare_cardinality(layout, ks[i], m,
									1 + (uint64_t) (-log(1 - fills[j]) * (double) m / ks[i]));
		}
	}
	passed(name);
}

/*
 * Many elements, where the textbook's formula would be wrong by k / 1024 for
 * blocks.
 */
static void
test_large_cardinality(void)
{
	for (int layout = 0; layout < 2; layout++)
	{
		bf_params	params = params_of((bf_layout) layout, 6, UINT64_C(1) << 22);
		bf_shape	shape = bf_shape_of(&params);
		uint8_t    *bits = build(&params, 400000);
		double		estimate = bf_cardinality(&shape, bf_popcount(bits, params.m / 8));

		/* The standard deviation is about 0.04 %. */
		ok(fabs(estimate / 400000 - 1) < 0.0025, "layout %d: 400000 elements, estimated %.0f",
		   layout, estimate);
		free(bits);
	}
}

/* The formula as doc/format.md writes it. It loses little precision here. */
static void
test_formula(void)
{
	for (uint32_t k = 1; k <= 32; k++)
	{
		for (uint64_t m = 512; m <= 51200; m *= 10)
		{
			for (int layout = 0; layout < 2; layout++)
			{
				bf_params	params = params_of((bf_layout) layout, k, m);
				bf_shape	shape = bf_shape_of(&params);
				long double B = layout == BF_CLASSIC ? (long double) m : 512;
				long double nblocks = (long double) m / B;

				for (uint64_t set = 1; set < m; set = set * 2 + 1)
				{
					long double wanted = logl(1 - (long double) set / (long double) m) /
						logl(1 - (1 - powl(1 - 1 / B, k)) / nblocks);

					each(fabsl(bf_cardinality(&shape, set) / wanted - 1) < 1e-9L,
						 "layout %d, k %" PRIu32 ", %" PRIu64 " of %" PRIu64 " bits",
						 layout, k, set, m);
				}
				each(bf_cardinality(&shape, 0) == 0, "no bit of %" PRIu64, m);
				each(isinf(bf_cardinality(&shape, m)), "all of %" PRIu64 " bits", m);
				each(bf_cardinality(&shape, m - 1) < INFINITY, "all but one of %" PRIu64, m);
			}
		}
	}
	passed("cardinality from bits set, by the formula");
}

static uint64_t
full_blocks(const bf_shape *shape, const uint8_t *bits)
{
	size_t		size = shape->block_bits / 8;
	uint64_t	count = 0;

	for (size_t i = 0; i < shape->nblocks; i++)
		count += ref_count(bits + i * size, size) == shape->block_bits;
	return count;
}

/* The estimate for the filter's layout. */
static double
current_rate(const bf_params *params, const uint8_t *bits)
{
	bf_shape	shape = bf_shape_of(params);
	bf_tally   *tally = allocate(sizeof(*tally));
	uint64_t	half = params->m / 8 / 2 / 64 * 64;
	double		rate;

	bf_tally_add(tally, &shape, bits, half);
	bf_tally_add(tally, &shape, bits + half, params->m / 8 - half);
	each(bf_tally_bits(tally, &shape) == ref_count(bits, params->m / 8), "bits of a tally");
	each(bf_tally_full_blocks(tally, &shape) == full_blocks(&shape, bits), "full blocks of a tally");
	rate = bf_current_rate(tally, &shape);
	free(tally);
	return rate;
}

/* Compares with the mean over blocks, and with probes for absent elements. */
static void
compare_rate(bf_layout layout, uint32_t k, uint64_t m, double load)
{
	enum {PROBES = 150000};
	bf_params	params = params_of(layout, k, m);
	bf_shape	shape = bf_shape_of(&params);
	uint8_t    *bits = build(&params, (uint64_t) (load * (double) m / k));
	double		rate = current_rate(&params, bits);
	size_t		block = shape.block_bits / 8;
	double		mean = 0;
	double		found = 0;

	for (size_t i = 0; i < shape.nblocks; i++)
		mean += pow((double) ref_count(bits + i * block, block) / shape.block_bits, k);
	mean /= shape.nblocks;
	each(fabs(rate - mean) <= 1e-9 * mean, "layout %d, k %" PRIu32 ": %g, by blocks %g",
		 (int) layout, k, rate, mean);

	for (int i = 0; i < PROBES; i++)
		found += bf_bits_contain(bits, &shape, bf_hash_word(next_word++, params.seed));
	found /= PROBES;
	each(fabs(found - rate) < 0.03 * rate + 4 * sqrt(rate / PROBES),
		 "layout %d, k %" PRIu32 ", m %" PRIu64 ": %g, probed %g", (int) layout, k, m, rate, found);
	free(bits);
}

static void
test_rate(void)
{
	for (uint32_t k = 1; k <= 32; k = k * 3 / 2 + 1)
	{
		for (int layout = 0; layout < 2; layout++)
		{
			compare_rate((bf_layout) layout, k, 512 * 40, 0.7);
			compare_rate((bf_layout) layout, k, 512 * 1000, 1.1);
			compare_rate((bf_layout) layout, k, 512 * 1000, 3);
		}
	}
	passed("current rate: by blocks and by probing");
}

static void
test_rate_ends(void)
{
	for (int layout = 0; layout < 2; layout++)
	{
		bf_params	params = params_of((bf_layout) layout, 7, 5120);
		uint8_t    *bits = allocate(640);

		ok(current_rate(&params, bits) == 0, "layout %d: an empty filter has rate 0", layout);
		memset(bits + 128, 255, 128);
		ok(layout == BF_CLASSIC || current_rate(&params, bits) == 0.2, "layout %d: two of ten blocks are full", layout);
		memset(bits, 255, 640);
		ok(current_rate(&params, bits) == 1, "layout %d: a full one has rate 1", layout);
		free(bits);
	}
	passed("the histograms of an empty and of a full filter");
	ok(bf_current_rate_sparse(0) == 0, "no hash, no false positive");
	ok(bf_current_rate_sparse(1) == 1 / 18446744073709551616.0, "one hash of 2^64");
	ok(bf_current_rate_sparse(1 << 24) == 1 / 1099511627776.0, "2^24 hashes of 2^64");
}

static void
test_intersection(void)
{
	ok(bf_intersection_of(10, 7, 12) == 5, "inclusion and exclusion");
	ok(bf_intersection_of(10, 7, 17) == 0, "disjoint");
	ok(bf_intersection_of(10, 7, 18) == 0, "never below 0");
	ok(bf_intersection_of(10, 7, 10) == 7, "contained");
	ok(bf_intersection_of(10, 7, 9.5) == 7, "never above the smaller set");
	ok(bf_intersection_of(7, 10, 9.5) == 7, "never above the smaller set, in the other order");
	ok(bf_intersection_of(0, 0, 0) == 0, "two empty sets");
	ok(isnan(bf_intersection_of(INFINITY, 7, INFINITY)), "first filter saturated: unknown");
	ok(isnan(bf_intersection_of(7, INFINITY, INFINITY)), "second filter saturated: unknown");
	ok(isnan(bf_intersection_of(INFINITY, INFINITY, INFINITY)), "both saturated: unknown");
	ok(isnan(bf_intersection_of(10, 7, INFINITY)), "only the union saturated: unknown");
}

/* Where an element's distinct positions are exactly known: k = 1. */
static void
test_total_of_one_position(void)
{
	for (int layout = 0; layout < 2; layout++)
	{
		bf_params	params = params_of((bf_layout) layout, 1, 5120);
		bf_shape	shape = bf_shape_of(&params);

		ok(bf_total(&shape, 0) == 0, "layout %d: nothing was added", layout);
		ok(fabs(bf_total(&shape, 12345) - 12345) < 1e-8, "layout %d: with one hash function the sum is the total",
		   layout);
	}
}

/* The formula as the format writes it. */
static void
test_total_formula(void)
{
	for (uint32_t k = 1; k <= 32; k++)
	{
		for (uint64_t m = 64; m <= UINT64_C(1) << 29; m *= 8)
		{
			for (int layout = m < 512; layout < 2; layout++)
			{
				bf_params	params = params_of((bf_layout) layout, k, m);
				bf_shape	shape = bf_shape_of(&params);
				long double B = layout == BF_CLASSIC ? (long double) m : 512;
				long double positions = B * (1 - powl(1 - 1 / B, k));

				/* 1 - x loses the last digits of long double, times B */
				for (uint64_t sum = 1; sum < UINT64_C(1) << 44; sum *= 31)
					each(fabsl(bf_total(&shape, sum) / ((long double) sum / positions) - 1) < 1e-9L,
						 "layout %d, k %" PRIu32 ", m %" PRIu64 ", sum %" PRIu64, layout, k, m, sum);
			}
		}
	}
	passed("total from the sum of numbers, by the formula");
}

/*
 * Elements that are added several times. The mean of the estimates over random
 * elements is the number of additions, although positions coincide.
 */
static void
compare_total(bf_layout layout, uint32_t k, uint64_t m)
{
	bf_params	params = params_of(layout, k, m);
	bf_shape	shape = bf_shape_of(&params);
	sample		ratios = {0};

	for (int i = 0; i < 300; i++)
	{
		uint8_t    *numbers = allocate(2 * m);
		uint64_t	added = 0;

		/* at 16 bits no number saturates */
		for (uint32_t j = 0; j < 40; j++)
		{
			bf_numbers_change(numbers, &shape, 16, bf_hash_word(next_word++, 0), BF_SUM, 1 + j % 3);
			added += 1 + j % 3;
		}
		sample_add(&ratios, bf_total(&shape, bf_sum_of_numbers(numbers, 2 * m, 16)) / (double) added);
		free(numbers);
	}
	each(fabs(sample_mean(&ratios) - 1) < 4.5 * sample_error(&ratios) + 1e-9,
		 "layout %d, k %" PRIu32 ", m %" PRIu64 ": %.5f +- %.5f", (int) layout, k, m, sample_mean(&ratios),
		 sample_error(&ratios));
}

static void
test_total(void)
{
	for (uint32_t k = 1; k <= 32; k = k * 3 / 2 + 1)
	{
		compare_total(BF_BLOCKED, k, 512);
		compare_total(BF_BLOCKED, k, 51200);
		compare_total(BF_CLASSIC, k, 64);
		compare_total(BF_CLASSIC, k, 2048);
	}
	passed("total of random elements with repetitions");
}

int
main(void)
{
	test_formula();
	test_cardinality(BF_BLOCKED, "blocked: cardinality of random sets");
	test_cardinality(BF_CLASSIC, "classic: cardinality of random sets");
	test_large_cardinality();
	test_rate();
	test_rate_ends();
	test_intersection();
	test_total_of_one_position();
	test_total_formula();
	test_total();
	return done();
}
