/*
 * pg_compat.h
 *		Differences between the supported PostgreSQL versions.
 */
#ifndef PG_COMPAT_H
#define PG_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 150000
#error "bloomtype needs PostgreSQL 15 or later"
#endif

/* PostgreSQL 16 moved the varlena macros to varatt.h and added soft errors. */
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

/* PostgreSQL 16 counts outer joins among the relations of a query. */
#if PG_VERSION_NUM < 160000
#define all_query_rels all_baserels
#endif

/* PostgreSQL 18 places it before a declaration. */
#if PG_VERSION_NUM < 180000
#define pg_noreturn pg_attribute_noreturn()
#endif

#endif							/* PG_COMPAT_H */
