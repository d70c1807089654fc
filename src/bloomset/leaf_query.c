/*
 * leaf_query.c
 *		Queries of one leaf of a tree.
 */
#include "pg/pg_compat.h"

#include "bloomset/leaf_query.h"
#include "catalog/pg_authid.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/params.h"
#include "parser/analyze.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

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

/*
 * Finds what the names stand for as a superuser, because the caller may lack USAGE of the schema of
 * a leaf.  No function is called meanwhile: the query has no constants.
 */
static Query *
analyze_query(const char *sql, const QueryParameters *parameters)
{
	RawStmt    *statement = linitial_node(RawStmt, pg_parse_query(sql));
	Oid			caller;
	int			context;
	Query	   *query;

	GetUserIdAndSecContext(&caller, &context);
	SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID,
						   context | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
	query = parse_analyze_fixedparams(statement, sql, parameters->types, parameters->count, NULL);
	SetUserIdAndSecContext(caller, context);
	return query;
}

/* As for the children of a table, for which no privileges are checked: see inherit.c. */
static void
require_no_privileges(PlannedStmt *statement)
{
	ListCell   *cell;

	foreach(cell, statement->rtable)
		forget_privileges(lfirst_node(RangeTblEntry, cell));
	forget_all_privileges(statement);
}

static void
execute_plan(PlannedStmt *statement, const char *sql, ParamListInfo parameters, DestReceiver *receiver)
{
	QueryDesc  *query = CreateQueryDesc(statement, sql, GetActiveSnapshot(), InvalidSnapshot, receiver,
										parameters, NULL, 0);

	ExecutorStart(query, 0);
	run_executor(query);
	ExecutorFinish(query);
	ExecutorEnd(query);
	FreeQueryDesc(query);
}

/* It is not rewritten: a leaf is no view, and its row security does not count. */
void
run_query(const char *sql, const QueryParameters *parameters, DestReceiver *receiver)
{
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext, "query of a leaf", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(memory);
	ParamListInfo list = parameter_list(parameters);
	PlannedStmt *statement = pg_plan_query(analyze_query(sql, parameters), sql, CURSOR_OPT_PARALLEL_OK, list);

	require_no_privileges(statement);
	execute_plan(statement, sql, list, receiver);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(memory);
}
