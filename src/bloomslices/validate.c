/*
 * validate.c
 *		amvalidate() for the operator classes of bloomslices: the operators that
 *		search.c answers.
 */
#include "pg/pg_compat.h"

#include "access/amvalidate.h"
#include "access/htup_details.h"
#include "bloomslices/bloomslices.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type.h"
#include "pg/bloom_type.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

static bool
is_filter_type(Oid type)
{
	bf_kind		kind;

	return is_bloom_type(type, &kind) && kind == BF_FILTER;
}

static bool
is_valid_operator(const FormData_pg_amop *operator)
{
	bool		orders = operator->amopstrategy == DISTANCE_STRATEGY;
	bool		takes_filter = is_filter_type(operator->amoprighttype);

	return operator->amopstrategy >= MATCH_STRATEGY && operator->amopstrategy <= MOST_STRATEGY &&
		is_filter_type(operator->amoplefttype) &&
		takes_filter == (operator->amopstrategy == SUPERSET_STRATEGY) &&
		operator->amoppurpose == (orders ? AMOP_ORDER : AMOP_SEARCH) &&
		get_op_rettype(operator->amopopr) == (orders ? INT4OID : BOOLOID) &&
		(!orders || opfamily_can_sort_type(operator->amopsortfamily, INT4OID));
}

bool
bloomslices_validate(Oid opclass)
{
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Oid			family;
	CatCList   *operators;
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
				 errmsg("operator %s is not valid in an operator family of bloomslices",
						format_operator(operator->amopopr))));
		result = false;
	}
	ReleaseCatCacheList(operators);
	return result;
}
