/*
 * bloom_agg.c
 *		bloom_agg, bloom_counter_agg and bloom_level_agg: a filter or counter from
 *		the values of a column.
 */
#include "pg/pg_compat.h"

#include "aggregate/base_filter.h"
#include "aggregate/bloom_agg.h"
#include "build/accumulator.h"
#include "pg/aggregate_context.h"
#include "pg/element.h"
#include "pg/sql_function.h"
#include "utils/float.h"
#include "value/parameters.h"

/* A state begins with this number plus the bf_kind of what it builds. */
#define BUILD_STATE		0x626C6D31

/* The arguments that decide the size; they must not change within a group. */
typedef struct SizeArguments
{
	double		expected_items; /* 0 if the filter sizes itself */
	double		rate;
	uint32		cell_bits;
} SizeArguments;

typedef struct BuildState
{
	uint32		kind;			/* BUILD_STATE + bf_kind */
	SizeArguments size;			/* unset in combined states */
	BaseFilter *base;			/* only of aggregates onto a value */
	Accumulator accumulator;
} BuildState;

/* A transition function's cache in fn_extra. */
typedef struct BuildSite
{
	ElementType element;
	bool		constant_base;	/* the base filter cannot change */
} BuildSite;

/*
 * The arguments of a transition function: the state, the element, its level in
 * bloom_level_agg, then the rest.
 */
typedef struct BuildForm
{
	bf_kind		kind;
	bf_combination combination; /* BF_GREATER in bloom_level_agg */
	int			rest;			/* the first of the other arguments */
} BuildForm;

static const BuildForm filter_form = {BF_FILTER, BF_SUM, 2};
static const BuildForm count_form = {BF_COUNTER, BF_SUM, 2};
static const BuildForm level_form = {BF_COUNTER, BF_GREATER, 3};

static inline BuildState *
get_build_state(FunctionCallInfo fcinfo, int argument, bf_kind kind)
{
	return require_state(fcinfo, argument, BUILD_STATE + kind);
}

static pg_noinline BuildSite *
make_build_site(FunctionCallInfo fcinfo, int base_argument)
{
	BuildSite	resolved = {0};
	BuildSite  *site;

	(void) require_aggregate(fcinfo);
	resolve_element_type(fcinfo, 1, &resolved.element);
	resolved.constant_base = PG_NARGS() == base_argument + 1 && is_constant_argument(fcinfo, base_argument);
	site = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(*site));
	*site = resolved;
	fcinfo->flinfo->fn_extra = site;
	return site;
}

static inline BuildSite *
get_build_site(FunctionCallInfo fcinfo, const BuildForm *form)
{
	BuildSite  *site = fcinfo->flinfo->fn_extra;

	return likely(site != NULL) ? site : make_build_site(fcinfo, form->rest);
}

static pg_noinline BuildState *
begin_build(FunctionCallInfo fcinfo, const BuildForm *form, const bf_params *params)
{
	MemoryContext context = require_aggregate(fcinfo);
	BuildState *state = MemoryContextAllocZero(context, sizeof(*state));

	state->kind = BUILD_STATE + form->kind;
	begin_accumulator(&state->accumulator, params, form->combination, context);
	return state;
}

/* Begins a filter that sizes itself for the default rate. */
static pg_noinline BuildState *
begin_default_build(FunctionCallInfo fcinfo, const BuildForm *form)
{
	bf_params	params = unsized_params(DEFAULT_RATE, bloom_types[form->kind].default_cell_bits);

	return begin_build(fcinfo, form, &params);
}

pg_noreturn static pg_noinline void
report_null_argument(const char *message)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg_of(message)));
}

/* Reads the level of an element. */
static uint32
get_level(FunctionCallInfo fcinfo, uint32 cell_bits)
{
	if (PG_ARGISNULL(2))
		report_null_argument(gettext_noop("\"level\" must not be null"));
	return check_number("level", PG_GETARG_INT32(2), cell_bits);
}

/* Adds argument 1 unless it is NULL. */
static pg_attribute_always_inline void
add_argument(FunctionCallInfo fcinfo, const BuildForm *form, BuildState *state,
			 const ElementType *element)
{
	Accumulator *accumulator = &state->accumulator;
	bf_params  *params = &accumulator->params;
	uint32		number = 1;
	uint64		hash;

	if (PG_ARGISNULL(1))
		return;
	adopt_element_class(params, element->element_class);
	hash = element->hash(PG_GETARG_DATUM(1), params->seed);
	if (form->combination == BF_GREATER)
	{
		number = get_level(fcinfo, params->cell_bits);
		accumulator->levels = true;
	}
	accumulate_element(accumulator, form->kind, hash, number);
}

/* (element) */
static pg_attribute_always_inline Datum
build_self_sized(FunctionCallInfo fcinfo, const BuildForm *form)
{
	BuildSite  *site = get_build_site(fcinfo, form);
	BuildState *state = get_build_state(fcinfo, 0, form->kind);

	if (state == NULL)
		state = begin_default_build(fcinfo, form);
	add_argument(fcinfo, form, state, &site->element);
	PG_RETURN_POINTER(state);
}

static pg_noinline BuildState *
begin_sized_build(FunctionCallInfo fcinfo, const BuildForm *form, const SizeArguments *size)
{
	bf_params	params = size->expected_items == 0 ? unsized_params(size->rate, size->cell_bits)
		: solve_params(size->expected_items, size->rate, BF_BLOCKED, 0, size->cell_bits);
	BuildState *state = begin_build(fcinfo, form, &params);

	state->size = *size;
	return state;
}

static const char *
format_expected_items(double expected_items)
{
	return expected_items == 0 ? "NULL" : float8out_internal(expected_items);
}

static pg_noinline void
report_changed_size(const SizeArguments *first, const SizeArguments *size)
{
	if (first->cell_bits != size->cell_bits)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"counter_bits\" must not change within an aggregate"),
				 errdetail("It was %u, and is now %u.", first->cell_bits, size->cell_bits)));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("expected number of elements and false-positive rate must not change within an aggregate"),
			 errdetail("They were %s and %g, and are now %s and %g.",
					   format_expected_items(first->expected_items), first->rate,
					   format_expected_items(size->expected_items), size->rate)));
}

/* Reads expected_items, where NULL means 0, and the rate and counter_bits if present. */
static inline SizeArguments
get_size_arguments(FunctionCallInfo fcinfo, const BuildForm *form)
{
	int			first = form->rest;
	SizeArguments size = {0, DEFAULT_RATE, bloom_types[form->kind].default_cell_bits};

	if (!PG_ARGISNULL(first))
	{
		size.expected_items = PG_GETARG_FLOAT8(first);
		check_expected_items(size.expected_items);
	}
	if (PG_NARGS() > first + 1)
	{
		if (PG_ARGISNULL(first + 1))
			report_null_argument(gettext_noop("false-positive rate must not be null"));
		size.rate = PG_GETARG_FLOAT8(first + 1);
	}
	if (PG_NARGS() > first + 2)
	{
		if (PG_ARGISNULL(first + 2))
			report_null_argument(gettext_noop("\"counter_bits\" must not be null"));
		size.cell_bits = check_counter_bits(PG_GETARG_INT32(first + 2));
	}
	return size;
}

/* (element, expected_items), then perhaps rate and counter_bits */
static pg_attribute_always_inline Datum
build_sized(FunctionCallInfo fcinfo, const BuildForm *form)
{
	BuildSite  *site = get_build_site(fcinfo, form);
	BuildState *state = get_build_state(fcinfo, 0, form->kind);
	SizeArguments size = get_size_arguments(fcinfo, form);

	if (state == NULL)
		state = begin_sized_build(fcinfo, form, &size);
	else if (state->size.expected_items != size.expected_items || state->size.rate != size.rate ||
			 state->size.cell_bits != size.cell_bits)
		report_changed_size(&state->size, &size);
	add_argument(fcinfo, form, state, &site->element);
	PG_RETURN_POINTER(state);
}

static pg_noinline BuildState *
begin_extending_build(FunctionCallInfo fcinfo, const BuildForm *form, Datum value)
{
	bf_filter	filter;
	BuildState *state;

	open_value(value, form->kind, &filter);
	state = begin_build(fcinfo, form, &filter.params);
	state->accumulator.levels = filter.levels;
	accumulate_filter(&state->accumulator, &filter);
	return state;
}

static pg_noinline void
report_changed_base(bf_kind kind)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg_of(type_messages[kind].changed_base),
			 errdetail("The value in this row differs from the one in the first row of its group.")));
}

/* (element, filter) or (element, counter) */
static pg_attribute_always_inline Datum
build_extend(FunctionCallInfo fcinfo, const BuildForm *form)
{
	BuildSite  *site = get_build_site(fcinfo, form);
	BuildState *state = get_build_state(fcinfo, 0, form->kind);
	Datum		base = PG_GETARG_DATUM(form->rest);
	bool		isnull = PG_ARGISNULL(form->rest);

	if (state == NULL)
	{
		state = isnull ? begin_default_build(fcinfo, form) : begin_extending_build(fcinfo, form, base);
		state->base = remember_base(base, isnull, !site->constant_base, state->accumulator.context);
	}
	else if (!site->constant_base && !is_base(state->base, base, isnull))
		report_changed_base(form->kind);
	add_argument(fcinfo, form, state, &site->element);
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
		a->params.seed != b->params.seed || a->params.cell_bits != b->params.cell_bits ||
		(!a->sizing && a->params.m != b->params.m))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot combine partial aggregates with different parameters")));
	require_match(&a->params, &b->params);
}

static Datum
combine_builds(FunctionCallInfo fcinfo, const BuildForm *form)
{
	BuildState *state;
	BuildState *other;

	(void) require_aggregate(fcinfo);
	state = get_build_state(fcinfo, 0, form->kind);
	other = get_build_state(fcinfo, 1, form->kind);
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
		state = begin_build(fcinfo, form, &params);
	}
	else
		require_same_build(state, other);
	merge_accumulator(&state->accumulator, &other->accumulator);
	PG_RETURN_POINTER(state);
}

static Datum
serialize_build(FunctionCallInfo fcinfo, bf_kind kind)
{
	BuildState *state;

	(void) require_aggregate(fcinfo);
	state = get_build_state(fcinfo, 0, kind);
	PG_RETURN_BYTEA_P(serialize_accumulator(&state->accumulator));
}

static Datum
deserialize_build(FunctionCallInfo fcinfo, bf_kind kind)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	BuildState *state;

	(void) require_aggregate(fcinfo);
	state = palloc0(sizeof(*state));
	state->kind = BUILD_STATE + kind;
	deserialize_accumulator(&state->accumulator, (const uint8 *) VARDATA_ANY(bytes),
							VARSIZE_ANY_EXHDR(bytes), kind, CurrentMemoryContext);
	PG_RETURN_POINTER(state);
}

static Datum
finish_build(FunctionCallInfo fcinfo, bf_kind kind)
{
	BuildState *state;
	Datum		result;

	(void) require_aggregate(fcinfo);
	state = get_build_state(fcinfo, 0, kind);
	if (state == NULL)
	{
		bf_params	params = unsized_params(DEFAULT_RATE, bloom_types[kind].default_cell_bits);

		PG_RETURN_POINTER(make_empty_value(&params));
	}
	result = PointerGetDatum(finish_accumulator(&state->accumulator));
	PG_RETURN_DATUM(state->base == NULL ? result : reuse_stored_base(state->base, result));
}

SQL_FUNCTION(bloomfilter_agg_self_sized, build_self_sized(fcinfo, &filter_form))
SQL_FUNCTION(bloomfilter_agg_sized, build_sized(fcinfo, &filter_form))
SQL_FUNCTION(bloomfilter_agg_extend, build_extend(fcinfo, &filter_form))
SQL_FUNCTION(bloomfilter_agg_combine, combine_builds(fcinfo, &filter_form))
SQL_FUNCTION(bloomfilter_agg_serialize, serialize_build(fcinfo, BF_FILTER))
SQL_FUNCTION(bloomfilter_agg_deserialize, deserialize_build(fcinfo, BF_FILTER))
SQL_FUNCTION(bloomfilter_agg_final, finish_build(fcinfo, BF_FILTER))
SQL_FUNCTION(bloomcounter_agg_self_sized, build_self_sized(fcinfo, &count_form))
SQL_FUNCTION(bloomcounter_agg_sized, build_sized(fcinfo, &count_form))
SQL_FUNCTION(bloomcounter_agg_extend, build_extend(fcinfo, &count_form))
SQL_FUNCTION(bloomcounter_level_agg_self_sized, build_self_sized(fcinfo, &level_form))
SQL_FUNCTION(bloomcounter_level_agg_sized, build_sized(fcinfo, &level_form))
SQL_FUNCTION(bloomcounter_level_agg_extend, build_extend(fcinfo, &level_form))
SQL_FUNCTION(bloomcounter_agg_combine, combine_builds(fcinfo, &count_form))
SQL_FUNCTION(bloomcounter_level_agg_combine, combine_builds(fcinfo, &level_form))
SQL_FUNCTION(bloomcounter_agg_serialize, serialize_build(fcinfo, BF_COUNTER))
SQL_FUNCTION(bloomcounter_agg_deserialize, deserialize_build(fcinfo, BF_COUNTER))
SQL_FUNCTION(bloomcounter_agg_final, finish_build(fcinfo, BF_COUNTER))
