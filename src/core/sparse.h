/*
 * sparse.h
 *		Sorted arrays of distinct hashes, the payload of sparse filters.
 *
 * A hash is 8 little-endian bytes at any alignment.  In a counter, the array of
 * all hashes is followed by an array with the number of each, of 2 bytes.
 */
#ifndef BF_SPARSE_H
#define BF_SPARSE_H

#include "bytes.h"
#include "filter.h"
#include "numbers.h"

static inline uint64_t
bf_hash_at(const uint8_t *hashes, uint64_t i)
{
	return bf_load64(hashes + BF_HASH_BYTES * i);
}

/* The address of the numbers that follow the hashes of a sparse counter. */
static inline const uint8_t *
bf_numbers_of(const bf_filter *counter)
{
	assert(counter->sparse && bf_kind_of(&counter->params) == BF_COUNTER);
	return counter->payload + BF_HASH_BYTES * counter->nhashes;
}

/* The number of hash i of a sparse filter: 1 in a Bloom filter. */
static inline uint32_t
bf_number_of(const bf_filter *filter, uint64_t i)
{
	assert(i < filter->nhashes);
	if (bf_kind_of(&filter->params) == BF_FILTER)
		return 1;
	return bf_load16(bf_numbers_of(filter) + BF_NUMBER_BYTES * i);
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

/* The state of a merge of two sparse filters of one kind. */
typedef struct bf_merge
{
	const bf_filter *a;
	const bf_filter *b;
	bf_combination combination;
	uint64_t	i;				/* the next index in a */
	uint64_t	j;				/* and in b */
	bool		misfit;			/* a difference was below 0 */
} bf_merge;

static inline bool
bf_merge_done(const bf_merge *merge)
{
	return merge->i == merge->a->nhashes && merge->j == merge->b->nhashes;
}

/*
 * Reads up to max distinct hashes, combines the numbers of each, 0 if a side
 * lacks it, and keeps the hashes whose result is not 0.  Writes them, and in a
 * counter their numbers, unless hashes is NULL.  Returns how many it kept.  Call
 * until bf_merge_done().
 */
extern uint64_t bf_merge_entries(bf_merge *merge, uint8_t *hashes, uint8_t *numbers, uint64_t max);

#endif							/* BF_SPARSE_H */
