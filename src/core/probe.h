/*
 * probe.h
 *		Membership tests.
 */
#ifndef BF_PROBE_H
#define BF_PROBE_H

#include "block.h"
#include "sparse.h"

/*
 * True for the hash of every added element, and for other hashes at the
 * filter's false-positive rate.
 */
static inline bool
bf_contains(const bf_filter *filter, uint64_t hash)
{
	bf_shape	shape;

	if (filter->sparse)
		return bf_sparse_contains(filter->payload, filter->nhashes, hash);
	shape = bf_shape_of(&filter->params);
	return bf_bits_contain(filter->payload, &shape, hash);
}

/*
 * Looks up a hash in a dense filter whose bits are not in memory.  The caller
 * fetches one piece at a time and stops at the first failed test:
 *
 *		bf_lookup lookup = bf_lookup_start(&shape, hash);
 *		while (bf_lookup_next(&lookup, &offset, &size))
 *			... read size bytes at offset into piece ...
 *			if (!bf_lookup_test(&lookup, piece))
 *				return false;
 *		return true;
 *
 * In the blocked layout the only piece is the element's block.  In the classic
 * layout each piece is the byte of one bit: if half of the bits are set, an
 * absent element reads two bytes on average.
 */
typedef struct bf_lookup
{
	bf_shape	shape;
	uint64_t	hash;			/* in a classic filter the state of bf_next_bit() */
	uint64_t	bit;			/* the last one in a classic filter */
	uint32_t	pieces;			/* left to read */
} bf_lookup;

static inline bf_lookup
bf_lookup_start(const bf_shape *shape, uint64_t hash)
{
	bf_lookup	lookup = {*shape, hash, 0, bf_has_small_blocks(shape) ? 1 : shape->k};

	return lookup;
}

/* The offset and the size of the next piece, in bytes; false at the end. */
static inline bool
bf_lookup_next(bf_lookup *lookup, uint64_t *offset, uint32_t *size)
{
	if (lookup->pieces == 0)
		return false;
	lookup->pieces--;
	if (bf_has_small_blocks(&lookup->shape))
	{
		*offset = bf_block_offset(&lookup->shape, lookup->hash);
		*size = BF_BLOCK_BYTES;
		return true;
	}
	lookup->bit = bf_next_bit(&lookup->hash, lookup->shape.block_bits);
	*offset = lookup->bit / 8;
	*size = 1;
	return true;
}

/* False if the piece proves that the hash is absent. */
static inline bool
bf_lookup_test(const bf_lookup *lookup, const uint8_t *piece)
{
	if (bf_has_small_blocks(&lookup->shape))
		return bf_block_contains(piece, &lookup->shape, lookup->hash);
	return piece[0] >> (lookup->bit % 8) & 1;
}

#endif							/* BF_PROBE_H */
