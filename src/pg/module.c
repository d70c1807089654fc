/*
 * module.c
 *		The magic block of the loadable module, and what loading it does.
 */
#include "pg/pg_compat.h"

#include "bloomset/bloomset.h"
#include "bloomslices/bloomslices.h"
#include "fmgr.h"
#include "join/join_filter.h"

/* PostgreSQL 18 shows the name and version in pg_get_loaded_modules(). */
#ifdef PG_MODULE_MAGIC_EXT
PG_MODULE_MAGIC_EXT(.name = "bloomtype", .version = BLOOMTYPE_VERSION);
#else
PG_MODULE_MAGIC;
#endif

extern PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	define_bloomset_options();
	define_bloomslices_options();
	define_join_filters();
}
