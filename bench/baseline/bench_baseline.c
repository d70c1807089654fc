/*
 * bench_baseline.c
 *		What a probe costs without its filter, and a filter without its probe.
 */
#include "postgres.h"

#include "fmgr.h"
#include "hash.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(bench_hash_only);
PG_FUNCTION_INFO_V1(bench_detoast);

/* (bloomfilter, anyelement) returns boolean; the element must be a bigint. */
Datum
bench_hash_only(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(bf_hash_word((uint64) PG_GETARG_INT64(1), 0) == 0);
}

/* (bloomfilter) returns boolean: reads the value as a whole, once. */
Datum
bench_detoast(PG_FUNCTION_ARGS)
{
	Pointer		stored = PG_GETARG_POINTER(0);
	Pointer		whole = (Pointer) PG_DETOAST_DATUM(stored);

	if (whole != stored)
		pfree(whole);
	PG_RETURN_BOOL(whole != stored);
}
