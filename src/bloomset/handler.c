/*
 * handler.c
 *		The index access method bloomset.
 */
#include "pg/pg_compat.h"

#include "access/amapi.h"
#include "bloomset/bloomset.h"
#include "commands/vacuum.h"

PG_FUNCTION_INFO_V1(bloomset_handler);

/*
 * If amsummarizing were true, REINDEX would skip row versions that old snapshots see.
 * So an update of the column is not HOT.
 */
static const IndexAmRoutine access_method = {
	.type = T_IndexAmRoutine,
	.amstrategies = 1,
	.amparallelvacuumoptions = VACUUM_OPTION_NO_PARALLEL,
	.ambuild = bloomset_build,
	.ambuildempty = bloomset_buildempty,
	.aminsert = bloomset_insert,
	.ambulkdelete = bloomset_bulkdelete,
	.amvacuumcleanup = bloomset_vacuumcleanup,
	.amcostestimate = bloomset_costestimate,
	.amoptions = bloomset_options,
	.ambuildphasename = bloomset_buildphasename,
	.amvalidate = bloomset_validate,
	.ambeginscan = bloomset_beginscan,
	.amrescan = bloomset_rescan,
	.amgetbitmap = bloomset_getbitmap,
	.amendscan = bloomset_endscan,
};

Datum
bloomset_handler(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(ACCESS_METHOD_RESULT(access_method));
}
