/*
 * params.h
 *		From what a user asks for to a filter's parameters.
 */
#ifndef BF_PARAMS_H
#define BF_PARAMS_H

#include "pg/pg_compat.h"

#include "core/filter.h"

#define DEFAULT_RATE 0.01

/* "blocked" or "classic"; an error for anything else. */
extern bf_layout layout_from_name(const char *name);

pg_noreturn extern void report_too_few_items(double items);

/* An error below 1 and for NaN; inline, as transition functions ask per row. */
static inline void
check_expected_items(double items)
{
	if (unlikely(!(items >= 1)))
		report_too_few_items(items);
}

/*
 * A rate within bounds, in the precision in which filters store it; everything
 * is derived from that, so that what a filter says of itself is what it was
 * sized by.  An error out of bounds.
 */
extern float check_rate(double rate);

/*
 * The parameters of a filter for so many elements, a fraction rounded up;
 * checks everything.  Cheap but for the first time with a rate or, in the
 * classic layout, with a rate and a number.
 */
extern bf_params solve_params(double expected_items, double rate, bf_layout layout, uint64 seed);

/* The parameters of a filter that has no size yet. */
extern bf_params unsized_params(double rate);

/* The most elements with which a filter keeps its rate; 0 without a size.  As cheap. */
extern uint64 filter_capacity(const bf_params *params);

/*
 * The least size for n elements at the parameters' rate that is a power of two
 * of blocks; an error if there is none.
 */
extern uint64 self_size(const bf_params *params, uint64 n);

#endif							/* BF_PARAMS_H */
