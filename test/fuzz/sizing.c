/*
 * sizing.c
 *		Any parameters that a user may request, to the functions that size
 *		filters.
 *
 * An input is the layout (1 byte), the rate (4 bytes), a number of elements (6
 * bytes) and bits (4 bytes). The core takes rates from BF_MIN_RATE to
 * BF_MAX_RATE. Its callers refuse others.
 */
#include <math.h>

#include "fuzz.h"
#include "layout.h"

/*
 * A valid rate from any bits: the rate that they are, or one derived from
 * them.
 */
static double
take_rate(source *from)
{
	uint32_t	bits = (uint32_t) take(from, 4);
	float		rate;

	memcpy(&rate, &bits, sizeof(rate));
	if (rate >= (float) BF_MIN_RATE && rate <= (float) BF_MAX_RATE)
		return rate;
	return (float) exp2(-1 - 28.8 * (bits % 65536) / 65536);
}

/* m is the least size that suffices, and the elements that it has room for keep the rate. */
static void
try_classic(bf_solutions *solutions, uint32_t k, double rate, uint64_t m, uint64_t items)
{
	uint64_t	least = bf_bits_for(solutions, BF_CLASSIC, k, rate, items);
	uint64_t	fits;

	demand(least % BF_WORD_BITS == 0 && least <= BF_MAX_BITS);
	if (least == 0)
		demand(bf_classic_rate(k, BF_MAX_BITS, items) > rate);
	else
	{
		demand(bf_classic_rate(k, least, items) <= rate);
		demand(least == BF_WORD_BITS || bf_classic_rate(k, least - BF_WORD_BITS, items) > rate);
		m = least;
	}
	fits = bf_capacity(solutions, BF_CLASSIC, k, rate, m);
	demand(fits == 0 || bf_classic_rate(k, m, fits) <= rate);
	demand(bf_classic_rate(k, m, fits + 1) > rate);
}

/*
 * The greatest number of blocks below these that has at most seven
 * significant bits.
 */
static uint64_t
fewer_blocks(uint64_t nblocks)
{
	uint64_t	unit = 1;

	for (nblocks--; nblocks >= 128 * unit;)
		unit *= 2;
	return nblocks / unit * unit;
}

/* m is the least of these numbers of blocks that has the capacity. */
static void
try_blocked(bf_solutions *solutions, uint32_t k, double rate, uint64_t m, uint64_t items)
{
	uint64_t	least = bf_bits_for(solutions, BF_BLOCKED, k, rate, items);
	uint64_t	fits = bf_capacity(solutions, BF_BLOCKED, k, rate, m);
	uint64_t	fewer = least == 0 ? BF_MAX_BITS : fewer_blocks(least / BF_BLOCK_BITS) * BF_BLOCK_BITS;
	uint64_t	bits;

	demand(least % BF_BLOCK_BITS == 0 && least <= BF_MAX_BITS);
	demand(least == 0 || bf_capacity(solutions, BF_BLOCKED, k, rate, least) >= items);
	demand(bf_capacity(solutions, BF_BLOCKED, k, rate, fewer) < items);
	demand(fits > 0);
	bits = bf_bits_for(solutions, BF_BLOCKED, k, rate, fits);
	demand(bits > 0 && bits < m + m / 32 + BF_BLOCK_BITS);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bf_solutions solutions = {0};
	source		from = {data, size};
	bf_layout	layout = take(&from, 1) & 1 ? BF_CLASSIC : BF_BLOCKED;
	uint64_t	unit = layout == BF_CLASSIC ? BF_WORD_BITS : BF_BLOCK_BITS;
	double		rate = take_rate(&from);
	uint64_t	items = take(&from, 6);
	uint64_t	m = unit * (1 + take(&from, 4) % (BF_MAX_BITS / unit));
	uint32_t	k = bf_k_for_rate(layout, rate);
	double		expected = bf_classic_rate(k, m, items >> 20);

	items >>= items % 48;
	items += items == 0;
	demand(k >= 1 && k <= BF_MAX_K);
	demand(expected >= 0 && expected <= 1);
	if (layout == BF_CLASSIC)
		try_classic(&solutions, k, rate, m, items);
	else
		try_blocked(&solutions, k, rate, m, items);
	return 0;
}
