/*
 * notice.c
 *		Says why joins have no filter.
 */
#include "pg/pg_compat.h"

#include "join/join_filter.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/value.h"
#include "parser/parsetree.h"

/* As EXPLAIN calls it. */
static const char *
name_of_node(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Result:
			return "Result";
		case T_ProjectSet:
			return "ProjectSet";
		case T_RecursiveUnion:
			return "Recursive Union";
		case T_ForeignScan:
			return "Foreign Scan";
		case T_NestLoop:
			return "Nested Loop";
		case T_MergeJoin:
			return "Merge Join";
		case T_HashJoin:
			return "Hash Join";
		case T_Sort:
			return "Sort";
		case T_IncrementalSort:
			return "Incremental Sort";
		case T_Hash:
			return "Hash";
		case T_Group:
			return "Group";
		case T_Material:
			return "Materialize";
		case T_Memoize:
			return "Memoize";
		case T_Agg:
			return "Aggregate";
		case T_WindowAgg:
			return "WindowAgg";
		case T_Unique:
			return "Unique";
		case T_SetOp:
			return "SetOp";
		case T_LockRows:
			return "LockRows";
		case T_Limit:
			return "Limit";
		case T_Gather:
			return "Gather";
		case T_GatherMerge:
			return "Gather Merge";
		default:
			return "Custom Scan";
	}
}

/* Where the way to the scans ends. */
static char *
describe_stop(const Way *way)
{
	const char *node = name_of_node(way->stop);

	if (way->is_computed)
		return pstrdup(_("An outer key is an expression, or the outer keys come from several tables."));
	if (way->changing)
		return psprintf(_("The inner side may change between two runs of the join, and node \"%s\" of the outer side keeps rows."), node);
	return psprintf(_("A filter cannot pass node \"%s\" of the outer side."), node);
}

/* The share that is expected to match, and the least that is too much. */
static char *
describe_matches(const Candidate *candidate)
{
	if (candidate->most_expected <= 0)
		return psprintf(_("To look up a key of %.0f inner rows costs less than to ask a filter."), candidate->keys);
	return psprintf(_("The planner expects %.0f inner rows, and that %.1f %% of %.0f outer rows match. A filter pays below %.1f %%."),
					candidate->keys, 100 * candidate->passing, candidate->way.scan_rows, 100 * candidate->most_expected);
}

static char *
describe_refusal(const Candidate *candidate)
{
	double		rows = candidate->way.scan_rows;
	double		keys = candidate->keys;

	switch (candidate->refusal)
	{
		case REFUSED_TYPE:
			return pstrdup(_("The join returns rows without a match."));
		case REFUSED_UNSORTED:
			return pstrdup(_("A merge join has a filter only if it sorts both sides."));
		case REFUSED_KEYS:
			return pstrdup(_("No key is a column on both sides with a hash function that a filter may use."));
		case REFUSED_WAY:
			return describe_stop(&candidate->way);
		case REFUSED_SHORTCUT:
			return pstrdup(_("To build a filter first, the join would read an inner side that it may not need."));
		case REFUSED_VOLATILE:
			return pstrdup(_("One side calls a volatile function."));
		case REFUSED_LIMIT:
			return psprintf(_("The planner expects that the query ends after %.0f of %.0f outer rows."),
							rows * candidate->sides.share_read, rows);
		case REFUSED_FEW_ROWS:
			return psprintf(_("The planner expects %.0f outer rows. \"bloomtype.join_filter_min_rows\" is %d."),
							rows, join_filter_min_rows);
		case REFUSED_MEMORY:
			return psprintf(_("The planner expects %.0f inner rows. A filter of them exceeds its share of \"work_mem\"."), keys);
		case REFUSED_MATCHES:
			return describe_matches(candidate);
		case REFUSED_BUILD:
			return psprintf(_("A filter of %.0f inner rows costs more than it saves with %.0f outer rows."), keys, rows);
		case REFUSED_SHARED_MEMORY:
			return psprintf(_("A filter of %.0f inner rows is too large to be shared by parallel workers."), keys);
		case NOT_REFUSED:
			break;
	}
	pg_unreachable();
}

static void
add_name(List **names, const PlannedStmt *stmt, int relation)
{
	const RangeTblEntry *entry = rt_fetch(relation, stmt->rtable);

	if (entry->rtekind != RTE_JOIN)
		*names = list_append_unique(*names, makeString(entry->eref->aliasname));
}

/* The names of what a side of a join reads.  A foreign scan of a join reads several tables. */
static void
collect_names(List **names, const PlannedStmt *stmt, const Plan *plan)
{
	int			relation = -1;
	ListCell   *cell;

	check_stack_depth();
	if (is_local_scan(plan) || IsA(plan, SubqueryScan))
	{
		add_name(names, stmt, ((const Scan *) plan)->scanrelid);
		return;
	}
	if (IsA(plan, ForeignScan))
	{
		while ((relation = bms_next_member(((const ForeignScan *) plan)->fs_relids, relation)) > 0)
			add_name(names, stmt, relation);
		return;
	}
	foreach(cell, child_plans(plan))
		collect_names(names, stmt, lfirst(cell));
}

static char *
names_of_side(const PlannedStmt *stmt, const Plan *side)
{
	List	   *names = NIL;
	StringInfoData text;
	ListCell   *cell;

	collect_names(&names, stmt, side);
	initStringInfo(&text);
	foreach(cell, names)
		appendStringInfo(&text, "%s%s", foreach_current_index(cell) > 0 ? ", " : "", strVal(lfirst(cell)));
	return names == NIL ? pstrdup(_("no table")) : text.data;
}

static void
report_refusal(const PlannedStmt *stmt, const Candidate *candidate)
{
	const Plan *join = &candidate->sides.join->plan;
	char	   *outer = names_of_side(stmt, outerPlan(join));
	char	   *inner = names_of_side(stmt, innerPlan(join));

	ereport(NOTICE,
			(IsA(join, HashJoin) ?
			 errmsg("hash join of (%s) and (%s) has no join filter", outer, inner) :
			 errmsg("merge join of (%s) and (%s) has no join filter", outer, inner),
			 errdetail_internal("%s", describe_refusal(candidate))));
}

static int
compare_joins(const ListCell *a, const ListCell *b)
{
	return ((const Candidate *) lfirst(a))->sides.join->plan.plan_node_id -
		((const Candidate *) lfirst(b))->sides.join->plan.plan_node_id;
}

void
report_refusals(const PlannedStmt *stmt, const char *general, List *refused)
{
	ListCell   *cell;

	if (general != NULL)
		ereport(NOTICE,
				(errmsg("the statement has no join filter"),
				 errdetail_internal("%s", general)));
	list_sort(refused, compare_joins);
	foreach(cell, refused)
		report_refusal(stmt, lfirst(cell));
}
