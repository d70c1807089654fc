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
Datum
bloomset_handler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *am = makeNode(IndexAmRoutine);

	am->amstrategies = 1;
	am->amsupport = 0;
	am->amparallelvacuumoptions = VACUUM_OPTION_NO_PARALLEL;
	am->ambuild = bloomset_build;
	am->ambuildempty = bloomset_buildempty;
	am->aminsert = bloomset_insert;
	am->ambulkdelete = bloomset_bulkdelete;
	am->amvacuumcleanup = bloomset_vacuumcleanup;
	am->amcostestimate = bloomset_costestimate;
	am->amoptions = bloomset_options;
	am->amvalidate = bloomset_validate;
	am->ambeginscan = bloomset_beginscan;
	am->amrescan = bloomset_rescan;
	am->amgetbitmap = bloomset_getbitmap;
	am->amendscan = bloomset_endscan;
	PG_RETURN_POINTER(am);
}
