/*
 * format.h
 *		The bytes of a filter: parameters, header, validation.
 *
 * This is the only place that knows where in a filter's bytes anything
 * stands; doc/format.md is its specification in prose.  The encoding is
 * little-endian on every machine and the same on disk, on the wire and in
 * text, so that nothing is ever converted: a stored value is a varlena
 * header followed by exactly these bytes.
 *
 * An encoded filter has one of two representations:
 *
 * - dense: the m bits themselves;
 * - sparse: the distinct hashes of its elements in ascending order, used
 *   while that takes less room than the bits.
 */
#ifndef BF_FORMAT_H
#define BF_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BF_FORMAT_VERSION	1
#define BF_HEADER_SIZE		28	/* bytes before the payload */
#define BF_BLOCK_BITS		512 /* block of the blocked layout: a cache line */
#define BF_BLOCK_BYTES		(BF_BLOCK_BITS / 8)
#define BF_WORD_BITS		64	/* a classic filter is a multiple of these */
#define BF_MAX_K			32	/* hash functions */
#define BF_MAX_BITS			(UINT64_C(1) << 31)
#define BF_MAX_SIZE			(BF_HEADER_SIZE + BF_MAX_BITS / 8)

/*
 * How many distinct hashes an aggregate that sizes itself holds before it
 * goes over to BF_MAX_BITS bits.  A build may lower it to test the crossing.
 */
#ifndef BF_SIZING_LIMIT
#define BF_SIZING_LIMIT		(UINT64_C(1) << 24)
#endif

typedef enum bf_layout
{
	BF_BLOCKED = 0,				/* Putze, Sanders and Singler 2007 */
	BF_CLASSIC = 1				/* Bloom 1970: one block of m bits */
} bf_layout;

/*
 * What kind of values the elements of a filter are.  Values of one class are
 * equal in SQL exactly if their canonical bytes are equal.  The numbers are
 * the OIDs of PostgreSQL's built-in types, which never change.
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

/* What decides, together with the set of elements, every byte of a filter. */
typedef struct bf_params
{
	bf_layout	layout;
	uint32_t	k;				/* hash functions, 1 .. BF_MAX_K */
	uint32_t	element_class;	/* a bf_class */
	float		rate;			/* requested false-positive rate, 0 < rate < 1 */
	uint64_t	seed;
	uint64_t	m;				/* bits; 0 in a filter without a size */
} bf_params;

/* A decoded filter; payload points into the bytes it was decoded from. */
typedef struct bf_filter
{
	bf_params	params;
	bool		sparse;
	bool		sizing;			/* state of an aggregate that sizes itself */
	uint64_t	nhashes;		/* elements of the payload if sparse, else 0 */
	const uint8_t *payload;		/* m / 8 bytes of bits, or 8 * nhashes */
} bf_filter;

/* Where an element's bits can be: derived from the parameters. */
typedef struct bf_shape
{
	uint32_t	nblocks;
	uint32_t	block_bits;
	uint32_t	k;
} bf_shape;

static inline bf_shape
bf_shape_of(const bf_params *params)
{
	bf_shape	shape = {1, (uint32_t) params->m, params->k};

	if (params->layout == BF_BLOCKED)
	{
		shape.nblocks = (uint32_t) (params->m / BF_BLOCK_BITS);
		shape.block_bits = BF_BLOCK_BITS;
	}
	return shape;
}

/* Why bytes are not a filter. */
typedef enum bf_error
{
	BF_OK = 0,
	BF_ERR_SHORT,				/* got bytes, limit needed */
	BF_ERR_LONG,				/* got bytes, limit allowed */
	BF_ERR_VERSION,
	BF_ERR_LAYOUT,
	BF_ERR_FLAGS,
	BF_ERR_STATE,				/* aggregate state where a value is due */
	BF_ERR_K,
	BF_ERR_CLASS,
	BF_ERR_RATE,				/* got: the float's bits */
	BF_ERR_BITS_MAX,
	BF_ERR_BITS_MULTIPLE,		/* limit: the divisor */
	BF_ERR_UNSIZED,				/* m does not go with emptiness, layout or flags */
	BF_ERR_LENGTH,				/* got payload bytes, limit expected */
	BF_ERR_HASHES_LENGTH,		/* got payload bytes, limit 8 */
	BF_ERR_HASHES_MAX,			/* got hashes, limit that fit */
	BF_ERR_HASHES_ORDER,		/* got: position of the first one out of order */
	BF_ERR_CLASS_MISSING		/* elements, but no element class */
} bf_error;

/*
 * A verdict, with the offending number and the limit that it breaks where
 * there are such; 0 elsewhere.
 */
typedef struct bf_status
{
	bf_error	error;
	uint64_t	got;
	uint64_t	limit;
} bf_status;

/* Where decoded bytes may come from. */
typedef enum bf_source
{
	BF_VALUE,					/* a value of the SQL type */
	BF_STATE					/* a serialized aggregate state */
} bf_source;

/* True also of BF_CLASS_NONE. */
extern bool bf_class_known(uint32_t element_class);

/* The most distinct hashes that are still smaller than m bits. */
extern uint64_t bf_sparse_limit(uint64_t m);

/*
 * Decodes a header and checks everything about the bytes that takes constant
 * time; never reads outside bytes[0 .. size).  *filter is valid only if the
 * verdict is BF_OK.  What remains to be checked on bytes of unknown origin is
 * bf_check_hashes().
 */
extern bf_status bf_decode(const uint8_t *bytes, uint64_t size, bf_source source,
						   bf_filter *filter);

/*
 * The parameters alone, of a value of which only the first BF_HEADER_SIZE
 * bytes are at hand but whose whole size is known.
 */
extern bf_status bf_decode_header(const uint8_t *header, uint64_t size,
								  bf_source source, bf_filter *filter);

/*
 * Checks that the hashes [from, to) of a sparse payload are in strictly
 * ascending order, also after their predecessor.  A caller walks a large
 * payload in pieces, so as to stay interruptible.
 */
extern bf_status bf_check_hashes(const bf_filter *filter, uint64_t from, uint64_t to);

/* The payload's size in bytes, and the whole encoding's. */
extern uint64_t bf_payload_size(const bf_filter *filter);
extern uint64_t bf_encoded_size(const bf_filter *filter);

/*
 * Writes the header of filter, whose payload pointer is not used.  Returns
 * where the payload is to be written: bytes + BF_HEADER_SIZE.
 */
extern uint8_t *bf_encode_header(const bf_filter *filter, uint8_t *bytes);

#endif							/* BF_FORMAT_H */
