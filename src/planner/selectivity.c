/*
 * selectivity.c
 *		Selectivity of the membership operators.
 *
 * PostgreSQL's own estimators call an operator's function without an expression
 * tree, so a polymorphic function cannot determine its element type.  These
 * estimators take the type from the column.
 *
 * For a constant filter they probe the most common values.  The selectivity of
 * the other values follows from the filter's cardinality and false-positive
 * rate, or from the histogram.  For a filter that a subquery builds they derive
 * the cardinality from the subquery's plan.
 */
#include "pg/pg_compat.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "core/dense.h"
#include "core/probe.h"
#include "fmgr.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/paths.h"
#include "pg/bloom_type.h"
#include "pg/element.h"
#include "planner/constant_filter.h"
#include "planner/query_expression.h"
#include "planner/selectivity.h"
#include "planner/subquery_filter.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "value/value.h"

PG_FUNCTION_INFO_V1(bloomfilter_contains_sel);
PG_FUNCTION_INFO_V1(bloomfilter_contains_joinsel);

/*
 * Finds the filter or counter among an operator's two arguments; false if there
 * is none.
 */
static bool
split_arguments(List *args, Node **filter, bf_kind *kind, Node **element)
{
	if (list_length(args) != 2)
		return false;
	for (int side = 0; side < 2; side++)
	{
		Node	   *candidate = list_nth(args, side);

		if (!is_bloom_type(exprType(candidate), kind))
			continue;
		*filter = candidate;
		*element = list_nth(args, 1 - side);
		return true;
	}
	return false;
}

/* Values of a column's statistics, and those of them that are in a filter. */
typedef struct ProbedValues
{
	double		count;
	double		frequency;		/* sum, as a share of all rows */
	double		matches;		/* count of the values in the filter */
	double		matched_frequency;
} ProbedValues;

/*
 * Hashes values and prefetches their blocks of a dense filter.  The statistics
 * of a table with 365 partitions can have 73,000 values.
 */
static uint64 *
hash_values(const AttStatsSlot *slot, const bf_filter *filter, HashElement hash)
{
	uint64	   *hashes = palloc(slot->nvalues * sizeof(*hashes));
	bf_update	update = bf_update_of(&filter->params, BF_SUM);

	for (int i = 0; i < slot->nvalues; i++)
	{
		hashes[i] = hash(slot->values[i], filter->params.seed);
		if (!filter->sparse)
			bf_dense_prefetch(filter->payload, &update, hashes[i]);
	}
	return hashes;
}

/* Probes the most common values or the histogram bounds, depending on kind. */
static ProbedValues
probe_statistics(VariableStatData *variable, int kind, const bf_filter *filter,
				 HashElement hash)
{
	ProbedValues probed = {0};
	AttStatsSlot slot;
	uint64	   *hashes;
	int			parts = ATTSTATSSLOT_VALUES |
		(kind == STATISTIC_KIND_MCV ? ATTSTATSSLOT_NUMBERS : 0);

	if (!HeapTupleIsValid(variable->statsTuple) ||
		!get_attstatsslot(&slot, variable->statsTuple, kind, InvalidOid, parts))
		return probed;
	hashes = hash_values(&slot, filter, hash);
	probed.count = slot.nvalues;
	for (int i = 0; i < slot.nvalues; i++)
	{
		float4		frequency = i < slot.nnumbers ? slot.numbers[i] : 0;

		probed.frequency += frequency;
		if (bf_contains(filter, hashes[i]))
		{
			probed.matches++;
			probed.matched_frequency += frequency;
		}
	}
	pfree(hashes);
	free_attstatsslot(&slot);
	return probed;
}

static double
null_fraction(VariableStatData *variable)
{
	if (!HeapTupleIsValid(variable->statsTuple))
		return 0;
	return ((Form_pg_statistic) GETSTRUCT(variable->statsTuple))->stanullfrac;
}

/*
 * Estimates the share of a column's distinct values that pass a filter with this
 * many elements, if all elements are values of the column.
 */
static double
share_of_uncommon(double elements, double distinct, double rate)
{
	elements = Min(elements / distinct, 1);
	return elements + (1 - elements) * rate;
}

/*
 * Estimates the same share if the filter has more elements than the column has
 * values.  The histogram bounds serve as a sample of the values.  They are a
 * poor sample otherwise: they are evenly spaced, and the values from which a
 * filter was built often are too.  Returns -1 if there is no histogram.
 */
static double
share_of_bounds(VariableStatData *variable, const bf_filter *filter, HashElement hash)
{
	ProbedValues bounds = probe_statistics(variable, STATISTIC_KIND_HISTOGRAM, filter, hash);

	return bounds.count > 0 ? (bounds.matches + 1) / (bounds.count + 1) : -1;
}

/* Estimates the share of a column's rows that pass a filter. */
static double
estimate_share(VariableStatData *variable, const bf_filter *filter, FilterMeasures measures,
			   HashElement hash)
{
	ProbedValues common = probe_statistics(variable, STATISTIC_KIND_MCV, filter, hash);
	bool		is_default;
	double		distinct = get_variable_numdistinct(variable, &is_default) - common.count;
	double		elements = Max(measures.cardinality - common.matches, 0);
	double		uncommon = Max(1 - common.frequency - null_fraction(variable), 0);
	double		share = -1;

	if (is_default)
		return DEFAULT_SELECTIVITY;
	if (distinct < 1)
		return common.matched_frequency;
	if (elements > distinct)
		share = share_of_bounds(variable, filter, hash);
	if (share < 0)
		share = share_of_uncommon(elements, distinct, measures.rate);
	return common.matched_frequency + uncommon * share;
}

/* Is the expression joined to another table by equality? */
static bool
is_joined(PlannerInfo *root, VariableStatData *variable)
{
	ListCell   *cell;

	foreach(cell, root->eq_classes)
	{
		EquivalenceClass *class = lfirst_node(EquivalenceClass, cell);

		if (bms_membership(class->ec_relids) == BMS_MULTIPLE &&
			find_ec_member_matching_expr(class, (Expr *) variable->var, variable->rel->relids) != NULL)
			return true;
	}
	return false;
}

/*
 * Estimates the share of a column's rows that pass a filter built by a subquery.
 * If the column is also joined, the filter usually anticipates that join, and the
 * planner applies the same share again.  The square root divides it evenly
 * between scan and join.  An overestimate of the scan costs little, while an
 * underestimate of several joins makes nested loops look cheap.
 */
static double
estimate_subquery_share(PlannerInfo *root, VariableStatData *variable, const SubqueryFilter *subquery)
{
	bool		is_default;
	double		distinct = get_variable_numdistinct(variable, &is_default);
	double		share;

	if (is_default || distinct < 1)
		return DEFAULT_SELECTIVITY;
	share = share_of_uncommon(subquery->elements, distinct, subquery->rate);
	if (is_joined(root, variable))
		share = sqrt(share);
	return (1 - null_fraction(variable)) * share;
}

static double
constant_selectivity(VariableStatData *variable, Node *node, Oid operator,
					 ConstantFilter *operand, bf_kind kind)
{
	const Const *constant = (const Const *) operand->value;
	bf_filter	filter;
	ElementType element;
	HashElement hash;

	if (constant->constisnull)
		return 0;
	open_value(constant->constvalue, kind, &filter);
	if (filter.params.element_class == BF_CLASS_NONE)
		return 0;
	if (variable->rel == NULL ||
		!find_element_type(variable->vartype, exprCollation(node), &element) ||
		(hash = lookup_hash(&element, filter.params.element_class)) == NULL ||
		!statistic_proc_security_check(variable, get_opcode(operator)))
		return DEFAULT_SELECTIVITY;
	return estimate_share(variable, &filter, measure_once(operand, &filter), hash);
}

/* The filter is a column, or something else that a row has. */
static double
row_selectivity(PlannerInfo *root, Oid operator, List *args, Oid collation, int varRelid)
{
	Oid			function = get_opcode(operator);
	QueryExpression expression;

	if (!find_query_expression(function, args, collation, &expression))
		return DEFAULT_SELECTIVITY;
	return query_selectivity(root, function, expression.filter, expression.query, varRelid);
}

static double
contains_selectivity(PlannerInfo *root, Oid operator, List *args, Oid collation, int varRelid)
{
	Node	   *operand;
	Node	   *node;
	bf_kind		kind;
	ConstantFilter *filter;
	SubqueryFilter subquery;
	VariableStatData variable;
	double		selectivity = DEFAULT_SELECTIVITY;

	if (!split_arguments(args, &operand, &kind, &node))
		return selectivity;
	filter = evaluate_filter(root, operand);
	examine_variable(root, node, varRelid, &variable);
	if (IsA(filter->value, Const))
		selectivity = constant_selectivity(&variable, node, operator, filter, kind);
	else if (variable.rel == NULL)
		selectivity = row_selectivity(root, operator, args, collation, varRelid);
	else if (find_subquery_filter(root, filter->value, &subquery))
		selectivity = estimate_subquery_share(root, &variable, &subquery);
	ReleaseVariableStats(variable);
	CLAMP_PROBABILITY(selectivity);
	return selectivity;
}

Datum
bloomfilter_contains_sel(PG_FUNCTION_ARGS)
{
	PG_RETURN_FLOAT8(contains_selectivity((PlannerInfo *) PG_GETARG_POINTER(0),
										  PG_GETARG_OID(1),
										  (List *) PG_GETARG_POINTER(2), PG_GET_COLLATION(),
										  PG_GETARG_INT32(3)));
}

/* The filter of a join clause comes from a row and is unknown. */
Datum
bloomfilter_contains_joinsel(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_FLOAT8(DEFAULT_SELECTIVITY);
}
