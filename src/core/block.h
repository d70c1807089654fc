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

#include "bytes.h"
#include "layout.h"

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
	/* a filter that is one large block has no other than block 0 */
	return bf_block_of(shape, hash) * BF_BLOCK_BYTES;
}

/*
 * The bit that a throw picks.  In a block of 512 bits the scaling comes down
 * to the top 9 bits of y, which a caller gets by passing that number as a
 * constant.
 */
static inline uint64_t
bf_bit_of(uint64_t y, uint32_t block_bits)
{
	return block_bits == BF_BLOCK_BITS ? y >> 55 : bf_scale(y, block_bits);
}

/* The bit of an element's next throw; y begins as its hash. */
static inline uint64_t
bf_next_bit(uint64_t *y, uint32_t block_bits)
{
	*y *= BF_GENERATOR;
	return bf_bit_of(*y, block_bits);
}

static inline void
bf_set_all(uint8_t *block, uint32_t block_bits, uint32_t k, uint64_t hash)
{
	for (uint32_t i = 0; i < k; i++)
	{
		uint64_t	bit = bf_next_bit(&hash, block_bits);

		block[bit / 8] |= (uint8_t) (1u << (bit % 8));
	}
}

/* The powers of the generator, by which bf_test_all() makes four throws at once. */
#define BF_GENERATOR_2 (BF_GENERATOR * BF_GENERATOR)
#define BF_GENERATOR_3 (BF_GENERATOR_2 * BF_GENERATOR)
#define BF_GENERATOR_4 (BF_GENERATOR_3 * BF_GENERATOR)

/* 1 or 0 in the lowest bit, for the bit picked by y; anything above it. */
static inline uint64_t
bf_picked_bit(const uint8_t *block, uint32_t block_bits, uint64_t y)
{
	uint64_t	bit = bf_bit_of(y, block_bits);

	return bf_load64(block + 8 * (bit / 64)) >> (bit % 64);
}

/*
 * Looks at four bits before it decides whether to go on.  After each single
 * one that would be a coin toss in a half-full block, and a mispredicted
 * branch costs more than the loads saved; of absent elements only one in
 * sixteen gets past four.  Inlined always, for block_bits to be a constant.
 */
static inline __attribute__((always_inline)) bool
bf_test_all(const uint8_t *block, uint32_t block_bits, uint32_t k, uint64_t hash)
{
	uint64_t	all = 1;

	for (; k >= 4; k -= 4)
	{
		all = bf_picked_bit(block, block_bits, hash * BF_GENERATOR) &
			bf_picked_bit(block, block_bits, hash * BF_GENERATOR_2) &
			bf_picked_bit(block, block_bits, hash * BF_GENERATOR_3);
		hash *= BF_GENERATOR_4;
		all &= bf_picked_bit(block, block_bits, hash);
		if (!(all & 1))
			return false;
	}
	for (; k > 0; k--)
	{
		hash *= BF_GENERATOR;
		all &= bf_picked_bit(block, block_bits, hash);
	}
	return all & 1;
}

/* Sets an element's bits in its block. */
static inline void
bf_block_add(uint8_t *block, const bf_shape *shape, uint64_t hash)
{
	if (bf_has_small_blocks(shape))
		bf_set_all(block, BF_BLOCK_BITS, shape->k, hash);
	else
		bf_set_all(block, shape->block_bits, shape->k, hash);
}

/* Are all of an element's bits set in its block? */
static inline bool
bf_block_contains(const uint8_t *block, const bf_shape *shape, uint64_t hash)
{
	if (bf_has_small_blocks(shape))
		return bf_test_all(block, BF_BLOCK_BITS, shape->k, hash);
	return bf_test_all(block, shape->block_bits, shape->k, hash);
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
