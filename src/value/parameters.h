/*
 * parameters.h
 *		Checking user input, and computing and comparing a filter's parameters.
 */
#ifndef BF_PARAMETERS_H
#define BF_PARAMETERS_H

#include "pg/pg_compat.h"

#include "core/filter.h"
#include "value/errors.h"

#define DEFAULT_RATE 0.01

/* Parses "blocked" or "classic" in any case; an error for other names. */
extern bf_layout layout_from_name(const char *name);

pg_noreturn extern void report_too_few_items(double items);

/* An error below 1 and for NaN.  Inline, because it runs once per row. */
static inline void
check_expected_items(double items)
{
	if (unlikely(!(items >= 1)))
		report_too_few_items(items);
}

/*
 * Checks a rate and rounds it to the precision that filters store.  Everything
 * is computed from the rounded rate, so a stored filter gives the same results.
 */
extern float check_rate(double rate);

/* Checks the argument counter_bits: an error unless it is 4, 8 or 16. */
extern uint32 check_counter_bits(int32 counter_bits);

/*
 * Checks how often an element is added, its level, or a decay: an error unless
 * it is between 1 and the limit of the numbers.  name is that of the parameter.
 */
extern uint32 check_number(const char *name, int32 number, uint32 cell_bits);

/*
 * The parameters of a filter for expected_items elements, rounded up.  Checks all
 * arguments but cell_bits.  Solutions are cached by rate, and in the classic
 * layout by rate and number; see bf_solutions for their cost.
 */
extern bf_params solve_params(double expected_items, double rate, bf_layout layout, uint64 seed,
							  uint32 cell_bits);

/* The parameters of a filter without a size.  Checks the rate. */
extern bf_params unsized_params(double rate, uint32 cell_bits);

/* The most elements that keep the rate; 0 without a size.  Also cached. */
extern uint64 filter_capacity(const bf_params *params);

/*
 * The number of cells of the smallest filter that holds n elements at the rate in
 * params and has a power of two of blocks; an error if the largest is too small.
 */
extern uint64 self_size(const bf_params *params, uint64 n);

/* Raises an error unless the two filters combine. */
extern void require_match(const bf_params *left, const bf_params *right);

/* As require_match(); returns the parameters of their union or intersection. */
extern bf_params combine_params(const bf_params *left, const bf_params *right);

/*
 * Prepares a filter's parameters for an element: sets the class of the first
 * one; a different class is an error.
 */
static inline void
adopt_element_class(bf_params *params, uint32 element_class)
{
	if (params->element_class == BF_CLASS_NONE)
		params->element_class = element_class;
	else if (unlikely(params->element_class != element_class))
		report_class_mismatch(params, element_class);
}

#endif							/* BF_PARAMETERS_H */
