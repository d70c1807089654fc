/*
 * bytes.h
 *		Little-endian loads and stores at any alignment.
 *
 * memcpy of a constant size is one move, which gcc and clang also vectorize in
 * loops.  They do not vectorize the same load put together from bytes.
 */
#ifndef BF_BYTES_H
#define BF_BYTES_H

#include <stdint.h>
#include <string.h>

/* From and to little-endian. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define BF_ORDER_16(x) __builtin_bswap16(x)
#define BF_ORDER_32(x) __builtin_bswap32(x)
#define BF_ORDER_64(x) __builtin_bswap64(x)
#else
#define BF_ORDER_16(x) (x)
#define BF_ORDER_32(x) (x)
#define BF_ORDER_64(x) (x)
#endif

static inline uint16_t
bf_load16(const uint8_t *p)
{
	uint16_t	value;

	memcpy(&value, p, sizeof(value));
	return BF_ORDER_16(value);
}

static inline uint32_t
bf_load32(const uint8_t *p)
{
	uint32_t	value;

	memcpy(&value, p, sizeof(value));
	return BF_ORDER_32(value);
}

static inline uint64_t
bf_load64(const uint8_t *p)
{
	uint64_t	value;

	memcpy(&value, p, sizeof(value));
	return BF_ORDER_64(value);
}

static inline void
bf_store16(uint8_t *p, uint16_t value)
{
	value = BF_ORDER_16(value);
	memcpy(p, &value, sizeof(value));
}

static inline void
bf_store32(uint8_t *p, uint32_t value)
{
	value = BF_ORDER_32(value);
	memcpy(p, &value, sizeof(value));
}

static inline void
bf_store64(uint8_t *p, uint64_t value)
{
	value = BF_ORDER_64(value);
	memcpy(p, &value, sizeof(value));
}

#endif							/* BF_BYTES_H */
