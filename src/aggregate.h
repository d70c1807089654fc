/*
 * aggregate.h
 *		What the support functions of all aggregates check first.
 */
#ifndef BF_AGGREGATE_H
#define BF_AGGREGATE_H

#include "postgres.h"
#include "fmgr.h"

/* The aggregate's memory context; an error if the function runs in none. */
extern MemoryContext require_aggregate(FunctionCallInfo fcinfo);

/*
 * A state argument, NULL if it is; an error unless it begins with the magic
 * number.  Only functions that take type internal may call it, to which SQL
 * cannot pass anything else than a state of some aggregate.
 */
extern void *require_state(FunctionCallInfo fcinfo, int argument, uint32 magic);

#endif							/* BF_AGGREGATE_H */
