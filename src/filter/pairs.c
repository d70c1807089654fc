/*
 * pairs.c
 *		Estimates for two filters: union, intersection and similarity.
 */
#include "pg/pg_compat.h"

#include "core/estimate.h"
#include "value/entries.h"
#include "value/errors.h"
#include "value/walk.h"

PG_FUNCTION_INFO_V1(bloomfilter_union_cardinality);
PG_FUNCTION_INFO_V1(bloomfilter_intersection_cardinality);
PG_FUNCTION_INFO_V1(bloomfilter_jaccard);

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

	start_walk(&walk, params.m, left, right);
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

	open_filter(PG_GETARG_DATUM(0), &left);
	open_filter(PG_GETARG_DATUM(1), &right);
	return count_pair(&left, &right);
}

Datum
bloomfilter_union_cardinality(PG_FUNCTION_ARGS)
{
	PG_RETURN_FLOAT8(count_arguments(fcinfo).united);
}

Datum
bloomfilter_intersection_cardinality(PG_FUNCTION_ARGS)
{
	PairCounts	counts = count_arguments(fcinfo);

	PG_RETURN_FLOAT8(bf_intersection_of(counts.left, counts.right, counts.united));
}

/* |A and B| / |A or B|, or 1 for two empty sets, which are equal. */
Datum
bloomfilter_jaccard(PG_FUNCTION_ARGS)
{
	PairCounts	counts = count_arguments(fcinfo);

	if (counts.united == 0)
		PG_RETURN_FLOAT8(1);
	PG_RETURN_FLOAT8(bf_intersection_of(counts.left, counts.right, counts.united) /
					 counts.united);
}
