/*
 * hex.h
 *		Bytes to and from hexadecimal digits, strictly.
 */
#ifndef BF_HEX_H
#define BF_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes 2 * size lower-case digits. */
extern void bf_hex_encode(const uint8_t *bytes, size_t size, char *digits);

/* Reads 2 * size digits; false if one of them is none. */
extern bool bf_hex_decode(const char *digits, size_t size, uint8_t *bytes);

#endif							/* BF_HEX_H */
