/*
 * spool.h
 *		The hashes of a build, in memory or in temporary files.
 */
#ifndef BF_SPOOL_H
#define BF_SPOOL_H

#include "pg/pg_compat.h"

typedef struct HashSpool HashSpool;

/* Called with some of the hashes. */
typedef void (*UseHashes) (void *state, const uint64 *hashes, uint64 n);

/*
 * A spool in the current memory context, which takes this many bytes and a buffer
 * for each temporary file.
 */
extern HashSpool *make_spool(Size memory);

extern void spool_hash(HashSpool *spool, uint64 hash);

/* The number of hashes. */
extern uint64 spooled_hashes(const HashSpool *spool);

/*
 * Passes on all hashes from `first` to `last`, and perhaps others.  Interruptible.
 * No hash can be added afterwards.
 */
extern void read_spool(HashSpool *spool, uint64 first, uint64 last, UseHashes use, void *state);

extern void free_spool(HashSpool *spool);

#endif							/* BF_SPOOL_H */
