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

/* Text that stands for itself in a format. */
extern char *double_percents(const char *text);

/*
 * Runs a SELECT of a leaf, which takes the place of %s in the text, and gives its rows to a receiver, under the active snapshot: it sees the rows for
 * which the sets were asked.  The user is the caller, who needs no privileges on the tables: those
 * on the table that the call names have been checked, and a query of that table asks for no others
 * on its leaves.  All names must be qualified.  Without a leaf it reads no table.
 */
extern void run_query(const SetLeaf *leaf, const char *format, const QueryParameters *parameters, DestReceiver *receiver);

#endif							/* BF_LEAF_QUERY_H */
