/*
 * bloom_type.c
 *		The extension's types.
 */
#include "pg/pg_compat.h"

#include "catalog/pg_type.h"
#include "pg/bloom_type.h"
#include "utils/lsyscache.h"

const BloomType bloom_types[BLOOM_TYPES] = {
	[BF_FILTER] = {
		bloomfilter_in, "bloomfilter", 1,
		gettext_noop("Compare filters with @>= and <=@, and unite them with | or bloom_union_agg().")
	},
	[BF_COUNTER] = {
		bloomcounter_in, "bloomcounter", 4,
		gettext_noop("Add counters with + or bloom_sum_agg().")
	}
};

PGFunction
input_function_of(Oid type)
{
	Oid			input;
	Oid			parameter;
	FmgrInfo	info;

	if (!OidIsValid(type) || get_typtype(type) != TYPTYPE_BASE)
		return NULL;
	getTypeInputInfo(type, &input, &parameter);
	fmgr_info(input, &info);
	return info.fn_addr;
}

bool
is_bloom_type(Oid type, bf_kind *kind)
{
	PGFunction	input = input_function_of(type);

	for (int i = 0; i < BLOOM_TYPES; i++)
	{
		if (input != bloom_types[i].input)
			continue;
		*kind = (bf_kind) i;
		return true;
	}
	return false;
}
