/*
 * change.c
 *		Creating a counter, and changing it: elements, and decay.
 *
 * Without a change the result is the argument itself, still toasted, so an
 * UPDATE keeps the stored value.
 */
#include "pg/pg_compat.h"

#include "core/dense.h"
#include "core/sparse.h"
#include "counter/number_walk.h"
#include "filter/errors.h"
#include "filter/params.h"
#include "filter/stored_filter.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "pg/element.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(bloomcounter_create);
PG_FUNCTION_INFO_V1(bloomcounter_bytes);
PG_FUNCTION_INFO_V1(bloomcounter_add);
PG_FUNCTION_INFO_V1(bloomcounter_remove);
PG_FUNCTION_INFO_V1(bloomcounter_raise);
PG_FUNCTION_INFO_V1(bloomcounter_decay);

/* (expected_items, false_positive_rate, counter_bits, layout, ...) */
static bf_params
parse_params(FunctionCallInfo fcinfo, uint64 seed)
{
	bf_layout	layout = layout_from_name(text_to_cstring(PG_GETARG_TEXT_PP(3)));

	return solve_params(PG_GETARG_FLOAT8(0), PG_GETARG_FLOAT8(1), layout, seed,
						check_counter_bits(PG_GETARG_INT32(2)));
}

Datum
bloomcounter_create(PG_FUNCTION_ARGS)
{
	bf_params	params = parse_params(fcinfo, (uint64) PG_GETARG_INT64(4));

	PG_RETURN_POINTER(make_empty_value(&params));
}

/* The size in bytes of a dense value with these parameters. */
Datum
bloomcounter_bytes(PG_FUNCTION_ARGS)
{
	bf_filter	full = {.params = parse_params(fcinfo, 0)};

	PG_RETURN_INT64((int64) (VARHDRSZ + bf_encoded_size(&full)));
}

/* Copies count hashes and their numbers from index `from` to index `to`. */
static void
copy_entries(const bf_filter *result, uint8 *payload, uint64 to,
			 const bf_filter *counter, uint64 from, uint64 count)
{
	copy_bytes(payload + BF_HASH_BYTES * to, counter->payload + BF_HASH_BYTES * from,
			   BF_HASH_BYTES * count);
	copy_bytes(payload + BF_HASH_BYTES * result->nhashes + BF_NUMBER_BYTES * to,
			   counter->payload + BF_HASH_BYTES * counter->nhashes + BF_NUMBER_BYTES * from,
			   BF_NUMBER_BYTES * count);
}

/* A copy of a sparse counter in which a hash has a number; 0 removes it. */
static Bloomfilter *
set_sparse_number(const bf_filter *counter, bf_filter *result, uint64 hash, uint32 number)
{
	uint64		at = bf_lower_bound(counter->payload, counter->nhashes, hash);
	bool		present = at < counter->nhashes && bf_hash_at(counter->payload, at) == hash;
	uint64		keeps = number > 0;
	uint8	   *payload;
	Bloomfilter *value;

	result->sparse = true;
	result->nhashes = counter->nhashes - present + keeps;
	value = make_value(result, false, &payload);
	copy_entries(result, payload, 0, counter, 0, at);
	copy_entries(result, payload, at + keeps, counter, at + present, counter->nhashes - at - present);
	if (keeps)
	{
		bf_store64(payload + BF_HASH_BYTES * at, hash);
		bf_store16(payload + BF_HASH_BYTES * result->nhashes + BF_NUMBER_BYTES * at, (uint16) number);
	}
	return value;
}

/*
 * A copy of a counter in which the numbers of an element, which reads `read`,
 * are combined with a number.
 */
static Bloomfilter *
change_counter(const bf_filter *counter, const bf_params *params, bf_combination change,
			   uint64 hash, uint32 read, uint32 number)
{
	bool		raises = change == BF_GREATER;
	bf_filter	source = *counter;
	bf_filter	result = {.params = *params, .levels = counter->levels || raises};
	bf_shape	shape = bf_shape_of(params);
	uint8	   *numbers;
	Bloomfilter *value;

	if (counter->sparse && (read > 0 || counter->nhashes < bf_sparse_limit(params)))
		return set_sparse_number(counter, &result, hash,
								 bf_combine_two(change, read, number,
												bf_number_limit(params->counter_bits)));
	source.params = *params;
	source.levels = result.levels;
	value = make_dense_counter(&source, raises, &result, &numbers);
	bf_numbers_change(numbers, &shape, params->counter_bits, hash, change, number);
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

/* False if the change would leave the counter as it is; an error if it is invalid. */
static bool
changes(bf_combination change, const bf_filter *counter, uint32 read, uint32 number)
{
	uint32		limit = bf_number_limit(counter->params.counter_bits);

	/* from now on, removal must not lower what is at its level already */
	if (change == BF_GREATER)
		return read < number || !counter->levels;
	if (change == BF_DIFFERENCE && counter->levels)
		report_levels();
	if (change == BF_DIFFERENCE && !bf_has_difference(read, number, limit))
		report_absent(read, number);
	return read < limit;
}

/* Not strict, because adding NULL returns the counter. */
static Datum
change_argument(FunctionCallInfo fcinfo, bf_combination change, const char *number_name)
{
	const ElementType *element = element_type_of_argument(fcinfo, 1);
	Datum		value = PG_GETARG_DATUM(0);
	OpenedFilter opened;
	bf_params	params;
	uint64		hash;
	uint32		number;
	uint32		read;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("\"%s\" must not be null", number_name)));
	open_for_probes(value, BF_COUNTER_VALUE, &opened);
	params = opened.filter.params;
	number = check_number(number_name, PG_GETARG_INT32(2), params.counter_bits);
	if (PG_ARGISNULL(1))
		PG_RETURN_DATUM(value);
	if (params.m == 0 && change != BF_DIFFERENCE)
		report_unsized(&params);
	adopt_element_class(&params, element->element_class);
	hash = element->hash(PG_GETARG_DATUM(1), params.seed);
	read = read_opened(value, &opened, hash);
	if (!changes(change, &opened.filter, read, number))
		PG_RETURN_DATUM(value);
	if (opened.filter.payload == NULL)
		open_counter(value, &opened.filter);
	PG_RETURN_POINTER(change_counter(&opened.filter, &params, change, hash, read, number));
}

Datum
bloomcounter_add(PG_FUNCTION_ARGS)
{
	return change_argument(fcinfo, BF_SUM, "times");
}

Datum
bloomcounter_remove(PG_FUNCTION_ARGS)
{
	return change_argument(fcinfo, BF_DIFFERENCE, "times");
}

Datum
bloomcounter_raise(PG_FUNCTION_ARGS)
{
	return change_argument(fcinfo, BF_GREATER, "level");
}

/* How many hashes of a sparse counter have a number above `by`. */
static uint64
count_survivors(const bf_filter *counter, uint32 by)
{
	uint64		count = 0;

	for (uint64 i = 0; i < counter->nhashes; i++)
	{
		if (i % CHUNK_HASHES == 0)
			CHECK_FOR_INTERRUPTS();
		count += bf_number_of(counter->payload, counter->nhashes, i) > by;
	}
	return count;
}

static Bloomfilter *
decay_sparse(const bf_filter *counter, uint32 by)
{
	bf_filter	result = {.params = counter->params, .sparse = true, .levels = true};
	uint8	   *payload;
	uint8	   *numbers;
	Bloomfilter *value;
	uint64		count = 0;

	result.nhashes = count_survivors(counter, by);
	value = make_value(&result, false, &payload);
	numbers = payload + BF_HASH_BYTES * result.nhashes;
	for (uint64 i = 0; i < counter->nhashes; i++)
	{
		uint32		number = bf_number_of(counter->payload, counter->nhashes, i);

		if (i % CHUNK_HASHES == 0)
			CHECK_FOR_INTERRUPTS();
		if (number <= by)
			continue;
		bf_store64(payload + BF_HASH_BYTES * count, bf_hash_at(counter->payload, i));
		bf_store16(numbers + BF_NUMBER_BYTES * count, (uint16) (number - by));
		count++;
	}
	return value;
}

Datum
bloomcounter_decay(PG_FUNCTION_ARGS)
{
	bf_filter	counter;
	bf_filter	dense;
	uint8	   *numbers;
	uint32		by;
	Bloomfilter *value;

	open_counter(PG_GETARG_DATUM(0), &counter);
	by = check_number("by", PG_GETARG_INT32(1), counter.params.counter_bits);
	if (bf_is_empty(&counter))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	if (counter.sparse)
		PG_RETURN_POINTER(decay_sparse(&counter, by));
	counter.levels = true;
	value = make_dense_counter(&counter, false, &dense, &numbers);
	decay_numbers(numbers, bf_payload_size(&dense), dense.params.counter_bits, by);
	PG_RETURN_POINTER(value);
}
