/*
 * check.c
 *		bloomslices_check(): does an index agree with its table?
 *
 * One pass over the index hashes the bits of each row, block by block.  Then each row
 * that the transaction's snapshot sees must have one entry, of its kind and with the
 * hash of its bits.  The index's expressions run as the table's owner.
 */
#include "pg/pg_compat.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "bloomslices/bloomslices.h"
#include "bloomslices/reader.h"
#include "bloomslices/search.h"
#include "bloomslices/tree.h"
#include "catalog/index.h"
#include "common/hashfn.h"
#include "core/hash.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(bloomslices_check);

/* A row of the index. */
typedef struct CheckedRow
{
	uint64		place;			/* key */
	uint64		hash;			/* of its bits */
	uint16		kind;			/* a RowKind */
	bool		doubled;		/* has several entries */
	char		status;			/* for the hash table */
} CheckedRow;

#define SH_PREFIX rows
#define SH_ELEMENT_TYPE CheckedRow
#define SH_KEY_TYPE uint64
#define SH_KEY place
#define SH_HASH_KEY(table, key) murmurhash32((uint32) ((key) ^ (key) >> 29))
#define SH_EQUAL(table, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

typedef struct Check
{
	Relation	index;
	bool		is_young;		/* perhaps: see report_row() */
	MemoryContext row_context;	/* of one row of the table */
	MemoryContext rows_context; /* emptied if the pass starts over */
	const Directory *directory;
	rows_hash  *rows;
	uint8	   *bits;			/* of a row, at the index's shape */
} Check;

pg_noreturn static void
report_unusable(Relation index)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot check index \"%s\"", RelationGetRelationName(index)),
			 errdetail("It is invalid, or may lack rows that the transaction's snapshot sees.")));
}

/*
 * CREATE INDEX CONCURRENTLY does not wait for a snapshot that a session imports while it waits
 * for others, so that a young index may rightly lack rows that such a snapshot sees.
 */
pg_noreturn static void
report_row(const Check *check, ItemPointer row, const char *detail)
{
	if (check->is_young)
		report_unusable(check->index);
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("bloomslices index \"%s\" does not agree with row (%u,%u) of its table",
					RelationGetRelationName(check->index),
					ItemPointerGetBlockNumber(row), ItemPointerGetOffsetNumber(row)),
			 errdetail_internal("%s", _(detail)),
			 errhint("REINDEX builds it anew.")));
}

/*
 * A row may have the TID of one that VACUUM has removed during the pass, after its entry
 * was read.  The snapshot sees neither.
 */
static void
add_row(Check *check, const RowEntry *entry, uint64 hash)
{
	CheckedRow *row;
	ItemPointerData tid = entry->tid;
	bool		found;

	if (entry->kind == ROW_ABSENT)
		return;
	row = rows_insert(check->rows, place_of(&tid), &found);
	row->doubled = found;
	row->kind = entry->kind;
	row->hash = hash;
}

/* Copies all entries of a slab; NULL if it is gone. */
static RowEntry *
copy_entries(SlabReader *reader)
{
	uint32		npages = rows_pages_of(reader->slab);
	RowEntry   *entries = MemoryContextAllocHuge(CurrentMemoryContext, (Size) npages * BF_SLICED_BYTES);

	for (uint32 number = 0; number < npages; number++)
	{
		Page		page = read_slab_page(reader, number);

		if (page == NULL)
			return NULL;
		memcpy(entries + (Size) number * ROWS_PER_PAGE, slices_rows(page), BF_SLICED_BYTES);
	}
	return entries;
}

static inline void
hash_block(uint64 *hash, const uint8 *block)
{
	*hash = bf_hash_bytes(block, BF_BLOCK_BYTES, *hash);
}

/* Hashes one block of each row of sliced bits. */
static bool
hash_slices(SlabReader *reader, uint32 block, uint8 *slices, uint8 *blocks, uint64 *hashes)
{
	const Slab *slab = reader->slab;
	uint32		nrows = rows_of_slab(slab);
	uint32		page_bytes = sliced_page_bytes(slab);

	for (uint32 part = 0; part < slab->tiles; part++)
	{
		Page		page = read_slab_page(reader, bits_page_of(slab, block, part * (BF_BLOCK_BITS / slab->tiles)));

		if (page == NULL)
			return false;
		memcpy(slices + (Size) part * page_bytes, slices_contents(page), page_bytes);
	}
	bf_unslice_rows(slices, slice_bytes_of(slab), nrows, blocks);
	for (uint32 row = 0; row < nrows; row++)
		hash_block(&hashes[row], blocks + (Size) row * BF_BLOCK_BYTES);
	return true;
}

static bool
hash_blocks(SlabReader *reader, uint32 block, uint64 *hashes)
{
	const Slab *slab = reader->slab;
	Page		page = read_slab_page(reader, bits_page_of(slab, block, 0));

	if (page == NULL)
		return false;
	for (uint32 row = 0; row < rows_of_slab(slab); row++)
		hash_block(&hashes[row], slices_contents(page) + block_offset_of(slab, block) + row * BF_BLOCK_BYTES);
	return true;
}

/* Hashes the bits of all rows of a slab; false if it is gone. */
static bool
hash_rows(SlabReader *reader, uint32 nblocks, uint64 *hashes)
{
	Size		size = (Size) reader->slab->tiles * BF_SLICED_BYTES;
	bool		sliced = reader->slab->kind == SLAB_SLICES;
	uint8	   *slices = sliced ? palloc(size) : NULL;
	uint8	   *blocks = sliced ? palloc(size) : NULL;

	for (uint32 block = 0; block < nblocks; block++)
	{
		if (!(sliced ? hash_slices(reader, block, slices, blocks, hashes) : hash_blocks(reader, block, hashes)))
			return false;
	}
	return true;
}

static bool
has_bits(const Slab *slab, const RowEntry *entries)
{
	return slab->kind != SLAB_LIST && !(slab->kind == SLAB_RAW && entries[0].kind == ROW_ABSENT);
}

static bool
read_slab(Check *check, SlabReader *reader)
{
	uint32		nrows = rows_of_slab(reader->slab);
	RowEntry   *entries = copy_entries(reader);
	uint64	   *hashes;

	if (entries == NULL)
		return false;
	hashes = MemoryContextAllocExtended(CurrentMemoryContext, nrows * sizeof(uint64), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	if (has_bits(reader->slab, entries) && !hash_rows(reader, check->directory->meta.shape.nblocks, hashes))
		return false;
	close_page(reader);
	for (uint32 row = 0; row < nrows; row++)
		add_row(check, &entries[row], hashes[row]);
	return true;
}

/* Reads the whole index; false if a slab is gone. */
static bool
read_rows(Check *check)
{
	MemoryContext slab_context = AllocSetContextCreate(check->rows_context, "slab", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(slab_context);
	bool		result = true;

	for (uint32 i = 0; i < check->directory->nslabs && result; i++)
	{
		const Slab *slab = &check->directory->slabs[i];
		SlabReader	reader = {.index = check->index, .directory = check->directory, .slab = slab};

		if (slab->kind == SLAB_FREE)
			continue;
		result = read_slab(check, &reader);
		close_page(&reader);
		MemoryContextReset(slab_context);
	}
	MemoryContextSwitchTo(caller);
	return result;
}

/* The kind that a filter should have in the index, and the hash of its bits. */
static RowKind
expected_row(const Check *check, Datum value, uint64 *hash)
{
	const SlicesShape *shape = &check->directory->meta.shape;
	bf_filter	filter;
	RowKind		kind;

	open_value(value, BF_FILTER, &filter);
	kind = slices_row_bits(shape, &filter, check->bits);
	*hash = 0;
	for (uint32 block = 0; kind_has_bits(kind) && block < shape->nblocks; block++)
		hash_block(hash, check->bits + (Size) block * BF_BLOCK_BYTES);
	return kind;
}

/* Runs in a memory context of this row. */
static void
compare_row(const Check *check, ItemPointer tid, Datum *values, bool *isnull)
{
	const CheckedRow *row = rows_lookup(check->rows, place_of(tid));
	uint64		hash = 0;
	RowKind		kind = isnull[0] ? ROW_NULL : expected_row(check, values[0], &hash);

	if (row == NULL)
		report_row(check, tid, gettext_noop("The row has no entry."));
	if (row->doubled)
		report_row(check, tid, gettext_noop("The row has several entries."));
	if (row->kind != kind)
		report_row(check, tid, gettext_noop("The entry is of another kind."));
	if (row->hash != hash)
		report_row(check, tid, gettext_noop("The bits differ."));
}

static void
check_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	const Check *check = arg;
	MemoryContext caller = MemoryContextSwitchTo(check->row_context);

	compare_row(check, tid, values, isnull);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(check->row_context);
}

/* An index that does not have all rows that the snapshot sees is not wrong. */
static void
require_usable(const Check *check)
{
	const FormData_pg_index *index = check->index->rd_index;

	if (!index->indisvalid || !index->indisready || (index->indcheckxmin && check->is_young))
		report_unusable(check->index);
}

/* Compares the rows that the snapshot sees. */
static void
check_rows(Check *check, Relation table, Snapshot snapshot)
{
	struct IndexInfo *info = BuildIndexInfo(check->index);
	TableScanDesc scan = table_beginscan_strat(table, snapshot, 0, NULL, true, true);

	info->ii_Concurrent = true; /* the scan sees what the snapshot sees */
	table_index_build_scan(table, check->index, info, true, false, check_row, check, scan);
}

static void
check_index(const OwnedIndex *owned)
{
	Snapshot	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "bloomslices check", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	Check		check = {.index = owned->index};

	check.is_young = !TransactionIdPrecedes(HeapTupleHeaderGetXmin(owned->index->rd_indextuple->t_data), snapshot->xmin);
	require_usable(&check);
	check.row_context = AllocSetContextCreate(context, "row", ALLOCSET_DEFAULT_SIZES);
	check.rows_context = AllocSetContextCreate(context, "rows", ALLOCSET_DEFAULT_SIZES);
	do
	{
		MemoryContextReset(check.rows_context);
		check.directory = read_slices_directory(owned->index, NULL);
		check.rows = rows_create(check.rows_context, 1024, NULL);
	} while (!read_rows(&check));
	check.bits = MemoryContextAllocHuge(context, Max((Size) check.directory->meta.shape.nblocks, 1) * BF_BLOCK_BYTES);
	check_rows(&check, owned->table, snapshot);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	UnregisterSnapshot(snapshot);
}

Datum
bloomslices_check(PG_FUNCTION_ARGS)
{
	ListCell   *lc;

	foreach(lc, lock_slices_to_read(PG_GETARG_OID(0)))
	{
		OwnedIndex	owned = open_as_owner(lfirst_oid(lc));

		check_index(&owned);
		close_as_owner(&owned);
	}
	PG_RETURN_VOID();
}
