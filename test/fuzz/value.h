/*
 * value.h
 *		One of the two filters or counters of an input of the target decode, and
 *		the checks that apply to both kinds.
 */
#ifndef VALUE_H
#define VALUE_H

#include <endian.h>

#include "acceptable.h"
#include "bulk.h"
#include "compatible.h"
#include "estimate.h"
#include "format.h"
#include "fuzz.h"
#include "hex.h"
#include "probe.h"
#include "reference.h"
#include "sparse.h"

typedef struct value
{
	bf_filter	filter;
	bf_source	source;			/* as what the bytes are decoded */
	const uint8_t *bytes;
	size_t		size;
	size_t		piece;			/* blocks or hashes handled at once */
	bool		decoded;
	bool		valid;			/* its hashes are in order, too */
	uint64_t	probes[12];
	size_t		nprobes;
} value;


static bool
is_counter(const value *v)
{
	return v->source == BF_COUNTER_VALUE || v->source == BF_COUNTER_STATE;
}

/* The verdict of acceptable.h. */
static bool
acceptable_as(const uint8_t *bytes, uint64_t size, bf_source source)
{
	if (source == BF_VALUE || source == BF_STATE)
		return acceptable(bytes, size, source == BF_STATE);
	return acceptable_counter(bytes, size, source == BF_COUNTER_STATE);
}

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
			/* in one piece, all hashes are checked before the numbers */
			demand(part.error == whole.error ? part.got == whole.got :
				   part.error == BF_ERR_NUMBER && whole.error == BF_ERR_HASHES_ORDER);
			return part;
		}
	}
	demand(whole.error == BF_OK);
	return whole;
}

/* The header alone, which may claim more bytes than an input has. */
static void
check_claims(const value *v)
{
	uint8_t    *header = copy_of(v->bytes, BF_HEADER_SIZE);
	uint64_t	m = get(header, 20, 8);
	uint32_t	width = is_counter(v) ? counter_width(header) : 1;
	uint64_t	dense = m / 8 * width;
	uint64_t	hash_size = is_counter(v) ? 10 : 8;
	uint64_t	claims[] = {v->size, dense + BF_HEADER_SIZE, m, UINT64_MAX};

	for (int i = 0; i < 4; i++)
	{
		bf_filter	filter;
		bf_status	status = bf_decode_header(header, claims[i], v->source, &filter);

		if (i == 0)
			demand((status.error == BF_OK) == v->decoded);
		if ((header[2] & 1) == 0)
			demand((status.error == BF_OK) == acceptable_as(header, claims[i], v->source));
		else if (status.error == BF_OK)
			demand(filter.nhashes == (claims[i] - BF_HEADER_SIZE) / hash_size &&
				   (filter.sizing ? filter.nhashes <= BF_SIZING_LIMIT :
					filter.nhashes == 0 || filter.nhashes * hash_size < dense));
	}
	free(header);
}

static void
decode(value *v, const uint8_t *bytes, size_t size, bf_source source)
{
	bf_status	status;

	v->bytes = copy_of(bytes, size);
	v->size = size;
	v->source = source;
	status = bf_decode(v->bytes, size, source, &v->filter);
	v->decoded = status.error == BF_OK;
	if (v->decoded && v->filter.sparse)
		status = check_hashes(v);
	v->valid = status.error == BF_OK;
	demand(v->valid == acceptable_as(bytes, size, source));
	if (size >= BF_HEADER_SIZE)
		check_claims(v);
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

/* The number of a hash in a sparse counter, 1 in a sparse filter, 0 if it is absent. */
static uint32_t
listed(const bf_filter *filter, uint64_t hash)
{
	const uint8_t *numbers = filter->payload + 8 * filter->nhashes;

	for (uint64_t i = 0; i < filter->nhashes; i++)
	{
		if (word_at(filter, i) == hash)
			return filter->params.counter_bits == 0 ? 1 : (uint32_t) get(numbers + 2 * i, 0, 2);
	}
	return 0;
}

/* What a hash reads, by the format's rules. */
static uint32_t
expected_read(const bf_filter *filter, uint64_t hash)
{
	if (filter->sparse)
		return listed(filter, hash);
	if (filter->params.counter_bits != 0)
		return ref_read(filter->payload, &filter->params, hash);
	return ref_contains(filter->payload, &filter->params, hash);
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

/* Reading a dense payload by pieces, each in memory of its own, finds the same. */
static void
check_lookup(const bf_filter *filter, uint64_t hash)
{
	bf_lookup	lookup = bf_lookup_start(&filter->params, hash);
	uint64_t	offset;
	uint32_t	size;
	bool		possible = true;

	while (possible && bf_lookup_next(&lookup, &offset, &size))
	{
		uint8_t    *piece;

		demand(offset + size <= bf_payload_size(filter));
		piece = copy_of(filter->payload + offset, size);
		possible = bf_lookup_test(&lookup, piece);
		free(piece);
	}
	demand((possible ? lookup.number : 0) == bf_read(filter, hash));
}

static void
check_membership(const value *v)
{
	const bf_filter *filter = &v->filter;

	for (size_t i = 0; i < v->nprobes; i++)
	{
		uint64_t	hash = v->probes[i];
		uint32_t	number = bf_read(filter, hash);

		demand(bf_contains(filter, hash) == (number != 0));
		if (filter->sparse)
			check_sparse(v, hash);
		else
			check_lookup(filter, hash);
		if (i < 4 && filter->params.m > 0)
			check_bit_numbers(v, hash);
		if (v->valid)
			demand(number == expected_read(filter, hash));
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
		a->counter_bits == b->counter_bits &&
		(larger == smaller || (folded && a->layout == BF_BLOCKED && larger % smaller == 0));
}

static bool
same_params(const bf_params *a, const bf_params *b)
{
	return a->layout == b->layout && a->k == b->k && a->element_class == b->element_class &&
		a->rate == b->rate && a->seed == b->seed && a->m == b->m && a->counter_bits == b->counter_bits;
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

/* A dense payload with the parameters of a result is valid. */
static void
check_result(const bf_params *params, const uint8_t *payload)
{
	bf_filter	filter = {.params = *params};
	bf_filter	again;
	bf_source	source = params->counter_bits == 0 ? BF_VALUE : BF_COUNTER_VALUE;
	uint64_t	size = bf_encoded_size(&filter);
	uint8_t    *bytes = room_for(size);

	memcpy(bf_encode_header(&filter, bytes), payload, size - BF_HEADER_SIZE);
	demand(bf_decode(bytes, size, source, &again).error == BF_OK);
	demand(acceptable_as(bytes, size, source));
	demand(same_params(params, &again.params) && !again.sparse && !again.sizing);
	free(bytes);
}

#endif							/* VALUE_H */
