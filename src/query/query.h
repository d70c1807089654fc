/*
 * query.h
 *		The type bloomquery: keys of one element class, and how many of them a
 *		filter must contain.
 *
 * A query holds the canonical bytes of its keys (doc/format.md, "Queries"), so
 * that any filter can be asked, whatever its seed.
 */
#ifndef BF_QUERY_H
#define BF_QUERY_H

#include "pg/pg_compat.h"

#include "core/filter.h"
#include "fmgr.h"

/*
 * Numbers of 32 bits, little-endian: class, least, number of keys.  Then each
 * key: its length, and its canonical bytes.
 */
#define QUERY_AT_CLASS		0
#define QUERY_AT_LEAST		4
#define QUERY_AT_COUNT		8
#define QUERY_HEADER_SIZE	12
#define QUERY_LENGTH_SIZE	4
#define QUERY_CLASS_ENUM	3500	/* OID of anyenum: labels of an enum */

/* Loops over keys check for interrupts once per this many. */
#define CHUNK_KEYS			4096

/* A varlena header and the encoding. */
typedef struct varlena BloomQuery;

/* A decoded query.  keys points into the value. */
typedef struct OpenQuery
{
	uint32		element_class;	/* a bf_class */
	bool		is_enum;		/* labels, not comparable with char(n) */
	uint32		least;			/* this many of the keys, duplicates each */
	uint32		nkeys;
	const uint8 *keys;			/* each: length, canonical bytes */
	uint32		size;			/* of keys, in bytes */
} OpenQuery;

/*
 * Detoasts and decodes a query; an error if it is invalid.  Returns the value
 * into which *query points: the argument itself, or a copy in the current memory
 * context.
 */
extern BloomQuery *open_query(Datum value, OpenQuery *query);

/*
 * Computes the hashes of all keys, in their order, for filters of a class and a
 * seed.  False if such filters cannot answer: then the caller reports the
 * mismatch as report_class_mismatch(&params, query->element_class).  A query
 * without keys asks nothing, so every filter can answer it.  A filter of class
 * BF_CLASS_NONE is empty, and the caller does not ask for its hashes.  Can be
 * interrupted, so the caller holds no buffer lock.
 */
extern bool hash_query(const OpenQuery *query, uint32 filter_class, uint64 seed,
					   uint64 *hashes);

/*
 * Decodes a query.  Returns NULL, or an untranslated message that says what is
 * wrong with the bytes.
 */
extern const char *decode_query(const uint8 *bytes, uint64 size, OpenQuery *query);

#endif							/* BF_QUERY_H */
