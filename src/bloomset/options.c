/*
 * options.c
 *		The storage parameters of a bloomset.  Only its build reads them.
 */
#include "pg/pg_compat.h"

#include <math.h>

#include "access/reloptions.h"
#include "bloomset/bloomset.h"
#include "core/sizing.h"
#include "pg/index_method.h"
#include "value/parameters.h"

#define MAX_EXPECTED_ITEMS	1e12

static relopt_kind bloomset_relopt_kind;

/* The server's message would show the least rate as 0.000000. */
static void
check_set_rate(double rate)
{
	if (rate >= MIN_SET_RATE && rate <= BF_MAX_RATE)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("\"false_positive_rate\" of a bloomset must be between %g and %g", MIN_SET_RATE,
					BF_MAX_RATE),
			 errdetail("It is %g.", rate)));
}

void
define_bloomset_options(void)
{
	relopt_kind kind = bloomset_relopt_kind = add_reloption_kind();

	add_real_reloption(kind, "false_positive_rate",
					   "Share of absent values that the set reports as present",
					   DEFAULT_RATE, -INFINITY, INFINITY, ShareUpdateExclusiveLock);
	add_real_reloption(kind, "expected_items",
					   "Number of distinct values that the set has room for before it grows",
					   0, 1, MAX_EXPECTED_ITEMS, ShareUpdateExclusiveLock);
	add_string_reloption(kind, "seed", "Seed of the hash function", "0", validate_seed,
						 ShareUpdateExclusiveLock);
}

bytea *
bloomset_options(Datum reloptions, bool validate)
{
	static const relopt_parse_elt options[] = {
		{.optname = "false_positive_rate", .opttype = RELOPT_TYPE_REAL, .offset = offsetof(BloomsetOptions, rate)},
		{.optname = "expected_items", .opttype = RELOPT_TYPE_REAL, .offset = offsetof(BloomsetOptions, expected_items)},
		{.optname = "seed", .opttype = RELOPT_TYPE_STRING, .offset = offsetof(BloomsetOptions, seed)},
	};

	BloomsetOptions *result = build_reloptions(reloptions, validate, bloomset_relopt_kind,
											   sizeof(BloomsetOptions), options, lengthof(options));

	if (validate && result != NULL)
		check_set_rate(result->rate);
	return (bytea *) result;
}

uint64
bloomset_seed(const BloomsetOptions *options)
{
	const char *seed = options == NULL ? NULL : GET_STRING_RELOPTION(options, seed);

	return seed == NULL ? 0 : parse_seed(seed);
}
