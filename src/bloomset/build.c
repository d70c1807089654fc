/*
 * build.c
 *		Building a bloomset from a table.
 *
 * The scan collects hashes, since the size of the filter is known only at its end.
 * Half of maintenance_work_mem holds hashes, which then go to temporary files, and
 * half holds the part of the filter that is being filled.
 */
#include "pg/pg_compat.h"

#include <math.h>

#include "access/tableam.h"
#include "access/transam.h"
#include "access/xloginsert.h"
#include "bloomset/bloomset.h"
#include "bloomset/spool.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "commands/progress.h"
#include "lib/hyperloglog.h"
#include "miscadmin.h"
#include "pg/index_method.h"
#include "pg/memory.h"
#include "utils/backend_progress.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "value/parameters.h"

/*
 * 2^14 registers estimate the number of distinct hashes with a standard error of
 * 0.8 %.  The margin is about four of these.
 */
#define DISTINCT_BITS	14
#define DISTINCT_MARGIN	1.03

/* Estimates from hashes of 32 bits are useless far above this number. */
#define MAX_ESTIMATE	5e8

/* In elements: the block of each is a cache miss. */
#define PREFETCH_DISTANCE	16

/* The phases that pg_stat_progress_create_index shows. */
#define PHASE_SCAN		(PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE + 1)
#define PHASE_WRITE		(PHASE_SCAN + 1)

char *
bloomset_buildphasename(int64 phase)
{
	switch (phase)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return "initializing";
		case PHASE_SCAN:
			return "scanning table";
		case PHASE_WRITE:
			return "writing filter";
		default:
			return NULL;
	}
}

typedef struct Build
{
	HashElement hash;
	uint64		seed;
	HashSpool  *spool;
	hyperLogLogState distinct;
} Build;

/* A part of generation 1 in memory: blocks [from, to), the first of a page. */
typedef struct Part
{
	bf_shape	shape;
	uint32		from;
	uint32		to;
	uint8	   *blocks;
	uint32	   *elements;		/* of each page */
} Part;

static void
add_row(Relation index, ItemPointer row, Datum *values, bool *isnull, bool alive, void *arg)
{
	Build	   *build = arg;
	uint64		hash;

	if (isnull[0])
		return;
	hash = build->hash(values[0], build->seed);
	addHyperLogLog(&build->distinct, (uint32) hash);
	spool_hash(build->spool, hash);
}

/* The number of elements to make room for. */
static double
estimate_items(Build *build, double expected_items)
{
	double		rows = (double) spooled_hashes(build->spool);
	double		distinct = estimateHyperLogLog(&build->distinct) * DISTINCT_MARGIN;

	if (rows > MAX_ESTIMATE || distinct > 0.8 * rows)
		distinct = rows;
	return Max(expected_items, distinct);
}

/* The bytes of an element's block; NULL if it is outside the part. */
static inline uint8 *
block_in_part(const Part *part, uint64 hash)
{
	uint64		block = bf_block_of(&part->shape, hash);

	if (block < part->from || block >= part->to)
		return NULL;
	return part->blocks + (block - part->from) * BF_BLOCK_BYTES;
}

static void
add_to_part(void *state, const uint64 *hashes, uint64 n)
{
	Part	   *part = state;

	for (uint64 i = 0; i < n; i++)
	{
		uint8	   *block = block_in_part(part, hashes[i]);

		if (i + PREFETCH_DISTANCE < n)
			__builtin_prefetch(block_in_part(part, hashes[i + PREFETCH_DISTANCE]), 1);
		if (block == NULL || bf_block_contains(block, &part->shape, hashes[i]))
			continue;
		bf_block_add(block, &part->shape, hashes[i]);
		part->elements[(block - part->blocks) / BF_BLOCK_BYTES / BLOCKS_PER_PAGE]++;
	}
}

/* The least hash whose block is this one or a later one. */
static uint64
first_hash_of(const bf_shape *shape, uint64 block)
{
	return ((block << 32) + shape->nblocks - 1) / shape->nblocks << 32;
}

static void
write_part(Relation index, const Generation *generation, const Part *part)
{
	for (uint32 block = part->from; block < part->to; block += BLOCKS_PER_PAGE)
	{
		uint32		number = block / BLOCKS_PER_PAGE;
		uint32		elements = part->elements[number - part->from / BLOCKS_PER_PAGE];
		Buffer		buffer;
		Page		page;

		CHECK_FOR_INTERRUPTS();
		buffer = extend_bloomset(index, MAIN_FORKNUM);
		page = BufferGetPage(buffer);
		init_bloomset_page(page, 1, number);
		if (elements > 0)
		{
			((PageHeader) page)->pd_lower = BLCKSZ;
			fields_of(page)->elements = elements;
			memcpy(blocks_of(page), part->blocks + (Size) (block - part->from) * BF_BLOCK_BYTES,
				   blocks_in_page(generation, number) * BF_BLOCK_BYTES);
		}
		MarkBufferDirty(buffer);
		UnlockReleaseBuffer(buffer);
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, number + 1);
	}
}

/* Fills and writes generation 1 within the memory. */
static void
write_generation(Relation index, const Generation *generation, HashSpool *spool, Size memory)
{
	uint32		pages = Max(memory / (BLOCKS_PER_PAGE * BF_BLOCK_BYTES), 1);
	uint64		step;
	Part		part = {.shape = shape_of(generation)};

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_WRITE);
	pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, 0);
	pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL, pages_of(generation));
	pages = Min(pages, pages_of(generation));
	step = (uint64) pages * BLOCKS_PER_PAGE;
	part.blocks = allocate_large(CurrentMemoryContext, step * BF_BLOCK_BYTES);
	part.elements = palloc(pages * sizeof(uint32));
	for (uint64 from = 0; from < generation->nblocks; from += step)
	{
		uint64		to = Min(from + step, generation->nblocks);

		part.from = (uint32) from;
		part.to = (uint32) to;
		zero_bytes(part.blocks, step * BF_BLOCK_BYTES);
		memset(part.elements, 0, pages * sizeof(uint32));
		read_spool(spool, first_hash_of(&part.shape, from),
				   to == generation->nblocks ? PG_UINT64_MAX : first_hash_of(&part.shape, to),
				   add_to_part, &part);
		write_part(index, generation, &part);
	}
	pfree(part.blocks);
	pfree(part.elements);
}

/* bpchar_ops is possible on text, where its operators would be another equality. */
static void
check_operator_class(Relation index, Oid type, const ElementType *element)
{
	Oid			input = index->rd_opcintype[0];
	ElementType other;

	if (find_hash_function(input, &other) && other.element_class == element->element_class)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("bloomset index \"%s\" has an operator class of another type",
					RelationGetRelationName(index)),
			 errdetail("The operator class is for type %s, and the values have type %s.",
					   format_type_be(input), format_type_be(type))));
}

/* The collation of an index may be deterministic where that of its column is not. */
static void
check_column_collation(Relation index, Oid collation)
{
	if (!OidIsValid(collation) || get_collation_isdeterministic(collation))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("bloomset index \"%s\" is on a column with a nondeterministic collation",
					RelationGetRelationName(index)),
			 errdetail("Strings that are equal under collation \"%s\" have different hashes.",
					   get_collation_name(collation)),
			 errhint("Drop the index, or give the column a deterministic collation.")));
}

/* Checks what the definition of an index may contain; returns its element type. */
static ElementType
check_definition(Relation heap, Relation index)
{
	AttrNumber	column = index->rd_index->indkey.values[0];
	Oid			type = TupleDescAttr(RelationGetDescr(index), 0)->atttypid;
	ElementType element;

	if (heap->rd_rel->relam != HEAP_TABLE_AM_OID)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("access method \"bloomset\" does not support table \"%s\"",
						RelationGetRelationName(heap)),
				 errdetail("The table does not use the access method \"heap\".")));
	require_element_type(type, index->rd_indcollation[0], &element);
	check_operator_class(index, type, &element);
	if (column != InvalidAttrNumber)
		check_column_collation(index,
							   TupleDescAttr(RelationGetDescr(heap), column - 1)->attcollation);
	return element;
}

/* The metapage of an index of no generation. */
static BloomsetMeta
new_meta(Relation index, const ElementType *element)
{
	const BloomsetOptions *options = (BloomsetOptions *) index->rd_options;
	BloomsetMeta meta = {.element_class = element->element_class};

	meta.rate = check_rate(options != NULL ? options->rate : DEFAULT_RATE);
	meta.seed = bloomset_seed(options);
	return meta;
}

/* A page is not smaller for fewer elements than fit it. */
static double
expected_items(Relation index, double rate)
{
	const BloomsetOptions *options = (BloomsetOptions *) index->rd_options;

	return options != NULL && options->expected_items > 0 ? options->expected_items : elements_of_page(rate);
}

static void
start_generations(Relation index, BloomsetMeta *meta, double items)
{
	if (!design_generation(meta, 0, items))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("bloomset index \"%s\" would be too large for %.0f elements at rate %g",
						RelationGetRelationName(index), items, meta->rate),
				 errhint("Set a higher false_positive_rate or fewer expected_items.")));
	meta->generation[0].first = BLOOMSET_META_PAGE + 1;
	meta->ngenerations = 1;
}

static uint64
bytes_of(const BloomsetMeta *meta)
{
	return (uint64) (meta->generation[0].first + pages_of(&meta->generation[0])) * BLCKSZ;
}

pg_noreturn static void
report_reserve(Relation index, const BloomsetMeta *meta, double items, double values,
			   uint64 needed, uint64 limit)
{
	/* less than the limit by what sizes are rounded up */
	double		most = floor(items * limit / bytes_of(meta) * 0.98 / 1e6) * 1e6;

	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("bloomset index \"%s\" would take %s, but the values in its table need %s",
					RelationGetRelationName(index), pretty_size(bytes_of(meta)), pretty_size(needed)),
			 errdetail("It would have room for %.0f values, and there are %.0f. Above 1 GB, an index may take %d times what they need.",
					   items, values, MAX_RESERVE),
			 errhint("Set expected_items to the number of distinct values that the table will have, at most %.0f.",
					 most)));
}

/* Does room for a number of elements suit a table that has fewer values? */
static void
check_reserve(Relation index, const BloomsetMeta *meta, double items, double values)
{
	BloomsetMeta smaller = *meta;
	uint64		bytes = bytes_of(meta);
	uint64		limit;

	if (bytes <= UNQUESTIONED_BYTES)
		return;
	if (values == 0)
	{
		ereport(NOTICE,
				(errmsg("bloomset index \"%s\" takes %s", RelationGetRelationName(index), pretty_size(bytes)),
				 errdetail("It has room for %.0f values, and its table has none.", items)));
		return;
	}
	(void) design_generation(&smaller, 0, values);
	limit = Max(UNQUESTIONED_BYTES, MAX_RESERVE * bytes_of(&smaller));
	if (bytes > limit)
		report_reserve(index, meta, items, values, bytes_of(&smaller), limit);
}

static void
write_index(Relation index, BloomsetMeta *meta, HashSpool *spool, Size memory)
{
	Buffer		buffer = extend_bloomset(index, MAIN_FORKNUM);

	write_new_metapage(buffer, meta);
	UnlockReleaseBuffer(buffer);
	write_generation(index, &meta->generation[0], spool, memory);
	if (RelationNeedsWAL(index))
		log_newpage_range(index, MAIN_FORKNUM, 0, RelationGetNumberOfBlocks(index), true);
}

IndexBuildResult *
bloomset_build(Relation heap, Relation index, struct IndexInfo *info)
{
	IndexBuildResult *result = palloc0(sizeof(*result));
	ElementType element = check_definition(heap, index);
	BloomsetMeta meta = new_meta(index, &element);
	Size		memory = (Size) maintenance_work_mem * 1024 / 2;
	Build		build = {.hash = element.hash, .seed = meta.seed};
	double		items;

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index));
	forget_bloomset_state(index);
	build.spool = make_spool(memory);
	initHyperLogLog(&build.distinct, DISTINCT_BITS);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SCAN);
	result->heap_tuples = table_index_build_scan(heap, index, info, true, true, add_row, &build,
												 NULL);
	result->index_tuples = (double) spooled_hashes(build.spool);
	meta.built_at = U64FromFullTransactionId(ReadNextFullTransactionId());
	items = estimate_items(&build, expected_items(index, meta.rate));
	start_generations(index, &meta, items);
	check_reserve(index, &meta, items, result->index_tuples);
	write_index(index, &meta, build.spool, memory);
	freeHyperLogLog(&build.distinct);
	free_spool(build.spool);
	return result;
}

/* The init fork of an unlogged index is small, whatever number is expected. */
void
bloomset_buildempty(Relation index)
{
	ElementType element;
	BloomsetMeta meta;

	require_element_type(TupleDescAttr(RelationGetDescr(index), 0)->atttypid,
						 index->rd_indcollation[0], &element);
	meta = new_meta(index, &element);
	start_generations(index, &meta, elements_of_page(meta.rate));
	for (uint32 block = 0; block <= pages_of(&meta.generation[0]); block++)
	{
		Buffer		buffer = extend_bloomset(index, INIT_FORKNUM);

		START_CRIT_SECTION();
		if (block == BLOOMSET_META_PAGE)
			write_new_metapage(buffer, &meta);
		else
		{
			init_bloomset_page(BufferGetPage(buffer), 1, block - 1);
			MarkBufferDirty(buffer);
		}
		log_newpage_buffer(buffer, true);
		END_CRIT_SECTION();
		UnlockReleaseBuffer(buffer);
	}
}
