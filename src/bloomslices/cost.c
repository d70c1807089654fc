/*
 * cost.c
 *		What a scan by bloomslices costs.
 *
 * A search reads the pages of its bits from each slab.  They count as sequential reads,
 * which is less than they take if none is cached, because the other plans are too cheap
 * by more: a stored filter is out of line, and the planner does not know that a probe
 * reads pages of TOAST.
 */
#include "pg/pg_compat.h"

#include <math.h>

#include "access/genam.h"
#include "bloomslices/bloomslices.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "query/query.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/spccache.h"

#define KEYS_OF_UNKNOWN_QUERY	1

/* At most half of the bits of most filters are set, so that few rows have this many. */
#define TESTS_OF_ABSENT			32

/* Of the 64 bytes of each row, or of a slice: about a third of a microsecond. */
#define OPERATIONS_PER_PAGE		20

/*
 * Of a page of the bits of one row.  A scan of the table reads a page of TOAST in its
 * place, which the planner does not count.
 */
#define RAW_PAGE				0.01

/*
 * What a candidate costs in an order, in tuples of a scan: it is fetched by itself, and
 * copied to a queue.  Measured: five times a scan that sorts.
 */
#define REORDER_TUPLES			5

/* Above that of every other plan. */
#define FORBIDDEN_COST			1e12

/* What a search asks of each slab. */
typedef struct Work
{
	double		keys;
	double		bits;			/* of a key, all in one block */
} Work;

static bool
is_known(const Const *value)
{
	return value != NULL && IsA(value, Const) && !value->constisnull;
}

static Work
work_of_query(const Const *value, uint32 k, bool conditional)
{
	Work		work = {KEYS_OF_UNKNOWN_QUERY, k};
	OpenQuery	query;

	if (is_known(value))
	{
		open_query(value->constvalue, &query);
		work.keys = query.nkeys;
		if (conditional && query.least == query.nkeys)
			work.keys = Min(work.keys, ceil((double) TESTS_OF_ABSENT / Max(k, 1)));
	}
	return work;
}

static Work
work_of_filter(const Const *value, const SlicesShape *shape)
{
	double		bits = TESTS_OF_ABSENT;
	double		nblocks = Max(shape->nblocks, 1);
	bf_filter	filter;

	if (is_known(value))
	{
		open_value(value->constvalue, BF_FILTER, &filter);
		if (filter.sparse)
			bits = Min(bits, (double) filter.nhashes * shape->k);
	}
	return (Work)
	{
		Min(bits, nblocks), Max(bits / nblocks, 1)
	};
}

/* What a condition or a distance asks; strategy as in the operator class.  Values of arrays are not known. */
static Work
work_of_clause(PlannerInfo *root, const SlicesShape *shape, Node *clause, int strategy)
{
	const Const *operand = NULL;

	if (IsA(clause, OpExpr))
		operand = (const Const *) estimate_expression_value(root, get_rightop(clause));
	return strategy == SUPERSET_STRATEGY ? work_of_filter(operand, shape) :
		work_of_query(operand, shape->k, strategy == MATCH_STRATEGY);
}

/* Pages that a search reads of a slab. */
static double
slab_work(double tiles, double npages, Work work)
{
	/* of `tiles` pages of a block those that have one of so many bits */
	return Min(work.keys * tiles * (1 - pow(1 - 1 / tiles, work.bits)), npages);
}

/* The same of all slabs that are raw or packed, which do not have a page for each block. */
static double
small_slabs_work(double nslabs, uint32 nblocks, Work work)
{
	SlabKind	kind = nblocks > RAW_BLOCKS ? SLAB_RAW : SLAB_PACKED;
	uint32		tiles = initial_tiles(kind, nblocks);

	return nslabs * slab_work(1, slab_pages(kind, tiles, nblocks), work) * (tiles == 1 ? RAW_PAGE : 1);
}

/* Pages that a search reads of all slabs. */
static double
clause_work(const SlicesMeta *meta, Work work)
{
	const SlabCounts *counts = &meta->counts;
	uint32		nblocks = meta->shape.nblocks;
	double		pages = counts->list_pages + small_slabs_work(counts->raw, nblocks, work);

	for (uint32 i = 0; i < lengthof(counts->tiled); i++)
	{
		uint32		tiles = 1 << i;
		SlabKind	kind = i == 0 ? SLAB_TILE : SLAB_SLICES;

		if (counts->tiled[i] > 0)
			pages += counts->tiled[i] * slab_work(tiles, slab_pages(kind, tiles, nblocks), work);
	}
	return pages;
}

/* Pages that have the entries of all rows. */
static double
entries_work(const SlabCounts *counts)
{
	double		pages = counts->list_pages + counts->raw;

	for (uint32 i = 0; i < lengthof(counts->tiled); i++)
		pages += ceil((double) counts->tiled[i] * (BF_TILE_ROWS << i) / ROWS_PER_PAGE);
	return pages;
}

static Oid
operator_of(Node *clause)
{
	return IsA(clause, OpExpr) ? ((OpExpr *) clause)->opno : castNode(ScalarArrayOpExpr, clause)->opno;
}

/* The planner makes a bitmap scan of `f @@ ANY (array)`, which searches for each value. */
static double
searches_of(PlannerInfo *root, Node *clause)
{
	if (IsA(clause, OpExpr))
		return 1;
	return estimated_array_length(root, lsecond(castNode(ScalarArrayOpExpr, clause)->args));
}

static double
index_work(PlannerInfo *root, const IndexPath *path, const SlicesMeta *meta)
{
	Oid			family = path->indexinfo->opfamily[0];
	List	   *clauses = get_quals_from_indexclauses(path->indexclauses);
	double		pages = 1 + meta->ndirectory;
	ListCell   *lc;

	/* without a condition all entries are read */
	if (clauses == NIL)
		pages += entries_work(&meta->counts);
	foreach(lc, clauses)
	{
		Node	   *clause = (Node *) lfirst_node(RestrictInfo, lc)->clause;
		int			strategy = get_op_opfamily_strategy(operator_of(clause), family);

		pages += searches_of(root, clause) * clause_work(meta, work_of_clause(root, &meta->shape, clause, strategy));
	}
	foreach(lc, path->indexorderbys)
		pages += clause_work(meta, work_of_clause(root, &meta->shape, lfirst(lc), DISTANCE_STRATEGY));
	return pages;
}

/* Pages that one search reads, and rows that it returns whatever it asks. */
static double
search_work(PlannerInfo *root, const IndexPath *path, double *candidates)
{
	double		pages = 1 + ceil(path->indexinfo->tuples / BF_TILE_ROWS);

	*candidates = 0;

	if (!path->indexinfo->hypothetical)
	{
		Relation	index = index_open(path->indexinfo->indexoid, NoLock);
		SlicesMeta	meta;

		read_slices_meta(index, &meta);
		pages = index_work(root, path, &meta);
		*candidates = Min(meta.candidates, path->indexinfo->rel->tuples);
		index_close(index, NoLock);
	}
	return pages;
}

static Selectivity
path_selectivity(PlannerInfo *root, const IndexPath *path)
{
	List	   *clauses = get_quals_from_indexclauses(path->indexclauses);

	return clauselist_selectivity(root, add_predicate_to_index_quals(path->indexinfo, clauses),
								  path->indexinfo->rel->relid, JOIN_INNER, NULL);
}

static Cost
evaluation_cost(PlannerInfo *root, List *expressions)
{
	QualCost	cost;

	cost_qual_eval(&cost, expressions, root);
	return cost.per_tuple;
}

/* Do quals hide rows of the table, as row-level security does? */
static bool
has_security_quals(const PlannerInfo *root, const RelOptInfo *table)
{
	ListCell   *lc;

	foreach(lc, table->baserestrictinfo)
	{
		if (lfirst_node(RestrictInfo, lc)->security_level < root->qual_security_level)
			return true;
	}
	return false;
}

/*
 * The planner takes any index for an index-only scan of a query that needs no column, as
 * count(*).  But a search keeps no page pinned: VACUUM could remove a row that it has
 * found, and mark the row's page as all-visible.
 *
 * It also takes one for several distances.  But the executor compares no further than two
 * rows whose first distance is NULL.  And it computes distances anew before the quals
 * that hide rows: a hidden filter of another element type would raise an error.
 */
static bool
is_forbidden(const PlannerInfo *root, const IndexPath *path)
{
	return path->path.pathtype == T_IndexOnlyScan || list_length(path->indexorderbys) > 1 ||
		(path->indexorderbys != NIL && has_security_quals(root, path->indexinfo->rel));
}

static void
forbid(IndexPath *path, Cost *startup, Cost *total)
{
	path->path.pathtype = T_IndexScan;
	disable_path(&path->path);
	*startup = *total = FORBIDDEN_COST;
}

/*
 * All of it comes before the first row.  The rows come in the order of the table, or of
 * their distance; then candidates are read before all others.
 */
void
bloomslices_costestimate(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup,
						 Cost *total, Selectivity *selectivity, double *correlation, double *pages)
{
	const IndexOptInfo *index = path->indexinfo;
	double		candidates;
	double		work = search_work(root, path, &candidates);
	double		fetched = work;
	double		page_cost;
	double		rows;

	/* a nested loop finds pages in the cache that it has read before */
	if (loop_count > 1)
		fetched = index_pages_fetched(work * loop_count, index->pages, index->pages, root) / loop_count;
	get_tablespace_page_costs(index->reltablespace, NULL, &page_cost);
	rows = Min(path_selectivity(root, path) * index->rel->tuples + candidates, index->rel->tuples);
	*selectivity = rows / Max(index->rel->tuples, 1);
	*startup = fetched * page_cost + work * OPERATIONS_PER_PAGE * cpu_operator_cost + rows * cpu_index_tuple_cost +
		index_other_operands_eval_cost(root, get_quals_from_indexclauses(path->indexclauses)) +
		index_other_operands_eval_cost(root, path->indexorderbys);
	if (path->indexorderbys != NIL)
		*startup += candidates * (evaluation_cost(root, path->indexorderbys) + REORDER_TUPLES * cpu_tuple_cost) +
			Min(candidates, index->rel->pages) * page_cost;
	*total = *startup + candidates * evaluation_cost(root, get_quals_from_indexclauses(path->indexclauses));
	*correlation = path->indexorderbys == NIL ? 1 : 0;
	*pages = work;
	if (is_forbidden(root, path))
		forbid(path, startup, total);
}
