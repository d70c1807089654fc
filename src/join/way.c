/*
 * way.c
 *		The way from a join down its outer side, to the scans that can drop rows.
 *
 * A node lets a filter pass only if dropping input rows with certain keys does the same
 * as dropping its output rows with these keys.  Nodes that are not listed here stop it.
 *
 * The way never enters InitPlans, subplans or the plan of a CTE, whose rows others may
 * read, too.
 */
#include "pg/pg_compat.h"

#include "access/htup_details.h"
#include "join/join_filter.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

/* How many of a plan's rows a filter reaches. */
typedef enum Reach
{
	REACHES_NONE,
	REACHES_SOME,
	REACHES_ALL
} Reach;

static Reach descend(Way *way, Plan *plan, List *keys);

Var *
plain_column(Node *expression)
{
	while (expression != NULL && IsA(expression, RelabelType))
		expression = (Node *) ((RelabelType *) expression)->arg;
	if (expression == NULL || !IsA(expression, Var) || ((Var *) expression)->varattno <= 0)
		return NULL;
	return (Var *) expression;
}

static bool
find_last_column(Node *node, void *context)
{
	int		   *last = context;

	if (node == NULL || IsA(node, SubPlan))
		return false;
	if (IsA(node, Var))
	{
		int			column = ((const Var *) node)->varattno;

		*last = Max(*last, column == 0 ? MaxTupleAttributeNumber : column);
	}
	return expression_tree_walker(node, find_last_column, context);
}

int
last_column_of(const List *clauses)
{
	int			result = 0;

	find_last_column((Node *) clauses, &result);
	return result;
}

List *
through_targets(const Plan *plan, List *keys)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, keys)
	{
		Node	   *key = copyObject(lfirst(cell));
		Var		   *column = plain_column(key);
		TargetEntry *target = get_tle_by_resno(plan->targetlist, column->varattno);
		Var		   *source = target == NULL ? NULL : plain_column((Node *) target->expr);

		if (source == NULL)
			return NIL;
		*column = *source;
		result = lappend(result, key);
	}
	return result;
}

/* The same columns as of the result of an input. */
static List *
as_result_columns(List *keys)
{
	List	   *result = copyObject(keys);
	ListCell   *cell;

	foreach(cell, result)
		plain_column(lfirst(cell))->varno = OUTER_VAR;
	return result;
}

/* Are all keys columns of this relation or input? */
static bool
are_columns_of(List *keys, int varno)
{
	ListCell   *cell;

	foreach(cell, keys)
	{
		if (plain_column(lfirst(cell))->varno != varno)
			return false;
	}
	return true;
}

/*
 * Does a node return each row with one combination of the columns, so that all input rows
 * with a key meet in the same output rows?  Equal in the node must mean equal in the join:
 * an operator of the hash family, under the same collation.
 */
static bool
are_grouped(const Way *way, List *keys, int ncolumns, const AttrNumber *columns, const Oid *operators,
			const Oid *collations)
{
	for (int i = 0; i < list_length(keys); i++)
	{
		Var		   *key = plain_column(list_nth(keys, i));
		bool		found = false;

		for (int j = 0; j < ncolumns && !found; j++)
			found = key->varno == OUTER_VAR && key->varattno == columns[j] &&
				collations[j] == list_nth_oid(way->keys->collations, i) &&
				op_in_opfamily(operators[j], list_nth_oid(way->keys->families, i));
		if (!found)
			return false;
	}
	return true;
}

/*
 * May a node that keeps rows between rescans see a filter?  It must read its input again
 * whenever the filter changes.
 */
static bool
may_keep_rows(const Way *way, const Plan *input)
{
	return !way->changing || (way->parameters != NULL && bms_is_subset(way->parameters, input->allParam));
}

double
rows_of(const Way *way, const Plan *plan)
{
	return plan->plan_rows * Max(1, way->processes) * Max(1, way->loops);
}

/* Drops rows in the condition of a scan. */
static Reach
add_place(Way *way, Plan *scan, List *keys)
{
	Place	   *place = palloc0(sizeof(Place));

	Assert(list_length(keys) == list_length(way->keys->outer_hashes));
	place->scan = scan;
	place->gather = way->gather;
	place->loops = Max(1, way->loops);
	place->keys = keys;
	way->places = lappend(way->places, place);
	way->scan_rows += rows_of(way, scan);
	return REACHES_ALL;
}

/* Forgets what is below a node, but for the reason why nothing is. */
static void
go_back(Way *way, const Way *before)
{
	const Plan *stop = way->stop;
	bool		is_computed = way->is_computed;

	Assert(way->nworks >= before->nworks && way->scan_rows >= before->scan_rows);
	*way = *before;
	way->stop = stop;
	way->is_computed = is_computed;
}

/* Descends where it must reach all rows or none; before is what to return to. */
static Reach
descend_wholly(Way *way, Plan *plan, List *keys, const Way *before)
{
	int			nplaces = list_length(before->places);
	Reach		reach = descend(way, plan, keys);
	List	   *places = way->places;

	if (reach == REACHES_ALL)
		return REACHES_ALL;
	go_back(way, before);
	way->places = list_truncate(places, nplaces);
	return REACHES_NONE;
}

/* The condition of a subquery scan is a place, too, but one inside the subquery saves more. */
static Reach
descend_subquery(Way *way, SubqueryScan *scan, List *keys)
{
	Way			before = *way;

	if (descend_wholly(way, scan->subplan, as_result_columns(keys), &before) == REACHES_ALL)
		return REACHES_ALL;
	return add_place(way, &scan->scan.plan, keys);
}

/* A row passes one child, so the work in the first one stands for that in the others. */
static void
set_part(Way *way, int first, double rows)
{
	for (int i = first; i < way->nworks; i++)
	{
		if (way->works[i].part == 0)
			way->works[i].part = rows;
	}
}

static Reach
descend_children(Way *way, List *plans, List *keys)
{
	bool		some = false;
	bool		all = true;
	ListCell   *cell;

	foreach(cell, plans)
	{
		Way			before = *way;
		Reach		reach;

		add_work(way, WORK_APPEND, rows_of(way, lfirst(cell)));
		reach = descend(way, lfirst(cell), keys);
		if (reach == REACHES_NONE)
			go_back(way, &before);
		else if (some)
			way->nworks = before.nworks;
		else
			set_part(way, before.nworks, way->scan_rows - before.scan_rows);
		some |= reach != REACHES_NONE;
		all &= reach == REACHES_ALL;
	}
	return all ? REACHES_ALL : some ? REACHES_SOME : REACHES_NONE;
}

static void
count_kept_rows(Way *way, const Plan *input)
{
	way->blocking = true;
	add_work(way, WORK_KEEP, rows_of(way, input));
}

/*
 * Into the input of a node that groups rows by columns.  Probes pass the rows that hash
 * joins on the way read before they build, and that would cut a group.
 */
static Reach
descend_grouping(Way *way, Plan *plan, List *keys, int ncolumns, const AttrNumber *columns,
				 const Oid *operators, const Oid *collations)
{
	Way			before = *way;

	if (way->changing || way->peeked || !are_grouped(way, keys, ncolumns, columns, operators, collations))
		return REACHES_NONE;
	way->whole = true;
	count_kept_rows(way, outerPlan(plan));
	return descend_wholly(way, outerPlan(plan), keys, &before);
}

static Reach
descend_agg(Way *way, Agg *agg, List *keys)
{
	if (agg->groupingSets != NIL || agg->chain != NIL || agg->numCols == 0)
		return REACHES_NONE;
	return descend_grouping(way, &agg->plan, keys, agg->numCols, agg->grpColIdx, agg->grpOperators,
							agg->grpCollations);
}

/* Into the input of a node that keeps its rows, also between the runs of a nested loop. */
static Reach
descend_keeping(Way *way, Plan *plan, List *keys)
{
	double		loops = way->loops;
	Reach		reach;

	if (!may_keep_rows(way, outerPlan(plan)))
		return REACHES_NONE;
	if (bms_is_empty(outerPlan(plan)->allParam))
		way->loops = 0;
	count_kept_rows(way, outerPlan(plan));
	reach = descend(way, outerPlan(plan), keys);
	way->loops = loops;
	return reach;
}

/* Does a join return each outer row only as part of rows that have its columns? */
static bool
passes_outer(JoinType type)
{
	return type == JOIN_INNER || type == JOIN_LEFT || type == JOIN_SEMI || type == JOIN_ANTI;
}

static bool
passes_inner(JoinType type)
{
	return type == JOIN_INNER || type == JOIN_RIGHT || is_right_anti_join(type) || is_right_semi_join(type);
}

/*
 * May a join end before it has read a side?  If a filter drops the row at which it would
 * end, it reads on, and conditions may fail for rows that it would not have read.
 */
static bool
may_end_within(const Join *join, const Plan *side)
{
	if (IsA(join, MergeJoin))
		return (join->jointype == JOIN_INNER || join->jointype == JOIN_SEMI) && !is_sorted(side);
	return IsA(join, NestLoop) && join->inner_unique && side == innerPlan(&join->plan);
}

/*
 * May a join read one outer row, and then find that it has no inner row?  See
 * add_join() in link.c.
 */
static bool
may_peek(const Join *join)
{
	return IsA(join, HashJoin) && !join->plan.parallel_aware &&
		(join->jointype == JOIN_INNER || join->jointype == JOIN_SEMI);
}

/* Into the input of a join that all keys come from. */
static Reach
descend_join(Way *way, Join *join, List *keys)
{
	Plan	   *side = NULL;
	bool		peeked = way->peeked;
	double		loops = way->loops;
	Reach		reach;

	if (are_columns_of(keys, OUTER_VAR) && passes_outer(join->jointype))
		side = outerPlan(&join->plan);
	else if (are_columns_of(keys, INNER_VAR) && passes_inner(join->jointype))
	{
		side = innerPlan(&join->plan);
		keys = as_result_columns(keys);
	}
	if (side == NULL || may_end_within(join, side))
		return REACHES_NONE;
	if (side == outerPlan(&join->plan) && may_peek(join))
	{
		if (way->whole)
			return REACHES_NONE;
		way->peeked = true;
	}
	if (IsA(join, NestLoop) && side == innerPlan(&join->plan))
		way->loops = Max(1, loops) * outerPlan(&join->plan)->plan_rows;
	if (IsA(join, HashJoin) && side == outerPlan(&join->plan))
		add_join_work(way, join);
	else
		add_work(way, WORK_NODE, rows_of(way, side));
	reach = descend(way, side, keys);
	way->peeked = peeked;
	way->loops = loops;
	return reach;
}

/* Into what workers run.  They get one copy of the filter, so that must not change. */
static Reach
descend_gather(Way *way, Plan *gather, List *keys)
{
	Reach		reach;

	Assert(way->gather == NULL);	/* workers start no workers */
	if (way->changing || way->peeked)
		return REACHES_NONE;
	way->gather = gather;
	way->processes = gather->plan_rows / Max(1, outerPlan(gather)->plan_rows);
	add_work(way, WORK_GATHER, gather->plan_rows * Max(1, way->loops));
	reach = descend(way, outerPlan(gather), keys);
	way->gather = NULL;
	way->processes = 0;
	return reach;
}

/* Into a node that is no scan. */
static Reach
descend_node(Way *way, Plan *plan, List *keys)
{
	switch (nodeTag(plan))
	{
		case T_Append:
			return descend_children(way, ((Append *) plan)->appendplans, keys);
		case T_MergeAppend:
			return descend_children(way, ((MergeAppend *) plan)->mergeplans, keys);
		case T_Result:
			return outerPlan(plan) == NULL ? REACHES_NONE : descend(way, outerPlan(plan), keys);
		case T_Sort:
		case T_IncrementalSort:
		case T_Material:
		case T_Hash:
			return descend_keeping(way, plan, keys);
		case T_Agg:
			return descend_agg(way, (Agg *) plan, keys);
		case T_Group:
			return descend_grouping(way, plan, keys, ((Group *) plan)->numCols, ((Group *) plan)->grpColIdx,
									((Group *) plan)->grpOperators, ((Group *) plan)->grpCollations);
		case T_Unique:
			return descend_grouping(way, plan, keys, ((Unique *) plan)->numCols, ((Unique *) plan)->uniqColIdx,
									((Unique *) plan)->uniqOperators, ((Unique *) plan)->uniqCollations);
		case T_WindowAgg:
			return descend_grouping(way, plan, keys, ((WindowAgg *) plan)->partNumCols,
									((WindowAgg *) plan)->partColIdx, ((WindowAgg *) plan)->partOperators,
									((WindowAgg *) plan)->partCollations);
		case T_Gather:
		case T_GatherMerge:
			return descend_gather(way, plan, keys);
		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
			return descend_join(way, (Join *) plan, keys);
		default:
			return REACHES_NONE;
	}
}

/* Into a plan that passes these columns on. */
static Reach
descend_from(Way *way, Plan *plan, List *keys)
{
	if (is_local_scan(plan))
		return add_place(way, plan, keys);
	switch (nodeTag(plan))
	{
		case T_ForeignScan:
			/* its rows are dropped here, after the other server has sent them */
			return ((ForeignScan *) plan)->operation == CMD_SELECT ? add_place(way, plan, keys) : REACHES_NONE;
		case T_SubqueryScan:
			return descend_subquery(way, (SubqueryScan *) plan, keys);
		default:
			return descend_node(way, plan, keys);
	}
}

/* Down from a plan, whose result has the keys as columns. */
static Reach
descend(Way *way, Plan *plan, List *keys)
{
	List	   *columns = through_targets(plan, keys);
	Reach		reach;

	check_stack_depth();
	reach = columns == NIL ? REACHES_NONE : descend_from(way, plan, columns);
	if (reach == REACHES_NONE && way->stop == NULL)
	{
		way->stop = plan;
		way->is_computed = columns == NIL;
	}
	return reach;
}

void
find_places(Way *way, Plan *outer)
{
	descend(way, outer, way->keys->outer);
}
