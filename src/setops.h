/*
 * setops.h
 *		Union and intersection of filters.
 */
#ifndef BF_SETOPS_H
#define BF_SETOPS_H

#include "value.h"

/* An error unless the two combine. */
extern void require_match(const bf_params *left, const bf_params *right);

/* New values in the current memory context. */
extern Bloomfilter *unite_filters(const bf_filter *left, const bf_filter *right);
extern Bloomfilter *intersect_filters(const bf_filter *left, const bf_filter *right);

#endif							/* BF_SETOPS_H */
