/*
 * vacuum.c
 *		VACUUM of bloomslices: removes the entries of dead rows, then merges slabs.
 */
#include "pg/pg_compat.h"

#include "access/generic_xlog.h"
#include "bloomslices/bloomslices.h"
#include "commands/vacuum.h"
#include "utils/relcache.h"

typedef struct Removal
{
	IndexVacuumInfo *info;
	IndexBulkDeleteResult *stats;
	IndexBulkDeleteCallback callback;
	void	   *state;
} Removal;

/* CREATE INDEX CONCURRENTLY learns from the callback which rows the index has. */
static uint32
find_dead(Removal *removal, Page page, bool *dead)
{
	uint32		n = 0;

	for (uint32 i = 0; i < slices_fields(page)->used; i++)
	{
		RowEntry   *entry = &slices_rows(page)[i];

		dead[i] = entry->kind != ROW_ABSENT && removal->callback(&entry->tid, removal->state);
		if (dead[i])
			n++;
		else if (entry->kind != ROW_ABSENT)
			removal->stats->num_index_tuples++;
	}
	return n;
}

static void
remove_entries(Relation index, Buffer buffer, const bool *dead)
{
	GenericXLogState *state = GenericXLogStart(index);
	Page		page = GenericXLogRegisterBuffer(state, buffer, 0);

	for (uint32 i = 0; i < slices_fields(page)->used; i++)
	{
		if (dead[i])
			slices_rows(page)[i] = (RowEntry)
		{
			.kind = ROW_ABSENT
		};
	}
	GenericXLogFinish(state);
}

/* The table's lock keeps merges away, so the slabs are still there. */
static void
remove_from_slab(Removal *removal, const Slab *slab)
{
	Relation	index = removal->info->index;

	for (uint32 number = 0; number < rows_pages_of(slab); number++)
	{
		bool		dead[ROWS_PER_PAGE];
		Buffer		buffer;
		uint32		ndead;

		vacuum_delay();
		buffer = try_slab_page(index, slab, number, BUFFER_LOCK_EXCLUSIVE, removal->info->strategy);
		if (!BufferIsValid(buffer))
			report_slices_damage(index, slab->first + number);
		ndead = find_dead(removal, BufferGetPage(buffer), dead);
		if (ndead > 0)
			remove_entries(index, buffer, dead);
		removal->stats->tuples_removed += ndead;
		UnlockReleaseBuffer(buffer);
	}
}

IndexBulkDeleteResult *
bloomslices_bulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, IndexBulkDeleteCallback callback,
					   void *state)
{
	Removal		removal = {info, stats != NULL ? stats : palloc0(sizeof(*stats)), callback, state};
	Directory  *directory = read_slices_directory(info->index, NULL);

	removal.stats->num_index_tuples = 0;
	removal.stats->estimated_count = false;
	for (uint32 i = 0; i < directory->nslabs; i++)
		remove_from_slab(&removal, &directory->slabs[i]);
	free_slices_directory(directory);
	return removal.stats;
}

static uint32
candidates_of_slab(Relation index, const Slab *slab, BufferAccessStrategy strategy)
{
	uint32		n = 0;

	for (uint32 number = 0; number < rows_pages_of(slab); number++)
	{
		Buffer		buffer;
		Page		page;

		vacuum_delay();
		buffer = try_slab_page(index, slab, number, BUFFER_LOCK_SHARE, strategy);
		if (!BufferIsValid(buffer))
			report_slices_damage(index, slab->first + number);
		page = BufferGetPage(buffer);
		for (uint32 i = 0; i < slices_fields(page)->used; i++)
			n += slices_rows(page)[i].kind == ROW_CANDIDATE;
		UnlockReleaseBuffer(buffer);
	}
	return n;
}

/* Tells the planner how many rows each search returns. */
static void
count_candidates(Relation index, BufferAccessStrategy strategy)
{
	Directory  *directory = read_slices_directory(index, NULL);
	uint32		before = directory->meta.candidates;
	uint32		n = 0;

	for (uint32 i = 0; i < directory->nslabs; i++)
	{
		if (directory->slabs[i].kind == SLAB_LIST)
			n += candidates_of_slab(index, &directory->slabs[i], strategy);
	}
	free_slices_directory(directory);
	if (n != before)
		set_candidates(index, n);
}

static BlockNumber
free_pages(Relation index)
{
	Directory  *directory = read_slices_directory(index, NULL);
	BlockNumber n = 0;

	for (uint32 i = 0; i < directory->nslabs; i++)
	{
		if (directory->slabs[i].kind == SLAB_FREE)
			n += directory->slabs[i].npages;
	}
	free_slices_directory(directory);
	return n;
}

/*
 * Without ambulkdelete, the number of rows is that of the table, as each has an entry;
 * it is unknown if there is a predicate.
 */
IndexBulkDeleteResult *
bloomslices_vacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	if (info->analyze_only)
		return stats;
	if (stats == NULL)
	{
		stats = palloc0(sizeof(*stats));
		stats->num_index_tuples = info->num_heap_tuples;
		stats->estimated_count = info->estimated_count || RelationGetIndexPredicate(info->index) != NIL;
	}
	merge_slices(info->index, info->strategy);
	count_candidates(info->index, info->strategy);
	stats->num_pages = RelationGetNumberOfBlocks(info->index);
	stats->pages_free = free_pages(info->index);
	return stats;
}
