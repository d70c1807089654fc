/*
 * test_compatible.c
 *		Which filters combine, and the algebra of the resulting parameters.
 */
#include "compatible.h"
#include "reference.h"
#include "tap.h"

static bool
same(const bf_params *a, const bf_params *b)
{
	return a->layout == b->layout && a->k == b->k && a->element_class == b->element_class &&
		a->rate == b->rate && a->seed == b->seed && a->m == b->m && a->cell_bits == b->cell_bits;
}

/* In both orders, because a mismatch is symmetric. */
static void
mismatch(const bf_params *a, const bf_params *b, bf_mismatch wanted, const char *what)
{
	bf_mismatch got = bf_compare_params(a, b);

	ok(got == wanted && bf_compare_params(b, a) == wanted, "%s (%d)", what, (int) got);
}

static void
test_mismatches(void)
{
	const bf_params a = params_of(BF_BLOCKED, 6, 512 * 6);
	bf_params	b = a;

	mismatch(&a, &b, BF_MATCH, "equal ones");
	b.rate = 0.5f;
	mismatch(&a, &b, BF_MATCH, "of different rates");
	b = a, b.element_class = BF_CLASS_TEXT;
	mismatch(&a, &b, BF_MISMATCH_CLASS, "integers and text");
	b.m = 0;
	mismatch(&a, &b, BF_MISMATCH_CLASS, "even if the text has no size");
	b = a, b.element_class = BF_CLASS_NONE;
	mismatch(&a, &b, BF_MATCH, "integers and nothing yet");
	b = a, b.layout = BF_CLASSIC;
	mismatch(&a, &b, BF_MISMATCH_LAYOUT, "blocked and classic");
	b = a, b.k = 7;
	mismatch(&a, &b, BF_MISMATCH_K, "6 and 7 hash functions");
	b = a, b.seed = UINT64_C(1) << 63;
	mismatch(&a, &b, BF_MISMATCH_SEED, "two seeds");
	b = (bf_params) {.layout = BF_CLASSIC, .k = 1, .rate = 0.9f, .seed = 5, .cell_bits = 1};
	mismatch(&a, &b, BF_MATCH, "anything and the filter without a size");
	mismatch(&b, &b, BF_MATCH, "two without a size");
}

static void
test_widths(void)
{
	bf_params	a = params_of(BF_BLOCKED, 6, 512 * 6);
	bf_params	b;

	a.cell_bits = 4;
	b = a;
	mismatch(&a, &b, BF_MATCH, "counters of 4 bits");
	b.cell_bits = 8;
	mismatch(&a, &b, BF_MISMATCH_CELL_BITS, "counters of 4 and 8 bits");
	b.m = 512;
	mismatch(&a, &b, BF_MISMATCH_CELL_BITS, "of different sizes, too");
	ok(bf_compare_folded(&a, &b) == BF_MISMATCH_CELL_BITS, "also if they are folded");
	b.seed = 1;
	mismatch(&a, &b, BF_MISMATCH_SEED, "the seed comes before the width");
	b.seed = 0, b.m = 0, b.element_class = BF_CLASS_NONE;
	mismatch(&a, &b, BF_MATCH, "the width of a counter without a size does not matter");
	b = a, b.m = 512;
	mismatch(&a, &b, BF_MISMATCH_SIZE, "counters of two sizes");
	b = a, b.cell_bits = 1;
	mismatch(&a, &b, BF_MISMATCH_CELL_BITS, "a counter and a filter");
}

static bf_mismatch
size_mismatch(bool match)
{
	return match ? BF_MATCH : BF_MISMATCH_SIZE;
}

static void
compare_sizes(bf_layout layout, uint64_t x, uint64_t y)
{
	bf_params	a = params_of(layout, 6, 512 * x);
	bf_params	b = params_of(layout, 6, 512 * y);
	bool		down = layout == BF_CLASSIC ? x == y : x % y == 0;
	bool		up = layout == BF_CLASSIC ? x == y : y % x == 0;

	each(bf_compare_params(&a, &b) == size_mismatch(x == y),
		 "%" PRIu64 " and %" PRIu64 " times 512 bits combine", x, y);
	each(bf_folds_to(&a, b.m) == down, "%" PRIu64 " folds to %" PRIu64, x, y);
	each(bf_compare_folded(&a, &b) == size_mismatch(down || up),
		 "%" PRIu64 " and %" PRIu64 " times 512 bits combine, folded", x, y);
	b.k = 7;
	each(bf_compare_folded(&a, &b) == BF_MISMATCH_K, "folded, 6 and 7 hash functions");
}

static void
test_sizes(void)
{
	bf_params	a = params_of(BF_BLOCKED, 6, 512);
	bf_params	unsized = {.layout = BF_BLOCKED, .k = 1, .rate = 0.9f, .cell_bits = 1};

	for (uint64_t x = 1; x <= 60; x++)
	{
		for (uint64_t y = 1; y <= 60; y++)
		{
			compare_sizes(BF_BLOCKED, x, y);
			compare_sizes(BF_CLASSIC, x, y);
		}
	}
	passed("sizes must be equal, or divide if the larger is folded");
	ok(!bf_folds_to(&a, 0), "no filter folds to size 0");
	ok(bf_compare_folded(&a, &unsized) == BF_MATCH && bf_compare_folded(&unsized, &a) == BF_MATCH,
	   "folded or not, anything goes with the filter without a size");
}

/* Parameters are equal only if every field is. */
static void
test_equal(void)
{
	const bf_params a = params_of(BF_BLOCKED, 6, 512 * 6);
	bf_params	others[7] = {a, a, a, a, a, a, a};

	others[0].layout = BF_CLASSIC;
	others[1].k = 7;
	others[2].element_class = BF_CLASS_NONE;
	others[3].rate = 0.02f;
	others[4].seed = UINT64_C(1) << 63;
	others[5].m = 512;
	others[6].cell_bits = 4;
	ok(bf_equal_params(&a, &a), "equal to itself");
	for (int i = 0; i < 7; i++)
		ok(!bf_equal_params(&a, &others[i]) && !bf_equal_params(&others[i], &a), "field %d differs", i);
}

static void
test_combined(void)
{
	bf_params	a = params_of(BF_BLOCKED, 6, 512 * 8);
	bf_params	b = params_of(BF_BLOCKED, 6, 512 * 8);
	bf_params	wanted = b;
	bf_params	got;

	a.seed = b.seed = wanted.seed = 77;
	a.rate = wanted.rate = 0.001f;
	b.element_class = BF_CLASS_NONE;
	got = bf_combined_params(&a, &b);
	ok(same(&got, &wanted), "the lower rate, the class of either");

	a = (bf_params) {.layout = BF_BLOCKED, .k = 1, .rate = 1e-6f, .seed = 5, .cell_bits = 1};
	got = bf_combined_params(&a, &b);
	ok(same(&got, &b), "a filter without a size does not change the other");
	b = a, b.rate = 1e-7f, b.k = 9;
	got = bf_combined_params(&a, &b);
	ok(same(&got, &b), "of two filters without a size, the lower rate decides");
	a.rate = b.rate;
	got = bf_combined_params(&a, &b);
	ok(same(&got, &a), "then k");
	b.k = a.k, b.seed = 4;
	got = bf_combined_params(&a, &b);
	ok(same(&got, &b), "then the seed");
	a.seed = b.seed, a.cell_bits = 8, b.cell_bits = 4;
	got = bf_combined_params(&a, &b);
	ok(same(&got, &b), "then the width of counters");
	got = bf_combined_params(&b, &a);
	ok(same(&got, &b), "in either order");
	a = params_of(BF_BLOCKED, 6, 512 * 8), a.cell_bits = 16;
	got = bf_combined_params(&a, &b);
	ok(same(&got, &a), "the width is that of the counter with a size");
	got = bf_combined_params(&b, &a);
	ok(same(&got, &a), "in either order");
}

/* Draws from few values, so that many pairs and triples combine. */
static bf_params
random_params(uint64_t *state)
{
	bf_params	params = {
		.layout = random_below(state, 4) ? BF_BLOCKED : BF_CLASSIC,
		.k = 6 + (uint32_t) (random_below(state, 5) == 0),
		.element_class = random_below(state, 3) ? 20 : random_below(state, 4) ? 0 : 25,
		.rate = (float) (1 + random_below(state, 3)) / 1000,
		.seed = random_below(state, 5) == 0,
		.m = 512 * random_below(state, 4),
		.cell_bits = random_below(state, 4) ? 4 : random_below(state, 2) ? 8 : 1
	};

	if (params.m == 0)
	{
		params.element_class = 0;
		params.layout = BF_BLOCKED;
	}
	return params;
}

static void
test_pairs(void)
{
	uint64_t	state = 1;

	for (int i = 0; i < 50000; i++)
	{
		bf_params	a = random_params(&state);
		bf_params	b = random_params(&state);
		bf_params	ab,
					ba,
					again;

		each(bf_compare_params(&a, &b) == bf_compare_params(&b, &a), "pair %d matches one way", i);
		each(bf_compare_params(&a, &a) == BF_MATCH, "%d does not match itself", i);
		again = bf_combined_params(&a, &a);
		each(same(&again, &a), "%d is not idempotent", i);
		if (bf_compare_params(&a, &b) != BF_MATCH)
			continue;
		ab = bf_combined_params(&a, &b);
		ba = bf_combined_params(&b, &a);
		each(same(&ab, &ba), "pair %d is not symmetric", i);
		each(bf_compare_params(&ab, &a) == BF_MATCH && bf_compare_params(&ab, &b) == BF_MATCH,
			 "pair %d does not match the result", i);
		again = bf_combined_params(&ab, &a);
		each(same(&again, &ab), "pair %d grows when combined again", i);
	}
	passed("symmetric, idempotent, absorbing");
}

static void
test_triples(void)
{
	uint64_t	state = 2;
	uint64_t	combined = 0;

	for (int i = 0; i < 200000; i++)
	{
		bf_params	a = random_params(&state);
		bf_params	b = random_params(&state);
		bf_params	c = random_params(&state);
		bf_params	ab,
					bc,
					left,
					right;

		if (bf_compare_params(&a, &b) != BF_MATCH || bf_compare_params(&b, &c) != BF_MATCH ||
			bf_compare_params(&a, &c) != BF_MATCH)
			continue;
		combined++;
		ab = bf_combined_params(&a, &b);
		bc = bf_combined_params(&b, &c);
		each(bf_compare_params(&ab, &c) == BF_MATCH && bf_compare_params(&a, &bc) == BF_MATCH,
			 "triple %d matches in pairs only", i);
		left = bf_combined_params(&ab, &c);
		right = bf_combined_params(&a, &bc);
		each(same(&left, &right), "triple %d is not associative", i);
	}
	passed("associative");
	ok(combined > 5000, "many triples combined");
}

int
main(void)
{
	test_mismatches();
	test_widths();
	test_sizes();
	test_equal();
	test_combined();
	test_pairs();
	test_triples();
	return done();
}
