/*
 * grow.c
 *		Appending a generation to a full bloomset; see README, Growth.
 *
 * Nothing under the page lock of the metapage may wait for another heavyweight lock,
 * except that of the relation's extension; see README, Locks.
 */
#include "pg/pg_compat.h"

#include "access/generic_xlog.h"
#include "access/xloginsert.h"
#include "bloomset/bloomset.h"
#include "miscadmin.h"
#include "storage/lmgr.h"

/* Estimates of the number of elements read at most this many pages. */
#define SAMPLE_PAGES	64

/* Beyond this, a generation has too many elements for others to go on in it. */
#define FULLNESS_TO_WAIT	(17.0 / 16)

/* Pages that are initialized and logged together; see XLR_MAX_BLOCK_ID. */
#define BATCH_PAGES		32

/* The elements of the last generation, in relation to a full one. */
static double
fullness(Relation index, const BloomsetMeta *meta)
{
	uint32		last = meta->ngenerations - 1;
	Generation	generation = meta->generation[last];
	uint32		npages = pages_of(&generation);
	uint32		sampled = Min(npages, SAMPLE_PAGES);
	uint64		elements = 0;
	uint64		blocks = 0;

	for (uint32 i = 0; i < sampled; i++)
	{
		uint32		number = (uint32) ((uint64) i * npages / sampled);
		Buffer		buffer = lock_generation_page(index, meta, last, number, BUFFER_LOCK_SHARE);

		elements += fields_of(BufferGetPage(buffer))->elements;
		blocks += blocks_in_page(&generation, number);
		UnlockReleaseBuffer(buffer);
	}
	return (double) elements / blocks * generation.nblocks / full_elements(&generation);
}

/* Is a page behind the last generation one that a cancelled growth has finished? */
static bool
is_finished_page(Relation index, Page page, uint16 generation, uint32 number)
{
	return is_page_of(page, generation, number) && fields_of(page)->elements == 0 &&
		!(RelationNeedsWAL(index) && XLogRecPtrIsInvalid(PageGetLSN(page)));
}

/* Makes page `number` of a generation; true if it must be logged. */
static bool
make_page(Relation index, BlockNumber block, bool exists, uint16 generation, uint32 number)
{
	Buffer		buffer;
	bool		done;

	Assert(generation > 1);		/* the build makes the first */
	if (exists)
	{
		/* a page that a crash left need not be valid */
		buffer = ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_ZERO_ON_ERROR, NULL);
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	}
	else
		buffer = extend_bloomset(index, MAIN_FORKNUM);
	if (BufferGetBlockNumber(buffer) != block)
		elog(ERROR, "bloomset index \"%s\" grew to block %u instead of %u",
			 RelationGetRelationName(index), BufferGetBlockNumber(buffer), block);
	done = is_finished_page(index, BufferGetPage(buffer), generation, number);
	if (!done)
	{
		init_bloomset_page(BufferGetPage(buffer), generation, number);
		MarkBufferDirty(buffer);
	}
	UnlockReleaseBuffer(buffer);
	return !done;
}

static bool
is_batch_begun(Relation index, BlockNumber block, uint16 generation, uint32 number)
{
	Buffer		buffer = ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_ZERO_ON_ERROR, NULL);
	bool		result;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	result = is_finished_page(index, BufferGetPage(buffer), generation, number);
	UnlockReleaseBuffer(buffer);
	return result;
}

/*
 * The first page that a cancelled growth may have left unfinished: if the first page of
 * a batch is finished, all batches before it are.
 */
static uint32
first_unfinished_page(Relation index, const Generation *generation, uint16 number_of_generation)
{
	BlockNumber existing = RelationGetNumberOfBlocks(index);
	uint32		low = 0;
	uint32		high = 0;

	if (existing > generation->first)
		high = (Min(existing - generation->first, pages_of(generation)) - 1) / BATCH_PAGES + 1;
	while (low < high)
	{
		uint32		middle = low + (high - low) / 2;
		uint32		number = middle * BATCH_PAGES;

		if (is_batch_begun(index, generation->first + number, number_of_generation, number))
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? (low - 1) * BATCH_PAGES : 0;
}

static void
make_pages(Relation index, const Generation *generation, uint16 number_of_generation)
{
	uint32		npages = pages_of(generation);
	uint32		from = first_unfinished_page(index, generation, number_of_generation);

	for (; from < npages; from += BATCH_PAGES)
	{
		uint32		to = Min(from + BATCH_PAGES, npages);
		BlockNumber existing = RelationGetNumberOfBlocks(index);
		bool		log = false;

		CHECK_FOR_INTERRUPTS();
		for (uint32 number = from; number < to; number++)
		{
			BlockNumber block = generation->first + number;

			log |= make_page(index, block, block < existing, number_of_generation, number);
		}
		if (log && RelationNeedsWAL(index))
			log_newpage_range(index, MAIN_FORKNUM, generation->first + from,
							  generation->first + to, true);
	}
}

static void
write_metapage(Relation index, const BloomsetMeta *meta)
{
	Buffer		buffer = ReadBuffer(index, BLOOMSET_META_PAGE);
	GenericXLogState *state;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	state = GenericXLogStart(index);
	write_meta(GenericXLogRegisterBuffer(state, buffer, 0), meta);
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
}

static void
append_generation(Relation index, BloomsetMeta *meta)
{
	uint32		last = meta->ngenerations - 1;
	Generation *next = &meta->generation[last + 1];
	uint64		end;

	Assert(meta->ngenerations >= 1 && meta->ngenerations < MAX_GENERATIONS);
	if (!design_generation(meta, last + 1, 2.0 * (double) meta->generation[last].capacity))
		return;
	next->first = meta->generation[last].first + pages_of(&meta->generation[last]);
	end = (uint64) next->first + pages_of(next);
	if (end > MaxBlockNumber)
		return;
	make_pages(index, next, (uint16) (last + 2));
	meta->ngenerations++;
	write_metapage(index, meta);
}

void
grow_bloomset(Relation index)
{
	uint32		known = bloomset_state(index, false)->meta.ngenerations;
	BloomsetMeta meta = bloomset_state(index, true)->meta;
	double		full;

	if (meta.ngenerations > known || known == MAX_GENERATIONS)
		return;
	full = fullness(index, &meta);
	if (full < 1)
		return;
	if (full > FULLNESS_TO_WAIT)
		LockPage(index, BLOOMSET_META_PAGE, ExclusiveLock);
	else if (!ConditionalLockPage(index, BLOOMSET_META_PAGE, ExclusiveLock))
		return;					/* another session appends it */
	/* no catalog access under the lock */
	read_metapage(index, &meta);
	if (meta.ngenerations == known)
		append_generation(index, &meta);
	UnlockPage(index, BLOOMSET_META_PAGE, ExclusiveLock);
	bloomset_state(index, true);
}
