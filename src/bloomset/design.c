/*
 * design.c
 *		The sizes and rates of the generations of a bloomset.
 *
 * The rates of all generations add up to at most the requested one: almost 7/8 of it
 * for generation 1, since most sets have no other, then 3/64, 3/128 and so on, but not
 * below the least rate of a filter.  A smaller share for the later generations would
 * cost them more bits an element.  The rest, 1/32, is for generations that end a little
 * above their capacity, because growth counts a sample of pages.
 */
#include "pg/pg_compat.h"

#include <math.h>

#include "bloomset/bloomset.h"
#include "value/parameters.h"

/* Above 64 blocks the size is proportional to the number of elements. */
#define MAX_SOLVED_ITEMS	(1 << 20)

static double
rate_of_generation(double rate, uint32 index)
{
	if (index == 0)
		return rate * 7 / 8 - (MAX_GENERATIONS - 1) * BF_MIN_RATE;
	return Max(ldexp(rate * 3 / 32, -(int) index), BF_MIN_RATE);
}

double
elements_of_page(double rate)
{
	bf_params	params = unsized_params(rate_of_generation(rate, 0), 1);

	params.m = BLOCKS_PER_PAGE * BF_BLOCK_BITS;
	return (double) filter_capacity(&params);
}

bool
design_generation(BloomsetMeta *meta, uint32 index, double items)
{
	Generation *generation = &meta->generation[index];
	int			doublings = 0;
	double		nblocks;
	bf_params	params;

	while (items > MAX_SOLVED_ITEMS)
	{
		items /= 2;
		doublings++;
	}
	params = solve_params(Max(items, 1), rate_of_generation(meta->rate, index), BF_BLOCKED,
						  meta->seed, 1);
	nblocks = ldexp((double) (params.m / BF_BLOCK_BITS), doublings);
	if (nblocks > PG_UINT32_MAX)
		return false;
	generation->nblocks = (uint32) nblocks;
	generation->k = params.k;
	generation->rate = params.rate;
	generation->capacity = filter_capacity(&params) << doublings;
	return true;
}

/*
 * Counted elements are those that were not in the set before.  At capacity, false
 * positives are missing.  Their share is the mean of the rate while the generation
 * filled, a little more than the 1 / (k + 1)th part of its last value.
 */
double
full_elements(const Generation *generation)
{
	return generation->capacity * (1 - 1.25 * generation->rate / (generation->k + 1));
}
