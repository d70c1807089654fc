/*
 * answer_counters.c
 *		Answers questions about counters by the core alone.
 *
 *	counter LAYOUT RATE ITEMS WIDTH SEED CLASS CONTENTS [BYTES NUMBER]...
 *										elements with their times or levels
 *	read_counter COUNTER				the same, or why not
 *	numbers COUNTER BYTES...			what the elements read
 *	measure_counter COUNTER				cardinality, rate, and total of counts
 *	sum COUNTER COUNTER, difference, greater, lesser
 *										or refused, as those below
 *	add COUNTER CLASS BYTES NUMBER, remove, raise
 *	decay COUNTER NUMBER
 *	at_least COUNTER NUMBER				a filter
 *
 * CONTENTS is counts or levels.  A change of an element is the combination with
 * a counter of this element alone.
 */
#include "answer.h"

#include "bulk.h"
#include "compatible.h"
#include "dense.h"
#include "estimate.h"
#include "hash.h"
#include "number_bulk.h"
#include "probe.h"
#include "stream.h"

/* In the order of bf_combination. */
static const char *const combinations[] = {"sum", "difference", "greater", "lesser"};
static const char *const changes[] = {"add", "remove", "raise"};

#define LENGTH(array)	(sizeof(array) / sizeof((array)[0]))

static bool
is_empty(const bf_filter *counter)
{
	return counter->sparse && counter->nhashes == 0;
}

static uint32_t
limit_of(const bf_filter *counter)
{
	return bf_cell_limit(counter->params.cell_bits);
}

/* A counter or filter with a payload of zeros, to release. */
static bf_filter
new_counter(const bf_params *params, bool levels, bool sparse, uint64_t nhashes)
{
	bf_filter	counter = {.params = *params, .levels = levels, .sparse = sparse, .nhashes = nhashes};

	counter.payload = (uint8_t *) allocate(bf_encoded_size(&counter)) + BF_HEADER_SIZE;
	return counter;
}

static uint8_t *
payload_of(const bf_filter *counter)
{
	return (uint8_t *) counter->payload;
}

static void
set_element(const bf_filter *counter, uint64_t i, uint64_t hash, uint32_t times)
{
	bf_store64(payload_of(counter) + BF_HASH_BYTES * i, hash);
	bf_store16(payload_of(counter) + BF_HASH_BYTES * counter->nhashes + BF_NUMBER_BYTES * i, (uint16_t) times);
}

/* Keeps the hashes, of which only the first count are used. */
static void
shorten(bf_filter *counter, uint64_t count)
{
	memmove(payload_of(counter) + BF_HASH_BYTES * count,
			counter->payload + BF_HASH_BYTES * counter->nhashes, BF_NUMBER_BYTES * count);
	counter->nhashes = count;
}

/* Replaces a sparse counter or filter that has too many hashes by a dense one. */
static void
settle(bf_filter *counter, bool raises)
{
	bf_update	update = bf_update_of(&counter->params, raises ? BF_GREATER : BF_SUM);
	bf_filter	dense;

	if (counter->nhashes <= bf_sparse_limit(&counter->params))
		return;
	dense = new_counter(&counter->params, counter->levels, false, 0);
	bf_expand(counter, 0, counter->nhashes, &update, payload_of(&dense));
	release(counter);
	*counter = dense;
}

/* Building */

typedef struct pair
{
	uint64_t	hash;
	uint64_t	number;
} pair;

static int
compare_pairs(const void *a, const void *b)
{
	uint64_t	x = ((const pair *) a)->hash;
	uint64_t	y = ((const pair *) b)->hash;

	return (x > y) - (x < y);
}

/* Takes elements and their numbers; sorts them, and unites equal ones. */
static size_t
take_pairs(pair *pairs, uint64_t seed, bool levels)
{
	size_t		count = 0;
	size_t		kept = 0;

	for (char *digits; (digits = strtok(NULL, " \n")) != NULL; count++)
	{
		size_t		size;
		uint8_t    *bytes = bytes_of(digits, &size);

		pairs[count] = (pair) {bf_hash_bytes(bytes, size, seed), number()};
		free(bytes);
	}
	qsort(pairs, count, sizeof(*pairs), compare_pairs);
	for (size_t i = 0; i < count; i++)
	{
		if (kept == 0 || pairs[i].hash != pairs[kept - 1].hash)
			pairs[kept++] = pairs[i];
		else if (!levels)
			pairs[kept - 1].number += pairs[i].number;
		else if (pairs[i].number > pairs[kept - 1].number)
			pairs[kept - 1].number = pairs[i].number;
	}
	return kept;
}

static void
answer_counter(void)
{
	uint64_t	items;
	bf_params	params = take_params(&items);
	pair	   *pairs = allocate(sizeof(*pairs) * 100000);
	bf_filter	counter;
	size_t		count;
	bool		levels;

	params.cell_bits = (uint32_t) number();
	params.seed = number();
	params.element_class = (uint32_t) number();
	levels = strcmp(word(), "levels") == 0;
	count = take_pairs(pairs, params.seed, levels);
	if (items == 0 && count > 0)
		params.m = own_size(&params, count);
	counter = new_counter(&params, levels, true, count);
	for (size_t i = 0; i < count; i++)
	{
		uint32_t	limit = limit_of(&counter);

		set_element(&counter, i, pairs[i].hash, pairs[i].number < limit ? (uint32_t) pairs[i].number : limit);
	}
	settle(&counter, levels);
	print_filter(&counter, counter.payload);
	release(&counter);
	free(pairs);
}

/* Reading */

static void
answer_numbers(void)
{
	bf_filter	counter = asked_about(BF_COUNTER);

	for (char *digits; (digits = strtok(NULL, " \n")) != NULL;)
	{
		size_t		size;
		uint8_t    *bytes = bytes_of(digits, &size);

		printf("%u ", (unsigned) bf_read(&counter, bf_hash_bytes(bytes, size, counter.params.seed)));
		free(bytes);
	}
	putchar('\n');
	release(&counter);
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

static void
answer_measure_counter(void)
{
	bf_filter	counter = asked_about(BF_COUNTER);
	bf_shape	shape = bf_shape_of(&counter.params);
	double		cardinality = (double) counter.nhashes;
	double		rate = bf_current_rate_sparse(counter.nhashes);
	double		total = (double) sum_of(&counter);

	if (!counter.sparse)
	{
		uint8_t    *bits = allocate(counter.params.m / 8);
		bf_tally	tally = {.bits_set = 0};

		bf_threshold(bits, counter.payload, counter.params.m, counter.params.cell_bits, 1);
		bf_tally_add(&tally, &shape, bits, counter.params.m / 8);
		cardinality = bf_cardinality(&shape, bf_tally_bits(&tally, &shape));
		rate = bf_current_rate(&tally, &shape);
		total = bf_total(&shape, sum_of(&counter));
		free(bits);
	}
	printf("%.17g %.17g", cardinality, rate);
	if (!counter.levels)
		printf(" %.17g", total);
	putchar('\n');
	release(&counter);
}

/* Combining */

/* False if a difference does not exist. */
static bool
combine_sparse(const bf_filter *a, const bf_filter *b, bf_combination combination, bf_filter *result)
{
	bf_merge	merge = {.a = a, .b = b, .combination = combination};
	uint64_t	most = a->nhashes + b->nhashes;

	*result = new_counter(&result->params, result->levels, true, most);
	shorten(result, bf_merge_entries(&merge, payload_of(result), payload_of(result) + BF_HASH_BYTES * most, UINT64_MAX));
	if (!merge.misfit)
		settle(result, combination == BF_GREATER);
	return !merge.misfit;
}

static void
intersect_mixed(const bf_filter *sparse, const bf_filter *dense, bf_filter *result)
{
	uint64_t	count = 0;

	*result = new_counter(&result->params, result->levels, true, sparse->nhashes);
	for (uint64_t i = 0; i < sparse->nhashes; i++)
	{
		uint64_t	hash = bf_hash_at(sparse->payload, i);
		uint32_t	lesser = bf_combine_two(BF_LESSER, bf_number_of(sparse, i),
											bf_read(dense, hash), limit_of(dense));

		if (lesser > 0)
			set_element(result, count++, hash, lesser);
	}
	shorten(result, count);
}

/* Combines the elements of a sparse counter with a dense one. */
static bool
combine_elements(bf_filter *dense, const bf_filter *sparse, bf_combination combination)
{
	bf_shape	shape = bf_shape_of(&dense->params);

	for (uint64_t i = 0; i < sparse->nhashes; i++)
	{
		uint64_t	hash = bf_hash_at(sparse->payload, i);
		uint32_t	times = bf_number_of(sparse, i);
		uint32_t	read = bf_read(dense, hash);

		if (combination == BF_DIFFERENCE && read < times && read < limit_of(dense))
			return false;
		bf_numbers_change(payload_of(dense), &shape, dense->params.cell_bits, hash, combination, times);
	}
	return true;
}

/* result begins with the parameters and the kind of contents. */
static bool
combine(const bf_filter *a, const bf_filter *b, bf_combination combination, bf_filter *result)
{
	const bf_filter *first = a->sparse && combination != BF_DIFFERENCE ? b : a;
	const bf_filter *second = first == a ? b : a;
	bf_update	update = bf_update_of(&result->params, BF_SUM);

	if (a->sparse && b->sparse)
		return combine_sparse(a, b, combination, result);
	if (combination == BF_LESSER && (a->sparse || b->sparse))
	{
		intersect_mixed(second, first, result);
		return true;
	}
	*result = new_counter(&result->params, result->levels, false, 0);
	if (first->sparse)
		bf_expand(first, 0, first->nhashes, &update, payload_of(result));
	else
		memcpy(payload_of(result), first->payload, bf_payload_size(first));
	if (second->sparse)
		return combine_elements(result, second, combination);
	return bf_combine_numbers(payload_of(result), second->payload, bf_payload_size(second),
							  result->params.cell_bits, combination);
}

/* Where one of the two has no elements: the other one, or nothing. */
static void
print_with_empty(const bf_filter *a, const bf_filter *b, bf_combination combination, const bf_params *params)
{
	bf_filter	result = is_empty(b) == (combination == BF_LESSER) ? *b : *a;

	if (combination != BF_DIFFERENCE || b->params.m != 0)
		result.params = *params;
	print_filter(&result, result.payload);
}

static void
print_combination(const bf_filter *a, const bf_filter *b, bf_combination combination)
{
	bool		match = bf_compare_params(&a->params, &b->params) == BF_MATCH;
	bf_filter	result = {.params = match ? bf_combined_params(&a->params, &b->params) : a->params};

	if (!match)
		puts("refused");
	else if (is_empty(b) || (is_empty(a) && combination != BF_DIFFERENCE))
		print_with_empty(a, b, combination, &result.params);
	else if (combination == BF_DIFFERENCE && (a->levels || b->levels || a->params.m == 0))
		puts("refused");
	else
	{
		result.levels = a->levels || b->levels || combination == BF_GREATER || combination == BF_LESSER;
		if (combine(a, b, combination, &result))
			print_filter(&result, result.payload);
		else
			puts("refused");
		release(&result);
	}
}

static void
answer_numbers_combined(bf_combination combination)
{
	bf_filter	a = asked_about(BF_COUNTER);
	bf_filter	b = asked_about(BF_COUNTER);

	print_combination(&a, &b, combination);
	release(&a);
	release(&b);
}

/* Changing */

static void
answer_change(bf_combination combination)
{
	bf_filter	counter = asked_about(BF_COUNTER);
	uint32_t	element_class = (uint32_t) number();
	size_t		size;
	uint8_t    *bytes = bytes_of(word(), &size);
	uint64_t	times = number();
	bf_filter	element = new_counter(&counter.params, combination == BF_GREATER, true, 1);

	element.params.element_class = element_class;
	if (times < 1 || times > limit_of(&counter) || counter.params.m == 0)
		puts("refused");
	else
	{
		set_element(&element, 0, bf_hash_bytes(bytes, size, counter.params.seed), (uint32_t) times);
		print_combination(&counter, &element, combination);
	}
	free(bytes);
	release(&element);
	release(&counter);
}

static void
decay(bf_filter *counter, uint32_t by)
{
	uint64_t	count = 0;

	counter->levels = true;
	if (!counter->sparse)
	{
		bf_decay_numbers(payload_of(counter), bf_payload_size(counter), counter->params.cell_bits, by);
		return;
	}
	for (uint64_t i = 0; i < counter->nhashes; i++)
	{
		uint32_t	before = bf_number_of(counter, i);

		if (before > by)
			set_element(counter, count++, bf_hash_at(counter->payload, i), before - by);
	}
	shorten(counter, count);
}

static void
answer_decay(void)
{
	bf_filter	counter = asked_about(BF_COUNTER);
	uint64_t	by = number();

	if (by < 1 || by > limit_of(&counter))
		puts("refused");
	else
	{
		decay(&counter, (uint32_t) by);
		print_filter(&counter, counter.payload);
	}
	release(&counter);
}

/* Prints the filter of what reads a level or more. */
static void
print_at_least(const bf_filter *counter, uint32_t level)
{
	bf_params	params = counter->params;
	uint64_t	count = 0;
	bf_filter	filter;

	params.cell_bits = 1;
	filter = new_counter(&params, false, counter->sparse, counter->nhashes);
	if (!counter->sparse)
		bf_threshold(payload_of(&filter), counter->payload, params.m, counter->params.cell_bits, level);
	for (uint64_t i = 0; i < counter->nhashes; i++)
	{
		if (bf_number_of(counter, i) >= level)
			bf_store64(payload_of(&filter) + BF_HASH_BYTES * count++, bf_hash_at(counter->payload, i));
	}
	filter.nhashes = count;
	if (bf_is_empty(&filter))
		filter.params.element_class = BF_CLASS_NONE;
	settle(&filter, false);
	print_filter(&filter, filter.payload);
	release(&filter);
}

static void
answer_at_least(void)
{
	bf_filter	counter = asked_about(BF_COUNTER);
	uint64_t	level = number();

	if (level < 1 || level > limit_of(&counter))
		puts("refused");
	else
		print_at_least(&counter, (uint32_t) level);
	release(&counter);
}

static bool
answer_by_name(const char *question, const char *const *names, size_t count, void (*answer) (bf_combination))
{
	for (size_t i = 0; i < count; i++)
	{
		if (strcmp(question, names[i]) == 0)
		{
			answer((bf_combination) i);
			return true;
		}
	}
	return false;
}

bool
answer_about_counters(const char *question)
{
	if (strcmp(question, "counter") == 0)
		answer_counter();
	else if (strcmp(question, "read_counter") == 0)
		answer_read(BF_COUNTER);
	else if (strcmp(question, "numbers") == 0)
		answer_numbers();
	else if (strcmp(question, "measure_counter") == 0)
		answer_measure_counter();
	else if (strcmp(question, "decay") == 0)
		answer_decay();
	else if (strcmp(question, "at_least") == 0)
		answer_at_least();
	else
		return answer_by_name(question, combinations, LENGTH(combinations), answer_numbers_combined) ||
			answer_by_name(question, changes, LENGTH(changes), answer_change);
	return true;
}
