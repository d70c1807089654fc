/*
 * decode.c
 *		Any bytes to the decoder, and all filters and counters that it accepts to
 *		every operation.
 *
 * An input is a frame of two filters or counters: a byte of options, a byte for
 * the size of the pieces of long loops, the length of the first one (2 bytes),
 * the first, the second. Each lies in memory of its exact size.
 */
#include "counters.h"
#include "frame.h"
#include "stream.h"
#include "value.h"

/* Filters that claim to be larger skip the operations on all bits. */
#define MOST_BITS		(1 << 14)

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
	bf_params	params = v->filter.params;
	bf_stream	stream;
	uint8_t    *image = room_for(m / 8);
	size_t		most = v->piece * BF_BLOCK_BYTES;
	bool		good = true;

	params.m = m;
	stream = bf_stream_start(&v->filter, &params);
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
	bf_update	update = bf_update_of(&filter->params, BF_SUM);
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
check_filter(const value *v)
{
	const bf_filter *filter = &v->filter;
	uint64_t	m = filter->params.m;

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

	if (!a->decoded || !b->decoded || is_counter(a) || is_counter(b))
		return;
	check_merging(a, b);
	/* unions do not apply to states that size themselves */
	if (a->filter.sizing || b->filter.sizing ||
		!check_params(&a->filter.params, &b->filter.params, &params))
		return;
	if (a->valid && b->valid && a->filter.params.m > 0 && b->filter.params.m > 0 &&
		params.m <= MOST_BITS)
		check_bits(a, b, &params);
}

static void
check_value(value *v)
{
	if (!v->decoded)
		return;
	check_encoding(v);
	choose_probes(v);
	check_membership(v);
	if (is_counter(v))
		check_counter(v);
	else
		check_filter(v);
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
		decode(&values[i], in.bytes[i], in.size[i], kind_of(&in, i), form_of(&in, i));
		check_value(&values[i]);
	}
	for (int i = 0; i < 2; i++)
	{
		check_filters(&values[0], &values[i]);
		check_counters(&values[0], &values[i]);
	}
	for (int i = 0; i < 2; i++)
		free((void *) values[i].bytes);
	return 0;
}
