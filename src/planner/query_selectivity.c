/*
 * query_selectivity.c
 *		Selectivity of conditions on a column of filters.
 *
 * The statistics of such a column have some of its filters, if they are small:
 * ANALYZE keeps no value of more than 1 kB.  The estimators ask these.
 */
#include "pg/pg_compat.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "core/probe.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "planner/query_expression.h"
#include "planner/selectivity.h"
#include "query/query.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "value/value.h"

PG_FUNCTION_INFO_V1(bloomfilter_matches_sel);

/* Planning should not take longer than a scan. */
#define MAX_ESTIMATED_KEYS	4096

/* A query and its hashes for the last filter; most filters of a column have equal ones. */
typedef struct HashedQuery
{
	OpenQuery	query;
	uint64	   *hashes;
	uint32		filter_class;	/* BF_CLASS_NONE at first */
	uint64		seed;
	bool		answerable;		/* the hashes are valid */
} HashedQuery;

static bool
hash_for(HashedQuery *hashed, const bf_params *params)
{
	if (hashed->filter_class != params->element_class || hashed->seed != params->seed)
	{
		hashed->answerable = hash_query(&hashed->query, params->element_class, params->seed, hashed->hashes);
		hashed->filter_class = params->element_class;
		hashed->seed = params->seed;
	}
	return hashed->answerable;
}

static bool
is_match(const bf_filter *filter, HashedQuery *hashed)
{
	const OpenQuery *query = &hashed->query;
	uint32		hits = 0;

	CHECK_FOR_INTERRUPTS();
	if (filter->params.element_class == BF_CLASS_NONE)
		return query->least == 0;
	if (!hash_for(hashed, &filter->params))
		return false;
	for (uint32 i = 0; i < query->nkeys && hits < query->least; i++)
		hits += bf_contains(filter, hashed->hashes[i]);
	return hits >= query->least;
}

/* Filters of a column's statistics: how many match, or their share of all rows. */
typedef struct AskedFilters
{
	int			count;
	int			matches;
	double		frequency;
	double		matched_frequency;
} AskedFilters;

static AskedFilters
ask_statistics(VariableStatData *variable, int kind, HashedQuery *hashed)
{
	AskedFilters asked = {0};
	AttStatsSlot slot;
	int			parts = ATTSTATSSLOT_VALUES |
		(kind == STATISTIC_KIND_MCV ? ATTSTATSSLOT_NUMBERS : 0);

	if (!get_attstatsslot(&slot, variable->statsTuple, kind, InvalidOid, parts))
		return asked;
	asked.count = slot.nvalues;
	for (int i = 0; i < slot.nvalues; i++)
	{
		double		frequency = i < slot.nnumbers ? slot.numbers[i] : 0;
		bf_filter	filter;
		BloomValue *bytes = open_value(slot.values[i], BF_FILTER, &filter);

		asked.frequency += frequency;
		if (is_match(&filter, hashed))
		{
			asked.matches++;
			asked.matched_frequency += frequency;
		}
		close_value(slot.values[i], bytes);
	}
	free_attstatsslot(&slot);
	return asked;
}

/* The share of a column's rows that match, as far as its statistics know. */
static double
matching_share(VariableStatData *variable, const OpenQuery *query)
{
	double		nulls = ((Form_pg_statistic) GETSTRUCT(variable->statsTuple))->stanullfrac;
	HashedQuery hashed = {.query = *query, .hashes = palloc(Max(query->nkeys, 1) * sizeof(uint64))};
	AskedFilters common = ask_statistics(variable, STATISTIC_KIND_MCV, &hashed);
	AskedFilters bounds = ask_statistics(variable, STATISTIC_KIND_HISTOGRAM, &hashed);
	double		share = DEFAULT_SELECTIVITY;

	if (bounds.count > 0)
		share = (bounds.matches + 1.0) / (bounds.count + 1);
	pfree(hashed.hashes);
	return common.matched_frequency + Max(1 - common.frequency - nulls, 0) * share;
}

static double
constant_query_selectivity(VariableStatData *variable, Oid function, const Const *constant)
{
	OpenQuery	query;

	if (constant->constisnull)
		return 0;
	open_query(constant->constvalue, &query);
	if (query.least > query.nkeys)
		return 0;
	if (!HeapTupleIsValid(variable->statsTuple))
		return query.least == 0 ? 1 : DEFAULT_SELECTIVITY;
	if (query.least == 0)
		return 1 - ((Form_pg_statistic) GETSTRUCT(variable->statsTuple))->stanullfrac;
	if (query.nkeys > MAX_ESTIMATED_KEYS || !statistic_proc_security_check(variable, function))
		return DEFAULT_SELECTIVITY;
	return matching_share(variable, &query);
}

double
query_selectivity(PlannerInfo *root, Oid function, Node *filter, Node *query, int varRelid)
{
	Node	   *value = estimate_expression_value(root, query);
	VariableStatData variable;
	double		selectivity = DEFAULT_SELECTIVITY;

	if (!IsA(value, Const))
		return selectivity;
	examine_variable(root, filter, varRelid, &variable);
	if (variable.rel != NULL)
		selectivity = constant_query_selectivity(&variable, function, (Const *) value);
	ReleaseVariableStats(variable);
	CLAMP_PROBABILITY(selectivity);
	return selectivity;
}

Datum
bloomfilter_matches_sel(PG_FUNCTION_ARGS)
{
	PlannerInfo *root = (PlannerInfo *) PG_GETARG_POINTER(0);
	Oid			function = get_opcode(PG_GETARG_OID(1));
	List	   *arguments = (List *) PG_GETARG_POINTER(2);

	PG_RETURN_FLOAT8(query_selectivity(root, function, linitial(arguments), lsecond(arguments),
									   PG_GETARG_INT32(3)));
}
