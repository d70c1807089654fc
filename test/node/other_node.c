/*
 * other_node.c
 *		Another extension's node, for test/t/join_extensions.t.
 *
 * A planner hook puts a custom scan above each sequential scan of a table "halved".  It
 * returns every second row, so which rows it returns depends on those that it reads.
 */
#include "pg/pg_compat.h"

#include "executor/executor.h"
#include "fmgr.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

static Node *create_half(CustomScan *plan);

static const CustomScanMethods plan_methods = {
	.CustomName = "Half",
	.CreateCustomScanState = create_half,
};

static planner_hook_type next_planner;

static void
begin_half(CustomScanState *node, EState *estate, int eflags)
{
	outerPlanState(node) = ExecInitNode(outerPlan(node->ss.ps.plan), estate, eflags);
}

static TupleTableSlot *
exec_half(CustomScanState *node)
{
	TupleTableSlot *slot = ExecProcNode(outerPlanState(node));

	if (!TupIsNull(slot))
		slot = ExecProcNode(outerPlanState(node));
	return TupIsNull(slot) ? NULL : ExecCopySlot(node->ss.ss_ScanTupleSlot, slot);
}

static void
end_half(CustomScanState *node)
{
	ExecEndNode(outerPlanState(node));
}

static void
rescan_half(CustomScanState *node)
{
	ExecReScan(outerPlanState(node));
}

static const CustomExecMethods exec_methods = {
	.CustomName = "Half",
	.BeginCustomScan = begin_half,
	.ExecCustomScan = exec_half,
	.EndCustomScan = end_half,
	.ReScanCustomScan = rescan_half,
};

static Node *
create_half(CustomScan *plan)
{
	CustomScanState *node = makeNode(CustomScanState);

	node->methods = &exec_methods;
	return (Node *) node;
}

static Plan *
make_half(Plan *scan)
{
	CustomScan *half = makeNode(CustomScan);
	ListCell   *cell;

	half->scan.plan = *scan;
	half->scan.plan.type = T_CustomScan;
	half->scan.plan.plan_node_id = 1000000 + scan->plan_node_id;
	half->scan.plan.qual = NIL;
	half->scan.plan.targetlist = NIL;
	half->scan.plan.lefttree = scan;
	half->methods = &plan_methods;
	foreach(cell, scan->targetlist)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, cell);
		TargetEntry *input = flatCopyTargetEntry(entry);
		TargetEntry *output = flatCopyTargetEntry(entry);

		input->expr = (Expr *) makeVarFromTargetEntry(OUTER_VAR, entry);
		output->expr = (Expr *) makeVarFromTargetEntry(INDEX_VAR, entry);
		half->custom_scan_tlist = lappend(half->custom_scan_tlist, input);
		half->scan.plan.targetlist = lappend(half->scan.plan.targetlist, output);
	}
	return &half->scan.plan;
}

static Plan *
halve(PlannedStmt *stmt, Plan *plan)
{
	if (plan == NULL)
		return NULL;
	plan->lefttree = halve(stmt, plan->lefttree);
	plan->righttree = halve(stmt, plan->righttree);
	if (!IsA(plan, SeqScan) ||
		strcmp(get_rel_name(rt_fetch(((Scan *) plan)->scanrelid, stmt->rtable)->relid), "halved") != 0)
		return plan;
	return make_half(plan);
}

static PlannedStmt *
plan_with_halves(PLANNER_PARAMETERS)
{
	PlannedStmt *stmt = (next_planner ? next_planner : standard_planner) (PLANNER_ARGUMENTS);

	stmt->planTree = halve(stmt, stmt->planTree);
	return stmt;
}

void
_PG_init(void)
{
	RegisterCustomScanMethods(&plan_methods);
	next_planner = planner_hook;
	planner_hook = plan_with_halves;
}
