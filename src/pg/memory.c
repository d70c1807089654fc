/*
 * memory.c
 *		Allocating, zeroing and copying large areas.
 */
#include "pg/pg_compat.h"

#include <sys/mman.h>

#include "miscadmin.h"
#include "pg/memory.h"

#define HUGE_PAGE		(2 * 1024 * 1024)

void *
allocate_large(MemoryContext context, Size size)
{
	char	   *memory = MemoryContextAllocExtended(context, size, MCXT_ALLOC_HUGE);

#ifdef MADV_HUGEPAGE
	if (size >= 4 * HUGE_PAGE)
	{
		char	   *first = (char *) TYPEALIGN(HUGE_PAGE, memory);

		(void) madvise(first, TYPEALIGN_DOWN(HUGE_PAGE, memory + size - first), MADV_HUGEPAGE);
	}
#endif
	return memory;
}

void
zero_bytes(uint8 *bytes, uint64 size)
{
	for (uint64 at = 0; at < size; at += CHUNK_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		memset(bytes + at, 0, Min(CHUNK_BYTES, size - at));
	}
}

void
copy_bytes(uint8 *to, const uint8 *from, uint64 size)
{
	for (uint64 at = 0; at < size; at += CHUNK_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		memcpy(to + at, from + at, Min(CHUNK_BYTES, size - at));
	}
}

bool
equal_bytes(const uint8 *a, const uint8 *b, uint64 size)
{
	for (uint64 at = 0; at < size; at += CHUNK_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		if (memcmp(a + at, b + at, Min(CHUNK_BYTES, size - at)) != 0)
			return false;
	}
	return true;
}
