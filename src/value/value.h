/*
 * value.h
 *		Opening and making values of types bloomfilter and bloomcounter.
 */
#ifndef BF_VALUE_H
#define BF_VALUE_H

#include "pg/pg_compat.h"

#include "core/format.h"
#include "core/numbers.h"
#include "fmgr.h"
#include "pg/memory.h"

/* A value of either type: a varlena header and the encoding of format.h. */
typedef struct varlena BloomValue;

/* Loops over hashes check for interrupts once per this many. */
#define CHUNK_HASHES	(CHUNK_BYTES / BF_HASH_BYTES)

/*
 * Detoasts and decodes an argument; an error if it is invalid.  Returns the
 * detoasted value, into which filter points: the argument itself, or a copy in
 * the current memory context.
 */
extern BloomValue *open_value(Datum value, bf_kind kind, bf_filter *filter);

/* Frees the detoasted copy, if any.  Needed only in long-lived contexts. */
extern void close_value(Datum value, BloomValue *opened);

/* Decodes bytes from outside; an error unless they have the kind and form. */
extern void decode_bytes(const uint8 *bytes, uint64 size, bf_kind kind, bf_form form,
						 bf_filter *filter);

/* Checks the hashes of a sparse filter, which bf_decode() does not. */
extern bf_status check_payload(const bf_filter *filter);

/*
 * A new value in the current memory context, with the header of filter.  The
 * caller fills *payload, which is aligned to 8 bytes and zeroed if zero is set.
 * The functions below allocate in the same way.
 */
extern BloomValue *make_value(const bf_filter *filter, bool zero, uint8 **payload);

/* A copy of a filter, and an empty filter. */
extern BloomValue *copy_value(const bf_filter *filter);
extern BloomValue *make_empty_value(const bf_params *params);

/*
 * A dense copy of a filter at its own size; *dense and *payload point into it.
 * The elements of a sparse counter combine by BF_SUM or BF_GREATER: the operation
 * that makes it dense does the same with other elements.
 */
extern BloomValue *make_dense_value(const bf_filter *filter, bf_combination combination,
									bf_filter *dense, uint8 **payload);

#endif							/* BF_VALUE_H */
