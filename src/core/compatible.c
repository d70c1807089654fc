/*
 * compatible.c
 *		Which filters combine and fold, and the parameters of the result.
 */
#include "compatible.h"

#include "layout.h"

bool
bf_equal_params(const bf_params *a, const bf_params *b)
{
	return a->layout == b->layout && a->k == b->k && a->element_class == b->element_class &&
		a->rate == b->rate && a->seed == b->seed && a->m == b->m &&
		a->cell_bits == b->cell_bits;
}

bf_mismatch
bf_compare_params(const bf_params *a, const bf_params *b)
{
	if (a->element_class != b->element_class &&
		a->element_class != BF_CLASS_NONE && b->element_class != BF_CLASS_NONE)
		return BF_MISMATCH_CLASS;
	if (a->m == 0 || b->m == 0)
		return BF_MATCH;
	if (a->layout != b->layout)
		return BF_MISMATCH_LAYOUT;
	if (a->k != b->k)
		return BF_MISMATCH_K;
	if (a->seed != b->seed)
		return BF_MISMATCH_SEED;
	if (a->cell_bits != b->cell_bits)
		return BF_MISMATCH_CELL_BITS;
	return a->m == b->m ? BF_MATCH : BF_MISMATCH_SIZE;
}

bool
bf_folds_to(const bf_params *params, uint64_t m)
{
	return m == params->m ||
		(bf_layout_folds(params->layout) && m != 0 && params->m % m == 0);
}

bf_mismatch
bf_compare_folded(const bf_params *a, const bf_params *b)
{
	bf_mismatch mismatch = bf_compare_params(a, b);

	if (mismatch == BF_MISMATCH_SIZE && (bf_folds_to(a, b->m) || bf_folds_to(b, a->m)))
		return BF_MATCH;
	return mismatch;
}

/* An order of filters without a size, which makes combining commutative. */
static const bf_params *
lesser(const bf_params *a, const bf_params *b)
{
	if (a->rate != b->rate)
		return a->rate < b->rate ? a : b;
	if (a->k != b->k)
		return a->k < b->k ? a : b;
	if (a->seed != b->seed)
		return a->seed < b->seed ? a : b;
	return a->cell_bits < b->cell_bits ? a : b;
}

bf_params
bf_combined_params(const bf_params *a, const bf_params *b)
{
	bf_params	result;

	assert(bf_compare_params(a, b) == BF_MATCH);
	if (a->m == 0 && b->m == 0)
		return *lesser(a, b);
	if (a->m == 0 || b->m == 0)
		return a->m == 0 ? *b : *a;

	result = *a;
	if (result.element_class == BF_CLASS_NONE)
		result.element_class = b->element_class;
	if (b->rate < result.rate)
		result.rate = b->rate;
	return result;
}

uint64_t
bf_next_fold(const bf_params *params, uint64_t m)
{
	uint32_t	unit = bf_shape_of(params).block_bits;

	assert(m <= params->m && m % unit == 0);
	do
	{
		m += unit;
	} while (m < params->m && params->m % m != 0);
	return m < params->m ? m : params->m;
}
