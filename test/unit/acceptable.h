/*
 * acceptable.h
 *		"What a reader must refuse" of doc/format.md once more, for comparison
 *		with the decoder.
 */
#ifndef ACCEPTABLE_H
#define ACCEPTABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "format.h"

static const uint32_t classes[] = {
	16, 17, 20, 25, 701, 774, 829, 869, 1082, 1083, 1114, 1184, 1186, 1266, 1700, 2950
};

#define NCLASSES (sizeof(classes) / sizeof(classes[0]))

static inline uint64_t
get(const uint8_t *bytes, int offset, int size)
{
	uint64_t	value = 0;

	for (int i = 0; i < size; i++)
		value |= (uint64_t) bytes[offset + i] << 8 * i;
	return value;
}

static inline bool
known(uint64_t element_class)
{
	for (size_t i = 0; i < NCLASSES; i++)
	{
		if (classes[i] == element_class)
			return true;
	}
	return false;
}

static inline bool
ascending(const uint8_t *bytes, uint64_t size)
{
	for (uint64_t at = BF_HEADER_SIZE + 8; at < size; at += 8)
	{
		if (get(bytes + at, 0, 8) <= get(bytes + at - 8, 0, 8))
			return false;
	}
	return true;
}

/* Is the representation one that the page allows? */
static inline bool
payload_allowed(const uint8_t *bytes, uint64_t size)
{
	bool		sparse = bytes[2] & 1;
	bool		sizing = bytes[2] & 2;
	uint64_t	m = get(bytes, 20, 8);
	uint64_t	payload = size - BF_HEADER_SIZE;

	if (get(bytes, 4, 4) == 0 && (!sparse || payload > 0))
		return false;
	if (!sparse)
		return m > 0 && payload == m / 8 && (!sizing || (m == BF_MAX_BITS && bytes[1] == 0));
	if (payload % 8 != 0 || !ascending(bytes, size))
		return false;
	if (sizing)
		return m == 0 && bytes[1] == 0 && payload / 8 <= UINT64_C(1) << 24;
	return m == 0 ? payload == 0 && get(bytes, 4, 4) == 0 && bytes[1] == 0 : payload < m / 8;
}

/* May a reader take these bytes? */
static inline bool
acceptable(const uint8_t *bytes, uint64_t size, bf_source source)
{
	uint32_t	word;
	float		rate;

	if (size < BF_HEADER_SIZE || bytes[0] != 1 || bytes[1] > 1 || bytes[2] > 3)
		return false;
	if (bytes[2] & 2 && source == BF_VALUE)
		return false;
	word = (uint32_t) get(bytes, 8, 4);
	memcpy(&rate, &word, sizeof(rate));
	return bytes[3] >= 1 && bytes[3] <= 32 && rate > 0 && rate < 1 &&
		(get(bytes, 4, 4) == 0 || known(get(bytes, 4, 4))) &&
		get(bytes, 20, 8) <= BF_MAX_BITS &&
		get(bytes, 20, 8) % (bytes[1] == 0 ? 512 : 64) == 0 &&
		payload_allowed(bytes, size);
}

#endif							/* ACCEPTABLE_H */
