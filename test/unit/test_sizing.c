/*
 * test_sizing.c
 *		The model of the false-positive rate, and the sizes and capacities
 *		derived from it.
 */
#include <time.h>

#include "layout.h"
#include "model.h"
#include "tap.h"

static bf_solutions solutions;

static uint64_t
bits_for(bf_layout layout, uint32_t k, double p, uint64_t n)
{
	return bf_bits_for(&solutions, layout, k, p, n);
}

static uint64_t
capacity_of(bf_layout layout, uint32_t k, double p, uint64_t m)
{
	return bf_capacity(&solutions, layout, k, p, m);
}

/* Half the time the best k for p, otherwise any k. */
static uint32_t
some_k(bf_layout layout, double p, uint64_t *state)
{
	return random_below(state, 2) ? bf_k_for_rate(layout, p) : 1 + (uint32_t) random_below(state, BF_MAX_K);
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
				double		rate = bf_classic_rate(k, sizes[i], n);

				each(near(rate, rates[n], rates[n] < 0.99 ? 1e-9 : 1e-3),
					 "m %" PRIu32 ", k %" PRIu32 ", n %" PRIu32 ": %g, wanted %g",
					 sizes[i], k, n, rate, rates[n]);
			}
		}
	}
	passed("classic filters up to 4096 bits: the exact mean");
}

/* The core promises the second order. The third is below 1e-3 even here. */
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
				double		rate = bf_classic_rate(k, sizes[i], n);

				each(near(rate, rates[n], 1e-3),
					 "m %" PRIu32 ", k %" PRIu32 ", n %" PRIu32 ": %g, wanted %g",
					 sizes[i], k, n, rate, rates[n]);
			}
		}
	}
	passed("larger classic filters: the mean to second order");
}

/* The rate of a simulated filter with ideal throws. */
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
		double		rate = params.m > 4096 && params.layout == BF_CLASSIC
			? bf_classic_rate(params.k, params.m, cases[i].n)
			: exact_rate(params.layout, params.k, params.m, cases[i].n);
		sample		simulated = {0};

		for (int j = 0; j < 1500; j++)
			sample_add(&simulated, simulated_rate(&params, cases[i].n, &state));
		/*
		 * If few of many filters decide the mean, the sample does not tell
		 * its error.
		 */
		ok(fabs(sample_mean(&simulated) - rate) < 4.5 * sample_error(&simulated),
		   "simulated: layout %d, k %" PRIu32 ", m %" PRIu64 ", n %" PRIu32
		   ": %.4g +- %.1g, expected %.4g", (int) params.layout, params.k, params.m, cases[i].n,
		   sample_mean(&simulated), sample_error(&simulated), rate);
	}
}

/*
 * With many bits the textbook is right for classic filters, and too low for
 * blocks.
 */
static void
test_textbook(void)
{
	for (uint32_t k = 1; k <= 32; k++)
	{
		for (uint64_t m = UINT64_C(1) << 22; m <= BF_MAX_BITS; m <<= 3)
		{
			uint64_t	n = (uint64_t) ((double) m * log(2) / k);
			double		textbook = pow(1 - exp(-(double) k * (double) n / (double) m), k);
			double		classic = bf_classic_rate(k, m, n);
			double		blocked = limit_rate(k, 512.0 * (double) n / (double) m);

			each(near(classic, textbook, 1e-3), "k %" PRIu32 ", m %" PRIu64 ": %g, wanted %g",
				 k, m, classic, textbook);
			each(k == 1 || blocked > textbook, "k %" PRIu32 ", m %" PRIu64 ": %g, textbook %g",
				 k, m, blocked, textbook);
		}
	}
	passed("large filters against the textbook");
}

/* The table of doc/format.md: k, with the highest p. */
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

		each(near(below, at, 1e-4), "k %" PRIu32 ": %.5f bits and %.5f", k, below, at);
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
	passed("at any rate, the format can hold k");
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
		{0.001, 15.55, 9, 14.38, 10}, {1e-4, 22.03, 12, 19.17, 13}, {1e-6, 38.83, 16, 28.76, 20},
		{1e-9, 80.18, 22, 43.13, 30}
	};
	double		n = 2e6;

	for (int i = 0; i < 7; i++)
	{
		double		p = rows[i].p;
		uint32_t	k = bf_k_for_rate(BF_BLOCKED, p);
		double		limit = limit_bits(k, p);
		double		bits = (double) BF_MAX_BITS / (double) capacity_of(BF_BLOCKED, k, p, BF_MAX_BITS);

		each(k == rows[i].blocked_k && fabs(bits - rows[i].blocked) < 0.006 &&
			 bits >= limit && bits < limit + 1.0 / 1024 + 1e-5,
			 "blocked, p %g: %.5f bits, wanted %.5f", p, bits, limit);

		k = bf_k_for_rate(BF_CLASSIC, p);
		limit = -(double) k / log(1 - pow(p, 1.0 / k));
		bits = (double) bits_for(BF_CLASSIC, k, p, (uint64_t) n) / n;
		each(k == rows[i].classic_k && fabs(limit - rows[i].classic) < 0.006 &&
			 near(bits, limit, 2e-4), "classic, p %g: %.5f bits, wanted %.5f", p, bits, limit);
	}
	passed("bits per element as tabulated");
}

/*
 * Bits per element of a blocked filter, in 1/1024, by doc/format.md: the
 * least that keep the rate in one block and in the limit of many.
 */
static uint64_t
model_parts(uint32_t k, double p)
{
	uint64_t	enough = UINT64_C(1) << 41;
	uint64_t	too_few = 0;

	while (enough - too_few > 1)
	{
		uint64_t	middle = (enough + too_few) / 2;
		double		load = 524288.0 / (double) middle;
		double		down = block_rate(k, (uint64_t) load);
		double		up = block_rate(k, (uint64_t) load + 1);
		bool		keeps = down + (up - down) * (load - floor(load)) <= p && limit_rate(k, load) <= p;

		*(keeps ? &enough : &too_few) = middle;
	}
	return enough;
}

/*
 * The least number of blocks for n elements, in parts of 2^-19, rounded by
 * doc/format.md.
 */
static uint64_t
model_blocks(uint64_t parts, uint64_t n)
{
	uint64_t	least = (uint64_t) (((uint128) n * parts + 524287) / 524288);
	uint64_t	zeros = 0;

	while (((least + (UINT64_C(1) << zeros) - 1) >> zeros) > 128)
		zeros++;
	return ((least + (UINT64_C(1) << zeros) - 1) >> zeros) << zeros;
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
test_blocked(void)
{
	uint64_t	state = 4;

	for (int i = 0; i < 150; i++)
	{
		double		p = random_rate(&state);
		uint32_t	k = some_k(BF_BLOCKED, p, &state);
		uint64_t	parts = model_parts(k, p);

		for (int j = 0; j < 100; j++)
		{
			uint64_t	n = j < 50 ? 1 + (uint64_t) j : random_n(&state);
			uint64_t	m = 512 * (1 + random_below(&state, BF_MAX_BITS / 512));
			uint64_t	bits = model_blocks(parts, n) * 512;

			each(bits_for(BF_BLOCKED, k, p, n) == (bits <= BF_MAX_BITS ? bits : 0),
				 "k %" PRIu32 ", p %g, n %" PRIu64 ": %" PRIu64 " bits", k, p, n,
				 bits_for(BF_BLOCKED, k, p, n));
			each(capacity_of(BF_BLOCKED, k, p, m) == m * 1024 / parts,
				 "k %" PRIu32 ", p %g, m %" PRIu64 ": capacity %" PRIu64, k, p, m,
				 capacity_of(BF_BLOCKED, k, p, m));
		}
	}
	passed("blocked: m and capacity follow from bits per element");
}

/*
 * One constant is enough for any number of blocks: filled to capacity, the
 * exact mean is at most p.
 */
static void
test_any_number_of_blocks(void)
{
	double		highest = 0;

	for (double p = BF_MAX_RATE; p >= BF_MIN_RATE; p *= p > 0.15 ? 0.998 : 0.9)
	{
		uint32_t	k = bf_k_for_rate(BF_BLOCKED, p);

		for (uint64_t nblocks = 1; nblocks < 300; nblocks += 1 + nblocks / 8)
		{
			uint64_t	n = capacity_of(BF_BLOCKED, k, p, nblocks * 512);
			double		rate = model_rate(k, nblocks, n);

			each(n > 0 && rate <= p * (1 + 1e-10), "p %g, %" PRIu64 " blocks of %" PRIu64 " elements: rate %.12g",
				 p, nblocks, n, rate);
			highest = fmax(highest, rate / p);
		}
	}
	passed("any number of blocks keeps the rate");
	ok(highest > 0.999, "and few bits are wasted: %.6f of the rate", highest);
}

static bool
has_seven_bits(uint64_t nblocks)
{
	while (nblocks % 2 == 0)
		nblocks /= 2;
	return nblocks < 128;
}

static void
test_doubling(void)
{
	uint64_t	state = 9;

	for (int i = 0; i < 20000; i++)
	{
		double		p = random_rate(&state);
		uint32_t	k = bf_k_for_rate(BF_BLOCKED, p);
		uint64_t	n = i % 2 ? random_n(&state) / 8 + 1 : 1 + random_below(&state, 20000);
		uint64_t	nblocks = bits_for(BF_BLOCKED, k, p, n) / 512;
		uint64_t	twice = bits_for(BF_BLOCKED, k, p, 2 * n) / 512;

		if (twice == 0)
			continue;
		each(has_seven_bits(nblocks) && (nblocks < 128 || nblocks % 2 == 0),
			 "p %g, n %" PRIu64 ": %" PRIu64 " blocks", p, n, nblocks);
		each(twice == 2 * nblocks || (nblocks <= 64 && twice == 2 * nblocks - 1),
			 "p %g, n %" PRIu64 ": %" PRIu64 " blocks, and %" PRIu64 " for twice as many", p, n, nblocks, twice);
	}
	passed("few significant bits; from 65 blocks on twice the elements take twice the blocks");
}

/* This finds the least m by trying all sizes from the smallest on. */
static void
test_least_small(void)
{
	static const double rates[] = {0.3, 0.1, 0.01, 0.001, 1e-6, 1e-9};
	static double chain[24];

	for (int i = 0; i < 6; i++)
	{
		double		p = rates[i];
		uint32_t	k = bf_k_for_rate(BF_CLASSIC, p);

		for (uint32_t n = 1; n <= 20; n += n)
		{
			uint32_t	m = 64;

			while (chain_rates(m, k, n, chain), chain[n] > p)
				m += 64;
			each(bits_for(BF_CLASSIC, k, p, n) == m,
				 "p %g, n %" PRIu32 ": %" PRIu64, p, n, bits_for(BF_CLASSIC, k, p, n));
		}
	}
	passed("small classic filters: the least m, by trial");
}

static void
test_least(void)
{
	uint64_t	state = 5;

	for (int i = 0; i < 150; i++)
	{
		double		p = random_rate(&state);
		uint64_t	n = random_n(&state);
		uint32_t	k = some_k(BF_CLASSIC, p, &state);
		uint64_t	m = bits_for(BF_CLASSIC, k, p, n);

		if (m == 0)
			each(bf_classic_rate(k, BF_MAX_BITS, n) > p, "k %" PRIu32 ", p %g, n %" PRIu64 " would fit", k, p, n);
		else
			each(m % 64 == 0 && m <= BF_MAX_BITS && bf_classic_rate(k, m, n) <= p &&
				 (m == 64 || bf_classic_rate(k, m - 64, n) > p),
				 "k %" PRIu32 ", p %g, n %" PRIu64 ": m %" PRIu64, k, p, n, m);
	}
	passed("classic: m keeps the rate, and 64 bits less do not");
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
		uint32_t	k = some_k(layout, p, &state);
		uint64_t	m = unit * (1 + random_n(&state) % (BF_MAX_BITS / unit));
		uint64_t	n;
		uint64_t	next;

		if (layout == BF_BLOCKED)
		{
			while (!has_seven_bits(m / unit))
				m += unit;
		}
		n = capacity_of(layout, k, p, m);
		next = bits_for(layout, k, p, n + 1);
		each((n == 0 || bits_for(layout, k, p, n) <= m) && (next == 0 || next > m),
			 "layout %d, k %" PRIu32 ", p %g, m %" PRIu64 ": not inverse", (int) layout, k, p, m);
		each(next == 0 || capacity_of(layout, k, p, next) > n,
			 "layout %d, k %" PRIu32 ", p %g, n %" PRIu64 ": no room", (int) layout, k, p, n + 1);
		each(layout == BF_BLOCKED ||
			 (bf_classic_rate(k, m, n) <= p && bf_classic_rate(k, m, n + 1) > p),
			 "k %" PRIu32 ", p %g, m %" PRIu64 ": n %" PRIu64, k, p, m, n);
	}
	passed("capacity is the inverse of m");
	is(capacity_of(BF_CLASSIC, 1, 1e-9, 64), 0, "classic: no capacity for even one element");
	is(capacity_of(BF_BLOCKED, 1, 1e-9, 512), 0, "blocked: no capacity for even one element");
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
		uint64_t	bits = bits_for(layout, k, p, n);
		uint64_t	more = bits_for(layout, k, p, n + n / 10 + 1);

		each(more == 0 || (bits > 0 && bits <= more), "m falls as n grows, %" PRIu64, n);
		each(bits == 0 || bits >= bits_for(layout, k, p * 1.1, n), "m grows with the rate, p %g", p);
		each(capacity_of(layout, k, p, m) <= capacity_of(layout, k, p, m + unit),
			 "capacity sinks with m %" PRIu64, m);
		each(capacity_of(layout, k, p, m) <= capacity_of(layout, k, p * 1.1, m),
			 "capacity sinks with p %g", p);
		if (layout == BF_BLOCKED)
			continue;
		each(bf_classic_rate(k, m, n) > 0 && bf_classic_rate(k, m, n) <= bf_classic_rate(k, m, n + 1 + n / 1000),
			 "k %" PRIu32 ", m %" PRIu64 ": rate sinks above n %" PRIu64, k, m, n);
		each(bf_classic_rate(k, m, n) >= bf_classic_rate(k, m + 64 * (1 + m / 64000), n),
			 "k %" PRIu32 ", n %" PRIu64 ": rate grows above m %" PRIu64, k, n, m);
	}
	passed("rate, m and capacity are monotone");
}

/* The cache holds fewer solutions than this test asks for, in random order. */
static void
test_memory(void)
{
	bf_solutions kept = {0};
	uint64_t	state = 8;

	for (int i = 0; i < 1000; i++)
	{
		uint64_t	which = random_below(&state, 60);
		bf_layout	layout = which % 2 ? BF_CLASSIC : BF_BLOCKED;
		double		p = pow(0.5, 1 + (double) (which / 4 % 5));
		uint32_t	k = 1 + which / 20;
		uint64_t	number = 640 * 512 * (1 + which / 2 % 2);
		bf_solutions fresh = {0};

		each(bf_bits_for(&kept, layout, k, p, number) == bf_bits_for(&fresh, layout, k, p, number),
			 "layout %d, k %" PRIu32 ", p %g, n %" PRIu64, (int) layout, k, p, number);
		each(bf_capacity(&kept, layout, k, p, number) == bf_capacity(&fresh, layout, k, p, number),
			 "layout %d, k %" PRIu32 ", p %g, m %" PRIu64, (int) layout, k, p, number);
	}
	passed("cached solutions equal new ones");
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
			uint64_t	n = capacity_of((bf_layout) layout, k, rates[i], BF_MAX_BITS);
			uint64_t	m = bits_for((bf_layout) layout, k, rates[i], n);

			each(n > 20000000 && m > 0 && m <= BF_MAX_BITS, "p %g: n %" PRIu64, rates[i], n);
			each(bits_for((bf_layout) layout, k, rates[i], n + 1) == 0, "p %g, one more", rates[i]);
			each(bits_for((bf_layout) layout, k, rates[i], UINT64_MAX) == 0, "p %g, 2^64", rates[i]);
		}
	}
	passed("0 from the first n on that the largest filter cannot hold");
}

static void
test_nothing(void)
{
	for (uint32_t k = 1; k <= 32; k++)
	{
		each(bf_classic_rate(k, 64, 0) == 0, "classic, k %" PRIu32, k);
		each(bf_classic_rate(k, 1 << 20, 0) == 0, "large, k %" PRIu32, k);
	}
	passed("no elements: rate 0");
}

/* Any arguments get a true answer soon. */
static void
hostile(bf_layout layout, uint32_t k, double p, uint64_t n)
{
	uint64_t	unit = layout == BF_CLASSIC ? 64 : 512;
	clock_t		start = clock();
	uint64_t	m = bits_for(layout, k, p, n);
	uint64_t	capacity = capacity_of(layout, k, p, m > 0 ? m : BF_MAX_BITS);
	double		rate = bf_classic_rate(k, m > 0 ? m : BF_MAX_BITS, n);
	double		seconds = (double) (clock() - start) / CLOCKS_PER_SEC;

	each(seconds < 1, "layout %d, k %" PRIu32 ", p %g, n %" PRIu64 ": %.1f s",
		 (int) layout, k, p, n, seconds);
	each(m % unit == 0 && m <= BF_MAX_BITS && (m > 0 ? capacity >= n : capacity < n),
		 "layout %d, k %" PRIu32 ", p %g, n %" PRIu64 ": m %" PRIu64 ", capacity %" PRIu64,
		 (int) layout, k, p, n, m, capacity);
	each(rate >= 0 && rate <= 1 && (layout == BF_BLOCKED || (m == 0 ? rate > p : rate <= p)),
		 "layout %d, k %" PRIu32 ", p %g, n %" PRIu64 ": m %" PRIu64 ", rate %g",
		 (int) layout, k, p, n, m, rate);
}

static void
test_hostile(void)
{
	static const double rates[] = {
		1 - 1.2e-16, 1 - 6e-8, 0.999, 0.5, 1e-9, 1e-45, 2.3e-308, 4.9e-324
	};
	static const uint64_t counts[] = {
		1, 7, 4097, 1000000, UINT64_C(1) << 31, UINT64_C(1) << 53, INT64_MAX,
		UINT64_MAX / 32, UINT64_MAX - 1, UINT64_MAX
	};
	static const uint32_t ks[] = {1, 2, 31, 32};

	for (int i = 0; i < 8 * 10 * 4 * 2; i++)
		hostile((bf_layout) (i % 2), ks[i / 2 % 4], rates[i / 8 % 8], counts[i / 64]);
	passed("hostile arguments: a correct answer within a second");
}

int
main(void)
{
	test_exact_classic();
	test_second_order();
	test_simulation();
	test_textbook();
	test_k_blocked();
	test_k_classic();
	test_k_range();
	test_bits_per_element();
	test_blocked();
	test_any_number_of_blocks();
	test_doubling();
	test_least_small();
	test_least();
	test_capacity();
	test_monotone();
	test_memory();
	test_cap();
	test_nothing();
	test_hostile();
	return done();
}
