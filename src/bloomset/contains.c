/*
 * contains.c
 *		bloomset_contains(), and what its call sites remember; see README, Caches.
 *
 * Finding the sets takes microseconds to milliseconds, even with tree_cache.c, and
 * asking them a fraction of that.
 */
#include "pg/pg_compat.h"

#include "bloomset/lookup.h"
#include "bloomset/tree.h"
#include "bloomset/tree_cache.h"
#include "miscadmin.h"
#include "pg/sql_function.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* Snapshots that have all of this in common see the same transactions. */
typedef struct SnapshotContents
{
	TransactionId xmin;
	TransactionId xmax;
	uint32		xcnt;
	int32		subxcnt;
} SnapshotContents;

typedef struct ContainsSite
{
	MemoryContext context;		/* of the tree */
	Oid			relation;		/* invalid if the rest is not set */
	NameData	column;
	Oid			user;
	LocalTransactionId transaction;
	uint64		revocation;
	SnapshotContents snapshot;
	SetTree		tree;
	Lookup		lookup;
} ContainsSite;

static ContainsSite *
make_site(FunctionCallInfo fcinfo)
{
	MemoryContext parent = fcinfo->flinfo->fn_mcxt;
	ContainsSite *site = MemoryContextAllocZero(parent, sizeof(ContainsSite));

	site->context = AllocSetContextCreate(parent, "bloomset_contains", ALLOCSET_SMALL_SIZES);
	fcinfo->flinfo->fn_extra = site;
	return site;
}

static inline bool
is_same_snapshot(const SnapshotContents *contents)
{
	Snapshot	snapshot = GetActiveSnapshot();

	return contents->xmin == snapshot->xmin && contents->xmax == snapshot->xmax &&
		contents->xcnt == snapshot->xcnt && contents->subxcnt == snapshot->subxcnt;
}

static inline bool
is_current(const ContainsSite *site, Oid relation, const NameData *column)
{
	return site->relation == relation && site->revocation == bloomset_revocations &&
		site->transaction == MyLocalTransactionId && site->user == GetUserId() &&
		is_same_snapshot(&site->snapshot) &&
		(column == NULL || strcmp(NameStr(site->column), NameStr(*column)) == 0);
}

/* An invalidation during the search counts: the site is then not current. */
static pg_noinline void
find_sets(ContainsSite *site, FunctionCallInfo fcinfo, Oid relation, const NameData *column,
		  int argument)
{
	Snapshot	snapshot = GetActiveSnapshot();
	MemoryContext former;

	site->relation = InvalidOid;
	site->revocation = bloomset_revocations;
	MemoryContextReset(site->context);
	former = MemoryContextSwitchTo(site->context);
	site->tree = resolve_sets(relation, column == NULL ? NULL : NameStr(*column));
	prepare_lookup(&site->lookup, &site->tree, fcinfo, argument, site->context);
	MemoryContextSwitchTo(former);
	site->transaction = MyLocalTransactionId;
	site->user = GetUserId();
	site->snapshot = (SnapshotContents)
	{
		snapshot->xmin, snapshot->xmax, snapshot->xcnt, snapshot->subxcnt
	};
	if (column != NULL)
		site->column = *column;
	site->relation = relation;
}

/* Asks leaf by leaf, since the first that may contain the value decides. */
static bool
contains(FunctionCallInfo fcinfo, const NameData *column, int argument)
{
	ContainsSite *site = fcinfo->flinfo->fn_extra;
	Oid			relation = PG_GETARG_OID(0);
	LookedUp	value;

	if (unlikely(site == NULL))
		site = make_site(fcinfo);
	AcceptInvalidationMessages();
	if (unlikely(!is_current(site, relation, column)))
		find_sets(site, fcinfo, relation, column, argument);
	value = looked_up_value(&site->lookup, PG_GETARG_DATUM(argument));
	for (int i = 0; i < site->tree.nleaves; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (leaf_may_contain(&site->tree.leaves[i], &site->lookup, &value))
			return true;
	}
	return false;
}

SQL_FUNCTION(bloomset_contains_column, BoolGetDatum(contains(fcinfo, PG_GETARG_NAME(1), 2)))
SQL_FUNCTION(bloomset_contains_index, BoolGetDatum(contains(fcinfo, NULL, 1)))
