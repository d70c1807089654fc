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
#include "value/stored_value.h"

/*
 * The filter that a call site opened last.  Consecutive rows often have the same
 * filter, which is recognized by its first bytes: a copied one by its TOAST
 * pointer, one in memory by its length and header, since opening depends on
 * nothing else.  Initialize to zero, except kind.
 */
#define IDENTITY_SIZE	(VARHDRSZ + BF_HEADER_SIZE)

typedef struct LastFilter
{
	enum
	{
		LAST_UNKNOWN,			/* cannot be recognized */
		LAST_COPIED,			/* identity is the TOAST pointer */
		LAST_IN_MEMORY			/* identity is the length and header */
	}			state;
	bf_kind		kind;			/* of the call site; set at the start */
	char		identity[IDENTITY_SIZE];	/* first bytes of the value */
	OpenedValue *filter;		/* &opened, or the cache's */
	uint64		opened_at;		/* for LAST_COPIED: see shortcuts_revoked_at */
	OpenedValue opened;			/* if the cache has no copy or header */
	BloomValue *detoasted;		/* to free after the probe, or NULL */
} LastFilter;

/* A copy that was opened at or before this tick of the cache may be gone. */
extern uint64 shortcuts_revoked_at;

/*
 * Opens a filter other than the call site's last one.  The result is valid until
 * any call site opens another filter.  A corrupt value is an error.
 */
extern OpenedValue *open_other_filter(LastFilter *last, Datum value);

/* Can the last opened filter serve this value?  One in memory may have moved. */
static inline bool
is_opened_last(const LastFilter *last, const char *value)
{
	switch (last->state)
	{
		case LAST_COPIED:
			return VARATT_IS_EXTERNAL_ONDISK(value) &&
				memcmp(value, last->identity, TOAST_POINTER_SIZE) == 0 &&
				last->opened_at > shortcuts_revoked_at;
		case LAST_IN_MEMORY:
			return VARATT_IS_4B_U(value) && VARSIZE_4B(value) >= IDENTITY_SIZE &&
				memcmp(value, last->identity, IDENTITY_SIZE) == 0;
		default:
			return false;
	}
}

/* Opens a filter for one probe.  The call site's last filter is the fast path. */
static inline OpenedValue *
open_cached_filter(LastFilter *last, Datum value)
{
	if (unlikely(!is_opened_last(last, DatumGetPointer(value))))
		return open_other_filter(last, value);
	if (last->state == LAST_IN_MEMORY)
		move_opened(&last->opened, (const uint8 *) DatumGetPointer(value) + IDENTITY_SIZE);
	return last->filter;
}

/* Limits memory: "filter @> ANY (array)" makes many calls within one row. */
static inline void
close_cached_filter(LastFilter *last)
{
	if (unlikely(last->detoasted != NULL))
	{
		pfree(last->detoasted);
		last->detoasted = NULL;
	}
}

#endif							/* BF_FILTER_CACHE_H */
