/*
 * reader.h
 *		Reading the pages of a slab one at a time.
 */
#ifndef BF_SLICES_READER_H
#define BF_SLICES_READER_H

#include "pg/pg_compat.h"

#include "bloomslices/bloomslices.h"
#include "miscadmin.h"

/* Initialize with the first three fields. */
typedef struct SlabReader
{
	Relation	index;
	const Directory *directory;
	const Slab *slab;
	Buffer		buffer;			/* locked in shared mode, or invalid */
	uint32		number;			/* of its page */
} SlabReader;

static inline void
close_page(SlabReader *reader)
{
	if (BufferIsValid(reader->buffer))
		UnlockReleaseBuffer(reader->buffer);
	reader->buffer = InvalidBuffer;
}

/*
 * The page, which stays locked until the next one is read.  NULL if the slab is gone:
 * then the caller reads the directory again and starts over.
 */
static inline Page
read_slab_page(SlabReader *reader, uint32 number)
{
	if (!BufferIsValid(reader->buffer) || reader->number != number)
	{
		close_page(reader);
		CHECK_FOR_INTERRUPTS();
		reader->buffer = lock_slab_page(reader->index, reader->directory, reader->slab, number, BUFFER_LOCK_SHARE);
		reader->number = number;
		if (!BufferIsValid(reader->buffer))
			return NULL;
	}
	return BufferGetPage(reader->buffer);
}

/*
 * Lets the server or the processor fetch size bytes at an offset of a page before they
 * are read.  Without it every page waits for memory, or the disk, by itself.
 */
static inline void
prefetch_slab_page(Relation index, const Slab *slab, uint32 number, uint32 offset, uint32 size)
{
	Buffer		buffer = PrefetchBuffer(index, MAIN_FORKNUM, slab->first + number).recent_buffer;
	const char *page;

	if (!BufferIsValid(buffer))
		return;
	page = BufferGetPage(buffer);
	__builtin_prefetch(page);
	for (uint32 at = 0; at < size; at += PG_CACHE_LINE_SIZE / 2)
		__builtin_prefetch(page + SLICES_OFFSET + offset + at);
}

/* The entry of a row, as read_slab_page(). */
static inline const RowEntry *
read_row_entry(SlabReader *reader, uint32 row)
{
	Page		page = read_slab_page(reader, row / ROWS_PER_PAGE);

	return page == NULL ? NULL : &slices_rows(page)[row % ROWS_PER_PAGE];
}

#endif							/* BF_SLICES_READER_H */
