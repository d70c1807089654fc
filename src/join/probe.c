/*
 * probe.c
 *		The probes of a scan, which drop its rows.
 *
 * In the plan a probe is a call of an SQL function at the end of the scan's condition.  It
 * passes all rows where the scan is not linked to the filter, as in EvalPlanQual.  A linked
 * scan may have a condition of ours instead: see needs_own_condition().
 *
 * A probe passes a row unless the filter proves that its join drops it.  It counts what it
 * drops, and a probe that does not pay pauses and is at last removed.
 */
#include "pg/pg_compat.h"

#include "catalog/pg_type.h"
#include "executor/execExpr.h"
#include "fmgr.h"
#include "join/join_filter.h"
#include "nodes/makefuncs.h"

#define FILTER_NAME_TYPMOD	0x626c6f6f	/* other constants have none like it */
#define WINDOWS_PER_PAUSE	4	/* at first */
#define LONGEST_PAUSE		(4 * 1024 * 1024)
#define PAUSES_OF_SCAN		32	/* at least, if it is judged alone */
#define PAUSED_PER_PROBE	4	/* rows that cost as much as one probe */
#define WINDOWS_TO_LOSE		4	/* at most, beside a part of the rows */
#define ROWS_PER_LOST		64
#define FAILURES_TO_GIVE_UP	3	/* in a row */
#define FAILURES_TO_PAUSE	8	/* while the probe pays in all */
#define WINDOWS_OF_SCAN		32	/* of one that is judged alone */

/*
 * The name of a filter in a probe.  It is not the parameter itself: from 17 on, EXPLAIN
 * expects that a node above computes each parameter that a condition uses.
 */
Node *
make_filter_name(int parameter)
{
	return (Node *) makeConst(UNKNOWNOID, FILTER_NAME_TYPMOD, InvalidOid, -2,
							  CStringGetDatum(psprintf("$%d", parameter)), false, false);
}

int
parameter_of_probe(const FuncExpr *probe)
{
	return atoi(DatumGetCString(linitial_node(Const, probe->args)->constvalue) + 1);
}

FuncExpr *
as_probe(Node *clause)
{
	FuncExpr   *call = (FuncExpr *) clause;
	Const	   *name;

	if (!IsA(clause, FuncExpr) || list_length(call->args) < 2)
		return NULL;
	name = linitial(call->args);
	if (!IsA(name, Const) || name->consttype != UNKNOWNOID || name->consttypmod != FILTER_NAME_TYPMOD)
		return NULL;
	return call;
}

static void
start_window(Judgement *judgement)
{
	judgement->window = join_filter_window;
	judgement->seen = judgement->passed = 0;
}

static uint32
first_pause(void)
{
	return (uint32) Min((uint64) join_filter_window * WINDOWS_PER_PAUSE, LONGEST_PAUSE);
}

static void
start_judgement(Judgement *judgement)
{
	judgement->next_pause = first_pause();
	start_window(judgement);
}

/* Many small scans, as of partitions, are judged as one: each would end before its judgement. */
void
start_probe(ProbeSite *site, JoinFilter *filter, FuncExpr *probe)
{
	site->filter = filter;
	site->probe = probe;
	site->rows = (uint32) Min(site->condition->scan->plan->plan_rows * filter->plan->loops, LONGEST_PAUSE);
	site->judgement = site->rows < (uint64) join_filter_window * WINDOWS_OF_SCAN ? &filter->judgement : &site->own;
	if (filter->probes == NIL)
		start_judgement(&filter->judgement);
	start_judgement(&site->own);
	site->judgement->rows += site->rows;
	filter->probes = lappend(filter->probes, site);
	site->last_column = prepare_keys(site->keys, filter->plan, true, list_copy_tail(probe->args, 1));
}

JoinFilter *
filter_of_probe(const EState *estate, const FuncExpr *probe)
{
	return (JoinFilter *) DatumGetPointer(estate->es_param_exec_vals[parameter_of_probe(probe)].value);
}

ProbeSite *
find_probe_site(const JoinFilter *filter, const FuncExpr *probe)
{
	ListCell   *cell;

	foreach(cell, filter->probes)
	{
		ProbeSite  *site = lfirst(cell);

		if (site->probe == probe)
			return site;
	}
	return NULL;
}

/* Did it get too many keys? */
static inline bool
is_overfull(const JoinFilter *filter)
{
	return filter->given_up || (filter->shared != NULL && shared_filter_is_full(filter));
}

/*
 * Can the filter answer?  While a change of parameters has not reached the inner side, the
 * filter is that of the old ones.
 */
static inline bool
is_usable(const JoinFilter *filter)
{
	return filter->ready && filter->above != NULL && filter->above->chgParam == NULL && !is_overfull(filter);
}

/* False while a lower join may read an outer row and then stop: see add_join(). */
static inline bool
lower_joins_built(const ProbeSite *site)
{
	ListCell   *cell;

	foreach(cell, site->lower_joins)
	{
		if (((const HashJoinState *) lfirst(cell))->hj_HashTable == NULL)
			return false;
	}
	return true;
}

/* Not inlined: the constants of the hash would fill the registers that may_match() needs. */
static pg_noinline bool
take_hash(const JoinFilter *filter, KeyHash *keys, const TupleTableSlot *slot, uint64 *hash)
{
	if (!take_keys(filter, keys, slot, hash))
		return false;
	if (filter->single)
		*hash = bf_hash_word(*hash, 0);
	return true;
}

/*
 * False if the filter proves that no inner row has these keys.  A null key is not judged: it
 * costs the join as little as the probe.
 */
static inline bool
may_match(ProbeSite *site, TupleTableSlot *slot)
{
	const JoinFilter *filter = site->filter;
	bool		result;

	Assert(!filter->spoiled && !filter->given_up && filter->bits != NULL);
	slot_getsomeattrs(slot, site->last_column);
	if (filter->exact)
	{
		int			column = site->keys[0].column - 1;

		Assert(filter->single && site->keys[0].kind != KEY_OTHER);
		if (slot->tts_isnull[column])
			return false;
		result = bf_integers_contain(filter->bits, &filter->range,
									 integer_of_key(site->keys[0].kind, slot->tts_values[column]));
	}
	else
	{
		uint64		hash;

		if (!take_hash(filter, site->keys, slot, &hash))
			return false;
		result = bf_test_all(filter->bits + bf_block_offset(&filter->shape, hash), BF_BLOCK_BITS, JOIN_FILTER_K, hash);
	}
	site->judgement->seen++;
	site->judgement->passed += result;
	return result;
}

ProbeFigures
figures_of_probe(const ProbeSite *site)
{
	ProbeFigures result = {
		.probed = site->probed,
		.dropped = site->dropped,
		.removed = site->removed,
	};

	return result;
}

void
add_figures(ProbeFigures *sum, ProbeFigures figures)
{
	sum->probed += figures.probed;
	sum->dropped += figures.dropped;
	sum->removed += figures.removed;
}

ProbeFigures
count_probes(const JoinFilter *filter)
{
	ProbeFigures sum = {0};
	ListCell   *cell;

	foreach(cell, filter->probes)
		add_figures(&sum, figures_of_probe(lfirst(cell)));
	return sum;
}

/*
 * Below a grouping a filter goes from all scans or none, and only while it has dropped no
 * row, so that all groups are whole.  Other processes may have dropped some.
 */
static void
give_up_groups(JoinFilter *filter)
{
	ListCell   *cell;

	if (count_probes(filter).dropped > 0 || filter->shared != NULL || filter->copies != NIL)
		return;
	filter->spoiled = true;
	filter->ready = false;
	foreach(cell, filter->probes)
		remove_probe(lfirst(cell));
}

/*
 * What the probes of so many rows cost beyond what they saved, in thousandths of the saving
 * by a row that is dropped.
 */
static int64
loss_of(const JoinFilter *filter, uint64 probed, uint64 dropped)
{
	return (int64) ((probed - dropped) * 1000) - (int64) (probed * filter->plan->most_passing);
}

/* Did they cost more than the probes of so many rows that all pass? */
static bool
lost_too_much(const JoinFilter *filter, const Judgement *judgement)
{
	uint64		most = judgement->rows / ROWS_PER_LOST + (uint64) join_filter_window * WINDOWS_TO_LOSE;

	return loss_of(filter, judgement->probed, judgement->dropped) > loss_of(filter, most, 0);
}

/*
 * Pauses grow until a window pays.  They stay short beside the scan, since the rows that follow
 * a run of matching ones are all lost until the pause ends.
 */
static void
start_pause(ProbeSite *site)
{
	Judgement  *judgement = site->judgement;
	uint32		longest = judgement == &site->own ? Max(first_pause(), site->rows / PAUSES_OF_SCAN) : LONGEST_PAUSE;

	judgement->pause = judgement->next_pause;
	judgement->probed += judgement->pause / PAUSED_PER_PROBE;
	judgement->next_pause = Min(judgement->next_pause * 2, longest);
}

/*
 * At the end of a window: does the probe pay?  If several windows in a row fail, it lets rows
 * pass for a while, then tries again, because rows may be stored in the order of their keys.
 * It goes when it has lost too much in all.
 */
static void
judge_probe(ProbeSite *site)
{
	JoinFilter *filter = site->filter;
	Judgement  *judgement = site->judgement;
	uint32		dropped = judgement->seen - judgement->passed;
	bool		pays = loss_of(filter, judgement->seen, dropped) <= 0;

	Assert(judgement->passed <= judgement->seen && judgement->pause == 0);
	judgement->probed += judgement->seen;
	judgement->dropped += dropped;
	judgement->failures = pays ? 0 : judgement->failures + 1;
	start_window(judgement);
	if (filter->plan->whole)
	{
		if (judgement->failures == FAILURES_TO_GIVE_UP)
			give_up_groups(filter);
		return;
	}
	if (pays)
		judgement->next_pause = first_pause();
	else if (judgement->failures > (loss_of(filter, judgement->probed, judgement->dropped) > 0 ? 1 : FAILURES_TO_PAUSE))
		start_pause(site);
	if (!pays && lost_too_much(filter, judgement))
		remove_probe(site);
}

/* A row passes in a pause.  A scan that ends before a long one loses its probe. */
static void
pause_probe(ProbeSite *site)
{
	Judgement  *judgement = site->judgement;

	if (judgement->failures < FAILURES_TO_GIVE_UP || judgement->pause < site->rows)
	{
		judgement->pause--;
		return;
	}
	judgement->pause -= site->rows;
	remove_probe(site);
}

/*
 * May the row be in the result of the filter's join?  A row that passes before a filter is
 * ready takes the rows of its group with it, so the filter is never used.
 */
static inline bool
passes(ProbeSite *site, TupleTableSlot *slot)
{
	bool		result;

	if (site->removed)
		return true;
	if (unlikely(!is_usable(site->filter) && !receive_filter_copy(site->filter)) ||
		unlikely(!lower_joins_built(site)))
	{
		site->filter->spoiled |= site->filter->plan->whole;
		if (site->filter->spoiled || is_overfull(site->filter))
			remove_probe(site);
		return true;
	}
	if (site->judgement->pause > 0)
	{
		pause_probe(site);
		return true;
	}
	result = may_match(site, slot);
	site->probed++;
	site->dropped += !result;
	if (unlikely(site->judgement->seen >= site->judgement->window))
		judge_probe(site);
	return result;
}

/*
 * The condition of a linked scan, as an ExprStateEvalFunc.  A row's columns are extracted
 * only as far as the next clause needs.
 */
Datum
eval_probes(ExprState *state, ExprContext *econtext, bool *is_null)
{
	ProbedCondition *condition = state->evalfunc_private;
	TupleTableSlot *slot = econtext->ecxt_scantuple;

	*is_null = false;
	if (condition->rest != NULL && !DatumGetBool(ExecEvalExpr(condition->rest, econtext, is_null)))
		return BoolGetDatum(false);
	for (int i = 0; i < condition->nsites; i++)
	{
		if (!passes(&condition->sites[i], slot))
			return BoolGetDatum(false);
	}
	return BoolGetDatum(true);
}

/*
 * Gives the calls of a running scan their sites.  Other calls of the same plan have none, as in
 * EvalPlanQual, which has an executor state of its own.
 */
void
give_sites_to_calls(ProbedCondition *condition)
{
	ExprState  *state = condition->scan->qual;

	for (int i = 0; i < state->steps_len; i++)
	{
		ExprEvalStep *step = &state->steps[i];
		ExprEvalOp	operation = ExecEvalStepOp(state, step);

		if (operation != EEOP_FUNCEXPR && operation != EEOP_FUNCEXPR_FUSAGE)
			continue;
		for (int j = 0; j < condition->nsites; j++)
		{
			if (step->d.func.finfo->fn_expr == (Node *) condition->sites[j].probe)
				step->d.func.finfo->fn_extra = &condition->sites[j];
		}
	}
}

/*
 * bloom_join_filter(filter, key, ...): a probe beside other clauses.  The interpreter calls
 * it only for the rows that they pass.
 */
PG_FUNCTION_INFO_V1(join_filter_probe);
Datum
join_filter_probe(PG_FUNCTION_ARGS)
{
	ProbeSite  *site = fcinfo->flinfo->fn_extra;

	PG_RETURN_BOOL(site == NULL || passes(site, site->condition->scan->ps_ExprContext->ecxt_scantuple));
}
