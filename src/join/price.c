/*
 * price.c
 *		What a filter costs, and what it saves.
 *
 * Prices and savings are in nanoseconds of one processor: only their ratios matter.
 * doc/performance.md says how they were measured.  Where the planner's estimates say
 * nothing, the filter is placed, and the execution decides.
 */
#include "pg/pg_compat.h"

#include "access/transam.h"
#include "join/join_filter.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"

#define PROBE_PRICE			14	/* of a row with an integer */
#define MEDIUM_PROBE_PRICE	20	/* by a filter that a fast cache does not hold */
#define LARGE_PROBE_PRICE	29	/* by a filter that most caches do not hold */
#define HASH_PRICE			100 /* of another key, which may be toasted */
#define OTHER_HASH_PRICE	500 /* of a key of an extension's type */
#define LOCALE_HASH_PRICE	2000	/* under a nondeterministic collation */
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

#define TINY_TABLE			(512 * 1024)	/* bytes, of table or filter */
#define LARGE_FILTER		(4 * 1024 * 1024)
#define ROW_OVERHEAD		40	/* bytes of a row in a hash table */

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

/* A filter beyond the fast caches waits for memory. */
static double
price_of_probe(const Plan *inner, double hashes)
{
	Size		bytes = (Size) blocks_for_keys(inner->plan_rows, MaxAllocHugeSize) * BF_BLOCK_BYTES;

	return hashes +
		(bytes > LARGE_FILTER ? LARGE_PROBE_PRICE : bytes > TINY_TABLE ? MEDIUM_PROBE_PRICE : PROBE_PRICE);
}

static double
rows_of_places(const Way *way)
{
	double		rows = 0;
	ListCell   *cell;

	foreach(cell, way->places)
		rows += ((const Place *) lfirst(cell))->rows;
	return rows;
}

/*
 * What it saves to drop a row of the scans.  Most rows may never reach the join, if others
 * below it drop them.
 */
static double
saving_of_row(const Sides *sides, const Way *way, double hashes)
{
	const Plan *inner = outerPlan(sides->inner);
	double		bytes = inner->plan_rows * (inner->plan_width + ROW_OVERHEAD);
	double		in_join = IsA(sides->join, MergeJoin) ? JOIN_SAVES :
		hashes + (bytes > get_hash_memory_limit() ? SPILLING_JOIN_SAVES : bytes > TINY_TABLE ? JOIN_SAVES : TINY_JOIN_SAVES);

	return (in_join * sides->outer->plan_rows + NODE_SAVES * way->node_rows + BLOCKING_SAVES * way->kept_rows +
			GATHER_SAVES * way->gathered_rows) / Max(1, rows_of_places(way));
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
expected_passing(const Candidate *candidate)
{
	const Sides *sides = &candidate->sides;
	const Join *join = sides->join;
	double		share = Min(1, join->plan.plan_rows / Max(1, sides->outer->plan_rows));

	if (IsA(join, MergeJoin) && (join->jointype == JOIN_SEMI || join->jointype == JOIN_ANTI))
		share = 1;
	if (list_length(candidate->way.keys->outer) < sides->nkeys)
		share = Max(share, UNKNOWN_PASSING);
	if (may_guess(sides))
		share = Min(share, Max(0, candidate->most_passing - 0.05));
	return share;
}

/*
 * The rows that filters in these places are expected to leave to another one.  Scans of
 * partitions have the same filters as the first one, as a rule.
 */
static double
rows_to_probe(const Way *way, const List *placed)
{
	const Plan *first = ((const Place *) linitial(way->places))->scan;
	double		rows = rows_of_places(way);
	ListCell   *cell;

	foreach(cell, placed)
	{
		const Place *other = lfirst(cell);

		if (other->scan == first)
			rows *= other->passing;
	}
	return rows;
}

void
price_candidate(Candidate *candidate)
{
	const Sides *sides = &candidate->sides;
	double		hashes = price_of_hashes(candidate->way.keys);

	candidate->price = price_of_probe(outerPlan(sides->inner), hashes);
	candidate->saving = saving_of_row(sides, &candidate->way, hashes);
	candidate->most_passing = Max(0, Min(MOST_PASSING, 1 - candidate->price / candidate->saving));
	candidate->passing = expected_passing(candidate);
	candidate->rank = candidate->price / Max(0.01, 1 - candidate->passing);
}

bool
should_pay(const Candidate *candidate, const List *placed)
{
	double		rows = rows_to_probe(&candidate->way, placed);
	double		inner_rows = outerPlan(candidate->sides.inner)->plan_rows;
	double		build_price = BUILD_PRICE + price_of_hashes(candidate->way.keys);

	if (join_filters == JOIN_FILTERS_FORCE)
		return true;
	return rows >= join_filter_min_rows && fits_join_filter(inner_rows) &&
		candidate->passing <= candidate->most_passing &&
		rows * ((1 - candidate->passing) * candidate->saving - candidate->price) >= inner_rows * build_price;
}
