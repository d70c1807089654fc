/*
 * estimate.c
 *		Estimators of cardinality and of the false-positive rate.
 */
#include "estimate.h"

#include <math.h>

/* The share of the positions of its block that an element has on average. */
static double
share_of_block(const bf_shape *shape)
{
	return -expm1(shape->k * log1p(-1.0 / shape->block_bits));
}

double
bf_cardinality(const bf_shape *shape, uint64_t bits_set)
{
	double		bits = (double) shape->nblocks * shape->block_bits;
	double		per_element = share_of_block(shape);

	assert((double) bits_set <= bits);
	if (bits_set == 0)
		return 0;
	if ((double) bits_set >= bits)
		return INFINITY;
	return log1p(-(double) bits_set / bits) / log1p(-per_element / shape->nblocks);
}

double
bf_total(const bf_shape *shape, uint64_t sum_of_numbers)
{
	return (double) sum_of_numbers / (shape->block_bits * share_of_block(shape));
}

void
bf_tally_add(bf_tally *tally, const bf_shape *shape, const uint8_t *bits, size_t size)
{
	assert(size % (bf_has_small_blocks(shape) ? BF_BLOCK_BYTES : 8) == 0);
	if (bf_has_small_blocks(shape))
		bf_count_blocks(bits, size / BF_BLOCK_BYTES, &tally->small_blocks);
	else
		tally->bits_set += bf_popcount(bits, size);
}

uint64_t
bf_tally_bits(const bf_tally *tally, const bf_shape *shape)
{
	const bf_histogram *histogram = &tally->small_blocks;
	uint64_t	bits = 0;

	if (!bf_has_small_blocks(shape))
		return tally->bits_set;
	for (uint32_t set = BF_BLOCK_BITS - histogram->most_unset; set <= histogram->most_set; set++)
		bits += (uint64_t) set * histogram->blocks[set];
	assert(bits <= (uint64_t) shape->nblocks * BF_BLOCK_BITS);
	return bits;
}

uint64_t
bf_tally_full_blocks(const bf_tally *tally, const bf_shape *shape)
{
	return bf_has_small_blocks(shape) ? tally->small_blocks.blocks[BF_BLOCK_BITS]
		: tally->bits_set == shape->block_bits;
}

double
bf_current_rate(const bf_tally *tally, const bf_shape *shape)
{
	const bf_histogram *histogram = &tally->small_blocks;
	double		sum = 0;

	assert(shape->nblocks > 0);
	if (!bf_has_small_blocks(shape))
		return pow((double) tally->bits_set / shape->block_bits, shape->k);
	for (uint32_t set = BF_BLOCK_BITS - histogram->most_unset; set <= histogram->most_set; set++)
	{
		if (histogram->blocks[set] != 0)
			sum += (double) histogram->blocks[set] *
				pow((double) set / BF_BLOCK_BITS, shape->k);
	}
	return sum / shape->nblocks;
}

double
bf_current_rate_sparse(uint64_t nhashes)
{
	return ldexp((double) nhashes, -64);
}

double
bf_intersection_of(double a, double b, double a_or_b)
{
	assert(a >= 0 && b >= 0 && a_or_b >= 0);
	if (isinf(a_or_b))
		return NAN;
	return fmax(0, fmin(a + b - a_or_b, fmin(a, b)));
}
