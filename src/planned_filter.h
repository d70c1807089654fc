/*
 * planned_filter.h
 *		What the planner knows of a filter that the query is going to build.
 */
#ifndef BF_PLANNED_FILTER_H
#define BF_PLANNED_FILTER_H

#include "postgres.h"

#include "nodes/pathnodes.h"

typedef struct PlannedFilter
{
	double		elements;		/* distinct ones */
	double		rate;			/* requested false-positive rate */
} PlannedFilter;

/*
 * Is an operand what bloom_agg computes in a subquery that runs once, an
 * InitPlan, or in a CTE or FROM clause below it?  If so, what is known of it.
 */
extern bool find_planned_filter(PlannerInfo *root, Node *operand, PlannedFilter *filter);

#endif							/* BF_PLANNED_FILTER_H */
