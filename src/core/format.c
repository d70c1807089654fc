/*
 * format.c
 *		Encoding, decoding and validation of a filter's bytes.
 */
#include "format.h"

#include <string.h>

#include "bytes.h"
#include "layout.h"

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

#define FLAG_SPARSE		1
#define FLAG_SIZING		2
#define FLAGS_KNOWN		(FLAG_SPARSE | FLAG_SIZING)

static bf_status
status(bf_error error, uint64_t got, uint64_t limit)
{
	bf_status	result;

	result.error = error;
	result.got = got;
	result.limit = limit;
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
bf_sparse_limit(uint64_t m)
{
	/* 8 n < m / 8, and m is a multiple of 64 */
	return m == 0 ? 0 : m / 64 - 1;
}

/* Checks m and the payload's size against the flags and the layout. */
static bf_status
check_sizes(const bf_filter *filter, uint64_t payload_size)
{
	const bf_params *params = &filter->params;

	if (params->m > BF_MAX_BITS)
		return status(BF_ERR_BITS_MAX, params->m, BF_MAX_BITS);
	if (params->m % bf_size_unit(params->layout) != 0)
		return status(BF_ERR_BITS_MULTIPLE, params->m, bf_size_unit(params->layout));

	/* a filter without its final size is folded to it later */
	if ((params->m == 0 || filter->sizing) && !bf_layout_folds(params->layout))
		return status(BF_ERR_UNSIZED, params->m, 0);
	if (filter->sizing &&
		(filter->sparse ? params->m != 0 : params->m != BF_MAX_BITS))
		return status(BF_ERR_UNSIZED, params->m, 0);

	if (!filter->sparse)
	{
		if (params->m == 0)
			return status(BF_ERR_UNSIZED, payload_size, 0);
		if (payload_size != params->m / 8)
			return status(BF_ERR_LENGTH, payload_size, params->m / 8);
		return status(BF_OK, 0, 0);
	}

	if (payload_size % 8 != 0)
		return status(BF_ERR_HASHES_LENGTH, payload_size, 8);
	if (filter->sizing)
	{
		if (payload_size / 8 > BF_SIZING_LIMIT)
			return status(BF_ERR_HASHES_MAX, payload_size / 8, BF_SIZING_LIMIT);
	}
	else if (params->m == 0 && (payload_size != 0 || params->element_class != BF_CLASS_NONE))
		return status(BF_ERR_UNSIZED, payload_size, 0);
	else if (payload_size / 8 > bf_sparse_limit(params->m))
		return status(BF_ERR_HASHES_MAX, payload_size / 8, bf_sparse_limit(params->m));
	return status(BF_OK, 0, 0);
}

bf_status
bf_decode_header(const uint8_t *header, uint64_t size, bf_source source,
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
	if (header[AT_FLAGS] & ~FLAGS_KNOWN)
		return status(BF_ERR_FLAGS, header[AT_FLAGS], FLAGS_KNOWN);
	if ((header[AT_FLAGS] & FLAG_SIZING) && source != BF_STATE)
		return status(BF_ERR_STATE, header[AT_FLAGS], FLAG_SPARSE);
	if (header[AT_K] < 1 || header[AT_K] > BF_MAX_K)
		return status(BF_ERR_K, header[AT_K], BF_MAX_K);
	params->layout = (bf_layout) header[AT_LAYOUT];
	filter->sparse = (header[AT_FLAGS] & FLAG_SPARSE) != 0;
	filter->sizing = (header[AT_FLAGS] & FLAG_SIZING) != 0;
	params->k = header[AT_K];
	params->element_class = bf_load32(header + AT_CLASS);
	if (!bf_class_known(params->element_class))
		return status(BF_ERR_CLASS, params->element_class, 0);
	params->rate = load_float(header + AT_RATE);
	if (!(params->rate > 0 && params->rate < 1))	/* also refuses NaN */
		return status(BF_ERR_RATE, bf_load32(header + AT_RATE), 0);
	params->seed = bf_load64(header + AT_SEED);
	params->m = bf_load64(header + AT_BITS);

	verdict = check_sizes(filter, size - BF_HEADER_SIZE);
	if (verdict.error != BF_OK)
		return verdict;
	filter->nhashes = filter->sparse ? (size - BF_HEADER_SIZE) / 8 : 0;

	/* an empty filter is always sparse */
	if (params->element_class == BF_CLASS_NONE && (!filter->sparse || filter->nhashes != 0))
		return status(BF_ERR_CLASS_MISSING, 0, 0);
	return status(BF_OK, 0, 0);
}

bf_status
bf_decode(const uint8_t *bytes, uint64_t size, bf_source source, bf_filter *filter)
{
	filter->payload = bytes + AT_PAYLOAD;
	return bf_decode_header(bytes, size, source, filter);
}

bf_status
bf_check_hashes(const bf_filter *filter, uint64_t from, uint64_t to)
{
	uint64_t	i = from > 0 ? from : 1;

	for (; i < to; i++)
	{
		if (bf_load64(filter->payload + 8 * i) <= bf_load64(filter->payload + 8 * (i - 1)))
			return status(BF_ERR_HASHES_ORDER, i, 0);
	}
	return status(BF_OK, 0, 0);
}

uint64_t
bf_payload_size(const bf_filter *filter)
{
	return filter->sparse ? 8 * filter->nhashes : filter->params.m / 8;
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

	bytes[AT_VERSION] = BF_FORMAT_VERSION;
	bytes[AT_LAYOUT] = (uint8_t) params->layout;
	bytes[AT_FLAGS] = (uint8_t) ((filter->sparse ? FLAG_SPARSE : 0) |
								 (filter->sizing ? FLAG_SIZING : 0));
	bytes[AT_K] = (uint8_t) params->k;
	bf_store32(bytes + AT_CLASS, params->element_class);
	store_float(bytes + AT_RATE, params->rate);
	bf_store64(bytes + AT_SEED, params->seed);
	bf_store64(bytes + AT_BITS, params->m);
	return bytes + AT_PAYLOAD;
}
