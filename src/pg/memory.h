/*
 * memory.h
 *		Memory of any size.
 */
#ifndef BF_MEMORY_H
#define BF_MEMORY_H

#include "postgres.h"

/* Loops over a filter look for a cancel request once in so many bytes. */
#define CHUNK_BYTES		(64 * 1024)

/*
 * Memory that is touched at random, as by elements, of any size.  The kernel
 * is asked for huge pages where that pays: each element would otherwise wait
 * for an entry of the page table too.
 */
extern void *allocate_large(MemoryContext context, Size size);

/* memset to 0 and memcpy of any size, interruptible. */
extern void zero_bytes(uint8 *bytes, uint64 size);
extern void copy_bytes(uint8 *to, const uint8 *from, uint64 size);

#endif							/* BF_MEMORY_H */
