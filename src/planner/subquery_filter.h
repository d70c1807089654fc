/*
 * subquery_filter.h
 *		Estimates for a filter that a subquery builds.
 */
#ifndef BF_SUBQUERY_FILTER_H
#define BF_SUBQUERY_FILTER_H

#include "postgres.h"

#include "nodes/pathnodes.h"

typedef struct SubqueryFilter
{
	double		elements;		/* distinct elements */
	double		rate;			/* requested false-positive rate */
} SubqueryFilter;

/*
 * Does bloom_agg compute an operand, in an InitPlan or in a CTE or FROM clause
 * below it?  If so, *filter is the estimate.
 */
extern bool find_subquery_filter(PlannerInfo *root, Node *operand, SubqueryFilter *filter);

#endif							/* BF_SUBQUERY_FILTER_H */
