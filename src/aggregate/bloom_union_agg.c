/*
 * bloom_union_agg.c
 *		bloom_union_agg: the union of the filters in a column.
 *
 * Filters that combine have one size, and their hashes and bits go into one
 * accumulator in whatever order they come.  Filters without a size add nothing
 * to it.
 */
#include "pg/pg_compat.h"

#include "aggregate/accumulator.h"
#include "core/compatible.h"
#include "filter/errors.h"
#include "fmgr.h"
#include "pg/aggregate_context.h"

PG_FUNCTION_INFO_V1(bloomfilter_union_agg_add);
PG_FUNCTION_INFO_V1(bloomfilter_union_agg_combine);
PG_FUNCTION_INFO_V1(bloomfilter_union_agg_serialize);
PG_FUNCTION_INFO_V1(bloomfilter_union_agg_deserialize);
PG_FUNCTION_INFO_V1(bloomfilter_union_agg_final);

#define UNION_STATE	0x626C6D32

typedef struct UnionState
{
	uint32		magic;
	bool		has_params;		/* has met a filter */
	MemoryContext context;

	/*
	 * Its params are those of the union of all filters so far.  The rest of it
	 * is used once they have a size.
	 */
	Accumulator accumulator;
} UnionState;

static UnionState *
begin_union(MemoryContext context)
{
	UnionState *state = MemoryContextAllocZero(context, sizeof(*state));

	state->magic = UNION_STATE;
	state->context = context;
	return state;
}

static void
merge_params(UnionState *state, const bf_params *params)
{
	bf_params  *united = &state->accumulator.params;
	bf_params	merged = *params;

	if (state->has_params)
	{
		require_match(united, params);
		merged = bf_combined_params(united, params);
	}
	if (united->m == 0 && merged.m != 0)
		begin_accumulator(&state->accumulator, &merged, state->context);
	else
		*united = merged;
	state->has_params = true;
}

static void
add_to_union(UnionState *state, const bf_filter *filter)
{
	merge_params(state, &filter->params);
	if (filter->params.m != 0)
		accumulate_filter(&state->accumulator, filter);
}

Datum
bloomfilter_union_agg_add(PG_FUNCTION_ARGS)
{
	MemoryContext context = require_aggregate(fcinfo);
	UnionState *state = require_state(fcinfo, 0, UNION_STATE);
	bf_filter	filter;

	if (state == NULL)
		state = begin_union(context);
	if (!PG_ARGISNULL(1))
	{
		open_filter(PG_GETARG_DATUM(1), &filter);
		add_to_union(state, &filter);
	}
	PG_RETURN_POINTER(state);
}

Datum
bloomfilter_union_agg_combine(PG_FUNCTION_ARGS)
{
	MemoryContext context = require_aggregate(fcinfo);
	UnionState *state = require_state(fcinfo, 0, UNION_STATE);
	UnionState *other = require_state(fcinfo, 1, UNION_STATE);

	if (state == NULL)
		state = begin_union(context);
	if (other == NULL || !other->has_params)
		PG_RETURN_POINTER(state);

	merge_params(state, &other->accumulator.params);
	if (other->accumulator.params.m != 0)
		accumulate_other(&state->accumulator, &other->accumulator);
	PG_RETURN_POINTER(state);
}

static Bloomfilter *
finish_union(UnionState *state)
{
	if (state->accumulator.params.m == 0)
		return make_empty_value(&state->accumulator.params);
	return finish_accumulator(&state->accumulator);
}

Datum
bloomfilter_union_agg_final(PG_FUNCTION_ARGS)
{
	UnionState *state;

	(void) require_aggregate(fcinfo);
	state = require_state(fcinfo, 0, UNION_STATE);
	if (state == NULL || !state->has_params)
	{
		bf_params	params = unsized_params(DEFAULT_RATE);

		PG_RETURN_POINTER(make_empty_value(&params));
	}
	PG_RETURN_POINTER(finish_union(state));
}

/* The union so far, behind its size in 8 bytes, unless it has met no filter. */
Datum
bloomfilter_union_agg_serialize(PG_FUNCTION_ARGS)
{
	UnionState *state;
	struct varlena *united;

	(void) require_aggregate(fcinfo);
	state = require_state(fcinfo, 0, UNION_STATE);
	if (!state->has_params)
		PG_RETURN_BYTEA_P(join_serialized(NULL, 0));
	united = finish_union(state);
	PG_RETURN_BYTEA_P(join_serialized(&united, 1));
}

Datum
bloomfilter_union_agg_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	const uint8 *next = (const uint8 *) VARDATA_ANY(bytes);
	uint64		left = VARSIZE_ANY_EXHDR(bytes);
	UnionState *state;
	bf_filter	filter;

	(void) require_aggregate(fcinfo);
	state = begin_union(CurrentMemoryContext);
	while (read_serialized(&next, &left, &filter))
		add_to_union(state, &filter);
	PG_RETURN_POINTER(state);
}
