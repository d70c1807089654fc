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
			each(bf_sparse_contains(set.payload, set.count, hash) == is_in(&set, hash),
				 "search for %" PRIu64, hash);
			each(bf_contains(&filter, hash) == is_in(&set, hash), "probe for %" PRIu64, hash);
		}
		for (size_t j = 0; j < set.count; j++)
			each(bf_hash_at(set.payload, j) == set.values[j], "hash at %zu", j);
		free(set.memory);
	}
	passed("searching");
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

int
main(void)
{
	test_search();
	test_range_bounds();
	test_range();
	test_merge(bf_merge_union, false, "union, in steps of every size");
	test_merge(bf_merge_intersection, true, "intersection, in steps of every size");
	return done();
}
