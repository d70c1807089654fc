/*
 * explain.c
 *		What EXPLAIN shows of a filter, at its build node.
 */
#include "pg/pg_compat.h"

#include "commands/explain.h"
#include "join/join_filter.h"
#include "utils/ruleutils.h"

#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

/* The name is what stands in the condition of the scans: "$0". */
static void
explain_keys(FilterBuild *build, List *ancestors, ExplainState *es)
{
	Plan	   *plan = build->css.ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, plan, ancestors);
	bool		use_prefix = list_length(es->rtable) > 1 || es->verbose;
	char	   *name = psprintf("$%d", build->plan.parameter);
	List	   *keys = NIL;
	ListCell   *cell;

	foreach(cell, ((CustomScan *) plan)->custom_exprs)
		keys = lappend(keys, deparse_expression(lfirst(cell), context, use_prefix, false));
	if (es->format == EXPLAIN_FORMAT_TEXT)
		ExplainPropertyList(psprintf("Filter %s Built From", name), keys, es);
	else
	{
		ExplainPropertyText("Filter Name", name, es);
		ExplainPropertyList("Filter Built From", keys, es);
	}
}

static int
count_removed(const JoinFilter *filter)
{
	int			result = 0;
	ListCell   *cell;

	foreach(cell, filter->probes)
		result += ((ProbeSite *) lfirst(cell))->removed;
	return result;
}

void
explain_filter_build(CustomScanState *node, List *ancestors, ExplainState *es)
{
	FilterBuild *build = (FilterBuild *) node;
	JoinFilter *filter = build->filter;

	explain_keys(build, ancestors, es);
	if (!es->analyze || filter == NULL)
		return;
	sum_probes(filter);
	ExplainPropertyInteger("Keys Added", NULL, filter->keys, es);
	ExplainPropertyInteger("Filter Size", "kB", (filter->size + 1023) / 1024, es);
	ExplainPropertyInteger("Rows Probed", NULL, filter->probed, es);
	ExplainPropertyInteger("Rows Dropped", NULL, filter->dropped, es);
	ExplainPropertyInteger("Probes Removed", NULL, count_removed(filter), es);
}
