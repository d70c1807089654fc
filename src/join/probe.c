/*
 * probe.c
 *		The probe: an SQL function in the condition of a scan.
 *
 * It passes a row unless the filter proves that its join drops it.  It counts what it
 * drops, and a probe that does not pay pauses and is at last removed.
 */
#include "pg/pg_compat.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "join/join_filter.h"
#include "nodes/nodeFuncs.h"

#define WINDOWS_PER_PAUSE	16	/* at first; each pause is twice as long as the one before */
#define LONGEST_PAUSE		(4 * 1024 * 1024)
#define FAILURES_TO_REMOVE	3

FuncExpr *
as_probe(Node *clause)
{
	FuncExpr   *call = (FuncExpr *) clause;
	Param	   *parameter;

	if (!IsA(clause, FuncExpr) || list_length(call->args) < 2)
		return NULL;
	parameter = linitial(call->args);
	if (!IsA(parameter, Param) || parameter->paramkind != PARAM_EXEC || parameter->paramtype != INTERNALOID)
		return NULL;
	return call;
}

static void
start_window(ProbeSite *site, uint32 rows)
{
	site->window = rows;
	site->seen = site->passed = 0;
}

static ProbeSite *
make_site(JoinFilter *filter, Node *clause)
{
	MemoryContext caller = MemoryContextSwitchTo(filter->query_context);
	ProbeSite  *site = palloc0(sizeof(ProbeSite));

	site->filter = filter;
	site->clause = clause;
	for (int i = 0; i < filter->nkeys; i++)
		fmgr_info(filter->outer[i].function, &site->functions[i]);
	site->next_pause = (uint32) Min((uint64) join_filter_window * WINDOWS_PER_PAUSE, LONGEST_PAUSE);
	start_window(site, join_filter_window);
	filter->probes = lappend(filter->probes, site);
	MemoryContextSwitchTo(caller);
	return site;
}

ProbeSite *
get_probe_site(JoinFilter *filter, Node *clause)
{
	ListCell   *cell;

	foreach(cell, filter->probes)
	{
		ProbeSite  *site = lfirst(cell);

		if (site->clause == clause)
			return site;
	}
	return make_site(filter, clause);
}

/*
 * Can the filter answer?  EvalPlanQual runs a copy of the plan with copies of the
 * parameters, for rows that the filter's join may never have seen.  While a change of
 * parameters has not reached the inner side, the filter is that of the old ones.
 */
static inline bool
is_usable(const JoinFilter *filter, const FmgrInfo *function)
{
	if (filter == NULL || filter->query_context != function->fn_mcxt)
		return false;
	return filter->ready && filter->hash != NULL && filter->hash->chgParam == NULL &&
		(filter->shared == NULL || !shared_filter_is_full(filter));
}

/* A row passes before the filter is ready: the rows of its group must then pass, too. */
static void
note_early_row(JoinFilter *filter, const FmgrInfo *function)
{
	if (filter != NULL && filter->query_context == function->fn_mcxt && filter->plan->whole)
		filter->spoiled = true;
}

/* False if the filter proves that no inner row has these keys. */
static inline bool
may_match(ProbeSite *site, FunctionCallInfo fcinfo)
{
	const JoinFilter *filter = site->filter;
	uint64		hash = 0;

	for (int i = 0; i < filter->nkeys; i++)
	{
		if (fcinfo->args[i + 1].isnull)
			return false;		/* the join's operators are strict */
		hash = hash_join_key(&filter->outer[i], &site->functions[i], fcinfo->args[i + 1].value, hash);
	}
	return bf_test_all(filter->bits + bf_block_offset(&filter->shape, hash), BF_BLOCK_BITS, JOIN_FILTER_K, hash);
}

static void
sum_site(ProbeSite *site)
{
	site->filter->probed += site->seen;
	site->filter->dropped += site->seen - site->passed;
}

/* The counts of unfinished windows go to the filter, and the windows go on without them. */
void
sum_probes(JoinFilter *filter)
{
	ListCell   *cell;

	foreach(cell, filter->probes)
	{
		ProbeSite  *site = lfirst(cell);

		sum_site(site);
		start_window(site, site->window);
	}
}

/*
 * Below a grouping a filter goes from all scans or none, and only while it has dropped no
 * row, so that all groups are whole.  Other processes may have dropped some.
 */
static void
give_up_groups(JoinFilter *filter)
{
	ListCell   *cell;

	sum_probes(filter);
	if (filter->dropped > 0 || filter->shared != NULL || filter->copies != NIL)
		return;
	filter->spoiled = true;
	filter->ready = false;
	foreach(cell, filter->probes)
	{
		if (can_remove_probe(lfirst(cell)))
			remove_probe(lfirst(cell));
	}
}

/*
 * At the end of a window: does the probe pay?  If not, it lets rows pass for a while,
 * because the next ones may be of another kind, and after several failures it goes.
 */
static void
judge_probe(ProbeSite *site)
{
	JoinFilter *filter = site->filter;
	bool		pays = site->passed * UINT64CONST(1000) <= (uint64) site->seen * filter->plan->most_passing;

	sum_site(site);
	start_window(site, join_filter_window);
	site->failures = pays ? 0 : site->failures + 1;
	if (filter->plan->whole)
	{
		if (site->failures == FAILURES_TO_REMOVE)
			give_up_groups(filter);
		return;
	}
	if (pays)
		return;
	site->pause = site->next_pause;
	site->next_pause = Min(site->next_pause * 2, LONGEST_PAUSE);
	if (site->failures >= FAILURES_TO_REMOVE && can_remove_probe(site))
		remove_probe(site);
}

/* bloom_join_filter(filter, key, ...): may the filter's join find a match for these keys? */
PG_FUNCTION_INFO_V1(join_filter_probe);
Datum
join_filter_probe(PG_FUNCTION_ARGS)
{
	FmgrInfo   *function = fcinfo->flinfo;
	JoinFilter *filter = (JoinFilter *) DatumGetPointer(fcinfo->args[0].value);
	ProbeSite  *site;
	bool		passes;

	if (unlikely(!is_usable(filter, function)) && !(filter != NULL && receive_filter_copy(filter)))
	{
		note_early_row(filter, function);
		PG_RETURN_BOOL(true);
	}
	site = function->fn_extra;
	if (unlikely(site == NULL))
		site = function->fn_extra = get_probe_site(filter, function->fn_expr);
	if (site->pause > 0)
	{
		site->pause--;
		PG_RETURN_BOOL(true);
	}
	passes = may_match(site, fcinfo);
	site->passed += passes;
	if (++site->seen >= site->window)
		judge_probe(site);
	PG_RETURN_BOOL(passes);
}
