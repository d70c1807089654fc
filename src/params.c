/*
 * params.c
 *		From what a user asks for to a filter's parameters.
 */
#include "pg_compat.h"

#include <math.h>

#include "core/sizing.h"
#include "errors.h"
#include "mb/pg_wchar.h"
#include "params.h"

bf_layout
layout_from_name(const char *name)
{
	if (pg_strcasecmp(name, "blocked") == 0)
		return BF_BLOCKED;
	if (pg_strcasecmp(name, "classic") == 0)
		return BF_CLASSIC;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unknown bloom filter layout \"%.*s\"",
					pg_mbcliplen(name, strlen(name), 63), name),
			 errhint("The layouts are \"blocked\" and \"classic\".")));
}

void
report_too_few_items(int64 items)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("expected number of elements must be at least 1"),
			 errdetail("It is %lld.", (long long) items)));
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

bf_params
solve_params(int64 expected_items, double rate, bf_layout layout, uint64 seed)
{
	bf_params	params = {.layout = layout, .seed = seed};

	check_expected_items(expected_items);
	params.rate = check_rate(rate);
	params.k = bf_k_for_rate(layout, params.rate);
	params.m = bf_bits_for(layout, params.k, params.rate, (uint64) expected_items);
	if (params.m == 0)
		report_too_large(params.rate, expected_items,
						 bf_capacity(layout, params.k, params.rate, BF_MAX_BITS));
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
self_size(SizeLadder *ladder, const bf_params *params, uint64 n)
{
	if (ladder->k != params->k || ladder->rate != params->rate)
	{
		ladder->k = params->k;
		ladder->rate = params->rate;
		ladder->known = 0;
	}
	for (int rung = 0; rung < (int) lengthof(ladder->capacity); rung++)
	{
		uint64		m = (uint64) BF_BLOCK_BITS << rung;

		if (rung == ladder->known)
		{
			ladder->capacity[rung] = bf_capacity(BF_BLOCKED, params->k, params->rate, m);
			ladder->known++;
		}
		if (n <= ladder->capacity[rung])
			return m;
	}
	report_too_large(params->rate, (int64) n, ladder->capacity[lengthof(ladder->capacity) - 1]);
}
