/*
 * cost.c
 *		What a scan by a bloomset costs.
 *
 * The set itself knows whether a constant is absent, so the planner asks it.  A
 * value that is not known counts as present, which makes the scan dearer than a
 * sequential one, so that it never displaces a plan that is better.
 */
#include "pg/pg_compat.h"

#include "access/genam.h"
#include "bloomset/access.h"
#include "bloomset/bloomset.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/spccache.h"

/*
 * More than a look-up in a B-tree, which stays good if a cached plan meets the value
 * later, and less than reading any table that matters.
 */
#define PRICE_IN_PAGES	4

/* The relation of the query whose expansion has added this one, or this one. */
static Oid
named_table(PlannerInfo *root, Index relid)
{
	const AppendRelInfo *parent;

	while (root->append_rel_array != NULL && (parent = root->append_rel_array[relid]) != NULL &&
		   planner_rt_fetch(parent->parent_relid, root)->rtekind == RTE_RELATION)
		relid = parent->parent_relid;
	return planner_rt_fetch(relid, root)->relid;
}

/*
 * May the user see the column in the relation that the query names?  If not, a view
 * is between them, and the plan must not show which values the view hides.
 */
static bool
user_may_ask(PlannerInfo *root, Index relid, Relation index)
{
	Oid			table = index->rd_index->indrelid;
	Oid			named = named_table(root, relid);
	AttrNumber	column = told_column(index);

	if (named != table && column != InvalidAttrNumber)
		column = get_attnum(named, get_attname(table, column, false));
	return may_ask(named, column);
}

/*
 * Does the set exclude the constant of an operator's expression?  Values behind a
 * security barrier are not asked for: the plan would show the answer.
 */
static bool
excludes_constant(Relation index, const RestrictInfo *clause)
{
	const BloomsetMeta *meta;
	const Const *constant;
	ElementType element;
	HashElement hash_element;
	uint64		hash;
	uint32		generations;

	if (clause->security_level > 0 || !IsA(clause->clause, OpExpr))
		return false;
	/* nothing that can change between executions of the plan */
	constant = (Const *) get_rightop(clause->clause);
	if (!IsA(constant, Const) || constant->constisnull ||
		!find_element_type(constant->consttype, index->rd_indcollation[0], &element))
		return false;
	meta = &bloomset_state(index, false)->meta;
	hash_element = lookup_hash(&element, meta->element_class);
	if (hash_element == NULL)
		return false;
	hash = hash_element(constant->constvalue, meta->seed);
	return !probe_bloomset(index, InvalidSnapshot, hash, &generations);
}

static bool
excludes_path(PlannerInfo *root, Relation index, const IndexPath *path)
{
	ListCell   *lc;

	if (!bloomset_can_exclude(index) || !user_may_ask(root, path->indexinfo->rel->relid, index))
		return false;
	foreach(lc, path->indexclauses)
	{
		ListCell   *cell;

		foreach(cell, lfirst_node(IndexClause, lc)->indexquals)
		{
			if (excludes_constant(index, lfirst_node(RestrictInfo, cell)))
				return true;
		}
	}
	return false;
}

void
bloomset_costestimate(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup,
					  Cost *total, Selectivity *selectivity, double *correlation, double *pages)
{
	double		page_cost;
	bool		excluded = false;

	if (!path->indexinfo->hypothetical)
	{
		Relation	index = index_open(path->indexinfo->indexoid, NoLock);

		excluded = excludes_path(root, index, path);
		index_close(index, NoLock);
	}
	get_tablespace_page_costs(path->indexinfo->reltablespace, &page_cost, NULL);
	*startup = *total = PRICE_IN_PAGES * page_cost + 10 * cpu_operator_cost;
	*selectivity = excluded ? 0 : 1;
	*correlation = 0;
	*pages = 1;
}
