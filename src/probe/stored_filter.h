/*
 * stored_filter.h
 *		Filters opened for probes, and read no further than these need.
 *
 * A filter that is stored out of line costs a read of all its TOAST chunks to
 * fetch: a millisecond and a half at 12 MB, for a probe that looks at one cache
 * line.  The functions here read slices of it instead: its header first, and
 * then what each probe needs.
 */
#ifndef BF_STORED_FILTER_H
#define BF_STORED_FILTER_H

#include "pg/pg_compat.h"

#include "access/detoast.h"
#include "core/block.h"
#include "core/format.h"

/* A filter opened for probes. */
typedef struct OpenedFilter
{
	bf_filter	filter;			/* without a payload if only the header has been read */
	bf_shape	shape;			/* of the filter */
	const uint8 *bits;			/* of a dense filter in memory, else NULL */
	uint64		spent;			/* bytes fetched to open and probe it, or worth as much */
} OpenedFilter;

/*
 * Opens a value: its header alone if it is stored out of line, neither
 * compressed nor small, else the whole of it, which then is in the current
 * memory context.  Returns what close_value() releases.  An error if the value
 * is no filter.
 */
extern struct varlena *open_for_probes(Datum value, OpenedFilter *opened);

/* Copies the payload of a filter just opened, bf_payload_size() bytes. */
extern void fetch_payload(Datum value, const OpenedFilter *opened, uint8 *payload);

/* Is a hash in a filter opened from that value? */
static inline bool probe_opened(Datum value, OpenedFilter *opened, uint64 hash);

/* What follows is private, and here so that a row need not pay for calls. */
extern bool probe_slowly(Datum value, OpenedFilter *opened, uint64 hash);

/* Says where the payload of an opened filter is. */
static inline void
move_opened(OpenedFilter *opened, const uint8 *payload)
{
	opened->filter.payload = payload;
	opened->bits = opened->filter.sparse ? NULL : payload;
}

static inline bool
probe_opened(Datum value, OpenedFilter *opened, uint64 hash)
{
	if (likely(opened->bits != NULL))
		return bf_bits_contain(opened->bits, &opened->shape, hash);
	return probe_slowly(value, opened, hash);
}

#endif							/* BF_STORED_FILTER_H */
