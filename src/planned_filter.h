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
 * Is an operand the result of a subquery of the form "(SELECT bloom_agg(x) FROM
 * ...)" that is planned to run once, an InitPlan?  If so, what its plan says.
 */
extern bool find_planned_filter(PlannerInfo *root, Node *operand, PlannedFilter *filter);

#endif							/* BF_PLANNED_FILTER_H */
