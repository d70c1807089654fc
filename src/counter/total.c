/*
 * total.c
 *		bloom_total: a counter's elements with repetitions.
 */
#include "pg/pg_compat.h"

#include "value/errors.h"
#include "value/measure.h"
#include "value/value.h"

PG_FUNCTION_INFO_V1(bloomcounter_total);

Datum
bloomcounter_total(PG_FUNCTION_ARGS)
{
	bf_filter	counter;

	open_value(PG_GETARG_DATUM(0), BF_COUNTER, &counter);
	if (counter.levels)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("bloom counter holds levels, which have no total"),
				 levels_detail()));
	PG_RETURN_FLOAT8(measure_total(&counter));
}
