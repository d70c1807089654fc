/*
 * probe.h
 *		Is a hash in a filter?
 */
#ifndef BF_PROBE_H
#define BF_PROBE_H

#include "block.h"
#include "sparse.h"

/*
 * False if the element with that hash was never added; true if it was, and
 * for others at the filter's false-positive rate.
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
 * Looking for a hash in the bits of a dense filter that are not in memory.  A
 * caller reads them piece by piece, and stops where one says no:
 *
 *		bf_lookup lookup = bf_lookup_start(&shape, hash);
 *		while (bf_lookup_next(&lookup, &offset, &size))
 *			... read size bytes from offset on ...
 *			if (!bf_lookup_test(&lookup, piece))
 *				return false;
 *		return true;
 *
 * In the blocked layout the one piece is the element's block.  In the classic
 * layout each piece is the byte of one throw: on average an absent element
 * reads two of them if half of the bits are set.
 */
typedef struct bf_lookup
{
	bf_shape	shape;
	uint64_t	hash;			/* multiplied once for each throw of a classic filter */
	uint64_t	bit;			/* of the last throw */
	uint32_t	pieces;			/* that are left */
} bf_lookup;

static inline bf_lookup
bf_lookup_start(const bf_shape *shape, uint64_t hash)
{
	bf_lookup	lookup = {*shape, hash, 0, bf_has_small_blocks(shape) ? 1 : shape->k};

	return lookup;
}

/* Where in the bits the next piece stands, in bytes; false if there is none. */
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

/* May the hash be in the filter, by that piece? */
static inline bool
bf_lookup_test(const bf_lookup *lookup, const uint8_t *piece)
{
	if (bf_has_small_blocks(&lookup->shape))
		return bf_block_contains(piece, &lookup->shape, lookup->hash);
	return piece[0] >> (lookup->bit % 8) & 1;
}

#endif							/* BF_PROBE_H */
