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

/*
 * The decoder's verdict on bytes, the checks of the hashes included. The
 * sanitizer guards both ends of the bytes.
 */
static bf_status
verdict(const uint8_t *bytes, uint64_t size, bf_source source, bf_filter *filter)
{
	uint8_t    *block = allocate(size > 0 ? size : 8);
	uint8_t    *at = size > 0 ? block : block + 8;
	bf_status	status;

	memcpy(at, bytes, size);
	status = bf_decode(at, size, source, filter);
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
		memcmp(&a->rate, &b->rate, sizeof(a->rate)) == 0 && a->seed == b->seed && a->m == b->m;
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
	is(bf_decode(bytes, 156, BF_VALUE, &decoded).error, BF_OK, "it decodes");
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
	is(bf_decode(bytes, 52, BF_VALUE, &decoded).error, BF_OK, "a sparse filter decodes");
	ok(decoded.sparse && decoded.nhashes == 3, "with its hashes");

	filter.sizing = true;
	filter.params.m = 0;
	filter.params.layout = BF_BLOCKED;
	bf_encode_header(&filter, bytes);
	is(bytes[2], 3, "the flags of a state");
	is(bf_decode(bytes, 52, BF_STATE, &decoded).error, BF_OK, "a state decodes");
	ok(decoded.sparse && decoded.sizing && decoded.nhashes == 3, "with its hashes");
}

static bf_filter
random_filter(uint64_t *state)
{
	bf_filter	filter = {.sparse = random_below(state, 2)};
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

/* An encoding with a payload in bytes; returns its size. */
static uint64_t
encode(const bf_filter *filter, uint64_t *state, uint8_t *bytes)
{
	uint8_t    *payload = bf_encode_header(filter, bytes);
	uint64_t	hash = 0;

	if (!filter->sparse)
		random_bytes(state, payload, filter->params.m / 8);
	for (uint64_t i = 0; i < filter->nhashes; i++)
	{
		hash += 1 + (next_random(state) >> 8);
		put(payload + 8 * i, 0, 8, hash);
	}
	return bf_encoded_size(filter);
}

static void
test_round_trip(void)
{
	uint64_t	state = 1;
	uint8_t		bytes[BF_HEADER_SIZE + 640];

	for (int i = 0; i < 5000; i++)
	{
		bf_filter	filter = random_filter(&state);
		uint64_t	size = encode(&filter, &state, bytes);
		bf_filter	decoded;
		bf_status	status = verdict(bytes, size, BF_VALUE, &decoded);

		each(acceptable(bytes, size, false), "encoding %d is not as specified", i);
		each(status.error == BF_OK && same_params(&filter.params, &decoded.params) &&
			 filter.sparse == decoded.sparse && filter.nhashes == decoded.nhashes &&
			 !decoded.sizing, "filter %d, error %d", i, (int) status.error);
		each(verdict(bytes, size, BF_STATE, &decoded).error == BF_OK, "as a state, filter %d", i);
	}
	passed("random filters encode and decode unchanged");
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

static void
test_mutations(void)
{
	uint64_t	state = 2;
	uint8_t		bytes[BF_HEADER_SIZE + 640 + 64] = {0};
	uint8_t		header[BF_HEADER_SIZE];
	uint64_t	accepted[2] = {0, 0};

	for (int i = 0; i < 100000; i++)
	{
		bf_filter	filter = random_filter(&state);
		uint64_t	size = encode(&filter, &state, bytes);
		bf_source	source = i % 2 ? BF_STATE : BF_VALUE;
		bool		good;

		mutate(bytes, &size, &state);
		if (size > 0 && i % 3 == 0)
			mutate(bytes, &size, &state);
		good = verdict(bytes, size, source, &filter).error == BF_OK;
		if (!each(good == acceptable(bytes, size, source == BF_STATE), "mutation %d", i) || !good)
			continue;
		accepted[source == BF_STATE]++;
		bf_encode_header(&filter, header);
		each(memcmp(header, bytes, BF_HEADER_SIZE) == 0 && bf_encoded_size(&filter) == size,
			 "mutation %d is sent out differently", i);
	}
	passed("mutated bytes are refused if and only if the specification says so");
	ok(accepted[0] > 1000 && accepted[1] > 1000, "many of them were still valid");
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
	{"flag 4", 2, 1, 4, 128, BF_ERR_TYPE, 4, 0},
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

static void
test_refusals(void)
{
	uint8_t		bytes[BF_HEADER_SIZE + 800] = {0};
	bf_filter	filter;

	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
	{
		const refusal *r = &refusals[i];
		bf_status	status;

		memcpy(bytes, dense_header, BF_HEADER_SIZE);
		put(bytes, r->offset, r->size, r->value);
		status = verdict(bytes, BF_HEADER_SIZE + r->payload, BF_VALUE, &filter);
		ok(status.error == r->error && (r->got == ANY || status.got == r->got) &&
		   (r->limit == ANY || status.limit == r->limit),
		   "refused: %s (error %d, got %" PRIu64 ", limit %" PRIu64 ")",
		   r->what, (int) status.error, status.got, status.limit);
	}
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
	status = verdict(bytes, BF_HEADER_SIZE + 12, BF_VALUE, &filter);
	ok(status.error == BF_ERR_BITS_MULTIPLE && status.got == 96 && status.limit == 64,
	   "refused: classic, 96 bits");
	bytes[2] = 1;
	put(bytes, 20, 8, 640);
	put(bytes, 4, 4, 0);
	put(bytes, BF_HEADER_SIZE, 8, 7);
	is(verdict(bytes, BF_HEADER_SIZE + 8, BF_VALUE, &filter).error, BF_ERR_CLASS_MISSING,
	   "refused: a hash without a class");
	is(verdict(bytes, BF_HEADER_SIZE, BF_VALUE, &filter).error, BF_OK,
	   "accepted: no hash and no class");
	put(bytes, 4, 4, 20);
	is(verdict(bytes, BF_HEADER_SIZE, BF_VALUE, &filter).error, BF_OK,
	   "accepted: a class, but no hash");
	put(bytes, 20, 8, 0);
	is(verdict(bytes, BF_HEADER_SIZE, BF_VALUE, &filter).error, BF_ERR_UNSIZED,
	   "refused: a class, but no size");
	is(verdict(bytes, BF_HEADER_SIZE + 8, BF_VALUE, &filter).error, BF_ERR_UNSIZED,
	   "refused: a hash, but no size");
	put(bytes, 4, 4, 0);
	is(verdict(bytes, BF_HEADER_SIZE, BF_VALUE, &filter).error, BF_ERR_UNSIZED,
	   "refused: classic, but no size");
	bytes[1] = 0;
	is(verdict(bytes, BF_HEADER_SIZE, BF_VALUE, &filter).error, BF_OK,
	   "accepted: the empty filter without a size");
	bytes[1] = 1;
	bytes[2] = 3;
	put(bytes, 4, 4, 20);
	is(verdict(bytes, BF_HEADER_SIZE + 8, BF_STATE, &filter).error, BF_ERR_UNSIZED,
	   "refused: a classic state that sizes itself");
	bytes[1] = 0;
	bytes[2] = 1;
	put(bytes, 4, 4, 0);
	put(bytes, 8, 4, 1);
	is(verdict(bytes, BF_HEADER_SIZE, BF_VALUE, &filter).error, BF_OK,
	   "accepted: the least rate above 0");
	put(bytes, 8, 4, 0x3F7FFFFF);
	is(verdict(bytes, BF_HEADER_SIZE, BF_VALUE, &filter).error, BF_OK,
	   "accepted: the greatest rate below 1");
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
	is(bf_decode_header(header, BF_MAX_SIZE, BF_VALUE, &filter).error, BF_OK,
	   "the largest filter");
	is(bf_payload_size(&filter), UINT64_C(1) << 28, "takes 256 MiB");
	status = bf_decode_header(header, BF_MAX_SIZE + 1, BF_VALUE, &filter);
	ok(status.error == BF_ERR_LONG && status.got == (int64_t) BF_MAX_SIZE + 1 &&
	   status.limit == (int64_t) BF_MAX_SIZE, "one byte more is too long");
	ok(bf_decode_header(header, UINT64_MAX, BF_VALUE, &filter).error != BF_OK,
	   "so are 2^64 - 1");
	ok(bf_decode_header(header, (UINT64_C(1) << 63) + BF_MAX_SIZE, BF_STATE, &filter).error != BF_OK,
	   "and 2^63 more");

	header[2] = 2;
	is(bf_decode_header(header, BF_MAX_SIZE, BF_STATE, &filter).error, BF_OK,
	   "a state that went over to bits");
	ok(filter.sizing && !filter.sparse, "and still sizes itself");
	put(header, 20, 8, BF_MAX_BITS / 2);
	ok(bf_decode_header(header, BF_HEADER_SIZE + BF_MAX_BITS / 16, BF_STATE, &filter).error != BF_OK,
	   "refused: one of fewer bits");
	header[2] = 3;
	ok(bf_decode_header(header, BF_HEADER_SIZE + 8, BF_STATE, &filter).error != BF_OK,
	   "refused: a sparse one with bits");
	put(header, 20, 8, 0);
	is(bf_decode_header(header, BF_HEADER_SIZE + 8 * most, BF_STATE, &filter).error, BF_OK,
	   "a state of 2^24 hashes");
	is(filter.nhashes, most, "has so many");
	status = bf_decode_header(header, BF_HEADER_SIZE + 8 * (most + 1), BF_STATE, &filter);
	ok(status.error == BF_ERR_HASHES_MAX && status.got == most + 1 &&
	   status.limit == most, "refused: one more");
	put(header, 4, 4, 0);
	is(bf_decode_header(header, BF_HEADER_SIZE + 8, BF_STATE, &filter).error,
	   BF_ERR_CLASS_MISSING, "refused: a state with a hash and no class");
	is(bf_decode_header(header, BF_HEADER_SIZE, BF_STATE, &filter).error, BF_OK,
	   "a state of no hash");
	free(header);
}

/* The header alone gives the same verdict and parameters as the whole. */
static void
test_header_alone(void)
{
	uint64_t	state = 3;
	uint8_t		bytes[BF_HEADER_SIZE + 640 + 64] = {0};

	for (int i = 0; i < 20000; i++)
	{
		bf_filter	filter = random_filter(&state);
		uint64_t	size = encode(&filter, &state, bytes);
		uint8_t    *header = allocate(BF_HEADER_SIZE);
		bf_filter	decoded;
		bf_status	whole,
					alone;

		if (i % 2)
			mutate(bytes, &size, &state);
		memcpy(header, bytes, BF_HEADER_SIZE);
		alone = bf_decode_header(header, size, BF_STATE, &decoded);
		whole = bf_decode(bytes, size, BF_STATE, &filter);
		each(alone.error == whole.error && alone.got == whole.got && alone.limit == whole.limit,
			 "filter %d: errors %d and %d", i, (int) alone.error, (int) whole.error);
		each(whole.error != BF_OK ||
			 (same_params(&decoded.params, &filter.params) && decoded.sparse == filter.sparse &&
			  decoded.sizing == filter.sizing && decoded.nhashes == filter.nhashes),
			 "filter %d is another by its header", i);
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
		bf_status	status = verdict(bytes, cut, BF_VALUE, &decoded);

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
		bf_status	status = verdict(bytes, cut, BF_VALUE, &decoded);
		bf_error	wanted = cut < 28 ? BF_ERR_SHORT :
			(cut - 28) % 8 != 0 ? BF_ERR_HASHES_LENGTH : BF_OK;

		each(status.error == wanted, "%" PRIu64 " bytes: error %d", cut, (int) status.error);
		each(wanted != BF_OK || decoded.nhashes == (cut - 28) / 8, "%" PRIu64 " bytes", cut);
	}
	passed("a truncated sparse filter has fewer hashes, or is invalid");
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
	bf_params	none = {.m = 0};
	bf_params	largest = {.m = BF_MAX_BITS};

	for (uint64_t m = 64; m < 100000; m += 64)
	{
		bf_params	params = {.m = m};
		uint64_t	n = 0;

		while (8 * (n + 1) < m / 8)
			n++;
		each(bf_sparse_limit(&params) == n, "m = %" PRIu64, m);
	}
	passed("hashes are listed while they are smaller than the bits");
	is(bf_sparse_limit(&none), 0, "none without bits");
	is(bf_sparse_limit(&largest), (UINT64_C(1) << 25) - 1, "and at most 2^25 - 1");
}

int
main(void)
{
	test_known_bytes();
	test_round_trip();
	test_mutations();
	test_refusals();
	test_more_refusals();
	test_large();
	test_header_alone();
	test_truncations();
	test_hash_order();
	test_classes();
	test_sparse_limit();
	return done();
}
