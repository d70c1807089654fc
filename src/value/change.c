/*
 * change.c
 *		Adding, removing and raising one element.
 *
 * Without a change the result is the argument itself, still toasted, so an
 * UPDATE keeps the stored value.
 */
#include "pg/pg_compat.h"

#include "core/dense.h"
#include "pg/element.h"
#include "pg/sql_function.h"
#include "value/parameters.h"
#include "value/stored_value.h"

/* Copies count elements from index `from` to index `to` of the result. */
static void
copy_entries(const bf_filter *result, uint8 *payload, uint64 to,
			 const bf_filter *filter, uint64 from, uint64 count)
{
	copy_bytes(payload + BF_HASH_BYTES * to, filter->payload + BF_HASH_BYTES * from, BF_HASH_BYTES * count);
	if (bf_kind_of(&filter->params) == BF_COUNTER)
		copy_bytes(payload + BF_HASH_BYTES * result->nhashes + BF_NUMBER_BYTES * to,
				   bf_numbers_of(filter) + BF_NUMBER_BYTES * from, BF_NUMBER_BYTES * count);
}

/* A copy of a sparse filter in which a hash has a number; 0 removes it. */
static BloomValue *
set_sparse_number(const bf_filter *filter, bf_filter *result, uint64 hash, uint32 number)
{
	uint64		at = bf_lower_bound(filter->payload, filter->nhashes, hash);
	bool		present = at < filter->nhashes && bf_hash_at(filter->payload, at) == hash;
	uint64		keeps = number > 0;
	uint8	   *payload;
	BloomValue *value;

	result->sparse = true;
	result->nhashes = filter->nhashes - present + keeps;
	value = make_value(result, false, &payload);
	copy_entries(result, payload, 0, filter, 0, at);
	copy_entries(result, payload, at + keeps, filter, at + present, filter->nhashes - at - present);
	if (keeps)
	{
		bf_store64(payload + BF_HASH_BYTES * at, hash);
		if (bf_kind_of(&filter->params) == BF_COUNTER)
			bf_store16(payload + BF_HASH_BYTES * result->nhashes + BF_NUMBER_BYTES * at, (uint16) number);
	}
	return value;
}

/*
 * A copy of a filter in which the cells of an element, which reads `read`, are
 * combined with a number.
 */
static BloomValue *
change_value(const bf_filter *filter, const bf_params *params, bf_combination change,
			 uint64 hash, uint32 read, uint32 number)
{
	bf_filter	copy = *filter;
	bf_filter	result = {.params = *params, .levels = filter->levels || change == BF_GREATER};
	bf_shape	shape = bf_shape_of(params);
	uint8	   *payload;
	BloomValue *value;

	if (filter->sparse && (read > 0 || filter->nhashes < bf_sparse_limit(params)))
		return set_sparse_number(filter, &result, hash,
								 bf_combine_two(change, read, number, bf_cell_limit(params->cell_bits)));
	copy.params = *params;
	copy.levels = result.levels;
	value = make_dense_value(&copy, change == BF_GREATER ? BF_GREATER : BF_SUM, &result, &payload);
	bf_cells_change(payload, &shape, params->cell_bits, hash, change, number);
	return value;
}

pg_noreturn static void
report_levels(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("cannot remove an element from a bloom counter that holds levels"),
			 levels_detail(),
			 errhint("Remove elements before any of these operations, or build the counter anew with bloom_counter_agg().")));
}

pg_noreturn static void
report_absent(uint32 read, uint32 times)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("cannot remove an element more often than it was added"),
			 read == 0 ? errdetail("The bloom counter does not contain the element.")
			 : errdetail("Its number in the bloom counter is %u, which is less than %u.", read, times)));
}

/* False if the change would leave the filter as it is; an error if it is invalid. */
static bool
changes(bf_combination change, const bf_filter *filter, uint32 read, uint32 number)
{
	uint32		limit = bf_cell_limit(filter->params.cell_bits);

	/* from now on, removal must not lower what is at its level already */
	if (change == BF_GREATER)
		return read < number || !filter->levels;
	if (change == BF_DIFFERENCE && filter->levels)
		report_levels();
	if (change == BF_DIFFERENCE && !bf_has_difference(read, number, limit))
		report_absent(read, number);
	return read < limit;
}

/* Reads how often an element is added, or its level. */
static uint32
get_number(FunctionCallInfo fcinfo, const char *name, uint32 cell_bits)
{
	if (PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("\"%s\" must not be null", name)));
	return check_number(name, PG_GETARG_INT32(2), cell_bits);
}

/*
 * Not strict, because adding NULL returns the filter.  number_name is that of a
 * counter's third parameter.
 */
static Datum
change_argument(FunctionCallInfo fcinfo, bf_kind kind, bf_combination change, const char *number_name)
{
	const ElementType *element = element_type_of_argument(fcinfo, 1);
	Datum		value = PG_GETARG_DATUM(0);
	OpenedValue opened;
	bf_params	params;
	uint64		hash;
	uint32		number;
	uint32		read;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(1) && kind == BF_FILTER)
		PG_RETURN_DATUM(value);
	open_for_probes(value, kind, &opened);
	params = opened.filter.params;
	number = kind == BF_FILTER ? 1 : get_number(fcinfo, number_name, params.cell_bits);
	if (PG_ARGISNULL(1))
		PG_RETURN_DATUM(value);
	if (params.m == 0 && change != BF_DIFFERENCE)
		report_unsized(&params);
	adopt_element_class(&params, element->element_class);
	hash = element->hash(PG_GETARG_DATUM(1), params.seed);
	read = read_opened(value, &opened, hash, true);
	if (!changes(change, &opened.filter, read, number))
		PG_RETURN_DATUM(value);
	if (opened.filter.payload == NULL)
		open_value(value, kind, &opened.filter);
	PG_RETURN_POINTER(change_value(&opened.filter, &params, change, hash, read, number));
}

SQL_FUNCTION(bloomfilter_add, change_argument(fcinfo, BF_FILTER, BF_SUM, NULL))
SQL_FUNCTION(bloomcounter_add, change_argument(fcinfo, BF_COUNTER, BF_SUM, "times"))
SQL_FUNCTION(bloomcounter_remove, change_argument(fcinfo, BF_COUNTER, BF_DIFFERENCE, "times"))
SQL_FUNCTION(bloomcounter_raise, change_argument(fcinfo, BF_COUNTER, BF_GREATER, "level"))
