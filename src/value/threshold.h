/*
 * threshold.h
 *		The Bloom filter of what a counter reads often enough.
 */
#ifndef BF_THRESHOLD_H
#define BF_THRESHOLD_H

#include "value/value.h"

/* As a new value: the elements that read at least level. */
extern BloomValue *make_threshold(const bf_filter *counter, uint32 level);

#endif							/* BF_THRESHOLD_H */
