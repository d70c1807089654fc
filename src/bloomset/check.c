/*
 * check.c
 *		bloomset_check(): is every row of the table in the set?
 *
 * As bt_index_check() of amcheck does with heapallindexed: the rows that the
 * transaction's snapshot sees, with the index's expressions run as the table's owner.
 */
#include "pg/pg_compat.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "bloomset/access.h"
#include "bloomset/bloomset.h"
#include "bloomset/tree.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/itemptr.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(bloomset_check);

static void
check_row(Relation index, ItemPointer row, Datum *values, bool *isnull, bool alive, void *arg)
{
	const BloomsetState *state = bloomset_state(index, false);
	uint64		hash;
	uint32		generations;

	if (isnull[0])
		return;
	hash = state->hash(values[0], state->meta.seed);
	if (!probe_bloomset(index, InvalidSnapshot, hash, &generations))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("row (%u,%u) of table \"%s\" is missing from bloomset index \"%s\"",
						ItemPointerGetBlockNumber(row), ItemPointerGetOffsetNumber(row),
						get_rel_name(index->rd_index->indrelid), RelationGetRelationName(index)),
				 errhint("REINDEX builds it anew.")));
}

static void
check_pages(Relation index)
{
	BloomsetMeta meta = bloomset_state(index, true)->meta;

	for (uint32 i = 0; i < meta.ngenerations; i++)
	{
		for (uint32 number = 0; number < pages_of(&meta.generation[i]); number++)
		{
			CHECK_FOR_INTERRUPTS();
			UnlockReleaseBuffer(lock_generation_page(index, &meta, i, number, BUFFER_LOCK_SHARE));
		}
	}
}

/* Scans the rows that the snapshot sees. */
static void
check_rows(Relation table, Relation index)
{
	Snapshot	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	struct IndexInfo *info = BuildIndexInfo(index);
	TableScanDesc scan;

	info->ii_Concurrent = true; /* the scan sees what the snapshot sees */
	scan = table_beginscan_strat(table, snapshot, 0, NULL, true, true);
	table_index_build_scan(table, index, info, true, false, check_row, NULL, scan);
	UnregisterSnapshot(snapshot);
}

static void
check_valid(Relation index)
{
	if (!index->rd_index->indisvalid || !index->rd_index->indisready)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("bloomset index \"%s\" is invalid", RelationGetRelationName(index)),
				 errhint("REINDEX builds it anew.")));
}

static void
check_index(Oid table_oid, Oid index_oid)
{
	Relation	table = table_open(table_oid, NoLock);
	Relation	index = index_open(index_oid, NoLock);
	Oid			user;
	int			context;
	int			settings;

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(table->rd_rel->relowner, context | SECURITY_RESTRICTED_OPERATION);
	settings = NewGUCNestLevel();
	RestrictSearchPath();
	/* the build of an invalid index may have left no page */
	check_valid(index);
	if (!bloomset_can_exclude(index))
		report_no_usable_set(table_oid);
	check_pages(index);
	check_rows(table, index);
	AtEOXact_GUC(false, settings);
	SetUserIdAndSecContext(user, context);
	index_close(index, NoLock);
	table_close(table, NoLock);
}

Datum
bloomset_check(PG_FUNCTION_ARGS)
{
	SetTree		tree = resolve_sets(PG_GETARG_OID(0), NULL);

	for (int i = 0; i < tree.nleaves; i++)
	{
		if (tree.leaves[i].nindexes == 0 &&
			get_rel_relkind(tree.leaves[i].table) != RELKIND_FOREIGN_TABLE)
			report_no_usable_set(tree.leaves[i].table);
		for (int j = 0; j < tree.leaves[i].nindexes; j++)
			check_index(tree.leaves[i].table, tree.leaves[i].indexes[j]);
	}
	PG_RETURN_VOID();
}
