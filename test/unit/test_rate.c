/*
 * test_rate.c
 *		The requested false-positive rate is the measured one.
 *
 * These are real filters, filled and probed through the hash and the rule of the
 * core. A rate is the mean over sets, because a single small filter varies.
 */
#include "block.h"
#include "hash.h"
#include "layout.h"
#include "model.h"
#include "tap.h"

static bf_solutions solutions;

/* Elements and probes never repeat, within a test or between two. */
static uint64_t next_word;

typedef struct measurement
{
	double		rate;
	double		error;			/* its standard error */
} measurement;

/*
 * The rate of one filter of n elements, measured with that many absent
 * probes.
 */
static double
rate_of_set(uint8_t *bits, const bf_params *params, uint64_t n, uint64_t probes)
{
	bf_shape	shape = bf_shape_of(params);
	uint64_t	found = 0;

	memset(bits, 0, params->m / 8);
	for (uint64_t i = 0; i < n; i++)
		bf_bits_add(bits, &shape, bf_hash_word(next_word++, params->seed));
	for (uint64_t i = 0; i < probes; i++)
		found += bf_bits_contain(bits, &shape, bf_hash_word(next_word++, params->seed));
	return (double) found / (double) probes;
}

/*
 * The mean over sets. Its error comes from both the sets and the probes. A
 * sample with few hits underestimates it, so it is at least the error of the
 * probes at the expected rate.
 */
static measurement
measure(const bf_params *params, uint64_t n, double expected, uint64_t sets, uint64_t probes)
{
	uint8_t    *bits = allocate(params->m / 8);
	sample		rates = {0};
	measurement result;

	for (uint64_t i = 0; i < sets; i++)
		sample_add(&rates, rate_of_set(bits, params, n, probes));
	free(bits);
	result.rate = sample_mean(&rates);
	result.error = fmax(sample_error(&rates), sqrt(expected / (double) (sets * probes)));
	return result;
}

/* Sized for n at p, a filter of n elements has a rate of p. */
static void
keep_promise(bf_layout layout, double p, uint64_t n)
{
	bf_params	params = params_of(layout, bf_k_for_rate(layout, p), 0);
	uint64_t	sets = n < 5 ? 20000 : n < 200000 / 6 ? 200000 / n : 6;
	uint64_t	probes = (p < 0.005 ? 1500000 : 400000) / sets;
	measurement got;

	params.m = bf_bits_for(&solutions, layout, params.k, p, n);
	params.seed = n;
	got = measure(&params, n, p, sets, probes);
	each(got.rate <= p * 1.05 + 4 * got.error,
		 "layout %d, p %g, n %" PRIu64 ", m %" PRIu64 ": rate %.3g +- %.1g",
		 (int) layout, p, n, params.m, got.rate, got.error);
}

static void
test_promise(void)
{
	static const double rates[] = {0.3, 0.1, 0.01, 0.001, 1e-4};
	static const uint64_t counts[] = {1, 2, 3, 5, 10, 20, 50, 100, 1000, 10000, 100000};

	for (int layout = 0; layout < 2; layout++)
	{
		for (int i = 0; i < 5; i++)
		{
			for (int j = 0; j < 11; j++)
				keep_promise((bf_layout) layout, rates[i], counts[j]);
		}
		passed(layout == BF_BLOCKED ? "blocked: the requested rate" : "classic: the requested rate");
	}
}

/* The same for filters of a single word. */
static void
test_single_words(void)
{
	int			words = 0;

	for (double p = 0.5; p > 1e-4; p *= 0.7)
	{
		uint32_t	k = bf_k_for_rate(BF_CLASSIC, p);
		uint64_t	n = bf_capacity(&solutions, BF_CLASSIC, k, p, 64);

		if (n == 0 || bf_bits_for(&solutions, BF_CLASSIC, k, p, n) != 64)
			continue;
		keep_promise(BF_CLASSIC, p, n);
		words++;
	}
	passed("classic filters of 64 bits: the requested rate");
	ok(words > 15, "many such filters were tested");
}

/*
 * The ratio of the measured to the expected rate, for any k and size, of
 * filters filled until the rate is several percent.
 */
static double
compare(bf_layout layout, uint32_t k, uint64_t m, double tolerance)
{
	bf_params	params = params_of(layout, k, m);
	uint64_t	n = bf_capacity(&solutions, layout, k, 0.06, m) + 1;
	double		expected = layout == BF_CLASSIC ? bf_classic_rate(k, m, n) : model_rate(k, m / 512, n);
	uint64_t	sets = n < 20 ? 4000 : n < 3000 ? 60000 / n : 20;
	measurement got;

	params.seed = k;
	got = measure(&params, n, expected, sets, 200000 / sets);
	each(fabs(got.rate - expected) <= tolerance * expected + 4 * got.error,
		 "layout %d, k %" PRIu32 ", m %" PRIu64 ", n %" PRIu64 ": rate %.4g +- %.1g, expected %.4g",
		 (int) layout, k, m, n, got.rate, got.error, expected);
	return got.rate / expected;
}

static void
test_every_k(bf_layout layout, uint64_t m)
{
	char		name[100];
	sample		ratios = {0};

	for (uint32_t k = 1; k <= BF_MAX_K; k++)
		sample_add(&ratios, compare(layout, k, m, 0.04));
	snprintf(name, sizeof(name), "k = 1 .. 32, layout %d, %" PRIu64 " bits: as expected",
			 (int) layout, m);
	passed(name);
	ok(fabs(sample_mean(&ratios) - 1) < 0.015 + 4 * sample_error(&ratios),
	   "and on average: %.4f +- %.4f of it", sample_mean(&ratios), sample_error(&ratios));
}

int
main(void)
{
	test_promise();
	test_single_words();
	test_every_k(BF_CLASSIC, 64);
	test_every_k(BF_CLASSIC, 192);
	test_every_k(BF_CLASSIC, 1024);
	test_every_k(BF_CLASSIC, 100032);
	test_every_k(BF_BLOCKED, 512);
	test_every_k(BF_BLOCKED, 512 * 3);
	test_every_k(BF_BLOCKED, 512 * 200);
	return done();
}
