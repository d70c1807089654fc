/*
 * membership.c
 *		Is an element in a filter?
 */
#include "pg_compat.h"

#include "core/probe.h"
#include "element.h"
#include "errors.h"
#include "fmgr.h"
#include "value.h"

PG_FUNCTION_INFO_V1(bloomfilter_contains);
PG_FUNCTION_INFO_V1(bloomfilter_contained);

static bool
probe(const ElementType *element, Datum filter_value, Datum value)
{
	bf_filter	filter;

	open_filter(filter_value, &filter);
	if (filter.params.element_class == BF_CLASS_NONE)
		return false;
	if (filter.params.element_class != element->element_class)
		report_class_mismatch(filter.params.element_class, element->element_class);
	return bf_contains(&filter, element->hash(value, filter.params.seed));
}

Datum
bloomfilter_contains(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(probe(element_type_of_argument(fcinfo, 1), PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)));
}

Datum
bloomfilter_contained(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(probe(element_type_of_argument(fcinfo, 0), PG_GETARG_DATUM(1), PG_GETARG_DATUM(0)));
}
