/*
 * accumulator.h
 *		A filter under construction: the heart of the aggregates' states.
 *
 * It collects distinct hashes in a set while a sparse filter of them would be
 * smaller than the bits, or, as long as it has no size of its own, up to
 * BF_SIZING_LIMIT of them; then it goes over to bits.  A set takes 11 to 62
 * bytes for each hash, as the smaller sets that it outgrew stay in the context.  Everything is in the memory context that the
 * accumulator was created in.
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
	bf_params	params;			/* m = 0 while it has no size */
	bf_shape	shape;			/* of the bits, once there are any */
	uint32		set_limit;		/* hashes above which it goes over to bits */
	bf_hashset	set;			/* while there are no bits */
	uint8	   *bits;			/* aligned to a cache line; NULL at first */
	uint64_t   *pending;		/* hashes prefetched but not added, or NULL */
	MemoryContext context;
	uint8		npending;
	bool		sizing;			/* sizes itself at the end */
} Accumulator;

/*
 * Beyond the caches every access stalls, so prefetch and defer: from this size
 * on a hash is added PENDING_HASHES elements later.
 */
#define PREFETCH_BYTES	(128 * 1024)
#define PENDING_HASHES	32

/*
 * Begins one with the given parameters; m = 0 lets it size itself.  It may be
 * embedded in another struct; context is where it keeps the rest.
 */
extern void begin_accumulator(Accumulator *accumulator, const bf_params *params,
							  MemoryContext context);

/* Adds hashes to the set; may have to move it. */
extern void accumulate_in_set(Accumulator *accumulator, uint64 hash);

/* Adds the hashes held back. */
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

/* Adds the elements of a filter of the same size, or of another's state. */
extern void accumulate_filter(Accumulator *accumulator, const bf_filter *filter);
extern void accumulate_other(Accumulator *accumulator, Accumulator *other);

/*
 * The finished filter, in the current memory context.  The accumulator can go
 * on after it.
 */
extern Bloomfilter *finish_accumulator(Accumulator *accumulator);

/* Its size, if the accumulator does not size itself. */
extern Size finished_size(Accumulator *accumulator);

/* bloom_agg's final function, by which the planner recognises the aggregate. */
extern PGDLLEXPORT Datum bloomfilter_agg_final(PG_FUNCTION_ARGS);

/* Its state as bytes, and back: checks that the bytes are of such a state. */
extern bytea *serialize_accumulator(Accumulator *accumulator);
extern void deserialize_accumulator(Accumulator *accumulator, const uint8 *bytes,
									uint64 size, MemoryContext context);

#endif							/* BF_ACCUMULATOR_H */
