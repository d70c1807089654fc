/*
 * link.c
 *		Links running scans and joins with their filters, and removes probes from scans.
 *
 * A condition that always returns true still costs a part of a cheap scan, so probes that
 * do not pay are removed from the condition of the running scan.
 */
#include "pg/pg_compat.h"

#include "catalog/pg_type.h"
#include "executor/execdesc.h"
#include "join/join_filter.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

static bool
is_subplan(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return IsA(node, SubPlan) || IsA(node, AlternativeSubPlan) ||
		expression_tree_walker(node, is_subplan, context);
}

/* The filter of a probe, or NULL: also for a clause that is none. */
static JoinFilter *
filter_of(const EState *estate, Node *clause)
{
	FuncExpr   *probe = as_probe(clause);

	return probe == NULL ? NULL : filter_of_probe(estate, probe);
}

/*
 * The condition without its probes.  If it is only for the time when they are removed, JIT
 * would compile it with the query for nothing.
 */
static ExprState *
init_rest(List *rest, PlanState *scan, bool is_used)
{
	EState	   *estate = scan->state;
	int			jit_flags = estate->es_jit_flags;
	ExprState  *result;

	if (!is_used)
		estate->es_jit_flags = 0;
	result = ExecInitQual(rest, scan);
	estate->es_jit_flags = jit_flags;
	return result;
}

/* Gives a scan the condition that eval_probes() evaluates. */
static void
set_condition(ProbedCondition *condition)
{
	ExprState  *state = makeNode(ExprState);

	state->flags = EEO_FLAG_IS_QUAL;
	state->expr = condition->scan->qual->expr;
	state->parent = condition->scan;
	state->evalfunc = eval_probes;
	state->evalfunc_private = condition;
	condition->scan->qual = state;
}

/*
 * A scan has a condition of ours if it has nothing but probes, or these need more columns
 * than the other clauses, all of which the interpreter would extract before the first
 * clause.  A condition with subplans is not compiled a second time, because their states are
 * listed in the scan's: the calls of the probes stay in it.
 */
bool
needs_own_condition(const List *rest, int last_column)
{
	return rest == NIL || (last_column > last_column_of(rest) && !is_subplan((Node *) rest, NULL));
}

static void
set_conditions(ProbedCondition *condition, List *rest)
{
	int			last_column = 0;
	bool		replaces;

	if (is_subplan((Node *) rest, NULL))
	{
		condition->rest = condition->scan->qual;
		return;
	}
	for (int i = 0; i < condition->nsites; i++)
		last_column = Max(last_column, condition->sites[i].last_column);
	replaces = needs_own_condition(rest, last_column);
	condition->rest = init_rest(rest, condition->scan, replaces);
	if (replaces)
		set_condition(condition);
}

/*
 * The joins are those of Linking.  The way of a filter of whole groups has none, but for a
 * Parallel Hash that is run without workers: it may read on.  A filter whose join is not linked
 * is never used.
 */
static void
link_scan(PlanState *scan, const List *joins)
{
	ProbedCondition *condition = NULL;
	List	   *clauses = scan->plan->qual;
	List	   *rest = NIL;
	ListCell   *cell;

	foreach(cell, clauses)
	{
		JoinFilter *filter = filter_of(scan->state, lfirst(cell));
		ProbeSite  *site;

		if (filter == NULL)
		{
			rest = lappend(rest, lfirst(cell));
			continue;
		}
		if (condition == NULL)
			condition = palloc0(offsetof(ProbedCondition, sites) + list_length(clauses) * sizeof(ProbeSite));
		condition->scan = scan;
		site = &condition->sites[condition->nsites++];
		site->condition = condition;
		site->lower_joins = filter->plan->whole ? NIL : list_copy_tail(joins, filter->depth);
		start_probe(site, filter, as_probe(lfirst(cell)));
	}
	if (condition == NULL)
		return;
	give_sites_to_calls(condition);
	set_conditions(condition, rest);
	for (int i = 0; i < condition->nsites; i++)
	{
		if (condition->sites[i].filter->above == NULL)
			remove_probe(&condition->sites[i]);
	}
}

/*
 * From 18 a scan chooses at its start whether it has a condition, so that one without a
 * rest stays.
 */
void
remove_probe(ProbeSite *site)
{
	ProbedCondition *condition = site->condition;

	Assert(site >= condition->sites && site < condition->sites + condition->nsites);
	site->removed = true;
	for (int i = 0; i < condition->nsites; i++)
	{
		if (!condition->sites[i].removed)
			return;
	}
	if (condition->rest != NULL || SCANS_REREAD_CONDITION)
		condition->scan->qual = condition->rest;
}

typedef struct Linking
{
	bool		runs_again;		/* the whole plan */
	List	   *joins;			/* HashJoinStates, uppermost first */
	Bitmapset **linked;			/* by plan_node_id */
} Linking;

/* Links the node above the build node, without which a filter is never used. */
static FilterBuild *
link_build(PlanState *above, const Linking *linking, int depth)
{
	FilterBuild *build = as_filter_build(outerPlanState(above));

	if (build == NULL || build->filter == NULL || (build->plan.once && linking->runs_again))
		return NULL;
	Assert(IsA(above, HashState) || IsA(above, SortState));
	Assert(build->filter->above == NULL);
	build->filter->above = above;
	build->filter->depth = depth;
	return build;
}

/*
 * A hash join that believes that its outer side is not empty does not read it before it
 * builds: see ExecHashJoin().
 */
static void
link_hash_join(HashJoinState *join, const Linking *linking)
{
	const FilterBuild *build = link_build(innerPlanState(join), linking, list_length(linking->joins));

	if (build != NULL && build->plan.build_first)
		join->hj_OuterNotEmpty = true;
}

/*
 * The joins of a side, for the scans below it.  A join may read an outer row before it
 * builds, and stops if it then finds no inner row, unless it keeps its outer rows.  If the
 * filter of a join above dropped that row, the scan would read on, perhaps all of the table,
 * and conditions could fail for rows that are not read otherwise.
 */
static List *
add_join(List *joins, JoinState *join)
{
	return join->jointype == JOIN_LEFT || join->jointype == JOIN_ANTI ? joins : lappend(list_copy(joins), join);
}

/*
 * Joins before what is below them.  Subplans are behind expressions, where the walker finds
 * them: one that many partitions call has one state, and is found many times.
 */
static bool
link_state(PlanState *state, void *context)
{
	Linking    *linking = context;
	int			id;

	if (state == NULL)
		return false;
	/* 0 is the top of the plan, and perhaps a node of another extension */
	id = Max(0, state->plan->plan_node_id);
	if (id > 0 && bms_is_member(id, *linking->linked))
		return false;
	*linking->linked = bms_add_member(*linking->linked, id);
	link_scan(state, linking->joins);
	if (IsA(state, MergeJoinState))
		link_build(outerPlanState(state), linking, list_length(linking->joins));
	else if (IsA(state, HashJoinState))
	{
		Linking		outer = *linking;

		outer.joins = add_join(linking->joins, (JoinState *) state);
		link_hash_join((HashJoinState *) state, &outer);
		link_state(outerPlanState(state), &outer);
	}
	return planstate_tree_walker(state, link_state, linking);
}

void
link_join_filters(QueryDesc *query, bool runs_again)
{
	MemoryContext caller;
	Bitmapset  *linked = NULL;
	Linking		linking = {.runs_again = runs_again, .linked = &linked};

	if (query->planstate == NULL || !list_member_oid(query->plannedstmt->paramExecTypes, INTERNALOID))
		return;
	caller = MemoryContextSwitchTo(query->estate->es_query_cxt);
	link_state(query->planstate, &linking);
	MemoryContextSwitchTo(caller);
}
