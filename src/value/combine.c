/*
 * combine.c
 *		Union and intersection of two values of one type; sum and difference of
 *		counters.
 *
 * Each combines the cells of two operands: | keeps the greater, & the lesser.
 */
#include "pg/pg_compat.h"

#include "core/probe.h"
#include "pg/sql_function.h"
#include "utils/fmgrprotos.h"
#include "value/combine.h"
#include "value/dense.h"
#include "value/entries.h"
#include "value/parameters.h"
#include "value/walk.h"

/* Combines the elements of a sparse filter with a dense payload. */
static void
combine_entries(uint8 *payload, const bf_params *params, const bf_filter *sparse, bf_combination combination)
{
	bf_shape	shape = bf_shape_of(params);
	uint32		cell_bits = params->cell_bits;
	uint32		limit = bf_cell_limit(cell_bits);
	EntryWalk	walk = walk_entries(sparse);

	while (next_entry(&walk))
	{
		if (combination == BF_DIFFERENCE &&
			!bf_has_difference(bf_cells_read(payload, &shape, cell_bits, walk.hash), walk.number, limit))
			report_misfit();
		bf_cells_change(payload, &shape, cell_bits, walk.hash, combination, walk.number);
	}
}

/* Of two dense filters, a chunk at a time, which then is in the cache. */
static BloomValue *
combine_dense(const bf_filter *left, const bf_filter *right, const bf_filter *result,
			  bf_combination combination)
{
	uint64		size = bf_payload_size(result);
	uint8	   *payload;
	BloomValue *value = make_value(result, false, &payload);

	for (uint64 at = 0; at < size; at += CHUNK_BYTES)
	{
		Size		length = Min(CHUNK_BYTES, size - at);

		CHECK_FOR_INTERRUPTS();
		memcpy(payload + at, left->payload + at, length);
		if (!bf_combine_cells(payload + at, right->payload + at, length, result->params.cell_bits,
							  combination))
			report_misfit();
	}
	return value;
}

/* The dense union, sum or difference if one operand, or each, is sparse. */
static BloomValue *
combine_mixed(const bf_filter *left, const bf_filter *right, const bf_filter *result,
			  bf_combination combination)
{
	bf_filter	first = *left;
	bf_filter	dense;
	uint8	   *payload;
	BloomValue *value;

	first.params = result->params;
	first.levels = result->levels;
	value = make_dense_value(&first, combination == BF_GREATER ? BF_GREATER : BF_SUM, &dense, &payload);
	if (right->sparse)
		combine_entries(payload, &dense.params, right, combination);
	else if (!combine_cells(payload, right->payload, bf_payload_size(right), dense.params.cell_bits,
							combination))
		report_misfit();
	return value;
}

/* The intersection of a sparse and a dense filter, which is sparse. */
static BloomValue *
intersect_mixed(const bf_filter *sparse, const bf_filter *dense, bf_filter *result)
{
	EntryWriter writer = write_entries(result, sparse->nhashes);
	EntryWalk	walk = walk_entries(sparse);

	while (next_entry(&walk))
	{
		uint32		number = bf_combine_two(BF_LESSER, bf_read(dense, walk.hash), walk.number, BF_MAX_NUMBER);

		if (number > 0)
			put_entry(&writer, walk.hash, number);
	}
	return finish_entries(&writer);
}

static BloomValue *
combine_sparse(const bf_filter *left, const bf_filter *right, bf_filter *result, bf_combination combination)
{
	uint8	   *payload;
	BloomValue *value;

	result->nhashes = merge_entries(left, right, combination, NULL, NULL);
	if (result->nhashes > bf_sparse_limit(&result->params) && combination != BF_LESSER)
	{
		result->nhashes = 0;
		return combine_mixed(left, right, result, combination);
	}
	result->sparse = true;
	value = make_value(result, false, &payload);
	merge_entries(left, right, combination, payload, payload + BF_HASH_BYTES * result->nhashes);
	return value;
}

BloomValue *
combine_filters(const bf_filter *left, const bf_filter *right, bf_filter *result,
				bf_combination combination)
{
	if (left->sparse && right->sparse)
		return combine_sparse(left, right, result, combination);
	if (!left->sparse && !right->sparse)
		return combine_dense(left, right, result, combination);
	if (combination == BF_LESSER)
		return left->sparse ? intersect_mixed(left, right, result) : intersect_mixed(right, left, result);

	/* only a difference does not commute */
	if (left->sparse && combination != BF_DIFFERENCE)
		return combine_mixed(right, left, result, combination);
	return combine_mixed(left, right, result, combination);
}

/* True if super may contain every hash of sub, which is sparse. */
static bool
contains_hashes(const bf_filter *super, const bf_filter *sub)
{
	EntryWalk	walk = walk_entries(sub);

	while (next_entry(&walk))
	{
		if (!bf_contains(super, walk.hash))
			return false;
	}
	return true;
}

/* True if every bit of sub is set in super. */
static bool
contains_bits(const bf_filter *super, const bf_filter *sub)
{
	FilterWalk	walk;
	bool		contains = true;

	start_walk(&walk, &sub->params, sub, super);
	while (contains && next_piece(&walk))
		contains = bf_is_subset(walk.left, walk.right, walk.size);
	end_walk(&walk);
	return contains;
}

bool
may_contain_all(const bf_filter *super, const bf_filter *sub)
{
	return sub->sparse ? contains_hashes(super, sub) : contains_bits(super, sub);
}

/* True if the union of the two filters has the same bytes as filter. */
static bool
is_union(const bf_filter *filter, const bf_filter *other, const bf_params *united)
{
	return bf_equal_params(&filter->params, united) &&
		(other->sparse || !filter->sparse) && may_contain_all(filter, other);
}

static void
require_counts(const bf_filter *left, const bf_filter *right)
{
	if (left->levels || right->levels)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot subtract bloom counters that hold levels"),
				 levels_detail()));
}

/*
 * The operand, 0 or 1, that decides the result alone because the other one has
 * no elements and is neutral; -1 if there is none.
 */
static int
only_operand(const bf_filter operands[2], bf_combination combination)
{
	if (bf_is_empty(&operands[1]))
		return 0;
	return bf_is_empty(&operands[0]) && combination != BF_DIFFERENCE ? 1 : -1;
}

/* The operand with the parameters of the result, still toasted if it has them. */
static Datum
return_operand(Datum value, const bf_filter *operand, const bf_params *params)
{
	bf_filter	result = *operand;

	if (bf_equal_params(&operand->params, params))
		return value;
	result.params = *params;
	return PointerGetDatum(copy_value(&result));
}

/*
 * If one operand adds nothing to a union, the result is the other one itself,
 * still toasted, so an UPDATE writes no new copy.  For filters this is decided
 * before the union is made, which is cheap: filters with little in common differ
 * in their first bits.
 */
static Datum
combine_arguments(FunctionCallInfo fcinfo, bf_kind kind, bf_combination combination)
{
	bf_filter	operands[2];
	bf_filter	result = {0};
	int			only;
	BloomValue *first = open_value(PG_GETARG_DATUM(0), kind, &operands[0]);
	BloomValue *value;

	open_value(PG_GETARG_DATUM(1), kind, &operands[1]);
	result.params = combine_params(&operands[0].params, &operands[1].params);

	/* without sizes, either operand decides the parameters */
	if (combination == BF_DIFFERENCE && operands[1].params.m == 0)
		result.params = operands[0].params;
	for (int i = 0; kind == BF_FILTER && combination == BF_GREATER && i < 2; i++)
	{
		if (is_union(&operands[i], &operands[1 - i], &result.params))
			PG_RETURN_DATUM(PG_GETARG_DATUM(i));
	}
	only = only_operand(operands, combination);
	if (only >= 0 && combination == BF_LESSER)
		PG_RETURN_POINTER(make_empty_value(&result.params));
	if (only >= 0)
		return return_operand(PG_GETARG_DATUM(only), &operands[only], &result.params);
	if (combination == BF_DIFFERENCE)
		require_counts(&operands[0], &operands[1]);
	result.levels = operands[0].levels || operands[1].levels ||
		combination == BF_GREATER || combination == BF_LESSER;
	value = combine_filters(&operands[0], &operands[1], &result, combination);
	if (kind == BF_COUNTER && combination == BF_GREATER &&
		DatumGetBool(DirectFunctionCall2(byteaeq, PointerGetDatum(value), PointerGetDatum(first))))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	PG_RETURN_POINTER(value);
}

SQL_FUNCTION(bloomfilter_union, combine_arguments(fcinfo, BF_FILTER, BF_GREATER))
SQL_FUNCTION(bloomfilter_intersection, combine_arguments(fcinfo, BF_FILTER, BF_LESSER))
SQL_FUNCTION(bloomcounter_sum, combine_arguments(fcinfo, BF_COUNTER, BF_SUM))
SQL_FUNCTION(bloomcounter_difference, combine_arguments(fcinfo, BF_COUNTER, BF_DIFFERENCE))
SQL_FUNCTION(bloomcounter_union, combine_arguments(fcinfo, BF_COUNTER, BF_GREATER))
SQL_FUNCTION(bloomcounter_intersection, combine_arguments(fcinfo, BF_COUNTER, BF_LESSER))
