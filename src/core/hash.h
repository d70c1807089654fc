/*
 * hash.h
 *		The hash function of the format: XXH64.
 *
 * XXH64 reads its input as little-endian words on every machine, so equal
 * canonical bytes and equal seeds give equal hashes everywhere.
 */
#ifndef BF_HASH_H
#define BF_HASH_H

#include <stddef.h>
#include <stdint.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "bytes.h"

/* The hash of an element's canonical bytes. */
static inline uint64_t
bf_hash_bytes(const void *bytes, size_t size, uint64_t seed)
{
	return XXH64(bytes, size, seed);
}

/*
 * The hash of an element whose canonical bytes are the 8 little-endian bytes
 * of value.  "flatten" inlines XXH64, and the constant size then removes its
 * loops: 1 ns instead of 3.
 */
static inline __attribute__((flatten)) uint64_t
bf_hash_word(uint64_t value, uint64_t seed)
{
	uint8_t		bytes[8];

	bf_store64(bytes, value);
	return XXH64(bytes, sizeof(bytes), seed);
}

#endif							/* BF_HASH_H */
