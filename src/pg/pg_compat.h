/*
 * pg_compat.h
 *		Differences between the supported PostgreSQL versions.
 */
#ifndef PG_COMPAT_H
#define PG_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 150000
#error "bloomtype needs PostgreSQL 15 or later"
#endif

/* PostgreSQL 16 moved the varlena macros to varatt.h and added soft errors. */
#if PG_VERSION_NUM >= 160000
#include "nodes/miscnodes.h"
#include "varatt.h"
#else
#define ereturn(escontext, value, ...) \
	do { \
		(void) (escontext); \
		ereport(ERROR, __VA_ARGS__); \
		return value; \
	} while (0)
#endif

/* PostgreSQL 16 counts outer joins among the relations of a query, and renamed the second. */
#if PG_VERSION_NUM < 160000
#define all_query_rels all_baserels
#define rd_locator rd_node
#endif

/* PostgreSQL 16 replaced the functions for each kind of object. */
#if PG_VERSION_NUM < 160000
#define object_ownercheck(catalog, object, role) pg_class_ownercheck(object, role)
#define object_aclcheck(catalog, object, role, mode) pg_proc_aclcheck(object, role, mode)
#endif

/* PostgreSQL 16 and 18 added types of joins that return inner rows. */
#if PG_VERSION_NUM < 160000
#define is_right_anti_join(type) false
#else
#define is_right_anti_join(type) ((type) == JOIN_RIGHT_ANTI)
#endif
#if PG_VERSION_NUM < 180000
#define is_right_semi_join(type) false
#else
#define is_right_semi_join(type) ((type) == JOIN_RIGHT_SEMI)
#endif

/* PostgreSQL 16 moved the privileges that a query needs from its tables to a list of their own. */
#if PG_VERSION_NUM < 160000
#define forget_privileges(table) ((table)->requiredPerms = 0)
#define forget_all_privileges(statement) ((void) (statement))
#else
#define forget_privileges(table) ((table)->perminfoindex = 0)
#define forget_all_privileges(statement) ((statement)->permInfos = NIL)
#endif

/* PostgreSQL 18 added generated columns that are computed when they are read. */
#if PG_VERSION_NUM < 180000
#define GENERATED_VIRTUAL 'v'
#else
#define GENERATED_VIRTUAL ATTRIBUTE_GENERATED_VIRTUAL
#endif

/* PostgreSQL 18 removed an argument. */
#if PG_VERSION_NUM < 180000
#define run_executor(query) ExecutorRun(query, ForwardScanDirection, 0, true)
#else
#define run_executor(query) ExecutorRun(query, ForwardScanDirection, 0)
#endif

/* PostgreSQL 16 added an argument. */
#if PG_VERSION_NUM < 160000
#define get_sorted_datum(sort, value, isnull) tuplesort_getdatum(sort, true, value, isnull, NULL)
#else
#define get_sorted_datum(sort, value, isnull) tuplesort_getdatum(sort, true, true, value, isnull, NULL)
#endif

/* PostgreSQL 17 renamed the first and added the second, which 15 and 16 do by the setting. */
#if PG_VERSION_NUM < 170000
#define MyLocalTransactionId (MyProc->lxid)
#define RestrictSearchPath() \
	set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION, \
					  GUC_ACTION_SAVE, true, 0, false)
#else
#define MyLocalTransactionId (MyProc->vxid.lxid)
#endif

/*
 * PostgreSQL 17 removed old_snapshot_threshold.  Before it, VACUUM and pruning may remove
 * rows that an old snapshot sees, so a search asks each page that it reads, under the
 * page's lock.  The macro needs storage/bufmgr.h.
 */
#if PG_VERSION_NUM < 170000
#define test_for_old_snapshot(snapshot, relation, page) TestForOldSnapshot(snapshot, relation, page)
#else
#define test_for_old_snapshot(snapshot, relation, page) \
	((void) (snapshot), (void) (relation), (void) (page))
#endif

/*
 * The versions whose generic_redo() has replayed the records of pg/page_write.c in the
 * tests.
 */
#if PG_VERSION_NUM / 10000 == 15 || PG_VERSION_NUM / 10000 == 17 || PG_VERSION_NUM / 10000 == 18
#define DIRECT_GENERIC_WAL
#endif

/*
 * PostgreSQL 18 places the first before a declaration, gave the second an argument,
 * compares the number of disabled nodes of plans before their costs, and shows the number
 * of searches of an index in EXPLAIN.  cost_index() sets the nodes to 0 or 1 before
 * it calls the access method.
 */
#if PG_VERSION_NUM < 180000
#define pg_noreturn pg_attribute_noreturn()
#define vacuum_delay() vacuum_delay_point()
#define disable_path(path) ((void) (path))
#define copy_disabled_nodes(to, from) ((void) (from))
#define count_search(scan) ((void) (scan))
#else
#define vacuum_delay() vacuum_delay_point(false)
#define disable_path(path) ((path)->disabled_nodes = 2)
#define copy_disabled_nodes(to, from) ((to)->disabled_nodes = (from)->disabled_nodes)
#define count_search(scan) ((void) ((scan)->instrument != NULL && (scan)->instrument->nsearches++))
#endif

/* From PostgreSQL 18 on, a scan chooses at its start a function that expects a condition. */
#define SCANS_REREAD_CONDITION (PG_VERSION_NUM < 180000)

#if PG_VERSION_NUM < 170000
#define estimated_array_length(root, array) ((void) (root), estimate_array_length(array))
#else
#define estimated_array_length(root, array) estimate_array_length(root, array)
#endif

/* PostgreSQL 19 keeps what the handler of an access method returns, other versions free it. */
#if PG_VERSION_NUM < 190000
#define ACCESS_METHOD_RESULT(routine) \
	memcpy(palloc(sizeof(IndexAmRoutine)), &(routine), sizeof(IndexAmRoutine))
#else
#define ACCESS_METHOD_RESULT(routine) (&(routine))
#endif

/* PostgreSQL 19 passes callbacks the identifier of a cache by a type of its own. */
#if PG_VERSION_NUM < 190000
typedef int SysCacheIdentifier;
#endif

/* PostgreSQL 19 distinguishes what it counts in a node from what it counts elsewhere. */
#if PG_VERSION_NUM < 190000
#define NodeInstrumentation Instrumentation
#define WorkerNodeInstrumentation WorkerInstrumentation
#endif

/* PostgreSQL 19 tells the planner what EXPLAIN wants. */
#if PG_VERSION_NUM < 190000
#define PLANNER_PARAMETERS \
	Query *parse, const char *query_string, int cursorOptions, ParamListInfo boundParams
#define PLANNER_ARGUMENTS parse, query_string, cursorOptions, boundParams
#else
#define PLANNER_PARAMETERS \
	Query *parse, const char *query_string, int cursorOptions, ParamListInfo boundParams, \
	struct ExplainState *es
#define PLANNER_ARGUMENTS parse, query_string, cursorOptions, boundParams, es
#endif

#endif							/* PG_COMPAT_H */
