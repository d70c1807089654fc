/*
 * stream.h
 *		Reading any Bloom filter as dense bits of a given size, piece by piece.
 *
 * Operands can be sparse or dense, and estimates also take two sizes of which
 * one divides the other.  Streams reduce all cases to one: bits of equal size.
 * A dense filter of that size is returned in place.  Any other filter is folded
 * or expanded into a small scratch buffer, so no operation copies a filter.
 */
#ifndef BF_STREAM_H
#define BF_STREAM_H

#include "bulk.h"
#include "layout.h"

typedef struct bf_stream
{
	const bf_filter *filter;
	bf_shape	shape;			/* of the bits to return */
	uint64_t	next_hash;		/* index of the next hash, if sparse */
	bool		unfinished;		/* the last piece needs more hashes */
} bf_stream;

/*
 * Starts reading filter as if it had the size in params, which combine with its
 * own.  A dense filter must fold to that size: see bf_folds_to().
 */
extern bf_stream bf_stream_start(const bf_filter *filter, const bf_params *params);

/*
 * Returns bytes [from, from + size) of the bits, in scratch or in the filter
 * itself.  Read pieces in ascending order without gaps.  A piece of a sparse or
 * folded filter consists of whole blocks, so a sparse classic filter is one
 * piece; expand a large one by bf_expand() (dense.h) instead.  Returns NULL if
 * it finds the hashes of a sparse filter out of order.
 *
 * An attacker can choose millions of hashes for one piece.  One call adds at
 * most BF_STREAM_HASHES.  While it leaves stream->unfinished set, call
 * bf_stream_continue() with the same arguments.
 */
#ifndef BF_STREAM_HASHES
#define BF_STREAM_HASHES 65536
#endif

_Static_assert(BF_STREAM_HASHES > 0, "a call makes progress");

extern const uint8_t *bf_stream_read(bf_stream *stream, uint64_t from, size_t size,
									 uint8_t *scratch);
extern const uint8_t *bf_stream_continue(bf_stream *stream, uint64_t from, size_t size,
										 uint8_t *scratch);

#endif							/* BF_STREAM_H */
