/*
 * estimates.c
 *		Estimates from a counter: its elements with and without repetitions, and
 *		its false-positive rate.
 */
#include "pg/pg_compat.h"

#include "core/estimate.h"
#include "core/sparse.h"
#include "counter/estimates.h"
#include "counter/number_walk.h"
#include "filter/errors.h"
#include "filter/measure.h"
#include "fmgr.h"
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(bloomcounter_cardinality);
PG_FUNCTION_INFO_V1(bloomcounter_total);
PG_FUNCTION_INFO_V1(bloomcounter_fpp);

Datum
bloomcounter_cardinality(PG_FUNCTION_ARGS)
{
	bf_filter	counter;

	open_counter(PG_GETARG_DATUM(0), &counter);
	PG_RETURN_FLOAT8(measure_cardinality(&counter));
}

Datum
bloomcounter_fpp(PG_FUNCTION_ARGS)
{
	bf_filter	counter;

	open_counter(PG_GETARG_DATUM(0), &counter);
	PG_RETURN_FLOAT8(measure_rate(&counter));
}

static double
sum_sparse(const bf_filter *counter)
{
	uint64		sum = 0;

	for (uint64 i = 0; i < counter->nhashes; i++)
	{
		if (i % CHUNK_HASHES == 0)
			CHECK_FOR_INTERRUPTS();
		sum += bf_number_of(counter->payload, counter->nhashes, i);
	}
	return (double) sum;
}

double
measure_total(const bf_filter *counter)
{
	bf_shape	shape = bf_shape_of(&counter->params);

	return counter->sparse ? sum_sparse(counter) : bf_total(&shape, sum_numbers(counter));
}

Datum
bloomcounter_total(PG_FUNCTION_ARGS)
{
	bf_filter	counter;

	open_counter(PG_GETARG_DATUM(0), &counter);
	if (counter.levels)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("bloom counter holds levels, which have no total"),
				 levels_detail()));
	PG_RETURN_FLOAT8(measure_total(&counter));
}
