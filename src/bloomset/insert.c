/*
 * insert.c
 *		Adding an element to a bloomset.  It comes after the row and before the
 *		commit; see README, The Promise.
 */
#include "pg/pg_compat.h"

#include "bloomset/bloomset.h"
#include "storage/predicate.h"

/* A page that is over its share looks at least this often, in elements, whether the set is full. */
#define GROWTH_INTERVAL	32

/* The elements of a page when its generation is full. */
static uint32
share_of_page(const Generation *generation, uint32 number)
{
	return (uint32) (full_elements(generation) / generation->nblocks *
					 blocks_in_page(generation, number));
}

/* Appends a generation if it is time; elements are those of the page. */
static void
grow_if_full(Relation index, const Generation *generation, uint32 number, uint32 elements)
{
	uint32		share = share_of_page(generation, number);
	uint32		interval = Min(GROWTH_INTERVAL, share / 16 + 1);

	if (unlikely(elements > share) && (elements - share) % interval == 1 % interval)
		grow_bloomset(index);
}

/*
 * Adds an element that is not in the set.  The page of generation 1 is locked before
 * the other, which comes after it in the file.
 */
static void
add_hash(Relation index, uint64 hash, uint32 generations)
{
	const BloomsetMeta *meta = &bloomset_state(index, false)->meta;
	uint32		last = meta->ngenerations - 1;
	const Generation *generation = &meta->generation[last];
	BlockPlace	place = place_of(generation, hash);
	Buffer		first = InvalidBuffer;
	Buffer		buffer;
	uint32		elements;

	if (generations < meta->ngenerations)
		first = lock_generation_page(index, meta, 0, place_of(&meta->generation[0], hash).number,
									 BUFFER_LOCK_EXCLUSIVE);
	buffer = lock_generation_page(index, meta, last, place.number, BUFFER_LOCK_EXCLUSIVE);
	/* the order of locks */
	Assert(!BufferIsValid(first) || BufferGetBlockNumber(first) < BufferGetBlockNumber(buffer));
	elements = write_element(index, generation, meta->ngenerations, buffer, place.offset, hash,
							 first);
	UnlockReleaseBuffer(buffer);
	if (BufferIsValid(first))
		UnlockReleaseBuffer(first);
	grow_if_full(index, generation, place.number, elements);
}

bool
bloomset_insert(Relation index, Datum *values, bool *isnull, ItemPointer row, Relation heap,
				IndexUniqueCheck check, bool unchanged, struct IndexInfo *info)
{
	const BloomsetState *state;
	uint64		hash;
	uint32		generations;

	if (isnull[0])
		return false;
	state = bloomset_state(index, false);
	hash = state->hash(values[0], state->meta.seed);
	if (!probe_bloomset(index, InvalidSnapshot, hash, &generations))
		add_hash(index, hash, generations);
	/* a reader may have come since index_insert() did this */
	CheckForSerializableConflictIn(index, NULL, InvalidBlockNumber);
	return false;
}
