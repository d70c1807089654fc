/*
 * parameters.c
 *		Checking user input and computing a filter's parameters.
 */
#include "pg/pg_compat.h"

#include <math.h>

#include "core/format.h"
#include "core/layout.h"
#include "mb/pg_wchar.h"
#include "utils/float.h"
#include "value/errors.h"
#include "value/parameters.h"

bf_layout
layout_from_name(const char *name)
{
	for (bf_layout layout = BF_BLOCKED; layout <= BF_CLASSIC; layout++)
	{
		if (pg_strcasecmp(name, bf_layout_name(layout)) == 0)
			return layout;
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unknown bloom filter layout \"%.*s\"",
					pg_mbcliplen(name, strlen(name), 63), name),
			 errhint("The layouts are \"blocked\" and \"classic\".")));
}

uint32
check_counter_bits(int32 counter_bits)
{
	if (counter_bits != 4 && counter_bits != 8 && counter_bits != 16)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"counter_bits\" must be 4, 8 or 16"),
				 errdetail("It is %d.", counter_bits)));
	return (uint32) counter_bits;
}

uint32
check_number(const char *name, int32 number, uint32 cell_bits)
{
	uint32		limit = bf_cell_limit(cell_bits);

	if (number < 1 || (uint32) number > limit)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("\"%s\" must be between 1 and %u in a bloom counter with %u bits per number",
						name, limit, cell_bits),
				 errdetail("It is %d.", number)));
	return (uint32) number;
}

void
report_too_few_items(double items)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("expected number of elements must be at least 1"),
			 errdetail("It is %s.", float8out_internal(items))));
}

float
check_rate(double rate)
{
	float		rounded = (float) rate;

	if (!(rounded >= (float) BF_MIN_RATE && rounded <= (float) BF_MAX_RATE))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("false-positive rate must be between %g and %g",
						BF_MIN_RATE, BF_MAX_RATE),
				 isnan(rate) ? errdetail("It is NaN.") : errdetail("It is %.9g.", rate)));
	return rounded;
}

/* For the whole backend, because a solution depends only on its input. */
static bf_solutions solutions;

uint64
filter_capacity(const bf_params *params)
{
	return params->m == 0 ? 0
		: bf_capacity(&solutions, params->layout, params->k, params->rate, params->m);
}

pg_noreturn static pg_noinline void
report_too_large(const bf_params *params, double items)
{
	const TypeMessages *messages = messages_for(params);
	bf_params	largest = *params;

	largest.m = bf_max_size(params->cell_bits);
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg(messages->too_large, float8out_internal(items), params->rate),
			 errdetail(messages->largest, (unsigned long long) largest.m,
					   (unsigned long long) filter_capacity(&largest), params->cell_bits),
			 errhint_of(messages->use_higher_rate)));
}

bf_params
solve_params(double expected_items, double rate, bf_layout layout, uint64 seed,
			 uint32 cell_bits)
{
	bf_params	params = {.layout = layout, .seed = seed, .cell_bits = cell_bits};

	check_expected_items(expected_items);
	params.rate = check_rate(rate);
	params.k = bf_k_for_rate(layout, params.rate);
	if (expected_items <= (double) BF_MAX_BITS)
		params.m = bf_bits_for(&solutions, layout, params.k, params.rate,
							   (uint64) ceil(expected_items));
	if (params.m == 0 || params.m > bf_max_size(cell_bits))
		report_too_large(&params, expected_items);
	return params;
}

bf_params
unsized_params(double rate, uint32 cell_bits)
{
	bf_params	params = {.layout = BF_BLOCKED, .cell_bits = cell_bits};

	params.rate = check_rate(rate);
	params.k = bf_k_for_rate(BF_BLOCKED, params.rate);
	return params;
}

uint64
self_size(const bf_params *params, uint64 n)
{
	bf_params	sized = *params;

	for (sized.m = BF_BLOCK_BITS; sized.m <= bf_max_size(params->cell_bits); sized.m *= 2)
	{
		if (n <= filter_capacity(&sized))
			return sized.m;
	}
	report_too_large(params, (double) n);
}

void
require_match(const bf_params *left, const bf_params *right)
{
	bf_mismatch mismatch = bf_compare_params(left, right);

	if (mismatch != BF_MATCH)
		report_mismatch(mismatch, left, right);
}

bf_params
combine_params(const bf_params *left, const bf_params *right)
{
	require_match(left, right);
	return bf_combined_params(left, right);
}
