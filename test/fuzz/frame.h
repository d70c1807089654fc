/*
 * frame.h
 *		The input of the target decode, and a mutator for it.
 *
 * Three times out of four the mutator changes one field or the payload, and then
 * mostly repairs the rest, so that the decoder may accept it.
 */
#ifndef FRAME_H
#define FRAME_H

#include "fuzz.h"
#include "mend.h"
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
		drafts[side].size = mend(drafts[side].bytes, drafts[side].size, false);
	change(&drafts[side], &drafts[1 - side], &random);
	if (random_below(&random, 8) > 0)
		drafts[side].size = mend(drafts[side].bytes, drafts[side].size, options[0] & 1 << side);
	return write_frame(data, max_size, options, drafts);
}

#endif							/* FRAME_H */
