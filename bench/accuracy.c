/*
 * accuracy.c
 *		False-positive rates and errors of the estimates, over src/core.
 *
 * Usage: accuracy rate | overfilled | estimates [PROBES]
 *		  accuracy bits
 *		  accuracy point LAYOUT CAPACITY RATE SEED ELEMENTS PROBES
 *		  accuracy pair LAYOUT CAPACITY RATE SEED COMMON
 *
 * The elements of a filter are the integers from 1 on, and the integers behind
 * them are probed.  Filters of one row differ in their seed, so they have
 * independent hashes.  bloom_agg() over the same integers gives the same
 * filters: point and pair print what bench/accuracy.py compares with SQL.
 *
 * Prints CSV, which bench/accuracy.py completes by theory.  The output depends
 * on nothing but the arguments.  PROBES bounds the probes of one row, 5e8 if not
 * given.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dense.h"
#include "estimate.h"
#include "hash.h"
#include "layout.h"
#include "sparse.h"

#define MOST_BYTES (BF_MAX_BITS / 8)
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static double most_probes = 5e8;
static bf_solutions solutions;

/* A filter of integers.  It is sparse under the same condition as a value. */
typedef struct sample
{
	bf_params	params;
	bf_shape	shape;
	uint8_t    *bits;
	uint64_t	count;			/* elements; the next is count + 1 */
	uint8_t		hashes[MOST_BYTES / 1024];	/* sorted, if sparse */
} sample;

static bool
is_sparse(const sample *filter)
{
	return BF_HASH_BYTES * filter->count < filter->params.m / 8;
}

static bf_params
params_for(bf_layout layout, double rate, uint64_t n)
{
	bf_params	params = {.layout = layout, .rate = (float) rate, .cell_bits = 1};

	params.k = bf_k_for_rate(layout, params.rate);
	params.m = bf_bits_for(&solutions, layout, params.k, params.rate, n);
	return params;
}

static void
restart(sample *filter, const bf_params *params, uint64_t seed)
{
	filter->params = *params;
	filter->params.seed = seed;
	filter->shape = bf_shape_of(params);
	filter->count = 0;
	memset(filter->bits, 0, params->m / 8);
}

static sample *
new_sample(const bf_params *params)
{
	sample	   *filter = malloc(sizeof(sample));

	if (filter == NULL || (filter->bits = aligned_alloc(64, (params->m / 8 + 63) / 64 * 64)) == NULL)
		exit(1);
	restart(filter, params, 0);
	return filter;
}

static void
free_sample(sample *filter)
{
	free(filter->bits);
	free(filter);
}

/* Adds the integers from first to last. */
static void
add_range(sample *filter, uint64_t first, uint64_t last)
{
	for (uint64_t i = first; i <= last; i++)
		bf_bits_add(filter->bits, &filter->shape, bf_hash_word(i, filter->params.seed));
	filter->count += last - first + 1;
}

static int
compare_hashes(const void *a, const void *b)
{
	uint64_t	x = bf_load64(a);
	uint64_t	y = bf_load64(b);

	return x < y ? -1 : x > y;
}

/* Sorts the hashes of a sparse filter of the integers from 1 on. */
static void
sort_hashes(sample *filter)
{
	if (BF_HASH_BYTES * filter->count > sizeof(filter->hashes))
		exit(1);
	for (uint64_t i = 0; i < filter->count; i++)
		bf_store64(filter->hashes + BF_HASH_BYTES * i, bf_hash_word(i + 1, filter->params.seed));
	qsort(filter->hashes, filter->count, BF_HASH_BYTES, compare_hashes);
}

static uint64_t
false_positives_sparse(sample *filter, uint64_t probes)
{
	uint64_t	found = 0;

	sort_hashes(filter);
	for (uint64_t i = 1; i <= probes; i++)
		found += bf_sparse_find(filter->hashes, filter->count,
								bf_hash_word(filter->count + i, filter->params.seed)) < filter->count;
	return found;
}

/* Hashes ahead, so that the probes of a large filter wait for memory together. */
static uint64_t
false_positives(sample *filter, uint64_t probes)
{
	uint64_t	hashes[32];
	uint64_t	found = 0;

	if (is_sparse(filter))
		return false_positives_sparse(filter, probes);
	for (uint64_t done = 0; done < probes;)
	{
		uint64_t	batch = probes - done < LENGTH(hashes) ? probes - done : LENGTH(hashes);

		for (uint64_t i = 0; i < batch; i++)
		{
			hashes[i] = bf_hash_word(filter->count + ++done, filter->params.seed);
			bf_bits_prefetch(filter->bits, &filter->shape, hashes[i]);
		}
		for (uint64_t i = 0; i < batch; i++)
			found += bf_bits_contain(filter->bits, &filter->shape, hashes[i]);
	}
	return found;
}

static double
current_rate(const sample *filter)
{
	bf_tally	tally = {0};

	if (is_sparse(filter))
		return bf_current_rate_sparse(filter->count);
	bf_tally_add(&tally, &filter->shape, filter->bits, filter->params.m / 8);
	return bf_current_rate(&tally, &filter->shape);
}

static double
cardinality(const sample *filter)
{
	if (is_sparse(filter))
		return (double) filter->count;
	return bf_cardinality(&filter->shape, bf_popcount(filter->bits, filter->params.m / 8));
}

/* Mean and standard deviation of what is added. */
typedef struct moments
{
	double		count;
	double		mean;
	double		squares;
} moments;

static void
moments_add(moments *moments, double value)
{
	double		delta = value - moments->mean;

	moments->mean += delta / ++moments->count;
	moments->squares += delta * (value - moments->mean);
}

static double
deviation(const moments *moments)
{
	return sqrt(moments->squares / (moments->count - 1));
}

/*
 * The standard error of a mean rate.  It covers that filters differ.  With few
 * filters their spread says little, so it is at least that of the probes alone.
 */
static double
standard_error(const moments *rates, double probes)
{
	return fmax(deviation(rates) / sqrt(rates->count), sqrt(rates->mean * (1 - rates->mean) / probes));
}

static uint64_t
between(double low, double number, double high)
{
	return (uint64_t) fmin(fmax(number, low), high);
}

/* A filter that is filled with the n elements that it was sized for. */
static void
measure_rate(bf_layout layout, double rate, uint64_t n)
{
	bf_params	params = params_for(layout, rate, n);
	sample	   *filter = new_sample(&params);
	uint64_t	filters = between(4, 5e6 / (double) n, 20000);
	double		wanted = fmin(fmax(2500 / rate, most_probes / 100), most_probes);
	uint64_t	probes = (uint64_t) ceil(wanted / (double) filters);
	uint64_t	found = 0;
	moments		rates = {0};

	for (uint64_t seed = 1; seed <= filters; seed++)
	{
		uint64_t	hits;

		restart(filter, &params, seed);
		add_range(filter, 1, n);
		hits = false_positives(filter, probes);
		moments_add(&rates, (double) hits / (double) probes);
		found += hits;
	}
	printf("%s,%g,%llu,%u,%llu,%s,%llu,%llu,%llu,%.6g,%.3g\n", bf_layout_name(layout), rate,
		   (unsigned long long) n, params.k, (unsigned long long) params.m,
		   is_sparse(filter) ? "sparse" : "dense", (unsigned long long) filters,
		   (unsigned long long) (filters * probes), (unsigned long long) found, rates.mean,
		   standard_error(&rates, (double) (filters * probes)));
	fflush(stdout);
	free_sample(filter);
}

static void
measure_rates(void)
{
	static const double rates[] = {0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6};
	static const uint64_t steps[] = {1, 2, 5};

	printf("layout,rate_asked,elements,hashes,bits,representation,filters,probes,false_positives,"
		   "rate,rate_standard_error\n");
	for (int layout = BF_BLOCKED; layout <= BF_CLASSIC; layout++)
		for (size_t i = 0; i < LENGTH(rates); i++)
			for (uint64_t decade = 1; decade <= 10000000; decade *= 10)
				for (size_t j = 0; j < LENGTH(steps) && decade * steps[j] <= 10000000; j++)
					measure_rate(layout, rates[i], decade * steps[j]);
}

/* Filters of one capacity that are filled further and further. */
static void
overfill(bf_layout layout, double rate, uint64_t n)
{
	enum
	{
		FILTERS = 10
	};
	bf_params	params = params_for(layout, rate, n);
	uint64_t	capacity = bf_capacity(&solutions, layout, params.k, params.rate, params.m);
	uint64_t	probes = (uint64_t) (most_probes / 25 / FILTERS);
	sample	   *filters[FILTERS];

	for (int i = 0; i < FILTERS; i++)
	{
		filters[i] = new_sample(&params);
		filters[i]->params.seed = (uint64_t) i + 1;
	}
	for (int twentieths = 1; twentieths <= 80; twentieths += twentieths < 20 ? 1 : 2)
	{
		uint64_t	elements = capacity * (uint64_t) twentieths / 20;
		moments		rates = {0};
		moments		estimates = {0};

		for (int i = 0; i < FILTERS; i++)
		{
			add_range(filters[i], filters[i]->count + 1, elements);
			moments_add(&rates, (double) false_positives(filters[i], probes) / (double) probes);
			moments_add(&estimates, current_rate(filters[i]));
		}
		printf("%s,%g,%llu,%u,%llu,%g,%llu,%s,%d,%llu,%.6g,%.3g,%.6g\n", bf_layout_name(layout), rate,
			   (unsigned long long) capacity, params.k, (unsigned long long) params.m, twentieths / 20.0,
			   (unsigned long long) elements, is_sparse(filters[0]) ? "sparse" : "dense", FILTERS,
			   (unsigned long long) (FILTERS * probes), rates.mean,
			   standard_error(&rates, (double) (FILTERS * probes)), estimates.mean);
	}
	for (int i = 0; i < FILTERS; i++)
		free_sample(filters[i]);
}

static void
measure_overfilled(void)
{
	printf("layout,rate_asked,capacity_elements,hashes,bits,load_of_capacity,elements,representation,filters,probes,"
		   "rate,rate_standard_error,bloom_fpp\n");
	for (int layout = BF_BLOCKED; layout <= BF_CLASSIC; layout++)
	{
		overfill(layout, 0.01, 100000);
		overfill(layout, 0.001, 100000);
	}
}

static void
print_estimate(const char *estimate, bf_layout layout, const bf_params *params, uint64_t capacity,
			   double load, const char *overlap, double truth, const moments *values)
{
	printf("%s,%s,%llu,%u,%llu,%g,%s,%.0f,%.10g,%.10g,%.6g\n", estimate, bf_layout_name(layout),
		   (unsigned long long) capacity, params->k, (unsigned long long) params->m, load, overlap,
		   values->count, truth, values->mean, deviation(values));
}

static uint64_t
estimated_filters(uint64_t capacity)
{
	return between(100, 5e6 / (double) capacity, 2000);
}

static void
measure_cardinality(bf_layout layout, double rate, uint64_t n)
{
	static const double loads[] = {0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 2.5, 3, 3.5, 4};
	bf_params	params = params_for(layout, rate, n);
	sample	   *filter = new_sample(&params);
	moments		estimates[LENGTH(loads)] = {0};

	for (uint64_t seed = 1; seed <= estimated_filters(n); seed++)
	{
		restart(filter, &params, seed);
		for (size_t i = 0; i < LENGTH(loads); i++)
		{
			add_range(filter, filter->count + 1, (uint64_t) round(loads[i] * (double) n));
			moments_add(&estimates[i], cardinality(filter));
		}
	}
	for (size_t i = 0; i < LENGTH(loads); i++)
		print_estimate("cardinality", layout, &params, n, loads[i], "", round(loads[i] * (double) n), &estimates[i]);
	free_sample(filter);
}

/* The estimates for two filters, as bloom_intersection_cardinality() and its like give them. */
typedef struct pair_estimates
{
	double		united;
	double		common;
	double		jaccard;
} pair_estimates;

/* Two sets of n integers each, of which the sets share `common`. */
static pair_estimates
estimate_pair(sample *a, sample *b, uint64_t n, uint64_t common)
{
	pair_estimates pair;

	add_range(a, 1, n);
	add_range(b, n - common + 1, 2 * n - common);
	pair.united = bf_cardinality(&a->shape, bf_popcount_or(a->bits, b->bits, a->params.m / 8));
	pair.common = bf_intersection_of(cardinality(a), cardinality(b), pair.united);
	pair.jaccard = pair.common / pair.united;
	return pair;
}

static void
measure_pairs(bf_layout layout, double rate, uint64_t n)
{
	static const double overlaps[] = {0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1};
	bf_params	params = params_for(layout, rate, n);
	sample	   *a = new_sample(&params);
	sample	   *b = new_sample(&params);

	for (size_t i = 0; i < LENGTH(overlaps); i++)
	{
		uint64_t	common = (uint64_t) round(overlaps[i] * (double) n);
		moments		united = {0};
		moments		shared = {0};
		moments		jaccard = {0};
		char		overlap[16];

		for (uint64_t seed = 1; seed <= estimated_filters(n); seed++)
		{
			pair_estimates pair;

			restart(a, &params, seed);
			restart(b, &params, seed);
			pair = estimate_pair(a, b, n, common);
			moments_add(&united, pair.united);
			moments_add(&shared, pair.common);
			moments_add(&jaccard, pair.jaccard);
		}
		snprintf(overlap, sizeof(overlap), "%g", overlaps[i]);
		print_estimate("union", layout, &params, n, 1, overlap, (double) (2 * n - common), &united);
		print_estimate("intersection", layout, &params, n, 1, overlap, (double) common, &shared);
		print_estimate("jaccard", layout, &params, n, 1, overlap, (double) common / (double) (2 * n - common), &jaccard);
	}
	free_sample(a);
	free_sample(b);
}

static void
measure_estimates(void)
{
	static const uint64_t capacities[] = {1000, 10000, 100000};

	printf("estimate,layout,capacity_elements,hashes,bits,load_of_capacity,overlap_of_set,filters,truth,mean,"
		   "standard_deviation\n");
	for (int layout = BF_BLOCKED; layout <= BF_CLASSIC; layout++)
		for (size_t i = 0; i < LENGTH(capacities); i++)
		{
			measure_cardinality(layout, 0.01, capacities[i]);
			measure_pairs(layout, 0.01, capacities[i]);
		}
}

/* The bits of sized filters, at four rates a decade from 0.5 to 1e-9. */
static void
measure_bits(void)
{
	static const uint64_t numbers[] = {100, 10000, 1000000};

	printf("layout,elements,rate_asked,hashes,bits\n");
	for (int layout = BF_BLOCKED; layout <= BF_CLASSIC; layout++)
		for (size_t i = 0; i < LENGTH(numbers); i++)
			for (int quarter = 1; quarter <= 36; quarter++)
			{
				double		rate = quarter == 1 ? 0.5 : quarter == 36 ? 1e-9 : pow(10, -quarter / 4.0);
				bf_params	params = params_for(layout, (float) rate, numbers[i]);

				printf("%s,%llu,%.9g,%u,%llu\n", bf_layout_name(layout), (unsigned long long) numbers[i],
					   (float) rate, params.k, (unsigned long long) params.m);
			}
}

static bf_layout
layout_named(const char *name)
{
	return strcmp(name, "classic") == 0 ? BF_CLASSIC : BF_BLOCKED;
}

static sample *
sample_of(char **arguments)
{
	bf_params	params = params_for(layout_named(arguments[0]), atof(arguments[2]), strtoull(arguments[1], NULL, 10));
	sample	   *filter = new_sample(&params);

	filter->params.seed = strtoull(arguments[3], NULL, 10);
	return filter;
}

/* Prints false positives, the current rate and the cardinality of one filter. */
static void
show_point(char **arguments)
{
	sample	   *filter = sample_of(arguments);
	uint64_t	found;

	add_range(filter, 1, strtoull(arguments[4], NULL, 10));
	found = false_positives(filter, strtoull(arguments[5], NULL, 10));
	printf("%llu %.17g %.17g\n", (unsigned long long) found, current_rate(filter), cardinality(filter));
	free_sample(filter);
}

/* Prints the estimates of union, intersection and similarity of two filters. */
static void
show_pair(char **arguments)
{
	sample	   *a = sample_of(arguments);
	sample	   *b = sample_of(arguments);
	pair_estimates pair = estimate_pair(a, b, strtoull(arguments[1], NULL, 10), strtoull(arguments[4], NULL, 10));

	printf("%.17g %.17g %.17g\n", pair.united, pair.common, pair.jaccard);
	free_sample(a);
	free_sample(b);
}

int
main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "point") == 0 && argc == 8)
		show_point(argv + 2);
	else if (strcmp(what, "pair") == 0 && argc == 7)
		show_pair(argv + 2);
	else if (strcmp(what, "bits") == 0)
		measure_bits();
	else
	{
		if (argc > 2)
			most_probes = atof(argv[2]);
		if (strcmp(what, "rate") == 0)
			measure_rates();
		else if (strcmp(what, "overfilled") == 0)
			measure_overfilled();
		else if (strcmp(what, "estimates") == 0)
			measure_estimates();
		else
			return 2;
	}
	return 0;
}
