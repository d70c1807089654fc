/*
 * sparse.c
 *		Searching and merging sorted arrays of hashes.
 */
#include "sparse.h"

#include <math.h>
#include <stddef.h>

uint64_t
bf_lower_bound(const uint8_t *hashes, uint64_t count, uint64_t hash)
{
	uint64_t	low = 0;

	while (count > 0)
	{
		uint64_t	half = count / 2;

		if (bf_hash_at(hashes, low + half) < hash)
		{
			low += half + 1;
			count -= half + 1;
		}
		else
			count = half;
	}
	return low;
}

uint64_t
bf_sparse_find(const uint8_t *hashes, uint64_t count, uint64_t hash)
{
	uint64_t	i = bf_lower_bound(hashes, count, hash);

	return i < count && bf_hash_at(hashes, i) == hash ? i : count;
}

void
bf_expected_range(uint64_t count, uint64_t hash, uint64_t *from, uint64_t *to)
{
	uint64_t	middle = ((hash >> 32) * count) >> 32;
	uint64_t	margin = (uint64_t) (2 * sqrt((double) count)) + 1;

	assert(count > 0);
	*from = middle > margin ? middle - margin : 0;
	*to = count - middle > margin ? middle + margin : count;
}

/* Reads the least remaining hash, and tells which sides have it. */
static inline __attribute__((always_inline)) uint64_t
next_hash(bf_merge *merge, bool *in_a, bool *in_b)
{
	bool		a_left = merge->i < merge->a->nhashes;
	bool		b_left = merge->j < merge->b->nhashes;
	uint64_t	a = a_left ? bf_hash_at(merge->a->payload, merge->i) : UINT64_MAX;
	uint64_t	b = b_left ? bf_hash_at(merge->b->payload, merge->j) : UINT64_MAX;

	*in_a = a_left && a <= b;
	*in_b = b_left && b <= a;
	merge->i += *in_a;
	merge->j += *in_b;
	return a < b ? a : b;
}

/* An intersection keeps the hashes that both sides have, a union keeps all. */
static inline __attribute__((always_inline)) uint64_t
merge_hashes(bf_merge *merge, uint8_t *hashes, uint64_t max)
{
	bool		intersect = merge->combination == BF_LESSER;
	uint64_t	count = 0;

	assert(merge->combination != BF_DIFFERENCE);
	for (; max > 0 && !bf_merge_done(merge); max--)
	{
		bool		in_a;
		bool		in_b;
		uint64_t	hash = next_hash(merge, &in_a, &in_b);

		if (intersect && !(in_a && in_b))
			continue;
		if (hashes != NULL)
			bf_store64(hashes + BF_HASH_BYTES * count, hash);
		count++;
	}
	return count;
}

static inline __attribute__((always_inline)) uint64_t
merge_numbers(bf_merge *merge, uint8_t *hashes, uint8_t *numbers, uint64_t max)
{
	uint32_t	limit = bf_cell_limit(merge->a->params.cell_bits);
	uint64_t	count = 0;

	for (; max > 0 && !bf_merge_done(merge); max--)
	{
		bool		in_a;
		bool		in_b;
		uint64_t	hash = next_hash(merge, &in_a, &in_b);
		uint32_t	a = in_a ? bf_number_of(merge->a, merge->i - 1) : 0;
		uint32_t	b = in_b ? bf_number_of(merge->b, merge->j - 1) : 0;
		uint32_t	number;

		if (merge->combination == BF_DIFFERENCE && !bf_has_difference(a, b, limit))
		{
			merge->misfit = true;
			continue;
		}
		number = bf_combine_two(merge->combination, a, b, limit);
		if (number == 0)
			continue;
		if (hashes != NULL)
		{
			bf_store64(hashes + BF_HASH_BYTES * count, hash);
			bf_store16(numbers + BF_NUMBER_BYTES * count, (uint16_t) number);
		}
		count++;
	}
	return count;
}

uint64_t
bf_merge_entries(bf_merge *merge, uint8_t *hashes, uint8_t *numbers, uint64_t max)
{
	/* copies, which stores to hashes cannot change, stay in registers */
	bf_filter	a = *merge->a;
	bf_filter	b = *merge->b;
	bf_merge	state = *merge;
	uint64_t	count;

	state.a = &a;
	state.b = &b;
	assert(merge->a->sparse && merge->b->sparse && max > 0);
	assert(bf_is_empty(merge->a) || merge->a->params.cell_bits == merge->b->params.cell_bits);
	if (bf_kind_of(&a.params) == BF_FILTER)
		count = merge_hashes(&state, hashes, max);
	else
		count = merge_numbers(&state, hashes, numbers, max);
	merge->i = state.i;
	merge->j = state.j;
	merge->misfit = state.misfit;
	return count;
}
