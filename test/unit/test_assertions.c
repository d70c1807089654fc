/*
 * test_assertions.c
 *		A broken promise of a caller ends the program, in builds with assertions.
 */
#define _POSIX_C_SOURCE 200809L

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compatible.h"
#include "dense.h"
#include "hashset.h"
#include "layout.h"
#include "reference.h"
#include "stream.h"
#include "tap.h"

static uint8_t memory[1024];

static void
overlap(void)
{
	bf_or(memory, memory + 8, 64);
}

static void
odd_size(void)
{
	bf_combine_numbers(memory, memory + 512, 40, 4, BF_SUM);
}

static void
unknown_width(void)
{
	bf_max_size(2);
}

static void
no_level(void)
{
	bf_threshold(memory, memory + 512, 64, 8, 0);
}

static void
too_much_subtracted(void)
{
	bf_params	params = params_of(BF_BLOCKED, 3, 512);
	bf_shape	shape = bf_shape_of(&params);

	bf_numbers_change(memory, &shape, 4, 7, BF_DIFFERENCE, 1);
}

static void
no_hash_function(void)
{
	bf_params	params = params_of(BF_BLOCKED, 0, 512);

	bf_shape_of(&params);
}

static void
no_size(void)
{
	bf_params	params = params_of(BF_BLOCKED, 3, 0);
	bf_shape	shape = bf_shape_of(&params);

	bf_bits_add(memory, &shape, 7);
}

static void
difference_of_bits(void)
{
	bf_combine_cells(memory, memory + 512, 64, 1, BF_DIFFERENCE);
}

static void
backward_range(void)
{
	bf_filter	filter = {.params = params_of(BF_BLOCKED, 3, 512), .sparse = true, .nhashes = 3, .payload = memory};

	bf_check_hashes(&filter, 3, 2);
}

static void
unlike_widths(void)
{
	bf_filter	a = {.params = params_of(BF_BLOCKED, 3, 512), .sparse = true, .nhashes = 1, .payload = memory};
	bf_filter	b = a;
	bf_merge	merge = {.a = &a, .b = &b, .combination = BF_GREATER};

	b.params.cell_bits = 4;
	bf_merge_entries(&merge, NULL, NULL, 1);
}

static void
mismatch(void)
{
	bf_params	a = params_of(BF_BLOCKED, 3, 512);
	bf_params	b = params_of(BF_BLOCKED, 4, 512);

	bf_combined_params(&a, &b);
}

static void
no_divisor(void)
{
	bf_filter	filter = {.params = params_of(BF_BLOCKED, 3, 512 * 3), .payload = memory};
	bf_params	params = params_of(BF_BLOCKED, 3, 512 * 2);

	bf_stream_start(&filter, &params);
}

static void
full_set(void)
{
	uint64_t	slots[16] = {0};
	bf_hashset	set = {.slots = slots, .salt = 1, .log2_slots = 4};
	bool		added;

	for (uint64_t hash = 1; hash <= 13; hash++)
		bf_hashset_place(&set, hash << 58, &added);
}

/* True if a function ends by abort(). */
static bool
aborts(void (*broken) (void))
{
	pid_t		child = fork();
	int			status = 0;

	if (child == 0)
	{
		fclose(stderr);
		broken();
		_exit(0);
	}
	return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

int
main(void)
{
	ok(aborts(overlap), "operands that overlap");
	ok(aborts(odd_size), "a size that is no multiple of 32");
	ok(aborts(unknown_width), "cells of 2 bits");
	ok(aborts(no_level), "level 0");
	ok(aborts(too_much_subtracted), "a difference below 0");
	ok(aborts(no_hash_function), "a shape without hash functions");
	ok(aborts(no_size), "a bit of a filter without a size");
	ok(aborts(difference_of_bits), "a difference of bits");
	ok(aborts(backward_range), "a range that ends before it begins");
	ok(aborts(unlike_widths), "a merge of a filter and a counter");
	ok(aborts(mismatch), "a union of filters that do not match");
	ok(aborts(no_divisor), "a fold to a size that is no divisor");
	ok(aborts(full_set), "a hash too many in a set");
	return done();
}
