/*
 * aggregate_context.h
 *		What all aggregates share: their memory context and their states.
 */
#ifndef BF_AGGREGATE_CONTEXT_H
#define BF_AGGREGATE_CONTEXT_H

#include "pg/pg_compat.h"

#include "fmgr.h"

/*
 * The aggregate's memory context; an error if the function runs outside an
 * aggregate.
 */
extern MemoryContext require_aggregate(FunctionCallInfo fcinfo);

pg_noreturn extern void report_foreign_state(void);

/*
 * A state argument, NULL if it is.  Every state begins with a number for its
 * kind.  Only a superuser can create an aggregate whose functions do not belong
 * together, and code that distributes aggregates calls them by itself.
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
