/*
 * dense.h
 *		The elements of a dense filter or counter.
 */
#ifndef BF_DENSE_H
#define BF_DENSE_H

#include "block.h"
#include "numbers.h"
#include "sparse.h"

/* How an element changes a dense payload. */
typedef struct bf_update
{
	bf_shape	shape;
	uint32_t	counter_bits;	/* 0: sets bits */
	bool		raises;			/* numbers, instead of adding to them */
} bf_update;

static inline bf_update
bf_update_of(const bf_params *params, bool raises)
{
	bf_update	update = {bf_shape_of(params), params->counter_bits, raises};

	return update;
}

/* Adds an element.  A Bloom filter ignores its number. */
static inline void
bf_dense_add(uint8_t *payload, const bf_update *update, uint64_t hash, uint32_t number)
{
	if (update->counter_bits == 0)
		bf_bits_add(payload, &update->shape, hash);
	else if (update->raises)
		bf_numbers_raise(payload, &update->shape, update->counter_bits, hash, number);
	else
		bf_numbers_add(payload, &update->shape, update->counter_bits, hash, number);
}

/* Prefetches what bf_dense_add() will write. */
static inline __attribute__((always_inline)) void
bf_dense_prefetch(const uint8_t *payload, const bf_update *update, uint64_t hash)
{
	if (update->counter_bits == 0)
		bf_bits_prefetch(payload, &update->shape, hash);
	else
		bf_numbers_prefetch(payload, &update->shape, update->counter_bits, hash);
}

/* Adds the hashes [from, to) of a sparse filter to a dense payload. */
static inline void
bf_expand(const bf_filter *filter, uint64_t from, uint64_t to, const bf_update *update, uint8_t *payload)
{
	bool		counter = filter->params.counter_bits != 0;

	for (uint64_t i = from; i < to; i++)
		bf_dense_add(payload, update, bf_hash_at(filter->payload, i),
					 counter ? bf_number_of(filter->payload, filter->nhashes, i) : 1);
}

#endif							/* BF_DENSE_H */
