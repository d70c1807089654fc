/*
 * hits.c
 *		The rows that a search has found, within work_mem.
 *
 * An index scan does not know how many rows are wanted.  So the array keeps the first ones
 * in their order, which is enough for most queries with a LIMIT: see README, Memory.
 */
#include "pg/pg_compat.h"

#include "bloomslices/hits.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"
#include "utils/typcache.h"
#include "utils/uuid.h"

#define LEAST_ROOM	64

static inline int
compare_hits(const Hit *a, const Hit *b)
{
	if (a->distance != b->distance)
		return a->distance < b->distance ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

#define ST_SORT sort_array
#define ST_ELEMENT_TYPE Hit
#define ST_COMPARE(a, b) compare_hits(a, b)
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* The array and its copy of twice the size are within work_mem. */
static Size
most_room(void)
{
	return Max((Size) work_mem * 1024 / 2 / sizeof(Hit), LEAST_ROOM);
}

/* Types of the server that have room for a hit without its distance, and for one with it, which is sorted as bytes. */
static Tuplesortstate *
begin_sort(const Hits *hits)
{
	TypeCacheEntry *type = lookup_type_cache(hits->has_distance ? UUIDOID : INT8OID, TYPECACHE_LT_OPR);
	MemoryContext caller = MemoryContextSwitchTo(hits->context);
	Tuplesortstate *sort = tuplesort_begin_datum(type->type_id, type->lt_opr, InvalidOid, false, work_mem, NULL,
												 TUPLESORT_NONE);

	MemoryContextSwitchTo(caller);
	return sort;
}

static void
put_hit(const Hits *hits, const Hit *hit)
{
	uint64		row = hit->place << 2 | (uint64) hit->recheck << 1 | hit->recheck_distance;
	uint32		distance = pg_hton32(hit->distance);
	pg_uuid_t	key = {{0}};

	if (!hits->has_distance)
	{
		tuplesort_putdatum(hits->sort, Int64GetDatum((int64) row), false);
		return;
	}
	row = pg_hton64(row << 14);
	memcpy(key.data, &distance, sizeof(distance));
	memcpy(key.data + sizeof(distance), &row, sizeof(row));
	tuplesort_putdatum(hits->sort, UUIDPGetDatum(&key), false);
}

static bool
get_hit(const Hits *hits, Hit *hit)
{
	Datum		value;
	bool		isnull;
	uint32		distance = 0;
	uint64		row;

	if (!get_sorted_datum(hits->sort, &value, &isnull))
		return false;
	if (!hits->has_distance)
		row = (uint64) DatumGetInt64(value);
	else
	{
		memcpy(&distance, DatumGetUUIDP(value)->data, sizeof(distance));
		memcpy(&row, DatumGetUUIDP(value)->data + sizeof(distance), sizeof(row));
		row = pg_ntoh64(row) >> 14;
	}
	if (hits->has_distance || sizeof(Datum) < sizeof(int64))
		pfree(DatumGetPointer(value));
	*hit = (Hit)
	{
		.place = row >> 2, .distance = pg_ntoh32(distance), .recheck = (row & 2) != 0, .recheck_distance = row & 1
	};
	return true;
}

/* Keeps the first half of a full array. */
static void
cut_array(Hits *hits)
{
	sort_array(hits->hits, hits->count);
	hits->count /= 2;
	hits->last = hits->hits[hits->count - 1];
	hits->cut = true;
}

static void
make_room(Hits *hits)
{
	Size		most = most_room();

	if (hits->room >= most)
		cut_array(hits);
	else
	{
		hits->room = Min(Max(2 * hits->room, LEAST_ROOM), most);
		hits->hits = hits->hits == NULL ? MemoryContextAllocHuge(hits->context, hits->room * sizeof(Hit)) :
			repalloc_huge(hits->hits, hits->room * sizeof(Hit));
	}
}

static void
append_hit(Hits *hits, const Hit *hit)
{
	if (hits->count == hits->room)
		make_room(hits);
	if (!hits->cut || compare_hits(hit, &hits->last) <= 0)
		hits->hits[hits->count++] = *hit;
}

void
add_hits(Hits *hits, const Hit *some, uint32 n)
{
	for (uint32 i = 0; i < n; i++)
	{
		if (hits->bitmap != NULL)
		{
			ItemPointerData tid = tid_of(some[i].place);

			tbm_add_tuples(hits->bitmap, &tid, 1, some[i].recheck);
			hits->count++;
		}
		else if (hits->sort == NULL)
			append_hit(hits, &some[i]);
		else if (compare_hits(&some[i], &hits->last) > 0)
			put_hit(hits, &some[i]);
	}
}

void
empty_hits(Hits *hits)
{
	hits->count = 0;
	if (hits->sort != NULL)
	{
		tuplesort_end(hits->sort);
		hits->sort = begin_sort(hits);
	}
	else
		hits->cut = false;
}

void
expect_cut_hits(Hits *hits)
{
	pfree(hits->hits);
	*hits = (Hits)
	{
		.context = hits->context, .has_distance = hits->has_distance, .sort = begin_sort(hits), .last = hits->last
	};
}

void
sort_hits(Hits *hits)
{
	if (hits->sort != NULL)
		tuplesort_performsort(hits->sort);
	else if (hits->count > 1)
		sort_array(hits->hits, hits->count);
}

bool
next_hit(Hits *hits, Hit *hit)
{
	if (hits->sort != NULL)
		return get_hit(hits, hit);
	if (hits->next == hits->count)
		return false;
	*hit = hits->hits[hits->next++];
	return true;
}

void
end_hits(Hits *hits)
{
	if (hits->sort != NULL)
		tuplesort_end(hits->sort);
	hits->sort = NULL;
}
