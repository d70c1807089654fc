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

/* Adds a hash. True if it is new. */
static bool
add(bf_hashset *set, uint64_t hash)
{
	bool		added;

	bf_hashset_place(set, hash, &added);
	return added;
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
			each(add(&larger, out[i]), "%" PRIu64 " came twice", out[i]);
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

/* Turns a set into an array in pieces. The hash 0 is left to the caller. */
static size_t
compacted(bf_hashset *set, size_t piece)
{
	size_t		slots = bf_hashset_slots(set);
	size_t		count = 0;

	for (size_t from = 0; from < slots; from += piece)
		count += bf_hashset_compact(set, from, from + piece < slots ? from + piece : slots, count);
	if (set->has_zero)
		set->slots[count++] = 0;
	qsort(set->slots, count, sizeof(uint64_t), compare_hashes);
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
		bf_hashset_prefetch(&set, hashes[i]);
		each(add(&set, hashes[i]) == !seen, "adding %" PRIu64, hashes[i]);
		each(set.count == ndistinct, "count after %" PRIu64, hashes[i]);
	}
	got = allocate((ndistinct + 1) * sizeof(*got));
	each(contents(&set, got) == ndistinct, "contents of %zu", ndistinct);
	qsort(distinct, ndistinct, sizeof(*distinct), compare_hashes);
	each(memcmp(got, distinct, ndistinct * sizeof(*got)) == 0, "contents of %zu", ndistinct);
	each(compacted(&set, piece) == ndistinct && memcmp(set.slots, distinct, ndistinct * sizeof(*got)) == 0,
		 "compacted contents of %zu", ndistinct);
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
	ok(add(&set, 0), "0 is new");
	ok(!add(&set, 0), "and is not new again");
	is(set.count, 1, "it counts");
	ok(add(&set, 5), "another hash is new");
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
			add(&set, added++);
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
		each(add(&set, start + i * step), "%s: %" PRIu32 " is lost", name, i);
	}
	passed(name);
	distance = displacement(&set);
	ok(set.log2_slots == 16 && distance < 6, "and is %.2f slots from its own on average", distance);
	is(set.count, count, "none is lost");
	free(set.slots);
}

/* A set with numbers, beside distinct hashes in the order of their first addition. */
typedef struct counted
{
	bf_hashset	set;
	uint64_t	hashes[1000];
	uint32_t	numbers[1000];
	size_t		count;
} counted;

static bf_hashset
new_counted_set(uint8_t log2_slots)
{
	bf_hashset	set = new_set(log2_slots);

	set.extra = allocate(sizeof(uint16_t) * (bf_hashset_slots(&set) + 1));
	return set;
}

static void
free_counted_set(bf_hashset *set)
{
	free(set->slots);
	free(set->extra);
}

/* Like grow(), with the numbers. */
static void
grow_counted(bf_hashset *set, size_t piece)
{
	bf_hashset	larger = new_counted_set(set->log2_slots + 1);
	size_t		slots = bf_hashset_slots(set);

	for (size_t from = 0; from < slots; from += piece)
	{
		size_t		to = from + piece < slots ? from + piece : slots;
		uint64_t   *hashes = allocate((to - from + 1) * sizeof(*hashes));
		uint16_t   *numbers = allocate((to - from + 1) * sizeof(*numbers));
		size_t		count = bf_hashset_read(set, from, to, hashes, numbers);

		for (size_t i = 0; i < count; i++)
		{
			bool		added;

			bf_hashset_set_number(&larger, bf_hashset_place(&larger, hashes[i], &added), numbers[i]);
			each(added, "%" PRIu64 " came twice", hashes[i]);
		}
		free(hashes);
		free(numbers);
	}
	free_counted_set(set);
	*set = larger;
}

/* Adds a number to that of a hash, in the set and in the model. */
static void
count_hash(counted *of, uint64_t hash, uint32_t number, size_t piece)
{
	size_t		at = 0;
	bool		added;
	size_t		index;

	while (at < of->count && of->hashes[at] != hash)
		at++;
	if (bf_hashset_full(&of->set))
		grow_counted(&of->set, piece);
	index = bf_hashset_place(&of->set, hash, &added);
	each(added == (at == of->count), "%" PRIu64 " is new or not", hash);
	each(index == bf_hashset_find(&of->set, hash), "index of %" PRIu64, hash);
	each(index == bf_hashset_slots(&of->set) ? hash == 0 : of->set.slots[index] == hash, "slot of %" PRIu64, hash);
	each(!added || bf_hashset_number(&of->set, index) == 1, "a new hash has number 1");
	bf_hashset_set_number(&of->set, index, number + (added ? 0 : bf_hashset_number(&of->set, index)));
	of->hashes[at] = hash;
	of->numbers[at] = number + (added ? 0 : of->numbers[at]);
	of->count += added;
	each(of->set.count == of->count, "count after %" PRIu64, hash);
}

/* Every hash of the model exactly once, with its number. */
static void
compare_contents(const counted *of, const uint64_t *hashes, const uint16_t *numbers, size_t count)
{
	each(count == of->count, "%zu hashes instead of %zu", count, of->count);
	for (size_t i = 0; i < of->count; i++)
	{
		size_t		times = 0;

		for (size_t j = 0; j < count; j++)
			times += hashes[j] == of->hashes[i] && numbers[j] == of->numbers[i];
		each(times == 1, "%" PRIu64 " with number %" PRIu32 " came %zu times", of->hashes[i], of->numbers[i], times);
	}
}

/* By finding, by reading in pieces, and by compacting in pieces. */
static void
compare_counted(counted *of, size_t piece)
{
	bf_hashset *set = &of->set;
	size_t		slots = bf_hashset_slots(set);
	uint64_t   *hashes = allocate((of->count + 1) * sizeof(*hashes));
	uint16_t   *numbers = allocate((of->count + 1) * sizeof(*numbers));
	size_t		count = 0;

	for (size_t i = 0; i < of->count; i++)
		each(bf_hashset_number(set, bf_hashset_find(set, of->hashes[i])) == of->numbers[i], "number of %" PRIu64,
			 of->hashes[i]);
	for (size_t from = 0; from < slots; from += piece)
	{
		size_t		to = from + piece < slots ? from + piece : slots;
		uint64_t   *some = allocate((to - from + 1) * sizeof(*some));
		uint16_t   *some_numbers = allocate((to - from + 1) * sizeof(*some_numbers));
		size_t		got = bf_hashset_read(set, from, to, some, some_numbers);

		memcpy(hashes + count, some, got * sizeof(*some));
		memcpy(numbers + count, some_numbers, got * sizeof(*some_numbers));
		count += got;
		free(some);
		free(some_numbers);
	}
	compare_contents(of, hashes, numbers, count);

	count = 0;
	for (size_t from = 0; from < slots; from += piece)
		count += bf_hashset_compact(set, from, from + piece < slots ? from + piece : slots, count);
	each(count + set->has_zero == of->count, "%zu hashes after compacting", count);
	if (set->has_zero)
	{
		set->slots[count] = 0;
		set->extra[count++] = (uint16_t) bf_hashset_number(set, slots);
	}
	compare_contents(of, set->slots, set->extra, count);
	free(hashes);
	free(numbers);
}

static void
test_numbers(void)
{
	uint64_t	state = 2;

	for (int i = 0; i < 300; i++)
	{
		counted    *of = allocate(sizeof(*of));
		uint64_t	range = UINT64_C(2) << 4 * random_below(&state, 4);
		size_t		adds = random_below(&state, i % 10 == 0 ? 1000 : 100);
		size_t		piece = 1 + random_below(&state, 40);

		of->set = new_counted_set(BF_HASHSET_MIN_LOG2);
		for (size_t j = 0; j < adds; j++)
		{
			uint64_t	value = random_below(&state, range);

			count_hash(of, value % 2 ? value : value * UINT64_C(0x9E3779B97F4A7C15),
					   1 + (uint32_t) random_below(&state, 60), piece);
		}
		compare_counted(of, piece);
		free_counted_set(&of->set);
		free(of);
	}
	passed("numbers stay with their hashes");
}

static void
test_number_of_zero(void)
{
	bf_hashset	set = new_counted_set(BF_HASHSET_MIN_LOG2);
	uint64_t	hashes[17];
	uint16_t	numbers[17];
	bool		added;

	is(bf_hashset_find(&set, 0), 16, "the hash 0 has the index behind the slots");
	is(bf_hashset_place(&set, 0, &added), 16, "also when it is added");
	ok(added, "it is new");
	is(bf_hashset_number(&set, 16), 1, "with number 1");
	bf_hashset_set_number(&set, 16, 65535);
	(void) bf_hashset_place(&set, 0, &added);
	ok(!added, "and is not new again");
	is(bf_hashset_read(&set, 0, 16, hashes, numbers), 1, "it is read once");
	ok(hashes[0] == 0 && numbers[0] == 65535, "with its number");
	is(bf_hashset_read(&set, 1, 16, hashes, numbers), 0, "as part of slot 0");
	is(bf_hashset_compact(&set, 0, 16, 0), 0, "compacting leaves it alone");
	is(bf_hashset_number(&set, 16), 65535, "and its number");
	free_counted_set(&set);
}

int
main(void)
{
	test_random();
	test_zero();
	test_full();
	test_numbers();
	test_number_of_zero();
	alike("equal high bits", UINT64_C(0xABCDEF0100000000), 1);
	alike("equal low bits", 1, UINT64_C(1) << 44);
	alike("equal bits at both ends", UINT64_C(0xABC0000000000DEF), UINT64_C(1) << 20);
	return done();
}
