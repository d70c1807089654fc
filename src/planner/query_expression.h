/*
 * query_expression.h
 *		Conditions on a filter as the equivalent "filter @@ query".
 */
#ifndef BF_QUERY_EXPRESSION_H
#define BF_QUERY_EXPRESSION_H

#include "pg/pg_compat.h"

#include "nodes/pathnodes.h"

/* A call of a function that has an equivalent. */
typedef struct QueryExpression
{
	int			filter_argument;	/* of the call, from 0 */
	Node	   *filter;
	Node	   *query;			/* a call of bloom_query() */
} QueryExpression;

/*
 * Finds the equivalent of a call of a function behind @> or <@, or of
 * bloom_contains_any(), _all() or _least().  False if there is none, or if
 * computing the query could raise an error that the call does not.
 */
extern bool find_query_expression(Oid function, List *arguments, Oid collation,
								  QueryExpression *expression);

/*
 * Estimates the share of rows whose filter has enough of a query's keys.  function
 * is the one that the condition calls.
 */
extern double query_selectivity(PlannerInfo *root, Oid function, Node *filter, Node *query,
								int varRelid);

#endif							/* BF_QUERY_EXPRESSION_H */
