/*
 * accumulator.c
 *		A filter under construction.
 */
#include "pg_compat.h"

#include "accumulator.h"
#include "common/pg_prng.h"
#include "core/block.h"
#include "core/bulk.h"
#include "core/estimate.h"
#include "core/sparse.h"
#include "errors.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/*
 * Filters of at least this size outgrow the fast caches, and setting a bit
 * waits for memory.  Hashes are then held back, their blocks prefetched, and
 * their bits set PENDING_HASHES elements later.
 */
#define PREFETCH_BYTES	(256 * 1024)
#define PENDING_HASHES	32

#define CACHE_LINE		64

static void *
allocate_huge(MemoryContext context, Size size)
{
	return MemoryContextAllocExtended(context, size, MCXT_ALLOC_HUGE);
}

static void
allocate_slots(Accumulator *accumulator, int log2_slots)
{
	bf_hashset *set = &accumulator->set;
	Size		size = sizeof(uint64) << log2_slots;

	set->slots = allocate_huge(accumulator->context, size);
	set->log2_slots = log2_slots;
	set->count = 0;
	set->has_zero = false;
	zero_bytes((uint8 *) set->slots, size);
}

static void
allocate_pending(Accumulator *accumulator)
{
	if (accumulator->params.m / 8 >= PREFETCH_BYTES)
		accumulator->pending = MemoryContextAlloc(accumulator->context,
												  PENDING_HASHES * sizeof(uint64));
}

/* Room for the bits, beginning at a cache line; freed with the context only. */
static void
allocate_bits(Accumulator *accumulator)
{
	Size		size = accumulator->params.m / 8;
	char	   *room = allocate_huge(accumulator->context, size + CACHE_LINE);

	accumulator->bits = (uint8 *) TYPEALIGN(CACHE_LINE, room);
	zero_bytes(accumulator->bits, size);
	allocate_pending(accumulator);
}

void
begin_accumulator(Accumulator *accumulator, const bf_params *params, MemoryContext context)
{
	memset(accumulator, 0, sizeof(*accumulator));
	accumulator->params = *params;
	accumulator->sizing = params->m == 0;
	accumulator->set_limit = accumulator->sizing ? BF_SIZING_LIMIT : bf_sparse_limit(params->m);
	accumulator->context = context;
	accumulator->set.salt = pg_prng_uint64(&pg_global_prng_state) | 1;
	allocate_slots(accumulator, BF_HASHSET_MIN_LOG2);
}

static void
flush_pending(Accumulator *accumulator)
{
	bf_shape	shape = bf_shape_of(&accumulator->params);

	for (int i = 0; i < accumulator->npending; i++)
		bf_bits_add(accumulator->bits, &shape, accumulator->pending[i]);
	accumulator->npending = 0;
}

static void
set_bits(Accumulator *accumulator, uint64 hash)
{
	bf_shape	shape = bf_shape_of(&accumulator->params);

	if (accumulator->pending == NULL)
	{
		bf_bits_add(accumulator->bits, &shape, hash);
		return;
	}
	bf_bits_prefetch(accumulator->bits, &shape, hash);
	accumulator->pending[accumulator->npending++] = hash;
	if (accumulator->npending == PENDING_HASHES)
		flush_pending(accumulator);
}

/*
 * Hands the hashes of a set to a function, a chunk of slots at a time.  Growing
 * and going over to bits both walk the old set this way.
 */
static void
each_hash(Accumulator *accumulator, const bf_hashset *set,
		  void (*take) (Accumulator *, uint64))
{
	Size		nslots = bf_hashset_slots(set);
	uint64_t	hashes[1024 + 1];

	for (Size at = 0; at < nslots; at += 1024)
	{
		Size		count = bf_hashset_read(set, at, Min(at + 1024, nslots), hashes);

		CHECK_FOR_INTERRUPTS();
		for (Size i = 0; i < count; i++)
			take(accumulator, hashes[i]);
	}
}

static void
add_to_set(Accumulator *accumulator, uint64 hash)
{
	bf_hashset_add(&accumulator->set, hash);
}

static void
grow_set(Accumulator *accumulator)
{
	bf_hashset	old = accumulator->set;

	allocate_slots(accumulator, old.log2_slots + 1);
	each_hash(accumulator, &old, add_to_set);
	pfree(old.slots);
}

static void
go_over_to_bits(Accumulator *accumulator)
{
	bf_hashset	old = accumulator->set;

	if (accumulator->sizing)
		accumulator->params.m = BF_MAX_BITS;
	allocate_bits(accumulator);
	each_hash(accumulator, &old, set_bits);
	pfree(old.slots);
	accumulator->set.slots = NULL;
}

void
accumulate_hash(Accumulator *accumulator, uint64 hash)
{
	if (accumulator->bits != NULL)
	{
		set_bits(accumulator, hash);
		return;
	}
	if (bf_hashset_full(&accumulator->set))
		grow_set(accumulator);
	if (bf_hashset_add(&accumulator->set, hash) &&
		accumulator->set.count > accumulator->set_limit)
		go_over_to_bits(accumulator);
}

static void
take_class(Accumulator *accumulator, const bf_params *params)
{
	if (accumulator->params.element_class == BF_CLASS_NONE)
		accumulator->params.element_class = params->element_class;
}

void
accumulate_filter(Accumulator *accumulator, const bf_filter *filter)
{
	take_class(accumulator, &filter->params);
	if (filter->sparse)
	{
		for (uint64 i = 0; i < filter->nhashes; i++)
		{
			if (i % CHUNK_HASHES == 0)
				CHECK_FOR_INTERRUPTS();
			accumulate_hash(accumulator, bf_hash_at(filter->payload, i));
		}
		return;
	}
	if (accumulator->bits == NULL)
		go_over_to_bits(accumulator);
	for (uint64 at = 0; at < filter->params.m / 8; at += CHUNK_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		bf_or(accumulator->bits + at, filter->payload + at,
			  Min(CHUNK_BYTES, filter->params.m / 8 - at));
	}
}

/* The accumulator's bits as a dense filter, or the header of its hashes. */
static bf_filter
view_accumulator(Accumulator *accumulator)
{
	bf_filter	view = {.params = accumulator->params, .sizing = accumulator->sizing};

	if (accumulator->bits != NULL)
	{
		flush_pending(accumulator);
		view.payload = accumulator->bits;
	}
	else
	{
		view.sparse = true;
		view.nhashes = accumulator->set.count;
	}
	return view;
}

void
accumulate_other(Accumulator *accumulator, Accumulator *other)
{
	bf_filter	view = view_accumulator(other);

	take_class(accumulator, &other->params);
	if (view.sparse)
		each_hash(accumulator, &other->set, accumulate_hash);
	else
		accumulate_filter(accumulator, &view);
}

/* A value with the set's hashes, whose header is given. */
static Bloomfilter *
encode_set(const bf_hashset *set, const bf_filter *header)
{
	uint8	   *payload;
	Bloomfilter *value = make_value(header, false, &payload);
	uint64_t   *hashes = (uint64_t *) payload;
	Size		nslots = bf_hashset_slots(set);

	for (Size at = 0; at < nslots; at += CHUNK_HASHES)
	{
		CHECK_FOR_INTERRUPTS();
		hashes += bf_hashset_read(set, at, Min(at + CHUNK_HASHES, nslots), hashes);
	}
	sort_hashes((uint64_t *) payload, header->nhashes);
	return value;
}

/* A dense value with the bits of the set's hashes. */
static Bloomfilter *
encode_bits_of_set(Accumulator *accumulator, const bf_params *params)
{
	bf_filter	header = {.params = *params};
	Accumulator dense = {.params = *params, .context = CurrentMemoryContext};
	Bloomfilter *value = make_value(&header, true, &dense.bits);

	allocate_pending(&dense);
	each_hash(&dense, &accumulator->set, set_bits);
	flush_pending(&dense);
	if (dense.pending != NULL)
		pfree(dense.pending);
	return value;
}

/* The filter of an accumulator without a size that still holds all its hashes. */
static Bloomfilter *
finish_set(Accumulator *accumulator, SizeLadder *ladder)
{
	bf_filter	header = {.params = accumulator->params, .sparse = true};

	header.nhashes = accumulator->set.count;
	if (header.nhashes == 0)
	{
		header.params.element_class = BF_CLASS_NONE;
		return make_empty_value(&header.params);
	}
	header.params.m = self_size(ladder, &header.params, header.nhashes);
	if (header.nhashes <= bf_sparse_limit(header.params.m))
		return encode_set(&accumulator->set, &header);
	return encode_bits_of_set(accumulator, &header.params);
}

/* The filter of an accumulator without a size that went over to bits. */
static Bloomfilter *
finish_bits(const bf_filter *bits, SizeLadder *ladder)
{
	bf_shape	shape = bf_shape_of(&bits->params);
	bf_filter	folded = {.params = bits->params};
	uint64		bits_set = 0;
	double		cardinality;
	uint8	   *payload;
	Bloomfilter *value;
	FilterWalk	walk;

	start_walk(&walk, bits->params.m, bits, NULL);
	while (next_piece(&walk))
		bits_set += bf_popcount(walk.left, walk.size);
	end_walk(&walk);
	cardinality = Min(bf_cardinality(&shape, bits_set), (double) PG_INT64_MAX / 2);

	folded.params.m = self_size(ladder, &bits->params, (uint64) cardinality);
	value = make_value(&folded, false, &payload);
	start_walk(&walk, folded.params.m, bits, NULL);
	while (next_piece(&walk))
		memcpy(payload + walk.at, walk.left, walk.size);
	end_walk(&walk);
	return value;
}

Bloomfilter *
finish_accumulator(Accumulator *accumulator, SizeLadder *ladder)
{
	bf_filter	view = view_accumulator(accumulator);

	if (accumulator->sizing)
		return view.sparse ? finish_set(accumulator, ladder) : finish_bits(&view, ladder);
	return view.sparse ? encode_set(&accumulator->set, &view) : copy_value(&view);
}

bytea *
serialize_accumulator(Accumulator *accumulator)
{
	bf_filter	view = view_accumulator(accumulator);

	return view.sparse ? encode_set(&accumulator->set, &view) : copy_value(&view);
}

void
deserialize_accumulator(Accumulator *accumulator, const uint8 *bytes, uint64 size,
						MemoryContext context)
{
	bf_filter	filter;
	bf_status	status = bf_decode(bytes, size, BF_STATE, &filter);
	bf_params	params;

	if (status.error == BF_OK)
		status = check_payload(&filter);
	if (status.error != BF_OK)
		report_invalid_input(status, NULL);

	params = filter.params;
	if (filter.sizing)
		params.m = 0;
	begin_accumulator(accumulator, &params, context);
	accumulate_filter(accumulator, &filter);
}
