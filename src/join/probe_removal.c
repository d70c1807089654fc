/*
 * probe_removal.c
 *		Links between scans and the filters that they probe, and their end.
 *
 * A call that always returns true still costs a tenth of a cheap scan, so a probe that
 * does not pay is removed from the condition of the running scan.
 */
#include "pg/pg_compat.h"

#include "catalog/pg_type.h"
#include "executor/execdesc.h"
#include "jit/jit.h"
#include "join/join_filter.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/memutils.h"

static bool
is_subplan(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return IsA(node, SubPlan) || IsA(node, AlternativeSubPlan) ||
		expression_tree_walker(node, is_subplan, context);
}

/*
 * Can the rest of a condition be compiled a second time?  Not with subplans, whose states
 * are listed in the scan's, nor with volatile functions, which may keep a state.
 */
static bool
is_removable(List *condition)
{
	return !is_subplan((Node *) condition, NULL) && !contain_volatile_functions((Node *) condition);
}

/* Is a clause a probe that has been removed? */
static bool
is_removed(EState *estate, Node *clause)
{
	FuncExpr   *probe = as_probe(clause);
	JoinFilter *filter;
	ListCell   *cell;

	if (probe == NULL)
		return false;
	filter = (JoinFilter *)
		DatumGetPointer(estate->es_param_exec_vals[linitial_node(Param, probe->args)->paramid].value);
	foreach(cell, filter == NULL ? NIL : filter->probes)
	{
		ProbeSite  *site = lfirst(cell);

		if (site->clause == clause)
			return site->removed;
	}
	return false;
}

/*
 * The executor checks the right to execute functions when it compiles a condition.  Another
 * role than the one that opened a cursor may fetch from it, and need not have that right.
 */
bool
can_remove_probe(const ProbeSite *site)
{
	return site->scan != NULL && !site->removed && site->role == GetUserId();
}

/*
 * Compiles the scan's condition without the probe.  The executor evaluates the old one to
 * its end, so that is not freed.  JIT compilation would cost more than it could gain, as
 * for VALUES in nodeValuesscan.c.
 */
void
remove_probe(ProbeSite *site)
{
	PlanState  *scan = site->scan;
	MemoryContext caller = MemoryContextSwitchTo(scan->state->es_query_cxt);
	int			jit_flags = scan->state->es_jit_flags;
	List	   *condition = NIL;
	ListCell   *cell;

	site->removed = true;
	foreach(cell, scan->plan->qual)
	{
		if (!is_removed(scan->state, lfirst(cell)))
			condition = lappend(condition, lfirst(cell));
	}
	if (condition == NIL && !SCANS_REREAD_CONDITION)
		condition = list_make1(makeBoolConst(true, false));
	scan->state->es_jit_flags = PGJIT_NONE;
	scan->qual = ExecInitQual(condition, scan);
	scan->state->es_jit_flags = jit_flags;
	MemoryContextSwitchTo(caller);
}

static void
link_probe(PlanState *scan, FuncExpr *probe)
{
	Param	   *parameter = linitial_node(Param, probe->args);
	JoinFilter *filter = (JoinFilter *) DatumGetPointer(scan->state->es_param_exec_vals[parameter->paramid].value);
	ProbeSite  *site;

	if (filter == NULL)
		return;
	site = get_probe_site(filter, (Node *) probe);
	site->scan = is_removable(scan->plan->qual) ? scan : NULL;
	site->role = GetUserId();
}

/* Links the node above the build node, without which a filter is never used. */
static FilterBuild *
link_build(PlanState *above)
{
	FilterBuild *build = as_filter_build(outerPlanState(above));

	if (build == NULL || build->filter == NULL)
		return NULL;
	build->filter->hash = above;
	return build;
}

/*
 * A hash join that believes that its outer side is not empty does not read it before it
 * builds: see ExecHashJoin().
 */
static void
link_join(JoinState *join)
{
	if (IsA(join, HashJoinState))
	{
		const FilterBuild *build = link_build(innerPlanState(join));

		if (build != NULL && build->plan.build_first)
			((HashJoinState *) join)->hj_OuterNotEmpty = true;
	}
	else if (IsA(join, MergeJoinState))
		link_build(outerPlanState(join));
}

static bool
link_state(PlanState *state, void *context)
{
	ListCell   *cell;

	if (state == NULL)
		return false;
	if (IsA(state, HashJoinState) || IsA(state, MergeJoinState))
		link_join((JoinState *) state);
	foreach(cell, state->plan->qual)
	{
		FuncExpr   *probe = as_probe(lfirst(cell));

		if (probe != NULL)
			link_probe(state, probe);
	}
	return planstate_tree_walker(state, link_state, context);
}

/* Subplans are behind expressions, where planstate_tree_walker() finds them, too. */
void
link_join_filters(QueryDesc *query)
{
	MemoryContext caller;

	if (query->planstate == NULL || !list_member_oid(query->plannedstmt->paramExecTypes, INTERNALOID))
		return;
	caller = MemoryContextSwitchTo(query->estate->es_query_cxt);
	link_state(query->planstate, NULL);
	MemoryContextSwitchTo(caller);
}
