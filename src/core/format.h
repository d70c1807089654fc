/*
 * format.h
 *		The bytes of a filter: parameters, header, validation.
 *
 * This is the only place that knows where in a filter's bytes anything
 * stands; doc/format.md is its specification in prose.  The encoding is
 * little-endian on every machine and the same on disk, on the wire and in
 * text, so that nothing is ever converted: a stored value is a varlena
 * header followed by exactly these bytes.
 */
#ifndef BF_FORMAT_H
#define BF_FORMAT_H

#include "filter.h"

#define BF_FORMAT_VERSION	1
#define BF_HEADER_SIZE		28	/* bytes before the payload */
#define BF_MAX_SIZE			(BF_HEADER_SIZE + BF_MAX_BITS / 8)

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
