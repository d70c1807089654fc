/*
 * hashset.c
 *		Extracting the hashes of a set.
 */
#include "hashset.h"

size_t
bf_hashset_read(const bf_hashset *set, size_t from, size_t to, uint64_t *out)
{
	size_t		count = 0;

	if (from == 0 && set->has_zero)
		out[count++] = 0;
	for (size_t i = from; i < to; i++)
	{
		out[count] = set->slots[i]; /* overwritten if empty */
		count += set->slots[i] != 0;
	}
	return count;
}

size_t
bf_hashset_compact(bf_hashset *set, size_t from, size_t to, size_t at)
{
	size_t		count = 0;

	for (size_t i = from; i < to; i++)
	{
		uint64_t	hash = set->slots[i];

		set->slots[at + count] = hash;	/* overwritten if empty */
		count += hash != 0;
	}
	return count;
}
