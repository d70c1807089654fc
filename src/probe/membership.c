/*
 * membership.c
 *		Is an element in a filter, and how often in a counter?
 */
#include "pg/pg_compat.h"

#include "filter/errors.h"
#include "fmgr.h"
#include "nodes/nodeFuncs.h"
#include "pg/element.h"
#include "probe/filter_cache.h"

PG_FUNCTION_INFO_V1(bloomfilter_contains);
PG_FUNCTION_INFO_V1(bloomfilter_contained);
PG_FUNCTION_INFO_V1(bloomcounter_contains);
PG_FUNCTION_INFO_V1(bloomcounter_contained);
PG_FUNCTION_INFO_V1(bloomcounter_count);

/* A membership function's cache in fn_extra. */
typedef struct ProbeSite
{
	ElementType element;
	LastFilter	last;
	bool		literal;		/* all calls have the same element */
	/* the literal's last hash; hashed_by is NULL at first */
	HashElement hashed_by;
	uint64		seed;
	uint64		hash;
} ProbeSite;

/*
 * Is an argument of the call a literal?  Nothing else is constant for the life
 * of fn_extra: PL/pgSQL evaluates one expression with changing parameters, and
 * "filter @> ANY (array)" makes one call per array element.
 */
static bool
is_literal(const FmgrInfo *function, int argument)
{
	Node	   *call = function->fn_expr;
	List	   *arguments;

	if (call == NULL)
		return false;
	if (IsA(call, OpExpr))
		arguments = ((OpExpr *) call)->args;
	else if (IsA(call, FuncExpr))
		arguments = ((FuncExpr *) call)->args;
	else
		return false;
	return argument < list_length(arguments) && IsA(list_nth(arguments, argument), Const);
}

static pg_noinline ProbeSite *
make_probe_site(FunctionCallInfo fcinfo, bf_source source, int argument)
{
	FmgrInfo   *function = fcinfo->flinfo;
	ProbeSite	resolved = {0};
	ProbeSite  *site;

	resolve_element_type(fcinfo, argument, &resolved.element);
	resolved.literal = is_literal(function, argument) && resolved.element.is_stable;
	resolved.last.source = source;
	site = MemoryContextAlloc(function->fn_mcxt, sizeof(*site));
	*site = resolved;
	function->fn_extra = site;
	return site;
}

static pg_noinline uint64
hash_literal(ProbeSite *site, HashElement hash, Datum value, uint64 seed)
{
	if (site->hashed_by != hash || site->seed != seed)
	{
		site->hash = hash(value, seed);
		site->seed = seed;
		site->hashed_by = hash;
	}
	return site->hash;
}

/* Can the last opened filter serve this value?  One in memory may have moved. */
static inline bool
is_opened_last(const LastFilter *last, const char *value)
{
	switch (last->kind)
	{
		case LAST_COPIED:
			return VARATT_IS_EXTERNAL_ONDISK(value) &&
				memcmp(value, last->identity, TOAST_POINTER_SIZE) == 0 &&
				last->opened_at > shortcuts_revoked_at;
		case LAST_IN_MEMORY:
			return VARATT_IS_4B_U(value) && VARSIZE_4B(value) >= IDENTITY_SIZE &&
				memcmp(value, last->identity, IDENTITY_SIZE) == 0;
		default:
			return false;
	}
}

/* Opens a filter for one probe.  The call site's last filter is the fast path. */
static inline OpenedFilter *
open_cached_filter(LastFilter *last, Datum value)
{
	if (unlikely(!is_opened_last(last, DatumGetPointer(value))))
		return open_other_filter(last, value);
	if (last->kind == LAST_IN_MEMORY)
		move_opened(&last->opened, (const uint8 *) DatumGetPointer(value) + IDENTITY_SIZE);
	return last->filter;
}

/* Limits memory: "filter @> ANY (array)" makes many calls within one row. */
static inline void
close_cached_filter(LastFilter *last)
{
	if (unlikely(last->detoasted != NULL))
	{
		pfree(last->detoasted);
		last->detoasted = NULL;
	}
}

/* A number if number is set, else 1 or 0 for membership. */
static pg_attribute_always_inline uint32
probe(FunctionCallInfo fcinfo, bf_source source, int filter_argument, int argument, bool number)
{
	ProbeSite  *site = fcinfo->flinfo->fn_extra;
	Datum		value = PG_GETARG_DATUM(filter_argument);
	OpenedFilter *opened;
	const bf_params *params;
	Datum		element = PG_GETARG_DATUM(argument);
	HashElement hash_element;
	uint64		hash;
	uint32		result;

	if (unlikely(site == NULL))
		site = make_probe_site(fcinfo, source, argument);
	opened = open_cached_filter(&site->last, value);
	params = &opened->filter.params;
	hash_element = lookup_hash(&site->element, params->element_class);
	if (unlikely(hash_element == NULL))
	{
		if (params->element_class != BF_CLASS_NONE)
			report_class_mismatch(params, site->element.element_class);
		return 0;
	}
	hash = site->literal ? hash_literal(site, hash_element, element, params->seed)
		: hash_element(element, params->seed);
	result = number ? read_opened(value, opened, hash) : probe_opened(value, opened, hash);
	close_cached_filter(&site->last);
	return result;
}

Datum
bloomfilter_contains(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(probe(fcinfo, BF_VALUE, 0, 1, false) != 0);
}

Datum
bloomfilter_contained(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(probe(fcinfo, BF_VALUE, 1, 0, false) != 0);
}

Datum
bloomcounter_contains(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(probe(fcinfo, BF_COUNTER_VALUE, 0, 1, false) != 0);
}

Datum
bloomcounter_contained(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(probe(fcinfo, BF_COUNTER_VALUE, 1, 0, false) != 0);
}

Datum
bloomcounter_count(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32((int32) probe(fcinfo, BF_COUNTER_VALUE, 0, 1, true));
}
