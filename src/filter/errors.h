/*
 * errors.h
 *		Error messages for the codes that the core returns.
 */
#ifndef BF_ERRORS_H
#define BF_ERRORS_H

#include "pg/pg_compat.h"

#include "core/compatible.h"
#include "core/format.h"
#include "nodes/nodes.h"

/* The SQL type of a source: "bloomfilter" or "bloomcounter". */
extern const char *source_type_name(bf_source source);

/*
 * Reports that bytes from a client are not what source names.  Returns false
 * after a soft error, if escontext asks for that.
 */
extern bool report_invalid_input(bf_status status, bf_source source, Node *escontext);

/* Reports that a value from the database is not what source names. */
pg_noreturn extern void report_corrupt_value(bf_status status, bf_source source);

/* Raises an error unless the two filters combine. */
extern void require_match(const bf_params *left, const bf_params *right);

/* As require_match(); returns the parameters of their union or intersection. */
extern bf_params combine_params(const bf_params *left, const bf_params *right);

/* Reports why two filters do not combine. */
pg_noreturn extern void report_mismatch(bf_mismatch mismatch, const bf_params *left,
							const bf_params *right);

/* Reports that an element's class is not the filter's. */
pg_noreturn extern void report_class_mismatch(const bf_params *filter, uint32 element_class);

/*
 * Prepares a filter's parameters for an element: sets the class of the first
 * one; a different class is an error.
 */
static inline void
adopt_element_class(bf_params *params, uint32 element_class)
{
	if (params->element_class == BF_CLASS_NONE)
		params->element_class = element_class;
	else if (unlikely(params->element_class != element_class))
		report_class_mismatch(params, element_class);
}

/* The errdetail of an error about a counter that holds levels. */
extern int	levels_detail(void);

/* Reports that a filter without a size cannot take elements. */
pg_noreturn extern void report_unsized(const bf_params *filter);

#endif							/* BF_ERRORS_H */
