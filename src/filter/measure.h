/*
 * measure.h
 *		What a filter's bits say: counts, estimates and the current rate.
 *
 * Each call reads all bits once.
 */
#ifndef BF_MEASURE_H
#define BF_MEASURE_H


#include "core/filter.h"

typedef struct FilterMeasures
{
	uint64		bits_set;		/* 0 if sparse */
	uint64		full_blocks;	/* with every bit set; 0 if sparse */
	double		cardinality;	/* infinite if saturated */
	double		rate;			/* the false-positive rate now */
} FilterMeasures;

extern FilterMeasures measure_filter(const bf_filter *filter);

/* One of these alone, which takes less time for a small filter. */
extern double measure_cardinality(const bf_filter *filter);
extern double measure_rate(const bf_filter *filter);

#endif							/* BF_MEASURE_H */
