/*
 * setops.c
 *		Union, intersection and containment of filters.
 */
#include "pg/pg_compat.h"

#include "core/bulk.h"
#include "core/probe.h"
#include "filter/errors.h"
#include "filter/setops.h"
#include "filter/walk.h"
#include "fmgr.h"
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(bloomfilter_union);
PG_FUNCTION_INFO_V1(bloomfilter_intersection);
PG_FUNCTION_INFO_V1(bloomfilter_superset);
PG_FUNCTION_INFO_V1(bloomfilter_subset);

uint64
merge_hashes(const bf_filter *left, const bf_filter *right, MergeStep step, uint8 *out)
{
	bf_merge	merge = {
		.a = left->payload, .acount = left->nhashes,
		.b = right->payload, .bcount = right->nhashes
	};
	uint64		count = 0;

	while (!bf_merge_done(&merge))
	{
		CHECK_FOR_INTERRUPTS();
		count += step(&merge, out == NULL ? NULL : out + 8 * count, CHUNK_HASHES);
	}
	return count;
}

/* The sparse union or intersection of two sparse filters. */
static Bloomfilter *
merge_filters(const bf_filter *left, const bf_filter *right, bf_filter *result,
			  MergeStep step)
{
	uint8	   *payload;
	Bloomfilter *value;

	result->sparse = true;
	value = make_value(result, false, &payload);
	merge_hashes(left, right, step, payload);
	return value;
}

/* The dense union or intersection, with the parameters of result. */
static Bloomfilter *
combine_bits(const bf_filter *left, const bf_filter *right, const bf_filter *result,
			 CombineBits combine)
{
	uint8	   *payload;
	Bloomfilter *value = make_value(result, false, &payload);
	FilterWalk	walk;

	start_walk(&walk, result->params.m, left, right);
	while (next_piece(&walk))
	{
		memcpy(payload + walk.at, walk.left, walk.size);
		combine(payload + walk.at, walk.right, walk.size);
	}
	end_walk(&walk);
	return value;
}

/* The union as a new value. */
static Bloomfilter *
unite_filters(const bf_filter *left, const bf_filter *right, const bf_params *united)
{
	bf_filter	result = {.params = *united};

	if (left->sparse && right->sparse)
	{
		result.nhashes = merge_hashes(left, right, bf_merge_union, NULL);
		if (result.nhashes <= bf_sparse_limit(&result.params))
			return merge_filters(left, right, &result, bf_merge_union);
		result.nhashes = 0;
	}
	return combine_bits(left, right, &result, bf_or);
}

/* The intersection of a sparse and a dense filter, which is sparse. */
static Bloomfilter *
select_hashes(const bf_filter *sparse, const bf_filter *dense, bf_filter *result)
{
	uint8	   *payload;
	Bloomfilter *value;
	uint64		count = 0;

	result->sparse = true;
	result->nhashes = sparse->nhashes;
	value = make_value(result, false, &payload);
	for (uint64 i = 0; i < sparse->nhashes; i++)
	{
		uint64		hash = bf_hash_at(sparse->payload, i);

		if (i % CHUNK_HASHES == 0)
			CHECK_FOR_INTERRUPTS();
		if (bf_contains(dense, hash))
			bf_store64(payload + 8 * count++, hash);
	}
	result->nhashes = count;
	SET_VARSIZE(value, VARHDRSZ + bf_encoded_size(result));
	return value;
}

Bloomfilter *
intersect_filters(const bf_filter *left, const bf_filter *right, const bf_params *params)
{
	bf_filter	result = {.params = *params};

	if (left->params.m == 0 || right->params.m == 0)
		return make_empty_value(&result.params);

	if (left->sparse && right->sparse)
	{
		result.nhashes = merge_hashes(left, right, bf_merge_intersection, NULL);
		return merge_filters(left, right, &result, bf_merge_intersection);
	}
	if (left->sparse)
		return select_hashes(left, right, &result);
	if (right->sparse)
		return select_hashes(right, left, &result);
	return combine_bits(left, right, &result, bf_and);
}

/* True if super may contain every hash of sub, which is sparse. */
static bool
contains_hashes(const bf_filter *super, const bf_filter *sub)
{
	for (uint64 i = 0; i < sub->nhashes; i++)
	{
		if (i % CHUNK_HASHES == 0)
			CHECK_FOR_INTERRUPTS();
		if (!bf_contains(super, bf_hash_at(sub->payload, i)))
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

	start_walk(&walk, sub->params.m, sub, super);
	while (contains && next_piece(&walk))
		contains = bf_is_subset(walk.left, walk.right, walk.size);
	end_walk(&walk);
	return contains;
}

/* True if super may contain every element of sub.  The two must combine. */
static bool
may_contain_all(const bf_filter *super, const bf_filter *sub)
{
	if (sub->sparse)
		return contains_hashes(super, sub);
	return contains_bits(super, sub);
}

/* True if the union of the two filters has the same bytes as filter. */
static bool
is_union(const bf_filter *filter, const bf_filter *other, const bf_params *united)
{
	return bf_equal_params(&filter->params, united) &&
		(other->sparse || !filter->sparse) && may_contain_all(filter, other);
}

/*
 * If one argument adds nothing to the other, the result is the other itself,
 * still toasted, so an UPDATE writes no new copy.  This check is cheap, because
 * filters with little in common differ in their first bits.
 */
Datum
bloomfilter_union(PG_FUNCTION_ARGS)
{
	bf_filter	left;
	bf_filter	right;
	bf_params	united;

	open_filter(PG_GETARG_DATUM(0), &left);
	open_filter(PG_GETARG_DATUM(1), &right);
	united = combine_params(&left.params, &right.params);
	if (is_union(&left, &right, &united))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	if (is_union(&right, &left, &united))
		PG_RETURN_DATUM(PG_GETARG_DATUM(1));
	PG_RETURN_POINTER(unite_filters(&left, &right, &united));
}

Datum
bloomfilter_intersection(PG_FUNCTION_ARGS)
{
	bf_filter	left;
	bf_filter	right;
	bf_params	params;

	open_filter(PG_GETARG_DATUM(0), &left);
	open_filter(PG_GETARG_DATUM(1), &right);
	params = combine_params(&left.params, &right.params);
	PG_RETURN_POINTER(intersect_filters(&left, &right, &params));
}

static bool
is_superset(Datum super_value, Datum sub_value)
{
	bf_filter	super;
	bf_filter	sub;

	open_filter(super_value, &super);
	open_filter(sub_value, &sub);
	require_match(&super.params, &sub.params);
	return may_contain_all(&super, &sub);
}

Datum
bloomfilter_superset(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(is_superset(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)));
}

Datum
bloomfilter_subset(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(is_superset(PG_GETARG_DATUM(1), PG_GETARG_DATUM(0)));
}
