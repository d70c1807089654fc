/*
 * probe.h
 *		Membership tests.
 */
#ifndef BF_PROBE_H
#define BF_PROBE_H

#include "block.h"
#include "numbers.h"
#include "sparse.h"

/*
 * The number of an element in a counter: never below the truth, or the limit of
 * the numbers.  In a filter 1 if bf_contains(), else 0.
 */
static inline uint32_t
bf_read(const bf_filter *filter, uint64_t hash)
{
	uint32_t	counter_bits = filter->params.counter_bits;
	bf_shape	shape;

	if (filter->sparse)
	{
		uint64_t	i = bf_sparse_find(filter->payload, filter->nhashes, hash);

		if (i == filter->nhashes)
			return 0;
		return counter_bits == 0 ? 1 : bf_number_of(filter->payload, filter->nhashes, i);
	}
	shape = bf_shape_of(&filter->params);
	if (counter_bits == 0)
		return bf_bits_contain(filter->payload, &shape, hash);
	return bf_numbers_read(filter->payload, &shape, counter_bits, hash);
}

/*
 * True for the hash of every added element, and for other hashes at the
 * filter's false-positive rate.
 */
static inline bool
bf_contains(const bf_filter *filter, uint64_t hash)
{
	return bf_read(filter, hash) != 0;
}

/*
 * Looks up a hash in a dense filter whose payload is not in memory.  The caller
 * fetches one piece at a time and stops at the first failed test:
 *
 *		bf_lookup lookup = bf_lookup_start(&params, hash);
 *		while (bf_lookup_next(&lookup, &offset, &size))
 *			... read size bytes at offset into piece ...
 *			if (!bf_lookup_test(&lookup, piece))
 *				return 0;
 *		return lookup.number;
 *
 * In the blocked layout the only piece is the element's block.  In the classic
 * layout each piece is one bit or number: if half of the bits are set, an absent
 * element reads two of them on average.
 */
typedef struct bf_lookup
{
	bf_shape	shape;
	uint32_t	counter_bits;	/* 0 in a Bloom filter */
	uint32_t	number;			/* bf_read() from the pieces so far */
	uint64_t	hash;			/* in a classic filter the state of bf_next_bit() */
	uint64_t	bit;			/* the last one in a classic filter */
	uint32_t	pieces;			/* left to read */
} bf_lookup;

static inline bf_lookup
bf_lookup_start(const bf_params *params, uint64_t hash)
{
	bf_lookup	lookup = {.shape = bf_shape_of(params), .counter_bits = params->counter_bits, .hash = hash};

	lookup.number = lookup.counter_bits == 0 ? 1 : bf_number_limit(lookup.counter_bits);
	lookup.pieces = bf_has_small_blocks(&lookup.shape) ? 1 : lookup.shape.k;
	return lookup;
}

/* The offset and the size of the next piece, in bytes; false at the end. */
static inline bool
bf_lookup_next(bf_lookup *lookup, uint64_t *offset, uint32_t *size)
{
	uint32_t	position_bits = lookup->counter_bits == 0 ? 1 : lookup->counter_bits;

	if (lookup->pieces == 0)
		return false;
	lookup->pieces--;
	if (bf_has_small_blocks(&lookup->shape))
	{
		*offset = bf_block_offset(&lookup->shape, lookup->hash) * position_bits;
		*size = BF_BLOCK_BYTES * position_bits;
		return true;
	}
	lookup->bit = bf_next_bit(&lookup->hash, lookup->shape.block_bits);
	*offset = lookup->bit * position_bits / 8;
	*size = position_bits == 16 ? 2 : 1;
	return true;
}

/* The number of the current piece. */
static inline uint32_t
bf_lookup_piece(const bf_lookup *lookup, const uint8_t *piece)
{
	if (bf_has_small_blocks(&lookup->shape))
		return lookup->counter_bits == 0
			? bf_block_contains(piece, &lookup->shape, lookup->hash)
			: bf_block_read(piece, &lookup->shape, lookup->counter_bits, lookup->hash);
	if (lookup->counter_bits == 0)
		return piece[0] >> (lookup->bit % 8) & 1;
	/* two numbers of 4 bits share a byte */
	return bf_number_at(piece, lookup->counter_bits, lookup->counter_bits == 4 ? lookup->bit % 2 : 0);
}

/* False if the piece proves that the hash is absent. */
static inline bool
bf_lookup_test(bf_lookup *lookup, const uint8_t *piece)
{
	uint32_t	number = bf_lookup_piece(lookup, piece);

	if (number < lookup->number)
		lookup->number = number;
	return number != 0;
}

#endif							/* BF_PROBE_H */
