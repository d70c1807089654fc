/*
 * bulk.c
 *		Loops over the bits of filters, for several instruction sets (cpu.h).
 */
#include "bulk.h"

#include <string.h>

#include "bytes.h"
#include "cpu.h"

BODY void
bf_or_body(uint8_t *restrict dst, const uint8_t *restrict src, size_t size)
{
	assert(size % 8 == 0 && bf_apart(dst, size, src, size));
	for (size_t i = 0; i < size; i += 8)
		bf_store64(dst + i, bf_load64(dst + i) | bf_load64(src + i));
}

BODY void
bf_and_body(uint8_t *restrict dst, const uint8_t *restrict src, size_t size)
{
	assert(size % 8 == 0 && bf_apart(dst, size, src, size));
	for (size_t i = 0; i < size; i += 8)
		bf_store64(dst + i, bf_load64(dst + i) & bf_load64(src + i));
}

BODY uint64_t
bf_popcount_body(const uint8_t *bits, size_t size)
{
	uint64_t	count = 0;

	assert(size % 8 == 0);
	for (size_t i = 0; i < size; i += 8)
		count += (uint64_t) __builtin_popcountll(bf_load64(bits + i));
	return count;
}

BODY uint64_t
bf_popcount_or_body(const uint8_t *a, const uint8_t *b, size_t size)
{
	uint64_t	count = 0;

	assert(size % 8 == 0);
	for (size_t i = 0; i < size; i += 8)
		count += (uint64_t) __builtin_popcountll(bf_load64(a + i) | bf_load64(b + i));
	return count;
}

BODY bool
bf_is_subset_body(const uint8_t *sub, const uint8_t *super, size_t size)
{
	uint64_t	missing = 0;

	assert(size % 8 == 0);
	for (size_t i = 0; i < size; i += 8)
		missing |= bf_load64(sub + i) & ~bf_load64(super + i);
	return missing == 0;
}

BODY void
bf_count_blocks_body(const uint8_t *bits, size_t nblocks, bf_histogram *histogram)
{
	assert(nblocks <= BF_MAX_BITS / BF_BLOCK_BITS);
	for (size_t i = 0; i < nblocks; i++)
	{
		uint32_t	set = (uint32_t) bf_popcount_body(bits + i * BF_BLOCK_BYTES, BF_BLOCK_BYTES);
		uint32_t	unset = BF_BLOCK_BITS - set;

		histogram->blocks[set]++;
		if (set > histogram->most_set)
			histogram->most_set = set;
		if (unset > histogram->most_unset)
			histogram->most_unset = unset;
	}
}

BODY void
bf_fold_body(uint8_t *dst, const uint8_t *src, size_t nblocks, size_t run)
{
	assert(run >= 1);
	assert(dst <= src || bf_apart(dst, nblocks * BF_BLOCK_BYTES, src, nblocks * run * BF_BLOCK_BYTES));
	for (size_t i = 0; i < nblocks; i++)
	{
		uint8_t		block[BF_BLOCK_BYTES];

		memcpy(block, src, BF_BLOCK_BYTES);
		src += BF_BLOCK_BYTES;
		for (size_t j = 1; j < run; j++, src += BF_BLOCK_BYTES)
			bf_or_body(block, src, BF_BLOCK_BYTES);
		memcpy(dst + i * BF_BLOCK_BYTES, block, BF_BLOCK_BYTES);
	}
}

DISPATCH(void, bf_or, (uint8_t *dst, const uint8_t *src, size_t size), (dst, src, size))
DISPATCH(void, bf_and, (uint8_t *dst, const uint8_t *src, size_t size), (dst, src, size))
DISPATCH(uint64_t, bf_popcount, (const uint8_t *bits, size_t size), (bits, size))
DISPATCH(uint64_t, bf_popcount_or, (const uint8_t *a, const uint8_t *b, size_t size), (a, b, size))
DISPATCH(bool, bf_is_subset, (const uint8_t *sub, const uint8_t *super, size_t size), (sub, super, size))
DISPATCH(void, bf_count_blocks, (const uint8_t *bits, size_t nblocks, bf_histogram *histogram),
		 (bits, nblocks, histogram))
DISPATCH(void, bf_fold, (uint8_t *dst, const uint8_t *src, size_t nblocks, size_t run),
		 (dst, src, nblocks, run))
