/*
 * access.h
 *		What a user may ask of which relation.
 */
#ifndef BF_ACCESS_H
#define BF_ACCESS_H

#include "pg/pg_compat.h"

#include "pg/index_access.h"

extern const IndexMethod bloomset_method;

/*
 * Locks a table with AccessShareLock until the transaction ends.  Returns the number
 * of the column; an error if it does not exist, if the user may not read it, or if the
 * relation's rows are elsewhere.
 */
extern AttrNumber lock_table_column(Oid table, const char *column);

/* Reports that a table of a tree has no set that proves absence. */
pg_noreturn extern void report_no_usable_set(Oid table);

/* Reports that no set was found for the column, or for the index if it is NULL. */
pg_noreturn extern void report_no_set(Oid relation, const char *column);

#endif							/* BF_ACCESS_H */
