/*
 * access.c
 *		What a user may ask of which relation.
 */
#include "pg/pg_compat.h"

#include "access/relation.h"
#include "access/transam.h"
#include "bloomset/access.h"
#include "bloomset/bloomset.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

const IndexMethod bloomset_method = {
	.name = "bloomset",
	.is_ours = is_bloomset,
	.hint = gettext_noop("Name an index that uses bloomset, or a table and its column."),
};

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
	check_column_access(&bloomset_method, table_oid, number);
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
			 errdetail("It has none of this column, or one that is invalid or may lack rows that the transaction's snapshot sees, or the table is not populated.")));
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
