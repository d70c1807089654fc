/*
 * dense.h
 *		Interruptible loops over the cells of dense filters.
 */
#ifndef BF_VALUE_DENSE_H
#define BF_VALUE_DENSE_H

#include "core/dense.h"
#include "value/value.h"

/* bf_combine_cells() for any size. */
extern bool combine_cells(uint8 *into, const uint8 *from, uint64 size, uint32 cell_bits,
						  bf_combination combination);

/*
 * A dense filter folded to the size in params, which must divide its own.  Cells
 * that fall together are combined by BF_SUM or BF_GREATER.
 */
extern BloomValue *make_folded_value(const bf_filter *dense, const bf_params *params,
									 bf_combination combination);

#endif							/* BF_VALUE_DENSE_H */
