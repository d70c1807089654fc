/*
 * walk.h
 *		Loops over the bits of filters, piece by piece and interruptible.
 */
#ifndef BF_WALK_H
#define BF_WALK_H


#include "core/stream.h"
#include "filter/value.h"

/*
 * A walk over the bits of one or two filters as if they had m bits.  Dense ones
 * must fold to that size.
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
	Bloomfilter *copies[2];		/* memory of converted[], or NULL */
	uint8	   *scratch[2];		/* NULL for what is read where it lies */
} FilterWalk;

extern void start_walk(FilterWalk *walk, uint64 m, const bf_filter *left, const bf_filter *right);
extern bool next_piece(FilterWalk *walk);
extern void end_walk(FilterWalk *walk);

/* bf_or or bf_and, of any size and interruptible. */
typedef void (*CombineBits) (uint8_t *, const uint8_t *, size_t);
extern void combine_bytes(uint8 *into, const uint8 *from, uint64 size, CombineBits combine);

/* The bits of a dense filter folded to the size in params, as a value with these. */
extern Bloomfilter *make_resized_value(const bf_filter *filter, const bf_params *params);

#endif							/* BF_WALK_H */
