/*
 * filter.h
 *		The model of a Bloom filter and of a counter: parameters and contents.
 *
 * A filter is an array of m cells of one bit.  A counter (Fan et al. 2000,
 * counting Bloom filter) has cells of 4, 8 or 16 bits, each a number.  Here
 * "filter" means both, unless it says otherwise.
 *
 * A filter has one of two representations:
 *
 * - dense: the m cells themselves;
 * - sparse: the distinct hashes of its elements in ascending order, in a
 *   counter followed by the number of each; used while it takes less space.
 */
#ifndef BF_FILTER_H
#define BF_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "assertions.h"

#define BF_BLOCK_BITS		512 /* of the blocked layout: a cache line */
#define BF_BLOCK_BYTES		(BF_BLOCK_BITS / 8)
#define BF_WORD_BITS		64	/* unit of a classic filter's size */
#define BF_HASH_BYTES		8	/* of a hash in a sparse payload */
#define BF_NUMBER_BYTES		2	/* of its number in a sparse counter */
#define BF_MAX_K			32	/* hash functions */
#define BF_MAX_BITS			(UINT64_C(1) << 31)
#define BF_MAX_NUMBER		UINT16_MAX	/* in 16 bits and if sparse */

/*
 * A self-sizing aggregate holds at most this many distinct hashes, then
 * switches to BF_MAX_BITS bits.  A build may lower it to test the switch.
 */
#ifndef BF_SIZING_LIMIT
#define BF_SIZING_LIMIT		(UINT64_C(1) << 24)
#endif

_Static_assert(BF_BLOCK_BYTES == 64, "a block is a cache line");
_Static_assert(BF_MAX_BITS <= UINT32_MAX, "a bf_shape counts cells in 32 bits");
_Static_assert(BF_HASH_BYTES == sizeof(uint64_t), "bf_load64() reads a hash");
_Static_assert(BF_NUMBER_BYTES == sizeof(uint16_t), "bf_load16() reads a number");
_Static_assert(BF_MAX_NUMBER == (1 << 16) - 1, "the limit of the widest cell");

typedef enum bf_kind
{
	BF_FILTER = 0,
	BF_COUNTER = 1
} bf_kind;

typedef enum bf_layout
{
	BF_BLOCKED = 0,				/* Putze, Sanders and Singler 2007 */
	BF_CLASSIC = 1				/* Bloom 1970: one block of m bits */
} bf_layout;

/*
 * The kind of a filter's elements.  Two values of one class are equal in SQL
 * if and only if their canonical bytes are equal.  The numbers are the OIDs
 * of PostgreSQL's built-in types, which never change.
 */
typedef enum bf_class
{
	BF_CLASS_NONE = 0,			/* nothing added yet */
	BF_CLASS_BOOL = 16,
	BF_CLASS_BYTEA = 17,
	BF_CLASS_INT8 = 20,
	BF_CLASS_TEXT = 25,
	BF_CLASS_FLOAT8 = 701,
	BF_CLASS_MACADDR8 = 774,
	BF_CLASS_MACADDR = 829,
	BF_CLASS_INET = 869,
	BF_CLASS_BPCHAR = 1042,		/* char(n), without trailing blanks */
	BF_CLASS_DATE = 1082,
	BF_CLASS_TIME = 1083,
	BF_CLASS_TIMESTAMP = 1114,
	BF_CLASS_TIMESTAMPTZ = 1184,
	BF_CLASS_INTERVAL = 1186,
	BF_CLASS_TIMETZ = 1266,
	BF_CLASS_NUMERIC = 1700,
	BF_CLASS_UUID = 2950
} bf_class;

/* The parameters and the set of elements determine every byte of a filter. */
typedef struct bf_params
{
	bf_layout	layout;
	uint32_t	k;				/* hash functions, 1 .. BF_MAX_K */
	uint32_t	element_class;	/* a bf_class */
	float		rate;			/* requested false-positive rate, 0 < rate < 1 */
	uint64_t	seed;
	uint64_t	m;				/* cells; 0 while the size is not known */
	uint32_t	cell_bits;		/* 1 in a filter; 4, 8 or 16 in a counter */
} bf_params;

/*
 * The numbers of a counter are counts if elements were only added and removed.
 * Raising, decay and the greater or lesser of two counters yield levels.  Both
 * kinds are never below the truth.  But levels lack the sums that removal
 * needs: removing one element would take another one's number below the truth.
 */

/* A decoded filter.  payload points into the bytes it was decoded from. */
typedef struct bf_filter
{
	bf_params	params;
	bool		sparse;
	bool		sizing;			/* state of a self-sizing aggregate */
	bool		levels;			/* a counter's numbers are levels, not counts */
	uint64_t	nhashes;		/* hashes in the payload; 0 if dense */
	const uint8_t *payload;		/* see bf_payload_size() */
} bf_filter;

static inline bf_kind
bf_kind_of(const bf_params *params)
{
	return params->cell_bits == 1 ? BF_FILTER : BF_COUNTER;
}

/* True for the widths that the format knows. */
static inline bool
bf_is_cell_bits(uint32_t cell_bits)
{
	return cell_bits == 1 || cell_bits == 4 || cell_bits == 8 || cell_bits == 16;
}

/* The largest number that a cell holds.  It means "that or more". */
static inline uint32_t
bf_cell_limit(uint32_t cell_bits)
{
	assert(bf_is_cell_bits(cell_bits));
	return (UINT32_C(1) << cell_bits) - 1;
}

/* True if a filter certainly has no elements: then it is sparse. */
static inline bool
bf_is_empty(const bf_filter *filter)
{
	return filter->sparse && filter->nhashes == 0;
}

#endif							/* BF_FILTER_H */
