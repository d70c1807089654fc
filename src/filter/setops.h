/*
 * setops.h
 *		What set operations share with aggregates and estimates.
 */
#ifndef BF_SETOPS_H
#define BF_SETOPS_H


#include "core/sparse.h"
#include "filter/value.h"

/* bf_merge_union or bf_merge_intersection. */
typedef uint64_t (*MergeStep) (bf_merge *, uint8_t *, uint64_t);

/*
 * Merges two sparse filters and returns the number of hashes, which go to out
 * unless that is NULL.
 */
extern uint64 merge_hashes(const bf_filter *left, const bf_filter *right, MergeStep step,
						   uint8 *out);

/* A new value in the current memory context. */
extern Bloomfilter *intersect_filters(const bf_filter *left, const bf_filter *right);

#endif							/* BF_SETOPS_H */
