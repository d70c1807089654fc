/*
 * reader.h
 *		Reading the pages of a slab one at a time.
 */
#ifndef BF_SLICES_READER_H
#define BF_SLICES_READER_H

#include "pg/pg_compat.h"

#include "bloomslices/bloomslices.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/buf_internals.h"

/*
 * Where pages were found last, by block number.  A scan that searches many times, as for a
 * join, then needs no look-up in the table of buffers.
 */
typedef struct RecentBuffers
{
	BlockNumber count;
	Buffer	   *buffers;		/* or InvalidBuffer */
} RecentBuffers;

/* Initialize with the first five fields; recent and snapshot may be NULL. */
typedef struct SlabReader
{
	Relation	index;
	const Directory *directory;
	const Slab *slab;
	RecentBuffers *recent;
	Snapshot	snapshot;		/* of a search, which loses no row of it */
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

/* The place to remember a buffer, or NULL. */
static inline Buffer *
recent_buffer_of(const SlabReader *reader, BlockNumber block)
{
	return reader->recent != NULL && block < reader->recent->count ? &reader->recent->buffers[block] : NULL;
}

/* Pins a page. */
static inline Buffer
pin_slab_page(const SlabReader *reader, uint32 number)
{
	BlockNumber block = reader->slab->first + number;
	Buffer	   *recent = recent_buffer_of(reader, block);
	Buffer		buffer;

	if (recent != NULL && BufferIsValid(*recent) &&
		ReadRecentBuffer(reader->index->rd_locator, MAIN_FORKNUM, block, *recent))
	{
		pgstat_count_buffer_read(reader->index);
		pgstat_count_buffer_hit(reader->index);
		return *recent;
	}
	buffer = ReadBuffer(reader->index, block);
	if (recent != NULL)
		*recent = buffer;
	return buffer;
}

/*
 * The page, which stays locked until the next one is read.  NULL if the slab is gone:
 * then the caller reads the directory again and starts over.
 */
static inline Page
read_slab_page(SlabReader *reader, uint32 number)
{
	Buffer		buffer;

	if (BufferIsValid(reader->buffer) && reader->number == number)
		return BufferGetPage(reader->buffer);
	close_page(reader);
	CHECK_FOR_INTERRUPTS();
	buffer = pin_slab_page(reader, number);
	if (!lock_slab_page(reader->index, reader->directory, reader->slab, number, buffer))
		return NULL;
	reader->buffer = buffer;
	reader->number = number;
	test_for_old_snapshot(reader->snapshot, reader->index, BufferGetPage(buffer));
	return BufferGetPage(buffer);
}

/* Does a buffer seem to have a page of a shared relation?  May err. */
static inline bool
has_block(Buffer buffer, BlockNumber block)
{
	return BufferIsValid(buffer) && GetBufferDescriptor(buffer - 1)->tag.blockNum == block;
}

/*
 * Lets the server fetch a page from the disk, or the processor what a lock of it touches.
 * Without it each page waits by itself.  Returns the page, which is not pinned, or NULL.
 */
static inline const char *
prefetch_slab_page(const SlabReader *reader, uint32 number)
{
	BlockNumber block = reader->slab->first + number;
	Buffer	   *recent = recent_buffer_of(reader, block);
	Buffer		buffer = InvalidBuffer;

	if (recent != NULL && has_block(*recent, block))
		buffer = *recent;
	else
	{
		buffer = PrefetchBuffer(reader->index, MAIN_FORKNUM, block).recent_buffer;
		if (!BufferIsValid(buffer) || BufferIsLocal(buffer))
			return NULL;
		__builtin_prefetch(GetBufferDescriptor(buffer - 1));
		if (recent != NULL)
			*recent = buffer;
	}
	__builtin_prefetch(BufferGetPage(buffer));
	return BufferGetPage(buffer);
}

/* The entry of a row, as read_slab_page(). */
static inline const RowEntry *
read_row_entry(SlabReader *reader, uint32 row)
{
	Page		page = read_slab_page(reader, row / ROWS_PER_PAGE);

	return page == NULL ? NULL : &slices_rows(page)[row % ROWS_PER_PAGE];
}

#endif							/* BF_SLICES_READER_H */
