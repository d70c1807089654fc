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

/* A varlena header and the encoding. */
typedef struct varlena BloomQuery;

/* A decoded query.  keys points into the value. */
typedef struct OpenQuery
{
	uint32		element_class;	/* a bf_class */
	bool		is_enum;		/* labels, which SQL does not compare with char(n) */
	uint32		least;			/* this many of the keys, duplicates each */
	uint32		nkeys;
	const uint8 *keys;			/* each: length (32 bits), canonical bytes */
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

#endif							/* BF_QUERY_H */
