/*
 * aggregate_context.h
 *		What all aggregates share: their context, their states, and these as bytes.
 */
#ifndef BF_AGGREGATE_CONTEXT_H
#define BF_AGGREGATE_CONTEXT_H

#include "pg/pg_compat.h"

#include "core/format.h"
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

/* Decodes and checks bytes that a serialize function is supposed to have made. */
extern void open_serialized(const uint8 *bytes, uint64 size, bf_source source,
							bf_filter *filter);

/*
 * A state of several filters: each behind its size in 8 bytes, the least
 * significant first.  Reading takes the next one off the front of what is
 * left, or returns false at the end.
 */
extern bytea *join_serialized(struct varlena **values, int count);
extern bool read_serialized(const uint8 **bytes, uint64 *left, bf_filter *filter);

#endif							/* BF_AGGREGATE_CONTEXT_H */
