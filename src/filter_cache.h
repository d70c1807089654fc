/*
 * filter_cache.h
 *		The stored filters that a call site probes, fetched no more than needed.
 *
 * A filter that is stored out of line costs a read of all its TOAST chunks to
 * open: a millisecond and a half at 12 MB, for a probe that looks at one cache
 * line.  A call site therefore keeps the filters that it meets again and again,
 * and before it does reads of one only what the probe needs.
 *
 * A stored value is recognised by its TOAST pointer.  That is safe: a value is
 * never changed in place, and the number of a deleted one is not given out
 * anew before four billion others have been, while the executor's and
 * PL/pgSQL's call sites end with their transaction at the latest.
 */
#ifndef BF_FILTER_CACHE_H
#define BF_FILTER_CACHE_H

#include "pg_compat.h"

#include "access/detoast.h"
#include "core/block.h"
#include "core/format.h"

/* A filter opened for probes. */
typedef struct OpenedFilter
{
	bf_filter	filter;			/* without a payload if only the header has been read */
	bf_shape	shape;			/* of the filter */
	const uint8 *bits;			/* of a dense filter in memory, else NULL */
	uint64	   *spent;			/* where the cost of probing it is counted, if it is stored */
} OpenedFilter;

typedef struct FilterCache FilterCache;

/* An empty cache; it and what it keeps are in the given memory context. */
extern FilterCache *make_filter_cache(MemoryContext context);

/*
 * Opens a filter for one probe, which is not to write to it.  Valid until the
 * next call.  An error if the value is no filter.
 */
static inline const OpenedFilter *open_cached_filter(FilterCache *cache, Datum value);

/* Is a hash in a filter just opened from that value? */
static inline bool probe_opened(Datum value, const OpenedFilter *opened, uint64 hash);

/*
 * What follows is private, and here so that a row need not pay for calls.  Of
 * row after row most have the same filter, so the one opened last is known
 * again by its first bytes: a stored one by its TOAST pointer, and one in
 * memory by its length and its header, which are all that opening looks at.
 */
#define IDENTITY_SIZE	(VARHDRSZ + BF_HEADER_SIZE)

struct FilterCache
{
	const OpenedFilter *last;
	enum
	{
		LAST_UNKNOWN,			/* not to be known again */
		LAST_STORED,			/* by its TOAST pointer */
		LAST_IN_MEMORY			/* by length and header */
	}			last_is;
	char		identity[IDENTITY_SIZE];	/* the first bytes of its value */
	OpenedFilter opened;		/* for one of which no copy is kept */
	struct StoredFilters *stored;	/* those that have been met */
};

extern const OpenedFilter *open_other_filter(FilterCache *cache, Datum value);
extern bool probe_slowly(Datum value, const OpenedFilter *opened, uint64 hash);

/* Says where the payload of an opened filter is. */
static inline void
move_opened(OpenedFilter *opened, const uint8 *payload)
{
	opened->filter.payload = payload;
	opened->bits = opened->filter.sparse ? NULL : payload;
}

/* Is that the value the filter was opened from last? */
static inline bool
is_opened_last(const FilterCache *cache, const char *value)
{
	switch (cache->last_is)
	{
		case LAST_STORED:
			return VARATT_IS_EXTERNAL_ONDISK(value) &&
				memcmp(value, cache->identity, TOAST_POINTER_SIZE) == 0;
		case LAST_IN_MEMORY:
			return VARATT_IS_4B_U(value) && VARSIZE_4B(value) >= IDENTITY_SIZE &&
				memcmp(value, cache->identity, IDENTITY_SIZE) == 0;
		default:
			return false;
	}
}

static inline const OpenedFilter *
open_cached_filter(FilterCache *cache, Datum value)
{
	if (unlikely(!is_opened_last(cache, DatumGetPointer(value))))
		return open_other_filter(cache, value);
	if (cache->last_is == LAST_IN_MEMORY)
		move_opened(&cache->opened, (const uint8 *) DatumGetPointer(value) + IDENTITY_SIZE);
	return cache->last;
}

static inline bool
probe_opened(Datum value, const OpenedFilter *opened, uint64 hash)
{
	if (likely(opened->bits != NULL))
		return bf_bits_contain(opened->bits, &opened->shape, hash);
	return probe_slowly(value, opened, hash);
}

#endif							/* BF_FILTER_CACHE_H */
