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
#include "utils/fmgrprotos.h"

PG_FUNCTION_INFO_V1(bloomcounter_sum);
PG_FUNCTION_INFO_V1(bloomcounter_difference);
PG_FUNCTION_INFO_V1(bloomcounter_union);
PG_FUNCTION_INFO_V1(bloomcounter_intersection);

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
	value = make_dense_counter(&first, combination == BF_GREATER, &dense, &numbers);
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
		uint32		listed = bf_number_of(sparse->payload, sparse->nhashes, i);
		uint32		number = bf_combine_two(BF_LESSER, bf_read(dense, hash), listed, BF_MAX_NUMBER);

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
 * If the second argument adds nothing to a union, the result is the first, still
 * toasted, so an UPDATE writes no new copy.
 */
static Datum
combine_arguments(FunctionCallInfo fcinfo, bf_combination combination)
{
	bf_filter	operands[2];
	bf_filter	result = {0};
	int			only;
	struct varlena *first = open_counter(PG_GETARG_DATUM(0), &operands[0]);
	Bloomfilter *value;

	open_counter(PG_GETARG_DATUM(1), &operands[1]);
	result.params = combine_params(&operands[0].params, &operands[1].params);
	/* of two counters without a size, either decides the parameters of the result */
	if (combination == BF_DIFFERENCE && operands[1].params.m == 0)
		result.params = operands[0].params;
	only = only_operand(operands, combination);
	if (only >= 0 && combination == BF_LESSER)
		PG_RETURN_POINTER(make_empty_value(&result.params));
	if (only >= 0)
		return return_operand(PG_GETARG_DATUM(only), &operands[only], &result.params);
	if (combination == BF_DIFFERENCE)
		require_counts(&operands[0], &operands[1]);
	result.levels = operands[0].levels || operands[1].levels ||
		combination == BF_GREATER || combination == BF_LESSER;
	value = combine_counters(&operands[0], &operands[1], &result, combination);
	if (combination == BF_GREATER &&
		DatumGetBool(DirectFunctionCall2(byteaeq, PointerGetDatum(value), PointerGetDatum(first))))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	PG_RETURN_POINTER(value);
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
