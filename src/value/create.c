/*
 * create.c
 *		Creating an empty filter, and the size of a full one.
 */
#include "pg/pg_compat.h"

#include "utils/builtins.h"
#include "value/parameters.h"
#include "value/value.h"

PG_FUNCTION_INFO_V1(bloomfilter_create);
PG_FUNCTION_INFO_V1(bloomfilter_bytes);
PG_FUNCTION_INFO_V1(bloomcounter_create);
PG_FUNCTION_INFO_V1(bloomcounter_bytes);

/* (expected_items, false_positive_rate, layout at an index, ...) */
static bf_params
get_params(FunctionCallInfo fcinfo, uint32 cell_bits, int layout, uint64 seed)
{
	return solve_params(PG_GETARG_FLOAT8(0), PG_GETARG_FLOAT8(1),
						layout_from_name(text_to_cstring(PG_GETARG_TEXT_PP(layout))), seed, cell_bits);
}

/* The size in bytes of a dense value with these parameters. */
static int64
full_size(const bf_params *params)
{
	bf_filter	full = {.params = *params};

	return (int64) (VARHDRSZ + bf_encoded_size(&full));
}

Datum
bloomfilter_create(PG_FUNCTION_ARGS)
{
	bf_params	params = get_params(fcinfo, 1, 2, (uint64) PG_GETARG_INT64(3));

	PG_RETURN_POINTER(make_empty_value(&params));
}

Datum
bloomfilter_bytes(PG_FUNCTION_ARGS)
{
	bf_params	params = get_params(fcinfo, 1, 2, 0);

	PG_RETURN_INT64(full_size(&params));
}

Datum
bloomcounter_create(PG_FUNCTION_ARGS)
{
	bf_params	params = get_params(fcinfo, check_counter_bits(PG_GETARG_INT32(2)), 3,
									(uint64) PG_GETARG_INT64(4));

	PG_RETURN_POINTER(make_empty_value(&params));
}

Datum
bloomcounter_bytes(PG_FUNCTION_ARGS)
{
	bf_params	params = get_params(fcinfo, check_counter_bits(PG_GETARG_INT32(2)), 3, 0);

	PG_RETURN_INT64(full_size(&params));
}
