/*
 * planned_filter.c
 *		What the planner knows of a filter that the query is going to build.
 *
 * An uncorrelated subquery is planned before the query around it, which sees
 * its result as a parameter: SS_process_sublinks() in PostgreSQL's subselect.c.
 * The plan of one that aggregates tells how many elements go into the filter.
 */
#include "pg_compat.h"

#include "access/htup_details.h"
#include "aggregate.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "measure.h"
#include "nodes/plannodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "params.h"
#include "planned_filter.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"
#include "value.h"

/* The InitPlan that sets a parameter, or NULL. */
static SubPlan *
find_init_plan(PlannerInfo *root, int parameter)
{
	for (; root != NULL; root = root->parent_root)
	{
		ListCell   *cell;

		foreach(cell, root->init_plans)
		{
			SubPlan    *subplan = lfirst_node(SubPlan, cell);

			if (subplan->subLinkType == EXPR_SUBLINK && list_member_int(subplan->setParam, parameter))
				return subplan;
		}
	}
	return NULL;
}

/* How many of a parallel plan's workers' rows make all rows: see get_parallel_divisor(). */
static double
parallel_divisor(const Gather *gather)
{
	double		leader = parallel_leader_participation ? 1 - 0.3 * gather->num_workers : 0;

	return gather->num_workers + Max(leader, 0);
}

/* How many rows go into an aggregation without GROUP BY; -1 if its plan does not tell. */
static double
aggregated_rows(const Agg *aggregation)
{
	const Plan *input = outerPlan(aggregation);
	double		times = 1;

	if (DO_AGGSPLIT_COMBINE(aggregation->aggsplit))
	{
		const Plan *partial;

		if (input == NULL || !IsA(input, Gather))
			return -1;
		times = parallel_divisor((const Gather *) input);
		partial = outerPlan(input);
		if (partial == NULL || !IsA(partial, Agg) ||
			DO_AGGSPLIT_COMBINE(((const Agg *) partial)->aggsplit))
			return -1;
		input = outerPlan(partial);
	}
	return input == NULL ? -1 : input->plan_rows * times;
}

/* The call of an aggregate without GROUP BY that is all a plan returns; or NULL. */
static const Aggref *
returned_aggregate(const Plan *plan)
{
	const Expr *expression;

	if (plan == NULL || !IsA(plan, Agg) || ((const Agg *) plan)->numCols != 0 ||
		list_length(plan->targetlist) != 1)
		return NULL;
	expression = linitial_node(TargetEntry, plan->targetlist)->expr;
	return IsA(expression, Aggref) ? (const Aggref *) expression : NULL;
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

/* An argument that is a constant but not NULL, or NULL. */
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
read_base(const Aggref *aggref, PlannedFilter *filter)
{
	const Const *constant = constant_argument(aggref, 1);
	bf_filter	base;

	if (constant == NULL)
		return false;
	open_filter(constant->constvalue, &base);
	filter->elements = measure_cardinality(&base);
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
read_arguments(const Aggref *aggref, PlannedFilter *filter)
{
	const List *types = aggref->aggargtypes;
	int			count = list_length(types);

	if (aggref->aggdirectargs != NIL || count < 1 || count > 3)
		return false;
	if (count == 2 && lsecond_oid(types) == aggref->aggtype)
		return read_base(aggref, filter);
	if ((count > 1 && lsecond_oid(types) != INT8OID) || (count > 2 && lthird_oid(types) != FLOAT8OID))
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

bool
find_planned_filter(PlannerInfo *root, Node *operand, PlannedFilter *filter)
{
	const Param *parameter = (const Param *) operand;
	const SubPlan *subplan;
	const Plan *plan;
	const Aggref *aggref;
	double		rows;

	if (!IsA(operand, Param) || parameter->paramkind != PARAM_EXEC)
		return false;
	subplan = find_init_plan(root, parameter->paramid);
	if (subplan == NULL)
		return false;
	plan = list_nth(root->glob->subplans, subplan->plan_id - 1);
	aggref = returned_aggregate(plan);
	if (aggref == NULL || aggref->aggfilter != NULL || !builds_filter(aggref))
		return false;
	rows = aggregated_rows((const Agg *) plan);
	if (rows < 0 || !read_arguments(aggref, filter))
		return false;
	filter->elements += distinct_elements(list_nth(root->glob->subroots, subplan->plan_id - 1),
										  (Node *) linitial_node(TargetEntry, aggref->args)->expr,
										  rows);
	return true;
}
