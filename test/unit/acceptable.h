/*
 * acceptable.h
 *		"What a reader must refuse" of doc/format.md, written a second time to
 *		compare the decoder with. It shares no code with the core.
 */
#ifndef ACCEPTABLE_H
#define ACCEPTABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define HEADER		28
#define MAX_BITS	(UINT64_C(1) << 31)

/* Offsets in the header. */
enum
{
	VERSION = 0, LAYOUT = 1, FLAGS = 2, K = 3, CLASS = 4, RATE = 8, SEED = 12, BITS = 20
};

enum
{
	SPARSE = 1, SIZING = 2, COUNTER = 4, WIDTH = 24, LEVELS = 32
};

static const uint32_t classes[] = {
	20, 25, 701, 1700, 17, 2950, 16, 1082, 1083, 1266, 1114, 1184, 1186, 869, 829, 774, 1042
};

#define NCLASSES	(sizeof(classes) / sizeof(classes[0]))

static inline uint64_t
get(const uint8_t *bytes, int offset, int size)
{
	uint64_t	value = 0;

	for (int i = 0; i < size; i++)
		value |= (uint64_t) bytes[offset + i] << 8 * i;
	return value;
}

static inline void
put(uint8_t *bytes, int offset, int size, uint64_t value)
{
	for (int i = 0; i < size; i++)
		bytes[offset + i] = (uint8_t) (value >> 8 * i);
}

static inline float
get_rate(const uint8_t *bytes)
{
	uint32_t	word = (uint32_t) get(bytes, RATE, 4);
	float		rate;

	memcpy(&rate, &word, sizeof(rate));
	return rate;
}

/* Includes class 0, that of a filter without elements. */
static inline bool
known(uint64_t element_class)
{
	for (size_t i = 0; i < NCLASSES; i++)
	{
		if (classes[i] == element_class)
			return true;
	}
	return element_class == 0;
}

/* The hashes, up to the given end. */
static inline bool
ascending(const uint8_t *bytes, uint64_t end)
{
	for (uint64_t at = HEADER + 8; at < end; at += 8)
	{
		if (get(bytes + at, 0, 8) <= get(bytes + at - 8, 0, 8))
			return false;
	}
	return true;
}

/* Whether doc/format.md allows the representation. */
static inline bool
payload_allowed(const uint8_t *bytes, uint64_t size)
{
	bool		sparse = bytes[FLAGS] & SPARSE;
	bool		sizing = bytes[FLAGS] & SIZING;
	uint64_t	class = get(bytes, CLASS, 4);
	uint64_t	m = get(bytes, BITS, 8);
	uint64_t	payload = size - HEADER;

	if (class == 0 && (!sparse || payload > 0))
		return false;
	if (!sparse)
		return m > 0 && payload == m / 8 && (!sizing || (m == MAX_BITS && bytes[LAYOUT] == 0));
	if (payload % 8 != 0 || !ascending(bytes, size))
		return false;
	if (sizing)
		return m == 0 && bytes[LAYOUT] == 0 && payload / 8 <= UINT64_C(1) << 24;
	return m == 0 ? payload == 0 && class == 0 && bytes[LAYOUT] == 0 : payload < m / 8;
}

/* What filters and counters have in common; limit is the greatest m. */
static inline bool
header_allowed(const uint8_t *bytes, uint64_t limit, bool state)
{
	if (bytes[VERSION] != 1 || bytes[LAYOUT] > 1 || (bytes[FLAGS] & SIZING && !state))
		return false;
	return bytes[K] >= 1 && bytes[K] <= 32 && get_rate(bytes) > 0 && get_rate(bytes) < 1 &&
		known(get(bytes, CLASS, 4)) &&
		get(bytes, BITS, 8) <= limit &&
		get(bytes, BITS, 8) % (bytes[LAYOUT] == 0 ? 512 : 64) == 0;
}

/*
 * Whether a reader must accept the bytes as a filter, or as the state of an
 * aggregate that makes one.
 */
static inline bool
acceptable(const uint8_t *bytes, uint64_t size, bool state)
{
	return size >= HEADER && bytes[FLAGS] <= (SPARSE | SIZING) && header_allowed(bytes, MAX_BITS, state) &&
		payload_allowed(bytes, size);
}

/* Bits of a counter's numbers; 0 if the flags are not those of a counter. */
static inline unsigned int
counter_width(const uint8_t *bytes)
{
	static const unsigned int widths[] = {4, 8, 16, 0};

	return bytes[FLAGS] & COUNTER && bytes[FLAGS] < 2 * LEVELS ? widths[(bytes[FLAGS] & WIDTH) / 8] : 0;
}

/* The numbers of a sparse counter are 1 to the greatest one that its width holds. */
static inline bool
numbers_allowed(const uint8_t *numbers, uint64_t count, unsigned int width)
{
	for (uint64_t i = 0; i < count; i++)
	{
		uint64_t	number = get(numbers + 2 * i, 0, 2);

		if (number == 0 || number >> width != 0)
			return false;
	}
	return true;
}

/* Whether doc/format.md allows the representation of a counter. */
static inline bool
counter_payload_allowed(const uint8_t *bytes, uint64_t size)
{
	bool		sizing = bytes[FLAGS] & SIZING;
	unsigned int width = counter_width(bytes);
	uint64_t	m = get(bytes, BITS, 8);
	uint64_t	payload = size - HEADER;
	uint64_t	count = payload / 10;
	bool		empty = bytes[FLAGS] & SPARSE && payload == 0;

	if (empty != (get(bytes, CLASS, 4) == 0) || (empty && bytes[FLAGS] & LEVELS))
		return false;
	if (!(bytes[FLAGS] & SPARSE))
		return m > 0 && payload == m * width / 8 && (!sizing || (m == MAX_BITS / width && bytes[LAYOUT] == 0));
	if (payload % 10 != 0 || !ascending(bytes, HEADER + 8 * count) ||
		!numbers_allowed(bytes + HEADER + 8 * count, count, width))
		return false;
	if (sizing)
		return m == 0 && bytes[LAYOUT] == 0 && count <= UINT64_C(1) << 24;
	return m == 0 ? empty && bytes[LAYOUT] == 0 : payload < m * width / 8;
}

/* The same as acceptable() for a counter. */
static inline bool
acceptable_counter(const uint8_t *bytes, uint64_t size, bool state)
{
	return size >= HEADER && counter_width(bytes) > 0 &&
		header_allowed(bytes, MAX_BITS / counter_width(bytes), state) && counter_payload_allowed(bytes, size);
}

/* The verdict on a filter or a counter. */
static inline bool
acceptable_as(const uint8_t *bytes, uint64_t size, bool counter, bool state)
{
	return counter ? acceptable_counter(bytes, size, state) : acceptable(bytes, size, state);
}

#endif							/* ACCEPTABLE_H */
