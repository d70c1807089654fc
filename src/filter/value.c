/*
 * value.c
 *		Opening and making values of types bloomfilter and bloomcounter.
 */
#include "pg/pg_compat.h"

#include "core/dense.h"
#include "filter/errors.h"
#include "filter/value.h"
#include "fmgr.h"
#include "miscadmin.h"

struct varlena *
open_value(Datum value, bf_source source, bf_filter *filter)
{
	struct varlena *bytes = PG_DETOAST_DATUM_PACKED(value);
	bf_status	status = bf_decode((const uint8 *) VARDATA_ANY(bytes),
								   VARSIZE_ANY_EXHDR(bytes), source, filter);

	if (status.error != BF_OK)
		report_corrupt_value(status, source);
	return bytes;
}

void
close_value(Datum value, struct varlena *opened)
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
decode_bytes(const uint8 *bytes, uint64 size, bf_source source, bf_filter *filter)
{
	bf_status	status = bf_decode(bytes, size, source, filter);

	if (status.error == BF_OK)
		status = check_payload(filter);
	if (status.error != BF_OK)
		report_invalid_input(status, source, NULL);
}

Bloomfilter *
make_value(const bf_filter *filter, bool zero, uint8 **payload)
{
	Size		size = VARHDRSZ + bf_encoded_size(filter);
	Bloomfilter *value = palloc(size);

	SET_VARSIZE(value, size);
	*payload = bf_encode_header(filter, (uint8 *) VARDATA(value));
	if (zero)
		zero_bytes(*payload, bf_payload_size(filter));
	return value;
}

Bloomfilter *
copy_value(const bf_filter *filter)
{
	uint8	   *payload;
	Bloomfilter *value = make_value(filter, false, &payload);

	copy_bytes(payload, filter->payload, bf_payload_size(filter));
	return value;
}

Bloomfilter *
make_empty_value(const bf_params *params)
{
	bf_filter	empty = {.params = *params, .sparse = true};
	uint8	   *payload;

	return make_value(&empty, false, &payload);
}

/* Adds all hashes of a sparse filter to a dense payload. */
static void
expand_hashes(const bf_filter *filter, bool raises, uint8 *payload)
{
	bf_update	update = bf_update_of(&filter->params, raises);

	for (uint64 at = 0; at < filter->nhashes; at += CHUNK_HASHES)
	{
		CHECK_FOR_INTERRUPTS();
		bf_expand(filter, at, Min(at + CHUNK_HASHES, filter->nhashes), &update, payload);
	}
}

Bloomfilter *
make_dense_counter(const bf_filter *filter, bool raises, bf_filter *dense, uint8 **payload)
{
	bf_filter	header = {.params = filter->params, .levels = filter->levels};
	Bloomfilter *value = make_value(&header, filter->sparse, payload);

	*dense = header;
	dense->payload = *payload;
	if (filter->sparse)
		expand_hashes(filter, raises, *payload);
	else
		copy_bytes(*payload, filter->payload, bf_payload_size(filter));
	return value;
}
