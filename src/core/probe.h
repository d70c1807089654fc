/*
 * probe.h
 *		Is a hash in a filter?
 */
#ifndef BF_PROBE_H
#define BF_PROBE_H

#include "block.h"
#include "format.h"
#include "sparse.h"

/*
 * False if the element with that hash was never added; true if it was, and
 * for others at the filter's false-positive rate.
 */
static inline bool
bf_contains(const bf_filter *filter, uint64_t hash)
{
	bf_shape	shape;

	if (filter->sparse)
		return bf_sparse_contains(filter->payload, filter->nhashes, hash);
	shape = bf_shape_of(&filter->params);
	return bf_bits_contain(filter->payload, &shape, hash);
}

#endif							/* BF_PROBE_H */
