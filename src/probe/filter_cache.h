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

#include "pg/pg_compat.h"

#include "access/detoast.h"
#include "probe/stored_filter.h"

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

/* A copy opened at this time of the cache's clock or before may be gone. */
extern uint64 shortcuts_revoked_at;

/*
 * Opens a filter other than the call site's last one.  Valid until any call site
 * opens another one.  An error if the value is no filter.
 */
extern OpenedFilter *open_other_filter(LastFilter *last, Datum value);

#endif							/* BF_FILTER_CACHE_H */
