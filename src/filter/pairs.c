/*
 * pairs.c
 *		Estimates for two filters: union, intersection and similarity.
 */
#include "pg/pg_compat.h"

#include "core/estimate.h"
#include "pg/sql_function.h"
#include "value/entries.h"
#include "value/errors.h"
#include "value/walk.h"

/* |A|, |B| and |A or B|. */
typedef struct PairCounts
{
	double		left;
	double		right;
	double		united;
} PairCounts;

/*
 * Of two dense filters of different sizes the larger one is folded, which gives
 * exactly the bits of its elements at the smaller size.  All three estimates
 * come from the same bits, so their errors partly cancel.
 */
static PairCounts
count_pair(const bf_filter *left, const bf_filter *right)
{
	PairCounts	counts = {(double) left->nhashes, (double) right->nhashes, 0};
	bf_params	params = left->params;
	bf_shape	shape;
	uint64		set[3] = {0};
	bf_mismatch mismatch = bf_compare_folded(&left->params, &right->params);
	FilterWalk	walk;

	if (mismatch != BF_MATCH)
		report_mismatch(mismatch, &left->params, &right->params);
	if (left->sparse && right->sparse)
	{
		counts.united = (double) merge_entries(left, right, BF_GREATER, NULL, NULL);
		return counts;
	}
	if (left->sparse || right->sparse)
		params = left->sparse ? right->params : left->params;
	else
		params.m = Min(left->params.m, right->params.m);
	shape = bf_shape_of(&params);

	start_walk(&walk, &params, left, right);
	while (next_piece(&walk))
	{
		set[0] += left->sparse ? 0 : bf_popcount(walk.left, walk.size);
		set[1] += right->sparse ? 0 : bf_popcount(walk.right, walk.size);
		set[2] += bf_popcount_or(walk.left, walk.right, walk.size);
	}
	end_walk(&walk);
	if (!left->sparse)
		counts.left = bf_cardinality(&shape, set[0]);
	if (!right->sparse)
		counts.right = bf_cardinality(&shape, set[1]);
	counts.united = bf_cardinality(&shape, set[2]);
	return counts;
}

static PairCounts
count_arguments(FunctionCallInfo fcinfo)
{
	bf_filter	left;
	bf_filter	right;

	open_value(PG_GETARG_DATUM(0), BF_FILTER, &left);
	open_value(PG_GETARG_DATUM(1), BF_FILTER, &right);
	return count_pair(&left, &right);
}

static double
intersection_of(PairCounts counts)
{
	return bf_intersection_of(counts.left, counts.right, counts.united);
}

/* |A and B| / |A or B|, or 1 for two empty sets, which are equal. */
static double
similarity_of(PairCounts counts)
{
	return counts.united == 0 ? 1 : intersection_of(counts) / counts.united;
}

SQL_FUNCTION(bloomfilter_union_cardinality, Float8GetDatum(count_arguments(fcinfo).united))
SQL_FUNCTION(bloomfilter_intersection_cardinality, Float8GetDatum(intersection_of(count_arguments(fcinfo))))
SQL_FUNCTION(bloomfilter_jaccard, Float8GetDatum(similarity_of(count_arguments(fcinfo))))
