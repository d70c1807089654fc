/*
 * hex.c
 *		The text form of the types: \x and hexadecimal digits.
 */
#include "pg/pg_compat.h"

#include <ctype.h>

#include "miscadmin.h"
#include "pg/memory.h"
#include "utils/builtins.h"
#include "value/hex.h"

static bool
report_invalid_text(const char *detail, const char *type, Node *escontext)
{
	ereturn(escontext, false,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("invalid input syntax for type %s", type),
			 errdetail_internal("%s", detail)));
}

bool
check_text_form(const char *text, uint64 *size, const char *type, Node *escontext)
{
	size_t		length = strlen(text);

	if (length < 2 || text[0] != '\\' || text[1] != 'x')
		return report_invalid_text("A value starts with \\x, followed by hexadecimal digits.",
								   type, escontext);
	if (length % 2 != 0)
		return report_invalid_text("The number of hexadecimal digits is odd.", type, escontext);
	*size = length / 2 - 1;
	return true;
}

static bool
are_digits(const char *characters, uint64 count)
{
	bool		good = true;

	for (uint64 i = 0; i < count; i++)
		good &= isxdigit((unsigned char) characters[i]) != 0;
	return good;
}

/* Checks the digits itself, because hex_decode() skips white space. */
bool
decode_digits(const char *digits, uint64 size, uint8 *bytes, const char *type, Node *escontext)
{
	for (uint64 at = 0; at < size; at += CHUNK_BYTES)
	{
		Size		length = Min(CHUNK_BYTES, size - at);

		CHECK_FOR_INTERRUPTS();
		if (!are_digits(digits + 2 * at, 2 * length))
			return report_invalid_text("There is a character that is not a hexadecimal digit.",
									   type, escontext);
		hex_decode(digits + 2 * at, 2 * length, (char *) bytes + at);
	}
	return true;
}

char *
encode_text(const uint8 *bytes, uint64 size)
{
	char	   *text = palloc(2 * size + 3);
	char	   *digits = text + 2;

	text[0] = '\\';
	text[1] = 'x';
	for (uint64 at = 0; at < size; at += CHUNK_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		hex_encode((const char *) bytes + at, Min(CHUNK_BYTES, size - at), digits + 2 * at);
	}
	digits[2 * size] = '\0';
	return text;
}
