/*
 * contents.c
 *		bloomset_partitions(), bloomset_filters() and bloomset_info().
 */
#include "pg/pg_compat.h"

#include <math.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "bloomset/access.h"
#include "bloomset/bloomset.h"
#include "bloomset/lookup.h"
#include "bloomset/tree.h"
#include "core/estimate.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "optimizer/plancat.h"
#include "storage/predicate.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"
#include "value/value.h"

PG_FUNCTION_INFO_V1(bloomset_partitions);
PG_FUNCTION_INFO_V1(bloomset_filters);
PG_FUNCTION_INFO_V1(bloomset_info);
PG_FUNCTION_INFO_V1(bloomset_info_of_leaves);

Datum
bloomset_partitions(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	SetTree		tree = resolve_sets(PG_GETARG_OID(0), NameStr(*PG_GETARG_NAME(1)));
	Lookup		lookup;
	LookedUp	value;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	prepare_lookup(&lookup, &tree, fcinfo, 2, CurrentMemoryContext);
	value = looked_up_value(&lookup, PG_GETARG_DATUM(2));
	for (int i = 0; i < tree.nleaves; i++)
	{
		Datum		table = ObjectIdGetDatum(tree.leaves[i].table);
		bool		isnull = false;

		CHECK_FOR_INTERRUPTS();
		if (leaf_may_contain(&tree.leaves[i], &lookup, &value))
			tuplestore_putvalues(result->setResult, result->setDesc, &table, &isnull);
	}
	return (Datum) 0;
}

/* Called for each page of a generation, which is locked in shared mode. */
typedef void (*UsePage) (void *state, Page page, uint32 number, Size size);

static void
walk_generation(Relation index, Snapshot snapshot, const BloomsetMeta *meta, uint32 i,
				UsePage use, void *state)
{
	const Generation *generation = &meta->generation[i];

	for (uint32 number = 0; number < pages_of(generation); number++)
	{
		Buffer		buffer;
		uint32		generations;

		CHECK_FOR_INTERRUPTS();
		buffer = lock_generation_page(index, meta, i, number, BUFFER_LOCK_SHARE);
		test_for_old_snapshot(snapshot, index, BufferGetPage(buffer));
		use(state, BufferGetPage(buffer), number,
			blocks_in_page(generation, number) * BF_BLOCK_BYTES);
		generations = fields_of(BufferGetPage(buffer))->generations;
		UnlockReleaseBuffer(buffer);
		/* growth since the copy was made adds only rows that are not visible */
		if (generations > meta->ngenerations)
			(void) require_generations(index, generations);
	}
}

static void
copy_page(void *payload, Page page, uint32 number, Size size)
{
	memcpy((uint8 *) payload + (Size) number * BLOCKS_PER_PAGE * BF_BLOCK_BYTES, blocks_of(page),
		   size);
}

/* A generation as a value. */
static BloomValue *
filter_of_generation(Relation index, const BloomsetMeta *meta, uint32 i)
{
	const Generation *generation = &meta->generation[i];
	bf_filter	filter = {.params = {
			.layout = BF_BLOCKED, .k = generation->k, .element_class = meta->element_class,
			.rate = generation->rate, .seed = meta->seed,
			.m = (uint64) generation->nblocks * BF_BLOCK_BITS, .cell_bits = 1
	}};
	uint8	   *payload;
	BloomValue *value;

	if (filter.params.m > BF_MAX_BITS)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("generation %u of bloomset index \"%s\" is too large for a bloomfilter",
						i + 1, RelationGetRelationName(index)),
				 errdetail("It has %llu bits, and the maximum is %llu.",
						   (unsigned long long) filter.params.m, (unsigned long long) BF_MAX_BITS)));
	value = make_value(&filter, false, &payload);
	walk_generation(index, GetActiveSnapshot(), meta, i, copy_page, payload);
	return value;
}

/* The first set of a leaf that has all rows that the statement sees. */
static Relation
open_complete_set(const SetLeaf *leaf)
{
	for (int i = 0; i < leaf->nindexes; i++)
	{
		Relation	index = open_set(leaf->indexes[i]);

		if (index != NULL)
			return index;
	}
	report_no_usable_set(leaf->table);
}

static void
put_filters(ReturnSetInfo *result, const SetLeaf *leaf)
{
	Relation	index = open_complete_set(leaf);
	BloomsetMeta meta;

	PredicateLockRelation(index, GetActiveSnapshot());
	meta = bloomset_state(index, true)->meta;
	for (uint32 i = 0; i < meta.ngenerations; i++)
	{
		BloomValue *filter = filter_of_generation(index, &meta, i);
		Datum		values[3] = {
			ObjectIdGetDatum(leaf->table), Int32GetDatum((int32) i + 1), PointerGetDatum(filter)
		};
		bool		nulls[3] = {false};

		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
		pfree(filter);
	}
	index_close(index, NoLock);
}

Datum
bloomset_filters(PG_FUNCTION_ARGS)
{
	SetTree		tree = resolve_sets(PG_GETARG_OID(0), NameStr(*PG_GETARG_NAME(1)));

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < tree.nleaves; i++)
		put_filters((ReturnSetInfo *) fcinfo->resultinfo, &tree.leaves[i]);
	return (Datum) 0;
}

/* What bloomset_info() shows of one index, of those of a leaf, or of all of a partitioned one. */
typedef struct SetInfo
{
	uint64		elements;
	uint64		capacity;
	uint32		generations;	/* the most of an index */
	double		requested_absent;	/* logarithm of the chance of no "maybe" */
	double		current_absent;
	uint64		bytes;
	bool		reindex_pays;
} SetInfo;

typedef struct PageTally
{
	bf_shape	shape;
	bf_tally	tally;
	uint64		elements;
} PageTally;

static void
tally_page(void *state, Page page, uint32 number, Size size)
{
	PageTally  *tally = state;

	bf_tally_add(&tally->tally, &tally->shape, blocks_of(page), size);
	tally->elements += fields_of(page)->elements;
}

/* As the planner estimates them, from the present size of the table. */
static double
estimated_rows(Oid table_oid)
{
	Relation	table = table_open(table_oid, NoLock);
	BlockNumber pages;
	double		rows;
	double		visible;

	estimate_rel_size(table, NULL, &pages, &rows, &visible);
	table_close(table, NoLock);
	return rows;
}

/* The rows of smaller tables are estimated badly. */
#define SMALL_SET	1000

/*
 * REINDEX pays if it makes the set valid, merges generations, or forgets more deleted
 * values than the table has rows.  A rate that is above the requested one by chance would
 * be the same again.
 */
static void
add_info(SetInfo *info, Relation index)
{
	BloomsetMeta meta = bloomset_state(index, true)->meta;
	double		rows = estimated_rows(index->rd_index->indrelid);
	double		absent = 0;
	uint64		elements = 0;

	for (uint32 i = 0; i < meta.ngenerations; i++)
	{
		PageTally	tally = {.shape = shape_of(&meta.generation[i])};

		walk_generation(index, InvalidSnapshot, &meta, i, tally_page, &tally);
		elements += tally.elements;
		info->capacity += meta.generation[i].capacity;
		absent += log1p(-bf_current_rate(&tally.tally, &tally.shape));
	}
	info->elements += elements;
	info->generations = Max(info->generations, meta.ngenerations);
	info->requested_absent += log1p(-meta.rate);
	info->current_absent += absent;
	info->bytes += (uint64) RelationGetNumberOfBlocks(index) * BLCKSZ;
	info->reindex_pays |= meta.ngenerations > 1 || elements > 2 * rows + SMALL_SET;
}

/* A leaf without a valid set says "maybe" to every value. */
static void
add_leaf(SetInfo *info, const SetLeaf *leaf)
{
	bool		valid = false;

	for (int i = 0; i < leaf->nindexes; i++)
	{
		Relation	index = index_open(leaf->indexes[i], NoLock);

		if (index->rd_index->indisready)
			add_info(info, index);
		valid |= index->rd_index->indisvalid && index->rd_index->indisready;
		index_close(index, NoLock);
	}
	if (valid)
		return;
	info->current_absent = -INFINITY;
	info->reindex_pays |= leaf->nindexes > 0;
}

#define INFO_COLUMNS	7

static void
set_info_columns(const SetInfo *info, Datum *values)
{
	values[0] = Int64GetDatum((int64) info->elements);
	values[1] = Int64GetDatum((int64) info->capacity);
	values[2] = Int32GetDatum((int32) info->generations);
	values[3] = Float4GetDatum((float4) fabs(expm1(info->requested_absent)));
	values[4] = Float8GetDatum(fabs(expm1(info->current_absent)));
	values[5] = Int64GetDatum((int64) info->bytes);
	values[6] = BoolGetDatum(info->reindex_pays);
}

Datum
bloomset_info(PG_FUNCTION_ARGS)
{
	SetTree		tree = resolve_sets(PG_GETARG_OID(0), NULL);
	SetInfo		info = {0};
	TupleDesc	descriptor;
	Datum		values[INFO_COLUMNS];
	bool		nulls[INFO_COLUMNS] = {false};

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "bloomset_info must return a row");
	for (int i = 0; i < tree.nleaves; i++)
		add_leaf(&info, &tree.leaves[i]);
	set_info_columns(&info, values);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls)));
}

/* A row for each set of a leaf, which has only this one here, or one that shows it has none. */
static void
put_leaf_infos(ReturnSetInfo *result, const SetLeaf *leaf)
{
	for (int i = 0; i < Max(leaf->nindexes, 1); i++)
	{
		SetLeaf		part = {
			.table = leaf->table, .nindexes = Min(leaf->nindexes, 1), .indexes = leaf->indexes + i
		};
		SetInfo		info = {0};
		Datum		values[2 + INFO_COLUMNS];
		bool		nulls[2 + INFO_COLUMNS] = {false};

		add_leaf(&info, &part);
		values[0] = ObjectIdGetDatum(leaf->table);
		values[1] = part.nindexes > 0 ? ObjectIdGetDatum(part.indexes[0]) : (Datum) 0;
		set_info_columns(&info, values + 2);
		if (part.nindexes == 0)
			memset(nulls + 1, true, INFO_COLUMNS + 1);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
}

Datum
bloomset_info_of_leaves(PG_FUNCTION_ARGS)
{
	SetTree		tree = resolve_sets(PG_GETARG_OID(0), NameStr(*PG_GETARG_NAME(1)));

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < tree.nleaves; i++)
		put_leaf_infos((ReturnSetInfo *) fcinfo->resultinfo, &tree.leaves[i]);
	return (Datum) 0;
}
