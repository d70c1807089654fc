/*
 * fold.c
 *		Changing the size of a filter without losing elements.
 */
#include "pg/pg_compat.h"

#include "core/compatible.h"
#include "core/estimate.h"
#include "filter/errors.h"
#include "filter/measure.h"
#include "filter/params.h"
#include "filter/walk.h"
#include "fmgr.h"
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(bloomfilter_fold);
PG_FUNCTION_INFO_V1(bloomfilter_fold_like);

/* The filter at the size and rate in params.  It stays sparse if it can. */
static Bloomfilter *
fold_to(const bf_filter *filter, const bf_params *params)
{
	bf_filter	sparse = *filter;
	bf_filter	dense;
	uint8	   *bits;

	if (!filter->sparse)
		return make_resized_value(filter, params);
	sparse.params = *params;
	if (filter->nhashes <= bf_sparse_limit(params))
		return copy_value(&sparse);
	return make_dense_value(&sparse, &dense, &bits);
}

/* True if the filter folded to m bits keeps the rate. */
static bool
keeps_rate(const bf_filter *filter, uint64 m, double rate)
{
	bf_params	params = filter->params;
	bf_tally	tally = {0};
	bf_shape	shape;
	bool		keeps = true;
	FilterWalk	walk;

	params.m = m;
	if (filter->sparse && filter->nhashes <= bf_sparse_limit(&params))
		return true;
	shape = bf_shape_of(&params);
	start_walk(&walk, m, filter, NULL);
	while (keeps && next_piece(&walk))
	{
		bf_tally_add(&tally, &shape, walk.left, walk.size);
		/* the rate so far is a lower bound */
		keeps = bf_current_rate(&tally, &shape) <= rate;
	}
	end_walk(&walk);
	return keeps;
}

/*
 * The least size to which the filter folds without exceeding the rate.  Tries
 * all sizes in ascending order: most are rejected after a few blocks.
 */
static uint64
least_size(const bf_filter *filter, double rate)
{
	for (uint64 m = 0; (m = bf_next_fold(&filter->params, m)) < filter->params.m;)
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
	bf_params	params;
	double		current;

	open_filter(PG_GETARG_DATUM(0), &filter);
	current = measure_rate(&filter);
	if (current > rate)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot fold a bloom filter to a false-positive rate of %.9g", rate),
				 errdetail("Its rate is already %.9g.", current),
				 errhint("Folding makes a filter smaller and its rate higher.")));
	params = filter.params;
	params.rate = rounded;
	params.m = least_size(&filter, rate);
	PG_RETURN_POINTER(fold_to(&filter, &params));
}

/* True if the filter can be converted to m bits exactly. */
static bool
is_resizable(const bf_filter *filter, uint64 m)
{
	return filter->sparse || bf_folds_to(&filter->params, m);
}

pg_noreturn static void
report_not_resizable(const bf_filter *filter, const bf_filter *like)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("cannot fold a bloom filter of %llu bits to %llu bits",
					(unsigned long long) filter->params.m, (unsigned long long) like->params.m),
			 bf_layout_folds(filter->params.layout)
			 ? errdetail("A dense filter folds only to sizes that divide its own.")
			 : errdetail("A dense filter of the classic layout does not fold."),
			 is_resizable(like, filter->params.m)
			 ? errhint("Fold the other filter to the size of this one.")
			 : errhint("Build both filters with the same expected number of elements.")));
}

/*
 * The filter at the size and rate of another filter, so that the two combine.
 * Unchanged if the other filter has no size: that combines with every filter.
 */
Datum
bloomfilter_fold_like(PG_FUNCTION_ARGS)
{
	bf_filter	filter;
	bf_filter	like;
	bf_params	params;
	bf_mismatch mismatch;

	open_filter(PG_GETARG_DATUM(0), &filter);
	open_filter(PG_GETARG_DATUM(1), &like);
	mismatch = bf_compare_params(&filter.params, &like.params);
	if (mismatch == BF_MISMATCH_SIZE && !is_resizable(&filter, like.params.m))
		report_not_resizable(&filter, &like);
	if (mismatch != BF_MATCH && mismatch != BF_MISMATCH_SIZE)
		report_mismatch(mismatch, &filter.params, &like.params);

	params = like.params;
	params.element_class = filter.params.element_class;
	if (like.params.m == 0 || bf_equal_params(&filter.params, &params))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	PG_RETURN_POINTER(fold_to(&filter, &params));
}
