/*
 * handler.c
 *		The index access method bloomslices.
 */
#include "pg/pg_compat.h"

#include "access/amapi.h"
#include "bloomslices/bloomslices.h"
#include "commands/vacuum.h"

PG_FUNCTION_INFO_V1(bloomslices_handler);

/*
 * An ORDER BY without WHERE needs amoptionalkey.  amsearchnulls is false, so the index
 * is not asked for nulls, but it has all rows: those that ORDER BY puts last, too.
 */
static const IndexAmRoutine access_method = {
	.type = T_IndexAmRoutine,
	.amstrategies = MOST_STRATEGY,
	.amcanorderbyop = true,
	.amoptionalkey = true,
	.amparallelvacuumoptions = VACUUM_OPTION_NO_PARALLEL,
	.ambuild = bloomslices_build,
	.ambuildempty = bloomslices_buildempty,
	.aminsert = bloomslices_insert,
	.ambulkdelete = bloomslices_bulkdelete,
	.amvacuumcleanup = bloomslices_vacuumcleanup,
	.amcostestimate = bloomslices_costestimate,
	.amoptions = bloomslices_options,
	.ambuildphasename = bloomslices_buildphasename,
	.amvalidate = bloomslices_validate,
	.ambeginscan = bloomslices_beginscan,
	.amrescan = bloomslices_rescan,
	.amgettuple = bloomslices_gettuple,
	.amgetbitmap = bloomslices_getbitmap,
	.amendscan = bloomslices_endscan,
};

Datum
bloomslices_handler(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(ACCESS_METHOD_RESULT(access_method));
}
