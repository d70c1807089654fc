/*
 * combine.h
 *		Combining two values of one kind.
 */
#ifndef BF_COMBINE_H
#define BF_COMBINE_H

#include "core/numbers.h"
#include "value/value.h"

/*
 * A new value with the parameters and levels of *result.  Of filters BF_GREATER is
 * the union and BF_LESSER the intersection.  A difference below 0 is an error.
 */
extern BloomValue *combine_filters(const bf_filter *left, const bf_filter *right, bf_filter *result,
								   bf_combination combination);

/* True if super may contain every element of sub.  The two filters must combine. */
extern bool may_contain_all(const bf_filter *super, const bf_filter *sub);

#endif							/* BF_COMBINE_H */
