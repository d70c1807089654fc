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
#include "optimizer/optimizer.h"
#include "parser/analyze.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#define TRIES_OF_NAME	10

pg_noreturn static void
report_changed_leaf(Oid table)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_TABLE),
			 errmsg("relation with OID %u was dropped or renamed during the query", table)));
}

/*
 * The leaf after FROM: its qualified name, with ONLY where children are other leaves.  A function
 * that a query calls may have dropped it.
 */
static char *
from_leaf(const SetLeaf *leaf)
{
	char	   *name = get_rel_name(leaf->table);
	char	   *schema = name == NULL ? NULL : get_namespace_name(get_rel_namespace(leaf->table));
	char	   *qualified;

	if (schema == NULL)
		report_changed_leaf(leaf->table);
	qualified = quote_qualified_identifier(schema, name);
	/* not always, since TimescaleDB reads only a part of a table then */
	return leaf->has_children ? psprintf("ONLY %s", qualified) : qualified;
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

/* Shows positions in errors as those of the query, which the user has not written. */
static void
show_query(void *sql)
{
	int			position = geterrposition();

	if (position <= 0)
		return;
	errposition(0);
	internalerrposition(position);
	internalerrquery(sql);
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
	ErrorContextCallback callback;

	callback.callback = show_query;
	callback.arg = unconstify(char *, sql);
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	GetUserIdAndSecContext(&caller, &context);
	SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID,
						   context | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
	query = parse_analyze_fixedparams(statement, sql, parameters->types, parameters->count, NULL);
	SetUserIdAndSecContext(caller, context);
	error_context_stack = callback.previous;
	return query;
}

/* Does a query read the leaf, and nothing else?  Its schema may have been renamed since it was named. */
static bool
reads_leaf(Query *query, const SetLeaf *leaf)
{
	List	   *relations;
	List	   *items;
	bool		has_row_security;

	extract_query_dependencies((Node *) query, &relations, &items, &has_row_security);
	return list_length(relations) == 1 && linitial_oid(relations) == leaf->table;
}

static Query *
query_of_leaf(const char *before, const SetLeaf *leaf, const char *after, const QueryParameters *parameters,
			  char **sql)
{
	for (int i = 0; i < TRIES_OF_NAME; i++)
	{
		Query	   *query;

		*sql = psprintf("%s%s%s", before, from_leaf(leaf), after);
		query = analyze_query(*sql, parameters);
		if (reads_leaf(query, leaf))
			return query;
		AcceptInvalidationMessages();
	}
	report_changed_leaf(leaf->table);
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

/* The query is not rewritten: a leaf is no view, and its row security does not count. */
void
run_query(const char *before, const SetLeaf *leaf, const char *after, const QueryParameters *parameters,
		  DestReceiver *receiver)
{
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext, "query of a leaf", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(memory);
	ParamListInfo list = parameter_list(parameters);
	char	   *sql = pstrdup(before);
	Query	   *query = leaf == NULL ? analyze_query(sql, parameters) :
		query_of_leaf(before, leaf, after, parameters, &sql);
	PlannedStmt *statement = pg_plan_query(query, sql, CURSOR_OPT_PARALLEL_OK, list);

	require_no_privileges(statement);
	execute_plan(statement, sql, list, receiver);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(memory);
}
