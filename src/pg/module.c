/*
 * module.c
 *		What makes this a loadable module.
 */
#include "pg/pg_compat.h"

#include "fmgr.h"

PG_MODULE_MAGIC;
