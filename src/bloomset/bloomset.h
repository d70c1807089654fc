/*
 * bloomset.h
 *		The pages of a bloomset, an index that is the Bloom filter of a column (README,
 *		The Picture).
 *
 * Generations are those of scalable Bloom filters (Almeida et al. 2007).
 * doc/format.md says how elements get into them.
 */
#ifndef BF_BLOOMSET_H
#define BF_BLOOMSET_H

#include "pg/pg_compat.h"

#include "access/amapi.h"
#include "core/block.h"
#include "pg/element.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

#define BLOOMSET_MAGIC		0xB1005E75
#define BLOOMSET_VERSION	1
#define BLOOMSET_META_PAGE	0
#define MAX_GENERATIONS		32

/* The fields of a page, which are always below pd_lower. */
typedef struct BloomsetPageFields
{
	uint32		magic;
	uint16		version;
	uint16		generation;		/* from 1; 0 in the metapage */
	uint32		number;			/* of the page in its generation, from 0 */
	uint32		elements;		/* that set bits in this page */
	uint32		generations;	/* in generation 1: that may hold its elements */
	uint32		complement;		/* ~generations, to detect damage */
	uint32		reserved[4];
} BloomsetPageFields;

#define FIRST_BLOCK_OFFSET	64	/* aligned as the block's cache line */
#define BLOCKS_PER_PAGE		((BLCKSZ - FIRST_BLOCK_OFFSET) / BF_BLOCK_BYTES)

StaticAssertDecl(MAXALIGN(SizeOfPageHeaderData) + sizeof(BloomsetPageFields) == FIRST_BLOCK_OFFSET,
				 "the blocks follow the fields");

typedef struct Generation
{
	BlockNumber first;			/* page */
	uint32		nblocks;		/* of BF_BLOCK_BYTES, not pages */
	uint32		k;				/* hash functions */
	float4		rate;			/* at capacity */
	uint64		capacity;		/* distinct elements */
} Generation;

/* The contents of the metapage.  Only growth changes them after the build. */
typedef struct BloomsetMeta
{
	uint32		element_class;	/* a bf_class */
	float4		rate;			/* requested for the whole set */
	uint64		seed;
	uint64		built_at;		/* the build's next full transaction ID */
	uint32		ngenerations;
	uint32		checksum;		/* of all other fields */
	Generation	generation[MAX_GENERATIONS];
} BloomsetMeta;

StaticAssertDecl(FIRST_BLOCK_OFFSET + sizeof(BloomsetMeta) <= BLCKSZ, "the metapage is one page");

/*
 * What a backend keeps of an index in rd_amcache.  recent_buffers has the buffers in
 * which it has last seen pages, by block number modulo their number, a power of two.
 * ReadRecentBuffer() checks them, and spares the lookup in the server's table: a
 * fourth of an insert into a set of several generations.
 */
typedef struct BloomsetState
{
	BloomsetMeta meta;			/* may lack generations */
	HashElement hash;			/* of the column's type */
	uint32		reads;
	uint32		nrecent_buffers;
	Buffer		recent_buffers[FLEXIBLE_ARRAY_MEMBER];
} BloomsetState;

#define MAX_RECENT_BUFFERS	4096
#define READS_PER_LOOKUP	16

static inline BloomsetPageFields *
fields_of(Page page)
{
	return (BloomsetPageFields *) PageGetContents(page);
}

static inline BloomsetMeta *
meta_of(Page page)
{
	return (BloomsetMeta *) (page + FIRST_BLOCK_OFFSET);
}

static inline uint8 *
blocks_of(Page page)
{
	return (uint8 *) page + FIRST_BLOCK_OFFSET;
}

static inline uint32
pages_of(const Generation *generation)
{
	return (generation->nblocks - 1) / BLOCKS_PER_PAGE + 1;
}

static inline uint32
blocks_in_page(const Generation *generation, uint32 number)
{
	Assert(number < pages_of(generation));
	return Min(BLOCKS_PER_PAGE, generation->nblocks - number * BLOCKS_PER_PAGE);
}

static inline bf_shape
shape_of(const Generation *generation)
{
	return (bf_shape)
	{
		generation->nblocks, BF_BLOCK_BITS, generation->k
	};
}

/* Where an element's block is: the page in its generation, and the offset there. */
typedef struct BlockPlace
{
	uint32		number;
	uint32		offset;
} BlockPlace;

static inline BlockPlace
place_of(const Generation *generation, uint64 hash)
{
	bf_shape	shape = shape_of(generation);
	uint32		block = (uint32) bf_block_of(&shape, hash);

	Assert(block < generation->nblocks);
	return (BlockPlace)
	{
		block / BLOCKS_PER_PAGE, FIRST_BLOCK_OFFSET + block % BLOCKS_PER_PAGE * BF_BLOCK_BYTES
	};
}

/* design.c */

/* The elements for which generation 1 needs a page, if the set has this rate. */
extern double elements_of_page(double rate);

/*
 * Fills generation[index] of meta, but not its first page, for a number of
 * elements; false if such a generation exceeds the limits of a relation.
 */
extern bool design_generation(BloomsetMeta *meta, uint32 index, double items);

/* The number of elements counted in the pages of a generation when it is full. */
extern double full_elements(const Generation *generation);

/* page.c */

/* Is a relation an index of this access method, on a table or on a partitioned one? */
extern bool is_bloomset(Relation index);

/*
 * What is known of an index: the backend's copy, or the metapage again with
 * refresh.  Valid until the backend accepts an invalidation.
 */
extern BloomsetState *bloomset_state(Relation index, bool refresh);

/* Reads the metapage, without catalog access. */
extern void read_metapage(Relation index, BloomsetMeta *meta);

/* Forgets the copy. */
extern void forget_bloomset_state(Relation index);

/* Makes an empty page. */
extern void init_bloomset_page(Page page, uint16 generation, uint32 number);

/* True if a page has the fields of this page of this generation. */
extern bool is_page_of(Page page, uint16 generation, uint32 number);

/* Reads and locks page `number` of generation[index]; an error if it is damaged. */
extern Buffer lock_generation_page(Relation index, const BloomsetMeta *meta, uint32 generation,
								   uint32 number, int mode);

/* Adds a page to a fork; it is locked exclusively and not initialized. */
extern Buffer extend_bloomset(Relation index, ForkNumber fork);

/* Writes the contents of a metapage, with their checksum. */
extern void write_meta(Page page, const BloomsetMeta *meta);

/* Writes the metapage of a new index. */
extern void write_new_metapage(Buffer buffer, const BloomsetMeta *meta);

/*
 * Refreshes the backend's copy of the metapage; an error if it has fewer generations
 * than a page names.
 */
extern BloomsetState *require_generations(Relation index, uint32 generations);

/* probe.c */

/*
 * True if an element may be in the set.  *generations is the number of
 * generations that may hold elements with the same page of generation 1.  The snapshot
 * is that of a search, which may be too old, or InvalidSnapshot.
 */
extern bool probe_bloomset(Relation index, Snapshot snapshot, uint64 hash, uint32 *generations);

/* One of many elements to probe for. */
typedef struct BatchProbe
{
	uint64		hash;
	uint32		generations;	/* as above, once generation 1 is asked */
	bool		found;			/* false at first */
} BatchProbe;

/* The same for many elements: those in the order of their hashes share the reads of pages. */
extern void probe_bloomset_batch(Relation index, Snapshot snapshot, BatchProbe *probes, int count);

/*
 * True if absence from the set proves that no row visible to the transaction's
 * snapshots has the value.
 */
extern bool bloomset_can_exclude(Relation index);

/* wal.c */

/*
 * Sets the bits of an element at an offset of a page of a generation, the last of
 * `generations`, and writes the WAL record.  `first` is the element's page of
 * generation 1 if that must learn of this generation, else invalid.  Both are locked exclusively.
 * Returns the number of elements of the page.
 */
extern uint32 write_element(Relation index, const Generation *generation, uint32 generations,
							Buffer buffer, uint32 offset, uint64 hash, Buffer first);

/* insert.c */
extern bool bloomset_insert(Relation index, Datum *values, bool *isnull, ItemPointer row,
							Relation heap, IndexUniqueCheck check, bool unchanged,
							struct IndexInfo *info);

/* grow.c */

/*
 * Appends a generation if the last one known to the backend is full.  If another
 * session is at it, returns, or waits for it if the last one is too full to go on in.
 */
extern void grow_bloomset(Relation index);

/* build.c */
extern IndexBuildResult *bloomset_build(Relation heap, Relation index, struct IndexInfo *info);
extern void bloomset_buildempty(Relation index);
extern char *bloomset_buildphasename(int64 phase);

/* options.c */
typedef struct BloomsetOptions
{
	int32		vl_len_;
	double		rate;
	double		expected_items; /* 0: as many as fit a page */
	int			seed;			/* offset of a string */
} BloomsetOptions;

/* Below, the rates of many generations could not add up to so little. */
#define MIN_SET_RATE			1e-7

extern void define_bloomset_options(void);
extern bytea *bloomset_options(Datum reloptions, bool validate);
extern uint64 bloomset_seed(const BloomsetOptions *options);

/* scan.c */
extern IndexScanDesc bloomset_beginscan(Relation index, int nkeys, int norderbys);
extern void bloomset_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys,
							int norderbys);
extern void bloomset_endscan(IndexScanDesc scan);
extern int64 bloomset_getbitmap(IndexScanDesc scan, TIDBitmap *bitmap);

/* cost.c */
struct PlannerInfo;
struct IndexPath;
extern void bloomset_costestimate(struct PlannerInfo *root, struct IndexPath *path,
								  double loop_count, Cost *startup, Cost *total,
								  Selectivity *selectivity, double *correlation, double *pages);

/* vacuum.c */
extern IndexBulkDeleteResult *bloomset_bulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
												  IndexBulkDeleteCallback callback, void *state);
extern IndexBulkDeleteResult *bloomset_vacuumcleanup(IndexVacuumInfo *info,
													 IndexBulkDeleteResult *stats);

/* validate.c */
extern bool bloomset_validate(Oid opclass);

#endif							/* BF_BLOOMSET_H */
