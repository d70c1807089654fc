/*
 * bulk.c
 *		Loops over all bits of a filter, against memcpy of as much.
 *
 * Prints GB/s, counting for each the bytes of one operand, and the ratio to
 * memcpy in the same run: minimum, median and maximum of some runs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bulk.h"

#define RUNS 9

static double
seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

static uint8_t *a;
static uint8_t *b;
static uint64_t sink;

static void
run_memcpy(size_t size)
{
	memcpy(a, b, size);
}

static void
run_or(size_t size)
{
	bf_or(a, b, size);
}

static void
run_and(size_t size)
{
	bf_and(a, b, size);
}

static void
run_popcount(size_t size)
{
	sink += bf_popcount(a, size);
}

static void
run_fold(size_t size)
{
	bf_fold(a, b, size / BF_BLOCK_BYTES / 2, 2);
}

static double
time_of(void (*run) (size_t), size_t size, int repeats)
{
	double		start = seconds();

	for (int i = 0; i < repeats; i++)
		run(size);
	return (seconds() - start) / repeats;
}

static int
compare_doubles(const void *x, const void *y)
{
	return *(const double *) x < *(const double *) y ? -1 : *(const double *) x > *(const double *) y;
}

static void
measure(const char *name, void (*run) (size_t), size_t size)
{
	int			repeats = (int) ((512 << 20) / size);
	double		speed[RUNS];
	double		ratio[RUNS];

	for (int i = 0; i < RUNS; i++)
	{
		double		copy = time_of(run_memcpy, size, repeats);
		double		taken = time_of(run, size, repeats);

		speed[i] = (double) size / taken / 1e9;
		ratio[i] = copy / taken;
	}
	qsort(speed, RUNS, sizeof(double), compare_doubles);
	qsort(ratio, RUNS, sizeof(double), compare_doubles);
	printf("%-9s %6zu kB   %6.1f %6.1f %6.1f GB/s   %5.2f %5.2f %5.2f times memcpy\n", name, size >> 10,
		   speed[0], speed[RUNS / 2], speed[RUNS - 1], ratio[0], ratio[RUNS / 2], ratio[RUNS - 1]);
}

int
main(void)
{
	static const size_t sizes[] = {128 << 10, 1 << 20, 64 << 20};

	a = aligned_alloc(64, 64 << 20);
	b = aligned_alloc(64, 64 << 20);
	if (a == NULL || b == NULL)
		return 1;
	memset(a, 1, 64 << 20);
	memset(b, 2, 64 << 20);
	printf("%-9s %9s   %-27s   ratio min/med/max\n", "", "size", "speed min/med/max");
	for (int i = 0; i < 3; i++)
	{
		measure("or", run_or, sizes[i]);
		measure("and", run_and, sizes[i]);
		measure("popcount", run_popcount, sizes[i]);
		measure("fold by 2", run_fold, sizes[i]);
	}
	return sink == 42;
}
