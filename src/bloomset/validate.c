/*
 * validate.c
 *		amvalidate() for the operator classes of a bloomset: equality between types
 *		whose values have one element class, and no support function.
 */
#include "pg/pg_compat.h"

#include "bloomset/bloomset.h"
#include "catalog/pg_type.h"
#include "pg/index_method.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
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
	bool		result;
	Oid			family = validate_operators(opclass, "bloomset", is_valid_operator, &result);
	CatCList   *functions = SearchSysCacheList1(AMPROCNUM, ObjectIdGetDatum(family));

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
