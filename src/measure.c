/*
 * measure.c
 *		What a filter's bits say.
 */
#include "pg_compat.h"

#include "core/bulk.h"
#include "core/estimate.h"
#include "measure.h"
#include "memory.h"
#include "miscadmin.h"

static uint64
count_bits(const bf_filter *filter)
{
	uint64		size = bf_payload_size(filter);
	uint64		bits_set = 0;

	for (uint64 at = 0; at < size; at += CHUNK_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		bits_set += bf_popcount(filter->payload + at, Min(CHUNK_BYTES, size - at));
	}
	return bits_set;
}

static void
count_blocks(const bf_filter *filter, bf_histogram *histogram)
{
	uint64		size = bf_payload_size(filter);

	for (uint64 at = 0; at < size; at += CHUNK_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		bf_count_blocks(filter->payload + at, Min(CHUNK_BYTES, size - at) / BF_BLOCK_BYTES,
						histogram);
	}
}

FilterMeasures
measure_filter(const bf_filter *filter)
{
	FilterMeasures measures = {0};
	bf_shape	shape = bf_shape_of(&filter->params);
	bf_histogram histogram = {0};

	if (filter->sparse)
	{
		measures.cardinality = (double) filter->nhashes;
		measures.rate = bf_current_rate_sparse(filter->nhashes);
		return measures;
	}
	if (filter->params.layout == BF_BLOCKED)
	{
		count_blocks(filter, &histogram);
		measures.bits_set = bf_histogram_bits(&histogram);
		measures.full_blocks = histogram.blocks[BF_BLOCK_BITS];
		measures.rate = bf_current_rate_blocked(&shape, &histogram);
	}
	else
	{
		measures.bits_set = count_bits(filter);
		measures.full_blocks = measures.bits_set == filter->params.m ? 1 : 0;
		measures.rate = bf_current_rate_classic(&shape, measures.bits_set);
	}
	measures.cardinality = bf_cardinality(&shape, measures.bits_set);
	return measures;
}

double
measure_cardinality(const bf_filter *filter)
{
	bf_shape	shape = bf_shape_of(&filter->params);

	return filter->sparse ? (double) filter->nhashes : bf_cardinality(&shape, count_bits(filter));
}

double
measure_rate(const bf_filter *filter)
{
	bf_shape	shape = bf_shape_of(&filter->params);
	bf_histogram histogram = {0};

	if (filter->sparse)
		return bf_current_rate_sparse(filter->nhashes);
	if (filter->params.layout == BF_CLASSIC)
		return bf_current_rate_classic(&shape, count_bits(filter));
	count_blocks(filter, &histogram);
	return bf_current_rate_blocked(&shape, &histogram);
}
