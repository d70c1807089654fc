/*
 * shared_filter.c
 *		The filter of a Parallel Hash in dynamic shared memory.
 *
 * Every participant adds the inner rows that it reads.  It needs no barrier of its own:
 * the hash join lets nobody read outer rows before all inner rows are in the hash table,
 * and the build node has added them before.
 */
#include "pg/pg_compat.h"

#include "join/join_filter.h"

/*
 * The memory is taken and zeroed before the number of keys is known, and a query fails if
 * the system has too little.
 */
#define MAX_SHARED_SIZE		(32 * 1024 * 1024)
#define LEAST_SHARED_KEYS	100000	/* in 150 kB */

typedef enum CopyState
{
	COPY_AWAITED,
	COPY_COMPLETE,
	COPY_NEVER					/* too many keys for the filter or the copy */
} CopyState;

struct SharedFilter
{
	pg_atomic_uint64 keys;
	pg_atomic_uint32 copy;		/* a CopyState */
	uint32		room;			/* of a copy, in blocks */
	uint32		nblocks;
	bool		exact;			/* a copy of integers from this range */
	bf_range	range;
};

static inline uint8 *
bits_of(SharedFilter *shared)
{
	return (uint8 *) TYPEALIGN(BF_BLOCK_BYTES, shared + 1);
}

/* Estimates of rows may be low, so there is room for twice as many, and some more of few. */
static uint32
blocks_for_rows(const FilterPlan *plan, Size memory)
{
	return blocks_for_keys(Max(2000.0 * plan->rows, LEAST_SHARED_KEYS), memory);
}

static uint32
shared_blocks(const JoinFilter *filter, int participants)
{
	Size		memory = join_filter_memory();

	memory = Min(memory, MaxAllocHugeSize / participants) * participants;
	return blocks_for_rows(filter->plan, memory);
}

bool
is_too_large_to_share(const FilterPlan *plan)
{
	return (Size) blocks_for_rows(plan, MaxAllocHugeSize) * BF_BLOCK_BYTES > MAX_SHARED_SIZE;
}

Size
shared_filter_size(const JoinFilter *filter, int participants)
{
	return sizeof(SharedFilter) + BF_BLOCK_BYTES + (Size) shared_blocks(filter, participants) * BF_BLOCK_BYTES;
}

/* Before workers start. */
void
reset_shared_filter(SharedFilter *shared)
{
	pg_atomic_write_u64(&shared->keys, 0);
	memset(bits_of(shared), 0, (Size) shared->nblocks * BF_BLOCK_BYTES);
}

void
initialize_shared_filter(JoinFilter *filter, SharedFilter *shared, int participants)
{
	pg_atomic_init_u64(&shared->keys, 0);
	shared->nblocks = shared_blocks(filter, participants);
	shared->exact = false;
	shared->range = bf_empty_range;
	reset_shared_filter(shared);
	attach_shared_filter(filter, shared);
}

void
attach_shared_filter(JoinFilter *filter, SharedFilter *shared)
{
	start_join_filter(filter);
	filter->shared = shared;
	set_join_filter_bits(filter, bits_of(shared), shared->nblocks);
	filter->exact = shared->exact;
	filter->range = shared->range;
	filter->ready = true;
}

/* The participant has added its keys.  Until all have, nobody probes. */
void
finish_shared_filter(JoinFilter *filter)
{
	SharedFilter *shared = filter->shared;

	Assert(shared != NULL && filter->bits == bits_of(shared));
	add_staged_hashes(filter);
	pg_atomic_fetch_add_u64(&shared->keys, filter->keys);
	filter->keys = 0;
}

/* True if the participants added too many keys. */
bool
shared_filter_is_full(const JoinFilter *filter)
{
	return pg_atomic_read_u64(&filter->shared->keys) > capacity_of_blocks(filter->shape.nblocks);
}

/* The memory may be gone after this, before the executor's state. */
void
detach_shared_filter(JoinFilter *filter)
{
	if (filter->shared == NULL)
		return;
	filter->keys = pg_atomic_read_u64(&filter->shared->keys);
	filter->shared = NULL;
	filter->bits = NULL;
	filter->ready = false;
}

/*
 * The copy of a filter for the workers of a Gather: see gather.c.  Its size is an estimate
 * if the filter is not complete.
 */

static uint32
blocks_of_copy(const JoinFilter *filter)
{
	if (filter->ready)
		return filter->shape.nblocks;
	return blocks_for_rows(filter->plan, Min(join_filter_memory(), MAX_SHARED_SIZE));
}

Size
filter_copy_size(const JoinFilter *filter)
{
	return sizeof(SharedFilter) + BF_BLOCK_BYTES + (Size) blocks_of_copy(filter) * BF_BLOCK_BYTES;
}

static CopyState
state_of_copy(SharedFilter *copy)
{
	return (CopyState) pg_atomic_read_u32(&copy->copy);
}

/* Copies a finished filter, unless that is done: its inner side does not change. */
void
publish_filter_copy(const JoinFilter *filter, SharedFilter *copy)
{
	if (state_of_copy(copy) != COPY_AWAITED)
		return;
	if (!filter->ready || filter->shape.nblocks > copy->room)
	{
		pg_atomic_write_u32(&copy->copy, COPY_NEVER);
		return;
	}
	Assert(!filter->spoiled && filter->bits != NULL);
	memcpy(bits_of(copy), filter->bits, (Size) filter->shape.nblocks * BF_BLOCK_BYTES);
	copy->nblocks = filter->shape.nblocks;
	copy->exact = filter->exact;
	copy->range = filter->range;
	pg_write_barrier();
	pg_atomic_write_u32(&copy->copy, COPY_COMPLETE);
}

/*
 * Before workers start.  A filter below a grouping is not used at all if they do not have
 * it from their first row on.
 */
void
initialize_filter_copy(JoinFilter *filter, SharedFilter *copy)
{
	pg_atomic_init_u64(&copy->keys, 0);
	pg_atomic_init_u32(&copy->copy, COPY_AWAITED);
	copy->room = blocks_of_copy(filter);
	if (filter->ready || filter->given_up || filter->plan->whole)
		publish_filter_copy(filter, copy);
	if (filter->plan->whole && state_of_copy(copy) != COPY_COMPLETE)
	{
		filter->spoiled = true;
		filter->ready = false;
	}
}

/* In a worker: is the copy complete?  If there will be none, the filter is given up. */
bool
receive_filter_copy(JoinFilter *filter)
{
	SharedFilter *copy = filter->awaited;
	CopyState	state;

	if (copy == NULL || filter->shared != NULL)
		return false;
	state = state_of_copy(copy);
	filter->given_up = state == COPY_NEVER;
	if (state != COPY_COMPLETE)
		return false;
	pg_read_barrier();
	attach_shared_filter(filter, copy);
	return true;
}
