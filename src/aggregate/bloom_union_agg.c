/*
 * bloom_union_agg.c
 *		bloom_union_agg: the union of the filters in a column.
 *
 * The state is of type bloomfilter, so that processes and servers exchange
 * partial results like any other filter.  A group's first filter is the state
 * until the second arrives.  From then on the state is an expanded object
 * (utils/expandeddatum.h) with an accumulator.  Adding a sparse filter then takes
 * time proportional to its hashes, and adding a dense one copies no state.
 */
#include "pg/pg_compat.h"

#include "aggregate/accumulator.h"
#include "filter/errors.h"
#include "pg/aggregate_context.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(bloomfilter_union_agg_add);
PG_FUNCTION_INFO_V1(bloomfilter_union_agg_final);

/* While params.m is 0, the accumulator's other fields are unset. */
typedef struct UnionState
{
	ExpandedObjectHeader header;
	Accumulator accumulator;
} UnionState;

static Bloomfilter *
finish_union(UnionState *state)
{
	if (state->accumulator.params.m == 0)
		return make_empty_value(&state->accumulator.params);
	return finish_accumulator(&state->accumulator);
}

static Size
union_flat_size(ExpandedObjectHeader *header)
{
	return finished_size(&((UnionState *) header)->accumulator);
}

static void
flatten_union(ExpandedObjectHeader *header, void *result, Size size)
{
	(void) size;
	write_accumulator(&((UnionState *) header)->accumulator, result);
}

static const ExpandedObjectMethods union_methods = {union_flat_size, flatten_union};

/*
 * Returns the state that a value points to; NULL if it is an ordinary filter.
 * A final function gets a read-only pointer to it, a transition function one
 * that allows changes.
 */
static UnionState *
get_union_state(Datum value)
{
	if (!VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value)) ||
		DatumGetEOHP(value)->eoh_methods != &union_methods)
		return NULL;
	return (UnionState *) DatumGetEOHP(value);
}

static void
add_to_union(UnionState *state, const bf_filter *filter)
{
	bf_params  *united = &state->accumulator.params;
	bf_params	merged = combine_params(united, &filter->params);

	if (united->m == 0 && merged.m != 0)
		begin_accumulator(&state->accumulator, &merged, state->header.eoh_context);
	*united = merged;
	if (filter->params.m != 0)
		accumulate_filter(&state->accumulator, filter);
}

/*
 * Makes a state from the first filter.  nodeAgg.c and nodeWindowAgg.c adopt an
 * expanded object whose context is a child of the aggregate's.
 */
static UnionState *
begin_union(MemoryContext aggregate, Datum first)
{
	MemoryContext context = AllocSetContextCreate(aggregate, "bloom_union_agg state",
												  ALLOCSET_START_SMALL_SIZES);
	UnionState *state = MemoryContextAllocZero(context, sizeof(*state));
	bf_filter	filter;

	EOH_init_header(&state->header, &union_methods, context);
	open_filter(first, &filter);
	/* without a size, these parameters combine with the filter's own */
	state->accumulator.params = filter.params;
	state->accumulator.params.m = 0;
	add_to_union(state, &filter);
	return state;
}

/* Transition and combine function. */
Datum
bloomfilter_union_agg_add(PG_FUNCTION_ARGS)
{
	MemoryContext aggregate = require_aggregate(fcinfo);
	UnionState *state = get_union_state(PG_GETARG_DATUM(0));
	bf_filter	filter;

	if (state == NULL)
		state = begin_union(aggregate, PG_GETARG_DATUM(0));
	open_filter(PG_GETARG_DATUM(1), &filter);
	add_to_union(state, &filter);
	PG_RETURN_DATUM(EOHPGetRWDatum(&state->header));
}

Datum
bloomfilter_union_agg_final(PG_FUNCTION_ARGS)
{
	UnionState *state;

	(void) require_aggregate(fcinfo);
	if (PG_ARGISNULL(0))
	{
		bf_params	params = unsized_params(DEFAULT_RATE);

		PG_RETURN_POINTER(make_empty_value(&params));
	}
	state = get_union_state(PG_GETARG_DATUM(0));
	PG_RETURN_DATUM(state == NULL ? PG_GETARG_DATUM(0) : PointerGetDatum(finish_union(state)));
}
