/*
 * aggregate_context.c
 *		Checks that the support functions of all aggregates share.
 */
#include "pg/pg_compat.h"

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
			 errmsg("aggregate state does not belong to this function")));
}
