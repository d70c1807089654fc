/*
 * answer.c
 *		Answers questions about filters by the core alone, without PostgreSQL.
 *
 * Reads one question from each line of its input and writes the answer to a
 * line of its output.  Filters and canonical bytes are in hexadecimal digits,
 * or - if there are none.
 *
 *	hash SEED BYTES
 *	size LAYOUT RATE ITEMS						k and m
 *	build LAYOUT RATE ITEMS SEED CLASS BYTES...	ITEMS 0: sizes itself
 *	series LAYOUT RATE ITEMS SEED CLASS FIRST LAST	of the numbers as int8
 *	read FILTER									the same, or why not
 *	measure FILTER								cardinality and current rate
 *	union FILTER FILTER, intersection FILTER FILTER, fold FILTER M,
 *	fold_like FILTER FILTER						or refused
 *
 * answer_counters.c has more about counters.  check.py asks.  What the
 * extension does besides, from SQL's elements to their canonical bytes and to
 * memory that grows, is not tested here.
 */
#include "answer.h"

#include "bulk.h"
#include "compatible.h"
#include "dense.h"
#include "estimate.h"
#include "hash.h"
#include "probe.h"
#include "stream.h"

#define PIECE_BYTES		(BF_BLOCK_BYTES * 5)

bf_solutions solutions;

static void
answer_hash(void)
{
	uint64_t	seed = number();
	size_t		size;
	uint8_t    *bytes = bytes_of(word(), &size);
	uint64_t	hash = bf_hash_bytes(bytes, size, seed);

	if (size == 8 && bf_hash_word(bf_load64(bytes), seed) != hash)
		abort();
	printf("%016llx\n", (unsigned long long) hash);
	free(bytes);
}

static void
answer_size(void)
{
	uint64_t	items;
	bf_params	params = take_params(&items);

	printf("%u %llu\n", (unsigned) params.k, (unsigned long long) params.m);
}

/* Prints the filter of these hashes, sized for them if it has no size. */
static void
print_built(bf_params *params, bool sized, uint64_t *hashes, size_t count)
{
	bf_filter	filter = {.sparse = true};
	bf_shape	shape;
	uint8_t    *payload;

	count = sort_hashes(hashes, count);
	if (!sized && count > 0)
		params->m = own_size(params, count);
	filter.params = *params;
	filter.sparse = count <= bf_sparse_limit(params);
	filter.nhashes = filter.sparse ? count : 0;
	shape = bf_shape_of(params);
	payload = allocate(bf_payload_size(&filter));
	for (size_t i = 0; i < count; i++)
	{
		if (filter.sparse)
			bf_store64(payload + 8 * i, hashes[i]);
		else
			bf_bits_add(payload, &shape, hashes[i]);
	}
	print_filter(&filter, payload);
	free(payload);
}

static void
answer_build(bool series)
{
	uint64_t	items;
	bf_params	params = take_params(&items);
	uint64_t   *hashes = allocate(sizeof(uint64_t) * 100000);
	size_t		count = 0;

	params.seed = number();
	params.element_class = (uint32_t) number();
	if (series)
	{
		uint64_t	first = number();
		uint64_t	last = number();

		for (uint64_t i = first; i <= last; i++)
			hashes[count++] = bf_hash_word(i, params.seed);
	}
	for (char *digits; !series && (digits = strtok(NULL, " \n")) != NULL;)
	{
		size_t		size;
		uint8_t    *bytes = bytes_of(digits, &size);

		hashes[count++] = bf_hash_bytes(bytes, size, params.seed);
		free(bytes);
	}
	print_built(&params, items > 0, hashes, count);
	free(hashes);
}

static void
answer_measure(void)
{
	bf_filter	filter = asked_about(BF_FILTER);
	bf_shape	shape = bf_shape_of(&filter.params);
	uint64_t	set = filter.sparse ? 0 : bf_popcount(filter.payload, filter.params.m / 8);
	bf_tally	tally = {.bits_set = 0};
	double		rate;

	if (filter.sparse)
		rate = bf_current_rate_sparse(filter.nhashes);
	else
	{
		bf_tally_add(&tally, &shape, filter.payload, filter.params.m / 8);
		if (bf_tally_bits(&tally, &shape) != set)
			abort();
		rate = bf_current_rate(&tally, &shape);
	}
	printf("%.17g %.17g\n", filter.sparse ? (double) filter.nhashes : bf_cardinality(&shape, set), rate);
	release(&filter);
}

/* The bits of a filter at that size. */
static uint8_t *
bits_at(const bf_filter *filter, uint64_t m)
{
	uint8_t    *bits = allocate(m / 8);
	uint8_t		scratch[PIECE_BYTES];
	bf_stream	stream = bf_stream_start(filter, m);
	bf_params	params = filter->params;
	bf_update	update;

	if (filter->sparse && filter->params.layout == BF_CLASSIC)
	{
		params.m = m;
		update = bf_update_of(&params, BF_SUM);
		bf_expand(filter, 0, filter->nhashes, &update, bits);
		return bits;
	}
	for (uint64_t at = 0; at < m / 8; at += PIECE_BYTES)
	{
		size_t		size = m / 8 - at < PIECE_BYTES ? m / 8 - at : PIECE_BYTES;
		const uint8_t *piece = bf_stream_read(&stream, at, size, scratch);

		while (piece != NULL && stream.unfinished)
			piece = bf_stream_continue(&stream, at, size, scratch);
		if (piece == NULL)
			abort();
		memcpy(bits + at, piece, size);
	}
	return bits;
}

static void
print_bits(const bf_params *params, const bf_filter *a, const bf_filter *b,
		   void (*combine) (uint8_t *, const uint8_t *, size_t))
{
	bf_filter	result = {.params = *params};
	uint8_t    *bits = bits_at(a, params->m);
	uint8_t    *other = bits_at(b, params->m);

	combine(bits, other, params->m / 8);
	print_filter(&result, bits);
	free(bits);
	free(other);
}

/* The hashes of one sparse filter that the other filter, too, contains. */
static void
print_common(const bf_params *params, const bf_filter *sparse, const bf_filter *other)
{
	bf_filter	result = {.params = *params, .sparse = true};
	uint8_t    *payload = allocate(8 * sparse->nhashes);

	for (uint64_t i = 0; i < sparse->nhashes; i++)
	{
		uint64_t	hash = bf_hash_at(sparse->payload, i);

		if (bf_contains(other, hash))
			bf_store64(payload + 8 * result.nhashes++, hash);
	}
	print_filter(&result, payload);
	free(payload);
}

/* The hashes of both, if that is smaller than bits. */
static bool
print_united_hashes(const bf_params *params, const bf_filter *a, const bf_filter *b)
{
	bf_filter	result = {.params = *params, .sparse = true};
	bf_merge	merge = {.a = a, .b = b, .combination = BF_GREATER};
	uint8_t    *payload = allocate(8 * (a->nhashes + b->nhashes));
	bool		smaller;

	result.nhashes = bf_merge_entries(&merge, payload, NULL, UINT64_MAX);
	smaller = result.nhashes <= bf_sparse_limit(params);
	if (smaller)
		print_filter(&result, payload);
	free(payload);
	return smaller;
}

/* Where one of the two, or both, has no size. */
static void
print_of_unsized(const bf_filter *a, const bf_filter *b, const bf_params *params, bool unite)
{
	const bf_filter *sized = a->params.m != 0 ? a : b;
	bf_filter	empty = {.params = *params, .sparse = true};

	if (unite)
		print_filter(params->m != 0 ? sized : &empty, sized->payload);
	else
		print_filter(&empty, sized->payload);
}

static void
answer_combination(bool unite)
{
	bf_filter	a = asked_about(BF_FILTER);
	bf_filter	b = asked_about(BF_FILTER);
	bool		match = bf_compare_params(&a.params, &b.params) == BF_MATCH;
	bf_params	params = match ? bf_combined_params(&a.params, &b.params) : a.params;

	if (!match)
		puts("refused");
	else if (a.params.m == 0 || b.params.m == 0)
		print_of_unsized(&a, &b, &params, unite);
	else if (!unite && (a.sparse || b.sparse))
		print_common(&params, a.sparse ? &a : &b, a.sparse ? &b : &a);
	else if (!a.sparse || !b.sparse || !print_united_hashes(&params, &a, &b))
		print_bits(&params, &a, &b, unite ? bf_or : bf_and);
	release(&a);
	release(&b);
}

static void
print_folded(const bf_filter *filter, uint64_t m, float rate)
{
	bf_filter	folded = *filter;
	uint8_t    *bits;

	folded.params.m = m;
	folded.params.rate = rate;
	folded.sparse = filter->sparse && filter->nhashes <= bf_sparse_limit(&folded.params);
	if (folded.sparse)
		print_filter(&folded, filter->payload);
	else if (!filter->sparse && !bf_folds_to(&filter->params, m))
		puts("refused");
	else
	{
		bits = bits_at(filter, m);
		print_filter(&folded, bits);
		free(bits);
	}
}

static void
answer_fold(void)
{
	bf_filter	filter = asked_about(BF_FILTER);

	print_folded(&filter, number(), filter.params.rate);
	release(&filter);
}

static void
answer_fold_like(void)
{
	bf_filter	filter = asked_about(BF_FILTER);
	bf_filter	like = asked_about(BF_FILTER);
	bf_mismatch mismatch = bf_compare_params(&filter.params, &like.params);

	if (mismatch != BF_MATCH && mismatch != BF_MISMATCH_SIZE)
		puts("refused");
	else if (like.params.m == 0)
		print_filter(&filter, filter.payload);
	else
	{
		if (filter.params.m == 0)
		{
			filter.params = like.params;
			filter.params.element_class = BF_CLASS_NONE;
		}
		print_folded(&filter, like.params.m, like.params.rate);
	}
	release(&filter);
	release(&like);
}

static void
answer(const char *question)
{
	if (strcmp(question, "hash") == 0)
		answer_hash();
	else if (strcmp(question, "size") == 0)
		answer_size();
	else if (strcmp(question, "build") == 0 || strcmp(question, "series") == 0)
		answer_build(strcmp(question, "series") == 0);
	else if (strcmp(question, "read") == 0)
		answer_read(BF_FILTER);
	else if (strcmp(question, "measure") == 0)
		answer_measure();
	else if (strcmp(question, "union") == 0 || strcmp(question, "intersection") == 0)
		answer_combination(strcmp(question, "union") == 0);
	else if (strcmp(question, "fold") == 0)
		answer_fold();
	else if (strcmp(question, "fold_like") == 0)
		answer_fold_like();
	else if (!answer_about_counters(question))
		abort();
}

int
main(void)
{
	static char line[1 << 20];

	while (fgets(line, sizeof(line), stdin) != NULL)
	{
		answer(strtok(line, " \n"));
		fflush(stdout);
	}
	return 0;
}
