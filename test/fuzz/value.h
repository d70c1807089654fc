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
#include "probe.h"
#include "reference.h"
#include "sparse.h"

typedef struct value
{
	bf_filter	filter;
	bf_kind		kind;			/* as what the bytes are decoded */
	bf_form		form;
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
	return v->kind == BF_COUNTER;
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
		bf_status	status = bf_decode_header(header, claims[i], v->kind, v->form, &filter);

		if (i == 0)
			demand((status.error == BF_OK) == v->decoded);
		if ((header[2] & 1) == 0)
			demand((status.error == BF_OK) == acceptable_as(header, claims[i], v->kind, v->form));
		else if (status.error == BF_OK)
			demand(filter.nhashes == (claims[i] - BF_HEADER_SIZE) / hash_size &&
				   (filter.sizing ? filter.nhashes <= BF_SIZING_LIMIT :
					filter.nhashes == 0 || filter.nhashes * hash_size < dense));
	}
	free(header);
}

static void
decode(value *v, const uint8_t *bytes, size_t size, bf_kind kind, bf_form form)
{
	bf_status	status;

	v->bytes = copy_of(bytes, size);
	v->size = size;
	v->kind = kind;
	v->form = form;
	status = bf_decode(v->bytes, size, kind, form, &v->filter);
	v->decoded = status.error == BF_OK;
	if (v->decoded && v->filter.sparse)
		status = check_hashes(v);
	v->valid = status.error == BF_OK;
	demand(v->valid == acceptable_as(bytes, size, kind, form));
	if (size >= BF_HEADER_SIZE)
		check_claims(v);
}

/* An accepted filter encodes to the bytes that it was decoded from. */
static void
check_encoding(const value *v)
{
	const bf_filter *filter = &v->filter;
	uint8_t    *again = room_for(v->size);

	demand(bf_encoded_size(filter) == v->size);
	demand(bf_encode_header(filter, again) == again + BF_HEADER_SIZE);
	memcpy(again + BF_HEADER_SIZE, filter->payload, bf_payload_size(filter));
	demand(memcmp(again, v->bytes, v->size) == 0);
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
			return filter->params.cell_bits == 1 ? 1 : (uint32_t) get(numbers + 2 * i, 0, 2);
	}
	return 0;
}

/* What a hash reads, by the format's rules. */
static uint32_t
expected_read(const bf_filter *filter, uint64_t hash)
{
	return filter->sparse ? listed(filter, hash) : ref_read(filter->payload, &filter->params, hash);
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
		a->cell_bits == b->cell_bits &&
		(larger == smaller || (folded && a->layout == BF_BLOCKED && larger % smaller == 0));
}

static bool
same_params(const bf_params *a, const bf_params *b)
{
	return a->layout == b->layout && a->k == b->k && a->element_class == b->element_class &&
		a->rate == b->rate && a->seed == b->seed && a->m == b->m && a->cell_bits == b->cell_bits;
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

#define COMBINATIONS	4

static const char operations[COMBINATIONS] = {
	[BF_SUM] = '+',[BF_DIFFERENCE] = '-',[BF_GREATER] = '>',[BF_LESSER] = '<'
};

static uint32_t
limit_of(const bf_params *params)
{
	return (UINT32_C(1) << params->cell_bits) - 1;
}

/* The hashes of two sparse filters or counters, with the numbers of each. */
typedef struct pairs
{
	uint64_t   *hashes;
	uint32_t   *numbers[2];
	size_t		count;
} pairs;

static pairs
pair_up(const bf_filter *a, const bf_filter *b)
{
	size_t		most = a->nhashes + b->nhashes;
	pairs		of = {.hashes = room_for(8 * most)};

	of.count = expected_union(a, b, of.hashes);
	for (int side = 0; side < 2; side++)
	{
		of.numbers[side] = room_for(sizeof(uint32_t) * of.count);
		for (size_t i = 0; i < of.count; i++)
			of.numbers[side][i] = listed(side == 0 ? a : b, of.hashes[i]);
	}
	return of;
}

static void
free_pairs(pairs *of)
{
	free(of->hashes);
	free(of->numbers[0]);
	free(of->numbers[1]);
}

/* Merges in pieces; counts if out is NULL, else writes into room for `room` hashes. */
static uint64_t
merge(const value *a, const value *b, bf_combination combination, uint8_t *out, uint64_t room, bool *misfit)
{
	bf_merge	state = {.a = &a->filter, .b = &b->filter, .combination = combination};
	uint64_t	count = 0;

	while (!bf_merge_done(&state))
	{
		uint64_t	before = state.i + state.j;

		count += bf_merge_entries(&state, out == NULL ? NULL : out + 8 * count,
								  out == NULL || !is_counter(a) ? NULL : out + 8 * room + 2 * count, a->piece);
		demand(state.i + state.j > before);
	}
	*misfit = state.misfit;
	return count;
}

/* The result has the combined numbers of all hashes, except zeros. */
static void
check_merged(const pairs *of, const value *like, char operation, const uint8_t *merged, uint64_t count, bool misfit)
{
	uint32_t	limit = limit_of(&like->filter.params);
	bool		exists = true;
	uint64_t	at = 0;

	for (size_t i = 0; i < of->count; i++)
		exists = exists && ref_combined(operation, of->numbers[0][i], of->numbers[1][i], limit) >= 0;
	demand(misfit == !exists);
	for (size_t i = 0; i < of->count && exists; i++)
	{
		int64_t		number = ref_combined(operation, of->numbers[0][i], of->numbers[1][i], limit);

		if (number == 0)
			continue;
		demand(at < count && get(merged + 8 * at, 0, 8) == of->hashes[i]);
		demand(!is_counter(like) || get(merged + 8 * count + 2 * at, 0, 2) == (uint64_t) number);
		at++;
	}
	demand(!exists || at == count);
}

/* Merges two sparse filters, or two sparse counters of one width, in every way. */
static void
check_merging(const value *a, const value *b)
{
	bool		valid = a->valid && b->valid;
	uint64_t	counts[COMBINATIONS] = {0};
	pairs		of = {.count = 0};

	if (!a->filter.sparse || !b->filter.sparse || a->filter.params.cell_bits != b->filter.params.cell_bits)
		return;
	if (valid)
		of = pair_up(&a->filter, &b->filter);
	for (bf_combination op = BF_SUM; op < COMBINATIONS; op++)
	{
		bool		misfit;
		bool		again;
		uint8_t    *merged;

		if (op == BF_DIFFERENCE && !is_counter(a))
			continue;
		counts[op] = merge(a, b, op, NULL, 0, &misfit);
		merged = room_for((is_counter(a) ? 10 : 8) * counts[op]);
		demand(merge(a, b, op, merged, counts[op], &again) == counts[op] && again == misfit);
		if (valid)
			check_merged(&of, a, operations[op], merged, counts[op], misfit);
		free(merged);
	}
	demand(is_counter(a) || counts[BF_GREATER] + counts[BF_LESSER] == a->filter.nhashes + b->filter.nhashes);
	if (valid)
		free_pairs(&of);
}

/* A dense payload with the parameters of a result is valid. */
static void
check_result(const bf_params *params, const uint8_t *payload)
{
	bf_filter	filter = {.params = *params};
	bf_filter	again;
	bf_kind		kind = bf_kind_of(params);
	uint64_t	size = bf_encoded_size(&filter);
	uint8_t    *bytes = room_for(size);

	memcpy(bf_encode_header(&filter, bytes), payload, size - BF_HEADER_SIZE);
	demand(bf_decode(bytes, size, kind, BF_VALUE, &again).error == BF_OK);
	demand(acceptable_as(bytes, size, kind, BF_VALUE));
	demand(same_params(params, &again.params) && !again.sparse && !again.sizing);
	free(bytes);
}

#endif							/* VALUE_H */
