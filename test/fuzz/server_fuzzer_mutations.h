/*
 * server_fuzzer_mutations.h
 *		Bytes that are, nearly are, or are not a filter, or a counter.
 *
 * Made from doc/format.md alone, sharing no code with the extension, so that its
 * idea of what is valid, ../unit/acceptable.h, is a second opinion.
 */
#ifndef SERVER_FUZZER_MUTATIONS_H
#define SERVER_FUZZER_MUTATIONS_H

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
extern void append_network32(Bytes *to, uint32_t value);

/* splitmix64 */
typedef struct Random
{
	uint64_t	state;
} Random;

extern uint64_t random_word(Random *random);
extern uint64_t below(Random *random, uint64_t limit);	/* limit > 0 */
extern bool one_in(Random *random, uint64_t n);

/*
 * From here on "filter" means a counter, if the argument is true.  The program
 * sends values of one type.
 */
extern void choose_counters(bool counters);

/* Whether a reader must accept the bytes; otherwise it must refuse them. */
extern bool is_filter(const uint8_t *bytes, size_t size);

/* For bytes that are a filter. */
extern uint32_t filter_class(const Bytes *filter);
extern uint64_t filter_bits(const Bytes *filter);	/* of the dense form */

/* A text that only filters which combine with each other share. */
extern void make_key(const Bytes *filter, char *key, size_t size);

/*
 * Mutates bytes, with other as a second source of material.  Filters of many more
 * bits than bytes are rare, because every call on them takes long; those of more
 * than 2^27 bits are one in some thousands.
 */
extern void mutate(Bytes *bytes, const Bytes *other, Random *random);

/* Makes a valid filter, which mostly combines with the given one. */
extern void make_sibling(const Bytes *filter, Bytes *sibling, Random *random);

/* Makes the text form of bytes, and sometimes changes it. */
extern void make_text(const Bytes *bytes, Bytes *text, Random *random);

/* Whether a text, which contains no 0, is the text form of a filter, then decoded. */
extern bool is_filter_text(const Bytes *text, Bytes *decoded);

#endif							/* SERVER_FUZZER_MUTATIONS_H */
