/*
 * aggregate_context.h
 *		Checks that the support functions of all aggregates share.
 */
#ifndef BF_AGGREGATE_CONTEXT_H
#define BF_AGGREGATE_CONTEXT_H

#include "pg/pg_compat.h"

#include "fmgr.h"

/* The aggregate's memory context.  Raises an error outside an aggregate. */
extern MemoryContext require_aggregate(FunctionCallInfo fcinfo);

pg_noreturn extern void report_foreign_state(void);

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
	if (*(uint32 *) state != kind)
		report_foreign_state();
	return state;
}

#endif							/* BF_AGGREGATE_CONTEXT_H */
