/*
 * outside.c
 *		Adds keys to a Bloom filter in a C program, and asks for keys.
 *
 * Usage: outside KEYS PRESENT ABSENT
 *
 * Each argument is a file of 64-bit keys, as COPY BINARY writes a column of
 * bigint.  With -DLIBBLOOM the filter is libbloom's, else that of src/core.
 * Both have a rate of 1 %.  Prints the nanoseconds of adding a key, of asking
 * for a present key and of asking for an absent one, the bytes of the filter,
 * and the hits among the present and among the absent keys.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RATE			0.01
#define COPY_HEADER		19		/* bytes before the first row */
#define COPY_ROW		14		/* number of columns, size, key */
#define LEAST_KEYS		1000000 /* fewer are added or asked for repeatedly */

#ifdef LIBBLOOM
#include <bloom.h>

typedef struct bloom filter;

static void
filter_make(filter *f, size_t n)
{
	if (bloom_init(f, (int) n, RATE) != 0)
		exit(1);
}

static void
filter_free(filter *f)
{
	bloom_free(f);
}

static inline void
filter_add(filter *f, uint64_t key)
{
	bloom_add(f, &key, sizeof(key));
}

static inline bool
filter_contains(filter *f, uint64_t key)
{
	return bloom_check(f, &key, sizeof(key)) == 1;
}

static size_t
filter_bytes(const filter *f)
{
	return (size_t) f->bytes;
}
#else
#include "dense.h"
#include "hash.h"
#include "probe.h"
#include "sizing.h"

typedef struct filter
{
	bf_filter	model;
	bf_update	update;
	uint8_t    *bits;
} filter;

static void
filter_make(filter *f, size_t n)
{
	static bf_solutions solutions;
	bf_params	params = {.layout = BF_BLOCKED, .rate = RATE, .element_class = BF_CLASS_INT8, .cell_bits = 1};

	params.k = bf_blocked_k(RATE);
	params.m = bf_blocked_bits(&solutions, params.k, params.rate, n);
	f->bits = aligned_alloc(BF_BLOCK_BYTES, params.m / 8);
	if (params.m == 0 || f->bits == NULL)
		exit(1);
	memset(f->bits, 0, params.m / 8);
	f->model = (bf_filter) {.params = params, .payload = f->bits};
	f->update = bf_update_of(&params, BF_SUM);
}

static void
filter_free(filter *f)
{
	free(f->bits);
}

static inline void
filter_add(filter *f, uint64_t key)
{
	bf_dense_add(f->bits, &f->update, bf_hash_word(key, 0), 1);
}

static inline bool
filter_contains(filter *f, uint64_t key)
{
	return bf_contains(&f->model, bf_hash_word(key, 0));
}

static size_t
filter_bytes(const filter *f)
{
	return f->model.params.m / 8;
}
#endif

typedef struct keys
{
	uint64_t   *key;
	size_t		n;
} keys;

static keys
read_keys(const char *path)
{
	FILE	   *file = fopen(path, "rb");
	unsigned char row[COPY_ROW];
	keys		result = {NULL, 0};
	long		size;

	if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < COPY_HEADER ||
		fseek(file, COPY_HEADER, SEEK_SET) != 0)
		exit(1);
	result.key = malloc((size_t) size / COPY_ROW * sizeof(uint64_t));
	if (result.key == NULL)
		exit(1);
	while (fread(row, COPY_ROW, 1, file) == 1)
	{
		uint64_t	key = 0;

		for (int i = 6; i < COPY_ROW; i++)
			key = key << 8 | row[i];
		result.key[result.n++] = key;
	}
	fclose(file);
	return result;
}

static double
seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

static size_t
repeats(size_t n)
{
	return n < LEAST_KEYS ? LEAST_KEYS / n : 1;
}

/* The nanoseconds of adding a key.  Leaves the last filter. */
static double
measure_add(filter *f, keys k)
{
	double		taken = 0;

	for (size_t i = 0; i < repeats(k.n); i++)
	{
		double		start;

		if (i > 0)
			filter_free(f);
		filter_make(f, k.n);
		start = seconds();
		for (size_t j = 0; j < k.n; j++)
			filter_add(f, k.key[j]);
		taken += seconds() - start;
	}
	return 1e9 * taken / (double) (k.n * repeats(k.n));
}

/* The nanoseconds of asking for a key. */
static double
measure_probes(filter *f, keys k, size_t *hits)
{
	double		start = seconds();

	for (size_t i = 0; i < repeats(k.n); i++)
	{
		*hits = 0;
		for (size_t j = 0; j < k.n; j++)
			*hits += filter_contains(f, k.key[j]);
	}
	return 1e9 * (seconds() - start) / (double) (k.n * repeats(k.n));
}

int
main(int argc, char **argv)
{
	filter		f;
	keys		k;
	double		add,
				present,
				absent;
	size_t		present_hits,
				absent_hits;

	if (argc != 4)
		return 2;
	k = read_keys(argv[1]);
	add = measure_add(&f, k);
	present = measure_probes(&f, read_keys(argv[2]), &present_hits);
	absent = measure_probes(&f, read_keys(argv[3]), &absent_hits);
	printf("%.3f %.3f %.3f %zu %zu %zu\n", add, present, absent, filter_bytes(&f), present_hits, absent_hits);
	return 0;
}
