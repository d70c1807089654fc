/*
 * format.h
 *		Encoding, decoding and validation of a filter's bytes.
 *
 * Only format.c knows the offsets.  doc/format.md specifies the encoding.  It
 * is little-endian on every machine, and the same on disk, on the wire and in
 * text.  A stored value is a varlena header followed by exactly these bytes.
 */
#ifndef BF_FORMAT_H
#define BF_FORMAT_H

#include "filter.h"

#define BF_FORMAT_VERSION	1
#define BF_HEADER_SIZE		28	/* bytes before the payload */
#define BF_MAX_SIZE			(BF_HEADER_SIZE + BF_MAX_BITS / 8)

_Static_assert(BF_MAX_SIZE < 1 << 30, "a value of PostgreSQL holds less than 1 GB");

/* Why bytes are not a valid filter; got and limit are those of bf_status. */
typedef enum bf_error
{
	BF_OK = 0,
	BF_ERR_SHORT,				/* got: bytes; limit: minimum */
	BF_ERR_LONG,				/* got: bytes; limit: maximum */
	BF_ERR_VERSION,
	BF_ERR_LAYOUT,
	BF_ERR_FLAGS,
	BF_ERR_TYPE,				/* a value of the other kind */
	BF_ERR_CELL_BITS,			/* got: the code in the flags */
	BF_ERR_STATE,				/* an aggregate state instead of a value */
	BF_ERR_K,
	BF_ERR_CLASS,
	BF_ERR_RATE,				/* got: the float's bits */
	BF_ERR_BITS_MAX,
	BF_ERR_BITS_MULTIPLE,		/* limit: the divisor */
	BF_ERR_UNSIZED,				/* m is invalid for the layout and flags */
	BF_ERR_LENGTH,				/* got: payload bytes; limit: expected */
	BF_ERR_HASHES_LENGTH,		/* got: payload bytes; limit: the divisor */
	BF_ERR_HASHES_MAX,			/* got: hashes; limit: maximum */
	BF_ERR_HASHES_ORDER,		/* got: first position out of order, from 0 */
	BF_ERR_NUMBER,				/* got: the number of a hash; limit: maximum */
	BF_ERR_CLASS_MISSING,		/* has elements but no element class */
	BF_ERR_EMPTY				/* an empty counter with a class or levels */
} bf_error;

/* The result of a check.  got and limit are 0 where they do not apply. */
typedef struct bf_status
{
	bf_error	error;
	uint64_t	got;			/* the offending number */
	uint64_t	limit;			/* the limit that it violates */
} bf_status;

/* What bytes may encode. */
typedef enum bf_form
{
	BF_VALUE,					/* a finished value */
	BF_STATE					/* that, or an unfinished self-sizing one */
} bf_form;

/* True for every bf_class, including BF_CLASS_NONE. */
extern bool bf_class_known(uint32_t element_class);

/* The greatest m of a filter with cells of cell_bits. */
extern uint64_t bf_max_size(uint32_t cell_bits);

/* The most distinct hashes that take less space than the m cells. */
extern uint64_t bf_sparse_limit(const bf_params *params);

/*
 * Decodes bytes[0 .. size) and performs all checks that take constant time.
 * Never reads outside that range.  *filter is valid only if the result is
 * BF_OK.  Bytes of unknown origin also need bf_check_hashes().
 */
extern bf_status bf_decode(const uint8_t *bytes, uint64_t size, bf_kind kind, bf_form form,
						   bf_filter *filter);

/*
 * Like bf_decode(), but needs only the first BF_HEADER_SIZE bytes of an
 * encoding of size bytes, and leaves filter->payload unset.
 */
extern bf_status bf_decode_header(const uint8_t *header, uint64_t size, bf_kind kind,
								  bf_form form, bf_filter *filter);

/*
 * Checks that each of the hashes [from, to) of a sparse payload is greater than
 * its predecessor and, in a counter, has a valid number.  Callers check a large
 * payload in pieces to stay interruptible.
 */
extern bf_status bf_check_hashes(const bf_filter *filter, uint64_t from, uint64_t to);

/* The size in bytes of the payload, and of the header and payload. */
extern uint64_t bf_payload_size(const bf_filter *filter);
extern uint64_t bf_encoded_size(const bf_filter *filter);

/*
 * Writes the header.  Ignores filter->payload, and the class and levels of a
 * counter without elements.  Returns the address for the payload: bytes +
 * BF_HEADER_SIZE.
 */
extern uint8_t *bf_encode_header(const bf_filter *filter, uint8_t *bytes);

#endif							/* BF_FORMAT_H */
