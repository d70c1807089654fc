/*
 * keys.h
 *		Queries from the arguments of SQL functions.
 */
#ifndef BF_KEYS_H
#define BF_KEYS_H

#include "pg/pg_compat.h"

#include "pg/element.h"
#include "query/query.h"

/* How an argument holds keys. */
typedef struct KeyType
{
	ElementType element;
	bool		is_array;		/* several keys, else one */
} KeyType;

/* Finds the keys' type of the current function's argument; an error if unsupported. */
extern void resolve_key_type(FunctionCallInfo fcinfo, int argument, KeyType *type);

/*
 * Makes a query for all keys of an argument, in the current memory context.
 * NULL elements count in its least, but are no keys: no filter contains them.
 */
extern BloomQuery *make_query(const KeyType *type, Datum keys);

/* Checks a number of keys that a filter must contain: an error if negative. */
extern uint32 check_least(int32 least);

#endif							/* BF_KEYS_H */
