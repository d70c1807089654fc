/*
 * build.c
 *		Building bloomslices from a table.
 *
 * Half of maintenance_work_mem holds rows, until there are as many as the largest slab
 * has, or they go to a temporary file, block by block, so that a slab's block is read
 * from it in long runs.  A fourth transposes.
 */
#include "pg/pg_compat.h"

#include "access/tableam.h"
#include "bloomslices/bloomslices.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pg/index_method.h"
#include "storage/buffile.h"
#include "utils/backend_progress.h"
#include "utils/memutils.h"
#include "value/stored_value.h"

/* A slab of slices takes no more, a list can. */
#define BATCH_ROWS		(BF_TILE_ROWS * BF_MOST_TILES)

/* The phases that pg_stat_progress_create_index shows; a large table has the last two by turns. */
#define PHASE_SCAN		(PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE + 1)
#define PHASE_WRITE		(PHASE_SCAN + 1)

char *
bloomslices_buildphasename(int64 phase)
{
	switch (phase)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return "initializing";
		case PHASE_SCAN:
			return "scanning table";
		case PHASE_WRITE:
			return "writing slices";
		default:
			return NULL;
	}
}

/* total is 0 while nobody knows. */
static void
report_phase(int64 phase, int64 done, int64 total)
{
	const int	fields[] = {
		PROGRESS_CREATEIDX_SUBPHASE, PROGRESS_CREATEIDX_TUPLES_DONE, PROGRESS_CREATEIDX_TUPLES_TOTAL
	};
	const int64 values[] = {phase, done, total};

	pgstat_progress_update_multi_param(lengthof(fields), fields, values);
}

typedef struct Entries
{
	RowEntry   *entries;
	uint32		n;
	uint32		room;
} Entries;

typedef struct Build
{
	PageWriter	writer;
	SlicesShape shape;
	uint64		next_number;
	Slab	   *slabs;
	uint32		nslabs;
	uint32		slabs_room;
	Size		memory;
	double		nrows;
	uint32		ncandidates;
	uint64		nbits;			/* rows with bits */
	uint64		needed;			/* bytes of their filters */
	Entries		without_bits;
	Entries		with_bits;		/* in the file and in memory */
	uint8	   *rows;			/* in memory */
	uint32		nmemory;
	uint32		memory_room;
	BufFile    *file;
	uint32		nruns;			/* in the file, each of memory_room rows */
} Build;

static inline Size
bytes_per_row(const Build *build)
{
	return (Size) build->shape.nblocks * BF_BLOCK_BYTES;
}

static void
append_entry(Entries *list, const RowEntry *entry)
{
	if (list->n == list->room)
	{
		list->room = Max(ROWS_PER_PAGE, 2 * list->room);
		list->entries = list->entries == NULL ? palloc(list->room * sizeof(RowEntry)) :
			repalloc(list->entries, list->room * sizeof(RowEntry));
	}
	list->entries[list->n++] = *entry;
}

static Slab *
add_slab(Build *build, Slab slab)
{
	if (build->nslabs == build->slabs_room)
	{
		build->slabs_room = Max(64, 2 * build->slabs_room);
		build->slabs = build->slabs == NULL ? palloc(build->slabs_room * sizeof(Slab)) :
			repalloc_huge(build->slabs, build->slabs_room * sizeof(Slab));
	}
	slab.number = build->next_number++;
	build->slabs[build->nslabs] = slab;
	return &build->slabs[build->nslabs++];
}

static void
write_list(Build *build)
{
	Entries    *list = &build->without_bits;
	uint32		npages = (list->n + ROWS_PER_PAGE - 1) / ROWS_PER_PAGE;
	Slab		new_slab = {.kind = SLAB_LIST, .tiles = npages};
	Slab	   *slab;

	if (list->n == 0)
		return;
	slab = add_slab(build, new_slab);
	write_slab(&build->writer, slab, build->shape.nblocks, list->entries, 0, list->n, false, NULL, NULL);
	list->n = 0;
}

pg_noreturn static void
report_file(void)
{
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not use a temporary file of a bloomslices build: %m")));
}

static void
spill_rows(Build *build)
{
	if (build->file == NULL)
		build->file = BufFileCreateTemp(false);
	for (uint32 block = 0; block < build->shape.nblocks; block++)
	{
		CHECK_FOR_INTERRUPTS();
		for (uint32 i = 0; i < build->nmemory; i++)
			BufFileWrite(build->file, build->rows + i * bytes_per_row(build) + (Size) block * BF_BLOCK_BYTES,
						 BF_BLOCK_BYTES);
	}
	build->nruns++;
	build->nmemory = 0;
}

static void
read_run(Build *build, uint32 run, uint32 block, uint32 first, uint32 n, uint8 *rows)
{
	off_t		offset = ((off_t) run * build->shape.nblocks + block) * build->memory_room + first;
	Size		size = (Size) n * BF_BLOCK_BYTES;

	if (BufFileSeek(build->file, 0, offset * BF_BLOCK_BYTES, SEEK_SET) != 0 ||
		BufFileRead(build->file, rows, size) != size)
		report_file();
}

static void
read_memory(const Build *build, uint32 block, uint32 first, uint32 n, uint8 *rows)
{
	const uint8 *from = build->rows + first * bytes_per_row(build) + (Size) block * BF_BLOCK_BYTES;

	for (uint32 i = 0; i < n; i++)
		memcpy(rows + i * BF_BLOCK_BYTES, from + i * bytes_per_row(build), BF_BLOCK_BYTES);
}

/* A ReadRows.  A row counts as written in proportion to its blocks. */
static void
read_rows(void *state, uint32 block, uint64 first, uint32 n, uint8 *rows)
{
	Build	   *build = state;
	uint64		written = first + (uint64) n * block / build->shape.nblocks;

	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, (int64) written);
	while (n > 0)
	{
		uint32		run = (uint32) (first / build->memory_room);
		uint32		from = (uint32) (first % build->memory_room);
		uint32		some = Min(n, build->memory_room - from);

		CHECK_FOR_INTERRUPTS();
		if (run < build->nruns)
			read_run(build, run, block, from, some, rows);
		else
			read_memory(build, block, from, some, rows);
		rows += some * BF_BLOCK_BYTES;
		first += some;
		n -= some;
	}
}

static void
write_rows(Build *build)
{
	Entries    *list = &build->with_bits;
	bool		few = list->n < FEW_ROWS;
	uint32		taken;

	report_phase(PHASE_WRITE, 0, list->n);
	for (uint32 first = 0; first < list->n; first += taken)
	{
		uint32		left = list->n - first;
		Slab	   *slab = add_slab(build, choose_slab(build->shape.nblocks, left, build->memory / 4, few, &taken));

		write_slab(&build->writer, slab, build->shape.nblocks, list->entries + first, first, taken,
				   slab->kind == SLAB_RAW, read_rows, build);
	}
	if (build->file != NULL)
		BufFileClose(build->file);
	build->file = NULL;
	build->nruns = 0;
	build->nmemory = 0;
	list->n = 0;
}

/*
 * Does the size that the storage parameters name suit the filters?  Asked for each row,
 * because a temporary file could fill the disk, too.
 */
static void
check_reserve(Build *build, const bf_filter *filter)
{
	uint64		bytes = ++build->nbits * bytes_per_row(build);

	build->needed += filter->params.m / 8;
	if (bytes > UNQUESTIONED_BYTES && bytes / MAX_RESERVE > build->needed &&
		slices_shape_option(build->writer.index).nblocks > 0)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("bloomslices index \"%s\" would take %s for " UINT64_FORMAT " filters, which need %s",
						RelationGetRelationName(build->writer.index), pretty_size(bytes), build->nbits,
						pretty_size(build->needed)),
				 errdetail("Above 1 GB, an index may take %d times what the filters need.", MAX_RESERVE),
				 errhint("Set expected_items to the number of elements for which the filters were made, or reset it.")));
}

/* Without filters nobody can know: a notice names the size that a slip of the pen would have. */
static void
announce_reserve(const Build *build)
{
	uint64		bytes = (uint64) slices_shape_option(build->writer.index).nblocks * BF_BLOCK_BYTES;

	if (build->nbits == 0 && bytes > UNQUESTIONED_BYTES / MAX_RESERVE)
		ereport(NOTICE,
				(errmsg("bloomslices index \"%s\" takes %s for each filter",
						RelationGetRelationName(build->writer.index), pretty_size(bytes)),
				 errdetail("Its expected_items says so, and its table has no filter.")));
}

static void
add_row_with_bits(Build *build, RowEntry *entry, const bf_filter *filter)
{
	check_reserve(build, filter);
	if (build->rows == NULL)
	{
		build->memory_room = Min(Max(build->memory / 2 / bytes_per_row(build), 1), BATCH_ROWS);
		build->rows = allocate_large(CurrentMemoryContext, build->memory_room * bytes_per_row(build));
	}
	if (build->nmemory == build->memory_room)
		spill_rows(build);
	slices_row_bits(&build->shape, filter, build->rows + build->nmemory * bytes_per_row(build));
	build->nmemory++;
	append_entry(&build->with_bits, entry);
	if (build->with_bits.n == BATCH_ROWS)
	{
		write_rows(build);
		report_phase(PHASE_SCAN, (int64) build->nrows, 0);
	}
}

/* filter is NULL for a null. */
static void
add_row(Build *build, ItemPointer tid, const bf_filter *filter)
{
	RowEntry	entry = {.tid = *tid, .kind = ROW_NULL};

	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, (int64) ++build->nrows);
	if (filter != NULL)
		entry.kind = slices_row_bits(&build->shape, filter, NULL);
	if (kind_has_bits(entry.kind))
		add_row_with_bits(build, &entry, filter);
	else
	{
		build->ncandidates += entry.kind == ROW_CANDIDATE;
		append_entry(&build->without_bits, &entry);
		if (build->without_bits.n == BATCH_ROWS)
			write_list(build);
	}
}

static void
add_tuple(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	Build	   *build = arg;
	bf_filter	filter;
	BloomValue *value;

	if (isnull[0])
	{
		add_row(build, tid, NULL);
		return;
	}
	value = open_value(values[0], BF_FILTER, &filter);
	/* the sample may have had none that gives a shape */
	complete_shape(&build->shape, &filter);
	add_row(build, tid, &filter);
	close_value(values[0], value);
}

static void
write_directory(Relation index, ForkNumber fork, SlicesMeta *meta, BlockNumber first, const Slab *slabs, uint32 nslabs)
{
	meta->ndirectory = directory_pages_for(nslabs);
	if (meta->ndirectory > MAX_DIRECTORY_PAGES)
		report_too_large(index);
	for (uint32 i = 0; i < meta->ndirectory; i++)
		meta->directory_pages[i] = first + i;
	count_slabs(&meta->counts, slabs, nslabs);
	meta->directory = meta->next_number++;
	extend_slices(index, fork, first + meta->ndirectory);
	write_slices_directory(index, fork, first, meta->ndirectory, meta->directory, slabs, nslabs);
	write_new_slices_meta(index, fork, meta);
}

static void
build_slices(Relation heap, Relation index, struct IndexInfo *info, IndexBuildResult *result)
{
	Build	   *build = palloc0(sizeof(Build));
	SlicesMeta *meta = palloc0(sizeof(SlicesMeta));

	build->writer.index = index;
	build->writer.next = SLICES_META_PAGE + 1;
	build->shape = sample_slices_shape(heap, index, info);
	build->next_number = 1;
	build->memory = (Size) maintenance_work_mem * 1024;
	report_phase(PHASE_SCAN, 0, 0);
	result->heap_tuples = table_index_build_scan(heap, index, info, true, true, add_tuple, build, NULL);
	announce_reserve(build);
	write_rows(build);
	write_list(build);
	result->index_tuples = build->nrows;
	meta->shape = build->shape;
	meta->next_number = build->next_number;
	meta->candidates = build->ncandidates;
	write_directory(index, MAIN_FORKNUM, meta, build->writer.next, build->slabs, build->nslabs);
}

/* One command builds the indexes of all partitions, so each build frees its memory. */
IndexBuildResult *
bloomslices_build(Relation heap, Relation index, struct IndexInfo *info)
{
	IndexBuildResult *result = palloc0(sizeof(*result));
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "bloomslices build", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index));
	build_slices(heap, index, info, result);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return result;
}

void
bloomslices_buildempty(Relation index)
{
	SlicesMeta *meta = palloc0(sizeof(SlicesMeta));

	meta->shape = slices_shape_option(index);
	meta->next_number = 1;
	write_directory(index, INIT_FORKNUM, meta, SLICES_META_PAGE + 1, NULL, 0);
	pfree(meta);
}
