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
#include "utils/selfuncs.h"
#include "utils/spccache.h"

#define KEYS_OF_UNKNOWN_QUERY	1
#define BITS_OF_UNKNOWN_FILTER	64

/* Of the 64 bytes of each row, or of a slice: about a third of a microsecond. */
#define OPERATIONS_PER_PAGE		20

/* Above that of every other plan. */
#define FORBIDDEN_COST			1e12

/* What a search asks of each slab. */
typedef struct Work
{
	double		keys;
	double		bits;			/* of a key, all in one block */
} Work;

static Work
work_of_query(const Const *value, uint32 k)
{
	Work		work = {KEYS_OF_UNKNOWN_QUERY, k};
	OpenQuery	query;

	if (IsA(value, Const) && !value->constisnull)
	{
		open_query(value->constvalue, &query);
		work.keys = query.nkeys;
	}
	return work;
}

static Work
work_of_filter(const Const *value, const SlicesShape *shape)
{
	double		bits = BITS_OF_UNKNOWN_FILTER;
	double		nblocks = Max(shape->nblocks, 1);
	bf_filter	filter;

	if (IsA(value, Const) && !value->constisnull)
	{
		open_value(value->constvalue, BF_FILTER, &filter);
		bits = filter.sparse ? (double) filter.nhashes * shape->k : nblocks * BF_BLOCK_BITS / 2;
	}
	return (Work)
	{
		Min(bits, nblocks), Max(bits / nblocks, 1)
	};
}

static Work
work_of_clause(PlannerInfo *root, const SlicesShape *shape, Node *clause)
{
	Node	   *operand = estimate_expression_value(root, get_rightop(clause));
	bool		is_filter = exprType(operand) == exprType(get_leftop(clause));

	return is_filter ? work_of_filter((Const *) operand, shape) : work_of_query((Const *) operand, shape->k);
}

/* Pages that a search reads of a slab. */
static double
slab_work(const Slab *slab, const SlicesShape *shape, Work work)
{
	double		tiles = slab->tiles;

	switch ((SlabKind) slab->kind)
	{
		case SLAB_LIST:
			return slab->npages;
		case SLAB_TILE:
		case SLAB_RAW:
			return Min(work.keys, slab->npages);
		case SLAB_SLICES:
			/* that have one of so many bits */
			return Min(work.keys * tiles * (1 - pow(1 - 1 / tiles, work.bits)), slab->npages);
		default:
			return 0;
	}
}

static double
directory_work(PlannerInfo *root, const IndexPath *path, const Directory *directory)
{
	const SlicesShape *shape = &directory->meta.shape;
	List	   *clauses = get_quals_from_indexclauses(path->indexclauses);
	double		pages = 1 + directory->meta.ndirectory;
	ListCell   *lc;

	/* without a condition all entries are read */
	for (uint32 i = 0; i < directory->nslabs && clauses == NIL; i++)
		pages += rows_pages_of(&directory->slabs[i]);
	foreach(lc, list_concat(clauses, path->indexorderbys))
	{
		Node	   *node = lfirst(lc);
		Work		work = work_of_clause(root, shape, IsA(node, RestrictInfo) ? (Node *) ((RestrictInfo *) node)->clause : node);

		for (uint32 i = 0; i < directory->nslabs; i++)
			pages += slab_work(&directory->slabs[i], shape, work);
	}
	return pages;
}

/* Pages that one search reads. */
static double
search_work(PlannerInfo *root, const IndexPath *path)
{
	double		pages = 1 + ceil(path->indexinfo->tuples / BF_TILE_ROWS);

	if (!path->indexinfo->hypothetical)
	{
		Relation	index = index_open(path->indexinfo->indexoid, NoLock);
		Directory  *directory = read_slices_directory(index);

		pages = directory_work(root, path, directory);
		free_slices_directory(directory);
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

/*
 * The planner takes any index for an index-only scan of a query that needs no column, as
 * count(*).  But a search keeps no page pinned: VACUUM could remove a row that it has
 * found, and mark the row's page as all-visible.
 *
 * It also takes one for several distances.  But the executor compares no further than two
 * rows whose first distance is NULL.
 */
static bool
is_forbidden(const IndexPath *path)
{
	return path->path.pathtype == T_IndexOnlyScan || list_length(path->indexorderbys) > 1;
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
 * their distance.
 */
void
bloomslices_costestimate(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup,
						 Cost *total, Selectivity *selectivity, double *correlation, double *pages)
{
	const IndexOptInfo *index = path->indexinfo;
	double		work = search_work(root, path);
	double		fetched = work;
	double		page_cost;
	double		rows;

	/* a nested loop finds pages in the cache that it has read before */
	if (loop_count > 1)
		fetched = index_pages_fetched(work * loop_count, index->pages, index->pages, root) / loop_count;
	get_tablespace_page_costs(index->reltablespace, NULL, &page_cost);
	*selectivity = path_selectivity(root, path);
	rows = *selectivity * index->rel->tuples;
	*startup = fetched * page_cost + work * OPERATIONS_PER_PAGE * cpu_operator_cost + rows * cpu_index_tuple_cost +
		index_other_operands_eval_cost(root, get_quals_from_indexclauses(path->indexclauses)) +
		index_other_operands_eval_cost(root, path->indexorderbys);
	*total = *startup;
	*correlation = path->indexorderbys == NIL ? 1 : 0;
	*pages = work;
	if (is_forbidden(path))
		forbid(path, startup, total);
}
