/*
 * stored_value.c
 *		Probes of stored filters that read only the bytes they need.
 */
#include "pg/pg_compat.h"

#include "access/detoast.h"
#include "access/heaptoast.h"
#include "core/probe.h"
#include "miscadmin.h"
#include "value/errors.h"
#include "value/stored_value.h"

/* Values up to this size are fetched whole: two slices would take as long. */
#define SMALL_VALUE		(4 * TOAST_MAX_CHUNK_SIZE)

/*
 * The unit of cost is the time to fetch one byte of a whole value.  Reading a
 * slice takes about 5 microseconds, a whole value 0.7 per kB.
 */
#define SLICE_COST		(8 * 1024)

/* A payload is fetched in pieces that fit into the L2 cache. */
#define SLICE_BYTES		(256 * 1024)

/* VARATT_EXTERNAL_IS_COMPRESSED() without its sign-compare warning. */
static bool
is_compressed(const struct varatt_external *pointer)
{
	return VARATT_EXTERNAL_GET_EXTSIZE(*pointer) < (uint32) (pointer->va_rawsize - VARHDRSZ);
}

/* Is a value read faster by slices than whole? */
static bool
can_slice(Datum value)
{
	struct varatt_external pointer;

	if (!VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value)))
		return false;
	VARATT_EXTERNAL_GET_POINTER(pointer, DatumGetPointer(value));
	return VARATT_EXTERNAL_GET_EXTSIZE(pointer) > SMALL_VALUE && !is_compressed(&pointer);
}

/* Reads the bytes [from, from + size) of a stored value, palloc'd. */
static BloomValue *
read_slice(Datum value, bf_kind kind, uint64 from, uint64 size)
{
	BloomValue *slice = detoast_attr_slice((struct varlena *) DatumGetPointer(value),
										   (int32) from, (int32) size);

	if (VARSIZE_ANY_EXHDR(slice) != size)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("stored %s value is truncated", bloom_types[kind].name)));
	return slice;
}

void
read_header(Datum value, bf_kind kind, bf_filter *filter)
{
	uint64		size = toast_raw_datum_size(value) - VARHDRSZ;
	BloomValue *slice = read_slice(value, kind, 0, BF_HEADER_SIZE);
	bf_status	status = bf_decode_header((const uint8 *) VARDATA_ANY(slice), size, kind, BF_VALUE, filter);

	if (status.error != BF_OK)
		report_corrupt_value(status, kind);
	filter->payload = NULL;
	pfree(slice);
}

BloomValue *
open_for_probes(Datum value, bf_kind kind, OpenedValue *opened)
{
	BloomValue *bytes = (BloomValue *) DatumGetPointer(value);

	opened->kind = kind;
	opened->cost = 0;
	if (can_slice(value))
	{
		read_header(value, kind, &opened->filter);
		opened->cost = SLICE_COST;
	}
	else
	{
		bytes = open_value(value, kind, &opened->filter);
		if (VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value)))
			opened->cost = VARSIZE_ANY(bytes);
	}
	opened->shape = bf_shape_of(&opened->filter.params);
	move_opened(opened, opened->filter.payload);
	return bytes;
}

void
fetch_payload(Datum value, const OpenedValue *opened, uint8 *payload)
{
	uint64		size = bf_payload_size(&opened->filter);

	if (opened->filter.payload != NULL)
	{
		copy_bytes(payload, opened->filter.payload, size);
		return;
	}
	for (uint64 at = 0; at < size; at += SLICE_BYTES)
	{
		uint64		length = Min(SLICE_BYTES, size - at);
		BloomValue *piece = read_slice(value, opened->kind, BF_HEADER_SIZE + at, length);

		CHECK_FOR_INTERRUPTS();
		memcpy(payload + at, VARDATA_ANY(piece), length);
		pfree(piece);
	}
}

/* Fetches a whole stored filter for one probe. */
static uint32
read_whole(Datum value, OpenedValue *opened, uint64 hash)
{
	bf_filter	filter;
	BloomValue *whole = open_value(value, opened->kind, &filter);
	uint32		number = bf_read(&filter, hash);

	opened->cost += VARSIZE_ANY(whole);
	close_value(value, whole);
	return number;
}

/* Probes a stored dense filter. */
static uint32
read_stored_dense(Datum value, OpenedValue *opened, uint64 hash)
{
	bf_lookup	lookup = bf_lookup_start(&opened->filter.params, hash);
	uint64		offset;
	uint32		size;
	bool		found = true;

	while (found && bf_lookup_next(&lookup, &offset, &size))
	{
		BloomValue *piece = read_slice(value, opened->kind, BF_HEADER_SIZE + offset, size);

		found = bf_lookup_test(&lookup, (const uint8 *) VARDATA_ANY(piece));
		opened->cost += SLICE_COST;
		pfree(piece);
	}
	return lookup.number;
}

/* The slice that was searched did not enclose the hash. */
#define NOT_ENCLOSED	UINT64_MAX

/*
 * The index of a hash of a stored sparse filter, nhashes if it is not there, or
 * NOT_ENCLOSED.  Hashes are uniform, so the value of a hash predicts its position.
 * A slice around that position gives the answer if its first and last hash
 * enclose the hash.
 */
static uint64
find_stored_hash(Datum value, OpenedValue *opened, uint64 hash)
{
	uint64		nhashes = opened->filter.nhashes;
	uint64		index = nhashes;
	uint64		from;
	uint64		to;
	BloomValue *slice;
	const uint8 *hashes;
	uint64		at;

	bf_expected_range(nhashes, hash, &from, &to);
	slice = read_slice(value, opened->kind, BF_HEADER_SIZE + BF_HASH_BYTES * from,
					   BF_HASH_BYTES * (to - from));
	hashes = (const uint8 *) VARDATA_ANY(slice);
	at = bf_sparse_find(hashes, to - from, hash);
	if (at < to - from)
		index = from + at;
	else if ((from > 0 && bf_hash_at(hashes, 0) > hash) ||
			 (to < nhashes && bf_hash_at(hashes, to - from - 1) < hash))
		index = NOT_ENCLOSED;
	opened->cost += Max(SLICE_COST, BF_HASH_BYTES * (to - from));
	pfree(slice);
	return index;
}

/* The number of a hash of a stored sparse counter. */
static uint32
read_stored_number(Datum value, OpenedValue *opened, uint64 index)
{
	uint64		offset = BF_HASH_BYTES * opened->filter.nhashes + BF_NUMBER_BYTES * index;
	BloomValue *slice = read_slice(value, opened->kind, BF_HEADER_SIZE + offset, BF_NUMBER_BYTES);
	uint32		number = bf_load16((const uint8 *) VARDATA_ANY(slice));

	opened->cost += SLICE_COST;
	pfree(slice);
	return number;
}

/*
 * Probes a stored sparse filter.  Adversarial elements can shift the hashes out
 * of the slice that is searched; the whole filter then gives the answer.  Reads
 * the number of a hash only if it is wanted, else 1.
 */
static uint32
read_stored_sparse(Datum value, OpenedValue *opened, uint64 hash, bool want_number)
{
	uint64		index;

	if (opened->filter.nhashes == 0)
		return 0;
	index = find_stored_hash(value, opened, hash);
	if (index == NOT_ENCLOSED)
		return read_whole(value, opened, hash);
	if (index == opened->filter.nhashes)
		return 0;
	return want_number ? read_stored_number(value, opened, index) : 1;
}

uint32
read_slowly(Datum value, OpenedValue *opened, uint64 hash, bool want_number)
{
	if (opened->filter.payload != NULL)
		return bf_read(&opened->filter, hash);
	if (!opened->filter.sparse)
		return read_stored_dense(value, opened, hash);
	return read_stored_sparse(value, opened, hash, want_number && opened->kind == BF_COUNTER);
}
