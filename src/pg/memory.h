/*
 * memory.h
 *		Allocating, zeroing and copying large areas.
 */
#ifndef BF_MEMORY_H
#define BF_MEMORY_H

#include "pg/pg_compat.h"

/* Loops over a filter check for interrupts once per this many bytes. */
#define CHUNK_BYTES		(64 * 1024)

/*
 * Allocates any size for random access, and asks the kernel for huge pages if
 * the area is large: otherwise most accesses miss the TLB.
 */
extern void *allocate_large(MemoryContext context, Size size);

/* memset to 0, memcpy, and memcmp() == 0, interruptible. */
extern void zero_bytes(uint8 *bytes, uint64 size);
extern void copy_bytes(uint8 *to, const uint8 *from, uint64 size);
extern bool equal_bytes(const uint8 *a, const uint8 *b, uint64 size);

#endif							/* BF_MEMORY_H */
