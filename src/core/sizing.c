/*
 * sizing.c
 *		The theory of false-positive rates, and its inversion.
 */
#include "sizing.h"

#include <math.h>
#include <stddef.h>

/*
 * Up to this many bits the rate of a block is computed exactly; above, the
 * textbook's formula corrected to second order is off by less than 0.1 %.
 */
#define EXACT_BITS 4096

/* A block this likely to answer yes is taken for one that always does. */
#define SATURATED 0.9999

/*
 * A block that holds more elements than this is taken for full; with k = 1 it
 * has 0.03 % of its bits left.
 */
#define BLOCK_TABLE_SIZE 4096

/* The rate of one block of the blocked layout, by how many elements it holds. */
typedef struct block_rates
{
	uint32_t	count;			/* beyond the table the rate is taken as 1 */
	double		rate[BLOCK_TABLE_SIZE];
} block_rates;

static double
integer_power(double base, uint32_t exponent)
{
	double		result = 1;

	for (; exponent > 0; exponent >>= 1)
	{
		if (exponent & 1)
			result *= base;
		base *= base;
	}
	return result;
}

/*
 * hit[e] becomes the probability that k throws into bits bits hit exactly e
 * distinct ones.
 */
static void
distinct_hits(uint32_t k, double bits, double hit[BF_MAX_K + 1])
{
	for (uint32_t e = 0; e <= k; e++)
		hit[e] = e == 0;
	for (uint32_t thrown = 0; thrown < k; thrown++)
	{
		for (uint32_t e = k; e > 0; e--)
			hit[e] = hit[e] * (e / bits) + hit[e - 1] * (1 - (e - 1) / bits);
		hit[0] = 0;
	}
}

/*
 * covered[e] is the probability that e given bits are all set; this brings it
 * up to date for one element more, that is k throws.  A throw hits one of e
 * bits still missing with probability e / bits.  All terms are positive, so
 * nothing cancels, however small the rate.
 */
static void
cover(uint32_t k, double bits, double covered[BF_MAX_K + 1])
{
	for (uint32_t thrown = 0; thrown < k; thrown++)
		for (uint32_t e = k; e > 0; e--)
			covered[e] += (e / bits) * (covered[e - 1] - covered[e]);
}

static double
rate_of(uint32_t k, const double hit[], const double covered[])
{
	double		rate = 0;

	for (uint32_t e = 1; e <= k; e++)
		rate += hit[e] * covered[e];
	return rate;
}

static void
start_covering(uint32_t k, double covered[BF_MAX_K + 1])
{
	for (uint32_t e = 0; e <= k; e++)
		covered[e] = e == 0;
}

static void
tabulate_block_rates(uint32_t k, block_rates *table)
{
	double		hit[BF_MAX_K + 1];
	double		covered[BF_MAX_K + 1];

	distinct_hits(k, BF_BLOCK_BITS, hit);
	start_covering(k, covered);
	table->rate[0] = 0;
	table->count = 1;
	while (table->count < BLOCK_TABLE_SIZE && table->rate[table->count - 1] < SATURATED)
	{
		cover(k, BF_BLOCK_BITS, covered);
		table->rate[table->count++] = rate_of(k, hit, covered);
	}
}

/*
 * The rate of a large single block: the number of occupied bits has mean mu
 * and variance sigma^2 (Johnson and Kotz 1977, occupancy), and the mean of
 * its k-th power is that of a lognormal variable to second order.  empty is
 * the probability that a bit is not set, and joint how much likelier, less 1,
 * it is for two bits at once than if they were independent; written by expm1
 * and log1p nothing cancels that matters.
 */
static double
rate_of_large_block(uint32_t k, double bits, double n)
{
	double		throws = k * n;
	double		filled = -expm1(throws * log1p(-1 / bits));
	double		empty = 1 - filled;
	double		joint = expm1(throws * log1p(-1 / ((bits - 1) * (bits - 1))));
	double		mu = bits * filled;
	double		variance = bits * empty * filled + bits * (bits - 1) * empty * empty * joint;
	double		relative = variance > 0 ? variance / (mu * mu) : 0;

	return integer_power(filled, k) * exp(0.5 * k * (k - 1) * relative);
}

static double
rate_of_single_block(uint32_t k, uint64_t bits, uint64_t n)
{
	double		hit[BF_MAX_K + 1];
	double		covered[BF_MAX_K + 1];
	double		rate = 0;

	if (n == 0)
		return 0;
	if (bits > EXACT_BITS)
		return fmin(rate_of_large_block(k, (double) bits, (double) n), 1);

	distinct_hits(k, (double) bits, hit);
	start_covering(k, covered);
	for (uint64_t i = 0; i < n && rate < SATURATED; i++)
	{
		cover(k, (double) bits, covered);
		rate = rate_of(k, hit, covered);
	}
	return rate < SATURATED ? rate : 1;
}

/*
 * The mean of the block rates when n elements fall into nblocks > 1 blocks:
 * a block holds j of them with binomial probability.  The weights are built
 * from the most probable j outwards by their ratios and normalised at the
 * end, which needs no factorial and loses no digit.
 */
static double
rate_of_blocks(const block_rates *table, uint64_t nblocks, uint64_t n)
{
	const double negligible = 1e-22;
	double		odds = 1 / ((double) nblocks - 1);
	uint64_t	mode = (uint64_t) (((double) n + 1) / (double) nblocks);
	double		total = 0;
	double		sum = 0;
	double		weight = 1;

	if (mode > 2 * (uint64_t) table->count + 64)
		return 1;				/* not one block in 10^20 is that far below */

	for (uint64_t j = mode; j <= n && weight > negligible; j++)
	{
		total += weight;
		sum += weight * (j < table->count ? table->rate[j] : 1);
		weight *= (double) (n - j) / (double) (j + 1) * odds;
	}
	weight = 1;
	for (uint64_t j = mode; j > 0 && weight > negligible; j--)
	{
		weight *= (double) j / ((double) (n - j + 1) * odds);
		total += weight;
		sum += weight * (j - 1 < table->count ? table->rate[j - 1] : 1);
	}
	return sum / total;
}

/* The rate of either layout, given the table that only BF_BLOCKED needs. */
static double
rate_with_table(bf_layout layout, const block_rates *table, uint32_t k,
				uint64_t m, uint64_t n)
{
	if (layout == BF_CLASSIC)
		return rate_of_single_block(k, m, n);
	if (m == BF_BLOCK_BITS)
		return n < table->count ? table->rate[n] : 1;
	return rate_of_blocks(table, m / BF_BLOCK_BITS, n);
}

/*
 * Blocked: k hash functions take the fewest bits at rates from rate_bound[k]
 * down to rate_bound[k + 1]; 22 are best even at BF_MIN_RATE.  test/unit
 * derives the table anew from the model.
 */
static const double rate_bound[BF_MAX_K + 1] = {
	1, 1, 0.38141, 0.183453, 0.0890054, 0.0428406, 0.0203097, 0.00943578,
	0.00427845, 0.00188661, 8.06525e-04, 3.33382e-04, 1.32950e-04, 5.10606e-05,
	1.88604e-05, 6.69393e-06, 2.28177e-06, 7.46925e-07, 2.34870e-07,
	7.09883e-08, 2.06434e-08, 5.78309e-09, 1.56304e-09
};

uint32_t
bf_k_for_rate(bf_layout layout, double rate)
{
	uint32_t	k;

	if (layout == BF_CLASSIC)
	{
		double		best = floor(-log2(rate) + 0.5);

		return best < 1 ? 1 : best > BF_MAX_K ? BF_MAX_K : (uint32_t) best;
	}
	for (k = 1; rate < rate_bound[k + 1]; k++)
		;
	return k;
}

double
bf_expected_rate(bf_layout layout, uint32_t k, uint64_t m, uint64_t n)
{
	block_rates table;

	if (layout == BF_BLOCKED)
		tabulate_block_rates(k, &table);
	return rate_with_table(layout, &table, k, m, n);
}

uint64_t
bf_bits_for(bf_layout layout, uint32_t k, double rate, uint64_t n)
{
	uint64_t	unit = layout == BF_BLOCKED ? BF_BLOCK_BITS : BF_WORD_BITS;
	uint64_t	enough = 1;		/* in units, once the first loop is done */
	uint64_t	too_few;
	block_rates table;

	if (layout == BF_BLOCKED)
		tabulate_block_rates(k, &table);
	while (rate_with_table(layout, &table, k, enough * unit, n) > rate)
	{
		enough *= 2;
		if (enough * unit > BF_MAX_BITS)
			return 0;
	}

	too_few = enough / 2;
	while (enough - too_few > 1)
	{
		uint64_t	middle = too_few + (enough - too_few) / 2;

		if (rate_with_table(layout, &table, k, middle * unit, n) > rate)
			too_few = middle;
		else
			enough = middle;
	}
	return enough * unit;
}

uint64_t
bf_capacity(bf_layout layout, uint32_t k, double rate, uint64_t m)
{
	uint64_t	fits = 0;
	uint64_t	too_many = 1;
	block_rates table;

	if (layout == BF_BLOCKED)
		tabulate_block_rates(k, &table);
	while (rate_with_table(layout, &table, k, m, too_many) <= rate)
	{
		fits = too_many;
		too_many *= 2;
	}
	while (too_many - fits > 1)
	{
		uint64_t	middle = fits + (too_many - fits) / 2;

		if (rate_with_table(layout, &table, k, m, middle) <= rate)
			fits = middle;
		else
			too_many = middle;
	}
	return fits;
}
