/*
 * assertions.h
 *		assert(), which only builds with BF_ASSERTIONS compile.
 *
 * An assertion states what a caller promises or what the code has just ensured.
 * It never depends on stored bytes, which may be damaged: format.h checks those.
 */
#ifndef BF_ASSERTIONS_H
#define BF_ASSERTIONS_H

#ifdef BF_ASSERTIONS
#undef NDEBUG
#elif !defined(NDEBUG)
#define NDEBUG
#endif
#include <assert.h>

#endif							/* BF_ASSERTIONS_H */
