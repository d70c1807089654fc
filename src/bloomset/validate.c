/*
 * validate.c
 *		amvalidate() for the operator classes of a bloomset: equality between types
 *		whose values have one element class, and no support function.
 */
#include "pg/pg_compat.h"

#include "access/htup_details.h"
#include "bloomset/bloomset.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

#define EQUALITY_STRATEGY	1

/* Can the set of one type answer for values of the other? */
static bool
can_answer(Oid set_type, Oid value_type)
{
	ElementType set;
	ElementType value;

	return find_hash_function(set_type, &set) && set.is_stable && find_hash_function(value_type, &value) &&
		lookup_hash(&value, set.element_class) != NULL;
}

static bool
is_valid_operator(const FormData_pg_amop *operator)
{
	return operator->amopstrategy == EQUALITY_STRATEGY &&
		operator->amoppurpose == AMOP_SEARCH &&
		get_op_rettype(operator->amopopr) == BOOLOID &&
		can_answer(operator->amoplefttype, operator->amoprighttype);
}

bool
bloomset_validate(Oid opclass)
{
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Oid			family;
	CatCList   *operators;
	CatCList   *functions;
	bool		result = true;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator class %u", opclass);
	family = ((Form_pg_opclass) GETSTRUCT(tuple))->opcfamily;
	ReleaseSysCache(tuple);

	operators = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(family));
	for (int i = 0; i < operators->n_members; i++)
	{
		Form_pg_amop operator = (Form_pg_amop) GETSTRUCT(&operators->members[i]->tuple);

		if (is_valid_operator(operator))
			continue;
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator %s is not valid in an operator family of bloomset",
						format_operator(operator->amopopr))));
		result = false;
	}
	ReleaseCatCacheList(operators);

	functions = SearchSysCacheList1(AMPROCNUM, ObjectIdGetDatum(family));
	if (functions->n_members > 0)
	{
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator families of bloomset have no support functions")));
		result = false;
	}
	ReleaseCatCacheList(functions);
	return result;
}
