/*
 * test_bytes.c
 *		Loads and stores at every alignment, against bytes put together by shifts.
 */
#include "bytes.h"
#include "reference.h"
#include "tap.h"

#define ROOM 24

/* The little-endian number of that size. */
static uint64_t
shifted(const uint8_t *bytes, int size)
{
	uint64_t	value = 0;

	for (int i = 0; i < size; i++)
		value |= (uint64_t) bytes[i] << 8 * i;
	return value;
}

static void
compare_loads(const uint8_t *bytes)
{
	each(bf_load16(bytes) == shifted(bytes, 2), "load of 2 bytes");
	each(bf_load32(bytes) == shifted(bytes, 4), "load of 4 bytes");
	each(bf_load64(bytes) == shifted(bytes, 8), "load of 8 bytes");
}

/* Stores a value in random bytes: these bytes change, and no others. */
static void
compare_store(int size, size_t offset, uint64_t value, uint64_t *state)
{
	uint8_t    *bytes = allocate(ROOM);
	uint8_t		wanted[ROOM];

	random_bytes(state, bytes, ROOM);
	memcpy(wanted, bytes, ROOM);
	for (int i = 0; i < size; i++)
		wanted[offset + (size_t) i] = (uint8_t) (value >> 8 * i);
	if (size == 2)
		bf_store16(bytes + offset, (uint16_t) value);
	else if (size == 4)
		bf_store32(bytes + offset, (uint32_t) value);
	else
		bf_store64(bytes + offset, value);
	each(memcmp(bytes, wanted, ROOM) == 0, "%d bytes at %zu", size, offset);
	free(bytes);
}

static void
test_known(void)
{
	static const uint8_t bytes[] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0xF8};

	is(bf_load16(bytes), 0x0201, "2 bytes");
	is(bf_load32(bytes), 0x04030201, "4 bytes");
	is(bf_load64(bytes), UINT64_C(0xF807060504030201), "8 bytes");
}

int
main(void)
{
	uint64_t	state = 1;

	test_known();
	for (int i = 0; i < 1000; i++)
	{
		for (size_t offset = 0; offset < 16; offset++)
		{
			uint8_t    *bytes = allocate(offset + 8);

			random_bytes(&state, bytes, offset + 8);
			compare_loads(bytes + offset);
			free(bytes);
			compare_store(2, offset, next_random(&state), &state);
			compare_store(4, offset, next_random(&state), &state);
			compare_store(8, offset, next_random(&state), &state);
		}
	}
	passed("loads and stores at every alignment");
	return done();
}
