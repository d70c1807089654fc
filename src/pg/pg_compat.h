/*
 * pg_compat.h
 *		What differs between the PostgreSQL versions that are supported.
 */
#ifndef PG_COMPAT_H
#define PG_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 150000
#error "bloomtype needs PostgreSQL 15 or later"
#endif

/* 16 moved the varlena macros out of postgres.h, and brought soft errors. */
#if PG_VERSION_NUM >= 160000
#include "nodes/miscnodes.h"
#include "varatt.h"
#else
#define ereturn(escontext, value, ...) \
	do { \
		(void) (escontext); \
		ereport(ERROR, __VA_ARGS__); \
		return value; \
	} while (0)
#endif

/* From 16 on outer joins count among the relations of a query. */
#if PG_VERSION_NUM < 160000
#define all_query_rels all_baserels
#endif

/* 18 writes it in front of a declaration. */
#if PG_VERSION_NUM < 180000
#define pg_noreturn pg_attribute_noreturn()
#endif

#endif							/* PG_COMPAT_H */
