/*
 * scan.c
 *		Scans of bloomslices.
 *
 * A search collects all rows before the first one is returned, because nothing keeps a
 * slab from being merged away between two calls.  The rows that a snapshot sees have
 * their entries before its scan begins, and keep them until no snapshot sees the row.
 * So one copy of the directory serves all searches of a scan, until a merge removes a
 * slab that it names.
 */
#include "pg/pg_compat.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "bloomslices/bloomslices.h"
#include "bloomslices/search.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "utils/memutils.h"

typedef struct SlicesScan
{
	SearchMemory memory;		/* of all searches */
	MemoryContext context;		/* of one search */
	bool		searched;
	Hits		hits;
	Size		next;
} SlicesScan;

static inline int
compare_hits(const Hit *a, const Hit *b)
{
	if (a->distance != b->distance)
		return a->distance < b->distance ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

#define ST_SORT sort_hits
#define ST_ELEMENT_TYPE Hit
#define ST_COMPARE(a, b) compare_hits(a, b)
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

IndexScanDesc
bloomslices_beginscan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "bloomslices scan", ALLOCSET_DEFAULT_SIZES);
	SlicesScan *state = MemoryContextAllocZero(context, sizeof(SlicesScan));

	state->memory.context = context;
	state->context = AllocSetContextCreate(context, "bloomslices search", ALLOCSET_DEFAULT_SIZES);
	if (norderbys > 0)
	{
		scan->xs_orderbyvals = palloc0(norderbys * sizeof(Datum));
		scan->xs_orderbynulls = palloc0(norderbys * sizeof(bool));
	}
	scan->opaque = state;
	return scan;
}

void
bloomslices_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	SlicesScan *state = scan->opaque;

	if (keys != NULL && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
	if (orderbys != NULL && scan->numberOfOrderBys > 0)
		memmove(scan->orderByData, orderbys, scan->numberOfOrderBys * sizeof(ScanKeyData));
	MemoryContextReset(state->context);
	state->searched = false;
}

void
bloomslices_endscan(IndexScanDesc scan)
{
	SlicesScan *state = scan->opaque;

	MemoryContextDelete(state->memory.context);
}

static void
start_search(IndexScanDesc scan)
{
	SlicesScan *state = scan->opaque;
	MemoryContext caller = MemoryContextSwitchTo(state->context);

	pgstat_count_index_scan(scan->indexRelation);
	count_search(scan);
	state->hits = search_slices(scan->indexRelation, &state->memory, scan->xs_snapshot, scan->keyData,
								scan->numberOfKeys, scan->numberOfOrderBys > 0 ? &scan->orderByData[0] : NULL);
	state->next = 0;
	state->searched = true;
	MemoryContextSwitchTo(caller);
}

int64
bloomslices_getbitmap(IndexScanDesc scan, TIDBitmap *bitmap)
{
	SlicesScan *state = scan->opaque;

	start_search(scan);
	for (Size i = 0; i < state->hits.count; i++)
	{
		ItemPointerData row = tid_of(state->hits.hits[i].place);

		CHECK_FOR_INTERRUPTS();
		tbm_add_tuples(bitmap, &row, 1, state->hits.hits[i].recheck);
	}
	return (int64) state->hits.count;
}

/*
 * Plans with several distances are forbidden, see cost.c.  If there is no other, 0 is a
 * lower bound of the further ones, which the executor computes.
 */
static void
return_distance(IndexScanDesc scan, const Hit *hit)
{
	scan->xs_orderbynulls[0] = hit->distance == NULL_DISTANCE;
	scan->xs_orderbyvals[0] = scan->xs_orderbynulls[0] ? (Datum) 0 : Int32GetDatum((int32) hit->distance);
	scan->xs_recheckorderby = hit->recheck_distance || scan->numberOfOrderBys > 1;
}

bool
bloomslices_gettuple(IndexScanDesc scan, ScanDirection direction)
{
	SlicesScan *state = scan->opaque;
	const Hit  *hit;

	Assert(direction == ForwardScanDirection);
	if (!state->searched)
	{
		start_search(scan);
		if (state->hits.count > 1)
			sort_hits(state->hits.hits, state->hits.count);
	}
	if (state->next == state->hits.count)
		return false;
	hit = &state->hits.hits[state->next++];
	scan->xs_heaptid = tid_of(hit->place);
	scan->xs_recheck = hit->recheck;
	if (scan->numberOfOrderBys > 0)
		return_distance(scan, hit);
	return true;
}
