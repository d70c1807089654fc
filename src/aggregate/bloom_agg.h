/*
 * bloom_agg.h
 *		The functions by which the planner recognizes the aggregates that build
 *		filters and counters.
 */
#ifndef BF_BLOOM_AGG_H
#define BF_BLOOM_AGG_H

#include "pg/pg_compat.h"

#include "fmgr.h"

extern PGDLLEXPORT Datum bloomfilter_agg_final(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum bloomcounter_agg_final(PG_FUNCTION_ARGS);

#endif							/* BF_BLOOM_AGG_H */
