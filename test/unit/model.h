/*
 * model.h
 *		The exact mean of the false-positive rate, computed differently than
 *		in doc/format.md: a Markov chain follows the number of bits set in a
 *		block throw by throw.
 */
#ifndef MODEL_H
#define MODEL_H

#include "reference.h"

#define MOST_ELEMENTS 4100		/* in a block, at most */

/*
 * rates[j] is the rate of a block of that many bits with j elements: the mean
 * of (share of bits set)^k after k * j throws.
 */
static inline void
chain_rates(uint32_t bits, uint32_t k, uint32_t elements, double *rates)
{
	double	   *p = allocate((bits + 1) * sizeof(*p));
	double	   *share = allocate((bits + 1) * sizeof(*share));

	p[0] = 1;
	for (uint32_t x = 0; x <= bits; x++)
		share[x] = pow((double) x / bits, k);
	for (uint32_t t = 0; t <= k * elements; t++)
	{
		uint32_t	most = t < bits ? t : bits;

		if (t % k == 0)
		{
			rates[t / k] = 0;
			for (uint32_t x = 0; x <= most; x++)
				rates[t / k] += p[x] * share[x];
		}
		for (uint32_t x = most < bits ? most + 1 : bits; x > 0; x--)
			p[x] = p[x] * x / bits + p[x - 1] * (bits - x + 1) / bits;
		p[0] = 0;
	}
	free(p);
	free(share);
}

/*
 * The rate of a block of 512 bits. Beyond the table the block is practically
 * full.
 */
static inline double
block_rate(uint32_t k, uint64_t elements)
{
	static double rates[BF_MAX_K + 1][MOST_ELEMENTS];
	uint32_t	full = 4000 / k + 40;

	if (rates[k][full] == 0)
		chain_rates(512, k, full, rates[k]);
	return rates[k][elements < full ? elements : full];
}

static inline double
binomial(uint64_t n, double q, uint32_t j)
{
	double		rest = (double) (n - j);

	if (q == 1)
		return j == n;
	return exp(lgamma((double) n + 1) - lgamma(j + 1.0) - lgamma(rest + 1) +
			   j * log(q) + rest * log1p(-q));
}

/* The rate of n elements in that many blocks of 512 bits. */
static inline double
model_rate(uint32_t k, uint64_t nblocks, uint64_t n)
{
	double		mean = (double) n / (double) nblocks;
	double		rate = 0;

	for (uint32_t j = 0; j <= n; j++)
	{
		double		weight = binomial(n, 1.0 / (double) nblocks, j);

		if (j > mean && weight < 1e-40)
			break;
		rate += weight * block_rate(k, j);
	}
	return rate;
}

/* The limit of many blocks, for a given mean number of elements in each. */
static inline double
limit_rate(uint32_t k, double load)
{
	double		rate = 0;
	double		total = 0;

	for (uint32_t j = 0; j < load + 40 * sqrt(load) + 100; j++)
	{
		double		weight = exp(j * log(load) - load - lgamma(j + 1.0));

		total += weight;
		rate += weight * block_rate(k, j);
	}
	return rate / total;
}

/* Bits per element that keep p in the limit of many blocks. */
static inline double
limit_bits(uint32_t k, double p)
{
	double		low = 1e-6;
	double		high = 1000.0 / k;

	for (int i = 0; i < 60; i++)
	{
		double		middle = (low + high) / 2;

		*(limit_rate(k, middle) <= p ? &low : &high) = middle;
	}
	return 512 / low;
}

/* The rate of n elements in a filter of either layout; a classic one of up to 4096 bits. */
static inline double
exact_rate(bf_layout layout, uint32_t k, uint64_t m, uint32_t n)
{
	double	   *rates;
	double		rate;

	if (layout == BF_BLOCKED)
		return model_rate(k, m / 512, n);
	rates = allocate((n + 1) * sizeof(*rates));
	chain_rates((uint32_t) m, k, n, rates);
	rate = rates[n];
	free(rates);
	return rate;
}

#endif							/* MODEL_H */
