/*
 * params.h
 *		From what a user asks for to a filter's parameters.
 */
#ifndef BF_PARAMS_H
#define BF_PARAMS_H

#include "pg_compat.h"

#include "core/format.h"

#define DEFAULT_RATE 0.01

/* "blocked" or "classic"; an error for anything else. */
extern bf_layout layout_from_name(const char *name);

pg_noreturn extern void report_too_few_items(int64 items);

/* An error unless it is positive; inline, as transition functions ask per row. */
static inline void
check_expected_items(int64 items)
{
	if (unlikely(items < 1))
		report_too_few_items(items);
}

/*
 * A rate within bounds, in the precision in which filters store it; everything
 * is derived from that, so that what a filter says of itself is what it was
 * sized by.  An error out of bounds.
 */
extern float check_rate(double rate);

/* The parameters of a filter for so many elements; checks everything. */
extern bf_params solve_params(int64 expected_items, double rate, bf_layout layout, uint64 seed);

/* The parameters of a filter that has no size yet. */
extern bf_params unsized_params(double rate);

/*
 * The sizes of filters that size themselves, the powers of two of blocks,
 * with how many elements they hold.  Solved as far as they are asked for.
 */
typedef struct SizeLadder
{
	uint32		k;				/* what the ladder is for */
	float		rate;
	int			known;			/* rungs solved so far */
	uint64		capacity[23];	/* of 512, 1024, ... BF_MAX_BITS bits */
} SizeLadder;

/*
 * The least size for n elements at the parameters' rate; an error if there is
 * none.  The ladder, zeroed at first, may be kept from call to call.
 */
extern uint64 self_size(SizeLadder *ladder, const bf_params *params, uint64 n);

#endif							/* BF_PARAMS_H */
