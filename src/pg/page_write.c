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

/* What precedes the bytes in a record: a fragment of pd_lower, if it changes, and a header. */
typedef struct Prefix
{
	uint32		size;
	uint16		words[5];
} Prefix;

static Prefix
prefix_of(Page page, const PageWrite *write)
{
	Prefix		prefix = {0};
	int			n = 0;

	if (((PageHeader) page)->pd_lower < write->lower)
	{
		prefix.words[n++] = offsetof(PageHeaderData, pd_lower);
		prefix.words[n++] = sizeof(uint16);
		prefix.words[n++] = write->lower;
	}
	prefix.words[n++] = write->offset;
	prefix.words[n++] = write->length;
	prefix.size = n * sizeof(uint16);
	return prefix;
}

void
write_to_pages(Relation index, const PageWrite *writes, int n)
{
	bool		logged = RelationNeedsWAL(index);
	Prefix		prefixes[MAX_PAGE_WRITES];
	XLogRecPtr	lsn;

	Assert(n <= MAX_PAGE_WRITES);
	START_CRIT_SECTION();
	for (int i = 0; i < n; i++)
	{
		prefixes[i] = prefix_of(BufferGetPage(writes[i].buffer), &writes[i]);
		apply_write(BufferGetPage(writes[i].buffer), &writes[i]);
		MarkBufferDirty(writes[i].buffer);
	}
	if (logged)
	{
		XLogBeginInsert();
		for (int i = 0; i < n; i++)
		{
			XLogRegisterBuffer(i, writes[i].buffer, REGBUF_STANDARD);
			XLogRegisterBufData(i, (char *) prefixes[i].words, prefixes[i].size);
			XLogRegisterBufData(i, (char *) writes[i].bytes, writes[i].length);
		}
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

	Assert(n <= MAX_PAGE_WRITES);
	for (int i = 0; i < n; i++)
		apply_write(GenericXLogRegisterBuffer(state, writes[i].buffer, 0), &writes[i]);
	GenericXLogFinish(state);
}

#endif							/* DIRECT_GENERIC_WAL */
