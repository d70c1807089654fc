/*
 * build.c
 *		The build node: a custom scan between a Hash or Sort and its child.
 *
 * It returns the slots of its child as they are, and adds their keys to the filter.  Only
 * when the child has returned its last row, the filter begins to drop rows.
 */
#include "pg/pg_compat.h"

#include "access/parallel.h"
#include "executor/nodeCustom.h"
#include "join/join_filter.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"

#define BUILD_NAME	"Bloom Join Filter"

static Node *create_build(CustomScan *plan);
static void begin_build(CustomScanState *node, EState *estate, int eflags);
static TupleTableSlot *exec_build(CustomScanState *node);
static void end_build(CustomScanState *node);
static void rescan_build(CustomScanState *node);
static Size estimate_build(CustomScanState *node, ParallelContext *context);
static void initialize_build(CustomScanState *node, ParallelContext *context, void *shared);
static void reinitialize_build(CustomScanState *node, ParallelContext *context, void *shared);
static void initialize_build_worker(CustomScanState *node, shm_toc *toc, void *shared);
static void shutdown_build(CustomScanState *node);

/* Plans find these by their name, so that a plan can be copied and sent to workers. */
static const CustomScanMethods plan_methods = {
	.CustomName = BUILD_NAME,
	.CreateCustomScanState = create_build,
};

static const CustomExecMethods exec_methods = {
	.CustomName = BUILD_NAME,
	.BeginCustomScan = begin_build,
	.ExecCustomScan = exec_build,
	.EndCustomScan = end_build,
	.ReScanCustomScan = rescan_build,
	.EstimateDSMCustomScan = estimate_build,
	.InitializeDSMCustomScan = initialize_build,
	.ReInitializeDSMCustomScan = reinitialize_build,
	.InitializeWorkerCustomScan = initialize_build_worker,
	.ShutdownCustomScan = shutdown_build,
	.ExplainCustomScan = explain_filter_build,
};

void
register_filter_build(void)
{
	RegisterCustomScanMethods(&plan_methods);
}

FilterBuild *
as_filter_build(PlanState *state)
{
	if (state == NULL || !IsA(state, CustomScanState) || ((CustomScanState *) state)->methods != &exec_methods)
		return NULL;
	return (FilterBuild *) state;
}

/*
 * A FilterPlan as a list that plans can hold, and back.
 */

static List *
list_of_plan(const FilterPlan *plan)
{
	List	   *numbers = list_make5_int(plan->parameter, plan->rows, plan->most_passing,
										 plan->once, plan->whole);

	numbers = lappend_int(lappend_int(numbers, plan->build_first), plan->loops);
	return list_make4(numbers, plan->outer_hashes, plan->inner_hashes, plan->collations);
}

FilterPlan
plan_of_passing_scan(const CustomScan *plan)
{
	List	   *list = plan->custom_private;
	List	   *numbers = linitial(list);
	FilterPlan	result = {
		.parameter = linitial_int(numbers),
		.rows = lsecond_int(numbers),
		.most_passing = lthird_int(numbers),
		.once = lfourth_int(numbers),
		.whole = list_nth_int(numbers, 4),
		.build_first = list_nth_int(numbers, 5),
		.loops = list_nth_int(numbers, 6),
		.outer_hashes = lsecond(list),
		.inner_hashes = lthird(list),
		.collations = lfourth(list),
	};

	return result;
}

/* A target list that returns another one's columns as they are. */
static List *
passing_targets(List *targets, int varno)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, targets)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, cell);
		Var		   *column = makeVarFromTargetEntry(varno, entry);

		result = lappend(result, makeTargetEntry((Expr *) column, entry->resno, entry->resname, entry->resjunk));
	}
	return result;
}

/* The caller sets plan_node_id.  Parameters are the child's: the filter's is none of them. */
CustomScan *
make_passing_scan(Plan *child, const FilterPlan *filter, const CustomScanMethods *methods)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *plan = &scan->scan.plan;

	plan->startup_cost = child->startup_cost;
	plan->total_cost = child->total_cost;
	plan->plan_rows = child->plan_rows;
	plan->plan_width = child->plan_width;
	copy_disabled_nodes(plan, child);
	plan->parallel_safe = child->parallel_safe;
	plan->extParam = bms_copy(child->extParam);
	plan->allParam = bms_copy(child->allParam);
	plan->lefttree = child;
	plan->targetlist = passing_targets(child->targetlist, INDEX_VAR);
	scan->custom_scan_tlist = passing_targets(child->targetlist, OUTER_VAR);
	scan->custom_private = list_of_plan(filter);
	scan->methods = methods;
	return scan;
}

CustomScan *
make_filter_build(Plan *child, const FilterPlan *filter, List *keys)
{
	CustomScan *build = make_passing_scan(child, filter, &plan_methods);

	build->custom_exprs = copyObject(keys);
	return build;
}

static Node *
create_build(CustomScan *plan)
{
	FilterBuild *build = (FilterBuild *) newNode(sizeof(FilterBuild), T_CustomScanState);

	build->css.methods = &exec_methods;
	build->plan = plan_of_passing_scan(plan);
	return (Node *) build;
}

/*
 * The executor promises to the parent that a custom scan returns virtual tuples.  This one
 * returns the child's slots.
 */
void
begin_passing_scan(CustomScanState *node, EState *estate, int eflags)
{
	PlanState  *child = ExecInitNode(outerPlan(node->ss.ps.plan), estate, eflags);

	outerPlanState(node) = child;
	node->ss.ps.resultops = ExecGetResultSlotOps(child, &node->ss.ps.resultopsfixed);
	node->ss.ps.resultopsset = true;
}

static void
begin_build(CustomScanState *node, EState *estate, int eflags)
{
	FilterBuild *build = (FilterBuild *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	ParamExecData *parameter = &estate->es_param_exec_vals[build->plan.parameter];

	Assert(parameter->execPlan == NULL);
	begin_passing_scan(node, estate, eflags);
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) || estate->es_epq_active != NULL)
		return;
	build->filter = create_join_filter(&build->plan, estate);
	build->collecting = true;
	build->last_column = prepare_keys(build->keys, &build->plan, false, plan->custom_exprs);
	parameter->value = PointerGetDatum(build->filter);
	parameter->isnull = false;
}

/* Hash functions may leave memory behind. */
static void
add_row(FilterBuild *build, TupleTableSlot *slot)
{
	ExprContext *econtext = build->css.ss.ps.ps_ExprContext;
	MemoryContext caller;
	uint64		key;

	slot_getsomeattrs(slot, build->last_column);
	ResetExprContext(econtext);
	caller = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	if (take_keys(build->filter, build->keys, slot, &key))
		add_to_join_filter(build->filter, key);
	MemoryContextSwitchTo(caller);
}

/* Processes that share a filter collect for each other. */
static bool
has_reader(const JoinFilter *filter)
{
	return filter->probes != NIL || filter->shared != NULL;
}

static TupleTableSlot *
exec_build(CustomScanState *node)
{
	FilterBuild *build = (FilterBuild *) node;
	TupleTableSlot *slot = ExecProcNode(outerPlanState(node));

	if (!build->collecting || build->filter == NULL || build->filter->above == NULL || !has_reader(build->filter))
		return slot;
	if (TupIsNull(slot))
	{
		finish_join_filter(build->filter);
		build->collecting = false;
	}
	else if (!build->filter->given_up)
		add_row(build, slot);
	return slot;
}

/* What participants share is emptied before they start anew, so all add their rows again. */
static void
collect_shared(FilterBuild *build)
{
	Assert(build->filter->shared != NULL);
	build->collecting = true;
	build->filter->keys = 0;
	build->filter->nstaged = 0;
}

/* Is there a scan that has not removed its probe? */
static bool
is_probed(const JoinFilter *filter)
{
	ListCell   *cell;

	foreach(cell, filter->probes)
	{
		if (!((const ProbeSite *) lfirst(cell))->removed)
			return true;
	}
	return false;
}

/*
 * The inner side is read anew, and so is the filter built.  One that filters groups keeps
 * what it has, since its inner side cannot change, unless only a part of it was read.
 */
static void
rescan_build(CustomScanState *node)
{
	FilterBuild *build = (FilterBuild *) node;

	/* rows that nodes keep may lack those that match now */
	if (build->plan.once && build->filter != NULL && build->filter->above != NULL)
		elog(ERROR, "join filter $%d is built again", build->plan.parameter);
	if (build->filter != NULL && build->filter->shared != NULL)
		collect_shared(build);
	else if (build->filter != NULL && (build->collecting || !build->plan.whole))
	{
		build->collecting = is_probed(build->filter);
		if (build->collecting)
			start_join_filter(build->filter);
	}
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

/* What a worker has counted must be there when the executor reports it to the leader. */
static void
shutdown_build(CustomScanState *node)
{
	FilterBuild *build = (FilterBuild *) node;

	if (build->filter == NULL)
		return;
	detach_shared_filter(build->filter);
	if (IsParallelWorker() && node->ss.ps.instrument != NULL)
		store_figures(node->ss.ps.instrument, count_probes(build->filter));
}

static void
end_build(CustomScanState *node)
{
	FilterBuild *build = (FilterBuild *) node;

	if (build->filter != NULL)
	{
		detach_shared_filter(build->filter);
		start_join_filter(build->filter);
	}
	ExecEndNode(outerPlanState(node));
}

/*
 * Below a Parallel Hash.  The executor calls these only for nodes that are parallel_aware.
 * If the server has no segment of shared memory left, the leader runs the join alone, as a
 * Hash of its own: then the filter stays one of local memory.
 */

static Size
estimate_build(CustomScanState *node, ParallelContext *context)
{
	return shared_filter_size(((FilterBuild *) node)->filter, context->nworkers + 1);
}

static void
initialize_build(CustomScanState *node, ParallelContext *context, void *shared)
{
	FilterBuild *build = (FilterBuild *) node;

	if (context->seg == NULL)
		return;
	initialize_shared_filter(build->filter, shared, context->nworkers + 1);
	collect_shared(build);
}

static void
reinitialize_build(CustomScanState *node, ParallelContext *context, void *shared)
{
	FilterBuild *build = (FilterBuild *) node;

	if (build->filter->shared == NULL)
		return;
	reset_shared_filter(shared);
	collect_shared(build);
}

static void
initialize_build_worker(CustomScanState *node, shm_toc *toc, void *shared)
{
	attach_shared_filter(((FilterBuild *) node)->filter, shared);
}
