/*
 * base_filter.h
 *		The filter that bloom_agg(element, filter) adds to, row after row.
 *
 * It is to be the same in all rows of a group.  Otherwise it would depend on
 * the order of rows, and in a parallel plan on the workers, what is in the
 * result.
 */
#ifndef BF_BASE_FILTER_H
#define BF_BASE_FILTER_H

#include "pg_compat.h"

/*
 * How much of one in memory is compared: all of what fits into a table's row,
 * and of larger ones the beginning.  A row that brings its filter in another
 * place has copied it there, which costs more.
 */
#define COMPARED_BYTES	8192

/* How much if it is where it was in the row before. */
#define GLANCED_BYTES	64

typedef struct BaseFilter
{
	bool		given;			/* false if it is NULL */
	Size		size;			/* of the value as it came: a TOAST pointer, or the whole */
	Size		kept;			/* of it here */
	const void *place;			/* where it was in the last row; not to be read */
	char		bytes[FLEXIBLE_ARRAY_MEMBER];	/* the first of them */
} BaseFilter;

/* Remembers the filter of a group's first row, in the given memory context. */
extern BaseFilter *remember_base(Datum value, bool isnull, MemoryContext context);

/* Is another form or copy of a value that filter?  May fetch both. */
extern bool is_base_elsewhere(const BaseFilter *base, Datum value);

/*
 * Is a row's filter that of the first row?  Large ones in memory that differ in
 * few bits may be taken for the same; stored ones never.
 */
static inline bool
is_base(BaseFilter *base, Datum value, bool isnull)
{
	const char *bytes = DatumGetPointer(value);

	if (isnull || !base->given)
		return isnull && !base->given;
	if (VARSIZE_ANY(bytes) != base->size ||
		memcmp(bytes, base->bytes, base->place == bytes ? Min(base->kept, GLANCED_BYTES) : base->kept) != 0)
		return is_base_elsewhere(base, value);
	base->place = bytes;
	return true;
}

#endif							/* BF_BASE_FILTER_H */
