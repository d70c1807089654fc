/*
 * bulk.c
 *		Loops over whole filters and counters, against memcpy of as much.
 *
 * Prints GB/s and the ratio to memcpy in the same run: minimum, median and
 * maximum of some runs.  For filters, GB are the bytes of one operand.  For
 * counters, GB are all bytes that the loop or memcpy reads and writes, because
 * their loops differ in that: a sum reads two operands and writes one, a
 * threshold at 4 bits writes a quarter of what it reads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bulk.h"
#include "number_bulk.h"

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

static uint32_t cell_bits;

static void
run_sum(size_t size)
{
	sink += bf_combine_numbers(a, b, size, cell_bits, BF_SUM);
}

static void
run_difference(size_t size)
{
	sink += bf_combine_numbers(a, b, size, cell_bits, BF_DIFFERENCE);
}

static void
run_greater(size_t size)
{
	sink += bf_combine_numbers(a, b, size, cell_bits, BF_GREATER);
}

static void
run_threshold(size_t size)
{
	bf_threshold(a, b, size * 8 / cell_bits, cell_bits, 3);
}

static void
run_decay(size_t size)
{
	bf_decay_numbers(a, size, cell_bits, 1);
}

static void
run_total(size_t size)
{
	sink += bf_sum_of_numbers(a, size, cell_bits);
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

/* Counts moved bytes for each byte of an operand, and copied for memcpy. */
static void
measure(const char *name, void (*run) (size_t), size_t size, double moved, double copied)
{
	int			repeats = (int) ((512 << 20) / size);
	double		speed[RUNS];
	double		ratio[RUNS];

	for (int i = 0; i < RUNS; i++)
	{
		double		copy = time_of(run_memcpy, size, repeats);
		double		taken = time_of(run, size, repeats);

		speed[i] = (double) size * moved / taken / 1e9;
		ratio[i] = moved / taken * copy / copied;
	}
	qsort(speed, RUNS, sizeof(double), compare_doubles);
	qsort(ratio, RUNS, sizeof(double), compare_doubles);
	printf("%-10s %6zu kB   %6.1f %6.1f %6.1f GB/s   %5.2f %5.2f %5.2f times memcpy\n", name, size >> 10,
		   speed[0], speed[RUNS / 2], speed[RUNS - 1], ratio[0], ratio[RUNS / 2], ratio[RUNS - 1]);
}

static void
measure_filters(size_t size)
{
	measure("or", run_or, size, 1, 1);
	measure("and", run_and, size, 1, 1);
	measure("popcount", run_popcount, size, 1, 1);
	measure("fold by 2", run_fold, size, 1, 1);
}

static void
measure_counters(size_t size)
{
	measure("sum", run_sum, size, 3, 2);
	measure("difference", run_difference, size, 3, 2);
	measure("greater", run_greater, size, 3, 2);
	measure("threshold", run_threshold, size, 1 + 1.0 / cell_bits, 2);
	measure("decay", run_decay, size, 2, 2);
	measure("total", run_total, size, 1, 2);
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
	printf("%-10s %9s   %-27s   ratio min/med/max\n", "", "size", "speed min/med/max");
	for (int i = 0; i < 3; i++)
		measure_filters(sizes[i]);
	for (cell_bits = 4; cell_bits <= 16; cell_bits *= 2)
	{
		printf("numbers of %u bits, bytes read and written\n", cell_bits);
		for (int i = 1; i < 3; i++)
			measure_counters(sizes[i]);
	}
	return sink == 42;
}
