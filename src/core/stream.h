/*
 * stream.h
 *		Any filter read as dense bits of some size, piece by piece.
 *
 * Set operations take filters that are sparse or dense, and estimates compare
 * filters whose sizes divide one another.  Reading both operands through a
 * stream leaves each operation one case: bits of equal size.  A dense filter
 * of the wanted size is handed out where it lies; everything else is folded or
 * expanded from hashes into a small scratch buffer, so that no operation needs
 * a second copy of a filter.
 */
#ifndef BF_STREAM_H
#define BF_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bulk.h"
#include "layout.h"

typedef struct bf_stream
{
	const bf_filter *filter;
	bf_shape	shape;			/* as which the filter is read */
	uint64_t	next_hash;		/* of a sparse filter: how far it has been read */
	bool		unfinished;		/* there are more hashes for the last piece */
} bf_stream;

/*
 * Begins to read filter as if it had m bits.  A dense filter must fold to that:
 * see bf_folds_to().  A sparse blocked one can be read as of any size.  A sparse
 * classic one scatters each hash over all its bits and cannot be streamed: see
 * bf_expand().
 */
extern bf_stream bf_stream_start(const bf_filter *filter, uint64_t m);

/*
 * The bytes [from, from + size) of the bits, which are either in scratch or in
 * the filter itself.  Pieces are read in ascending order without gaps; from
 * and size are multiples of a block, but for the end of a classic filter.
 * Folding a piece reads the folded size's multiple of it.  NULL if the hashes
 * of a sparse filter are found to be out of order.
 *
 * Chosen hashes may crowd into one piece by the million.  No more than
 * BF_STREAM_HASHES are added to it by one call; while stream->unfinished is set
 * afterwards, the piece is to be continued with the same arguments.
 */
#ifndef BF_STREAM_HASHES
#define BF_STREAM_HASHES 65536
#endif

extern const uint8_t *bf_stream_read(bf_stream *stream, uint64_t from, size_t size,
									 uint8_t *scratch);
extern const uint8_t *bf_stream_continue(bf_stream *stream, uint64_t from, size_t size,
										 uint8_t *scratch);

/*
 * Sets the bits of the hashes [from, to) of a sparse filter in bits that have
 * the given shape.
 */
extern void bf_expand(const bf_filter *filter, uint64_t from, uint64_t to,
					  const bf_shape *shape, uint8_t *bits);

#endif							/* BF_STREAM_H */
