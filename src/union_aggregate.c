/*
 * union_aggregate.c
 *		bloom_union_agg: the union of the filters in a column.
 *
 * Filters of one size unite to the same bytes in whatever order they come.
 * Where sizes are mixed that is not so: hashes that are still sparse when they
 * meet a larger filter set fewer bits than their spread block would.  The
 * state therefore keeps one accumulator for each size and brings them together
 * at the very end, from the smallest to the largest, so that the result
 * depends on the set of filters alone.  Sizes that combine divide one another,
 * so there are few of them, and they take no more than twice the largest.
 */
#include "pg_compat.h"

#include "accumulator.h"
#include "aggregate.h"
#include "core/combine.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "setops.h"

PG_FUNCTION_INFO_V1(bloomfilter_union_agg_add);
PG_FUNCTION_INFO_V1(bloomfilter_union_agg_combine);
PG_FUNCTION_INFO_V1(bloomfilter_union_agg_serialize);
PG_FUNCTION_INFO_V1(bloomfilter_union_agg_deserialize);
PG_FUNCTION_INFO_V1(bloomfilter_union_agg_final);

static const StateKind union_state = {0x626C6D32, "bloomfilter_union_agg_"};

/* From BF_WORD_BITS to BF_MAX_BITS, each at least twice the one before. */
#define MAX_SIZES		32

typedef struct UnionState
{
	uint32		magic;
	bool		has_params;		/* has met a filter */
	int			nsizes;
	bf_params	params;			/* of the union of all filters so far */
	MemoryContext context;
	Accumulator *sizes[MAX_SIZES];	/* in ascending order of m */
} UnionState;

static UnionState *
begin_union(MemoryContext context)
{
	UnionState *state = MemoryContextAllocZero(context, sizeof(*state));

	state->magic = union_state.magic;
	state->context = context;
	return state;
}

/* The accumulator for filters of params->m bits, made if there is none. */
static Accumulator *
accumulator_of_size(UnionState *state, const bf_params *params)
{
	int			at = 0;

	while (at < state->nsizes && state->sizes[at]->params.m < params->m)
		at++;
	if (at < state->nsizes && state->sizes[at]->params.m == params->m)
		return state->sizes[at];

	for (int i = 0; i < state->nsizes; i++)
		require_match(&state->sizes[i]->params, params);
	Assert(state->nsizes < MAX_SIZES);
	memmove(&state->sizes[at + 1], &state->sizes[at],
			(state->nsizes - at) * sizeof(state->sizes[0]));
	state->sizes[at] = MemoryContextAlloc(state->context, sizeof(Accumulator));
	begin_accumulator(state->sizes[at], params, state->context);
	state->nsizes++;
	return state->sizes[at];
}

static void
merge_params(UnionState *state, const bf_params *params)
{
	if (state->has_params)
	{
		require_match(&state->params, params);
		state->params = bf_combined_params(&state->params, params);
	}
	else
		state->params = *params;
	state->has_params = true;
}

static void
add_to_union(UnionState *state, const bf_filter *filter)
{
	merge_params(state, &filter->params);
	if (filter->params.m != 0)
		accumulate_filter(accumulator_of_size(state, &filter->params), filter);
}

Datum
bloomfilter_union_agg_add(PG_FUNCTION_ARGS)
{
	MemoryContext context = enter_aggregate(fcinfo, &union_state);
	UnionState *state = require_state(fcinfo, 0, &union_state);
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
	MemoryContext context = enter_aggregate(fcinfo, &union_state);
	UnionState *state = require_state(fcinfo, 0, &union_state);
	UnionState *other = require_state(fcinfo, 1, &union_state);

	if (state == NULL)
		state = begin_union(context);
	if (other == NULL || !other->has_params)
		PG_RETURN_POINTER(state);

	merge_params(state, &other->params);
	for (int i = 0; i < other->nsizes; i++)
		accumulate_other(accumulator_of_size(state, &other->sizes[i]->params), other->sizes[i]);
	PG_RETURN_POINTER(state);
}

/*
 * The accumulator of one size.  The rate and class of the whole hold for each
 * part, whatever the first filter of its size had.
 */
static Accumulator *
part_of_union(UnionState *state, int i)
{
	Accumulator *part = state->sizes[i];

	part->params.rate = state->params.rate;
	part->params.element_class = state->params.element_class;
	return part;
}

static Bloomfilter *
finish_union(UnionState *state)
{
	Bloomfilter *result = make_empty_value(&state->params);

	for (int i = 0; i < state->nsizes; i++)
	{
		bf_filter	left;
		bf_filter	right;
		Bloomfilter *part;
		Bloomfilter *united;

		part = finish_accumulator(part_of_union(state, i));
		if (i == 0)
		{
			pfree(result);
			result = part;
			continue;
		}
		open_filter(PointerGetDatum(result), &left);
		open_filter(PointerGetDatum(part), &right);
		united = unite_filters(&left, &right);
		pfree(result);
		pfree(part);
		result = united;
	}
	return result;
}

Datum
bloomfilter_union_agg_final(PG_FUNCTION_ARGS)
{
	UnionState *state;

	enter_aggregate(fcinfo, &union_state);
	state = require_state(fcinfo, 0, &union_state);
	if (state == NULL || !state->has_params)
	{
		bf_params	params = unsized_params(DEFAULT_RATE);

		PG_RETURN_POINTER(make_empty_value(&params));
	}
	PG_RETURN_POINTER(finish_union(state));
}

/*
 * A union's serialized state: its filters, each behind its size in 8 bytes.
 * One without a size goes along as such, so that its parameters are known.
 */
Datum
bloomfilter_union_agg_serialize(PG_FUNCTION_ARGS)
{
	UnionState *state;
	struct varlena *parts[MAX_SIZES];
	int			count = 0;

	enter_aggregate(fcinfo, &union_state);
	state = require_state(fcinfo, 0, &union_state);
	if (state->has_params && state->nsizes == 0)
		parts[count++] = make_empty_value(&state->params);
	for (int i = 0; i < state->nsizes; i++)
		parts[count++] = serialize_accumulator(part_of_union(state, i));
	PG_RETURN_BYTEA_P(join_serialized(parts, count));
}

Datum
bloomfilter_union_agg_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	const uint8 *next = (const uint8 *) VARDATA_ANY(bytes);
	uint64		left = VARSIZE_ANY_EXHDR(bytes);
	UnionState *state;
	bf_filter	filter;

	enter_aggregate(fcinfo, &union_state);
	state = begin_union(CurrentMemoryContext);
	while (read_serialized(&next, &left, &filter))
		add_to_union(state, &filter);
	PG_RETURN_POINTER(state);
}
