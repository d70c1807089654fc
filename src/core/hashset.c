/*
 * hashset.c
 *		Reading a set of hashes.
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
		if (set->slots[i] != 0)
			out[count++] = set->slots[i];
	}
	return count;
}
