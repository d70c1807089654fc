/*
 * measure.h
 *		Counts, estimates and the current rate of one filter.
 *
 * Each call reads the whole payload once, interruptibly.  A cell is set if it is
 * not 0.
 */
#ifndef BF_MEASURE_H
#define BF_MEASURE_H

#include "pg/pg_compat.h"

#include "core/filter.h"

typedef struct FilterMeasures
{
	uint64		cells_set;		/* 0 if sparse */
	uint64		full_blocks;	/* blocks with every cell set; 0 if sparse */
	double		cardinality;	/* infinite if saturated */
	double		rate;			/* current false-positive rate */
} FilterMeasures;

extern FilterMeasures measure_filter(const bf_filter *filter);

/* One of these alone, which is faster for small filters. */
extern double measure_cardinality(const bf_filter *filter);
extern double measure_rate(const bf_filter *filter);

/* How many cells of a dense filter are at least level. */
extern uint64 count_cells(const bf_filter *dense, uint32 level);

/*
 * The number of elements with repetitions; exact if sparse, except for saturated
 * numbers.  The counter must hold counts.
 */
extern double measure_total(const bf_filter *counter);

#endif							/* BF_MEASURE_H */
