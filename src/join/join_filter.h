/*
 * join_filter.h
 *		Filters that hash joins build of their inner keys, and scans on the outer side probe.
 *
 * A planner hook changes finished plans (place.c).  Between a Hash node and its child it
 * puts a custom scan, the build node, which returns its child's rows and collects hashes
 * of the join's keys.  At the end of a scan's condition on the outer side it puts a call
 * of the probe, whose first argument names the executor parameter that points to the filter.
 *
 * A merge join reads its outer side first.  If both sides are sorted, it gets a filter the
 * other way round: the build node is below the Sort of the outer side, and the scans are on
 * the inner side.  For it, read outer as inner here, inner as outer, and Sort as Hash.
 *
 * Below a Gather another custom scan, the copy node, passes the filter on to workers.
 *
 * A filter only ever drops rows that its join would drop.  Whatever makes that doubtful
 * makes the probe pass all rows.
 */
#ifndef BF_JOIN_FILTER_H
#define BF_JOIN_FILTER_H

#include "pg/pg_compat.h"

#include "core/block.h"
#include "core/hash.h"
#include "core/integers.h"
#include "executor/executor.h"
#include "nodes/extensible.h"
#include "nodes/plannodes.h"
#include "port/atomics.h"

#define MAX_JOIN_KEYS	8
#define JOIN_FILTER_K	5		/* bits that a key sets in a filter */
#define STAGED_HASHES	64

/*
 * Settings: settings.c
 */

typedef enum JoinFilterMode
{
	JOIN_FILTERS_OFF,
	JOIN_FILTERS_ON,
	JOIN_FILTERS_FORCE			/* wherever one is possible: for tests */
} JoinFilterMode;

extern int	join_filters;		/* a JoinFilterMode */
extern int	join_filter_min_rows;
extern int	join_filter_window;
extern bool join_filter_notices;

extern void define_join_filters(void);

/* The SQL function that probes, InvalidOid if plans cannot use it. */
extern Oid	get_probe_function(void);

/*
 * What the plan says of a filter, in the private data of its build node
 */

typedef struct FilterPlan
{
	int			parameter;		/* PARAM_EXEC that points to the filter */
	List	   *outer_hashes;	/* hash function of each key on the outer side */
	List	   *inner_hashes;
	List	   *collations;
	int			rows;			/* expected keys, in thousands, rounded up */
	int			most_passing;	/* of 1000 rows, for the probe to pay */
	int			loops;			/* of the scans in nested loops, expected */
	bool		once;			/* only right if the join is run once */
	bool		whole;			/* filters all rows of a scan or none */
	bool		build_first;	/* before the join reads an outer row */
} FilterPlan;

/*
 * The filter: filter.c, shared_filter.c
 */

typedef enum KeyKind
{
	KEY_INT2,
	KEY_INT4,
	KEY_INT8,
	KEY_OTHER					/* by the function of the join's operator */
} KeyKind;

/*
 * How to hash a key of a row.  Integers are equal across types, and so are their hashes.
 */
typedef struct KeyHash
{
	KeyKind		kind;
	AttrNumber	column;
	Oid			collation;
	FmgrInfo	function;
} KeyHash;

typedef struct HashChunk HashChunk;
typedef struct SharedFilter SharedFilter;

/* What probes drop: see judge_probe(). */
typedef struct Judgement
{
	uint64		rows;			/* that the planner expects of the scans */
	uint64		probed;			/* rows so far; a paused one counts in part */
	uint64		dropped;
	uint32		window;			/* rows to look at */
	uint32		seen;
	uint32		passed;
	uint32		pause;			/* rows to let pass */
	uint32		next_pause;
	int			failures;		/* windows in a row that did not pay */
} Judgement;

typedef struct JoinFilter
{
	const FilterPlan *plan;
	int			nkeys;
	PlanState  *above;			/* the Hash or Sort, once linked */
	List	   *probes;			/* ProbeSites */
	Judgement	judgement;		/* of all probes of small scans */
	int			depth;			/* joins of Linking at its own join */

	bool		ready;			/* holds the whole inner side */
	bool		spoiled;		/* a row passed before: see FilterPlan.whole */
	bool		given_up;		/* too many keys for its memory */
	bool		single;			/* one integer key, staged instead of a hash */
	bool		exact;			/* the bits are a set of integers */
	bf_range	range;			/* of single keys */
	uint8	   *bits;			/* aligned to a cache line */
	bf_shape	shape;
	MemoryContext memory;		/* of bits and chunks */
	HashChunk  *chunks;			/* hashes or keys, until all are known */
	int			nstaged;		/* or that the bits get next */
	uint64		staged[STAGED_HASHES];
	uint64		keys;			/* added, not distinct */
	SharedFilter *shared;		/* of a Parallel Hash, or a worker's copy */
	List	   *copies;			/* FilterCopy nodes */
	SharedFilter *awaited;		/* the copy that a worker waits for */

	Size		size;			/* for EXPLAIN */
} JoinFilter;

extern JoinFilter *create_join_filter(const FilterPlan *plan, EState *estate);
extern void start_join_filter(JoinFilter *filter);
extern void set_join_filter_bits(JoinFilter *filter, uint8 *bits, uint32 nblocks);
extern void add_to_join_filter(JoinFilter *filter, uint64 key);
extern void finish_join_filter(JoinFilter *filter);

/* The memory that filters may take beside their join's. */
extern Size join_filter_memory(void);

/* Are so many integers of a range a set rather than a filter? */
extern bool is_dense(double range, double keys);

/* Is that enough for so many keys? */
extern bool fits_join_filter(double keys);

/* Gives the bits the hashes that wait for them. */
extern void add_staged_hashes(JoinFilter *filter);

/* The number of blocks for so many keys in so much memory, and the most keys they serve. */
extern uint32 blocks_for_keys(double keys, Size memory);
extern uint64 capacity_of_blocks(uint32 nblocks);

/* Would a Parallel Hash need more shared memory than a filter may take? */
extern bool is_too_large_to_share(const FilterPlan *plan);

extern Size shared_filter_size(const JoinFilter *filter, int participants);
extern void initialize_shared_filter(JoinFilter *filter, SharedFilter *shared, int participants);
extern void reset_shared_filter(SharedFilter *shared);
extern void attach_shared_filter(JoinFilter *filter, SharedFilter *shared);
extern void detach_shared_filter(JoinFilter *filter);
extern void finish_shared_filter(JoinFilter *filter);
extern bool shared_filter_is_full(const JoinFilter *filter);

extern Size filter_copy_size(const JoinFilter *filter);
extern void initialize_filter_copy(JoinFilter *filter, SharedFilter *copy);
extern void publish_filter_copy(const JoinFilter *filter, SharedFilter *copy);
extern bool receive_filter_copy(JoinFilter *filter);

/* Do we hash the keys of a hash function ourselves, as integers? */
extern bool is_integer_hash(Oid function);

/* Is one integer all that a join compares? */
extern bool is_single_integer(const List *outer_hashes, const List *inner_hashes);

/* The keys of one side of a join, which are these columns of its rows.  Returns the last column. */
extern int	prepare_keys(KeyHash *keys, const FilterPlan *plan, bool is_outer, const List *columns);

static inline int64
integer_of_key(KeyKind kind, Datum value)
{
	switch (kind)
	{
		case KEY_INT2:
			return DatumGetInt16(value);
		case KEY_INT4:
			return DatumGetInt32(value);
		default:
			Assert(kind == KEY_INT8);
			return DatumGetInt64(value);
	}
}

/* A key as a number: an integer, or the 32 bits of a hash function. */
static inline uint64
number_of_key(KeyHash *key, Datum value)
{
	if (key->kind != KEY_OTHER)
		return (uint64) integer_of_key(key->kind, value);
	return DatumGetUInt32(FunctionCall1Coll(&key->function, key->collation, value));
}

/*
 * What a filter takes of a row, whose columns the slot has ready: the hash of its keys, or a
 * single key.  False if one is null: then the row matches nothing, because the join's
 * operators are strict.
 */
static inline bool
take_keys(const JoinFilter *filter, KeyHash *keys, const TupleTableSlot *slot, uint64 *result)
{
	*result = 0;
	for (int i = 0; i < filter->nkeys; i++)
	{
		int			column = keys[i].column - 1;
		uint64		number;

		if (slot->tts_isnull[column])
			return false;
		number = number_of_key(&keys[i], slot->tts_values[column]);
		*result = filter->single ? number : bf_hash_word(number, *result);
	}
	return true;
}

/*
 * The build node: build.c, explain.c
 */

typedef struct FilterBuild
{
	CustomScanState css;
	FilterPlan	plan;
	JoinFilter *filter;			/* NULL if none is built: see begin_build() */
	bool		collecting;
	int			last_column;	/* that the keys need */
	KeyHash		keys[MAX_JOIN_KEYS];
} FilterBuild;

extern void register_filter_build(void);
extern CustomScan *make_filter_build(Plan *child, const FilterPlan *plan, List *keys);

/* The build node that a plan state is, or NULL. */
extern FilterBuild *as_filter_build(PlanState *state);

/* What the probes of a filter have done. */
typedef struct ProbeFigures
{
	uint64		probed;			/* rows */
	uint64		dropped;
	uint64		removed;		/* probes */
} ProbeFigures;

/* Leaves them for the leader. */
extern void store_figures(NodeInstrumentation *counters, ProbeFigures figures);

extern void explain_filter_build(CustomScanState *node, List *ancestors, ExplainState *es);

/* Lets EXPLAIN show filters at scans, in versions that have a hook for it. */
extern void explain_probing_scans(void);

/* A custom scan that returns its child's slots, for the node and for that below a Gather. */
extern CustomScan *make_passing_scan(Plan *child, const FilterPlan *filter, const CustomScanMethods *methods);
extern FilterPlan plan_of_passing_scan(const CustomScan *plan);
extern void begin_passing_scan(CustomScanState *node, EState *estate, int eflags);

/*
 * The copy node below a Gather: gather.c, explain.c
 */

typedef struct FilterCopy
{
	CustomScanState css;
	FilterPlan	plan;
	SharedFilter *shared;		/* NULL without workers */
} FilterCopy;

extern void register_filter_copy(void);
extern CustomScan *make_filter_copy(Plan *child, const FilterPlan *plan);
extern bool is_filter_copy(const Plan *plan);
extern void explain_filter_copy(CustomScanState *node, List *ancestors, ExplainState *es);

/*
 * The probe: probe.c, link.c
 */

/* A probe in the condition of a scan. */
typedef struct ProbeSite
{
	JoinFilter *filter;
	FuncExpr   *probe;			/* in the plan */
	struct ProbedCondition *condition;
	List	   *lower_joins;	/* HashJoinStates: see lower_joins_built() */
	int			last_column;	/* that the probe needs */
	bool		removed;
	KeyHash		keys[MAX_JOIN_KEYS];
	uint64		probed;			/* rows */
	uint64		dropped;
	uint32		rows;			/* that the scan is expected to return */
	Judgement  *judgement;		/* that of the filter, or its own */
	Judgement	own;
} ProbeSite;

/* The condition of a scan with probes, which stand in the order of the plan. */
typedef struct ProbedCondition
{
	PlanState  *scan;
	ExprState  *rest;			/* the other clauses, or NULL */
	int			nsites;
	ProbeSite	sites[FLEXIBLE_ARRAY_MEMBER];
} ProbedCondition;

/* The first argument of a probe, as '$0', and the executor parameter that it names. */
extern Node *make_filter_name(int parameter);
extern int	parameter_of_probe(const FuncExpr *probe);

/* The probe of a clause, or NULL. */
extern FuncExpr *as_probe(Node *clause);

/* The filter of a running query that a probe asks, or NULL. */
extern JoinFilter *filter_of_probe(const EState *estate, const FuncExpr *probe);

/* The site of a probe, or NULL if its scan is not linked. */
extern ProbeSite *find_probe_site(const JoinFilter *filter, const FuncExpr *probe);

extern void start_probe(ProbeSite *site, JoinFilter *filter, FuncExpr *probe);
extern void give_sites_to_calls(ProbedCondition *condition);
extern Datum eval_probes(ExprState *state, ExprContext *econtext, bool *is_null);

/* Is a condition with these other clauses replaced, if probes need columns up to this one? */
extern bool needs_own_condition(const List *rest, int last_column);

/* Tells filters which scans probe them, after ExecutorStart.  The query may be a cursor that runs again. */
extern void link_join_filters(QueryDesc *query, bool runs_again);

extern ProbeFigures figures_of_probe(const ProbeSite *site);
extern void add_figures(ProbeFigures *sum, ProbeFigures figures);

/* Those of all probes of a filter, in this process. */
extern ProbeFigures count_probes(const JoinFilter *filter);

extern void remove_probe(ProbeSite *site);

/*
 * Placing: place.c, way.c, price.c, plan_tree.c, notice.c
 */

/* The share of the result's rows is what the caller is expected to read. */
extern void place_join_filters(PlannedStmt *stmt, double share_read);

/* The keys of a join that a filter takes, as lists with one member for each. */
typedef struct JoinKeys
{
	List	   *outer;			/* columns of the outer plan */
	List	   *inner;			/* columns of the build node's child */
	List	   *families;		/* hash operator families */
	List	   *outer_hashes;
	List	   *inner_hashes;
	List	   *collations;
} JoinKeys;

typedef struct Place
{
	Plan	   *scan;
	Plan	   *gather;			/* above it, or NULL */
	double		loops;			/* that nested loops make of it, at least 1 */
	List	   *keys;			/* in terms of the scan */
} Place;

/* What a node does with rows of the outer side. */
typedef enum WorkKind
{
	WORK_NODE,					/* passes them on */
	WORK_APPEND,
	WORK_KEEP,					/* sorts, groups or hashes them */
	WORK_GATHER					/* a worker sends them */
} WorkKind;

/* Work on so many rows, which a filter saves if it drops them first. */
typedef struct Work
{
	double		rows;
	double		part;			/* scan_rows of one child of an Append, or 0 */
	double		price;			/* of a row */
} Work;

#define MAX_WORKS	16

/* What is known of the way from a join down to the scans. */
typedef struct Way
{
	const JoinKeys *keys;
	bool		changing;		/* the inner side, while nodes keep rows */
	const Bitmapset *parameters;	/* with which the inner side changes */
	bool		whole;			/* see FilterPlan */
	bool		peeked;			/* a join on the way may read a row and stop */
	Plan	   *gather;			/* whose child is on the way */
	double		processes;		/* that run what is on the way, 0 for one */
	double		loops;			/* of nested loops around it, 0 for one */
	bool		blocking;		/* a node reads all rows before it returns one */
	int			nworks;
	Work		works[MAX_WORKS];
	double		scan_rows;		/* of all places, in all processes */
	List	   *places;
	const Plan *stop;			/* the lowest node that stops it, or NULL */
	bool		is_computed;	/* a key, by that node */
} Way;

/* The rows of a plan on the way, in all processes and loops. */
extern double rows_of(const Way *way, const Plan *plan);

/* Adds what a node, or a hash join, on the way does with its rows. */
extern void add_work(Way *way, WorkKind kind, double rows);
extern void add_join_work(Way *way, const Join *join);

/* Collects the places where a filter drops rows of a join's outer side. */
extern void find_places(Way *way, Plan *outer);

/*
 * The sides of a join, as a hash join names them: a merge join reads its outer side first,
 * so that it is the inner one here, and in all that follows.
 */
typedef struct Sides
{
	const Join *join;
	Plan	   *inner;			/* Hash or Sort: reads all rows at once */
	Plan	   *outer;			/* whose rows a filter drops */
	int			nkeys;
	double		share_read;		/* of the join's rows */
	bool		runs_again;		/* the executor may run the join several times */
} Sides;

/* Of a scan's rows, that filters are expected to leave at least. */
#define LEAST_SHARE		1e-9

/* Why a join has no filter: notice.c has a sentence for each. */
typedef enum Refusal
{
	NOT_REFUSED,
	REFUSED_TYPE,				/* rows without a match are returned */
	REFUSED_UNSORTED,			/* a merge join that does not sort both sides */
	REFUSED_KEYS,
	REFUSED_WAY,				/* see Way.stop */
	REFUSED_SHORTCUT,			/* see may_build_first() */
	REFUSED_VOLATILE,
	REFUSED_LIMIT,				/* only a part of the rows is read */
	REFUSED_FEW_ROWS,
	REFUSED_MEMORY,
	REFUSED_MATCHES,			/* too many rows have one */
	REFUSED_BUILD,				/* costs more than is saved */
	REFUSED_SHARED_MEMORY
} Refusal;

/* A filter that is possible, or a join that has none. */
typedef struct Candidate
{
	Refusal		refusal;
	Sides		sides;
	const List *rtable;			/* of the statement */
	Way			way;
	bool		once;			/* see FilterPlan */
	int			jit_flags;		/* of the statement */
	double		keys;			/* inner rows, of all processes that share */
	double		build_price;	/* of an inner row */
	double		probe_price;	/* of a row, without columns before the key */
	double		fixed_price;	/* for any number of rows that are probed */
	double		price;			/* of a row that is probed */
	double		saving;			/* of one that is dropped */
	double		hashes;			/* price of those by functions */
	double		expected;		/* share that matches, estimated */
	bool		guess;			/* see may_guess() */
	double		most_passing;	/* share of the rows, for it to pay */
	double		most_expected;	/* the same, for it to be placed */
	double		passing;		/* expected share */
	double		leaves;			/* share that later filters get at most */
	double		rank;			/* the least first */
} Candidate;

/* Fills in the prices.  Refuses a filter that cannot pay, whatever share of the rows others leave it. */
extern void price_candidate(Candidate *candidate);

/* Prices a filter if others leave it this share of the rows, above 0: should it pay? */
extern bool should_pay(Candidate *candidate, double left);

/* Says why the statement has no join filter, if there is a general reason, or why each of these joins has none. */
extern void report_refusals(const PlannedStmt *stmt, const char *general, List *refused);

/* The column that an expression is but for its type's name, or NULL. */
extern Var *plain_column(Node *expression);

/*
 * Columns of a plan's result, as the plan computes them: in terms of its input, or of the
 * table that it scans.  NIL if one is more than a column.
 */
extern List *through_targets(const Plan *plan, List *keys);

/* The last column of a scan that clauses read, beside what subplans read; 0 for none. */
extern int	last_column_of(const List *clauses);

extern bool is_local_scan(const Plan *plan);
extern List *child_plans(const Plan *plan);
extern bool is_harmless_scan(const Plan *plan);
extern bool is_sorted(const Plan *side);
extern bool has_volatile_subtree(const PlannedStmt *stmt, const Plan *plan);
extern bool may_change(const PlannedStmt *stmt, const Plan *plan);
extern bool reruns_child(const Plan *plan, const Plan *child);

#endif							/* BF_JOIN_FILTER_H */
