/*
 * price.c
 *		What a filter costs, and what it saves.
 *
 * Prices and savings are in nanoseconds of one processor: only their ratios matter.
 * bench/README.md says how they were measured.  Where the planner's estimates say
 * nothing, the filter is placed, and the execution decides.
 */
#include "pg/pg_compat.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "jit/jit.h"
#include "join/join_filter.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#define PROBE_PRICE			20	/* of a row with an integer */
#define EXACT_PROBE_PRICE	12	/* if the integers are dense */
#define COLUMN_PRICE		2.5 /* of a column that only the probe needs */
#define FIXED_COLUMN_PRICE	1	/* of one whose length its type tells */
#define LARGE_PROBE_PRICE	60	/* by a filter that fast caches do not hold */
#define HASH_PRICE			150 /* of another key, which may be toasted */
#define HASH_MARGIN			0.8 /* of it, not for the filters' order */
#define OTHER_HASH_PRICE	500 /* of a key of an extension's type */
#define LOCALE_HASH_PRICE	2000	/* under a nondeterministic collation */
#define BUILD_PRICE			20	/* of an inner row */
#define COMPILE_PRICE		400000	/* of a condition of ours, by JIT */
#define COMPILE_COLUMN_PRICE	70000	/* of a column that it extracts */
#define LONGER_PRICE		100000	/* of a longer condition */
#define OPTIMIZE_FACTOR		20	/* on these three, if JIT optimizes */
#define CONDITION_PRICE		1.5 /* of a row that other clauses drop */
#define EMPTY_JOIN_SAVES	23	/* by a table whose buckets are mostly empty */
#define TINY_JOIN_SAVES		30
#define JOIN_SAVES			40
#define LARGE_JOIN_SAVES	300 /* by a table beyond the caches, or on disk */
#define MERGE_SAVES			60
#define NODE_SAVES			60	/* for each node that the row does not reach */
#define APPEND_SAVES		40	/* with the projection of the scan below */
#define GATHER_SAVES		150 /* a worker sends no row to the leader */
#define KEEPING_SAVES		210 /* one of them sorts, groups or hashes */
#define MOST_PASSING		0.8 /* share of the rows, at most */
#define LEAST_GAIN			3	/* of each row, to place a filter */
#define UNKNOWN_PASSING		0.5 /* share, for a part of the join's keys */
#define LEAST_GUESS			0.1 /* share, by may_guess() */
#define LEAST_LEFT			0.1 /* share that others are trusted to leave */
#define NEARLY_UNIQUE		(-0.9)	/* stadistinct, a negated share */
#define PROCESSES			2	/* that run a parallel scan, as a rule */
#define MERGE_RATIO			10	/* of outer to inner rows: see may_guess() */

#define FEW_ROWS			128 /* beside the 1024 buckets of every hash table */
#define TINY_TABLE			(2 * 1024 * 1024)	/* bytes */
#define LARGE_TABLE			(32 * 1024 * 1024)
#define LARGE_FILTER		(1024 * 1024)
#define ROW_OVERHEAD		40	/* bytes of a row in a hash table */

/* The inner rows of all processes that share the hash table. */
static double
total_inner_rows(const Plan *inner)
{
	return inner->parallel_aware ? ((const Hash *) inner)->rows_total : outerPlan(inner)->plan_rows;
}

/* What the keys of an outer row cost that are not hashed by ourselves. */
static double
price_of_hashes(const JoinKeys *keys)
{
	double		price = 0;

	for (int i = 0; i < list_length(keys->outer_hashes); i++)
	{
		Oid			function = list_nth_oid(keys->outer_hashes, i);
		Oid			collation = list_nth_oid(keys->collations, i);

		if (OidIsValid(collation) && !get_collation_isdeterministic(collation))
			price += LOCALE_HASH_PRICE;
		else if (function >= FirstUnpinnedObjectId)
			price += OTHER_HASH_PRICE;
		else if (!is_integer_hash(function))
			price += HASH_PRICE;
	}
	return price;
}

static double
rows_of_table(Oid table)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
	double		rows;

	if (!HeapTupleIsValid(tuple))
		return 0;
	rows = Max(0, ((Form_pg_class) GETSTRUCT(tuple))->reltuples);
	ReleaseSysCache(tuple);
	return rows;
}

/*
 * Will the filter be a set of integers?  Their range is taken for the number of rows in their
 * table, as if these were numbered.
 */
static bool
is_probably_exact(const Candidate *candidate)
{
	const JoinKeys *keys = candidate->way.keys;
	const Plan *inner = candidate->sides.inner;
	const Plan *child = outerPlan(inner);
	List	   *source;

	if (inner->parallel_aware || !is_single_integer(keys->outer_hashes, keys->inner_hashes) ||
		!(IsA(child, SeqScan) || IsA(child, IndexScan)))
		return false;
	source = through_targets(child, keys->inner);
	return source != NIL &&
		is_dense(rows_of_table(rt_fetch(plain_column(linitial(source))->varno, candidate->rtable)->relid), candidate->keys);
}

/* A filter beyond the fast caches waits for memory. */
static double
price_of_probe(const Candidate *candidate)
{
	Size		bytes = (Size) blocks_for_keys(candidate->keys, MaxAllocHugeSize) * BF_BLOCK_BYTES;

	if (bytes > LARGE_FILTER)
		return candidate->hashes + LARGE_PROBE_PRICE;
	return candidate->hashes + (is_probably_exact(candidate) ? EXACT_PROBE_PRICE : PROBE_PRICE);
}

/*
 * How many of a node's rows there are for one that the scans let through.  Other filters leave
 * this share of the scans' rows, and are taken to drop none that reaches the node.
 */
static double
rows_for_one(const Way *way, double rows, double part, double left)
{
	double		ratio = rows / Max(1, part > 0 ? part : way->scan_rows);

	Assert(left > 0);
	return Min(Max(1, ratio), ratio / left);
}

/*
 * The columns before a key are extracted from each row that is probed.  The join would do
 * that for rows that reach it, and a scan that computes its result for all.
 */
static double
price_of_columns(const Candidate *candidate, double left)
{
	const Place *place = linitial(candidate->way.places);
	const List *columns = place->scan->targetlist;
	int			last = last_column_of(place->keys);
	double		price = 0;

	if (list_length(columns) < last)
		return 0;
	for (int i = last_column_of(place->scan->qual); i < last; i++)
		price += get_typlen(exprType((Node *) list_nth_node(TargetEntry, columns, i)->expr)) > 0 ?
			FIXED_COLUMN_PRICE : COLUMN_PRICE;
	return price * Max(0, 1 - rows_for_one(&candidate->way, candidate->sides.outer->plan_rows, 0, left));
}

/* The look-up of a row in a hash table. */
static double
price_of_lookup(const Plan *hash)
{
	const Plan *inner = outerPlan(hash);
	int			row_bytes = inner->plan_width + ROW_OVERHEAD;
	double		rows = total_inner_rows(hash);
	double		bytes = rows * row_bytes;

	if (inner->plan_rows * row_bytes > get_hash_memory_limit() || bytes > LARGE_TABLE)
		return LARGE_JOIN_SAVES;
	if (bytes > TINY_TABLE)
		return JOIN_SAVES;
	return rows > FEW_ROWS ? TINY_JOIN_SAVES : EMPTY_JOIN_SAVES;
}

/* A way of more nodes than there is room for counts the rest as the last one. */
static void
add_price(Way *way, double rows, double price)
{
	Work	   *last;

	Assert(rows >= 0 && way->nworks <= MAX_WORKS);
	if (way->nworks < MAX_WORKS)
	{
		Work		work = {.rows = rows, .price = price};

		way->works[way->nworks++] = work;
		return;
	}
	last = &way->works[MAX_WORKS - 1];
	last->price += price * rows / Max(1, last->rows);
}

void
add_work(Way *way, WorkKind kind, double rows)
{
	static const double prices[] = {
		[WORK_NODE] = NODE_SAVES,
		[WORK_APPEND] = APPEND_SAVES,
		[WORK_KEEP] = KEEPING_SAVES,
		[WORK_GATHER] = GATHER_SAVES,
	};

	add_price(way, rows, prices[kind]);
}

/* A row that is returned takes as long as a look-up in a tiny table on top. */
void
add_join_work(Way *way, const Join *join)
{
	add_price(way, rows_of(way, outerPlan(join)), price_of_lookup(innerPlan(join)));
	add_price(way, rows_of(way, &join->plan), NODE_SAVES - TINY_JOIN_SAVES);
}

/*
 * What it saves to drop a row of the scans.  Most rows may never reach the join, if others
 * below it drop them.
 */
static double
saving_of_row(const Candidate *candidate, double left)
{
	const Way  *way = &candidate->way;
	const Sides *sides = &candidate->sides;
	double		in_join = IsA(sides->join, MergeJoin) ? MERGE_SAVES :
		candidate->hashes + price_of_lookup(sides->inner);
	double		saving = in_join * rows_for_one(way, sides->outer->plan_rows, 0, left);

	for (int i = 0; i < way->nworks; i++)
		saving += way->works[i].price * rows_for_one(way, way->works[i].rows, way->works[i].part, left);
	return saving;
}

/* The statistics of a column of the table that a plan scans; zeros if there are none. */
static FormData_pg_statistic
statistics_of(const Candidate *candidate, const Plan *scan, const Var *column)
{
	FormData_pg_statistic result = {0};
	HeapTuple	tuple = NULL;

	if (IsA(scan, SeqScan) || IsA(scan, IndexScan) || IsA(scan, BitmapHeapScan))
		tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(rt_fetch(column->varno, candidate->rtable)->relid),
								Int16GetDatum(column->varattno), BoolGetDatum(false));
	if (HeapTupleIsValid(tuple))
	{
		result = *(Form_pg_statistic) GETSTRUCT(tuple);
		ReleaseSysCache(tuple);
	}
	return result;
}

/* Has a key of the inner side hardly a value twice, though no index says so? */
static bool
is_nearly_unique(const Candidate *candidate)
{
	const Plan *child = outerPlan(candidate->sides.inner);
	ListCell   *cell;

	foreach(cell, candidate->way.keys->inner)
	{
		List	   *source = through_targets(child, list_make1(lfirst(cell)));

		if (source != NIL &&
			statistics_of(candidate, child, plain_column(linitial(source))).stadistinct <= NEARLY_UNIQUE)
			return true;
	}
	return false;
}

/*
 * Can the share only be guessed?  Where outer rows find several matches, the size of the
 * result says too little.  Below a group the probes may have to stay, whatever they drop.
 * A merge join loses a tenth or more of its time by a filter that drops nothing, unless its
 * inner side is small beside the outer one.
 */
static bool
may_guess(const Candidate *candidate)
{
	const Sides *sides = &candidate->sides;
	const Join *join = sides->join;

	if (candidate->way.whole)
		return false;
	if (IsA(join, MergeJoin))
		return sides->outer->plan_rows >= MERGE_RATIO * sides->inner->plan_rows;
	return join->jointype == JOIN_INNER && !join->inner_unique && !is_nearly_unique(candidate);
}

/*
 * The share of null keys in a table, if no condition tests the key.  The join drops them as
 * soon as a probe does.
 */
static double
null_share(const Candidate *candidate)
{
	const Place *place = linitial(candidate->way.places);
	const Var  *key = plain_column(linitial(place->keys));
	Bitmapset  *tested = NULL;

	if (!IsA(place->scan, SeqScan))
		return 0;
	pull_varattnos((Node *) place->scan->qual, key->varno, &tested);
	if (bms_is_member(key->varattno - FirstLowInvalidHeapAttributeNumber, tested))
		return 0;
	return statistics_of(candidate, place->scan, key).stanullfrac;
}

/*
 * The share of its table that the inner side has.  As many of the outer rows should match in a
 * part of the join's keys, if that refers to the table.
 */
static double
share_of_table(const Candidate *candidate)
{
	const Plan *inner = outerPlan(candidate->sides.inner);
	double		rows;

	if (!IsA(inner, SeqScan) && !IsA(inner, IndexScan) && !IsA(inner, BitmapHeapScan))
		return UNKNOWN_PASSING;
	rows = rows_of_table(rt_fetch(((const Scan *) inner)->scanrelid, candidate->rtable)->relid);
	return rows > 0 ? Min(1, candidate->keys / rows) : UNKNOWN_PASSING;
}

/*
 * The share of the outer rows with keys that the planner expects to find a match.  A semi- or
 * anti-join that merges returns rows of its inner side, which say nothing of the outer ones.
 */
static double
expected_passing(const Candidate *candidate)
{
	const Sides *sides = &candidate->sides;
	const Join *join = sides->join;
	double		with_keys = sides->outer->plan_rows * (1 - null_share(candidate));
	double		share = Min(1, join->plan.plan_rows / Max(1, with_keys));

	if (IsA(join, MergeJoin) && (join->jointype == JOIN_SEMI || join->jointype == JOIN_ANTI))
		share = 1;
	if (list_length(candidate->way.keys->outer) < sides->nkeys)
		share = Max(share, share_of_table(candidate));
	return share;
}

/* Each process that runs a scan compiles its condition, with code that extracts the columns. */
static double
price_of_compiling(const Candidate *candidate)
{
	double		price = 0;
	ListCell   *cell;

	if ((candidate->jit_flags & PGJIT_PERFORM) == 0)
		return 0;
	foreach(cell, candidate->way.places)
	{
		const Place *place = lfirst(cell);
		int			last = last_column_of(place->keys);

		price += (place->gather != NULL ? PROCESSES : 1) *
			(needs_own_condition(place->scan->qual, last) ? COMPILE_PRICE + COMPILE_COLUMN_PRICE * last : LONGER_PRICE);
	}
	return price * ((candidate->jit_flags & (PGJIT_OPT3 | PGJIT_INLINE)) != 0 ? OPTIMIZE_FACTOR : 1);
}

/* The rows that other clauses drop of scans that get a condition of ours. */
static double
rows_dropped_before(const Candidate *candidate)
{
	double		rows = 0;
	ListCell   *cell;

	foreach(cell, candidate->way.places)
	{
		const Place *place = lfirst(cell);
		const Plan *scan = place->scan;
		int			processes = scan->parallel_aware ? PROCESSES : 1;
		Oid			table;

		if (!IsA(scan, SeqScan) || scan->qual == NIL ||
			!needs_own_condition(scan->qual, last_column_of(place->keys)))
			continue;
		table = rt_fetch(((const Scan *) scan)->scanrelid, candidate->rtable)->relid;
		rows += Max(0, rows_of_table(table) / processes - scan->plan_rows) * (place->gather != NULL ? processes : 1);
	}
	return rows;
}

/*
 * The prices that depend on the share of the rows that other filters leave.  If the share that
 * passes may be guessed, it is at most one that just pays.
 */
static void
price_probes(Candidate *candidate, double left)
{
	candidate->price = candidate->probe_price + price_of_columns(candidate, left);
	candidate->saving = saving_of_row(candidate, left);
	candidate->most_passing = Max(0, Min(MOST_PASSING, 1 - candidate->price / candidate->saving));
	candidate->most_expected = Min(MOST_PASSING, 1 - (candidate->price + LEAST_GAIN) / candidate->saving);
	candidate->passing = candidate->expected;
	if (candidate->guess)
		candidate->passing = Min(candidate->passing, Max(LEAST_GUESS, candidate->most_expected));
	candidate->leaves = candidate->guess ? 1 : candidate->passing;
	Assert(candidate->price > 0 && candidate->saving > 0);
	Assert(candidate->passing >= 0 && candidate->passing <= 1);
}

/* The first of these that holds is the reason against a filter. */
static Refusal
refusal_by_price(const Candidate *candidate, double left)
{
	double		share_read = candidate->way.blocking ? 1 : candidate->sides.share_read;
	double		rows = Max(left, LEAST_LEFT) * share_read * candidate->way.scan_rows;
	double		inner_rows = outerPlan(candidate->sides.inner)->plan_rows;

	if (join_filters == JOIN_FILTERS_FORCE)
		return NOT_REFUSED;
	if (rows < join_filter_min_rows)
		return rows / share_read < join_filter_min_rows ? REFUSED_FEW_ROWS : REFUSED_LIMIT;
	if (!fits_join_filter(inner_rows))
		return REFUSED_MEMORY;
	if (candidate->passing > candidate->most_expected)
		return REFUSED_MATCHES;
	if (rows * ((1 - candidate->passing) * candidate->saving - candidate->price) <
		inner_rows * candidate->build_price + candidate->fixed_price)
		return share_read < 1 ? REFUSED_LIMIT : REFUSED_BUILD;
	return NOT_REFUSED;
}

bool
should_pay(Candidate *candidate, double left)
{
	price_probes(candidate, left);
	candidate->refusal = refusal_by_price(candidate, left);
	return candidate->refusal == NOT_REFUSED;
}

/* At best, all rows that the other filters leave reach the join: no more than do now. */
void
price_candidate(Candidate *candidate)
{
	const Way  *way = &candidate->way;
	double		reaching = Min(1, candidate->sides.outer->plan_rows / Max(1, way->scan_rows));
	Refusal		refusal;

	candidate->keys = total_inner_rows(candidate->sides.inner);
	candidate->hashes = price_of_hashes(way->keys);
	candidate->guess = may_guess(candidate);
	candidate->expected = expected_passing(candidate);
	candidate->build_price = BUILD_PRICE + candidate->hashes;
	candidate->probe_price = price_of_probe(candidate);
	candidate->fixed_price = price_of_compiling(candidate) + CONDITION_PRICE * rows_dropped_before(candidate);
	should_pay(candidate, 1);
	refusal = candidate->refusal;
	candidate->rank = (candidate->price - HASH_MARGIN * candidate->hashes) / Max(0.01, 1 - candidate->passing);
	if (refusal != NOT_REFUSED && !should_pay(candidate, Max(reaching, LEAST_SHARE)))
		candidate->refusal = refusal;
}
