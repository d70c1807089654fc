/*
 * stream.c
 *		Reading any Bloom filter as dense bits of a given size, piece by piece.
 */
#include "stream.h"

#include <string.h>

#include "block.h"
#include "compatible.h"
#include "sparse.h"

bf_stream
bf_stream_start(const bf_filter *filter, const bf_params *params)
{
	bf_stream	stream = {.filter = filter, .shape = bf_shape_of(params)};

	assert(params->m != 0 && (filter->sparse || bf_folds_to(&filter->params, params->m)));
	return stream;
}

/* The block never decreases with the hash, so a piece's hashes are adjacent. */
const uint8_t *
bf_stream_continue(bf_stream *stream, uint64_t from, size_t size, uint8_t *scratch)
{
	const bf_filter *filter = stream->filter;

	stream->unfinished = false;
	for (uint32_t added = 0; stream->next_hash < filter->nhashes; added++)
	{
		uint64_t	hash = bf_hash_at(filter->payload, stream->next_hash);
		uint64_t	offset = bf_block_offset(&stream->shape, hash);

		if (offset >= from + size)
			break;
		if (offset < from)
			return NULL;
		if (added == BF_STREAM_HASHES)
		{
			stream->unfinished = true;
			break;
		}
		bf_block_add(scratch + (offset - from), &stream->shape, hash);
		stream->next_hash++;
	}
	return scratch;
}

const uint8_t *
bf_stream_read(bf_stream *stream, uint64_t from, size_t size, uint8_t *scratch)
{
	const bf_filter *filter = stream->filter;
	uint32_t	wanted = stream->shape.nblocks;
	uint32_t	present = bf_shape_of(&filter->params).nblocks;

	assert(from + size <= (uint64_t) wanted * stream->shape.block_bits / 8);
	if (filter->sparse)
	{
		memset(scratch, 0, size);
		return bf_stream_continue(stream, from, size, scratch);
	}
	assert(present == wanted || (from % BF_BLOCK_BYTES == 0 && size % BF_BLOCK_BYTES == 0));
	if (present == wanted)
		return filter->payload + from;
	bf_fold(scratch, filter->payload + from * (present / wanted),
			size / BF_BLOCK_BYTES, present / wanted);
	return scratch;
}
