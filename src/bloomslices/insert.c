/*
 * insert.c
 *		Adding a row to bloomslices.
 *
 * A row is published by its entry, which is written last.  A writer locks the slab from
 * before it reserves a row until it has published it, so that no merge takes the slab: see
 * README, Operations.
 */
#include "pg/pg_compat.h"

#include "access/generic_xlog.h"
#include "bloomslices/bloomslices.h"
#include "miscadmin.h"
#include "pg/page_write.h"
#include "storage/buf_internals.h"
#include "storage/lmgr.h"
#include "storage/predicate.h"

/* One row in this many looks all buffers up, which keeps them from eviction. */
#define ROWS_PER_LOOKUP	16

/* The processor fetches as many pages from memory at once. */
#define PAGES_AHEAD		8

/* What a backend keeps of an index in rd_amcache: the last slab of each kind, which may be gone. */
typedef struct LastSlabs
{
	SlicesShape shape;
	SlabKind	kind;			/* of slabs for rows with bits */
	DirectoryEnd end;
	Slab		slabs[SLAB_PACKED + 1]; /* by kind; SLAB_FREE if there is none */
	/* that have had the pages of a tile, or invalid */
	Buffer		recent[1 + RAW_BLOCKS + PAGES_AHEAD];
} LastSlabs;

/* The kind of slabs for rows with bits; `full` if the packed slabs that there are have no room. */
static SlabKind
kind_for_rows(const SlicesMeta *meta, bool full)
{
	const SlabCounts *counts = &meta->counts;
	bool		few = !full || (counts->raw + 1) * packed_rows(meta->shape.nblocks) <= BF_TILE_ROWS;

	if (meta->shape.nblocks > RAW_BLOCKS)
		return SLAB_RAW;
	for (uint32 i = 0; i < lengthof(counts->tiled); i++)
		few = few && counts->tiled[i] == 0;
	return few ? SLAB_PACKED : SLAB_TILE;
}

static LastSlabs *
remember_slabs(Relation index, const Directory *directory)
{
	LastSlabs  *last = index->rd_amcache;

	if (last == NULL)
		last = index->rd_amcache = MemoryContextAllocZero(index->rd_indexcxt, sizeof(LastSlabs));
	last->shape = directory->meta.shape;
	last->kind = kind_for_rows(&directory->meta, false);
	for (int kind = SLAB_LIST; kind <= SLAB_PACKED; kind++)
	{
		const Slab *slab = last_slab(directory, kind);

		if (slab != NULL)
			last->slabs[kind] = *slab;
		else if (directory->before.nfull == 0)
			last->slabs[kind].kind = SLAB_FREE;
	}
	return last;
}

static LastSlabs *
last_slabs(Relation index)
{
	if (index->rd_amcache == NULL)
	{
		Directory  *directory = read_slices_directory(index, NULL);

		remember_slabs(index, directory);
		free_slices_directory(directory);
	}
	return index->rd_amcache;
}

/* The shape of the index; the first row with elements decides it. */
static SlicesShape
shape_for(Relation index, const bf_filter *filter)
{
	SlicesShape shape = last_slabs(index)->shape;
	Directory  *directory;

	if (is_complete_shape(&shape) || !complete_shape(&shape, filter))
		return shape;
	directory = lock_slices_directory(index);
	shape = directory->meta.shape;
	if (!is_complete_shape(&shape) && complete_shape(&shape, filter))
		set_slices_shape(index, directory, &shape);
	remember_slabs(index, directory);
	unlock_slices_directory(index, directory);
	return shape;
}

/* What is needed of the directory to add a slab. */
static Directory *
read_end(Relation index, SlabKind kind)
{
	LastSlabs  *last = last_slabs(index);
	uint32		nblocks = last->shape.nblocks;

	return read_directory_end(index, &last->end, slab_pages(kind, initial_tiles(kind, nblocks), nblocks));
}

/* Finds another last slab than one that is full or gone, or makes one. */
static void
renew_last_slab(Relation index, SlabKind kind, const Slab *slab, bool is_gone)
{
	Directory  *directory;
	const Slab *last;

	if (is_gone)
		last_slabs(index)->end.directory = 0;
	directory = read_end(index, kind);
	last = last_slab(directory, kind);
	if (last == NULL || last->number == slab->number)
	{
		if (last != NULL && is_gone)
			report_slices_damage(index, last->first + rows_pages_of(last) - 1);
		free_slices_directory(directory);
		lock_slices_metapage(index);
		directory = read_end(index, kind);
		if (kind != SLAB_LIST)
			kind = kind_for_rows(&directory->meta, kind == SLAB_PACKED);
		last = last_slab(directory, kind);
		if (last == NULL || last->number == slab->number)
		{
			Slab		made = append_slab(index, directory, kind);

			remember_slabs(index, directory)->slabs[kind] = made;
		}
		else
			remember_slabs(index, directory);
		unlock_slices_directory(index, directory);
		return;
	}
	remember_slabs(index, directory);
	free_slices_directory(directory);
}

static bool
has_room(const Slab *slab, Page page)
{
	return slices_fields(page)->used < Min(rows_of_slab(slab), ROWS_PER_PAGE);
}

/*
 * Locks the rows page of the last slab that has room, and before that, unless it is a list,
 * the slab.
 */
static Buffer
lock_slab_with_room(Relation index, bool is_list, Slab *slab)
{
	for (;;)
	{
		const LastSlabs *last = last_slabs(index);
		SlabKind	kind = is_list ? SLAB_LIST : last->kind;
		bool		is_gone = false;

		*slab = last->slabs[kind];
		if (slab->kind == kind)
		{
			Buffer		buffer;

			if (kind != SLAB_LIST)
				LockPage(index, slab->first, RowExclusiveLock);
			buffer = try_slab_page(index, slab, rows_pages_of(slab) - 1, BUFFER_LOCK_EXCLUSIVE, NULL);
			is_gone = !BufferIsValid(buffer);
			if (!is_gone && has_room(slab, BufferGetPage(buffer)))
				return buffer;
			if (!is_gone)
				UnlockReleaseBuffer(buffer);
			if (kind != SLAB_LIST)
				UnlockPage(index, slab->first, RowExclusiveLock);
		}
		renew_last_slab(index, kind, slab, is_gone);
	}
}

/* The number of rows of a rows page, which its pd_lower follows. */
static PageWrite
describe_used(Buffer buffer, const uint32 *used)
{
	Page		page = BufferGetPage(buffer);

	return (PageWrite)
	{
		.buffer = buffer, .lower = (uint16) (SLICES_OFFSET + *used * sizeof(RowEntry)),
			.offset = (uint16) ((char *) &slices_fields(page)->used - (char *) page),
			.length = sizeof(*used), .bytes = used
	};
}

static PageWrite
describe_entry(Buffer buffer, uint32 row, const RowEntry *entry)
{
	return (PageWrite)
	{
		.buffer = buffer, .offset = (uint16) (SLICES_OFFSET + row * sizeof(RowEntry)),
			.length = sizeof(RowEntry), .bytes = entry
	};
}

static void
add_to_list(Relation index, const RowEntry *entry)
{
	Slab		slab;
	Buffer		buffer = lock_slab_with_room(index, true, &slab);
	uint32		row = slices_fields(BufferGetPage(buffer))->used;
	uint32		used = row + 1;
	PageWrite	writes[] = {describe_used(buffer, &used), describe_entry(buffer, row, entry)};

	write_to_pages(index, writes, lengthof(writes));
	UnlockReleaseBuffer(buffer);
}

/* Reserves a row of a locked rows page. */
static uint32
reserve_row(Relation index, Buffer buffer)
{
	uint32		row = slices_fields(BufferGetPage(buffer))->used;
	uint32		used = row + 1;
	PageWrite	write = describe_used(buffer, &used);

	write_to_pages(index, &write, 1);
	return row;
}

static void
publish_row(Relation index, const Slab *slab, uint32 row, const RowEntry *entry)
{
	Buffer		buffer = try_slab_page(index, slab, 0, BUFFER_LOCK_EXCLUSIVE, NULL);
	PageWrite	write = describe_entry(buffer, row, entry);

	if (!BufferIsValid(buffer))
		report_slices_damage(index, slab->first);
	write_to_pages(index, &write, 1);
	UnlockReleaseBuffer(buffer);
}

static bool
is_zero_block(const uint8 *block)
{
	static const uint8 zero[BF_BLOCK_BYTES];

	return memcmp(block, zero, BF_BLOCK_BYTES) == 0;
}

/* A row is written to hundreds of pages, and each would wait for memory by itself. */
static void
prefetch_tile_page(Buffer recent, uint32 row)
{
	const char *page;

	if (recent <= 0)			/* none, or of a temporary table */
		return;
	page = BufferGetPage(recent);
	__builtin_prefetch(GetBufferDescriptor(recent - 1), 1);
	__builtin_prefetch(page, 1);
	__builtin_prefetch(page + SLICES_OFFSET + row * BF_BLOCK_BYTES, 1);
}

static Buffer
read_tile_page(Relation index, BlockNumber block, uint32 row, Buffer *recent)
{
	if (row % ROWS_PER_LOOKUP == 0 || !BufferIsValid(*recent) ||
		!ReadRecentBuffer(index->rd_locator, MAIN_FORKNUM, block, *recent))
		*recent = ReadBuffer(index, block);
	return *recent;
}

static void
lock_tile_page(Relation index, const Slab *slab, Buffer buffer)
{
	BlockNumber block = BufferGetBlockNumber(buffer);

	if (!lock_if_slab_page(buffer, slab, block - slab->first, BUFFER_LOCK_EXCLUSIVE))
		report_slices_damage(index, block);
}

/*
 * Writes up to MAX_WRITTEN_PAGES blocks of a row from *block on, which have set bits.
 * The pages are read before the first is locked, so that readers do not wait for I/O.
 */
static void
write_some_blocks(Relation index, const Slab *slab, uint32 row, uint32 nblocks, const uint8 *bits, uint32 *block)
{
	PageWrite	writes[MAX_WRITTEN_PAGES];
	Buffer	   *recent = last_slabs(index)->recent;
	int			n = 0;

	for (; *block < nblocks && n < MAX_WRITTEN_PAGES; (*block)++)
	{
		const uint8 *bytes = bits + (Size) *block * BF_BLOCK_BYTES;
		uint32		number = bits_page_of(slab, *block, 0);

		prefetch_tile_page(recent[number + PAGES_AHEAD], row);
		if (is_zero_block(bytes))
			continue;
		writes[n++] = (PageWrite)
		{
			.buffer = read_tile_page(index, slab->first + number, row, &recent[number]),
				.lower = (uint16) (SLICES_OFFSET + (row + 1) * BF_BLOCK_BYTES),
				.offset = (uint16) (SLICES_OFFSET + row * BF_BLOCK_BYTES),
				.length = BF_BLOCK_BYTES, .bytes = bytes
		};
	}
	for (int i = 0; i < n; i++)
		lock_tile_page(index, slab, writes[i].buffer);
	if (n > 0)
		write_to_pages(index, writes, n);
	for (int i = 0; i < n; i++)
		UnlockReleaseBuffer(writes[i].buffer);
}

/* A ReadRows of one row in memory. */
static void
read_bits(void *state, uint32 block, uint64 first, uint32 n, uint8 *rows)
{
	memcpy(rows, (const uint8 *) state + (Size) block * BF_BLOCK_BYTES, BF_BLOCK_BYTES);
}

/* Up to seven pages, of which an index has few: GenericXLog may compare them. */
static void
write_packed_bits(Relation index, const Slab *slab, uint32 row, uint32 nblocks, const uint8 *bits)
{
	uint32		block = 0;

	for (uint32 number = 0; number < slab->npages; number++)
	{
		Buffer		buffer = ReadBuffer(index, slab->first + number);
		GenericXLogState *state;
		Page		page;

		CHECK_FOR_INTERRUPTS();
		lock_tile_page(index, slab, buffer);
		state = GenericXLogStart(index);
		page = GenericXLogRegisterBuffer(state, buffer, 0);
		((PageHeader) page)->pd_lower = BLCKSZ;
		for (; block < nblocks && bits_page_of(slab, block, 0) == number; block++)
			memcpy(slices_contents(page) + block_offset_of(slab, block) + row * BF_BLOCK_BYTES,
				   bits + (Size) block * BF_BLOCK_BYTES, BF_BLOCK_BYTES);
		GenericXLogFinish(state);
		UnlockReleaseBuffer(buffer);
	}
}

static void
write_bits(Relation index, const Slab *slab, uint32 row, uint32 nblocks, const uint8 *bits)
{
	if (slab->kind == SLAB_RAW)
	{
		PageWriter	writer = {.index = index, .next = slab->first + 1};

		/* the file may be shorter after a crash */
		extend_slices(index, MAIN_FORKNUM, slab->first + slab->npages);
		write_raw_bits(&writer, slab, nblocks, 0, read_bits, unconstify(uint8 *, bits));
		return;
	}
	if (slab->kind == SLAB_PACKED)
	{
		write_packed_bits(index, slab, row, nblocks, bits);
		return;
	}
	for (uint32 block = 0; block < nblocks;)
	{
		CHECK_FOR_INTERRUPTS();
		write_some_blocks(index, slab, row, nblocks, bits, &block);
	}
}

static void
add_with_bits(Relation index, const SlicesShape *shape, const RowEntry *entry, const uint8 *bits)
{
	Slab		slab;
	Buffer		buffer = lock_slab_with_room(index, false, &slab);
	uint32		row = reserve_row(index, buffer);

	UnlockReleaseBuffer(buffer);
	write_bits(index, &slab, row, shape->nblocks, bits);
	publish_row(index, &slab, row, entry);
	UnlockPage(index, slab.first, RowExclusiveLock);
}

static void
add_filter(Relation index, ItemPointer tid, const bf_filter *filter)
{
	SlicesShape shape = shape_for(index, filter);
	RowEntry	entry = {.tid = *tid, .kind = slices_row_bits(&shape, filter, NULL)};
	uint8	   *bits;

	switch ((RowKind) entry.kind)
	{
		case ROW_EXACT:
			/* its payload is what slices_row_bits() would copy */
			add_with_bits(index, &shape, &entry, filter->payload);
			break;
		case ROW_SPARSE:
		case ROW_FLAGGED:
			bits = palloc((Size) shape.nblocks * BF_BLOCK_BYTES);
			slices_row_bits(&shape, filter, bits);
			add_with_bits(index, &shape, &entry, bits);
			pfree(bits);
			break;
		default:
			add_to_list(index, &entry);
			break;
	}
}

bool
bloomslices_insert(Relation index, Datum *values, bool *isnull, ItemPointer row, Relation heap, IndexUniqueCheck check,
				   bool unchanged, struct IndexInfo *info)
{
	if (isnull[0])
	{
		RowEntry	entry = {.tid = *row, .kind = ROW_NULL};

		add_to_list(index, &entry);
	}
	else
	{
		bf_filter	filter;
		BloomValue *value = open_value(values[0], BF_FILTER, &filter);

		add_filter(index, row, &filter);
		close_value(values[0], value);
	}
	/* a reader may have come since index_insert() did this */
	CheckForSerializableConflictIn(index, NULL, InvalidBlockNumber);
	return false;
}
