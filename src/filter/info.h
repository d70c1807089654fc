/*
 * info.h
 *		What the functions bloom_info of both types share.
 */
#ifndef BF_INFO_H
#define BF_INFO_H

#include "pg/pg_compat.h"

#include "access/tupdesc.h"
#include "core/filter.h"
#include "fmgr.h"

/* The function's row type, which must have this many columns; cached per call site. */
extern TupleDesc info_descriptor(FunctionCallInfo fcinfo, int columns);

/* Does the current rate exceed the requested one by more than chance? */
extern bool is_overfull(const bf_params *params, double rate);

#endif							/* BF_INFO_H */
