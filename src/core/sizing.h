/*
 * sizing.h
 *		The size and the number of hash functions for n elements at rate p.
 *
 * The model is the mean rate over all sets of n random elements.  In a
 * block the rate is the probability that all k bits of an absent element are
 * set, and the number of elements varies between blocks.  The textbook formula
 * (1 - e^(-kn/m))^k ignores both effects and undersizes: blocked filters by
 * 3 % at p = 0.01, and small filters at small p.
 *
 * A classic filter has the least m that keeps the rate.  A blocked filter has a
 * fixed number of bits per element, which depends only on k and the rate and
 * suffices for any number of blocks.  Its number of blocks is then rounded up
 * to few significant bits, so that filters fold by halves.
 */
#ifndef BF_SIZING_H
#define BF_SIZING_H

#include "filter.h"

/* The valid rates of a new filter. */
#define BF_MIN_RATE		1e-9
#define BF_MAX_RATE		0.5

/* The k that needs the fewest bits for a rate. */
extern uint32_t bf_blocked_k(double rate);
extern uint32_t bf_classic_k(double rate);

/*
 * The expected false-positive rate of a classic filter of n elements.  Takes at
 * most 2 ms.
 */
extern double bf_classic_rate(uint32_t k, uint64_t m, uint64_t n);

typedef enum bf_unknown
{
	BF_PARTS_PER_ELEMENT,		/* of a blocked filter, in 1/1024 bit */
	BF_CLASSIC_BITS,			/* for `given` elements */
	BF_CLASSIC_CAPACITY			/* of `given` bits */
} bf_unknown;

typedef struct bf_solution
{
	bf_unknown	unknown;
	uint32_t	k;				/* 0 if this entry is unused */
	double		rate;
	uint64_t	given;			/* elements or bits, else 0 */
	uint64_t	answer;
} bf_solution;

#define BF_SOLUTIONS 32

/*
 * A cache of solutions, owned by the caller.  Initialize to all zeros.  Solving
 * takes up to 1 ms, or 40 ms for a rate near 1, which only foreign bytes have.
 */
typedef struct bf_solutions
{
	bf_solution solution[BF_SOLUTIONS];
	uint32_t	oldest;			/* index of the entry to replace next */
} bf_solutions;

/* See bf_bits_for() and bf_capacity() in layout.h. */
extern uint64_t bf_blocked_bits(bf_solutions *solutions, uint32_t k, double rate, uint64_t n);
extern uint64_t bf_classic_bits(bf_solutions *solutions, uint32_t k, double rate, uint64_t n);
extern uint64_t bf_blocked_capacity(bf_solutions *solutions, uint32_t k, double rate, uint64_t m);
extern uint64_t bf_classic_capacity(bf_solutions *solutions, uint32_t k, double rate, uint64_t m);

#endif							/* BF_SIZING_H */
