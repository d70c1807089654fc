/*
 * query.c
 *		Decoding and hashing queries.
 */
#include "pg/pg_compat.h"

#include "core/format.h"
#include "core/hash.h"
#include "datatype/timestamp.h"
#include "miscadmin.h"
#include "query/query.h"

/* Returns the length of the key at *at, and moves *at to its bytes. */
static inline uint32
key_length(const uint8 **at)
{
	uint32		length = bf_load32(*at);

	*at += QUERY_LENGTH_SIZE;
	return length;
}

/* False for -0.0, and for a NaN that is not the canonical one. */
static bool
is_canonical_float(uint64 word)
{
	return word != UINT64CONST(0x8000000000000000) &&
		((word & UINT64CONST(0x7FFFFFFFFFFFFFFF)) <= UINT64CONST(0x7FF0000000000000) ||
		 word == UINT64CONST(0x7FF8000000000000));
}

static bool
is_canonical_inet(const uint8 *key, uint32 size)
{
	return size == 2 + 4 ? key[0] == 4 && key[1] <= 32
		: size == 2 + 16 && key[0] == 6 && key[1] <= 128;
}

/*
 * Can these be the canonical bytes of a value?  Checks what costs little.  Bytes
 * of no value are in no filter, so the rest does no harm.
 */
static bool
is_canonical(uint32 element_class, const uint8 *key, uint32 size)
{
	switch ((bf_class) element_class)
	{
		case BF_CLASS_NONE:
			return false;
		case BF_CLASS_BOOL:
			return size == 1 && key[0] <= 1;
		case BF_CLASS_INT8:
		case BF_CLASS_DATE:
		case BF_CLASS_TIME:
		case BF_CLASS_TIMESTAMP:
		case BF_CLASS_TIMESTAMPTZ:
		case BF_CLASS_MACADDR8:
			return size == 8;
		case BF_CLASS_FLOAT8:
			return size == 8 && is_canonical_float(bf_load64(key));
		case BF_CLASS_MACADDR:
			return size == 6;
		case BF_CLASS_TIMETZ:
			return size == 12;
		case BF_CLASS_INTERVAL:
			return size == 16 && bf_load64(key + 8) < (uint64) USECS_PER_DAY;
		case BF_CLASS_UUID:
			return size == 16;
		case BF_CLASS_INET:
			return is_canonical_inet(key, size);
		case BF_CLASS_BPCHAR:
			return size == 0 || key[size - 1] != ' ';
		case BF_CLASS_TEXT:
		case BF_CLASS_BYTEA:
		case BF_CLASS_NUMERIC:
			return true;
	}
	return false;
}

static const char *
check_keys(const OpenQuery *query)
{
	const uint8 *at = query->keys;
	const uint8 *end = at + query->size;

	for (uint32 i = 0; i < query->nkeys; i++)
	{
		uint32		length;

		if (i % CHUNK_KEYS == 0)
			CHECK_FOR_INTERRUPTS();
		if (end - at < QUERY_LENGTH_SIZE)
			return gettext_noop("It has fewer keys than its header says.");
		length = key_length(&at);
		if (length > (uint64) (end - at))
			return gettext_noop("A key is longer than the rest of the bytes.");
		if (!is_canonical(query->element_class, at, length))
			return gettext_noop("A key has bytes that no value of its element class has.");
		at += length;
	}
	return at == end ? NULL : gettext_noop("There are bytes after the last key.");
}

const char *
decode_query(const uint8 *bytes, uint64 size, OpenQuery *query)
{
	if (size < QUERY_HEADER_SIZE)
		return gettext_noop("It is shorter than a header.");
	query->element_class = bf_load32(bytes + QUERY_AT_CLASS);
	query->is_enum = query->element_class == QUERY_CLASS_ENUM;
	if (query->is_enum)
		query->element_class = BF_CLASS_TEXT;
	query->least = bf_load32(bytes + QUERY_AT_LEAST);
	query->nkeys = bf_load32(bytes + QUERY_AT_COUNT);
	query->keys = bytes + QUERY_HEADER_SIZE;
	query->size = (uint32) (size - QUERY_HEADER_SIZE);
	if (query->element_class == BF_CLASS_NONE || !bf_class_known(query->element_class))
		return gettext_noop("Its element class is unknown.");
	return check_keys(query);
}

BloomQuery *
open_query(Datum value, OpenQuery *query)
{
	BloomQuery *bytes = PG_DETOAST_DATUM_PACKED(value);
	const char *fault = decode_query((const uint8 *) VARDATA_ANY(bytes),
									 VARSIZE_ANY_EXHDR(bytes), query);

	if (fault != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("invalid %s value in the database", "bloomquery"),
				 errdetail_internal("%s", _(fault))));
	return bytes;
}

/* Can filters of a class answer, and without trailing blanks?  As lookup_hash(). */
static bool
can_answer(const OpenQuery *query, uint32 filter_class, bool *unpadded)
{
	*unpadded = filter_class == BF_CLASS_BPCHAR && query->element_class == BF_CLASS_TEXT &&
		!query->is_enum;
	return *unpadded || filter_class == query->element_class;
}

bool
hash_query(const OpenQuery *query, uint32 filter_class, uint64 seed, uint64 *hashes)
{
	const uint8 *at = query->keys;
	bool		unpadded;

	if (!can_answer(query, filter_class, &unpadded) && query->nkeys > 0)
		return false;
	for (uint32 i = 0; i < query->nkeys; i++)
	{
		uint32		length = key_length(&at);
		uint32		hashed = length;

		if (i % CHUNK_KEYS == 0)
			CHECK_FOR_INTERRUPTS();
		while (unpadded && hashed > 0 && at[hashed - 1] == ' ')
			hashed--;
		hashes[i] = bf_hash_bytes(at, hashed, seed);
		at += length;
	}
	return true;
}
