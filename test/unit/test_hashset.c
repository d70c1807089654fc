/*
 * test_hashset.c
 *		The growing set of hashes, against a sorted array.
 */
#include "hashset.h"
#include "reference.h"
#include "tap.h"

/* An odd number without a pattern, as callers draw it. */
#define SALT UINT64_C(0xB5297A4D3F84D5A9)

static bf_hashset
new_set(uint8_t log2_slots)
{
	bf_hashset	set = {.salt = SALT, .log2_slots = log2_slots};

	set.slots = allocate(sizeof(uint64_t) << log2_slots);
	return set;
}

/*
 * Doubles the room as the aggregates do: rehashes a piece of slots at a time.
 */
static void
grow(bf_hashset *set, size_t piece)
{
	bf_hashset	larger = new_set(set->log2_slots + 1);
	size_t		slots = bf_hashset_slots(set);

	for (size_t from = 0; from < slots; from += piece)
	{
		size_t		to = from + piece < slots ? from + piece : slots;
		uint64_t   *out = allocate((to - from + 1) * sizeof(*out));
		size_t		count = bf_hashset_read(set, from, to, out, NULL);

		for (size_t i = 0; i < count; i++)
			each(bf_hashset_add(&larger, out[i]), "%" PRIu64 " came twice", out[i]);
		free(out);
	}
	each(larger.count == set->count, "%" PRIu32 " hashes became %" PRIu32,
		 set->count, larger.count);
	free(set->slots);
	*set = larger;
}

/* All hashes of a set, sorted. Duplicates would remain. */
static size_t
contents(const bf_hashset *set, uint64_t *out)
{
	size_t		count = bf_hashset_read(set, 0, bf_hashset_slots(set), out, NULL);

	qsort(out, count, sizeof(*out), compare_hashes);
	return count;
}

/* Adds hashes one by one, and checks every answer and the contents. */
static void
compare(const uint64_t *hashes, size_t count, size_t piece)
{
	bf_hashset	set = new_set(BF_HASHSET_MIN_LOG2);
	uint64_t   *distinct = allocate(count * sizeof(*distinct));
	uint64_t   *got;
	size_t		ndistinct = 0;

	for (size_t i = 0; i < count; i++)
	{
		bool		seen = false;

		for (size_t j = 0; j < ndistinct && !seen; j++)
			seen = distinct[j] == hashes[i];
		if (!seen)
			distinct[ndistinct++] = hashes[i];
		if (bf_hashset_full(&set))
			grow(&set, piece);
		each(bf_hashset_add(&set, hashes[i]) == !seen, "adding %" PRIu64, hashes[i]);
		each(set.count == ndistinct, "count after %" PRIu64, hashes[i]);
	}
	got = allocate((ndistinct + 1) * sizeof(*got));
	each(contents(&set, got) == ndistinct, "contents of %zu", ndistinct);
	qsort(distinct, ndistinct, sizeof(*distinct), compare_hashes);
	each(memcmp(got, distinct, ndistinct * sizeof(*got)) == 0, "contents of %zu", ndistinct);
	free(got);
	free(distinct);
	free(set.slots);
}

static void
test_random(void)
{
	uint64_t	state = 1;
	uint64_t	hashes[1000];

	for (size_t count = 0; count < 1000; count = count * 5 / 4 + 1)
	{
		for (uint64_t range = 2; range <= 1 << 20; range <<= 6)
		{
			for (size_t i = 0; i < count; i++)
			{
				uint64_t	value = random_below(&state, range);

				/* Small numbers, 0 included, and random hashes. */
				hashes[i] = value % 2 ? value : value * UINT64_C(0x9E3779B97F4A7C15);
			}
			compare(hashes, count, 1 + random_below(&state, 40));
		}
	}
	passed("random hashes, growing");
}

static void
test_zero(void)
{
	bf_hashset	set = new_set(BF_HASHSET_MIN_LOG2);
	uint64_t	out[20];

	is(bf_hashset_read(&set, 0, 16, out, NULL), 0, "a new set is empty");
	ok(bf_hashset_add(&set, 0), "0 is new");
	ok(!bf_hashset_add(&set, 0), "and is not new again");
	is(set.count, 1, "it counts");
	ok(bf_hashset_add(&set, 5), "another hash is new");
	is(bf_hashset_read(&set, 0, 1, out, NULL) + bf_hashset_read(&set, 1, 16, out, NULL), 2,
	   "both are read once");
	is(bf_hashset_read(&set, 7, 7, out, NULL), 0, "no slots, no hashes");
	free(set.slots);
}

/*
 * The set is full at three quarters, so that every search ends at an empty
 * slot.
 */
static void
test_full(void)
{
	for (uint8_t log2_slots = BF_HASHSET_MIN_LOG2; log2_slots < 12; log2_slots++)
	{
		bf_hashset	set = new_set(log2_slots);
		uint64_t	added = 0;

		while (!bf_hashset_full(&set))
			bf_hashset_add(&set, added++);
		each(added == (UINT64_C(3) << log2_slots) / 4 && added == set.count,
			 "2^%d slots are full at %" PRIu64, log2_slots, added);
		free(set.slots);
	}
	passed("a set is full at three quarters");
}

/* The mean distance of hashes from their own slots. */
static double
displacement(const bf_hashset *set)
{
	size_t		mask = bf_hashset_slots(set) - 1;
	double		sum = 0;

	for (size_t i = 0; i <= mask; i++)
	{
		if (set->slots[i] != 0)
			sum += (double) ((i - bf_hashset_slot(set, set->slots[i])) & mask);
	}
	return sum / set->count;
}

/*
 * Hashes that are chosen to be similar do not cluster. Linear probing at load
 * factor 3/4 displaces random hashes by (1 / (1 - 3/4) - 1) / 2 = 1.5 slots
 * on average (Knuth 6.4). Without the salt these would be displaced by
 * thousands.
 */
static void
alike(const char *name, uint64_t start, uint64_t step)
{
	bf_hashset	set = new_set(BF_HASHSET_MIN_LOG2);
	uint32_t	count = 3 << 14;
	double		distance;

	for (uint32_t i = 0; i < count; i++)
	{
		if (bf_hashset_full(&set))
			grow(&set, 1024);
		each(bf_hashset_add(&set, start + i * step), "%s: %" PRIu32 " is lost", name, i);
	}
	passed(name);
	distance = displacement(&set);
	ok(set.log2_slots == 16 && distance < 6, "and is %.2f slots from its own on average", distance);
	is(set.count, count, "none is lost");
	free(set.slots);
}

int
main(void)
{
	test_random();
	test_zero();
	test_full();
	alike("equal high bits", UINT64_C(0xABCDEF0100000000), 1);
	alike("equal low bits", 1, UINT64_C(1) << 44);
	alike("equal bits at both ends", UINT64_C(0xABC0000000000DEF), UINT64_C(1) << 20);
	return done();
}
