/*
 * sparse.h
 *		Sorted arrays of distinct hashes, the payload of sparse filters.
 *
 * A hash is 8 little-endian bytes at any alignment.  In a counter, the array of
 * all hashes is followed by an array with the number of each, of 2 bytes.
 */
#ifndef BF_SPARSE_H
#define BF_SPARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "bytes.h"
#include "numbers.h"

#define BF_HASH_BYTES	8
#define BF_NUMBER_BYTES	2

static inline uint64_t
bf_hash_at(const uint8_t *hashes, uint64_t i)
{
	return bf_load64(hashes + BF_HASH_BYTES * i);
}

/* The number of hash i in a counter of count hashes. */
static inline uint32_t
bf_number_of(const uint8_t *hashes, uint64_t count, uint64_t i)
{
	return bf_load16(hashes + BF_HASH_BYTES * count + BF_NUMBER_BYTES * i);
}

/* The number of hashes below hash, which is the index of hash if present. */
extern uint64_t bf_lower_bound(const uint8_t *hashes, uint64_t count, uint64_t hash);

/* The index of a hash, or count if it is absent. */
extern uint64_t bf_sparse_find(const uint8_t *hashes, uint64_t count, uint64_t hash);

/*
 * The range [from, to) in which a hash is expected in an array of count > 0
 * random hashes: its expected index plus or minus four standard deviations.
 * The index is binomial, so its standard deviation is at most sqrt(count) / 2.
 */
extern void bf_expected_range(uint64_t count, uint64_t hash, uint64_t *from, uint64_t *to);

/* The state of a merge of two sorted arrays. */
typedef struct bf_merge
{
	const uint8_t *a;
	const uint8_t *b;
	uint64_t	acount;
	uint64_t	bcount;
	uint64_t	i;				/* the next index in a */
	uint64_t	j;				/* and in b */
	bool		misfit;			/* a difference was below 0 */
} bf_merge;

static inline bool
bf_merge_done(const bf_merge *merge)
{
	return merge->i == merge->acount && merge->j == merge->bcount;
}

/*
 * Reads up to max distinct hashes, and writes those of the union or intersection
 * to out, unless out is NULL.  Returns how many belong to it.  Call until
 * bf_merge_done().
 */
extern uint64_t bf_merge_union(bf_merge *merge, uint8_t *out, uint64_t max);
extern uint64_t bf_merge_intersection(bf_merge *merge, uint8_t *out, uint64_t max);

/*
 * The same for counters with numbers up to limit: combines the numbers of each
 * hash, 0 if a side lacks it, and keeps the hashes whose result is not 0.  Writes
 * them and their numbers unless hashes is NULL.
 */
extern uint64_t bf_merge_numbers(bf_merge *merge, bf_combination combination, uint32_t limit,
								 uint8_t *hashes, uint8_t *numbers, uint64_t max);

#endif							/* BF_SPARSE_H */
