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
	const uint8 *bits;			/* of a dense filter in memory, else NULL */
	const uint8 *numbers;		/* of a dense counter in memory, else NULL */
	bf_kind		kind;
	uint64		cost;			/* of opening and probes so far; see SLICE_COST */
} OpenedValue;

/*
 * Opens a value of the kind.  Reads only the header if the
 * value is stored out of line, uncompressed and not small; otherwise detoasts it
 * into the current memory context.  The caller passes the result to
 * close_value().  A corrupt value is an error.
 */
extern BloomValue *open_for_probes(Datum value, bf_kind kind, OpenedValue *opened);

/* Copies the payload, bf_payload_size() bytes, of an opened value. */
extern void fetch_payload(Datum value, const OpenedValue *opened, uint8 *payload);

/* Is a hash in the filter that was opened from this value? */
static inline bool probe_opened(Datum value, OpenedValue *opened, uint64 hash);

/* What a hash reads in the filter that was opened from this value. */
static inline uint32 read_opened(Datum value, OpenedValue *opened, uint64 hash);

/* The same for everything but a dense filter or counter in memory. */
extern bool probe_slowly(Datum value, OpenedValue *opened, uint64 hash);
extern uint32 read_slowly(Datum value, OpenedValue *opened, uint64 hash);

/* Sets the address of the payload; NULL if it is not in memory. */
static inline void
move_opened(OpenedValue *opened, const uint8 *payload)
{
	const uint8 *dense = opened->filter.sparse ? NULL : payload;
	bool		counter = opened->kind == BF_COUNTER;

	opened->filter.payload = payload;
	opened->bits = counter ? NULL : dense;
	opened->numbers = counter ? dense : NULL;
}

static inline bool
probe_opened(Datum value, OpenedValue *opened, uint64 hash)
{
	if (likely(opened->bits != NULL))
		return bf_bits_contain(opened->bits, &opened->shape, hash);
	if (opened->numbers != NULL)
		return read_opened(value, opened, hash) != 0;
	return probe_slowly(value, opened, hash);
}

static inline uint32
read_opened(Datum value, OpenedValue *opened, uint64 hash)
{
	if (likely(opened->numbers != NULL))
		return bf_cells_read(opened->numbers, &opened->shape, opened->filter.params.cell_bits, hash);
	return read_slowly(value, opened, hash);
}

#endif							/* BF_STORED_VALUE_H */
