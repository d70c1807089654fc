/*
 * info.c
 *		bloomslices_info() and bloomslices_merge().
 */
#include "pg/pg_compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "bloomslices/bloomslices.h"
#include "bloomslices/reader.h"
#include "bloomslices/tree.h"
#include "funcapi.h"
#include "pg/index_access.h"

PG_FUNCTION_INFO_V1(bloomslices_info);
PG_FUNCTION_INFO_V1(bloomslices_merge);

enum
{
	INFO_ELEMENT_TYPE,
	INFO_BITS,
	INFO_HASHES,
	INFO_REQUESTED_RATE,
	INFO_SEED,
	INFO_SLABS,
	INFO_ROWS,
	INFO_RECHECKED,
	INFO_DEAD,
	INFO_PAGES,
	INFO_BYTES,
	INFO_COLUMNS
};

/* Of one index, or of all indexes of a partitioned one. */
typedef struct SlicesInfo
{
	SlicesShape shape;
	bool		is_mixed;		/* the shapes differ */
	int64		slabs;
	int64		rows[ROW_NULL + 1]; /* by RowKind */
	int64		pages;
	int64		bytes;
} SlicesInfo;

/* Counts the rows of a slab by kind; false if it is gone. */
static bool
count_rows(SlabReader *reader, SlicesInfo *info)
{
	uint32		npages = rows_pages_of(reader->slab);

	for (uint32 number = 0; number < npages; number++)
	{
		Page		page = read_slab_page(reader, number);
		uint32		used;

		if (page == NULL)
			return false;
		used = slices_fields(page)->used;
		for (uint32 i = 0; i < used; i++)
		{
			RowKind		kind = slices_rows(page)[i].kind;

			if (kind > ROW_NULL)
				report_slices_damage(reader->index, BufferGetBlockNumber(reader->buffer));
			info->rows[kind]++;
		}
	}
	return true;
}

static bool
add_slabs(Relation index, const Directory *directory, SlicesInfo *info)
{
	for (uint32 i = 0; i < directory->nslabs; i++)
	{
		const Slab *slab = &directory->slabs[i];
		SlabReader	reader = {.index = index, .directory = directory, .slab = slab};
		bool		counted;

		if (slab->kind == SLAB_FREE)
			continue;
		counted = count_rows(&reader, info);
		close_page(&reader);
		if (!counted)
			return false;
		info->slabs++;
		info->pages += slab->npages;
	}
	return true;
}

static bool
has_same_shape(const SlicesShape *a, const SlicesShape *b)
{
	return a->element_class == b->element_class && a->nblocks == b->nblocks && a->k == b->k &&
		a->rate == b->rate && a->seed == b->seed;
}

static void
add_index(SlicesInfo *total, Relation index)
{
	SlicesInfo	info;
	Directory  *directory;

	do
	{
		info = *total;
		directory = read_slices_directory(index, NULL);
	} while (!add_slabs(index, directory, &info));
	/* without a row with elements there is none */
	if (directory->meta.shape.nblocks != 0)
	{
		info.is_mixed |= info.shape.nblocks != 0 && !has_same_shape(&info.shape, &directory->meta.shape);
		info.shape = directory->meta.shape;
	}
	info.bytes += (int64) RelationGetNumberOfBlocks(index) * BLCKSZ;
	*total = info;
}

static Datum
make_info_row(TupleDesc descriptor, const SlicesInfo *info)
{
	const SlicesShape *shape = &info->shape;
	bool		unknown = info->is_mixed || shape->nblocks == 0;
	Datum		values[INFO_COLUMNS];
	bool		nulls[INFO_COLUMNS] = {false};
	int64		rechecked = info->rows[ROW_SPARSE] + info->rows[ROW_FLAGGED] + info->rows[ROW_CANDIDATE];

	values[INFO_ELEMENT_TYPE] = ObjectIdGetDatum(shape->element_class);
	values[INFO_BITS] = Int64GetDatum((int64) shape->nblocks * BF_BLOCK_BITS);
	values[INFO_HASHES] = Int32GetDatum((int32) shape->k);
	values[INFO_REQUESTED_RATE] = Float4GetDatum(shape->rate);
	values[INFO_SEED] = Int64GetDatum((int64) shape->seed);
	for (int i = INFO_ELEMENT_TYPE; i <= INFO_SEED; i++)
		nulls[i] = unknown;
	nulls[INFO_ELEMENT_TYPE] |= shape->element_class == BF_CLASS_NONE;
	values[INFO_SLABS] = Int64GetDatum(info->slabs);
	values[INFO_ROWS] = Int64GetDatum(info->rows[ROW_EXACT] + rechecked + info->rows[ROW_EMPTY] +
									  info->rows[ROW_NULL]);
	values[INFO_RECHECKED] = Int64GetDatum(rechecked);
	values[INFO_DEAD] = Int64GetDatum(info->rows[ROW_ABSENT]);
	values[INFO_PAGES] = Int64GetDatum(info->pages);
	values[INFO_BYTES] = Int64GetDatum(info->bytes);
	return HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls));
}

Datum
bloomslices_info(PG_FUNCTION_ARGS)
{
	List	   *indexes = lock_slices_to_read(PG_GETARG_OID(0));
	SlicesInfo	info = {0};
	TupleDesc	descriptor;
	ListCell   *lc;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE ||
		descriptor->natts != INFO_COLUMNS)
		elog(ERROR, "bloomslices_info has an unexpected result type");
	foreach(lc, indexes)
	{
		Relation	index = index_open(lfirst_oid(lc), NoLock);

		check_has_contents(index);
		/* the build of an index that is not ready may have left no page */
		if (index->rd_index->indisready)
			add_index(&info, index);
		index_close(index, NoLock);
	}
	PG_RETURN_DATUM(make_info_row(descriptor, &info));
}

Datum
bloomslices_merge(PG_FUNCTION_ARGS)
{
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_VACUUM);
	ListCell   *lc;

	foreach(lc, lock_slices_to_maintain(PG_GETARG_OID(0)))
	{
		OwnedIndex	owned = open_as_owner(lfirst_oid(lc));

		if (owned.index->rd_index->indisready)
			merge_slices(owned.index, strategy);
		close_as_owner(&owned);
	}
	PG_RETURN_VOID();
}
