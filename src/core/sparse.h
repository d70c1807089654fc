/*
 * sparse.h
 *		Sorted arrays of distinct hashes: the payload of sparse filters.
 *
 * Hashes are 8 little-endian bytes each, at any alignment.
 */
#ifndef BF_SPARSE_H
#define BF_SPARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "bytes.h"

static inline uint64_t
bf_hash_at(const uint8_t *hashes, uint64_t i)
{
	return bf_load64(hashes + 8 * i);
}

/* The number of hashes below a bound; hash itself is at that index if present. */
extern uint64_t bf_lower_bound(const uint8_t *hashes, uint64_t count, uint64_t hash);

extern bool bf_sparse_contains(const uint8_t *hashes, uint64_t count, uint64_t hash);

/*
 * The range [from, to) of an array of count > 0 hashes in which a hash stands,
 * if it is there and the hashes are random: its share of the array, give or
 * take four standard deviations (of a binomial variable, at most sqrt(count) / 2).
 */
extern void bf_expected_range(uint64_t count, uint64_t hash, uint64_t *from, uint64_t *to);

/* Two sorted arrays on their way into one. */
typedef struct bf_merge
{
	const uint8_t *a;
	const uint8_t *b;
	uint64_t	acount;
	uint64_t	bcount;
	uint64_t	i;				/* how far a and b have been read */
	uint64_t	j;
} bf_merge;

static inline bool
bf_merge_done(const bf_merge *merge)
{
	return merge->i == merge->acount && merge->j == merge->bcount;
}

/*
 * Takes up to max steps, each of which reads one hash, or one from both sides
 * where they are equal, and writes the hashes of the union or intersection to
 * out, unless that is NULL.  Returns how many there were.  Call until done.
 */
extern uint64_t bf_merge_union(bf_merge *merge, uint8_t *out, uint64_t max);
extern uint64_t bf_merge_intersection(bf_merge *merge, uint8_t *out, uint64_t max);

#endif							/* BF_SPARSE_H */
