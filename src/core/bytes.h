/*
 * bytes.h
 *		Little-endian loads and stores at any alignment.
 *
 * gcc and clang compile each to one move on a little-endian machine, and to
 * one byte-swapping move elsewhere.
 */
#ifndef BF_BYTES_H
#define BF_BYTES_H

#include <stdint.h>

static inline uint32_t
bf_load16(const uint8_t *p)
{
	return (uint32_t) p[0] | (uint32_t) p[1] << 8;
}

static inline uint32_t
bf_load32(const uint8_t *p)
{
	return (uint32_t) p[0] | (uint32_t) p[1] << 8 |
		(uint32_t) p[2] << 16 | (uint32_t) p[3] << 24;
}

static inline uint64_t
bf_load64(const uint8_t *p)
{
	return (uint64_t) bf_load32(p) | (uint64_t) bf_load32(p + 4) << 32;
}

static inline void
bf_store16(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t) value;
	p[1] = (uint8_t) (value >> 8);
}

static inline void
bf_store32(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t) value;
	p[1] = (uint8_t) (value >> 8);
	p[2] = (uint8_t) (value >> 16);
	p[3] = (uint8_t) (value >> 24);
}

static inline void
bf_store64(uint8_t *p, uint64_t value)
{
	bf_store32(p, (uint32_t) value);
	bf_store32(p + 4, (uint32_t) (value >> 32));
}

#endif							/* BF_BYTES_H */
