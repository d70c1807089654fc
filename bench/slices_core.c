/*
 * slices_core.c
 *		Loops over bit slices, by the size of a slab.
 *
 * Prints minimum, median and maximum of some runs.  Transposition and AND count
 * the bytes they read.  Additions of sets of rows count words.
 *
 * Run by hand:
 *
 * gcc -std=gnu11 -O3 -Isrc/core -o slices bench/slices_core.c src/core/slices.c src/core/bulk.c && ./slices
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "slices.h"

#define RUNS 9
#define MOST_ROWS (BF_TILE_ROWS * BF_MOST_TILES)
#define KEYS 1000

static uint8_t *blocks;
static const uint8_t *rows[MOST_ROWS];
static uint8_t *slices;
static uint64_t *planes;
static uint64_t set[BF_SLICED_BYTES / 8];
static uint32_t slice_bytes;
static uint32_t nrows;
static uint64_t sink;

static double
seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

static void
run_slice(void)
{
	bf_slice_rows(rows, nrows, slice_bytes, slices);
}

static void
run_unslice(void)
{
	bf_unslice_rows(slices, slice_bytes, nrows, blocks);
}

/* The AND of all slices of a block, so none stays in the fastest cache. */
static void
run_and(void)
{
	memset(set, 0xFF, sizeof(set));
	for (uint32_t i = 0; i < BF_BLOCK_BITS; i++)
		sink += bf_slice_and(set, slices + (size_t) i * slice_bytes, slice_bytes);
}

/* The slices of a page. */
static void
run_and_page(void)
{
	memset(set, 0xFF, sizeof(set));
	for (uint32_t i = 0; i < BF_SLICED_BYTES; i += slice_bytes)
		sink += bf_slice_and(set, slices + i, slice_bytes);
}

static void
run_counts(void)
{
	bf_counts	counts;
	uint32_t	nwords = bf_slice_words(slice_bytes);

	bf_counts_init(&counts, planes, nwords, KEYS);
	for (int i = 0; i < KEYS; i++)
	{
		memcpy(set, blocks + 8 * i, nwords * sizeof(*set));
		bf_counts_add(&counts, set);
	}
	sink += planes[0];
}

static void
run_at_least(void)
{
	bf_counts	counts;

	bf_counts_init(&counts, planes, bf_slice_words(slice_bytes), KEYS);
	bf_counts_add(&counts, set);
	bf_counts_at_least(&counts, 1, set);
	sink += set[0];
}

static int
compare_doubles(const void *x, const void *y)
{
	return *(const double *) x < *(const double *) y ? -1 : *(const double *) x > *(const double *) y;
}

/* Prints units of work per nanosecond, or nanoseconds per unit. */
static void
measure(const char *name, void (*run) (void), double work, const char *unit, bool inverse)
{
	int			repeats = 1 + (int) (3e7 / work);
	double		speed[RUNS];

	run();
	for (int i = 0; i < RUNS; i++)
	{
		double		start = seconds();

		for (int j = 0; j < repeats; j++)
			run();
		speed[i] = work * repeats / (seconds() - start) / 1e9;
		if (inverse)
			speed[i] = 1 / speed[i];
	}
	qsort(speed, RUNS, sizeof(double), compare_doubles);
	printf("%-14s t = %3u   %7.3f %7.3f %7.3f %s\n", name, nrows / BF_TILE_ROWS, speed[0], speed[RUNS / 2],
		   speed[RUNS - 1], unit);
}

int
main(void)
{
	static const uint32_t tiles[] = {8, 64, 512};
	size_t		size = (size_t) MOST_ROWS * BF_BLOCK_BYTES;

	blocks = aligned_alloc(64, size);
	slices = aligned_alloc(64, size);
	planes = malloc(bf_counts_words(BF_SLICED_BYTES / 8, KEYS) * sizeof(*planes));
	if (blocks == NULL || slices == NULL || planes == NULL)
		return 1;
	for (size_t i = 0; i < size; i++)
		blocks[i] = (uint8_t) (i * i >> 7);
	for (size_t i = 0; i < MOST_ROWS; i++)
		rows[i] = blocks + i * BF_BLOCK_BYTES;
	for (int i = 0; i < 3; i++)
	{
		double		nbytes;
		double		nwords;

		nrows = BF_TILE_ROWS * tiles[i];
		slice_bytes = bf_slice_bytes_of(tiles[i]);
		nbytes = (double) nrows * BF_BLOCK_BYTES;
		nwords = bf_slice_words(slice_bytes);
		measure("slice", run_slice, nbytes, "GB/s", false);
		measure("unslice", run_unslice, nbytes, "GB/s", false);
		measure("and, a block", run_and, nbytes, "GB/s", false);
		measure("and, a page", run_and_page, BF_SLICED_BYTES, "GB/s", false);
		measure("add to counts", run_counts, nwords * KEYS, "ns a word", true);
		measure("at least", run_at_least, nwords, "ns a word", true);
	}
	return sink == 42;
}
