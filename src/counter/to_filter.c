/*
 * to_filter.c
 *		The Bloom filter of what a counter reads often enough.
 */
#include "pg/pg_compat.h"

#include "core/sparse.h"
#include "counter/number_walk.h"
#include "filter/params.h"
#include "fmgr.h"
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(bloomcounter_at_least);
PG_FUNCTION_INFO_V1(bloomcounter_to_filter);

/* The sparse filter of the hashes whose number is at least level. */
static Bloomfilter *
select_hashes(const bf_filter *counter, uint32 level, bf_filter *result)
{
	uint8	   *payload;
	Bloomfilter *value;
	uint64		count = 0;

	result->sparse = true;
	result->nhashes = counter->nhashes;
	value = make_value(result, false, &payload);
	for (uint64 i = 0; i < counter->nhashes; i++)
	{
		if (i % CHUNK_HASHES == 0)
			CHECK_FOR_INTERRUPTS();
		if (bf_number_of(counter->payload, counter->nhashes, i) >= level)
			bf_store64(payload + BF_HASH_BYTES * count++, bf_hash_at(counter->payload, i));
	}
	if (count == 0)
		result->params.element_class = BF_CLASS_NONE;
	result->nhashes = count;
	result->payload = bf_encode_header(result, (uint8 *) VARDATA(value));
	SET_VARSIZE(value, VARHDRSZ + bf_encoded_size(result));
	return value;
}

/* A counter can stay sparse for longer than a filter of the same size. */
static Bloomfilter *
threshold_sparse(const bf_filter *counter, uint32 level, bf_filter *result)
{
	Bloomfilter *selected = select_hashes(counter, level, result);
	bf_filter	dense;
	uint8	   *bits;
	Bloomfilter *value;

	if (result->nhashes <= bf_sparse_limit(&result->params))
		return selected;
	value = make_dense_value(result, &dense, &bits);
	pfree(selected);
	return value;
}

static Datum
make_filter(const bf_filter *counter, uint32 level)
{
	bf_filter	result = {.params = counter->params};
	uint8	   *bits;
	Bloomfilter *value;

	result.params.counter_bits = 0;
	if (counter->sparse)
		PG_RETURN_POINTER(threshold_sparse(counter, level, &result));
	value = make_value(&result, false, &bits);
	write_threshold(counter, level, bits);
	PG_RETURN_POINTER(value);
}

Datum
bloomcounter_at_least(PG_FUNCTION_ARGS)
{
	bf_filter	counter;

	open_counter(PG_GETARG_DATUM(0), &counter);
	return make_filter(&counter, check_number("level", PG_GETARG_INT32(1), counter.params.counter_bits));
}

Datum
bloomcounter_to_filter(PG_FUNCTION_ARGS)
{
	bf_filter	counter;

	open_counter(PG_GETARG_DATUM(0), &counter);
	return make_filter(&counter, 1);
}
