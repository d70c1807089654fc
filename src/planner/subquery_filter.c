/*
 * subquery_filter.c
 *		Estimates for a filter that a subquery builds.
 *
 * PostgreSQL plans an uncorrelated subquery or materialized CTE before the query
 * around it: see SS_process_sublinks() and SS_process_ctes() in subselect.c.  It
 * plans a subquery in FROM before the join with other tables.  The subquery's
 * PlannerInfo has the number of elements, whether its plan is serial, parallel
 * or partitionwise.
 */
#include "pg/pg_compat.h"

#include <math.h>

#include "access/htup_details.h"
#include "aggregate/bloom_agg.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "parser/parsetree.h"
#include "pg/bloom_type.h"
#include "planner/constant_filter.h"
#include "planner/subquery_filter.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"
#include "value/parameters.h"
#include "value/value.h"

/* Returns the query of the InitPlan that sets a parameter, or NULL. */
static PlannerInfo *
init_plan_query(PlannerInfo *root, int parameter)
{
	List	   *subroots = root->glob->subroots;

	for (; root != NULL; root = root->parent_root)
	{
		ListCell   *cell;

		foreach(cell, root->init_plans)
		{
			SubPlan    *subplan = lfirst_node(SubPlan, cell);

			if (subplan->subLinkType == EXPR_SUBLINK && list_member_int(subplan->setParam, parameter))
				return list_nth(subroots, subplan->plan_id - 1);
		}
	}
	return NULL;
}

/* Returns the query of a CTE that is not inlined, or NULL; as set_cte_pathlist(). */
static PlannerInfo *
cte_query(PlannerInfo *root, const RangeTblEntry *rte)
{
	List	   *subroots = root->glob->subroots;

	for (Index level = rte->ctelevelsup; level > 0 && root != NULL; level--)
		root = root->parent_root;
	if (root == NULL || rte->self_reference)
		return NULL;
	for (int i = 0; i < list_length(root->cte_plan_ids); i++)
	{
		CommonTableExpr *cte = list_nth_node(CommonTableExpr, root->parse->cteList, i);
		int			plan_id = list_nth_int(root->cte_plan_ids, i);

		if (strcmp(cte->ctename, rte->ctename) == 0)
			return plan_id > 0 ? list_nth(subroots, plan_id - 1) : NULL;
	}
	return NULL;
}

/* Returns the subquery or CTE that a column comes from, or NULL. */
static PlannerInfo *
column_query(PlannerInfo *root, const Var *column)
{
	const RangeTblEntry *rte;

	if (column->varlevelsup > 0 || column->varno <= 0 || column->varno >= root->simple_rel_array_size)
		return NULL;
	rte = root->simple_rte_array[column->varno];
	if (rte->rtekind == RTE_CTE)
		return cte_query(root, rte);
	if (rte->rtekind != RTE_SUBQUERY || root->simple_rel_array[column->varno] == NULL)
		return NULL;
	return root->simple_rel_array[column->varno]->subroot;
}

/*
 * Returns the expression of a query's column and sets *root to the query; NULL
 * if there is none.  A column of a UNION has several expressions.  The target
 * list of an INSERT is not its result.
 */
static Node *
enter_query(PlannerInfo **root, PlannerInfo *query, AttrNumber column)
{
	const TargetEntry *entry;

	if (query == NULL || query->parse->commandType != CMD_SELECT || query->parse->setOperations != NULL)
		return NULL;
	*root = query;
	entry = get_tle_by_resno(query->processed_tlist, column);
	return entry == NULL ? NULL : (Node *) entry->expr;
}

/* Returns the aggregate that computes a filter, or NULL, and sets *root to its query. */
static const Aggref *
find_aggregate(PlannerInfo **root, Node *filter)
{
	while (filter != NULL)
	{
		if (IsA(filter, Aggref))
			return (const Aggref *) filter;
		if (IsA(filter, Var))
			filter = enter_query(root, column_query(*root, (Var *) filter), ((Var *) filter)->varattno);
		else if (IsA(filter, Param) && ((Param *) filter)->paramkind == PARAM_EXEC)
			filter = enter_query(root, init_plan_query(*root, ((Param *) filter)->paramid), 1);
		else
			return NULL;
	}
	return NULL;
}

/*
 * Is the aggregate bloom_agg, bloom_counter_agg or bloom_level_agg?  Their names
 * and schema do not matter.
 */
static bool
is_build_aggregate(const Aggref *aggref)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggref->aggfnoid));
	Oid			final;
	FmgrInfo	info;

	if (!HeapTupleIsValid(tuple))
		return false;
	final = ((Form_pg_aggregate) GETSTRUCT(tuple))->aggfinalfn;
	ReleaseSysCache(tuple);
	if (!OidIsValid(final))
		return false;
	fmgr_info(final, &info);
	return info.fn_addr == bloomfilter_agg_final || info.fn_addr == bloomcounter_agg_final;
}

/* Returns an argument that is a non-null constant, else NULL. */
static const Const *
constant_argument(const Aggref *aggref, int argument)
{
	const Expr *expression = list_nth_node(TargetEntry, aggref->args, argument)->expr;

	return IsA(expression, Const) && !((const Const *) expression)->constisnull
		? (const Const *) expression : NULL;
}

/* Returns a constant argument that is a rate, or the default. */
static double
requested_rate(const Aggref *aggref, int argument)
{
	const Const *constant = constant_argument(aggref, argument);
	double		rate = constant == NULL ? DEFAULT_RATE : DatumGetFloat8(constant->constvalue);

	return rate > 0 && rate < 1 ? rate : DEFAULT_RATE;
}

/* Sets *filter from the base filter; false if that is not a constant. */
static bool
read_base(PlannerInfo *root, const Aggref *aggref, int argument, SubqueryFilter *filter)
{
	const Const *constant = constant_argument(aggref, argument);
	bf_kind		kind;
	bf_filter	base;

	if (constant == NULL || !is_bloom_type(aggref->aggtype, &kind))
		return false;
	open_value(constant->constvalue, kind, &base);
	filter->elements = measure_once(evaluate_filter(root, (Node *) constant), &base).cardinality;
	filter->rate = base.params.rate;
	return true;
}

/*
 * Sets *filter from the arguments after the element and its level; false if they
 * are unknown.  A user-defined aggregate with the same final function can have
 * other arguments or none.  aggref->args can have sort keys after the arguments.
 */
static bool
read_arguments(PlannerInfo *root, const Aggref *aggref, SubqueryFilter *filter)
{
	const List *types = aggref->aggargtypes;
	int			count = list_length(types);
	int			next = count > 1 && lsecond_oid(types) == INT4OID ? 2 : 1;

	if (aggref->aggdirectargs != NIL || count < 1 || count > next + 3)
		return false;
	if (count == next + 1 && list_nth_oid(types, next) == aggref->aggtype)
		return read_base(root, aggref, next, filter);
	for (int i = next; i < count; i++)
	{
		if (list_nth_oid(types, i) != (i == next + 2 ? INT4OID : FLOAT8OID))
			return false;
	}
	filter->elements = 0;
	filter->rate = count >= next + 2 ? requested_rate(aggref, next + 1) : DEFAULT_RATE;
	return true;
}

/*
 * Estimates the number of distinct values of an expression in a number of rows.
 * Without statistics, all values are assumed to be distinct.
 */
static double
distinct_elements(PlannerInfo *root, Node *element, double rows)
{
	VariableStatData variable;
	bool		is_default;

	examine_variable(root, element, 0, &variable);
	get_variable_numdistinct(&variable, &is_default);
	ReleaseVariableStats(variable);
	if (is_default && contain_var_clause(element))
		return rows;
	return estimate_num_groups(root, list_make1(element), rows, NULL, NULL);
}

/* Returns the number of rows of the join of all tables of a query; -1 if unknown. */
static double
aggregated_rows(PlannerInfo *root)
{
	RelOptInfo *joined;
	int			table;

	if (bms_is_empty(root->all_query_rels))
		return 1;
	joined = bms_get_singleton_member(root->all_query_rels, &table)
		? find_base_rel(root, table) : find_join_rel(root, root->all_query_rels);
	return joined == NULL ? -1 : Max(joined->rows, 1);
}

/*
 * Estimates the number of distinct elements that an aggregate receives.  If only
 * a share of the rows passes FILTER, the formula is that of estimate_num_groups().
 */
static double
aggregated_elements(PlannerInfo *root, const Aggref *aggref, double rows)
{
	double		distinct = distinct_elements(root, (Node *) linitial_node(TargetEntry, aggref->args)->expr, rows);
	double		share = 1;

	if (aggref->aggfilter != NULL)
		share = clause_selectivity(root, (Node *) aggref->aggfilter, 0, JOIN_INNER, NULL);
	return distinct * (1 - pow(1 - share, rows / distinct));
}

bool
find_subquery_filter(PlannerInfo *root, Node *operand, SubqueryFilter *filter)
{
	const Aggref *aggref = find_aggregate(&root, operand);
	double		rows;

	if (aggref == NULL || root->parse->groupClause != NIL || root->parse->groupingSets != NIL ||
		!is_build_aggregate(aggref))
		return false;
	rows = aggregated_rows(root);
	if (rows < 0 || !read_arguments(root, aggref, filter))
		return false;
	filter->elements += aggregated_elements(root, aggref, rows);
	return true;
}
