/*
 * search.h
 *		Finding rows by their bits.
 */
#ifndef BF_SEARCH_H
#define BF_SEARCH_H

#include "pg/pg_compat.h"

#include "access/skey.h"
#include "bloomslices/bloomslices.h"
#include "bloomslices/reader.h"

#define NULL_DISTANCE	UINT32_MAX	/* more than any other */

typedef struct Hit
{
	uint64		place;			/* in the table: see place_of() */
	uint32		distance;		/* or less, if recheck_distance */
	bool		recheck;
	bool		recheck_distance;
} Hit;

typedef struct Hits
{
	Size		count;
	Size		room;
	Hit		   *hits;
} Hits;

static inline uint64
place_of(const ItemPointerData *tid)
{
	return (uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16 | ItemPointerGetOffsetNumberNoCheck(tid);
}

static inline ItemPointerData
tid_of(uint64 place)
{
	ItemPointerData tid;

	ItemPointerSet(&tid, (BlockNumber) (place >> 16), (OffsetNumber) (place & 0xFFFF));
	return tid;
}

/* What a scan keeps for all its searches.  Initialize to zero, except the context. */
typedef struct SearchMemory
{
	MemoryContext context;		/* of what follows */
	Directory  *directory;		/* from any time after the snapshot was taken,
								 * or NULL */
	RecentBuffers recent;
	uint64		nsearches;
} SearchMemory;

/*
 * Finds the rows that all conditions may accept, in no order, with their distance
 * unless distance is NULL.  Allocates in the current memory context.
 */
extern Hits search_slices(Relation index, SearchMemory *memory, Snapshot snapshot, const ScanKeyData *conditions,
						  int nconditions, const ScanKeyData *distance);

#endif							/* BF_SEARCH_H */
