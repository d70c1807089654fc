/*
 * tree.c
 *		The indexes behind one name: one, or those of all partitions.
 */
#include "pg/pg_compat.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xlog.h"
#include "bloomslices/bloomslices.h"
#include "bloomslices/tree.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "miscadmin.h"
#include "pg/index_access.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

static const IndexMethod bloomslices_method = {
	.name = "bloomslices",
	.is_ours = is_bloomslices,
	.hint = gettext_noop("Name an index that uses bloomslices."),
};

/* Locks the tables, then the indexes below a pair of these; only leaves have pages. */
static List *
lock_leaves(Oid table, Oid index, LOCKMODE mode)
{
	List	   *result = NIL;
	ListCell   *lc;

	if (get_rel_relkind(index) == RELKIND_PARTITIONED_INDEX)
		(void) find_all_inheritors(table, mode, NULL);
	else
		LockRelationOid(table, mode);
	foreach(lc, find_all_inheritors(index, mode, NULL))
	{
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_INDEX)
			result = lappend_oid(result, lfirst_oid(lc));
	}
	return result;
}

List *
lock_slices_to_read(Oid index)
{
	Oid			table = lock_table_of_index(&bloomslices_method, index);

	check_index_access(&bloomslices_method, index, table);
	return lock_leaves(table, index, AccessShareLock);
}

static void
check_owner(Oid index)
{
	Oid			table = IndexGetRelation(index, false);

	if (!object_ownercheck(RelationRelationId, table, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(get_rel_relkind(table)), get_rel_name(table));
}

List *
lock_slices_to_maintain(Oid index)
{
	Oid			table = lock_table_of_index(&bloomslices_method, index);
	List	   *leaves;
	ListCell   *lc;

	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot change an index during recovery")));
	check_owner(index);
	leaves = lock_leaves(table, index, ShareUpdateExclusiveLock);
	foreach(lc, leaves)
		check_owner(lfirst_oid(lc));
	return leaves;
}

OwnedIndex
open_as_owner(Oid index)
{
	OwnedIndex	owned = {.table = table_open(IndexGetRelation(index, false), NoLock)};

	GetUserIdAndSecContext(&owned.user, &owned.context);
	SetUserIdAndSecContext(owned.table->rd_rel->relowner, owned.context | SECURITY_RESTRICTED_OPERATION);
	owned.settings = NewGUCNestLevel();
	RestrictSearchPath();
	owned.index = index_open(index, NoLock);
	return owned;
}

void
close_as_owner(OwnedIndex *owned)
{
	AtEOXact_GUC(false, owned->settings);
	SetUserIdAndSecContext(owned->user, owned->context);
	index_close(owned->index, NoLock);
	table_close(owned->table, NoLock);
}
