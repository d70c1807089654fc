/*
 * check.c
 *		bloomslices_check(): does an index agree with its table?
 *
 * One pass over the index hashes the bits of each row, block by block.  Then each row
 * that the transaction's snapshot sees must have one entry, of its kind and with the
 * hash of its bits.  The index's expressions run as the table's owner.
 */
#include "pg/pg_compat.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "bloomslices/bloomslices.h"
#include "bloomslices/reader.h"
#include "bloomslices/search.h"
#include "bloomslices/tree.h"
#include "catalog/index.h"
#include "common/hashfn.h"
#include "core/hash.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(bloomslices_check);

/* A row of the index. */
typedef struct CheckedRow
{
	uint64		place;			/* key */
	uint64		hash;			/* of its bits */
	uint16		kind;			/* a RowKind */
	char		status;			/* for the hash table */
} CheckedRow;

#define SH_PREFIX rows
#define SH_ELEMENT_TYPE CheckedRow
#define SH_KEY_TYPE uint64
#define SH_KEY place
#define SH_HASH_KEY(table, key) ((uint32) murmurhash64(key))
#define SH_EQUAL(table, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

typedef struct Check
{
	Relation	index;
	MemoryContext rows_context; /* emptied if the pass starts over */
	const Directory *directory;
	rows_hash  *rows;
	uint8	   *bits;			/* of a row, at the index's shape */
} Check;

pg_noreturn static void
report_row(const Check *check, ItemPointer row, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("bloomslices index \"%s\" does not agree with row (%u,%u) of its table",
					RelationGetRelationName(check->index),
					ItemPointerGetBlockNumber(row), ItemPointerGetOffsetNumber(row)),
			 errdetail_internal("%s", _(detail)),
			 errhint("REINDEX builds it anew.")));
}
