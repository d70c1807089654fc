/*
 * page_write.h
 *		Writing known bytes to pages of an index, with one WAL record.
 *
 * GenericXLog (generic_xlog.c) copies each page and compares 8 kB to find what changed.
 * A caller that knows it writes the same record without.
 */
#ifndef BF_PAGE_WRITE_H
#define BF_PAGE_WRITE_H

#include "pg/pg_compat.h"

#include "access/generic_xlog.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

typedef struct PageWrite
{
	Buffer		buffer;			/* locked exclusively */
	uint16		lower;			/* pd_lower becomes at least this */
	uint16		offset;			/* in the page */
	uint16		length;
	const void *bytes;
} PageWrite;

/* generic_redo() has room for no more. */
#define MAX_PAGE_WRITES	MAX_GENERIC_XLOG_PAGES

/*
 * Makes up to MAX_PAGE_WRITES changes of as many pages.  The pages have no special
 * space, and the bytes from pd_lower on are zero.
 */
extern void write_to_pages(Relation index, const PageWrite *writes, int n);

#endif							/* BF_PAGE_WRITE_H */
