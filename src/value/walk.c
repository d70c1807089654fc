/*
 * walk.c
 *		Interruptible loops over the bits of filters.
 */
#include "pg/pg_compat.h"

#include "miscadmin.h"
#include "value/dense.h"
#include "value/errors.h"
#include "value/walk.h"

/* The most bytes of a filter to read for one piece of its folded bits. */
#define PIECE_READS		(16 * CHUNK_BYTES)

/* The number of blocks that a fold to m bits combines into one. */
static uint64
fold_factor(const bf_filter *filter, uint64 m)
{
	return filter->sparse ? 1 : filter->params.m / m;
}

/*
 * A sparse filter is expanded before the walk if its blocks are larger than a
 * piece, because the bits of a hash can be anywhere in its block.  A dense
 * filter is folded before the walk if a single block of the result needs more
 * than PIECE_READS bytes, which would delay a cancel request too long.
 */
static bool
needs_conversion(const bf_filter *filter, uint64 m)
{
	if (filter->sparse)
		return bf_shape_of(&filter->params).block_bits / 8 > CHUNK_BYTES;
	return fold_factor(filter, m) * BF_BLOCK_BYTES > PIECE_READS;
}

/* Expands a sparse filter, or folds a dense one to m bits. */
static BloomValue *
convert(const bf_filter *filter, uint64 m, bf_filter *converted)
{
	BloomValue *value;
	uint8	   *bits;

	if (filter->sparse)
		return make_dense_value(filter, BF_GREATER, converted, &bits);
	converted->params = filter->params;
	converted->params.m = m;
	value = make_folded_value(filter, &converted->params, BF_GREATER);
	converted->payload = (const uint8 *) VARDATA(value) + BF_HEADER_SIZE;
	return value;
}

static void
start_side(FilterWalk *walk, int side, const bf_params *params, const bf_filter *filter)
{
	uint64		m = params->m;

	if (needs_conversion(filter, m))
	{
		walk->copies[side] = convert(filter, m, &walk->converted[side]);
		filter = &walk->converted[side];
	}
	if (filter->sparse || filter->params.m != m)
		walk->scratch[side] = palloc(Min(CHUNK_BYTES, m / 8));
	walk->streams[side] = bf_stream_start(filter, params);
	walk->limit = Min(walk->limit,
					  TYPEALIGN(BF_BLOCK_BYTES, PIECE_READS / fold_factor(filter, m)));
}

void
start_walk(FilterWalk *walk, const bf_params *params, const bf_filter *left, const bf_filter *right)
{
	memset(walk, 0, sizeof(*walk));
	walk->total = params->m / 8;
	walk->limit = CHUNK_BYTES;
	start_side(walk, 0, params, left);
	if (right != NULL)
		start_side(walk, 1, params, right);
}

/* Hashes out of order mean corruption: input functions check the order. */
static const uint8 *
read_side(FilterWalk *walk, int side)
{
	bf_stream  *stream = &walk->streams[side];
	const uint8 *piece = bf_stream_read(stream, walk->at, walk->size, walk->scratch[side]);

	while (piece != NULL && stream->unfinished)
	{
		CHECK_FOR_INTERRUPTS();
		piece = bf_stream_continue(stream, walk->at, walk->size, walk->scratch[side]);
	}
	if (piece == NULL)
		report_corrupt_value(check_payload(stream->filter), BF_FILTER);
	return piece;
}

bool
next_piece(FilterWalk *walk)
{
	walk->at += walk->size;
	if (walk->at >= walk->total)
		return false;
	CHECK_FOR_INTERRUPTS();
	walk->size = Min(walk->limit, walk->total - walk->at);
	walk->left = read_side(walk, 0);
	if (walk->streams[1].filter != NULL)
		walk->right = read_side(walk, 1);
	return true;
}

void
end_walk(FilterWalk *walk)
{
	for (int side = 0; side < 2; side++)
	{
		if (walk->scratch[side] != NULL)
			pfree(walk->scratch[side]);
		if (walk->copies[side] != NULL)
			pfree(walk->copies[side]);
	}
}
