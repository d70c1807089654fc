/*
 * sizing.c
 *		Any parameters that may be asked for to the theory that sizes filters.
 *
 * An input is the layout (1 byte), the rate (4 bytes), a number of elements (6
 * bytes), bits (4 bytes).  The core takes rates from BF_MIN_RATE to
 * BF_MAX_RATE; others are refused before it hears of them.
 */
#include <math.h>

#include "fuzz.h"
#include "sizing.h"

/* A rate from any bits: its own if it may be asked for, or one made of them. */
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

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	source		from = {data, size};
	bf_layout	layout = take(&from, 1) & 1 ? BF_CLASSIC : BF_BLOCKED;
	uint64_t	unit = layout == BF_CLASSIC ? BF_WORD_BITS : BF_BLOCK_BITS;
	double		rate = take_rate(&from);
	uint64_t	items = take(&from, 6);
	uint64_t	units = 1 + take(&from, 4) % (BF_MAX_BITS / unit);
	uint32_t	k = bf_k_for_rate(layout, rate);
	double		expected;
	uint64_t	m;
	uint64_t	fits;

	items >>= items % 48;
	items += items == 0;
	demand(k >= 1 && k <= BF_MAX_K);

	expected = bf_expected_rate(layout, k, units * unit, items);
	demand(expected >= 0 && expected <= 1);

	/* the least size that is enough */
	m = bf_bits_for(layout, k, rate, items);
	demand(m % unit == 0 && m <= BF_MAX_BITS);
	if (m == 0)
		demand(bf_expected_rate(layout, k, BF_MAX_BITS, items) > rate);
	else
	{
		demand(bf_expected_rate(layout, k, m, items) <= rate);
		demand(m == unit || bf_expected_rate(layout, k, m - unit, items) > rate);
	}

	/* the most elements that it is enough for */
	m = m == 0 ? units * unit : m;
	fits = bf_capacity(layout, k, rate, m);
	demand(fits == 0 || bf_expected_rate(layout, k, m, fits) <= rate);
	demand(bf_expected_rate(layout, k, m, fits + 1) > rate);
	return 0;
}
