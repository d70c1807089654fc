/*
 * filter_cache.c
 *		The stored filters that a call site probes.
 */
#include "filter_cache.h"

#include "access/detoast.h"
#include "access/heaptoast.h"
#include "core/probe.h"
#include "errors.h"
#include "fmgr.h"
#include "header_cache.h"
#include "miscadmin.h"
#include "memory.h"
#include "value.h"

/*
 * Filters that are probed in turn, row after row, are few: those of one join.
 * Their copies together may take work_mem, but a single one may always be kept.
 */
#define MAX_FILTERS		8

/* A value this small is fetched as a whole: two slices would take as long. */
#define SMALL_VALUE		(4 * TOAST_MAX_CHUNK_SIZE)

/*
 * A slice takes as long to read as so many bytes of a value that is fetched as
 * a whole, if not more are in it: some 5 microseconds, at 0.7 a kilobyte.
 */
#define SLICE_WORTH		(8 * 1024)

/* A stored filter that a call site has met. */
typedef struct StoredFilter
{
	struct varatt_external pointer; /* of the value */
	uint64		last_used;		/* 0 if there is none here */
	uint64		spent;			/* bytes fetched to probe it, or worth as much */
	char	   *room;			/* the copy's memory, NULL if not kept */
	Size		size;			/* of the copy */
	OpenedFilter opened;		/* the copy */
} StoredFilter;

typedef struct StoredFilters
{
	MemoryContext context;		/* of the copies */
	uint64		clock;			/* counts what last_used holds */
	Size		kept;			/* bytes in all copies */
	StoredFilter filters[MAX_FILTERS];
} StoredFilters;

FilterCache *
make_filter_cache(MemoryContext context)
{
	FilterCache *cache = MemoryContextAllocZero(context, sizeof(*cache));

	cache->stored = MemoryContextAllocZero(context, sizeof(*cache->stored));
	cache->stored->context = context;
	return cache;
}

/* Whatever is probed through the entry next has to pay for a copy anew. */
static void
drop_copy(StoredFilters *stored, StoredFilter *entry)
{
	entry->spent = 0;
	if (entry->room == NULL)
		return;
	stored->kept -= entry->size;
	pfree(entry->room);
	entry->room = NULL;
}

/* The entry of a stored value. */
static StoredFilter *
find_entry(StoredFilters *stored, const struct varatt_external *pointer)
{
	StoredFilter *oldest = &stored->filters[0];

	for (int i = 0; i < MAX_FILTERS; i++)
	{
		StoredFilter *entry = &stored->filters[i];

		if (entry->last_used != 0 && memcmp(&entry->pointer, pointer, sizeof(*pointer)) == 0)
			return entry;
		if (entry->last_used < oldest->last_used)
			oldest = entry;
	}
	drop_copy(stored, oldest);
	oldest->pointer = *pointer;
	return oldest;
}

/* The copy that was used longest ago, and before a moment; or NULL. */
static StoredFilter *
oldest_copy(StoredFilters *stored, uint64 before)
{
	StoredFilter *oldest = NULL;

	for (int i = 0; i < MAX_FILTERS; i++)
	{
		StoredFilter *entry = &stored->filters[i];

		if (entry->room != NULL && entry->last_used < before &&
			(oldest == NULL || entry->last_used < oldest->last_used))
			oldest = entry;
	}
	return oldest;
}

/*
 * Makes room for a copy by dropping others that have not been used since this
 * value was last met; false if that is not enough.  Dropping one that was used
 * would have two filters push each other out row after row, and each row fetch
 * one as a whole.
 */
static bool
make_room(StoredFilters *stored, const StoredFilter *entry, Size size)
{
	while (stored->kept > 0 && stored->kept + size > (Size) work_mem * 1024)
	{
		StoredFilter *oldest = oldest_copy(stored, entry->last_used);

		if (oldest == NULL)
			return false;
		drop_copy(stored, oldest);
	}
	return true;
}

static void
set_opened(OpenedFilter *opened, const bf_filter *filter)
{
	opened->filter = *filter;
	opened->shape = bf_shape_of(&filter->params);
	opened->spent = NULL;
	move_opened(opened, filter->payload);
}

/*
 * Fetches a value and keeps a copy, the payload of which begins at a cache
 * line.  The entry is filled in last: a call site may outlive an error that a
 * PL/pgSQL block catches.
 */
static void
keep_copy(StoredFilters *stored, StoredFilter *entry, Datum value)
{
	bf_filter	filter;
	struct varlena *whole = open_filter(value, &filter);
	Size		size = bf_payload_size(&filter);
	char	   *room = allocate_large(stored->context, size + BF_BLOCK_BYTES);
	uint8	   *payload = (uint8 *) TYPEALIGN(BF_BLOCK_BYTES, room);

	copy_bytes(payload, filter.payload, size);
	close_value(value, whole);
	filter.payload = payload;
	set_opened(&entry->opened, &filter);
	entry->room = room;
	entry->size = size;
	stored->kept += size;
}

/* The bytes [from, from + size) of a stored value, to be freed. */
static struct varlena *
read_slice(Datum value, uint64 from, uint64 size)
{
	struct varlena *slice = detoast_attr_slice((struct varlena *) DatumGetPointer(value),
											   (int32) from, (int32) size);

	if (VARSIZE_ANY_EXHDR(slice) != size)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("stored bloomfilter value ends before its time")));
	return slice;
}

/* The header of a stored value that is neither compressed nor small. */
static void
read_header(Datum value, const struct varatt_external *pointer, bf_filter *filter)
{
	uint8		header[BF_HEADER_SIZE];
	bf_status	status;
	bool		known = recall_header(pointer, header);

	if (!known)
	{
		struct varlena *slice = read_slice(value, 0, BF_HEADER_SIZE);

		memcpy(header, VARDATA_ANY(slice), BF_HEADER_SIZE);
		pfree(slice);
	}
	status = bf_decode_header(header, VARATT_EXTERNAL_GET_EXTSIZE(*pointer), BF_VALUE, filter);
	if (status.error != BF_OK)
		report_corrupt_value(status);
	if (!known)
		remember_header(pointer, header);
	filter->payload = NULL;
}

/* As VARATT_EXTERNAL_IS_COMPRESSED(), which compares a signed number. */
static bool
is_compressed(const struct varatt_external *pointer)
{
	return VARATT_EXTERNAL_GET_EXTSIZE(*pointer) < (uint32) (pointer->va_rawsize - VARHDRSZ);
}

/*
 * A stored value: a copy of it where it is kept, else what a probe needs.  A
 * copy is made once the probes before it have cost as much, so that probes of a
 * filter, while it is remembered, cost at most about twice the least.
 */
static const OpenedFilter *
open_stored(FilterCache *cache, Datum value)
{
	struct varatt_external pointer;
	StoredFilters *stored = cache->stored;
	StoredFilter *entry;
	bf_filter	filter;

	VARATT_EXTERNAL_GET_POINTER(pointer, DatumGetPointer(value));
	entry = find_entry(stored, &pointer);
	if (entry->room == NULL && entry->spent >= (uint64) pointer.va_rawsize &&
		make_room(stored, entry, pointer.va_rawsize))
		keep_copy(stored, entry, value);
	entry->last_used = ++stored->clock;
	if (entry->room != NULL)
	{
		memcpy(cache->identity, DatumGetPointer(value), TOAST_POINTER_SIZE);
		cache->last_is = LAST_STORED;
		return &entry->opened;
	}
	if (is_compressed(&pointer) || VARATT_EXTERNAL_GET_EXTSIZE(pointer) <= SMALL_VALUE)
	{
		open_filter(value, &filter);
		entry->spent = pointer.va_rawsize;
	}
	else
		read_header(value, &pointer, &filter);
	set_opened(&cache->opened, &filter);
	cache->opened.spent = &entry->spent;
	return &cache->opened;
}

static const OpenedFilter *
open_in_memory(FilterCache *cache, Datum value)
{
	bf_filter	filter;

	open_filter(value, &filter);
	set_opened(&cache->opened, &filter);
	if (VARATT_IS_4B_U(DatumGetPointer(value)))
	{
		memcpy(cache->identity, DatumGetPointer(value), IDENTITY_SIZE);
		cache->last_is = LAST_IN_MEMORY;
	}
	return &cache->opened;
}

/*
 * An error that a PL/pgSQL block catches leaves the cache as it is then, so it
 * says first that it knows no filter, and that it does last.
 */
const OpenedFilter *
open_other_filter(FilterCache *cache, Datum value)
{
	cache->last_is = LAST_UNKNOWN;
	cache->last = VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value))
		? open_stored(cache, value) : open_in_memory(cache, value);
	return cache->last;
}

/* Is a hash in a stored filter, which is fetched as a whole? */
static bool
probe_whole(Datum value, const OpenedFilter *opened, uint64 hash)
{
	bf_filter	filter;
	struct varlena *whole = open_filter(value, &filter);
	bool		found = bf_contains(&filter, hash);

	*opened->spent += VARSIZE_ANY(whole);
	close_value(value, whole);
	return found;
}

/* Is a hash in a stored blocked filter? */
static bool
probe_stored_block(Datum value, const OpenedFilter *opened, uint64 hash)
{
	struct varlena *block = read_slice(value, BF_HEADER_SIZE + bf_block_offset(&opened->shape, hash),
									   BF_BLOCK_BYTES);
	bool		found = bf_block_contains((const uint8 *) VARDATA_ANY(block), &opened->shape, hash);

	*opened->spent += SLICE_WORTH;
	pfree(block);
	return found;
}

/*
 * Is a hash in a stored sparse filter that has some?  They are spread evenly, so
 * a hash stands close to where its value puts it.  Where it should be but is
 * not is decided by neighbours on both sides; where chosen elements upset the
 * spread, by the whole filter.
 */
static bool
probe_stored_hashes(Datum value, const OpenedFilter *opened, uint64 hash)
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
	*opened->spent += Max(SLICE_WORTH, 8 * (to - from));
	pfree(slice);
	return decided ? found : probe_whole(value, opened, hash);
}

/* Is a hash in a stored filter of which only the header has been read? */
static bool
probe_stored(Datum value, const OpenedFilter *opened, uint64 hash)
{
	const bf_filter *filter = &opened->filter;

	if (filter->sparse)
		return filter->nhashes > 0 && probe_stored_hashes(value, opened, hash);
	if (filter->params.layout == BF_BLOCKED)
		return probe_stored_block(value, opened, hash);
	return probe_whole(value, opened, hash);
}

bool
probe_slowly(Datum value, const OpenedFilter *opened, uint64 hash)
{
	return opened->filter.payload != NULL ? bf_contains(&opened->filter, hash)
		: probe_stored(value, opened, hash);
}
