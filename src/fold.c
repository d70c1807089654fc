/*
 * fold.c
 *		Making a filter smaller at the price of its false-positive rate.
 */
#include "pg_compat.h"

#include "core/sizing.h"
#include "errors.h"
#include "fmgr.h"
#include "measure.h"
#include "miscadmin.h"
#include "value.h"

PG_FUNCTION_INFO_V1(bloomfilter_fold);

/* A filter so small that every size can be tried. */
#define SMALL_BLOCKS 4096

/*
 * The filter folded to m bits.  A sparse one keeps its hashes, unless the
 * fewer bits are smaller.
 */
static Bloomfilter *
fold_to(const bf_filter *filter, uint64 m, float rate)
{
	bf_filter	result = {.params = filter->params};
	uint8	   *payload;
	Bloomfilter *value;
	FilterWalk	walk;

	result.params.m = m;
	result.params.rate = rate;
	if (filter->sparse && filter->nhashes <= bf_sparse_limit(m))
	{
		result.sparse = true;
		result.nhashes = filter->nhashes;
		result.payload = filter->payload;
		return copy_value(&result);
	}
	value = make_value(&result, false, &payload);
	start_walk(&walk, m, filter, NULL);
	while (next_piece(&walk))
		memcpy(payload + walk.at, walk.left, walk.size);
	end_walk(&walk);
	return value;
}

static double
rate_at_size(const bf_filter *filter, uint64 m)
{
	if (filter->sparse && filter->nhashes <= bf_sparse_limit(m))
		return measure_filter(filter).rate;
	return measure_at_size(filter, m).rate;
}

/*
 * The least size that a filter folds to without exceeding a rate.  The bits
 * themselves have the last word.  The search begins well below the size that
 * the expected rate calls for, as a filter may be luckier than the mean, and
 * no higher than where a sparse filter stays sparse.
 */
static uint64
least_size(const bf_filter *filter, double cardinality, float rate)
{
	const bf_params *params = &filter->params;
	uint64		nblocks = params->m / BF_BLOCK_BITS;
	uint64		first = bf_bits_for(params->layout, params->k, rate,
									(uint64) cardinality) / BF_BLOCK_BITS;

	if (nblocks <= SMALL_BLOCKS)
		first = 1;
	else
		first = first == 0 ? nblocks : first / 2;
	if (filter->sparse)
		first = Min(first, filter->nhashes / 8);
	for (uint64 n = Max(first, 1); n < nblocks; n++)
	{
		if (n % 1024 == 0)
			CHECK_FOR_INTERRUPTS();
		if (nblocks % n == 0 && rate_at_size(filter, n * BF_BLOCK_BITS) <= rate)
			return n * BF_BLOCK_BITS;
	}
	return params->m;
}

Datum
bloomfilter_fold(PG_FUNCTION_ARGS)
{
	float		rate = check_rate(PG_GETARG_FLOAT8(1));
	bf_filter	filter;
	FilterMeasures measures;
	uint64		m;

	open_filter(PG_GETARG_DATUM(0), &filter);
	measures = measure_filter(&filter);
	if (measures.rate > rate)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot fold a bloom filter to a false-positive rate of %g", rate),
				 errdetail("Its rate is %g already.", measures.rate),
				 errhint("Folding makes a filter smaller and its rate higher.")));
	m = filter.params.m;
	if (m != 0 && filter.params.layout == BF_BLOCKED)
		m = least_size(&filter, measures.cardinality, rate);
	PG_RETURN_POINTER(fold_to(&filter, m, rate));
}
