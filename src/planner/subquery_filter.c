/*
 * subquery_filter.c
 *		What the planner knows of a filter that the query is going to build.
 *
 * An uncorrelated subquery and a materialized CTE are planned before the query
 * around them: SS_process_sublinks() and SS_process_ctes() in PostgreSQL's
 * subselect.c.  A subquery in FROM is planned before the tables it is joined
 * to.  Their PlannerInfo tells how many elements go into the filter, whatever
 * the shape of their plans, parallel or by partitions.
 */
#include "pg/pg_compat.h"

#include <math.h>

#include "access/htup_details.h"
#include "aggregate/accumulator.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "filter/params.h"
#include "filter/value.h"
#include "fmgr.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "parser/parsetree.h"
#include "planner/constant_filter.h"
#include "planner/subquery_filter.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

/* The query of the InitPlan that sets a parameter, or NULL. */
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

/* The query of a CTE that is not inlined, or NULL: see set_cte_pathlist(). */
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

/* The query that a column comes from, or NULL if that is a table. */
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
 * What a query computes as its nth column, or NULL; root becomes that query.
 * The columns of a UNION come from several queries, and those of an INSERT are
 * not what it returns.
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

/* The call of an aggregate that computes a filter, and the query it is part of; or NULL. */
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

/* Is that bloom_agg, whatever it is called and wherever it stands? */
static bool
builds_filter(const Aggref *aggref)
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
	return info.fn_addr == bloomfilter_agg_final;
}

/* The value of an argument, or NULL if it is not known or is NULL. */
static const Const *
constant_argument(const Aggref *aggref, int argument)
{
	const Expr *expression = list_nth_node(TargetEntry, aggref->args, argument)->expr;

	return IsA(expression, Const) && !((const Const *) expression)->constisnull
		? (const Const *) expression : NULL;
}

/*
 * The rate that the third argument asks for.  One out of bounds is an error,
 * but not before the query runs.
 */
static double
requested_rate(const Aggref *aggref)
{
	const Const *constant = constant_argument(aggref, 2);
	double		rate = constant == NULL ? DEFAULT_RATE : DatumGetFloat8(constant->constvalue);

	return rate > 0 && rate < 1 ? rate : DEFAULT_RATE;
}

/* What the filter holds that the second argument says to add to; false if it is no constant. */
static bool
read_base(PlannerInfo *root, const Aggref *aggref, SubqueryFilter *filter)
{
	const Const *constant = constant_argument(aggref, 1);
	bf_filter	base;

	if (constant == NULL)
		return false;
	open_filter(constant->constvalue, &base);
	filter->elements = measure_once(estimate_filter(root, (Node *) constant), &base).cardinality;
	filter->rate = base.params.rate;
	return true;
}

/*
 * What the arguments beside the element tell; false if that is too little.
 * Whoever can create aggregates can give other arguments to one that has our
 * final function, or none; and behind the arguments sort keys may stand in
 * aggref->args.
 */
static bool
read_arguments(PlannerInfo *root, const Aggref *aggref, SubqueryFilter *filter)
{
	const List *types = aggref->aggargtypes;
	int			count = list_length(types);

	if (aggref->aggdirectargs != NIL || count < 1 || count > 3)
		return false;
	if (count == 2 && lsecond_oid(types) == aggref->aggtype)
		return read_base(root, aggref, filter);
	if ((count > 1 && lsecond_oid(types) != FLOAT8OID) || (count > 2 && lthird_oid(types) != FLOAT8OID))
		return false;
	filter->elements = 0;
	filter->rate = count > 2 ? requested_rate(aggref) : DEFAULT_RATE;
	return true;
}

/*
 * How many distinct values an expression has in so many rows: at most as many
 * as rows, which is what to expect where nothing is known of it.
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

/* How many rows a query aggregates: those of the join of all its tables.  -1 if not known. */
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
 * How many distinct elements an aggregate gets from so many rows.  Those of the
 * share of rows that FILTER lets through are counted as estimate_num_groups()
 * does for a share of a table.
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
		!builds_filter(aggref))
		return false;
	rows = aggregated_rows(root);
	if (rows < 0 || !read_arguments(root, aggref, filter))
		return false;
	filter->elements += aggregated_elements(root, aggref, rows);
	return true;
}
