/*
 * io.h
 *		The type's input function, by which others recognise the type.
 */
#ifndef BF_IO_H
#define BF_IO_H

#include "postgres.h"
#include "fmgr.h"

extern PGDLLEXPORT Datum bloomfilter_in(PG_FUNCTION_ARGS);

#endif							/* BF_IO_H */
