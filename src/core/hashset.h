/*
 * hashset.h
 *		A set of 64-bit hashes, as an aggregate collects them while its filter
 *		is sparse or has no size yet.
 *
 * Open addressing with linear probing, in memory that the caller provides.
 * Slots are in the order of salt * hash, so growing reads and writes both
 * tables sequentially.  The salt is odd and secret: an attacker who chooses
 * the elements cannot crowd their hashes into one range of slots.  It never
 * affects a result.
 */
#ifndef BF_HASHSET_H
#define BF_HASHSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bf_hashset
{
	uint64_t   *slots;			/* 0 if empty; owned by the caller */
	uint64_t	salt;
	uint32_t	count;			/* distinct hashes, including 0 */
	uint8_t		log2_slots;
	bool		has_zero;		/* contains 0, which no slot can hold */
} bf_hashset;

#define BF_HASHSET_MIN_LOG2 4

static inline size_t
bf_hashset_slots(const bf_hashset *set)
{
	return (size_t) 1 << set->log2_slots;
}

/* True if the set must grow before the next insertion: at a load of 3/4. */
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

/* Prefetches the first slot that bf_hashset_add() will read. */
static inline void
bf_hashset_prefetch(const bf_hashset *set, uint64_t hash)
{
	__builtin_prefetch(set->slots + bf_hashset_slot(set, hash), 1);
}

/* Adds a hash to a set that is not full.  True if the hash is new. */
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
 * Copies the hashes of the slots [from, to) to out, unordered, and returns
 * their number.  The hash 0 counts as part of slot 0.  out has room for
 * to - from + 1 hashes.
 */
extern size_t bf_hashset_read(const bf_hashset *set, size_t from, size_t to, uint64_t *out);

/*
 * Moves the hashes of the slots [from, to), except 0, to the slots at `at` and
 * following, and returns their number.  at <= from.  Destroys the set: call it
 * for all slots in ascending order to turn them into a plain array.
 */
extern size_t bf_hashset_compact(bf_hashset *set, size_t from, size_t to, size_t at);

#endif							/* BF_HASHSET_H */
