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

/*
 * Runs a SELECT and gives its rows to a receiver, under the active snapshot: it sees the rows for
 * which the sets were asked.  The text is `before`, the leaf as it stands after FROM, and `after`;
 * without a leaf it is `before`, which reads no table.  All names must be qualified.
 *
 * The user is the caller, who needs no privileges on the leaf: those on the table that the call
 * names have been checked, and a query of that table asks for no others on its leaves.
 */
extern void run_query(const char *before, const SetLeaf *leaf, const char *after,
					  const QueryParameters *parameters, DestReceiver *receiver);

#endif							/* BF_LEAF_QUERY_H */
