/*
 * sql_function.h
 *		SQL functions that only pass constants on.
 */
#ifndef BF_SQL_FUNCTION_H
#define BF_SQL_FUNCTION_H

#include "pg/pg_compat.h"

#include "fmgr.h"

/* Defines an SQL function that returns the value of an expression with fcinfo. */
#define SQL_FUNCTION(name, expression) \
	PG_FUNCTION_INFO_V1(name); \
	Datum \
	name(PG_FUNCTION_ARGS) \
	{ \
		return expression; \
	}

#endif							/* BF_SQL_FUNCTION_H */
