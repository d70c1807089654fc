/*
 * frame.h
 *		The input of the target decode, and a mutator for it.
 *
 * Random changes hardly ever leave a valid filter or counter. So three times out
 * of four the mutator changes one field or the payload, and then mostly repairs
 * the rest, so that the decoder may accept it.
 */
#ifndef FRAME_H
#define FRAME_H

#include "acceptable.h"
#include "fuzz.h"
#include "reference.h"

#define FRAME_HEADER	4
#define FRAME_ROOM		4096	/* for a filter while it is changed */

typedef struct frame
{
	uint8_t		options;		/* 1, 2: the first, second is an aggregate's state; 4, 8: wrong type */
	uint8_t		pieces;
	const uint8_t *bytes[2];
	size_t		size[2];
} frame;

static inline bool
open_frame(frame *in, const uint8_t *data, size_t size)
{
	if (size < FRAME_HEADER)
		return false;
	in->options = data[0];
	in->pieces = data[1];
	in->size[0] = get(data, 2, 2);
	size -= FRAME_HEADER;
	if (in->size[0] > size)
		in->size[0] = size;
	in->size[1] = size - in->size[0];
	in->bytes[0] = data + FRAME_HEADER;
	in->bytes[1] = in->bytes[0] + in->size[0];
	return true;
}

/* As what the target decodes one of the two: mostly what its flags say. */
static inline bf_kind
kind_of(const frame *in, int side)
{
	bool		counter = in->size[side] > 2 && in->bytes[side][2] & 4;

	return counter != ((in->options & 4 << side) != 0) ? BF_COUNTER : BF_FILTER;
}

static inline bf_form
form_of(const frame *in, int side)
{
	return in->options & 1 << side ? BF_STATE : BF_VALUE;
}

/* A filter or counter under mutation. */
typedef struct draft
{
	size_t		size;
	uint8_t		bytes[FRAME_ROOM];
} draft;

static void
mend_header(draft *of, bool state)
{
	uint8_t    *bytes = of->bytes;
	float		rate = get_rate(bytes);

	bytes[0] = 1;
	bytes[1] &= 1;
	bytes[2] &= (bytes[2] & 4 ? 61 : 1) | (state ? 2 : 0);
	if ((bytes[2] & 24) == 24)
		bytes[2] ^= 16;
	if (bytes[3] < 1 || bytes[3] > 32)
		bytes[3] = 1 + bytes[3] % 32;
	if (!known(get(bytes, 4, 4)))
		put(bytes, 4, 4, classes[bytes[4] % NCLASSES]);
	if (!(rate > 0 && rate < 1))
		put(bytes, 8, 4, 0x3C23D70A);
}

/* The bits of a position: 1 in a filter. */
static uint64_t
position_bits(const draft *of)
{
	return of->bytes[2] & 4 ? counter_width(of->bytes) : 1;
}

/* Sorts the hashes, and gives those of a counter valid numbers. */
static size_t
mend_hashes(draft *of, uint64_t *random)
{
	uint64_t	hashes[FRAME_ROOM / 8];
	bool		counter = of->bytes[2] & 4;
	uint8_t    *payload = of->bytes + BF_HEADER_SIZE;
	size_t		count = (of->size - BF_HEADER_SIZE) / (counter ? 10 : 8);
	size_t		kept;
	uint64_t	limit = (UINT64_C(1) << position_bits(of)) - 1;

	for (size_t i = 0; i < count; i++)
		hashes[i] = get(payload + 8 * i, 0, 8);
	kept = sort_hashes(hashes, count);
	put_hashes(payload, hashes, kept);
	of->size = BF_HEADER_SIZE + (counter ? 10 : 8) * kept;
	if (!counter)
		return kept;
	memmove(payload + 8 * kept, payload + 8 * count, 2 * kept);
	for (uint8_t *at = payload + 8 * kept; at < of->bytes + of->size; at += 2)
	{
		uint64_t	number = get(at, 0, 2);

		if (number < 1 || number > limit)
			put(at, 0, 2, random_below(random, 2) ? limit : 1 + number % limit);
	}
	return kept;
}

static void
mend_sparse(draft *of, uint64_t unit, uint64_t *random)
{
	size_t		count = mend_hashes(of, random);
	uint64_t	width = position_bits(of);
	uint64_t	most = BF_MAX_BITS / width;
	uint64_t	least = ((of->bytes[2] & 4 ? 80 : 64) * count + 1) / width + 1;
	uint64_t	m = get(of->bytes, 20, 8);

	if (of->bytes[2] & 2)
	{
		of->bytes[1] = 0;
		m = 0;
	}
	else if (m % unit != 0 || m > most || m < least)
		m = (least / unit + 1 + random_below(random, 4)) * unit;
	put(of->bytes, 20, 8, m);
}

/* A counter has a class, and may have levels, if and only if it has elements. */
static void
mend_class(draft *of)
{
	if (of->size > BF_HEADER_SIZE)
	{
		if (get(of->bytes, 4, 4) == 0)
			put(of->bytes, 4, 4, 20);
	}
	else if (of->bytes[2] & 4)
	{
		put(of->bytes, 4, 4, 0);
		of->bytes[2] &= (uint8_t) ~32;
	}
}

/* Repairs a draft so that the decoder may accept it. */
static void
mend(draft *of, bool state, uint64_t *random)
{
	uint64_t	unit;
	size_t		unit_bytes;

	if (of->size < BF_HEADER_SIZE)
	{
		memset(of->bytes + of->size, 0, BF_HEADER_SIZE - of->size);
		of->size = BF_HEADER_SIZE;
	}
	mend_header(of, state);
	unit = of->bytes[1] == 0 ? BF_BLOCK_BITS : BF_WORD_BITS;
	unit_bytes = unit / 8 * position_bits(of);
	if (of->size - BF_HEADER_SIZE < unit_bytes)
		of->bytes[2] |= 1;
	if (of->bytes[2] & 1)
		mend_sparse(of, unit, random);
	else
	{
		of->bytes[2] &= (uint8_t) ~2;
		of->size -= (of->size - BF_HEADER_SIZE) % unit_bytes;
		put(of->bytes, 20, 8, (of->size - BF_HEADER_SIZE) / unit_bytes * unit);
	}
	mend_class(of);
}

/* Repeats or cuts the payload, to get sizes that divide one another. */
static void
change_size(draft *of, uint64_t *random)
{
	size_t		payload = of->size - BF_HEADER_SIZE;

	if (random_below(random, 2))
		of->size = BF_HEADER_SIZE + payload / (2 + random_below(random, 2));
	else if (of->size + payload <= FRAME_ROOM)
	{
		memcpy(of->bytes + of->size, of->bytes + BF_HEADER_SIZE, payload);
		of->size += payload;
	}
}

static void
change_payload(draft *of)
{
	of->size = BF_HEADER_SIZE + LLVMFuzzerMutate(of->bytes + BF_HEADER_SIZE, of->size - BF_HEADER_SIZE,
												 FRAME_ROOM - BF_HEADER_SIZE);
}

/* Changes one draft, and may take material from the other. */
static void
change(draft *of, const draft *other, uint64_t *random)
{
	uint64_t	unit = BF_WORD_BITS << 3 * random_below(random, 2);

	switch (random_below(random, 9))
	{
		case 8:
			of->bytes[2] ^= (uint8_t) (1 << random_below(random, 6));
			break;
		case 0:
			LLVMFuzzerMutate(of->bytes, BF_HEADER_SIZE, BF_HEADER_SIZE);
			break;
		case 1:
			of->bytes[random_below(random, 4)] ^= (uint8_t) (1 + random_below(random, 3));
			break;
		case 2:
			put(of->bytes, 20, 8, unit * random_below(random, 1 + (BF_MAX_BITS >> 9 >> random_below(random, 20))));
			break;
		case 3:
		case 4:
			if (other->size >= BF_HEADER_SIZE)
				memcpy(of->bytes, other->bytes, BF_HEADER_SIZE);
			of->bytes[2] ^= (uint8_t) random_below(random, 2);
			break;
		case 5:
			change_size(of, random);
			break;
		default:
			change_payload(of);
	}
}

static size_t
write_frame(uint8_t *data, size_t max_size, const uint8_t options[2], const draft drafts[2])
{
	size_t		size = FRAME_HEADER;

	memcpy(data, options, 2);
	put(data, 2, 2, drafts[0].size);
	for (int i = 0; i < 2; i++)
	{
		size_t		fits = max_size - size < drafts[i].size ? max_size - size : drafts[i].size;

		memcpy(data + size, drafts[i].bytes, fits);
		size += fits;
	}
	return size;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	static draft drafts[2];
	uint64_t	random = seed;
	uint64_t	side = random_below(&random, 2);
	uint8_t		options[2];
	frame		in;

	if (random_below(&random, 4) == 0 || !open_frame(&in, data, size) ||
		size > FRAME_ROOM || max_size < 256)
		return LLVMFuzzerMutate(data, size, max_size);
	for (int i = 0; i < 2; i++)
	{
		memcpy(drafts[i].bytes, in.bytes[i], in.size[i]);
		drafts[i].size = in.size[i];
	}
	memcpy(options, data, 2);
	if (random_below(&random, 8) == 0)
		LLVMFuzzerMutate(options, 2, 2);
	if (drafts[side].size < BF_HEADER_SIZE)
		mend(&drafts[side], false, &random);
	change(&drafts[side], &drafts[1 - side], &random);
	if (random_below(&random, 8) > 0)
		mend(&drafts[side], options[0] & 1 << side, &random);
	return write_frame(data, max_size, options, drafts);
}

#endif							/* FRAME_H */
