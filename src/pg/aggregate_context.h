/*
 * aggregate_context.h
 *		Checks that the support functions of all aggregates share.
 */
#ifndef BF_AGGREGATE_CONTEXT_H
#define BF_AGGREGATE_CONTEXT_H

#include "pg/pg_compat.h"

#include "fmgr.h"

/* The aggregate's memory context.  Raises an error outside an aggregate. */
static inline MemoryContext
require_aggregate(FunctionCallInfo fcinfo)
{
	MemoryContext context;

	if (!AggCheckCallContext(fcinfo, &context))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("aggregate support function called outside an aggregate")));
	return context;
}

/*
 * A state argument, or NULL if the argument is null.  Every state starts with
 * the number of its kind, which this checks.  A superuser can create an
 * aggregate from functions that do not belong together, and software that
 * distributes aggregates calls these functions itself.
 */
static inline void *
require_state(FunctionCallInfo fcinfo, int argument, uint32 kind)
{
	void	   *state;

	if (PG_ARGISNULL(argument))
		return NULL;
	state = PG_GETARG_POINTER(argument);
	if (unlikely(*(uint32 *) state != kind))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("aggregate state does not belong to this function")));
	return state;
}

#endif							/* BF_AGGREGATE_CONTEXT_H */
