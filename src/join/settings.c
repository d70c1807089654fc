/*
 * settings.c
 *		The settings of join filters, and the hooks that apply them.
 */
#include "pg/pg_compat.h"

#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/pg_proc.h"
#include "commands/extension.h"
#include "join/join_filter.h"
#include "optimizer/planmain.h"
#include "optimizer/planner.h"
#include "utils/acl.h"
#include "utils/catcache.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/syscache.h"

int			join_filters = JOIN_FILTERS_OFF;
int			join_filter_min_rows;
int			join_filter_window;
bool		join_filter_notices;

static const struct config_enum_entry modes[] = {
	{"off", JOIN_FILTERS_OFF, false},
	{"on", JOIN_FILTERS_ON, false},
	{"force", JOIN_FILTERS_FORCE, false},
	{"false", JOIN_FILTERS_OFF, true},
	{"true", JOIN_FILTERS_ON, true},
	{"no", JOIN_FILTERS_OFF, true},
	{"yes", JOIN_FILTERS_ON, true},
	{"0", JOIN_FILTERS_OFF, true},
	{"1", JOIN_FILTERS_ON, true},
	{NULL, 0, false}
};

static planner_hook_type next_planner;
static ExecutorStart_hook_type next_start;

/* The probe function as last found, until pg_proc changes. */
static Oid	probe_function;
static bool probe_is_known;
static uint32 probe_changes;

static void
forget_probe(Datum unused, SysCacheIdentifier cache, uint32 hash)
{
	probe_is_known = false;
	probe_changes++;
}

/*
 * May everybody execute a function?  The role that runs a plan, and needs the right, may
 * be another one than the role that plans.
 */
static bool
is_public(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		is_null;
	Datum		acl;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	acl = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proacl, &is_null);
	result = is_null || aclmask(DatumGetAclP(acl), ACL_ID_PUBLIC, ((Form_pg_proc) GETSTRUCT(tuple))->proowner,
								ACL_EXECUTE, ACLMASK_ANY) != 0;
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Finds the probe as a member of the extension: search_path does not matter, and nobody
 * else's function of this name is taken for it.
 */
static Oid
find_probe(void)
{
	Oid			extension = get_extension_oid("bloomtype", true);
	Oid			result = InvalidOid;
	CatCList   *functions;

	if (!OidIsValid(extension))
		return InvalidOid;
	functions = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum("bloom_join_filter"));
	for (int i = 0; i < functions->n_members; i++)
	{
		Oid			function = ((Form_pg_proc) GETSTRUCT(&functions->members[i]->tuple))->oid;

		if (getExtensionOfObject(ProcedureRelationId, function) == extension && is_public(function))
			result = function;
	}
	ReleaseSysCacheList(functions);
	return result;
}

/* The search may fail, or itself learn of a change: then nothing is remembered. */
Oid
get_probe_function(void)
{
	uint32		before = probe_changes;

	if (!probe_is_known)
	{
		probe_function = find_probe();
		probe_is_known = before == probe_changes;
	}
	return probe_function;
}

static PlannedStmt *
plan_with_join_filters(PLANNER_PARAMETERS)
{
	PlannedStmt *stmt = (next_planner ? next_planner : standard_planner) (PLANNER_ARGUMENTS);

	if (join_filters != JOIN_FILTERS_OFF || join_filter_notices)
		place_join_filters(stmt, (cursorOptions & CURSOR_OPT_FAST_PLAN) != 0 ? cursor_tuple_fraction : 1);
	return stmt;
}

static void
start_with_join_filters(QueryDesc *query, int eflags)
{
	(next_start ? next_start : standard_ExecutorStart) (query, eflags);
	if (!(eflags & EXEC_FLAG_EXPLAIN_ONLY))
		link_join_filters(query, (eflags & (EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD)) != 0);
}

void
define_join_filters(void)
{
	DefineCustomEnumVariable("bloomtype.join_filters",
							 "Lets joins filter the rows that scans of one side return, by the keys of the other.",
							 "The default is \"off\". Turn it on if joins drop most rows of large tables. "
							 "\"force\" places a filter wherever one is possible, for tests.",
							 &join_filters, JOIN_FILTERS_OFF, modes, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("bloomtype.join_filter_min_rows",
							"Fewest rows that a join filter must be expected to test.",
							"In rows, by default 2000. Lower it to see filters of small tables. "
							"Raise it if filters do not pay in short queries.",
							&join_filter_min_rows, 2000, 0, INT_MAX, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("bloomtype.join_filter_window",
							"Number of rows after which a scan judges whether a join filter pays.",
							"In rows with a key, by default 512. Raise it if scans remove filters that would pay later. "
							"Lower it if scans keep filters that drop nothing.",
							&join_filter_window, 512, 1, 1 << 24, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("bloomtype.join_filter_notices",
							 "Says of each hash and merge join that has no join filter why.",
							 "The default is \"off\". Turn it on before EXPLAIN. A notice appears when a statement is planned.",
							 &join_filter_notices, false, PGC_USERSET, 0, NULL, NULL, NULL);
	MarkGUCPrefixReserved("bloomtype");
	register_filter_build();
	register_filter_copy();
	CacheRegisterSyscacheCallback(PROCOID, forget_probe, (Datum) 0);
	next_planner = planner_hook;
	planner_hook = plan_with_join_filters;
	next_start = ExecutorStart_hook;
	ExecutorStart_hook = start_with_join_filters;
	explain_probing_scans();
}
