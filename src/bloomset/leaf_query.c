/*
 * leaf_query.c
 *		Queries of one leaf of a tree.
 */
#include "pg/pg_compat.h"

#include "access/htup_details.h"
#include "bloomset/leaf_query.h"
#include "catalog/pg_class.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/params.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

char *
from_leaf(const SetLeaf *leaf)
{
	char	   *schema = get_namespace_name(get_rel_namespace(leaf->table));
	char	   *name = quote_qualified_identifier(schema, get_rel_name(leaf->table));

	/* not always, since TimescaleDB reads only a part of a table then */
	return leaf->has_children ? psprintf("ONLY %s", name) : name;
}

static ParamListInfo
parameter_list(const QueryParameters *parameters)
{
	ParamListInfo list = makeParamList(parameters->count);

	for (int i = 0; i < parameters->count; i++)
		list->params[i] = (ParamExternData)
	{
		.value = parameters->values[i], .pflags = PARAM_FLAG_CONST, .ptype = parameters->types[i]
	};
	return list;
}

void
run_query(const char *sql, const QueryParameters *parameters, DestReceiver *receiver)
{
	SPIExecuteOptions options = {
		.params = parameter_list(parameters), .read_only = true, .dest = receiver
	};
	int			result = SPI_execute_extended(sql, &options);

	if (result != SPI_OK_SELECT)
		elog(ERROR, "SPI_execute_extended failed: %s", SPI_result_code_string(result));
}

/* The role by whose privileges a leaf is read. */
static Oid
reader_of(Oid table)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
	Form_pg_class form;
	Oid			reader;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", table);
	form = (Form_pg_class) GETSTRUCT(tuple);
	reader = form->relkind == RELKIND_FOREIGN_TABLE ? GetUserId() : form->relowner;
	ReleaseSysCache(tuple);
	return reader;
}

/* As ri_triggers.c does.  An error restores the role, too, when it ends the transaction. */
void
run_leaf_query(const SetLeaf *leaf, const char *sql, const QueryParameters *parameters,
			   DestReceiver *receiver)
{
	Oid			caller;
	int			context;

	GetUserIdAndSecContext(&caller, &context);
	SetUserIdAndSecContext(reader_of(leaf->table),
						   context | SECURITY_LOCAL_USERID_CHANGE | SECURITY_NOFORCE_RLS);
	run_query(sql, parameters, receiver);
	SetUserIdAndSecContext(caller, context);
}
