/*
 * mend.h
 *		Repairs mutated bytes, so that they are a filter or a counter again.
 *
 * Random changes hardly ever leave a valid one.  Shares no code with the core.
 */
#ifndef MEND_H
#define MEND_H

#include <stdlib.h>

#include "acceptable.h"

/* Bits of a position: 1 in a filter; also in bytes with an invalid width. */
static inline uint64_t
position_bits(const uint8_t *bytes)
{
	if (!(bytes[FLAGS] & COUNTER))
		return 1;
	return counter_width(bytes) > 0 ? counter_width(bytes) : 4;
}

/* Bytes of an element in the sparse form. */
static inline size_t
element_bytes(const uint8_t *bytes)
{
	return bytes[FLAGS] & COUNTER ? 10 : 8;
}

static inline void
mend_header(uint8_t *bytes, bool state)
{
	bytes[VERSION] = 1;
	bytes[LAYOUT] &= 1;
	bytes[FLAGS] &= (bytes[FLAGS] & COUNTER ? 2 * LEVELS - 1 - SIZING : SPARSE) | (state ? SIZING : 0);
	if ((bytes[FLAGS] & WIDTH) == WIDTH)
		bytes[FLAGS] ^= 16;
	if (bytes[K] < 1 || bytes[K] > 32)
		bytes[K] = 1 + bytes[K] % 32;
	if (!known(get(bytes, CLASS, 4)))
		put(bytes, CLASS, 4, classes[bytes[CLASS] % NCLASSES]);
	if (!(get_rate(bytes) > 0 && get_rate(bytes) < 1))
		put(bytes, RATE, 4, 0x3C23D70A);
}

/* An element begins with its hash.  The number of a counter's element follows. */
static inline int
compare_elements(const void *a, const void *b)
{
	uint64_t	x = get(a, 0, 8);
	uint64_t	y = get(b, 0, 8);

	return (x > y) - (x < y);
}

static inline uint64_t
mended_number(uint64_t number, uint64_t limit)
{
	if (number >= 1 && number <= limit)
		return number;
	return number % 2 ? limit : 1 + number % limit;
}

/* Sorts the elements, drops duplicates, and makes numbers valid.  Returns the new size. */
static inline size_t
mend_elements(uint8_t *bytes, size_t size)
{
	uint8_t    *payload = bytes + HEADER;
	size_t		step = element_bytes(bytes);
	size_t		count = (size - HEADER) / step;
	size_t		kept = 0;
	uint64_t	limit = (UINT64_C(1) << position_bits(bytes)) - 1;
	uint8_t    *elements = malloc(count * step + 1);

	if (elements == NULL)
		abort();
	for (size_t i = 0; i < count; i++)
	{
		memcpy(elements + step * i, payload + 8 * i, 8);
		memcpy(elements + step * i + 8, payload + 8 * count + (step - 8) * i, step - 8);
	}
	qsort(elements, count, step, compare_elements);
	for (size_t i = 0; i < count; i++)
	{
		if (kept == 0 || memcmp(elements + step * (kept - 1), elements + step * i, 8) != 0)
			memmove(elements + step * kept++, elements + step * i, step);
	}
	for (size_t i = 0; i < kept; i++)
	{
		memcpy(payload + 8 * i, elements + step * i, 8);
		if (step > 8)
			put(payload + 8 * kept + 2 * i, 0, 2, mended_number(get(elements + step * i, 8, 2), limit));
	}
	free(elements);
	return HEADER + step * kept;
}

/* A counter has a class, and may have levels, if and only if it has elements. */
static inline void
mend_class(uint8_t *bytes, size_t size)
{
	if (size > HEADER)
	{
		if (get(bytes, CLASS, 4) == 0)
			put(bytes, CLASS, 4, 20);
	}
	else if (bytes[FLAGS] & COUNTER)
	{
		put(bytes, CLASS, 4, 0);
		bytes[FLAGS] &= (uint8_t) ~LEVELS;
	}
}

/* Makes the number of positions one that the elements of a sparse payload allow. */
static inline void
mend_sparse_size(uint8_t *bytes, size_t size, uint64_t unit)
{
	uint64_t	m = get(bytes, BITS, 8);
	uint64_t	least = 8 * (uint64_t) (size - HEADER) / position_bits(bytes) + 1;

	if (bytes[FLAGS] & SIZING)
	{
		bytes[LAYOUT] = 0;
		m = 0;
	}
	else if (m % unit != 0 || m > MAX_BITS / position_bits(bytes) || m < least)
		m = (least / unit + 1 + m % 4) * unit;
	put(bytes, BITS, 8, m);
}

/*
 * Makes bytes, with room for a header, a valid filter or counter, or a state.
 * Returns the new size: at most the old one, or that of a header.
 */
static inline size_t
mend(uint8_t *bytes, size_t size, bool state)
{
	uint64_t	unit;
	size_t		unit_bytes;

	if (size < HEADER)
	{
		memset(bytes + size, 0, HEADER - size);
		size = HEADER;
	}
	mend_header(bytes, state);
	unit = bytes[LAYOUT] == 0 ? 512 : 64;
	unit_bytes = unit / 8 * position_bits(bytes);
	if (size - HEADER < unit_bytes)
		bytes[FLAGS] |= SPARSE;
	if (bytes[FLAGS] & SPARSE)
	{
		size = mend_elements(bytes, size);
		mend_sparse_size(bytes, size, unit);
	}
	else
	{
		bytes[FLAGS] &= (uint8_t) ~SIZING;
		size -= (size - HEADER) % unit_bytes;
		put(bytes, BITS, 8, (size - HEADER) / unit_bytes * unit);
	}
	mend_class(bytes, size);
	return size;
}

#endif							/* MEND_H */
