/*
 * server_fuzzer_mutations.c
 *		Bytes for server_fuzzer to send; see server_fuzzer_mutations.h.
 */
#include "server_fuzzer_mutations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mend.h"

static void
reserve(Bytes *bytes, size_t size)
{
	if (size <= bytes->room)
		return;
	bytes->room = 2 * size;
	bytes->data = realloc(bytes->data, bytes->room);
	if (bytes->data == NULL)
		abort();
}

void
set_bytes(Bytes *to, const void *data, size_t size)
{
	reserve(to, size + 1);
	memcpy(to->data, data, size);
	to->size = size;
}

void
append_bytes(Bytes *to, const void *data, size_t size)
{
	reserve(to, to->size + size + 1);
	memcpy(to->data + to->size, data, size);
	to->size += size;
}

/* New bytes are 0. */
static void
resize(Bytes *bytes, size_t size)
{
	reserve(bytes, size + 1);
	if (size > bytes->size)
		memset(bytes->data + bytes->size, 0, size - bytes->size);
	bytes->size = size;
}

void
append_network32(Bytes *to, uint32_t value)
{
	uint8_t		bytes[] = {(uint8_t) (value >> 24), (uint8_t) (value >> 16), (uint8_t) (value >> 8), (uint8_t) value};

	append_bytes(to, bytes, 4);
}

uint64_t
random_word(Random *random)
{
	uint64_t	z = random->state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

uint64_t
below(Random *random, uint64_t limit)
{
	return random_word(random) % limit;
}

bool
one_in(Random *random, uint64_t n)
{
	return below(random, n) == 0;
}

static void
put_rate(uint8_t *bytes, float rate)
{
	uint32_t	bits;

	memcpy(&bits, &rate, sizeof(bits));
	put(bytes, RATE, 4, bits);
}

static bool counters;

void
choose_counters(bool chosen)
{
	counters = chosen;
}

bool
is_filter(const uint8_t *bytes, size_t size)
{
	return counters ? acceptable_counter(bytes, size, false) : acceptable(bytes, size, false);
}

static uint64_t
positions(const Bytes *filter)
{
	return get(filter->data, BITS, 8);
}

static uint64_t
most_positions(const Bytes *filter)
{
	return MAX_BITS / position_bits(filter->data);
}

uint32_t
filter_class(const Bytes *filter)
{
	return (uint32_t) get(filter->data, CLASS, 4);
}

uint64_t
filter_bits(const Bytes *filter)
{
	return positions(filter) * position_bits(filter->data);
}

void
make_key(const Bytes *filter, char *key, size_t size)
{
	snprintf(key, size, "%d %d %d %d %016llx %llu", filter->data[LAYOUT], filter->data[FLAGS] & WIDTH,
			 filter->data[K], (int) filter_class(filter), (unsigned long long) get(filter->data, SEED, 8),
			 (unsigned long long) positions(filter));
}

/* What marks a counter, its width and its contents; 0 for filters. */
static uint8_t
draw_counter_flags(Random *random)
{
	static const uint8_t flags[] = {COUNTER, COUNTER, COUNTER | 8, COUNTER | 16};

	if (!counters)
		return 0;
	return (uint8_t) (flags[below(random, 4)] | (one_in(random, 3) ? LEVELS : 0));
}

/* Limits the time that a filter takes: few inputs may have many bits. */
static uint64_t
draw_bits_limit(Random *random)
{
	if (one_in(random, 200000))
		return UINT64_C(1) << 27;
	if (one_in(random, 1000))
		return UINT64_C(1) << 20;
	return one_in(random, 50) ? UINT64_C(1) << 17 : UINT64_C(1) << 14;
}

/* Log-uniform, and a multiple of the layout's unit. */
static uint64_t
draw_bits(Random *random, int layout)
{
	uint64_t	limit = draw_bits_limit(random);
	uint64_t	multiple = layout == 0 ? 512 : 64;
	int			log = 0;
	uint64_t	bits;

	while (limit >> log > 1)
		log++;
	bits = UINT64_C(1) << below(random, (uint64_t) log + 1);
	bits += below(random, bits);
	bits = one_in(random, 3) ? limit >> below(random, (uint64_t) log) : bits;
	bits -= bits % multiple;
	if (bits > limit)
		bits = limit;
	return bits == 0 ? multiple : bits;
}

static uint64_t
draw_hash(Random *random)
{
	switch (below(random, 8))
	{
		case 0:
			return below(random, 64);
		case 1:
			return ~below(random, 64);
		case 2:
			return UINT64_C(1) << below(random, 64);
		default:
			return random_word(random);
	}
}

static void
fill_bits(uint8_t *bits, size_t size, Random *random)
{
	uint64_t	kind = below(random, 8);

	memset(bits, kind == 0 ? 0 : 0xff, size);
	if (kind < 2)
		return;
	for (size_t i = 0; i < size; i += 8)
	{
		uint64_t	word = random_word(random);

		if (kind == 3)
			word |= random_word(random);
		if (kind > 4)
			word &= random_word(random);
		if (kind > 5)
			word &= random_word(random);
		put(bits + i, 0, 8, word);
	}
}

/* A payload of at most that many hashes. */
static void
fill_hashes(Bytes *bytes, uint64_t most, Random *random)
{
	uint64_t	count;

	if (most > 500 && !one_in(random, 50))
		most = 500;
	count = one_in(random, 4) ? most : below(random, most + 1);
	resize(bytes, HEADER + element_bytes(bytes->data) * count);
	for (uint64_t i = 0; i < count; i++)
		put(bytes->data, (int) (HEADER + 8 * i), 8, draw_hash(random));
	for (uint64_t i = 0; counters && i < count; i++)
		put(bytes->data, (int) (HEADER + 8 * count + 2 * i), 2, one_in(random, 4) ? random_word(random) : 1 + i % 9);
	bytes->size = mend_elements(bytes->data, bytes->size);
}

static void
fill_payload(Bytes *bytes, Random *random)
{
	uint64_t	m = filter_bits(bytes);

	if (bytes->data[FLAGS] & SPARSE)
	{
		fill_hashes(bytes, filter_class(bytes) == 0 || m == 0 ? 0 : (m / 8 - 1) / element_bytes(bytes->data), random);
		mend_class(bytes->data, bytes->size);
		return;
	}
	resize(bytes, HEADER + m / 8);
	fill_bits(bytes->data + HEADER, m / 8, random);
}

static float
draw_rate(Random *random)
{
	static const float rates[] = {0.01f, 0.1f, 0.001f, 0.5f, 1e-6f, 1e-9f};
	static const float hard[] = {1e-45f, 1e-38f, 0.99999994f, 0.9f, 1e-20f};

	return one_in(random, 4) ? hard[below(random, 5)] : rates[below(random, 6)];
}

static void
make_filter(Bytes *bytes, Random *random)
{
	uint8_t    *header;

	resize(bytes, HEADER);
	header = bytes->data;
	header[VERSION] = 1;
	header[LAYOUT] = (uint8_t) below(random, 2);
	header[FLAGS] = (uint8_t) below(random, 2);
	header[FLAGS] |= draw_counter_flags(random);
	header[K] = (uint8_t) (1 + below(random, 32));
	put(header, CLASS, 4, classes[below(random, NCLASSES)]);
	put_rate(header, draw_rate(random));
	put(header, SEED, 8, one_in(random, 2) ? 0 : draw_hash(random));
	if (!(header[FLAGS] & SPARSE))
	{
		put(header, BITS, 8, draw_bits(random, header[LAYOUT]) & UINT64_C(0xfffff));
		if (positions(bytes) == 0)
			put(header, BITS, 8, 512);
	}
	else
	{
		put(header, BITS, 8, draw_bits(random, header[LAYOUT]));
		if (one_in(random, 20))
			put(header, CLASS, 4, 0);
		if (header[LAYOUT] == 0 && one_in(random, 40))
		{
			put(header, CLASS, 4, 0);
			put(header, BITS, 8, 0);
		}
	}
	fill_payload(bytes, random);
}

/* Makes bytes a filter. */
static void
repair(Bytes *bytes)
{
	if (bytes->size < HEADER)
		resize(bytes, HEADER);
	bytes->data[FLAGS] = (uint8_t) ((bytes->data[FLAGS] & ~COUNTER) | (counters ? COUNTER : 0));
	bytes->size = mend(bytes->data, bytes->size, false);
}

void
make_sibling(const Bytes *filter, Bytes *sibling, Random *random)
{
	uint64_t	m = positions(filter);

	set_bytes(sibling, filter->data, HEADER);
	if (filter->data[LAYOUT] == 0 && m > 0)
	{
		if (one_in(random, 4) && m * 6 <= UINT64_C(1) << 20)
			m *= 1 + below(random, 6);
		else if (one_in(random, 3) && m % 1024 == 0)
			m /= 2;
		else if (one_in(random, 8))
			m = 512;
	}
	put(sibling->data, BITS, 8, m);
	if (filter_class(filter) != 0 && m <= UINT64_C(1) << 23)
		sibling->data[FLAGS] = (uint8_t) ((sibling->data[FLAGS] & ~SPARSE) | below(random, 2));
	if (counters && one_in(random, 4))
		sibling->data[FLAGS] = (sibling->data[FLAGS] & (SPARSE | WIDTH)) | (draw_counter_flags(random) & ~WIDTH);
	fill_payload(sibling, random);
	if (one_in(random, 8))
		put_rate(sibling->data, draw_rate(random));
}

static const uint64_t interesting[] = {
	0, 1, 2, 3, 7, 8, 16, 27, 28, 29, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 511, 512, 513,
	1024, 32767, 32768, 65535, 65536, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0x100000000,
	0x3fffffff, 0x40000000, 0x10000000, 0x1fffffff, 0x20000000,
	0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff, 0xfffffffffffffe00
};

static uint64_t
draw_interesting(Random *random)
{
	return interesting[below(random, sizeof(interesting) / sizeof(interesting[0]))];
}

/* Sets one field of the header to something likely to matter. */
static void
change_field(Bytes *bytes, Random *random)
{
	uint8_t    *header = bytes->data;

	if (bytes->size < HEADER)
		return;
	switch (below(random, 10))
	{
		case 0:
			header[VERSION] = (uint8_t) draw_interesting(random);
			break;
		case 1:
			header[LAYOUT] = (uint8_t) below(random, 4);
			break;
		case 2:
			header[FLAGS] = (uint8_t) below(random, one_in(random, 4) ? 256 : counters ? 64 : 4);
			break;
		case 3:
			header[K] = (uint8_t) (one_in(random, 2) ? below(random, 34) : draw_interesting(random));
			break;
		case 4:
			put(header, CLASS, 4, one_in(random, 8) ? draw_interesting(random)
				: one_in(random, 8) ? 0 : classes[below(random, NCLASSES)]);
			break;
		case 5:
			if (one_in(random, 4))
				put(header, RATE, 4, (0x7f800000 ^ (random_word(random) & 0x80400001)));
			else
				put_rate(header, one_in(random, 4) ? (float) below(random, 3) - 1 : draw_rate(random));
			break;
		case 6:
			put(header, SEED, 8, draw_hash(random));
			break;
		case 7:
			put(header, BITS, 8, draw_interesting(random));
			break;
		case 8:
			put(header, BITS, 8, draw_bits(random, header[LAYOUT] & 1));
			break;
		case 9:
			put(header, BITS, 8, 8 * (uint64_t) (bytes->size - HEADER) / position_bits(bytes->data) +
				64 * (below(random, 5) - 2));
			break;
	}
}

static void
cut_or_extend(Bytes *bytes, Random *random)
{
	size_t		step = one_in(random, 2) ? 8 : 1;
	size_t		change = step * (size_t) (1 + below(random, one_in(random, 4) ? 300 : 9));
	size_t		old = bytes->size;

	if (one_in(random, 2))
		resize(bytes, change > old ? 0 : old - change);
	else
	{
		resize(bytes, old + change);
		for (size_t i = old; i < bytes->size; i++)
			bytes->data[i] = (uint8_t) random_word(random);
	}
	if (one_in(random, 20))
		resize(bytes, below(random, 40));
}

static void
splice(Bytes *bytes, const Bytes *other, Random *random)
{
	size_t		at = below(random, bytes->size + 1);
	size_t		from = one_in(random, 2) ? at : below(random, other->size + 1);
	size_t		size;

	if (from >= other->size)
		return;
	size = one_in(random, 2) ? other->size - from : below(random, other->size - from) + 1;
	if (one_in(random, 2))
		bytes->size = at;		/* drop the rest */
	if (bytes->size < at + size)
		resize(bytes, at + size);
	memcpy(bytes->data + at, other->data + from, size);
}

/* One change at or behind the byte first. */
static void
change_bytes(Bytes *bytes, size_t first, const Bytes *other, Random *random)
{
	size_t		at;
	int			width = 1 << below(random, 4);

	if (bytes->size <= first)
	{
		cut_or_extend(bytes, random);
		return;
	}
	at = first + below(random, bytes->size - first);
	switch (below(random, first > 0 ? 4 : 6))
	{
		case 0:
		case 1:
			bytes->data[at] ^= (uint8_t) (1 << below(random, 8));
			break;
		case 2:
			bytes->data[at] = (uint8_t) random_word(random);
			break;
		case 3:
			if (at + (size_t) width <= bytes->size)
				put(bytes->data + at, 0, width, draw_interesting(random));
			break;
		case 4:
			cut_or_extend(bytes, random);
			break;
		case 5:
			splice(bytes, other, random);
			break;
	}
}

/* Only a sparse filter can have many more bits than its bytes hold. */
static void
cap_bits(Bytes *bytes, Random *random)
{
	uint64_t	limit = draw_bits_limit(random);
	uint64_t	least;

	if (one_in(random, 200) || bytes->size < HEADER || !(bytes->data[FLAGS] & SPARSE) ||
		positions(bytes) <= limit || positions(bytes) > most_positions(bytes))
		return;
	least = 8 * (uint64_t) (bytes->size - HEADER) / position_bits(bytes->data) / 512 * 512 + 512;
	put(bytes->data, BITS, 8, least > limit ? least : limit);
}

void
mutate(Bytes *bytes, const Bytes *other, Random *random)
{
	uint64_t	strategy = below(random, 16);
	int			changes = 1 + (int) below(random, one_in(random, 4) ? 16 : 3);

	if (strategy == 0)
		make_filter(bytes, random);
	else if (strategy < 8)
	{
		for (int i = 0; i < changes; i++)
			change_field(bytes, random);
	}
	else
	{
		size_t		first = strategy < 10 ? HEADER : 0;

		for (int i = 0; i < changes; i++)
			change_bytes(bytes, first, other, random);
	}
	if (one_in(random, 6))
		repair(bytes);
	cap_bits(bytes, random);
}

void
make_text(const Bytes *bytes, Bytes *text, Random *random)
{
	static const char lower[] = "0123456789abcdef";
	static const char upper[] = "0123456789ABCDEF";
	static const char *const odd[] = {
		"", " ", "x", "\\x", "\\X", "0x", "g", "G", "/", ":", "@", "`", "\n", "\t", "-", "\x01", "\x7f",
		"\xc3\xa4", "\xe6\x9d\xb1", "\xff", "\xc0\x80", "\xf0\x9f\x98\x80", "\x81", "\x82\xa0", "\xed\xa0\x80"
	};
	const char *digits = one_in(random, 4) ? upper : lower;

	set_bytes(text, "\\x", 2);
	resize(text, 2 + 2 * bytes->size);
	for (size_t i = 0; i < bytes->size; i++)
	{
		text->data[2 + 2 * i] = (uint8_t) digits[bytes->data[i] >> 4];
		text->data[3 + 2 * i] = (uint8_t) digits[bytes->data[i] & 15];
	}
	if (one_in(random, 3))
	{
		const char *piece = odd[below(random, sizeof(odd) / sizeof(odd[0]))];
		size_t		at = one_in(random, 3) ? below(random, 3) : below(random, text->size + 1);

		if (one_in(random, 4))
			text->size = below(random, text->size + 1);
		else if (one_in(random, 2) && at + strlen(piece) <= text->size)
			memcpy(text->data + at, piece, strlen(piece));
		else
		{
			size_t		tail = text->size - at;

			resize(text, text->size + strlen(piece));
			memmove(text->data + at + strlen(piece), text->data + at, tail);
			memcpy(text->data + at, piece, strlen(piece));
		}
	}
	append_bytes(text, "", 1);
	text->size--;				/* the terminating 0 does not count */
}

static int
digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool
is_filter_text(const Bytes *text, Bytes *decoded)
{
	decoded->size = 0;
	if (text->size < 2 || memcmp(text->data, "\\x", 2) != 0 || text->size % 2 != 0)
		return false;
	resize(decoded, text->size / 2 - 1);
	for (size_t i = 0; i < decoded->size; i++)
	{
		int			high = digit(text->data[2 + 2 * i]);
		int			low = digit(text->data[3 + 2 * i]);

		if (high < 0 || low < 0)
			return false;
		decoded->data[i] = (uint8_t) (high << 4 | low);
	}
	return is_filter(decoded->data, decoded->size);
}
