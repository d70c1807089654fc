/*
 * bloomslices.h
 *		The pages of bloomslices, an index over filters.
 *
 * README explains them, the locks, and each operation.  doc/format.md says what the bits
 * of a row are.
 */
#ifndef BF_BLOOMSLICES_H
#define BF_BLOOMSLICES_H

#include "pg/pg_compat.h"

#include "access/amapi.h"
#include "access/itup.h"
#include "core/block.h"
#include "core/slices.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "utils/rel.h"
#include "utils/snapshot.h"
#include "value/value.h"

#define SLICES_MAGIC		0xB1005511
#define SLICES_VERSION		1
#define SLICES_META_PAGE	0

typedef enum PageKind
{
	PAGE_META = 1,
	PAGE_DIRECTORY,
	PAGE_ROWS,					/* RowEntry */
	PAGE_BITS
} PageKind;

typedef struct SlicesPageFields
{
	uint32		magic;
	uint16		version;
	uint16		kind;			/* a PageKind */
	uint64		owner;			/* number of the slab, or of the directory */
	uint32		number;			/* of the page in its owner, from 0 */
	uint32		used;			/* entries, or rows that are reserved */
	uint32		checksum;		/* of the entries of a directory page */
	uint32		reserved[3];
} SlicesPageFields;

#define SLICES_OFFSET		64	/* of the contents; aligned as a cache line */

StaticAssertDecl(MAXALIGN(SizeOfPageHeaderData) + sizeof(SlicesPageFields) == SLICES_OFFSET,
				 "the contents follow the fields");
StaticAssertDecl(SLICES_OFFSET + BF_SLICED_BYTES == BLCKSZ, "a page holds a block of each row of a tile");

/* How the index knows a row. */
typedef enum RowKind
{
	ROW_ABSENT = 0,				/* not published yet, or removed */
	ROW_EXACT,					/* the bits answer as the filter does */
	ROW_SPARSE,					/* of the same parameters; the bits contain
								 * the filter's: recheck */
	ROW_FLAGGED,				/* of others; the same */
	ROW_CANDIDATE,				/* no bits: always recheck */
	ROW_EMPTY,					/* a filter without elements, no bits */
	ROW_NULL					/* no bits */
} RowKind;

typedef struct RowEntry
{
	ItemPointerData tid;
	uint16		kind;			/* a RowKind */
} RowEntry;

static inline bool
kind_has_bits(RowKind kind)
{
	return kind == ROW_EXACT || kind == ROW_SPARSE || kind == ROW_FLAGGED;
}

#define ROWS_PER_PAGE		(BF_SLICED_BYTES / sizeof(RowEntry))

StaticAssertDecl(sizeof(RowEntry) == 8, "a slab of 8 tiles has one page of rows");

/*
 * The rows pages of a slab come first, then its bits pages:
 *
 * - SLAB_LIST: rows without bits; `tiles` rows pages.  Writers add rows to the last one.
 * - SLAB_TILE: up to 127 rows; bits page b has block b of each, 64 bytes a row.  Writers
 *   add rows in place.
 * - SLAB_RAW: one row; its blocks in order, 127 a page.  For filters so large that a tile
 *   would take too many pages.  The bits pages exist only if the row is not ROW_ABSENT.
 * - SLAB_SLICES: up to 127 * tiles rows, tiles = 4, 8 ... 512; of 4 tiles up to 504.  A
 *   block takes `tiles` pages of 512 / tiles slices each.  Written once, by a build or a
 *   merge.
 * - SLAB_PACKED: `tiles` rows, as many as fit on a page, or one on several.  Its contents
 *   are those of a tile without gaps: the entries, block 0 of each row, block 1 ..., in
 *   units of 64 bytes, 127 a page.  Instead of tiles while there are few rows.  From 1.4.1
 *   on; older versions report a damaged directory.
 */
typedef enum SlabKind
{
	SLAB_FREE = 0,				/* no slab, but pages to use again */
	SLAB_LIST,
	SLAB_TILE,
	SLAB_RAW,
	SLAB_SLICES,
	SLAB_PACKED
} SlabKind;

/* Above this number of blocks a row gets a slab of its own: 50 kB. */
#define RAW_BLOCKS		800

/*
 * For fewer rows with bits a build makes no tile: it would take more than twice as much as
 * they do.  A merge wants more rows, as nobody adds any to its tile.
 */
#define FEW_ROWS		64
#define FEW_MERGED_ROWS	(BF_TILE_ROWS / 4 * 3)

/* An entry of the directory. */
typedef struct Slab
{
	uint64		number;
	BlockNumber first;			/* page */
	uint32		npages;
	uint16		kind;			/* a SlabKind */
	uint16		has_flagged;	/* SLAB_SLICES: 1 if it may have rows of
								 * ROW_FLAGGED; else 0 */
	uint32		tiles;			/* of SLAB_SLICES; pages of SLAB_LIST; rows of
								 * SLAB_PACKED; else 1 */
} Slab;

#define SLABS_PER_PAGE	(BF_SLICED_BYTES / sizeof(Slab))

/*
 * What all rows have in common.  It is complete from the first row with elements on:
 * before, nblocks is 0 or, if the storage parameters name a size, the class is
 * BF_CLASS_NONE.
 */
typedef struct SlicesShape
{
	uint32		element_class;	/* a bf_class */
	uint32		nblocks;
	uint32		k;
	float4		rate;			/* requested of these filters */
	uint64		seed;
} SlicesShape;

#define MAX_DIRECTORY_PAGES	1900

/* The slabs of an index, from which the planner tells what a search reads. */
typedef struct SlabCounts
{
	uint32		list_pages;
	uint32		raw;			/* or packed: an index has only one of these */
	uint32		tiled[10];		/* by the binary logarithm of tiles; the first
								 * are SLAB_TILE */
} SlabCounts;

StaticAssertDecl(BF_MOST_TILES == 1 << 9, "slabs of every size are counted");

/* The contents of the metapage. */
typedef struct SlicesMeta
{
	SlicesShape shape;
	uint64		next_number;	/* of slabs and directories */
	uint64		directory;		/* number of the current one */
	BlockNumber merge_first;	/* pages that a merge is writing */
	uint32		merge_pages;
	uint32		ndirectory;		/* pages */
	uint32		checksum;		/* of all other fields */
	SlabCounts	counts;			/* of the slabs in the directory */
	uint32		candidates;		/* rows of ROW_CANDIDATE at the last build or
								 * VACUUM */
	BlockNumber directory_pages[MAX_DIRECTORY_PAGES];
} SlicesMeta;

StaticAssertDecl(sizeof(SlicesMeta) <= BF_SLICED_BYTES, "the metapage is one page");

/*
 * What a writer remembers of a directory, so that it need not read all of it to add a slab:
 * until a merge replaces it, entries are only added, and free ranges only become smaller.
 */
typedef struct DirectoryEnd
{
	uint64		directory;		/* its number, or 0 */
	uint32		nfull;			/* its first pages, which are full */
	uint32		free_page;		/* one of these that may have a free range */
	uint32		free_pages;		/* the others have no free range of more pages */
	BlockNumber end;			/* the block after all that these have */
} DirectoryEnd;

/* A copy of the directory, with the metapage from which it was read. */
typedef struct Directory
{
	SlicesMeta	meta;
	DirectoryEnd before;		/* its pages are not copied, except free_page;
								 * or nfull is 0 */
	uint32		nslabs;
	Slab	   *slabs;			/* also SLAB_FREE */
	uint32	   *used;			/* entries of each page that are copied */
} Directory;

static inline SlicesPageFields *
slices_fields(Page page)
{
	return (SlicesPageFields *) PageGetContents(page);
}

static inline uint8 *
slices_contents(Page page)
{
	return (uint8 *) page + SLICES_OFFSET;
}

static inline RowEntry *
slices_rows(Page page)
{
	return (RowEntry *) slices_contents(page);
}

static inline bf_shape
slices_bf_shape(const SlicesShape *shape)
{
	return (bf_shape)
	{
		shape->nblocks, BF_BLOCK_BITS, shape->k
	};
}

static inline uint32
rows_of_slab(const Slab *slab)
{
	switch ((SlabKind) slab->kind)
	{
		case SLAB_LIST:
			return ROWS_PER_PAGE * slab->tiles;
		case SLAB_TILE:
			return BF_TILE_ROWS;
		case SLAB_RAW:
			return 1;
		case SLAB_SLICES:
			return bf_sliced_rows(slab->tiles);
		case SLAB_PACKED:
			return slab->tiles;
		default:
			return 0;
	}
}

/* The rows of SLAB_PACKED. */
static inline uint32
packed_rows(uint32 nblocks)
{
	return Max(BF_SLICED_BYTES / (nblocks * BF_BLOCK_BYTES + sizeof(RowEntry)), 1);
}

static inline uint32
rows_pages_of(const Slab *slab)
{
	return (rows_of_slab(slab) + ROWS_PER_PAGE - 1) / ROWS_PER_PAGE;
}

static inline PageKind
slab_page_kind(const Slab *slab, uint32 number)
{
	return number < rows_pages_of(slab) ? PAGE_ROWS : PAGE_BITS;
}

/* The bytes of a slice. */
static inline uint32
slice_bytes_of(const Slab *slab)
{
	return bf_slice_bytes_of(slab->tiles);
}

/* The bytes of the slices on a page. */
static inline uint32
sliced_page_bytes(const Slab *slab)
{
	return BF_BLOCK_BITS / slab->tiles * slice_bytes_of(slab);
}

static inline bool
is_complete_shape(const SlicesShape *shape)
{
	return shape->nblocks > 0 && shape->element_class != BF_CLASS_NONE;
}

/* The first unit of 64 bytes that has a block, of bits that are not sliced; 127 are a page. */
static inline uint32
unit_of_block(const Slab *slab, uint32 block)
{
	uint32		entries = slab->kind == SLAB_PACKED ?
		(slab->tiles * sizeof(RowEntry) + BF_BLOCK_BYTES - 1) / BF_BLOCK_BYTES : BF_TILE_ROWS;

	return entries + block * rows_of_slab(slab);
}

/* The page of a slab that has a block, counted from its first page; for slices that of bit `bit`. */
static inline uint32
bits_page_of(const Slab *slab, uint32 block, uint32 bit)
{
	if (slab->kind == SLAB_SLICES)
		return rows_pages_of(slab) + block * slab->tiles + bit / (BF_BLOCK_BITS / slab->tiles);
	return unit_of_block(slab, block) / BF_TILE_ROWS;
}

/* Where a block of row 0 is among the contents of its page, before those of the other rows; not of slices. */
static inline uint32
block_offset_of(const Slab *slab, uint32 block)
{
	return unit_of_block(slab, block) % BF_TILE_ROWS * BF_BLOCK_BYTES;
}

/* page.c */

pg_noreturn extern void report_slices_damage(Relation index, BlockNumber block);
extern bool is_bloomslices(Relation index);

/* True if a page is this one and its fields are valid. */
extern bool is_slices_page(Page page, PageKind kind, uint64 owner, uint32 number);

/* Copies the metapage; an error if it is damaged. */
extern void read_slices_meta(Relation index, SlicesMeta *meta);

/* Writes the contents of a metapage, with their checksum; the second makes the page. */
extern void write_slices_meta(Page page, const SlicesMeta *meta);
extern void write_new_slices_meta(Relation index, ForkNumber fork, SlicesMeta *meta);

/*
 * Locks page `number` of a slab in shared mode, which is pinned.  If it belongs to another
 * slab meanwhile, releases it and returns false: the caller reads the directory again and
 * starts over.  An error if it is damaged.
 */
extern bool lock_slab_page(Relation index, const Directory *directory, const Slab *slab, uint32 number, Buffer buffer);

/*
 * Reads and locks a page of a slab that may be gone: InvalidBuffer if it belongs to
 * another slab, or is damaged.
 */
extern Buffer try_slab_page(Relation index, const Slab *slab, uint32 number, int mode, BufferAccessStrategy strategy);

/* The same for a pinned buffer, which is released if it has another page: then false. */
extern bool lock_if_slab_page(Buffer buffer, const Slab *slab, uint32 number, int mode);

/* Makes the file as long as that.  No buffer may be locked: others wait for I/O. */
extern void extend_slices(Relation index, ForkNumber fork, BlockNumber nblocks);

/*
 * Makes a page of the file, in whatever state it is, with its WAL record.  Of the fields
 * the magic number and the version are set here.
 */
extern void write_slices_page(Relation index, ForkNumber fork, BlockNumber block, BufferAccessStrategy strategy,
							  const SlicesPageFields *fields, const void *contents, Size size);

/* directory.c */

/*
 * A consistent copy, in the current memory context.  Reads one or more pages; an error if
 * rows that the snapshot sees may be gone, unless it is NULL.
 */
extern Directory *read_slices_directory(Relation index, Snapshot snapshot);

extern void free_slices_directory(Directory *directory);

/*
 * The same of its last pages, if a slab of so many pages needs no others.  *end is what the
 * last call remembered, or zero.
 */
extern Directory *read_directory_end(Relation index, DirectoryEnd *end, uint32 npages);

pg_noreturn extern void report_too_large(Relation index);

/* Adds slabs to counts of them. */
extern void count_slabs(SlabCounts *counts, const Slab *slabs, uint32 nslabs);

/* The last slab of a kind, or NULL. */
extern const Slab *last_slab(const Directory *directory, SlabKind kind);

/* What `tiles` is of an empty slab, and the number of pages of a slab. */
extern uint32 initial_tiles(SlabKind kind, uint32 nblocks);
extern uint32 slab_pages(SlabKind kind, uint32 tiles, uint32 nblocks);

/*
 * Serializes changes of the directory, and reads it.  Until unlock_slices_directory()
 * the caller must not take heavyweight locks, which includes access to catalogs.
 */
extern Directory *lock_slices_directory(Relation index);
extern void lock_slices_metapage(Relation index);
extern void unlock_slices_directory(Relation index, Directory *directory);

/* Sets the number of candidates that the planner counts on. */
extern void set_candidates(Relation index, uint32 candidates);

/* Makes a shape that of the index.  The directory is locked. */
extern void set_slices_shape(Relation index, Directory *directory, const SlicesShape *shape);

/* Makes an empty slab, of one page if it is a list.  The directory is locked. */
extern Slab append_slab(Relation index, Directory *directory, SlabKind kind);

/*
 * Reserves pages that inserts leave alone until swap_slabs(), and numbers of slabs from
 * *number on.  Returns the first page.
 */
extern BlockNumber reserve_merge_pages(Relation index, uint64 npages, uint32 nslabs, uint64 *number);

/* Replaces slabs by others, whose pages have been reserved, written and logged. */
extern void swap_slabs(Relation index, const Slab *sources, uint32 nsources, const Slab *targets, uint32 ntargets);

/* Writes pages of a new directory; npages >= directory_pages_for(nslabs). */
extern uint32 directory_pages_for(uint32 nslabs);
extern void write_slices_directory(Relation index, ForkNumber fork, BlockNumber first, uint32 npages,
								   uint64 number, const Slab *slabs, uint32 nslabs);

/* rows.c */

/*
 * How the index knows a filter.  If the kind has bits, writes them at the
 * shape of the index, nblocks * 64 bytes, unless bits is NULL.
 */
extern RowKind slices_row_bits(const SlicesShape *shape, const bf_filter *filter, uint8 *bits);

/*
 * Completes the shape of an index by a filter; false if it cannot, as a classic or an
 * empty one.
 */
extern bool complete_shape(SlicesShape *shape, const bf_filter *filter);

/* write.c */

/* Writes pages one after the other. */
typedef struct PageWriter
{
	Relation	index;
	BlockNumber next;
	BufferAccessStrategy strategy;
} PageWriter;

/* Copies a block of rows first .. first + n - 1 to n * 64 bytes. */
typedef void (*ReadRows) (void *state, uint32 block, uint64 first, uint32 n, uint8 *rows);

/*
 * The best slab for the first of nrows > 0 rows with bits; sets *taken to their
 * number.  `memory` limits its size.  With `few` these rows are all.
 */
extern Slab choose_slab(uint32 nblocks, uint64 nrows, Size memory, bool few, uint32 *taken);

/*
 * Writes the pages of a slab of rows first .. first + n - 1, from the writer's next
 * page on.  entries[0] is that of row `first`.  With is_full, writers add no rows to a
 * tile.  Takes slab->first and slab->npages from the writer.
 */
extern void write_slab(PageWriter *writer, Slab *slab, uint32 nblocks, const RowEntry *entries, uint64 first, uint32 n,
					   bool is_full, ReadRows read, void *state);

/* Writes the bits pages of a raw slab, for which the file has room; its row is row `first`. */
extern void write_raw_bits(PageWriter *writer, const Slab *slab, uint32 nblocks, uint64 first, ReadRows read,
						   void *state);

/* sample.c */

/*
 * The shape for the filters of a table.  Incomplete if its sample has none that gives a
 * shape.
 */
extern SlicesShape sample_slices_shape(Relation heap, Relation index, struct IndexInfo *info);

/* build.c */
extern IndexBuildResult *bloomslices_build(Relation heap, Relation index, struct IndexInfo *info);
extern void bloomslices_buildempty(Relation index);
extern char *bloomslices_buildphasename(int64 phase);

/* insert.c */
extern bool bloomslices_insert(Relation index, Datum *values, bool *isnull, ItemPointer row, Relation heap,
							   IndexUniqueCheck check, bool unchanged, struct IndexInfo *info);

/* vacuum.c */
extern IndexBulkDeleteResult *bloomslices_bulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
													 IndexBulkDeleteCallback callback, void *state);
extern IndexBulkDeleteResult *bloomslices_vacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats);

/* merge.c */

/* Merges slabs where it pays.  The caller has locked the table in ShareUpdateExclusiveLock. */
extern void merge_slices(Relation index, BufferAccessStrategy strategy);

/* options.c */

/* The shape by the storage parameters, or nblocks 0 if they say nothing. */
extern SlicesShape slices_shape_option(Relation index);
extern void define_bloomslices_options(void);
extern bytea *bloomslices_options(Datum reloptions, bool validate);

/* The operators of an operator class, for scans. */
#define MATCH_STRATEGY		1	/* @@ */
#define SUPERSET_STRATEGY	2	/* @>= */
#define DISTANCE_STRATEGY	3	/* <-> */
#define MOST_STRATEGY		3

/* scan.c */
extern IndexScanDesc bloomslices_beginscan(Relation index, int nkeys, int norderbys);
extern void bloomslices_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys);
extern void bloomslices_endscan(IndexScanDesc scan);
extern int64 bloomslices_getbitmap(IndexScanDesc scan, TIDBitmap *bitmap);
extern bool bloomslices_gettuple(IndexScanDesc scan, ScanDirection direction);

/* cost.c */
struct PlannerInfo;
struct IndexPath;
extern void bloomslices_costestimate(struct PlannerInfo *root, struct IndexPath *path, double loop_count, Cost *startup,
									 Cost *total, Selectivity *selectivity, double *correlation, double *pages);

/* validate.c */
extern bool bloomslices_validate(Oid opclass);

#endif							/* BF_BLOOMSLICES_H */
