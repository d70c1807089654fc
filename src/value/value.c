/*
 * value.c
 *		Opening and making values of types bloomfilter and bloomcounter.
 */
#include "pg/pg_compat.h"

#include "core/dense.h"
#include "miscadmin.h"
#include "value/errors.h"
#include "value/value.h"

BloomValue *
open_value(Datum value, bf_kind kind, bf_filter *filter)
{
	BloomValue *bytes = PG_DETOAST_DATUM_PACKED(value);
	bf_status	status = bf_decode((const uint8 *) VARDATA_ANY(bytes),
								   VARSIZE_ANY_EXHDR(bytes), kind, BF_VALUE, filter);

	if (status.error != BF_OK)
		report_corrupt_value(status, kind);
	return bytes;
}

void
close_value(Datum value, BloomValue *opened)
{
	if ((Pointer) opened != DatumGetPointer(value))
		pfree(opened);
}

bf_status
check_payload(const bf_filter *filter)
{
	bf_status	status = {BF_OK, 0, 0};

	for (uint64 at = 0; at < filter->nhashes && status.error == BF_OK; at += CHUNK_HASHES)
	{
		CHECK_FOR_INTERRUPTS();
		status = bf_check_hashes(filter, at, Min(at + CHUNK_HASHES, filter->nhashes));
	}
	return status;
}

void
decode_bytes(const uint8 *bytes, uint64 size, bf_kind kind, bf_form form, bf_filter *filter)
{
	bf_status	status = bf_decode(bytes, size, kind, form, filter);

	if (status.error == BF_OK)
		status = check_payload(filter);
	if (status.error != BF_OK)
		report_invalid_input(status, kind, NULL);
}

BloomValue *
make_value(const bf_filter *filter, bool zero, uint8 **payload)
{
	Size		size = VARHDRSZ + bf_encoded_size(filter);
	BloomValue *value = palloc(size);

	SET_VARSIZE(value, size);
	*payload = bf_encode_header(filter, (uint8 *) VARDATA(value));
	if (zero)
		zero_bytes(*payload, bf_payload_size(filter));
	return value;
}

BloomValue *
copy_value(const bf_filter *filter)
{
	uint8	   *payload;
	BloomValue *value = make_value(filter, false, &payload);

	copy_bytes(payload, filter->payload, bf_payload_size(filter));
	return value;
}

BloomValue *
make_empty_value(const bf_params *params)
{
	bf_filter	empty = {.params = *params, .sparse = true};
	uint8	   *payload;

	return make_value(&empty, false, &payload);
}

/* Adds all hashes of a sparse filter to a dense payload. */
static void
expand_hashes(const bf_filter *filter, bf_combination combination, uint8 *payload)
{
	bf_update	update = bf_update_of(&filter->params, combination);

	for (uint64 at = 0; at < filter->nhashes; at += CHUNK_HASHES)
	{
		CHECK_FOR_INTERRUPTS();
		bf_expand(filter, at, Min(at + CHUNK_HASHES, filter->nhashes), &update, payload);
	}
}

BloomValue *
make_dense_value(const bf_filter *filter, bf_combination combination, bf_filter *dense,
				 uint8 **payload)
{
	bf_filter	header = {.params = filter->params, .levels = filter->levels};
	BloomValue *value = make_value(&header, filter->sparse, payload);

	*dense = header;
	dense->payload = *payload;
	if (filter->sparse)
		expand_hashes(filter, combination, *payload);
	else
		copy_bytes(*payload, filter->payload, bf_payload_size(filter));
	return value;
}
