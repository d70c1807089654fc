/*
 * constant_filter.c
 *		What the planner can compute of an operand, once per planning.
 *
 * The planner asks for the selectivity of a condition on a partitioned table
 * once for each partition.  Evaluating a STABLE function and measuring its
 * filter of 12 MB takes milliseconds, so both are done for the first one only.
 */
#include "pg/pg_compat.h"

#include "optimizer/optimizer.h"
#include "planner/constant_filter.h"
#include "utils/memutils.h"

/*
 * What is remembered during one planning, in the memory context of its
 * PlannerGlobal, which identifies it while that context lives.  Plannings nest:
 * a function that is evaluated may plan queries of its own.
 */
typedef struct Planning
{
	struct Planning *next;
	const PlannerGlobal *glob;
	List	   *filters;		/* of EstimatedFilter, those with a value */
	MemoryContextCallback at_end;
} Planning;

static Planning *plannings;

static void
forget_planning(void *planning)
{
	Planning  **link = &plannings;

	while (*link != planning)
		link = &(*link)->next;
	*link = (*link)->next;
}

/* The present planning; what it remembers is allocated in the current memory context. */
static Planning *
find_planning(const PlannerGlobal *glob)
{
	Planning   *planning = plannings;

	while (planning != NULL && planning->glob != glob)
		planning = planning->next;
	if (planning != NULL)
		return planning;
	planning = palloc0(sizeof(*planning));
	planning->glob = glob;
	planning->at_end.func = forget_planning;
	planning->at_end.arg = planning;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &planning->at_end);
	planning->next = plannings;
	plannings = planning;
	return planning;
}

/*
 * The planner's copies of a constant share its bytes, see
 * expression_tree_mutator(), so that the address will do.
 */
static bool
is_same_operand(const Node *a, const Node *b)
{
	if (IsA(a, Const) && IsA(b, Const))
		return ((const Const *) a)->constisnull == ((const Const *) b)->constisnull &&
			((const Const *) a)->constvalue == ((const Const *) b)->constvalue;
	return equal(a, b);
}

static EstimatedFilter *
estimate_once(PlannerInfo *root, Node *operand)
{
	Planning   *planning = find_planning(root->glob);
	EstimatedFilter *estimated;
	ListCell   *cell;

	foreach(cell, planning->filters)
	{
		estimated = lfirst(cell);
		if (is_same_operand(estimated->operand, operand))
			return estimated;
	}
	estimated = palloc0(sizeof(*estimated));
	estimated->value = estimate_expression_value(root, operand);
	if (IsA(estimated->value, Const))
	{
		estimated->operand = IsA(operand, Const) ? estimated->value : copyObject(operand);
		planning->filters = lappend(planning->filters, estimated);
	}
	return estimated;
}

EstimatedFilter *
estimate_filter(PlannerInfo *root, Node *operand)
{
	MemoryContext caller = MemoryContextSwitchTo(GetMemoryChunkContext(root->glob));
	EstimatedFilter *estimated = estimate_once(root, operand);

	MemoryContextSwitchTo(caller);
	return estimated;
}

FilterMeasures
measure_once(EstimatedFilter *estimated, const bf_filter *filter)
{
	if (!estimated->measured)
		estimated->measures = measure_filter(filter);
	estimated->measured = true;
	return estimated->measures;
}
