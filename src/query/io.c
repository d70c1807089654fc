/*
 * io.c
 *		Text and binary forms of queries: the encoding, as bytes or as hexadecimal
 *		digits.
 */
#include "pg/pg_compat.h"

#include "libpq/pqformat.h"
#include "pg/memory.h"
#include "query/query.h"
#include "value/hex.h"

PG_FUNCTION_INFO_V1(bloomquery_in);
PG_FUNCTION_INFO_V1(bloomquery_out);
PG_FUNCTION_INFO_V1(bloomquery_recv);
PG_FUNCTION_INFO_V1(bloomquery_send);

/* False after a soft error, if escontext asks for that. */
static bool
check_input(const BloomQuery *value, Node *escontext)
{
	OpenQuery	query;
	const char *fault = decode_query((const uint8 *) VARDATA(value), VARSIZE(value) - VARHDRSZ,
									 &query);

	if (fault == NULL)
		return true;
	ereturn(escontext, false,
			(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
			 errmsg("invalid value for type %s", "bloomquery"),
			 errdetail_internal("%s", _(fault))));
}

Datum
bloomquery_in(PG_FUNCTION_ARGS)
{
	const char *text = PG_GETARG_CSTRING(0);
	uint64		size;
	BloomQuery *value;

	if (!check_text_form(text, &size, "bloomquery", fcinfo->context))
		PG_RETURN_NULL();
	value = palloc(VARHDRSZ + size);
	SET_VARSIZE(value, VARHDRSZ + size);
	if (!decode_digits(text + 2, size, (uint8 *) VARDATA(value), "bloomquery", fcinfo->context) ||
		!check_input(value, fcinfo->context))
		PG_RETURN_NULL();
	PG_RETURN_POINTER(value);
}

Datum
bloomquery_out(PG_FUNCTION_ARGS)
{
	OpenQuery	query;
	BloomQuery *value = open_query(PG_GETARG_DATUM(0), &query);

	PG_RETURN_CSTRING(encode_text((const uint8 *) VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value)));
}

static bytea *
copy_of(const char *bytes, Size size)
{
	bytea	   *copy = palloc(VARHDRSZ + size);

	SET_VARSIZE(copy, VARHDRSZ + size);
	copy_bytes((uint8 *) VARDATA(copy), (const uint8 *) bytes, size);
	return copy;
}

Datum
bloomquery_recv(PG_FUNCTION_ARGS)
{
	StringInfo	message = (StringInfo) PG_GETARG_POINTER(0);
	int			size = message->len - message->cursor;
	BloomQuery *value = copy_of(pq_getmsgbytes(message, size), size);

	check_input(value, NULL);
	PG_RETURN_POINTER(value);
}

Datum
bloomquery_send(PG_FUNCTION_ARGS)
{
	OpenQuery	query;
	BloomQuery *value = open_query(PG_GETARG_DATUM(0), &query);

	PG_RETURN_BYTEA_P(copy_of(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value)));
}
