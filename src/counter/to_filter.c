/*
 * to_filter.c
 *		The Bloom filter of what a counter reads often enough.
 */
#include "pg/pg_compat.h"

#include "pg/sql_function.h"
#include "value/parameters.h"
#include "value/threshold.h"

/* Level 1 if there is no argument for it. */
static Datum
to_filter(FunctionCallInfo fcinfo)
{
	bf_filter	counter;
	uint32		level = 1;

	open_value(PG_GETARG_DATUM(0), BF_COUNTER, &counter);
	if (PG_NARGS() > 1)
		level = check_number("level", PG_GETARG_INT32(1), counter.params.cell_bits);
	PG_RETURN_POINTER(make_threshold(&counter, level));
}

SQL_FUNCTION(bloomcounter_at_least, to_filter(fcinfo))
SQL_FUNCTION(bloomcounter_to_filter, to_filter(fcinfo))
