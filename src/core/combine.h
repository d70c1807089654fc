/*
 * combine.h
 *		Which filters can be united and intersected, and as what; and folded.
 */
#ifndef BF_COMBINE_H
#define BF_COMBINE_H

#include "format.h"

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

/*
 * Two filters combine if equal hashes mean equal elements in both, and the
 * bits of the larger one fold to the size of the smaller: in the blocked
 * layout that is so if one's number of blocks divides the other's.  The
 * filter without a size combines with every other.
 */
extern bf_mismatch bf_compare_params(const bf_params *a, const bf_params *b);

/*
 * The parameters of the union or intersection of two filters that combine:
 * the larger size, the stricter rate, and the element class of either.
 * Symmetric, associative and idempotent.
 */
extern bf_params bf_combined_params(const bf_params *a, const bf_params *b);

/*
 * The next size above m to which a blocked filter of so many bits folds; its
 * own at the end.  Begin at m = 0.  Takes time proportional to the difference
 * in blocks.
 */
extern uint64_t bf_next_fold(uint64_t bits, uint64_t m);

#endif							/* BF_COMBINE_H */
