/*
 * hex.h
 *		Hexadecimal digits.
 */
#ifndef BF_HEX_H
#define BF_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes 2 * size lower-case digits. */
extern void bf_hex_encode(const uint8_t *bytes, size_t size, char *digits);

/* Reads 2 * size digits of either case; false if a character is not a digit. */
extern bool bf_hex_decode(const char *digits, size_t size, uint8_t *bytes);

#endif							/* BF_HEX_H */
