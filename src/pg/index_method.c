/*
 * index_method.c
 *		What the definitions of our index access methods have in common.
 */
#include "pg/pg_compat.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_opclass.h"
#include "pg/index_method.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

Oid
access_method_of(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Oid			result;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	result = ((Form_pg_class) GETSTRUCT(tuple))->relam;
	ReleaseSysCache(tuple);
	return result;
}

static Oid
family_of_class(Oid opclass)
{
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Oid			family;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator class %u", opclass);
	family = ((Form_pg_opclass) GETSTRUCT(tuple))->opcfamily;
	ReleaseSysCache(tuple);
	return family;
}

Oid
validate_operators(Oid opclass, const char *method, IsValidOperator is_valid, bool *valid)
{
	Oid			family = family_of_class(opclass);
	CatCList   *operators = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(family));

	*valid = true;
	for (int i = 0; i < operators->n_members; i++)
	{
		Form_pg_amop operator = (Form_pg_amop) GETSTRUCT(&operators->members[i]->tuple);

		if (is_valid(operator))
			continue;
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator %s is not valid in an operator family of %s",
						format_operator(operator->amopopr), method)));
		*valid = false;
	}
	ReleaseCatCacheList(operators);
	return family;
}

uint64
parse_seed(const char *seed)
{
	return (uint64) DatumGetInt64(DirectFunctionCall1(int8in, CStringGetDatum(seed)));
}

void
validate_seed(const char *seed)
{
	if (seed != NULL)
		(void) parse_seed(seed);
}

char *
pretty_size(uint64 bytes)
{
	return text_to_cstring(DatumGetTextPP(DirectFunctionCall1(pg_size_pretty, Int64GetDatum((int64) bytes))));
}
