/*
 * estimates.c
 *		Estimates of one value's cardinality and false-positive rate.
 */
#include "pg/pg_compat.h"

#include "pg/sql_function.h"
#include "value/measure.h"
#include "value/value.h"

static Datum
estimate(FunctionCallInfo fcinfo, bf_kind kind, double (*measure) (const bf_filter *))
{
	bf_filter	filter;

	open_value(PG_GETARG_DATUM(0), kind, &filter);
	PG_RETURN_FLOAT8(measure(&filter));
}

SQL_FUNCTION(bloomfilter_cardinality, estimate(fcinfo, BF_FILTER, measure_cardinality))
SQL_FUNCTION(bloomfilter_fpp, estimate(fcinfo, BF_FILTER, measure_rate))
SQL_FUNCTION(bloomcounter_cardinality, estimate(fcinfo, BF_COUNTER, measure_cardinality))
SQL_FUNCTION(bloomcounter_fpp, estimate(fcinfo, BF_COUNTER, measure_rate))
