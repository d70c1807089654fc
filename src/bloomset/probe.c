/*
 * probe.c
 *		Asking a bloomset for an element.
 */
#include "pg/pg_compat.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "bloomset/bloomset.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/snapmgr.h"

/* Is the element in one generation?  *generations is the page's field. */
static inline bool
probe_generation(Relation index, Snapshot snapshot, const BloomsetMeta *meta, uint32 i,
				 uint64 hash, uint32 *generations)
{
	bf_shape	shape = shape_of(&meta->generation[i]);
	BlockPlace	place = place_of(&meta->generation[i], hash);
	Buffer		buffer = lock_generation_page(index, meta, i, place.number, BUFFER_LOCK_SHARE);
	Page		page = BufferGetPage(buffer);
	bool		result;

	test_for_old_snapshot(snapshot, index, page);
	result = bf_block_contains((uint8 *) page + place.offset, &shape, hash);
	*generations = fields_of(page)->generations;
	Assert((*generations > 0) == (i == 0)); /* only its pages say it */
	UnlockReleaseBuffer(buffer);
	return result;
}

/* The later generations are the greater ones, so the search begins with the last. */
static pg_noinline bool
probe_later_generations(Relation index, Snapshot snapshot, uint64 hash, uint32 generations)
{
	BloomsetMeta *meta = &bloomset_state(index, false)->meta;
	uint32		unused;

	Assert(generations > 1);
	if (generations > meta->ngenerations)
		meta = &require_generations(index, generations)->meta;
	for (uint32 i = generations - 1; i > 0; i--)
	{
		if (probe_generation(index, snapshot, meta, i, hash, &unused))
			return true;
	}
	return false;
}

bool
probe_bloomset(Relation index, Snapshot snapshot, uint64 hash, uint32 *generations)
{
	BloomsetMeta *meta = &bloomset_state(index, false)->meta;

	if (probe_generation(index, snapshot, meta, 0, hash, generations))
		return true;
	return *generations > 1 && probe_later_generations(index, snapshot, hash, *generations);
}

/* Writers wait for a page no longer than this number of probes takes. */
#define PROBES_OF_PAGE	1000

/* Probes one generation for the elements that may be there; a page stays locked for its run. */
static void
probe_batch_in_generation(Relation index, Snapshot snapshot, uint32 i, BatchProbe *probes,
						  int count)
{
	Generation	generation = bloomset_state(index, false)->meta.generation[i];
	bf_shape	shape = shape_of(&generation);
	Buffer		buffer = InvalidBuffer;
	uint32		number = 0;
	int			run = 0;

	Assert(i < bloomset_state(index, false)->meta.ngenerations);
	for (BatchProbe *probe = probes; probe < probes + count; probe++)
	{
		BlockPlace	place = place_of(&generation, probe->hash);

		if (probe->found || (i > 0 && probe->generations <= i))
			continue;
		if (BufferIsValid(buffer) && (place.number != number || ++run == PROBES_OF_PAGE))
		{
			UnlockReleaseBuffer(buffer);
			buffer = InvalidBuffer;
		}
		if (!BufferIsValid(buffer))
		{
			CHECK_FOR_INTERRUPTS();
			number = place.number;
			run = 0;
			buffer = lock_generation_page(index, &bloomset_state(index, false)->meta, i, number,
										  BUFFER_LOCK_SHARE);
			test_for_old_snapshot(snapshot, index, BufferGetPage(buffer));
		}
		probe->found = bf_block_contains((uint8 *) BufferGetPage(buffer) + place.offset, &shape,
										 probe->hash);
		if (i == 0)
			probe->generations = fields_of(BufferGetPage(buffer))->generations;
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

void
probe_bloomset_batch(Relation index, Snapshot snapshot, BatchProbe *probes, int count)
{
	uint32		generations = 1;

	probe_batch_in_generation(index, snapshot, 0, probes, count);
	for (int i = 0; i < count; i++)
		generations = Max(generations, probes[i].generations);
	if (generations > bloomset_state(index, false)->meta.ngenerations)
		(void) require_generations(index, generations);
	for (uint32 i = generations - 1; i > 0; i--)
		probe_batch_in_generation(index, snapshot, i, probes, count);
}

/* The oldest transaction that a snapshot of this backend may see as running. */
static FullTransactionId
full_transaction_xmin(void)
{
	FullTransactionId next = ReadNextFullTransactionId();
	uint32		epoch = EpochFromFullTransactionId(next);

	if (TransactionXmin > XidFromFullTransactionId(next))
		epoch--;
	return FullTransactionIdFromEpochAndXid(epoch, TransactionXmin);
}

/* Are all snapshots newer than the build?  Those of a standby must be; see README, Snapshots. */
static bool
built_before_snapshots(Relation index)
{
	FullTransactionId built_at;

	built_at = FullTransactionIdFromU64(bloomset_state(index, false)->meta.built_at);
	return FullTransactionIdPrecedesOrEquals(built_at, full_transaction_xmin());
}

/*
 * Has the set all rows that snapshots see which are older than the row of pg_index?  If
 * that row's transaction begins after the build, CONCURRENTLY has built it; see README,
 * Snapshots.
 */
static bool
has_old_rows(Relation index, TransactionId maker)
{
	return !index->rd_index->indcheckxmin &&
		TransactionIdPrecedes(maker, (TransactionId) bloomset_state(index, false)->meta.built_at);
}

bool
bloomset_can_exclude(Relation index)
{
	const FormData_pg_index *form = index->rd_index;
	TransactionId maker = HeapTupleHeaderGetXmin(index->rd_indextuple->t_data);
	bool		is_old = TransactionIdPrecedes(maker, TransactionXmin);

	Assert(TransactionIdIsValid(TransactionXmin) && ActiveSnapshotSet());
	Assert(CheckRelationLockedByMe(index, AccessShareLock, true));
	if (unlikely(!form->indisvalid || !form->indisready))
		return false;
	if (unlikely(GetActiveSnapshot()->takenDuringRecovery))
		return is_old && built_before_snapshots(index);
	return likely(is_old) || has_old_rows(index, maker);
}
