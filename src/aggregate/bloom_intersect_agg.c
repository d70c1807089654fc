/*
 * bloom_intersect_agg.c
 *		bloom_intersect_agg: the intersection of the filters in a column.
 *
 * A filter without a size empties the intersection and says nothing of what
 * the others must be.  The state therefore keeps it apart from the
 * intersection of those that have a size, so that filters that do not combine
 * are found out in whatever order they come.
 */
#include "pg/pg_compat.h"

#include "core/bulk.h"
#include "core/compatible.h"
#include "filter/errors.h"
#include "filter/setops.h"
#include "filter/walk.h"
#include "fmgr.h"
#include "pg/aggregate_context.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(bloomfilter_intersect_agg_add);
PG_FUNCTION_INFO_V1(bloomfilter_intersect_agg_combine);
PG_FUNCTION_INFO_V1(bloomfilter_intersect_agg_serialize);
PG_FUNCTION_INFO_V1(bloomfilter_intersect_agg_deserialize);
PG_FUNCTION_INFO_V1(bloomfilter_intersect_agg_final);

#define INTERSECT_STATE	0x626C6D33

typedef struct IntersectState
{
	uint32		magic;
	MemoryContext context;
	Bloomfilter *value;			/* of the filters with a size, or NULL; ours */
	Bloomfilter *unsized;		/* of those without one, or NULL */
} IntersectState;

static IntersectState *
begin_intersection(MemoryContext context)
{
	IntersectState *state = MemoryContextAllocZero(context, sizeof(*state));

	state->magic = INTERSECT_STATE;
	state->context = context;
	return state;
}

static void
add_to_intersection(IntersectState *state, const bf_filter *filter)
{
	Bloomfilter **side = filter->params.m == 0 ? &state->unsized : &state->value;
	Bloomfilter *old = *side;
	MemoryContext caller;
	bf_filter	current;

	if (old != NULL)
	{
		open_filter(PointerGetDatum(old), &current);
		require_match(&current.params, &filter->params);
		if (!current.sparse && !filter->sparse && current.params.rate == filter->params.rate)
		{
			combine_bytes((uint8 *) current.payload, filter->payload, filter->params.m / 8, bf_and);
			return;
		}
	}
	caller = MemoryContextSwitchTo(state->context);
	*side = old == NULL ? copy_value(filter) : intersect_filters(&current, filter);
	MemoryContextSwitchTo(caller);
	if (old != NULL)
		pfree(old);
}

static void
add_value(IntersectState *state, Bloomfilter *value)
{
	bf_filter	filter;

	if (value == NULL)
		return;
	open_filter(PointerGetDatum(value), &filter);
	add_to_intersection(state, &filter);
}

Datum
bloomfilter_intersect_agg_add(PG_FUNCTION_ARGS)
{
	MemoryContext context = require_aggregate(fcinfo);
	IntersectState *state = require_state(fcinfo, 0, INTERSECT_STATE);
	bf_filter	filter;

	if (state == NULL)
		state = begin_intersection(context);
	if (!PG_ARGISNULL(1))
	{
		open_filter(PG_GETARG_DATUM(1), &filter);
		add_to_intersection(state, &filter);
	}
	PG_RETURN_POINTER(state);
}

Datum
bloomfilter_intersect_agg_combine(PG_FUNCTION_ARGS)
{
	MemoryContext context = require_aggregate(fcinfo);
	IntersectState *state = require_state(fcinfo, 0, INTERSECT_STATE);
	IntersectState *other = require_state(fcinfo, 1, INTERSECT_STATE);

	if (state == NULL)
		state = begin_intersection(context);
	if (other != NULL)
	{
		add_value(state, other->value);
		add_value(state, other->unsized);
	}
	PG_RETURN_POINTER(state);
}

/* Its one or two filters, each behind its size in 8 bytes. */
Datum
bloomfilter_intersect_agg_serialize(PG_FUNCTION_ARGS)
{
	IntersectState *state;
	struct varlena *values[2];
	int			count = 0;

	(void) require_aggregate(fcinfo);
	state = require_state(fcinfo, 0, INTERSECT_STATE);
	if (state->value != NULL)
		values[count++] = state->value;
	if (state->unsized != NULL)
		values[count++] = state->unsized;
	PG_RETURN_BYTEA_P(join_serialized(values, count));
}

Datum
bloomfilter_intersect_agg_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	const uint8 *next = (const uint8 *) VARDATA_ANY(bytes);
	uint64		left = VARSIZE_ANY_EXHDR(bytes);
	IntersectState *state;
	bf_filter	filter;

	(void) require_aggregate(fcinfo);
	state = begin_intersection(CurrentMemoryContext);
	while (read_serialized(&next, &left, &filter))
		add_to_intersection(state, &filter);
	PG_RETURN_POINTER(state);
}

Datum
bloomfilter_intersect_agg_final(PG_FUNCTION_ARGS)
{
	IntersectState *state;
	Bloomfilter *result;
	bf_filter	filter;

	(void) require_aggregate(fcinfo);
	state = require_state(fcinfo, 0, INTERSECT_STATE);
	if (state == NULL)
		PG_RETURN_NULL();
	result = state->unsized != NULL ? state->unsized : state->value;
	if (result == NULL)
		PG_RETURN_NULL();
	open_filter(PointerGetDatum(result), &filter);
	PG_RETURN_POINTER(copy_value(&filter));
}
