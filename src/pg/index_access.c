/*
 * index_access.c
 *		Who may ask an index about a table's values.
 *
 * Such an index tells which values a column has, so the rules are those by which the
 * server shows values in messages: BuildIndexValueDescription() in genam.c.
 */
#include "pg/pg_compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_namespace.h"
#include "miscadmin.h"
#include "pg/index_access.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"

/* Row security would hide rows from the user whose values the index tells. */
static void
check_row_security(const IndexMethod *method, Oid table)
{
	if (check_enable_rls(table, InvalidOid, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("query of a %s index would bypass row-level security of table \"%s\"",
						method->name, get_rel_name(table)),
				 errdetail("The index tells about all rows.")));
}

static AclResult
select_privilege(Oid table, AttrNumber column)
{
	AclResult	result = pg_class_aclcheck(table, GetUserId(), ACL_SELECT);

	if (result != ACLCHECK_OK && column != InvalidAttrNumber)
		result = pg_attribute_aclcheck(table, column, GetUserId(), ACL_SELECT);
	return result;
}

void
check_has_contents(Relation relation)
{
	if (relation->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED && RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot access unlogged relation \"%s\" during recovery",
						RelationGetRelationName(relation))));
}

bool
may_ask(Oid table, AttrNumber column)
{
	return select_privilege(table, column) == ACLCHECK_OK &&
		check_enable_rls(table, InvalidOid, true) != RLS_ENABLED;
}

void
check_column_access(const IndexMethod *method, Oid table, AttrNumber column)
{
	AclResult	result = select_privilege(table, column);

	if (result != ACLCHECK_OK)
		aclcheck_error(result, get_relkind_objtype(get_rel_relkind(table)), get_rel_name(table));
	check_row_security(method, table);
}

/* Is the relation in the catalog of Citus, whose coordinator has an empty shell of it? */
static bool
is_distributed(Oid table)
{
	Oid			catalog_oid = get_relname_relid("pg_dist_partition", PG_CATALOG_NAMESPACE);
	Relation	catalog;
	SysScanDesc scan;
	ScanKeyData key;
	AttrNumber	column;
	bool		found;

	if (!OidIsValid(catalog_oid))
		return false;
	column = get_attnum(catalog_oid, "logicalrelid");
	if (column == InvalidAttrNumber)
		return false;
	catalog = table_open(catalog_oid, AccessShareLock);
	ScanKeyInit(&key, column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(table));
	scan = systable_beginscan(catalog, InvalidOid, false, NULL, 1, &key);
	found = HeapTupleIsValid(systable_getnext(scan));
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return found;
}

void
check_not_distributed(Oid table)
{
	if (is_distributed(table))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" is distributed, and its rows are in shards", get_rel_name(table)),
				 errhint("Ask each shard by run_command_on_shards().")));
}

Relation
open_existing(Oid relation_oid)
{
	Relation	relation = try_relation_open(relation_oid, AccessShareLock);

	if (relation == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relation_oid),
				 errhint("REINDEX CONCURRENTLY gives an index another OID. A view or SQL function can name an index as 'name'::text::regclass.")));
	return relation;
}

Oid
lock_table_of_index(const IndexMethod *method, Oid index_oid)
{
	Oid			table = IndexGetRelation(index_oid, true);
	Relation	index;

	if (OidIsValid(table))
		LockRelationOid(table, AccessShareLock);
	index = open_existing(index_oid);
	if (!method->is_ours(index) || IndexGetRelation(index_oid, true) != table)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a %s index", RelationGetRelationName(index), method->name),
				 errhint("%s", _(method->hint))));
	relation_close(index, NoLock);
	check_not_distributed(table);
	return table;
}

AttrNumber
told_column(Relation index)
{
	/* a partial index also tells of the columns of its predicate */
	if (!heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL))
		return InvalidAttrNumber;
	return index->rd_index->indkey.values[0];
}

void
check_index_access(const IndexMethod *method, Oid index_oid, Oid table)
{
	Relation	index = index_open(index_oid, AccessShareLock);
	AttrNumber	column = told_column(index);

	index_close(index, NoLock);
	check_column_access(method, table, column);
}
