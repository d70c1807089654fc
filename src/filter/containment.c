/*
 * containment.c
 *		Does a filter contain all elements of another?
 */
#include "pg/pg_compat.h"

#include "pg/sql_function.h"
#include "value/combine.h"
#include "value/parameters.h"

static bool
is_superset(Datum super_value, Datum sub_value)
{
	bf_filter	super;
	bf_filter	sub;

	open_value(super_value, BF_FILTER, &super);
	open_value(sub_value, BF_FILTER, &sub);
	require_match(&super.params, &sub.params);
	return may_contain_all(&super, &sub);
}

SQL_FUNCTION(bloomfilter_superset, BoolGetDatum(is_superset(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1))))
SQL_FUNCTION(bloomfilter_subset, BoolGetDatum(is_superset(PG_GETARG_DATUM(1), PG_GETARG_DATUM(0))))
