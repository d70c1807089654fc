/*
 * value.c
 *		Filters as SQL values.
 */
#include "pg_compat.h"

#include "core/bulk.h"
#include "core/bytes.h"
#include "core/sparse.h"
#include "errors.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "value.h"

#define ST_SORT qsort_hashes
#define ST_ELEMENT_TYPE uint64_t
#define ST_COMPARE(a, b) (*(a) < *(b) ? -1 : *(a) > *(b))
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

struct varlena *
open_filter(Datum value, bf_filter *filter)
{
	struct varlena *bytes = PG_DETOAST_DATUM_PACKED(value);
	bf_status	status = bf_decode((const uint8 *) VARDATA_ANY(bytes),
								   VARSIZE_ANY_EXHDR(bytes), BF_VALUE, filter);

	if (status.error != BF_OK)
		report_corrupt_value(status);
	return bytes;
}

struct varlena *
open_value(Datum value)
{
	bf_filter	filter;

	return open_filter(value, &filter);
}

void
close_value(Datum value, struct varlena *opened)
{
	if ((Pointer) opened != DatumGetPointer(value))
		pfree(opened);
}

bf_status
check_payload(const bf_filter *filter)
{
	bf_status	status = {BF_OK, 0, 0};

	for (uint64 at = 0; at < filter->nhashes && status.error == BF_OK; at += CHUNK_HASHES)
	{
		CHECK_FOR_INTERRUPTS();
		status = bf_check_hashes(filter, at, Min(at + CHUNK_HASHES, filter->nhashes));
	}
	return status;
}

Bloomfilter *
make_value(const bf_filter *filter, bool zero, uint8 **payload)
{
	Size		size = VARHDRSZ + bf_encoded_size(filter);
	Bloomfilter *value = palloc(size);

	SET_VARSIZE(value, size);
	*payload = bf_encode_header(filter, (uint8 *) VARDATA(value));
	if (zero)
		zero_bytes(*payload, bf_payload_size(filter));
	return value;
}

Bloomfilter *
copy_value(const bf_filter *filter)
{
	uint8	   *payload;
	Bloomfilter *value = make_value(filter, false, &payload);

	copy_bytes(payload, filter->payload, bf_payload_size(filter));
	return value;
}

Bloomfilter *
make_empty_value(const bf_params *params)
{
	bf_filter	empty = {.params = *params, .sparse = true};
	uint8	   *payload;

	return make_value(&empty, false, &payload);
}

Bloomfilter *
make_dense_value(const bf_filter *filter, bf_filter *dense, uint8 **bits)
{
	bf_shape	shape = bf_shape_of(&filter->params);
	Bloomfilter *value;

	dense->params = filter->params;
	dense->sparse = dense->sizing = false;
	dense->nhashes = 0;
	value = make_value(dense, filter->sparse, bits);
	dense->payload = *bits;
	if (filter->sparse)
		expand_hashes(filter, &shape, *bits);
	else
		copy_bytes(*bits, filter->payload, bf_payload_size(filter));
	return value;
}

void
expand_hashes(const bf_filter *filter, const bf_shape *shape, uint8 *bits)
{
	for (uint64 at = 0; at < filter->nhashes; at += CHUNK_HASHES)
	{
		CHECK_FOR_INTERRUPTS();
		bf_expand(filter, at, Min(at + CHUNK_HASHES, filter->nhashes), shape, bits);
	}
}

void
sort_hashes(uint64_t *hashes, uint64 count)
{
	qsort_hashes(hashes, count);
	for (uint64 i = 0; i < count; i++)
		bf_store64((uint8 *) &hashes[i], hashes[i]);
}

void
combine_bytes(uint8 *into, const uint8 *from, uint64 size, CombineBits combine)
{
	for (uint64 at = 0; at < size; at += CHUNK_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		combine(into + at, from + at, Min(CHUNK_BYTES, size - at));
	}
}

/* How many of a filter's blocks make one when it is read as of m bits. */
static uint64
blocks_joined(const bf_filter *filter, uint64 m)
{
	return filter->sparse ? 1 : filter->params.m / m;
}

/*
 * A sparse classic filter, which cannot be read by pieces, is expanded as a
 * whole beforehand; a dense one is folded beforehand if a single block would
 * have to be put together from so many that a cancel request had to wait.
 */
static bool
converts_at_once(const bf_filter *filter, uint64 m)
{
	if (filter->sparse)
		return filter->params.layout == BF_CLASSIC;
	return blocks_joined(filter, m) * BF_BLOCK_BYTES > PIECE_READS;
}

/* A dense filter folded to m bits, as a value. */
static Bloomfilter *
make_folded_value(const bf_filter *filter, uint64 m, bf_filter *folded)
{
	const uint64 step = CHUNK_BYTES / BF_BLOCK_BYTES;
	uint64		joined = blocks_joined(filter, m);
	const uint8 *from = filter->payload;
	uint8		part[BF_BLOCK_BYTES];
	uint8	   *bits;
	Bloomfilter *value;

	folded->params = filter->params;
	folded->params.m = m;
	value = make_value(folded, true, &bits);
	folded->payload = bits;
	for (; bits < folded->payload + m / 8; bits += BF_BLOCK_BYTES)
	{
		for (uint64 at = 0; at < joined; at += step)
		{
			uint64		count = Min(step, joined - at);

			CHECK_FOR_INTERRUPTS();
			bf_fold(part, from, 1, count);
			bf_or(bits, part, BF_BLOCK_BYTES);
			from += count * BF_BLOCK_BYTES;
		}
	}
	return value;
}

static void
start_side(FilterWalk *walk, int side, uint64 m, const bf_filter *filter)
{
	uint8	   *bits;

	if (converts_at_once(filter, m))
	{
		walk->room[side] = filter->sparse
			? make_dense_value(filter, &walk->converted[side], &bits)
			: make_folded_value(filter, m, &walk->converted[side]);
		filter = &walk->converted[side];
	}
	if (filter->sparse || filter->params.m != m)
		walk->scratch[side] = palloc(Min(CHUNK_BYTES, m / 8));
	walk->streams[side] = bf_stream_start(filter, m);
	walk->limit = Min(walk->limit,
					  TYPEALIGN(BF_BLOCK_BYTES, PIECE_READS / blocks_joined(filter, m)));
}

void
start_walk(FilterWalk *walk, uint64 m, const bf_filter *left, const bf_filter *right)
{
	memset(walk, 0, sizeof(*walk));
	walk->total = m / 8;
	walk->limit = CHUNK_BYTES;
	start_side(walk, 0, m, left);
	if (right != NULL)
		start_side(walk, 1, m, right);
}

/* NULL for hashes out of order, which only what is stored can have. */
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
		report_corrupt_value(check_payload(stream->filter));
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
		if (walk->room[side] != NULL)
			pfree(walk->room[side]);
	}
}

Bloomfilter *
make_resized_value(const bf_filter *filter, const bf_params *params)
{
	bf_filter	resized = {.params = *params};
	uint8	   *payload;
	Bloomfilter *value = make_value(&resized, false, &payload);
	FilterWalk	walk;

	start_walk(&walk, params->m, filter, NULL);
	while (next_piece(&walk))
		memcpy(payload + walk.at, walk.left, walk.size);
	end_walk(&walk);
	return value;
}
