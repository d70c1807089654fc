/*
 * hits.c
 *		How many of several keys are in a filter?
 */
#include "pg/pg_compat.h"

#include "core/block.h"
#include "miscadmin.h"
#include "pg/memory.h"
#include "probe/filter_cache.h"
#include "query/keys.h"
#include "utils/memutils.h"
#include "value/errors.h"

PG_FUNCTION_INFO_V1(bloomfilter_matches);
PG_FUNCTION_INFO_V1(bloomfilter_absent);
PG_FUNCTION_INFO_V1(bloomfilter_hits);
PG_FUNCTION_INFO_V1(bloomfilter_contains_any);
PG_FUNCTION_INFO_V1(bloomfilter_contains_all);
PG_FUNCTION_INFO_V1(bloomfilter_contains_least);

/* Blocks of a filter in memory are prefetched this many keys ahead. */
#define PREFETCH_KEYS	8

/*
 * A call site's cache in fn_extra: the keys of the last call, and their hashes
 * for the last class and seed.  Usually all calls have the same keys, and
 * comparing their bytes takes a fraction of the time of hashing them.
 */
typedef struct HitSite
{
	LastFilter	last;
	KeyType		keys;			/* of an argument that is an array */
	MemoryContext context;		/* of all that follows */
	struct varlena *argument;	/* a copy of the last argument; NULL at first */
	OpenQuery	query;
	uint64	   *hashes;
	bool		hashed;			/* the following are valid */
	bool		answerable;		/* so are the hashes */
	uint32		filter_class;
	uint64		seed;
} HitSite;

static pg_noinline HitSite *
make_hit_site(FunctionCallInfo fcinfo, bool is_array)
{
	FmgrInfo   *function = fcinfo->flinfo;
	HitSite		resolved = {.last = {.kind = BF_FILTER}};
	HitSite    *site;

	if (is_array)
		resolve_key_type(fcinfo, 1, &resolved.keys);
	resolved.context = AllocSetContextCreate(function->fn_mcxt, "bloomtype keys",
											 ALLOCSET_SMALL_SIZES);
	site = MemoryContextAlloc(function->fn_mcxt, sizeof(*site));
	*site = resolved;
	function->fn_extra = site;
	return site;
}

/* Are the last keys those of this argument?  Labels of an enum can be renamed. */
static bool
has_last_keys(const HitSite *site, const struct varlena *argument, bool is_array)
{
	return site->argument != NULL &&
		(!is_array || site->keys.element.is_stable) &&
		VARSIZE_ANY(argument) == VARSIZE_ANY(site->argument) &&
		equal_bytes((const uint8 *) argument, (const uint8 *) site->argument, VARSIZE_ANY(argument));
}

/* Keeps the keys.  After an error the call site has none. */
static pg_noinline void
take_keys(HitSite *site, struct varlena *argument, bool is_array)
{
	MemoryContext caller;
	Size		size = VARSIZE_ANY(argument);
	struct varlena *copy;
	Datum		query;

	site->argument = NULL;
	site->hashed = false;
	MemoryContextReset(site->context);
	caller = MemoryContextSwitchTo(site->context);
	copy = palloc(size);
	copy_bytes((uint8 *) copy, (const uint8 *) argument, size);
	query = is_array ? PointerGetDatum(make_query(&site->keys, PointerGetDatum(copy)))
		: PointerGetDatum(copy);
	open_query(query, &site->query);
	site->hashes = palloc_extended(Max(site->query.nkeys, 1) * sizeof(uint64), MCXT_ALLOC_HUGE);
	site->argument = copy;
	MemoryContextSwitchTo(caller);
}

static HitSite *
open_hit_site(FunctionCallInfo fcinfo, bool is_array)
{
	HitSite    *site = fcinfo->flinfo->fn_extra;
	struct varlena *argument = (struct varlena *) PG_GETARG_POINTER(1);

	if (unlikely(site == NULL))
		site = make_hit_site(fcinfo, is_array);
	/* a TOAST pointer identifies a value, a pointer to memory does not */
	if (VARATT_IS_EXTERNAL(argument) && !VARATT_IS_EXTERNAL_ONDISK(argument))
		argument = PG_DETOAST_DATUM(PointerGetDatum(argument));
	if (!has_last_keys(site, argument, is_array))
		take_keys(site, argument, is_array);
	return site;
}

/* Has the hashes for a filter at hand; an error if it cannot answer. */
static void
hash_keys(HitSite *site, const bf_params *params)
{
	if (!site->hashed || site->filter_class != params->element_class || site->seed != params->seed)
	{
		site->hashed = false;
		site->answerable = hash_query(&site->query, params->element_class, params->seed, site->hashes);
		site->filter_class = params->element_class;
		site->seed = params->seed;
		site->hashed = true;
	}
	if (!site->answerable)
		report_class_mismatch(params, site->query.element_class);
}

/*
 * Counts the keys that a filter contains.  Stops when it has found enough of
 * them, or missed more than spare.  A filter that is not in memory is opened for
 * each key, so that the cache can copy it.
 */
static uint32
count_hits(HitSite *site, Datum filter, uint32 enough, uint32 spare)
{
	OpenedValue *opened = open_cached_filter(&site->last, filter);
	uint32		nkeys = site->query.nkeys;
	uint32		hits = 0;

	if (opened->filter.params.element_class == BF_CLASS_NONE)
		nkeys = 0;
	else
		hash_keys(site, &opened->filter.params);
	for (uint32 i = 0; i < nkeys && hits < enough && i - hits <= spare; i++)
	{
		if (opened->filter.payload == NULL)
		{
			CHECK_FOR_INTERRUPTS();
			opened = open_cached_filter(&site->last, filter);
		}
		else if (i % CHUNK_KEYS == 0)
			CHECK_FOR_INTERRUPTS();
		if (opened->dense != NULL && i + PREFETCH_KEYS < nkeys)
			bf_bits_prefetch(opened->dense, &opened->shape, site->hashes[i + PREFETCH_KEYS]);
		hits += read_opened(filter, opened, site->hashes[i], false) != 0;
	}
	close_cached_filter(&site->last);
	return hits;
}

/* Does a filter contain at least this many of the keys? */
static bool
contains_least(HitSite *site, Datum filter, uint32 least)
{
	uint32		nkeys = site->query.nkeys;

	if (least > nkeys)
	{
		count_hits(site, filter, 0, 0); /* reports a mismatch */
		return false;
	}
	return count_hits(site, filter, least, nkeys - least) >= least;
}

static uint32
count_all(HitSite *site, Datum filter)
{
	return count_hits(site, filter, PG_UINT32_MAX, PG_UINT32_MAX);
}

/* make_query() counts NULL elements in query.least only. */
static bool
has_nulls(const HitSite *site)
{
	return site->query.least > site->query.nkeys;
}

/* As filter @> ANY (keys): NULL if no key is found, but one is NULL. */
Datum
bloomfilter_contains_any(PG_FUNCTION_ARGS)
{
	HitSite    *site = open_hit_site(fcinfo, true);

	if (count_hits(site, PG_GETARG_DATUM(0), 1, PG_UINT32_MAX) > 0)
		PG_RETURN_BOOL(true);
	if (has_nulls(site))
		PG_RETURN_NULL();
	PG_RETURN_BOOL(false);
}

/* As filter @> ALL (keys): NULL if no key is missed, but one is NULL. */
Datum
bloomfilter_contains_all(PG_FUNCTION_ARGS)
{
	HitSite    *site = open_hit_site(fcinfo, true);

	if (!contains_least(site, PG_GETARG_DATUM(0), site->query.nkeys))
		PG_RETURN_BOOL(false);
	if (has_nulls(site))
		PG_RETURN_NULL();
	PG_RETURN_BOOL(true);
}

Datum
bloomfilter_matches(PG_FUNCTION_ARGS)
{
	HitSite    *site = open_hit_site(fcinfo, false);

	PG_RETURN_BOOL(contains_least(site, PG_GETARG_DATUM(0), site->query.least));
}

Datum
bloomfilter_absent(PG_FUNCTION_ARGS)
{
	HitSite    *site = open_hit_site(fcinfo, false);

	PG_RETURN_INT32((int32) (site->query.nkeys - count_all(site, PG_GETARG_DATUM(0))));
}

Datum
bloomfilter_hits(PG_FUNCTION_ARGS)
{
	HitSite    *site = open_hit_site(fcinfo, true);

	PG_RETURN_INT32((int32) count_all(site, PG_GETARG_DATUM(0)));
}

Datum
bloomfilter_contains_least(PG_FUNCTION_ARGS)
{
	HitSite    *site = open_hit_site(fcinfo, true);

	PG_RETURN_BOOL(contains_least(site, PG_GETARG_DATUM(0), check_least(PG_GETARG_INT32(2))));
}
