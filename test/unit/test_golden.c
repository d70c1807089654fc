/*
 * test_golden.c
 *		The core against the golden vectors: the same bytes and the same answers on
 *		every processor.
 *
 * ../golden/table.py writes the vectors as tables.  What the extension does
 * besides, from SQL's elements to their canonical bytes and to memory that
 * grows, is not tested here.
 */
#include <math.h>

#include "bulk.h"
#include "dense.h"
#include "estimate.h"
#include "format.h"
#include "hash.h"
#include "number_bulk.h"
#include "probe.h"
#include "reference.h"
#include "tap.h"

typedef struct golden_bytes
{
	bool		counter;
	const char *data;
	uint64_t	size;
} golden_bytes;

typedef struct golden_hash
{
	const char *canonical;
	uint64_t	size;
	uint64_t	seed;
	uint64_t	hash;
} golden_hash;

typedef struct golden_size
{
	bf_layout	layout;
	double		rate;
	uint64_t	items;
	uint64_t	k;
	uint64_t	m;
	bool		own;			/* sizes itself: m is a power of two */
} golden_size;

typedef struct golden_read
{
	uint64_t	hash;
	uint32_t	number;
} golden_read;

/* A filter or counter, its elements, and what it answers. */
typedef struct golden_set
{
	const char *name;
	golden_bytes bytes;
	uint64_t	first;			/* numbers from this one on, if hashes is NULL */
	const uint64_t *hashes;
	uint64_t	count;
	const uint32_t *numbers;	/* they start again at their end */
	uint64_t	nnumbers;
	golden_read reads[45];
	uint64_t	nreads;
	double		cardinality;
	double		rate;
	double		total;			/* -1: none */
} golden_set;

typedef struct golden_refusal
{
	const char *why;
	golden_bytes bytes;
} golden_refusal;

/* A bf_combination of two operands, or a change of one. */
enum
{
	FOLD = BF_LESSER + 1, DECAY, AT_LEAST
};

typedef struct golden_operation
{
	int			operator;
	uint32_t	number;
	golden_bytes a;
	golden_bytes b;
	golden_bytes result;
} golden_operation;

#include "golden_table.h"

#define LENGTH(array)	(sizeof(array) / sizeof((array)[0]))

/* Decodes a copy, whose end the sanitizer guards.  The caller releases it. */
static bf_status
open_bytes(const golden_bytes *bytes, bf_filter *filter)
{
	uint8_t    *copy = allocate(bytes->size);
	bf_status	status;

	memcpy(copy, bytes->data, bytes->size);
	status = bf_decode(copy, bytes->size, bytes->counter ? BF_COUNTER : BF_FILTER, BF_VALUE, filter);
	if (status.error == BF_OK && filter->sparse)
		status = bf_check_hashes(filter, 0, filter->nhashes);
	if (status.error != BF_OK)
		free(copy);
	return status;
}

static void
release(bf_filter *filter)
{
	free((uint8_t *) filter->payload - BF_HEADER_SIZE);
}

static bool
near(double got, double wanted)
{
	return got == wanted || fabs(got - wanted) <= 1e-9 * fabs(wanted);
}

static void
test_hashes(void)
{
	for (size_t i = 0; i < LENGTH(hashes); i++)
	{
		const golden_hash *vector = &hashes[i];
		const uint8_t *bytes = (const uint8_t *) vector->canonical;

		each(bf_hash_bytes(bytes, vector->size, vector->seed) == vector->hash, "hash %zu", i);
		if (vector->size == 8)
			each(bf_hash_word(bf_load64(bytes), vector->seed) == vector->hash, "hash %zu of a word", i);
	}
	passed("hashes of canonical bytes");
}

/* The m of a filter that sizes itself. */
static uint64_t
own_size(bf_solutions *solutions, const golden_size *vector)
{
	uint64_t	m = BF_BLOCK_BITS;

	while (bf_capacity(solutions, vector->layout, (uint32_t) vector->k, (float) vector->rate, m) < vector->items)
		m *= 2;
	return m;
}

static void
test_sizes(void)
{
	static bf_solutions solutions;

	for (size_t i = 0; i < LENGTH(sizes); i++)
	{
		const golden_size *vector = &sizes[i];
		float		rate = (float) vector->rate;
		uint32_t	k = bf_k_for_rate(vector->layout, rate);
		uint64_t	m = vector->own ? own_size(&solutions, vector) :
			bf_bits_for(&solutions, vector->layout, k, rate, vector->items);

		each(k == vector->k && m == vector->m, "%" PRIu64 " elements at %g: k %u, m %" PRIu64, vector->items,
			 vector->rate, k, m);
	}
	passed("k and m");
}

static void
check_header(const golden_set *set, const bf_filter *filter)
{
	uint8_t		header[BF_HEADER_SIZE];

	bf_encode_header(filter, header);
	each(memcmp(header, set->bytes.data, BF_HEADER_SIZE) == 0 && bf_encoded_size(filter) == set->bytes.size,
		 "%s is written otherwise", set->name);
}

static uint64_t
element_hash(const golden_set *set, uint64_t i, uint64_t seed)
{
	return set->hashes != NULL ? set->hashes[i] : bf_hash_word(set->first + i, seed);
}

/* The elements are in it, and make its payload if it is dense. */
static void
check_elements(const golden_set *set, const bf_filter *filter)
{
	bf_update	update = bf_update_of(&filter->params, filter->levels ? BF_GREATER : BF_SUM);
	uint8_t    *payload = allocate(bf_payload_size(filter));
	uint32_t	limit = bf_cell_limit(filter->params.cell_bits);

	for (uint64_t i = 0; i < set->count; i++)
	{
		uint64_t	hash = element_hash(set, i, filter->params.seed);
		uint32_t	number = set->numbers[i % set->nnumbers];

		each(bf_contains(filter, hash), "%s lacks element %" PRIu64, set->name, i);
		if (!filter->sparse)
			bf_dense_add(payload, &update, hash, number < limit ? number : limit);
	}
	if (set->count > 0 && !filter->sparse)
		each(memcmp(payload, filter->payload, bf_payload_size(filter)) == 0, "%s is built otherwise", set->name);
	free(payload);
}

static uint64_t
sum_of(const bf_filter *counter)
{
	uint64_t	sum = 0;

	if (!counter->sparse)
		return bf_sum_of_numbers(counter->payload, bf_payload_size(counter), counter->params.cell_bits);
	for (uint64_t i = 0; i < counter->nhashes; i++)
		sum += bf_number_of(counter, i);
	return sum;
}

/* The bits of a dense filter, or those of the positions of a counter that are not 0. */
static uint8_t *
bits_of(const golden_set *set, const bf_filter *filter)
{
	uint8_t    *bits = allocate(filter->params.m / 8);

	if (set->bytes.counter)
		bf_threshold(bits, filter->payload, filter->params.m, filter->params.cell_bits, 1);
	else
		memcpy(bits, filter->payload, filter->params.m / 8);
	return bits;
}

static void
check_estimates(const golden_set *set, const bf_filter *filter)
{
	bf_shape	shape = bf_shape_of(&filter->params);
	double		cardinality = (double) filter->nhashes;
	double		rate = bf_current_rate_sparse(filter->nhashes);
	double		total = set->total < 0 ? set->total : (double) sum_of(filter);

	if (!filter->sparse)
	{
		uint8_t    *bits = bits_of(set, filter);
		bf_tally	tally = {.bits_set = 0};

		bf_tally_add(&tally, &shape, bits, filter->params.m / 8);
		each(bf_tally_bits(&tally, &shape) == bf_popcount(bits, filter->params.m / 8), "%s: bits set", set->name);
		cardinality = bf_cardinality(&shape, bf_tally_bits(&tally, &shape));
		rate = bf_current_rate(&tally, &shape);
		total = set->total < 0 ? set->total : bf_total(&shape, sum_of(filter));
		free(bits);
	}
	each(near(cardinality, set->cardinality), "%s: cardinality %.17g", set->name, cardinality);
	each(near(rate, set->rate), "%s: rate %.17g", set->name, rate);
	each(near(total, set->total), "%s: total %.17g", set->name, total);
}

static void
test_sets(void)
{
	for (size_t i = 0; i < LENGTH(sets); i++)
	{
		const golden_set *set = &sets[i];
		bf_filter	filter;

		if (!each(open_bytes(&set->bytes, &filter).error == BF_OK, "%s is refused", set->name))
			continue;
		check_header(set, &filter);
		check_elements(set, &filter);
		check_estimates(set, &filter);
		for (uint64_t j = 0; j < set->nreads; j++)
			each(bf_read(&filter, set->reads[j].hash) == set->reads[j].number, "%s: read %" PRIu64, set->name, j);
		release(&filter);
	}
	passed("filters and counters: bytes, elements, estimates, and what they read");
}

static void
test_refusals(void)
{
	for (size_t i = 0; i < LENGTH(refusals); i++)
	{
		bf_filter	filter;

		if (!each(open_bytes(&refusals[i].bytes, &filter).error != BF_OK, "accepted: %s", refusals[i].why))
			release(&filter);
	}
	passed("bytes that a reader must refuse");
}

/* A payload of the given parameters, with the elements of a sparse or folded filter. */
static uint8_t *
dense_image(const bf_filter *filter, const bf_params *params, bf_combination combination)
{
	bf_filter	dense = {.params = *params};
	bf_update	update = bf_update_of(params, combination);
	uint8_t    *image = allocate(bf_payload_size(&dense));

	if (filter->sparse)
		bf_expand(filter, 0, filter->nhashes, &update, image);
	else if (filter->params.m == params->m)
		memcpy(image, filter->payload, bf_payload_size(&dense));
	else
		bf_fold_cells(image, filter->payload, params->m / BF_BLOCK_BITS, filter->params.m / params->m,
					  params->cell_bits, combination);
	return image;
}

static void
combine_elements(uint8_t *image, const bf_params *params, const bf_filter *b, bf_combination combination)
{
	bf_shape	shape = bf_shape_of(params);

	for (uint64_t i = 0; i < b->nhashes; i++)
	{
		uint64_t	hash = bf_hash_at(b->payload, i);

		bf_cells_change(image, &shape, params->cell_bits, hash, combination, bf_number_of(b, i));
	}
}

/* The payload of a dense result. */
static uint8_t *
dense_result(const golden_operation *operation, const bf_filter *a, const bf_filter *b, const bf_params *params)
{
	bf_combination combination = (bf_combination) operation->operator;
	bf_filter	dense = {.params = *params};
	uint64_t	size = bf_payload_size(&dense);
	uint8_t    *image;

	if (operation->operator == AT_LEAST)
	{
		image = allocate(size);
		bf_threshold(image, a->payload, params->m, a->params.cell_bits, operation->number);
		return image;
	}
	image = dense_image(a, params, combination == BF_GREATER ? BF_GREATER : BF_SUM);
	if (operation->operator == DECAY)
		bf_decay_numbers(image, size, params->cell_bits, operation->number);
	else if (operation->operator == FOLD)
		return image;
	else if (b->sparse)
		combine_elements(image, params, b, combination);
	else
		each(bf_combine_cells(image, b->payload, size, params->cell_bits, combination), "no difference");
	return image;
}

/* The payload of two sparse operands, in memory for as many elements as both have. */
static uint8_t *
sparse_result(bf_combination combination, const bf_filter *a, const bf_filter *b, const bf_filter *wanted)
{
	uint64_t	most = a->nhashes + b->nhashes;
	uint8_t    *payload = allocate((BF_HASH_BYTES + BF_NUMBER_BYTES) * (most + wanted->nhashes));
	uint8_t    *numbers = payload + BF_HASH_BYTES * most;
	bf_merge	merge = {.a = a, .b = b, .combination = combination};
	uint64_t	count = bf_merge_entries(&merge, payload, numbers, UINT64_MAX);

	each(count == wanted->nhashes && !merge.misfit, "%" PRIu64 " hashes", count);
	memmove(payload + BF_HASH_BYTES * wanted->nhashes, numbers, BF_NUMBER_BYTES * wanted->nhashes);
	return payload;
}

static void
test_operations(void)
{
	for (size_t i = 0; i < LENGTH(operations); i++)
	{
		const golden_operation *operation = &operations[i];
		bf_filter	a,
					b,
					wanted;
		uint8_t    *payload;

		if (open_bytes(&operation->a, &a).error != BF_OK || open_bytes(&operation->b, &b).error != BF_OK ||
			open_bytes(&operation->result, &wanted).error != BF_OK)
			abort();
		payload = wanted.sparse ? sparse_result((bf_combination) operation->operator, &a, &b, &wanted) :
			dense_result(operation, &a, &b, &wanted.params);
		each(memcmp(payload, wanted.payload, bf_payload_size(&wanted)) == 0, "operation %zu, operator %d", i,
			 operation->operator);
		free(payload);
		release(&a);
		release(&b);
		release(&wanted);
	}
	passed("unions, sums, differences, folds, decay and thresholds");
}

int
main(void)
{
	test_hashes();
	test_sizes();
	test_sets();
	test_refusals();
	test_operations();
	return done();
}
