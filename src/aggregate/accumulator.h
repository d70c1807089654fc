/*
 * accumulator.h
 *		A filter under construction: the core of the aggregates' states.
 *
 * An accumulator starts as a set of distinct hashes.  It converts the set to
 * bits when a sparse filter would no longer be smaller or, if it sizes itself,
 * above BF_SIZING_LIMIT hashes.  A set takes 11 to 62 bytes per hash, including
 * the smaller sets before it, which a memory context keeps for reuse.
 */
#ifndef BF_ACCUMULATOR_H
#define BF_ACCUMULATOR_H

#include "postgres.h"

#include "core/block.h"
#include "core/format.h"
#include "core/hashset.h"
#include "filter/params.h"
#include "filter/value.h"

typedef struct Accumulator
{
	bf_params	params;			/* m = 0: no size yet */
	bf_shape	shape;			/* valid if bits is not NULL */
	uint32		set_limit;		/* most hashes that the set holds */
	bf_hashset	set;			/* valid while bits is NULL */
	uint8	   *bits;			/* aligned to a cache line; NULL at first */
	uint64_t   *pending;		/* hashes prefetched but not yet added, or NULL */
	MemoryContext context;		/* holds the set and the bits */
	uint8		npending;
	bool		sizing;			/* finish_accumulator() chooses the size */
} Accumulator;

/*
 * Beyond the caches every access stalls.  From this size on, a hash is therefore
 * prefetched at once and added up to PENDING_HASHES elements later.
 */
#define PREFETCH_BYTES	(128 * 1024)
#define PENDING_HASHES	32

/* Initializes an accumulator; with m = 0 it sizes itself. */
extern void begin_accumulator(Accumulator *accumulator, const bf_params *params,
							  MemoryContext context);

/* Adds a hash to the set.  May grow the set or convert it to bits. */
extern void accumulate_in_set(Accumulator *accumulator, uint64 hash);

/* Adds the pending hashes. */
extern void flush_pending(Accumulator *accumulator);

/* Adds an element by its hash. */
static inline void
accumulate_hash(Accumulator *accumulator, uint64 hash)
{
	if (accumulator->pending == NULL)
	{
		if (accumulator->bits != NULL)
			bf_bits_add(accumulator->bits, &accumulator->shape, hash);
		else
			accumulate_in_set(accumulator, hash);
		return;
	}
	if (accumulator->bits != NULL)
		bf_bits_prefetch(accumulator->bits, &accumulator->shape, hash);
	else
		bf_hashset_prefetch(&accumulator->set, hash);
	accumulator->pending[accumulator->npending++] = hash;
	if (accumulator->npending == PENDING_HASHES)
		flush_pending(accumulator);
}

/* Adds the elements of a filter or accumulator of the same size and seed. */
extern void accumulate_filter(Accumulator *accumulator, const bf_filter *filter);
extern void merge_accumulator(Accumulator *accumulator, Accumulator *other);

/*
 * Returns the filter, in the current memory context.  The accumulator remains
 * valid, and more elements can be added.
 */
extern Bloomfilter *finish_accumulator(Accumulator *accumulator);

/* The size in bytes of that value.  The accumulator must not size itself. */
extern Size finished_size(Accumulator *accumulator);

/*
 * Writes the finished filter to that many bytes, at any alignment.  The current
 * memory context may lack pfree(), as that of a tuplesort does.
 */
extern void write_accumulator(Accumulator *accumulator, void *to);

/* Converts the state to bytes and back.  Invalid bytes are an error. */
extern bytea *serialize_accumulator(Accumulator *accumulator);
extern void deserialize_accumulator(Accumulator *accumulator, const uint8 *bytes,
									uint64 size, MemoryContext context);

#endif							/* BF_ACCUMULATOR_H */
