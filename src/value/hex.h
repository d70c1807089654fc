/*
 * hex.h
 *		The text form of the types: \x and hexadecimal digits.
 */
#ifndef BF_HEX_H
#define BF_HEX_H

#include "pg/pg_compat.h"

#include "nodes/nodes.h"

/*
 * Checks the syntax except the digits.  *size is the number of bytes encoded.
 * Both functions return false after a soft error, if escontext asks for that.
 */
extern bool check_text_form(const char *text, uint64 *size, const char *type, Node *escontext);

/* Decodes the digits of size bytes; an error if one is not a digit. */
extern bool decode_digits(const char *digits, uint64 size, uint8 *bytes, const char *type,
						  Node *escontext);

/* The text of bytes, palloc'd. */
extern char *encode_text(const uint8 *bytes, uint64 size);

#endif							/* BF_HEX_H */
