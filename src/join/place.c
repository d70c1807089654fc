/*
 * place.c
 *		Finds the joins of a finished plan, and decides which get a filter.
 *
 * A filter must be expected to save more than it costs.  What a dropped row saves, and the
 * prices, are in nanoseconds of one processor: only their ratios matter.  doc/performance.md
 * says how they were measured.  Where the planner's estimates say nothing, the probe is
 * placed, and the execution decides.
 */
#include "pg/pg_compat.h"

#include <math.h>

#include "access/hash.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_type.h"
#include "join/join_filter.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#define PROBE_PRICE			14	/* of a row */
#define MEDIUM_PROBE_PRICE	20	/* by a filter that a fast cache does not hold */
#define LARGE_PROBE_PRICE	29	/* by a filter that most caches do not hold */
#define BUILD_PRICE			25	/* of an inner row */
#define TINY_JOIN_SAVES		32	/* the hash table fits into a fast cache */
#define JOIN_SAVES			60
#define SPILLING_JOIN_SAVES	250
#define NODE_SAVES			60	/* for each node that the row does not reach */
#define GATHER_SAVES	150		/* a worker sends no row to the leader */
#define BLOCKING_SAVES		150 /* one of them sorts, groups or hashes */
#define MOST_PASSING		0.85	/* share of the rows, at most */
#define UNKNOWN_PASSING		0.5 /* share, for a part of the join's keys */
#define MERGE_RATIO			10	/* of outer to inner rows: see may_guess() */
#define SHORTCUT_SHARE		0.1 /* of the cost: see may_build_first() */

#define TINY_TABLE			(512 * 1024)	/* bytes, of table or filter */
#define LARGE_FILTER		(4 * 1024 * 1024)
#define ROW_OVERHEAD		40	/* bytes of a row in a hash table */

typedef struct Walk
{
	PlannedStmt *stmt;
	Oid			probe;			/* the function */
	int			last_node_id;
	List	   *init_plans;		/* SubPlans */
	Bitmapset  *steady;			/* parameters that never change */
	List	   *candidates;		/* that should pay alone */
	List	   *places;			/* of the filters that are placed */
} Walk;

/*
 * The sides of a join, as a hash join names them: a merge join reads its outer side first,
 * so that it is the inner one here, and in all that follows.
 */
typedef struct Sides
{
	const Join *join;
	Plan	   *inner;			/* Hash or Sort: reads all rows at once */
	Plan	   *outer;			/* whose rows a filter drops */
	int			nkeys;
} Sides;

/* A filter that is possible. */
typedef struct Candidate
{
	Sides		sides;
	Way			way;
	double		saving;			/* of a dropped row */
	double		passing;		/* expected share of the rows */
	double		rank;			/* the least first */
} Candidate;

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
 * Adds a key of a join; false if no filter can have it.  The build would evaluate an
 * expression a second time, and one that the join skips after a null key.
 */
static bool
add_key(JoinKeys *keys, const Sides *sides, int i)
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
		!find_hash_family(pair.operator, &family, &left_hash, &right_hash))
		return false;
	keys->outer = lappend(keys->outer, pair.outer);
	keys->inner = lappend(keys->inner, pair.inner);
	keys->families = lappend_oid(keys->families, family);
	keys->outer_hashes = lappend_oid(keys->outer_hashes, pair.is_commuted ? right_hash : left_hash);
	keys->inner_hashes = lappend_oid(keys->inner_hashes, pair.is_commuted ? left_hash : right_hash);
	keys->collations = lappend_oid(keys->collations, pair.collation);
	return true;
}

static bool
is_below_gather(const Way *way)
{
	ListCell   *cell;

	foreach(cell, way->places)
	{
		if (((const Place *) lfirst(cell))->gather != NULL)
			return true;
	}
	return false;
}

/* What it saves to drop an outer row early. */
static double
saving_of_row(const Sides *sides, const Way *way)
{
	const Plan *inner = sides->inner->lefttree;
	double		bytes = inner->plan_rows * (inner->plan_width + ROW_OVERHEAD);
	double		saving = IsA(sides->join, MergeJoin) ? JOIN_SAVES :
		bytes > get_hash_memory_limit() ? SPILLING_JOIN_SAVES : bytes > TINY_TABLE ? JOIN_SAVES : TINY_JOIN_SAVES;

	return saving + NODE_SAVES * way->nodes + (way->blocking ? BLOCKING_SAVES : 0) +
		(is_below_gather(way) ? GATHER_SAVES : 0);
}

static double
most_passing(double saving)
{
	return Min(MOST_PASSING, 1 - PROBE_PRICE / saving);
}

/*
 * Can the share only be guessed?  Where outer rows find several matches, the size of the
 * result says too little.  A merge join loses a tenth or more of its time by a filter that
 * drops nothing, unless its inner side is small beside the outer one.
 */
static bool
may_guess(const Sides *sides)
{
	const Join *join = sides->join;

	if (IsA(join, MergeJoin))
		return sides->outer->plan_rows >= MERGE_RATIO * sides->inner->plan_rows;
	return join->jointype == JOIN_INNER && !join->inner_unique;
}

/*
 * The share of the outer rows that the planner expects to find a match; if it is a guess,
 * at most one that just pays.  A semi- or anti-join that merges returns rows of its inner
 * side, which say nothing of the outer ones.
 */
static double
expected_passing(const Sides *sides, const JoinKeys *keys, double saving)
{
	const Join *join = sides->join;
	double		share = Min(1, join->plan.plan_rows / Max(1, sides->outer->plan_rows));

	if (IsA(join, MergeJoin) && (join->jointype == JOIN_SEMI || join->jointype == JOIN_ANTI))
		share = 1;
	if (list_length(keys->outer) < sides->nkeys)
		share = Max(share, UNKNOWN_PASSING);
	if (may_guess(sides))
		share = Min(share, most_passing(saving) - 0.05);
	return share;
}

/*
 * The rows that the scans are expected to let the filter test.  Scans of partitions have
 * the same filters as the first one, as a rule.
 */
static double
rows_to_probe(const Walk *walk, const Way *way)
{
	const Plan *first = ((const Place *) linitial(way->places))->scan;
	double		rows = 0;
	ListCell   *cell;

	foreach(cell, way->places)
		rows += ((const Place *) lfirst(cell))->scan->plan_rows;
	foreach(cell, walk->places)
	{
		const Place *other = lfirst(cell);

		if (other->scan == first)
			rows *= other->passing;
	}
	return rows;
}

static bool
should_pay(const Walk *walk, const Candidate *candidate)
{
	double		rows = rows_to_probe(walk, &candidate->way);
	double		inner_rows = candidate->sides.inner->lefttree->plan_rows;

	if (join_filters == JOIN_FILTERS_FORCE)
		return true;
	return rows >= join_filter_min_rows && candidate->passing <= most_passing(candidate->saving) &&
		rows * ((1 - candidate->passing) * candidate->saving - PROBE_PRICE) >= inner_rows * BUILD_PRICE;
}

/*
 * A filter is built before the join reads an outer row where that row takes all rows of a
 * scan; a scan that returns row by row lets few pass.
 */
static FilterPlan
plan_filter(const Candidate *candidate, int parameter)
{
	const Way  *way = &candidate->way;
	const Plan *inner = candidate->sides.inner;
	double		rows = inner->lefttree->plan_rows;
	FilterPlan	filter = {
		.parameter = parameter,
		.outer_hashes = way->keys->outer_hashes,
		.inner_hashes = way->keys->inner_hashes,
		.collations = way->keys->collations,
		.most_passing = (int) (1000 * most_passing(candidate->saving)),
		.changing = way->changing,
		.whole = way->whole,
		.build_first = way->blocking && IsA(candidate->sides.join, HashJoin),
	};

	if (IsA(inner, Hash))
		rows = Max(rows, ((const Hash *) inner)->rows_total);
	filter.rows = (int) Min(1e6, ceil(rows / 1000));
	return filter;
}

/*
 * What probes cost for each row that they drop, by which those of a scan are ordered.  A
 * filter beyond the fast caches waits for memory.
 */
static double
rank_of_probe(const Plan *inner, double passing)
{
	Size		bytes = (Size) blocks_for_keys(inner->plan_rows, MaxAllocHugeSize) * BF_BLOCK_BYTES;
	double		price = bytes > LARGE_FILTER ? LARGE_PROBE_PRICE : bytes > TINY_TABLE ? MEDIUM_PROBE_PRICE : PROBE_PRICE;

	return price / Max(0.01, 1 - passing);
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
	Param	   *filter = makeNode(Param);
	FuncExpr   *call;

	filter->paramkind = PARAM_EXEC;
	filter->paramid = parameter;
	filter->paramtype = INTERNALOID;
	filter->paramtypmod = -1;
	filter->location = -1;
	call = makeFuncExpr(probe, BOOLOID, lcons(filter, place->keys), InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
	place->scan->qual = lappend(list_copy(place->scan->qual), call);
}

static void
insert_filter(Walk *walk, const Candidate *candidate)
{
	Plan	   *inner = candidate->sides.inner;
	int			parameter = list_length(walk->stmt->paramExecTypes);
	FilterPlan	filter = plan_filter(candidate, parameter);
	CustomScan *build;
	ListCell   *cell;

	if (inner->parallel_aware && is_too_large_to_share(&filter))
		return;
	build = make_filter_build(outerPlan(inner), &filter, candidate->way.keys->inner);
	build->scan.plan.plan_node_id = ++walk->last_node_id;
	build->scan.plan.parallel_aware = inner->parallel_aware;
	outerPlan(inner) = &build->scan.plan;
	walk->stmt->paramExecTypes = lappend_oid(walk->stmt->paramExecTypes, INTERNALOID);
	foreach(cell, candidate->way.places)
	{
		Place	   *place = lfirst(cell);

		place->passing = candidate->passing;
		add_condition(place, parameter, walk->probe);
		if (place->gather != NULL)
			insert_copy(walk, place->gather, &filter);
	}
	walk->places = list_concat(walk->places, candidate->way.places);
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

/* Is a filter of these keys possible, and should it pay? */
static bool
try_keys(Walk *walk, const Sides *sides, const JoinKeys *keys)
{
	Candidate  *candidate = palloc0(sizeof(Candidate));
	Way		   *way = &candidate->way;

	candidate->sides = *sides;
	way->keys = keys;
	way->parameters = bms_difference(sides->inner->extParam, walk->steady);
	way->changing = !bms_is_empty(way->parameters);
	if (may_change(walk->stmt, sides->inner))
	{
		/* at any rescan, not only with its parameters */
		way->changing = true;
		way->parameters = NULL;
	}
	find_places(way, sides->outer);
	if (way->places == NIL || (way->blocking && !may_build_first(sides)))
		return false;
	candidate->saving = saving_of_row(sides, way);
	candidate->passing = expected_passing(sides, keys, candidate->saving);
	candidate->rank = rank_of_probe(outerPlan(sides->inner), candidate->passing);
	if (!should_pay(walk, candidate))
		return false;
	walk->candidates = lappend(walk->candidates, candidate);
	return true;
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

/*
 * The sides of a join; false if it can have no filter.  A merge join reads its outer side
 * first, and all of it if that is a Sort.  Its inner side must be sorted, too, because the
 * join may end before it: see is_sorted().
 */
static bool
find_sides(Sides *sides, Plan *plan)
{
	const Join *join = (const Join *) plan;

	sides->join = join;
	switch (nodeTag(plan))
	{
		case T_HashJoin:
			sides->inner = innerPlan(plan);
			sides->outer = outerPlan(plan);
			sides->nkeys = list_length(((const HashJoin *) plan)->hashkeys);
			return drops_outer(join->jointype);
		case T_MergeJoin:
			sides->inner = outerPlan(plan);
			sides->outer = innerPlan(plan);
			sides->nkeys = list_length(((const MergeJoin *) plan)->mergeclauses);
			return drops_inner(join->jointype) && IsA(sides->inner, Sort) && is_sorted(sides->outer);
		default:
			return false;
	}
}

/*
 * All keys in one filter if one place can have them, otherwise the first that works alone.
 * Volatile functions must be called as often as without a filter, also where that depends
 * on whether the join reads its outer or its inner side first.
 */
static void
consider_join(Walk *walk, const Sides *sides)
{
	JoinKeys   *all = palloc0(sizeof(JoinKeys));
	int			added = 0;

	if (has_volatile_subtree(walk->stmt, sides->outer) || has_volatile_subtree(walk->stmt, sides->inner))
		return;
	for (int i = 0; i < sides->nkeys && added < MAX_JOIN_KEYS; i++)
		added += add_key(all, sides, i);
	if (added > 0 && try_keys(walk, sides, all))
		return;
	for (int i = 0; i < sides->nkeys && added > 1; i++)
	{
		JoinKeys   *one = palloc0(sizeof(JoinKeys));

		if (add_key(one, sides, i) && try_keys(walk, sides, one))
			return;
	}
}

static void
walk_plan(Walk *walk, Plan *plan)
{
	Sides		sides;
	ListCell   *cell;

	check_stack_depth();
	if (find_sides(&sides, plan))
		consider_join(walk, &sides);
	foreach(cell, child_plans(plan))
		walk_plan(walk, lfirst(cell));
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

		if (plan == NULL || !bms_is_subset(plan->extParam, walk->steady) || may_change(walk->stmt, plan))
			continue;
		foreach(parameter, init_plan->setParam)
			walk->steady = bms_add_member(walk->steady, lfirst_int(parameter));
	}
}

/* Notes node ids, InitPlans and the parameters of EvalPlanQual; is there a join? */
static bool
survey_plan(Walk *walk, const Plan *plan)
{
	bool		found = IsA(plan, HashJoin) || IsA(plan, MergeJoin);
	List	   *children = child_plans(plan);
	ListCell   *cell;

	check_stack_depth();
	walk->last_node_id = Max(walk->last_node_id, plan->plan_node_id);
	walk->init_plans = list_concat(walk->init_plans, plan->initPlan);
	if (IsA(plan, ModifyTable))
		walk->steady = bms_add_member(walk->steady, ((const ModifyTable *) plan)->epqParam);
	else if (IsA(plan, LockRows))
		walk->steady = bms_add_member(walk->steady, ((const LockRows *) plan)->epqParam);
	foreach(cell, children)
		found |= survey_plan(walk, lfirst(cell));
	list_free(children);
	return found;
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
 * of a scan fewer rows.
 */
static void
insert_filters(Walk *walk)
{
	ListCell   *cell;

	if (walk->candidates == NIL)
		return;
	list_sort(walk->candidates, compare_ranks);
	foreach(cell, walk->candidates)
	{
		if (should_pay(walk, lfirst(cell)))
			insert_filter(walk, lfirst(cell));
	}
	depend_on_function(walk->stmt, walk->probe);
}

void
place_join_filters(PlannedStmt *stmt)
{
	Walk		walk = {.stmt = stmt};
	bool		has_join;
	ListCell   *cell;

	if (stmt->planTree == NULL)
		return;
	has_join = survey_plan(&walk, stmt->planTree);
	foreach(cell, stmt->subplans)
	{
		if (lfirst(cell) != NULL)
			has_join |= survey_plan(&walk, lfirst(cell));
	}
	if (!has_join || !OidIsValid(walk.probe = get_probe_function()))
		return;
	find_steady_parameters(&walk);
	walk_plan(&walk, stmt->planTree);
	foreach(cell, stmt->subplans)
	{
		if (lfirst(cell) != NULL)
			walk_plan(&walk, lfirst(cell));
	}
	insert_filters(&walk);
}
