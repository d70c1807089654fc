/*
 * walk.h
 *		Interruptible loops over the bits of filters.
 */
#ifndef BF_WALK_H
#define BF_WALK_H

#include "core/stream.h"
#include "value/value.h"

/*
 * Reads one or two filters piece by piece as if they had m bits.  Dense filters
 * must fold to that size.  Corrupt filters raise an error.
 *
 *		start_walk(&walk, &params, &left, &right);
 *		while (next_piece(&walk))
 *			... use walk.size bytes at walk.left and walk.right ...
 *		end_walk(&walk);
 */
typedef struct FilterWalk
{
	const uint8 *left;			/* the current piece */
	const uint8 *right;			/* NULL if there is only one filter */
	uint64		at;				/* the piece's offset in bytes */
	size_t		size;
	/* private */
	uint64		total;
	bf_stream	streams[2];
	size_t		limit;			/* maximum size of a piece */
	bf_filter	converted[2];	/* expanded or folded before the walk */
	BloomValue *copies[2];		/* memory of converted[], or NULL */
	uint8	   *scratch[2];		/* NULL if read in place */
} FilterWalk;

extern void start_walk(FilterWalk *walk, const bf_params *params, const bf_filter *left, const bf_filter *right);
extern bool next_piece(FilterWalk *walk);
extern void end_walk(FilterWalk *walk);

#endif							/* BF_WALK_H */
