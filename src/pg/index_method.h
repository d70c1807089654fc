/*
 * index_method.h
 *		What the definitions of our index access methods have in common.
 */
#ifndef BF_INDEX_METHOD_H
#define BF_INDEX_METHOD_H

#include "pg/pg_compat.h"

#include "catalog/pg_amop.h"

/* Is an operator one that an operator family of the access method may have? */
typedef bool (*IsValidOperator) (const FormData_pg_amop *operator);

/* The access method of a table or an index, or InvalidOid if that is gone. */
extern Oid	access_method_of(Oid relation);

/*
 * For amvalidate(): reports each operator of a class's family that is not valid, and
 * returns the family; *valid is false if there is one.
 */
extern Oid	validate_operators(Oid opclass, const char *method, IsValidOperator is_valid, bool *valid);

/* A seed is a storage parameter of type string, because those of type integer have 32 bits. */
extern uint64 parse_seed(const char *seed);

/* An error if it is not NULL and no seed. */
extern void validate_seed(const char *seed);

/*
 * A build refuses storage parameters by which an index above UNQUESTIONED_BYTES takes more than
 * MAX_RESERVE times what its table needs: they are wrong, and would fill the disk.
 */
#define UNQUESTIONED_BYTES	((uint64) 1 << 30)
#define MAX_RESERVE			64

/* As pg_size_pretty() shows a size. */
extern char *pretty_size(uint64 bytes);

#endif							/* BF_INDEX_METHOD_H */
