/*
 * header_cache.c
 *		Headers of stored filters that this session has read.
 */
#include "header_cache.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* From one statement, or transaction of a procedure, to a later one. */
#define LIFETIME		(60 * USECS_PER_SEC)

/* 450 kB, taken when the first header is remembered. */
#define PLACES			8192

typedef struct RememberedHeader
{
	struct varatt_external pointer;
	uint8		bytes[BF_HEADER_SIZE];
	TimestampTz since;
} RememberedHeader;

static RememberedHeader *places;

/* When the present statement began, or in a procedure that commits the present transaction. */
static TimestampTz
present(void)
{
	return Max(GetCurrentStatementStartTimestamp(), GetCurrentTransactionStartTimestamp());
}

/* Values that were stored one after the other have different places. */
static RememberedHeader *
place_of(const struct varatt_external *pointer)
{
	return &places[(pointer->va_valueid + pointer->va_toastrelid) % PLACES];
}

bool
recall_header(const struct varatt_external *pointer, uint8 header[BF_HEADER_SIZE])
{
	RememberedHeader *place;
	TimestampTz now = present();

	if (places == NULL)
		return false;
	place = place_of(pointer);
	if (memcmp(&place->pointer, pointer, sizeof(*pointer)) != 0 ||
		now < place->since || now - place->since > LIFETIME)
		return false;
	memcpy(header, place->bytes, BF_HEADER_SIZE);
	return true;
}

void
remember_header(const struct varatt_external *pointer, const uint8 header[BF_HEADER_SIZE])
{
	RememberedHeader *place;

	if (places == NULL)
		places = MemoryContextAllocZero(TopMemoryContext, PLACES * sizeof(*places));
	place = place_of(pointer);
	place->pointer = *pointer;
	memcpy(place->bytes, header, BF_HEADER_SIZE);
	place->since = present();
}
