/*
 * accumulator.h
 *		A filter under construction: the core of the aggregates' states.
 *
 * An accumulator starts as a set of distinct hashes, in a counter with numbers.
 * It converts the set to a dense payload when a sparse filter would no longer be
 * smaller or, if it sizes itself, above BF_SIZING_LIMIT hashes.  A set takes 11
 * to 62 bytes per hash, including the smaller sets before it, which a memory
 * context keeps for reuse; with numbers a quarter more.
 */
#ifndef BF_ACCUMULATOR_H
#define BF_ACCUMULATOR_H

#include "pg/pg_compat.h"

#include "core/dense.h"
#include "core/hashset.h"
#include "value/value.h"

typedef struct Accumulator
{
	bf_params	params;			/* m = 0: no size yet */
	bf_update	update;			/* shape is valid if payload is not NULL */
	bool		levels;			/* the result has levels; see bf_filter */
	uint32		set_limit;		/* most hashes that the set holds */
	bf_hashset	set;			/* valid while payload is NULL */
	uint8	   *payload;		/* dense, at a cache line; NULL at first */
	uint64_t   *pending;		/* prefetched hashes to add, or NULL */
	uint16_t   *pending_numbers;	/* of these hashes, in a counter */
	MemoryContext context;		/* holds the set and the payload */
	uint8		npending;
	bool		sizing;			/* finish_accumulator() chooses the size */
} Accumulator;

/*
 * Beyond the caches every access stalls.  From this size on, a hash is therefore
 * prefetched at once and added up to PENDING_HASHES elements later.
 */
#define PREFETCH_BYTES	(128 * 1024)
#define PENDING_HASHES	32

/*
 * Initializes an accumulator; with m = 0 it sizes itself.  The numbers of an
 * element in a counter combine by BF_SUM or BF_GREATER.
 */
extern void begin_accumulator(Accumulator *accumulator, const bf_params *params,
							  bf_combination combination, MemoryContext context);

/* Adds a hash to the set.  May grow the set or convert it to a dense payload. */
extern void accumulate_in_set(Accumulator *accumulator, uint64 hash, uint32 number);

/* Adds the pending hashes. */
extern void flush_pending(Accumulator *accumulator);

/* Prefetches for a hash and makes it pending. */
static inline void
accumulate_later(Accumulator *accumulator, uint64 hash)
{
	if (accumulator->payload != NULL)
		bf_dense_prefetch(accumulator->payload, &accumulator->update, hash);
	else
		bf_hashset_prefetch(&accumulator->set, hash);
	accumulator->pending[accumulator->npending++] = hash;
	if (accumulator->npending == PENDING_HASHES)
		flush_pending(accumulator);
}

/*
 * Adds an element by its hash, in a counter with a number.  Inlined, so that
 * kind, which must be that of the parameters, can be a constant.
 */
static pg_attribute_always_inline void
accumulate_element(Accumulator *accumulator, bf_kind kind, uint64 hash, uint32 number)
{
	if (accumulator->pending != NULL)
	{
		if (kind == BF_COUNTER)
			accumulator->pending_numbers[accumulator->npending] = number;
		accumulate_later(accumulator, hash);
	}
	else if (accumulator->payload == NULL)
		accumulate_in_set(accumulator, hash, number);
	else if (kind == BF_FILTER)
		bf_bits_add(accumulator->payload, &accumulator->update.shape, hash);
	else
		bf_dense_add(accumulator->payload, &accumulator->update, hash, number);
}

/*
 * Adds the elements of a filter or accumulator of the same size and seed.  How
 * their numbers combine depends on the first argument only.
 */
extern void accumulate_filter(Accumulator *accumulator, const bf_filter *filter);
extern void merge_accumulator(Accumulator *accumulator, Accumulator *other);

/*
 * Returns the filter, in the current memory context.  The accumulator remains
 * valid, and more elements can be added.
 */
extern BloomValue *finish_accumulator(Accumulator *accumulator);

/* The size in bytes of that value.  The accumulator must not size itself. */
extern Size finished_size(Accumulator *accumulator);

/*
 * Writes the finished filter to that many bytes, at any alignment.  The current
 * memory context may lack pfree(), as that of a tuplesort does.
 */
extern void write_accumulator(Accumulator *accumulator, void *to);

/*
 * Converts the state to bytes and back.  Invalid bytes are an error.  The bytes do
 * not tell how numbers combine, so a deserialized state is only to merge into
 * another.
 */
extern bytea *serialize_accumulator(Accumulator *accumulator);
extern void deserialize_accumulator(Accumulator *accumulator, const uint8 *bytes, uint64 size,
									bf_kind kind, MemoryContext context);

#endif							/* BF_ACCUMULATOR_H */
