/*
 * decode.c
 *		Any bytes to the decoder, and all filters that it accepts to every
 *		operation.
 *
 * An input is a frame of two filters: a byte of options, a byte for the size of
 * the pieces of long loops, the length of the first filter (2 bytes), the first
 * filter, the second. Each filter lies in memory of its exact size.
 */
#include <endian.h>

#include "acceptable.h"
#include "bulk.h"
#include "compatible.h"
#include "dense.h"
#include "estimate.h"
#include "format.h"
#include "frame.h"
#include "fuzz.h"
#include "hex.h"
#include "probe.h"
#include "reference.h"
#include "sparse.h"
#include "stream.h"

/* Filters that claim to be larger skip the operations on all bits. */
#define MOST_BITS		(1 << 14)

/* One of the two filters of an input. */
typedef struct value
{
	bf_filter	filter;
	const uint8_t *bytes;
	size_t		size;
	size_t		piece;			/* blocks or hashes handled at once */
	bool		decoded;
	bool		valid;			/* its hashes are in order, too */
	uint64_t	probes[12];
	size_t		nprobes;
} value;


/* The verdict on the hashes is the same in pieces and at once. */
static bf_status
check_hashes(const value *v)
{
	const bf_filter *filter = &v->filter;
	bf_status	whole = bf_check_hashes(filter, 0, filter->nhashes);

	for (uint64_t at = 0; at < filter->nhashes; at += v->piece)
	{
		uint64_t	to = at + v->piece < filter->nhashes ? at + v->piece : filter->nhashes;
		bf_status	part = bf_check_hashes(filter, at, to);

		if (part.error != BF_OK)
		{
			demand(part.error == whole.error && part.got == whole.got);
			return part;
		}
	}
	demand(whole.error == BF_OK);
	return whole;
}

/* The header alone, which may claim more bytes than an input has. */
static void
check_claims(const value *v, bf_source source)
{
	uint8_t    *header = copy_of(v->bytes, BF_HEADER_SIZE);
	uint64_t	m = get(header, 20, 8);
	uint64_t	claims[] = {v->size, m / 8 + BF_HEADER_SIZE, m, UINT64_MAX};

	for (int i = 0; i < 4; i++)
	{
		bf_filter	filter;
		bf_status	status = bf_decode_header(header, claims[i], source, &filter);

		if (i == 0)
			demand((status.error == BF_OK) == v->decoded);
		if ((header[2] & 1) == 0)
			demand((status.error == BF_OK) == acceptable(header, claims[i], source == BF_STATE));
		else if (status.error == BF_OK)
			demand(filter.nhashes == (claims[i] - BF_HEADER_SIZE) / 8 &&
				   filter.nhashes <= (filter.sizing ? BF_SIZING_LIMIT : m / 64));
	}
	free(header);
}

static void
decode(value *v, const uint8_t *bytes, size_t size, bf_source source)
{
	bf_status	status;

	v->bytes = copy_of(bytes, size);
	v->size = size;
	status = bf_decode(v->bytes, size, source, &v->filter);
	v->decoded = status.error == BF_OK;
	if (v->decoded && v->filter.sparse)
		status = check_hashes(v);
	v->valid = status.error == BF_OK;
	demand(v->valid == acceptable(bytes, size, source == BF_STATE));
	if (size >= BF_HEADER_SIZE)
		check_claims(v, source);
}

/* An accepted filter encodes to the bytes that it was decoded from. */
static void
check_encoding(const value *v)
{
	const bf_filter *filter = &v->filter;
	uint8_t    *again = room_for(v->size);
	char	   *digits = room_for(2 * v->size);

	demand(bf_encoded_size(filter) == v->size);
	demand(bf_encode_header(filter, again) == again + BF_HEADER_SIZE);
	memcpy(again + BF_HEADER_SIZE, filter->payload, bf_payload_size(filter));
	demand(memcmp(again, v->bytes, v->size) == 0);

	bf_hex_encode(v->bytes, v->size, digits);
	memset(again, 0, v->size);
	demand(bf_hex_decode(digits, v->size, again));
	demand(memcmp(again, v->bytes, v->size) == 0);
	free(digits);
	free(again);
}


/* The word of a payload at index i. */
static uint64_t
word_at(const bf_filter *filter, uint64_t i)
{
	uint64_t	word;

	memcpy(&word, filter->payload + 8 * i, sizeof(word));
	return le64toh(word);
}

static bool
listed(const bf_filter *filter, uint64_t hash)
{
	for (uint64_t i = 0; i < filter->nhashes; i++)
	{
		if (word_at(filter, i) == hash)
			return true;
	}
	return false;
}

/* Some hashes to probe: the filter's own, their neighbours, and others. */
static void
choose_probes(value *v)
{
	uint64_t	words = bf_payload_size(&v->filter) / 8;

	v->nprobes = 0;
	v->probes[v->nprobes++] = 0;
	v->probes[v->nprobes++] = UINT64_MAX;
	v->probes[v->nprobes++] = v->filter.params.seed;
	for (uint64_t i = 0; i < words && v->nprobes < 11; i += words / 4 + 1)
	{
		v->probes[v->nprobes++] = word_at(&v->filter, i);
		v->probes[v->nprobes++] = v->probes[v->nprobes - 1] + 1;
	}
}

/*
 * The positions of an element's bits, in filters that are too large to
 * allocate, too.
 */
static void
check_bit_numbers(const value *v, uint64_t hash)
{
	const bf_params *params = &v->filter.params;
	bf_shape	shape = bf_shape_of(params);
	uint64_t	block = 8 * bf_block_offset(&shape, hash);
	uint64_t	y = hash;

	for (uint32_t i = 0; i < params->k; i++)
		demand(block + bf_next_bit(&y, shape.block_bits) == ref_bit(params, hash, i));
}

static void
check_sparse(const value *v, uint64_t hash)
{
	const bf_filter *filter = &v->filter;
	uint64_t	at = bf_lower_bound(filter->payload, filter->nhashes, hash);
	uint64_t	from;
	uint64_t	to;

	demand(at <= filter->nhashes);
	if (filter->nhashes > 0)
	{
		bf_expected_range(filter->nhashes, hash, &from, &to);
		demand(from <= to && to <= filter->nhashes);
	}
	if (!v->valid)
		return;
	demand(at == 0 || word_at(filter, at - 1) < hash);
	demand(at == filter->nhashes || word_at(filter, at) >= hash);
}

static void
check_membership(const value *v)
{
	const bf_filter *filter = &v->filter;

	for (size_t i = 0; i < v->nprobes; i++)
	{
		uint64_t	hash = v->probes[i];
		bool		contained = bf_contains(filter, hash);

		if (filter->sparse)
			check_sparse(v, hash);
		if (i < 4 && filter->params.m > 0)
			check_bit_numbers(v, hash);
		if (v->valid)
			demand(contained == (filter->sparse ? listed(filter, hash) :
								 ref_contains(filter->payload, &filter->params, hash)));
	}
	if (filter->sparse && v->valid)
	{
		for (uint64_t i = 0; i < filter->nhashes; i++)
			demand(bf_contains(filter, word_at(filter, i)));
	}
}

static uint64_t
count_bits(const uint8_t *bits, size_t size)
{
	uint64_t	count = 0;

	for (size_t i = 0; i < size; i += 8)
	{
		uint64_t	word;

		memcpy(&word, bits + i, sizeof(word));
		count += (unsigned) __builtin_popcountll(word);
	}
	return count;
}

/* Counts and estimates of m / 8 bytes of bits. */
static double
check_measures(const bf_params *params, const uint8_t *bits)
{
	size_t		size = params->m / 8;
	bf_shape	shape = bf_shape_of(params);
	uint64_t	set = count_bits(bits, size);
	double		cardinality = bf_cardinality(&shape, set);

	demand(bf_popcount(bits, size) == set);
	demand(bf_popcount_or(bits, bits, size) == set);
	demand(bf_is_subset(bits, bits, size));
	demand((set == 0) == (cardinality == 0) && (set == params->m) == isinf(cardinality));
	demand(cardinality >= 0 && (set == 0 || cardinality * params->k >= 0.99 * (double) set));
	return cardinality;
}

/* The rate of a dense filter, which takes 512 powers if it is blocked. */
static void
check_rate(const bf_params *params, const uint8_t *bits)
{
	bf_shape	shape = bf_shape_of(params);
	uint64_t	set = count_bits(bits, params->m / 8);
	bf_tally	tally = {.bits_set = 0};
	double		rate;

	bf_tally_add(&tally, &shape, bits, params->m / 8);
	demand(bf_tally_bits(&tally, &shape) == set);
	demand(bf_tally_full_blocks(&tally, &shape) <= shape.nblocks);
	rate = bf_current_rate(&tally, &shape);
	demand(rate >= 0 && rate <= 1);
	demand((rate == 1) == (set == params->m));
}

/* Adds to a copy of the bits. */
static void
check_adding(const value *v)
{
	const bf_params *params = &v->filter.params;
	bf_shape	shape = bf_shape_of(params);
	uint8_t    *bits = copy_of(v->filter.payload, params->m / 8);
	uint8_t    *expected = copy_of(v->filter.payload, params->m / 8);

	for (size_t i = 0; i < 4; i++)
	{
		bf_bits_prefetch(bits, &shape, v->probes[i % v->nprobes]);
		bf_bits_add(bits, &shape, v->probes[i % v->nprobes]);
		ref_add(expected, params, v->probes[i % v->nprobes]);
		demand(bf_bits_contain(bits, &shape, v->probes[i % v->nprobes]));
	}
	demand(memcmp(bits, expected, params->m / 8) == 0);
	free(bits);
	free(expected);
}


/* The bits of a filter at another size, computed byte by byte. */
static uint8_t *
expected_image(const bf_filter *filter, uint64_t m)
{
	uint8_t    *image = allocate(m / 8);
	bf_params	params = filter->params;
	uint64_t	fold = params.m / m;

	params.m = m;
	if (filter->sparse)
	{
		for (uint64_t i = 0; i < filter->nhashes; i++)
			ref_add(image, &params, word_at(filter, i));
		return image;
	}
	for (uint64_t i = 0; i < filter->params.m / 8; i++)
	{
		uint64_t	block = i / BF_BLOCK_BYTES;
		uint64_t	byte = i % BF_BLOCK_BYTES;

		if (params.layout == BF_CLASSIC)
			image[i] = filter->payload[i];
		else
			image[block / fold * BF_BLOCK_BYTES + byte] |= filter->payload[i];
	}
	return image;
}

/*
 * The same through a stream, in pieces, each in memory of its own. NULL if
 * the filter's hashes are out of order.
 */
static uint8_t *
streamed_image(const value *v, uint64_t m)
{
	bf_stream	stream = bf_stream_start(&v->filter, m);
	uint8_t    *image = room_for(m / 8);
	size_t		most = v->piece * BF_BLOCK_BYTES;
	bool		good = true;

	for (uint64_t at = 0; at < m / 8 && good; at += most)
	{
		size_t		size = m / 8 - at < most ? m / 8 - at : most;
		uint8_t    *scratch = room_for(size);
		const uint8_t *piece = bf_stream_read(&stream, at, size, scratch);

		while (piece != NULL && stream.unfinished)
			piece = bf_stream_continue(&stream, at, size, scratch);
		good = piece != NULL;
		if (good)
			memcpy(image + at, piece, size);
		free(scratch);
	}
	if (good)
		return image;
	free(image);
	return NULL;
}

static uint8_t *
expanded_image(const value *v)
{
	const bf_filter *filter = &v->filter;
	bf_update	update = bf_update_of(&filter->params, false);
	uint8_t    *image = allocate(filter->params.m / 8);

	for (uint64_t at = 0; at < filter->nhashes; at += v->piece)
		bf_expand(filter, at, at + v->piece < filter->nhashes ? at + v->piece : filter->nhashes,
				  &update, image);
	return image;
}

/* A decoded filter's bits at that size. NULL only if the filter is invalid. */
static uint8_t *
image_of(const value *v, uint64_t m)
{
	const bf_filter *filter = &v->filter;
	uint8_t    *image;

	if (filter->sparse && filter->params.layout == BF_CLASSIC)
		image = expanded_image(v);
	else
		image = streamed_image(v, m);
	if (v->valid)
	{
		uint8_t    *expected = expected_image(filter, m);

		demand(image != NULL && memcmp(image, expected, m / 8) == 0);
		free(expected);
	}
	return image;
}

/* The bits contain every probe that the filter contains. */
static void
check_kept(const value *v, const uint8_t *bits, uint64_t m)
{
	bf_params	params = v->filter.params;
	bf_shape	shape;

	params.m = m;
	shape = bf_shape_of(&params);
	for (size_t i = 0; i < v->nprobes; i++)
		demand(!bf_contains(&v->filter, v->probes[i]) ||
			   bf_bits_contain(bits, &shape, v->probes[i]));
}

/* A filter at another size still contains its elements. */
static void
check_image(const value *v, uint64_t m)
{
	bf_params	params = v->filter.params;
	uint8_t    *image = image_of(v, m);

	params.m = m;
	if (v->valid)
	{
		check_measures(&params, image);
		check_kept(v, image, m);
	}
	free(image);
}

/* Folding in place gives the same bits. */
static void
check_in_place(const value *v, uint64_t m)
{
	uint64_t	size = v->filter.params.m / 8;
	uint64_t	run = v->filter.params.m / m;
	uint8_t    *bits = copy_of(v->filter.payload, size);
	uint8_t    *expected = expected_image(&v->filter, m);

	bf_fold(bits, bits, m / BF_BLOCK_BITS, run);
	demand(memcmp(bits, expected, m / 8) == 0);
	free(expected);
	free(bits);
}

static void
check_sizes(const value *v)
{
	uint64_t	bits = v->filter.params.m;
	uint64_t	previous = 0;

	if (v->filter.sparse)
	{
		check_image(v, BF_BLOCK_BITS * 5);
		check_image(v, BF_BLOCK_BITS);
	}
	if (bits > MOST_BITS)
		return;
	if (v->filter.sparse)
		check_image(v, 3 * bits);
	for (uint64_t m = 0; (m = bf_next_fold(&v->filter.params, m)) < bits; previous = m)
	{
		demand(m > previous && bits % m == 0);
		check_image(v, m);
		if (!v->filter.sparse)
			check_in_place(v, m);
	}
}

/* All operations on one filter. */
static void
check_filter(value *v)
{
	const bf_filter *filter = &v->filter;
	uint64_t	m = filter->params.m;

	if (!v->decoded)
		return;
	check_encoding(v);
	choose_probes(v);
	check_membership(v);
	if (filter->sparse)
		demand(bf_current_rate_sparse(filter->nhashes) < 1);
	else
	{
		check_rate(&filter->params, filter->payload);
		check_adding(v);
	}
	if (m > 0 && m <= MOST_BITS)
		check_image(v, m);
	if (filter->params.layout == BF_BLOCKED && m > 0)
		check_sizes(v);
}


/* Sorted hashes of two filters, without duplicates. */
static size_t
expected_union(const bf_filter *a, const bf_filter *b, uint64_t *hashes)
{
	for (uint64_t i = 0; i < a->nhashes; i++)
		hashes[i] = word_at(a, i);
	for (uint64_t i = 0; i < b->nhashes; i++)
		hashes[a->nhashes + i] = word_at(b, i);
	return sort_hashes(hashes, a->nhashes + b->nhashes);
}

typedef uint64_t (*merge_step) (bf_merge *merge, uint8_t *out, uint64_t max);

/* Counts, and merges in pieces into memory of exactly that size. */
static uint64_t
merge(const value *a, const value *b, merge_step step, uint8_t **out)
{
	uint64_t	counted = 0;
	uint64_t	steps = 0;

	*out = NULL;
	for (int writing = 0; writing <= 1; writing++)
	{
		bf_merge	state = {
			.a = a->filter.payload, .acount = a->filter.nhashes,
			.b = b->filter.payload, .bcount = b->filter.nhashes
		};
		uint64_t	count = 0;

		for (; !bf_merge_done(&state); steps++)
		{
			demand(steps <= 2 * (a->filter.nhashes + b->filter.nhashes));
			count += step(&state, writing ? *out + 8 * count : NULL, a->piece);
		}
		demand(!writing || count == counted);
		counted = count;
		if (!writing)
			*out = room_for(8 * count);
	}
	return counted;
}

static void
check_merging(const value *a, const value *b)
{
	uint64_t	most = a->filter.nhashes + b->filter.nhashes;
	uint8_t    *united;
	uint8_t    *common;
	uint64_t	nunited = merge(a, b, bf_merge_union, &united);
	uint64_t	ncommon = merge(a, b, bf_merge_intersection, &common);

	demand(nunited + ncommon == most);
	if (a->valid && b->valid)
	{
		uint64_t   *hashes = room_for(8 * most);

		demand(nunited == expected_union(&a->filter, &b->filter, hashes));
		for (uint64_t i = 0; i < nunited; i++)
			demand(get(united + 8 * i, 0, 8) == hashes[i]);
		for (uint64_t i = 0; i < ncommon; i++)
		{
			uint64_t	hash = get(common + 8 * i, 0, 8);

			demand(i == 0 || get(common + 8 * (i - 1), 0, 8) < hash);
			demand(listed(&a->filter, hash) && listed(&b->filter, hash));
		}
		free(hashes);
	}
	free(united);
	free(common);
}

/*
 * The format's rules for which filters combine, or combine if the larger is
 * folded.
 */
static bool
combines(const bf_params *a, const bf_params *b, bool folded)
{
	uint64_t	larger = a->m > b->m ? a->m : b->m;
	uint64_t	smaller = a->m > b->m ? b->m : a->m;

	if (a->element_class != 0 && b->element_class != 0 && a->element_class != b->element_class)
		return false;
	if (smaller == 0)
		return true;
	return a->layout == b->layout && a->k == b->k && a->seed == b->seed &&
		(larger == smaller || (folded && a->layout == BF_BLOCKED && larger % smaller == 0));
}

static bool
same_params(const bf_params *a, const bf_params *b)
{
	return a->layout == b->layout && a->k == b->k && a->element_class == b->element_class &&
		a->rate == b->rate && a->seed == b->seed && a->m == b->m;
}

/* The parameters of a union. */
static void
check_united(const bf_params *a, const bf_params *b, bf_params *united)
{
	bf_params	other;
	bf_params	once_more;

	*united = bf_combined_params(a, b);
	other = bf_combined_params(b, a);
	demand(same_params(united, &other));
	demand(bf_equal_params(united, a) == same_params(united, a));
	demand(united->m == (a->m > b->m ? a->m : b->m));
	if (a->m > 0 && b->m > 0)
	{
		demand(united->element_class == (a->element_class | b->element_class));
		demand(united->rate <= a->rate && united->rate <= b->rate);
		once_more = bf_combined_params(united, a);
		demand(same_params(united, &once_more));
	}
}

/*
 * The parameters of a union, or those for a comparison after the larger
 * filter is folded. False if the filters do not match.
 */
static bool
check_params(const bf_params *a, const bf_params *b, bf_params *params)
{
	bf_mismatch mismatch = bf_compare_params(a, b);
	bf_mismatch folded = bf_compare_folded(a, b);

	demand(mismatch == bf_compare_params(b, a) && folded == bf_compare_folded(b, a));
	demand((mismatch == BF_MATCH) == combines(a, b, false));
	demand((folded == BF_MATCH) == combines(a, b, true));
	if (mismatch == BF_MATCH)
		check_united(a, b, params);
	else
		*params = a->m < b->m ? *a : *b;
	return folded == BF_MATCH;
}

/* The bits of a union are a valid filter. */
static void
check_result(const bf_params *params, const uint8_t *bits)
{
	bf_filter	filter = {.params = *params};
	bf_filter	again;
	uint8_t    *bytes = room_for(bf_encoded_size(&filter));

	memcpy(bf_encode_header(&filter, bytes), bits, params->m / 8);
	demand(bf_decode(bytes, bf_encoded_size(&filter), BF_VALUE, &again).error == BF_OK);
	demand(acceptable(bytes, bf_encoded_size(&filter), false));
	demand(same_params(params, &again.params) && !again.sparse && !again.sizing);
	free(bytes);
}

/* Union and intersection of the bits of two filters at the same or the smaller size. */
static void
check_bits(const value *a, const value *b, const bf_params *params)
{
	size_t		size = params->m / 8;
	uint8_t    *left = image_of(a, params->m);
	uint8_t    *right = image_of(b, params->m);
	uint8_t    *united = copy_of(left, size);
	uint8_t    *common = copy_of(left, size);
	double		left_count = check_measures(params, left);
	double		right_count = check_measures(params, right);
	double		intersection;

	bf_or(united, right, size);
	bf_and(common, right, size);
	for (size_t i = 0; i < size; i++)
		demand(united[i] == (left[i] | right[i]) && common[i] == (left[i] & right[i]));
	demand(bf_popcount_or(left, right, size) == bf_popcount(united, size));
	demand(bf_is_subset(left, united, size) && bf_is_subset(common, right, size));
	demand(bf_is_subset(left, right, size) == (memcmp(united, right, size) == 0));
	check_kept(a, united, params->m);
	check_kept(b, united, params->m);
	if (params->element_class != BF_CLASS_NONE)
		check_result(params, united);

	intersection = bf_intersection_of(left_count, right_count, check_measures(params, united));
	demand(isnan(intersection) ||
		   (intersection >= 0 && intersection <= left_count && intersection <= right_count));
	free(left);
	free(right);
	free(united);
	free(common);
}

/* All operations on two filters. */
static void
check_filters(const value *a, const value *b)
{
	bf_params	params;

	if (!a->decoded || !b->decoded)
		return;
	if (a->filter.sparse && b->filter.sparse)
		check_merging(a, b);
	/* unions do not apply to states that size themselves */
	if (a->filter.sizing || b->filter.sizing ||
		!check_params(&a->filter.params, &b->filter.params, &params))
		return;
	if (a->valid && b->valid && a->filter.params.m > 0 && b->filter.params.m > 0 &&
		params.m <= MOST_BITS)
		check_bits(a, b, &params);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	frame		in;
	value		values[2] = {{.decoded = false}};

	if (!open_frame(&in, data, size))
		return 0;
	for (int i = 0; i < 2; i++)
	{
		values[i].piece = 1 + in.pieces % 8;
		decode(&values[i], in.bytes[i], in.size[i], in.options & 1 << i ? BF_STATE : BF_VALUE);
		check_filter(&values[i]);
	}
	check_filters(&values[0], &values[0]);
	check_filters(&values[0], &values[1]);
	for (int i = 0; i < 2; i++)
		free((void *) values[i].bytes);
	return 0;
}
