/*
 * answer.h
 *		What answers about filters and about counters share.
 */
#ifndef ANSWER_H
#define ANSWER_H

#include <math.h>
#include <stdio.h>

#include "format.h"
#include "layout.h"
#include "reference.h"
#include "sizing.h"

/* False if the question is not about counters. */
extern bool answer_about_counters(const char *question);

extern bf_solutions solutions;

/* The next word of the question; there must be one. */
static inline char *
word(void)
{
	char	   *next = strtok(NULL, " \n");

	if (next == NULL)
		abort();
	return next;
}

/* A number, of which SQL's seeds may be negative. */
static inline uint64_t
number(void)
{
	char	   *text = word();

	return text[0] == '-' ? (uint64_t) strtoll(text, NULL, 10) : strtoull(text, NULL, 10);
}

static inline uint8_t *
bytes_of(const char *digits, size_t *size)
{
	uint8_t    *bytes;

	*size = strcmp(digits, "-") == 0 ? 0 : strlen(digits) / 2;
	bytes = allocate(*size);
	for (size_t i = 0; i < *size; i++)
	{
		unsigned	byte;

		if (sscanf(digits + 2 * i, "%2x", &byte) != 1)
			abort();
		bytes[i] = (uint8_t) byte;
	}
	return bytes;
}

static inline void
print_hex(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		printf("%02x", bytes[i]);
	puts("");
}

/* Prints a filter with that payload. */
static inline void
print_filter(const bf_filter *filter, const uint8_t *payload)
{
	size_t		size = bf_encoded_size(filter);
	uint8_t    *bytes = allocate(size);

	memcpy(bf_encode_header(filter, bytes), payload, bf_payload_size(filter));
	print_hex(bytes, size);
	free(bytes);
}

static inline bf_status
decode(const uint8_t *bytes, size_t size, bf_kind kind, bf_filter *filter)
{
	bf_status	status = bf_decode(bytes, size, kind, BF_VALUE, filter);

	if (status.error == BF_OK && filter->sparse)
		status = bf_check_hashes(filter, 0, filter->nhashes);
	return status;
}

/* A filter of the question, in memory of its own. */
static inline bf_filter
asked_about(bf_kind kind)
{
	size_t		size;
	uint8_t    *bytes = bytes_of(word(), &size);
	bf_filter	filter;

	if (decode(bytes, size, kind, &filter).error != BF_OK)
		abort();
	return filter;
}

static inline void
release(bf_filter *filter)
{
	free((uint8_t *) filter->payload - BF_HEADER_SIZE);
}

static inline void
answer_read(bf_kind kind)
{
	size_t		size;
	uint8_t    *bytes = bytes_of(word(), &size);
	bf_filter	filter;
	bf_status	status = decode(bytes, size, kind, &filter);

	if (status.error == BF_OK)
		print_filter(&filter, filter.payload);
	else
		printf("refused: %d\n", (int) status.error);
	free(bytes);
}

/* Layout, rate and expected elements; m is 0 without any. */
static inline bf_params
take_params(uint64_t *items)
{
	bf_params	params = {.layout = strcmp(word(), "classic") == 0 ? BF_CLASSIC : BF_BLOCKED, .cell_bits = 1};

	params.rate = strtof(word(), NULL);
	params.k = bf_k_for_rate(params.layout, params.rate);
	*items = number();
	if (*items > 0)
		params.m = bf_bits_for(&solutions, params.layout, params.k, params.rate, *items);
	return params;
}

/* The m of a filter or counter that sizes itself for that many elements. */
static inline uint64_t
own_size(const bf_params *params, size_t count)
{
	uint64_t	m = BF_BLOCK_BITS;

	while (bf_capacity(&solutions, BF_BLOCKED, params->k, params->rate, m) < count)
		m *= 2;
	return m;
}

#endif							/* ANSWER_H */
