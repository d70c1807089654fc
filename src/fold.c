/*
 * fold.c
 *		Making a filter smaller at the price of its false-positive rate.
 */
#include "pg_compat.h"

#include "core/bulk.h"
#include "core/estimate.h"
#include "errors.h"
#include "fmgr.h"
#include "measure.h"
#include "miscadmin.h"
#include "params.h"
#include "value.h"

PG_FUNCTION_INFO_V1(bloomfilter_fold);

/*
 * The filter folded to m bits.  A sparse one keeps its hashes, unless the
 * fewer bits are smaller.
 */
static Bloomfilter *
fold_to(const bf_filter *filter, uint64 m, float rate)
{
	bf_filter	result = {.params = filter->params};

	result.params.m = m;
	result.params.rate = rate;
	if (filter->sparse && filter->nhashes <= bf_sparse_limit(m))
	{
		result.sparse = true;
		result.nhashes = filter->nhashes;
		result.payload = filter->payload;
		return copy_value(&result);
	}
	return make_resized_value(filter, &result.params);
}

/* Does a blocked filter, folded to m bits, keep a rate? */
static bool
keeps_rate(const bf_filter *filter, uint64 m, double rate)
{
	bf_params	params = filter->params;
	bf_histogram *histogram;
	bf_shape	shape;
	bool		keeps = true;
	FilterWalk	walk;

	if (filter->sparse && filter->nhashes <= bf_sparse_limit(m))
		return true;
	params.m = m;
	shape = bf_shape_of(&params);
	histogram = palloc0(sizeof(*histogram));
	start_walk(&walk, m, filter, NULL);
	while (keeps && next_piece(&walk))
	{
		bf_count_blocks(walk.left, walk.size / BF_BLOCK_BYTES, histogram);
		/* the blocks counted so far alone may be too much already */
		keeps = bf_current_rate_blocked(&shape, histogram) <= rate;
	}
	end_walk(&walk);
	pfree(histogram);
	return keeps;
}

/*
 * The least size that a blocked filter folds to without exceeding a rate.  All
 * are tried in ascending order: one that is far too small is found out after
 * its first few blocks.
 */
static uint64
least_size(const bf_filter *filter, double rate)
{
	for (uint64 m = 0; (m = bf_next_fold(filter->params.m, m)) < filter->params.m;)
	{
		CHECK_FOR_INTERRUPTS();
		if (keeps_rate(filter, m, rate))
			return m;
	}
	return filter->params.m;
}

Datum
bloomfilter_fold(PG_FUNCTION_ARGS)
{
	double		rate = PG_GETARG_FLOAT8(1);
	float		rounded = check_rate(rate);
	bf_filter	filter;
	FilterMeasures measures;
	uint64		m;

	open_filter(PG_GETARG_DATUM(0), &filter);
	measures = measure_filter(&filter);
	if (measures.rate > rate)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot fold a bloom filter to a false-positive rate of %.9g", rate),
				 errdetail("Its rate is %.9g already.", measures.rate),
				 errhint("Folding makes a filter smaller and its rate higher.")));
	m = filter.params.m;
	if (m != 0 && filter.params.layout == BF_BLOCKED)
		m = least_size(&filter, rate);
	PG_RETURN_POINTER(fold_to(&filter, m, rounded));
}
