/*
 * aggregate.h
 *		What the support functions of all aggregates check first.
 */
#ifndef BF_AGGREGATE_H
#define BF_AGGREGATE_H

#include "pg_compat.h"
#include "core/format.h"
#include "fmgr.h"

/*
 * A kind of state.  The C names of all support functions that know it, and of
 * no others, begin with the prefix.
 */
typedef struct StateKind
{
	uint32		magic;			/* a state's first field */
	const char *prefix;
} StateKind;

/*
 * The aggregate's memory context; an error if the function runs in none, or in
 * one whose support functions do not all know this kind of state.  *approved,
 * NULL at first, is kept from call to call and saves looking again.
 */
extern MemoryContext require_aggregate(FunctionCallInfo fcinfo, const StateKind *kind,
									   void **approved);

/* As that, for functions that keep nothing else in fn_extra. */
static inline MemoryContext
enter_aggregate(FunctionCallInfo fcinfo, const StateKind *kind)
{
	return require_aggregate(fcinfo, kind, &fcinfo->flinfo->fn_extra);
}

pg_noreturn extern void report_foreign_state(void);

/* bloom_agg's final function, by which the aggregate can be told. */
extern PGDLLEXPORT Datum bloomfilter_agg_final(PG_FUNCTION_ARGS);

/*
 * A state argument, NULL if it is.  require_aggregate() must have been called:
 * the magic number tells states apart only where code of others, such as what
 * distributes aggregates over servers, calls this function by itself.
 */
static inline void *
require_state(FunctionCallInfo fcinfo, int argument, const StateKind *kind)
{
	void	   *state;

	if (PG_ARGISNULL(argument))
		return NULL;
	state = PG_GETARG_POINTER(argument);
	if (*(uint32 *) state != kind->magic)
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

#endif							/* BF_AGGREGATE_H */
