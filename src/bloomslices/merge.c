/*
 * merge.c
 *		Merging slabs into greater ones, without dead rows.
 *
 * The new slabs are written to pages that the metapage reserves, and published by one
 * change of it: see README, Operations.
 */
#include "pg/pg_compat.h"

#include "bloomslices/bloomslices.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "postmaster/autovacuum.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"

#define GROWTH				4

/* Rows of a sliced source that are unsliced at once: 32 kB. */
#define PART_ROWS			512

/* That many small lists become one; the limits are in pages. */
#define LISTS_TO_JOIN		16
#define SMALL_LIST			16
#define MOST_LIST			1024

/* A slab that a merge may take. */
typedef struct Source
{
	Slab		slab;
	uint32		stored;			/* rows, dead or alive */
	uint32		live;
	bool		chosen;
	/* of chosen ones */
	uint64		first;			/* of its rows among those of all sources */
	uint16	   *rows;			/* which are alive, unless it is a list */
	uint8	   *blocks;			/* of a raw one: the next blocks */
} Source;

typedef struct Merge
{
	Relation	index;
	SlicesShape shape;
	BufferAccessStrategy strategy;
	Size		memory;			/* for a block of all rows of a target, twice */
	Source	   *sources;		/* in the order of the directory */
	uint32		nsources;
	uint64		nrows;			/* of the chosen ones */
	RowEntry   *entries;
	uint8	   *slices;			/* a block of a sliced source */
	uint8	   *part;			/* and of PART_ROWS of its rows */
	uint32		raw_blocks;		/* that are read at once of a raw source */
} Merge;

static Buffer
lock_source_page(Merge *merge, const Slab *slab, uint32 number)
{
	Buffer		buffer = try_slab_page(merge->index, slab, number, BUFFER_LOCK_SHARE, merge->strategy);

	if (!BufferIsValid(buffer))
		report_slices_damage(merge->index, slab->first + number);
	return buffer;
}

static uint32
count_live(Page page)
{
	uint32		n = 0;

	for (uint32 i = 0; i < slices_fields(page)->used; i++)
		n += slices_rows(page)[i].kind != ROW_ABSENT;
	return n;
}

/* Is a slab one to which no row can be added any more, nor published? */
static bool
is_final(const Slab *slab, Page last_page)
{
	uint32		room = Min(rows_of_slab(slab), ROWS_PER_PAGE);

	return slab->kind == SLAB_SLICES || slices_fields(last_page)->used == room;
}

/* False if writers may be at work in the slab. */
static bool
survey_slab(Merge *merge, Source *source)
{
	const Slab *slab = &source->slab;
	bool		final = false;

	if (slab->kind != SLAB_LIST && slab->kind != SLAB_SLICES)
	{
		Buffer		buffer = lock_source_page(merge, slab, 0);

		final = is_final(slab, BufferGetPage(buffer));
		UnlockReleaseBuffer(buffer);
		if (!final || !ConditionalLockPage(merge->index, slab->first, ExclusiveLock))
			return false;
		UnlockPage(merge->index, slab->first, ExclusiveLock);
	}
	for (uint32 number = 0; number < rows_pages_of(slab); number++)
	{
		Buffer		buffer = lock_source_page(merge, slab, number);
		Page		page = BufferGetPage(buffer);

		source->stored += slices_fields(page)->used;
		source->live += count_live(page);
		final = is_final(slab, page);
		UnlockReleaseBuffer(buffer);
	}
	return final;
}

/* Finds the slabs that can be merged. */
static void
survey(Merge *merge)
{
	Directory  *directory = read_slices_directory(merge->index, NULL);

	merge->shape = directory->meta.shape;
	merge->sources = MemoryContextAllocHuge(CurrentMemoryContext, (Size) directory->nslabs * sizeof(Source) + 1);
	merge->nsources = 0;
	for (uint32 i = 0; i < directory->nslabs; i++)
	{
		Source		source = {.slab = directory->slabs[i]};

		vacuum_delay();
		if (source.slab.kind != SLAB_FREE && survey_slab(merge, &source))
			merge->sources[merge->nsources++] = source;
	}
	free_slices_directory(directory);
}

static inline bool
has_bits(const Source *source)
{
	return source->slab.kind != SLAB_LIST;
}

/* Are more than a fourth of its rows dead?  choose_small() takes care of tiles. */
static inline bool
is_worn(const Source *source)
{
	return source->slab.kind == SLAB_SLICES && source->live < source->stored / 4 * 3;
}

static bool
choose_dead(Merge *merge)
{
	bool		any = false;

	for (uint32 i = 0; i < merge->nsources; i++)
	{
		merge->sources[i].chosen = merge->sources[i].live == 0;
		any |= merge->sources[i].chosen;
	}
	return any;
}

static bool
may_grow_to(const Source *source, uint32 tiles)
{
	uint32		own = source->slab.kind == SLAB_SLICES ? source->slab.tiles : 1;

	return has_bits(source) && (own * GROWTH <= tiles || (is_worn(source) && own <= tiles));
}

/* Chooses sources for a slab of so many tiles, if they fill it. */
static bool
choose_for(Merge *merge, uint32 tiles)
{
	uint64		room = bf_sliced_rows(tiles);
	uint64		live = 0;
	uint32		taken = 0;

	for (uint32 i = 0; i < merge->nsources; i++)
	{
		Source	   *source = &merge->sources[i];

		source->chosen = may_grow_to(source, tiles) && live + source->live <= room;
		if (source->chosen)
			live += source->live;
	}
	return live > 0 && choose_slab(merge->shape.nblocks, live, merge->memory, false, &taken).tiles == tiles;
}

static bool
choose_greatest(Merge *merge)
{
	for (uint32 tiles = BF_MOST_TILES; tiles >= BF_LEAST_TILES; tiles /= 2)
	{
		if (choose_for(merge, tiles))
			return true;
	}
	return false;
}

static bool
choose_worn(Merge *merge)
{
	bool		any = false;

	for (uint32 i = 0; i < merge->nsources; i++)
	{
		merge->sources[i].chosen = !any && is_worn(&merge->sources[i]);
		any |= merge->sources[i].chosen;
	}
	return any;
}

static inline uint32
list_pages_for(uint64 nrows)
{
	return (uint32) ((nrows + ROWS_PER_PAGE - 1) / ROWS_PER_PAGE);
}

/* Lists with many dead rows become shorter, and many small lists become one. */
static bool
choose_lists(Merge *merge, bool worn)
{
	uint32		pages = 0;
	uint32		most = (uint32) Min(MOST_LIST, merge->memory / BF_SLICED_BYTES);
	uint32		nlists = 0;
	uint64		live = 0;

	for (uint32 i = 0; i < merge->nsources; i++)
	{
		Source	   *source = &merge->sources[i];
		uint32		tiles = source->slab.tiles;

		source->chosen = !has_bits(source) && (pages == 0 || pages + tiles <= most) &&
			(worn ? source->live < source->stored / 4 * 3 : tiles < SMALL_LIST);
		if (source->chosen)
		{
			pages += tiles;
			live += source->live;
			nlists++;
		}
	}
	return worn ? list_pages_for(live) < pages : nlists >= LISTS_TO_JOIN;
}

/* Appends the live entries of a source to those of the merge, from *n on. */
static void
read_source_entries(Merge *merge, Source *source, uint64 *n)
{
	uint32		live = 0;

	source->first = *n;
	if (has_bits(source))
		source->rows = palloc(source->live * sizeof(uint16) + 1);
	for (uint32 number = 0; number < rows_pages_of(&source->slab); number++)
	{
		Buffer		buffer;
		Page		page;

		vacuum_delay();
		buffer = lock_source_page(merge, &source->slab, number);
		page = BufferGetPage(buffer);
		for (uint32 i = 0; i < slices_fields(page)->used && live < source->live; i++)
		{
			if (slices_rows(page)[i].kind == ROW_ABSENT)
				continue;
			if (has_bits(source))
				source->rows[live] = (uint16) (number * ROWS_PER_PAGE + i);
			live++;
			merge->entries[(*n)++] = slices_rows(page)[i];
		}
		UnlockReleaseBuffer(buffer);
	}
	if (live != source->live)
		elog(ERROR, "rows of bloomslices index \"%s\" vanished during a merge",
			 RelationGetRelationName(merge->index));
}

/* Reads which rows of the chosen sources are alive. */
static void
read_entries(Merge *merge)
{
	uint64		n = 0;

	merge->nrows = 0;
	for (uint32 i = 0; i < merge->nsources; i++)
		merge->nrows += merge->sources[i].chosen ? merge->sources[i].live : 0;
	merge->entries = palloc(merge->nrows * sizeof(RowEntry) + 1);
	for (uint32 i = 0; i < merge->nsources; i++)
	{
		if (merge->sources[i].chosen)
			read_source_entries(merge, &merge->sources[i], &n);
	}
}

static void
copy_page(Merge *merge, const Slab *slab, uint32 number, uint32 offset, Size size, uint8 *to)
{
	Buffer		buffer = lock_source_page(merge, slab, number);

	memcpy(to, slices_contents(BufferGetPage(buffer)) + offset, size);
	UnlockReleaseBuffer(buffer);
}

/* The functions below copy a block of live rows from .. to - 1 of a source. */

static void
read_tile(Merge *merge, const Source *source, uint32 block, uint32 from, uint32 to, uint8 *rows)
{
	Buffer		buffer = lock_source_page(merge, &source->slab, bits_page_of(&source->slab, block, 0));
	const uint8 *blocks = slices_contents(BufferGetPage(buffer)) + block_offset_of(&source->slab, block);

	for (uint32 i = from; i < to; i++, rows += BF_BLOCK_BYTES)
		memcpy(rows, blocks + source->rows[i] * BF_BLOCK_BYTES, BF_BLOCK_BYTES);
	UnlockReleaseBuffer(buffer);
}

/* A raw page has up to 127 blocks, and blocks are read in order. */
static void
read_raw(Merge *merge, const Source *source, uint32 block, uint8 *row)
{
	uint32		in_page = block % BF_TILE_ROWS;
	uint32		ahead = in_page % merge->raw_blocks;

	if (ahead == 0)
		copy_page(merge, &source->slab, bits_page_of(&source->slab, block, 0), in_page * BF_BLOCK_BYTES,
				  Min(merge->raw_blocks, BF_TILE_ROWS - in_page) * BF_BLOCK_BYTES, source->blocks);
	memcpy(row, source->blocks + ahead * BF_BLOCK_BYTES, BF_BLOCK_BYTES);
}

static void
read_slices(Merge *merge, const Source *source, uint32 block, uint32 from, uint32 to, uint8 *rows)
{
	const Slab *slab = &source->slab;
	uint32		number = bits_page_of(slab, block, 0);
	uint32		page_bytes = sliced_page_bytes(slab);
	uint32		i = from;

	for (uint32 page = 0; page < slab->tiles; page++)
		copy_page(merge, slab, number + page, 0, page_bytes, merge->slices + (Size) page * page_bytes);
	while (i < to)
	{
		uint32		first = source->rows[i] / PART_ROWS * PART_ROWS;
		uint32		end = Min(first + PART_ROWS, rows_of_slab(slab));

		bf_unslice_rows(merge->slices + first / 8, slice_bytes_of(slab), end - first, merge->part);
		for (; i < to && source->rows[i] < end; i++, rows += BF_BLOCK_BYTES)
			memcpy(rows, merge->part + (source->rows[i] - first) * BF_BLOCK_BYTES, BF_BLOCK_BYTES);
	}
}

/* A ReadRows of the live rows of all chosen sources. */
static void
read_rows(void *state, uint32 block, uint64 first, uint32 n, uint8 *rows)
{
	Merge	   *merge = state;
	uint64		end = first + n;

	for (uint32 i = 0; i < merge->nsources; i++)
	{
		const Source *source = &merge->sources[i];
		uint64		from = Max(first, source->first);
		uint64		to = Min(end, source->first + source->live);
		uint8	   *part;

		if (!source->chosen || from >= to)
			continue;
		part = rows + (from - first) * BF_BLOCK_BYTES;
		from -= source->first;
		to -= source->first;
		vacuum_delay();
		if (source->slab.kind == SLAB_TILE || source->slab.kind == SLAB_PACKED)
			read_tile(merge, source, block, (uint32) from, (uint32) to, part);
		else if (source->slab.kind == SLAB_RAW)
			read_raw(merge, source, block, part);
		else
			read_slices(merge, source, block, (uint32) from, (uint32) to, part);
	}
}

/* What to make of the rows from one on. */
static Slab
design_target(const Merge *merge, bool lists, uint64 row, uint32 *taken)
{
	if (!lists)
		return choose_slab(merge->shape.nblocks, merge->nrows - row, merge->memory,
						   merge->nrows < FEW_MERGED_ROWS, taken);
	*taken = (uint32) merge->nrows;
	return (Slab)
	{
		.kind = SLAB_LIST, .tiles = list_pages_for(merge->nrows)
	};
}

/* What to make of the chosen rows; *npages is their size. */
static Slab *
design_targets(const Merge *merge, bool lists, uint32 *ntargets, uint64 *npages)
{
	Slab	   *targets;
	uint32		taken;
	uint32		n = 0;

	for (uint64 row = 0; row < merge->nrows; row += taken, n++)
		(void) design_target(merge, lists, row, &taken);
	targets = palloc(n * sizeof(Slab) + 1);
	*ntargets = n;
	*npages = 0;
	n = 0;
	for (uint64 row = 0; row < merge->nrows; row += taken, n++)
	{
		targets[n] = design_target(merge, lists, row, &taken);
		*npages += slab_pages(targets[n].kind, targets[n].tiles, merge->shape.nblocks);
	}
	return targets;
}

/*
 * Chooses packed slabs and tiles, which are too few for slices, if they become much fewer, or
 * much smaller because most rows are dead.
 */
static bool
choose_small(Merge *merge)
{
	uint64		npages = 0;
	uint32		nslabs = 0;
	uint64		new_pages;
	uint32		new_slabs;

	merge->nrows = 0;
	for (uint32 i = 0; i < merge->nsources; i++)
	{
		Source	   *source = &merge->sources[i];

		source->chosen = source->slab.kind == SLAB_TILE || source->slab.kind == SLAB_PACKED;
		if (source->chosen)
		{
			merge->nrows += source->live;
			npages += source->slab.npages;
			nslabs++;
		}
	}
	pfree(design_targets(merge, false, &new_slabs, &new_pages));
	return nslabs > 0 && (new_slabs * GROWTH <= nslabs || new_pages * 2 <= npages);
}

static void
write_targets(Merge *merge, Slab *targets, uint32 ntargets, uint64 npages)
{
	PageWriter	writer = {.index = merge->index, .strategy = merge->strategy};
	uint64		number;
	uint64		row = 0;

	writer.next = reserve_merge_pages(merge->index, npages, ntargets, &number);
	for (uint32 i = 0; i < ntargets; i++)
	{
		uint32		n = (uint32) Min(merge->nrows - row, rows_of_slab(&targets[i]));

		targets[i].number = number + i;
		write_slab(&writer, &targets[i], merge->shape.nblocks, merge->entries + row, row, n, true, read_rows, merge);
		row += n;
	}
}

/*
 * The largest sliced source needs half of what a target does, or more if an earlier merge
 * had more memory.  All raw ones together have a fourth.
 */
static void
allocate_blocks(Merge *merge)
{
	uint32		tiles = 0;
	uint32		nraw = 0;

	for (uint32 i = 0; i < merge->nsources; i++)
	{
		const Source *source = &merge->sources[i];

		if (source->chosen && source->slab.kind == SLAB_SLICES)
			tiles = Max(tiles, source->slab.tiles);
		nraw += source->chosen && source->slab.kind == SLAB_RAW;
	}
	if (tiles > 0)
	{
		merge->slices = palloc((Size) tiles * BF_SLICED_BYTES);
		merge->part = palloc(PART_ROWS * BF_BLOCK_BYTES);
	}
	if (nraw > 0)
		merge->raw_blocks = Max(Min(merge->memory / 4 / nraw / BF_BLOCK_BYTES, BF_TILE_ROWS), 1);
	for (uint32 i = 0; i < merge->nsources; i++)
	{
		if (merge->sources[i].chosen && merge->sources[i].slab.kind == SLAB_RAW)
			merge->sources[i].blocks = palloc(merge->raw_blocks * BF_BLOCK_BYTES);
	}
}

/* Replaces the chosen sources. */
static void
replace_chosen(Merge *merge, bool lists)
{
	Slab	   *sources = palloc(merge->nsources * sizeof(Slab));
	uint32		nchosen = 0;
	uint32		ntargets;
	uint64		npages;
	Slab	   *targets;

	read_entries(merge);
	allocate_blocks(merge);
	targets = design_targets(merge, lists, &ntargets, &npages);
	if (ntargets > 0)
		write_targets(merge, targets, ntargets, npages);
	for (uint32 i = 0; i < merge->nsources; i++)
	{
		if (merge->sources[i].chosen)
			sources[nchosen++] = merge->sources[i].slab;
	}
	swap_slabs(merge->index, sources, nchosen, targets, ntargets);
}

/* In bytes; an autovacuum worker may have a limit of its own. */
static Size
memory_limit(void)
{
	bool		own = MyBackendType == B_AUTOVAC_WORKER && autovacuum_work_mem != -1;

	return (Size) (own ? autovacuum_work_mem : maintenance_work_mem) * 1024;
}

/* Does one step; false if nothing is left to do. */
static bool
merge_some(Relation index, BufferAccessStrategy strategy)
{
	Merge		merge = {.index = index, .strategy = strategy, .memory = memory_limit() / 2};

	survey(&merge);
	if (choose_dead(&merge) || choose_greatest(&merge) || choose_worn(&merge) || choose_small(&merge))
		replace_chosen(&merge, false);
	else if (choose_lists(&merge, true) || choose_lists(&merge, false))
		replace_chosen(&merge, true);
	else
		return false;
	return true;
}

void
merge_slices(Relation index, BufferAccessStrategy strategy)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "bloomslices merge", ALLOCSET_DEFAULT_SIZES);
	MemoryContext before = MemoryContextSwitchTo(context);

	while (merge_some(index, strategy))
		MemoryContextReset(context);
	MemoryContextSwitchTo(before);
	MemoryContextDelete(context);
}
