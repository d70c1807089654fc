/*
 * filter_cache.c
 *		A backend's copies of the stored filters that it probes.
 *
 * The cache copies a filter once its probes have cost as much as fetching it.
 * All probes of a filter together then cost at most about twice the optimum.
 * For filters without a copy the cache keeps the cost and the header.
 */
#include "pg/pg_compat.h"

#include "lib/ilist.h"
#include "miscadmin.h"
#include "probe/filter_cache.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

/* Entries without a copy take at most work_mem / UNCOPIED_PART. */
#define UNCOPIED_PART	16

/* Entries in LRU order, the most recently opened one first. */
typedef struct FilterList
{
	dlist_head	filters;
	Size		size;			/* sum over the entries, in bytes */
} FilterList;

typedef struct CachedFilter
{
	struct varatt_external pointer; /* hash key */
	FilterList *list;			/* contains the entry */
	dlist_node	node;
	Size		size;			/* contribution to list->size */
	uint64		opened_at;
	char	   *copy;			/* unaligned memory of the payload, or NULL */
	bool		has_header;		/* opened is valid; its payload may be NULL */
	OpenedValue opened;
} CachedFilter;

/* Lives in its own memory context, a child of TopTransactionContext. */
typedef struct FilterCache
{
	MemoryContext context;
	HTAB	   *table;
	FilterList	uncopied;
	FilterList	copied;
	FilterList	large;			/* the copy larger than work_mem, if any */
	MemoryContextCallback at_end;
} FilterCache;

static FilterCache *cache;

/*
 * The clock counts openings in all transactions.  A call site keeps a shortcut
 * to the copy that it opened last, and the cache does not see its use.
 * Therefore no copy that was opened after shortcuts_revoked_at may be freed.
 */
static uint64 now;
uint64		shortcuts_revoked_at;

static Size
memory_limit(void)
{
	return (Size) work_mem * 1024;
}

static void
revoke_shortcuts(void)
{
	shortcuts_revoked_at = ++now;
}

/* A call site that C code keeps can outlive the transaction. */
static void
end_cache(void *argument)
{
	(void) argument;
	cache = NULL;
	revoke_shortcuts();
}

static void
start_cache(void)
{
	MemoryContext context = AllocSetContextCreate(TopTransactionContext, "bloomtype stored filters",
												  ALLOCSET_DEFAULT_SIZES);
	FilterCache *made = MemoryContextAllocZero(context, sizeof(*made));
	HASHCTL		control = {
		.keysize = sizeof(struct varatt_external),
		.entrysize = sizeof(CachedFilter),
		.hcxt = context
	};

	made->context = context;
	made->table = hash_create("bloomtype stored filter table", 64, &control,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	dlist_init(&made->uncopied.filters);
	dlist_init(&made->copied.filters);
	dlist_init(&made->large.filters);
	made->at_end.func = end_cache;
	MemoryContextRegisterResetCallback(context, &made->at_end);
	cache = made;
}

static void
enter_list(CachedFilter *entry, FilterList *list, Size size)
{
	entry->list = list;
	entry->size = size;
	dlist_push_head(&list->filters, &entry->node);
	list->size += size;
}

static void
leave_list(CachedFilter *entry)
{
	entry->list->size -= entry->size;
	dlist_delete(&entry->node);
}

static CachedFilter *
oldest_of(FilterList *list)
{
	return dlist_tail_element(CachedFilter, node, &list->filters);
}

/* Removes an entry.  No call site may have a shortcut to it. */
static void
forget(CachedFilter *entry)
{
	Assert(entry->copy == NULL || entry->opened_at < shortcuts_revoked_at);
	leave_list(entry);
	if (entry->copy != NULL)
		pfree(entry->copy);
	hash_search(cache->table, &entry->pointer, HASH_REMOVE, NULL);
}

static CachedFilter *
find_entry(const struct varatt_external *pointer)
{
	CachedFilter *entry;
	bool		found;

	if (cache == NULL)
		start_cache();
	entry = hash_search(cache->table, pointer, HASH_ENTER, &found);
	if (found)
		return entry;
	entry->opened_at = 0;
	entry->copy = NULL;
	entry->has_header = false;
	entry->opened.cost = 0;
	enter_list(entry, &cache->uncopied, sizeof(*entry));
	while (cache->uncopied.size > memory_limit() / UNCOPIED_PART &&
		   oldest_of(&cache->uncopied) != entry)
		forget(oldest_of(&cache->uncopied));
	return entry;
}

/*
 * May a copy be freed to make room for another entry?  Not if it has been used
 * since that entry was last opened; otherwise two filters would evict each other
 * in every row.  A shortcut hides whether its copy is in use.  Revoking it makes
 * the next use visible, so that a later call can decide.
 */
static bool
may_free(const CachedFilter *copy, const CachedFilter *entry)
{
	if (copy->opened_at > entry->opened_at)
		return false;
	if (copy->opened_at > shortcuts_revoked_at)
		revoke_shortcuts();
	return shortcuts_revoked_at < entry->opened_at;
}

/* Frees the oldest copies until size bytes fit; false if they cannot. */
static bool
make_room(FilterList *list, Size size, const CachedFilter *entry)
{
	while (list->size > 0 && list->size + size > memory_limit())
	{
		if (!may_free(oldest_of(list), entry))
			return false;
		forget(oldest_of(list));
	}
	return true;
}

/* Copies a filter to memory aligned to a cache line. */
static void
make_copy(CachedFilter *entry, FilterList *list, Size size, bf_kind kind, Datum value)
{
	OpenedValue opened;
	BloomValue *bytes = open_for_probes(value, kind, &opened);
	char	   *copy = allocate_large(cache->context,
									  bf_payload_size(&opened.filter) + BF_BLOCK_BYTES);
	uint8	   *payload = (uint8 *) TYPEALIGN(BF_BLOCK_BYTES, copy);

	/* the transaction can continue after an error, even a canceled query */
	PG_TRY();
	{
		fetch_payload(value, &opened, payload);
	}
	PG_CATCH();
	{
		pfree(copy);
		PG_RE_THROW();
	}
	PG_END_TRY();
	close_value(value, bytes);
	move_opened(&opened, payload);
	entry->opened = opened;
	entry->has_header = true;
	entry->copy = copy;
	leave_list(entry);
	enter_list(entry, list, size);
}

/* Copies a filter whose probes have cost as much, if there is room. */
static void
consider_copy(CachedFilter *entry, bf_kind kind, Datum value)
{
	Size		size = entry->pointer.va_rawsize;
	FilterList *list = size > memory_limit() ? &cache->large : &cache->copied;

	if (entry->opened.cost >= size && make_room(list, size, entry))
		make_copy(entry, list, size, kind, value);
}

static void
open_uncached(LastFilter *last, Datum value)
{
	BloomValue *bytes = open_for_probes(value, last->kind, &last->opened);

	if ((Pointer) bytes != DatumGetPointer(value))
		last->detoasted = bytes;
}

/* Opens a stored value by its copy, its cached header, or its TOAST table. */
static OpenedValue *
open_stored(LastFilter *last, Datum value)
{
	struct varatt_external pointer;
	CachedFilter *entry;

	VARATT_EXTERNAL_GET_POINTER(pointer, DatumGetPointer(value));
	entry = find_entry(&pointer);
	if (entry->copy == NULL)
		consider_copy(entry, last->kind, value);
	entry->opened_at = ++now;
	dlist_move_head(&entry->list->filters, &entry->node);
	if (entry->copy != NULL)
	{
		memcpy(last->identity, DatumGetPointer(value), TOAST_POINTER_SIZE);
		last->opened_at = now;
		last->state = LAST_COPIED;
	}
	else if (!entry->has_header)
	{
		open_uncached(last, value);
		entry->opened.cost = last->opened.cost;
		if (last->opened.filter.payload != NULL)
			return &last->opened;
		entry->opened = last->opened;
		entry->has_header = true;
	}
	return &entry->opened;
}

static OpenedValue *
open_in_memory(LastFilter *last, Datum value)
{
	open_uncached(last, value);
	if (VARATT_IS_4B_U(DatumGetPointer(value)))
	{
		memcpy(last->identity, DatumGetPointer(value), IDENTITY_SIZE);
		last->state = LAST_IN_MEMORY;
	}
	return &last->opened;
}

/* A call site can outlive an error that a PL/pgSQL block catches: reset it first. */
OpenedValue *
open_other_filter(LastFilter *last, Datum value)
{
	last->state = LAST_UNKNOWN;
	last->detoasted = NULL;
	last->filter = VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value))
		? open_stored(last, value) : open_in_memory(last, value);
	return last->filter;
}
