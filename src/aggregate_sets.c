/*
 * aggregate_sets.c
 *		bloom_union_agg and bloom_intersect_agg: filters from filters.
 *
 * Filters of one size unite to the same bytes in whatever order they come.
 * Where sizes are mixed that is not so: hashes that are still sparse when they
 * meet a larger filter set fewer bits than their spread block would.  The
 * union's state therefore keeps one accumulator for each size and brings them
 * together at the very end, from the smallest to the largest, so that the
 * result depends on the set of filters alone.  Sizes that combine divide one
 * another, so there are few of them, and they take no more than twice the
 * largest.
 */
#include "pg_compat.h"

#include "accumulator.h"
#include "aggregate.h"
#include "core/bulk.h"
#include "core/combine.h"
#include "errors.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "setops.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(bloomfilter_union_agg_add);
PG_FUNCTION_INFO_V1(bloomfilter_union_agg_combine);
PG_FUNCTION_INFO_V1(bloomfilter_union_agg_serialize);
PG_FUNCTION_INFO_V1(bloomfilter_union_agg_deserialize);
PG_FUNCTION_INFO_V1(bloomfilter_union_agg_final);
PG_FUNCTION_INFO_V1(bloomfilter_intersect_agg_add);
PG_FUNCTION_INFO_V1(bloomfilter_intersect_agg_combine);
PG_FUNCTION_INFO_V1(bloomfilter_intersect_agg_serialize);
PG_FUNCTION_INFO_V1(bloomfilter_intersect_agg_deserialize);
PG_FUNCTION_INFO_V1(bloomfilter_intersect_agg_final);

#define UNION_MAGIC		0x626C6D32
#define INTERSECT_MAGIC	0x626C6D33

/* From BF_WORD_BITS to BF_MAX_BITS, each at least twice the one before. */
#define MAX_SIZES		32

typedef struct UnionState
{
	uint32		magic;
	bool		has_params;
	int			nsizes;
	bf_params	params;			/* of the union of all filters so far */
	MemoryContext context;
	Accumulator *sizes[MAX_SIZES];	/* in ascending order of m */
} UnionState;

typedef struct IntersectState
{
	uint32		magic;
	MemoryContext context;
	Bloomfilter *value;			/* ours: may be changed in place */
} IntersectState;

static UnionState *
begin_union(MemoryContext context)
{
	UnionState *state = MemoryContextAllocZero(context, sizeof(*state));

	state->magic = UNION_MAGIC;
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
add_to_union(UnionState *state, const bf_filter *filter)
{
	if (state->has_params)
	{
		require_match(&state->params, &filter->params);
		state->params = bf_combined_params(&state->params, &filter->params);
	}
	else
		state->params = filter->params;
	state->has_params = true;
	if (filter->params.m != 0)
		accumulate_filter(accumulator_of_size(state, &filter->params), filter);
}

Datum
bloomfilter_union_agg_add(PG_FUNCTION_ARGS)
{
	MemoryContext context = require_aggregate(fcinfo);
	UnionState *state = require_state(fcinfo, 0, UNION_MAGIC);
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
	UnionState *state = require_state(fcinfo, 0, UNION_MAGIC);
	UnionState *other = require_state(fcinfo, 1, UNION_MAGIC);

	if (state == NULL)
		state = begin_union(context);
	if (other == NULL || !other->has_params)
		PG_RETURN_POINTER(state);

	if (state->has_params)
	{
		require_match(&state->params, &other->params);
		state->params = bf_combined_params(&state->params, &other->params);
	}
	else
		state->params = other->params;
	state->has_params = true;
	for (int i = 0; i < other->nsizes; i++)
		accumulate_other(accumulator_of_size(state, &other->sizes[i]->params), other->sizes[i]);
	PG_RETURN_POINTER(state);
}

/*
 * The filter of the union.  The rate and class of the whole hold for each
 * part, whatever the first filter of its size had.
 */
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

		state->sizes[i]->params.rate = state->params.rate;
		state->sizes[i]->params.element_class = state->params.element_class;
		part = finish_accumulator(state->sizes[i], NULL);
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

	require_aggregate(fcinfo);
	state = require_state(fcinfo, 0, UNION_MAGIC);
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
	StringInfoData buffer;

	require_aggregate(fcinfo);
	state = require_state(fcinfo, 0, UNION_MAGIC);
	pq_begintypsend(&buffer);
	if (state->has_params && state->nsizes == 0)
	{
		Bloomfilter *empty = make_empty_value(&state->params);

		pq_sendint64(&buffer, VARSIZE(empty) - VARHDRSZ);
		pq_sendbytes(&buffer, VARDATA(empty), VARSIZE(empty) - VARHDRSZ);
	}
	for (int i = 0; i < state->nsizes; i++)
	{
		bytea	   *part = serialize_accumulator(state->sizes[i]);

		pq_sendint64(&buffer, VARSIZE(part) - VARHDRSZ);
		pq_sendbytes(&buffer, VARDATA(part), VARSIZE(part) - VARHDRSZ);
		pfree(part);
	}
	PG_RETURN_BYTEA_P(pq_endtypsend(&buffer));
}

/* Decodes and checks bytes that a serialize function is supposed to have made. */
static void
open_serialized(const uint8 *bytes, uint64 size, bf_filter *filter)
{
	bf_status	status = bf_decode(bytes, size, BF_VALUE, filter);

	if (status.error == BF_OK)
		status = check_payload(filter);
	if (status.error != BF_OK)
		report_invalid_input(status, NULL);
}

Datum
bloomfilter_union_agg_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	StringInfoData buffer = {
		.data = VARDATA_ANY(bytes), .len = VARSIZE_ANY_EXHDR(bytes), .cursor = 0
	};
	UnionState *state;

	require_aggregate(fcinfo);
	state = begin_union(CurrentMemoryContext);
	while (buffer.cursor < buffer.len)
	{
		int64		size = pq_getmsgint64(&buffer);
		bf_filter	filter;

		if (size < 0 || size > buffer.len - buffer.cursor)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
					 errmsg("invalid serialized state of bloom_union_agg")));
		open_serialized((const uint8 *) pq_getmsgbytes(&buffer, (int) size), size, &filter);
		add_to_union(state, &filter);
	}
	PG_RETURN_POINTER(state);
}

static IntersectState *
begin_intersection(MemoryContext context, const bf_filter *filter)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	IntersectState *state = palloc(sizeof(*state));

	state->magic = INTERSECT_MAGIC;
	state->context = context;
	state->value = copy_value(filter);
	MemoryContextSwitchTo(old);
	return state;
}

/* ANDs a dense filter into a dense value of equal parameters. */
static void
intersect_in_place(const bf_filter *into, const bf_filter *filter)
{
	uint8	   *bits = (uint8 *) into->payload;
	uint64		size = into->params.m / 8;

	for (uint64 at = 0; at < size; at += CHUNK_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		bf_and(bits + at, filter->payload + at, Min(CHUNK_BYTES, size - at));
	}
}

static void
add_to_intersection(IntersectState *state, const bf_filter *filter)
{
	bf_filter	current;
	Bloomfilter *value;
	MemoryContext old;

	open_filter(PointerGetDatum(state->value), &current);
	if (!current.sparse && !filter->sparse &&
		current.params.m == filter->params.m && current.params.rate == filter->params.rate)
	{
		require_match(&current.params, &filter->params);
		intersect_in_place(&current, filter);
		return;
	}
	old = MemoryContextSwitchTo(state->context);
	value = intersect_filters(&current, filter);
	MemoryContextSwitchTo(old);
	pfree(state->value);
	state->value = value;
}

Datum
bloomfilter_intersect_agg_add(PG_FUNCTION_ARGS)
{
	MemoryContext context = require_aggregate(fcinfo);
	IntersectState *state = require_state(fcinfo, 0, INTERSECT_MAGIC);
	bf_filter	filter;

	if (PG_ARGISNULL(1))
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(state);
	}
	open_filter(PG_GETARG_DATUM(1), &filter);
	if (state == NULL)
		state = begin_intersection(context, &filter);
	else
		add_to_intersection(state, &filter);
	PG_RETURN_POINTER(state);
}

Datum
bloomfilter_intersect_agg_combine(PG_FUNCTION_ARGS)
{
	MemoryContext context = require_aggregate(fcinfo);
	IntersectState *state = require_state(fcinfo, 0, INTERSECT_MAGIC);
	IntersectState *other = require_state(fcinfo, 1, INTERSECT_MAGIC);
	bf_filter	filter;

	if (other == NULL)
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(state);
	}
	open_filter(PointerGetDatum(other->value), &filter);
	if (state == NULL)
		state = begin_intersection(context, &filter);
	else
		add_to_intersection(state, &filter);
	PG_RETURN_POINTER(state);
}

Datum
bloomfilter_intersect_agg_serialize(PG_FUNCTION_ARGS)
{
	IntersectState *state;
	bf_filter	filter;

	require_aggregate(fcinfo);
	state = require_state(fcinfo, 0, INTERSECT_MAGIC);
	open_filter(PointerGetDatum(state->value), &filter);
	PG_RETURN_BYTEA_P(copy_value(&filter));
}

Datum
bloomfilter_intersect_agg_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	bf_filter	filter;

	require_aggregate(fcinfo);
	open_serialized((const uint8 *) VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), &filter);
	PG_RETURN_POINTER(begin_intersection(CurrentMemoryContext, &filter));
}

Datum
bloomfilter_intersect_agg_final(PG_FUNCTION_ARGS)
{
	IntersectState *state;
	bf_filter	filter;

	require_aggregate(fcinfo);
	state = require_state(fcinfo, 0, INTERSECT_MAGIC);
	if (state == NULL)
		PG_RETURN_NULL();
	open_filter(PointerGetDatum(state->value), &filter);
	PG_RETURN_POINTER(copy_value(&filter));
}
