/*
 * plan_tree.c
 *		Questions about finished plans, which the server has no walker for.
 */
#include "pg/pg_compat.h"

#include "access/sysattr.h"
#include "access/transam.h"
#include "catalog/pg_am.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "join/join_filter.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "pg/index_method.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* Does a plan read rows here that are no other plan's: of a table, a function, a CTE? */
bool
is_local_scan(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_FunctionScan:
		case T_TableFuncScan:
		case T_ValuesScan:
		case T_CteScan:
		case T_WorkTableScan:
		case T_NamedTuplestoreScan:
			return true;
		default:
			return false;
	}
}

/* The children of a plan; not the plans behind its subplans and InitPlans. */
List *
child_plans(const Plan *plan)
{
	List	   *result = NIL;

	switch (nodeTag(plan))
	{
		case T_Append:
			result = list_copy(((const Append *) plan)->appendplans);
			break;
		case T_MergeAppend:
			result = list_copy(((const MergeAppend *) plan)->mergeplans);
			break;
		case T_BitmapAnd:
			result = list_copy(((const BitmapAnd *) plan)->bitmapplans);
			break;
		case T_BitmapOr:
			result = list_copy(((const BitmapOr *) plan)->bitmapplans);
			break;
		case T_SubqueryScan:
			result = list_make1(((const SubqueryScan *) plan)->subplan);
			break;
		case T_CustomScan:
			result = list_copy(((const CustomScan *) plan)->custom_plans);
			break;
		default:
			break;
	}
	if (plan->lefttree != NULL)
		result = lappend(result, plan->lefttree);
	if (plan->righttree != NULL)
		result = lappend(result, plan->righttree);
	return result;
}

/* What a walk over a subtree looks for. */
typedef struct Search
{
	const PlannedStmt *stmt;
	bool		any_change;		/* also what may differ when it is run again */
	Bitmapset **clean;			/* subplans without anything volatile */
} Search;

static bool find_in_plan(const Search *search, const Plan *plan);

/*
 * contain_volatile_functions() does not look into the plans of subplans.  A subplan is
 * numbered from 1; the planner leaves NULL for those that it dropped.  Many partitions may
 * call the same one.
 */
static bool
find_in_subplan(const Search *search, int plan_id)
{
	const Plan *plan = list_nth(search->stmt->subplans, plan_id - 1);

	Assert(!search->any_change);
	if (plan == NULL || bms_is_member(plan_id, *search->clean))
		return false;
	if (find_in_plan(search, plan))
		return true;
	*search->clean = bms_add_member(*search->clean, plan_id);
	return false;
}

static bool
find_subplan(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) && find_in_subplan(context, ((SubPlan *) node)->plan_id))
		return true;
	return expression_tree_walker(node, find_subplan, context);
}

/*
 * May a function return something else for the same arguments?  Output functions and
 * quote_ident() count as immutable, but read settings: extra_float_digits, bytea_output,
 * IntervalStyle, quote_all_identifiers.
 */
static bool
is_changing_function(Oid function, void *context)
{
	return func_volatile(function) != PROVOLATILE_IMMUTABLE || function == F_QUOTE_IDENT ||
		get_func_rettype(function) == CSTRINGOID;
}

/*
 * May an expression of columns differ between two runs for the same row?  A list of nodes that
 * do not, with immutable functions: a setting may change while a cursor is open.  Others may
 * update or lock the row meanwhile, which some system columns show.
 */
static bool
find_change(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
			return ((const Var *) node)->varattno < 0 &&
				((const Var *) node)->varattno != SelfItemPointerAttributeNumber &&
				((const Var *) node)->varattno != TableOidAttributeNumber;
		case T_List:
		case T_TargetEntry:
		case T_Const:
		case T_Param:
		case T_RelabelType:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
		case T_FuncExpr:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
		case T_MinMaxExpr:
		case T_ArrayExpr:
		case T_RangeTblFunction:
			return check_functions_in_node(node, is_changing_function, NULL) ||
				expression_tree_walker(node, find_change, context);
		default:
			return true;
	}
}

static bool
find_in_expression(const Search *search, const void *expression)
{
	Node	   *node = (Node *) expression;

	if (search->any_change)
		return find_change(node, NULL);
	return contain_volatile_functions(node) || find_subplan(node, (void *) search);
}

/* Those of a scan, beside target list and qual.  What a CustomScan does is in its private data. */
static bool
find_in_scan(const Search *search, const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_SampleScan:
			return find_in_expression(search, ((const SampleScan *) plan)->tablesample);
		case T_IndexScan:
			return find_in_expression(search, ((const IndexScan *) plan)->indexqual) ||
				find_in_expression(search, ((const IndexScan *) plan)->indexorderby);
		case T_IndexOnlyScan:
			return find_in_expression(search, ((const IndexOnlyScan *) plan)->indexqual) ||
				find_in_expression(search, ((const IndexOnlyScan *) plan)->indexorderby);
		case T_BitmapIndexScan:
			return find_in_expression(search, ((const BitmapIndexScan *) plan)->indexqual);
		case T_BitmapHeapScan:
			return find_in_expression(search, ((const BitmapHeapScan *) plan)->bitmapqualorig);
		case T_TidScan:
			return find_in_expression(search, ((const TidScan *) plan)->tidquals);
		case T_TidRangeScan:
			return find_in_expression(search, ((const TidRangeScan *) plan)->tidrangequals);
		case T_FunctionScan:
			return find_in_expression(search, ((const FunctionScan *) plan)->functions);
		case T_TableFuncScan:
			return find_in_expression(search, ((const TableFuncScan *) plan)->tablefunc);
		case T_ValuesScan:
			return find_in_expression(search, ((const ValuesScan *) plan)->values_lists);
		case T_CteScan:
			/* its rows are kept until its parameters change */
			return !search->any_change && find_in_subplan(search, ((const CteScan *) plan)->ctePlanId);
		case T_ForeignScan:
			return find_in_expression(search, ((const ForeignScan *) plan)->fdw_exprs);
		case T_SeqScan:
		case T_SubqueryScan:
		case T_WorkTableScan:
		case T_NamedTuplestoreScan:
			return false;
		default:
			return true;
	}
}

/*
 * The expressions of a plan beside target list and qual.  True for an unknown node, and for
 * LockRows: a filter would leave it fewer rows to lock.
 */
static bool
find_in_node(const Search *search, const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Result:
			return find_in_expression(search, ((const Result *) plan)->resconstantqual);
		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
			return find_in_expression(search, ((const Join *) plan)->joinqual) ||
				(IsA(plan, HashJoin) && find_in_expression(search, ((const HashJoin *) plan)->hashclauses)) ||
				(IsA(plan, MergeJoin) && find_in_expression(search, ((const MergeJoin *) plan)->mergeclauses));
		case T_WindowAgg:
			return find_in_expression(search, ((const WindowAgg *) plan)->startOffset) ||
				find_in_expression(search, ((const WindowAgg *) plan)->endOffset) ||
				find_in_expression(search, ((const WindowAgg *) plan)->runCondition);
		case T_Limit:
			return find_in_expression(search, ((const Limit *) plan)->limitOffset) ||
				find_in_expression(search, ((const Limit *) plan)->limitCount);
		case T_Memoize:
			return find_in_expression(search, ((const Memoize *) plan)->param_exprs);
		case T_Gather:
		case T_GatherMerge:
		case T_ProjectSet:
		case T_Append:
		case T_MergeAppend:
		case T_RecursiveUnion:
		case T_BitmapAnd:
		case T_BitmapOr:
		case T_Material:
		case T_Sort:
		case T_IncrementalSort:
		case T_Group:
		case T_Agg:
		case T_Unique:
		case T_Hash:
		case T_SetOp:
			return false;
		default:
			return find_in_scan(search, plan);
	}
}

/* Catalogs and sequences have rows that are updated in place: no snapshot keeps what it saw. */
static bool
is_steady_table(const PlannedStmt *stmt, const Plan *scan)
{
	const RangeTblEntry *entry = rt_fetch(((const Scan *) scan)->scanrelid, stmt->rtable);

	return entry->relid >= FirstNormalObjectId && access_method_of(entry->relid) == HEAP_TABLE_AM_OID;
}

/* GIN returns some of the rows, by gin_fuzzy_search_limit.  Nothing is known of others' methods. */
static bool
is_steady_index(Oid index)
{
	switch (access_method_of(index))
	{
		case BTREE_AM_OID:
		case HASH_AM_OID:
		case GIST_AM_OID:
		case SPGIST_AM_OID:
		case BRIN_AM_OID:
			return true;
		default:
			return false;
	}
}

/*
 * Does a node return the same rows at each run, if its inputs do?  Their order may change: a
 * sort of equal keys depends on work_mem and on what filters below have dropped, a hash join
 * on the number of its batches, an index on what was inserted since, and workers on chance.
 * So the list has no node that depends on the order, as LIMIT, DISTINCT ON, window functions,
 * sums of floats, and groups, which show one of several equal values.  Samples and foreign
 * scans return what others decide.
 */
static bool
is_repeatable(const PlannedStmt *stmt, const Plan *plan)
{
	if (plan->initPlan != NIL)
		return false;
	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
			return is_steady_table(stmt, plan);
		case T_IndexScan:
			return is_steady_table(stmt, plan) && is_steady_index(((const IndexScan *) plan)->indexid);
		case T_IndexOnlyScan:
			return is_steady_table(stmt, plan) && is_steady_index(((const IndexOnlyScan *) plan)->indexid);
		case T_BitmapIndexScan:
			return is_steady_index(((const BitmapIndexScan *) plan)->indexid);
		case T_Result:
		case T_Append:
		case T_MergeAppend:
		case T_BitmapAnd:
		case T_BitmapOr:
		case T_FunctionScan:
		case T_ValuesScan:
		case T_SubqueryScan:
		case T_CteScan:
		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
		case T_Material:
		case T_Memoize:
		case T_Sort:
		case T_IncrementalSort:
		case T_Hash:
		case T_Gather:
		case T_GatherMerge:
			return true;
		default:
			return false;
	}
}

static bool
find_in_plan(const Search *search, const Plan *plan)
{
	List	   *children;
	ListCell   *cell;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if ((search->any_change && !is_repeatable(search->stmt, plan)) ||
		find_in_expression(search, plan->targetlist) || find_in_expression(search, plan->qual) ||
		find_in_node(search, plan))
		return true;
	foreach(cell, plan->initPlan)
	{
		if (find_subplan(lfirst(cell), (void *) search))
			return true;
	}
	children = child_plans(plan);
	foreach(cell, children)
	{
		if (find_in_plan(search, lfirst(cell)))
			return true;
	}
	list_free(children);
	return false;
}

static bool
is_leaky(Oid function, void *context)
{
	return !get_func_leakproof(function);
}

/* May an expression raise an error?  A leakproof function raises none. */
static bool
may_raise(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_List:
		case T_TargetEntry:
		case T_Var:
		case T_Const:
		case T_Param:
		case T_RelabelType:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_OpExpr:
		case T_ScalarArrayOpExpr:
		case T_FuncExpr:
			return check_functions_in_node(node, is_leaky, NULL) ||
				expression_tree_walker(node, may_raise, context);
		default:
			return true;
	}
}

/* Is a plan the scan of a table, perhaps by workers, that raises no error of any row? */
bool
is_harmless_scan(const Plan *plan)
{
	const Plan *scan = IsA(plan, Gather) ? outerPlan(plan) : plan;
	const void *condition = NULL;

	switch (nodeTag(scan))
	{
		case T_SeqScan:
			break;
		case T_IndexScan:
			condition = ((const IndexScan *) scan)->indexqualorig;
			break;
		case T_IndexOnlyScan:
			condition = ((const IndexOnlyScan *) scan)->indexqual;
			break;
		case T_BitmapHeapScan:
			condition = ((const BitmapHeapScan *) scan)->bitmapqualorig;
			break;
		default:
			return false;
	}
	return bms_is_empty(plan->allParam) && !may_raise((Node *) condition, NULL) &&
		!may_raise((Node *) plan->targetlist, NULL) && !may_raise((Node *) scan->targetlist, NULL) &&
		!may_raise((Node *) scan->qual, NULL);
}

/*
 * Is the side of a merge join sorted, so that its scans are read to their end?  The join
 * itself ends where one of the sides ends, or goes beyond the other one's keys.  A filter
 * that drops the rows beyond would let a scan in the order of the keys go on to rows that
 * it would not read otherwise, which may be many, and may raise errors.
 */
bool
is_sorted(const Plan *side)
{
	return IsA(side, Sort) || (IsA(side, Material) && IsA(outerPlan(side), Sort));
}

/* Is anything volatile in a subtree, or unknown? */
bool
has_volatile_subtree(const PlannedStmt *stmt, const Plan *plan)
{
	Bitmapset  *clean = NULL;
	Search		search = {.stmt = stmt, .clean = &clean};

	return find_in_plan(&search, plan);
}

/*
 * May a subtree return other rows when it is run again with the same parameters?  It may
 * unless every node and every expression of it is known to repeat.
 */
bool
may_change(const PlannedStmt *stmt, const Plan *plan)
{
	Search		search = {.stmt = stmt, .any_change = true};

	return find_in_plan(&search, plan);
}

/* Does a plan run this child again for its own reasons?  Another extension's node may. */
bool
reruns_child(const Plan *plan, const Plan *child)
{
	switch (nodeTag(plan))
	{
		case T_NestLoop:
		case T_RecursiveUnion:
			return child == innerPlan(plan);
		case T_CustomScan:
		case T_ForeignScan:
			return true;
		default:
			return false;
	}
}
