/*
 * keys.c
 *		Queries from the arguments of SQL functions.
 */
#include "pg/pg_compat.h"

#include "catalog/pg_type.h"
#include "core/bytes.h"
#include "miscadmin.h"
#include "pg/memory.h"
#include "query/keys.h"
#include "utils/array.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(bloomquery_make);
PG_FUNCTION_INFO_V1(bloomquery_make_least);

StaticAssertDecl(QUERY_CLASS_ENUM == ANYENUMOID, "the number is part of the format");

void
resolve_key_type(FunctionCallInfo fcinfo, int argument, KeyType *type)
{
	Oid			keys = type_of_argument(fcinfo, argument);
	Oid			element = get_base_element_type(keys);

	type->is_array = OidIsValid(element);
	require_element_type(type->is_array ? element : keys, PG_GET_COLLATION(), &type->element);
}

static void
append_number(StringInfo target, uint32 number)
{
	uint8		bytes[4];

	bf_store32(bytes, number);
	appendBinaryStringInfo(target, (const char *) bytes, sizeof(bytes));
}

static void
append_key(StringInfo target, const ElementType *element, Datum key)
{
	int			at = target->len;

	append_number(target, 0);
	element->append(key, target);
	bf_store32((uint8 *) target->data + at, (uint32) (target->len - at - QUERY_LENGTH_SIZE));
}

/* Returns the number of elements, including those that are NULL. */
static uint32
append_array(StringInfo target, const ElementType *element, ArrayType *array, uint32 *nkeys)
{
	ArrayIterator iterator = array_create_iterator(array, 0, NULL);
	uint32		count = 0;
	Datum		key;
	bool		is_null;

	*nkeys = 0;
	while (array_iterate(iterator, &key, &is_null))
	{
		if (count++ % CHUNK_KEYS == 0)
			CHECK_FOR_INTERRUPTS();
		if (is_null)
			continue;
		append_key(target, element, key);
		(*nkeys)++;
	}
	array_free_iterator(iterator);
	return count;
}

BloomQuery *
make_query(const KeyType *type, Datum keys)
{
	bool		is_enum = !type->element.is_stable; /* only they are not */
	uint32		nkeys = 1;
	uint32		least = 1;
	StringInfoData bytes;
	uint8	   *header;

	initStringInfo(&bytes);
	append_number(&bytes, 0);	/* of the varlena */
	append_number(&bytes, is_enum ? QUERY_CLASS_ENUM : type->element.element_class);
	append_number(&bytes, 0);
	append_number(&bytes, 0);
	if (type->is_array)
		least = append_array(&bytes, &type->element, DatumGetArrayTypeP(keys), &nkeys);
	else
		append_key(&bytes, &type->element, keys);
	header = (uint8 *) bytes.data + VARHDRSZ;
	bf_store32(header + QUERY_AT_LEAST, least);
	bf_store32(header + QUERY_AT_COUNT, nkeys);
	SET_VARSIZE(bytes.data, bytes.len);
	return (BloomQuery *) bytes.data;
}

uint32
check_least(int32 least)
{
	if (least < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of keys must not be negative")));
	return (uint32) least;
}

/*
 * A call site's cache in fn_extra.  A recheck calls bloom_query() for each row, because it
 * is not immutable; copying the last query takes a fraction of the time of making it.
 */
typedef struct QuerySite
{
	KeyType		type;
	struct varlena *array;		/* a copy of the last argument, or NULL */
	BloomQuery *query;			/* of these keys */
} QuerySite;

static QuerySite *
open_query_site(FunctionCallInfo fcinfo)
{
	QuerySite  *site = fcinfo->flinfo->fn_extra;

	if (site == NULL)
	{
		QuerySite	resolved = {0};

		resolve_key_type(fcinfo, 0, &resolved.type);
		site = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(*site));
		*site = resolved;
		fcinfo->flinfo->fn_extra = site;
	}
	return site;
}

static struct varlena *
copy_varlena(MemoryContext context, const struct varlena *value)
{
	struct varlena *copy = MemoryContextAlloc(context, VARSIZE_ANY(value));

	copy_bytes((uint8 *) copy, (const uint8 *) value, VARSIZE_ANY(value));
	return copy;
}

/* Keeps a query.  After an error the call site has none. */
static void
keep_query(QuerySite *site, MemoryContext context, const struct varlena *array, const BloomQuery *query)
{
	if (site->array != NULL)
	{
		pfree(site->array);
		site->array = NULL;
		pfree(site->query);
	}
	site->query = copy_varlena(context, query);
	site->array = copy_varlena(context, array);
}

static BloomQuery *
query_of_argument(FunctionCallInfo fcinfo)
{
	QuerySite  *site = open_query_site(fcinfo);
	struct varlena *array;
	BloomQuery *query;

	if (!site->type.is_array || !site->type.element.is_stable)
		return make_query(&site->type, PG_GETARG_DATUM(0));
	array = PG_DETOAST_DATUM(PG_GETARG_DATUM(0));
	if (site->array != NULL && VARSIZE(array) == VARSIZE(site->array) &&
		equal_bytes((const uint8 *) array, (const uint8 *) site->array, VARSIZE(array)))
		return copy_varlena(CurrentMemoryContext, site->query);
	query = make_query(&site->type, PointerGetDatum(array));
	keep_query(site, fcinfo->flinfo->fn_mcxt, array, query);
	return query;
}

Datum
bloomquery_make(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(query_of_argument(fcinfo));
}

Datum
bloomquery_make_least(PG_FUNCTION_ARGS)
{
	BloomQuery *query = query_of_argument(fcinfo);

	bf_store32((uint8 *) VARDATA(query) + QUERY_AT_LEAST, check_least(PG_GETARG_INT32(1)));
	PG_RETURN_POINTER(query);
}
