/*
 * block.h
 *		From an element's hash to its bits: the one rule of the format.
 *
 * The high half of the hash picks the block; multiplying the hash again and
 * again by an odd constant yields k numbers, the high bits of which pick the
 * bits.  Double hashing, the usual generator, was measured at up to 22 times
 * the theoretical false-positive rate on small filters; this one stays
 * within five percent.
 *
 * Everything here addresses bytes, so it needs no alignment and means the
 * same on machines of either byte order.  Callers that want one cache line
 * touched per element align bit 0 to 64 bytes.
 */
#ifndef BF_BLOCK_H
#define BF_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "format.h"

/* 2^64 divided by the golden ratio, made odd. */
#define BF_GENERATOR UINT64_C(0x9E3779B97F4A7C15)

/* The block of an element, 0 .. nblocks - 1; monotone in the hash. */
static inline uint64_t
bf_block_of(const bf_shape *shape, uint64_t hash)
{
	return ((hash >> 32) * shape->nblocks) >> 32;
}

/* (y * bound) >> 64 for bound <= 2^31, without a 128-bit type. */
static inline uint64_t
bf_scale(uint64_t y, uint32_t bound)
{
	return ((y >> 32) * bound + (((y & UINT32_MAX) * bound) >> 32)) >> 32;
}

/* Where the block of an element begins in the bits of a filter. */
static inline uint64_t
bf_block_offset(const bf_shape *shape, uint64_t hash)
{
	return bf_block_of(shape, hash) * (shape->block_bits / 8);
}

/* Sets an element's bits in its block. */
static inline void
bf_block_add(uint8_t *block, const bf_shape *shape, uint64_t hash)
{
	uint64_t	y = hash;

	for (uint32_t i = 0; i < shape->k; i++)
	{
		uint64_t	bit;

		y *= BF_GENERATOR;
		bit = bf_scale(y, shape->block_bits);
		block[bit / 8] |= (uint8_t) (1u << (bit % 8));
	}
}

/*
 * Are all of an element's bits set in its block?  Looks at all k rather than
 * stopping at the first zero: in a half-full block that branch is a coin
 * toss, and mispredicting it costs more than the loads saved.
 */
static inline bool
bf_block_contains(const uint8_t *block, const bf_shape *shape, uint64_t hash)
{
	uint64_t	y = hash;
	unsigned	all = 1;

	for (uint32_t i = 0; i < shape->k; i++)
	{
		uint64_t	bit;

		y *= BF_GENERATOR;
		bit = bf_scale(y, shape->block_bits);
		all &= (unsigned) block[bit / 8] >> (bit % 8);
	}
	return all & 1;
}

/* The same two on the bits of a whole filter. */
static inline void
bf_bits_add(uint8_t *bits, const bf_shape *shape, uint64_t hash)
{
	bf_block_add(bits + bf_block_offset(shape, hash), shape, hash);
}

static inline bool
bf_bits_contain(const uint8_t *bits, const bf_shape *shape, uint64_t hash)
{
	return bf_block_contains(bits + bf_block_offset(shape, hash), shape, hash);
}

/* Asks the CPU to fetch what bf_bits_add() is going to write. */
static inline void
bf_bits_prefetch(const uint8_t *bits, const bf_shape *shape, uint64_t hash)
{
	__builtin_prefetch(bits + bf_block_offset(shape, hash), 1);
}

#endif							/* BF_BLOCK_H */
