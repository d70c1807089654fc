/*
 * errors.h
 *		The wording of what the core reports.
 */
#ifndef BF_ERRORS_H
#define BF_ERRORS_H

#include "pg/pg_compat.h"

#include "core/compatible.h"
#include "core/format.h"
#include "nodes/nodes.h"

/*
 * Bytes that came from a client are no filter: an error, soft if escontext
 * asks for that.  Returns false in that case.
 */
extern bool report_invalid_input(bf_status status, Node *escontext);

/* Bytes that the database itself handed over are no filter: always an error. */
pg_noreturn extern void report_corrupt_value(bf_status status);

/* An error unless two filters combine. */
extern void require_match(const bf_params *left, const bf_params *right);

/* Two filters do not combine: says why, naming both sides. */
pg_noreturn extern void report_mismatch(bf_mismatch mismatch, const bf_params *left,
							const bf_params *right);

/* An element's class is not the one in the filter. */
pg_noreturn extern void report_class_mismatch(uint32 filter_class, uint32 element_class);

#endif							/* BF_ERRORS_H */
