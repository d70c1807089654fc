/*
 * scan.c
 *		Scanning a table by a bloomset: no page if the value is absent, else all.
 */
#include "pg/pg_compat.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/table.h"
#include "bloomset/bloomset.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"

IndexScanDesc
bloomset_beginscan(Relation index, int nkeys, int norderbys)
{
	return RelationGetIndexScan(index, nkeys, norderbys);
}

void
bloomset_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	if (keys != NULL && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
}

void
bloomset_endscan(IndexScanDesc scan)
{
}

/* Does the set prove that no row has the value of a key? */
static bool
excludes_key(IndexScanDesc scan, const ScanKeyData *key)
{
	Relation	index = scan->indexRelation;
	Oid			type = OidIsValid(key->sk_subtype) ? key->sk_subtype :
		TupleDescAttr(RelationGetDescr(index), 0)->atttypid;
	const BloomsetMeta *meta;
	ElementType element;
	HashElement hash_element;
	uint64		hash;
	uint32		generations;

	if (key->sk_flags & SK_ISNULL)
		return true;			/* the operators are strict */
	if (!bloomset_can_exclude(index) || !find_element_type(type, index->rd_indcollation[0], &element))
		return false;
	meta = &bloomset_state(index, false)->meta;
	hash_element = lookup_hash(&element, meta->element_class);
	if (hash_element == NULL)
		return false;
	hash = hash_element(key->sk_argument, meta->seed);
	return !probe_bloomset(index, scan->xs_snapshot, hash, &generations);
}

int64
bloomset_getbitmap(IndexScanDesc scan, TIDBitmap *bitmap)
{
	Relation	index = scan->indexRelation;
	Relation	heap;
	BlockNumber nblocks;
	double		rows;

	pgstat_count_index_scan(index);
	count_search(scan);
	for (int i = 0; i < scan->numberOfKeys; i++)
	{
		if (excludes_key(scan, &scan->keyData[i]))
			return 0;
	}
	heap = table_open(index->rd_index->indrelid, NoLock);
	nblocks = RelationGetNumberOfBlocks(heap);
	rows = heap->rd_rel->reltuples;
	table_close(heap, NoLock);
	for (BlockNumber block = 0; block < nblocks; block++)
	{
		CHECK_FOR_INTERRUPTS();
		tbm_add_page(bitmap, block);
	}
	return (int64) Max(rows, 0);
}
