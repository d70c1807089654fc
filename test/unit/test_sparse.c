/*
 * test_sparse.c
 *		Searching and merging sorted hashes, against loops over all pairs.
 */
#include "probe.h"
#include "reference.h"
#include "sparse.h"
#include "tap.h"

#define MOST 48					/* hashes of a set */

/* Sorted distinct hashes, and the same as a payload that is not aligned. */
typedef struct hashes
{
	uint64_t	values[2 * MOST];
	uint32_t	numbers[2 * MOST];	/* of a counter */
	size_t		count;
	uint8_t    *memory;
	const uint8_t *payload;
} hashes;

static void
put_payload(hashes *set, size_t offset)
{
	set->memory = allocate(set->count * 8 + offset);
	put_hashes(set->memory + offset, set->values, set->count);
	set->payload = set->memory + offset;
}

/*
 * Draws from a small range, so that sets overlap, and from both ends of the
 * 64-bit range.
 */
static void
fill(hashes *set, size_t most, uint64_t range, uint64_t *state)
{
	set->count = random_below(state, most + 1);
	for (size_t i = 0; i < set->count; i++)
	{
		uint64_t	value = random_below(state, range);

		set->values[i] = value % 3 == 0 ? UINT64_MAX - value / 3 : value;
	}
	set->count = sort_hashes(set->values, set->count);
	put_payload(set, random_below(state, 8));
}

static bool
is_in(const hashes *set, uint64_t hash)
{
	for (size_t i = 0; i < set->count; i++)
	{
		if (set->values[i] == hash)
			return true;
	}
	return false;
}

/* The same with random numbers up to limit, so a payload of a counter. */
static void
fill_counter(hashes *set, size_t most, uint64_t range, uint32_t limit, uint64_t *state)
{
	size_t		offset = random_below(state, 8);

	fill(set, most, range, state);
	free(set->memory);
	for (size_t i = 0; i < set->count; i++)
	{
		uint32_t	low = (uint32_t) random_below(state, 4);
		uint64_t	kind = random_below(state, 4);

		set->numbers[i] = kind == 0 ? limit - low : kind == 1 ? 1 + low : 1 + (uint32_t) random_below(state, limit);
	}
	set->memory = allocate(set->count * 10 + offset);
	put_hashes(set->memory + offset, set->values, set->count);
	put_numbers(set->memory + offset + 8 * set->count, set->numbers, set->count);
	set->payload = set->memory + offset;
}

/* The number of a hash in a counter; 0 if it is absent. */
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
test_search(void)
{
	uint64_t	state = 1;

	for (int i = 0; i < 2000; i++)
	{
		hashes		set;

		fill(&set, MOST, 100, &state);
		for (uint64_t j = 0; j < 40; j++)
		{
			uint64_t	hash = j < 20 ? j : j < 30 ? UINT64_MAX - (j - 20) : random_below(&state, 100);
			uint64_t	below = 0;
			bf_filter	filter = {.params = params_of(BF_BLOCKED, 3, 51200), .sparse = true,
				.nhashes = set.count, .payload = set.payload};

			while (below < set.count && set.values[below] < hash)
				below++;
			each(bf_lower_bound(set.payload, set.count, hash) == below, "bound of %" PRIu64, hash);
			each((bf_sparse_find(set.payload, set.count, hash) < set.count) == is_in(&set, hash),
				 "search for %" PRIu64, hash);
			each(bf_contains(&filter, hash) == is_in(&set, hash), "probe for %" PRIu64, hash);
		}
		for (size_t j = 0; j < set.count; j++)
			each(bf_hash_at(set.payload, j) == set.values[j], "hash at %zu", j);
		free(set.memory);
	}
	passed("searching");
}

static void
test_search_counters(void)
{
	uint64_t	state = 5;

	for (int i = 0; i < 2000; i++)
	{
		hashes		set;
		bf_filter	counter = {.params = params_of(BF_BLOCKED, 3, 51200), .sparse = true};

		counter.params.counter_bits = 4u << i % 3;
		fill_counter(&set, MOST, 100, (1u << counter.params.counter_bits) - 1, &state);
		counter.nhashes = set.count;
		counter.payload = set.payload;
		for (uint64_t j = 0; j < 100; j++)
		{
			uint64_t	hash = j < 90 ? j : UINT64_MAX - (j - 90);

			each(bf_read(&counter, hash) == number_in(&set, hash), "number of %" PRIu64, hash);
			each(bf_contains(&counter, hash) == is_in(&set, hash), "probe for %" PRIu64, hash);
		}
		for (size_t j = 0; j < set.count; j++)
			each(bf_number_of(set.payload, set.count, j) == set.numbers[j], "number at %zu", j);
		free(set.memory);
	}
	passed("numbers of sparse counters");
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

typedef uint64_t (*merge_function) (bf_merge *, uint8_t *, uint64_t);

/* The expected result of a merge, by a check of each candidate. */
static size_t
expect(const hashes *a, const hashes *b, bool both, uint64_t *wanted)
{
	size_t		count = 0;

	for (size_t i = 0; i < a->count; i++)
	{
		if (!both || is_in(b, a->values[i]))
			wanted[count++] = a->values[i];
	}
	for (size_t i = 0; i < b->count && !both; i++)
		wanted[count++] = b->values[i];
	return sort_hashes(wanted, count);
}

/* Merges in steps into memory of the exact size, then only counts. */
static void
compare_merge(const hashes *a, const hashes *b, merge_function merge_some, uint64_t max,
			  const uint64_t *wanted, size_t count)
{
	bf_merge	merge = {.a = a->payload, .b = b->payload, .acount = a->count, .bcount = b->count};
	bf_merge	counting = merge;
	uint8_t    *out = allocate(count * 8 + 1);
	uint8_t    *payload = allocate(count * 8);
	size_t		steps = a->count + b->count;
	size_t		got = 0;
	size_t		counted = 0;

	for (size_t calls = 0; !bf_merge_done(&merge) && calls <= steps; calls++)
	{
		uint64_t	read = merge.i + merge.j;
		uint64_t	some = merge_some(&merge, out + 1 + got * 8, max);

		got += some;
		each(some <= max && merge.i + merge.j > read && merge.i + merge.j - read <= 2 * max,
			 "a call of at most %" PRIu64 " steps", max);
	}
	each(bf_merge_done(&merge), "not done");
	put_hashes(payload, wanted, count);
	each(got == count && memcmp(out + 1, payload, count * 8) == 0,
		 "%zu and %zu hashes in steps of %" PRIu64 ": %zu, wanted %zu",
		 a->count, b->count, max, got, count);
	each(merge_some(&merge, NULL, max) == 0, "more after the end");

	while (!bf_merge_done(&counting))
		counted += merge_some(&counting, NULL, max);
	each(counted == count, "counted %zu, wanted %zu", counted, count);
	free(out);
	free(payload);
}

static void
test_merge(merge_function merge, bool both, const char *name)
{
	uint64_t	state = 2;
	uint64_t	wanted[2 * MOST];

	for (int i = 0; i < 600; i++)
	{
		hashes		a,
					b;
		size_t		count;

		fill(&a, i % 5 == 0 ? 2 : MOST, i % 2 ? 60 : 1000, &state);
		fill(&b, i % 7 == 0 ? 2 : MOST, i % 2 ? 60 : 1000, &state);
		count = expect(&a, &b, both, wanted);
		for (uint64_t max = 1; max <= a.count + b.count + 1; max++)
			compare_merge(&a, &b, merge, max, wanted, count);
		compare_merge(&a, &b, merge, UINT64_MAX, wanted, count);
		compare_merge(&a, &a, merge, 3, a.values, a.count);
		free(a.memory);
		free(b.memory);
	}
	passed(name);
}

/*
 * The expected combination of two counters. False if a difference does not
 * exist.
 */
static bool
expect_numbers(const hashes *a, const hashes *b, char operation, uint32_t limit, hashes *wanted)
{
	uint64_t	all[2 * MOST];
	size_t		count = expect(a, b, false, all);

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

static const char operations[] = {[BF_SUM] = '+',[BF_DIFFERENCE] = '-',[BF_GREATER] = '>',[BF_LESSER] = '<'};

/* Counts in steps of at most max hashes; returns how many remain. */
static uint64_t
count_numbers(bf_merge merge, bf_combination combination, uint32_t limit, uint64_t max, bool *misfit)
{
	uint64_t	count = 0;

	while (!bf_merge_done(&merge))
		count += bf_merge_numbers(&merge, combination, limit, NULL, NULL, max);
	*misfit = merge.misfit;
	return count;
}

/* Merges in steps, each into memory of the exact size. */
static void
compare_numbers(const hashes *a, const hashes *b, bf_combination combination, uint32_t limit, uint64_t max)
{
	bf_merge	merge = {.a = a->payload, .b = b->payload, .acount = a->count, .bcount = b->count};
	hashes		wanted;
	bool		exists = expect_numbers(a, b, operations[combination], limit, &wanted);
	bool		misfit;
	uint64_t	counted = count_numbers(merge, combination, limit, max, &misfit);
	uint8_t    *out = allocate(10 * counted);
	uint8_t    *payload = allocate(10 * wanted.count);
	uint64_t	got = 0;

	each(misfit == !exists, "%zu %c %zu numbers fit or not", a->count, operations[combination], b->count);
	while (!bf_merge_done(&merge))
	{
		uint64_t	read = merge.i + merge.j;
		uint64_t	some = bf_merge_numbers(&merge, combination, limit, out + 8 * got,
											out + 8 * counted + 2 * got, max);

		got += some;
		each(some <= max && merge.i + merge.j > read && merge.i + merge.j - read <= 2 * max,
			 "a call of at most %" PRIu64 " steps", max);
	}
	each(got == counted && merge.misfit == misfit, "%" PRIu64 " counted, %" PRIu64 " written", counted, got);
	if (exists)
	{
		put_hashes(payload, wanted.values, wanted.count);
		put_numbers(payload + 8 * wanted.count, wanted.numbers, wanted.count);
		each(got == wanted.count && memcmp(out, payload, 10 * got) == 0,
			 "%zu %c %zu hashes in steps of %" PRIu64 ": %" PRIu64 ", wanted %zu", a->count,
			 operations[combination], b->count, max, got, wanted.count);
	}
	free(out);
	free(payload);
}

/* Leaves in b only what can be subtracted from a, and much of it. */
static void
make_fit(hashes *b, const hashes *a, uint64_t *state)
{
	uint8_t    *payload = b->memory + (b->payload - b->memory);
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
	put_hashes(payload, b->values, kept);
	put_numbers(payload + 8 * kept, b->numbers, kept);
}

static void
test_merge_numbers(void)
{
	uint64_t	state = 6;

	for (int i = 0; i < 400; i++)
	{
		for (bf_combination op = BF_SUM; op <= BF_LESSER; op++)
		{
			uint32_t	limit = (1u << (4u << i % 3)) - 1;
			hashes		a,
						b;

			fill_counter(&a, i % 5 == 0 ? 2 : MOST, i % 2 ? 60 : 1000, limit, &state);
			fill_counter(&b, i % 7 == 0 ? 2 : MOST, i % 2 ? 60 : 1000, limit, &state);
			if (op == BF_DIFFERENCE && i % 4 != 0)
				make_fit(&b, &a, &state);
			for (uint64_t max = 1; max <= a.count + b.count + 1; max += 1 + max / 4)
				compare_numbers(&a, &b, op, limit, max);
			compare_numbers(&a, &b, op, limit, UINT64_MAX);
			compare_numbers(&a, &a, op, limit, 3);
			free(a.memory);
			free(b.memory);
		}
	}
	passed("sum, difference, union and intersection of counters, in steps");
}

/* One element of each kind, with the results worked out by hand. */
static void
test_known_numbers(void)
{
	static const uint64_t values[] = {10, 20, 30};
	uint8_t		a[30],
				b[10],
				out[30];
	bf_merge	merge = {.a = a, .b = b, .acount = 3, .bcount = 1};
	bf_merge	misfit = {.a = b, .b = a, .acount = 1, .bcount = 3};
	bf_merge	done;

	put_hashes(a, values, 3);
	put_numbers(a + 24, (uint32_t[]) {15, 3, 15}, 3);
	put_hashes(b, values + 1, 1);
	put_numbers(b + 8, (uint32_t[]) {3}, 1);
	done = merge;
	is(bf_merge_numbers(&done, BF_DIFFERENCE, 15, out, out + 16, UINT64_MAX), 2, "an element that falls to 0 leaves");
	ok(!done.misfit && bf_hash_at(out, 0) == 10 && bf_hash_at(out, 1) == 30 && bf_number_of(out, 2, 0) == 15 &&
	   bf_number_of(out, 2, 1) == 15, "numbers at the limit stay");
	done = merge;
	is(bf_merge_numbers(&done, BF_SUM, 15, out, out + 24, UINT64_MAX), 3, "a sum has all elements");
	is(bf_number_of(out, 3, 1), 6, "with their sum");
	put_numbers(b + 8, (uint32_t[]) {15}, 1);
	done = merge;
	bf_merge_numbers(&done, BF_SUM, 15, out, out + 24, UINT64_MAX);
	is(bf_number_of(out, 3, 1), 15, "up to the limit");
	done = merge;
	bf_merge_numbers(&done, BF_DIFFERENCE, 15, NULL, NULL, UINT64_MAX);
	ok(done.misfit, "a limit does not fit into less");
	bf_merge_numbers(&misfit, BF_DIFFERENCE, 15, NULL, NULL, UINT64_MAX);
	ok(misfit.misfit, "nor what the first lacks");
	put_numbers(b + 8, (uint32_t[]) {14}, 1);
	put_numbers(a + 24, (uint32_t[]) {15, 15, 15}, 3);
	done = merge;
	is(bf_merge_numbers(&done, BF_DIFFERENCE, 15, out, out + 24, UINT64_MAX), 3, "anything fits into the limit");
	ok(!done.misfit && bf_number_of(out, 3, 1) == 15, "which stays");
}

int
main(void)
{
	test_search();
	test_search_counters();
	test_range_bounds();
	test_range();
	test_merge(bf_merge_union, false, "union, in steps of every size");
	test_merge(bf_merge_intersection, true, "intersection, in steps of every size");
	test_merge_numbers();
	test_known_numbers();
	return done();
}
