/*
 * hashset.h
 *		A set of 64-bit hashes, as an aggregate collects them while its filter
 *		is sparse or has no size yet.  For a counter, each hash has a number.
 *
 * Open addressing with linear probing, in memory that the caller zeroes.
 * Slots are in the order of salt * hash, so growing reads and writes both
 * tables sequentially.  The salt is odd and secret: an attacker who chooses
 * the elements cannot crowd their hashes into one range of slots.  It never
 * affects a result.
 *
 * Storing a number less 1 saves a cache miss for each hash that comes once: a
 * new hash finds the right number in place.
 */
#ifndef BF_HASHSET_H
#define BF_HASHSET_H

#include "filter.h"

typedef struct bf_hashset
{
	uint64_t   *slots;			/* 0 if empty; owned by the caller */
	uint16_t   *extra;			/* numbers less 1, hash 0's last; or NULL */
	uint64_t	salt;
	uint32_t	count;			/* distinct hashes, including 0 */
	uint8_t		log2_slots;
	bool		has_zero;		/* contains 0, which no slot can hold */
} bf_hashset;

#define BF_HASHSET_MIN_LOG2 4

_Static_assert(BF_SIZING_LIMIT <= UINT32_MAX && BF_MAX_BITS / 8 / BF_HASH_BYTES <= UINT32_MAX,
			   "count holds the hashes of the largest sparse filter");

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

/* Prefetches what bf_hashset_find() will read first. */
static inline __attribute__((always_inline)) void
bf_hashset_prefetch(const bf_hashset *set, uint64_t hash)
{
	__builtin_prefetch(set->slots + bf_hashset_slot(set, hash), 1);
}

/*
 * The index of a hash, also in extra: the slot that has it, or the one that
 * would take it.
 */
static inline size_t
bf_hashset_find(const bf_hashset *set, uint64_t hash)
{
	size_t		mask = bf_hashset_slots(set) - 1;
	size_t		i;

	if (hash == 0)
		return mask + 1;
	for (i = bf_hashset_slot(set, hash); set->slots[i] != 0 && set->slots[i] != hash; i = (i + 1) & mask)
		;
	return i;
}

/* Adds a hash to a set that is not full, unless it is there.  Returns its index. */
static inline size_t
bf_hashset_place(bf_hashset *set, uint64_t hash, bool *added)
{
	size_t		i = bf_hashset_find(set, hash);

	if (hash == 0)
	{
		*added = !set->has_zero;
		set->has_zero = true;
	}
	else
	{
		*added = set->slots[i] == 0;
		set->slots[i] = hash;
	}
	set->count += *added;
	assert(!*added || set->count <= bf_hashset_slots(set) / 4 * 3);
	return i;
}

/* The number of the hash with an index, in a set that has numbers. */
static inline uint32_t
bf_hashset_number(const bf_hashset *set, size_t index)
{
	assert(set->extra != NULL && index <= bf_hashset_slots(set));
	return set->extra[index] + UINT32_C(1);
}

/* Sets the number of the hash with an index; at least 1. */
static inline void
bf_hashset_set_number(bf_hashset *set, size_t index, uint32_t number)
{
	assert(number >= 1 && number <= BF_MAX_NUMBER);
	set->extra[index] = (uint16_t) (number - 1);
}

/*
 * Copies the hashes of the slots [from, to) to out, unordered, and returns
 * their number.  The hash 0 counts as part of slot 0.  out has room for
 * to - from + 1 hashes, and so has numbers if the set has them.
 */
extern size_t bf_hashset_read(const bf_hashset *set, size_t from, size_t to, uint64_t *out,
							  uint16_t *numbers);

/*
 * Moves the hashes of the slots [from, to), except 0, to the slots at `at` and
 * following, and returns how many they are.  at <= from.  Replaces extra by
 * their numbers.  Destroys the set: call it for all slots in ascending order to
 * turn them into plain arrays.
 */
extern size_t bf_hashset_compact(bf_hashset *set, size_t from, size_t to, size_t at);

#endif							/* BF_HASHSET_H */
