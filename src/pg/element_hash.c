/*
 * element_hash.c
 *		The hash of a value of each supported type.
 *
 * Each function hashes canonical bytes, which are equal if and only if the
 * values are equal in SQL: doc/format.md, "Canonical bytes".  PostgreSQL's hash
 * functions do not fit, because they may change between versions and depend on
 * the byte order.
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

static uint64
hash_of_bool(Datum value, uint64 seed)
{
	uint8		byte = DatumGetBool(value) ? 1 : 0;

	return bf_hash_bytes(&byte, 1, seed);
}

static uint64
hash_of_int2(Datum value, uint64 seed)
{
	return bf_hash_word((uint64) (int64) DatumGetInt16(value), seed);
}

/* Also for date, a number of days. */
static uint64
hash_of_int4(Datum value, uint64 seed)
{
	return bf_hash_word((uint64) (int64) DatumGetInt32(value), seed);
}

/* Also for time, timestamp and timestamptz, numbers of microseconds. */
static uint64
hash_of_int8(Datum value, uint64 seed)
{
	return bf_hash_word((uint64) DatumGetInt64(value), seed);
}

static uint64
hash_of_double(double number, uint64 seed)
{
	uint64		word;

	if (isnan(number))
		return bf_hash_word(UINT64CONST(0x7FF8000000000000), seed);
	if (number == 0)
		number = 0;				/* -0.0 becomes 0.0 */
	memcpy(&word, &number, sizeof(word));
	return bf_hash_word(word, seed);
}

static uint64
hash_of_float4(Datum value, uint64 seed)
{
	return hash_of_double((double) DatumGetFloat4(value), seed);
}

static uint64
hash_of_float8(Datum value, uint64 seed)
{
	return hash_of_double(DatumGetFloat8(value), seed);
}

static uint64
hash_of_numeric(Datum value, uint64 seed)
{
	Numeric		number = DatumGetNumeric(value);
	char	   *digits = numeric_normalize(number);
	uint64		hash = bf_hash_bytes(digits, strlen(digits), seed);

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
 * Hashes characters of the database encoding as UTF-8.  PostgreSQL cannot
 * convert MULE_INTERNAL to UTF-8, so in that encoding only ASCII is supported.
 */
static uint64
hash_of_characters(const char *characters, int size, uint64 seed)
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
	hash = bf_hash_bytes(utf8, size, seed);
	if (utf8 != characters)
		pfree((char *) utf8);
	return hash;
}

/* Hashes a string as text, or if unpadded without trailing blanks as char(n). */
static uint64
hash_of_string(Datum value, bool unpadded, uint64 seed)
{
	text	   *characters = DatumGetTextPP(value);
	int			size = VARSIZE_ANY_EXHDR(characters);
	uint64		hash;

	if (unpadded)
		size = bpchartruelen(VARDATA_ANY(characters), size);
	hash = hash_of_characters(VARDATA_ANY(characters), size, seed);
	if ((Pointer) characters != DatumGetPointer(value))
		pfree(characters);
	return hash;
}

static uint64
hash_of_text(Datum value, uint64 seed)
{
	return hash_of_string(value, false, seed);
}

static uint64
hash_of_bpchar(Datum value, uint64 seed)
{
	return hash_of_string(value, true, seed);
}

static uint64
hash_of_name(Datum value, uint64 seed)
{
	const char *name = NameStr(*DatumGetName(value));

	return hash_of_characters(name, strlen(name), seed);
}

static uint64
hash_of_unpadded_name(Datum value, uint64 seed)
{
	char	   *name = NameStr(*DatumGetName(value));

	return hash_of_characters(name, bpchartruelen(name, strlen(name)), seed);
}

/* By the label, because the OID of an enum value differs between databases. */
static uint64
hash_of_enum(Datum value, uint64 seed)
{
	HeapTuple	tuple = SearchSysCache1(ENUMOID, value);
	const char *label;
	uint64		hash;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid internal value for enum: %u", DatumGetObjectId(value))));
	label = NameStr(((Form_pg_enum) GETSTRUCT(tuple))->enumlabel);
	hash = hash_of_characters(label, strlen(label), seed);
	ReleaseSysCache(tuple);
	return hash;
}

static uint64
hash_of_bytea(Datum value, uint64 seed)
{
	bytea	   *bytes = DatumGetByteaPP(value);
	uint64		hash = bf_hash_bytes(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), seed);

	if ((Pointer) bytes != DatumGetPointer(value))
		pfree(bytes);
	return hash;
}

static uint64
hash_of_uuid(Datum value, uint64 seed)
{
	return bf_hash_bytes(DatumGetUUIDP(value)->data, UUID_LEN, seed);
}

static uint64
hash_of_timetz(Datum value, uint64 seed)
{
	TimeTzADT  *time = DatumGetTimeTzADTP(value);
	uint8		bytes[12];

	bf_store64(bytes, (uint64) time->time);
	bf_store32(bytes + 8, (uint32) time->zone);
	return bf_hash_bytes(bytes, sizeof(bytes), seed);
}

/*
 * Intervals are equal if their spans are equal, with months of 30 days and days
 * of 24 hours (interval_cmp_value() in timestamp.c).  The canonical form of a
 * span is whole days and 0 <= microseconds < 1 day.
 */
static uint64
hash_of_interval(Datum value, uint64 seed)
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
	return bf_hash_bytes(bytes, sizeof(bytes), seed);
}

static uint64
hash_of_inet(Datum value, uint64 seed)
{
	inet	   *address = DatumGetInetPP(value);
	uint8		bytes[2 + 16];
	uint64		hash;

	bytes[0] = ip_family(address) == PGSQL_AF_INET ? 4 : 6;
	bytes[1] = ip_bits(address);
	memcpy(bytes + 2, ip_addr(address), ip_addrsize(address));
	hash = bf_hash_bytes(bytes, 2 + ip_addrsize(address), seed);
	if ((Pointer) address != DatumGetPointer(value))
		pfree(address);
	return hash;
}

static uint64
hash_of_macaddr(Datum value, uint64 seed)
{
	macaddr    *m = DatumGetMacaddrP(value);
	uint8		bytes[6] = {m->a, m->b, m->c, m->d, m->e, m->f};

	return bf_hash_bytes(bytes, sizeof(bytes), seed);
}

static uint64
hash_of_macaddr8(Datum value, uint64 seed)
{
	macaddr8   *m = DatumGetMacaddr8P(value);
	uint8		bytes[8] = {m->a, m->b, m->c, m->d, m->e, m->f, m->g, m->h};

	return bf_hash_bytes(bytes, sizeof(bytes), seed);
}

typedef struct HashedType
{
	Oid			type;
	uint32		element_class;
	HashElement hash;
	HashElement hash_unpadded;
} HashedType;

static const HashedType element_types[] = {
	{INT8OID, BF_CLASS_INT8, hash_of_int8, NULL},
	{INT4OID, BF_CLASS_INT8, hash_of_int4, NULL},
	{INT2OID, BF_CLASS_INT8, hash_of_int2, NULL},
	{TEXTOID, BF_CLASS_TEXT, hash_of_text, hash_of_bpchar},
	{VARCHAROID, BF_CLASS_TEXT, hash_of_text, hash_of_bpchar},
	{BPCHAROID, BF_CLASS_BPCHAR, hash_of_bpchar, NULL},
	{NAMEOID, BF_CLASS_TEXT, hash_of_name, hash_of_unpadded_name},
	{UUIDOID, BF_CLASS_UUID, hash_of_uuid, NULL},
	{BYTEAOID, BF_CLASS_BYTEA, hash_of_bytea, NULL},
	{BOOLOID, BF_CLASS_BOOL, hash_of_bool, NULL},
	{FLOAT4OID, BF_CLASS_FLOAT8, hash_of_float4, NULL},
	{FLOAT8OID, BF_CLASS_FLOAT8, hash_of_float8, NULL},
	{NUMERICOID, BF_CLASS_NUMERIC, hash_of_numeric, NULL},
	{DATEOID, BF_CLASS_DATE, hash_of_int4, NULL},
	{TIMEOID, BF_CLASS_TIME, hash_of_int8, NULL},
	{TIMETZOID, BF_CLASS_TIMETZ, hash_of_timetz, NULL},
	{TIMESTAMPOID, BF_CLASS_TIMESTAMP, hash_of_int8, NULL},
	{TIMESTAMPTZOID, BF_CLASS_TIMESTAMPTZ, hash_of_int8, NULL},
	{INTERVALOID, BF_CLASS_INTERVAL, hash_of_interval, NULL},
	{INETOID, BF_CLASS_INET, hash_of_inet, NULL},
	{CIDROID, BF_CLASS_INET, hash_of_inet, NULL},
	{MACADDROID, BF_CLASS_MACADDR, hash_of_macaddr, NULL},
	{MACADDR8OID, BF_CLASS_MACADDR8, hash_of_macaddr8, NULL},
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
			element->is_stable = true;
			return true;
		}
	}
	if (type_is_enum(type))
	{
		element->element_class = BF_CLASS_TEXT;
		element->hash = hash_of_enum;
		element->hash_unpadded = NULL;	/* SQL cannot compare char(n) */
		element->is_stable = false; /* a label can be renamed */
		return true;
	}
	return false;
}
