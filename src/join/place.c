/*
 * place.c
 *		Finds the joins of a finished plan that can have a filter, and places those that
 *		should pay.
 */
#include "pg/pg_compat.h"

#include <math.h>

#include "access/hash.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/transam.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_type.h"
#include "join/join_filter.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#define SHORTCUT_SHARE		0.1 /* of the cost: see may_build_first() */

typedef struct Walk
{
	PlannedStmt *stmt;
	Oid			probe;			/* the function */
	bool		has_barrier;	/* see is_trusted_hash() */
	int			last_node_id;
	double		scan_rows;		/* of all scans */
	List	   *init_plans;		/* SubPlans */
	Bitmapset  *steady;			/* parameters that never change */
	Bitmapset  *once;			/* ids of InitPlans and CTEs that run once */
	List	   *candidates;		/* that may pay, or are forced */
	List	   *refused;
	double	   *left;			/* share of a scan's rows, by plan_node_id */
} Walk;

/* A pair of keys that a join compares. */
typedef struct KeyPair
{
	Node	   *outer;
	Node	   *inner;
	Oid			operator;
	Oid			collation;
	bool		is_commuted;	/* the operator has the inner key first */
} KeyPair;

/*
 * Finds a hash family with the operator, and its functions for both sides: as
 * get_op_hash_functions(), which does not tell the family.
 */
static bool
find_hash_family(Oid operator, Oid *family, Oid *outer_hash, Oid *inner_hash)
{
	CatCList   *members = SearchSysCacheList1(AMOPOPID, ObjectIdGetDatum(operator));
	bool		found = false;

	for (int i = 0; i < members->n_members && !found; i++)
	{
		Form_pg_amop member = (Form_pg_amop) GETSTRUCT(&members->members[i]->tuple);

		if (member->amopmethod != HASH_AM_OID || member->amopstrategy != HTEqualStrategyNumber)
			continue;
		*family = member->amopfamily;
		*outer_hash = get_opfamily_proc(*family, member->amoplefttype, member->amoplefttype, HASHSTANDARD_PROC);
		*inner_hash = get_opfamily_proc(*family, member->amoprighttype, member->amoprighttype, HASHSTANDARD_PROC);
		found = OidIsValid(*outer_hash) && OidIsValid(*inner_hash);
	}
	ReleaseSysCacheList(members);
	return found;
}

static KeyPair
pair_of_hash(const HashJoin *join, int i)
{
	KeyPair		pair = {
		.outer = list_nth(join->hashkeys, i),
		.inner = list_nth(((const Hash *) innerPlan(join))->hashkeys, i),
		.operator = list_nth_oid(join->hashoperators, i),
		.collation = list_nth_oid(join->hashcollations, i),
	};

	return pair;
}

/* A Sort has the columns of its child. */
static KeyPair
pair_of_merge(const MergeJoin *join, int i)
{
	const OpExpr *clause = list_nth_node(OpExpr, join->mergeclauses, i);
	KeyPair		pair = {
		.outer = lsecond(clause->args),
		.inner = linitial(clause->args),
		.operator = clause->opno,
		.collation = join->mergeCollations[i],
		.is_commuted = true,
	};

	return pair;
}

/*
 * Can all values of a key be hashed?  A hash family has the operators of all arrays, rows
 * and ranges, but not all of their elements have a hash function.  For a hash join the
 * planner has asked; a merge join needs none.
 */
static bool
is_hashable(Node *key)
{
	return OidIsValid(lookup_type_cache(exprType(key), TYPECACHE_HASH_PROC)->hash_proc);
}

/*
 * The probe of a scan sees rows that a join in a view with security_barrier hides.  The
 * hash functions of containers call others.
 */
static bool
is_trusted_hash(Oid function)
{
	return get_func_leakproof(function) ||
		(function < FirstUnpinnedObjectId && function != F_HASH_ARRAY && function != F_HASH_RECORD &&
		 function != F_HASH_RANGE && function != F_HASH_MULTIRANGE);
}

static bool
has_security_barrier(const PlannedStmt *stmt)
{
	ListCell   *cell;

	foreach(cell, stmt->rtable)
	{
		if (lfirst_node(RangeTblEntry, cell)->security_barrier)
			return true;
	}
	return false;
}

/*
 * Adds a key of a join; false if no filter can have it.  The build would evaluate an
 * expression a second time, and one that the join skips after a null key.
 */
static bool
add_key(const Walk *walk, JoinKeys *keys, const Sides *sides, int i)
{
	KeyPair		pair = IsA(sides->join, HashJoin) ? pair_of_hash((const HashJoin *) sides->join, i) :
		pair_of_merge((const MergeJoin *) sides->join, i);
	Var		   *outer = plain_column(pair.outer);
	Var		   *inner = plain_column(pair.inner);
	Oid			family;
	Oid			left_hash;
	Oid			right_hash;

	if (outer == NULL || inner == NULL || !op_strict(pair.operator) ||
		!is_hashable(pair.outer) || !is_hashable(pair.inner) ||
		!find_hash_family(pair.operator, &family, &left_hash, &right_hash) ||
		(walk->has_barrier && (!is_trusted_hash(left_hash) || !is_trusted_hash(right_hash))))
		return false;
	keys->outer = lappend(keys->outer, pair.outer);
	keys->inner = lappend(keys->inner, pair.inner);
	keys->families = lappend_oid(keys->families, family);
	keys->outer_hashes = lappend_oid(keys->outer_hashes, pair.is_commuted ? right_hash : left_hash);
	keys->inner_hashes = lappend_oid(keys->inner_hashes, pair.is_commuted ? left_hash : right_hash);
	keys->collations = lappend_oid(keys->collations, pair.collation);
	return true;
}

/*
 * A filter is built before the join reads an outer row where that row takes all rows of a
 * scan; a scan that returns row by row lets few pass.
 */
static FilterPlan
plan_filter(const Candidate *candidate, int parameter)
{
	const Way  *way = &candidate->way;
	FilterPlan	filter = {
		.parameter = parameter,
		.outer_hashes = way->keys->outer_hashes,
		.inner_hashes = way->keys->inner_hashes,
		.collations = way->keys->collations,
		.rows = (int) Min(1e6, ceil(candidate->keys / 1000)),
		.loops = (int) Min(1e6, ceil(((const Place *) linitial(way->places))->loops)),
		.most_passing = (int) (1000 * candidate->most_passing),
		.once = candidate->once,
		.whole = way->whole,
		.build_first = way->blocking && IsA(candidate->sides.join, HashJoin),
	};

	return filter;
}

/* Lets the workers of a Gather have the filter; once, if they run several of the scans. */
static void
insert_copy(Walk *walk, Plan *gather, const FilterPlan *filter)
{
	Plan	   *child = outerPlan(gather);
	CustomScan *copy;

	if (is_filter_copy(child) && plan_of_passing_scan((CustomScan *) child).parameter == filter->parameter)
		return;
	copy = make_filter_copy(child, filter);
	copy->scan.plan.plan_node_id = ++walk->last_node_id;
	outerPlan(gather) = &copy->scan.plan;
}

/*
 * The last condition of a scan: it neither sees rows that others drop, nor hides their
 * errors.  Nodes may share a list, so it is copied.
 */
static void
add_condition(const Place *place, int parameter, Oid probe)
{
	List	   *arguments = lcons(make_filter_name(parameter), place->keys);
	FuncExpr   *call = makeFuncExpr(probe, BOOLOID, arguments, InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);

	place->scan->qual = lappend(list_copy(place->scan->qual), call);
}

static void
refuse(Walk *walk, Candidate *candidate, Refusal refusal)
{
	candidate->refusal = refusal;
	walk->refused = lappend(walk->refused, candidate);
}

static void
insert_filter(Walk *walk, Candidate *candidate)
{
	Plan	   *inner = candidate->sides.inner;
	int			parameter = list_length(walk->stmt->paramExecTypes);
	FilterPlan	filter = plan_filter(candidate, parameter);
	CustomScan *build;
	ListCell   *cell;

	Assert(candidate->refusal == NOT_REFUSED && candidate->way.places != NIL);
	Assert(IsA(inner, Hash) || IsA(inner, Sort));
	if (inner->parallel_aware && is_too_large_to_share(&filter))
	{
		refuse(walk, candidate, REFUSED_SHARED_MEMORY);
		return;
	}
	build = make_filter_build(outerPlan(inner), &filter, candidate->way.keys->inner);
	build->scan.plan.plan_node_id = ++walk->last_node_id;
	build->scan.plan.parallel_aware = inner->parallel_aware;
	outerPlan(inner) = &build->scan.plan;
	walk->stmt->paramExecTypes = lappend_oid(walk->stmt->paramExecTypes, INTERNALOID);
	foreach(cell, candidate->way.places)
	{
		Place	   *place = lfirst(cell);

		walk->left[place->scan->plan_node_id] =
			Max(LEAST_SHARE, walk->left[place->scan->plan_node_id] * candidate->leaves);
		add_condition(place, parameter, walk->probe);
		if (place->gather != NULL)
			insert_copy(walk, place->gather, &filter);
	}
}

/*
 * To build first gives up the join's shortcut for an empty outer side.  That is allowed if
 * the join builds first anyway (as a merge join; see ExecHashJoin()), or if the inner side
 * cannot raise an error that the shortcut avoids, and is a small part of the work.
 */
static bool
may_build_first(const Sides *sides)
{
	const Plan *outer = sides->outer;
	const Plan *hash = sides->inner;
	JoinType	type = sides->join->jointype;

	if (IsA(sides->join, MergeJoin) || type == JOIN_RIGHT || is_right_anti_join(type) ||
		outer->startup_cost >= hash->total_cost)
		return true;
	return is_harmless_scan(hash->lefttree) &&
		(join_filters == JOIN_FILTERS_FORCE || hash->total_cost <= SHORTCUT_SHARE * outer->total_cost);
}

/* Do workers run a scan on the way, and so have a copy of the filter? */
static bool
has_gather(const Way *way)
{
	ListCell   *cell;

	foreach(cell, way->places)
	{
		if (((const Place *) lfirst(cell))->gather != NULL)
			return true;
	}
	return false;
}

static Candidate *
make_candidate(const Walk *walk, const Sides *sides)
{
	Candidate  *candidate = palloc0(sizeof(Candidate));

	candidate->sides = *sides;
	candidate->rtable = walk->stmt->rtable;
	candidate->jit_flags = walk->stmt->jitFlags;
	return candidate;
}

/* The filter of these keys. */
static Candidate *
try_keys(const Walk *walk, const Sides *sides, const JoinKeys *keys)
{
	Candidate  *candidate = make_candidate(walk, sides);
	Way		   *way = &candidate->way;
	bool		may_vary = sides->runs_again && may_change(walk->stmt, sides->inner);

	way->keys = keys;
	way->parameters = bms_difference(sides->inner->extParam, walk->steady);
	way->changing = !bms_is_empty(way->parameters);
	if (may_vary)
	{
		/* at any rescan, not only with its parameters */
		way->changing = true;
		way->parameters = NULL;
	}
	find_places(way, sides->outer);
	candidate->once = !sides->runs_again && (way->blocking || has_gather(way)) && may_change(walk->stmt, sides->inner);
	if (way->places == NIL)
		candidate->refusal = REFUSED_WAY;
	else if (way->blocking && !may_build_first(sides))
		candidate->refusal = REFUSED_SHORTCUT;
	else
		price_candidate(candidate);
	return candidate;
}

/* Does a hash join drop outer rows without a match? */
static bool
drops_outer(JoinType type)
{
	return type == JOIN_INNER || type == JOIN_SEMI || type == JOIN_RIGHT ||
		is_right_anti_join(type) || is_right_semi_join(type);
}

/* Does a merge join return no row for an inner row without a match? */
static bool
drops_inner(JoinType type)
{
	return type == JOIN_INNER || type == JOIN_LEFT || type == JOIN_SEMI || type == JOIN_ANTI;
}

/* Joins that can have a filter. */
static bool
is_filtering_join(const Plan *plan)
{
	return IsA(plan, HashJoin) || IsA(plan, MergeJoin);
}

/*
 * The sides of a join.  A merge join reads its outer side first, and all of it if that is a
 * Sort.  Its inner side must be sorted, too, because the join may end before it: see
 * is_sorted().
 */
static Refusal
find_sides(Sides *sides, Plan *plan)
{
	const Join *join = (const Join *) plan;

	sides->join = join;
	if (IsA(plan, HashJoin))
	{
		sides->inner = innerPlan(plan);
		sides->outer = outerPlan(plan);
		sides->nkeys = list_length(((const HashJoin *) plan)->hashkeys);
		return drops_outer(join->jointype) ? NOT_REFUSED : REFUSED_TYPE;
	}
	sides->inner = outerPlan(plan);
	sides->outer = innerPlan(plan);
	sides->nkeys = list_length(((const MergeJoin *) plan)->mergeclauses);
	if (!drops_inner(join->jointype))
		return REFUSED_TYPE;
	return IsA(sides->inner, Sort) && is_sorted(sides->outer) ? NOT_REFUSED : REFUSED_UNSORTED;
}

/* The first of its keys that works alone, or what refuses all of them together. */
static Candidate *
try_single_keys(const Walk *walk, const Sides *sides, Candidate *all)
{
	for (int i = 0; i < sides->nkeys; i++)
	{
		JoinKeys   *one = palloc0(sizeof(JoinKeys));
		Candidate  *candidate;

		if (!add_key(walk, one, sides, i))
			continue;
		candidate = try_keys(walk, sides, one);
		if (candidate->refusal == NOT_REFUSED)
			return candidate;
	}
	return all;
}

/* All keys in one filter if one place can have them, otherwise the first that works alone. */
static Candidate *
find_candidate(const Walk *walk, const Sides *sides)
{
	JoinKeys   *all = palloc0(sizeof(JoinKeys));
	Candidate  *candidate;
	int			added = 0;

	for (int i = 0; i < sides->nkeys && added < MAX_JOIN_KEYS; i++)
		added += add_key(walk, all, sides, i);
	if (added == 0)
	{
		candidate = make_candidate(walk, sides);
		candidate->refusal = REFUSED_KEYS;
		return candidate;
	}
	candidate = try_keys(walk, sides, all);
	return candidate->refusal == NOT_REFUSED || added == 1 ? candidate : try_single_keys(walk, sides, candidate);
}

/*
 * Volatile functions must be called as often as without a filter, also where that depends on
 * whether the join reads its outer or its inner side first.
 */
static void
consider_join(Walk *walk, Sides *sides, Plan *join)
{
	Refusal		refusal = find_sides(sides, join);
	Candidate  *candidate = refusal == NOT_REFUSED ? find_candidate(walk, sides) : make_candidate(walk, sides);

	if (refusal == NOT_REFUSED)
		refusal = candidate->refusal;
	if (refusal == NOT_REFUSED &&
		(has_volatile_subtree(walk->stmt, sides->outer) || has_volatile_subtree(walk->stmt, sides->inner)))
		refusal = REFUSED_VOLATILE;
	if (refusal == NOT_REFUSED)
		walk->candidates = lappend(walk->candidates, candidate);
	else
		refuse(walk, candidate, refusal);
}

/*
 * The share of a child's rows that a plan reads of which this share is read: all if it
 * returns no row before, or runs the child for each row of the other side.
 */
static double
share_of_child(const Plan *plan, const Plan *child, double share)
{
	if (plan->startup_cost >= child->total_cost || (IsA(plan, NestLoop) && child == innerPlan(plan)))
		return 1;
	if (IsA(plan, Limit))
		share *= (plan->total_cost - child->startup_cost) / (child->total_cost - child->startup_cost);
	return share;
}

static void
walk_plan(Walk *walk, Plan *plan, double share_read, bool again)
{
	Sides		sides = {.share_read = share_read, .runs_again = again};
	ListCell   *cell;

	check_stack_depth();
	if (is_filtering_join(plan))
		consider_join(walk, &sides, plan);
	foreach(cell, child_plans(plan))
		walk_plan(walk, lfirst(cell), share_of_child(plan, lfirst(cell), share_read),
				  again || reruns_child(plan, lfirst(cell)));
}

/*
 * Those of EvalPlanQual, in which no filter is used, and of InitPlans that depend on nothing
 * else and so are run once.
 */
static void
find_steady_parameters(Walk *walk)
{
	ListCell   *cell;
	ListCell   *parameter;

	foreach(cell, walk->init_plans)
	{
		const SubPlan *init_plan = lfirst_node(SubPlan, cell);
		const Plan *plan = list_nth(walk->stmt->subplans, init_plan->plan_id - 1);

		if (plan == NULL || !bms_is_subset(plan->extParam, walk->steady))
			continue;
		walk->once = bms_add_member(walk->once, init_plan->plan_id);
		foreach(parameter, init_plan->setParam)
			walk->steady = bms_add_member(walk->steady, lfirst_int(parameter));
	}
}

/* Notes node ids, rows, InitPlans and the parameters of EvalPlanQual; is there a join? */
static bool
survey_plan(Walk *walk, const Plan *plan)
{
	bool		found = is_filtering_join(plan);
	List	   *children = child_plans(plan);
	ListCell   *cell;

	check_stack_depth();
	walk->last_node_id = Max(walk->last_node_id, plan->plan_node_id);
	walk->init_plans = list_concat(walk->init_plans, plan->initPlan);
	if (IsA(plan, ModifyTable))
		walk->steady = bms_add_member(walk->steady, ((const ModifyTable *) plan)->epqParam);
	else if (IsA(plan, LockRows))
		walk->steady = bms_add_member(walk->steady, ((const LockRows *) plan)->epqParam);
	if (children == NIL || IsA(plan, SubqueryScan) || IsA(plan, BitmapHeapScan) || IsA(plan, ForeignScan))
		walk->scan_rows += plan->plan_rows;
	foreach(cell, children)
		found |= survey_plan(walk, lfirst(cell));
	list_free(children);
	return found;
}

/* Have all scans too few rows for a filter?  Those of a parallel scan are of one process. */
static bool
all_scans_are_small(const Walk *walk)
{
	return join_filters == JOIN_FILTERS_ON && !walk->stmt->parallelModeNeeded &&
		walk->scan_rows < join_filter_min_rows;
}

static int
compare_ranks(const ListCell *a, const ListCell *b)
{
	double		first = ((const Candidate *) lfirst(a))->rank;
	double		second = ((const Candidate *) lfirst(b))->rank;

	return first < second ? -1 : first > second;
}

/* A plan that calls a function is made anew when the function changes. */
static void
depend_on_function(PlannedStmt *stmt, Oid function)
{
	PlanInvalItem *item = makeNode(PlanInvalItem);

	item->cacheId = PROCOID;
	item->hashValue = GetSysCacheHashValue1(PROCOID, ObjectIdGetDatum(function));
	stmt->invalItems = lappend(stmt->invalItems, item);
}

/*
 * The filter that drops most for the price of its probe comes first, and leaves the others
 * of a scan fewer rows.  Scans of partitions have the same filters as the first one, as a
 * rule.  Is any of those that are left inserted?
 */
static bool
insert_some(Walk *walk)
{
	bool		found = false;
	ListCell   *cell;

	foreach(cell, walk->candidates)
	{
		Candidate  *candidate = lfirst(cell);
		const Place *first = linitial(candidate->way.places);

		if (!should_pay(candidate, walk->left[first->scan->plan_node_id]))
			continue;
		insert_filter(walk, candidate);
		walk->candidates = foreach_delete_current(walk->candidates, cell);
		found = true;
	}
	return found;
}

/* A filter may pay only after others have been inserted: then most rows that it probes reach its join. */
static void
insert_filters(Walk *walk)
{
	if (walk->candidates == NIL)
		return;
	walk->left = palloc((walk->last_node_id + 1) * sizeof(double));
	for (int i = 0; i <= walk->last_node_id; i++)
		walk->left[i] = 1;
	list_sort(walk->candidates, compare_ranks);
	while (insert_some(walk))
		;
	depend_on_function(walk->stmt, walk->probe);
}

/* Why no join of the statement can have a filter, or NULL. */
static const char *
find_general_refusal(Walk *walk)
{
	if (join_filters == JOIN_FILTERS_OFF)
		return _("\"bloomtype.join_filters\" is \"off\".");
	if (all_scans_are_small(walk))
		return _("All scans together are expected to return fewer rows than \"bloomtype.join_filter_min_rows\".");
	walk->probe = get_probe_function();
	if (!OidIsValid(walk->probe))
		return _("The database lacks the function bloom_join_filter() of the extension, or PUBLIC may not execute it.");
	return NULL;
}

static void
walk_plans(Walk *walk, double share_read)
{
	ListCell   *cell;

	walk->has_barrier = has_security_barrier(walk->stmt);
	find_steady_parameters(walk);
	walk_plan(walk, walk->stmt->planTree, share_read, false);
	foreach(cell, walk->stmt->subplans)
	{
		if (lfirst(cell) != NULL)
			walk_plan(walk, lfirst(cell), 1, !bms_is_member(foreach_current_index(cell) + 1, walk->once));
	}
}

void
place_join_filters(PlannedStmt *stmt, double share_read)
{
	Walk		walk = {.stmt = stmt};
	bool		has_join;
	const char *refusal;
	ListCell   *cell;

	if (stmt->planTree == NULL)
		return;
	has_join = survey_plan(&walk, stmt->planTree);
	foreach(cell, stmt->subplans)
	{
		if (lfirst(cell) != NULL)
			has_join |= survey_plan(&walk, lfirst(cell));
	}
	if (!has_join)
		return;
	refusal = find_general_refusal(&walk);
	if (refusal == NULL)
	{
		walk_plans(&walk, share_read);
		insert_filters(&walk);
	}
	if (join_filter_notices)
		report_refusals(stmt, refusal, list_concat(walk.refused, walk.candidates));
}
