/*
 * question.c
 *		What a scan asks of each row: a condition, or a distance.
 *
 * Each kind of row has a verdict, so that search.c needs to know nothing of the
 * operators: see README, Shape and kinds.
 */
#include "pg/pg_compat.h"

#include "bloomslices/question.h"
#include "core/sparse.h"
#include "miscadmin.h"
#include "query/query.h"

StaticAssertDecl(KEYS_PER_BLOCK * BF_MAX_K >= BF_BLOCK_BITS, "all bits of a block are tested at once");

#define ST_SORT sort_hashes
#define ST_ELEMENT_TYPE uint64
#define ST_COMPARE(a, b) (*(a) < *(b) ? -1 : *(a) > *(b))
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

#define ST_SORT sort_tests
#define ST_ELEMENT_TYPE BlockTest
#define ST_COMPARE(a, b) ((int) (a)->bit - (int) (b)->bit)
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* Sparse rows are answered as flagged ones, except for @>=. */
static void
set_verdicts(Question *question, Verdict exact, Verdict flagged, Verdict candidate, Verdict empty)
{
	question->verdicts[ROW_EXACT] = exact;
	question->verdicts[ROW_SPARSE] = flagged;
	question->verdicts[ROW_FLAGGED] = flagged;
	question->verdicts[ROW_CANDIDATE] = candidate;
	question->verdicts[ROW_EMPTY] = empty;
}

/* The index cannot answer: the scan does, of every row that has a filter. */
static void
recheck_all(Question *question, Verdict empty)
{
	question->mode = ASK_NOTHING;
	set_verdicts(question, VERDICT_MAYBE, VERDICT_MAYBE, VERDICT_MAYBE, empty);
}

/* Opens a query and hashes its keys.  False if filters of the index cannot answer it. */
static bool
open_keys(Question *question, const SlicesShape *shape, Datum value)
{
	OpenQuery	query;
	uint64	   *hashes;

	open_query(value, &query);
	question->shape = slices_bf_shape(shape);
	question->nkeys = query.nkeys;
	question->least = query.least;
	if (!is_complete_shape(shape))
		return false;
	hashes = MemoryContextAllocHuge(CurrentMemoryContext, Max((Size) query.nkeys, 1) * sizeof(*hashes));
	if (!hash_query(&query, shape->element_class, shape->seed, hashes))
		return false;
	sort_hashes(hashes, query.nkeys);
	question->hashes = hashes;
	return true;
}

static void
prepare_match(Question *question, const SlicesShape *shape, Datum value)
{
	bool		answers = open_keys(question, shape, value);
	Verdict		empty = question->least == 0 ? VERDICT_YES : VERDICT_NO;

	if (!answers)
	{
		recheck_all(question, empty);
		return;
	}
	if (question->least == 0 || question->least > question->nkeys)
	{
		set_verdicts(question, empty, empty, VERDICT_MAYBE, empty);
		return;
	}
	question->mode = question->least == question->nkeys ? ASK_ALL :
		question->least == 1 ? ASK_ANY : ASK_LEAST;
	set_verdicts(question, VERDICT_BITS, VERDICT_BITS_MAYBE, VERDICT_MAYBE, VERDICT_NO);
}

/* Has a filter the parameters of the index's exact rows? */
static bool
has_shape(const bf_filter *filter, const SlicesShape *shape)
{
	const bf_params *params = &filter->params;

	return params->layout == BF_BLOCKED && params->k == shape->k && params->seed == shape->seed &&
		params->m == (uint64) shape->nblocks * BF_BLOCK_BITS &&
		(params->element_class == BF_CLASS_NONE || params->element_class == shape->element_class);
}

/* The hashes of a sparse filter ascend already. */
static const uint64 *
copy_hashes(const bf_filter *sparse)
{
	uint64	   *hashes = MemoryContextAllocHuge(CurrentMemoryContext, Max(sparse->nhashes, 1) * sizeof(*hashes));

	for (uint64 i = 0; i < sparse->nhashes; i++)
	{
		if (i % CHUNK_HASHES == 0)
			CHECK_FOR_INTERRUPTS();
		hashes[i] = bf_hash_at(sparse->payload, i);
	}
	return hashes;
}

/*
 * Only rows of the filter's own parameters compare without an error, and a sparse one
 * compares by hashes instead of bits.
 */
static void
prepare_superset(Question *question, const SlicesShape *shape, Datum value)
{
	bf_filter	filter;

	open_value(value, BF_FILTER, &filter);
	if (!has_shape(&filter, shape))
	{
		recheck_all(question, VERDICT_MAYBE);
		return;
	}
	question->shape = slices_bf_shape(shape);
	question->mode = bf_is_empty(&filter) ? ASK_NOTHING : ASK_ALL;
	if (filter.sparse)
	{
		question->nkeys = (uint32) filter.nhashes;
		question->hashes = copy_hashes(&filter);
	}
	else
		question->bits = filter.payload;
	set_verdicts(question, asks_bits(question) ? VERDICT_BITS : VERDICT_YES,
				 VERDICT_MAYBE, VERDICT_MAYBE, VERDICT_MAYBE);
	if (asks_bits(question))
		question->verdicts[ROW_SPARSE] = VERDICT_BITS_MAYBE;
}

void
prepare_condition(Question *question, const SlicesShape *shape, const ScanKeyData *key)
{
	*question = (Question)
	{
		.mode = ASK_NOTHING
	};
	if (key->sk_flags & SK_ISNULL)
		return;					/* the operators are strict: no row */
	if (key->sk_strategy == MATCH_STRATEGY)
		prepare_match(question, shape, key->sk_argument);
	else
		prepare_superset(question, shape, key->sk_argument);
}

/* The verdict of a row that may be more distant than its bits say is one that rechecks. */
void
prepare_distance(Question *question, const SlicesShape *shape, const ScanKeyData *key)
{
	*question = (Question)
	{
		.mode = ASK_NOTHING, .is_null = (key->sk_flags & SK_ISNULL) != 0
	};
	if (question->is_null)
		return;
	if (!open_keys(question, shape, key->sk_argument))
	{
		recheck_all(question, VERDICT_NO);
		return;
	}
	question->mode = question->nkeys == 0 ? ASK_NOTHING : ASK_LEAST;
	set_verdicts(question, asks_bits(question) ? VERDICT_BITS : VERDICT_YES,
				 asks_bits(question) ? VERDICT_BITS_MAYBE : VERDICT_YES, VERDICT_MAYBE, VERDICT_NO);
}

static void
add_tests(BlockTests *tests, const bf_shape *shape, uint64 hash, uint32 key)
{
	for (uint32 i = 0; i < shape->k; i++)
		tests->tests[tests->ntests++] = (BlockTest)
	{
		(uint16) bf_next_bit(&hash, BF_BLOCK_BITS), (uint16) key
	};
}

static bool
next_keys(const Question *question, BlockTests *tests)
{
	uint64		first = tests->next;
	const uint64 *hashes = question->hashes + first;

	if (first == question->nkeys)
		return false;
	tests->block = (uint32) bf_block_of(&question->shape, hashes[0]);
	tests->ntests = 0;
	for (tests->nkeys = 0; tests->nkeys < KEYS_PER_BLOCK && first + tests->nkeys < question->nkeys; tests->nkeys++)
	{
		uint64		hash = hashes[tests->nkeys];

		if (bf_block_of(&question->shape, hash) != tests->block)
			break;
		add_tests(tests, &question->shape, hash, tests->nkeys);
	}
	sort_tests(tests->tests, tests->ntests);
	tests->next = first + tests->nkeys;
	return true;
}

static void
add_bits(BlockTests *tests, const uint8 *block)
{
	uint64		words[BF_BLOCK_BYTES / sizeof(uint64)];

	for (uint32 i = 0; i < lengthof(words); i++)
		words[i] = bf_load64(block + i * sizeof(uint64));
	for (uint32 bit = bf_next_row(words, BF_BLOCK_BITS, 0); bit < BF_BLOCK_BITS;
		 bit = bf_next_row(words, BF_BLOCK_BITS, bit + 1))
		tests->tests[tests->ntests++] = (BlockTest)
	{
		(uint16) bit, 0
	};
}

/* The next block that has bits. */
static bool
next_bits(const Question *question, BlockTests *tests)
{
	tests->ntests = 0;
	tests->nkeys = 1;
	while (tests->ntests == 0 && tests->next < question->shape.nblocks)
	{
		tests->block = (uint32) tests->next++;
		if (tests->block % (CHUNK_BYTES / BF_BLOCK_BYTES) == 0)
			CHECK_FOR_INTERRUPTS();
		add_bits(tests, question->bits + (Size) tests->block * BF_BLOCK_BYTES);
	}
	return tests->ntests > 0;
}

bool
next_block_tests(const Question *question, BlockTests *tests)
{
	return question->hashes != NULL ? next_keys(question, tests) : next_bits(question, tests);
}
