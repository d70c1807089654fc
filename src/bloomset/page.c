/*
 * page.c
 *		Reading and making the pages of a bloomset.
 */
#include "pg/pg_compat.h"

#include "bloomset/bloomset.h"
#include "core/format.h"
#include "core/hash.h"
#include "port/pg_bitutils.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"

pg_noreturn static void
report_damage(Relation index, BlockNumber block)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("bloomset index \"%s\" has a damaged page at block %u",
					RelationGetRelationName(index), block),
			 errhint("REINDEX builds it anew.")));
}

bool
is_bloomset(Relation index)
{
	char		kind = index->rd_rel->relkind;

	return (kind == RELKIND_INDEX || kind == RELKIND_PARTITIONED_INDEX) &&
		index->rd_indam->ambuild == bloomset_build;
}

void
init_bloomset_page(Page page, uint16 generation, uint32 number)
{
	BloomsetPageFields *fields = fields_of(page);

	Assert(generation <= MAX_GENERATIONS);
	PageInit(page, BLCKSZ, 0);
	fields->magic = BLOOMSET_MAGIC;
	fields->version = BLOOMSET_VERSION;
	fields->generation = generation;
	fields->number = number;
	fields->generations = generation == 1;
	fields->complement = ~fields->generations;
	((PageHeader) page)->pd_lower = FIRST_BLOCK_OFFSET;
}

/* Full-page images omit what lies between pd_lower and pd_upper. */
static inline uint16
expected_lower(const BloomsetPageFields *fields)
{
	if (fields->generation == 0)
		return FIRST_BLOCK_OFFSET + sizeof(BloomsetMeta);
	return fields->elements > 0 ? BLCKSZ : FIRST_BLOCK_OFFSET;
}

bool
is_page_of(Page page, uint16 generation, uint32 number)
{
	const BloomsetPageFields *fields = fields_of(page);

	return !PageIsNew(page) && fields->magic == BLOOMSET_MAGIC &&
		fields->version == BLOOMSET_VERSION && fields->generation == generation &&
		fields->number == number && fields->complement == ~fields->generations &&
		((PageHeader) page)->pd_lower == expected_lower(fields);
}

static Buffer
read_page(Relation index, BlockNumber block)
{
	BloomsetState *state = index->rd_amcache;
	Buffer	   *recent;

	if (unlikely(state == NULL))
		return ReadBuffer(index, block);
	recent = &state->recent_buffers[block & (state->nrecent_buffers - 1)];
	/* only ReadBuffer() keeps a buffer from eviction */
	if (++state->reads % READS_PER_LOOKUP == 0 || !BufferIsValid(*recent) ||
		!ReadRecentBuffer(index->rd_locator, MAIN_FORKNUM, block, *recent))
		*recent = ReadBuffer(index, block);
	return *recent;
}

Buffer
lock_generation_page(Relation index, const BloomsetMeta *meta, uint32 generation, uint32 number,
					 int mode)
{
	BlockNumber block = meta->generation[generation].first + number;
	Buffer		buffer = read_page(index, block);

	Assert(generation < meta->ngenerations && number < pages_of(&meta->generation[generation]));
	LockBuffer(buffer, mode);
	if (unlikely(!is_page_of(BufferGetPage(buffer), generation + 1, number)))
		report_damage(index, block);
	return buffer;
}

Buffer
extend_bloomset(Relation index, ForkNumber fork)
{
	bool		lock = !RELATION_IS_LOCAL(index);
	Buffer		buffer;

	if (lock)
		LockRelationForExtension(index, ExclusiveLock);
	buffer = ReadBufferExtended(index, fork, P_NEW, RBM_NORMAL, NULL);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (lock)
		UnlockRelationForExtension(index, ExclusiveLock);
	return buffer;
}

/* A damaged seed, for example, would be a valid one that finds no element. */
static uint32
checksum_of(const BloomsetMeta *meta)
{
	BloomsetMeta copy = *meta;

	copy.checksum = 0;
	return (uint32) bf_hash_bytes(&copy, sizeof(copy), 0);
}

/* Are the generations ones that design_generation() and growth can have made? */
static bool
is_valid_meta(const BloomsetMeta *meta)
{
	BlockNumber next = BLOOMSET_META_PAGE + 1;

	if (meta->checksum != checksum_of(meta) || meta->element_class == BF_CLASS_NONE || !bf_class_known(meta->element_class) ||
		meta->ngenerations < 1 || meta->ngenerations > MAX_GENERATIONS)
		return false;
	for (uint32 i = 0; i < meta->ngenerations; i++)
	{
		const Generation *generation = &meta->generation[i];

		if (generation->first != next || generation->nblocks == 0 || generation->k < 1 ||
			generation->k > BF_MAX_K || !(generation->rate > 0 && generation->rate < 1))
			return false;
		next += pages_of(generation);
	}
	return true;
}

void
read_metapage(Relation index, BloomsetMeta *meta)
{
	Buffer		buffer = ReadBuffer(index, BLOOMSET_META_PAGE);
	Page		page = BufferGetPage(buffer);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (!is_page_of(page, 0, 0) || !is_valid_meta(meta_of(page)))
		report_damage(index, BLOOMSET_META_PAGE);
	*meta = *meta_of(page);
	UnlockReleaseBuffer(buffer);
}

/* The number of recent buffers that serves all pages, if it is not too large. */
static uint32
recent_buffers_for(const BloomsetMeta *meta)
{
	const Generation *last = &meta->generation[meta->ngenerations - 1];
	BlockNumber npages = last->first + pages_of(last);

	return pg_nextpower2_32(Min(npages, MAX_RECENT_BUFFERS));
}

/* Makes room for all pages; the recent buffers of a smaller array are forgotten. */
static BloomsetState *
state_with_room(Relation index, uint32 nrecent_buffers)
{
	BloomsetState *state = index->rd_amcache;

	Assert(nrecent_buffers > 0 && (nrecent_buffers & (nrecent_buffers - 1)) == 0);
	if (state == NULL || state->nrecent_buffers < nrecent_buffers)
	{
		state = MemoryContextAllocZero(index->rd_indexcxt,
									   offsetof(BloomsetState, recent_buffers) +
									   nrecent_buffers * sizeof(Buffer));
		state->nrecent_buffers = nrecent_buffers;
		forget_bloomset_state(index);
		index->rd_amcache = state;
	}
	return state;
}

BloomsetState *
bloomset_state(Relation index, bool refresh)
{
	BloomsetMeta meta;
	ElementType element;
	BloomsetState *state;

	if (likely(index->rd_amcache != NULL && !refresh))
		return index->rd_amcache;
	/* the catalog access may free rd_amcache, so it comes first */
	require_element_type(TupleDescAttr(RelationGetDescr(index), 0)->atttypid,
						 index->rd_indcollation[0], &element);
	read_metapage(index, &meta);
	if (meta.element_class != element.element_class)
		report_damage(index, BLOOMSET_META_PAGE);
	state = state_with_room(index, recent_buffers_for(&meta));
	state->meta = meta;
	state->hash = element.hash;
	return state;
}

BloomsetState *
require_generations(Relation index, uint32 generations)
{
	BloomsetState *state = bloomset_state(index, true);

	if (generations > state->meta.ngenerations)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("bloomset index \"%s\" lacks a generation", RelationGetRelationName(index)),
				 errdetail("A page names generation %u, the metapage has %u.", generations,
						   state->meta.ngenerations),
				 errhint("REINDEX builds it anew.")));
	return state;
}

void
forget_bloomset_state(Relation index)
{
	if (index->rd_amcache != NULL)
		pfree(index->rd_amcache);
	index->rd_amcache = NULL;
}

void
write_meta(Page page, const BloomsetMeta *meta)
{
	*meta_of(page) = *meta;
	meta_of(page)->checksum = checksum_of(meta);
	Assert(is_valid_meta(meta_of(page)));
}

void
write_new_metapage(Buffer buffer, const BloomsetMeta *meta)
{
	Page		page = BufferGetPage(buffer);

	init_bloomset_page(page, 0, 0);
	write_meta(page, meta);
	((PageHeader) page)->pd_lower = FIRST_BLOCK_OFFSET + sizeof(BloomsetMeta);
	MarkBufferDirty(buffer);
}
