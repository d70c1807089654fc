/*
 * tree.h
 *		The bloomsets that answer for a relation with its partitions and children.
 */
#ifndef BF_TREE_H
#define BF_TREE_H

#include "pg/pg_compat.h"

#include "nodes/pg_list.h"
#include "pg/element.h"
#include "utils/rel.h"

/* A table of the tree that holds rows itself. */
typedef struct SetLeaf
{
	Oid			table;
	bool		has_children;	/* which are leaves of their own */
	int			nindexes;		/* each can answer; 0 if none can */
	Oid		   *indexes;
} SetLeaf;

/* Allocated in the current memory context. */
typedef struct SetTree
{
	Oid			table;			/* asked for, or that of the index */
	Oid			value_type;		/* of the column or expression */
	uint32		element_class;	/* of that type */
	int			nleaves;
	SetLeaf    *leaves;
	int			nparents;
	Oid		   *parents;		/* have children, or may get some */
} SetTree;

/*
 * Finds the sets of a relation's column, or of an index if column is NULL.  Locks
 * the relations with AccessShareLock until the transaction ends; see README, Locks.
 * An error if the user may not read the column, if there is no set, or if the table's
 * rows are elsewhere.  A search is spared if the backend has found them before and
 * nothing has changed since (tree_cache.h).
 */
extern SetTree resolve_sets(Oid relation, const char *column);

/*
 * The tree of a column without its leaves: locks only the table.  The same errors, except
 * that there may be no set.
 */
extern SetTree tree_without_leaves(Oid relation, const char *column);

/*
 * Opens an index of the tree, which is locked.  NULL if it cannot prove absence to
 * the calling statement.
 */
extern Relation open_set(Oid index);

#endif							/* BF_TREE_H */
