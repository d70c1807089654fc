/*
 * number_bulk.c
 *		Loops over the numbers of counters, for several instruction sets
 *		(cpu.h).
 *
 * The bodies take cell_bits and the combination as constants, so that no
 * loop tests them.  At 4 bits the two halves of a byte are computed in place:
 * the high half is a number of 8 bits whose limit is 0xF0.
 */
#include "number_bulk.h"

#include "bulk.h"
#include "bytes.h"
#include "cpu.h"

/* Calls body with a constant for cell_bits. */
#define BY_WIDTH(cell_bits, body, ...) \
	((cell_bits) == 4 ? body(__VA_ARGS__, 4) : \
	 (cell_bits) == 8 ? body(__VA_ARGS__, 8) : body(__VA_ARGS__, 16))

/*
 * Nonzero if a difference is greater than a: it does not exist and wrapped
 * around.  Types and operations keep the width of the numbers, because a
 * comparison's result would widen the vectors.
 */
BODY uint8_t
wrapped_8(uint8_t a, uint8_t difference)
{
	uint8_t		greater = a > difference ? a : difference;

	return greater ^ a;
}

BODY uint16_t
wrapped_16(uint16_t a, uint16_t difference)
{
	uint16_t	greater = a > difference ? a : difference;

	return greater ^ a;
}

/* These combine numbers, and return nonzero if a difference does not exist. */
BODY uint32_t
combine_16(uint8_t *restrict dst, const uint8_t *restrict src, size_t size, bf_combination combination)
{
	uint16_t	wrapped = 0;

	for (size_t i = 0; i < size; i += 2)
	{
		uint16_t	a = bf_load16(dst + i);
		uint16_t	result = (uint16_t) bf_combine_two(combination, a, bf_load16(src + i), 0xFFFF);

		if (combination == BF_DIFFERENCE)
			wrapped |= wrapped_16(a, result);
		bf_store16(dst + i, result);
	}
	return wrapped;
}

BODY uint32_t
combine_8(uint8_t *restrict dst, const uint8_t *restrict src, size_t size, bf_combination combination)
{
	uint8_t		wrapped = 0;

	for (size_t i = 0; i < size; i++)
	{
		uint8_t		a = dst[i];
		uint8_t		result = (uint8_t) bf_combine_two(combination, a, src[i], 0xFF);

		if (combination == BF_DIFFERENCE)
			wrapped |= wrapped_8(a, result);
		dst[i] = result;
	}
	return wrapped;
}

BODY uint32_t
combine_4(uint8_t *restrict dst, const uint8_t *restrict src, size_t size, bf_combination combination)
{
	uint8_t		wrapped = 0;

	for (size_t i = 0; i < size; i++)
	{
		uint8_t		a = dst[i] & 0x0F;
		uint8_t		high_a = dst[i] & 0xF0;
		uint8_t		result = (uint8_t) bf_combine_two(combination, a, src[i] & 0x0F, 0x0F);
		uint8_t		high = (uint8_t) bf_combine_two(combination, high_a, src[i] & 0xF0, 0xF0);

		if (combination == BF_DIFFERENCE)
			wrapped |= wrapped_8(a, result) | wrapped_8(high_a, high);
		dst[i] = result | high;
	}
	return wrapped;
}

BODY uint32_t
combine(uint8_t *dst, const uint8_t *src, size_t size, bf_combination combination, uint32_t cell_bits)
{
	return cell_bits == 4 ? combine_4(dst, src, size, combination) :
		cell_bits == 8 ? combine_8(dst, src, size, combination) : combine_16(dst, src, size, combination);
}

BODY bool
bf_combine_numbers_body(uint8_t *dst, const uint8_t *src, size_t size, uint32_t cell_bits,
						bf_combination combination)
{
	assert(bf_is_cell_bits(cell_bits) && cell_bits > 1);
	assert(size % 32 == 0 && bf_apart(dst, size, src, size));
	switch (combination)
	{
		case BF_SUM:
			return BY_WIDTH(cell_bits, combine, dst, src, size, BF_SUM) == 0;
		case BF_DIFFERENCE:
			return BY_WIDTH(cell_bits, combine, dst, src, size, BF_DIFFERENCE) == 0;
		case BF_GREATER:
			return BY_WIDTH(cell_bits, combine, dst, src, size, BF_GREATER) == 0;
		case BF_LESSER:
			break;
	}
	return BY_WIDTH(cell_bits, combine, dst, src, size, BF_LESSER) == 0;
}

BODY uint8_t
lowered_8(uint8_t number, uint8_t by)
{
	uint8_t		most = number < by ? number : by;

	return number - most;
}

BODY uint16_t
lowered_16(uint16_t number, uint16_t by)
{
	uint16_t	most = number < by ? number : by;

	return number - most;
}

BODY void
decay(uint8_t *numbers, size_t size, uint32_t by, uint32_t cell_bits)
{
	uint8_t		by_8 = (uint8_t) by;
	uint8_t		by_high = (uint8_t) (by << 4);

	if (cell_bits == 16)
	{
		for (size_t i = 0; i < size; i += 2)
			bf_store16(numbers + i, lowered_16(bf_load16(numbers + i), (uint16_t) by));
	}
	else if (cell_bits == 8)
	{
		for (size_t i = 0; i < size; i++)
			numbers[i] = lowered_8(numbers[i], by_8);
	}
	else
	{
		for (size_t i = 0; i < size; i++)
			numbers[i] = lowered_8(numbers[i] & 0x0F, by_8) | lowered_8(numbers[i] & 0xF0, by_high);
	}
}

BODY void
bf_decay_numbers_body(uint8_t *numbers, size_t size, uint32_t cell_bits, uint32_t by)
{
	assert(size % 32 == 0 && by <= bf_cell_limit(cell_bits));
	BY_WIDTH(cell_bits, decay, numbers, size, by);
}

/*
 * Moves bit 0 of each byte together.  The steps are shifts by less than the
 * word, because few CPUs multiply or gather bits in vectors.
 */
BODY uint8_t
gather_bytes(uint64_t flags)
{
	flags |= flags >> 7;
	flags |= flags >> 14;
	flags |= flags >> 28;
	return (uint8_t) flags;
}

/*
 * The bits of eight numbers of 4 bits.  A number is at least level if adding
 * 16 - level carries out of its four bits.
 */
BODY uint8_t
threshold_nibbles(uint32_t numbers, uint32_t level)
{
	uint32_t	carry = (16 - level) * UINT32_C(0x01010101);
	uint32_t	even = (numbers & UINT32_C(0x0F0F0F0F)) + carry;
	uint32_t	odd = (numbers >> 4 & UINT32_C(0x0F0F0F0F)) + carry;
	uint32_t	flags = (even >> 4 & UINT32_C(0x01010101)) | (odd >> 3 & UINT32_C(0x02020202));

	flags |= flags >> 6;
	flags |= flags >> 12;
	return (uint8_t) flags;
}

#define FLAGS 1024				/* at a time: these stay in the fastest cache */

_Static_assert(FLAGS % 64 == 0, "gather_bytes() takes 8 flags, and npositions is a multiple of 64");

BODY void
threshold(uint8_t *restrict bits, const uint8_t *restrict numbers, size_t npositions, uint32_t level,
		  uint32_t cell_bits)
{
	if (cell_bits == 4)
	{
		for (size_t i = 0; i < npositions / 8; i++)
			bits[i] = threshold_nibbles(bf_load32(numbers + 4 * i), level);
		return;
	}
	for (size_t done = 0; done < npositions; done += FLAGS)
	{
		size_t		count = npositions - done < FLAGS ? npositions - done : FLAGS;
		uint8_t		flags[FLAGS];

		if (cell_bits == 8)
		{
			for (size_t i = 0; i < count; i++)
				flags[i] = numbers[done + i] >= (uint8_t) level;
		}
		else
		{
			for (size_t i = 0; i < count; i++)
				flags[i] = bf_load16(numbers + 2 * (done + i)) >= (uint16_t) level;
		}
		for (size_t i = 0; i < count / 8; i++)
			bits[done / 8 + i] = gather_bytes(bf_load64(flags + 8 * i));
	}
}

BODY void
bf_threshold_body(uint8_t *bits, const uint8_t *numbers, size_t npositions, uint32_t cell_bits,
				  uint32_t level)
{
	assert(npositions % 64 == 0 && bf_apart(bits, npositions / 8, numbers, npositions / 8 * cell_bits));
	assert(level >= 1 && level <= bf_cell_limit(cell_bits));
	BY_WIDTH(cell_bits, threshold, bits, numbers, npositions, level);
}

/* Bytes at a time, by width: few enough that partial_sum() does not overflow. */
#define BYTES_4		2048
#define BYTES_8		256
#define BYTES_16	65536

_Static_assert(BYTES_4 * 2 * 15 <= UINT16_MAX, "16 bits hold the sum of numbers of 4 bits");
_Static_assert(BYTES_8 * 255 <= UINT16_MAX, "16 bits hold the sum of numbers of 8 bits");
_Static_assert(BYTES_16 / 2 * UINT64_C(65535) <= UINT32_MAX, "32 bits hold the sum of numbers of 16 bits");

/* The sum of some numbers. */
BODY uint32_t
partial_sum(const uint8_t *numbers, size_t size, uint32_t cell_bits)
{
	uint16_t	sum = 0;
	uint32_t	sum_32 = 0;

	if (cell_bits == 16)
	{
		for (size_t i = 0; i < size; i += 2)
			sum_32 += bf_load16(numbers + i);
		return sum_32;
	}
	for (size_t i = 0; i < size; i++)
		sum = (uint16_t) (sum + (cell_bits == 8 ? numbers[i] : (numbers[i] & 15) + (numbers[i] >> 4)));
	return sum;
}

BODY uint64_t
sum_of_numbers(const uint8_t *numbers, size_t size, uint32_t cell_bits)
{
	size_t		most = cell_bits == 4 ? BYTES_4 : cell_bits == 8 ? BYTES_8 : BYTES_16;
	uint64_t	sum = 0;

	for (size_t done = 0; done < size; done += most)
		sum += partial_sum(numbers + done, size - done < most ? size - done : most, cell_bits);
	return sum;
}

BODY uint64_t
bf_sum_of_numbers_body(const uint8_t *numbers, size_t size, uint32_t cell_bits)
{
	assert(size % 32 == 0 && bf_is_cell_bits(cell_bits) && cell_bits > 1);
	return BY_WIDTH(cell_bits, sum_of_numbers, numbers, size);
}

DISPATCH(bool, bf_combine_numbers,
		 (uint8_t *dst, const uint8_t *src, size_t size, uint32_t cell_bits, bf_combination combination),
		 (dst, src, size, cell_bits, combination))
DISPATCH(void, bf_decay_numbers, (uint8_t *numbers, size_t size, uint32_t cell_bits, uint32_t by),
		 (numbers, size, cell_bits, by))
DISPATCH(void, bf_threshold,
		 (uint8_t *bits, const uint8_t *numbers, size_t npositions, uint32_t cell_bits, uint32_t level),
		 (bits, numbers, npositions, cell_bits, level))
DISPATCH(uint64_t, bf_sum_of_numbers, (const uint8_t *numbers, size_t size, uint32_t cell_bits),
		 (numbers, size, cell_bits))
