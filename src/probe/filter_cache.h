/*
 * filter_cache.h
 *		A backend's copies of the stored filters that it probes.
 *
 * To probe a stored filter a few times, reading slices is cheapest.  A filter
 * that is probed repeatedly deserves a copy in memory.  All call sites share
 * the copies.  They live until the end of the transaction and take at most
 * work_mem in total, plus one copy that is larger than work_mem.
 *
 * The key is the TOAST pointer.  A stored value never changes in place, and its
 * value ID is not reused until the server has assigned 2^32 others.
 */
#ifndef BF_FILTER_CACHE_H
#define BF_FILTER_CACHE_H

#include "pg/pg_compat.h"

#include "access/detoast.h"
#include "filter/stored_filter.h"

/*
 * The filter that a call site opened last.  Consecutive rows often have the same
 * filter, which is recognized by its first bytes: a copied one by its TOAST
 * pointer, one in memory by its length and header, since opening depends on
 * nothing else.  Initialize to zero, except source.
 */
#define IDENTITY_SIZE	(VARHDRSZ + BF_HEADER_SIZE)

typedef struct LastFilter
{
	enum
	{
		LAST_UNKNOWN,			/* cannot be recognized */
		LAST_COPIED,			/* identity is the TOAST pointer */
		LAST_IN_MEMORY			/* identity is the length and header */
	}			kind;
	bf_source	source;			/* the call site's type; set at the start */
	char		identity[IDENTITY_SIZE];	/* first bytes of the value */
	OpenedFilter *filter;		/* &opened, or the cache's */
	uint64		opened_at;		/* for LAST_COPIED: see shortcuts_revoked_at */
	OpenedFilter opened;		/* used if the cache has neither copy nor header */
	struct varlena *detoasted;	/* detoasted copy to free after the probe, or NULL */
} LastFilter;

/* A copy that was opened at or before this tick of the cache may be gone. */
extern uint64 shortcuts_revoked_at;

/*
 * Opens a filter other than the call site's last one.  The result is valid until
 * any call site opens another filter.  A corrupt value is an error.
 */
extern OpenedFilter *open_other_filter(LastFilter *last, Datum value);

#endif							/* BF_FILTER_CACHE_H */
