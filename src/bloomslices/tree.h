/*
 * tree.h
 *		The indexes behind one name: one, or those of all partitions.
 */
#ifndef BF_SLICES_TREE_H
#define BF_SLICES_TREE_H

#include "pg/pg_compat.h"

#include "nodes/pg_list.h"
#include "utils/rel.h"

/*
 * Locks the table of an index, then the index, until the transaction ends; of a
 * partitioned index those of all partitions.  Returns the OIDs of the indexes that have
 * pages.  An error unless the user may learn which values the index has.
 */
extern List *lock_slices_to_read(Oid index);

/* The same, as VACUUM locks a table.  An error unless the user owns the tables. */
extern List *lock_slices_to_maintain(Oid index);

/*
 * Opens a locked index and its table, and runs what follows as the table's owner, as
 * VACUUM does.
 */
typedef struct OwnedIndex
{
	Relation	table;
	Relation	index;
	Oid			user;
	int			context;
	int			settings;
} OwnedIndex;

extern OwnedIndex open_as_owner(Oid index);
extern void close_as_owner(OwnedIndex *owned);

#endif							/* BF_SLICES_TREE_H */
