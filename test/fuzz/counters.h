/*
 * counters.h
 *		The operations of the target decode on counters.
 *
 * The expected results come from an array with one integer for each number.
 */
#ifndef COUNTERS_H
#define COUNTERS_H

#include "dense.h"
#include "number_bulk.h"
#include "stream.h"
#include "value.h"

/* Counters with more bytes of numbers skip the operations on all of them. */
#define MOST_NUMBER_BYTES 2048

static size_t
number_bytes(const bf_params *params)
{
	return params->m / 8 * params->cell_bits;
}

/* Sizes of pieces that the loops over numbers accept. */
static size_t
piece_bytes(const value *v)
{
	return 32 * v->piece;
}

static uint32_t *
unpack(const uint8_t *numbers, const bf_params *params)
{
	uint32_t   *model = room_for(sizeof(*model) * params->m);

	for (uint64_t i = 0; i < params->m; i++)
	{
		if (params->cell_bits == 4)
			model[i] = i % 2 ? numbers[i / 2] / 16 : numbers[i / 2] % 16;
		else if (params->cell_bits == 8)
			model[i] = numbers[i];
		else
			model[i] = numbers[2 * i] + numbers[2 * i + 1] * UINT32_C(256);
	}
	return model;
}

static void
demand_equal(const uint8_t *numbers, const bf_params *params, const uint32_t *model)
{
	uint32_t   *got = unpack(numbers, params);

	demand(memcmp(got, model, sizeof(*got) * params->m) == 0);
	free(got);
}

static uint32_t
model_read(const uint32_t *model, const bf_params *params, uint64_t hash)
{
	uint32_t	least = limit_of(params);

	for (uint32_t i = 0; i < params->k; i++)
	{
		uint32_t	number = model[ref_bit(params, hash, i)];

		least = number < least ? number : least;
	}
	return least;
}

static void
model_change(uint32_t *model, const bf_params *params, uint64_t hash, char operation, uint32_t number)
{
	uint64_t	positions[BF_MAX_K];
	uint32_t	count = ref_positions(params, hash, positions);

	for (uint32_t i = 0; i < count; i++)
		model[positions[i]] = (uint32_t) ref_combined(operation, model[positions[i]], number, limit_of(params));
}


/* Adds to, raises and removes from a copy of the numbers. */
static void
check_changing(const value *v)
{
	const bf_params *params = &v->filter.params;
	bf_update	adding = bf_update_of(params, BF_SUM);
	bf_update	raising = bf_update_of(params, BF_GREATER);
	uint8_t    *numbers = copy_of(v->filter.payload, number_bytes(params));
	uint32_t   *model = unpack(numbers, params);

	for (size_t i = 0; i < 8; i++)
	{
		uint64_t	hash = v->probes[(i * 3 + v->piece) % v->nprobes];
		uint32_t	number = i % 2 ? 1 + (uint32_t) (hash % limit_of(params)) : 1;
		uint32_t	read = model_read(model, params, hash);
		char		operation = "+>-"[(i + v->piece) % 3];

		bf_dense_prefetch(numbers, &adding, hash);
		if (operation == '-' && read < number)
			number = read;
		if (operation == '-')
			bf_numbers_change(numbers, &adding.shape, params->cell_bits, hash, BF_DIFFERENCE, number);
		else
			bf_dense_add(numbers, operation == '+' ? &adding : &raising, hash, number);
		model_change(model, params, hash, operation, number);
		demand(bf_cells_read(numbers, &adding.shape, params->cell_bits, hash) == model_read(model, params, hash));
	}
	demand_equal(numbers, params, model);
	free(model);
	free(numbers);
}

static void
check_decay(const value *v, const uint32_t *model, uint32_t by)
{
	const bf_params *params = &v->filter.params;
	size_t		size = number_bytes(params);
	uint8_t    *numbers = copy_of(v->filter.payload, size);
	uint32_t   *expected = copy_of(model, sizeof(*model) * params->m);

	for (uint64_t i = 0; i < params->m; i++)
		expected[i] = expected[i] > by ? expected[i] - by : 0;
	for (size_t at = 0; at < size; at += piece_bytes(v))
		bf_decay_numbers(numbers + at, size - at < piece_bytes(v) ? size - at : piece_bytes(v),
						 params->cell_bits, by);
	demand_equal(numbers, params, expected);
	free(expected);
	free(numbers);
}

/* The filter of what is at a level, in memory of its own. */
static void
check_level(const value *v, const uint32_t *model, uint32_t level)
{
	const bf_params *params = &v->filter.params;
	size_t		most = 64 * v->piece;
	uint8_t    *bits = room_for(params->m / 8);

	for (size_t at = 0; at < params->m; at += most)
		bf_threshold(bits + at / 8, v->filter.payload + at / 8 * params->cell_bits,
					 params->m - at < most ? params->m - at : most, params->cell_bits, level);
	for (uint64_t i = 0; i < params->m; i++)
		demand(ref_is_set(bits, i) == (model[i] >= level));
	check_measures(params, bits);
	check_rate(params, bits);
	for (size_t i = 0; i < v->nprobes; i++)
		demand(ref_contains(bits, params, v->probes[i]) == (bf_read(&v->filter, v->probes[i]) >= level));
	free(bits);
}

static void
check_sum(const value *v, const uint32_t *model)
{
	const bf_params *params = &v->filter.params;
	bf_shape	shape = bf_shape_of(params);
	size_t		size = number_bytes(params);
	uint64_t	expected = 0;
	uint64_t	sum = 0;
	double		total;

	for (uint64_t i = 0; i < params->m; i++)
		expected += model[i];
	for (size_t at = 0; at < size; at += piece_bytes(v))
		sum += bf_sum_of_numbers(v->filter.payload + at, size - at < piece_bytes(v) ? size - at : piece_bytes(v),
								 params->cell_bits);
	demand(sum == expected);
	demand(bf_sum_of_numbers(v->filter.payload, size, params->cell_bits) == sum);
	total = bf_total(&shape, sum);
	demand(total <= 1.001 * (double) sum && total * params->k >= 0.999 * (double) sum);
}

static void
check_dense(const value *v)
{
	const bf_params *params = &v->filter.params;
	uint32_t	limit = limit_of(params);
	uint32_t	some = 1 + (uint32_t) (v->probes[v->nprobes - 1] % limit);
	uint32_t   *model = unpack(v->filter.payload, params);

	check_changing(v);
	check_decay(v, model, 0);
	check_decay(v, model, some);
	check_decay(v, model, limit);
	check_level(v, model, 1);
	check_level(v, model, some);
	check_level(v, model, limit);
	check_sum(v, model);
	free(model);
}

/* A sparse counter as a dense one, by adding its numbers or by raising to them. */
static uint8_t *
expanded(const value *v, bool raises)
{
	const bf_filter *filter = &v->filter;
	bf_update	update = bf_update_of(&filter->params, raises ? BF_GREATER : BF_SUM);
	uint8_t    *numbers = allocate(number_bytes(&filter->params));

	for (uint64_t at = 0; at < filter->nhashes; at += v->piece)
		bf_expand(filter, at, at + v->piece < filter->nhashes ? at + v->piece : filter->nhashes,
				  &update, numbers);
	return numbers;
}

static void
check_expansion(const value *v, bool raises)
{
	const bf_filter *filter = &v->filter;
	const bf_params *params = &filter->params;
	uint8_t    *numbers = expanded(v, raises);
	uint32_t   *model;

	if (v->valid)
	{
		model = allocate(sizeof(*model) * params->m);
		for (uint64_t i = 0; i < filter->nhashes; i++)
			model_change(model, params, word_at(filter, i), raises ? '>' : '+', listed(filter, word_at(filter, i)));
		demand_equal(numbers, params, model);
		for (uint64_t i = 0; i < filter->nhashes; i++)
			demand(model_read(model, params, word_at(filter, i)) >= listed(filter, word_at(filter, i)));
		free(model);
		if (filter->nhashes > 0)
			check_result(params, numbers);
	}
	free(numbers);
}

/* All operations on one counter. */
static void
check_counter(const value *v)
{
	const bf_params *params = &v->filter.params;

	if (v->filter.sparse)
		demand(bf_current_rate_sparse(v->filter.nhashes) < 1);
	if (params->m == 0 || number_bytes(params) > MOST_NUMBER_BYTES)
		return;
	if (!v->filter.sparse)
	{
		check_dense(v);
		return;
	}
	check_expansion(v, false);
	check_expansion(v, true);
}


/* The numbers of a counter, or those that a sparse one has when it becomes dense. */
static uint8_t *
numbers_of(const value *v, bool raises)
{
	if (v->filter.sparse)
		return expanded(v, raises);
	return copy_of(v->filter.payload, number_bytes(&v->filter.params));
}

/* Combines numbers in pieces; false if a difference does not exist. */
static bool
combine_pieces(uint8_t *into, const uint8_t *from, const bf_params *params, size_t piece, bf_combination combination)
{
	size_t		size = number_bytes(params);
	bool		exists = true;

	for (size_t at = 0; at < size; at += piece)
		exists &= bf_combine_numbers(into + at, from + at, size - at < piece ? size - at : piece,
									 params->cell_bits, combination);
	return exists;
}

/* The same in the model. */
static bool
combine_models(uint32_t *into, const uint32_t *from, const bf_params *params, char operation)
{
	bool		exists = true;

	for (uint64_t i = 0; i < params->m; i++)
	{
		int64_t		number = ref_combined(operation, into[i], from[i], limit_of(params));

		exists = exists && number >= 0;
		into[i] = (uint32_t) number;
	}
	return exists;
}

/* One combination of all numbers of two counters. */
static void
check_combination(const value *a, const bf_params *params, const uint8_t *left, const uint8_t *right,
				  bf_combination combination)
{
	uint8_t    *numbers = copy_of(left, number_bytes(params));
	uint32_t   *model = unpack(left, params);
	uint32_t   *other = unpack(right, params);
	bool		exists = combine_models(model, other, params, operations[combination]);
	bool		saturated = false;

	demand(combine_pieces(numbers, right, params, piece_bytes(a), combination) == exists);
	if (exists)
		demand_equal(numbers, params, model);
	if (exists && params->element_class != BF_CLASS_NONE)
		check_result(params, numbers);
	for (uint64_t i = 0; i < params->m; i++)
		saturated |= model[i] == limit_of(params);
	if (combination == BF_SUM && !saturated)
	{
		demand(combine_pieces(numbers, right, params, piece_bytes(a), BF_DIFFERENCE));
		demand(memcmp(numbers, left, number_bytes(params)) == 0);
	}
	free(other);
	free(model);
	free(numbers);
}

/* The elements of a sparse counter onto the numbers of another one. */
static void
check_elements(const value *sparse, const bf_params *params, const uint8_t *numbers, char operation)
{
	const bf_filter *filter = &sparse->filter;
	bf_update	update = bf_update_of(params, operation == '>' ? BF_GREATER : BF_SUM);
	uint8_t    *changed = copy_of(numbers, number_bytes(params));
	uint32_t   *model = unpack(numbers, params);

	if (operation != '-')
		bf_expand(filter, 0, filter->nhashes, &update, changed);
	for (uint64_t i = 0; i < filter->nhashes; i++)
	{
		uint64_t	hash = word_at(filter, i);
		uint32_t	number = listed(filter, hash);
		uint32_t	read = model_read(model, params, hash);

		if (operation == '-')
		{
			demand(bf_cells_read(changed, &update.shape, params->cell_bits, hash) == read);
			if (read < number && read < limit_of(params))
				break;
			bf_numbers_change(changed, &update.shape, params->cell_bits, hash, BF_DIFFERENCE, number);
		}
		model_change(model, params, hash, operation, number);
	}
	demand_equal(changed, params, model);
	free(model);
	free(changed);
}

/*
 * Sums and differences add the numbers of a sparse counter, greater and lesser
 * ones raise to them.
 */
static void
check_numbers(const value *a, const value *b, const bf_params *params)
{
	for (int raises = 0; raises <= 1; raises++)
	{
		uint8_t    *left = numbers_of(a, raises);
		uint8_t    *right = numbers_of(b, raises);

		check_combination(a, params, left, right, raises ? BF_GREATER : BF_SUM);
		check_combination(a, params, left, right, raises ? BF_LESSER : BF_DIFFERENCE);
		if (b->filter.sparse)
			check_elements(b, params, left, raises ? '>' : '+');
		if (b->filter.sparse && !raises)
			check_elements(b, params, left, '-');
		free(left);
		free(right);
	}
}

/* All operations on two counters. */
static void
check_counters(const value *a, const value *b)
{
	bf_params	params;

	if (!a->decoded || !b->decoded || !is_counter(a) || !is_counter(b))
		return;
	check_merging(a, b);
	if (a->filter.sizing || b->filter.sizing || !check_params(&a->filter.params, &b->filter.params, &params))
		return;
	if (a->valid && b->valid && a->filter.params.m == b->filter.params.m && params.m > 0 &&
		number_bytes(&params) <= MOST_NUMBER_BYTES)
		check_numbers(a, b, &params);
}

#endif							/* COUNTERS_H */
