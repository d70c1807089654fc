/*
 * selectivity.c
 *		Selectivity of the membership operators.
 *
 * The server's own estimators call an operator's function without an
 * expression tree, in which a polymorphic function cannot find out its
 * element's type.  This one knows the column: for a constant filter it probes
 * the most common values, and expects of the others as many in the filter as
 * the filter's cardinality leaves room for, plus its false positives, unless
 * the histogram knows better.  Of a filter that a subquery builds it knows how
 * many elements it will have.
 */
#include "pg/pg_compat.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "core/probe.h"
#include "filter/value.h"
#include "fmgr.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "pg/element.h"
#include "planner/constant_filter.h"
#include "planner/subquery_filter.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

PG_FUNCTION_INFO_V1(bloomfilter_contains_sel);
PG_FUNCTION_INFO_V1(bloomfilter_contains_joinsel);

/*
 * Where nothing is known about the filter, or about the column.  A query may
 * have several filters on one scan, and these multiply: with 0.01 for each the
 * planner takes nested loops for the few rows it then expects.
 */
#define DEFAULT_SELECTIVITY 0.1

/* The filter and the other side of an operator's arguments; false if none of them is a filter. */
static bool
split_arguments(List *args, Node **filter, Node **element)
{
	if (list_length(args) != 2)
		return false;
	for (int side = 0; side < 2; side++)
	{
		Node	   *candidate = list_nth(args, side);

		if (!is_bloomfilter_type(exprType(candidate)))
			continue;
		*filter = candidate;
		*element = list_nth(args, 1 - side);
		return true;
	}
	return false;
}

/* Values from the statistics, and how many of them a filter contains. */
typedef struct ProbedValues
{
	double		count;
	double		frequency;		/* share of rows that have one of them */
	double		matches;		/* of the values, those in the filter */
	double		matched_frequency;
} ProbedValues;

/*
 * The hashes of values, with the blocks of a dense filter on their way from
 * memory: a table with 365 partitions has 73,000 values in its statistics.
 */
static uint64 *
hash_values(const AttStatsSlot *slot, const bf_filter *filter, HashElement hash)
{
	uint64	   *hashes = palloc(slot->nvalues * sizeof(*hashes));
	bf_shape	shape = bf_shape_of(&filter->params);

	for (int i = 0; i < slot->nvalues; i++)
	{
		hashes[i] = hash(slot->values[i], filter->params.seed);
		if (!filter->sparse)
			bf_bits_prefetch(filter->payload, &shape, hashes[i]);
	}
	return hashes;
}

/* Probes the common values, or the bounds of the histogram of the others. */
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
 * The share of the uncommon values that are in a filter, given how many of its
 * elements are left for them, if all of these come from this column.
 */
static double
share_of_uncommon(double elements, double distinct, double rate)
{
	elements = Min(elements / distinct, 1);
	return elements + (1 - elements) * rate;
}

/*
 * The same if there are more elements than the column has values, so that they
 * cannot all come from it: the histogram's bounds, a sample of these values,
 * tell how many do.  They are not asked otherwise: they are evenly spaced, and
 * often so are the values that a filter was built from.  Negative if there is
 * no histogram.
 */
static double
share_of_bounds(VariableStatData *variable, const bf_filter *filter, HashElement hash)
{
	ProbedValues bounds = probe_statistics(variable, STATISTIC_KIND_HISTOGRAM, filter, hash);

	return bounds.count > 0 ? (bounds.matches + 1) / (bounds.count + 1) : -1;
}

/* The share of a column's rows that a filter with these measures lets through. */
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

/* Is an expression also joined to another table, by equality? */
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
 * The same for a filter of which the plan that builds it is known.  If the
 * column is joined as well, the filter anticipates that join, and the planner
 * is going to count the same share again.  Half of it, by orders of magnitude,
 * is then left to the join: more rows than come out of the scan cost a little,
 * far fewer than come out of several joins make nested loops look cheap.
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
					 EstimatedFilter *estimated)
{
	const Const *constant = (const Const *) estimated->value;
	bf_filter	filter;
	ElementType element;
	HashElement hash;

	if (constant->constisnull)
		return 0;
	open_filter(constant->constvalue, &filter);
	if (filter.params.element_class == BF_CLASS_NONE)
		return 0;
	if (variable->rel == NULL ||
		!find_element_type(variable->vartype, exprCollation(node), &element) ||
		(hash = lookup_hash(&element, filter.params.element_class)) == NULL ||
		!statistic_proc_security_check(variable, get_opcode(operator)))
		return DEFAULT_SELECTIVITY;
	return estimate_share(variable, &filter, measure_once(estimated, &filter), hash);
}

static double
contains_selectivity(PlannerInfo *root, Oid operator, List *args, int varRelid)
{
	Node	   *operand;
	Node	   *node;
	EstimatedFilter *filter;
	SubqueryFilter subquery;
	VariableStatData variable;
	double		selectivity = DEFAULT_SELECTIVITY;

	if (!split_arguments(args, &operand, &node))
		return selectivity;
	filter = estimate_filter(root, operand);
	examine_variable(root, node, varRelid, &variable);
	if (IsA(filter->value, Const))
		selectivity = constant_selectivity(&variable, node, operator, filter);
	else if (variable.rel != NULL && find_subquery_filter(root, filter->value, &subquery))
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
