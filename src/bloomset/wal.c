/*
 * wal.c
 *		Changing a page of a bloomset by one element, with its WAL record.
 */
#include "pg/pg_compat.h"

#include "bloomset/bloomset.h"
#include "pg/page_write.h"

/* Bytes of a block that are closer to each other than a header is long are one write. */
#define MAX_BLOCK_WRITES	((BF_BLOCK_BYTES + WRITE_HEADER) / (1 + WRITE_HEADER))

StaticAssertDecl(BF_BLOCK_BYTES <= MAX_WRITE_BYTES && MAX_BLOCK_WRITES + 2 <= MAX_PAGE_WRITES,
				 "an element, with a field of each page, is one record");

/* Describes what differs between a block and the bytes at an offset of a page. */
static int
describe_block(Buffer buffer, uint32 offset, const uint8 *block, PageWrite *writes)
{
	const uint8 *former = (uint8 *) BufferGetPage(buffer) + offset;
	int			n = 0;

	for (uint32 i = 0; i < BF_BLOCK_BYTES; i++)
	{
		uint32		end = i + 1;

		if (block[i] == former[i])
			continue;
		for (uint32 j = end; j < BF_BLOCK_BYTES && j < end + WRITE_HEADER; j++)
		{
			if (block[j] != former[j])
				end = j + 1;
		}
		writes[n++] = (PageWrite)
		{
			.buffer = buffer, .offset = (uint16) (offset + i), .length = (uint16) (end - i), .bytes = block + i
		};
		i = end;				/* that byte is the same */
	}
	return n;
}

static PageWrite
describe_fields(Buffer buffer, uint16 lower, Size first, Size length, const void *bytes)
{
	return (PageWrite)
	{
		.buffer = buffer, .lower = lower, .offset = (uint16) (MAXALIGN(SizeOfPageHeaderData) + first),
			.length = (uint16) length, .bytes = bytes
	};
}

uint32
write_element(Relation index, const Generation *generation, uint32 generations, Buffer buffer,
			  uint32 offset, uint64 hash, Buffer first)
{
	Page		page = BufferGetPage(buffer);
	bf_shape	shape = shape_of(generation);
	uint32		elements = fields_of(page)->elements;
	uint32		seen[2];		/* generations and its complement */
	uint8		block[BF_BLOCK_BYTES];
	PageWrite	writes[MAX_PAGE_WRITES];
	int			n = 0;

	memcpy(block, page + offset, BF_BLOCK_BYTES);
	if (!bf_block_contains(block, &shape, hash))
	{
		bf_block_add(block, &shape, hash);
		elements++;
		writes[n++] = describe_fields(buffer, BLCKSZ, offsetof(BloomsetPageFields, elements), sizeof(elements),
									  &elements);
		n += describe_block(buffer, offset, block, writes + n);
	}
	if (BufferIsValid(first))
	{
		seen[0] = Max(fields_of(BufferGetPage(first))->generations, generations);
		seen[1] = ~seen[0];
		writes[n++] = describe_fields(first, 0, offsetof(BloomsetPageFields, generations), sizeof(seen), seen);
	}
	if (n > 0)
		write_to_pages(index, writes, n);
	return elements;
}
