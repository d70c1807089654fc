/*
 * page_write.c
 *		Writing known bytes to pages of an index, with one WAL record.
 *
 * The record is a list of fragments (offset, length, bytes) for each page, which the
 * server's generic_redo() replays.  A server of another major version could not detect
 * a wrong format, so that DIRECT_GENERIC_WAL is set only for those that the tests have
 * replayed under wal_consistency_checking.
 */
#include "pg/pg_compat.h"

#include "access/xloginsert.h"
#include "miscadmin.h"
#include "pg/page_write.h"

static void
apply_write(Page page, const PageWrite *write)
{
	PageHeader	header = (PageHeader) page;

	memcpy((char *) page + write->offset, write->bytes, write->length);
	header->pd_lower = Max(header->pd_lower, write->lower);
}

#ifdef DIRECT_GENERIC_WAL

/* Each change may come with one of pd_lower. */
#define MAX_DELTA	(MAX_PAGE_WRITES * (2 * WRITE_HEADER + sizeof(uint16) + MAX_WRITE_BYTES))

/* The fragments of a record, page by page. */
typedef struct Delta
{
	uint32		size;
	char		bytes[MAX_DELTA];
} Delta;

static void
append_fragment(Delta *delta, uint16 offset, uint16 length, const void *bytes)
{
	uint16		header[2] = {offset, length};

	Assert(length <= MAX_WRITE_BYTES && delta->size + sizeof(header) + length <= MAX_DELTA);
	memcpy(delta->bytes + delta->size, header, sizeof(header));
	memcpy(delta->bytes + delta->size + sizeof(header), bytes, length);
	delta->size += sizeof(header) + length;
}

#ifdef USE_ASSERT_CHECKING
/* What generic_redo() makes of a page. */
static void
assert_replayed(const PGAlignedBlock *before, const char *delta, uint32 size, Page page)
{
	PGAlignedBlock copy = *before;
	PageHeader	header = (PageHeader) copy.data;
	uint16		fragment[2];

	/* replay clears the hole of a damaged page */
	for (uint32 i = header->pd_lower; i < header->pd_upper; i++)
	{
		if (copy.data[i] != 0)
			return;
	}
	for (uint32 at = 0; at < size; at += sizeof(fragment) + fragment[1])
	{
		memcpy(fragment, delta + at, sizeof(fragment));
		memcpy(copy.data + fragment[0], delta + at + sizeof(fragment), fragment[1]);
	}
	memset(copy.data + header->pd_lower, 0, header->pd_upper - header->pd_lower);
	Assert(memcmp(copy.data, page, BLCKSZ) == 0);
}
#endif

/* Makes the first changes, those of one page, and appends them; returns their number. */
static int
write_first_page(const PageWrite *writes, int n, Delta *delta)
{
	Buffer		buffer = writes[0].buffer;
	Page		page = BufferGetPage(buffer);
	int			i = 0;
#ifdef USE_ASSERT_CHECKING
	PGAlignedBlock before;
	uint32		first = delta->size;

	memcpy(before.data, page, BLCKSZ);
#endif
	for (; i < n && writes[i].buffer == buffer; i++)
	{
		if (((PageHeader) page)->pd_lower < writes[i].lower)
			append_fragment(delta, offsetof(PageHeaderData, pd_lower), sizeof(uint16), &writes[i].lower);
		append_fragment(delta, writes[i].offset, writes[i].length, writes[i].bytes);
		apply_write(page, &writes[i]);
	}
	MarkBufferDirty(buffer);
#ifdef USE_ASSERT_CHECKING
	assert_replayed(&before, delta->bytes + first, delta->size - first, page);
#endif
	return i;
}

/* What RelationNeedsWAL() reads is known before the critical section, which no error may leave. */
void
write_to_pages(Relation index, const PageWrite *writes, int n)
{
	bool		logged = RelationNeedsWAL(index);
	uint8		npages = 0;
	Delta		delta;
	XLogRecPtr	lsn;

	Assert(n > 0 && n <= MAX_PAGE_WRITES);
	delta.size = 0;
	START_CRIT_SECTION();
	if (logged)
		XLogBeginInsert();
	for (int i = 0; i < n;)
	{
		Buffer		buffer = writes[i].buffer;
		uint32		first = delta.size;

		i += write_first_page(writes + i, n - i, &delta);
		if (logged)
		{
			XLogRegisterBuffer(npages, buffer, REGBUF_STANDARD);
			XLogRegisterBufData(npages, delta.bytes + first, delta.size - first);
		}
		npages++;
	}
	Assert(npages <= MAX_WRITTEN_PAGES);
	if (logged)
	{
		lsn = XLogInsert(RM_GENERIC_ID, 0);
		for (int i = 0; i < n; i++)
			PageSetLSN(BufferGetPage(writes[i].buffer), lsn);
	}
	END_CRIT_SECTION();
}

#else

void
write_to_pages(Relation index, const PageWrite *writes, int n)
{
	GenericXLogState *state = GenericXLogStart(index);

	for (int i = 0; i < n; i++)
		apply_write(GenericXLogRegisterBuffer(state, writes[i].buffer, 0), &writes[i]);
	GenericXLogFinish(state);
}

#endif							/* DIRECT_GENERIC_WAL */
