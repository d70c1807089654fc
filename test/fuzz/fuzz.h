/*
 * fuzz.h
 *		Code that the fuzz targets share.
 *
 * A target demands what must hold for every input. A failed demand ends the run,
 * and libFuzzer keeps the input.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libFuzzer's interface. */
extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
extern size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
									  unsigned int seed);

/*
 * For speed, the sanitizer does not record allocation stacks and keeps little
 * freed memory. ASAN_OPTIONS can override this for a single input.
 */
extern const char *__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "malloc_context_size=0:quarantine_size_mb=4:thread_local_quarantine_size_kb=64";
}

#define demand(condition) \
	do { \
		if (!(condition)) \
		{ \
			fprintf(stderr, "%s:%d: %s: not so: %s\n", \
					__FILE__, __LINE__, __func__, #condition); \
			abort(); \
		} \
	} while (0)

/*
 * Allocates exactly that size, so that the sanitizer guards every byte behind
 * it.
 */
static inline void *
room_for(size_t size)
{
	void	   *memory = malloc(size > 0 ? size : 1);

	demand(memory != NULL);
	return memory;
}

static inline void *
copy_of(const void *bytes, size_t size)
{
	void	   *copy = room_for(size);

	if (size > 0)
		memcpy(copy, bytes, size);
	return copy;
}

/* Input as a sequence of numbers, which are zero at its end. */
typedef struct source
{
	const uint8_t *at;
	size_t		left;
} source;

static inline uint64_t
take(source *from, unsigned bytes)
{
	uint64_t	value = 0;

	for (unsigned i = 0; i < bytes && from->left > 0; i++)
	{
		value |= (uint64_t) *from->at++ << 8 * i;
		from->left--;
	}
	return value;
}

#endif							/* FUZZ_H */
