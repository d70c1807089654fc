/*
 * selectivity.h
 *		What the estimators assume without knowledge.
 */
#ifndef BF_SELECTIVITY_H
#define BF_SELECTIVITY_H

/*
 * For an unknown filter, column or query.  The selectivities of several filters
 * on one scan multiply.  With 0.01 each, the planner would expect so few rows
 * that it prefers nested loops.
 */
#define DEFAULT_SELECTIVITY 0.1

#endif							/* BF_SELECTIVITY_H */
