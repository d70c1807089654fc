/*
 * test_format.c
 *		Encoding, decoding and every refusal, against doc/format.md.
 */
#include "acceptable.h"
#include "format.h"
#include "reference.h"
#include "tap.h"

/*
 * Written by hand from the table: blocked, k 6, class int8, p 0.01f, seed
 * 0x0123456789ABCDEF, m 1024.
 */
static const uint8_t dense_header[BF_HEADER_SIZE] = {
	1, 0, 0, 6, 20, 0, 0, 0, 0x0A, 0xD7, 0x23, 0x3C,
	0xEF, 0xCD, 0xAB, 0x89, 0x67, 0x45, 0x23, 0x01, 0, 4, 0, 0, 0, 0, 0, 0
};

/* The same of a counter of 4 bits, whose numbers take 512 bytes. */
static const uint8_t counter_header[BF_HEADER_SIZE] = {
	1, 0, 4, 6, 20, 0, 0, 0, 0x0A, 0xD7, 0x23, 0x3C,
	0xEF, 0xCD, 0xAB, 0x89, 0x67, 0x45, 0x23, 0x01, 0, 4, 0, 0, 0, 0, 0, 0
};

static const uint32_t widths[] = {1, 4, 8, 16};

#define ROOM (BF_HEADER_SIZE + 4096 + 64)	/* for an encoding under mutation */

/*
 * The decoder's verdict on bytes, the checks of the hashes included. The
 * sanitizer guards both ends of the bytes.
 */
static bf_status
verdict(const uint8_t *bytes, uint64_t size, bf_kind kind, bf_form form, bf_filter *filter)
{
	uint8_t    *block = allocate(size > 0 ? size : 8);
	uint8_t    *at = size > 0 ? block : block + 8;
	bf_status	status;

	memcpy(at, bytes, size);
	status = bf_decode(at, size, kind, form, filter);
	if (status.error == BF_OK)
	{
		each(filter->payload == at + BF_HEADER_SIZE, "payload of %" PRIu64 " bytes", size);
		if (filter->sparse)
			status = bf_check_hashes(filter, 0, filter->nhashes);
		filter->payload = NULL;
	}
	free(block);
	return status;
}

static bool
same_params(const bf_params *a, const bf_params *b)
{
	return a->layout == b->layout && a->k == b->k && a->element_class == b->element_class &&
		memcmp(&a->rate, &b->rate, sizeof(a->rate)) == 0 && a->seed == b->seed && a->m == b->m &&
		a->cell_bits == b->cell_bits;
}

static bool
same_filter(const bf_filter *a, const bf_filter *b)
{
	return same_params(&a->params, &b->params) && a->sparse == b->sparse && a->sizing == b->sizing &&
		a->levels == b->levels && a->nhashes == b->nhashes;
}

static void
test_known_bytes(void)
{
	uint8_t		bytes[BF_HEADER_SIZE + 128] = {0};
	bf_filter	filter = {.params = params_of(BF_BLOCKED, 6, 1024)};
	bf_filter	decoded;

	filter.params.seed = UINT64_C(0x0123456789ABCDEF);
	is((uint64_t) (bf_encode_header(&filter, bytes) - bytes), BF_HEADER_SIZE,
	   "the payload comes behind the header");
	ok(memcmp(bytes, dense_header, BF_HEADER_SIZE) == 0, "a dense header, byte for byte");
	is(bf_payload_size(&filter), 128, "its payload");
	is(bf_encoded_size(&filter), 156, "its whole size");
	is(bf_decode(bytes, 156, BF_FILTER, BF_VALUE, &decoded).error, BF_OK, "it decodes");
	ok(same_params(&filter.params, &decoded.params) && !decoded.sparse && !decoded.sizing &&
	   decoded.nhashes == 0 && decoded.payload == bytes + BF_HEADER_SIZE, "to the same");

	filter.sparse = true;
	filter.nhashes = 3;
	filter.params.layout = BF_CLASSIC;
	bf_encode_header(&filter, bytes);
	is(bytes[2], 1, "the flag of a sparse filter");
	is(bytes[1], 1, "the layout of a classic one");
	is(bf_payload_size(&filter), 24, "a sparse payload");
	is(bf_encoded_size(&filter), 52, "a sparse filter's whole size");
	is(bf_decode(bytes, 52, BF_FILTER, BF_VALUE, &decoded).error, BF_OK, "a sparse filter decodes");
	ok(decoded.sparse && decoded.nhashes == 3, "with its hashes");

	filter.sizing = true;
	filter.params.m = 0;
	filter.params.layout = BF_BLOCKED;
	bf_encode_header(&filter, bytes);
	is(bytes[2], 3, "the flags of a state");
	is(bf_decode(bytes, 52, BF_FILTER, BF_STATE, &decoded).error, BF_OK, "a state decodes");
	ok(decoded.sparse && decoded.sizing && decoded.nhashes == 3, "with its hashes");
}

static bf_filter
random_filter(uint64_t *state)
{
	bf_filter	filter = {.params.cell_bits = 1, .sparse = random_below(state, 2)};
	bf_params  *params = &filter.params;
	uint64_t	unit;

	params->layout = random_below(state, 2) ? BF_CLASSIC : BF_BLOCKED;
	unit = params->layout == BF_CLASSIC ? 64 : 512;
	params->k = 1 + (uint32_t) random_below(state, 32);
	params->element_class = classes[random_below(state, NCLASSES)];
	params->rate = (float) (1 + random_below(state, 999999)) / 1e6f;
	params->seed = next_random(state);
	params->m = unit * (1 + random_below(state, 10));
	if (filter.sparse)
		filter.nhashes = random_below(state, params->m / 64);
	return filter;
}

static bf_filter
random_counter(uint64_t *state)
{
	bf_filter	counter = random_filter(state);
	bf_params  *params = &counter.params;
	uint64_t	bytes;

	params->cell_bits = widths[1 + random_below(state, 3)];
	params->m = (params->layout == BF_CLASSIC ? 64 : 512) * (1 + random_below(state, 4));
	counter.levels = random_below(state, 2);
	bytes = params->m * params->cell_bits / 8;
	if (counter.sparse)
		counter.nhashes = random_below(state, 1 + random_below(state, (bytes + 9) / 10));
	if (counter.sparse && counter.nhashes == 0)
	{
		params->element_class = BF_CLASS_NONE;
		counter.levels = false;
	}
	return counter;
}

static void
fill_sparse(const bf_filter *filter, uint64_t *state, uint8_t *payload)
{
	uint32_t	width = filter->params.cell_bits;
	uint64_t	hash = 0;

	for (uint64_t i = 0; i < filter->nhashes; i++)
	{
		hash += 1 + (next_random(state) >> 8);
		put(payload + 8 * i, 0, 8, hash);
		if (width > 1)
			put(payload + 8 * filter->nhashes + 2 * i, 0, 2, 1 + random_below(state, (1u << width) - 1));
	}
}

/* An encoding with a payload in bytes; returns its size. */
static uint64_t
encode(const bf_filter *filter, uint64_t *state, uint8_t *bytes)
{
	uint32_t	width = filter->params.cell_bits;
	uint8_t    *payload = bf_encode_header(filter, bytes);

	if (filter->sparse)
	{
		fill_sparse(filter, state, payload);
		return BF_HEADER_SIZE + filter->nhashes * (width == 1 ? 8 : 10);
	}
	random_bytes(state, payload, filter->params.m / 8 * width);
	return BF_HEADER_SIZE + filter->params.m / 8 * width;
}

static void
compare_round_trip(const bf_filter *filter, uint64_t *state, int i)
{
	bf_kind		kind = filter->params.cell_bits == 1 ? BF_FILTER : BF_COUNTER;
	uint8_t		bytes[ROOM];
	uint64_t	size = encode(filter, state, bytes);
	bf_filter	decoded;
	bf_status	status = verdict(bytes, size, kind, BF_VALUE, &decoded);

	each(bf_encoded_size(filter) == size, "filter %d has another size", i);
	each(acceptable_as(bytes, size, kind, BF_VALUE), "encoding %d is not as specified", i);
	each(status.error == BF_OK && same_filter(&decoded, filter), "filter %d, error %d", i, (int) status.error);
	each(bf_kind_of(&filter->params) == kind && bf_kind_of(&decoded.params) == kind, "filter %d has another kind", i);
	each(verdict(bytes, size, kind, BF_STATE, &decoded).error == BF_OK, "as a state, filter %d", i);
	status = verdict(bytes, size, !kind, BF_VALUE, &decoded);
	each(status.error == BF_ERR_TYPE && status.got == bytes[FLAGS], "as the other type, filter %d", i);
}

static void
test_round_trip(void)
{
	uint64_t	state = 1;

	for (int i = 0; i < 5000; i++)
	{
		bf_filter	filter = random_filter(&state);
		bf_filter	counter = random_counter(&state);

		compare_round_trip(&filter, &state, i);
		compare_round_trip(&counter, &state, i);
	}
	passed("random filters and counters encode and decode unchanged");
}

/* Small changes, so that many mutations are still valid. */
static void
mutate(uint8_t *bytes, uint64_t *size, uint64_t *state)
{
	static const uint8_t likely[] = {0, 1, 2, 3, 4, 20, 25, 32, 33, 64, 128, 255};
	uint64_t	header = *size < BF_HEADER_SIZE ? *size : BF_HEADER_SIZE;

	switch (random_below(state, 4))
	{
		case 0:
			*size = random_below(state, *size + 16);
			break;
		case 1:
			bytes[random_below(state, *size)] ^= (uint8_t) (1 << random_below(state, 8));
			break;
		default:
			bytes[random_below(state, header)] = likely[random_below(state, sizeof(likely))];
	}
}

/* The verdict on mutated bytes; true if they are accepted. */
static bool
compare_mutation(const uint8_t *bytes, uint64_t size, bf_kind kind, bf_form form, int i)
{
	uint8_t		header[BF_HEADER_SIZE];
	bf_filter	filter;
	bool		good = verdict(bytes, size, kind, form, &filter).error == BF_OK;

	if (!each(good == acceptable_as(bytes, size, kind, form), "mutation %d", i) || !good)
		return false;
	bf_encode_header(&filter, header);
	each(memcmp(header, bytes, BF_HEADER_SIZE) == 0 && bf_encoded_size(&filter) == size,
		 "mutation %d is sent out differently", i);
	return true;
}

static void
test_mutations(void)
{
	uint64_t	state = 2;
	uint8_t		bytes[ROOM] = {0};
	uint64_t	accepted[4] = {0};

	for (int i = 0; i < 200000; i++)
	{
		bf_kind		kind = (bf_kind) (i / 2 % 2);
		bf_filter	filter = kind == BF_COUNTER ? random_counter(&state) : random_filter(&state);
		uint64_t	size = encode(&filter, &state, bytes);

		mutate(bytes, &size, &state);
		if (size > 0 && i % 3 == 0)
			mutate(bytes, &size, &state);
		accepted[i % 4] += compare_mutation(bytes, size, kind, (bf_form) (i % 2), i);
	}
	passed("mutated bytes are refused if and only if the specification says so");
	for (int i = 0; i < 4; i++)
		ok(accepted[i] > 1000, "many of them were still valid, kind %d, form %d", i / 2, i % 2);
}

/* Every value of every byte of a header, read in all four ways. */
static void
compare_header_bytes(uint8_t *bytes, uint64_t size)
{
	for (int at = 0; at < BF_HEADER_SIZE; at++)
	{
		uint8_t		kept = bytes[at];

		for (int value = 0; value < 256 * 4; value++)
		{
			bytes[at] = (uint8_t) (value / 4);
			compare_mutation(bytes, size, (bf_kind) (value / 2 % 2), (bf_form) (value % 2), at);
		}
		bytes[at] = kept;
	}
}

/*
 * A counter's state that sizes itself. One that is dense has numbers of 2^28
 * bytes, so it is not among these.
 */
static bf_filter
random_counter_state(uint64_t *state)
{
	bf_filter	counter = random_counter(state);

	counter.params.layout = BF_BLOCKED;
	counter.params.m = 0;
	counter.sizing = counter.sparse = true;
	counter.nhashes = 1 + random_below(state, 5);
	counter.params.element_class = BF_CLASS_INT8;
	return counter;
}

static void
test_header_bytes(void)
{
	uint64_t	state = 7;
	uint8_t		bytes[ROOM] = {0};

	for (int i = 0; i < 40; i++)
	{
		bf_filter	filter = i < 30 ? random_counter(&state) :
			i < 36 ? random_counter_state(&state) : random_filter(&state);

		compare_header_bytes(bytes, encode(&filter, &state, bytes));
	}
	passed("every value of every byte of a header");
}

/* One fault of an otherwise valid header, and the verdict. */
typedef struct refusal
{
	const char *what;
	int			offset;
	int			size;
	uint64_t	value;
	uint64_t	payload;		/* zero bytes */
	bf_error	error;
	uint64_t		got;
	uint64_t		limit;
} refusal;

/* The columns of a verdict without a limit. */
#define ANY UINT64_MAX

static const refusal refusals[] = {
	{"version 0", 0, 1, 0, 128, BF_ERR_VERSION, 0, 1},
	{"version 2", 0, 1, 2, 128, BF_ERR_VERSION, 2, 1},
	{"layout 2", 1, 1, 2, 128, BF_ERR_LAYOUT, 2, 1},
	{"layout 255", 1, 1, 255, 128, BF_ERR_LAYOUT, 255, 1},
	{"a counter, dense", 2, 1, 4, 128, BF_ERR_TYPE, 4, 0},
	{"a counter, sparse, with levels", 2, 1, 37, 0, BF_ERR_TYPE, 37, 0},
	{"a counter of an invalid width", 2, 1, 28, 128, BF_ERR_TYPE, 28, 0},
	{"flag 8", 2, 1, 8, 128, BF_ERR_FLAGS, 8, ANY},
	{"flag 16", 2, 1, 16, 128, BF_ERR_FLAGS, 16, ANY},
	{"flag 32", 2, 1, 32, 128, BF_ERR_FLAGS, 32, ANY},
	{"flag 64", 2, 1, 64, 128, BF_ERR_FLAGS, 64, ANY},
	{"flag 128", 2, 1, 128, 128, BF_ERR_FLAGS, 128, ANY},
	{"flag 128 with 1", 2, 1, 129, 0, BF_ERR_FLAGS, 129, ANY},
	{"a state, dense", 2, 1, 2, 128, BF_ERR_STATE, ANY, ANY},
	{"a state, sparse", 2, 1, 3, 0, BF_ERR_STATE, ANY, ANY},
	{"no hash function", 3, 1, 0, 128, BF_ERR_K, 0, 32},
	{"33 hash functions", 3, 1, 33, 128, BF_ERR_K, 33, 32},
	{"255 hash functions", 3, 1, 255, 128, BF_ERR_K, 255, 32},
	{"class 18", 4, 4, 18, 128, BF_ERR_CLASS, 18, ANY},
	{"class 2^32 - 1", 4, 4, UINT32_MAX, 128, BF_ERR_CLASS, UINT32_MAX, ANY},
	{"class 20 in the wrong byte", 4, 4, 20 << 8, 128, BF_ERR_CLASS, 20 << 8, ANY},
	{"rate 0", 8, 4, 0, 128, BF_ERR_RATE, ANY, ANY},
	{"rate -0", 8, 4, 0x80000000, 128, BF_ERR_RATE, ANY, ANY},
	{"rate -0.01", 8, 4, 0xBC23D70A, 128, BF_ERR_RATE, ANY, ANY},
	{"rate 1", 8, 4, 0x3F800000, 128, BF_ERR_RATE, ANY, ANY},
	{"rate infinite", 8, 4, 0x7F800000, 128, BF_ERR_RATE, ANY, ANY},
	{"rate -infinite", 8, 4, 0xFF800000, 128, BF_ERR_RATE, ANY, ANY},
	{"rate NaN", 8, 4, 0x7FC00000, 128, BF_ERR_RATE, ANY, ANY},
	{"rate signalling NaN", 8, 4, 0x7F800001, 128, BF_ERR_RATE, ANY, ANY},
	{"2^31 + 512 bits", 20, 8, BF_MAX_BITS + 512, 128, BF_ERR_BITS_MAX,
	BF_MAX_BITS + 512, BF_MAX_BITS},
	{"2^63 - 512 bits", 20, 8, INT64_MAX - 511, 128, BF_ERR_BITS_MAX,
	INT64_MAX - 511, BF_MAX_BITS},
	{"2^63 bits", 20, 8, UINT64_C(1) << 63, 128, BF_ERR_BITS_MAX, ANY, BF_MAX_BITS},
	{"2^64 - 1 bits", 20, 8, UINT64_MAX, 128, BF_ERR_BITS_MAX, ANY, BF_MAX_BITS},
	{"1023 bits", 20, 8, 1023, 128, BF_ERR_BITS_MULTIPLE, 1023, 512},
	{"1088 bits", 20, 8, 1088, 136, BF_ERR_BITS_MULTIPLE, 1088, 512},
	{"no bits, dense", 20, 8, 0, 0, BF_ERR_UNSIZED, ANY, ANY},
	{"a payload too short", 0, 0, 0, 127, BF_ERR_LENGTH, 127, 128},
	{"a payload too long", 0, 0, 0, 129, BF_ERR_LENGTH, 129, 128},
	{"no payload", 0, 0, 0, 0, BF_ERR_LENGTH, 0, 128},
	{"no class, dense", 4, 4, 0, 128, BF_ERR_CLASS_MISSING, ANY, ANY},
	{"half a hash", 2, 1, 1, 12, BF_ERR_HASHES_LENGTH, 12, 8},
	{"hashes as large as the bits", 2, 1, 1, 128, BF_ERR_HASHES_MAX, 16, 15},
	{"more hashes than bits", 2, 1, 1, 800, BF_ERR_HASHES_MAX, 100, 15},
};

/* As counters, from a header of 4 bits and 1024 positions. */
static const refusal counter_refusals[] = {
	{"a filter, dense", 2, 1, 0, 128, BF_ERR_TYPE, 0, 0},
	{"a filter, sparse", 2, 1, 1, 0, BF_ERR_TYPE, 1, 0},
	{"a width without a counter", 2, 1, 8, 1024, BF_ERR_FLAGS, 8, ANY},
	{"levels without a counter", 2, 1, 32, 512, BF_ERR_FLAGS, 32, ANY},
	{"width 3", 2, 1, 28, 512, BF_ERR_CELL_BITS, 3, 2},
	{"width 3, sparse, with levels", 2, 1, 61, 0, BF_ERR_CELL_BITS, 3, 2},
	{"flag 64", 2, 1, 68, 512, BF_ERR_FLAGS, 68, ANY},
	{"flag 128", 2, 1, 132, 512, BF_ERR_FLAGS, 132, ANY},
	{"flag 64 alone", 2, 1, 64, 512, BF_ERR_FLAGS, 64, ANY},
	{"a state, dense", 2, 1, 6, 512, BF_ERR_STATE, ANY, ANY},
	{"a state, sparse", 2, 1, 7, 0, BF_ERR_STATE, ANY, ANY},
	{"no hash function", 3, 1, 0, 512, BF_ERR_K, 0, 32},
	{"class 18", 4, 4, 18, 512, BF_ERR_CLASS, 18, ANY},
	{"rate 1", 8, 4, 0x3F800000, 512, BF_ERR_RATE, ANY, ANY},
	{"2^29 + 512 positions", 20, 8, (1 << 29) + 512, 512, BF_ERR_BITS_MAX, (1 << 29) + 512, 1 << 29},
	{"2^61 positions", 20, 8, UINT64_C(1) << 61, 512, BF_ERR_BITS_MAX, ANY, 1 << 29},
	{"2^64 - 512 positions", 20, 8, UINT64_MAX - 511, 512, BF_ERR_BITS_MAX, ANY, 1 << 29},
	{"1023 positions", 20, 8, 1023, 512, BF_ERR_BITS_MULTIPLE, 1023, 512},
	{"no positions, dense", 20, 8, 0, 0, BF_ERR_UNSIZED, ANY, ANY},
	{"a payload too short", 0, 0, 0, 511, BF_ERR_LENGTH, 511, 512},
	{"a payload too long", 0, 0, 0, 513, BF_ERR_LENGTH, 513, 512},
	{"bits instead of numbers", 0, 0, 0, 128, BF_ERR_LENGTH, 128, 512},
	{"4 bits as 8", 2, 1, 12, 512, BF_ERR_LENGTH, 512, 1024},
	{"8 bits as 16", 2, 1, 20, 1024, BF_ERR_LENGTH, 1024, 2048},
	{"no class, dense", 4, 4, 0, 512, BF_ERR_CLASS_MISSING, ANY, ANY},
	{"a hash without its number", 2, 1, 5, 8, BF_ERR_HASHES_LENGTH, 8, 10},
	{"a hash with half of its number", 2, 1, 5, 19, BF_ERR_HASHES_LENGTH, 19, 10},
	{"hashes larger than 4 bits", 2, 1, 5, 520, BF_ERR_HASHES_MAX, 52, 51},
	{"hashes larger than 8 bits", 2, 1, 13, 1030, BF_ERR_HASHES_MAX, 103, 102},
	{"hashes larger than 16 bits", 2, 1, 21, 2050, BF_ERR_HASHES_MAX, 205, 204},
	{"number 0", 2, 1, 5, 10, BF_ERR_NUMBER, 0, 15},
	{"number 0 of 8 bits, levels", 2, 1, 45, 10, BF_ERR_NUMBER, 0, 255},
	{"number 0 of 16 bits", 2, 1, 21, 10, BF_ERR_NUMBER, 0, 65535},
	{"a class, but no hash", 2, 1, 5, 0, BF_ERR_EMPTY, ANY, ANY},
};

static void
check_refusals(const uint8_t *header, bf_kind kind, bf_form form, const refusal *refused, size_t count)
{
	uint8_t		bytes[BF_HEADER_SIZE + 2050] = {0};
	bf_filter	filter;

	for (const refusal *r = refused; r < refused + count; r++)
	{
		bf_status	status;

		memcpy(bytes, header, BF_HEADER_SIZE);
		put(bytes, r->offset, r->size, r->value);
		status = verdict(bytes, BF_HEADER_SIZE + r->payload, kind, form, &filter);
		ok(status.error == r->error && (r->got == ANY || status.got == r->got) &&
		   (r->limit == ANY || status.limit == r->limit),
		   "refused: %s (error %d, got %" PRIu64 ", limit %" PRIu64 ")",
		   r->what, (int) status.error, status.got, status.limit);
	}
}

static void
test_refusals(void)
{
	check_refusals(dense_header, BF_FILTER, BF_VALUE, refusals, sizeof(refusals) / sizeof(refusals[0]));
	check_refusals(counter_header, BF_COUNTER, BF_VALUE, counter_refusals,
				   sizeof(counter_refusals) / sizeof(counter_refusals[0]));
}

/* Faults that need more than one change of the header. */
static void
test_more_refusals(void)
{
	uint8_t		bytes[BF_HEADER_SIZE + 80] = {0};
	bf_filter	filter;
	bf_status	status;

	memcpy(bytes, dense_header, BF_HEADER_SIZE);
	bytes[1] = 1;
	put(bytes, 20, 8, 96);
	status = verdict(bytes, BF_HEADER_SIZE + 12, BF_FILTER, BF_VALUE, &filter);
	ok(status.error == BF_ERR_BITS_MULTIPLE && status.got == 96 && status.limit == 64,
	   "refused: classic, 96 bits");
	bytes[2] = 1;
	put(bytes, 20, 8, 640);
	put(bytes, 4, 4, 0);
	put(bytes, BF_HEADER_SIZE, 8, 7);
	is(verdict(bytes, BF_HEADER_SIZE + 8, BF_FILTER, BF_VALUE, &filter).error, BF_ERR_CLASS_MISSING,
	   "refused: a hash without a class");
	is(verdict(bytes, BF_HEADER_SIZE, BF_FILTER, BF_VALUE, &filter).error, BF_OK,
	   "accepted: no hash and no class");
	put(bytes, 4, 4, 20);
	is(verdict(bytes, BF_HEADER_SIZE, BF_FILTER, BF_VALUE, &filter).error, BF_OK,
	   "accepted: a class, but no hash");
	put(bytes, 20, 8, 0);
	is(verdict(bytes, BF_HEADER_SIZE, BF_FILTER, BF_VALUE, &filter).error, BF_ERR_UNSIZED,
	   "refused: a class, but no size");
	is(verdict(bytes, BF_HEADER_SIZE + 8, BF_FILTER, BF_VALUE, &filter).error, BF_ERR_UNSIZED,
	   "refused: a hash, but no size");
	put(bytes, 4, 4, 0);
	is(verdict(bytes, BF_HEADER_SIZE, BF_FILTER, BF_VALUE, &filter).error, BF_ERR_UNSIZED,
	   "refused: classic, but no size");
	bytes[1] = 0;
	is(verdict(bytes, BF_HEADER_SIZE, BF_FILTER, BF_VALUE, &filter).error, BF_OK,
	   "accepted: the empty filter without a size");
	bytes[1] = 1;
	bytes[2] = 3;
	put(bytes, 4, 4, 20);
	is(verdict(bytes, BF_HEADER_SIZE + 8, BF_FILTER, BF_STATE, &filter).error, BF_ERR_UNSIZED,
	   "refused: a classic state that sizes itself");
	bytes[1] = 0;
	bytes[2] = 1;
	put(bytes, 4, 4, 0);
	put(bytes, 8, 4, 1);
	is(verdict(bytes, BF_HEADER_SIZE, BF_FILTER, BF_VALUE, &filter).error, BF_OK,
	   "accepted: the least rate above 0");
	put(bytes, 8, 4, 0x3F7FFFFF);
	is(verdict(bytes, BF_HEADER_SIZE, BF_FILTER, BF_VALUE, &filter).error, BF_OK,
	   "accepted: the greatest rate below 1");
}

/* The verdict on a counter of these flags, class, positions and zero bytes of payload. */
static bf_error
counter_error(uint8_t flags, uint32_t class, uint64_t m, uint64_t payload, bf_kind kind, bf_form form)
{
	uint8_t		bytes[BF_HEADER_SIZE + 80] = {0};
	bf_filter	filter;

	memcpy(bytes, counter_header, BF_HEADER_SIZE);
	bytes[FLAGS] = flags;
	put(bytes, CLASS, 4, class);
	put(bytes, BITS, 8, m);
	if (payload >= 10)
		bytes[BF_HEADER_SIZE + payload / 10 * 8] = 1;	/* the first number */
	return verdict(bytes, BF_HEADER_SIZE + payload, kind, form, &filter).error;
}

static void
test_more_counters(void)
{
	uint8_t		bytes[BF_HEADER_SIZE] = {0};
	bf_filter	filter;

	is(counter_error(37, 0, 1024, 0, BF_COUNTER, BF_VALUE), BF_ERR_EMPTY, "refused: levels of no hash");
	is(counter_error(5, 0, 1024, 0, BF_COUNTER, BF_VALUE), BF_OK, "accepted: no hash");
	is(counter_error(5, 0, 1024, 10, BF_COUNTER, BF_VALUE), BF_ERR_CLASS_MISSING, "refused: a hash without a class");
	is(counter_error(5, 20, 1024, 10, BF_COUNTER, BF_VALUE), BF_OK, "accepted: one with a class");
	is(counter_error(37, 20, 1024, 10, BF_COUNTER, BF_VALUE), BF_OK, "accepted: levels");
	is(counter_error(21, 0, 0, 0, BF_COUNTER, BF_VALUE), BF_OK, "accepted: no size and no hash");
	is(counter_error(5, 20, 0, 0, BF_COUNTER, BF_VALUE), BF_ERR_UNSIZED, "refused: a class, but no size");
	is(counter_error(5, 20, 0, 10, BF_COUNTER, BF_VALUE), BF_ERR_UNSIZED, "refused: a hash, but no size");
	is(counter_error(37, 0, 0, 0, BF_COUNTER, BF_VALUE), BF_ERR_EMPTY, "refused: levels, but no size");
	is(counter_error(7, 0, 0, 0, BF_COUNTER, BF_STATE), BF_OK, "accepted: a state of no hash");
	is(counter_error(7, 20, 0, 0, BF_COUNTER, BF_STATE), BF_ERR_EMPTY, "refused: with a class");
	is(counter_error(39, 0, 0, 0, BF_COUNTER, BF_STATE), BF_ERR_EMPTY, "refused: with levels");
	is(counter_error(39, 20, 0, 10, BF_COUNTER, BF_STATE), BF_OK, "accepted: a state with a level");
	is(counter_error(7, 0, 0, 10, BF_COUNTER, BF_STATE), BF_ERR_CLASS_MISSING, "refused: one without a class");
	is(counter_error(3, 20, 0, 8, BF_COUNTER, BF_STATE), BF_ERR_TYPE, "refused: a filter's state as a counter's");
	is(counter_error(7, 20, 0, 10, BF_FILTER, BF_STATE), BF_ERR_TYPE, "refused: a counter's state as a filter's");

	memcpy(bytes, counter_header, BF_HEADER_SIZE);
	bytes[FLAGS] = 5;
	bytes[LAYOUT] = 1;
	put(bytes, CLASS, 4, 0);
	put(bytes, BITS, 8, 0);
	is(verdict(bytes, BF_HEADER_SIZE, BF_COUNTER, BF_VALUE, &filter).error, BF_ERR_UNSIZED,
	   "refused: a classic counter without a size");
	put(bytes, BITS, 8, 96);
	is(verdict(bytes, BF_HEADER_SIZE, BF_COUNTER, BF_VALUE, &filter).error, BF_ERR_BITS_MULTIPLE,
	   "refused: a classic counter of 96 positions");
	put(bytes, BITS, 8, 64);
	is(verdict(bytes, BF_HEADER_SIZE, BF_COUNTER, BF_VALUE, &filter).error, BF_OK, "accepted: of 64");
}

/* A counter without elements has neither a class nor levels, whatever the caller says. */
static void
test_empty_counters(void)
{
	uint64_t	state = 8;
	uint8_t		bytes[ROOM];
	bf_filter	decoded;

	for (int i = 0; i < 3000; i++)
	{
		bf_filter	counter = random_counter(&state);

		counter.params.element_class = classes[random_below(&state, NCLASSES)];
		counter.levels = random_below(&state, 2);
		encode(&counter, &state, bytes);
		if (counter.sparse && counter.nhashes == 0)
		{
			each(get(bytes, CLASS, 4) == 0 && !(bytes[FLAGS] & LEVELS), "counter %d", i);
			each(verdict(bytes, BF_HEADER_SIZE, BF_COUNTER, BF_VALUE, &decoded).error == BF_OK, "counter %d", i);
		}
		else
			each(get(bytes, CLASS, 4) == counter.params.element_class &&
				 (bytes[FLAGS] & LEVELS) == (counter.levels ? LEVELS : 0), "counter %d", i);
	}
	passed("the header of a counter without elements");
}

static void
test_known_counters(void)
{
	uint8_t		bytes[BF_HEADER_SIZE];
	bf_filter	counter = {.params = params_of(BF_BLOCKED, 6, 1024)};

	counter.params.seed = UINT64_C(0x0123456789ABCDEF);
	counter.params.cell_bits = 4;
	bf_encode_header(&counter, bytes);
	ok(memcmp(bytes, counter_header, BF_HEADER_SIZE) == 0, "a counter's header, byte for byte");
	is(bf_payload_size(&counter), 512, "1024 numbers of 4 bits");
	counter.params.cell_bits = 8;
	bf_encode_header(&counter, bytes);
	is(bytes[FLAGS], 12, "the flags of 8 bits");
	is(bf_payload_size(&counter), 1024, "1024 numbers of 8 bits");
	counter.params.cell_bits = 16;
	counter.levels = true;
	bf_encode_header(&counter, bytes);
	is(bytes[FLAGS], 52, "the flags of 16 bits and levels");
	is(bf_payload_size(&counter), 2048, "1024 numbers of 16 bits");
	counter.sparse = true;
	counter.nhashes = 3;
	bf_encode_header(&counter, bytes);
	is(bytes[FLAGS], 53, "the flags of a sparse one");
	is(bf_encoded_size(&counter), 58, "3 hashes with numbers");
	counter.sizing = true;
	counter.levels = false;
	counter.params.m = 0;
	bf_encode_header(&counter, bytes);
	is(bytes[FLAGS], 23, "the flags of a state");
}

/* Headers of filters that are too large to allocate here. */
static void
test_large(void)
{
	uint8_t    *header = allocate(BF_HEADER_SIZE);
	bf_filter	filter;
	bf_status	status;
	uint64_t	most = UINT64_C(1) << 24;

	memcpy(header, dense_header, BF_HEADER_SIZE);
	put(header, 20, 8, BF_MAX_BITS);
	is(bf_decode_header(header, BF_MAX_SIZE, BF_FILTER, BF_VALUE, &filter).error, BF_OK,
	   "the largest filter");
	is(bf_payload_size(&filter), UINT64_C(1) << 28, "takes 256 MiB");
	status = bf_decode_header(header, BF_MAX_SIZE + 1, BF_FILTER, BF_VALUE, &filter);
	ok(status.error == BF_ERR_LONG && status.got == (int64_t) BF_MAX_SIZE + 1 &&
	   status.limit == (int64_t) BF_MAX_SIZE, "one byte more is too long");
	ok(bf_decode_header(header, UINT64_MAX, BF_FILTER, BF_VALUE, &filter).error != BF_OK,
	   "so are 2^64 - 1");
	ok(bf_decode_header(header, (UINT64_C(1) << 63) + BF_MAX_SIZE, BF_FILTER, BF_STATE, &filter).error != BF_OK,
	   "and 2^63 more");

	header[2] = 2;
	is(bf_decode_header(header, BF_MAX_SIZE, BF_FILTER, BF_STATE, &filter).error, BF_OK,
	   "a state that went over to bits");
	ok(filter.sizing && !filter.sparse, "and still sizes itself");
	put(header, 20, 8, BF_MAX_BITS / 2);
	ok(bf_decode_header(header, BF_HEADER_SIZE + BF_MAX_BITS / 16, BF_FILTER, BF_STATE, &filter).error != BF_OK,
	   "refused: one of fewer bits");
	header[2] = 3;
	ok(bf_decode_header(header, BF_HEADER_SIZE + 8, BF_FILTER, BF_STATE, &filter).error != BF_OK,
	   "refused: a sparse one with bits");
	put(header, 20, 8, 0);
	is(bf_decode_header(header, BF_HEADER_SIZE + 8 * most, BF_FILTER, BF_STATE, &filter).error, BF_OK,
	   "a state of 2^24 hashes");
	is(filter.nhashes, most, "has so many");
	status = bf_decode_header(header, BF_HEADER_SIZE + 8 * (most + 1), BF_FILTER, BF_STATE, &filter);
	ok(status.error == BF_ERR_HASHES_MAX && status.got == most + 1 &&
	   status.limit == most, "refused: one more");
	put(header, 4, 4, 0);
	is(bf_decode_header(header, BF_HEADER_SIZE + 8, BF_FILTER, BF_STATE, &filter).error,
	   BF_ERR_CLASS_MISSING, "refused: a state with a hash and no class");
	is(bf_decode_header(header, BF_HEADER_SIZE, BF_FILTER, BF_STATE, &filter).error, BF_OK,
	   "a state of no hash");
	free(header);
}

/* The same of counters. */
static void
compare_largest(uint32_t width, uint8_t flags, uint64_t most)
{
	uint8_t    *header = allocate(BF_HEADER_SIZE);
	uint64_t	hashes = UINT64_C(1) << 24;
	bf_filter	counter;
	bf_status	status;

	memcpy(header, counter_header, BF_HEADER_SIZE);
	header[FLAGS] = flags;
	put(header, BITS, 8, most);
	each(bf_max_size(width) == most, "greatest size at %u bits", width);
	each(bf_decode_header(header, BF_MAX_SIZE, BF_COUNTER, BF_VALUE, &counter).error == BF_OK &&
		 counter.params.cell_bits == width && bf_payload_size(&counter) == UINT64_C(1) << 28,
		 "largest counter of %u bits", width);
	each(bf_decode_header(header, BF_MAX_SIZE + 1, BF_COUNTER, BF_VALUE, &counter).error == BF_ERR_LONG,
		 "one byte more at %u bits", width);
	put(header, BITS, 8, most + 512);
	status = bf_decode_header(header, BF_MAX_SIZE, BF_COUNTER, BF_VALUE, &counter);
	each(status.error == BF_ERR_BITS_MAX && status.got == most + 512 && status.limit == most,
		 "512 positions more at %u bits", width);

	header[FLAGS] = flags | SIZING;
	put(header, BITS, 8, most);
	each(bf_decode_header(header, BF_MAX_SIZE, BF_COUNTER, BF_STATE, &counter).error == BF_OK && counter.sizing,
		 "a dense state of %u bits", width);
	header[LAYOUT] = 1;
	each(bf_decode_header(header, BF_MAX_SIZE, BF_COUNTER, BF_STATE, &counter).error == BF_ERR_UNSIZED,
		 "a dense classic state of %u bits", width);
	header[LAYOUT] = 0;
	put(header, BITS, 8, most / 2);
	each(bf_decode_header(header, BF_HEADER_SIZE + (1 << 27), BF_COUNTER, BF_STATE, &counter).error == BF_ERR_UNSIZED,
		 "a dense state of half the size, %u bits", width);
	header[FLAGS] = flags | SIZING | SPARSE;
	each(bf_decode_header(header, BF_HEADER_SIZE + 10, BF_COUNTER, BF_STATE, &counter).error == BF_ERR_UNSIZED,
		 "a sparse state with a size, %u bits", width);
	put(header, BITS, 8, 0);
	each(bf_decode_header(header, BF_HEADER_SIZE + 10 * hashes, BF_COUNTER, BF_STATE, &counter).error == BF_OK &&
		 counter.nhashes == hashes, "2^24 hashes of %u bits", width);
	status = bf_decode_header(header, BF_HEADER_SIZE + 10 * (hashes + 1), BF_COUNTER, BF_STATE, &counter);
	each(status.error == BF_ERR_HASHES_MAX && status.got == hashes + 1 && status.limit == hashes,
		 "one more of %u bits", width);
	free(header);
}

static void
test_large_counters(void)
{
	is(bf_max_size(1), UINT64_C(1) << 31, "greatest size of a filter");
	compare_largest(4, 4, UINT64_C(1) << 29);
	compare_largest(8, 12, UINT64_C(1) << 28);
	compare_largest(16, 20, UINT64_C(1) << 27);
	passed("the largest counters and states");
}

/* The header alone gives the same verdict and parameters as the whole. */
static void
test_header_alone(void)
{
	uint64_t	state = 3;
	uint8_t		bytes[ROOM] = {0};

	for (int i = 0; i < 20000; i++)
	{
		bf_kind		kind = (bf_kind) (i / 2 % 2);
		bf_filter	filter = kind == BF_FILTER ? random_filter(&state) : random_counter(&state);
		uint64_t	size = encode(&filter, &state, bytes);
		uint8_t    *header = allocate(BF_HEADER_SIZE);
		bf_filter	decoded;
		bf_status	whole,
					alone;

		if (i % 2)
			mutate(bytes, &size, &state);
		memcpy(header, bytes, BF_HEADER_SIZE);
		alone = bf_decode_header(header, size, kind, BF_STATE, &decoded);
		whole = bf_decode(bytes, size, kind, BF_STATE, &filter);
		each(alone.error == whole.error && alone.got == whole.got && alone.limit == whole.limit,
			 "filter %d: errors %d and %d", i, (int) alone.error, (int) whole.error);
		each(whole.error != BF_OK || same_filter(&decoded, &filter), "filter %d is another by its header", i);
		free(header);
	}
	passed("the header alone gives the same verdict as the whole");
}

static void
test_truncations(void)
{
	uint64_t	state = 4;
	uint8_t		bytes[BF_HEADER_SIZE + 640];
	bf_filter	filter = {.params = params_of(BF_CLASSIC, 5, 576)};
	bf_filter	decoded;
	uint64_t	size = encode(&filter, &state, bytes);

	for (uint64_t cut = 0; cut < size; cut++)
	{
		bf_status	status = verdict(bytes, cut, BF_FILTER, BF_VALUE, &decoded);

		if (cut < BF_HEADER_SIZE)
			each(status.error == BF_ERR_SHORT && status.got == cut && status.limit == 28,
				 "%" PRIu64 " bytes: error %d", cut, (int) status.error);
		else
			each(status.error == BF_ERR_LENGTH && status.got == cut - 28 &&
				 status.limit == 72, "%" PRIu64 " bytes: error %d", cut, (int) status.error);
	}
	passed("a dense filter truncated to every length");

	filter = (bf_filter) {.params = params_of(BF_BLOCKED, 5, 1024), .sparse = true, .nhashes = 15};
	size = encode(&filter, &state, bytes);
	for (uint64_t cut = 0; cut <= size; cut++)
	{
		bf_status	status = verdict(bytes, cut, BF_FILTER, BF_VALUE, &decoded);
		bf_error	wanted = cut < 28 ? BF_ERR_SHORT :
			(cut - 28) % 8 != 0 ? BF_ERR_HASHES_LENGTH : BF_OK;

		each(status.error == wanted, "%" PRIu64 " bytes: error %d", cut, (int) status.error);
		each(wanted != BF_OK || decoded.nhashes == (cut - 28) / 8, "%" PRIu64 " bytes", cut);
	}
	passed("a truncated sparse filter has fewer hashes, or is invalid");
}

static void
test_counter_truncations(void)
{
	uint64_t	state = 9;
	uint8_t		bytes[ROOM];
	bf_filter	counter = {.params = params_of(BF_CLASSIC, 5, 576), .sparse = true, .nhashes = 57};
	bf_filter	decoded;
	uint64_t	size;

	counter.params.cell_bits = 8;
	size = encode(&counter, &state, bytes);
	for (uint64_t cut = 0; cut <= size; cut++)
	{
		bf_status	status = bf_decode(bytes, cut, BF_COUNTER, BF_VALUE, &decoded);
		bf_error	wanted = cut < 28 ? BF_ERR_SHORT : (cut - 28) % 10 != 0 ? BF_ERR_HASHES_LENGTH :
			cut == 28 ? BF_ERR_EMPTY : BF_OK;

		each(status.error == wanted, "%" PRIu64 " bytes: error %d", cut, (int) status.error);
		each(wanted != BF_OK || decoded.nhashes == (cut - 28) / 10, "%" PRIu64 " bytes", cut);
	}
	passed("a truncated sparse counter has fewer hashes, or is invalid");
	counter.sparse = false;
	counter.nhashes = 0;
	size = encode(&counter, &state, bytes);
	for (uint64_t cut = 28; cut < size; cut++)
	{
		bf_status	status = verdict(bytes, cut, BF_COUNTER, BF_VALUE, &decoded);

		each(status.error == BF_ERR_LENGTH && status.got == cut - 28 && status.limit == 576,
			 "%" PRIu64 " bytes: error %d", cut, (int) status.error);
	}
	passed("a dense counter truncated to every length");
}

/* The verdict on hashes that are checked by pieces. */
static bf_status
check_in_pieces(const bf_filter *filter, uint64_t piece)
{
	bf_status	status = {.error = BF_OK};

	for (uint64_t from = 0; from < filter->nhashes && status.error == BF_OK; from += piece)
	{
		uint64_t	to = from + piece < filter->nhashes ? from + piece : filter->nhashes;

		status = bf_check_hashes(filter, from, to);
	}
	return status;
}

static void
test_hash_order(void)
{
	enum {COUNT = 40};
	uint8_t    *payload = allocate(COUNT * 8);
	bf_filter	filter = {
		.params = params_of(BF_BLOCKED, 6, 5120),
		.sparse = true, .nhashes = COUNT, .payload = payload
	};

	for (uint64_t bad = 0; bad <= COUNT; bad++)
	{
		for (int equal = 0; equal < 2; equal++)
		{
			/*
			 * Ascending from 0 to beyond 2^63, except that hash number bad is
			 * not greater than the one before.
			 */
			for (uint64_t i = 0; i < COUNT; i++)
				put(payload + 8 * i, 0, 8, i * (UINT64_MAX / (COUNT - 1)));
			if (bad > 0 && bad < COUNT)
				put(payload + 8 * bad, 0, 8, get(payload + 8 * (bad - 1), 0, 8) - !equal);
			for (uint64_t piece = 1; piece <= COUNT + 1; piece++)
			{
				bf_status	status = check_in_pieces(&filter, piece);

				/* Hash 1 wraps around to 2^64 - 1, so that number 2 is bad. */
				if (bad == 0 || bad == COUNT)
					each(status.error == BF_OK, "good ones in pieces of %" PRIu64, piece);
				else
					each(status.error == BF_ERR_HASHES_ORDER &&
						 status.got == (uint64_t) (bad == 1 && !equal ? 2 : bad),
						 "%" PRIu64 " bad in pieces of %" PRIu64 ": got %" PRId64,
						 bad, piece, status.got);
			}
		}
	}
	passed("the first hash out of order, in pieces of every size");
	is(bf_check_hashes(&filter, COUNT, COUNT).error, BF_OK, "no hashes are in order");
	free(payload);
}

/* One number out of range, at every place, in pieces of every size. */
static void
compare_bad_number(uint32_t width, uint32_t number)
{
	enum {COUNT = 20};
	uint32_t	limit = (1u << width) - 1;
	uint8_t    *payload = allocate(COUNT * 10);
	bf_filter	counter = {
		.params = params_of(BF_CLASSIC, 6, 5120),
		.sparse = true, .nhashes = COUNT, .payload = payload
	};

	counter.params.cell_bits = width;
	for (uint64_t bad = 0; bad <= COUNT; bad++)
	{
		for (uint64_t i = 0; i < COUNT; i++)
		{
			put(payload + 8 * i, 0, 8, i * 1000);
			put(payload + 8 * COUNT + 2 * i, 0, 2, i == bad ? number : i % 2 ? 1 : limit);
		}
		for (uint64_t piece = 1; piece <= COUNT + 1; piece++)
		{
			bf_status	status = check_in_pieces(&counter, piece);

			if (bad == COUNT)
				each(status.error == BF_OK, "good ones in pieces of %" PRIu64, piece);
			else
				each(status.error == BF_ERR_NUMBER && status.got == number && status.limit == limit,
					 "%u of %u bits at %" PRIu64 " in pieces of %" PRIu64, number, width, bad, piece);
		}
	}
	free(payload);
}

static void
test_number_range(void)
{
	for (int i = 1; i < 4; i++)
		compare_bad_number(widths[i], 0);
	compare_bad_number(4, 16);
	compare_bad_number(4, 65535);
	compare_bad_number(8, 256);
	compare_bad_number(8, 65535);
	passed("numbers of sparse counters are in 1 .. limit");
}

/* A counter's hashes are checked, too, and before the numbers of a piece. */
static void
test_counter_order(void)
{
	uint8_t		payload[30] = {0};
	bf_filter	counter = {
		.params = params_of(BF_BLOCKED, 6, 5120), .sparse = true, .nhashes = 3, .payload = payload
	};

	counter.params.cell_bits = 8;
	for (int i = 0; i < 3; i++)
		put(payload, 24 + 2 * i, 2, 7);
	put(payload, 8, 8, 9);
	put(payload, 16, 8, 9);
	ok(bf_check_hashes(&counter, 0, 3).error == BF_ERR_HASHES_ORDER && bf_check_hashes(&counter, 0, 3).got == 2,
	   "two equal hashes of a counter");
	is(bf_check_hashes(&counter, 0, 2).error, BF_OK, "are not in the first piece");
	put(payload, 16, 8, 10);
	is(bf_check_hashes(&counter, 0, 3).error, BF_OK, "ascending hashes of a counter");
}

static void
test_classes(void)
{
	for (uint32_t c = 1; c < 100000; c++)
		each(bf_class_known(c) == known(c), "class %" PRIu32, c);
	each(!bf_class_known(UINT32_MAX), "class 2^32 - 1");
	passed("only the classes of the table are known");
}

static void
test_sparse_limit(void)
{
	bf_params	none = {.m = 0, .cell_bits = 1};
	bf_params	largest = {.m = BF_MAX_BITS, .cell_bits = 1};

	for (int i = 0; i < 4; i++)
	{
		uint64_t	entry = widths[i] == 1 ? 8 : 10;
		uint64_t	n = 0;

		for (uint64_t m = 64; m < 100000; m += 64)
		{
			bf_params	params = {.m = m, .cell_bits = widths[i]};

			while (entry * (n + 1) < m * widths[i] / 8)
				n++;
			each(bf_sparse_limit(&params) == n, "m = %" PRIu64 ", %u bits", m, widths[i]);
		}
	}
	passed("hashes, and the numbers of a counter, are listed while they are smaller than the cells");
	is(bf_sparse_limit(&none), 0, "none without bits");
	is(bf_sparse_limit(&largest), (UINT64_C(1) << 25) - 1, "and at most 2^25 - 1");
}

int
main(void)
{
	test_known_bytes();
	test_known_counters();
	test_round_trip();
	test_mutations();
	test_header_bytes();
	test_refusals();
	test_more_refusals();
	test_more_counters();
	test_empty_counters();
	test_large();
	test_large_counters();
	test_header_alone();
	test_truncations();
	test_counter_truncations();
	test_hash_order();
	test_number_range();
	test_counter_order();
	test_classes();
	test_sparse_limit();
	return done();
}
