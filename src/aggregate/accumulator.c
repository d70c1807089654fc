/*
 * accumulator.c
 *		A filter under construction.
 */
#include "pg/pg_compat.h"

#include "aggregate/accumulator.h"
#include "common/pg_prng.h"
#include "core/bulk.h"
#include "core/bytes.h"
#include "core/sparse.h"
#include "filter/measure.h"
#include "filter/walk.h"
#include "miscadmin.h"
#include "pg/memory.h"
#include "utils/memutils.h"

#define ST_SORT qsort_hashes
#define ST_ELEMENT_TYPE uint64_t
#define ST_COMPARE(a, b) (*(a) < *(b) ? -1 : *(a) > *(b))
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

/* Enables deferred adding if the set or the bits, of size bytes, are large. */
static void
allocate_pending(Accumulator *accumulator, Size size)
{
	if (size >= PREFETCH_BYTES && accumulator->pending == NULL)
		accumulator->pending = MemoryContextAlloc(accumulator->context,
												  PENDING_HASHES * sizeof(uint64_t));
}

static void
allocate_slots(Accumulator *accumulator, int log2_slots)
{
	bf_hashset *set = &accumulator->set;
	Size		size = sizeof(uint64_t) << log2_slots;

	set->slots = allocate_large(accumulator->context, size);
	set->log2_slots = log2_slots;
	set->count = 0;
	set->has_zero = false;
	zero_bytes((uint8 *) set->slots, size);
	allocate_pending(accumulator, size);
}

/* Allocates the bits at a cache line.  They live as long as the context. */
static void
allocate_bits(Accumulator *accumulator)
{
	Size		size = accumulator->params.m / 8;
	char	   *unaligned = allocate_large(accumulator->context, size + BF_BLOCK_BYTES);

	accumulator->shape = bf_shape_of(&accumulator->params);
	accumulator->bits = (uint8 *) TYPEALIGN(BF_BLOCK_BYTES, unaligned);
	zero_bytes(accumulator->bits, size);
	Assert(accumulator->npending == 0);
	accumulator->pending = NULL;
	allocate_pending(accumulator, size);
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

/* Slots that are read at once; small enough for a buffer on the stack. */
#define SLOTS_PER_PIECE 1024

typedef void (*AddHashes) (Accumulator *, const uint64_t *, Size);

/* Calls a function with the hashes of a set, piece by piece. */
static void
add_set(Accumulator *accumulator, const bf_hashset *set, AddHashes add)
{
	Size		nslots = bf_hashset_slots(set);
	uint64_t	hashes[SLOTS_PER_PIECE + 1];

	for (Size at = 0; at < nslots; at += SLOTS_PER_PIECE)
	{
		CHECK_FOR_INTERRUPTS();
		add(accumulator, hashes,
			bf_hashset_read(set, at, Min(at + SLOTS_PER_PIECE, nslots), hashes));
	}
}

static void
add_to_set(Accumulator *accumulator, const uint64_t *hashes, Size count)
{
	for (Size i = 0; i < count; i++)
		bf_hashset_add(&accumulator->set, hashes[i]);
}

/* Does its own prefetching, because pending hashes may be in use. */
static void
add_to_bits(Accumulator *accumulator, const uint64_t *hashes, Size count)
{
	bf_shape	shape = accumulator->shape;
	uint8	   *bits = accumulator->bits;

	for (Size i = 0; i < count; i++)
	{
		if (i + PENDING_HASHES < count)
			bf_bits_prefetch(bits, &shape, hashes[i + PENDING_HASHES]);
		bf_bits_add(bits, &shape, hashes[i]);
	}
}

static void
accumulate_hashes(Accumulator *accumulator, const uint64_t *hashes, Size count)
{
	for (Size i = 0; i < count; i++)
		accumulate_hash(accumulator, hashes[i]);
}

/*
 * A set grows fourfold, so growing moves each hash 1/3 times on average;
 * doubling would move it once.  Small sets double to save memory.  So does the
 * last one, because BF_SIZING_LIMIT hashes fill only half of its slots.
 */
static void
grow_set(Accumulator *accumulator)
{
	bf_hashset	old = accumulator->set;
	bool		medium = old.log2_slots >= 10 && old.log2_slots < 24;

	allocate_slots(accumulator, old.log2_slots + (medium ? 2 : 1));
	add_set(accumulator, &old, add_to_set);
	pfree(old.slots);
}

/* Moves the hashes of a set, except 0, to the front of its memory. */
static Size
compact_set(bf_hashset *set)
{
	Size		nslots = bf_hashset_slots(set);
	Size		count = 0;

	for (Size at = 0; at < nslots; at += CHUNK_HASHES)
	{
		CHECK_FOR_INTERRUPTS();
		count += bf_hashset_compact(set, at, Min(at + CHUNK_HASHES, nslots), count);
	}
	return count;
}

/*
 * Replaces the set by bits.  The set's memory shrinks to its hashes before the
 * bits are allocated, so that an accumulator that sizes itself stays below
 * 512 MB.  (One of the largest size can take 768 MB when its set last grows.)
 */
static void
convert_to_bits(Accumulator *accumulator)
{
	Size		count = compact_set(&accumulator->set);
	uint64_t   *hashes = repalloc_huge(accumulator->set.slots, Max(count, 1) * sizeof(uint64_t));
	const uint64_t zero = 0;

	accumulator->set.slots = NULL;
	if (accumulator->sizing)
		accumulator->params.m = BF_MAX_BITS;
	allocate_bits(accumulator);
	for (Size at = 0; at < count; at += CHUNK_HASHES)
	{
		CHECK_FOR_INTERRUPTS();
		add_to_bits(accumulator, hashes + at, Min(CHUNK_HASHES, count - at));
	}
	add_to_bits(accumulator, &zero, accumulator->set.has_zero ? 1 : 0);
	pfree(hashes);
}

void
accumulate_in_set(Accumulator *accumulator, uint64 hash)
{
	if (bf_hashset_full(&accumulator->set))
		grow_set(accumulator);
	if (bf_hashset_add(&accumulator->set, hash) &&
		accumulator->set.count > accumulator->set_limit)
		convert_to_bits(accumulator);
}

void
flush_pending(Accumulator *accumulator)
{
	bf_shape	shape;			/* local, because bits could alias the accumulator */
	uint8	   *bits;
	const uint64_t *hash = accumulator->pending;
	const uint64_t *end;

	if (accumulator->npending == 0)
		return;
	end = hash + accumulator->npending;
	accumulator->npending = 0;
	while (hash < end && accumulator->bits == NULL)
		accumulate_in_set(accumulator, *hash++);
	shape = accumulator->shape;
	bits = accumulator->bits;
	while (hash < end)
		bf_bits_add(bits, &shape, *hash++);
}

static void
adopt_class(Accumulator *accumulator, const bf_params *params)
{
	if (accumulator->params.element_class == BF_CLASS_NONE)
		accumulator->params.element_class = params->element_class;
}

void
accumulate_filter(Accumulator *accumulator, const bf_filter *filter)
{
	adopt_class(accumulator, &filter->params);
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
	flush_pending(accumulator);
	if (accumulator->bits == NULL)
		convert_to_bits(accumulator);
	combine_bytes(accumulator->bits, filter->payload, filter->params.m / 8, bf_or);
}

/* Returns a dense filter that points to the bits, or a sparse filter's header. */
static bf_filter
view_accumulator(Accumulator *accumulator)
{
	bf_filter	view = {.sizing = accumulator->sizing};

	flush_pending(accumulator);
	view.params = accumulator->params;
	if (accumulator->bits != NULL)
		view.payload = accumulator->bits;
	else
	{
		view.sparse = true;
		view.nhashes = accumulator->set.count;
	}
	return view;
}

void
merge_accumulator(Accumulator *accumulator, Accumulator *other)
{
	bf_filter	view = view_accumulator(other);

	adopt_class(accumulator, &other->params);
	if (view.sparse)
		add_set(accumulator, &other->set, accumulate_hashes);
	else
		accumulate_filter(accumulator, &view);
}

/* Sorts hashes in place and stores them in the byte order of the format. */
static void
sort_hashes(uint64_t *hashes, uint64 count)
{
	qsort_hashes(hashes, count);
	for (uint64 i = 0; i < count; i++)
		bf_store64((uint8 *) &hashes[i], hashes[i]);
}

/* Makes a sparse value from a set and its header. */
static Bloomfilter *
encode_set(const bf_hashset *set, const bf_filter *header)
{
	uint8	   *payload;
	Bloomfilter *value = make_value(header, false, &payload);
	uint64_t   *next = (uint64_t *) payload;
	uint64_t	hashes[SLOTS_PER_PIECE + 1];
	Size		nslots = bf_hashset_slots(set);

	for (Size at = 0; at < nslots; at += SLOTS_PER_PIECE)
	{
		Size		count = bf_hashset_read(set, at, Min(at + SLOTS_PER_PIECE, nslots), hashes);

		CHECK_FOR_INTERRUPTS();
		memcpy(next, hashes, count * sizeof(uint64_t));
		next += count;
	}
	sort_hashes((uint64_t *) payload, header->nhashes);
	return value;
}

/*
 * Makes a dense value from the set.  A block that spans two cache lines would
 * stall twice, so a large filter is built in aligned memory and then copied.
 */
static Bloomfilter *
encode_bits_of_set(Accumulator *accumulator, const bf_params *params)
{
	bf_filter	header = {.params = *params};
	Accumulator dense = {.params = *params, .shape = bf_shape_of(params)};
	Bloomfilter *value;

	if (params->m / 8 < PREFETCH_BYTES)
	{
		value = make_value(&header, true, &dense.bits);
		add_set(&dense, &accumulator->set, add_to_bits);
		return value;
	}
	dense.context = AllocSetContextCreate(CurrentMemoryContext, "bloom filter bits",
										  ALLOCSET_SMALL_SIZES);
	allocate_bits(&dense);
	add_set(&dense, &accumulator->set, add_to_bits);
	header.payload = dense.bits;
	value = copy_value(&header);
	MemoryContextDelete(dense.context);
	return value;
}

/* Sizes a filter by the number of hashes in the set. */
static Bloomfilter *
finish_set(Accumulator *accumulator)
{
	bf_filter	header = {.params = accumulator->params, .sparse = true};

	header.nhashes = accumulator->set.count;
	if (header.nhashes == 0)
	{
		header.params.element_class = BF_CLASS_NONE;
		return make_empty_value(&header.params);
	}
	header.params.m = self_size(&header.params, header.nhashes);
	if (header.nhashes <= bf_sparse_limit(header.params.m))
		return encode_set(&accumulator->set, &header);
	return encode_bits_of_set(accumulator, &header.params);
}

/* Sizes a filter by the estimated cardinality of its bits. */
static Bloomfilter *
finish_bits(const bf_filter *bits)
{
	bf_params	params = bits->params;
	double		cardinality = Min(measure_cardinality(bits), (double) PG_INT64_MAX / 2);

	params.m = self_size(&params, (uint64) cardinality);
	return make_resized_value(bits, &params);
}

Bloomfilter *
finish_accumulator(Accumulator *accumulator)
{
	bf_filter	view = view_accumulator(accumulator);

	if (!accumulator->sizing)
		return serialize_accumulator(accumulator);
	return view.sparse ? finish_set(accumulator) : finish_bits(&view);
}

Size
finished_size(Accumulator *accumulator)
{
	bf_filter	view = view_accumulator(accumulator);

	return VARHDRSZ + bf_encoded_size(&view);
}

void
write_accumulator(Accumulator *accumulator, void *to)
{
	bf_filter	view = view_accumulator(accumulator);
	MemoryContext caller;
	Bloomfilter *sorted;

	if (view.nhashes == 0)
	{
		SET_VARSIZE(to, VARHDRSZ + bf_encoded_size(&view));
		copy_bytes(bf_encode_header(&view, (uint8 *) VARDATA(to)), view.payload, bf_payload_size(&view));
		return;
	}
	caller = MemoryContextSwitchTo(accumulator->context);
	sorted = encode_set(&accumulator->set, &view);
	copy_bytes(to, (uint8 *) sorted, VARSIZE(sorted));
	pfree(sorted);
	MemoryContextSwitchTo(caller);
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
	bf_params	params;

	decode_bytes(bytes, size, BF_STATE, &filter);
	params = filter.params;
	if (filter.sizing)
		params.m = 0;
	begin_accumulator(accumulator, &params, context);
	accumulate_filter(accumulator, &filter);
}
