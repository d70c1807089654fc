/*
 * tree_cache.h
 *		The trees that the backend has found, from one transaction to the next.
 */
#ifndef BF_TREE_CACHE_H
#define BF_TREE_CACHE_H

#include "pg/pg_compat.h"

#include "access/attnum.h"
#include "bloomset/tree.h"
#include "nodes/pg_list.h"

/* Increases when an invalidation of a relation, role, schema or database comes. */
extern uint64 bloomset_changes;

/* Increases also when a subtransaction aborts, which releases its locks. */
extern uint64 bloomset_revocations;

/* Makes both count, from the first call on. */
extern void watch_changes(void);

/*
 * Copies the leaves of a relation, whose root the caller has locked, into a tree, in
 * the current memory context, and locks their relations.  The column is
 * InvalidAttrNumber if the relation is an index.  False if the caller must search.
 */
extern bool find_cached_tree(Oid relation, AttrNumber column, SetTree *tree);

/*
 * Keeps the leaves of a tree if nothing has changed since bloomset_changes had the
 * value `since`.  `locked` are the relations that the search has locked, in its order.
 */
extern void cache_tree(Oid relation, AttrNumber column, const SetTree *tree, const List *locked,
					   uint64 since);

#endif							/* BF_TREE_CACHE_H */
