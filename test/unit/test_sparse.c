/*
 * test_sparse.c
 *		Searching and merging sparse filters and counters, against loops over all
 *		pairs.
 */
#include "probe.h"
#include "reference.h"
#include "sparse.h"
#include "tap.h"

#define MOST 48					/* hashes of a set */

static const uint32_t widths[] = {1, 4, 8, 16};

static const char operations[] = {[BF_SUM] = '+',[BF_DIFFERENCE] = '-',[BF_GREATER] = '>',[BF_LESSER] = '<'};

/* Sorted distinct hashes, their numbers, and the same as a filter. */
typedef struct hashes
{
	uint64_t	values[2 * MOST];
	uint32_t	numbers[2 * MOST];	/* all 1 in a Bloom filter */
	size_t		count;
	uint8_t    *memory;
	bf_filter	filter;
} hashes;

/* Bytes of a hash and its number. */
static size_t
entry_size(uint32_t cell_bits)
{
	return cell_bits == 1 ? 8 : 10;
}

static void
put_entries(uint8_t *payload, const hashes *set, uint32_t cell_bits)
{
	put_hashes(payload, set->values, set->count);
	if (cell_bits > 1)
		put_numbers(payload + 8 * set->count, set->numbers, set->count);
}

/* Encodes the hashes and numbers at any alignment. */
static void
put_filter(hashes *set, uint32_t cell_bits, uint64_t *state)
{
	size_t		offset = random_below(state, 8);

	set->memory = allocate(set->count * entry_size(cell_bits) + offset);
	put_entries(set->memory + offset, set, cell_bits);
	set->filter = (bf_filter) {.params = params_of(BF_BLOCKED, 3, 51200), .sparse = true,
		.nhashes = set->count, .payload = set->memory + offset};
	set->filter.params.cell_bits = cell_bits;
}

/* Small numbers, those near the limit, and any. */
static uint32_t
random_number(uint32_t cell_bits, uint64_t *state)
{
	uint32_t	limit = (1u << cell_bits) - 1;
	uint32_t	low = (uint32_t) random_below(state, 4);
	uint64_t	kind = random_below(state, 4);

	if (cell_bits == 1)
		return 1;
	return kind == 0 ? limit - low : kind == 1 ? 1 + low : 1 + (uint32_t) random_below(state, limit);
}

/*
 * Draws from a small range, so that sets overlap, and from both ends of the
 * 64-bit range.
 */
static void
fill(hashes *set, uint32_t cell_bits, size_t most, uint64_t range, uint64_t *state)
{
	set->count = random_below(state, most + 1);
	for (size_t i = 0; i < set->count; i++)
	{
		uint64_t	value = random_below(state, range);

		set->values[i] = value % 3 == 0 ? UINT64_MAX - value / 3 : value;
	}
	set->count = sort_hashes(set->values, set->count);
	for (size_t i = 0; i < set->count; i++)
		set->numbers[i] = random_number(cell_bits, state);
	put_filter(set, cell_bits, state);
}

/* The number of a hash; 0 if it is absent. */
static uint32_t
number_in(const hashes *set, uint64_t hash)
{
	for (size_t i = 0; i < set->count; i++)
	{
		if (set->values[i] == hash)
			return set->numbers[i];
	}
	return 0;
}

static void
compare_search(const hashes *set, uint64_t hash)
{
	const uint8_t *payload = set->filter.payload;
	uint32_t	number = number_in(set, hash);
	uint64_t	found = bf_sparse_find(payload, set->count, hash);
	uint64_t	below = 0;

	while (below < set->count && set->values[below] < hash)
		below++;
	each(bf_lower_bound(payload, set->count, hash) == below, "bound of %" PRIu64, hash);
	each(found == (number > 0 ? below : set->count), "search for %" PRIu64, hash);
	each(bf_read(&set->filter, hash) == number, "number of %" PRIu64, hash);
	each(bf_contains(&set->filter, hash) == (number > 0), "probe for %" PRIu64, hash);
}

static void
test_search(void)
{
	uint64_t	state = 1;

	for (int i = 0; i < 4000; i++)
	{
		hashes		set;

		fill(&set, widths[i % 4], MOST, 100, &state);
		for (uint64_t j = 0; j < 100; j++)
			compare_search(&set, j < 90 ? j : UINT64_MAX - (j - 90));
		for (size_t j = 0; j < set.count; j++)
			each(bf_hash_at(set.filter.payload, j) == set.values[j] && bf_number_of(&set.filter, j) == set.numbers[j],
				 "hash %zu and its number", j);
		free(set.memory);
	}
	passed("searching filters, and the numbers of counters");
}

/*
 * The range lies within the array, and within four standard deviations around
 * the hash.
 */
static void
test_range_bounds(void)
{
	static const uint64_t counts[] = {1, 2, 3, 4, 5, 15, 16, 100, 1000, 99999, (1 << 24), (1 << 25) - 1};
	uint64_t	state = 3;

	for (int i = 0; i < 12; i++)
	{
		for (int j = 0; j < 1000; j++)
		{
			uint64_t	count = counts[i];
			uint64_t	hash = j < 10 ? (uint64_t) j : j < 20 ? UINT64_MAX - (uint64_t) j + 10 : next_random(&state);
			uint64_t	from,
						to;

			bf_expected_range(count, hash, &from, &to);
			each(from < to && to <= count && (double) (to - from) <= 4 * sqrt((double) count) + 3,
				 "hash %" PRIu64 " of %" PRIu64 ": from %" PRIu64 " to %" PRIu64, hash, count, from, to);
		}
	}
	passed("the expected range is a small part of the array");
}

/* Fewer than one random hash in 16,000 is outside its range. */
static void
test_range(void)
{
	enum {COUNT = 5000};
	uint64_t	state = 4;
	uint64_t   *values = allocate(COUNT * sizeof(*values));
	uint64_t	total = 0;
	uint64_t	outside = 0;

	for (int i = 0; i < 400; i++)
	{
		size_t		count = 1 + random_below(&state, COUNT);

		for (size_t j = 0; j < count; j++)
			values[j] = next_random(&state);
		count = sort_hashes(values, count);
		for (size_t j = 0; j < count; j++)
		{
			uint64_t	from,
						to;

			bf_expected_range(count, values[j], &from, &to);
			outside += j < from || j >= to;
		}
		total += count;
	}
	free(values);
	ok((double) outside < 2e-4 * (double) total, "%" PRIu64 " of %" PRIu64
	   " random hashes stand outside of their expected range", outside, total);
}

/*
 * The expected combination, by a search for each candidate. False if a
 * difference does not exist.
 */
static bool
expect(const hashes *a, const hashes *b, char operation, uint32_t limit, hashes *wanted)
{
	uint64_t	all[2 * MOST];
	size_t		count;

	memcpy(all, a->values, sizeof(*all) * a->count);
	memcpy(all + a->count, b->values, sizeof(*all) * b->count);
	count = sort_hashes(all, a->count + b->count);
	wanted->count = 0;
	for (size_t i = 0; i < count; i++)
	{
		int64_t		number = ref_combined(operation, number_in(a, all[i]), number_in(b, all[i]), limit);

		if (number < 0)
			return false;
		if (number == 0)
			continue;
		wanted->values[wanted->count] = all[i];
		wanted->numbers[wanted->count++] = (uint32_t) number;
	}
	return true;
}

/* Counts in steps of at most max hashes; returns how many remain. */
static uint64_t
count_entries(bf_merge merge, uint64_t max, bool *misfit)
{
	uint64_t	count = 0;

	while (!bf_merge_done(&merge))
		count += bf_merge_entries(&merge, NULL, NULL, max);
	each(bf_merge_entries(&merge, NULL, NULL, max) == 0, "more after the end");
	*misfit = merge.misfit;
	return count;
}

/* Counts, then merges in steps into memory of the exact size at any alignment. */
static void
compare_merge(const hashes *a, const hashes *b, bf_combination combination, uint64_t max)
{
	bf_merge	merge = {.a = &a->filter, .b = &b->filter, .combination = combination};
	uint32_t	cell_bits = a->filter.params.cell_bits;
	size_t		entry = entry_size(cell_bits);
	hashes		wanted;
	bool		exists = expect(a, b, operations[combination], (1u << cell_bits) - 1, &wanted);
	bool		misfit;
	uint64_t	counted = count_entries(merge, max, &misfit);
	size_t		offset = max % 3;
	uint8_t    *memory = allocate(entry * counted + offset);
	uint8_t    *out = memory + offset;
	uint8_t    *payload = allocate(entry * wanted.count);
	uint64_t	got = 0;

	each(misfit == !exists, "%zu %c %zu hashes fit or not", a->count, operations[combination], b->count);
	while (!bf_merge_done(&merge))
	{
		uint64_t	read = merge.i + merge.j;
		uint64_t	some = bf_merge_entries(&merge, out + 8 * got,
											cell_bits == 1 ? NULL : out + 8 * counted + 2 * got, max);

		got += some;
		if (!each(some <= max && merge.i + merge.j > read && merge.i + merge.j - read <= 2 * max,
				  "a call of at most %" PRIu64 " steps", max))
			break;
	}
	each(got == counted && merge.misfit == misfit, "%" PRIu64 " counted, %" PRIu64 " written", counted, got);
	if (exists)
	{
		put_entries(payload, &wanted, cell_bits);
		each(got == wanted.count && memcmp(out, payload, entry * got) == 0,
			 "%zu %c %zu hashes of %u bits in steps of %" PRIu64 ": %" PRIu64 ", wanted %zu", a->count,
			 operations[combination], b->count, cell_bits, max, got, wanted.count);
	}
	free(memory);
	free(payload);
}

/* Leaves in b only what can be subtracted from a, and much of it. */
static void
make_fit(hashes *b, const hashes *a, uint64_t *state)
{
	size_t		kept = 0;

	for (size_t i = 0; i < b->count; i++)
	{
		uint32_t	most = number_in(a, b->values[i]);

		if (most == 0)
			continue;
		b->values[kept] = b->values[i];
		b->numbers[kept++] = random_below(state, 2) || b->numbers[i] > most ? most : b->numbers[i];
	}
	b->count = kept;
	free(b->memory);
	put_filter(b, b->filter.params.cell_bits, state);
}

static void
test_merge(bf_combination combination, uint32_t cell_bits, uint64_t *state)
{
	for (int i = 0; i < 150; i++)
	{
		hashes		a,
					b;

		fill(&a, cell_bits, i % 5 == 0 ? 2 : MOST, i % 2 ? 60 : 1000, state);
		fill(&b, cell_bits, i % 7 == 0 ? 2 : MOST, i % 2 ? 60 : 1000, state);
		if (combination == BF_DIFFERENCE && i % 4 != 0)
			make_fit(&b, &a, state);
		for (uint64_t max = 1; max <= a.count + b.count + 1; max++)
			compare_merge(&a, &b, combination, max);
		compare_merge(&a, &b, combination, UINT64_MAX);
		compare_merge(&a, &a, combination, 3);
		free(a.memory);
		free(b.memory);
	}
}

static void
test_merges(void)
{
	uint64_t	state = 2;

	for (bf_combination op = BF_SUM; op <= BF_LESSER; op++)
	{
		/* bits have no difference */
		for (int i = op == BF_DIFFERENCE ? 1 : 0; i < 4; i++)
			test_merge(op, widths[i], &state);
	}
	passed("sum, difference, union and intersection, in steps of every size");
}

/* Merges two counters of 4 bits at once, and returns how many hashes remain. */
static uint64_t
merge_known(const hashes *a, const hashes *b, bf_combination combination, bool *misfit, bf_filter *result,
			uint8_t *out)
{
	bf_merge	merge = {.a = &a->filter, .b = &b->filter, .combination = combination};

	*result = a->filter;
	result->payload = out;
	result->nhashes = count_entries(merge, UINT64_MAX, misfit);
	return bf_merge_entries(&merge, out, out + 8 * result->nhashes, UINT64_MAX);
}

static hashes
known(const uint64_t *values, const uint32_t *numbers, size_t count)
{
	uint64_t	state = 3;
	hashes		set = {.count = count};

	memcpy(set.values, values, sizeof(*values) * count);
	memcpy(set.numbers, numbers, sizeof(*numbers) * count);
	put_filter(&set, 4, &state);
	return set;
}

/* One element of each kind, with the results worked out by hand. */
static void
test_known(void)
{
	static const uint64_t values[] = {10, 20, 30};
	hashes		a = known(values, (uint32_t[]) {15, 3, 15}, 3);
	hashes		full = known(values, (uint32_t[]) {15, 15, 15}, 3);
	hashes		three = known(values + 1, (uint32_t[]) {3}, 1);
	hashes		fourteen = known(values + 1, (uint32_t[]) {14}, 1);
	hashes		fifteen = known(values + 1, (uint32_t[]) {15}, 1);
	bf_filter	result;
	uint8_t		out[40];
	bool		misfit;

	is(merge_known(&a, &three, BF_DIFFERENCE, &misfit, &result, out), 2, "an element that falls to 0 leaves");
	ok(!misfit && bf_hash_at(out, 0) == 10 && bf_hash_at(out, 1) == 30 && bf_number_of(&result, 0) == 15 &&
	   bf_number_of(&result, 1) == 15, "numbers at the limit stay");
	is(merge_known(&a, &three, BF_SUM, &misfit, &result, out), 3, "a sum has all elements");
	is(bf_number_of(&result, 1), 6, "with their sum");
	merge_known(&a, &fifteen, BF_SUM, &misfit, &result, out);
	is(bf_number_of(&result, 1), 15, "up to the limit");
	merge_known(&a, &fifteen, BF_DIFFERENCE, &misfit, &result, out);
	ok(misfit, "a limit does not fit into less");
	merge_known(&three, &a, BF_DIFFERENCE, &misfit, &result, out);
	ok(misfit, "nor what the first lacks");
	is(merge_known(&full, &fourteen, BF_DIFFERENCE, &misfit, &result, out), 3, "anything fits into the limit");
	ok(!misfit && bf_number_of(&result, 1) == 15, "which stays");
	free(a.memory);
	free(full.memory);
	free(three.memory);
	free(fourteen.memory);
	free(fifteen.memory);
}

int
main(void)
{
	test_search();
	test_range_bounds();
	test_range();
	test_merges();
	test_known();
	return done();
}
