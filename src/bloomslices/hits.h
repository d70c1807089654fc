/*
 * hits.h
 *		The rows that a search has found, within work_mem.
 */
#ifndef BF_SLICES_HITS_H
#define BF_SLICES_HITS_H

#include "pg/pg_compat.h"

#include "nodes/tidbitmap.h"
#include "storage/itemptr.h"
#include "utils/tuplesort.h"

#define NULL_DISTANCE	UINT32_MAX	/* more than any other */

typedef struct Hit
{
	uint64		place;			/* in the table: see place_of() */
	uint32		distance;		/* or less, if recheck_distance */
	bool		recheck;
	bool		recheck_distance;
} Hit;

/*
 * A bitmap takes them, or an array, or a sort, which returns those that come after `last`.
 * Initialize with the first two fields, and the bitmap if there is one.
 */
typedef struct Hits
{
	MemoryContext context;
	bool		has_distance;	/* else it is 0 */
	TIDBitmap  *bitmap;
	Tuplesortstate *sort;
	Hit		   *hits;
	Size		room;
	uint64		count;
	uint64		next;			/* to return */
	bool		cut;			/* the array lacks those after `last` */
	Hit			last;
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

/*
 * Forgets what a search that starts over has added.  A bitmap keeps it: the search finds
 * these rows again, or no snapshot sees them.
 */
extern void empty_hits(Hits *hits);

/* Adds hits of a search, in any order.  No buffer is locked: this may take long. */
extern void add_hits(Hits *hits, const Hit *some, uint32 n);

/* Ends the search: what next_hit() returns then comes in the order of distances, then of the table. */
extern void sort_hits(Hits *hits);
extern bool next_hit(Hits *hits, Hit *hit);

/* Prepares for a search for all hits that are cut. */
extern void expect_cut_hits(Hits *hits);

/* Closes temporary files. */
extern void end_hits(Hits *hits);

#endif							/* BF_SLICES_HITS_H */
