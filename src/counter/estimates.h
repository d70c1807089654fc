/*
 * estimates.h
 *		Estimates from a counter.
 */
#ifndef BF_COUNTER_ESTIMATES_H
#define BF_COUNTER_ESTIMATES_H

#include "pg/pg_compat.h"

#include "core/filter.h"

/*
 * The number of elements with repetitions; exact if sparse, except for saturated
 * numbers.  The counter must hold counts.
 */
extern double measure_total(const bf_filter *counter);

#endif							/* BF_COUNTER_ESTIMATES_H */
