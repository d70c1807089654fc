/*
 * frame.h
 *		The input of the target decode, and a mutator for it.
 *
 * Random changes hardly ever leave a valid filter. So three times out of four
 * the mutator changes one field or the payload of a filter, and then mostly
 * repairs the rest, so that the decoder may accept it.
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
	uint8_t		options;		/* 1, 2: the first, second is an aggregate's state */
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

/* A filter under mutation. */
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
	bytes[2] &= state ? 3 : 1;
	if (bytes[3] < 1 || bytes[3] > 32)
		bytes[3] = 1 + bytes[3] % 32;
	if (!known(get(bytes, 4, 4)))
		put(bytes, 4, 4, classes[bytes[4] % NCLASSES]);
	if (!(rate > 0 && rate < 1))
		put(bytes, 8, 4, 0x3C23D70A);
}

static void
mend_sparse(draft *of, uint64_t unit, uint64_t *random)
{
	uint64_t	hashes[FRAME_ROOM / 8];
	size_t		count = (of->size - BF_HEADER_SIZE) / 8;
	uint64_t	m = get(of->bytes, 20, 8);

	for (size_t i = 0; i < count; i++)
		hashes[i] = get(of->bytes + BF_HEADER_SIZE + 8 * i, 0, 8);
	count = sort_hashes(hashes, count);
	put_hashes(of->bytes + BF_HEADER_SIZE, hashes, count);
	of->size = BF_HEADER_SIZE + 8 * count;

	if (of->bytes[2] & 2)
	{
		of->bytes[1] = 0;
		m = 0;
	}
	else if (m % unit != 0 || m > BF_MAX_BITS || m < 64 * (count + 1))
		m = (64 * (count + 1) / unit + 1 + random_below(random, 4)) * unit;
	put(of->bytes, 20, 8, m);
}

/* Repairs a draft so that the decoder may accept it. */
static void
mend(draft *of, bool state, uint64_t *random)
{
	uint64_t	unit;

	if (of->size < BF_HEADER_SIZE)
	{
		memset(of->bytes + of->size, 0, BF_HEADER_SIZE - of->size);
		of->size = BF_HEADER_SIZE;
	}
	mend_header(of, state);
	unit = of->bytes[1] == 0 ? BF_BLOCK_BITS : BF_WORD_BITS;
	if (of->size - BF_HEADER_SIZE < unit / 8)
		of->bytes[2] |= 1;
	if (of->bytes[2] & 1)
		mend_sparse(of, unit, random);
	else
	{
		of->bytes[2] = 0;
		of->size -= (of->size - BF_HEADER_SIZE) % (unit / 8);
		put(of->bytes, 20, 8, 8 * (of->size - BF_HEADER_SIZE));
	}
	if (get(of->bytes, 4, 4) == 0 && of->size > BF_HEADER_SIZE)
		put(of->bytes, 4, 4, 20);
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

	switch (random_below(random, 8))
	{
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
