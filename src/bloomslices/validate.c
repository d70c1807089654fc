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

extern PGDLLEXPORT Datum bloomquery_in(PG_FUNCTION_ARGS);

static bool
is_valid_operator(const FormData_pg_amop *operator)
{
	bool		orders = operator->amopstrategy == DISTANCE_STRATEGY;
	bool		takes_filter = operator->amopstrategy == SUPERSET_STRATEGY;

	return operator->amopstrategy >= MATCH_STRATEGY && operator->amopstrategy <= MOST_STRATEGY &&
		input_function_of(operator->amoplefttype) == bloomfilter_in &&
		input_function_of(operator->amoprighttype) == (takes_filter ? bloomfilter_in : bloomquery_in) &&
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
