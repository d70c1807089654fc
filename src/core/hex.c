/*
 * hex.c
 *		Hexadecimal digits.
 *
 * PostgreSQL's hex_decode() skips white space; this decoder accepts only
 * digits, and needs no PostgreSQL.
 */
#include "hex.h"

static const char hex_digits[] = "0123456789abcdef";

/* The value of a digit, or a number above 15 for other characters. */
static unsigned
digit_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return (unsigned) (digit - '0');
	if (digit >= 'a' && digit <= 'f')
		return (unsigned) (digit - 'a') + 10;
	if (digit >= 'A' && digit <= 'F')
		return (unsigned) (digit - 'A') + 10;
	return 0x10;
}

void
bf_hex_encode(const uint8_t *bytes, size_t size, char *digits)
{
	for (size_t i = 0; i < size; i++)
	{
		digits[2 * i] = hex_digits[bytes[i] >> 4];
		digits[2 * i + 1] = hex_digits[bytes[i] & 15];
	}
}

bool
bf_hex_decode(const char *digits, size_t size, uint8_t *bytes)
{
	unsigned	seen = 0;

	for (size_t i = 0; i < size; i++)
	{
		unsigned	high = digit_value(digits[2 * i]);
		unsigned	low = digit_value(digits[2 * i + 1]);

		bytes[i] = (uint8_t) (high << 4 | low);
		seen |= high | low;
	}
	return seen < 0x10;
}
