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

struct SharedFilter
{
	pg_atomic_uint64 keys;
	uint32		nblocks;
};

static inline uint8 *
bits_of(SharedFilter *shared)
{
	return (uint8 *) TYPEALIGN(BF_BLOCK_BYTES, shared + 1);
}

/* Estimates of rows may be low, so there is room for twice as many. */
static uint32
blocks_for_rows(const FilterPlan *plan, Size memory)
{
	return blocks_for_keys(2000.0 * plan->rows, memory);
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
	reset_shared_filter(shared);
	attach_shared_filter(filter, shared);
}

void
attach_shared_filter(JoinFilter *filter, SharedFilter *shared)
{
	start_join_filter(filter);
	filter->shared = shared;
	filter->bits = bits_of(shared);
	filter->shape = (bf_shape) {
		.nblocks = shared->nblocks, .block_bits = BF_BLOCK_BITS, .k = JOIN_FILTER_K
	};
	filter->size = (Size) shared->nblocks * BF_BLOCK_BYTES;
	filter->ready = true;
}

/* The participant has added its keys.  Until all have, nobody probes. */
void
finish_shared_filter(JoinFilter *filter)
{
	SharedFilter *shared = filter->shared;

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
