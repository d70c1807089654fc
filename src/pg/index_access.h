/*
 * index_access.h
 *		Who may ask an index about a table's values.
 */
#ifndef BF_INDEX_ACCESS_H
#define BF_INDEX_ACCESS_H

#include "pg/pg_compat.h"

#include "access/attnum.h"
#include "utils/rel.h"

/* An access method, for the functions and messages here. */
typedef struct IndexMethod
{
	const char *name;
	bool		(*is_ours) (Relation index);
	const char *hint;			/* to name one of its indexes; translatable */
} IndexMethod;

/* A regclass may be of a relation that is gone: an error.  Takes AccessShareLock. */
extern Relation open_existing(Oid relation);

/*
 * Locks the table of an index of the method, then the index, with AccessShareLock until
 * the transaction ends.  An error for other relations.
 */
extern Oid	lock_table_of_index(const IndexMethod *method, Oid index);

/* Raises an error for an unlogged relation on a standby, which has none of its pages. */
extern void check_has_contents(Relation relation);

/* Raises an error if Citus has moved a table's rows to other tables. */
extern void check_not_distributed(Oid table);

/*
 * The column of which an index tells, or InvalidAttrNumber if it tells of several: then
 * only the privilege on the table suffices.
 */
extern AttrNumber told_column(Relation index);

/* May the user learn which values the column of a locked table has? */
extern bool may_ask(Oid table, AttrNumber column);

/* Raises an error unless the user may learn them. */
extern void check_column_access(const IndexMethod *method, Oid table, AttrNumber column);

/* Raises an error unless the user may learn which values the index has. */
extern void check_index_access(const IndexMethod *method, Oid index, Oid table);

#endif							/* BF_INDEX_ACCESS_H */
