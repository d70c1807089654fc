/*
 * params.c
 *		Checking user input and computing a filter's parameters.
 */
#include "pg/pg_compat.h"

#include <math.h>

#include "core/layout.h"
#include "filter/params.h"
#include "mb/pg_wchar.h"
#include "utils/float.h"

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
	bf_params	largest = *params;

	largest.m = BF_MAX_BITS;
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("bloom filter for %s elements at a false-positive rate of %g would be too large",
					float8out_internal(items), params->rate),
			 errdetail("The largest filter has %llu bits, enough for %llu elements at this rate.",
					   (unsigned long long) BF_MAX_BITS,
					   (unsigned long long) filter_capacity(&largest)),
			 errhint("Use a higher rate, or distribute the elements over several filters.")));
}

bf_params
solve_params(double expected_items, double rate, bf_layout layout, uint64 seed)
{
	bf_params	params = {.layout = layout, .seed = seed};

	check_expected_items(expected_items);
	params.rate = check_rate(rate);
	params.k = bf_k_for_rate(layout, params.rate);
	if (expected_items <= (double) BF_MAX_BITS)
		params.m = bf_bits_for(&solutions, layout, params.k, params.rate,
							   (uint64) ceil(expected_items));
	if (params.m == 0)
		report_too_large(&params, expected_items);
	return params;
}

bf_params
unsized_params(double rate)
{
	bf_params	params = {.layout = BF_BLOCKED};

	params.rate = check_rate(rate);
	params.k = bf_k_for_rate(BF_BLOCKED, params.rate);
	return params;
}

uint64
self_size(const bf_params *params, uint64 n)
{
	bf_params	sized = *params;

	for (sized.m = BF_BLOCK_BITS; sized.m <= BF_MAX_BITS; sized.m *= 2)
	{
		if (n <= filter_capacity(&sized))
			return sized.m;
	}
	report_too_large(params, (double) n);
}
