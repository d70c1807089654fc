/*
 * errors.h
 *		Error messages for the codes that the core returns, and the messages that
 *		differ between the types.
 */
#ifndef BF_ERRORS_H
#define BF_ERRORS_H

#include "pg/pg_compat.h"

#include "core/compatible.h"
#include "core/format.h"
#include "nodes/nodes.h"
#include "pg/bloom_type.h"

/* Messages as whole sentences for each type, so that they can be translated. */
typedef struct TypeMessages
{
	/* errdetail of bf_status; arguments are those of the status */
	const char *too_many_cells;
	const char *cells_not_multiple;
	const char *cells_invalid;
	const char *wrong_length;
	/* operands that do not combine */
	const char *different_classes;
	const char *different_sizes;
	const char *different_parameters;
	const char *sizes;			/* two numbers of cells */
	const char *build_from_one_type;
	const char *build_for_one_rate;
	const char *build_with_same_parameters;
	const char *build_for_same_items;
	const char *build_or_fold;
	/* an element of another class */
	const char *class_mismatch; /* the two types */
	const char *build_from_type;	/* the type */
	const char *build_from_bpchar;
	const char *unsized;		/* adding to a value without a size */
	const char *unsized_hint;
	/* sizes above the limit */
	const char *too_large;		/* elements, rate */
	const char *largest;		/* cells, elements, bits of a cell */
	const char *use_higher_rate;
	const char *changed_base;	/* of an aggregate */
	const char *fold_to_rate;	/* rate */
	const char *fold_to_size;	/* two numbers of cells */
} TypeMessages;

/* By bf_kind. */
extern const TypeMessages type_messages[BLOOM_TYPES];

static inline const TypeMessages *
messages_for(const bf_params *params)
{
	return &type_messages[bf_kind_of(params)];
}

/* Messages of the table that take no argument. */
#define errmsg_of(message)		errmsg_internal("%s", _(message))
#define errhint_of(message)		errhint("%s", _(message))

/*
 * Reports that bytes from a client are not a value of the kind.  Returns false
 * after a soft error, if escontext asks for that.
 */
extern bool report_invalid_input(bf_status status, bf_kind kind, Node *escontext);

/* Reports that a value from the database is not one of the kind. */
pg_noreturn extern void report_corrupt_value(bf_status status, bf_kind kind);

/* Reports why two filters do not combine. */
pg_noreturn extern void report_mismatch(bf_mismatch mismatch, const bf_params *left,
										const bf_params *right);

/* Reports that an element's class is not the filter's. */
pg_noreturn extern void report_class_mismatch(const bf_params *filter, uint32 element_class);

/* The errdetail of an error about a counter that holds levels. */
extern int	levels_detail(void);

/* Reports that a counter cannot be subtracted from another. */
pg_noreturn extern void report_misfit(void);

/* Reports that a filter without a size cannot take elements. */
pg_noreturn extern void report_unsized(const bf_params *filter);

#endif							/* BF_ERRORS_H */
