/*
 * find.c
 *		bloomset_find(): the rows with a value, from the leaves that may have it.
 *
 * All leaves are asked and read under one snapshot, that of the calling statement, so the
 * rows are those of a query of the whole tree, also while others move rows between leaves.
 */
#include "pg/pg_compat.h"

#include "bloomset/leaf_query.h"
#include "bloomset/lookup.h"
#include "bloomset/tree.h"
#include "executor/tstoreReceiver.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(bloomset_find);

/* The table that has the type of the first argument, a row. */
static Oid
table_of_row_type(FunctionCallInfo fcinfo)
{
	Oid			type = get_fn_expr_argtype(fcinfo->flinfo, 0);
	Oid			table = OidIsValid(type) ? get_typ_typrelid(type) : InvalidOid;

	if (!OidIsValid(table))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("the first argument must have the row type of a table"),
				 errhint("For a table \"spans\", write NULL::spans.")));
	return table;
}

/* Rows have all columns.  What they say of others has been checked with the column asked. */
static void
check_row_access(Oid table)
{
	AclResult	result = pg_class_aclcheck(table, GetUserId(), ACL_SELECT);

	if (result != ACLCHECK_OK)
		result = pg_attribute_aclcheck_all(table, GetUserId(), ACL_SELECT, ACLMASK_ALL);
	if (result != ACLCHECK_OK)
		aclcheck_error(result, get_relkind_objtype(get_rel_relkind(table)), get_rel_name(table));
}

/* The columns of the row type by name, since leaves may have them in another order. */
static char *
list_columns(TupleDesc descriptor)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);

		if (!attribute->attisdropped)
			appendStringInfo(&list, "%st.%s", list.len > 0 ? ", " : "",
							 quote_identifier(NameStr(attribute->attname)));
	}
	return list.data;
}

/* A query of the table computes them by its own expression, which need not be that of a leaf. */
static void
refuse_virtual_columns(TupleDesc descriptor)
{
	for (int i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);

		if (attribute->attgenerated == GENERATED_VIRTUAL)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("bloomset_find does not support virtual generated columns"),
					 errdetail("Column \"%s\" may have other expressions in partitions and children.",
							   NameStr(attribute->attname)),
					 errhint("Query the tables that bloomset_partitions() returns.")));
	}
}

static void
find_rows(FunctionCallInfo fcinfo, Oid table, const char *column)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	SetTree		tree = resolve_sets(table, column);
	Lookup		lookup;
	LookedUp	value;
	QueryParameters parameters = {.count = 1, .types = &lookup.type, .values = &value.value};
	DestReceiver *receiver = CreateDestReceiver(DestTuplestore);
	char	   *before = psprintf("SELECT %s FROM ", list_columns(result->setDesc));
	char	   *after = psprintf(" AS t WHERE t.%s OPERATOR(pg_catalog.=) $1", quote_identifier(column));

	check_row_access(table);
	prepare_lookup(&lookup, &tree, fcinfo, 2, CurrentMemoryContext);
	require_operator(&lookup, &tree);
	value = looked_up_value(&lookup, PG_GETARG_DATUM(2));
	SetTuplestoreDestReceiverParams(receiver, result->setResult,
									result->econtext->ecxt_per_query_memory, false, result->setDesc,
									gettext_noop("columns of the table have changed since the query began"));
	for (int i = 0; i < tree.nleaves; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (tree.leaves[i].table != table)
			refuse_virtual_columns(result->setDesc);
		if (leaf_may_contain(&tree.leaves[i], &lookup, &value))
			run_query(before, &tree.leaves[i], after, &parameters, receiver);
	}
	receiver->rDestroy(receiver);
}

Datum
bloomset_find(PG_FUNCTION_ARGS)
{
	Oid			table = table_of_row_type(fcinfo);

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (!PG_ARGISNULL(1) && !PG_ARGISNULL(2))
		find_rows(fcinfo, table, NameStr(*PG_GETARG_NAME(1)));
	return (Datum) 0;
}
