/*
 * filter.c
 *		The filter of a join in local memory.
 *
 * Hashes are kept until the number of keys is known, so that the filter gets the right
 * size.  If they are too many for that, they go into a filter of all the memory that is
 * left, which is folded at the end.  A build never fails for want of memory: then the
 * join goes on without a filter.
 */
#include "pg/pg_compat.h"

#include <math.h>

#include "core/bulk.h"
#include "join/join_filter.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

#define BITS_PER_KEY		12	/* of a filter that knows its number of keys */
#define LEAST_BITS_PER_KEY	5	/* a third of the absent keys pass */

/*
 * The most bits of an exact set of integers, if a filter would not have as many.  A test costs
 * half of that of a hash while the set stays in fast caches.
 */
#define BITS_PER_INTEGER	64
#define LEAST_MOST_BITS		131072
#define MOST_SPARSE_BITS	(8 * 1024 * 1024)

#define FIRST_CHUNK			256
#define LATER_CHUNKS		8192
#define PREFETCH_DISTANCE	8

struct HashChunk
{
	HashChunk  *next;
	uint32		count;
	uint32		room;
	uint64		hashes[FLEXIBLE_ARRAY_MEMBER];
};

static KeyKind
kind_of_key(Oid function)
{
	switch (function)
	{
		case F_HASHINT2:
			return KEY_INT2;
		case F_HASHINT4:
			return KEY_INT4;
		case F_HASHINT8:
			return KEY_INT8;
		default:
			return KEY_OTHER;
	}
}

bool
is_integer_hash(Oid function)
{
	return kind_of_key(function) != KEY_OTHER;
}

bool
is_single_integer(const List *outer_hashes, const List *inner_hashes)
{
	return list_length(outer_hashes) == 1 && is_integer_hash(linitial_oid(outer_hashes)) &&
		is_integer_hash(linitial_oid(inner_hashes));
}

/* Both sides of a key are hashed alike, also if only one of them is a known integer. */
int
prepare_keys(KeyHash *keys, const FilterPlan *plan, bool is_outer, const List *columns)
{
	const List *functions = is_outer ? plan->outer_hashes : plan->inner_hashes;
	int			last_column = 0;

	Assert(list_length(columns) == list_length(functions) && list_length(functions) <= MAX_JOIN_KEYS);
	for (int i = 0; i < list_length(functions); i++)
	{
		Oid			function = list_nth_oid(functions, i);

		keys[i].kind = kind_of_key(function);
		if (!is_integer_hash(list_nth_oid(plan->outer_hashes, i)) ||
			!is_integer_hash(list_nth_oid(plan->inner_hashes, i)))
			keys[i].kind = KEY_OTHER;
		keys[i].column = plain_column(list_nth(columns, i))->varattno;
		keys[i].collation = list_nth_oid(plan->collations, i);
		fmgr_info(function, &keys[i].function);
		last_column = Max(last_column, keys[i].column);
	}
	return last_column;
}

JoinFilter *
create_join_filter(const FilterPlan *plan, EState *estate)
{
	JoinFilter *filter = MemoryContextAllocZero(estate->es_query_cxt, sizeof(JoinFilter));

	filter->plan = plan;
	filter->nkeys = list_length(plan->outer_hashes);
	filter->single = is_single_integer(plan->outer_hashes, plan->inner_hashes);
	filter->range = bf_empty_range;
	filter->memory = AllocSetContextCreate(estate->es_query_cxt, "join filter", ALLOCSET_SMALL_SIZES);
	return filter;
}

Size
join_filter_memory(void)
{
	if (join_filters == JOIN_FILTERS_FORCE)
		return MaxAllocHugeSize;
	return get_hash_memory_limit() / 4;
}

uint32
blocks_for_keys(double keys, Size memory)
{
	double		blocks = Min(keys * BITS_PER_KEY / BF_BLOCK_BITS, (double) (memory / BF_BLOCK_BYTES));

	return (uint32) Max(1, Min(ceil(blocks), (double) (BF_MAX_BITS / BF_BLOCK_BITS)));
}

uint64
capacity_of_blocks(uint32 nblocks)
{
	return (uint64) nblocks * BF_BLOCK_BITS / LEAST_BITS_PER_KEY;
}

/* What hashes may take until their number is known, and bits that are begun before. */
static Size
memory_of_hashes(void)
{
	return join_filter_memory() / 4;
}

static Size
memory_of_bits(void)
{
	return join_filter_memory() / 4 * 3;
}

bool
fits_join_filter(double keys)
{
	return keys <= (double) capacity_of_blocks(blocks_for_keys(keys, memory_of_bits()));
}

/* Forgets the keys. */
void
start_join_filter(JoinFilter *filter)
{
	Assert(filter->shared == NULL);
	MemoryContextReset(filter->memory);
	filter->ready = filter->given_up = filter->exact = false;
	filter->range = bf_empty_range;
	filter->bits = NULL;
	filter->chunks = NULL;
	filter->nstaged = 0;
	filter->keys = 0;
}

static void
give_up(JoinFilter *filter)
{
	start_join_filter(filter);
	filter->given_up = true;
	filter->size = 0;
}

void
set_join_filter_bits(JoinFilter *filter, uint8 *bits, uint32 nblocks)
{
	Assert(nblocks > 0 && bits == (uint8 *) TYPEALIGN(BF_BLOCK_BYTES, bits));
	filter->bits = bits;
	filter->shape.nblocks = nblocks;
	filter->shape.block_bits = BF_BLOCK_BITS;
	filter->shape.k = JOIN_FILTER_K;
	filter->size = (Size) nblocks * BF_BLOCK_BYTES;
}

static bool
allocate_bits(JoinFilter *filter, uint32 nblocks)
{
	Size		size = (Size) nblocks * BF_BLOCK_BYTES;
	char	   *memory = MemoryContextAllocExtended(filter->memory, size + BF_BLOCK_BYTES,
													MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM | MCXT_ALLOC_ZERO);

	if (memory == NULL)
		return false;
	set_join_filter_bits(filter, (uint8 *) TYPEALIGN(BF_BLOCK_BYTES, memory), nblocks);
	return true;
}

/* Replaces single keys by their hashes, and adds these. */
static void
add_hashes(JoinFilter *filter, uint64 *hashes, uint32 count)
{
	for (uint32 i = 0; filter->single && i < count; i++)
		hashes[i] = bf_hash_word(hashes[i], 0);
	for (uint32 i = 0; i < count; i++)
	{
		if (i + PREFETCH_DISTANCE < count)
			bf_bits_prefetch(filter->bits, &filter->shape, hashes[i + PREFETCH_DISTANCE]);
		if (filter->shared != NULL)
			bf_bits_add_shared(filter->bits, &filter->shape, hashes[i]);
		else
			bf_bits_add(filter->bits, &filter->shape, hashes[i]);
	}
}

void
add_staged_hashes(JoinFilter *filter)
{
	add_hashes(filter, filter->staged, filter->nstaged);
	filter->nstaged = 0;
}

static void
add_integers(JoinFilter *filter, const uint64 *integers, uint32 count)
{
	for (uint32 i = 0; i < count; i++)
		bf_integers_add(filter->bits, &filter->range, (int64) integers[i]);
}

/* Moves the hashes into the bits. */
static void
empty_chunks(JoinFilter *filter)
{
	HashChunk  *chunk;

	while ((chunk = filter->chunks) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (filter->exact)
			add_integers(filter, chunk->hashes, chunk->count);
		else
			add_hashes(filter, chunk->hashes, chunk->count);
		filter->chunks = chunk->next;
		pfree(chunk);
	}
}

/* Makes room for one more hash; false if there is none. */
static bool
add_chunk(JoinFilter *filter)
{
	uint32		room = filter->chunks == NULL ? FIRST_CHUNK : LATER_CHUNKS;
	HashChunk  *chunk;

	if (filter->chunks != NULL && (filter->keys + room) * sizeof(uint64) > memory_of_hashes())
		return false;
	chunk = MemoryContextAllocExtended(filter->memory, offsetof(HashChunk, hashes) + room * sizeof(uint64),
									   MCXT_ALLOC_NO_OOM);
	if (chunk == NULL)
		return false;
	chunk->next = filter->chunks;
	chunk->count = 0;
	chunk->room = room;
	filter->chunks = chunk;
	return true;
}

/*
 * Begins a filter for an unknown number of keys: in the rest of the memory, but no more
 * than 16 times of what the keys so far need.  So it can be folded to that.
 */
static bool
start_bits(JoinFilter *filter)
{
	uint32		nblocks = blocks_for_keys(16.0 * Max(filter->keys, LATER_CHUNKS), memory_of_bits());

	if (!allocate_bits(filter, nblocks > 16 ? nblocks - nblocks % 16 : nblocks))
		return false;
	empty_chunks(filter);
	return true;
}

/* Adds a hash to those that wait for the bits; also the first hash behind the chunks. */
static void
stage_hash(JoinFilter *filter, uint64 hash)
{
	filter->staged[filter->nstaged++] = hash;
	if (filter->nstaged < STAGED_HASHES)
		return;
	if (filter->shared == NULL && filter->keys > capacity_of_blocks(filter->shape.nblocks))
		give_up(filter);
	else
		add_staged_hashes(filter);
}

void
add_to_join_filter(JoinFilter *filter, uint64 key)
{
	HashChunk  *chunk = filter->chunks;

	Assert(!filter->given_up && (!filter->ready || filter->shared != NULL));
	filter->keys++;
	if (filter->single)
		bf_range_add(&filter->range, (int64) key);
	if (filter->bits == NULL && (chunk == NULL || chunk->count == chunk->room) &&
		!add_chunk(filter) && !start_bits(filter))
		give_up(filter);
	else if (filter->bits != NULL)
		stage_hash(filter, key);
	else
	{
		chunk = filter->chunks;
		chunk->hashes[chunk->count++] = key;
	}
}

/* Folds a filter that turned out to be too large for its keys. */
static void
shrink_bits(JoinFilter *filter)
{
	uint32		needed = blocks_for_keys((double) filter->keys, MaxAllocHugeSize);
	uint32		nblocks = filter->shape.nblocks;

	while (nblocks % 2 == 0 && nblocks / 2 >= needed)
		nblocks /= 2;
	if (nblocks == filter->shape.nblocks)
		return;
	bf_fold(filter->bits, filter->bits, nblocks, filter->shape.nblocks / nblocks);
	set_join_filter_bits(filter, filter->bits, nblocks);
}

/* Has a set of integers no more bits than a filter would have, or hardly more if that is small? */
static bool
is_as_small_as_filter(double range, double keys)
{
	return range <= Max(keys * BITS_PER_KEY, LEAST_MOST_BITS);
}

bool
is_dense(double range, double keys)
{
	return is_as_small_as_filter(range, keys) ||
		range <= Min(keys * BITS_PER_INTEGER, MOST_SPARSE_BITS);
}

/* Begins a set of integers, if that is small enough.  Copies may have no room for more than a filter. */
static bool
start_integers(JoinFilter *filter)
{
	double		bits;

	if (!filter->single || filter->keys == 0)
		return false;
	bits = (double) bf_range_last(&filter->range) + 1;
	if (filter->copies != NIL && !is_as_small_as_filter(bits, filter->keys))
		return false;
	filter->exact = is_dense(bits, filter->keys) &&
		allocate_bits(filter, (uint32) ceil(bits / BF_BLOCK_BITS));
	return filter->exact;
}

static void
finish_bits(JoinFilter *filter)
{
	if (filter->bits != NULL)
	{
		add_staged_hashes(filter);
		shrink_bits(filter);
	}
	else if (start_integers(filter) ||
			 allocate_bits(filter, blocks_for_keys((double) filter->keys, MaxAllocHugeSize)))
		empty_chunks(filter);
	else
	{
		give_up(filter);
		return;
	}
	Assert(filter->bits != NULL && filter->chunks == NULL && filter->nstaged == 0);
	filter->ready = !filter->spoiled;
}

/* All keys have been added. */
void
finish_join_filter(JoinFilter *filter)
{
	ListCell   *cell;

	if (filter->shared != NULL)
	{
		finish_shared_filter(filter);
		return;
	}
	if (!filter->given_up)
		finish_bits(filter);
	foreach(cell, filter->copies)
	{
		const FilterCopy *copy = lfirst(cell);

		if (copy->shared != NULL)
			publish_filter_copy(filter, copy->shared);
	}
}
