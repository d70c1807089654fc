/*
 * aggregate.c
 *		bloom_agg: a filter from the values of a column.
 *
 * The state is an accumulator in the aggregate's memory context.  Every
 * support function checks that it runs in an aggregate and that the state is
 * one of its own: both can be otherwise where somebody puts an aggregate
 * together from functions of several kinds.
 */
#include "pg_compat.h"

#include "accumulator.h"
#include "aggregate.h"
#include "element.h"
#include "errors.h"
#include "fmgr.h"
#include "setops.h"

PG_FUNCTION_INFO_V1(bloomfilter_agg_self_sized);
PG_FUNCTION_INFO_V1(bloomfilter_agg_sized);
PG_FUNCTION_INFO_V1(bloomfilter_agg_onto);
PG_FUNCTION_INFO_V1(bloomfilter_agg_combine);
PG_FUNCTION_INFO_V1(bloomfilter_agg_serialize);
PG_FUNCTION_INFO_V1(bloomfilter_agg_deserialize);
PG_FUNCTION_INFO_V1(bloomfilter_agg_final);

#define BUILD_MAGIC 0x626C6D31

typedef struct BuildState
{
	uint32		magic;
	int64		expected_items; /* as asked for, 0 if it sizes itself */
	Accumulator accumulator;
} BuildState;

/* What a transition function keeps from row to row in fn_extra. */
typedef struct BuildSite
{
	ElementType element;
	int64		expected_items; /* what params are for */
	double		rate;
	bf_params	params;
} BuildSite;

MemoryContext
require_aggregate(FunctionCallInfo fcinfo)
{
	MemoryContext context;

	if (!AggCheckCallContext(fcinfo, &context))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("aggregate support function called outside an aggregate")));
	return context;
}

void
report_foreign_state(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("aggregate state is of another kind than this function's")));
}

static BuildSite *
build_site(FunctionCallInfo fcinfo)
{
	BuildSite  *site = fcinfo->flinfo->fn_extra;

	if (site == NULL)
	{
		BuildSite	resolved = {.expected_items = -1};

		resolve_element_type(fcinfo, 1, &resolved.element);
		site = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(*site));
		*site = resolved;
		fcinfo->flinfo->fn_extra = site;
	}
	return site;
}

static BuildState *
begin_build(MemoryContext context, const bf_params *params)
{
	BuildState *state = MemoryContextAlloc(context, sizeof(*state));

	state->magic = BUILD_MAGIC;
	state->expected_items = 0;
	begin_accumulator(&state->accumulator, params, context);
	return state;
}

/* Adds argument 1 of a transition function unless it is NULL. */
static inline void
add_argument(FunctionCallInfo fcinfo, BuildState *state, const ElementType *element)
{
	bf_params  *params = &state->accumulator.params;

	if (PG_ARGISNULL(1))
		return;
	if (params->element_class == BF_CLASS_NONE)
		params->element_class = element->element_class;
	else if (params->element_class != element->element_class)
		report_class_mismatch(params->element_class, element->element_class);
	accumulate_hash(&state->accumulator, element->hash(PG_GETARG_DATUM(1), params->seed));
}

Datum
bloomfilter_agg_self_sized(PG_FUNCTION_ARGS)
{
	MemoryContext context = require_aggregate(fcinfo);
	BuildState *state = require_state(fcinfo, 0, BUILD_MAGIC);
	BuildSite  *site = build_site(fcinfo);

	if (state == NULL)
	{
		bf_params	params = unsized_params(DEFAULT_RATE);

		state = begin_build(context, &params);
	}
	add_argument(fcinfo, state, &site->element);
	PG_RETURN_POINTER(state);
}

/* Solves the parameters unless the site has them from an earlier group. */
static const bf_params *
params_for(BuildSite *site, int64 expected_items, double rate)
{
	if (site->expected_items != expected_items || site->rate != rate)
	{
		site->params = expected_items == 0 ? unsized_params(rate)
			: solve_params(expected_items, rate, BF_BLOCKED, 0);
		site->expected_items = expected_items;
		site->rate = rate;
	}
	return &site->params;
}

/*
 * bloom_agg(element, expected_items) and (element, expected_items, rate): the
 * latter two must be the same in all rows of a group.
 */
Datum
bloomfilter_agg_sized(PG_FUNCTION_ARGS)
{
	MemoryContext context = require_aggregate(fcinfo);
	BuildState *state = require_state(fcinfo, 0, BUILD_MAGIC);
	BuildSite  *site = build_site(fcinfo);
	int64		expected_items = 0;
	double		rate = DEFAULT_RATE;

	if (!PG_ARGISNULL(2))
	{
		expected_items = PG_GETARG_INT64(2);
		check_expected_items(expected_items);
	}
	if (PG_NARGS() > 3)
	{
		if (PG_ARGISNULL(3))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("false-positive rate must not be null")));
		rate = PG_GETARG_FLOAT8(3);
	}

	if (state == NULL)
	{
		state = begin_build(context, params_for(site, expected_items, rate));
		state->expected_items = expected_items;
	}
	else if (state->expected_items != expected_items ||
			 state->accumulator.params.rate != (float) rate)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("expected number of elements and false-positive rate must not change within an aggregate"),
				 errdetail("They were %lld and %g, and are now %lld and %g.",
						   (long long) state->expected_items, state->accumulator.params.rate,
						   (long long) expected_items, rate)));
	add_argument(fcinfo, state, &site->element);
	PG_RETURN_POINTER(state);
}

/* bloom_agg(element, filter): the filter of a group's first row counts. */
Datum
bloomfilter_agg_onto(PG_FUNCTION_ARGS)
{
	MemoryContext context = require_aggregate(fcinfo);
	BuildState *state = require_state(fcinfo, 0, BUILD_MAGIC);
	BuildSite  *site = build_site(fcinfo);

	if (state == NULL && PG_ARGISNULL(2))
	{
		bf_params	params = unsized_params(DEFAULT_RATE);

		state = begin_build(context, &params);
	}
	else if (state == NULL)
	{
		bf_filter	filter;

		open_filter(PG_GETARG_DATUM(2), &filter);
		state = begin_build(context, &filter.params);
		accumulate_filter(&state->accumulator, &filter);
	}
	add_argument(fcinfo, state, &site->element);
	PG_RETURN_POINTER(state);
}

/* Partial states of one aggregate have equal parameters, but for the class. */
static void
require_same_build(const BuildState *left, const BuildState *right)
{
	const Accumulator *a = &left->accumulator;
	const Accumulator *b = &right->accumulator;

	require_match(&a->params, &b->params);
	if (a->sizing != b->sizing || a->params.k != b->params.k || a->params.rate != b->params.rate ||
		(!a->sizing && a->params.m != b->params.m))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot combine partial aggregates with different parameters")));
}

Datum
bloomfilter_agg_combine(PG_FUNCTION_ARGS)
{
	MemoryContext context = require_aggregate(fcinfo);
	BuildState *state = require_state(fcinfo, 0, BUILD_MAGIC);
	BuildState *other = require_state(fcinfo, 1, BUILD_MAGIC);

	if (other == NULL)
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(state);
	}
	if (state == NULL)
	{
		bf_params	params = other->accumulator.params;

		if (other->accumulator.sizing)
			params.m = 0;
		state = begin_build(context, &params);
		state->expected_items = other->expected_items;
	}
	else
		require_same_build(state, other);
	accumulate_other(&state->accumulator, &other->accumulator);
	PG_RETURN_POINTER(state);
}

Datum
bloomfilter_agg_serialize(PG_FUNCTION_ARGS)
{
	BuildState *state;

	require_aggregate(fcinfo);
	state = require_state(fcinfo, 0, BUILD_MAGIC);
	PG_RETURN_BYTEA_P(serialize_accumulator(&state->accumulator));
}

Datum
bloomfilter_agg_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	BuildState *state;

	require_aggregate(fcinfo);
	state = palloc(sizeof(*state));
	state->magic = BUILD_MAGIC;
	state->expected_items = 0;
	deserialize_accumulator(&state->accumulator, (const uint8 *) VARDATA_ANY(bytes),
							VARSIZE_ANY_EXHDR(bytes), CurrentMemoryContext);
	PG_RETURN_POINTER(state);
}

/*
 * The ladder of sizes is kept in fn_extra, so that it is solved once per query
 * rather than once per group.
 */
Datum
bloomfilter_agg_final(PG_FUNCTION_ARGS)
{
	BuildState *state;
	SizeLadder *ladder = fcinfo->flinfo->fn_extra;

	require_aggregate(fcinfo);
	state = require_state(fcinfo, 0, BUILD_MAGIC);
	if (state == NULL)
	{
		bf_params	params = unsized_params(DEFAULT_RATE);

		PG_RETURN_POINTER(make_empty_value(&params));
	}
	if (ladder == NULL)
	{
		ladder = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(*ladder));
		fcinfo->flinfo->fn_extra = ladder;
	}
	PG_RETURN_POINTER(finish_accumulator(&state->accumulator, ladder));
}
