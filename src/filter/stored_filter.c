/*
 * stored_filter.c
 *		Probes of stored filters that read only the bytes they need.
 */
#include "pg/pg_compat.h"

#include "access/detoast.h"
#include "access/heaptoast.h"
#include "core/probe.h"
#include "filter/errors.h"
#include "filter/value.h"
#include "miscadmin.h"
#include "pg/memory.h"
#include "filter/stored_filter.h"

/* Values up to this size are fetched whole: two slices would take as long. */
#define SMALL_VALUE		(4 * TOAST_MAX_CHUNK_SIZE)

/*
 * The unit of cost is the time to fetch one byte of a whole value.  Reading a
 * slice takes about 5 microseconds, a whole value 0.7 per kB.
 */
#define SLICE_COST		(8 * 1024)

/* A payload is fetched in pieces that fit into the L2 cache. */
#define PIECE_BYTES		(256 * 1024)

/* VARATT_EXTERNAL_IS_COMPRESSED() without its sign-compare warning. */
static bool
is_compressed(const struct varatt_external *pointer)
{
	return VARATT_EXTERNAL_GET_EXTSIZE(*pointer) < (uint32) (pointer->va_rawsize - VARHDRSZ);
}

/* Can a value be read by slices?  If so, *size is the size of its encoding. */
static bool
can_slice(Datum value, uint64 *size)
{
	struct varatt_external pointer;

	if (!VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value)))
		return false;
	VARATT_EXTERNAL_GET_POINTER(pointer, DatumGetPointer(value));
	*size = VARATT_EXTERNAL_GET_EXTSIZE(pointer);
	return *size > SMALL_VALUE && !is_compressed(&pointer);
}

/* Reads the bytes [from, from + size) of a stored value, palloc'd. */
static struct varlena *
read_slice(Datum value, uint64 from, uint64 size)
{
	struct varlena *slice = detoast_attr_slice((struct varlena *) DatumGetPointer(value),
											   (int32) from, (int32) size);

	if (VARSIZE_ANY_EXHDR(slice) != size)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("stored bloomfilter value is truncated")));
	return slice;
}

static void
read_header(Datum value, uint64 size, bf_filter *filter)
{
	struct varlena *slice = read_slice(value, 0, BF_HEADER_SIZE);
	bf_status	status = bf_decode_header((const uint8 *) VARDATA_ANY(slice), size, BF_VALUE, filter);

	if (status.error != BF_OK)
		report_corrupt_value(status);
	filter->payload = NULL;
	pfree(slice);
}

struct varlena *
open_for_probes(Datum value, OpenedFilter *opened)
{
	struct varlena *bytes = (struct varlena *) DatumGetPointer(value);
	uint64		size;

	opened->cost = 0;
	if (can_slice(value, &size))
	{
		read_header(value, size, &opened->filter);
		opened->cost = SLICE_COST;
	}
	else
	{
		bytes = open_filter(value, &opened->filter);
		if (VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value)))
			opened->cost = VARSIZE_ANY(bytes);
	}
	opened->shape = bf_shape_of(&opened->filter.params);
	move_opened(opened, opened->filter.payload);
	return bytes;
}

void
fetch_payload(Datum value, const OpenedFilter *opened, uint8 *payload)
{
	uint64		size = bf_payload_size(&opened->filter);

	if (opened->filter.payload != NULL)
	{
		copy_bytes(payload, opened->filter.payload, size);
		return;
	}
	for (uint64 at = 0; at < size; at += PIECE_BYTES)
	{
		uint64		length = Min(PIECE_BYTES, size - at);
		struct varlena *piece = read_slice(value, BF_HEADER_SIZE + at, length);

		CHECK_FOR_INTERRUPTS();
		memcpy(payload + at, VARDATA_ANY(piece), length);
		pfree(piece);
	}
}

/* Fetches a whole stored filter for one probe. */
static bool
probe_whole(Datum value, OpenedFilter *opened, uint64 hash)
{
	bf_filter	filter;
	struct varlena *whole = open_filter(value, &filter);
	bool		found = bf_contains(&filter, hash);

	opened->cost += VARSIZE_ANY(whole);
	close_value(value, whole);
	return found;
}

/* Probes a stored dense filter. */
static bool
probe_stored_bits(Datum value, OpenedFilter *opened, uint64 hash)
{
	bf_lookup	lookup = bf_lookup_start(&opened->shape, hash);
	uint64		offset;
	uint32		size;
	bool		found = true;

	while (found && bf_lookup_next(&lookup, &offset, &size))
	{
		struct varlena *piece = read_slice(value, BF_HEADER_SIZE + offset, size);

		found = bf_lookup_test(&lookup, (const uint8 *) VARDATA_ANY(piece));
		opened->cost += SLICE_COST;
		pfree(piece);
	}
	return found;
}

/*
 * Probes a stored sparse filter that has hashes, by interpolation search.  The
 * hashes are uniform, so the value of a hash predicts its position.  A slice
 * around that position gives the answer if its first and last hash enclose the
 * hash.  Adversarial elements can shift the hashes out of the slice; the whole
 * filter then gives the answer.
 */
static bool
probe_stored_hashes(Datum value, OpenedFilter *opened, uint64 hash)
{
	uint64		nhashes = opened->filter.nhashes;
	uint64		from;
	uint64		to;
	struct varlena *slice;
	const uint8 *hashes;
	bool		decided;
	bool		found;

	bf_expected_range(nhashes, hash, &from, &to);
	slice = read_slice(value, BF_HEADER_SIZE + 8 * from, 8 * (to - from));
	hashes = (const uint8 *) VARDATA_ANY(slice);
	decided = (from == 0 || bf_hash_at(hashes, 0) <= hash) &&
		(to == nhashes || bf_hash_at(hashes, to - from - 1) >= hash);
	found = decided && bf_sparse_contains(hashes, to - from, hash);
	opened->cost += Max(SLICE_COST, 8 * (to - from));
	pfree(slice);
	return decided ? found : probe_whole(value, opened, hash);
}

bool
probe_slowly(Datum value, OpenedFilter *opened, uint64 hash)
{
	const bf_filter *filter = &opened->filter;

	if (filter->payload != NULL)
		return bf_contains(filter, hash);
	if (!filter->sparse)
		return probe_stored_bits(value, opened, hash);
	return filter->nhashes > 0 && probe_stored_hashes(value, opened, hash);
}
