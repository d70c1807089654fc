/*
 * bloom_agg.h
 *		The function by which the planner recognizes bloom_agg.
 */
#ifndef BF_BLOOM_AGG_H
#define BF_BLOOM_AGG_H

#include "postgres.h"

#include "fmgr.h"

extern PGDLLEXPORT Datum bloomfilter_agg_final(PG_FUNCTION_ARGS);

#endif							/* BF_BLOOM_AGG_H */
