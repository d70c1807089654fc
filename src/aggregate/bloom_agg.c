/*
 * bloom_agg.c
 *		bloom_agg: a filter from the values of a column.
 */
#include "pg/pg_compat.h"

#include "aggregate/accumulator.h"
#include "aggregate/base_filter.h"
#include "aggregate/bloom_agg.h"
#include "filter/errors.h"
#include "pg/aggregate_context.h"
#include "pg/element.h"
#include "utils/float.h"

PG_FUNCTION_INFO_V1(bloomfilter_agg_self_sized);
PG_FUNCTION_INFO_V1(bloomfilter_agg_sized);
PG_FUNCTION_INFO_V1(bloomfilter_agg_extend);
PG_FUNCTION_INFO_V1(bloomfilter_agg_combine);
PG_FUNCTION_INFO_V1(bloomfilter_agg_serialize);
PG_FUNCTION_INFO_V1(bloomfilter_agg_deserialize);
PG_FUNCTION_INFO_V1(bloomfilter_agg_final);

#define BUILD_STATE	0x626C6D31

typedef struct BuildState
{
	uint32		magic;
	/* arguments that must not change within a group; unset in combined states */
	double		expected_items; /* 0 if the filter sizes itself */
	double		rate;
	BaseFilter *base;			/* only of bloom_agg(element, filter) */
	Accumulator accumulator;
} BuildState;

/* A transition function's cache in fn_extra. */
typedef struct BuildSite
{
	ElementType element;
	bool		constant_base;	/* the base filter cannot change */
} BuildSite;

static pg_noinline BuildSite *
make_build_site(FunctionCallInfo fcinfo)
{
	BuildSite	resolved = {0};
	BuildSite  *site;

	(void) require_aggregate(fcinfo);
	resolve_element_type(fcinfo, 1, &resolved.element);
	resolved.constant_base = PG_NARGS() == 3 && is_constant_argument(fcinfo, 2);
	site = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(*site));
	*site = resolved;
	fcinfo->flinfo->fn_extra = site;
	return site;
}

static inline BuildSite *
get_build_site(FunctionCallInfo fcinfo)
{
	BuildSite  *site = fcinfo->flinfo->fn_extra;

	return likely(site != NULL) ? site : make_build_site(fcinfo);
}

static pg_noinline BuildState *
begin_build(FunctionCallInfo fcinfo, const bf_params *params)
{
	MemoryContext context = require_aggregate(fcinfo);
	BuildState *state = MemoryContextAllocZero(context, sizeof(*state));

	state->magic = BUILD_STATE;
	begin_accumulator(&state->accumulator, params, context);
	return state;
}

/* Begins a filter that sizes itself for the default rate. */
static pg_noinline BuildState *
begin_default_build(FunctionCallInfo fcinfo)
{
	bf_params	params = unsized_params(DEFAULT_RATE);

	return begin_build(fcinfo, &params);
}

/* Adds argument 1 unless it is NULL. */
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
	BuildSite  *site = get_build_site(fcinfo);
	BuildState *state = require_state(fcinfo, 0, BUILD_STATE);

	if (state == NULL)
		state = begin_default_build(fcinfo);
	add_argument(fcinfo, state, &site->element);
	PG_RETURN_POINTER(state);
}

static pg_noinline BuildState *
begin_sized_build(FunctionCallInfo fcinfo, double expected_items, double rate)
{
	bf_params	params = expected_items == 0 ? unsized_params(rate)
		: solve_params(expected_items, rate, BF_BLOCKED, 0);
	BuildState *state = begin_build(fcinfo, &params);

	state->expected_items = expected_items;
	state->rate = rate;
	return state;
}

static const char *
format_expected_items(double expected_items)
{
	return expected_items == 0 ? "NULL" : float8out_internal(expected_items);
}

static pg_noinline void
report_changed_parameters(const BuildState *state, double expected_items, double rate)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("expected number of elements and false-positive rate must not change within an aggregate"),
			 errdetail("They were %s and %g, and are now %s and %g.",
					   format_expected_items(state->expected_items), state->rate,
					   format_expected_items(expected_items), rate)));
}

/* Reads arguments 2 and 3, the latter if present; expected_items is 0 for NULL. */
static inline void
get_size_arguments(FunctionCallInfo fcinfo, double *expected_items, double *rate)
{
	*expected_items = 0;
	*rate = DEFAULT_RATE;
	if (!PG_ARGISNULL(2))
	{
		*expected_items = PG_GETARG_FLOAT8(2);
		check_expected_items(*expected_items);
	}
	if (PG_NARGS() > 3)
	{
		if (PG_ARGISNULL(3))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("false-positive rate must not be null")));
		*rate = PG_GETARG_FLOAT8(3);
	}
}

/* bloom_agg(element, expected_items) and (element, expected_items, rate) */
Datum
bloomfilter_agg_sized(PG_FUNCTION_ARGS)
{
	BuildSite  *site = get_build_site(fcinfo);
	BuildState *state = require_state(fcinfo, 0, BUILD_STATE);
	double		expected_items;
	double		rate;

	get_size_arguments(fcinfo, &expected_items, &rate);
	if (state == NULL)
		state = begin_sized_build(fcinfo, expected_items, rate);
	else if (state->expected_items != expected_items || state->rate != rate)
		report_changed_parameters(state, expected_items, rate);
	add_argument(fcinfo, state, &site->element);
	PG_RETURN_POINTER(state);
}

static pg_noinline BuildState *
begin_extending_build(FunctionCallInfo fcinfo, Datum value)
{
	bf_filter	filter;
	BuildState *state;

	open_filter(value, &filter);
	state = begin_build(fcinfo, &filter.params);
	accumulate_filter(&state->accumulator, &filter);
	return state;
}

static pg_noinline void
report_changed_base(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("filter argument must not change within an aggregate"),
			 errdetail("The filter in this row differs from the one in the first row of its group.")));
}

/* bloom_agg(element, filter) */
Datum
bloomfilter_agg_extend(PG_FUNCTION_ARGS)
{
	BuildSite  *site = get_build_site(fcinfo);
	BuildState *state = require_state(fcinfo, 0, BUILD_STATE);

	if (state == NULL)
	{
		state = PG_ARGISNULL(2) ? begin_default_build(fcinfo)
			: begin_extending_build(fcinfo, PG_GETARG_DATUM(2));
		state->base = remember_base(PG_GETARG_DATUM(2), PG_ARGISNULL(2), !site->constant_base,
									state->accumulator.context);
	}
	else if (!site->constant_base && !is_base(state->base, PG_GETARG_DATUM(2), PG_ARGISNULL(2)))
		report_changed_base();
	add_argument(fcinfo, state, &site->element);
	PG_RETURN_POINTER(state);
}

/*
 * Partial states of one aggregate have equal parameters, except that a state
 * without elements has no class.  Two cases remain undetected: expected_items
 * that differ but give the same size, which is harmless, and workers that saw
 * different base filters with equal parameters.
 */
static void
require_same_build(const BuildState *left, const BuildState *right)
{
	const Accumulator *a = &left->accumulator;
	const Accumulator *b = &right->accumulator;

	if (a->sizing != b->sizing || a->params.k != b->params.k || a->params.rate != b->params.rate ||
		a->params.seed != b->params.seed || (!a->sizing && a->params.m != b->params.m))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot combine partial aggregates with different parameters")));
	require_match(&a->params, &b->params);
}

Datum
bloomfilter_agg_combine(PG_FUNCTION_ARGS)
{
	BuildState *state;
	BuildState *other;

	(void) require_aggregate(fcinfo);
	state = require_state(fcinfo, 0, BUILD_STATE);
	other = require_state(fcinfo, 1, BUILD_STATE);
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
		state = begin_build(fcinfo, &params);
	}
	else
		require_same_build(state, other);
	merge_accumulator(&state->accumulator, &other->accumulator);
	PG_RETURN_POINTER(state);
}

Datum
bloomfilter_agg_serialize(PG_FUNCTION_ARGS)
{
	BuildState *state;

	(void) require_aggregate(fcinfo);
	state = require_state(fcinfo, 0, BUILD_STATE);
	PG_RETURN_BYTEA_P(serialize_accumulator(&state->accumulator));
}

Datum
bloomfilter_agg_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	BuildState *state;

	(void) require_aggregate(fcinfo);
	state = palloc0(sizeof(*state));
	state->magic = BUILD_STATE;
	deserialize_accumulator(&state->accumulator, (const uint8 *) VARDATA_ANY(bytes),
							VARSIZE_ANY_EXHDR(bytes), CurrentMemoryContext);
	PG_RETURN_POINTER(state);
}

Datum
bloomfilter_agg_final(PG_FUNCTION_ARGS)
{
	BuildState *state;
	Datum		result;

	(void) require_aggregate(fcinfo);
	state = require_state(fcinfo, 0, BUILD_STATE);
	if (state == NULL)
	{
		bf_params	params = unsized_params(DEFAULT_RATE);

		PG_RETURN_POINTER(make_empty_value(&params));
	}
	result = PointerGetDatum(finish_accumulator(&state->accumulator));
	PG_RETURN_DATUM(state->base == NULL ? result : reuse_stored_base(state->base, result));
}
