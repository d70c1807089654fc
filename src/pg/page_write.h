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

/* Bytes of a page that a record has, after a header that says where they are. */
typedef struct PageWrite
{
	Buffer		buffer;			/* locked exclusively */
	uint16		lower;			/* pd_lower becomes at least this */
	uint16		offset;			/* in the page */
	uint16		length;			/* up to MAX_WRITE_BYTES */
	const void *bytes;
} PageWrite;

/* The size of this header. */
#define WRITE_HEADER	(2 * sizeof(uint16))

#define MAX_WRITE_BYTES	64
#define MAX_PAGE_WRITES	16

/* generic_redo() has room for no more. */
#define MAX_WRITTEN_PAGES	MAX_GENERIC_XLOG_PAGES

/*
 * Makes up to MAX_PAGE_WRITES changes of up to MAX_WRITTEN_PAGES pages; those of a page
 * follow each other.  The pages have no special space, and the bytes from pd_lower on
 * are zero.
 */
extern void write_to_pages(Relation index, const PageWrite *writes, int n);

#endif							/* BF_PAGE_WRITE_H */
