/*
 * aggregate.c
 *		What the support functions of all aggregates check first.
 *
 * Every one checks that it runs in an aggregate and that the state is one of
 * its own: both can be otherwise where somebody puts an aggregate together
 * from functions of several kinds.
 */
#include "pg_compat.h"

#include "aggregate.h"
#include "core/format.h"
#include "errors.h"
#include "libpq/pqformat.h"
#include "value.h"

MemoryContext
require_aggregate(FunctionCallInfo fcinfo)
{
	MemoryContext context;

	if (!AggCheckCallContext(fcinfo, &context))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("aggregate support function called outside an aggregate")));
	return context;
}

void
report_foreign_state(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("aggregate state is of another kind than this function's")));
}

void
open_serialized(const uint8 *bytes, uint64 size, bf_source source, bf_filter *filter)
{
	bf_status	status = bf_decode(bytes, size, source, filter);

	if (status.error == BF_OK)
		status = check_payload(filter);
	if (status.error != BF_OK)
		report_invalid_input(status, NULL);
}

void
append_serialized(StringInfo buffer, const struct varlena *value)
{
	if (value == NULL)
		return;
	pq_sendint64(buffer, VARSIZE(value) - VARHDRSZ);
	pq_sendbytes(buffer, VARDATA(value), VARSIZE(value) - VARHDRSZ);
}

bool
read_serialized(StringInfo buffer, bf_filter *filter)
{
	int64		size;

	if (buffer->cursor == buffer->len)
		return false;
	size = pq_getmsgint64(buffer);
	if (size < 0 || size > buffer->len - buffer->cursor)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("serialized aggregate state ends before its time")));
	open_serialized((const uint8 *) pq_getmsgbytes(buffer, (int) size), size, BF_VALUE, filter);
	return true;
}
