/*
 * test_sizing.c
 *		The model of the false-positive rate and what is derived from it.
 *
 * The reference follows the number of bits set in a block throw by throw, as
 * a Markov chain: exact too, but another way than the one of doc/format.md.
 */
#include <time.h>

#include "reference.h"
#include "sizing.h"
#include "tap.h"

#define MOST_ELEMENTS 4100		/* that the reference puts into a block */

/*
 * rates[j] = the rate of a block of so many bits that holds j elements:
 * the mean of (share of bits set)^k over all k * j throws.
 */
static void
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

static double	block_rates[BF_MAX_K + 1][MOST_ELEMENTS];

/* Fills block_rates[k] far beyond where a block is full, up to k = 32. */
static uint32_t
elements_for(uint32_t k)
{
	return 4000 / k + 40;
}

static double
binomial(uint64_t n, double q, uint32_t j)
{
	double		rest = (double) (n - j);

	if (q == 1)
		return j == n;
	return exp(lgamma((double) n + 1) - lgamma(j + 1.0) - lgamma(rest + 1) +
			   j * log(q) + rest * log1p(-q));
}

/* The rate of n elements in so many blocks of 512 bits. */
static double
model_rate(uint32_t k, uint64_t nblocks, uint64_t n)
{
	double		mean = (double) n / (double) nblocks;
	double		rate = 0;

	for (uint32_t j = 0; j <= n; j++)
	{
		double		weight = binomial(n, 1.0 / (double) nblocks, j);
		uint32_t	full = elements_for(k);

		if (j > mean && weight < 1e-40)
			break;
		rate += weight * block_rates[k][j < full ? j : full];
	}
	return rate;
}

/* The same for endlessly many blocks with so many elements on average. */
static double
limit_rate(uint32_t k, double load)
{
	double		rate = 0;
	double		total = 0;

	for (uint32_t j = 0; j <= elements_for(k); j++)
	{
		double		weight = exp(j * log(load) - load - lgamma(j + 1.0));

		total += weight;
		rate += weight * block_rates[k][j];
	}
	/* Blocks with even more elements are full. */
	return total < 0.999999 ? rate + 1 - total : rate;
}

/* Bits per element that keep p in a filter of endlessly many blocks. */
static double
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

static bool
near(double got, double wanted, double tolerance)
{
	return fabs(got - wanted) <= tolerance * fabs(wanted);
}

static void
test_exact_classic(void)
{
	static const uint32_t sizes[] = {64, 128, 192, 320, 512, 1024, 2048, 4096};
	static double rates[420];

	for (int i = 0; i < 8; i++)
	{
		for (uint32_t k = 1; k <= 32; k += k < 8 ? 1 : 4)
		{
			uint32_t	most = sizes[i] * 8 / k + 1;

			if (most > 400)
				most = 400;
			chain_rates(sizes[i], k, most, rates);
			for (uint32_t n = 0; n <= most; n += 1 + n / 4)
			{
				double		rate = bf_expected_rate(BF_CLASSIC, k, sizes[i], n);

				each(near(rate, rates[n], rates[n] < 0.99 ? 1e-9 : 1e-3),
					 "m %" PRIu32 ", k %" PRIu32 ", n %" PRIu32 ": %g, wanted %g",
					 sizes[i], k, n, rate, rates[n]);
			}
		}
	}
	passed("classic filters up to 4096 bits: the exact mean");
}

static void
test_exact_blocked(void)
{
	static const uint64_t counts[] = {1, 2, 3, 10, 1000, 100000};

	for (uint32_t k = 1; k <= 32; k++)
	{
		for (int i = 0; i < 6; i++)
		{
			for (uint64_t n = 1; n < 3500 * counts[i] / k; n = n * 3 / 2 + 1)
			{
				double		rate = bf_expected_rate(BF_BLOCKED, k, counts[i] * 512, n);
				double		wanted = model_rate(k, counts[i], n);

				/* Weights under 1e-22 may be left out, and blocks be taken for full. */
				each(fabs(rate - wanted) <= (wanted < 0.5 ? 1e-6 : 1e-3) * wanted + 1e-20,
					 "%" PRIu64 " blocks, k %" PRIu32 ", n %" PRIu64 ": %g, wanted %g",
					 counts[i], k, n, rate, wanted);
			}
		}
	}
	passed("blocked filters: the exact mean");
}

/* To second order is what is promised; third order is below 1e-3 even here. */
static void
test_second_order(void)
{
	static const uint32_t sizes[] = {4160, 8192};
	static double rates[1500];

	for (int i = 0; i < 2; i++)
	{
		for (uint32_t k = 3; k <= 32; k += k < 8 ? 2 : 8)
		{
			uint32_t	most = sizes[i] / k;

			if (most > 1400)
				most = 1400;
			chain_rates(sizes[i], k, most, rates);
			for (uint32_t n = most / 4; n <= most; n += most / 4)
			{
				double		rate = bf_expected_rate(BF_CLASSIC, k, sizes[i], n);

				each(near(rate, rates[n], 1e-3),
					 "m %" PRIu32 ", k %" PRIu32 ", n %" PRIu32 ": %g, wanted %g",
					 sizes[i], k, n, rate, rates[n]);
			}
		}
	}
	passed("larger classic filters: the mean to second order");
}

/* The rate of a filter of ideal throws, filled here and now. */
static double
simulated_rate(const bf_params *params, uint32_t n, uint64_t *state)
{
	uint32_t	bits = params->layout == BF_CLASSIC ? (uint32_t) params->m : 512;
	uint64_t	nblocks = params->m / bits;
	uint8_t    *filter = allocate(params->m / 8);
	double		rate = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	block = random_below(state, nblocks);

		for (uint32_t j = 0; j < params->k; j++)
			ref_set(filter, block * bits + random_below(state, bits));
	}
	for (uint64_t i = 0; i < nblocks; i++)
		rate += pow((double) ref_count(filter + i * bits / 8, bits / 8) / bits, params->k);
	free(filter);
	return rate / (double) nblocks;
}

static void
test_simulation(void)
{
	static const struct
	{
		bf_layout	layout;
		uint32_t	k;
		uint64_t	m;
		uint32_t	n;
	}			cases[] = {
		{BF_CLASSIC, 1, 64, 10}, {BF_CLASSIC, 7, 64, 4}, {BF_CLASSIC, 20, 192, 3},
		{BF_CLASSIC, 32, 64, 2}, {BF_CLASSIC, 6, 1024, 100}, {BF_CLASSIC, 10, 4608, 300},
		{BF_BLOCKED, 6, 512, 50}, {BF_BLOCKED, 3, 1024, 200}, {BF_BLOCKED, 9, 2560, 160},
		{BF_BLOCKED, 16, 5120, 130}, {BF_BLOCKED, 32, 1024, 20}, {BF_BLOCKED, 1, 1536, 500},
	};
	uint64_t	state = 1;

	for (int i = 0; i < 12; i++)
	{
		bf_params	params = params_of(cases[i].layout, cases[i].k, cases[i].m);
		double		rate = bf_expected_rate(params.layout, params.k, params.m, cases[i].n);
		sample		simulated = {0};

		for (int j = 0; j < 1500; j++)
			sample_add(&simulated, simulated_rate(&params, cases[i].n, &state));
		/* Where a few filters of many decide the mean, the sample tells its error badly. */
		ok(fabs(sample_mean(&simulated) - rate) < 4.5 * sample_error(&simulated),
		   "simulated: layout %d, k %" PRIu32 ", m %" PRIu64 ", n %" PRIu32
		   ": %.4g +- %.1g, expected %.4g", (int) params.layout, params.k, params.m, cases[i].n,
		   sample_mean(&simulated), sample_error(&simulated), rate);
	}
}

/* With many bits the textbook is right for classic filters and low for blocks. */
static void
test_textbook(void)
{
	for (uint32_t k = 1; k <= 32; k++)
	{
		for (uint64_t m = UINT64_C(1) << 22; m <= BF_MAX_BITS; m <<= 3)
		{
			uint64_t	n = (uint64_t) ((double) m * log(2) / k);
			double		textbook = pow(1 - exp(-(double) k * (double) n / (double) m), k);
			double		classic = bf_expected_rate(BF_CLASSIC, k, m, n);
			double		blocked = bf_expected_rate(BF_BLOCKED, k, m, n);

			each(near(classic, textbook, 1e-3), "k %" PRIu32 ", m %" PRIu64 ": %g, wanted %g",
				 k, m, classic, textbook);
			each(k == 1 || blocked > textbook, "k %" PRIu32 ", m %" PRIu64 ": %g, textbook %g",
				 k, m, blocked, textbook);
		}
	}
	passed("large filters against the textbook");
}

/* The table of doc/format.md, k with the most that p may be. */
static const double bounds[BF_MAX_K + 1] = {
	[2] = 0.38141, 0.183453, 0.0890054, 0.0428406, 0.0203097, 0.00943578, 0.00427845,
	0.00188661, 8.06525e-4, 3.33382e-4, 1.3295e-4, 5.10606e-5, 1.88604e-5, 6.69393e-6,
	2.28177e-6, 7.46925e-7, 2.3487e-7, 7.09883e-8, 2.06434e-8, 5.78309e-9, 1.56304e-9
};

static void
test_k_blocked(void)
{
	for (uint32_t k = 2; k <= 22; k++)
	{
		double		below = limit_bits(k - 1, bounds[k]);
		double		at = limit_bits(k, bounds[k]);
		double		fewer = (double) bf_capacity(BF_BLOCKED, k - 1, bounds[k], BF_MAX_BITS);
		double		more = (double) bf_capacity(BF_BLOCKED, k, bounds[k], BF_MAX_BITS);

		each(near(below, at, 1e-4), "k %" PRIu32 ": %.5f bits and %.5f", k, below, at);
		each(near(fewer, more, 1e-4), "k %" PRIu32 ": %.0f elements and %.0f", k, fewer, more);
		each(bf_k_for_rate(BF_BLOCKED, bounds[k] * (1 + 1e-5)) == k - 1, "above bound %" PRIu32, k);
		each(bf_k_for_rate(BF_BLOCKED, bounds[k] * (1 - 1e-5)) == k, "below bound %" PRIu32, k);
	}
	passed("k - 1 and k take the same bits at the bound of k");

	for (double p = BF_MAX_RATE; p >= BF_MIN_RATE; p *= 0.83)
	{
		uint32_t	k = bf_k_for_rate(BF_BLOCKED, p);
		double		load = 512 / limit_bits(k, p);

		for (uint32_t other = 1; other <= 32; other++)
			each(limit_rate(other, load * (1 + 1e-5)) > p,
				 "p %g: not k %" PRIu32 ", %" PRIu32 " would hold more", p, k, other);
	}
	passed("no other k takes fewer bits");
}

static void
test_k_classic(void)
{
	for (int i = 1; i <= 30; i++)
	{
		each(bf_k_for_rate(BF_CLASSIC, pow(2, -i)) == (uint32_t) i, "2^-%d", i);
		each(bf_k_for_rate(BF_CLASSIC, pow(2, -i - 0.499)) == (uint32_t) i, "2^-%d.499", i);
		each(bf_k_for_rate(BF_CLASSIC, pow(2, -i - 0.501)) == (uint32_t) (i < 30 ? i + 1 : 31),
			 "2^-%d.501", i);
	}
	passed("classic: k is -log2 p, rounded");
}

static void
test_k_range(void)
{
	static const double rates[] = {
		0.5, 0.51, 0.71, 0.9, 0.999999, 1e-9, 1e-10, 1e-20, 1e-45, 1e-300, 4.9e-324
	};

	for (int i = 0; i < 11; i++)
	{
		for (int layout = 0; layout < 2; layout++)
		{
			uint32_t	k = bf_k_for_rate((bf_layout) layout, rates[i]);

			each(k >= 1 && k <= BF_MAX_K, "layout %d, p %g: k %" PRIu32, layout, rates[i], k);
			each(i < 5 ? k == 1 : k >= 22, "layout %d, p %g: k %" PRIu32, layout, rates[i], k);
		}
	}
	passed("k is one that the format can hold, at any rate");
}

/* The table of bits per element in doc/format.md, against the model and m. */
static void
test_bits_per_element(void)
{
	static const struct
	{
		double		p;
		double		blocked;
		uint32_t	blocked_k;
		double		classic;
		uint32_t	classic_k;
	}			rows[] = {
		{0.1, 4.84, 3, 4.81, 3}, {0.05, 6.32, 4, 6.25, 4}, {0.01, 9.92, 6, 9.59, 7},
		{0.001, 15.55, 9, 14.38, 10}, {1e-4, 22.03, 12, 19.17, 13}, {1e-6, 38.82, 16, 28.76, 20},
		{1e-9, 80.18, 22, 43.13, 30}
	};
	double		n = 2e6;

	for (int i = 0; i < 7; i++)
	{
		double		p = rows[i].p;
		uint32_t	k = bf_k_for_rate(BF_BLOCKED, p);
		double		limit = limit_bits(k, p);
		double		bits = (double) bf_bits_for(BF_BLOCKED, k, p, (uint64_t) n) / n;

		each(k == rows[i].blocked_k && fabs(limit - rows[i].blocked) < 0.006 &&
			 near(bits, limit, 2e-4), "blocked, p %g: %.5f bits, wanted %.5f", p, bits, limit);

		k = bf_k_for_rate(BF_CLASSIC, p);
		limit = -(double) k / log(1 - pow(p, 1.0 / k));
		bits = (double) bf_bits_for(BF_CLASSIC, k, p, (uint64_t) n) / n;
		each(k == rows[i].classic_k && fabs(limit - rows[i].classic) < 0.006 &&
			 near(bits, limit, 2e-4), "classic, p %g: %.5f bits, wanted %.5f", p, bits, limit);
	}
	passed("bits per element as tabulated");
}

/* The least m is found here by trying all from the smallest on. */
static void
test_least_small(void)
{
	static const double rates[] = {0.3, 0.1, 0.01, 0.001, 1e-6, 1e-9};
	static double chain[24];

	for (int i = 0; i < 6; i++)
	{
		double		p = rates[i];
		uint32_t	k = bf_k_for_rate(BF_BLOCKED, p);

		for (uint64_t n = 1; n <= 300; n += 1 + n / 8)
		{
			uint64_t	nblocks = 1;

			while (model_rate(k, nblocks, n) > p)
				nblocks++;
			each(bf_bits_for(BF_BLOCKED, k, p, n) == nblocks * 512,
				 "blocked, p %g, n %" PRIu64 ": %" PRIu64, p, n, bf_bits_for(BF_BLOCKED, k, p, n));
		}
		k = bf_k_for_rate(BF_CLASSIC, p);
		for (uint32_t n = 1; n <= 20; n += n)
		{
			uint32_t	m = 64;

			while (chain_rates(m, k, n, chain), chain[n] > p)
				m += 64;
			each(bf_bits_for(BF_CLASSIC, k, p, n) == m,
				 "classic, p %g, n %" PRIu32 ": %" PRIu64, p, n, bf_bits_for(BF_CLASSIC, k, p, n));
		}
	}
	passed("small filters: the least m, by trial");
}

/* A rate between 1e-9 and 0.5, and an n between 1 and 10^8. */
static double
random_rate(uint64_t *state)
{
	return 0.5 * pow(2e-9, (double) random_below(state, 1000) / 1000);
}

static uint64_t
random_n(uint64_t *state)
{
	return (uint64_t) pow(10, 8 * (double) random_below(state, 1000) / 1000);
}

static void
test_least(void)
{
	uint64_t	state = 5;

	for (int i = 0; i < 300; i++)
	{
		bf_layout	layout = i % 2 ? BF_CLASSIC : BF_BLOCKED;
		uint64_t	unit = layout == BF_CLASSIC ? 64 : 512;
		double		p = random_rate(&state);
		uint64_t	n = random_n(&state);
		uint32_t	k = i % 4 < 2 ? bf_k_for_rate(layout, p) : 1 + (uint32_t) random_below(&state, 32);
		uint64_t	m = bf_bits_for(layout, k, p, n);

		if (m == 0)
		{
			each(bf_expected_rate(layout, k, BF_MAX_BITS, n) > p,
				 "layout %d, k %" PRIu32 ", p %g, n %" PRIu64 " would fit", (int) layout, k, p, n);
			continue;
		}
		each(m % unit == 0 && m <= BF_MAX_BITS && bf_expected_rate(layout, k, m, n) <= p &&
			 (m == unit || bf_expected_rate(layout, k, m - unit, n) > p),
			 "layout %d, k %" PRIu32 ", p %g, n %" PRIu64 ": m %" PRIu64, (int) layout, k, p, n, m);
	}
	passed("m keeps the rate, and one unit less does not");
}

static void
test_capacity(void)
{
	uint64_t	state = 6;

	for (int i = 0; i < 300; i++)
	{
		bf_layout	layout = i % 2 ? BF_CLASSIC : BF_BLOCKED;
		uint64_t	unit = layout == BF_CLASSIC ? 64 : 512;
		double		p = random_rate(&state);
		uint32_t	k = i % 4 < 2 ? bf_k_for_rate(layout, p) : 1 + (uint32_t) random_below(&state, 32);
		uint64_t	m = unit * (1 + random_n(&state) % (BF_MAX_BITS / unit));
		uint64_t	n = bf_capacity(layout, k, p, m);
		uint64_t	next = bf_bits_for(layout, k, p, n + 1);

		each(bf_expected_rate(layout, k, m, n) <= p && bf_expected_rate(layout, k, m, n + 1) > p,
			 "layout %d, k %" PRIu32 ", p %g, m %" PRIu64 ": n %" PRIu64, (int) layout, k, p, m, n);
		each(bf_bits_for(layout, k, p, n) <= m && (next == 0 || next > m),
			 "layout %d, k %" PRIu32 ", p %g, m %" PRIu64 ": not inverse", (int) layout, k, p, m);
	}
	passed("capacity is the inverse of m");
	is(bf_capacity(BF_CLASSIC, 1, 1e-9, 64), 0, "no capacity for even one element");
}

static void
test_monotone(void)
{
	uint64_t	state = 7;

	for (int i = 0; i < 300; i++)
	{
		bf_layout	layout = i % 2 ? BF_CLASSIC : BF_BLOCKED;
		uint64_t	unit = layout == BF_CLASSIC ? 64 : 512;
		uint32_t	k = 1 + (uint32_t) random_below(&state, 32);
		double		p = random_rate(&state);
		uint64_t	n = 1 + random_n(&state) / 100;
		uint64_t	m = unit * (1 + n * 20 / unit);
		uint64_t	bits = bf_bits_for(layout, k, p, n);
		uint64_t	more = bf_bits_for(layout, k, p, n + n / 10 + 1);
		double		rate = bf_expected_rate(layout, k, m, n);

		each(rate > 0 && rate <= bf_expected_rate(layout, k, m, n + 1 + n / 1000),
			 "layout %d, k %" PRIu32 ", m %" PRIu64 ": rate sinks above n %" PRIu64,
			 (int) layout, k, m, n);
		each(rate >= bf_expected_rate(layout, k, m + unit * (1 + m / unit / 1000), n),
			 "layout %d, k %" PRIu32 ", n %" PRIu64 ": rate grows above m %" PRIu64,
			 (int) layout, k, n, m);
		each(more == 0 || (bits > 0 && bits <= more), "m sinks with n %" PRIu64, n);
		each(bits == 0 || bits >= bf_bits_for(layout, k, p * 1.1, n), "m grows with p %g", p);
		each(bf_capacity(layout, k, p, m) <= bf_capacity(layout, k, p, m + unit),
			 "capacity sinks with m %" PRIu64, m);
		each(bf_capacity(layout, k, p, m) <= bf_capacity(layout, k, p * 1.1, m),
			 "capacity sinks with p %g", p);
	}
	passed("rate, m and capacity are monotone");
}

static void
test_cap(void)
{
	static const double rates[] = {0.5, 0.1, 0.01, 1e-4, 1e-9};

	for (int i = 0; i < 5; i++)
	{
		for (int layout = 0; layout < 2; layout++)
		{
			uint32_t	k = bf_k_for_rate((bf_layout) layout, rates[i]);
			uint64_t	n = bf_capacity((bf_layout) layout, k, rates[i], BF_MAX_BITS);

			each(n > 20000000 && bf_bits_for((bf_layout) layout, k, rates[i], n) <= BF_MAX_BITS &&
				 bf_bits_for((bf_layout) layout, k, rates[i], n) > 0, "p %g: n %" PRIu64, rates[i], n);
			each(bf_bits_for((bf_layout) layout, k, rates[i], n + 1) == 0, "p %g, one more", rates[i]);
			each(bf_bits_for((bf_layout) layout, k, rates[i], UINT64_MAX) == 0, "p %g, 2^64", rates[i]);
		}
	}
	passed("0 from the first n on that the largest filter cannot hold");
}

static void
test_nothing(void)
{
	for (uint32_t k = 1; k <= 32; k++)
	{
		each(bf_expected_rate(BF_BLOCKED, k, 512, 0) == 0, "blocked, k %" PRIu32, k);
		each(bf_expected_rate(BF_CLASSIC, k, 64, 0) == 0, "classic, k %" PRIu32, k);
		each(bf_expected_rate(BF_CLASSIC, k, 1 << 20, 0) == 0, "large, k %" PRIu32, k);
		each(bf_bits_for(BF_BLOCKED, k, 0.01, 0) == 512, "blocked, k %" PRIu32, k);
		each(bf_bits_for(BF_CLASSIC, k, 0.01, 0) == 64, "classic, k %" PRIu32, k);
	}
	passed("no elements: rate 0, and the smallest filter is enough");
}

/* Whatever is asked for: an answer that is true, and soon. */
static void
hostile(bf_layout layout, uint32_t k, double p, uint64_t n)
{
	uint64_t	unit = layout == BF_CLASSIC ? 64 : 512;
	clock_t		start = clock();
	uint64_t	m = bf_bits_for(layout, k, p, n);
	uint64_t	capacity = bf_capacity(layout, k, p, n % (BF_MAX_BITS / unit) * unit + unit);
	double		rate = bf_expected_rate(layout, k, m > 0 ? m : BF_MAX_BITS, n);
	double		seconds = (double) (clock() - start) / CLOCKS_PER_SEC;

	each(seconds < 1, "layout %d, k %" PRIu32 ", p %g, n %" PRIu64 ": %.1f s",
		 (int) layout, k, p, n, seconds);
	each(m % unit == 0 && m <= BF_MAX_BITS, "layout %d, k %" PRIu32 ", p %g, n %" PRIu64
		 ": m %" PRIu64, (int) layout, k, p, n, m);
	each(rate >= 0 && rate <= 1 && (m == 0 ? rate > p : rate <= p),
		 "layout %d, k %" PRIu32 ", p %g, n %" PRIu64 ": m %" PRIu64 ", rate %g, capacity %" PRIu64,
		 (int) layout, k, p, n, m, rate, capacity);
}

static void
test_hostile(void)
{
	static const double rates[] = {
		1 - 1.2e-16, 1 - 6e-8, 0.999, 0.5, 1e-9, 1e-45, 2.3e-308, 4.9e-324
	};
	static const uint64_t counts[] = {
		0, 1, 7, 4097, 1000000, UINT64_C(1) << 31, UINT64_C(1) << 53, INT64_MAX,
		UINT64_MAX / 32, UINT64_MAX - 1, UINT64_MAX
	};
	static const uint32_t ks[] = {1, 2, 31, 32};

	for (int i = 0; i < 8 * 11 * 4 * 2; i++)
		hostile((bf_layout) (i % 2), ks[i / 2 % 4], rates[i / 8 % 8], counts[i / 64]);
	passed("hostile arguments: a true answer within a second");
}

int
main(void)
{
	for (uint32_t k = 1; k <= BF_MAX_K; k++)
		chain_rates(512, k, elements_for(k), block_rates[k]);
	test_exact_classic();
	test_exact_blocked();
	test_second_order();
	test_simulation();
	test_textbook();
	test_k_blocked();
	test_k_classic();
	test_k_range();
	test_bits_per_element();
	test_least_small();
	test_least();
	test_capacity();
	test_monotone();
	test_cap();
	test_nothing();
	test_hostile();
	return done();
}
