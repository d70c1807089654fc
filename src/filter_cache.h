/*
 * filter_cache.h
 *		The stored filters that a call site probes, fetched no more than needed.
 *
 * A filter that is stored out of line costs a read of all its TOAST chunks to
 * open: a millisecond and a half at 12 MB, for a probe that looks at one cache
 * line.  A call site therefore keeps the filters that it meets again, and
 * reads of one that it meets for the first time only what the probe needs.
 *
 * A stored value is recognised by its TOAST pointer.  That is safe: a value is
 * never changed in place, and the number of a deleted one is not given out
 * anew before four billion others have been, while the executor's and
 * PL/pgSQL's call sites end with their transaction at the latest.
 */
#ifndef BF_FILTER_CACHE_H
#define BF_FILTER_CACHE_H

#include "pg_compat.h"

#include "core/format.h"

typedef struct FilterCache FilterCache;

/* An empty cache; it and what it keeps are in the given memory context. */
extern FilterCache *make_filter_cache(MemoryContext context);

/*
 * Opens a filter for one probe.  filter->payload is NULL if so far only the
 * header has been read; probe_stored() then answers.  Valid until the next
 * call.  An error if the value is no filter.
 */
extern void open_cached_filter(FilterCache *cache, Datum value, bf_filter *filter);

/* Is a hash in a stored filter of which only the header has been read? */
extern bool probe_stored(Datum value, const bf_filter *filter, uint64 hash);

#endif							/* BF_FILTER_CACHE_H */
