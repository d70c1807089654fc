/*
 * module.c
 *		The magic block of the loadable module.
 */
#include "pg/pg_compat.h"

#include "fmgr.h"

/* PostgreSQL 18 shows the name and version in pg_get_loaded_modules(). */
#ifdef PG_MODULE_MAGIC_EXT
PG_MODULE_MAGIC_EXT(.name = "bloomtype", .version = BLOOMTYPE_VERSION);
#else
PG_MODULE_MAGIC;
#endif
