/*
 * aggregate_context.c
 *		What all aggregates share.
 */
#include "pg/pg_compat.h"

#include "core/bytes.h"
#include "filter/errors.h"
#include "filter/value.h"
#include "pg/aggregate_context.h"

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

bytea *
join_serialized(struct varlena **values, int count)
{
	Size		size = VARHDRSZ;
	bytea	   *joined;
	uint8	   *to;

	for (int i = 0; i < count; i++)
		size += sizeof(uint64) + VARSIZE(values[i]) - VARHDRSZ;
	joined = palloc(size);
	SET_VARSIZE(joined, size);
	to = (uint8 *) VARDATA(joined);
	for (int i = 0; i < count; i++)
	{
		size = VARSIZE(values[i]) - VARHDRSZ;
		bf_store64(to, size);
		copy_bytes(to + sizeof(uint64), (uint8 *) VARDATA(values[i]), size);
		to += sizeof(uint64) + size;
	}
	return joined;
}

bool
read_serialized(const uint8 **bytes, uint64 *left, bf_filter *filter)
{
	uint64		size;

	if (*left == 0)
		return false;
	size = *left < sizeof(size) ? 0 : bf_load64(*bytes);
	if (*left < sizeof(size) || size > *left - sizeof(size))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("serialized aggregate state is truncated")));
	open_serialized(*bytes + sizeof(size), size, BF_VALUE, filter);
	*bytes += sizeof(size) + size;
	*left -= sizeof(size) + size;
	return true;
}
