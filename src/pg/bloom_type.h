/*
 * bloom_type.h
 *		The extension's types.
 */
#ifndef BF_BLOOM_TYPE_H
#define BF_BLOOM_TYPE_H

#include "pg/pg_compat.h"

#include "core/filter.h"
#include "fmgr.h"

/* What code needs to know of the type of a kind; value/errors.c has its messages. */
typedef struct BloomType
{
	PGFunction	input;			/* identifies the type, whatever its name */
	const char *name;			/* in SQL */
	uint32		default_cell_bits;
	const char *element_hint;	/* when a value is used as an element */
} BloomType;

#define BLOOM_TYPES		2

/* By bf_kind. */
extern const BloomType bloom_types[BLOOM_TYPES];

extern PGDLLEXPORT Datum bloomfilter_in(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum bloomcounter_in(PG_FUNCTION_ARGS);

/* The function that reads values of a base type from text, else NULL.  Reads the catalog. */
extern PGFunction input_function_of(Oid type);

/* True if a type is one of these; *kind is then its kind.  Reads the catalog. */
extern bool is_bloom_type(Oid type, bf_kind *kind);

#endif							/* BF_BLOOM_TYPE_H */
