/*
 * constant_filter.h
 *		Filters that the planner can evaluate, each once per planner run.
 */
#ifndef BF_CONSTANT_FILTER_H
#define BF_CONSTANT_FILTER_H

#include "pg/pg_compat.h"

#include "nodes/pathnodes.h"
#include "value/measure.h"

typedef struct ConstantFilter
{
	Node	   *operand;
	Node	   *value;			/* simplified operand, at best a Const */
	bool		measured;
	FilterMeasures measures;	/* valid if measured */
} ConstantFilter;

/* Evaluates an operand.  The result lives until the planner run ends. */
extern ConstantFilter *evaluate_filter(PlannerInfo *root, Node *operand);

/* Measures the filter that the caller has opened from constant->value. */
extern FilterMeasures measure_once(ConstantFilter *constant, const bf_filter *filter);

#endif							/* BF_CONSTANT_FILTER_H */
