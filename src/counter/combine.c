/*
 * combine.c
 *		Sum, difference, union and intersection of counters.
 */
#include "pg/pg_compat.h"

#include "core/dense.h"
#include "core/probe.h"
#include "core/sparse.h"
#include "counter/number_walk.h"
#include "filter/errors.h"
#include "fmgr.h"
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(bloomcounter_sum);
PG_FUNCTION_INFO_V1(bloomcounter_difference);
PG_FUNCTION_INFO_V1(bloomcounter_union);
PG_FUNCTION_INFO_V1(bloomcounter_intersection);

static bool
is_empty(const bf_filter *counter)
{
	return counter->sparse && counter->nhashes == 0;
}

pg_noreturn static void
report_misfit(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("cannot subtract a bloom counter from one that does not contain it"),
			 errdetail("A number of the second counter is greater than that of the first.")));
}

/* Merges two sparse counters.  Writes nothing if hashes is NULL. */
static uint64
merge_numbers(const bf_filter *left, const bf_filter *right, bf_combination combination,
			  uint8 *hashes, uint8 *numbers)
{
	bf_merge	merge = {
		.a = left->payload, .acount = left->nhashes,
		.b = right->payload, .bcount = right->nhashes
	};
	uint64		count = 0;

	while (!bf_merge_done(&merge))
	{
		CHECK_FOR_INTERRUPTS();
		count += bf_merge_numbers(&merge, combination, bf_number_limit(left->params.counter_bits),
								  hashes == NULL ? NULL : hashes + BF_HASH_BYTES * count,
								  numbers == NULL ? NULL : numbers + BF_NUMBER_BYTES * count,
								  CHUNK_HASHES);
	}
	if (merge.misfit)
		report_misfit();
	return count;
}

/* Combines a sparse counter with a dense one, element by element. */
static void
combine_elements(uint8 *numbers, const bf_filter *dense, const bf_filter *sparse,
				 bf_combination combination)
{
	bf_shape	shape = bf_shape_of(&dense->params);
	uint32		counter_bits = dense->params.counter_bits;
	uint32		limit = bf_number_limit(counter_bits);

	for (uint64 i = 0; i < sparse->nhashes; i++)
	{
		uint64		hash = bf_hash_at(sparse->payload, i);
		uint32		number = bf_number_of(sparse->payload, sparse->nhashes, i);

		if (i % CHUNK_HASHES == 0)
			CHECK_FOR_INTERRUPTS();
		if (combination == BF_DIFFERENCE &&
			!bf_has_difference(bf_numbers_read(numbers, &shape, counter_bits, hash), number, limit))
			report_misfit();
		bf_numbers_change(numbers, &shape, counter_bits, hash, combination, number);
	}
}

/* The dense result of a sum, difference or union. */
static Bloomfilter *
combine_dense(const bf_filter *left, const bf_filter *right, const bf_filter *result,
			  bf_combination combination)
{
	bf_filter	first = *left;
	bf_filter	dense;
	uint8	   *numbers;
	Bloomfilter *value;

	first.params = result->params;
	first.levels = result->levels;
	value = make_dense_value(&first, combination == BF_GREATER, &dense, &numbers);
	if (right->sparse)
		combine_elements(numbers, &dense, right, combination);
	else if (!combine_numbers(numbers, right->payload, bf_payload_size(right),
							  result->params.counter_bits, combination))
		report_misfit();
	return value;
}

/* The intersection of a sparse and a dense counter, which is sparse. */
static Bloomfilter *
intersect_mixed(const bf_filter *sparse, const bf_filter *dense, bf_filter *result)
{
	uint8	   *hashes = palloc_extended(bf_payload_size(sparse) + 1, MCXT_ALLOC_HUGE);
	uint8	   *numbers = hashes + BF_HASH_BYTES * sparse->nhashes;
	uint8	   *payload;
	Bloomfilter *value;
	uint64		count = 0;

	for (uint64 i = 0; i < sparse->nhashes; i++)
	{
		uint64		hash = bf_hash_at(sparse->payload, i);
		uint32		number = Min(bf_read(dense, hash), bf_number_of(sparse->payload, sparse->nhashes, i));

		if (i % CHUNK_HASHES == 0)
			CHECK_FOR_INTERRUPTS();
		if (number == 0)
			continue;
		bf_store64(hashes + BF_HASH_BYTES * count, hash);
		bf_store16(numbers + BF_NUMBER_BYTES * count, (uint16) number);
		count++;
	}
	result->sparse = true;
	result->nhashes = count;
	value = make_value(result, false, &payload);
	copy_bytes(payload, hashes, BF_HASH_BYTES * count);
	copy_bytes(payload + BF_HASH_BYTES * count, numbers, BF_NUMBER_BYTES * count);
	pfree(hashes);
	return value;
}

static Bloomfilter *
combine_counters(const bf_filter *left, const bf_filter *right, bf_filter *result,
				 bf_combination combination)
{
	uint8	   *payload;
	Bloomfilter *value;

	if (left->sparse && right->sparse)
	{
		result->nhashes = merge_numbers(left, right, combination, NULL, NULL);
		result->sparse = result->nhashes <= bf_sparse_limit(&result->params);
		if (result->sparse)
		{
			value = make_value(result, false, &payload);
			merge_numbers(left, right, combination, payload,
						  payload + BF_HASH_BYTES * result->nhashes);
			return value;
		}
		result->nhashes = 0;
	}
	else if (combination == BF_LESSER && (left->sparse || right->sparse))
		return left->sparse ? intersect_mixed(left, right, result) : intersect_mixed(right, left, result);

	/* only a difference does not commute */
	if (left->sparse && !right->sparse && combination != BF_DIFFERENCE)
		return combine_dense(right, left, result, combination);
	return combine_dense(left, right, result, combination);
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
 * An operand without elements is neutral, whatever its size: the result then has
 * the numbers of the other, counts or levels, or none in an intersection.
 */
static Datum
combine_arguments(FunctionCallInfo fcinfo, bf_combination combination)
{
	bf_filter	left;
	bf_filter	right;
	bf_filter	result = {0};
	bf_filter  *only = NULL;

	open_counter(PG_GETARG_DATUM(0), &left);
	open_counter(PG_GETARG_DATUM(1), &right);
	result.params = combine_params(&left.params, &right.params);
	if (combination == BF_DIFFERENCE && right.params.m == 0)
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	if (is_empty(&right))
		only = &left;
	else if (is_empty(&left) && combination != BF_DIFFERENCE)
		only = &right;
	if (only != NULL && combination == BF_LESSER)
		PG_RETURN_POINTER(make_empty_value(&result.params));
	if (only != NULL && bf_equal_params(&only->params, &result.params))
		PG_RETURN_DATUM(PG_GETARG_DATUM(only == &left ? 0 : 1));
	if (only != NULL)
	{
		only->params = result.params;
		PG_RETURN_POINTER(copy_value(only));
	}
	if (combination == BF_DIFFERENCE)
		require_counts(&left, &right);
	result.levels = left.levels || right.levels || combination == BF_GREATER || combination == BF_LESSER;
	PG_RETURN_POINTER(combine_counters(&left, &right, &result, combination));
}

Datum
bloomcounter_sum(PG_FUNCTION_ARGS)
{
	return combine_arguments(fcinfo, BF_SUM);
}

Datum
bloomcounter_difference(PG_FUNCTION_ARGS)
{
	return combine_arguments(fcinfo, BF_DIFFERENCE);
}

Datum
bloomcounter_union(PG_FUNCTION_ARGS)
{
	return combine_arguments(fcinfo, BF_GREATER);
}

Datum
bloomcounter_intersection(PG_FUNCTION_ARGS)
{
	return combine_arguments(fcinfo, BF_LESSER);
}
