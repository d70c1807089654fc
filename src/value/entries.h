/*
 * entries.h
 *		Interruptible loops over the elements of sparse filters.
 */
#ifndef BF_ENTRIES_H
#define BF_ENTRIES_H

#include "pg/pg_compat.h"

#include "core/sparse.h"
#include "miscadmin.h"
#include "value/value.h"

/*
 * Visits the elements of a sparse filter in the order of their hashes:
 *
 *		EntryWalk walk = walk_entries(&filter);
 *		while (next_entry(&walk))
 *			... use walk.hash and walk.number ...
 */
typedef struct EntryWalk
{
	uint64		hash;
	uint32		number;			/* 1 in a Bloom filter */
	/* private, and copied so that stores to a result do not reload them */
	const uint8 *hashes;
	const uint8 *numbers;		/* NULL in a Bloom filter */
	uint64		next;
	uint64		count;
} EntryWalk;

static inline EntryWalk
walk_entries(const bf_filter *filter)
{
	EntryWalk	walk = {.number = 1, .hashes = filter->payload, .count = filter->nhashes};

	if (bf_kind_of(&filter->params) == BF_COUNTER)
		walk.numbers = bf_numbers_of(filter);
	return walk;
}

static inline bool
next_entry(EntryWalk *walk)
{
	if (walk->next == walk->count)
		return false;
	if (walk->next % CHUNK_HASHES == 0)
		CHECK_FOR_INTERRUPTS();
	walk->hash = bf_hash_at(walk->hashes, walk->next);
	if (walk->numbers != NULL)
		walk->number = bf_load16(walk->numbers + BF_NUMBER_BYTES * walk->next);
	walk->next++;
	return true;
}

/* Makes a sparse value of elements in the order of their hashes. */
typedef struct EntryWriter
{
	bf_filter  *result;
	BloomValue *value;
	uint8	   *hashes;
	uint8	   *numbers;		/* NULL in a Bloom filter */
	uint64		count;
} EntryWriter;

/* Starts a value with the parameters of result and at most `most` elements. */
extern EntryWriter write_entries(bf_filter *result, uint64 most);

static inline void
put_entry(EntryWriter *writer, uint64 hash, uint32 number)
{
	bf_store64(writer->hashes + BF_HASH_BYTES * writer->count, hash);
	if (writer->numbers != NULL)
		bf_store16(writer->numbers + BF_NUMBER_BYTES * writer->count, (uint16) number);
	writer->count++;
}

/* Returns the value, which *result then describes. */
extern BloomValue *finish_entries(EntryWriter *writer);

/*
 * Merges two sparse filters of one kind.  Writes the elements unless hashes is
 * NULL, and returns their number.  A difference below 0 is an error.
 */
extern uint64 merge_entries(const bf_filter *left, const bf_filter *right, bf_combination combination,
							uint8 *hashes, uint8 *numbers);

#endif							/* BF_ENTRIES_H */
