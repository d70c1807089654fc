/*
 * compatible.h
 *		Which filters combine and fold, and the parameters of the result.
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
	BF_MISMATCH_CELL_BITS,
	BF_MISMATCH_SIZE
} bf_mismatch;

extern bool bf_equal_params(const bf_params *a, const bf_params *b);

/*
 * Two filters combine if an element has the same hash and sets the same bits
 * in both.  The requested rates may differ, because they do not affect bits.
 * An empty filter combines with every element class, and the filter without a
 * size combines with every filter.  The size is compared last.
 */
extern bf_mismatch bf_compare_params(const bf_params *a, const bf_params *b);

/* True if a dense filter with these parameters folds to m bits. */
extern bool bf_folds_to(const bf_params *params, uint64_t m);

/* Like bf_compare_params(), but accepts sizes if one folds to the other. */
extern bf_mismatch bf_compare_folded(const bf_params *a, const bf_params *b);

/*
 * The parameters of the union or intersection of two filters that combine: the
 * lower rate, and the element class of either.  If only one has a size, the
 * result has the parameters of that one.  Commutative, associative and
 * idempotent.
 */
extern bf_params bf_combined_params(const bf_params *a, const bf_params *b);

/*
 * The smallest size above m to which a dense filter with these parameters
 * folds.  Start with m = 0; the last one is the filter's own size.  Takes time
 * proportional to the difference in blocks.
 */
extern uint64_t bf_next_fold(const bf_params *params, uint64_t m);

#endif							/* BF_COMPATIBLE_H */
