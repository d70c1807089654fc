/*
 * constant_filter.h
 *		What the planner can compute of an operand, once per planning.
 */
#ifndef BF_CONSTANT_FILTER_H
#define BF_CONSTANT_FILTER_H

#include "postgres.h"

#include "filter/measure.h"
#include "nodes/pathnodes.h"

typedef struct EstimatedFilter
{
	Node	   *operand;		/* a filter, as the query has it */
	Node	   *value;			/* the same simplified: a Const if that is known */
	bool		measured;
	FilterMeasures measures;
} EstimatedFilter;

/*
 * The estimated value of an operand.  Like everything it points to it lives as
 * long as the planning, in which an operand that has a value is evaluated only
 * once.
 */
extern EstimatedFilter *estimate_filter(PlannerInfo *root, Node *operand);

/* The measures of a filter that has been opened from that value. */
extern FilterMeasures measure_once(EstimatedFilter *estimated, const bf_filter *filter);

#endif							/* BF_CONSTANT_FILTER_H */
