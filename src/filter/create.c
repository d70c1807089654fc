/*
 * create.c
 *		Creating an empty filter, and adding one element to a filter.
 */
#include "pg/pg_compat.h"

#include "core/block.h"
#include "core/bytes.h"
#include "core/sparse.h"
#include "filter/errors.h"
#include "filter/params.h"
#include "filter/value.h"
#include "fmgr.h"
#include "pg/element.h"
#include "filter/stored_filter.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(bloomfilter_create);
PG_FUNCTION_INFO_V1(bloomfilter_add);
PG_FUNCTION_INFO_V1(bloomfilter_bytes);

Datum
bloomfilter_create(PG_FUNCTION_ARGS)
{
	bf_layout	layout = layout_from_name(text_to_cstring(PG_GETARG_TEXT_PP(2)));
	bf_params	params = solve_params(PG_GETARG_FLOAT8(0), PG_GETARG_FLOAT8(1), layout,
									  (uint64) PG_GETARG_INT64(3), 0);

	PG_RETURN_POINTER(make_empty_value(&params));
}

/* The size in bytes of a dense value with these parameters. */
Datum
bloomfilter_bytes(PG_FUNCTION_ARGS)
{
	bf_layout	layout = layout_from_name(text_to_cstring(PG_GETARG_TEXT_PP(2)));
	bf_params	params = solve_params(PG_GETARG_FLOAT8(0), PG_GETARG_FLOAT8(1), layout, 0, 0);
	bf_filter	full = {.params = params};

	PG_RETURN_INT64((int64) (VARHDRSZ + bf_encoded_size(&full)));
}

/* A copy of a sparse filter with a hash added that it does not contain. */
static Bloomfilter *
insert_hash(const bf_filter *filter, const bf_params *params, uint64 hash)
{
	bf_filter	result = {.params = *params, .sparse = true};
	uint64		at = bf_lower_bound(filter->payload, filter->nhashes, hash);
	uint8	   *payload;
	Bloomfilter *value;

	result.nhashes = filter->nhashes + 1;
	value = make_value(&result, false, &payload);
	copy_bytes(payload, filter->payload, 8 * at);
	bf_store64(payload + 8 * at, hash);
	copy_bytes(payload + 8 * (at + 1), filter->payload + 8 * at, 8 * (filter->nhashes - at));
	return value;
}

/* A copy of a filter with a hash added that it does not contain. */
static Bloomfilter *
add_hash(const bf_filter *filter, const bf_params *params, uint64 hash)
{
	bf_filter	source = *filter;
	bf_filter	result;
	bf_shape	shape = bf_shape_of(params);
	uint8	   *bits;
	Bloomfilter *value;

	if (filter->sparse && filter->nhashes < bf_sparse_limit(params))
		return insert_hash(filter, params, hash);

	source.params = *params;
	value = make_dense_value(&source, &result, &bits);
	bf_bits_add(bits, &shape, hash);
	return value;
}

/*
 * Not strict, because adding NULL returns the filter.  Without a change the
 * result is the argument itself, still toasted, so an UPDATE keeps the stored
 * value.
 */
Datum
bloomfilter_add(PG_FUNCTION_ARGS)
{
	const ElementType *element = element_type_of_argument(fcinfo, 1);
	Datum		value = PG_GETARG_DATUM(0);
	OpenedFilter opened;
	bf_params	params;
	uint64		hash;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(1))
		PG_RETURN_DATUM(value);
	open_for_probes(value, BF_VALUE, &opened);
	params = opened.filter.params;
	if (params.m == 0)
		report_unsized(&params);
	adopt_element_class(&params, element->element_class);
	hash = element->hash(PG_GETARG_DATUM(1), params.seed);
	if (probe_opened(value, &opened, hash))
		PG_RETURN_DATUM(value);
	if (opened.filter.payload == NULL)
		open_filter(value, &opened.filter);
	PG_RETURN_POINTER(add_hash(&opened.filter, &params, hash));
}
