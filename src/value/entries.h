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
	/* private */
	const bf_filter *filter;
	uint64		next;
} EntryWalk;

static inline EntryWalk
walk_entries(const bf_filter *filter)
{
	EntryWalk	walk = {.filter = filter};

	return walk;
}

static inline bool
next_entry(EntryWalk *walk)
{
	const bf_filter *filter = walk->filter;

	if (walk->next == filter->nhashes)
		return false;
	if (walk->next % CHUNK_HASHES == 0)
		CHECK_FOR_INTERRUPTS();
	walk->hash = bf_hash_at(filter->payload, walk->next);
	walk->number = bf_number_of(filter, walk->next);
	walk->next++;
	return true;
}

/* Makes a sparse value of elements in the order of their hashes. */
typedef struct EntryWriter
{
	bf_filter  *result;
	BloomValue *value;
	uint8	   *hashes;
	uint8	   *numbers;		/* unused in a Bloom filter */
	uint64		count;
} EntryWriter;

/* Starts a value with the parameters of result and at most `most` elements. */
extern EntryWriter write_entries(bf_filter *result, uint64 most);

static inline void
put_entry(EntryWriter *writer, uint64 hash, uint32 number)
{
	bf_store64(writer->hashes + BF_HASH_BYTES * writer->count, hash);
	if (bf_kind_of(&writer->result->params) == BF_COUNTER)
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
