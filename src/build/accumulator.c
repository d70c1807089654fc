/*
 * accumulator.c
 *		A filter under construction.
 */
#include "pg/pg_compat.h"

#include "build/accumulator.h"
#include "common/pg_prng.h"
#include "utils/memutils.h"
#include "value/dense.h"
#include "value/entries.h"
#include "value/measure.h"
#include "value/parameters.h"

#define ST_SORT qsort_hashes
#define ST_ELEMENT_TYPE uint64_t
#define ST_COMPARE(a, b) (*(a) < *(b) ? -1 : *(a) > *(b))
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

/* Enables deferred adding if the set or the payload, of size bytes, is large. */
static void
allocate_pending(Accumulator *accumulator, Size size)
{
	if (size < PREFETCH_BYTES || accumulator->pending != NULL)
		return;
	accumulator->pending = MemoryContextAlloc(accumulator->context,
											  PENDING_HASHES * sizeof(uint64_t));
	if (bf_kind_of(&accumulator->params) == BF_COUNTER)
		accumulator->pending_numbers = MemoryContextAlloc(accumulator->context,
														  PENDING_HASHES * sizeof(uint16_t));
}

static void
allocate_slots(Accumulator *accumulator, int log2_slots)
{
	bf_hashset *set = &accumulator->set;
	Size		nslots = (Size) 1 << log2_slots;

	set->slots = allocate_large(accumulator->context, nslots * sizeof(uint64_t));
	if (bf_kind_of(&accumulator->params) == BF_COUNTER)
	{
		set->extra = allocate_large(accumulator->context, (nslots + 1) * sizeof(uint16_t));
		zero_bytes((uint8 *) set->extra, (nslots + 1) * sizeof(uint16_t));
	}
	set->log2_slots = log2_slots;
	set->count = 0;
	set->has_zero = false;
	zero_bytes((uint8 *) set->slots, nslots * sizeof(uint64_t));
	allocate_pending(accumulator, nslots * sizeof(uint64_t));
}

static void
free_slots(bf_hashset *set)
{
	pfree(set->slots);
	if (set->extra != NULL)
		pfree(set->extra);
}

/* Allocates the payload at a cache line.  It lives as long as the context. */
static void
allocate_payload(Accumulator *accumulator)
{
	bf_filter	dense = {.params = accumulator->params};
	Size		size = bf_payload_size(&dense);
	char	   *unaligned = allocate_large(accumulator->context, size + BF_BLOCK_BYTES);

	accumulator->update.shape = bf_shape_of(&accumulator->params);
	accumulator->payload = (uint8 *) TYPEALIGN(BF_BLOCK_BYTES, unaligned);
	zero_bytes(accumulator->payload, size);
	Assert(accumulator->npending == 0);
	accumulator->pending = NULL;
	allocate_pending(accumulator, size);
}

void
begin_accumulator(Accumulator *accumulator, const bf_params *params, bf_combination combination,
				  MemoryContext context)
{
	memset(accumulator, 0, sizeof(*accumulator));
	accumulator->params = *params;
	accumulator->update = bf_update_of(params, combination);
	accumulator->sizing = params->m == 0;
	accumulator->set_limit = accumulator->sizing ? BF_SIZING_LIMIT : bf_sparse_limit(params);
	accumulator->context = context;
	accumulator->set.salt = pg_prng_uint64(&pg_global_prng_state) | 1;
	allocate_slots(accumulator, BF_HASHSET_MIN_LOG2);
}

/* Places a hash in the set, which is not full.  True if it is new. */
static inline bool
place_in_set(Accumulator *accumulator, uint64 hash, uint32 number)
{
	bf_hashset *set = &accumulator->set;
	bool		added;
	Size		i = bf_hashset_place(set, hash, &added);

	if (set->extra == NULL || (added && number == 1))
		return added;
	if (!added)
		number = bf_combine_two(accumulator->update.combination, bf_hashset_number(set, i), number,
								bf_cell_limit(accumulator->params.cell_bits));
	bf_hashset_set_number(set, i, number);
	return added;
}

/* Slots that are read at once; small enough for buffers on the stack. */
#define SLOTS_PER_PIECE 1024

/* Adds hashes and their numbers, which are NULL in a Bloom filter. */
typedef void (*AddHashes) (Accumulator *, const uint64_t *hashes, const uint16_t *numbers, Size count);

static inline uint32
number_at(const uint16_t *numbers, Size i)
{
	return numbers == NULL ? 1 : numbers[i];
}

/* Calls a function with the hashes of a set, piece by piece. */
static void
add_set(Accumulator *accumulator, const bf_hashset *set, AddHashes add)
{
	Size		nslots = bf_hashset_slots(set);
	uint64_t	hashes[SLOTS_PER_PIECE + 1];
	uint16_t	numbers[SLOTS_PER_PIECE + 1];

	for (Size at = 0; at < nslots; at += SLOTS_PER_PIECE)
	{
		CHECK_FOR_INTERRUPTS();
		add(accumulator, hashes, set->extra == NULL ? NULL : numbers,
			bf_hashset_read(set, at, Min(at + SLOTS_PER_PIECE, nslots), hashes, numbers));
	}
}

static void
add_to_set(Accumulator *accumulator, const uint64_t *hashes, const uint16_t *numbers, Size count)
{
	for (Size i = 0; i < count; i++)
		place_in_set(accumulator, hashes[i], number_at(numbers, i));
}

/* Does its own prefetching, because pending hashes may be in use. */
static void
add_to_payload(Accumulator *accumulator, const uint64_t *hashes, const uint16_t *numbers, Size count)
{
	bf_update	update = accumulator->update;
	uint8	   *payload = accumulator->payload;

	for (Size i = 0; i < count; i++)
	{
		if (i + PENDING_HASHES < count)
			bf_dense_prefetch(payload, &update, hashes[i + PENDING_HASHES]);
		bf_dense_add(payload, &update, hashes[i], number_at(numbers, i));
	}
}

static void
accumulate_hashes(Accumulator *accumulator, const uint64_t *hashes, const uint16_t *numbers, Size count)
{
	bf_kind		kind = bf_kind_of(&accumulator->params);

	for (Size i = 0; i < count; i++)
		accumulate_element(accumulator, kind, hashes[i], number_at(numbers, i));
}

/*
 * A set grows fourfold, so growing moves each hash 1/3 times on average;
 * doubling would move it once.  Small sets double to save memory, and so does a
 * set that needs no more for set_limit hashes.
 */
static void
grow_set(Accumulator *accumulator)
{
	bf_hashset	old = accumulator->set;
	bf_hashset	doubled = {.log2_slots = old.log2_slots + 1, .count = accumulator->set_limit};
	bool		fourfold = old.log2_slots >= 10 && bf_hashset_full(&doubled);

	allocate_slots(accumulator, old.log2_slots + (fourfold ? 2 : 1));
	add_set(accumulator, &old, add_to_set);
	free_slots(&old);
}

/* Moves the hashes of a set, except 0, and their numbers to the front. */
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
 * Replaces the set by a dense payload.  The set's memory shrinks to its hashes
 * before the payload is allocated, so that a filter that sizes itself stays below
 * 512 MB.  (One of the largest size can take 768 MB when its set last grows.)
 */
static void
convert_to_dense(Accumulator *accumulator)
{
	bf_hashset	set = accumulator->set;
	const uint64_t zero = 0;
	uint16_t	number_of_zero = set.extra == NULL ? 1 : bf_hashset_number(&set, bf_hashset_slots(&set));
	Size		count = compact_set(&set);

	set.slots = repalloc_huge(set.slots, Max(count, 1) * sizeof(uint64_t));
	if (set.extra != NULL)
		set.extra = repalloc_huge(set.extra, Max(count, 1) * sizeof(uint16_t));
	accumulator->set.slots = NULL;
	accumulator->set.extra = NULL;
	if (accumulator->sizing)
		accumulator->params.m = bf_max_size(accumulator->params.cell_bits);
	allocate_payload(accumulator);
	for (Size at = 0; at < count; at += CHUNK_HASHES)
	{
		CHECK_FOR_INTERRUPTS();
		add_to_payload(accumulator, set.slots + at, set.extra == NULL ? NULL : set.extra + at,
					   Min(CHUNK_HASHES, count - at));
	}
	add_to_payload(accumulator, &zero, &number_of_zero, set.has_zero ? 1 : 0);
	free_slots(&set);
}

void
accumulate_in_set(Accumulator *accumulator, uint64 hash, uint32 number)
{
	if (bf_hashset_full(&accumulator->set))
		grow_set(accumulator);
	if (place_in_set(accumulator, hash, number) &&
		accumulator->set.count > accumulator->set_limit)
		convert_to_dense(accumulator);
}

void
flush_pending(Accumulator *accumulator)
{
	bf_update	update;			/* local: the payload could alias it */
	uint8	   *payload;
	const uint64_t *hashes = accumulator->pending;
	const uint16_t *numbers = accumulator->pending_numbers;
	Size		count = accumulator->npending;
	Size		i = 0;

	accumulator->npending = 0;
	while (i < count && accumulator->payload == NULL)
	{
		accumulate_in_set(accumulator, hashes[i], number_at(numbers, i));
		i++;
	}
	update = accumulator->update;
	payload = accumulator->payload;
	for (; i < count; i++)
		bf_dense_add(payload, &update, hashes[i], number_at(numbers, i));
}

static void
adopt_class(Accumulator *accumulator, const bf_params *params)
{
	if (accumulator->params.element_class == BF_CLASS_NONE)
		accumulator->params.element_class = params->element_class;
}

/* Input functions check the numbers, so an invalid one means corruption. */
static void
accumulate_entries(Accumulator *accumulator, const bf_filter *filter)
{
	bf_kind		kind = bf_kind_of(&filter->params);
	uint32		limit = bf_cell_limit(filter->params.cell_bits);
	EntryWalk	walk = walk_entries(filter);

	while (next_entry(&walk))
	{
		if (unlikely(walk.number - 1 >= limit))
			report_corrupt_value(check_payload(filter), kind);
		accumulate_element(accumulator, kind, walk.hash, walk.number);
	}
}

void
accumulate_filter(Accumulator *accumulator, const bf_filter *filter)
{
	adopt_class(accumulator, &filter->params);
	if (filter->sparse)
	{
		accumulate_entries(accumulator, filter);
		return;
	}
	flush_pending(accumulator);
	if (accumulator->payload == NULL)
		convert_to_dense(accumulator);
	combine_cells(accumulator->payload, filter->payload, bf_payload_size(filter), filter->params.cell_bits,
				  accumulator->update.combination);
}

/* Returns a dense filter that points to the payload, or a sparse filter's header. */
static bf_filter
view_accumulator(Accumulator *accumulator)
{
	bf_filter	view = {.sizing = accumulator->sizing, .levels = accumulator->levels};

	flush_pending(accumulator);
	view.params = accumulator->params;
	if (accumulator->payload != NULL)
		view.payload = accumulator->payload;
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
	accumulator->levels |= other->levels;
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

/* Writes the numbers of the sorted hashes of a set. */
static void
encode_numbers(const bf_hashset *set, const uint8 *hashes, uint64 count, uint8 *numbers)
{
	for (uint64 i = 0; i < count; i++)
	{
		if (i % CHUNK_HASHES == 0)
			CHECK_FOR_INTERRUPTS();
		if (i + PENDING_HASHES < count)
			bf_hashset_prefetch(set, bf_hash_at(hashes, i + PENDING_HASHES));
		bf_store16(numbers + BF_NUMBER_BYTES * i,
				   bf_hashset_number(set, bf_hashset_find(set, bf_hash_at(hashes, i))));
	}
}

/* Makes a sparse value from a set and its header. */
static BloomValue *
encode_set(const bf_hashset *set, const bf_filter *header)
{
	uint8	   *payload;
	BloomValue *value = make_value(header, false, &payload);
	uint64_t   *next = (uint64_t *) payload;
	uint64_t	hashes[SLOTS_PER_PIECE + 1];
	uint16_t	numbers[SLOTS_PER_PIECE + 1];
	Size		nslots = bf_hashset_slots(set);

	for (Size at = 0; at < nslots; at += SLOTS_PER_PIECE)
	{
		Size		count = bf_hashset_read(set, at, Min(at + SLOTS_PER_PIECE, nslots), hashes, numbers);

		CHECK_FOR_INTERRUPTS();
		memcpy(next, hashes, count * sizeof(uint64_t));
		next += count;
	}
	sort_hashes((uint64_t *) payload, header->nhashes);
	if (set->extra != NULL)
		encode_numbers(set, payload, header->nhashes, payload + BF_HASH_BYTES * header->nhashes);
	return value;
}

/*
 * Makes a dense value from the set.  A block that spans two cache lines would
 * stall twice, so a large filter is built in aligned memory and then copied.
 */
static BloomValue *
encode_dense_of_set(Accumulator *accumulator, const bf_params *params)
{
	bf_filter	header = {.params = *params, .levels = accumulator->levels};
	Accumulator dense = {.params = *params, .update = bf_update_of(params, accumulator->update.combination)};
	BloomValue *value;

	if (bf_payload_size(&header) < PREFETCH_BYTES)
	{
		value = make_value(&header, true, &dense.payload);
		add_set(&dense, &accumulator->set, add_to_payload);
		return value;
	}
	dense.context = AllocSetContextCreate(CurrentMemoryContext, "bloom filter bits",
										  ALLOCSET_SMALL_SIZES);
	allocate_payload(&dense);
	add_set(&dense, &accumulator->set, add_to_payload);
	header.payload = dense.payload;
	value = copy_value(&header);
	MemoryContextDelete(dense.context);
	return value;
}

/* Sizes a filter by the number of hashes in the set. */
static BloomValue *
finish_set(Accumulator *accumulator)
{
	bf_filter	header = {
		.params = accumulator->params, .sparse = true, .levels = accumulator->levels,
		.nhashes = accumulator->set.count
	};

	if (header.nhashes == 0)
	{
		header.params.element_class = BF_CLASS_NONE;
		return make_empty_value(&header.params);
	}
	header.params.m = self_size(&header.params, header.nhashes);
	if (header.nhashes <= bf_sparse_limit(&header.params))
		return encode_set(&accumulator->set, &header);
	return encode_dense_of_set(accumulator, &header.params);
}

/* Sizes a filter by the estimated cardinality of its dense payload. */
static BloomValue *
finish_dense(const Accumulator *accumulator, const bf_filter *dense)
{
	bf_params	params = dense->params;
	double		cardinality = Min(measure_cardinality(dense), (double) PG_INT64_MAX / 2);

	params.m = self_size(&params, (uint64) cardinality);
	return make_folded_value(dense, &params, accumulator->update.combination);
}

BloomValue *
finish_accumulator(Accumulator *accumulator)
{
	bf_filter	view = view_accumulator(accumulator);

	if (!accumulator->sizing)
		return serialize_accumulator(accumulator);
	return view.sparse ? finish_set(accumulator) : finish_dense(accumulator, &view);
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
	BloomValue *sorted;

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
						bf_kind kind, MemoryContext context)
{
	bf_filter	filter;
	bf_params	params;

	decode_bytes(bytes, size, kind, BF_STATE, &filter);
	params = filter.params;
	if (filter.sizing)
		params.m = 0;
	begin_accumulator(accumulator, &params, BF_SUM, context);
	accumulator->levels = filter.levels;
	accumulate_filter(accumulator, &filter);
}
