/*
 * create.c
 *		Creating an empty value, and the size of a full one.
 */
#include "pg/pg_compat.h"

#include "pg/sql_function.h"
#include "utils/builtins.h"
#include "value/parameters.h"
#include "value/value.h"

/* (expected_items, false_positive_rate, ..., layout at an index, seed if has_seed) */
static bf_params
get_params(FunctionCallInfo fcinfo, uint32 cell_bits, int layout, bool has_seed)
{
	return solve_params(PG_GETARG_FLOAT8(0), PG_GETARG_FLOAT8(1),
						layout_from_name(text_to_cstring(PG_GETARG_TEXT_PP(layout))),
						has_seed ? (uint64) PG_GETARG_INT64(layout + 1) : 0, cell_bits);
}

static Datum
create(FunctionCallInfo fcinfo, uint32 cell_bits, int layout)
{
	bf_params	params = get_params(fcinfo, cell_bits, layout, true);

	PG_RETURN_POINTER(make_empty_value(&params));
}

/* The size in bytes of a dense value with these parameters. */
static Datum
full_size(FunctionCallInfo fcinfo, uint32 cell_bits, int layout)
{
	bf_filter	full = {.params = get_params(fcinfo, cell_bits, layout, false)};

	PG_RETURN_INT64((int64) (VARHDRSZ + bf_encoded_size(&full)));
}

SQL_FUNCTION(bloomfilter_create, create(fcinfo, 1, 2))
SQL_FUNCTION(bloomfilter_bytes, full_size(fcinfo, 1, 2))
SQL_FUNCTION(bloomcounter_create, create(fcinfo, check_counter_bits(PG_GETARG_INT32(2)), 3))
SQL_FUNCTION(bloomcounter_bytes, full_size(fcinfo, check_counter_bits(PG_GETARG_INT32(2)), 3))
