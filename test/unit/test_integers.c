/*
 * test_integers.c
 *		Sets of integers, compared with a list of their members.
 */
#include "integers.h"
#include "reference.h"
#include "tap.h"

#define MEMBERS 50

static bool
is_member(const int64_t *members, int count, int64_t value)
{
	for (int i = 0; i < count; i++)
	{
		if (members[i] == value)
			return true;
	}
	return false;
}

/* All values around the members, in bits of just the size that they need. */
static void
compare_set(const int64_t *members, int count)
{
	bf_range	range = bf_empty_range;
	uint8_t    *bits;
	uint64_t	last;

	for (int i = 0; i < count; i++)
		bf_range_add(&range, members[i]);
	last = bf_range_last(&range);
	bits = calloc(1, last / 8 + 1);
	for (int i = 0; i < count; i++)
		bf_integers_add(bits, &range, members[i]);
	for (uint64_t i = 0; i <= last + 20; i++)
	{
		int64_t		value = (int64_t) ((uint64_t) range.least - 10 + i);

		each(bf_integers_contain(bits, &range, value) == is_member(members, count, value), "%" PRId64, value);
	}
	each(!bf_integers_contain(bits, &range, INT64_MAX) || is_member(members, count, INT64_MAX), "greatest");
	each(!bf_integers_contain(bits, &range, INT64_MIN) || is_member(members, count, INT64_MIN), "least");
	free(bits);
}

static void
test_sets(void)
{
	static const int64_t starts[] = {0, -20, 1000000, INT64_MIN, INT64_MAX - 299, INT32_MAX - 100};
	uint64_t	state = 1;
	int64_t		members[MEMBERS];

	for (int i = 0; i < 600; i++)
	{
		int			count = 1 + (int) random_below(&state, MEMBERS);

		for (int j = 0; j < count; j++)
			members[j] = starts[i % 6] + (int64_t) random_below(&state, 300);
		compare_set(members, count);
	}
	passed("a set has its members and no other integer, also at the ends of the type");
}

static void
test_range(void)
{
	bf_range	range = bf_empty_range;

	ok(range.least > range.greatest, "no integer");
	bf_range_add(&range, INT64_MAX);
	is(bf_range_last(&range), 0, "one integer");
	bf_range_add(&range, INT64_MIN);
	is(bf_range_last(&range), UINT64_MAX, "all integers");
	is(bf_range_offset(&range, 0), UINT64_C(1) << 63, "the middle");
}

int
main(void)
{
	test_range();
	test_sets();
	return done();
}
