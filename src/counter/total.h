/*
 * total.h
 *		The number of elements in a counter, with repetitions.
 */
#ifndef BF_TOTAL_H
#define BF_TOTAL_H

#include "pg/pg_compat.h"

#include "core/filter.h"

/* Exact if sparse, except for saturated numbers.  The counter must hold counts. */
extern double measure_total(const bf_filter *counter);

#endif							/* BF_TOTAL_H */
