/*
 * hex.c
 *		Any text to the reader of hexadecimal digits.
 *
 * The first byte of an input is the size of the pieces in which the rest is
 * read.
 */
#include "fuzz.h"
#include "hex.h"

/* The value of a digit, or -1. */
static int
digit(char c)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *found = c != '\0' ? strchr(digits, c) : NULL;

	return found != NULL ? (int) (found - digits) % 16 : -1;
}

/* Reads piece by piece, as values of any size are read. */
static bool
decode_in_pieces(const char *digits, size_t size, size_t piece, uint8_t *bytes)
{
	for (size_t at = 0; at < size; at += piece)
	{
		if (!bf_hex_decode(digits + 2 * at, size - at < piece ? size - at : piece, bytes + at))
			return false;
	}
	return true;
}

static void
check_accepted(const char *text, size_t size, const uint8_t *bytes)
{
	char	   *again = room_for(2 * size);

	bf_hex_encode(bytes, size, again);
	for (size_t i = 0; i < 2 * size; i++)
	{
		demand(digit(again[i]) == digit(text[i]));
		demand(again[i] < 'A' || again[i] > 'F');
	}
	free(again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t		nbytes = size > 0 ? (size - 1) / 2 : 0;
	char	   *text = copy_of(size > 0 ? data + 1 : data, 2 * nbytes);
	uint8_t    *bytes = room_for(nbytes);
	bool		all_digits = true;
	bool		accepted = bf_hex_decode(text, nbytes, bytes);

	for (size_t i = 0; i < nbytes; i++)
	{
		int			high = digit(text[2 * i]);
		int			low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			all_digits = false;
		else
			demand(bytes[i] == 16 * high + low);
	}
	demand(accepted == all_digits);
	demand(decode_in_pieces(text, nbytes, 1 + (nbytes > 0 ? data[0] % 16 : 0), bytes) == accepted);
	if (accepted)
		check_accepted(text, nbytes, bytes);
	free(bytes);
	free(text);
	return 0;
}
