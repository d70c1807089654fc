/*
 * page.c
 *		Reading and making the pages of bloomslices.
 */
#include "pg/pg_compat.h"

#include "access/xloginsert.h"
#include "bloomslices/bloomslices.h"
#include "core/format.h"
#include "core/hash.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/smgr.h"

void
report_slices_damage(Relation index, BlockNumber block)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("bloomslices index \"%s\" has a damaged page at block %u",
					RelationGetRelationName(index), block),
			 errhint("REINDEX builds it anew.")));
}

bool
is_bloomslices(Relation index)
{
	char		kind = index->rd_rel->relkind;

	return (kind == RELKIND_INDEX || kind == RELKIND_PARTITIONED_INDEX) &&
		index->rd_indam->ambuild == bloomslices_build;
}

/* Full-page images omit what lies between pd_lower and pd_upper. */
static bool
is_valid_lower(const SlicesPageFields *fields, uint16 lower)
{
	switch ((PageKind) fields->kind)
	{
		case PAGE_META:
			return lower >= SLICES_OFFSET + offsetof(SlicesMeta, directory_pages);
		case PAGE_DIRECTORY:
			return fields->used <= SLABS_PER_PAGE && lower == SLICES_OFFSET + fields->used * sizeof(Slab);
		case PAGE_ROWS:
			return fields->used <= ROWS_PER_PAGE && lower >= SLICES_OFFSET + fields->used * sizeof(RowEntry) &&
				lower <= BLCKSZ;
		default:
			return lower >= SLICES_OFFSET && lower <= BLCKSZ;
	}
}

bool
is_slices_page(Page page, PageKind kind, uint64 owner, uint32 number)
{
	const SlicesPageFields *fields = slices_fields(page);
	PageHeader	header = (PageHeader) page;

	return !PageIsNew(page) && fields->magic == SLICES_MAGIC && fields->version == SLICES_VERSION &&
		fields->kind == kind && fields->owner == owner && fields->number == number &&
		header->pd_upper == BLCKSZ && is_valid_lower(fields, header->pd_lower);
}

static inline Size
meta_size(const SlicesMeta *meta)
{
	return offsetof(SlicesMeta, directory_pages) + meta->ndirectory * sizeof(BlockNumber);
}

static uint32
checksum_of(const SlicesMeta *meta)
{
	SlicesMeta	copy;

	memcpy(&copy, meta, meta_size(meta));
	copy.checksum = 0;
	return (uint32) bf_hash_bytes(&copy, meta_size(meta), 0);
}

/* Reading InvalidBlockNumber would extend the index. */
static bool
has_valid_ranges(const SlicesMeta *meta)
{
	bool		valid = (uint64) meta->merge_first + meta->merge_pages <= MaxBlockNumber &&
		(meta->merge_pages == 0 || meta->merge_first > SLICES_META_PAGE);

	for (uint32 i = 0; i < meta->ndirectory; i++)
		valid = valid && meta->directory_pages[i] > SLICES_META_PAGE && BlockNumberIsValid(meta->directory_pages[i]);
	return valid;
}

static bool
is_valid_meta(const SlicesMeta *meta, uint16 lower)
{
	return meta->ndirectory >= 1 && meta->ndirectory <= MAX_DIRECTORY_PAGES &&
		lower == SLICES_OFFSET + meta_size(meta) && meta->checksum == checksum_of(meta) &&
		bf_class_known(meta->shape.element_class) && meta->shape.k <= BF_MAX_K &&
		meta->shape.nblocks <= BF_MAX_BITS / BF_BLOCK_BITS && has_valid_ranges(meta);
}

void
read_slices_meta(Relation index, SlicesMeta *meta)
{
	Buffer		buffer = ReadBuffer(index, SLICES_META_PAGE);
	Page		page = BufferGetPage(buffer);
	const SlicesMeta *contents = (const SlicesMeta *) slices_contents(page);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (!is_slices_page(page, PAGE_META, 0, 0) || !is_valid_meta(contents, ((PageHeader) page)->pd_lower))
		report_slices_damage(index, SLICES_META_PAGE);
	memcpy(meta, contents, meta_size(contents));
	UnlockReleaseBuffer(buffer);
}

void
write_slices_meta(Page page, const SlicesMeta *meta)
{
	SlicesMeta *contents = (SlicesMeta *) slices_contents(page);

	memcpy(contents, meta, meta_size(meta));
	contents->checksum = checksum_of(meta);
	((PageHeader) page)->pd_lower = SLICES_OFFSET + meta_size(meta);
}

void
write_new_slices_meta(Relation index, ForkNumber fork, SlicesMeta *meta)
{
	const SlicesPageFields fields = {.kind = PAGE_META};

	meta->checksum = checksum_of(meta);
	write_slices_page(index, fork, SLICES_META_PAGE, NULL, &fields, meta, meta_size(meta));
}

bool
lock_if_slab_page(Buffer buffer, const Slab *slab, uint32 number, int mode)
{
	Assert(number < slab->npages);
	LockBuffer(buffer, mode);
	if (likely(is_slices_page(BufferGetPage(buffer), slab_page_kind(slab, number), slab->number, number)))
		return true;
	UnlockReleaseBuffer(buffer);
	return false;
}

Buffer
try_slab_page(Relation index, const Slab *slab, uint32 number, int mode, BufferAccessStrategy strategy)
{
	Buffer		buffer = ReadBufferExtended(index, MAIN_FORKNUM, slab->first + number, RBM_NORMAL, strategy);

	return lock_if_slab_page(buffer, slab, number, mode) ? buffer : InvalidBuffer;
}

bool
lock_slab_page(Relation index, const Directory *directory, const Slab *slab, uint32 number, Buffer buffer)
{
	SlicesMeta	meta;

	if (likely(lock_if_slab_page(buffer, slab, number, BUFFER_LOCK_SHARE)))
		return true;
	read_slices_meta(index, &meta);
	if (meta.directory == directory->meta.directory)
		report_slices_damage(index, slab->first + number);
	return false;
}

/* Blocks that are added under one lock of the file: 8 MB. */
#define EXTENSION_STEP	1024

/*
 * Appends zeros without buffers.  The disk must have room for them now: if it has none
 * when a checkpoint writes the pages, the server cannot start again.
 */
static void
extend_file(Relation index, ForkNumber fork, BlockNumber from, BlockNumber to)
{
#if PG_VERSION_NUM >= 160000
	smgrzeroextend(RelationGetSmgr(index), fork, from, (int) (to - from), false);
#else
	PGAlignedBlock zero = {0};

	for (BlockNumber block = from; block < to; block++)
		smgrextend(RelationGetSmgr(index), fork, block, zero.data, false);
#endif
}

void
extend_slices(Relation index, ForkNumber fork, BlockNumber nblocks)
{
	bool		lock = !RELATION_IS_LOCAL(index);
	BlockNumber before = RelationGetNumberOfBlocksInFork(index, fork);

	while (before < nblocks)
	{
		CHECK_FOR_INTERRUPTS();
		if (lock)
			LockRelationForExtension(index, ExclusiveLock);
		before = RelationGetNumberOfBlocksInFork(index, fork);
		if (before < nblocks)
		{
			BlockNumber to = before + Min(nblocks - before, EXTENSION_STEP);

			extend_file(index, fork, before, to);
			before = to;
		}
		if (lock)
			UnlockRelationForExtension(index, ExclusiveLock);
	}
}

/* A page that is changed has a record: pg_rewind copies only what records name. */
void
write_slices_page(Relation index, ForkNumber fork, BlockNumber block, BufferAccessStrategy strategy,
				  const SlicesPageFields *fields, const void *contents, Size size)
{
	bool		log = RelationNeedsWAL(index) || fork == INIT_FORKNUM;
	Buffer		buffer = ReadBufferExtended(index, fork, block, RBM_ZERO_AND_LOCK, strategy);
	Page		page = BufferGetPage(buffer);

	START_CRIT_SECTION();
	PageInit(page, BLCKSZ, 0);
	*slices_fields(page) = *fields;
	slices_fields(page)->magic = SLICES_MAGIC;
	slices_fields(page)->version = SLICES_VERSION;
	if (size > 0)
		memcpy(slices_contents(page), contents, size);
	((PageHeader) page)->pd_lower = (uint16) (SLICES_OFFSET + size);
	MarkBufferDirty(buffer);
	if (log)
		log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}
