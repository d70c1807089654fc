/*
 * test_hex.c
 *		Hexadecimal digits, and characters that are not digits.
 */
#include "hex.h"
#include "reference.h"
#include "tap.h"

static void
test_encode(void)
{
	for (size_t size = 0; size < 600; size = size * 2 + 1)
	{
		uint8_t    *bytes = allocate(size);
		char	   *digits = allocate(2 * size);
		char		wanted[3];

		for (size_t i = 0; i < size; i++)
			bytes[i] = (uint8_t) (i * 7);
		bf_hex_encode(bytes, size, digits);
		for (size_t i = 0; i < size; i++)
		{
			snprintf(wanted, sizeof(wanted), "%02x", bytes[i]);
			each(memcmp(digits + 2 * i, wanted, 2) == 0, "byte %d", bytes[i]);
		}
		free(bytes);
		free(digits);
	}
	passed("every byte as two lower-case digits");
}

/* The value of a digit by the C library in the C locale, or -1. */
static int
value_of(char digit)
{
	char		text[2] = {digit, '\0'};
	char	   *end;
	long		value;

	if (digit == '\0' || strchr("0123456789abcdefABCDEF", digit) == NULL)
		return -1;
	value = strtol(text, &end, 16);
	return end == text + 1 ? (int) value : -1;
}

static void
test_decode(void)
{
	for (int high = 0; high < 256; high++)
	{
		for (int low = 0; low < 256; low++)
		{
			char		digits[2] = {(char) high, (char) low};
			int			first = value_of(digits[0]);
			int			second = value_of(digits[1]);
			uint8_t		byte;
			bool		good = bf_hex_decode(digits, 1, &byte);

			each(good == (first >= 0 && second >= 0), "characters %d and %d", high, low);
			each(!good || byte == first * 16 + second, "digits %c%c", high, low);
		}
	}
	passed("every pair of characters");
}

/*
 * A bad character is found wherever it is. Nothing is read behind the digits.
 */
static void
test_anywhere(void)
{
	static const char bad[] = "gG/:@`x\n \\\xff";

	for (size_t size = 0; size < 80; size++)
	{
		char	   *digits = allocate(2 * size);
		uint8_t    *bytes = allocate(size);

		memset(digits, '9', 2 * size);
		each(bf_hex_decode(digits, size, bytes), "%zu bytes", size);
		for (size_t i = 0; i < size; i++)
			each(bytes[i] == 0x99, "byte %zu", i);
		for (size_t i = 0; i < 2 * size; i++)
		{
			digits[i] = bad[i % sizeof(bad)];	/* the terminating null character, too */
			each(!bf_hex_decode(digits, size, bytes), "character %d at %zu", digits[i], i);
			digits[i] = '9';
		}
		free(digits);
		free(bytes);
	}
	passed("a character that is not a digit, anywhere");
}

static void
test_round_trip(void)
{
	uint64_t	state = 1;

	for (size_t size = 0; size < 300; size++)
	{
		uint8_t    *bytes = allocate(size);
		uint8_t    *back = allocate(size);
		char	   *digits = allocate(2 * size);

		random_bytes(&state, bytes, size);
		bf_hex_encode(bytes, size, digits);
		each(bf_hex_decode(digits, size, back) && memcmp(bytes, back, size) == 0, "%zu bytes", size);
		free(bytes);
		free(back);
		free(digits);
	}
	passed("bytes encode and decode unchanged");
}

int
main(void)
{
	test_encode();
	test_decode();
	test_anywhere();
	test_round_trip();
	return done();
}
