/*
 * sizing.c
 *		Expected false-positive rates, and the sizes that keep them.
 */
#include "sizing.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Up to this many bits the rate of a classic filter is computed exactly.  Above,
 * the textbook formula with a second-order correction errs by less than 0.1 %.
 */
#define EXACT_BITS 4096

/* A rate of at least this counts as 1. */
#define SATURATED 0.9999

/*
 * A block of this many elements counts as full.  With k = 1, the worst case,
 * 0.03 % of its bits are still unset.
 */
#define BLOCK_TABLE_SIZE 4096

/* Sizes per element are rounded up to these fractions of a bit. */
#define PARTS_PER_BIT UINT64_C(1024)
#define PARTS_PER_BLOCK (PARTS_PER_BIT * BF_BLOCK_BITS)
#define MOST_PARTS (PARTS_PER_BIT * BF_MAX_BITS)	/* in the largest filter */

_Static_assert(2 * MOST_PARTS + PARTS_PER_BLOCK < UINT64_MAX / 2, "sums of parts do not overflow");

/* A number of blocks has at most this many significant bits. */
#define SIGNIFICANT_BITS 7

/*
 * The rate of one block of the blocked layout by its number of elements,
 * computed on demand: rate[0 .. count - 1] are valid.
 */
typedef struct block_rates
{
	uint32_t	k;
	uint32_t	count;
	double		hit[BF_MAX_K + 1];
	double		covered[BF_MAX_K + 1];	/* with count - 1 elements */
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

/* Sets hit[e] to the probability that k random bits are e distinct ones. */
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
 * covered[e] is the probability that e given bits are all set.  This updates it
 * for one more element, which sets k random bits.  A random bit is one of e
 * given bits with probability e / bits.  No term is negative, so small rates
 * suffer no cancellation.
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
start_block_rates(block_rates *table, uint32_t k)
{
	distinct_hits(k, BF_BLOCK_BITS, table->hit);
	start_covering(k, table->covered);
	table->k = k;
	table->rate[0] = 0;
	table->count = 1;
}

static double
block_rate(block_rates *table, uint64_t elements)
{
	while (elements >= table->count && table->count < BLOCK_TABLE_SIZE &&
		   table->rate[table->count - 1] < SATURATED)
	{
		cover(table->k, BF_BLOCK_BITS, table->covered);
		table->rate[table->count++] = rate_of(table->k, table->hit, table->covered);
	}
	return elements < table->count ? table->rate[elements] : 1;
}

/*
 * The rate of a large block.  The number of set bits has mean mu and a known
 * variance (Johnson and Kotz 1977, occupancy).  To second order, the mean of
 * its k-th power is that of a lognormal variable.  empty is the probability
 * that a bit is unset.  Two bits are both unset with probability
 * empty^2 (1 + joint).  expm1 and log1p avoid cancellation.
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

double
bf_classic_rate(uint32_t k, uint64_t m, uint64_t n)
{
	double		hit[BF_MAX_K + 1];
	double		covered[BF_MAX_K + 1];
	double		rate = 0;

	assert(k >= 1 && k <= BF_MAX_K && m > 1);
	if (n == 0)
		return 0;
	if (m > EXACT_BITS)
		return fmin(rate_of_large_block(k, (double) m, (double) n), 1);

	distinct_hits(k, (double) m, hit);
	start_covering(k, covered);
	for (uint64_t i = 0; i < n && rate < SATURATED; i++)
	{
		cover(k, (double) m, covered);
		rate = rate_of(k, hit, covered);
	}
	return rate < SATURATED ? rate : 1;
}

/*
 * The mean rate of infinitely many blocks with load elements per block on
 * average: a block holds j elements with Poisson probability.  Each weight
 * follows from its neighbor, starting at the most probable j, and the sum is
 * normalized at the end.  This avoids factorials and underflow.
 */
static double
rate_of_many_blocks(block_rates *table, double load)
{
	const double negligible = 1e-22;
	uint64_t	mode = (uint64_t) load;
	double		total = 0;
	double		sum = 0;
	double		weight = 1;

	for (uint64_t j = mode; weight > negligible; j++)
	{
		total += weight;
		sum += weight * block_rate(table, j);
		weight *= load / (double) (j + 1);
	}
	weight = 1;
	for (uint64_t j = mode; j > 0 && weight > negligible; j--)
	{
		weight *= (double) j / load;
		total += weight;
		sum += weight * block_rate(table, j - 1);
	}
	return sum / total;
}

/* The rate of one block of load elements, interpolated linearly. */
static double
rate_of_one_block(block_rates *table, double load)
{
	uint64_t	whole = (uint64_t) load;
	double		rate = block_rate(table, whole);

	return rate + (load - (double) whole) * (block_rate(table, whole + 1) - rate);
}

/*
 * In the blocked layout, k hash functions need the fewest bits at rates from
 * rate_bound[k] down to rate_bound[k + 1].  At BF_MIN_RATE k is 22.  test/unit
 * derives this table from the model.
 */
static const double rate_bound[BF_MAX_K + 1] = {
	1, 1, 0.38141, 0.183453, 0.0890054, 0.0428406, 0.0203097, 0.00943578,
	0.00427845, 0.00188661, 8.06525e-04, 3.33382e-04, 1.32950e-04, 5.10606e-05,
	1.88604e-05, 6.69393e-06, 2.28177e-06, 7.46925e-07, 2.34870e-07,
	7.09883e-08, 2.06434e-08, 5.78309e-09, 1.56304e-09
};

uint32_t
bf_blocked_k(double rate)
{
	uint32_t	k = 1;

	assert(rate > 0 && rate < 1);
	while (rate < rate_bound[k + 1])
		k++;
	return k;
}

uint32_t
bf_classic_k(double rate)
{
	double		best = floor(-log2(rate) + 0.5);

	assert(rate > 0 && rate < 1);
	return best < 1 ? 1 : best > BF_MAX_K ? BF_MAX_K : (uint32_t) best;
}

/*
 * True if any number of blocks keeps the rate with this many parts per element.
 * The more blocks there are, the more their numbers of elements vary.  Where the
 * rate of a block is convex in that number, this raises the mean rate; where it
 * is concave, from a fill of 1 - 1 / k on, this lowers it.  So one block and
 * infinitely many blocks are the extremes.
 */
static bool
enough_parts(const bf_solution *question, block_rates *table, uint64_t parts)
{
	double		load = (double) PARTS_PER_BLOCK / (double) parts;

	return rate_of_one_block(table, load) <= question->rate &&
		rate_of_many_blocks(table, load) <= question->rate;
}

static bool
enough_words(const bf_solution *question, block_rates *table, uint64_t words)
{
	(void) table;
	return bf_classic_rate(question->k, words * BF_WORD_BITS, question->given) <= question->rate;
}

static bool
too_many_elements(const bf_solution *question, block_rates *table, uint64_t n)
{
	(void) table;
	return bf_classic_rate(question->k, question->given, n) > question->rate;
}

typedef bool (*bf_predicate) (const bf_solution *, block_rates *, uint64_t);

/* The least number in low + 1 .. high - 1 that holds() accepts, else high. */
static uint64_t
least(bf_predicate holds, const bf_solution *question, uint64_t low, uint64_t high)
{
	block_rates table;

	assert(low < high);
	start_block_rates(&table, question->k);
	while (high - low > 1)
	{
		uint64_t	middle = low + (high - low) / 2;

		if (holds(question, &table, middle))
			high = middle;
		else
			low = middle;
	}
	return high;
}

/* Bisects from where rates are fast to compute: few elements and many bits. */
static uint64_t
solve(const bf_solution *question)
{
	const uint64_t most_words = BF_MAX_BITS / BF_WORD_BITS;
	uint64_t	number = 1;

	switch (question->unknown)
	{
		case BF_CLASSIC_BITS:
			number = least(enough_words, question, 0, most_words + 1);
			return number > most_words ? 0 : number * BF_WORD_BITS;
		case BF_CLASSIC_CAPACITY:
			while (!too_many_elements(question, NULL, number))
				number *= 2;
			return least(too_many_elements, question, number / 2, number) - 1;
		default:
			return least(enough_parts, question, 0, 2 * MOST_PARTS);
	}
}

/* Solves with a cache; a new solution replaces the oldest one. */
static uint64_t
solve_cached(bf_solutions *solutions, bf_unknown unknown, uint32_t k, double rate, uint64_t given)
{
	bf_solution question = {.unknown = unknown, .k = k, .rate = rate, .given = given};
	bf_solution *solution = solutions->solution;

	assert(k >= 1 && k <= BF_MAX_K && rate > 0 && rate < 1);
	for (int i = 0; i < BF_SOLUTIONS; i++, solution++)
	{
		if (solution->unknown == unknown && solution->k == k && solution->rate == rate &&
			solution->given == given)
			return solution->answer;
	}
	solution = &solutions->solution[solutions->oldest];
	solutions->oldest = (solutions->oldest + 1) % BF_SOLUTIONS;
	question.answer = solve(&question);
	*solution = question;
	return question.answer;
}

static uint64_t
round_up_blocks(uint64_t nblocks)
{
	uint64_t	unit = 1;

	while (nblocks >= unit << SIGNIFICANT_BITS)
		unit *= 2;
	return (nblocks + unit - 1) / unit * unit;
}

uint64_t
bf_blocked_bits(bf_solutions *solutions, uint32_t k, double rate, uint64_t n)
{
	uint64_t	parts = solve_cached(solutions, BF_PARTS_PER_ELEMENT, k, rate, 0);

	if (n > MOST_PARTS / parts)
		return 0;
	return round_up_blocks((n * parts + PARTS_PER_BLOCK - 1) / PARTS_PER_BLOCK) * BF_BLOCK_BITS;
}

uint64_t
bf_classic_bits(bf_solutions *solutions, uint32_t k, double rate, uint64_t n)
{
	return solve_cached(solutions, BF_CLASSIC_BITS, k, rate, n);
}

uint64_t
bf_blocked_capacity(bf_solutions *solutions, uint32_t k, double rate, uint64_t m)
{
	return PARTS_PER_BIT * m / solve_cached(solutions, BF_PARTS_PER_ELEMENT, k, rate, 0);
}

uint64_t
bf_classic_capacity(bf_solutions *solutions, uint32_t k, double rate, uint64_t m)
{
	return solve_cached(solutions, BF_CLASSIC_CAPACITY, k, rate, m);
}
