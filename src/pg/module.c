/*
 * module.c
 *		What makes this a loadable module.
 */
#include "pg/pg_compat.h"

#include "fmgr.h"

/* From 18 on pg_get_loaded_modules() shows name and version. */
#ifdef PG_MODULE_MAGIC_EXT
PG_MODULE_MAGIC_EXT(.name = "bloomtype", .version = BLOOMTYPE_VERSION);
#else
PG_MODULE_MAGIC;
#endif
