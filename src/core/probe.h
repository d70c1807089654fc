/*
 * probe.h
 *		Membership tests.
 */
#ifndef BF_PROBE_H
#define BF_PROBE_H

#include "dense.h"

/*
 * The number of an element in a counter: never below the truth, or the limit of
 * the numbers.  In a filter 1 if bf_contains(), else 0.
 */
static inline __attribute__((always_inline)) uint32_t
bf_read(const bf_filter *filter, uint64_t hash)
{
	bf_shape	shape;
	uint64_t	i;

	if (filter->sparse)
	{
		i = bf_sparse_find(filter->payload, filter->nhashes, hash);
		return i == filter->nhashes ? 0 : bf_number_of(filter, i);
	}
	shape = bf_shape_of(&filter->params);
	return bf_cells_read(filter->payload, &shape, filter->params.cell_bits, hash);
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
 * layout each piece is the byte or two of one cell: if half of the bits are set,
 * an absent element reads two of them on average.
 */
typedef struct bf_lookup
{
	bf_shape	shape;
	uint32_t	cell_bits;
	uint32_t	number;			/* bf_read() from the pieces so far */
	uint64_t	hash;			/* if classic, the state of bf_next_bit() */
	uint64_t	cell;			/* the last one in a classic filter */
	uint32_t	pieces;			/* left to read */
} bf_lookup;

static inline bf_lookup
bf_lookup_start(const bf_params *params, uint64_t hash)
{
	bf_lookup	lookup = {.shape = bf_shape_of(params), .cell_bits = params->cell_bits, .hash = hash};

	assert(params->m != 0);
	lookup.number = bf_cell_limit(lookup.cell_bits);
	lookup.pieces = bf_has_small_blocks(&lookup.shape) ? 1 : lookup.shape.k;
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
		*offset = bf_block_offset(&lookup->shape, lookup->hash) * lookup->cell_bits;
		*size = BF_BLOCK_BYTES * lookup->cell_bits;
		return true;
	}
	lookup->cell = bf_next_bit(&lookup->hash, lookup->shape.block_bits);
	*offset = lookup->cell * lookup->cell_bits / 8;
	*size = lookup->cell_bits == 16 ? 2 : 1;
	return true;
}

/* What the current piece reads. */
static inline uint32_t
bf_lookup_piece(const bf_lookup *lookup, const uint8_t *piece)
{
	if (bf_has_small_blocks(&lookup->shape))
		return bf_block_read(piece, &lookup->shape, lookup->cell_bits, lookup->hash);
	if (lookup->cell_bits == 1)
		return piece[0] >> (lookup->cell % 8) & 1;
	/* two numbers of 4 bits share a byte */
	return bf_number_at(piece, lookup->cell_bits, lookup->cell_bits == 4 ? lookup->cell % 2 : 0);
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
