/*
 * io.c
 *		Text, binary and bytea forms of both types.
 *
 * Each is the encoding of core/format.h, as bytes or as \x and hexadecimal
 * digits.  All input functions run the same checks: bf_decode_header() and
 * check_payload().
 */
#include "pg/pg_compat.h"

#include "libpq/pqformat.h"
#include "pg/sql_function.h"
#include "value/errors.h"
#include "value/hex.h"
#include "value/value.h"

/* A varlena with a copy of the bytes. */
static BloomValue *
make_varlena(const uint8 *bytes, uint64 size)
{
	BloomValue *value = palloc(VARHDRSZ + size);

	SET_VARSIZE(value, VARHDRSZ + size);
	copy_bytes((uint8 *) VARDATA(value), bytes, size);
	return value;
}

/* Allocates only after the header has passed its checks against the length. */
static Datum
input(FunctionCallInfo fcinfo, bf_kind kind)
{
	const char *text = PG_GETARG_CSTRING(0);
	const char *digits = text + 2;
	const char *type = bloom_types[kind].name;
	Node	   *escontext = fcinfo->context;
	uint8		header[BF_HEADER_SIZE] = {0};
	uint64		size;
	bf_filter	filter;
	bf_status	status;
	BloomValue *value;

	if (!check_text_form(text, &size, type, escontext))
		PG_RETURN_NULL();
	if (!decode_digits(digits, Min(size, BF_HEADER_SIZE), header, type, escontext))
		PG_RETURN_NULL();
	status = bf_decode_header(header, size, kind, BF_VALUE, &filter);
	if (status.error != BF_OK && !report_invalid_input(status, kind, escontext))
		PG_RETURN_NULL();

	value = make_value(&filter, false, (uint8 **) &filter.payload);
	if (!decode_digits(digits, size, (uint8 *) VARDATA(value), type, escontext))
		PG_RETURN_NULL();
	status = check_payload(&filter);
	if (status.error != BF_OK && !report_invalid_input(status, kind, escontext))
		PG_RETURN_NULL();
	PG_RETURN_POINTER(value);
}

static Datum
output(FunctionCallInfo fcinfo, bf_kind kind)
{
	bf_filter	filter;
	BloomValue *value = open_value(PG_GETARG_DATUM(0), kind, &filter);

	PG_RETURN_CSTRING(encode_text((const uint8 *) VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value)));
}

/* A value of bytes from outside. */
static Datum
from_bytes(const char *bytes, uint64 size, bf_kind kind)
{
	bf_filter	filter;

	decode_bytes((const uint8 *) bytes, size, kind, BF_VALUE, &filter);
	PG_RETURN_POINTER(make_varlena((const uint8 *) bytes, size));
}

static Datum
receive(FunctionCallInfo fcinfo, bf_kind kind)
{
	StringInfo	message = (StringInfo) PG_GETARG_POINTER(0);
	int			size = message->len - message->cursor;

	return from_bytes(pq_getmsgbytes(message, size), size, kind);
}

static Datum
from_bytea(FunctionCallInfo fcinfo, bf_kind kind)
{
	bytea	   *value = PG_GETARG_BYTEA_PP(0);

	return from_bytes(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value), kind);
}

static Datum
to_bytea(FunctionCallInfo fcinfo, bf_kind kind)
{
	bf_filter	filter;
	BloomValue *value = open_value(PG_GETARG_DATUM(0), kind, &filter);

	PG_RETURN_BYTEA_P(make_varlena((const uint8 *) VARDATA_ANY(value),
								   VARSIZE_ANY_EXHDR(value)));
}

SQL_FUNCTION(bloomfilter_in, input(fcinfo, BF_FILTER))
SQL_FUNCTION(bloomfilter_out, output(fcinfo, BF_FILTER))
SQL_FUNCTION(bloomfilter_recv, receive(fcinfo, BF_FILTER))
SQL_FUNCTION(bloomfilter_send, to_bytea(fcinfo, BF_FILTER))
SQL_FUNCTION(bloomfilter_from_bytea, from_bytea(fcinfo, BF_FILTER))
SQL_FUNCTION(bloomfilter_to_bytea, to_bytea(fcinfo, BF_FILTER))
SQL_FUNCTION(bloomcounter_in, input(fcinfo, BF_COUNTER))
SQL_FUNCTION(bloomcounter_out, output(fcinfo, BF_COUNTER))
SQL_FUNCTION(bloomcounter_recv, receive(fcinfo, BF_COUNTER))
SQL_FUNCTION(bloomcounter_send, to_bytea(fcinfo, BF_COUNTER))
SQL_FUNCTION(bloomcounter_from_bytea, from_bytea(fcinfo, BF_COUNTER))
SQL_FUNCTION(bloomcounter_to_bytea, to_bytea(fcinfo, BF_COUNTER))
