/*
 * value.h
 *		Filters as SQL values: opening arguments, making results.
 */
#ifndef BF_VALUE_H
#define BF_VALUE_H

#include "postgres.h"

#include "core/format.h"
#include "fmgr.h"
#include "pg/memory.h"

/* A value of type bloomfilter: a varlena header, then the encoding of format.h. */
typedef struct varlena Bloomfilter;

/* Is a type bloomfilter?  Takes catalog look-ups. */
extern bool is_bloomfilter_type(Oid type);

/* Hashes are processed in pieces of so many. */
#define CHUNK_HASHES	(CHUNK_BYTES / 8)

/*
 * Detoasts and decodes an argument.  The filter points into the detoasted
 * value, which is returned and lives in the current memory context.
 */
extern struct varlena *open_filter(Datum value, bf_filter *filter);

/* The detoasted value alone, once it has passed the same checks. */
extern struct varlena *open_value(Datum value);

/* Frees the detoasted copy, if any.  Needed only in long-lived contexts. */
extern void close_value(Datum value, struct varlena *opened);

/*
 * Checks what bf_decode() leaves unchecked, the order of a sparse filter's
 * hashes: for bytes from outside.
 */
extern bf_status check_payload(const bf_filter *filter);

/*
 * A new value in the current memory context with filter's header; *payload is
 * where its bits or hashes are to be written, aligned to 8 bytes.  It is
 * zeroed only on request.
 */
extern Bloomfilter *make_value(const bf_filter *filter, bool zero, uint8 **payload);

/* A copy of a filter, and the empty filter with given parameters. */
extern Bloomfilter *copy_value(const bf_filter *filter);
extern Bloomfilter *make_empty_value(const bf_params *params);

/* The dense form of a filter at its own size, as a value. */
extern Bloomfilter *make_dense_value(const bf_filter *filter, bf_filter *dense, uint8 **bits);

#endif							/* BF_VALUE_H */
