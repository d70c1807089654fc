/*
 * access.c
 *		What a user may ask of which relation.
 *
 * A set tells which values a column has, so the rules are those by which the server
 * shows values in messages: BuildIndexValueDescription() in genam.c.
 */
#include "pg/pg_compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/transam.h"
#include "bloomset/access.h"
#include "bloomset/bloomset.h"
#include "catalog/index.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"

/* Row security would hide rows from the user whose values the set tells. */
static void
check_row_security(Oid table)
{
	if (check_enable_rls(table, InvalidOid, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("query of a bloomset would bypass row-level security of table \"%s\"",
						get_rel_name(table)),
				 errdetail("A bloomset tells about all rows.")));
}

static AclResult
select_privilege(Oid table, AttrNumber column)
{
	AclResult	result = pg_class_aclcheck(table, GetUserId(), ACL_SELECT);

	if (result != ACLCHECK_OK && column != InvalidAttrNumber)
		result = pg_attribute_aclcheck(table, column, GetUserId(), ACL_SELECT);
	return result;
}

bool
may_ask(Oid table, AttrNumber column)
{
	return select_privilege(table, column) == ACLCHECK_OK &&
		check_enable_rls(table, InvalidOid, true) != RLS_ENABLED;
}

static void
check_select(Oid table, AttrNumber column)
{
	AclResult	result = select_privilege(table, column);

	if (result != ACLCHECK_OK)
		aclcheck_error(result, get_relkind_objtype(get_rel_relkind(table)), get_rel_name(table));
	check_row_security(table);
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

static void
check_not_distributed(Oid table)
{
	if (is_distributed(table))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" is distributed, and its rows are in shards", get_rel_name(table)),
				 errhint("Ask each shard by run_command_on_shards().")));
}

/* A regclass may be of a relation that is gone. */
static Relation
open_existing(Oid relation_oid)
{
	Relation	relation = try_relation_open(relation_oid, AccessShareLock);

	if (relation == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relation_oid)));
	return relation;
}

Oid
lock_table_of_index(Oid index_oid)
{
	Oid			table = IndexGetRelation(index_oid, true);
	Relation	index;

	if (OidIsValid(table))
		LockRelationOid(table, AccessShareLock);
	index = open_existing(index_oid);
	if (!is_bloomset(index) || IndexGetRelation(index_oid, true) != table)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a bloomset index", RelationGetRelationName(index)),
				 errhint("Name an index that uses bloomset, or a table and its column.")));
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
check_index_access(Oid index_oid, Oid table)
{
	Relation	index = index_open(index_oid, AccessShareLock);
	AttrNumber	column = told_column(index);

	index_close(index, NoLock);
	check_select(table, column);
}

AttrNumber
lock_table_column(Oid table_oid, const char *column)
{
	Relation	table = open_existing(table_oid);
	char		kind = table->rd_rel->relkind;
	AttrNumber	number = get_attnum(table_oid, column);

	if (kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE && kind != RELKIND_MATVIEW)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table or materialized view",
						RelationGetRelationName(table))));
	if (number == InvalidAttrNumber)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of relation \"%s\" does not exist", column,
						RelationGetRelationName(table))));
	relation_close(table, NoLock);
	check_select(table_oid, number);
	check_not_distributed(table_oid);
	return number;
}

void
report_no_usable_set(Oid table)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("table \"%s\" has no bloomset index that this transaction can use",
					get_rel_name(table)),
			 errdetail("It has none of this column, or one that is invalid or newer than the transaction's snapshot, or the table is not populated.")));
}

/* Can a user create a set of the column? */
static bool
can_have_set(Oid table, const char *column)
{
	AttrNumber	number = get_attnum(table, column);
	ElementType element;
	Oid			type;
	int32		typmod;
	Oid			collation;

	if (number < 1 || table < FirstNormalObjectId)
		return false;
	get_atttypetypmodcoll(table, number, &type, &typmod, &collation);
	return find_hash_function(type, &element) && element.is_stable &&
		(!OidIsValid(collation) || get_collation_isdeterministic(collation));
}

void
report_no_set(Oid relation, const char *column)
{
	if (column == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is being dropped", get_rel_name(relation))));
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("table \"%s\" has no bloomset index on column \"%s\"", get_rel_name(relation),
					column),
			 !can_have_set(relation, column) ? 0 :
			 errhint("Create one with CREATE INDEX ON %s USING bloomset (%s).",
					 quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)),
												get_rel_name(relation)),
					 quote_identifier(column))));
}
