/*
 * subquery_filter.h
 *		What the planner knows of a filter that the query is going to build.
 */
#ifndef BF_SUBQUERY_FILTER_H
#define BF_SUBQUERY_FILTER_H

#include "postgres.h"

#include "nodes/pathnodes.h"

typedef struct SubqueryFilter
{
	double		elements;		/* distinct ones */
	double		rate;			/* requested false-positive rate */
} SubqueryFilter;

/*
 * Is an operand what bloom_agg computes in a subquery that runs once, an
 * InitPlan, or in a CTE or FROM clause below it?  If so, what is known of it.
 */
extern bool find_subquery_filter(PlannerInfo *root, Node *operand, SubqueryFilter *filter);

#endif							/* BF_SUBQUERY_FILTER_H */
