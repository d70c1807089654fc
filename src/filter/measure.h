/*
 * measure.h
 *		Counts, estimates and the current rate of one filter or counter.
 *
 * Each call reads the whole payload once, interruptibly.  In a counter, a bit is
 * set where the number is not 0.
 */
#ifndef BF_MEASURE_H
#define BF_MEASURE_H

#include "postgres.h"

#include "core/filter.h"

typedef struct FilterMeasures
{
	uint64		bits_set;		/* 0 if sparse */
	uint64		full_blocks;	/* blocks with every bit set; 0 if sparse */
	double		cardinality;	/* infinite if saturated */
	double		rate;			/* current false-positive rate */
} FilterMeasures;

extern FilterMeasures measure_filter(const bf_filter *filter);

/* One of these alone, which is faster for small filters. */
extern double measure_cardinality(const bf_filter *filter);
extern double measure_rate(const bf_filter *filter);

#endif							/* BF_MEASURE_H */
