/*
 * estimator.c
 *		Selectivity of the membership operators.
 *
 * The server's own estimators call an operator's function without an
 * expression tree, in which a polymorphic function cannot find out its
 * element's type.  This one knows the column: for a constant filter it probes
 * the most common values, and expects of the others as many in the filter as
 * the filter's cardinality leaves room for, plus its false positives.
 */
#include "pg_compat.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "core/probe.h"
#include "element.h"
#include "fmgr.h"
#include "io.h"
#include "measure.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "value.h"

PG_FUNCTION_INFO_V1(bloomfilter_contains_sel);
PG_FUNCTION_INFO_V1(bloomfilter_contains_joinsel);

/* Where nothing is known about the filter, or about the column. */
#define DEFAULT_SELECTIVITY 0.01

/*
 * Is that our type?  Whoever can create operators can give them this
 * estimator, with any types; our input function is what tells our type,
 * whatever it or its schema is called.
 */
static bool
is_bloomfilter_type(Oid type)
{
	Oid			input;
	Oid			parameter;
	FmgrInfo	info;

	if (!OidIsValid(type) || get_typtype(type) != TYPTYPE_BASE)
		return false;
	getTypeInputInfo(type, &input, &parameter);
	fmgr_info(input, &info);
	return info.fn_addr == bloomfilter_in;
}

/*
 * The constant filter and the other side of an operator's arguments; false if
 * there is no such filter.
 */
static bool
split_arguments(PlannerInfo *root, List *args, Const **filter, Node **element)
{
	if (list_length(args) != 2)
		return false;
	for (int side = 0; side < 2; side++)
	{
		Node	   *candidate = list_nth(args, side);

		if (!is_bloomfilter_type(exprType(candidate)))
			continue;
		candidate = estimate_expression_value(root, candidate);
		if (!IsA(candidate, Const) || ((Const *) candidate)->constisnull)
			return false;
		*filter = (Const *) candidate;
		*element = list_nth(args, 1 - side);
		return true;
	}
	return false;
}

/* What the statistics say about the rows whose value is a common one. */
typedef struct CommonValues
{
	double		count;			/* of common values */
	double		frequency;		/* share of rows that have one */
	double		matches;		/* of the common values, those in the filter */
	double		matched_frequency;
} CommonValues;

static CommonValues
probe_common_values(VariableStatData *variable, const bf_filter *filter,
					const ElementType *element)
{
	CommonValues common = {0};
	AttStatsSlot slot;

	if (!HeapTupleIsValid(variable->statsTuple) ||
		!get_attstatsslot(&slot, variable->statsTuple, STATISTIC_KIND_MCV, InvalidOid,
						  ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
		return common;
	common.count = slot.nvalues;
	for (int i = 0; i < slot.nvalues; i++)
	{
		common.frequency += slot.numbers[i];
		if (bf_contains(filter, element->hash(slot.values[i], filter->params.seed)))
		{
			common.matches++;
			common.matched_frequency += slot.numbers[i];
		}
	}
	free_attstatsslot(&slot);
	return common;
}

static double
null_fraction(VariableStatData *variable)
{
	if (!HeapTupleIsValid(variable->statsTuple))
		return 0;
	return ((Form_pg_statistic) GETSTRUCT(variable->statsTuple))->stanullfrac;
}

/* The share of a column's rows that a filter lets through. */
static double
estimate_share(VariableStatData *variable, const bf_filter *filter,
			   const ElementType *element)
{
	FilterMeasures measures = measure_filter(filter);
	CommonValues common = probe_common_values(variable, filter, element);
	bool		is_default;
	double		distinct = get_variable_numdistinct(variable, &is_default);
	double		rare_distinct = distinct - common.count;
	double		rare_share = 0;

	if (is_default)
		return DEFAULT_SELECTIVITY;
	if (rare_distinct >= 1)
	{
		rare_share = Max(measures.cardinality - common.matches, 0) / rare_distinct;
		rare_share = rare_share < 1 ? rare_share + (1 - rare_share) * measures.rate : 1;
	}
	return common.matched_frequency +
		Max(1 - common.frequency - null_fraction(variable), 0) * rare_share;
}

static double
contains_selectivity(PlannerInfo *root, Oid operator, List *args, int varRelid)
{
	Const	   *constant;
	Node	   *node;
	bf_filter	filter;
	ElementType element;
	VariableStatData variable;
	double		selectivity = DEFAULT_SELECTIVITY;

	if (!split_arguments(root, args, &constant, &node))
		return selectivity;
	open_filter(constant->constvalue, &filter);
	if (filter.params.element_class == BF_CLASS_NONE)
		return 0;

	examine_variable(root, node, varRelid, &variable);
	if (variable.rel != NULL &&
		find_element_type(variable.vartype, exprCollation(node), &element) &&
		element.element_class == filter.params.element_class &&
		statistic_proc_security_check(&variable, get_opcode(operator)))
		selectivity = estimate_share(&variable, &filter, &element);
	ReleaseVariableStats(variable);
	CLAMP_PROBABILITY(selectivity);
	return selectivity;
}

Datum
bloomfilter_contains_sel(PG_FUNCTION_ARGS)
{
	PG_RETURN_FLOAT8(contains_selectivity((PlannerInfo *) PG_GETARG_POINTER(0),
										  PG_GETARG_OID(1),
										  (List *) PG_GETARG_POINTER(2),
										  PG_GETARG_INT32(3)));
}

/* The filter of a join clause comes from a row: nothing is known about it. */
Datum
bloomfilter_contains_joinsel(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_FLOAT8(DEFAULT_SELECTIVITY);
}
