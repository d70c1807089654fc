/*
 * value.h
 *		Filters as SQL values: opening arguments, making results, walking bits.
 */
#ifndef BF_VALUE_H
#define BF_VALUE_H

#include "postgres.h"

#include "core/format.h"
#include "core/stream.h"
#include "memory.h"

/* A value of type bloomfilter: a varlena header, then the encoding of format.h. */
typedef struct varlena Bloomfilter;

#define CHUNK_HASHES	(CHUNK_BYTES / 8)

/* The most that is read of a filter for one piece of its folded bits. */
#define PIECE_READS		(16 * CHUNK_BYTES)

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

/* The bits of a dense filter folded to the size in params, as a value with these. */
extern Bloomfilter *make_resized_value(const bf_filter *filter, const bf_params *params);

/* Sets the bits of all of a sparse filter's hashes in bits of that shape. */
extern void expand_hashes(const bf_filter *filter, const bf_shape *shape, uint8 *bits);

/* bf_or or bf_and, of any size and interruptible. */
typedef void (*CombineBits) (uint8_t *, const uint8_t *, size_t);
extern void combine_bytes(uint8 *into, const uint8 *from, uint64 size, CombineBits combine);

/* Sorts hashes in place and stores them in the byte order of the format. */
extern void sort_hashes(uint64_t *hashes, uint64 count);

/*
 * A walk over the bits of one or two filters as if they had m bits, piece by
 * piece and interruptible.  Dense ones must fold to that size.
 *
 *		start_walk(&walk, m, &left, &right);
 *		while (next_piece(&walk))
 *			... walk.size bytes at walk.left and walk.right
 *		end_walk(&walk);
 */
typedef struct FilterWalk
{
	const uint8 *left;			/* the present piece */
	const uint8 *right;			/* NULL if there is one filter */
	uint64		at;				/* its offset in the bits, in bytes */
	size_t		size;
	/* private */
	uint64		total;
	bf_stream	streams[2];
	size_t		limit;			/* of a piece's size */
	bf_filter	converted[2];	/* what cannot be read by pieces, made so that it can */
	Bloomfilter *room[2];		/* for that */
	uint8	   *scratch[2];		/* NULL for what is read where it lies */
} FilterWalk;

extern void start_walk(FilterWalk *walk, uint64 m, const bf_filter *left, const bf_filter *right);
extern bool next_piece(FilterWalk *walk);
extern void end_walk(FilterWalk *walk);

#endif							/* BF_VALUE_H */
