/*
 * sizing.h
 *		How many bits and hash functions n elements need at a rate p, and back.
 *
 * The model is the mean over all sets of n random elements: within a block the
 * rate is the probability that k further throws hit only occupied bits, and
 * blocks differ in how many elements they hold.  The textbook's
 * (1 - e^(-kn/m))^k leaves out both effects and undersizes: a blocked filter
 * by 3 % at p = 0.01, and any filter of few bits at small p.
 *
 * A classic filter has the least m that keeps the rate.  A blocked one has a
 * constant number of bits for each element, which depends on the rate alone
 * and is enough for any number of blocks, and then the next number of blocks
 * of few significant bits, so that filters fold by halves.
 */
#ifndef BF_SIZING_H
#define BF_SIZING_H

#include <stdint.h>

#include "filter.h"

/* What may be asked for. */
#define BF_MIN_RATE		1e-9
#define BF_MAX_RATE		0.5

/* The k that takes the fewest bits for a rate. */
extern uint32_t bf_blocked_k(double rate);
extern uint32_t bf_classic_k(double rate);

/*
 * The expected false-positive rate of a classic filter that holds n elements.
 * At most 2 ms.
 */
extern double bf_classic_rate(uint32_t k, uint64_t m, uint64_t n);

typedef enum bf_unknown
{
	BF_PARTS_PER_ELEMENT,		/* of a blocked filter, in 1/1024 bit */
	BF_CLASSIC_BITS,			/* of so many elements */
	BF_CLASSIC_CAPACITY			/* of so many bits */
} bf_unknown;

typedef struct bf_solution
{
	bf_unknown	unknown;
	uint32_t	k;				/* 0 if there is no solution here */
	double		rate;
	uint64_t	given;			/* elements or bits */
	uint64_t	answer;
} bf_solution;

#define BF_SOLUTIONS 32

/*
 * The last solutions.  Each takes up to a millisecond, or up to 40 ms for a rate
 * near 1, which only bytes from outside have.  The caller keeps them from call to
 * call; all zeros are none.
 */
typedef struct bf_solutions
{
	bf_solution solution[BF_SOLUTIONS];
	uint32_t	oldest;			/* to be replaced next */
} bf_solutions;

/* layout.h tells what these compute. */
extern uint64_t bf_blocked_bits(bf_solutions *solutions, uint32_t k, double rate, uint64_t n);
extern uint64_t bf_classic_bits(bf_solutions *solutions, uint32_t k, double rate, uint64_t n);
extern uint64_t bf_blocked_capacity(bf_solutions *solutions, uint32_t k, double rate, uint64_t m);
extern uint64_t bf_classic_capacity(bf_solutions *solutions, uint32_t k, double rate, uint64_t m);

#endif							/* BF_SIZING_H */
