/*
 * hashset.h
 *		A set of 64-bit hashes that grows: what an aggregate collects while its
 *		filter is sparse or has no size yet.
 *
 * Open addressing with linear probing in memory that the caller provides.
 * Slots are in the order of salt * hash, so growing streams through both
 * tables instead of jumping about.  The salt, odd and unknown to whoever
 * chooses the elements, keeps chosen hashes from crowding into one stretch of
 * slots; it never shows in a result.
 */
#ifndef BF_HASHSET_H
#define BF_HASHSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bf_hashset
{
	uint64_t   *slots;			/* 0 where empty; the caller's memory */
	uint64_t	salt;
	uint32_t	count;			/* distinct hashes, 0 included */
	uint8_t		log2_slots;
	bool		has_zero;		/* 0 cannot stand in a slot */
} bf_hashset;

#define BF_HASHSET_MIN_LOG2 4

static inline size_t
bf_hashset_slots(const bf_hashset *set)
{
	return (size_t) 1 << set->log2_slots;
}

/* Must the set grow before something can be added?  At 3/4 it must. */
static inline bool
bf_hashset_full(const bf_hashset *set)
{
	return set->count >= bf_hashset_slots(set) / 4 * 3;
}

static inline size_t
bf_hashset_slot(const bf_hashset *set, uint64_t hash)
{
	return (size_t) ((hash * set->salt) >> (64 - set->log2_slots));
}

/* Asks the CPU to fetch what bf_hashset_add() is going to look at. */
static inline void
bf_hashset_prefetch(const bf_hashset *set, uint64_t hash)
{
	__builtin_prefetch(set->slots + bf_hashset_slot(set, hash), 1);
}

/* Adds a hash to a set that is not full; true if it was not there yet. */
static inline bool
bf_hashset_add(bf_hashset *set, uint64_t hash)
{
	size_t		mask = bf_hashset_slots(set) - 1;
	size_t		i;

	if (hash == 0)
	{
		bool		added = !set->has_zero;

		set->has_zero = true;
		set->count += added;
		return added;
	}
	for (i = bf_hashset_slot(set, hash); set->slots[i] != 0; i = (i + 1) & mask)
	{
		if (set->slots[i] == hash)
			return false;
	}
	set->slots[i] = hash;
	set->count++;
	return true;
}

/*
 * Copies the hashes of the slots [from, to) to out, in no order, and returns
 * how many.  That of 0 comes with slot 0.  out has room for one more than
 * there are slots.
 */
extern size_t bf_hashset_read(const bf_hashset *set, size_t from, size_t to, uint64_t *out);

/*
 * Moves the hashes of the slots [from, to) to the slots from `at` on, which is
 * no later, and returns how many.  That of 0 is left out.  For going through
 * all slots in order and breaking up the set, which is none any more.
 */
extern size_t bf_hashset_compact(bf_hashset *set, size_t from, size_t to, size_t at);

#endif							/* BF_HASHSET_H */
