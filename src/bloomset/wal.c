/*
 * wal.c
 *		Changing a page of a bloomset by one element, with its WAL record.
 *
 * GenericXLog (generic_xlog.c) copies each page and compares 8 kB to find the few
 * bytes that changed.  This file knows them, and writes the same record: a list of
 * fragments (offset, length, bytes), which the server's generic_redo() replays.
 * A server of another major version could not detect a wrong format, so that
 * DIRECT_GENERIC_WAL is set only for those that the tests have replayed under
 * wal_consistency_checking.
 */
#include "pg/pg_compat.h"

#include "access/generic_xlog.h"
#include "access/xloginsert.h"
#include "bloomset/bloomset.h"
#include "miscadmin.h"

static inline bool
block_contains(Page page, uint32 offset, const Generation *generation, uint64 hash)
{
	bf_shape	shape = shape_of(generation);

	return bf_block_contains((uint8 *) page + offset, &shape, hash);
}

static void
add_element(Page page, uint32 offset, const Generation *generation, uint64 hash)
{
	bf_shape	shape = shape_of(generation);

	if (block_contains(page, offset, generation, hash))
		return;
	((PageHeader) page)->pd_lower = BLCKSZ;
	fields_of(page)->elements++;
	bf_block_add((uint8 *) page + offset, &shape, hash);
}

static void
raise_generations(Page page, uint32 generations)
{
	BloomsetPageFields *fields = fields_of(page);

	fields->generations = Max(fields->generations, generations);
	fields->complement = ~fields->generations;
}

#ifdef DIRECT_GENERIC_WAL

/* Offset and length.  Fragments that are closer than that are one. */
#define FRAGMENT_HEADER	(2 * sizeof(uint16))

/* Two fields, and a block's fragments, whose headers are smaller than the gaps between them. */
#define MAX_DELTA		(3 * (FRAGMENT_HEADER + sizeof(uint32)) + BF_BLOCK_BYTES)

typedef struct Delta
{
	uint32		size;
	char		bytes[MAX_DELTA];
} Delta;

static void
append_fragment(Delta *delta, Page page, uint32 offset, uint32 length)
{
	uint16		header[2] = {(uint16) offset, (uint16) length};

	Assert(delta->size + sizeof(header) + length <= MAX_DELTA);
	memcpy(delta->bytes + delta->size, header, sizeof(header));
	memcpy(delta->bytes + delta->size + sizeof(header), page + offset, length);
	delta->size += sizeof(header) + length;
}

/* Appends what differs between a block and its former bytes. */
static void
append_block(Delta *delta, Page page, uint32 offset, const uint8 *former)
{
	const uint8 *block = (uint8 *) page + offset;

	for (uint32 i = 0; i < BF_BLOCK_BYTES; i++)
	{
		uint32		end = i + 1;

		if (block[i] == former[i])
			continue;
		for (uint32 j = end; j < BF_BLOCK_BYTES && j < end + FRAGMENT_HEADER; j++)
		{
			if (block[j] != former[j])
				end = j + 1;
		}
		append_fragment(delta, page, offset + i, end - i);
		i = end;				/* that byte is the same */
	}
}

static void
append_fields(Delta *delta, Page page, Size first, uint32 length)
{
	append_fragment(delta, page, MAXALIGN(SizeOfPageHeaderData) + first, length);
}

#ifdef USE_ASSERT_CHECKING
/* What generic_redo() makes of a page. */
static void
assert_replayed(const PGAlignedBlock *before, const Delta *delta, Page page)
{
	PGAlignedBlock copy = *before;
	PageHeader	header = (PageHeader) copy.data;
	uint16		fragment[2];

	for (uint32 at = 0; at < delta->size; at += sizeof(fragment) + fragment[1])
	{
		memcpy(fragment, delta->bytes + at, sizeof(fragment));
		memcpy(copy.data + fragment[0], delta->bytes + at + sizeof(fragment), fragment[1]);
	}
	memset(copy.data + header->pd_lower, 0, header->pd_upper - header->pd_lower);
	PageSetLSN(copy.data, PageGetLSN(page));
	header->pd_checksum = ((PageHeader) page)->pd_checksum;
	Assert(memcmp(copy.data, page, BLCKSZ) == 0);
}
#endif

/*
 * Sizes, offsets and what RelationNeedsWAL() reads are known before the critical
 * section, in which an error would stop the server.
 */
static void
write_record(Relation index, const Generation *generation, uint32 generations, Buffer buffer,
			 uint32 offset, uint64 hash, Buffer first)
{
	Page		page = BufferGetPage(buffer);
	Page		first_page = BufferIsValid(first) ? BufferGetPage(first) : NULL;
	bool		logged = RelationNeedsWAL(index);
	uint16		former_lower = ((PageHeader) page)->pd_lower;
	uint8		former[BF_BLOCK_BYTES];
	Delta		delta = {0};
	Delta		first_delta = {0};
#ifdef USE_ASSERT_CHECKING
	PGAlignedBlock before;
	PGAlignedBlock first_before;

	memcpy(before.data, page, BLCKSZ);
	if (first_page != NULL)
		memcpy(first_before.data, first_page, BLCKSZ);
#endif
	memcpy(former, page + offset, BF_BLOCK_BYTES);

	START_CRIT_SECTION();
	add_element(page, offset, generation, hash);
	if (((PageHeader) page)->pd_lower != former_lower)
		append_fragment(&delta, page, offsetof(PageHeaderData, pd_lower), sizeof(uint16));
	append_fields(&delta, page, offsetof(BloomsetPageFields, elements), sizeof(uint32));
	append_block(&delta, page, offset, former);
	MarkBufferDirty(buffer);
	if (first_page != NULL)
	{
		raise_generations(first_page, generations);
		append_fields(&first_delta, first_page, offsetof(BloomsetPageFields, generations),
					  2 * sizeof(uint32));
		MarkBufferDirty(first);
	}
	if (logged)
	{
		XLogRecPtr	lsn;

		XLogBeginInsert();
		XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
		XLogRegisterBufData(0, delta.bytes, delta.size);
		if (first_page != NULL)
		{
			XLogRegisterBuffer(1, first, REGBUF_STANDARD);
			XLogRegisterBufData(1, first_delta.bytes, first_delta.size);
		}
		lsn = XLogInsert(RM_GENERIC_ID, 0);
		PageSetLSN(page, lsn);
		if (first_page != NULL)
			PageSetLSN(first_page, lsn);
	}
	END_CRIT_SECTION();
#ifdef USE_ASSERT_CHECKING
	assert_replayed(&before, &delta, page);
	if (first_page != NULL)
		assert_replayed(&first_before, &first_delta, first_page);
#endif
}

#else

static void
write_record(Relation index, const Generation *generation, uint32 generations, Buffer buffer,
			 uint32 offset, uint64 hash, Buffer first)
{
	GenericXLogState *state = GenericXLogStart(index);

	add_element(GenericXLogRegisterBuffer(state, buffer, 0), offset, generation, hash);
	if (BufferIsValid(first))
		raise_generations(GenericXLogRegisterBuffer(state, first, 0), generations);
	GenericXLogFinish(state);
}

#endif							/* DIRECT_GENERIC_WAL */

uint32
write_element(Relation index, const Generation *generation, uint32 generations, Buffer buffer,
			  uint32 offset, uint64 hash, Buffer first)
{
	write_record(index, generation, generations, buffer, offset, hash, first);
	return fields_of(BufferGetPage(buffer))->elements;
}
