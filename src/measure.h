/*
 * measure.h
 *		What a filter's bits say: counts, estimates and the current rate.
 */
#ifndef BF_MEASURE_H
#define BF_MEASURE_H

#include "core/format.h"

typedef struct FilterMeasures
{
	uint64		bits_set;		/* 0 if sparse */
	double		cardinality;	/* infinite if saturated */
	double		rate;			/* the false-positive rate now */
} FilterMeasures;

extern FilterMeasures measure_filter(const bf_filter *filter);

#endif							/* BF_MEASURE_H */
