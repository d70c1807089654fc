/*
 * measure.c
 *		Counts, estimates and the current rate of one filter or counter.
 */
#include "pg/pg_compat.h"

#include "core/estimate.h"
#include "core/format.h"
#include "core/number_bulk.h"
#include "filter/measure.h"
#include "miscadmin.h"
#include "pg/memory.h"

/* Bytes of bits that are read between two checks for interrupts. */
#define PIECE_BYTES (8 * 1024)

/*
 * The bytes [from, from + size) of a dense filter's bits.  A counter's positions
 * count as set unless their number is 0; scratch takes size bytes of them.
 */
static const uint8 *
read_bits(const bf_filter *filter, uint64 from, uint64 size, uint8 *scratch)
{
	uint32		counter_bits = filter->params.counter_bits;

	CHECK_FOR_INTERRUPTS();
	if (counter_bits == 0)
		return filter->payload + from;
	bf_threshold(scratch, filter->payload + from * counter_bits, 8 * size, counter_bits, 1);
	return scratch;
}

static void
tally_bits(const bf_filter *filter, const bf_shape *shape, bf_tally *tally)
{
	uint64		total = filter->params.m / 8;
	uint8		scratch[PIECE_BYTES];

	for (uint64 at = 0; at < total; at += PIECE_BYTES)
	{
		uint64		size = Min(PIECE_BYTES, total - at);

		bf_tally_add(tally, shape, read_bits(filter, at, size, scratch), size);
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
	uint64		total = filter->params.m / 8;
	uint64		bits_set = 0;
	uint8		scratch[PIECE_BYTES];

	if (filter->sparse)
		return (double) filter->nhashes;
	for (uint64 at = 0; at < total; at += PIECE_BYTES)
	{
		uint64		size = Min(PIECE_BYTES, total - at);

		bits_set += bf_popcount(read_bits(filter, at, size, scratch), size);
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
