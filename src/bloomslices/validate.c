/*
 * validate.c
 *		amvalidate() for the operator classes of bloomslices: the operators that
 *		search.c answers.
 */
#include "pg/pg_compat.h"

#include "access/amvalidate.h"
#include "bloomslices/bloomslices.h"
#include "catalog/pg_type.h"
#include "pg/bloom_type.h"
#include "pg/index_method.h"
#include "utils/lsyscache.h"

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
	bool		result;

	(void) validate_operators(opclass, "bloomslices", is_valid_operator, &result);
	return result;
}
