/*
 * hashset.c
 *		Extracting the hashes of a set.
 */
#include "hashset.h"

/* Both loops write an empty slot too, and overwrite it later: no branch. */

size_t
bf_hashset_read(const bf_hashset *set, size_t from, size_t to, uint64_t *out, uint16_t *numbers)
{
	size_t		count = 0;

	assert(from <= to && to <= bf_hashset_slots(set));
	assert(set->extra == NULL || numbers != NULL);
	if (from == 0 && set->has_zero)
	{
		if (set->extra != NULL)
			numbers[count] = (uint16_t) bf_hashset_number(set, bf_hashset_slots(set));
		out[count++] = 0;
	}
	for (size_t i = from; i < to; i++)
	{
		if (set->extra != NULL)
			numbers[count] = (uint16_t) bf_hashset_number(set, i);
		out[count] = set->slots[i];
		count += set->slots[i] != 0;
	}
	return count;
}

size_t
bf_hashset_compact(bf_hashset *set, size_t from, size_t to, size_t at)
{
	size_t		count = 0;

	assert(at <= from && from <= to && to <= bf_hashset_slots(set));
	for (size_t i = from; i < to; i++)
	{
		uint64_t	hash = set->slots[i];

		if (set->extra != NULL)
			set->extra[at + count] = (uint16_t) bf_hashset_number(set, i);
		set->slots[at + count] = hash;
		count += hash != 0;
	}
	return count;
}
