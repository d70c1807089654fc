/*
 * directory.c
 *		Which slabs an index has, and where.
 *
 * An insert appends an entry in place.  A merge writes a new directory and then
 * replaces the metapage: see README, Operations.
 */
#include "pg/pg_compat.h"

#include "access/generic_xlog.h"
#include "bloomslices/bloomslices.h"
#include "core/hash.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"

#define MAX_SLABS		(MAX_DIRECTORY_PAGES * SLABS_PER_PAGE)

static inline Slab *
slabs_of_page(Page page)
{
	return (Slab *) slices_contents(page);
}

static uint32
checksum_of(const Slab *slabs, uint32 n)
{
	return (uint32) bf_hash_bytes(slabs, n * sizeof(Slab), 0);
}

static void
update_directory_page(Page page, uint32 used)
{
	SlicesPageFields *fields = slices_fields(page);

	fields->used = used;
	fields->checksum = checksum_of(slabs_of_page(page), used);
	((PageHeader) page)->pd_lower = SLICES_OFFSET + used * sizeof(Slab);
}

uint32
initial_tiles(SlabKind kind, uint32 nblocks)
{
	return kind == SLAB_PACKED ? packed_rows(nblocks) : 1;
}

uint32
slab_pages(SlabKind kind, uint32 tiles, uint32 nblocks)
{
	Slab		slab = {.kind = kind, .tiles = tiles};

	switch (kind)
	{
		case SLAB_LIST:
			return rows_pages_of(&slab);
		case SLAB_RAW:
			return 1 + (nblocks + BF_TILE_ROWS - 1) / BF_TILE_ROWS;
		case SLAB_PACKED:
			return (unit_of_block(&slab, nblocks) + BF_TILE_ROWS - 1) / BF_TILE_ROWS;
		default:
			return rows_pages_of(&slab) + nblocks * tiles;
	}
}

static bool
is_valid_slab(const Slab *slab, uint32 nblocks)
{
	uint64		end = (uint64) slab->first + slab->npages;
	bool		valid = slab->first > SLICES_META_PAGE && end <= MaxBlockNumber &&
		slab->has_flagged <= (slab->kind == SLAB_SLICES);

	switch (slab->kind)
	{
		case SLAB_FREE:
			return valid;
		case SLAB_LIST:
			return valid && slab->tiles > 0 && slab->tiles <= PG_UINT32_MAX / ROWS_PER_PAGE &&
				slab->npages == slab->tiles;
		case SLAB_TILE:
		case SLAB_RAW:
		case SLAB_PACKED:
			valid = valid && slab->tiles == initial_tiles(slab->kind, nblocks);
			break;
		case SLAB_SLICES:
			valid = valid && slab->tiles >= BF_LEAST_TILES && slab->tiles <= BF_MOST_TILES &&
				(slab->tiles & (slab->tiles - 1)) == 0;
			break;
		default:
			return false;
	}
	return valid && nblocks > 0 && slab->npages == slab_pages(slab->kind, slab->tiles, nblocks);
}

/* Copies a page's entries; false if it is not that page, or damaged. */
static bool
copy_entries(Directory *directory, Page page, uint32 number)
{
	const SlicesPageFields *fields = slices_fields(page);
	const Slab *slabs = slabs_of_page(page);

	if (!is_slices_page(page, PAGE_DIRECTORY, directory->meta.directory, number) ||
		fields->checksum != checksum_of(slabs, fields->used))
		return false;
	for (uint32 i = 0; i < fields->used; i++)
	{
		if (!is_valid_slab(&slabs[i], directory->meta.shape.nblocks))
			return false;
		directory->slabs[directory->nslabs++] = slabs[i];
	}
	directory->used[number] = fields->used;
	return true;
}

/*
 * Reads the pages that a copy of the metapage names; InvalidBlockNumber, or the first bad one.
 * What a merge removes without replacement has been on them.
 */
static BlockNumber
read_entries(Relation index, Directory *directory, Snapshot snapshot)
{
	const SlicesMeta *meta = &directory->meta;
	const DirectoryEnd *before = &directory->before;
	Size		most = meta->ndirectory - before->nfull + 1;	/* pages */

	directory->nslabs = 0;
	directory->slabs = MemoryContextAllocHuge(CurrentMemoryContext, most * SLABS_PER_PAGE * sizeof(Slab));
	directory->used = palloc0(meta->ndirectory * sizeof(uint32));
	for (uint32 i = 0; i < meta->ndirectory; i++)
	{
		Buffer		buffer;
		bool		valid;

		if (i < before->nfull && i != before->free_page)
			continue;
		CHECK_FOR_INTERRUPTS();
		buffer = ReadBuffer(index, meta->directory_pages[i]);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		test_for_old_snapshot(snapshot, index, BufferGetPage(buffer));
		valid = copy_entries(directory, BufferGetPage(buffer), i);
		UnlockReleaseBuffer(buffer);
		if (!valid)
			return meta->directory_pages[i];
	}
	return InvalidBlockNumber;
}

void
free_slices_directory(Directory *directory)
{
	pfree(directory->slabs);
	pfree(directory->used);
	pfree(directory);
}

/* A page that is not as expected means damage only if the metapage is still the same. */
Directory *
read_slices_directory(Relation index, Snapshot snapshot)
{
	Directory  *directory = palloc(sizeof(Directory));

	memset(&directory->before, 0, sizeof(DirectoryEnd));
	read_slices_meta(index, &directory->meta);
	for (;;)
	{
		SlicesMeta	was = directory->meta;
		BlockNumber bad = read_entries(index, directory, snapshot);

		if (!BlockNumberIsValid(bad))
			return directory;
		read_slices_meta(index, &directory->meta);
		if (directory->meta.directory == was.directory && directory->meta.shape.nblocks == was.shape.nblocks)
			report_slices_damage(index, bad);
		pfree(directory->slabs);
		pfree(directory->used);
		CHECK_FOR_INTERRUPTS();
	}
}

static bool
is_being_merged(const SlicesMeta *meta, const Slab *range)
{
	return range->first < meta->merge_first + meta->merge_pages && meta->merge_first < range->first + range->npages;
}

static inline bool
is_free_range(const Directory *directory, const Slab *slab, uint32 npages)
{
	return slab->kind == SLAB_FREE && slab->npages >= npages && !is_being_merged(&directory->meta, slab);
}

/* Adds what a page that is full has to what a writer remembers, which chose the first free range. */
static void
remember_page(const Directory *directory, const Slab *slabs, uint32 page, uint32 npages, DirectoryEnd *end)
{
	uint32		most = 0;
	bool		fits = false;

	for (uint32 i = 0; i < SLABS_PER_PAGE; i++)
	{
		end->end = Max(end->end, slabs[i].first + slabs[i].npages);
		fits |= is_free_range(directory, &slabs[i], npages);
		if (slabs[i].kind == SLAB_FREE)
			most = Max(most, slabs[i].npages);
	}
	if (fits && end->free_page == PG_UINT32_MAX)
		end->free_page = page;
	else
		end->free_pages = Max(end->free_pages, most);
}

/* Remembers the pages that are full; *end has been that before the copy. */
static void
remember_end(const Directory *directory, uint32 npages, DirectoryEnd *end)
{
	const Slab *slabs = directory->slabs;

	if (directory->before.nfull == 0)
		*end = (DirectoryEnd)
	{
		.directory = directory->meta.directory, .free_page = PG_UINT32_MAX
	};
	for (uint32 page = 0; page < directory->meta.ndirectory; page++)
	{
		if (page >= end->nfull)
		{
			if (directory->used[page] < SLABS_PER_PAGE)
				break;
			remember_page(directory, slabs, page, npages, end);
			end->nfull = page + 1;
		}
		slabs += directory->used[page];
	}
}

Directory *
read_directory_end(Relation index, DirectoryEnd *end, uint32 npages)
{
	Directory  *directory = palloc0(sizeof(Directory));
	bool		complete = false;

	read_slices_meta(index, &directory->meta);
	if (end->directory == directory->meta.directory && npages > end->free_pages)
	{
		directory->before = *end;
		complete = !BlockNumberIsValid(read_entries(index, directory, NULL));
		if (!complete)
		{
			pfree(directory->slabs);
			pfree(directory->used);
		}
	}
	if (!complete)
	{
		pfree(directory);
		directory = read_slices_directory(index, NULL);
	}
	remember_end(directory, npages, end);
	return directory;
}

void
count_slabs(SlabCounts *counts, const Slab *slabs, uint32 nslabs)
{
	for (uint32 i = 0; i < nslabs; i++)
	{
		if (slabs[i].kind == SLAB_LIST)
			counts->list_pages += slabs[i].npages;
		else if (slabs[i].kind == SLAB_RAW || slabs[i].kind == SLAB_PACKED)
			counts->raw++;
		else if (slabs[i].kind != SLAB_FREE)
			counts->tiled[pg_leftmost_one_pos32(slabs[i].tiles)]++;
	}
}

const Slab *
last_slab(const Directory *directory, SlabKind kind)
{
	for (uint32 i = directory->nslabs; i > 0; i--)
	{
		if (directory->slabs[i - 1].kind == kind)
			return &directory->slabs[i - 1];
	}
	return NULL;
}

void
lock_slices_metapage(Relation index)
{
	LockPage(index, SLICES_META_PAGE, ExclusiveLock);
}

Directory *
lock_slices_directory(Relation index)
{
	lock_slices_metapage(index);
	return read_slices_directory(index, NULL);
}

void
unlock_slices_directory(Relation index, Directory *directory)
{
	UnlockPage(index, SLICES_META_PAGE, ExclusiveLock);
	free_slices_directory(directory);
}

/* Writes the metapage of a locked directory, in one record. */
static void
write_meta(Relation index, const SlicesMeta *meta)
{
	Buffer		buffer = ReadBuffer(index, SLICES_META_PAGE);
	GenericXLogState *state;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	state = GenericXLogStart(index);
	write_slices_meta(GenericXLogRegisterBuffer(state, buffer, 0), meta);
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
}

void
set_candidates(Relation index, uint32 candidates)
{
	Directory  *directory = lock_slices_directory(index);

	directory->meta.candidates = candidates;
	write_meta(index, &directory->meta);
	unlock_slices_directory(index, directory);
}

void
set_slices_shape(Relation index, Directory *directory, const SlicesShape *shape)
{
	directory->meta.shape = *shape;
	write_meta(index, &directory->meta);
}

/* The block after all that are in use. */
static BlockNumber
end_of_pages(const Directory *directory)
{
	const SlicesMeta *meta = &directory->meta;
	BlockNumber end = Max(SLICES_META_PAGE + 1, meta->merge_first + meta->merge_pages);

	end = Max(end, directory->before.end);
	for (uint32 i = 0; i < meta->ndirectory; i++)
		end = Max(end, meta->directory_pages[i] + 1);
	for (uint32 i = 0; i < directory->nslabs; i++)
		end = Max(end, directory->slabs[i].first + directory->slabs[i].npages);
	return end;
}

/* Forgets the reserved range.  One of no pages would still match a free range around its place. */
static void
clear_merge(SlicesMeta *meta)
{
	meta->merge_first = 0;
	meta->merge_pages = 0;
}

void
report_too_large(Relation index)
{
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("bloomslices index \"%s\" would be too large", RelationGetRelationName(index)),
			 errhint("Partition the table, or use smaller filters.")));
}

/* Makes the file reach to the end of a range. */
static void
allocate_to_end(Relation index, BlockNumber first, uint64 npages)
{
	if (first + npages > MaxBlockNumber)
		report_too_large(index);
	extend_slices(index, MAIN_FORKNUM, (BlockNumber) (first + npages));
}

/* Finds room: in a free range, whose entry is *free, or at the end, then *free is NULL. */
static BlockNumber
find_room(Relation index, const Directory *directory, uint64 npages, Slab **free)
{
	BlockNumber first = end_of_pages(directory);

	*free = NULL;
	for (uint32 i = 0; i < directory->nslabs && *free == NULL; i++)
	{
		Slab	   *slab = &directory->slabs[i];

		if (is_free_range(directory, slab, npages))
		{
			*free = slab;
			first = slab->first;
		}
	}
	allocate_to_end(index, first, npages);
	return first;
}

/* Makes the first pages of a slab, without contents. */
static void
make_empty_pages(Relation index, const Slab *slab, uint32 npages)
{
	for (uint32 number = 0; number < npages; number++)
	{
		SlicesPageFields fields = {
			.kind = slab_page_kind(slab, number), .owner = slab->number, .number = number
		};

		CHECK_FOR_INTERRUPTS();
		write_slices_page(index, MAIN_FORKNUM, slab->first + number, NULL, &fields, NULL, 0);
	}
}

/* Where entry i of the directory is: the number of the page, and the index in it. */
static uint32
page_of_entry(const Directory *directory, uint32 *i)
{
	uint32		number = 0;

	while (*i >= directory->used[number])
		*i -= directory->used[number++];
	return number;
}

pg_noreturn static void
report_too_many_parts(Relation index)
{
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("bloomslices index \"%s\" has too many parts", RelationGetRelationName(index)),
			 errhint("VACUUM merges them.")));
}

/* The directory page that takes the next entry; a new one if all are full. */
static uint32
page_with_room(Relation index, const Directory *directory)
{
	uint32		number = directory->before.nfull;

	while (number < directory->meta.ndirectory && directory->used[number] == SLABS_PER_PAGE)
		number++;
	if (number == MAX_DIRECTORY_PAGES)
		report_too_many_parts(index);
	return number;
}

static void
write_directory_page(Relation index, ForkNumber fork, BlockNumber block, uint64 directory, uint32 number,
					 const Slab *slabs, uint32 nslabs)
{
	SlicesPageFields fields = {
		.kind = PAGE_DIRECTORY, .owner = directory, .number = number, .used = nslabs,
		.checksum = checksum_of(slabs, nslabs)
	};

	write_slices_page(index, fork, block, NULL, &fields, slabs, nslabs * sizeof(Slab));
}

/* Makes a page with the entry of a slab.  It belongs to the directory once the metapage names it. */
static void
add_directory_page(Relation index, Directory *directory, const Slab *slab)
{
	SlicesMeta *meta = &directory->meta;

	/* behind the new slab, if that is at the end */
	BlockNumber block = Max(end_of_pages(directory), slab->first + slab->npages);

	allocate_to_end(index, block, 1);
	write_directory_page(index, MAIN_FORKNUM, block, meta->directory, meta->ndirectory, slab, 1);
	meta->directory_pages[meta->ndirectory++] = block;
}

/* Registers a pinned page, and locks it. */
static Page
register_page(GenericXLogState *state, Buffer buffer)
{
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	return GenericXLogRegisterBuffer(state, buffer, 0);
}

static Buffer
read_directory_page(Relation index, const SlicesMeta *meta, uint32 number)
{
	return ReadBuffer(index, meta->directory_pages[number]);
}

/*
 * Writes an entry to directory page `number`, and the remainder of the free range that
 * the slab is from, in one record with the metapage.
 */
static void
publish_slab(Relation index, Directory *directory, uint32 number, const Slab *slab, const Slab *free)
{
	SlicesMeta *meta = &directory->meta;
	bool		make = number == meta->ndirectory;
	uint32		free_entry = free == NULL ? 0 : (uint32) (free - directory->slabs);
	uint32		free_page = free == NULL ? number : page_of_entry(directory, &free_entry);
	Buffer		buffers[3] = {ReadBuffer(index, SLICES_META_PAGE), InvalidBuffer, InvalidBuffer};
	GenericXLogState *state;
	Page		page;

	/* nobody waits for I/O: the pages are read before they are locked */
	if (make)
		add_directory_page(index, directory, slab);
	else
		buffers[1] = read_directory_page(index, meta, number);
	if (free_page != number)
		buffers[2] = read_directory_page(index, meta, free_page);
	meta->next_number++;
	count_slabs(&meta->counts, slab, 1);
	state = GenericXLogStart(index);
	write_slices_meta(register_page(state, buffers[0]), meta);
	if (!make)
	{
		page = register_page(state, buffers[1]);
		if (free != NULL && free_page == number)
			slabs_of_page(page)[free_entry] = *free;
		slabs_of_page(page)[directory->used[number]] = *slab;
		update_directory_page(page, directory->used[number] + 1);
	}
	if (free_page != number)
	{
		page = register_page(state, buffers[2]);
		slabs_of_page(page)[free_entry] = *free;
		update_directory_page(page, directory->used[free_page]);
	}
	GenericXLogFinish(state);
	for (int i = 0; i < 3; i++)
	{
		if (BufferIsValid(buffers[i]))
			UnlockReleaseBuffer(buffers[i]);
	}
}

Slab
append_slab(Relation index, Directory *directory, SlabKind kind)
{
	Slab		slab = {.number = directory->meta.next_number, .kind = kind};
	uint32		number = page_with_room(index, directory);
	Slab	   *free;

	slab.tiles = initial_tiles(kind, directory->meta.shape.nblocks);
	slab.npages = slab_pages(kind, slab.tiles, directory->meta.shape.nblocks);
	slab.first = find_room(index, directory, slab.npages, &free);
	if (free != NULL)
	{
		free->first += slab.npages;
		free->npages -= slab.npages;
	}
	/* a raw row's bits pages come with its bits */
	make_empty_pages(index, &slab, kind == SLAB_RAW ? 1 : slab.npages);
	publish_slab(index, directory, number, &slab, free);
	return slab;
}

BlockNumber
reserve_merge_pages(Relation index, uint64 npages, uint32 nslabs, uint64 *number)
{
	Directory  *directory = lock_slices_directory(index);
	BlockNumber first;
	Slab	   *free;

	/* the range of a cancelled merge is free, and serves this one if it can */
	if (directory->meta.merge_pages >= npages)
		first = directory->meta.merge_first;
	else
	{
		clear_merge(&directory->meta);
		first = find_room(index, directory, npages, &free);
	}
	directory->meta.merge_first = first;
	directory->meta.merge_pages = (uint32) npages;
	*number = directory->meta.next_number;
	directory->meta.next_number += nslabs;
	write_meta(index, &directory->meta);
	unlock_slices_directory(index, directory);
	return first;
}

uint32
directory_pages_for(uint32 nslabs)
{
	return Max(1, (nslabs + SLABS_PER_PAGE - 1) / SLABS_PER_PAGE);
}

void
write_slices_directory(Relation index, ForkNumber fork, BlockNumber first, uint32 npages, uint64 number,
					   const Slab *slabs, uint32 nslabs)
{
	for (uint32 i = 0; i < npages; i++)
	{
		uint32		from = Min(i * SLABS_PER_PAGE, nslabs);

		write_directory_page(index, fork, first + i, number, i, slabs + from, Min(nslabs - from, SLABS_PER_PAGE));
	}
}

static int
compare_slabs(const void *a, const void *b)
{
	BlockNumber x = ((const Slab *) a)->first;
	BlockNumber y = ((const Slab *) b)->first;

	return x < y ? -1 : x > y;
}

/* Adds an entry for each gap between the slabs and the directory's own pages. */
static uint32
append_gaps(Slab *slabs, uint32 nslabs, const Slab *own)
{
	Slab	   *sorted = palloc((nslabs + 1) * sizeof(Slab));
	BlockNumber next = SLICES_META_PAGE + 1;
	uint32		n = nslabs;

	memcpy(sorted, slabs, nslabs * sizeof(Slab));
	sorted[nslabs] = *own;
	qsort(sorted, nslabs + 1, sizeof(Slab), compare_slabs);
	for (uint32 i = 0; i <= nslabs; i++)
	{
		if (sorted[i].first > next)
			slabs[n++] = (Slab)
		{
			.first = next, .npages = sorted[i].first - next, .kind = SLAB_FREE, .tiles = 1
		};
		next = sorted[i].first + sorted[i].npages;
	}
	pfree(sorted);
	return n;
}

/* The targets come first, because writers add rows to the last tile of the directory. */
static uint32
replace_slabs(const Directory *directory, const Slab *sources, uint32 nsources, const Slab *targets, uint32 ntargets,
			  Slab *slabs)
{
	uint32		n = ntargets;
	uint32		next = 0;

	memcpy(slabs, targets, ntargets * sizeof(Slab));
	for (uint32 i = 0; i < directory->nslabs; i++)
	{
		const Slab *slab = &directory->slabs[i];

		if (next < nsources && sources[next].number == slab->number)
			next++;
		else if (slab->kind != SLAB_FREE)
			slabs[n++] = *slab;
	}
	if (next < nsources)
		elog(ERROR, "slabs vanished during a merge");
	return n;
}

/* Others can use the freed pages at once: see README, What an error, a cancel or a crash leaves. */
void
swap_slabs(Relation index, const Slab *sources, uint32 nsources, const Slab *targets, uint32 ntargets)
{
	Directory  *directory = lock_slices_directory(index);
	SlicesMeta *meta = &directory->meta;
	Slab	   *slabs = MemoryContextAllocHuge(CurrentMemoryContext,
											   2 * (Size) (directory->nslabs + ntargets + 1) * sizeof(Slab));
	uint32		nslabs = replace_slabs(directory, sources, nsources, targets, ntargets, slabs);
	Slab		own = {.npages = directory_pages_for(2 * nslabs + 1)};
	Slab	   *free;

	if (nslabs > MAX_SLABS)
		report_too_many_parts(index);
	own.npages = Min(own.npages, MAX_DIRECTORY_PAGES);
	own.first = find_room(index, directory, own.npages, &free);
	/* free pages that do not fit are forgotten until the next swap */
	nslabs = Min(append_gaps(slabs, nslabs, &own), MAX_SLABS);
	meta->directory = meta->next_number++;
	write_slices_directory(index, MAIN_FORKNUM, own.first, own.npages, meta->directory, slabs, nslabs);
	memset(&meta->counts, 0, sizeof(meta->counts));
	count_slabs(&meta->counts, slabs, nslabs);
	meta->ndirectory = own.npages;
	for (uint32 i = 0; i < own.npages; i++)
		meta->directory_pages[i] = own.first + i;
	clear_merge(meta);
	write_meta(index, meta);
	pfree(slabs);
	unlock_slices_directory(index, directory);
}
