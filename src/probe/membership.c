/*
 * membership.c
 *		Is an element in a filter, and how often in a counter?
 */
#include "pg/pg_compat.h"

#include "nodes/nodeFuncs.h"
#include "pg/element.h"
#include "pg/sql_function.h"
#include "probe/filter_cache.h"
#include "value/errors.h"

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
make_probe_site(FunctionCallInfo fcinfo, bf_kind kind, int argument)
{
	FmgrInfo   *function = fcinfo->flinfo;
	ProbeSite	resolved = {0};
	ProbeSite  *site;

	resolve_element_type(fcinfo, argument, &resolved.element);
	resolved.literal = is_literal(function, argument) && resolved.element.is_stable;
	resolved.last.kind = kind;
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

/* A number if number is set, else 1 or 0 for membership. */
static pg_attribute_always_inline uint32
probe(FunctionCallInfo fcinfo, bf_kind kind, int filter_argument, int argument, bool number)
{
	ProbeSite  *site = fcinfo->flinfo->fn_extra;
	Datum		value = PG_GETARG_DATUM(filter_argument);
	OpenedValue *opened;
	const bf_params *params;
	Datum		element = PG_GETARG_DATUM(argument);
	HashElement hash_element;
	uint64		hash;
	uint32		result;

	if (unlikely(site == NULL))
		site = make_probe_site(fcinfo, kind, argument);
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
	result = read_opened(value, opened, hash, number);
	close_cached_filter(&site->last);
	return result;
}

SQL_FUNCTION(bloomfilter_contains, BoolGetDatum(probe(fcinfo, BF_FILTER, 0, 1, false) != 0))
SQL_FUNCTION(bloomfilter_contained, BoolGetDatum(probe(fcinfo, BF_FILTER, 1, 0, false) != 0))
SQL_FUNCTION(bloomcounter_contains, BoolGetDatum(probe(fcinfo, BF_COUNTER, 0, 1, false) != 0))
SQL_FUNCTION(bloomcounter_contained, BoolGetDatum(probe(fcinfo, BF_COUNTER, 1, 0, false) != 0))
SQL_FUNCTION(bloomcounter_count, Int32GetDatum((int32) probe(fcinfo, BF_COUNTER, 0, 1, true)))
