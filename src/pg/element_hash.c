/*
 * element_hash.c
 *		The canonical bytes of a value of each supported type, and their hash.
 *
 * Canonical bytes are equal if and only if the values are equal in SQL:
 * doc/format.md, "Canonical bytes".  PostgreSQL's hash functions do not fit,
 * because they may change between versions and depend on the byte order.
 */
#include "pg/pg_compat.h"

#include <math.h>
#include <sys/socket.h>

#include "access/htup_details.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "core/hash.h"
#include "mb/pg_wchar.h"
#include "pg/element.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/inet.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

/*
 * What becomes of canonical bytes: they are appended to target, or hashed if that
 * is NULL.  Each canonical_TYPE() is compiled once for either, so that hashing
 * has no branch for it.  The result is the hash, or 0.
 */
static pg_attribute_always_inline uint64
take_bytes(const void *canonical, Size size, uint64 seed, StringInfo target)
{
	if (target == NULL)
		return bf_hash_bytes(canonical, size, seed);
	appendBinaryStringInfo(target, canonical, (int) size);
	return 0;
}

static pg_attribute_always_inline uint64
take_word(uint64 word, uint64 seed, StringInfo target)
{
	uint8		canonical[8];

	if (target == NULL)
		return bf_hash_word(word, seed);
	bf_store64(canonical, word);
	return take_bytes(canonical, sizeof(canonical), seed, target);
}

/* Defines hash_of_TYPE() and append_TYPE() from canonical_TYPE(). */
#define CANONICAL_FORM(type) \
	static uint64 \
	hash_of_##type(Datum value, uint64 seed) \
	{ \
		return canonical_##type(value, seed, NULL); \
	} \
	static void \
	append_##type(Datum value, StringInfo target) \
	{ \
		canonical_##type(value, 0, target); \
	}

static pg_attribute_always_inline uint64
canonical_bool(Datum value, uint64 seed, StringInfo target)
{
	uint8		byte = DatumGetBool(value) ? 1 : 0;

	return take_bytes(&byte, 1, seed, target);
}

static pg_attribute_always_inline uint64
canonical_int2(Datum value, uint64 seed, StringInfo target)
{
	return take_word((uint64) (int64) DatumGetInt16(value), seed, target);
}

/* Also for date, a number of days. */
static pg_attribute_always_inline uint64
canonical_int4(Datum value, uint64 seed, StringInfo target)
{
	return take_word((uint64) (int64) DatumGetInt32(value), seed, target);
}

/* Also for time, timestamp and timestamptz, numbers of microseconds. */
static pg_attribute_always_inline uint64
canonical_int8(Datum value, uint64 seed, StringInfo target)
{
	return take_word((uint64) DatumGetInt64(value), seed, target);
}

static pg_attribute_always_inline uint64
canonical_double(double number, uint64 seed, StringInfo target)
{
	uint64		word;

	if (isnan(number))
		return take_word(UINT64CONST(0x7FF8000000000000), seed, target);
	if (number == 0)
		number = 0;				/* -0.0 becomes 0.0 */
	memcpy(&word, &number, sizeof(word));
	return take_word(word, seed, target);
}

static pg_attribute_always_inline uint64
canonical_float4(Datum value, uint64 seed, StringInfo target)
{
	return canonical_double((double) DatumGetFloat4(value), seed, target);
}

static pg_attribute_always_inline uint64
canonical_float8(Datum value, uint64 seed, StringInfo target)
{
	return canonical_double(DatumGetFloat8(value), seed, target);
}

static pg_attribute_always_inline uint64
canonical_numeric(Datum value, uint64 seed, StringInfo target)
{
	Numeric		number = DatumGetNumeric(value);
	char	   *digits = numeric_normalize(number);
	uint64		hash = take_bytes(digits, strlen(digits), seed, target);

	pfree(digits);
	if ((Pointer) number != DatumGetPointer(value))
		pfree(number);
	return hash;
}

/* In every server encoding ASCII characters have their ASCII codes. */
static bool
is_ascii(const char *characters, int size)
{
	for (int i = 0; i < size; i++)
	{
		if (IS_HIGHBIT_SET(characters[i]))
			return false;
	}
	return true;
}

/*
 * The canonical form of characters is UTF-8.  PostgreSQL cannot convert
 * MULE_INTERNAL to UTF-8, so in that encoding only ASCII is supported.
 */
static pg_attribute_always_inline uint64
canonical_characters(const char *characters, int size, uint64 seed, StringInfo target)
{
	const char *utf8 = characters;
	uint64		hash;

	if (GetDatabaseEncoding() != PG_UTF8 && GetDatabaseEncoding() != PG_SQL_ASCII &&
		!is_ascii(characters, size))
	{
		utf8 = pg_server_to_any(characters, size, PG_UTF8);
		if (utf8 != characters)
			size = strlen(utf8);
	}
	hash = take_bytes(utf8, size, seed, target);
	if (utf8 != characters)
		pfree((char *) utf8);
	return hash;
}

/* As text, or if unpadded without trailing blanks as char(n). */
static pg_attribute_always_inline uint64
canonical_string(Datum value, bool unpadded, uint64 seed, StringInfo target)
{
	text	   *characters = DatumGetTextPP(value);
	int			size = VARSIZE_ANY_EXHDR(characters);
	uint64		hash;

	if (unpadded)
		size = bpchartruelen(VARDATA_ANY(characters), size);
	hash = canonical_characters(VARDATA_ANY(characters), size, seed, target);
	if ((Pointer) characters != DatumGetPointer(value))
		pfree(characters);
	return hash;
}

static pg_attribute_always_inline uint64
canonical_text(Datum value, uint64 seed, StringInfo target)
{
	return canonical_string(value, false, seed, target);
}

static pg_attribute_always_inline uint64
canonical_bpchar(Datum value, uint64 seed, StringInfo target)
{
	return canonical_string(value, true, seed, target);
}

static pg_attribute_always_inline uint64
canonical_name(Datum value, uint64 seed, StringInfo target)
{
	const char *name = NameStr(*DatumGetName(value));

	return canonical_characters(name, strlen(name), seed, target);
}

static uint64
hash_of_unpadded_name(Datum value, uint64 seed)
{
	char	   *name = NameStr(*DatumGetName(value));

	return canonical_characters(name, bpchartruelen(name, strlen(name)), seed, NULL);
}

/* By the label, because the OID of an enum value differs between databases. */
static pg_attribute_always_inline uint64
canonical_enum(Datum value, uint64 seed, StringInfo target)
{
	HeapTuple	tuple = SearchSysCache1(ENUMOID, value);
	const char *label;
	uint64		hash;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid internal value for enum: %u", DatumGetObjectId(value))));
	label = NameStr(((Form_pg_enum) GETSTRUCT(tuple))->enumlabel);
	hash = canonical_characters(label, strlen(label), seed, target);
	ReleaseSysCache(tuple);
	return hash;
}

static pg_attribute_always_inline uint64
canonical_bytea(Datum value, uint64 seed, StringInfo target)
{
	bytea	   *bytes = DatumGetByteaPP(value);
	uint64		hash = take_bytes(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), seed, target);

	if ((Pointer) bytes != DatumGetPointer(value))
		pfree(bytes);
	return hash;
}

static pg_attribute_always_inline uint64
canonical_uuid(Datum value, uint64 seed, StringInfo target)
{
	return take_bytes(DatumGetUUIDP(value)->data, UUID_LEN, seed, target);
}

static pg_attribute_always_inline uint64
canonical_timetz(Datum value, uint64 seed, StringInfo target)
{
	TimeTzADT  *time = DatumGetTimeTzADTP(value);
	uint8		bytes[12];

	bf_store64(bytes, (uint64) time->time);
	bf_store32(bytes + 8, (uint32) time->zone);
	return take_bytes(bytes, sizeof(bytes), seed, target);
}

/*
 * Intervals are equal if their spans are equal, with months of 30 days and days
 * of 24 hours (interval_cmp_value() in timestamp.c).  The canonical form of a
 * span is whole days and 0 <= microseconds < 1 day.
 */
static pg_attribute_always_inline uint64
canonical_interval(Datum value, uint64 seed, StringInfo target)
{
	Interval   *interval = DatumGetIntervalP(value);
	int64		days = (int64) interval->month * DAYS_PER_MONTH + interval->day;
	int64		microseconds = interval->time % USECS_PER_DAY;
	uint8		bytes[16];

	days += interval->time / USECS_PER_DAY;
	if (microseconds < 0)
	{
		microseconds += USECS_PER_DAY;
		days--;
	}
	bf_store64(bytes, (uint64) days);
	bf_store64(bytes + 8, (uint64) microseconds);
	return take_bytes(bytes, sizeof(bytes), seed, target);
}

static pg_attribute_always_inline uint64
canonical_inet(Datum value, uint64 seed, StringInfo target)
{
	inet	   *address = DatumGetInetPP(value);
	uint8		bytes[2 + 16];
	uint64		hash;

	bytes[0] = ip_family(address) == PGSQL_AF_INET ? 4 : 6;
	bytes[1] = ip_bits(address);
	memcpy(bytes + 2, ip_addr(address), ip_addrsize(address));
	hash = take_bytes(bytes, 2 + ip_addrsize(address), seed, target);
	if ((Pointer) address != DatumGetPointer(value))
		pfree(address);
	return hash;
}

static pg_attribute_always_inline uint64
canonical_macaddr(Datum value, uint64 seed, StringInfo target)
{
	macaddr    *m = DatumGetMacaddrP(value);
	uint8		bytes[6] = {m->a, m->b, m->c, m->d, m->e, m->f};

	return take_bytes(bytes, sizeof(bytes), seed, target);
}

static pg_attribute_always_inline uint64
canonical_macaddr8(Datum value, uint64 seed, StringInfo target)
{
	macaddr8   *m = DatumGetMacaddr8P(value);
	uint8		bytes[8] = {m->a, m->b, m->c, m->d, m->e, m->f, m->g, m->h};

	return take_bytes(bytes, sizeof(bytes), seed, target);
}

CANONICAL_FORM(bool)
CANONICAL_FORM(int2)
CANONICAL_FORM(int4)
CANONICAL_FORM(int8)
CANONICAL_FORM(float4)
CANONICAL_FORM(float8)
CANONICAL_FORM(numeric)
CANONICAL_FORM(text)
CANONICAL_FORM(bpchar)
CANONICAL_FORM(name)
CANONICAL_FORM(enum)
CANONICAL_FORM(bytea)
CANONICAL_FORM(uuid)
CANONICAL_FORM(timetz)
CANONICAL_FORM(interval)
CANONICAL_FORM(inet)
CANONICAL_FORM(macaddr)
CANONICAL_FORM(macaddr8)

typedef struct HashedType
{
	Oid			type;
	uint32		element_class;
	HashElement hash;
	HashElement hash_unpadded;
	AppendElement append;
} HashedType;

static const HashedType element_types[] = {
	{INT8OID, BF_CLASS_INT8, hash_of_int8, NULL, append_int8},
	{INT4OID, BF_CLASS_INT8, hash_of_int4, NULL, append_int4},
	{INT2OID, BF_CLASS_INT8, hash_of_int2, NULL, append_int2},
	{TEXTOID, BF_CLASS_TEXT, hash_of_text, hash_of_bpchar, append_text},
	{VARCHAROID, BF_CLASS_TEXT, hash_of_text, hash_of_bpchar, append_text},
	{BPCHAROID, BF_CLASS_BPCHAR, hash_of_bpchar, NULL, append_bpchar},
	{NAMEOID, BF_CLASS_TEXT, hash_of_name, hash_of_unpadded_name, append_name},
	{UUIDOID, BF_CLASS_UUID, hash_of_uuid, NULL, append_uuid},
	{BYTEAOID, BF_CLASS_BYTEA, hash_of_bytea, NULL, append_bytea},
	{BOOLOID, BF_CLASS_BOOL, hash_of_bool, NULL, append_bool},
	{FLOAT4OID, BF_CLASS_FLOAT8, hash_of_float4, NULL, append_float4},
	{FLOAT8OID, BF_CLASS_FLOAT8, hash_of_float8, NULL, append_float8},
	{NUMERICOID, BF_CLASS_NUMERIC, hash_of_numeric, NULL, append_numeric},
	{DATEOID, BF_CLASS_DATE, hash_of_int4, NULL, append_int4},
	{TIMEOID, BF_CLASS_TIME, hash_of_int8, NULL, append_int8},
	{TIMETZOID, BF_CLASS_TIMETZ, hash_of_timetz, NULL, append_timetz},
	{TIMESTAMPOID, BF_CLASS_TIMESTAMP, hash_of_int8, NULL, append_int8},
	{TIMESTAMPTZOID, BF_CLASS_TIMESTAMPTZ, hash_of_int8, NULL, append_int8},
	{INTERVALOID, BF_CLASS_INTERVAL, hash_of_interval, NULL, append_interval},
	{INETOID, BF_CLASS_INET, hash_of_inet, NULL, append_inet},
	{CIDROID, BF_CLASS_INET, hash_of_inet, NULL, append_inet},
	{MACADDROID, BF_CLASS_MACADDR, hash_of_macaddr, NULL, append_macaddr},
	{MACADDR8OID, BF_CLASS_MACADDR8, hash_of_macaddr8, NULL, append_macaddr8},
};

bool
find_hash_function(Oid type, ElementType *element)
{
	type = getBaseType(type);
	for (size_t i = 0; i < lengthof(element_types); i++)
	{
		if (element_types[i].type == type)
		{
			element->element_class = element_types[i].element_class;
			element->hash = element_types[i].hash;
			element->hash_unpadded = element_types[i].hash_unpadded;
			element->append = element_types[i].append;
			element->is_stable = true;
			return true;
		}
	}
	if (type_is_enum(type))
	{
		element->element_class = BF_CLASS_TEXT;
		element->hash = hash_of_enum;
		element->append = append_enum;
		element->hash_unpadded = NULL;	/* SQL cannot compare char(n) */
		element->is_stable = false; /* a label can be renamed */
		return true;
	}
	return false;
}
