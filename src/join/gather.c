/*
 * gather.c
 *		The copy node: a custom scan between a Gather or Gather Merge node and its child.
 *
 * It returns the slots of its child as they are.  The child runs in workers, too, which do
 * not see the filter of a join above the Gather.  So the leader copies the filter into
 * shared memory when it is complete, and each worker has a filter of its own that reads
 * the copy.  The leader's own scans probe the filter itself.
 *
 * The filter is copied once, so its inner side must not change.  Workers may start before
 * it is complete, because a join may look for a first outer row before it reads its inner
 * side.  Then they pass all rows until the copy arrives: no more than their queues hold,
 * since the leader reads its inner side meanwhile.
 */
#include "pg/pg_compat.h"

#include "access/parallel.h"
#include "join/join_filter.h"

#define COPY_NAME	"Bloom Join Filter Copy"

static Node *create_copy(CustomScan *plan);
static void begin_copy(CustomScanState *node, EState *estate, int eflags);
static TupleTableSlot *exec_copy(CustomScanState *node);
static void end_copy(CustomScanState *node);
static void rescan_copy(CustomScanState *node);
static Size estimate_copy(CustomScanState *node, ParallelContext *context);
static void initialize_copy(CustomScanState *node, ParallelContext *context, void *shared);
static void initialize_copy_worker(CustomScanState *node, shm_toc *toc, void *shared);
static void shutdown_copy(CustomScanState *node);

static const CustomScanMethods plan_methods = {
	.CustomName = COPY_NAME,
	.CreateCustomScanState = create_copy,
};

static const CustomExecMethods exec_methods = {
	.CustomName = COPY_NAME,
	.BeginCustomScan = begin_copy,
	.ExecCustomScan = exec_copy,
	.EndCustomScan = end_copy,
	.ReScanCustomScan = rescan_copy,
	.EstimateDSMCustomScan = estimate_copy,
	.InitializeDSMCustomScan = initialize_copy,
	.InitializeWorkerCustomScan = initialize_copy_worker,
	.ShutdownCustomScan = shutdown_copy,
	.ExplainCustomScan = explain_filter_copy,
};

void
register_filter_copy(void)
{
	RegisterCustomScanMethods(&plan_methods);
}

bool
is_filter_copy(const Plan *plan)
{
	return IsA(plan, CustomScan) && ((const CustomScan *) plan)->methods == &plan_methods;
}

/* The executor gives shared memory to nodes that are parallel_aware. */
CustomScan *
make_filter_copy(Plan *child, const FilterPlan *filter)
{
	CustomScan *copy = make_passing_scan(child, filter, &plan_methods);

	copy->scan.plan.parallel_aware = true;
	return copy;
}

static Node *
create_copy(CustomScan *plan)
{
	FilterCopy *copy = (FilterCopy *) newNode(sizeof(FilterCopy), T_CustomScanState);

	copy->css.methods = &exec_methods;
	copy->plan = plan_of_passing_scan(plan);
	return (Node *) copy;
}

/* In the leader the build node sets the parameter. */
static ParamExecData *
parameter_of(const FilterCopy *copy)
{
	return &copy->css.ss.ps.state->es_param_exec_vals[copy->plan.parameter];
}

static JoinFilter *
filter_of(const FilterCopy *copy)
{
	return (JoinFilter *) DatumGetPointer(parameter_of(copy)->value);
}

/*
 * A worker has no Hash node whose parameters could change: this node, on top of its plan,
 * takes its place.
 */
static void
begin_copy(CustomScanState *node, EState *estate, int eflags)
{
	FilterCopy *copy = (FilterCopy *) node;
	JoinFilter *filter;

	begin_passing_scan(node, estate, eflags);
	if (!IsParallelWorker())
		return;
	filter = create_join_filter(&copy->plan, estate);
	filter->above = &node->ss.ps;
	parameter_of(copy)->value = PointerGetDatum(filter);
}

static TupleTableSlot *
exec_copy(CustomScanState *node)
{
	return ExecProcNode(outerPlanState(node));
}

static void
rescan_copy(CustomScanState *node)
{
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

static Size
estimate_copy(CustomScanState *node, ParallelContext *context)
{
	return filter_copy_size(filter_of((FilterCopy *) node));
}

/* Without a segment of shared memory there are no workers. */
static void
initialize_copy(CustomScanState *node, ParallelContext *context, void *shared)
{
	FilterCopy *copy = (FilterCopy *) node;
	JoinFilter *filter = filter_of(copy);
	MemoryContext caller;

	if (context->seg == NULL)
		return;
	copy->shared = shared;
	initialize_filter_copy(filter, shared);
	caller = MemoryContextSwitchTo(node->ss.ps.state->es_query_cxt);
	filter->copies = list_append_unique_ptr(filter->copies, copy);
	MemoryContextSwitchTo(caller);
}

static void
initialize_copy_worker(CustomScanState *node, shm_toc *toc, void *shared)
{
	JoinFilter *filter = filter_of((FilterCopy *) node);

	filter->awaited = shared;
	receive_filter_copy(filter);
}

/* The memory may be gone after this.  What a worker has counted must be in the node by now. */
static void
shutdown_copy(CustomScanState *node)
{
	FilterCopy *copy = (FilterCopy *) node;
	JoinFilter *filter = filter_of(copy);

	copy->shared = NULL;
	if (!IsParallelWorker() || filter == NULL)
		return;
	detach_shared_filter(filter);
	filter->awaited = NULL;
	if (node->ss.ps.instrument != NULL)
		store_figures(node->ss.ps.instrument, count_probes(filter));
}

static void
end_copy(CustomScanState *node)
{
	shutdown_copy(node);
	ExecEndNode(outerPlanState(node));
}
