/*
 * bloom_type.c
 *		Recognizing the extension's types.
 */
#include "pg/pg_compat.h"

#include "catalog/pg_type.h"
#include "pg/bloom_type.h"
#include "utils/lsyscache.h"

bool
is_bloom_type(Oid type, bf_source *source)
{
	Oid			input;
	Oid			parameter;
	FmgrInfo	info;

	if (!OidIsValid(type) || get_typtype(type) != TYPTYPE_BASE)
		return false;
	getTypeInputInfo(type, &input, &parameter);
	fmgr_info(input, &info);
	*source = info.fn_addr == bloomcounter_in ? BF_COUNTER_VALUE : BF_VALUE;
	return info.fn_addr == bloomfilter_in || info.fn_addr == bloomcounter_in;
}
