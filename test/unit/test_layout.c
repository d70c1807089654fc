/*
 * test_layout.c
 *		The differences between the two layouts.
 */
#include <string.h>

#include "compatible.h"
#include "layout.h"
#include "tap.h"

static bf_params
params_of(bf_layout layout, uint32_t k, uint64_t m)
{
	return (bf_params) {.layout = layout, .k = k, .m = m, .cell_bits = 1};
}

static void
test_shape(void)
{
	bf_params	params = params_of(BF_BLOCKED, 7, BF_MAX_BITS);
	bf_shape	shape = bf_shape_of(&params);

	ok(shape.nblocks == 1 << 22 && shape.block_bits == 512 && shape.k == 7,
	   "the shape of the largest blocked filter");
	params = params_of(BF_CLASSIC, 32, BF_MAX_BITS);
	shape = bf_shape_of(&params);
	ok(shape.nblocks == 1 && shape.block_bits == UINT32_C(1) << 31 && shape.k == 32,
	   "the shape of the largest classic one");
	params = params_of(BF_CLASSIC, 1, 64);
	shape = bf_shape_of(&params);
	ok(shape.nblocks == 1 && shape.block_bits == 64 && shape.k == 1,
	   "the shape of the smallest classic one");
}

/* A blocked filter folds to the divisors of its number of blocks, in ascending order. */
static void
test_folds(void)
{
	for (uint64_t nblocks = 1; nblocks <= 360; nblocks++)
	{
		bf_params	params = params_of(BF_BLOCKED, 7, 512 * nblocks);
		uint64_t	m = 0;

		for (uint64_t divisor = 1; divisor <= nblocks; divisor++)
		{
			each(bf_folds_to(&params, 512 * divisor) == (nblocks % divisor == 0),
				 "%" PRIu64 " blocks to %" PRIu64, nblocks, divisor);
			if (nblocks % divisor == 0)
			{
				m = bf_next_fold(&params, m);
				each(m == 512 * divisor, "next size of %" PRIu64 " blocks", nblocks);
			}
		}
	}
	passed("a blocked filter folds to the divisors of its blocks");

	for (uint64_t m = 64; m <= 64 * 360; m += 64)
	{
		bf_params	params = params_of(BF_CLASSIC, 7, m);

		each(bf_next_fold(&params, 0) == m && !bf_folds_to(&params, m / 2),
			 "classic filter of %" PRIu64 " bits", m);
	}
	passed("a classic filter keeps its size");
}

static void
test_names(void)
{
	ok(strcmp(bf_layout_name(BF_BLOCKED), "blocked") == 0, "blocked");
	ok(strcmp(bf_layout_name(BF_CLASSIC), "classic") == 0, "classic");
	is(bf_size_unit(BF_BLOCKED), 512, "a blocked filter has whole blocks");
	is(bf_size_unit(BF_CLASSIC), 64, "a classic filter has whole words");
}

int
main(void)
{
	test_shape();
	test_folds();
	test_names();
	return done();
}
