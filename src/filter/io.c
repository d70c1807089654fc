/*
 * io.c
 *		Text, binary and bytea forms of both types.
 *
 * Each is the encoding of core/format.h, as bytes or as \x and hexadecimal
 * digits.  All input functions run the same checks: bf_decode_header() and
 * check_payload().
 */
#include "pg/pg_compat.h"

#include "core/hex.h"
#include "filter/errors.h"
#include "filter/value.h"
#include "fmgr.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "pg/bloom_type.h"

PG_FUNCTION_INFO_V1(bloomfilter_in);
PG_FUNCTION_INFO_V1(bloomfilter_out);
PG_FUNCTION_INFO_V1(bloomfilter_recv);
PG_FUNCTION_INFO_V1(bloomfilter_send);
PG_FUNCTION_INFO_V1(bloomfilter_from_bytea);
PG_FUNCTION_INFO_V1(bloomfilter_to_bytea);
PG_FUNCTION_INFO_V1(bloomcounter_in);
PG_FUNCTION_INFO_V1(bloomcounter_out);
PG_FUNCTION_INFO_V1(bloomcounter_recv);
PG_FUNCTION_INFO_V1(bloomcounter_send);
PG_FUNCTION_INFO_V1(bloomcounter_from_bytea);
PG_FUNCTION_INFO_V1(bloomcounter_to_bytea);

/* A varlena with a copy of the bytes. */
static struct varlena *
make_varlena(const uint8 *bytes, uint64 size)
{
	struct varlena *value = palloc(VARHDRSZ + size);

	SET_VARSIZE(value, VARHDRSZ + size);
	copy_bytes((uint8 *) VARDATA(value), bytes, size);
	return value;
}

static bool
decode_digits(const char *digits, uint64 size, uint8 *bytes)
{
	for (uint64 at = 0; at < size; at += CHUNK_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		if (!bf_hex_decode(digits + 2 * at, Min(CHUNK_BYTES, size - at), bytes + at))
			return false;
	}
	return true;
}

static bool
report_invalid_text(const char *detail, bf_source source, Node *escontext)
{
	ereturn(escontext, false,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("invalid input syntax for type %s", source_type_name(source)),
			 errdetail_internal("%s", detail)));
}

static bool
report_bad_digit(bf_source source, Node *escontext)
{
	return report_invalid_text("There is a character that is not a hexadecimal digit.", source, escontext);
}

/* Checks the syntax except the digits.  *size is the number of bytes encoded. */
static bool
check_text_form(const char *text, uint64 *size, bf_source source, Node *escontext)
{
	size_t		length = strlen(text);

	if (length < 2 || text[0] != '\\' || text[1] != 'x')
		return report_invalid_text("A value starts with \\x, followed by hexadecimal digits.",
								   source, escontext);
	if (length % 2 != 0)
		return report_invalid_text("The number of hexadecimal digits is odd.", source, escontext);
	*size = length / 2 - 1;
	return true;
}

/* Allocates only after the header has passed its checks against the length. */
static Datum
input(FunctionCallInfo fcinfo, bf_source source)
{
	const char *text = PG_GETARG_CSTRING(0);
	const char *digits = text + 2;
	Node	   *escontext = fcinfo->context;
	uint8		header[BF_HEADER_SIZE] = {0};
	uint64		size;
	bf_filter	filter;
	bf_status	status;
	Bloomfilter *value;

	if (!check_text_form(text, &size, source, escontext))
		PG_RETURN_NULL();
	if (!decode_digits(digits, Min(size, BF_HEADER_SIZE), header) &&
		!report_bad_digit(source, escontext))
		PG_RETURN_NULL();
	status = bf_decode_header(header, size, source, &filter);
	if (status.error != BF_OK && !report_invalid_input(status, source, escontext))
		PG_RETURN_NULL();

	value = make_value(&filter, false, (uint8 **) &filter.payload);
	if (!decode_digits(digits, size, (uint8 *) VARDATA(value)) &&
		!report_bad_digit(source, escontext))
		PG_RETURN_NULL();
	status = check_payload(&filter);
	if (status.error != BF_OK && !report_invalid_input(status, source, escontext))
		PG_RETURN_NULL();
	PG_RETURN_POINTER(value);
}

static Datum
output(FunctionCallInfo fcinfo, bf_source source)
{
	bf_filter	filter;
	struct varlena *value = open_value(PG_GETARG_DATUM(0), source, &filter);
	const uint8 *bytes = (const uint8 *) VARDATA_ANY(value);
	uint64		size = VARSIZE_ANY_EXHDR(value);
	char	   *text = palloc(2 * size + 3);
	char	   *digits = text + 2;

	text[0] = '\\';
	text[1] = 'x';
	for (uint64 at = 0; at < size; at += CHUNK_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		bf_hex_encode(bytes + at, Min(CHUNK_BYTES, size - at), digits + 2 * at);
	}
	digits[2 * size] = '\0';
	PG_RETURN_CSTRING(text);
}

static Datum
receive(FunctionCallInfo fcinfo, bf_source source)
{
	StringInfo	message = (StringInfo) PG_GETARG_POINTER(0);
	int			size = message->len - message->cursor;
	const uint8 *bytes = (const uint8 *) pq_getmsgbytes(message, size);
	bf_filter	filter;

	decode_bytes(bytes, size, source, &filter);
	PG_RETURN_POINTER(make_varlena(bytes, size));
}

static Datum
from_bytea(FunctionCallInfo fcinfo, bf_source source)
{
	bytea	   *value = PG_GETARG_BYTEA_PP(0);
	const uint8 *bytes = (const uint8 *) VARDATA_ANY(value);
	bf_filter	filter;

	decode_bytes(bytes, VARSIZE_ANY_EXHDR(value), source, &filter);
	PG_RETURN_POINTER(make_varlena(bytes, VARSIZE_ANY_EXHDR(value)));
}

static Datum
to_bytea(FunctionCallInfo fcinfo, bf_source source)
{
	bf_filter	filter;
	struct varlena *value = open_value(PG_GETARG_DATUM(0), source, &filter);

	PG_RETURN_BYTEA_P(make_varlena((const uint8 *) VARDATA_ANY(value),
								   VARSIZE_ANY_EXHDR(value)));
}

Datum
bloomfilter_in(PG_FUNCTION_ARGS)
{
	return input(fcinfo, BF_VALUE);
}

Datum
bloomfilter_out(PG_FUNCTION_ARGS)
{
	return output(fcinfo, BF_VALUE);
}

Datum
bloomfilter_recv(PG_FUNCTION_ARGS)
{
	return receive(fcinfo, BF_VALUE);
}

Datum
bloomfilter_send(PG_FUNCTION_ARGS)
{
	return to_bytea(fcinfo, BF_VALUE);
}

Datum
bloomfilter_from_bytea(PG_FUNCTION_ARGS)
{
	return from_bytea(fcinfo, BF_VALUE);
}

Datum
bloomfilter_to_bytea(PG_FUNCTION_ARGS)
{
	return to_bytea(fcinfo, BF_VALUE);
}

Datum
bloomcounter_in(PG_FUNCTION_ARGS)
{
	return input(fcinfo, BF_COUNTER_VALUE);
}

Datum
bloomcounter_out(PG_FUNCTION_ARGS)
{
	return output(fcinfo, BF_COUNTER_VALUE);
}

Datum
bloomcounter_recv(PG_FUNCTION_ARGS)
{
	return receive(fcinfo, BF_COUNTER_VALUE);
}

Datum
bloomcounter_send(PG_FUNCTION_ARGS)
{
	return to_bytea(fcinfo, BF_COUNTER_VALUE);
}

Datum
bloomcounter_from_bytea(PG_FUNCTION_ARGS)
{
	return from_bytea(fcinfo, BF_COUNTER_VALUE);
}

Datum
bloomcounter_to_bytea(PG_FUNCTION_ARGS)
{
	return to_bytea(fcinfo, BF_COUNTER_VALUE);
}
