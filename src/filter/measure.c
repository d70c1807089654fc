/*
 * measure.c
 *		Counts, estimates and the current rate of one filter.
 */
#include "pg/pg_compat.h"

#include "core/estimate.h"
#include "core/format.h"
#include "filter/measure.h"
#include "miscadmin.h"
#include "pg/memory.h"

static void
tally_bits(const bf_filter *filter, const bf_shape *shape, bf_tally *tally)
{
	uint64		size = bf_payload_size(filter);

	for (uint64 at = 0; at < size; at += CHUNK_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		bf_tally_add(tally, shape, filter->payload + at, Min(CHUNK_BYTES, size - at));
	}
}

FilterMeasures
measure_filter(const bf_filter *filter)
{
	FilterMeasures measures = {0};
	bf_shape	shape = bf_shape_of(&filter->params);
	bf_tally	tally = {0};

	if (filter->sparse)
	{
		measures.cardinality = (double) filter->nhashes;
		measures.rate = bf_current_rate_sparse(filter->nhashes);
		return measures;
	}
	tally_bits(filter, &shape, &tally);
	measures.bits_set = bf_tally_bits(&tally, &shape);
	measures.full_blocks = bf_tally_full_blocks(&tally, &shape);
	measures.cardinality = bf_cardinality(&shape, measures.bits_set);
	measures.rate = bf_current_rate(&tally, &shape);
	return measures;
}

double
measure_cardinality(const bf_filter *filter)
{
	bf_shape	shape = bf_shape_of(&filter->params);
	uint64		size = bf_payload_size(filter);
	uint64		bits_set = 0;

	if (filter->sparse)
		return (double) filter->nhashes;
	for (uint64 at = 0; at < size; at += CHUNK_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		bits_set += bf_popcount(filter->payload + at, Min(CHUNK_BYTES, size - at));
	}
	return bf_cardinality(&shape, bits_set);
}

double
measure_rate(const bf_filter *filter)
{
	bf_shape	shape = bf_shape_of(&filter->params);
	bf_tally	tally = {0};

	if (filter->sparse)
		return bf_current_rate_sparse(filter->nhashes);
	tally_bits(filter, &shape, &tally);
	return bf_current_rate(&tally, &shape);
}
