/*
 * fold.c
 *		bloom_fold: changing the size of a value without losing elements.
 *
 * The folded value has the bytes of one that was built at its size.  Counts that
 * fall together are added, levels keep the greater.
 */
#include "pg/pg_compat.h"

#include "core/compatible.h"
#include "core/estimate.h"
#include "miscadmin.h"
#include "pg/sql_function.h"
#include "value/dense.h"
#include "value/measure.h"
#include "value/parameters.h"
#include "value/threshold.h"
#include "value/walk.h"

/* The filter at the size and rate in params.  It stays sparse if it can. */
static BloomValue *
fold_to(const bf_filter *filter, const bf_params *params)
{
	bf_combination combination = filter->levels ? BF_GREATER : BF_SUM;
	bf_filter	folded = *filter;
	bf_filter	dense;
	uint8	   *payload;

	folded.params = *params;
	if (filter->sparse ? filter->nhashes <= bf_sparse_limit(params) : filter->params.m == params->m)
		return copy_value(&folded);
	if (filter->sparse)
		return make_dense_value(&folded, combination, &dense, &payload);
	return make_folded_value(filter, params, combination);
}

/* True if a Bloom filter folded to m bits keeps the rate. */
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
	start_walk(&walk, &params, filter, NULL);
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
 * The least size to which a Bloom filter folds without exceeding the rate.  Tries
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

/* (value, rate) */
static Datum
fold_argument(FunctionCallInfo fcinfo, bf_kind kind)
{
	double		rate = PG_GETARG_FLOAT8(1);
	float		rounded = check_rate(rate);
	const TypeMessages *messages = &type_messages[kind];
	bf_filter	filter;
	bf_filter	bits;
	bf_params	params;
	double		current;

	open_value(PG_GETARG_DATUM(0), kind, &filter);
	current = measure_rate(&filter);
	if (current > rate)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg(messages->fold_to_rate, rate),
				 errdetail("Its rate is already %.9g.", current),
				 errhint("Folding makes a value smaller and its rate higher.")));

	/* a sparse counter takes less space than the rate needs */
	bits = filter;
	if (kind == BF_COUNTER)
		open_value(PointerGetDatum(make_threshold(&filter, 1)), BF_FILTER, &bits);
	params = filter.params;
	params.rate = rounded;
	params.m = least_size(&bits, rate);
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
	const TypeMessages *messages = messages_for(&filter->params);

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg(messages->fold_to_size,
					(unsigned long long) filter->params.m, (unsigned long long) like->params.m),
			 bf_layout_folds(filter->params.layout)
			 ? errdetail("A dense value folds only to sizes that divide its own.")
			 : errdetail("A dense value of the classic layout does not fold."),
			 is_resizable(like, filter->params.m)
			 ? errhint("Fold the other value to the size of this one.")
			 : errhint_of(messages->build_for_same_items)));
}

/*
 * The filter at the size and rate of another filter, so that the two combine.
 * Unchanged if the other filter has no size: that combines with every filter.
 */
static Datum
fold_argument_like(FunctionCallInfo fcinfo, bf_kind kind)
{
	bf_filter	filter;
	bf_filter	like;
	bf_params	params;
	bf_mismatch mismatch;

	open_value(PG_GETARG_DATUM(0), kind, &filter);
	open_value(PG_GETARG_DATUM(1), kind, &like);
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

SQL_FUNCTION(bloomfilter_fold, fold_argument(fcinfo, BF_FILTER))
SQL_FUNCTION(bloomfilter_fold_like, fold_argument_like(fcinfo, BF_FILTER))
SQL_FUNCTION(bloomcounter_fold, fold_argument(fcinfo, BF_COUNTER))
SQL_FUNCTION(bloomcounter_fold_like, fold_argument_like(fcinfo, BF_COUNTER))
