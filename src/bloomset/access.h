/*
 * access.h
 *		What a user may ask of which relation.
 */
#ifndef BF_ACCESS_H
#define BF_ACCESS_H

#include "pg/pg_compat.h"

#include "access/attnum.h"
#include "utils/rel.h"

/*
 * Locks the table of a bloomset index, then the index, with AccessShareLock until
 * the transaction ends.  An error for other relations.
 */
extern Oid	lock_table_of_index(Oid index);

/*
 * Locks a table in the same way.  Returns the number of the column; an error if it
 * does not exist, if the user may not read it, or if the relation's rows are
 * elsewhere.
 */
extern AttrNumber lock_table_column(Oid table, const char *column);

/*
 * The column of which a set tells, or InvalidAttrNumber if it tells of several: then
 * only the privilege on the table suffices.
 */
extern AttrNumber told_column(Relation index);

/* May the user learn which values the column of a locked table has? */
extern bool may_ask(Oid table, AttrNumber column);

/* Raises an error unless the user may learn which values the index has. */
extern void check_index_access(Oid index, Oid table);

/* Reports that a table of a tree has no set that proves absence. */
pg_noreturn extern void report_no_usable_set(Oid table);

/* Reports that no set was found for the column, or for the index if it is NULL. */
pg_noreturn extern void report_no_set(Oid relation, const char *column);

#endif							/* BF_ACCESS_H */
