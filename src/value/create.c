/*
 * create.c
 *		Creating an empty value, and the size of a full one.
 */
#include "pg/pg_compat.h"

#include "pg/sql_function.h"
#include "utils/builtins.h"
#include "value/parameters.h"
#include "value/value.h"

/* (expected_items, false_positive_rate, counter_bits of a counter, layout, seed) */
static bf_params
get_params(FunctionCallInfo fcinfo, bf_kind kind, bool has_seed)
{
	bf_layout	layout = layout_from_name(text_to_cstring(PG_GETARG_TEXT_PP(2 + kind)));
	uint32		cell_bits = kind == BF_FILTER ? 1 : check_counter_bits(PG_GETARG_INT32(2));

	return solve_params(PG_GETARG_FLOAT8(0), PG_GETARG_FLOAT8(1), layout,
						has_seed ? (uint64) PG_GETARG_INT64(3 + kind) : 0, cell_bits);
}

static Datum
create(FunctionCallInfo fcinfo, bf_kind kind)
{
	bf_params	params = get_params(fcinfo, kind, true);

	PG_RETURN_POINTER(make_empty_value(&params));
}

/* The size in bytes of a dense value with these parameters. */
static Datum
full_size(FunctionCallInfo fcinfo, bf_kind kind)
{
	bf_filter	full = {.params = get_params(fcinfo, kind, false)};

	PG_RETURN_INT64((int64) (VARHDRSZ + bf_encoded_size(&full)));
}

SQL_FUNCTION(bloomfilter_create, create(fcinfo, BF_FILTER))
SQL_FUNCTION(bloomfilter_bytes, full_size(fcinfo, BF_FILTER))
SQL_FUNCTION(bloomcounter_create, create(fcinfo, BF_COUNTER))
SQL_FUNCTION(bloomcounter_bytes, full_size(fcinfo, BF_COUNTER))
