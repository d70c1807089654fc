/*
 * scan.c
 *		Scans of bloomslices.
 *
 * A search collects all rows before the first one is returned, because nothing keeps a
 * slab from being merged away between two calls: see README, Operations.
 */
#include "pg/pg_compat.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "bloomslices/bloomslices.h"
#include "bloomslices/search.h"
#include "pgstat.h"
#include "utils/memutils.h"

typedef struct SlicesScan
{
	SearchMemory memory;		/* of all searches */
	MemoryContext context;		/* of the hits of one search */
	bool		searched;
	Hits		hits;
} SlicesScan;

IndexScanDesc
bloomslices_beginscan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "bloomslices scan", ALLOCSET_DEFAULT_SIZES);
	SlicesScan *state = MemoryContextAllocZero(context, sizeof(SlicesScan));

	state->memory.context = context;
	state->memory.search = AllocSetContextCreate(context, "bloomslices search", ALLOCSET_DEFAULT_SIZES);
	state->context = AllocSetContextCreate(context, "bloomslices hits", ALLOCSET_DEFAULT_SIZES);
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
	end_hits(&state->hits);
	MemoryContextReset(state->context);
	state->searched = false;
}

void
bloomslices_endscan(IndexScanDesc scan)
{
	SlicesScan *state = scan->opaque;

	end_hits(&state->hits);
	MemoryContextDelete(state->memory.context);
}

static void
search(IndexScanDesc scan)
{
	SlicesScan *state = scan->opaque;

	count_search(scan);
	search_slices(scan->indexRelation, &state->memory, scan->xs_snapshot, scan->keyData, scan->numberOfKeys,
				  scan->numberOfOrderBys > 0 ? &scan->orderByData[0] : NULL, &state->hits);
}

static void
start_search(IndexScanDesc scan, TIDBitmap *bitmap)
{
	SlicesScan *state = scan->opaque;

	pgstat_count_index_scan(scan->indexRelation);
	state->hits = (Hits)
	{
		.context = state->context, .has_distance = scan->numberOfOrderBys > 0, .bitmap = bitmap
	};
	search(scan);
	state->searched = true;
}

int64
bloomslices_getbitmap(IndexScanDesc scan, TIDBitmap *bitmap)
{
	SlicesScan *state = scan->opaque;

	start_search(scan, bitmap);
	return (int64) state->hits.count;
}

/* The next hit; those that did not fit into memory need a second search. */
static bool
find_hit(IndexScanDesc scan, Hit *hit)
{
	SlicesScan *state = scan->opaque;

	if (next_hit(&state->hits, hit))
		return true;
	if (!state->hits.cut)
		return false;
	expect_cut_hits(&state->hits);
	search(scan);
	sort_hits(&state->hits);
	return next_hit(&state->hits, hit);
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
	Hit			hit;

	Assert(direction == ForwardScanDirection);
	if (!state->searched)
	{
		start_search(scan, NULL);
		sort_hits(&state->hits);
	}
	if (!find_hit(scan, &hit))
		return false;
	scan->xs_heaptid = tid_of(hit.place);
	scan->xs_recheck = hit.recheck;
	if (scan->numberOfOrderBys > 0)
		return_distance(scan, &hit);
	return true;
}
