/*
 * compatible.h
 *		Which filters can be united, intersected and folded, and to what.
 */
#ifndef BF_COMPATIBLE_H
#define BF_COMPATIBLE_H

#include "filter.h"

/* Why two filters cannot be combined. */
typedef enum bf_mismatch
{
	BF_MATCH = 0,
	BF_MISMATCH_CLASS,
	BF_MISMATCH_LAYOUT,
	BF_MISMATCH_K,
	BF_MISMATCH_SEED,
	BF_MISMATCH_SIZE
} bf_mismatch;

extern bool bf_equal_params(const bf_params *a, const bf_params *b);

/*
 * Two filters combine if an element has the same hash and sets the same bits
 * in both.  The requested rates may differ: they set no bit.  A filter that
 * nothing was added to combines with every element class, and the filter
 * without a size with every other.  The size is compared last.
 */
extern bf_mismatch bf_compare_params(const bf_params *a, const bf_params *b);

/* Does a dense filter with these parameters fold to m bits? */
extern bool bf_folds_to(const bf_params *params, uint64_t m);

/* As bf_compare_params(), where the larger filter may be folded first. */
extern bf_mismatch bf_compare_folded(const bf_params *a, const bf_params *b);

/*
 * The parameters of the union or intersection of two filters that combine:
 * the lower of their rates and the element class of either.  Symmetric,
 * associative and idempotent.
 */
extern bf_params bf_combined_params(const bf_params *a, const bf_params *b);

/*
 * The next size above m to which a dense filter with these parameters folds; its
 * own at the end.  Begin at m = 0.  Takes time proportional to the difference
 * in blocks.
 */
extern uint64_t bf_next_fold(const bf_params *params, uint64_t m);

#endif							/* BF_COMPATIBLE_H */
