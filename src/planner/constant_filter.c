/*
 * constant_filter.c
 *		Filters that the planner can evaluate, each once per planner run.
 *
 * The planner asks for the selectivity of a condition once per partition of a
 * table.  Evaluating a STABLE function and measuring its filter takes
 * milliseconds at 12 MB, so the results are kept for the other partitions.
 */
#include "pg/pg_compat.h"

#include "optimizer/optimizer.h"
#include "planner/constant_filter.h"
#include "utils/memutils.h"

/*
 * The filters of one planner run.  Its PlannerGlobal identifies the run, and the
 * struct lives in the same memory context.  Runs nest, because an evaluated
 * function may plan queries of its own.
 */
typedef struct PlannerRun
{
	struct PlannerRun *next;
	const PlannerGlobal *glob;
	List	   *filters;		/* ConstantFilters whose value is a Const */
	MemoryContextCallback at_end;
} PlannerRun;

static PlannerRun *runs;

static void
forget_run(void *run)
{
	PlannerRun **link = &runs;

	while (*link != run)
		link = &(*link)->next;
	*link = (*link)->next;
}

/* Finds or makes the run's entry.  The current context must be that of glob. */
static PlannerRun *
find_run(const PlannerGlobal *glob)
{
	PlannerRun *run = runs;

	while (run != NULL && run->glob != glob)
		run = run->next;
	if (run != NULL)
		return run;
	run = palloc0(sizeof(*run));
	run->glob = glob;
	run->at_end.func = forget_run;
	run->at_end.arg = run;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &run->at_end);
	run->next = runs;
	runs = run;
	return run;
}

/*
 * The planner's copies of a Const share the bytes of its value, see
 * expression_tree_mutator().  Comparing addresses is therefore enough.
 */
static bool
is_same_operand(const Node *a, const Node *b)
{
	if (IsA(a, Const) && IsA(b, Const))
		return ((const Const *) a)->constisnull == ((const Const *) b)->constisnull &&
			((const Const *) a)->constvalue == ((const Const *) b)->constvalue;
	return equal(a, b);
}

static ConstantFilter *
evaluate_once(PlannerInfo *root, Node *operand)
{
	PlannerRun *run = find_run(root->glob);
	ConstantFilter *constant;
	ListCell   *cell;

	foreach(cell, run->filters)
	{
		constant = lfirst(cell);
		if (is_same_operand(constant->operand, operand))
			return constant;
	}
	constant = palloc0(sizeof(*constant));
	constant->value = estimate_expression_value(root, operand);
	if (IsA(constant->value, Const))
	{
		constant->operand = IsA(operand, Const) ? constant->value : copyObject(operand);
		run->filters = lappend(run->filters, constant);
	}
	return constant;
}

ConstantFilter *
evaluate_filter(PlannerInfo *root, Node *operand)
{
	MemoryContext caller = MemoryContextSwitchTo(GetMemoryChunkContext(root->glob));
	ConstantFilter *constant = evaluate_once(root, operand);

	MemoryContextSwitchTo(caller);
	return constant;
}

FilterMeasures
measure_once(ConstantFilter *constant, const bf_filter *filter)
{
	if (!constant->measured)
		constant->measures = measure_filter(filter);
	constant->measured = true;
	return constant->measures;
}
