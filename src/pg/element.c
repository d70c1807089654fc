/*
 * element.c
 *		Which types can be elements, and how a function's argument is hashed.
 */
#include "pg/pg_compat.h"

#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "pg/bloom_type.h"
#include "pg/element.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

static bool
is_string(const ElementType *element)
{
	return element->element_class == BF_CLASS_TEXT || element->element_class == BF_CLASS_BPCHAR;
}

/* True if the collation decides which values of the type are equal. */
static bool
is_collatable_text(Oid type, const ElementType *element)
{
	return is_string(element) && type_is_collatable(getBaseType(type));
}

/* True if every valid string of the database can be converted to UTF-8. */
static bool
encoding_converts_to_utf8(void)
{
	int			encoding = GetDatabaseEncoding();

	return encoding == PG_UTF8 || encoding == PG_SQL_ASCII || encoding == PG_LATIN1;
}

bool
find_element_type(Oid type, Oid collation, ElementType *element)
{
	if (!OidIsValid(type) || !find_hash_function(type, element))
		return false;
	if (is_string(element) && !encoding_converts_to_utf8())
		return false;
	return !is_collatable_text(type, element) ||
		(OidIsValid(collation) && get_collation_isdeterministic(collation));
}

/* Suggests what to use instead of values of an unsupported type. */
static int
unhashable_hint(Oid type)
{
	type = getBaseType(type);
	if (OidIsValid(get_element_type(type)))
		return errhint("Use unnest() to add or look up the elements of an array.");
	switch (type)
	{
		case OIDOID:
			return errhint("Cast the value to bigint.");
		case BITOID:
		case VARBITOID:
		case CHAROID:
		case PG_LSNOID:
			return errhint("Cast the value to text.");
		default:
			return errhint("Use an expression of a supported type that is equal for equal values, such as lower(x COLLATE \"default\") for citext. A cast to text does not preserve equality for every type.");
	}
}

static void
report_unhashable(Oid type)
{
	bf_kind		kind;

	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot put values of type %s into a bloom filter", format_type_be(type)),
			 is_bloom_type(type, &kind) ? errhint("%s", _(bloom_types[kind].element_hint))
			 : unhashable_hint(type)));
}

static void
check_collation(Oid collation)
{
	if (!OidIsValid(collation))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_COLLATION),
				 errmsg("could not determine which collation to use for bloom filter elements"),
				 errhint("Use the COLLATE clause to set the collation explicitly.")));
	if (!get_collation_isdeterministic(collation))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("nondeterministic collations are not supported for bloom filter elements"),
				 errdetail("Strings that are equal under collation \"%s\" have different hashes.",
						   get_collation_name(collation)),
				 errhint("Use an expression that is equal for equal strings, such as lower(), under a deterministic collation.")));
}

void
require_element_type(Oid type, Oid collation, ElementType *element)
{
	if (!find_hash_function(type, element))
		report_unhashable(type);
	if (is_collatable_text(type, element))
		check_collation(collation);
}

Oid
type_of_argument(FunctionCallInfo fcinfo, int argument)
{
	Oid			type = get_fn_expr_argtype(fcinfo->flinfo, argument);

	if (!OidIsValid(type))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("could not determine the type of the bloom filter element")));
	return type;
}

void
resolve_element_type(FunctionCallInfo fcinfo, int argument, ElementType *element)
{
	require_element_type(type_of_argument(fcinfo, argument), PG_GET_COLLATION(), element);
}

const ElementType *
element_type_of_argument(FunctionCallInfo fcinfo, int argument)
{
	ElementType *element = fcinfo->flinfo->fn_extra;

	if (element == NULL)
	{
		ElementType resolved;

		resolve_element_type(fcinfo, argument, &resolved);
		element = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(*element));
		*element = resolved;
		fcinfo->flinfo->fn_extra = element;
	}
	return element;
}
