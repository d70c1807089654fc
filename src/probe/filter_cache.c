/*
 * filter_cache.c
 *		Copies of the stored filters that a backend probes.
 *
 * A copy is made once the probes of a filter have cost as much as fetching it,
 * so that all probes of a filter cost at most about twice the least.  Filters
 * without a copy are remembered, too, for what they have cost and for their
 * headers.
 */
#include "pg/pg_compat.h"

#include "filter/value.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "pg/memory.h"
#include "probe/filter_cache.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

/* What is known of filters without a copy takes that part of work_mem at most. */
#define SEEN_PART		16

/* Filters, those that were opened last first. */
typedef struct FilterList
{
	dlist_head	filters;
	Size		size;			/* bytes that they take */
} FilterList;

typedef struct CachedFilter
{
	struct varatt_external pointer; /* of the value: the key */
	FilterList *list;			/* the one that it is in */
	dlist_node	node;
	Size		size;			/* what it counts for there */
	uint64		opened_at;
	char	   *room;			/* the copy's memory, or NULL */
	bool		has_header;		/* is opened valid, with a payload or without? */
	OpenedFilter opened;
} CachedFilter;

/* Lasts as long as its memory context, which ends with the transaction. */
typedef struct FilterCache
{
	MemoryContext context;
	HTAB	   *table;
	FilterList	seen;			/* without a copy */
	FilterList	copied;
	FilterList	large;			/* copied, and larger than work_mem: one at most */
	MemoryContextCallback at_end;
} FilterCache;

static FilterCache *cache;

/*
 * Counts openings, in all transactions.  A call site has a shortcut to the copy
 * that it opened last, and the cache does not see when it uses that.  So no copy
 * that was opened after shortcuts_revoked_at may be freed.
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

/* No call site of the executor lasts longer, but C code may keep one. */
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
	dlist_init(&made->seen.filters);
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

/* Forgets a filter, to which there must not be a shortcut. */
static void
forget(CachedFilter *entry)
{
	Assert(entry->room == NULL || entry->opened_at < shortcuts_revoked_at);
	leave_list(entry);
	if (entry->room != NULL)
		pfree(entry->room);
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
	entry->room = NULL;
	entry->has_header = false;
	entry->opened.spent = 0;
	enter_list(entry, &cache->seen, sizeof(*entry));
	while (cache->seen.size > memory_limit() / SEEN_PART && oldest_of(&cache->seen) != entry)
		forget(oldest_of(&cache->seen));
	return entry;
}

/*
 * May a copy be freed to make room for another filter?  Not if it has been used
 * since that one was opened last: two filters would then push each other out
 * row after row.  A copy that a call site has a shortcut to may have been used.
 * Revoking the shortcut shows, until the next time, whether it is.
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

/* Makes room in a list of copies; false if there is none. */
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

/* Copies a filter, so that its bits begin at a cache line. */
static void
make_copy(CachedFilter *entry, FilterList *list, Size size, Datum value)
{
	OpenedFilter opened;
	struct varlena *bytes = open_for_probes(value, &opened);
	char	   *room = allocate_large(cache->context, bf_payload_size(&opened.filter) + BF_BLOCK_BYTES);
	uint8	   *payload = (uint8 *) TYPEALIGN(BF_BLOCK_BYTES, room);

	/* the transaction may go on after an error: a cancel request, for one */
	PG_TRY();
	{
		fetch_payload(value, &opened, payload);
	}
	PG_CATCH();
	{
		pfree(room);
		PG_RE_THROW();
	}
	PG_END_TRY();
	close_value(value, bytes);
	move_opened(&opened, payload);
	entry->opened = opened;
	entry->has_header = true;
	entry->room = room;
	leave_list(entry);
	enter_list(entry, list, size);
}

/* Makes a copy of a filter that has cost as much, if there is room for it. */
static void
consider_copy(CachedFilter *entry, Datum value)
{
	Size		size = entry->pointer.va_rawsize;
	FilterList *list = size > memory_limit() ? &cache->large : &cache->copied;

	if (entry->opened.spent >= size && make_room(list, size, entry))
		make_copy(entry, list, size, value);
}

static void
open_uncached(LastFilter *last, Datum value)
{
	struct varlena *bytes = open_for_probes(value, &last->opened);

	if ((Pointer) bytes != DatumGetPointer(value))
		last->detoasted = bytes;
}

/* A stored value: the copy, or what the cache knows of it, or what opening it gives. */
static OpenedFilter *
open_stored(LastFilter *last, Datum value)
{
	struct varatt_external pointer;
	CachedFilter *entry;

	VARATT_EXTERNAL_GET_POINTER(pointer, DatumGetPointer(value));
	entry = find_entry(&pointer);
	if (entry->room == NULL)
		consider_copy(entry, value);
	entry->opened_at = ++now;
	dlist_move_head(&entry->list->filters, &entry->node);
	if (entry->room != NULL)
	{
		memcpy(last->identity, DatumGetPointer(value), TOAST_POINTER_SIZE);
		last->opened_at = now;
		last->last_is = LAST_COPIED;
	}
	else if (!entry->has_header)
	{
		open_uncached(last, value);
		entry->opened.spent = last->opened.spent;
		if (last->opened.filter.payload != NULL)
			return &last->opened;
		entry->opened = last->opened;
		entry->has_header = true;
	}
	return &entry->opened;
}

static OpenedFilter *
open_in_memory(LastFilter *last, Datum value)
{
	open_uncached(last, value);
	if (VARATT_IS_4B_U(DatumGetPointer(value)))
	{
		memcpy(last->identity, DatumGetPointer(value), IDENTITY_SIZE);
		last->last_is = LAST_IN_MEMORY;
	}
	return &last->opened;
}

/*
 * A call site may outlive an error that a PL/pgSQL block catches, so that it
 * recognizes no filter while another one is opened.
 */
OpenedFilter *
open_other_filter(LastFilter *last, Datum value)
{
	last->last_is = LAST_UNKNOWN;
	last->detoasted = NULL;
	last->filter = VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value))
		? open_stored(last, value) : open_in_memory(last, value);
	return last->filter;
}
