/*
 * bloom_type.h
 *		Recognizing the extension's types.
 */
#ifndef BF_BLOOM_TYPE_H
#define BF_BLOOM_TYPE_H

#include "pg/pg_compat.h"

#include "core/format.h"
#include "fmgr.h"

/*
 * The input functions identify the types, because types can be renamed or moved
 * to another schema.
 */
extern PGDLLEXPORT Datum bloomfilter_in(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum bloomcounter_in(PG_FUNCTION_ARGS);

/*
 * True if a type is bloomfilter or bloomcounter; *source is then BF_VALUE or
 * BF_COUNTER_VALUE.  Reads the catalog.
 */
extern bool is_bloom_type(Oid type, bf_source *source);

#endif							/* BF_BLOOM_TYPE_H */
