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
#include "miscadmin.h"
#include "utils/memutils.h"
#include "value.h"

/*
 * Filters that are probed in turn, row after row, are few: those of one join.
 * Their copies together may take work_mem, but a single one may always be kept.
 */
#define MAX_FILTERS		8

/* A value this small is fetched as a whole: two slices would take as long. */
#define SMALL_VALUE		(4 * TOAST_MAX_CHUNK_SIZE)

typedef struct CachedFilter
{
	struct varatt_external pointer; /* of the stored value */
	uint64		last_used;		/* 0 if there is none here */
	char	   *room;			/* the copy's memory, NULL if not kept */
	Size		size;			/* of the copy */
	bf_filter	filter;			/* the copy, decoded */
} CachedFilter;

struct FilterCache
{
	MemoryContext context;
	uint64		clock;			/* counts what last_used holds */
	Size		kept;			/* bytes in all copies */
	CachedFilter filters[MAX_FILTERS];
};

FilterCache *
make_filter_cache(MemoryContext context)
{
	FilterCache *cache = MemoryContextAllocZero(context, sizeof(*cache));

	cache->context = context;
	return cache;
}

static void
drop_copy(FilterCache *cache, CachedFilter *entry)
{
	if (entry->room == NULL)
		return;
	cache->kept -= entry->size;
	pfree(entry->room);
	entry->room = NULL;
}

/* The entry of a stored value; *known tells whether it was met before. */
static CachedFilter *
find_entry(FilterCache *cache, const struct varatt_external *pointer, bool *known)
{
	CachedFilter *oldest = &cache->filters[0];

	*known = true;
	for (int i = 0; i < MAX_FILTERS; i++)
	{
		CachedFilter *entry = &cache->filters[i];

		if (entry->last_used != 0 &&
			entry->pointer.va_valueid == pointer->va_valueid &&
			entry->pointer.va_toastrelid == pointer->va_toastrelid)
			return entry;
		if (entry->last_used < oldest->last_used)
			oldest = entry;
	}
	*known = false;
	drop_copy(cache, oldest);
	oldest->pointer = *pointer;
	return oldest;
}

/* The copy that was used longest ago, and before a moment; or NULL. */
static CachedFilter *
oldest_copy(FilterCache *cache, uint64 before)
{
	CachedFilter *oldest = NULL;

	for (int i = 0; i < MAX_FILTERS; i++)
	{
		CachedFilter *entry = &cache->filters[i];

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
make_room(FilterCache *cache, const CachedFilter *entry, Size size)
{
	while (cache->kept > 0 && cache->kept + size > (Size) work_mem * 1024)
	{
		CachedFilter *oldest = oldest_copy(cache, entry->last_used);

		if (oldest == NULL)
			return false;
		drop_copy(cache, oldest);
	}
	return true;
}

/*
 * Fetches a value and keeps a copy, the payload of which begins at a cache
 * line.  The entry is filled in last: a call site may outlive an error that a
 * PL/pgSQL block catches.
 */
static void
keep_copy(FilterCache *cache, CachedFilter *entry, Datum value)
{
	bf_filter	fetched;
	Size		size;
	char	   *room;

	open_filter(value, &fetched);
	size = bf_payload_size(&fetched);
	room = MemoryContextAllocExtended(cache->context, size + BF_BLOCK_BYTES, MCXT_ALLOC_HUGE);
	entry->filter = fetched;
	entry->filter.payload = (uint8 *) TYPEALIGN(BF_BLOCK_BYTES, room);
	copy_bytes((uint8 *) entry->filter.payload, fetched.payload, size);
	entry->room = room;
	entry->size = size;
	cache->kept += size;
}

/* The bytes [from, from + size) of a stored value. */
static const uint8 *
read_slice(Datum value, uint64 from, uint64 size)
{
	struct varlena *slice = detoast_attr_slice((struct varlena *) DatumGetPointer(value),
											   (int32) from, (int32) size);

	if (VARSIZE_ANY_EXHDR(slice) != size)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("stored bloomfilter value ends before its time")));
	return (const uint8 *) VARDATA_ANY(slice);
}

static void
read_header(Datum value, uint64 size, bf_filter *filter)
{
	const uint8 *header;
	bf_status	status;

	header = read_slice(value, 0, Min(size, BF_HEADER_SIZE));
	status = bf_decode_header(header, size, BF_VALUE, filter);
	if (status.error != BF_OK)
		report_corrupt_value(status);
	filter->payload = NULL;
}

/* As VARATT_EXTERNAL_IS_COMPRESSED(), which compares a signed number. */
static bool
is_compressed(const struct varatt_external *pointer)
{
	return VARATT_EXTERNAL_GET_EXTSIZE(*pointer) < (uint32) (pointer->va_rawsize - VARHDRSZ);
}

void
open_cached_filter(FilterCache *cache, Datum value, bf_filter *filter)
{
	struct varlena *attribute = (struct varlena *) DatumGetPointer(value);
	struct varatt_external pointer;
	CachedFilter *entry;
	bool		known;

	if (!VARATT_IS_EXTERNAL_ONDISK(attribute))
	{
		open_filter(value, filter);
		return;
	}
	VARATT_EXTERNAL_GET_POINTER(pointer, attribute);
	entry = find_entry(cache, &pointer, &known);
	if (known && entry->room == NULL && make_room(cache, entry, VARATT_EXTERNAL_GET_EXTSIZE(pointer)))
		keep_copy(cache, entry, value);
	entry->last_used = ++cache->clock;
	if (entry->room != NULL)
		*filter = entry->filter;
	else if (is_compressed(&pointer) ||
			 VARATT_EXTERNAL_GET_EXTSIZE(pointer) <= SMALL_VALUE)
		open_filter(value, filter);
	else
		read_header(value, VARATT_EXTERNAL_GET_EXTSIZE(pointer), filter);
}

/*
 * Hashes are spread evenly, so a hash stands close to where its value puts it
 * in a sparse filter.  Where it should be but is not is decided by neighbours
 * on both sides; where chosen elements upset the spread, by the whole filter.
 */
static bool
probe_stored_hashes(Datum value, const bf_filter *filter, uint64 hash)
{
	uint64		from;
	uint64		to;
	const uint8 *hashes;
	bf_filter	whole;

	bf_expected_range(filter->nhashes, hash, &from, &to);
	hashes = read_slice(value, BF_HEADER_SIZE + 8 * from, 8 * (to - from));
	if ((from == 0 || bf_hash_at(hashes, 0) <= hash) &&
		(to == filter->nhashes || bf_hash_at(hashes, to - from - 1) >= hash))
		return bf_sparse_contains(hashes, to - from, hash);
	open_filter(value, &whole);
	return bf_contains(&whole, hash);
}

bool
probe_stored(Datum value, const bf_filter *filter, uint64 hash)
{
	bf_shape	shape = bf_shape_of(&filter->params);
	bf_filter	whole;

	if (filter->sparse)
		return filter->nhashes > 0 && probe_stored_hashes(value, filter, hash);
	if (filter->params.layout == BF_BLOCKED)
		return bf_block_contains(read_slice(value, BF_HEADER_SIZE + bf_block_offset(&shape, hash),
											BF_BLOCK_BYTES), &shape, hash);
	open_filter(value, &whole);
	return bf_contains(&whole, hash);
}
