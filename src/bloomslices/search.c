/*
 * search.c
 *		Finding rows by their bits.
 *
 * Slab by slab: each key reads its slices and leaves a set of rows, and only for these
 * the entries are read.  A key that no row has thus reads a few slices of each slab.
 * README, The promise, says why no row is lost while others merge slabs.
 */
#include "pg/pg_compat.h"

#include "bloomslices/question.h"
#include "bloomslices/reader.h"
#include "bloomslices/search.h"
#include "query/query.h"
#include "utils/memutils.h"

typedef struct Search
{
	Relation	index;
	const Directory *directory;
	RecentBuffers *recent;		/* or NULL */
	Snapshot	snapshot;
	int			nconditions;
	Question   *conditions;
	Question   *distance;		/* or NULL */
	bool		counted;		/* by the last condition */
	/* for the largest slab */
	uint64	  **accepted;		/* rows, of each condition that asks bits */
	uint64	   *rows;			/* that all may accept */
	uint64	   *key_rows;		/* rows of each key of a BlockTests */
	uint64	   *planes;
	BlockTests *tests;
	bf_counts	counts;			/* of the distance's keys */
	Hit		   *found;
	uint32		nfound;
	Hits	   *hits;
} Search;

static inline uint32
words_of(const Slab *slab)
{
	return (rows_of_slab(slab) + 63) / 64;
}

static uint64 *
allocate_words(Size count)
{
	return MemoryContextAllocHuge(CurrentMemoryContext, Max(count, 1) * sizeof(uint64));
}

/* Are the keys the same, so that one count serves both? */
static bool
has_same_keys(const Question *a, const Question *b)
{
	return a->mode == ASK_LEAST && b->mode == ASK_LEAST && a->nkeys == b->nkeys &&
		memcmp(a->hashes, b->hashes, a->nkeys * sizeof(uint64)) == 0;
}

static void
prepare_questions(Search *search, const ScanKeyData *conditions, const ScanKeyData *distance)
{
	const SlicesShape *shape = &search->directory->meta.shape;

	search->conditions = palloc(Max(search->nconditions, 1) * sizeof(Question));
	for (int i = 0; i < search->nconditions; i++)
		prepare_condition(&search->conditions[i], shape, &conditions[i]);
	if (distance == NULL)
		return;
	search->distance = palloc(sizeof(Question));
	prepare_distance(search->distance, shape, distance);
	search->counted = search->nconditions > 0 &&
		has_same_keys(&search->conditions[search->nconditions - 1], search->distance);
}

static uint32
most_words(const Directory *directory)
{
	uint32		result = 1;

	for (uint32 i = 0; i < directory->nslabs; i++)
	{
		if (directory->slabs[i].kind != SLAB_LIST)
			result = Max(result, words_of(&directory->slabs[i]));
	}
	return result;
}

static void
allocate_sets(Search *search)
{
	uint32		nwords = most_words(search->directory);
	Size		planes = 0;
	bool		has_key_rows = false;

	search->rows = allocate_words(nwords);
	search->tests = palloc(sizeof(BlockTests));
	search->accepted = palloc(Max(search->nconditions, 1) * sizeof(uint64 *));
	for (int i = 0; i <= search->nconditions; i++)
	{
		const Question *question = i < search->nconditions ? &search->conditions[i] : search->distance;

		if (question == NULL || !asks_bits(question))
			continue;
		if (i < search->nconditions)
			search->accepted[i] = allocate_words(nwords);
		has_key_rows |= question->mode != ASK_ALL;
		if (question->mode == ASK_LEAST)
			planes = Max(planes, bf_counts_words(nwords, question->nkeys));
	}
	if (has_key_rows)
		search->key_rows = allocate_words((Size) nwords * KEYS_PER_BLOCK);
	if (planes > 0)
		search->planes = allocate_words(planes);
}

/* Where the slice of a bit is on its page. */
static inline uint32
slice_offset(const Slab *slab, uint32 bit)
{
	return bit % (BF_BLOCK_BITS / slab->tiles) * slice_bytes_of(slab);
}

/* The processor continues by itself after this many bytes. */
#define PREFETCHED_BYTES	512

/* Tests whose pages are prefetched at once; the rest may not be needed. */
#define TESTS_AHEAD		16

/* Prefetches what some tests read of slices, from test i on. */
static void
prefetch_tests(const Search *search, const SlabReader *reader, uint32 i)
{
	const BlockTests *tests = search->tests;
	const Slab *slab = reader->slab;
	uint32		end = Min(i + TESTS_AHEAD, tests->ntests);
	uint32		size = Min(slice_bytes_of(slab), PREFETCHED_BYTES);
	const char *page = NULL;
	uint32		last = 0;		/* no page of slices */

	for (; i < end; i++)
	{
		uint32		bit = tests->tests[i].bit;
		uint32		number = bits_page_of(slab, tests->block, bit);

		if (number != last)
			page = prefetch_slab_page(reader, number);
		last = number;
		for (uint32 at = 0; page != NULL && at < size; at += PG_CACHE_LINE_SIZE / 2)
			__builtin_prefetch(page + SLICES_OFFSET + slice_offset(slab, bit) + at);
	}
}

/*
 * Keeps the rows of a set that have a bit; *left is false if there is none.
 */
static bool
keep_rows_with_bit(SlabReader *reader, uint32 block, uint32 bit, uint64 *rows, bool *left)
{
	const Slab *slab = reader->slab;
	Page		page = read_slab_page(reader, bits_page_of(slab, block, bit));
	const uint8 *bits;

	if (page == NULL)
		return false;
	bits = slices_contents(page);
	if (slab->kind == SLAB_SLICES)
	{
		*left = bf_slice_and(rows, bits + slice_offset(slab, bit), slice_bytes_of(slab));
		return true;
	}
	*left = bf_rows_with_bit(rows, rows_of_slab(slab), bits + block_offset_of(slab, block), bit);
	return true;
}

/*
 * The next tests.  Many keys may ask one page, which is then released now and then, so that
 * writers go on and the next read_slab_page() sees interrupts.
 */
static bool
next_tests(Search *search, SlabReader *reader, const Question *question)
{
	if (search->tests->next % CHUNK_KEYS < KEYS_PER_BLOCK)
		close_page(reader);
	return next_block_tests(question, search->tests);
}

/* The rows that have all keys, or all bits. */
static bool
find_all(Search *search, SlabReader *reader, const Question *question, uint64 *rows)
{
	BlockTests *tests = search->tests;
	bool		left;

	bf_rows_first(rows, words_of(reader->slab), rows_of_slab(reader->slab));
	tests->next = 0;
	while (next_tests(search, reader, question))
	{
		for (uint32 i = 0; i < tests->ntests; i++)
		{
			if (i % TESTS_AHEAD == 0 && reader->slab->kind == SLAB_SLICES)
				prefetch_tests(search, reader, i);
			if (!keep_rows_with_bit(reader, tests->block, tests->tests[i].bit, rows, &left))
				return false;
			if (!left)
				return true;
		}
	}
	return true;
}

/* The rows of each key of one block, consecutive; *present has the keys that have any. */
static bool
find_keys(Search *search, SlabReader *reader, uint32 *present)
{
	const BlockTests *tests = search->tests;
	uint32		nwords = words_of(reader->slab);
	bool		left;

	for (uint32 key = 0; key < tests->nkeys; key++)
		bf_rows_first(search->key_rows + (Size) key * nwords, nwords, rows_of_slab(reader->slab));
	*present = (1 << tests->nkeys) - 1;
	for (uint32 i = 0; i < tests->ntests; i++)
	{
		uint32		key = tests->tests[i].key;

		if (i % TESTS_AHEAD == 0 && reader->slab->kind == SLAB_SLICES)
			prefetch_tests(search, reader, i);
		if (!(*present & 1 << key))
			continue;
		if (!keep_rows_with_bit(reader, tests->block, tests->tests[i].bit,
								search->key_rows + (Size) key * nwords, &left))
			return false;
		if (!left)
			*present &= ~(1 << key);
	}
	return true;
}

/* The rows that have any key. */
static bool
find_any(Search *search, SlabReader *reader, const Question *question, uint64 *rows)
{
	uint32		nwords = words_of(reader->slab);
	uint32		present;

	bf_rows_first(rows, nwords, 0);
	search->tests->next = 0;
	while (next_tests(search, reader, question))
	{
		if (!find_keys(search, reader, &present))
			return false;
		for (uint32 key = 0; key < search->tests->nkeys; key++)
		{
			if (present & 1 << key)
				bf_rows_or(rows, search->key_rows + (Size) key * nwords, nwords);
		}
	}
	return true;
}

/* How many keys each row has. */
static bool
count_keys(Search *search, SlabReader *reader, const Question *question)
{
	uint32		nwords = words_of(reader->slab);
	uint32		present;

	bf_counts_init(&search->counts, search->planes, nwords, question->nkeys);
	search->tests->next = 0;
	while (next_tests(search, reader, question))
	{
		if (!find_keys(search, reader, &present))
			return false;
		for (uint32 key = 0; key < search->tests->nkeys; key++)
		{
			if (present & 1 << key)
				bf_counts_add(&search->counts, search->key_rows + (Size) key * nwords);
		}
	}
	return true;
}

/* The rows whose bits meet a condition. */
static bool
find_accepted(Search *search, SlabReader *reader, const Question *question, uint64 *rows)
{
	if (question->mode == ASK_ALL)
		return find_all(search, reader, question, rows);
	if (question->mode == ASK_ANY)
		return find_any(search, reader, question, rows);
	if (!count_keys(search, reader, question))
		return false;
	bf_counts_at_least(&search->counts, question->least, rows);
	return true;
}

/* Need only the rows that the bits accept be considered? */
static bool
decides_by_bits(const Question *question, const Slab *slab)
{
	bool		may_have_flagged = slab->kind != SLAB_SLICES || slab->has_flagged;

	return asks_bits(question) && (question->verdicts[ROW_FLAGGED] >= VERDICT_BITS || !may_have_flagged);
}

/*
 * The rows of a slab with bits that the conditions may accept; *left is false if there
 * is none.
 */
static bool
find_rows(Search *search, SlabReader *reader, bool *left)
{
	uint32		nwords = words_of(reader->slab);

	*left = true;
	bf_rows_first(search->rows, nwords, rows_of_slab(reader->slab));
	for (int i = 0; i < search->nconditions && *left; i++)
	{
		const Question *question = &search->conditions[i];

		if (asks_bits(question) && !find_accepted(search, reader, question, search->accepted[i]))
			return false;
		if (decides_by_bits(question, reader->slab))
			*left = bf_rows_and(search->rows, search->accepted[i], nwords);
		else
			*left = question->verdicts[ROW_FLAGGED] != VERDICT_NO;
	}
	if (*left && search->distance != NULL && asks_bits(search->distance) && !search->counted)
		return count_keys(search, reader, search->distance);
	return true;
}

/* Adds a hit.  The lock of its page is released before the hits are used, which may take long. */
static void
append_found(Search *search, SlabReader *reader, const Hit *hit)
{
	if (search->nfound == ROWS_PER_PAGE)
	{
		close_page(reader);
		add_hits(search->hits, search->found, search->nfound);
		search->nfound = 0;
	}
	search->found[search->nfound++] = *hit;
}

/* Do all conditions accept a row, or may they? */
static bool
accepts_row(const Search *search, RowKind kind, uint32 row, Hit *hit)
{
	for (int i = 0; i < search->nconditions; i++)
	{
		Verdict		verdict = search->conditions[i].verdicts[kind];

		if (verdict == VERDICT_NO ||
			(verdict >= VERDICT_BITS && !bf_has_row(search->accepted[i], row)))
			return false;
		hit->recheck |= verdict == VERDICT_MAYBE || verdict == VERDICT_BITS_MAYBE;
	}
	return true;
}

static void
measure_distance(const Search *search, RowKind kind, uint32 row, Hit *hit)
{
	const Question *question = search->distance;
	Verdict		verdict = question->verdicts[kind];

	if (question->is_null || kind == ROW_NULL)
		hit->distance = NULL_DISTANCE;
	else if (verdict == VERDICT_NO)
		hit->distance = question->nkeys;
	else if (verdict >= VERDICT_BITS)
		hit->distance = question->nkeys - (uint32) bf_count_of(&search->counts, row);
	hit->recheck_distance = verdict == VERDICT_MAYBE || verdict == VERDICT_BITS_MAYBE;
}

static bool
is_valid_entry(const RowEntry *entry, const Slab *slab)
{
	return ItemPointerIsValid(&entry->tid) && entry->kind <= ROW_NULL &&
		kind_has_bits(entry->kind) == (slab->kind != SLAB_LIST);
}

/* The first row from this one on that the conditions may accept. */
static inline uint32
next_candidate(const Search *search, const Slab *slab, uint32 row)
{
	return slab->kind == SLAB_LIST ? row : bf_next_row(search->rows, rows_of_slab(slab), row);
}

/* Adds the rows of a slab that the conditions accept. */
static bool
add_rows(Search *search, SlabReader *reader)
{
	const Slab *slab = reader->slab;
	uint32		nrows = rows_of_slab(slab);

	for (uint32 row = next_candidate(search, slab, 0); row < nrows; row = next_candidate(search, slab, row + 1))
	{
		const RowEntry *entry = read_row_entry(reader, row);
		Hit			hit = {0};

		if (entry == NULL)
			return false;
		if (entry->kind == ROW_ABSENT)
			continue;
		if (!is_valid_entry(entry, reader->slab))
			report_slices_damage(search->index, BufferGetBlockNumber(reader->buffer));
		if (!accepts_row(search, entry->kind, row, &hit))
			continue;
		if (search->distance != NULL)
			measure_distance(search, entry->kind, row, &hit);
		hit.place = place_of(&entry->tid);
		append_found(search, reader, &hit);
	}
	return true;
}

/* The bits of a raw row exist only with its entry. */
static bool
find_raw_row(Search *search, SlabReader *reader, bool *left)
{
	const RowEntry *entry = read_row_entry(reader, 0);

	if (entry == NULL)
		return false;
	*left = entry->kind != ROW_ABSENT;
	return !*left || find_rows(search, reader, left);
}

static bool
search_slab(Search *search, const Slab *slab)
{
	SlabReader	reader = {
		.index = search->index, .directory = search->directory, .slab = slab, .recent = search->recent,
		.snapshot = search->snapshot
	};
	bool		left = true;
	bool		found = true;

	if (slab->kind == SLAB_RAW)
		found = find_raw_row(search, &reader, &left);
	else if (slab->kind != SLAB_LIST)
		found = find_rows(search, &reader, &left);
	if (found && left)
		found = add_rows(search, &reader);
	close_page(&reader);
	return found;
}

static bool
search_slabs(Search *search)
{
	for (uint32 i = 0; i < search->directory->nslabs; i++)
	{
		const Slab *slab = &search->directory->slabs[i];

		if (slab->kind != SLAB_FREE && !search_slab(search, slab))
			return false;
	}
	add_hits(search->hits, search->found, search->nfound);
	return true;
}

static void
renew_directory(Relation index, SearchMemory *memory, Snapshot snapshot)
{
	MemoryContext caller = MemoryContextSwitchTo(memory->context);

	if (memory->directory != NULL)
		free_slices_directory(memory->directory);
	memory->directory = NULL;
	memory->directory = read_slices_directory(index, snapshot);
	MemoryContextSwitchTo(caller);
}

/* Pages beyond are not remembered. */
#define MAX_RECENT_BUFFERS	(1024 * 1024)

/* ReadRecentBuffer() does not raise the usage count, by which the server evicts: now and then ReadBuffer() does. */
#define USES_PER_COUNT		8

/* The buffers to use in this search.  The first ones remember none, as there may be few. */
static RecentBuffers *
recent_buffers(Relation index, SearchMemory *memory)
{
	memory->nsearches++;
	if (memory->nsearches <= USES_PER_COUNT || memory->nsearches % USES_PER_COUNT == 0 ||
		RelationUsesLocalBuffers(index))
		return NULL;
	if (memory->recent.buffers == NULL)
	{
		memory->recent.count = Min(RelationGetNumberOfBlocks(index), MAX_RECENT_BUFFERS);
		memory->recent.buffers = MemoryContextAllocZero(memory->context, memory->recent.count * sizeof(Buffer));
	}
	return &memory->recent;
}

static bool
try_search(Relation index, SearchMemory *memory, Snapshot snapshot, const ScanKeyData *conditions, int nconditions,
		   const ScanKeyData *distance, Hits *hits)
{
	Search		search = {
		.index = index, .directory = memory->directory, .recent = recent_buffers(index, memory),
		.snapshot = snapshot, .nconditions = nconditions, .found = memory->found, .hits = hits
	};

	empty_hits(hits);
	prepare_questions(&search, conditions, distance);
	allocate_sets(&search);
	return search_slabs(&search);
}

void
search_slices(Relation index, SearchMemory *memory, Snapshot snapshot, const ScanKeyData *conditions,
			  int nconditions, const ScanKeyData *distance, Hits *hits)
{
	MemoryContext caller = MemoryContextSwitchTo(memory->search);

	if (memory->directory == NULL)
		renew_directory(index, memory, snapshot);
	while (!try_search(index, memory, snapshot, conditions, nconditions, distance, hits))
	{
		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(memory->search);
		renew_directory(index, memory, snapshot);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextReset(memory->search);
}
