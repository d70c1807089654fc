/*
 * setops.h
 *		Set operations that aggregates and estimates also use.
 */
#ifndef BF_SETOPS_H
#define BF_SETOPS_H

#include "core/sparse.h"
#include "filter/value.h"

/* bf_merge_union or bf_merge_intersection. */
typedef uint64_t (*MergeStep) (bf_merge *, uint8_t *, uint64_t);

/*
 * Merges two sparse filters.  Writes the hashes to out, unless out is NULL, and
 * returns their number.
 */
extern uint64 merge_hashes(const bf_filter *left, const bf_filter *right, MergeStep step,
						   uint8 *out);

/* The intersection, with the parameters of combine_params(), as a new value. */
extern Bloomfilter *intersect_filters(const bf_filter *left, const bf_filter *right,
									  const bf_params *params);

#endif							/* BF_SETOPS_H */
