/*
 * leaf_query.h
 *		Queries of one leaf of a tree.
 */
#ifndef BF_LEAF_QUERY_H
#define BF_LEAF_QUERY_H

#include "pg/pg_compat.h"

#include "bloomset/tree.h"
#include "tcop/dest.h"

/* Values and types of the parameters of a query, none of them null. */
typedef struct QueryParameters
{
	int			count;
	Oid		   *types;
	Datum	   *values;
} QueryParameters;

/* The leaf after FROM: its qualified name, with ONLY where children are other leaves. */
extern char *from_leaf(const SetLeaf *leaf);

/*
 * Runs a query under the active snapshot, so that it sees the rows for which the sets
 * were asked.  The caller is connected to SPI, and gets the rows from there unless it gives a
 * receiver.
 */
extern void run_query(const char *sql, const QueryParameters *parameters, DestReceiver *receiver);

/*
 * The same for a query that reads one leaf, by the privileges of its owner: as in any query,
 * who may read the table that the caller has named may read its leaves.  A foreign table is
 * read by the privileges and the user mapping of the caller.
 */
extern void run_leaf_query(const SetLeaf *leaf, const char *sql, const QueryParameters *parameters,
						   DestReceiver *receiver);

#endif							/* BF_LEAF_QUERY_H */
