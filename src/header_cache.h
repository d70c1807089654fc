/*
 * header_cache.h
 *		Headers of stored filters that this session has read.
 *
 * A probe of a stored filter that is met for the first time reads two slices
 * of it, header and block, and each is a search of an index.  A session that
 * looks for one key after another in the same filters need not search for the
 * headers again.
 *
 * A TOAST pointer stands for one value while a snapshot keeps that from being
 * vacuumed away, as a statement's does for as long as it runs, and afterwards
 * until the server has given out four billion OIDs more.  No server does that
 * within the LIFETIME of what is remembered here.
 */
#ifndef BF_HEADER_CACHE_H
#define BF_HEADER_CACHE_H

#include "pg_compat.h"

#include "core/format.h"

/* Copies the header of the value that a pointer stands for; false if it is not known. */
extern bool recall_header(const struct varatt_external *pointer, uint8 header[BF_HEADER_SIZE]);

/* Remembers one, at the cost of another that may have had its place. */
extern void remember_header(const struct varatt_external *pointer,
							const uint8 header[BF_HEADER_SIZE]);

#endif							/* BF_HEADER_CACHE_H */
