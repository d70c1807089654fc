/*
 * subquery_filter.h
 *		Estimates for a filter that a subquery builds.
 */
#ifndef BF_SUBQUERY_FILTER_H
#define BF_SUBQUERY_FILTER_H

#include "pg/pg_compat.h"

#include "nodes/pathnodes.h"

typedef struct SubqueryFilter
{
	double		elements;		/* distinct elements */
	double		rate;			/* requested false-positive rate */
} SubqueryFilter;

/*
 * True if bloom_agg computes an operand; then sets *filter.  Looks through scalar
 * subqueries, CTEs and subqueries in FROM.
 */
extern bool find_subquery_filter(PlannerInfo *root, Node *operand, SubqueryFilter *filter);

#endif							/* BF_SUBQUERY_FILTER_H */
