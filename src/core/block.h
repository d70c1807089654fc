/*
 * block.h
 *		The mapping from an element's hash to its bits.
 *
 * The high half of the hash selects the block.  Repeated multiplication of the
 * hash by an odd constant yields k numbers, whose high bits select the bits.
 * Double hashing, the usual generator, had up to 22 times the theoretical
 * false-positive rate on small filters; this generator stays within 5 %.
 *
 * All accesses are by byte, so the code needs no alignment and works on either
 * byte order.  A caller that wants to touch one cache line per element aligns
 * bit 0 to 64 bytes.
 */
#ifndef BF_BLOCK_H
#define BF_BLOCK_H

#include "bytes.h"
#include "layout.h"

/* 2^64 divided by the golden ratio, rounded to an odd number. */
#define BF_GENERATOR UINT64_C(0x9E3779B97F4A7C15)

_Static_assert(BF_BLOCK_BITS == 1 << (64 - 55), "bf_bit_of() takes the top 9 bits");

/* The block of an element, 0 .. nblocks - 1; never decreases with the hash. */
static inline uint64_t
bf_block_of(const bf_shape *shape, uint64_t hash)
{
	assert(shape->nblocks > 0);
	return ((hash >> 32) * shape->nblocks) >> 32;
}

/* (y * bound) >> 64 for bound <= 2^31, without a 128-bit type. */
static inline uint64_t
bf_scale(uint64_t y, uint32_t bound)
{
	assert(bound <= UINT32_C(1) << 31);
	return ((y >> 32) * bound + (((y & UINT32_MAX) * bound) >> 32)) >> 32;
}

/* The offset in bytes of an element's block. */
static inline uint64_t
bf_block_offset(const bf_shape *shape, uint64_t hash)
{
	/* blocks of another size occur only alone, as block 0 */
	return bf_block_of(shape, hash) * BF_BLOCK_BYTES;
}

/*
 * The bit that y selects.  In a block of 512 bits that is the top 9 bits of y;
 * the compiler removes the test if block_bits is a constant.
 */
static inline uint64_t
bf_bit_of(uint64_t y, uint32_t block_bits)
{
	return block_bits == BF_BLOCK_BITS ? y >> 55 : bf_scale(y, block_bits);
}

/* The next bit of an element; *y starts as its hash. */
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

/* Powers of the generator let bf_test_all() compute four bits independently. */
#define BF_GENERATOR_2 (BF_GENERATOR * BF_GENERATOR)
#define BF_GENERATOR_3 (BF_GENERATOR_2 * BF_GENERATOR)
#define BF_GENERATOR_4 (BF_GENERATOR_3 * BF_GENERATOR)

/* The bit that y selects, as the lowest bit; the bits above it are garbage. */
static inline uint64_t
bf_picked_bit(const uint8_t *block, uint32_t block_bits, uint64_t y)
{
	uint64_t	bit = bf_bit_of(y, block_bits);

	return bf_load64(block + 8 * (bit / 64)) >> (bit % 64);
}

/*
 * True if all k bits are set.  Branches once per four bits: in a half-full
 * block a branch per bit is a coin toss, and a misprediction costs more than
 * the loads it saves.  Only one absent element in sixteen passes four bits.
 * Always inlined, so that block_bits can be a constant.
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

/* True if all of an element's bits are set in its block. */
static inline __attribute__((always_inline)) bool
bf_block_contains(const uint8_t *block, const bf_shape *shape, uint64_t hash)
{
	if (bf_has_small_blocks(shape))
		return bf_test_all(block, BF_BLOCK_BITS, shape->k, hash);
	return bf_test_all(block, shape->block_bits, shape->k, hash);
}

/* The same for the bits of a whole filter. */
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

/*
 * Adds to bits to which others add at the same time.  A bit that is set costs no write, so
 * that processors do not take the line from each other.
 */
static inline void
bf_bits_add_shared(uint8_t *bits, const bf_shape *shape, uint64_t hash)
{
	uint8_t    *block = bits + bf_block_offset(shape, hash);

	for (uint32_t i = 0; i < shape->k; i++)
	{
		uint64_t	bit = bf_next_bit(&hash, shape->block_bits);
		uint8_t		mask = (uint8_t) (1u << (bit % 8));

		if (!(__atomic_load_n(&block[bit / 8], __ATOMIC_RELAXED) & mask))
			__atomic_fetch_or(&block[bit / 8], mask, __ATOMIC_RELAXED);
	}
}

/* Prefetches the cache line that bf_bits_add() will write. */
static inline __attribute__((always_inline)) void
bf_bits_prefetch(const uint8_t *bits, const bf_shape *shape, uint64_t hash)
{
	__builtin_prefetch(bits + bf_block_offset(shape, hash), 1);
}

#endif							/* BF_BLOCK_H */
