/*
 * to_filter.c
 *		The Bloom filter of what a counter reads often enough.
 */
#include "pg/pg_compat.h"

#include "value/parameters.h"
#include "value/threshold.h"

PG_FUNCTION_INFO_V1(bloomcounter_at_least);
PG_FUNCTION_INFO_V1(bloomcounter_to_filter);

Datum
bloomcounter_at_least(PG_FUNCTION_ARGS)
{
	bf_filter	counter;
	uint32		level;

	open_value(PG_GETARG_DATUM(0), BF_COUNTER, &counter);
	level = check_number("level", PG_GETARG_INT32(1), counter.params.cell_bits);
	PG_RETURN_POINTER(make_threshold(&counter, level));
}

Datum
bloomcounter_to_filter(PG_FUNCTION_ARGS)
{
	bf_filter	counter;

	open_value(PG_GETARG_DATUM(0), BF_COUNTER, &counter);
	PG_RETURN_POINTER(make_threshold(&counter, 1));
}
