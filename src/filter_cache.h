/*
 * filter_cache.h
 *		Copies of the stored filters that a backend probes.
 *
 * Reading slices of a stored filter is the cheapest way to probe it a few
 * times.  A filter that is probed again and again is worth a copy in memory.
 * All call sites share these copies, which last until the end of the
 * transaction and together take work_mem at most; one copy that is larger than
 * work_mem may be kept besides.
 *
 * The key is the TOAST pointer.  A stored value never changes in place, and its
 * number is not used again before the server has given out four billion others.
 */
#ifndef BF_FILTER_CACHE_H
#define BF_FILTER_CACHE_H

#include "pg_compat.h"

#include "access/detoast.h"
#include "stored_filter.h"

/*
 * The filter that a call site opened last.  Row after row has the same one, so
 * it is recognized by its first bytes: a copied one by its TOAST pointer, and
 * one in memory by its length and its header, which are all that opening looks
 * at.  All zero in the beginning.
 */
#define IDENTITY_SIZE	(VARHDRSZ + BF_HEADER_SIZE)

typedef struct LastFilter
{
	enum
	{
		LAST_UNKNOWN,			/* cannot be recognized */
		LAST_COPIED,			/* by its TOAST pointer, until shortcuts are revoked */
		LAST_IN_MEMORY			/* by length and header */
	}			last_is;
	char		identity[IDENTITY_SIZE];	/* the first bytes of its value */
	OpenedFilter *filter;		/* &opened, or the cache's */
	uint64		opened_at;		/* a time of the cache */
	OpenedFilter opened;		/* one of which the cache keeps nothing */
	struct varlena *detoasted;	/* its value, if that is a copy; or NULL */
} LastFilter;

/*
 * Opens a filter for one probe with probe_opened().  Valid until any call site
 * opens another one.  An error if the value is no filter.  Closing it frees what
 * nobody keeps: the array of "filter @> ANY (array)" is one row.
 */
static inline OpenedFilter *open_cached_filter(LastFilter *last, Datum value);
static inline void close_cached_filter(LastFilter *last);

/* What follows is private, and here so that a row need not pay for calls. */

/* A copy opened at this time of the cache's clock or before may be gone. */
extern uint64 shortcuts_revoked_at;

extern OpenedFilter *open_other_filter(LastFilter *last, Datum value);

/* Is that the value the filter was opened from last? */
static inline bool
is_opened_last(const LastFilter *last, const char *value)
{
	switch (last->last_is)
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

static inline OpenedFilter *
open_cached_filter(LastFilter *last, Datum value)
{
	if (unlikely(!is_opened_last(last, DatumGetPointer(value))))
		return open_other_filter(last, value);
	if (last->last_is == LAST_IN_MEMORY)
		move_opened(&last->opened, (const uint8 *) DatumGetPointer(value) + IDENTITY_SIZE);
	return last->filter;
}

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
