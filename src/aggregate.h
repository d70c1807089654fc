/*
 * aggregate.h
 *		What the support functions of all aggregates check first.
 */
#ifndef BF_AGGREGATE_H
#define BF_AGGREGATE_H

#include "pg_compat.h"
#include "fmgr.h"

/* The aggregate's memory context; an error if the function runs in none. */
extern MemoryContext require_aggregate(FunctionCallInfo fcinfo);

pg_noreturn extern void report_foreign_state(void);

/*
 * A state argument, NULL if it is; an error unless it begins with the magic
 * number.  Only functions that take type internal may call it, to which SQL
 * cannot pass anything else than a state of some aggregate.
 */
static inline void *
require_state(FunctionCallInfo fcinfo, int argument, uint32 magic)
{
	void	   *state;

	if (PG_ARGISNULL(argument))
		return NULL;
	state = PG_GETARG_POINTER(argument);
	if (*(uint32 *) state != magic)
		report_foreign_state();
	return state;
}

#endif							/* BF_AGGREGATE_H */
