/*
 * options.c
 *		The storage parameters of bloomslices.  Only a build reads them.
 */
#include "pg/pg_compat.h"

#include <math.h>

#include "access/reloptions.h"
#include "bloomslices/bloomslices.h"
#include "pg/index_method.h"
#include "value/parameters.h"

#define MAX_EXPECTED_ITEMS	1e12

typedef struct SlicesOptions
{
	int32		vl_len_;
	double		rate;			/* -INFINITY if not set */
	double		expected_items; /* 0 if not set */
	int			seed;			/* offset of a string */
} SlicesOptions;

static relopt_kind bloomslices_relopt_kind;

void
define_bloomslices_options(void)
{
	relopt_kind kind = bloomslices_relopt_kind = add_reloption_kind();

	add_real_reloption(kind, "false_positive_rate", "False-positive rate of the filters",
					   -INFINITY, -INFINITY, INFINITY, ShareUpdateExclusiveLock);
	add_real_reloption(kind, "expected_items", "Number of elements for which the filters were made",
					   0, 1, MAX_EXPECTED_ITEMS, ShareUpdateExclusiveLock);
	add_string_reloption(kind, "seed", "Seed of the filters", NULL, validate_seed,
						 ShareUpdateExclusiveLock);
}

/* The parameters of filters that are made with the options; m is 0 if they do not say. */
static bf_params
params_of_options(const SlicesOptions *options)
{
	const char *seed = GET_STRING_RELOPTION(options, seed);
	bool		has_rate = options->rate != -INFINITY;

	if (options->expected_items == 0 && (has_rate || seed != NULL))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"expected_items\" of a bloomslices index is missing"),
				 errdetail("Together, \"expected_items\", \"false_positive_rate\" and \"seed\" determine the size of the filters that the index expects."),
				 errhint("Set it, or set none of them: then the filters of the table determine the size.")));
	if (options->expected_items == 0)
		return (bf_params)
	{
		0
	};
	return solve_params(options->expected_items, has_rate ? options->rate : DEFAULT_RATE, BF_BLOCKED,
						seed == NULL ? 0 : parse_seed(seed), 1);
}

bytea *
bloomslices_options(Datum reloptions, bool validate)
{
	static const relopt_parse_elt options[] = {
		{.optname = "false_positive_rate", .opttype = RELOPT_TYPE_REAL, .offset = offsetof(SlicesOptions, rate)},
		{.optname = "expected_items", .opttype = RELOPT_TYPE_REAL, .offset = offsetof(SlicesOptions, expected_items)},
		{.optname = "seed", .opttype = RELOPT_TYPE_STRING, .offset = offsetof(SlicesOptions, seed)},
	};

	SlicesOptions *result = build_reloptions(reloptions, validate, bloomslices_relopt_kind,
											 sizeof(SlicesOptions), options, lengthof(options));

	if (validate && result != NULL)
		(void) params_of_options(result);
	return (bytea *) result;
}

SlicesShape
slices_shape_option(Relation index)
{
	const SlicesOptions *options = (const SlicesOptions *) index->rd_options;
	bf_params	params;

	if (options == NULL || options->expected_items == 0)
		return (SlicesShape)
	{
		0
	};
	params = params_of_options(options);
	return (SlicesShape)
	{
		.nblocks = bf_shape_of(&params).nblocks, .k = params.k, .rate = params.rate, .seed = params.seed
	};
}
