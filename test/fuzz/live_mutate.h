/*
 * live_mutate.h
 *		Bytes that are, nearly are, or are not a filter.
 *
 * Made from doc/format.md alone, sharing no code with the extension, so that its
 * idea of what is valid, ../unit/acceptable.h, is a second opinion.
 */
#ifndef LIVE_MUTATE_H
#define LIVE_MUTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Bytes
{
	uint8_t    *data;
	size_t		size;
	size_t		room;
} Bytes;

extern void set_bytes(Bytes *to, const void *data, size_t size);
extern void append_bytes(Bytes *to, const void *data, size_t size);

/* splitmix64 */
typedef struct Random
{
	uint64_t	state;
} Random;

extern uint64_t random_word(Random *random);
extern uint64_t below(Random *random, uint64_t limit);	/* limit > 0 */
extern bool one_in(Random *random, uint64_t n);

/* What a reader must refuse, and the rest. */
extern bool is_filter(const uint8_t *bytes, size_t size);

/* Of bytes that are a filter. */
extern uint32_t filter_class(const Bytes *filter);
extern uint64_t filter_bits(const Bytes *filter);

/* A text that is the same only for filters all of which combine with each other. */
extern void make_key(const Bytes *filter, char *key, size_t size);

/*
 * Changes bytes into something else, with other as a second source of material.
 * Filters of many more bits than bytes are kept rare, as whatever is done to one
 * of these takes long; those of more than 2^27 bits are one in some thousands.
 */
extern void mutate(Bytes *bytes, const Bytes *other, Random *random);

/* A filter, always a valid one, that combines with the one given. */
extern void make_sibling(const Bytes *filter, Bytes *sibling, Random *random);

/* The text form of bytes, then changed or not. */
extern void make_text(const Bytes *bytes, Bytes *text, Random *random);

/* Whether a text, which contains no 0, is the text form of a filter. */
extern bool is_filter_text(const Bytes *text, Bytes *decoded);

#endif							/* LIVE_MUTATE_H */
