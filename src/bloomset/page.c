/*
 * page.c
 *		Reading and making the pages of a bloomset.
 */
#include "pg/pg_compat.h"

#include "bloomset/bloomset.h"
#include "core/format.h"
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

	PageInit(page, BLCKSZ, 0);
	fields->magic = BLOOMSET_MAGIC;
	fields->version = BLOOMSET_VERSION;
	fields->generation = generation;
	fields->number = number;
	fields->generations = generation == 1;
	((PageHeader) page)->pd_lower = FIRST_BLOCK_OFFSET;
}

bool
is_page_of(Page page, uint16 generation, uint32 number)
{
	const BloomsetPageFields *fields = fields_of(page);

	return !PageIsNew(page) && fields->magic == BLOOMSET_MAGIC &&
		fields->version == BLOOMSET_VERSION && fields->generation == generation &&
		fields->number == number;
}

Buffer
lock_generation_page(Relation index, const BloomsetMeta *meta, uint32 generation, uint32 number,
					 int mode)
{
	BlockNumber block = meta->generation[generation].first + number;
	Buffer		buffer = ReadBuffer(index, block);

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

/* Are the generations ones that design_generation() and growth can have made? */
static bool
is_valid_meta(const BloomsetMeta *meta)
{
	BlockNumber next = BLOOMSET_META_PAGE + 1;

	if (meta->element_class == BF_CLASS_NONE || !bf_class_known(meta->element_class) ||
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

static void
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

BloomsetState *
bloomset_state(Relation index, bool refresh)
{
	BloomsetState state;
	ElementType element;

	if (likely(index->rd_amcache != NULL && !refresh))
		return index->rd_amcache;
	/* the catalog access may free rd_amcache, so it comes first */
	if (!find_hash_function(TupleDescAttr(RelationGetDescr(index), 0)->atttypid, &element))
		elog(ERROR, "bloomset index \"%s\" is of an unsupported type",
			 RelationGetRelationName(index));
	state.hash = element.hash;
	read_metapage(index, &state.meta);
	if (state.meta.element_class != element.element_class)
		report_damage(index, BLOOMSET_META_PAGE);
	if (index->rd_amcache == NULL)
		index->rd_amcache = MemoryContextAlloc(index->rd_indexcxt, sizeof(state));
	*(BloomsetState *) index->rd_amcache = state;
	return index->rd_amcache;
}

void
forget_bloomset_state(Relation index)
{
	if (index->rd_amcache != NULL)
		pfree(index->rd_amcache);
	index->rd_amcache = NULL;
}

void
write_new_metapage(Buffer buffer, const BloomsetMeta *meta)
{
	Page		page = BufferGetPage(buffer);

	init_bloomset_page(page, 0, 0);
	*meta_of(page) = *meta;
	((PageHeader) page)->pd_lower = FIRST_BLOCK_OFFSET + sizeof(BloomsetMeta);
	MarkBufferDirty(buffer);
}
