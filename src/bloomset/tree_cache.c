/*
 * tree_cache.c
 *		The trees that the backend has found, from one transaction to the next.
 *
 * The leaves of a tree and their sets follow from the catalogs alone, so they are the
 * same until an invalidation comes.  What depends on more is not kept: the caller
 * checks at each use what the user may read and what the column's name and type are,
 * and each call judges whether a set is complete for its snapshot.  README, Caches, says
 * why the locks are taken again before invalidations are looked for, and why a parent
 * that nobody has locked gets no child.
 */
#include "pg/pg_compat.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "bloomset/tree_cache.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/* All trees are discarded before another one if they have more bytes than this. */
#define MAX_CACHE_BYTES ((Size) 1 << 20)

typedef struct TreeKey
{
	Oid			relation;
	int			column;			/* no padding, which the hash would include */
} TreeKey;

typedef struct CachedTree
{
	TreeKey		key;
	SetTree		tree;			/* only its leaves are used */
	int			nlocks;
	Oid		   *locks;			/* in the order in which to take them */
	LocalTransactionId transaction; /* that has them */
	uint64		revocation;		/* when it had them */
} CachedTree;

uint64		bloomset_changes;
uint64		bloomset_revocations;

static MemoryContext cache_context;
static HTAB *trees;
static uint64 cached_at;		/* bloomset_changes when the trees were found */

static void
note_change(void)
{
	bloomset_changes++;
	bloomset_revocations++;
}

static void
change_of_relation(Datum argument, Oid relation)
{
	note_change();
}

static void
change_of_catalog(Datum argument, int cache, uint32 hash)
{
	note_change();
}

static void
abort_of_subtransaction(SubXactEvent event, SubTransactionId self, SubTransactionId parent,
						void *argument)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		bloomset_revocations++;
}

/* The owner of the database is a member of pg_database_owner; a schema has a name. */
void
watch_changes(void)
{
	static const int catalogs[] = {AUTHOID, AUTHMEMROLEMEM, DATABASEOID, NAMESPACEOID};
	static bool registered;

	if (likely(registered))
		return;
	CacheRegisterRelcacheCallback(change_of_relation, (Datum) 0);
	for (size_t i = 0; i < lengthof(catalogs); i++)
		CacheRegisterSyscacheCallback(catalogs[i], change_of_catalog, (Datum) 0);
	RegisterSubXactCallback(abort_of_subtransaction, NULL);
	registered = true;
}

static int
number_of_sets(const SetTree *tree)
{
	int			result = 0;

	for (int i = 0; i < tree->nleaves; i++)
		result += tree->leaves[i].nindexes;
	return result;
}

static void
copy_leaves(SetTree *copy, const SetTree *tree)
{
	Oid		   *indexes = palloc((number_of_sets(tree) + 1) * sizeof(Oid));

	copy->nparents = tree->nparents;
	copy->parents = memcpy(palloc((tree->nparents + 1) * sizeof(Oid)), tree->parents,
						   tree->nparents * sizeof(Oid));
	copy->nleaves = tree->nleaves;
	copy->leaves = palloc((tree->nleaves + 1) * sizeof(SetLeaf));
	for (int i = 0; i < tree->nleaves; i++)
	{
		const SetLeaf *leaf = &tree->leaves[i];

		copy->leaves[i] = *leaf;
		copy->leaves[i].indexes = memcpy(indexes, leaf->indexes, leaf->nindexes * sizeof(Oid));
		indexes += leaf->nindexes;
	}
}

static void
hold_locks(CachedTree *cached)
{
	uint64		revocation = bloomset_revocations;

	if (cached->transaction == MyLocalTransactionId && cached->revocation == revocation)
		return;
	for (int i = 0; i < cached->nlocks; i++)
	{
		CHECK_FOR_INTERRUPTS();
		LockRelationOid(cached->locks[i], AccessShareLock);
	}
	cached->transaction = MyLocalTransactionId;
	cached->revocation = revocation;
}

/* May another session have added a child whose invalidation has not come yet? */
static bool
may_get_child(const SetTree *tree)
{
	for (int i = 0; i < tree->nparents; i++)
	{
		LOCKTAG		tag;
		int			count;

		SET_LOCKTAG_RELATION(tag, MyDatabaseId, tree->parents[i]);
		pfree(GetLockConflicts(&tag, ShareUpdateExclusiveLock, &count));
		if (count > 0)
			return true;
	}
	return false;
}

/*
 * Locks a tree's relations.  False if they may be those of another tree: an
 * invalidation came before or with the locks, or one may be under way.
 */
static bool
lock_cached_tree(CachedTree *cached)
{
	hold_locks(cached);
	if (may_get_child(&cached->tree))
		return false;
	AcceptInvalidationMessages();
	return cached_at == bloomset_changes;
}

bool
find_cached_tree(Oid relation, AttrNumber column, SetTree *tree)
{
	TreeKey		key = {.relation = relation, .column = column};
	CachedTree *cached = NULL;

	/* a standby does not replay the lock of a parent */
	if (trees != NULL && cached_at == bloomset_changes && !RecoveryInProgress())
		cached = hash_search(trees, &key, HASH_FIND, NULL);
	if (cached == NULL || !lock_cached_tree(cached))
		return false;
	copy_leaves(tree, &cached->tree);
	return true;
}

static void
discard_trees(void)
{
	HASHCTL		control = {.keysize = sizeof(TreeKey), .entrysize = sizeof(CachedTree)};

	trees = NULL;
	if (cache_context == NULL)
		cache_context = AllocSetContextCreate(CacheMemoryContext, "bloomset trees",
											  ALLOCSET_SMALL_SIZES);
	MemoryContextReset(cache_context);
	control.hcxt = cache_context;
	trees = hash_create("bloomset trees", 16, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	cached_at = bloomset_changes;
}

static Oid *
oids_of(const List *list)
{
	Oid		   *result = palloc((list_length(list) + 1) * sizeof(Oid));
	ListCell   *lc;

	foreach(lc, list)
		result[foreach_current_index(lc)] = lfirst_oid(lc);
	return result;
}

/* An entry is made when all that it needs has been allocated. */
void
cache_tree(Oid relation, AttrNumber column, const SetTree *tree, const List *locked, uint64 since)
{
	CachedTree	new = {.key = {.relation = relation, .column = column}};
	MemoryContext former;

	if (since != bloomset_changes)
		return;
	if (trees == NULL || cached_at != bloomset_changes ||
		MemoryContextMemAllocated(cache_context, true) > MAX_CACHE_BYTES)
		discard_trees();
	former = MemoryContextSwitchTo(cache_context);
	copy_leaves(&new.tree, tree);
	new.nlocks = list_length(locked);
	new.locks = oids_of(locked);
	MemoryContextSwitchTo(former);
	new.transaction = MyLocalTransactionId;
	new.revocation = bloomset_revocations;
	*(CachedTree *) hash_search(trees, &new.key, HASH_ENTER, NULL) = new;
}
