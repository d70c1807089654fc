/*
 * search.h
 *		Finding rows by their bits.
 */
#ifndef BF_SEARCH_H
#define BF_SEARCH_H

#include "pg/pg_compat.h"

#include "access/skey.h"
#include "bloomslices/bloomslices.h"
#include "bloomslices/hits.h"
#include "bloomslices/reader.h"

/* What a scan keeps for all its searches.  Initialize to zero, except the contexts. */
typedef struct SearchMemory
{
	MemoryContext context;		/* of what follows */
	Directory  *directory;		/* from any time after the snapshot was taken,
								 * or NULL */
	RecentBuffers recent;
	uint64		nsearches;
	MemoryContext search;		/* of one search */
	Hit			found[ROWS_PER_PAGE];	/* not yet among the hits */
} SearchMemory;

/*
 * Finds the rows that all conditions may accept, in no order, with their distance
 * unless distance is NULL.
 */
extern void search_slices(Relation index, SearchMemory *memory, Snapshot snapshot, const ScanKeyData *conditions,
						  int nconditions, const ScanKeyData *distance, Hits *hits);

#endif							/* BF_SEARCH_H */
