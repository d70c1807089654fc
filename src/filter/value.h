/*
 * value.h
 *		Opening and making values of types bloomfilter and bloomcounter.
 */
#ifndef BF_VALUE_H
#define BF_VALUE_H

#include "postgres.h"

#include "core/format.h"
#include "fmgr.h"
#include "pg/memory.h"

/* A value of either type: a varlena header and the encoding of format.h. */
typedef struct varlena Bloomfilter;

/* Loops over hashes check for interrupts once per this many. */
#define CHUNK_HASHES	(CHUNK_BYTES / 8)

/*
 * Detoasts and decodes an argument; an error if it is invalid.  Returns the
 * detoasted value, into which filter points: the argument itself, or a copy in
 * the current memory context.
 */
extern struct varlena *open_value(Datum value, bf_source source, bf_filter *filter);

static inline struct varlena *
open_filter(Datum value, bf_filter *filter)
{
	return open_value(value, BF_VALUE, filter);
}

static inline struct varlena *
open_counter(Datum value, bf_filter *counter)
{
	return open_value(value, BF_COUNTER_VALUE, counter);
}

/* Frees the detoasted copy, if any.  Needed only in long-lived contexts. */
extern void close_value(Datum value, struct varlena *opened);

/* Decodes bytes from outside; an error unless they are what source names. */
extern void decode_bytes(const uint8 *bytes, uint64 size, bf_source source, bf_filter *filter);

/* Checks the hashes of a sparse filter, which bf_decode() does not. */
extern bf_status check_payload(const bf_filter *filter);

/*
 * A new value in the current memory context, with the header of filter.  The
 * caller fills *payload, which is aligned to 8 bytes and zeroed if zero is set.
 * The functions below allocate in the same way.
 */
extern Bloomfilter *make_value(const bf_filter *filter, bool zero, uint8 **payload);

/* A copy of a filter, and an empty filter. */
extern Bloomfilter *copy_value(const bf_filter *filter);
extern Bloomfilter *make_empty_value(const bf_params *params);

/*
 * A dense copy of a counter at its own size; *dense and *payload point into it.
 * Adds the numbers of a sparse counter or, if raises is set, raises to them: the
 * operation that makes it dense does the same with other elements.
 */
extern Bloomfilter *make_dense_counter(const bf_filter *counter, bool raises, bf_filter *dense,
									   uint8 **payload);

/* The same for a Bloom filter. */
static inline Bloomfilter *
make_dense_value(const bf_filter *filter, bf_filter *dense, uint8 **bits)
{
	return make_dense_counter(filter, false, dense, bits);
}

#endif							/* BF_VALUE_H */
