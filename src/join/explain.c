/*
 * explain.c
 *		What EXPLAIN shows of a filter: at its build node, and where the server has a hook
 *		for it at the scans.
 */
#include "pg/pg_compat.h"

#include "commands/explain.h"
#include "executor/instrument.h"
#include "join/join_filter.h"
#include "utils/ruleutils.h"

#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

/*
 * A worker leaves its figures in counters of the build node that the executor adds up, and
 * that it uses for no custom scan.  So they need no shared memory, and are complete
 * whenever the leader's other figures are.
 */

void
store_figures(NodeInstrumentation *counters, ProbeFigures figures)
{
	counters->nfiltered1 = figures.probed;
	counters->nfiltered2 = figures.dropped;
	counters->ntuples2 = figures.removed;
}

static ProbeFigures
stored_figures(const NodeInstrumentation *counters)
{
	ProbeFigures result = {
		.probed = counters->nfiltered1,
		.dropped = counters->nfiltered2,
		.removed = counters->ntuples2,
	};

	return result;
}

/* Those of this process, of its workers, and of those that have a copy. */
static ProbeFigures
total_figures(const FilterBuild *build)
{
	ProbeFigures sum = count_probes(build->filter);
	ListCell   *cell;

	add_figures(&sum, stored_figures(build->css.ss.ps.instrument));
	foreach(cell, build->filter->copies)
		add_figures(&sum, stored_figures(((const FilterCopy *) lfirst(cell))->css.ss.ps.instrument));
	return sum;
}

static void
explain_figures(ProbeFigures figures, ExplainState *es)
{
	ExplainPropertyInteger("Rows Probed", NULL, figures.probed, es);
	ExplainPropertyInteger("Rows Dropped", NULL, figures.dropped, es);
	ExplainPropertyInteger("Probes Removed", NULL, figures.removed, es);
}

static void
explain_worker(int number, ProbeFigures figures, ExplainState *es)
{
	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		/* two blanks after the colon, as in other lines of workers */
		ExplainPropertyText(psprintf("Worker %d", number),
							psprintf(" Rows Probed: " UINT64_FORMAT "  Rows Dropped: " UINT64_FORMAT
									 "  Probes Removed: " UINT64_FORMAT,
									 figures.probed, figures.dropped, figures.removed), es);
		return;
	}
	ExplainOpenGroup("Worker", NULL, true, es);
	ExplainPropertyInteger("Worker Number", NULL, number, es);
	explain_figures(figures, es);
	ExplainCloseGroup("Worker", NULL, true, es);
}

/* A worker that comes late to a Parallel Hash does not run the build node, but probes. */
static void
explain_workers(const CustomScanState *node, ExplainState *es)
{
	const WorkerNodeInstrumentation *workers = node->ss.ps.worker_instrument;

	if (!es->verbose || es->workers_state == NULL)
		return;
	ExplainOpenGroup("Join Filter Workers", "Join Filter Workers", false, es);
	for (int i = 0; i < workers->num_workers; i++)
	{
		ProbeFigures figures = stored_figures(&workers->instrument[i]);

		if (workers->instrument[i].nloops > 0 || figures.probed > 0)
			explain_worker(i, figures, es);
	}
	ExplainCloseGroup("Join Filter Workers", "Join Filter Workers", false, es);
}

/* A filter has the name that stands for it in the conditions of scans: "$0". */
static void
explain_keys(const char *property, int parameter, List *keys, PlanState *state, List *ancestors, ExplainState *es)
{
	List	   *context = set_deparse_context_plan(es->deparse_cxt, state->plan, ancestors);
	bool		use_prefix = list_length(es->rtable) > 1 || es->verbose;
	char	   *name = psprintf("$%d", parameter);
	List	   *texts = NIL;
	ListCell   *cell;

	foreach(cell, keys)
		texts = lappend(texts, deparse_expression(lfirst(cell), context, use_prefix, false));
	if (es->format == EXPLAIN_FORMAT_TEXT)
		ExplainPropertyList(psprintf("Join Filter %s %s", name, property), texts, es);
	else
	{
		ExplainPropertyText("Join Filter Name", name, es);
		ExplainPropertyList(psprintf("Join Filter %s", property), texts, es);
	}
}

void
explain_filter_build(CustomScanState *node, List *ancestors, ExplainState *es)
{
	FilterBuild *build = (FilterBuild *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	JoinFilter *filter = build->filter;

	explain_keys("Built From", build->plan.parameter, plan->custom_exprs, &node->ss.ps, ancestors, es);
	if (!es->analyze || filter == NULL)
		return;
	ExplainPropertyInteger("Keys Added", NULL, filter->keys, es);
	ExplainPropertyInteger("Filter Size", "kB", (filter->size + 1023) / 1024, es);
	explain_figures(total_figures(build), es);
	explain_workers(node, es);
}

void
explain_filter_copy(CustomScanState *node, List *ancestors, ExplainState *es)
{
	ExplainPropertyText("Copy of Join Filter", psprintf("$%d", ((FilterCopy *) node)->plan.parameter), es);
	if (es->analyze)
		explain_workers(node, es);
}

#if PG_VERSION_NUM >= 180000

static explain_per_node_hook_type next_explain;

/* Figures of a single scan are those of this process, so there are none with workers. */
static void
explain_probe(PlanState *scan, FuncExpr *probe, List *ancestors, ExplainState *es)
{
	int			parameter = parameter_of_probe(probe);
	JoinFilter *filter = filter_of_probe(scan->state, probe);
	ProbeSite  *site = filter == NULL ? NULL : find_probe_site(filter, probe);

	ExplainOpenGroup("Join Filter", NULL, true, es);
	explain_keys("On", parameter, list_copy_tail(probe->args, 1), scan, ancestors, es);
	if (es->analyze && site != NULL && scan->worker_instrument == NULL)
	{
		/* in text, the lines belong to the one above */
		es->indent += es->format == EXPLAIN_FORMAT_TEXT;
		explain_figures(figures_of_probe(site), es);
		es->indent -= es->format == EXPLAIN_FORMAT_TEXT;
	}
	ExplainCloseGroup("Join Filter", NULL, true, es);
}

static void
explain_probes(PlanState *state, List *ancestors, const char *relationship, const char *plan_name, ExplainState *es)
{
	bool		found = false;
	ListCell   *cell;

	if (next_explain)
		next_explain(state, ancestors, relationship, plan_name, es);
	foreach(cell, state->plan->qual)
	{
		FuncExpr   *probe = as_probe(lfirst(cell));

		if (probe == NULL)
			continue;
		if (!found)
			ExplainOpenGroup("Join Filters", "Join Filters", false, es);
		found = true;
		explain_probe(state, probe, ancestors, es);
	}
	if (found)
		ExplainCloseGroup("Join Filters", "Join Filters", false, es);
}

void
explain_probing_scans(void)
{
	next_explain = explain_per_node_hook;
	explain_per_node_hook = explain_probes;
}

#else

void
explain_probing_scans(void)
{
	/* these versions have no hook */
}

#endif
