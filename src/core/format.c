/*
 * format.c
 *		Encoding, decoding and validation of a filter's bytes.
 */
#include "format.h"

#include <string.h>

#include "bytes.h"
#include "layout.h"
#include "numbers.h"
#include "sparse.h"

/* Offsets in bytes from the start of the encoding. */
enum
{
	AT_VERSION = 0,				/* 1 byte */
	AT_LAYOUT = 1,				/* 1 byte */
	AT_FLAGS = 2,				/* 1 byte */
	AT_K = 3,					/* 1 byte */
	AT_CLASS = 4,				/* 4 bytes */
	AT_RATE = 8,				/* 4 bytes, IEEE single precision */
	AT_SEED = 12,				/* 8 bytes */
	AT_BITS = 20,				/* 8 bytes */
	AT_PAYLOAD = BF_HEADER_SIZE
};

_Static_assert(AT_PAYLOAD == AT_BITS + sizeof(uint64_t), "the payload follows the last field of the header");
_Static_assert(BF_MAX_K <= UINT8_MAX, "k is one byte");
_Static_assert(sizeof(float) == sizeof(uint32_t), "bf_load32() reads the bits of a rate");

#define FLAG_SPARSE		1
#define FLAG_SIZING		2
#define FLAG_COUNTER	4
#define SHIFT_WIDTH		3		/* 2 bits: log2(cell_bits / 4) of a counter */
#define FLAG_LEVELS		32

#define FLAGS_FILTER	(FLAG_SPARSE | FLAG_SIZING)
#define FLAGS_COUNTER	(FLAGS_FILTER | FLAG_COUNTER | 3 << SHIFT_WIDTH | FLAG_LEVELS)
#define MAX_WIDTH_CODE	2		/* 16 bits */

_Static_assert(4 / 8 == 0 && 8 / 8 == 1 && 16 / 8 == MAX_WIDTH_CODE && 4 << MAX_WIDTH_CODE == 16,
			   "cell_bits / 8 is the code of 4, 8 and 16 bits");

static bf_status
status(bf_error error, uint64_t got, uint64_t limit)
{
	bf_status	result = {error, got, limit};

	return result;
}

static float
load_float(const uint8_t *p)
{
	uint32_t	bits = bf_load32(p);
	float		value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void
store_float(uint8_t *p, float value)
{
	uint32_t	bits;

	memcpy(&bits, &value, sizeof(bits));
	bf_store32(p, bits);
}

bool
bf_class_known(uint32_t element_class)
{
	switch ((bf_class) element_class)
	{
		case BF_CLASS_NONE:
		case BF_CLASS_BOOL:
		case BF_CLASS_BYTEA:
		case BF_CLASS_INT8:
		case BF_CLASS_TEXT:
		case BF_CLASS_FLOAT8:
		case BF_CLASS_MACADDR8:
		case BF_CLASS_MACADDR:
		case BF_CLASS_INET:
		case BF_CLASS_BPCHAR:
		case BF_CLASS_DATE:
		case BF_CLASS_TIME:
		case BF_CLASS_TIMESTAMP:
		case BF_CLASS_TIMESTAMPTZ:
		case BF_CLASS_INTERVAL:
		case BF_CLASS_TIMETZ:
		case BF_CLASS_NUMERIC:
		case BF_CLASS_UUID:
			return true;
	}
	return false;
}

uint64_t
bf_max_size(uint32_t cell_bits)
{
	assert(bf_is_cell_bits(cell_bits));
	return BF_MAX_BITS / cell_bits;
}

static uint64_t
dense_size(const bf_params *params)
{
	return params->m / 8 * params->cell_bits;
}

/* The bytes that an element takes in a sparse payload. */
static uint32_t
entry_size(const bf_params *params)
{
	return bf_kind_of(params) == BF_FILTER ? BF_HASH_BYTES : BF_HASH_BYTES + BF_NUMBER_BYTES;
}

uint64_t
bf_sparse_limit(const bf_params *params)
{
	return params->m == 0 ? 0 : (dense_size(params) - 1) / entry_size(params);
}

/* Checks m against the flags and the layout. */
static bf_status
check_size(const bf_filter *filter)
{
	const bf_params *params = &filter->params;
	uint64_t	max = bf_max_size(params->cell_bits);

	if (params->m > max)
		return status(BF_ERR_BITS_MAX, params->m, max);
	if (params->m % bf_size_unit(params->layout) != 0)
		return status(BF_ERR_BITS_MULTIPLE, params->m, bf_size_unit(params->layout));

	/* a filter without its final size is folded to it later */
	if ((params->m == 0 || filter->sizing) && !bf_layout_folds(params->layout))
		return status(BF_ERR_UNSIZED, params->m, 0);
	if (filter->sizing && params->m != (filter->sparse ? 0 : max))
		return status(BF_ERR_UNSIZED, params->m, 0);
	return status(BF_OK, 0, 0);
}

/* Checks the payload's size against m and the flags. */
static bf_status
check_payload_size(const bf_filter *filter, uint64_t payload_size)
{
	const bf_params *params = &filter->params;
	uint64_t	nhashes = payload_size / entry_size(params);

	if (!filter->sparse)
	{
		if (params->m == 0)
			return status(BF_ERR_UNSIZED, payload_size, 0);
		if (payload_size != dense_size(params))
			return status(BF_ERR_LENGTH, payload_size, dense_size(params));
		return status(BF_OK, 0, 0);
	}

	if (payload_size % entry_size(params) != 0)
		return status(BF_ERR_HASHES_LENGTH, payload_size, entry_size(params));
	if (filter->sizing)
	{
		if (nhashes > BF_SIZING_LIMIT)
			return status(BF_ERR_HASHES_MAX, nhashes, BF_SIZING_LIMIT);
	}
	else if (params->m == 0 && (payload_size != 0 || params->element_class != BF_CLASS_NONE))
		return status(BF_ERR_UNSIZED, payload_size, 0);
	else if (nhashes > bf_sparse_limit(params))
		return status(BF_ERR_HASHES_MAX, nhashes, bf_sparse_limit(params));
	return status(BF_OK, 0, 0);
}

/* Reads the flags that the kind and the form allow. */
static bf_status
decode_flags(uint8_t flags, bf_kind kind, bf_form form, bf_filter *filter)
{
	bool		counter = kind == BF_COUNTER;
	uint32_t	known = counter ? FLAGS_COUNTER : FLAGS_FILTER;
	uint32_t	width = flags >> SHIFT_WIDTH & 3;
	bool		has_type = counter == ((flags & FLAG_COUNTER) != 0);

	if (!has_type && (flags & ~(counter ? FLAGS_FILTER : FLAGS_COUNTER)) == 0)
		return status(BF_ERR_TYPE, flags, 0);
	if (!has_type || (flags & ~known))
		return status(BF_ERR_FLAGS, flags, known);
	if ((flags & FLAG_SIZING) && form != BF_STATE)
		return status(BF_ERR_STATE, flags, FLAG_SPARSE);
	if (counter && width > MAX_WIDTH_CODE)
		return status(BF_ERR_CELL_BITS, width, MAX_WIDTH_CODE);
	filter->sparse = (flags & FLAG_SPARSE) != 0;
	filter->sizing = (flags & FLAG_SIZING) != 0;
	filter->levels = (flags & FLAG_LEVELS) != 0;
	filter->params.cell_bits = counter ? 4u << width : 1;
	return status(BF_OK, 0, 0);
}

static uint8_t
encode_flags(const bf_filter *filter, bool levels)
{
	uint32_t	flags = (filter->sparse ? FLAG_SPARSE : 0) | (filter->sizing ? FLAG_SIZING : 0);

	if (bf_kind_of(&filter->params) == BF_COUNTER)
		flags |= FLAG_COUNTER | filter->params.cell_bits / 8 << SHIFT_WIDTH |
			(levels ? FLAG_LEVELS : 0);
	return (uint8_t) flags;
}

/* Only a filter without elements has no class.  An empty filter is sparse. */
static bf_status
check_class(const bf_filter *filter)
{
	bool		empty = bf_is_empty(filter);
	bool		none = filter->params.element_class == BF_CLASS_NONE;

	if (none && !empty)
		return status(BF_ERR_CLASS_MISSING, 0, 0);
	/* a filter can keep the class of elements that an intersection removed */
	if (bf_kind_of(&filter->params) == BF_COUNTER && empty && (!none || filter->levels))
		return status(BF_ERR_EMPTY, 0, 0);
	return status(BF_OK, 0, 0);
}

bf_status
bf_decode_header(const uint8_t *header, uint64_t size, bf_kind kind, bf_form form,
				 bf_filter *filter)
{
	bf_params  *params = &filter->params;
	bf_status	verdict;

	if (size < BF_HEADER_SIZE)
		return status(BF_ERR_SHORT, size, BF_HEADER_SIZE);
	if (size > BF_MAX_SIZE)
		return status(BF_ERR_LONG, size, BF_MAX_SIZE);
	if (header[AT_VERSION] != BF_FORMAT_VERSION)
		return status(BF_ERR_VERSION, header[AT_VERSION], BF_FORMAT_VERSION);
	if (header[AT_LAYOUT] > BF_CLASSIC)
		return status(BF_ERR_LAYOUT, header[AT_LAYOUT], BF_CLASSIC);
	verdict = decode_flags(header[AT_FLAGS], kind, form, filter);
	if (verdict.error != BF_OK)
		return verdict;
	if (header[AT_K] < 1 || header[AT_K] > BF_MAX_K)
		return status(BF_ERR_K, header[AT_K], BF_MAX_K);
	params->layout = (bf_layout) header[AT_LAYOUT];
	params->k = header[AT_K];
	params->element_class = bf_load32(header + AT_CLASS);
	if (!bf_class_known(params->element_class))
		return status(BF_ERR_CLASS, params->element_class, 0);
	params->rate = load_float(header + AT_RATE);
	if (!(params->rate > 0 && params->rate < 1))	/* also refuses NaN */
		return status(BF_ERR_RATE, bf_load32(header + AT_RATE), 0);
	params->seed = bf_load64(header + AT_SEED);
	params->m = bf_load64(header + AT_BITS);

	verdict = check_size(filter);
	if (verdict.error == BF_OK)
		verdict = check_payload_size(filter, size - BF_HEADER_SIZE);
	if (verdict.error != BF_OK)
		return verdict;
	filter->nhashes = filter->sparse ? (size - BF_HEADER_SIZE) / entry_size(params) : 0;
	return check_class(filter);
}

bf_status
bf_decode(const uint8_t *bytes, uint64_t size, bf_kind kind, bf_form form, bf_filter *filter)
{
	filter->payload = bytes + AT_PAYLOAD;
	return bf_decode_header(bytes, size, kind, form, filter);
}

bf_status
bf_check_hashes(const bf_filter *filter, uint64_t from, uint64_t to)
{
	uint32_t	limit = bf_cell_limit(filter->params.cell_bits);

	assert(from <= to && to <= filter->nhashes);
	for (uint64_t i = from > 0 ? from : 1; i < to; i++)
	{
		if (bf_hash_at(filter->payload, i) <= bf_hash_at(filter->payload, i - 1))
			return status(BF_ERR_HASHES_ORDER, i, 0);
	}
	if (bf_kind_of(&filter->params) == BF_FILTER)
		return status(BF_OK, 0, 0);
	for (uint64_t i = from; i < to; i++)
	{
		uint32_t	number = bf_number_of(filter, i);

		if (number < 1 || number > limit)
			return status(BF_ERR_NUMBER, number, limit);
	}
	return status(BF_OK, 0, 0);
}

uint64_t
bf_payload_size(const bf_filter *filter)
{
	return filter->sparse ? entry_size(&filter->params) * filter->nhashes : dense_size(&filter->params);
}

uint64_t
bf_encoded_size(const bf_filter *filter)
{
	return BF_HEADER_SIZE + bf_payload_size(filter);
}

uint8_t *
bf_encode_header(const bf_filter *filter, uint8_t *bytes)
{
	const bf_params *params = &filter->params;
	bool		empty_counter = bf_kind_of(params) == BF_COUNTER && bf_is_empty(filter);

	assert(check_size(filter).error == BF_OK && bf_class_known(params->element_class));
	assert(params->k >= 1 && params->k <= BF_MAX_K && params->rate > 0 && params->rate < 1);
	bytes[AT_VERSION] = BF_FORMAT_VERSION;
	bytes[AT_LAYOUT] = (uint8_t) params->layout;
	bytes[AT_FLAGS] = encode_flags(filter, filter->levels && !empty_counter);
	bytes[AT_K] = (uint8_t) params->k;
	bf_store32(bytes + AT_CLASS, empty_counter ? BF_CLASS_NONE : params->element_class);
	store_float(bytes + AT_RATE, params->rate);
	bf_store64(bytes + AT_SEED, params->seed);
	bf_store64(bytes + AT_BITS, params->m);
	return bytes + AT_PAYLOAD;
}
