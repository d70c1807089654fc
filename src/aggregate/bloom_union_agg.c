/*
 * bloom_union_agg.c
 *		bloom_union_agg and bloom_sum_agg: the union of the filters or counters in
 *		a column, and the sum of the counters.
 *
 * The state is of the same type as the input, so that processes and servers
 * exchange partial results like any other value.  A group's first filter is the
 * state until the second arrives.  From then on the state is an expanded object
 * (utils/expandeddatum.h) with an accumulator.  Adding a sparse filter then takes
 * time proportional to its hashes, and adding a dense one copies no state.
 */
#include "pg/pg_compat.h"

#include "build/accumulator.h"
#include "pg/aggregate_context.h"
#include "pg/sql_function.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"
#include "value/parameters.h"

/* While params.m is 0, the accumulator's other fields are unset. */
typedef struct UnionState
{
	ExpandedObjectHeader header;
	Accumulator accumulator;
} UnionState;

static BloomValue *
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

/*
 * Do two operands make levels?  A sum does if one of them has levels, a union
 * also if both have elements.
 */
static bool
makes_levels(const Accumulator *united, const bf_filter *filter)
{
	return united->levels || filter->levels ||
		(united->update.combination == BF_GREATER && united->params.element_class != BF_CLASS_NONE &&
		 filter->params.element_class != BF_CLASS_NONE);
}

static void
add_to_union(UnionState *state, const bf_filter *filter)
{
	Accumulator *united = &state->accumulator;
	bf_params	merged = combine_params(&united->params, &filter->params);
	bool		levels = makes_levels(united, filter);

	if (united->params.m == 0 && merged.m != 0)
		begin_accumulator(united, &merged, united->update.combination, state->header.eoh_context);
	united->params = merged;
	united->levels = levels;
	if (filter->params.m != 0)
		accumulate_filter(united, filter);
}

/*
 * Makes a state from the first filter.  nodeAgg.c and nodeWindowAgg.c adopt an
 * expanded object whose context is a child of the aggregate's.
 */
static UnionState *
begin_union(MemoryContext aggregate, Datum first, bf_kind kind, bf_combination combination)
{
	MemoryContext context = AllocSetContextCreate(aggregate, "bloom_union_agg state",
												  ALLOCSET_START_SMALL_SIZES);
	UnionState *state = MemoryContextAllocZero(context, sizeof(*state));
	bf_filter	filter;

	EOH_init_header(&state->header, &union_methods, context);
	open_value(first, kind, &filter);
	/* without a size, these parameters combine with the filter's own */
	state->accumulator.params = filter.params;
	state->accumulator.params.m = 0;
	state->accumulator.params.element_class = BF_CLASS_NONE;
	state->accumulator.update.combination = combination;
	add_to_union(state, &filter);
	return state;
}

/* Transition and combine function. */
static Datum
add_value(FunctionCallInfo fcinfo, bf_kind kind, bf_combination combination)
{
	MemoryContext aggregate = require_aggregate(fcinfo);
	UnionState *state = get_union_state(PG_GETARG_DATUM(0));
	bf_filter	filter;

	if (state == NULL)
		state = begin_union(aggregate, PG_GETARG_DATUM(0), kind, combination);
	open_value(PG_GETARG_DATUM(1), kind, &filter);
	add_to_union(state, &filter);
	PG_RETURN_DATUM(EOHPGetRWDatum(&state->header));
}

static Datum
finish_value(FunctionCallInfo fcinfo, bf_kind kind)
{
	UnionState *state;

	(void) require_aggregate(fcinfo);
	if (PG_ARGISNULL(0))
	{
		bf_params	params = unsized_params(DEFAULT_RATE, bloom_types[kind].default_cell_bits);

		PG_RETURN_POINTER(make_empty_value(&params));
	}
	state = get_union_state(PG_GETARG_DATUM(0));
	PG_RETURN_DATUM(state == NULL ? PG_GETARG_DATUM(0) : PointerGetDatum(finish_union(state)));
}

SQL_FUNCTION(bloomfilter_union_agg_add, add_value(fcinfo, BF_FILTER, BF_SUM))
SQL_FUNCTION(bloomfilter_union_agg_final, finish_value(fcinfo, BF_FILTER))
SQL_FUNCTION(bloomcounter_union_agg_add, add_value(fcinfo, BF_COUNTER, BF_GREATER))
SQL_FUNCTION(bloomcounter_sum_agg_add, add_value(fcinfo, BF_COUNTER, BF_SUM))
SQL_FUNCTION(bloomcounter_combine_agg_final, finish_value(fcinfo, BF_COUNTER))
