/*
 * measure.c
 *		What a filter's bits say.
 */
#include "pg_compat.h"

#include "core/bulk.h"
#include "core/estimate.h"
#include "measure.h"
#include "value.h"

static FilterMeasures
measure_bits(const bf_filter *filter)
{
	FilterMeasures measures = {0};
	bf_histogram *histogram = palloc0(sizeof(*histogram));
	bool		blocked = filter->params.layout == BF_BLOCKED;
	bf_shape	shape = bf_shape_of(&filter->params);
	FilterWalk	walk;

	start_walk(&walk, filter->params.m, filter, NULL);
	while (next_piece(&walk))
	{
		if (blocked)
			bf_count_blocks(walk.left, walk.size / BF_BLOCK_BYTES, histogram);
		else
			measures.bits_set += bf_popcount(walk.left, walk.size);
	}
	end_walk(&walk);

	if (blocked)
	{
		measures.bits_set = bf_histogram_bits(histogram);
		measures.rate = bf_current_rate_blocked(&shape, histogram);
	}
	else
		measures.rate = bf_current_rate_classic(&shape, measures.bits_set);
	measures.cardinality = bf_cardinality(&shape, measures.bits_set);
	pfree(histogram);
	return measures;
}

FilterMeasures
measure_filter(const bf_filter *filter)
{
	FilterMeasures measures = {0};

	if (!filter->sparse)
		return measure_bits(filter);
	measures.cardinality = (double) filter->nhashes;
	measures.rate = bf_current_rate_sparse(filter->nhashes);
	return measures;
}
