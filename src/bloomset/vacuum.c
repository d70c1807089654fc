/*
 * vacuum.c
 *		VACUUM of a bloomset.  It names row versions, not values, so nothing can be
 *		removed: REINDEX forgets deleted values.
 */
#include "pg/pg_compat.h"

#include "access/genam.h"
#include "bloomset/bloomset.h"

/*
 * CREATE INDEX CONCURRENTLY learns from the callback which rows the index has.  We
 * report none, so validation inserts every visible row again, which is harmless.
 */
IndexBulkDeleteResult *
bloomset_bulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
					IndexBulkDeleteCallback callback, void *state)
{
	return stats != NULL ? stats : palloc0(sizeof(*stats));
}

IndexBulkDeleteResult *
bloomset_vacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	if (info->analyze_only)
		return stats;
	if (stats == NULL)
		stats = palloc0(sizeof(*stats));
	stats->num_pages = RelationGetNumberOfBlocks(info->index);
	stats->num_index_tuples = info->num_heap_tuples;
	stats->estimated_count = info->estimated_count;
	return stats;
}
