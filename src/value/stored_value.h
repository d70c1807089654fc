/*
 * stored_value.h
 *		Probes of stored filters that read only the bytes they need.
 *
 * Fetching a filter that is stored out of line reads all of its TOAST chunks:
 * 1.5 ms at 12 MB, while a probe needs one cache line.  The functions here read
 * slices instead: first the header, then the bytes of each probe.
 */
#ifndef BF_STORED_VALUE_H
#define BF_STORED_VALUE_H

#include "pg/pg_compat.h"

#include "core/dense.h"
#include "value/value.h"

typedef struct OpenedValue
{
	bf_filter	filter;			/* payload is NULL if only the header was read */
	bf_shape	shape;
	const uint8 *dense;			/* payload if dense and in memory, or NULL */
	bf_kind		kind;
	uint64		cost;			/* of opening and probes; see SLICE_COST */
} OpenedValue;

/* Decodes the header of a value and reads no more of it; the payload is NULL. */
extern void read_header(Datum value, bf_kind kind, bf_filter *filter);

/*
 * Opens a value of the kind.  Reads only the header if the
 * value is stored out of line, uncompressed and not small; otherwise detoasts it
 * into the current memory context.  The caller passes the result to
 * close_value().  A corrupt value is an error.
 */
extern BloomValue *open_for_probes(Datum value, bf_kind kind, OpenedValue *opened);

/* Copies the payload, bf_payload_size() bytes, of an opened value. */
extern void fetch_payload(Datum value, const OpenedValue *opened, uint8 *payload);

/* Sets the address of the payload; NULL if it is not in memory. */
static inline void
move_opened(OpenedValue *opened, const uint8 *payload)
{
	opened->filter.payload = payload;
	opened->dense = opened->filter.sparse ? NULL : payload;
}

/* The same as read_opened(), for everything but a dense value in memory. */
extern uint32 read_slowly(Datum value, OpenedValue *opened, uint64 hash, bool want_number);

/*
 * What a hash reads in the filter that was opened from this value: its number,
 * or something else above 0 if only membership is wanted.
 */
static inline uint32
read_opened(Datum value, OpenedValue *opened, uint64 hash, bool want_number)
{
	uint32		cell_bits = opened->filter.params.cell_bits;

	if (likely(opened->dense != NULL))
		return bf_cells_read(opened->dense, &opened->shape, cell_bits, hash);
	return read_slowly(value, opened, hash, want_number);
}

#endif							/* BF_STORED_VALUE_H */
