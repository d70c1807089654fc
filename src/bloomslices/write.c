/*
 * write.c
 *		Writing whole slabs, for a build or a merge.
 */
#include "pg/pg_compat.h"

#include "bloomslices/bloomslices.h"
#include "miscadmin.h"

/* One slab that is 3/4 full is preferred to several full ones: a key reads each. */
#define LEAST_FILL(tiles)	((uint64) bf_sliced_rows(tiles) / 4 * 3)

/* Two copies of a block of all rows. */
#define MEMORY_PER_TILE	(2 * (Size) BF_SLICED_BYTES)

static void
write_page(PageWriter *writer, const Slab *slab, uint32 used, const void *contents, Size size)
{
	uint32		number = writer->next - slab->first;
	SlicesPageFields fields = {
		.kind = slab_page_kind(slab, number), .owner = slab->number, .number = number, .used = used
	};

	CHECK_FOR_INTERRUPTS();
	write_slices_page(writer->index, MAIN_FORKNUM, writer->next++, writer->strategy, &fields, contents, size);
}

Slab
choose_slab(uint32 nblocks, uint64 nrows, Size memory, bool few, uint32 *taken)
{
	SlabKind	kind = nblocks > RAW_BLOCKS ? SLAB_RAW : few ? SLAB_PACKED : SLAB_TILE;
	uint32		most = Min(memory / MEMORY_PER_TILE, BF_MOST_TILES);
	Slab		slab;

	for (uint32 tiles = BF_MOST_TILES; tiles >= BF_LEAST_TILES; tiles /= 2)
	{
		if (nrows < LEAST_FILL(tiles) || (tiles > most && tiles > BF_LEAST_TILES))
			continue;
		*taken = (uint32) Min(nrows, bf_sliced_rows(tiles));
		return (Slab)
		{
			.kind = SLAB_SLICES, .tiles = tiles
		};
	}
	slab = (Slab)
	{
		.kind = kind, .tiles = initial_tiles(kind, nblocks)
	};
	*taken = (uint32) Min(nrows, rows_of_slab(&slab));
	return slab;
}

static void
write_rows_pages(PageWriter *writer, const Slab *slab, const RowEntry *entries, uint32 n, bool is_full)
{
	for (uint32 number = 0; number < rows_pages_of(slab); number++)
	{
		RowEntry	page[ROWS_PER_PAGE] = {0};
		uint32		from = Min(number * ROWS_PER_PAGE, n);
		uint32		used = Min(n - from, ROWS_PER_PAGE);

		memcpy(page, entries + from, used * sizeof(RowEntry));
		if (is_full && slab->kind != SLAB_SLICES)
			used = Min(rows_of_slab(slab), ROWS_PER_PAGE);
		write_page(writer, slab, used, page, used * sizeof(RowEntry));
	}
}

static void
write_tile(PageWriter *writer, const Slab *slab, uint32 nblocks, uint64 first, uint32 n, ReadRows read, void *state)
{
	uint8		rows[BF_SLICED_BYTES];

	for (uint32 block = 0; block < nblocks; block++)
	{
		read(state, block, first, n, rows);
		write_page(writer, slab, 0, rows, n * BF_BLOCK_BYTES);
	}
}

void
write_raw_bits(PageWriter *writer, const Slab *slab, uint32 nblocks, uint64 first, ReadRows read, void *state)
{
	uint8		blocks[BF_SLICED_BYTES];

	for (uint32 block = 0; block < nblocks; block += BF_TILE_ROWS)
	{
		uint32		n = Min(nblocks - block, BF_TILE_ROWS);

		for (uint32 i = 0; i < n; i++)
			read(state, block + i, first, 1, blocks + i * BF_BLOCK_BYTES);
		write_page(writer, slab, 0, blocks, n * BF_BLOCK_BYTES);
	}
}

static void
write_packed(PageWriter *writer, const Slab *slab, uint32 nblocks, const RowEntry *entries, uint64 first, uint32 n,
			 bool is_full, ReadRows read, void *state)
{
	uint8	   *pages = palloc0((Size) slab->npages * BF_SLICED_BYTES);
	uint32		used = is_full ? rows_of_slab(slab) : n;

	memcpy(pages, entries, n * sizeof(RowEntry));
	for (uint32 block = 0; block < nblocks; block++)
		read(state, block, first, n, pages + (Size) unit_of_block(slab, block) * BF_BLOCK_BYTES);
	for (uint32 number = 0; number < slab->npages; number++)
		write_page(writer, slab, number == 0 ? used : 0, pages + (Size) number * BF_SLICED_BYTES, BF_SLICED_BYTES);
	pfree(pages);
}

static void
write_slices(PageWriter *writer, const Slab *slab, uint32 nblocks, uint64 first, uint32 n, ReadRows read, void *state)
{
	uint32		page_bytes = sliced_page_bytes(slab);
	uint8	   *rows = palloc((Size) n * BF_BLOCK_BYTES);
	uint8	   *slices = palloc((Size) slab->tiles * BF_SLICED_BYTES);
	const uint8 **pointers = palloc(n * sizeof(uint8 *));

	for (uint32 i = 0; i < n; i++)
		pointers[i] = rows + (Size) i * BF_BLOCK_BYTES;
	for (uint32 block = 0; block < nblocks; block++)
	{
		read(state, block, first, n, rows);
		bf_slice_rows(pointers, n, slice_bytes_of(slab), slices);
		for (uint32 page = 0; page < slab->tiles; page++)
			write_page(writer, slab, 0, slices + (Size) page * page_bytes, page_bytes);
	}
	pfree(pointers);
	pfree(slices);
	pfree(rows);
}

void
write_slab(PageWriter *writer, Slab *slab, uint32 nblocks, const RowEntry *entries, uint64 first, uint32 n, bool is_full,
		   ReadRows read, void *state)
{
	slab->first = writer->next;
	for (uint32 i = 0; i < n && slab->kind == SLAB_SLICES; i++)
		slab->has_flagged |= entries[i].kind == ROW_FLAGGED;
	slab->npages = slab_pages(slab->kind, slab->tiles, nblocks);
	extend_slices(writer->index, MAIN_FORKNUM, slab->first + slab->npages);
	if (slab->kind != SLAB_PACKED)
		write_rows_pages(writer, slab, entries, n, is_full);
	switch ((SlabKind) slab->kind)
	{
		case SLAB_TILE:
			write_tile(writer, slab, nblocks, first, n, read, state);
			break;
		case SLAB_RAW:
			write_raw_bits(writer, slab, nblocks, first, read, state);
			break;
		case SLAB_SLICES:
			write_slices(writer, slab, nblocks, first, n, read, state);
			break;
		case SLAB_PACKED:
			write_packed(writer, slab, nblocks, entries, first, n, is_full, read, state);
			break;
		default:
			break;
	}
	Assert(writer->next == slab->first + slab->npages);
}
