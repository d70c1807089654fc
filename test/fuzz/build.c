/*
 * build.c
 *		Any elements into filters and counters under construction, as the
 *		aggregates build them.
 *
 * An input is a byte of options, k and the kind, the number of 64-bit words or of
 * blocks, the seed of the set's salt, and elements. An element is a byte for the
 * kind of hash, and its bytes. Two sets, of the first and the second half of the
 * elements, grow until they are larger than the bits or numbers, and then become
 * dense. Finally they are united, or their counts added. The results, and one of
 * all elements in another order, are compared with sorted hashes and with what
 * is set one by one.
 */
#include <endian.h>

#include "acceptable.h"
#include "bulk.h"
#include "dense.h"
#include "format.h"
#include "fuzz.h"
#include "hash.h"
#include "hashset.h"
#include "number_bulk.h"
#include "probe.h"
#include "reference.h"
#include "sparse.h"
#include "stream.h"

#define MOST_ELEMENTS	512

typedef struct element
{
	uint64_t	hash;
	uint32_t	number;			/* in a counter: times, or level */
} element;

/* What is built. */
typedef struct plan
{
	bf_params	params;
	bool		levels;			/* the greatest number of each hash, not the sum */
	uint64_t	salt;
	size_t		piece;			/* slots that are read at once */
} plan;

/* A filter or counter under construction. */
typedef struct builder
{
	bf_hashset	set;			/* until there is a payload */
	uint8_t    *payload;
} builder;

static bool
is_counter(const plan *of)
{
	return bf_kind_of(&of->params) == BF_COUNTER;
}

static size_t
dense_bytes(const plan *of)
{
	return of->params.m / 8 * of->params.cell_bits;
}

static uint32_t
limit_of(const plan *of)
{
	return (UINT32_C(1) << of->params.cell_bits) - 1;
}

static bf_combination
combination_of(const plan *of)
{
	return of->levels ? BF_GREATER : BF_SUM;
}

static int
compare_elements(const void *a, const void *b)
{
	return compare_hashes(&((const element *) a)->hash, &((const element *) b)->hash);
}

static void
make_slots(bf_hashset *set, const plan *of, uint8_t log2_slots)
{
	*set = (bf_hashset) {.salt = of->salt | 1, .log2_slots = log2_slots};
	set->slots = allocate(sizeof(uint64_t) << log2_slots);
	if (is_counter(of))
		set->extra = allocate(sizeof(uint16_t) * (bf_hashset_slots(set) + 1));
}

static void
free_slots(bf_hashset *set)
{
	free(set->slots);
	free(set->extra);
}

/*
 * Reads all elements of a set, in pieces, and returns how many. Each piece ends
 * where the memory ends, so that the sanitizer guards it.
 */
static size_t
read_set(const bf_hashset *set, size_t piece, element *out)
{
	size_t		nslots = bf_hashset_slots(set);
	size_t		most = piece < nslots ? piece : nslots;
	uint64_t   *hashes = room_for(sizeof(uint64_t) * (most + 1));
	uint16_t   *numbers = room_for(sizeof(uint16_t) * (most + 1));
	size_t		count = 0;

	for (size_t at = 0; at < nslots; at += most)
	{
		size_t		to = nslots - at < most ? nslots : at + most;
		uint64_t   *some = hashes + most - (to - at);
		uint16_t   *some_numbers = numbers + most - (to - at);
		size_t		got = bf_hashset_read(set, at, to, some, set->extra == NULL ? NULL : some_numbers);

		for (size_t i = 0; i < got; i++)
			out[count++] = (element) {some[i], set->extra == NULL ? 1 : some_numbers[i]};
	}
	demand(count == set->count);
	free(hashes);
	free(numbers);
	return count;
}

/* Adds an element to a set that is not full. True if it is new. */
static bool
place(bf_hashset *set, const plan *of, element added)
{
	bool		is_new;
	size_t		index = bf_hashset_place(set, added.hash, &is_new);

	demand(index == bf_hashset_find(set, added.hash));
	if (set->extra == NULL)
		return is_new;
	demand(!is_new || bf_hashset_number(set, index) == 1);
	bf_hashset_set_number(set, index, is_new ? added.number :
						  bf_combine_two(combination_of(of), bf_hashset_number(set, index), added.number,
										 limit_of(of)));
	return is_new;
}

static void
grow(bf_hashset *set, const plan *of)
{
	bf_hashset	old = *set;
	element    *elements = room_for(sizeof(element) * (old.count + 1));
	size_t		count = read_set(&old, of->piece, elements);

	make_slots(set, of, old.log2_slots + 1);
	for (size_t i = 0; i < count; i++)
	{
		bf_hashset_prefetch(set, elements[i].hash);
		demand(place(set, of, elements[i]));
	}
	demand(set->count == old.count);
	free(elements);
	free_slots(&old);
}

static void
go_over_to_dense(builder *to, const plan *of)
{
	element    *elements = room_for(sizeof(element) * (to->set.count + 1));
	size_t		count = read_set(&to->set, of->piece, elements);
	bf_update	update = bf_update_of(&of->params, of->levels ? BF_GREATER : BF_SUM);

	to->payload = allocate(dense_bytes(of));
	for (size_t i = 0; i < count; i++)
	{
		bf_dense_prefetch(to->payload, &update, elements[i].hash);
		bf_dense_add(to->payload, &update, elements[i].hash, elements[i].number);
	}
	free(elements);
	free_slots(&to->set);
}

static void
build(builder *to, const plan *of, const element *elements, size_t count)
{
	bf_update	update = bf_update_of(&of->params, of->levels ? BF_GREATER : BF_SUM);

	to->payload = NULL;
	make_slots(&to->set, of, BF_HASHSET_MIN_LOG2);
	for (size_t i = 0; i < count; i++)
	{
		bool		is_new;

		if (to->payload != NULL)
		{
			bf_dense_add(to->payload, &update, elements[i].hash, elements[i].number);
			continue;
		}
		if (bf_hashset_full(&to->set))
			grow(&to->set, of);
		place(&to->set, of, elements[i]);
		bf_hashset_place(&to->set, elements[i].hash, &is_new);
		demand(!is_new);
		if (to->set.count > bf_sparse_limit(&of->params))
			go_over_to_dense(to, of);
	}
}

/* Compacts a set in pieces, which destroys it, and returns how many elements it had. */
static size_t
compact(bf_hashset *set, size_t piece, element *out)
{
	size_t		nslots = bf_hashset_slots(set);
	size_t		count = 0;

	if (set->has_zero)
		out[0] = (element) {0, set->extra == NULL ? 1 : bf_hashset_number(set, nslots)};
	for (size_t at = 0; at < nslots; at += piece)
		count += bf_hashset_compact(set, at, nslots - at < piece ? nslots : at + piece, count);
	demand(count + set->has_zero == set->count);
	for (size_t i = 0; i < count; i++)
		out[set->has_zero + i] = (element) {set->slots[i], set->extra == NULL ? 1 : set->extra[i]};
	return count + set->has_zero;
}

/* Writes sorted elements as a sparse payload. */
static void
put_elements(uint8_t *payload, const plan *of, const element *elements, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		put_hashes(payload + 8 * i, &elements[i].hash, 1);
		if (is_counter(of))
			put_numbers(payload + 8 * count + 2 * i, &elements[i].number, 1);
	}
}

/*
 * The finished value, in memory of its own. Compacting must leave the same
 * elements as reading.
 */
static uint8_t *
finish(builder *from, const plan *of, bf_filter *filter)
{
	uint8_t    *bytes;
	element    *elements;
	element    *again;
	size_t		count;

	*filter = (bf_filter) {.params = of->params, .sparse = from->payload == NULL, .levels = of->levels};
	if (from->payload != NULL)
	{
		bytes = room_for(bf_encoded_size(filter));
		memcpy(bf_encode_header(filter, bytes), from->payload, dense_bytes(of));
		free(from->payload);
		return bytes;
	}

	count = filter->nhashes = from->set.count;
	elements = allocate(sizeof(element) * (count + 1));
	again = allocate(sizeof(element) * (count + 1));
	demand(read_set(&from->set, of->piece, elements) == count);
	demand(compact(&from->set, of->piece, again) == count);
	qsort(elements, count, sizeof(element), compare_elements);
	qsort(again, count, sizeof(element), compare_elements);
	for (size_t i = 0; i < count; i++)
		demand(elements[i].hash == again[i].hash && elements[i].number == again[i].number);

	if (count == 0)
		filter->params.element_class = BF_CLASS_NONE;
	bytes = room_for(bf_encoded_size(filter));
	put_elements(bf_encode_header(filter, bytes), of, elements, count);
	free(elements);
	free(again);
	free_slots(&from->set);
	return bytes;
}

/* Sorts elements, combines those of one hash, and returns how many remain. */
static size_t
expected_elements(const plan *of, element *elements, size_t count)
{
	size_t		kept = 0;

	qsort(elements, count, sizeof(element), compare_elements);
	for (size_t i = 0; i < count; i++)
	{
		if (kept == 0 || elements[i].hash != elements[kept - 1].hash)
			elements[kept++] = elements[i];
		else
			elements[kept - 1].number = (uint32_t) ref_combined(of->levels ? '>' : '+', elements[kept - 1].number,
																elements[i].number, limit_of(of));
	}
	return kept;
}

/* Writes a dense counter's numbers from one integer for each. */
static void
put_dense(uint8_t *payload, const plan *of, const element *elements, size_t count)
{
	uint32_t   *model = allocate(sizeof(*model) * of->params.m);

	for (size_t i = 0; i < count; i++)
	{
		uint64_t	positions[BF_MAX_K];
		uint32_t	distinct = ref_positions(&of->params, elements[i].hash, positions);

		for (uint32_t j = 0; j < distinct; j++)
		{
			uint32_t   *number = &model[positions[j]];

			*number = (uint32_t) ref_combined(of->levels ? '>' : '+', *number, elements[i].number, limit_of(of));
		}
	}
	for (uint64_t i = 0; i < of->params.m; i++)
	{
		if (of->params.cell_bits == 4)
			payload[i / 2] |= (uint8_t) (model[i] << (i % 2 ? 4 : 0));
		else
			put(payload + i * of->params.cell_bits / 8, 0, (int) of->params.cell_bits / 8, model[i]);
	}
	free(model);
}

/*
 * The payload of the elements, by the offsets and rules of the format. A dense
 * one is made of the elements one by one.
 */
static uint8_t *
expected_payload(const plan *of, const element *elements, size_t count, uint64_t *size)
{
	element    *sorted = copy_of(elements, sizeof(element) * count);
	size_t		distinct = expected_elements(of, sorted, count);
	uint8_t    *payload;

	*size = (is_counter(of) ? 10 : 8) * distinct;
	if (*size < dense_bytes(of))
	{
		payload = room_for(*size);
		put_elements(payload, of, sorted, distinct);
	}
	else
	{
		*size = dense_bytes(of);
		payload = allocate(*size);
		if (is_counter(of))
			put_dense(payload, of, elements, count);
		else
		{
			for (size_t i = 0; i < count; i++)
				ref_add(payload, &of->params, elements[i].hash);
		}
	}
	free(sorted);
	return payload;
}

/* Every element reads at least what was added of it. */
static void
check_reads(const plan *of, const bf_filter *filter, const element *elements, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		uint32_t	read = bf_read(filter, elements[i].hash);

		demand(bf_contains(filter, elements[i].hash));
		demand(read >= (is_counter(of) ? elements[i].number : 1));
	}
}

/*
 * Builds a filter or counter, compares it byte for byte, reads it back and
 * probes every element.
 */
static uint8_t *
check_build(const plan *of, const element *elements, size_t count, bf_filter *filter)
{
	builder		under_way;
	uint8_t    *bytes;
	uint8_t    *expected;
	uint64_t	size;
	uint64_t	total;
	bf_kind		kind = bf_kind_of(&of->params);

	build(&under_way, of, elements, count);
	bytes = finish(&under_way, of, filter);
	total = bf_encoded_size(filter);
	expected = expected_payload(of, elements, count, &size);
	demand(total == BF_HEADER_SIZE + size);
	demand(memcmp(bytes + BF_HEADER_SIZE, expected, size) == 0);
	demand(acceptable_as(bytes, total, is_counter(of), false));
	demand(bf_decode(bytes, total, kind, BF_VALUE, filter).error == BF_OK);
	demand(bf_check_hashes(filter, 0, filter->nhashes).error == BF_OK);
	demand(filter->levels == (of->levels && count > 0));
	check_reads(of, filter, elements, count);
	free(expected);
	return bytes;
}

/* The dense payload of a filter at its own size. */
static uint8_t *
dense_of(const plan *of, const bf_filter *filter)
{
	bf_update	update = bf_update_of(&of->params, of->levels ? BF_GREATER : BF_SUM);
	uint8_t    *payload;

	if (!filter->sparse)
		return copy_of(filter->payload, dense_bytes(of));
	payload = allocate(dense_bytes(of));
	bf_expand(filter, 0, filter->nhashes, &update, payload);
	return payload;
}

/* The merge of two sparse values in one step: its payload is that of the whole. */
static void
check_merge(const plan *of, const bf_filter *left, const bf_filter *right, const bf_filter *whole)
{
	bf_merge	merge = {.a = left, .b = right, .combination = combination_of(of)};
	uint64_t	size = (is_counter(of) ? 10 : 8) * whole->nhashes;
	uint8_t    *merged = room_for(size);
	uint64_t	count = bf_merge_entries(&merge, merged, is_counter(of) ? merged + 8 * whole->nhashes : NULL,
										 UINT64_MAX);

	demand(count == whole->nhashes && bf_merge_done(&merge) && !merge.misfit);
	demand(memcmp(merged, whole->payload, size) == 0);
	free(merged);
}

/*
 * The union of two parts, or their sum, is the whole: dense by all bits or
 * numbers, by the elements of a sparse one, and sparse.
 */
static void
check_union(const plan *of, const bf_filter *left, const bf_filter *right, const bf_filter *whole)
{
	size_t		size = dense_bytes(of);
	bf_update	update = bf_update_of(&of->params, of->levels ? BF_GREATER : BF_SUM);
	uint8_t    *united = dense_of(of, left);
	uint8_t    *onto = copy_of(united, size);
	uint8_t    *other = dense_of(of, right);
	uint8_t    *all = dense_of(of, whole);

	demand(bf_combine_cells(united, other, size, of->params.cell_bits, combination_of(of)));
	demand(memcmp(united, all, size) == 0);
	if (right->sparse)
	{
		bf_expand(right, 0, right->nhashes, &update, onto);
		demand(memcmp(onto, all, size) == 0);
	}
	if (left->sparse && right->sparse && whole->sparse)
		check_merge(of, left, right, whole);
	free(all);
	free(other);
	free(onto);
	free(united);
}

/*
 * A hash of the kind that the byte selects: of canonical bytes, near the last
 * one, for a chosen slot of the set, or the given number.
 */
static uint64_t
take_hash(source *from, uint64_t seed, uint64_t salt, uint64_t last)
{
	unsigned	kind = (unsigned) take(from, 1);
	uint64_t	value;
	uint64_t	inverse = salt | 1;

	switch (kind % 8)
	{
		case 0:
			return take(from, 8);
		case 1:
			value = take(from, 8);
			demand(bf_hash_word(value, seed) == XXH64(&(uint64_t) {htole64(value)}, 8, seed));
			return bf_hash_word(value, seed);
		case 2:
			return last + kind / 8;
		case 3:
			return last << 1;
		case 4:
			return last ^ take(from, 1) << 56;
		case 5:
			return kind / 8 * UINT64_C(0x0101010101010101);
		case 6:
			/* Newton's iteration for the salt's inverse modulo 2^64 */
			for (int i = 0; i < 6; i++)
				inverse *= 2 - (salt | 1) * inverse;
			return inverse * (UINT64_MAX - kind / 8);
		default:
			return bf_hash_bytes(from->at, from->left < kind / 8 ? from->left : kind / 8, seed);
	}
}

static plan
take_plan(source *from)
{
	/* filters, and counters of each width with counts and with levels */
	static const uint32_t widths[] = {1, 1, 4, 4, 8, 8, 16, 16};
	unsigned	options = (unsigned) take(from, 1);
	unsigned	kind = (unsigned) take(from, 1);
	plan		of = {.piece = 1 + options / 2};

	of.params.layout = options & 1 ? BF_CLASSIC : BF_BLOCKED;
	of.params.rate = 0.01f;
	of.params.k = 1 + kind % BF_MAX_K;
	of.params.cell_bits = widths[kind / BF_MAX_K];
	of.levels = is_counter(&of) && kind / BF_MAX_K % 2;
	of.params.m = (1 + take(from, 1) % 48) * (options & 1 ? BF_WORD_BITS : BF_BLOCK_BITS);
	if (is_counter(&of))
		of.params.m = of.params.m / 8 / bf_size_unit(of.params.layout) * bf_size_unit(of.params.layout) +
			bf_size_unit(of.params.layout);
	of.params.element_class = classes[of.params.k % NCLASSES];
	of.salt = of.params.seed = take(from, 4) * UINT64_C(0xD1342543DE82EF95);
	return of;
}

/* Small numbers, and some up to the limit. */
static uint32_t
number_for(const plan *of, uint64_t hash, size_t i)
{
	uint64_t	random = hash + i;
	uint64_t	number = next_random(&random) % 16;

	if (!is_counter(of) || number >= 4)
		return 1;
	return number < 3 ? 2 + (uint32_t) number : 1 + (uint32_t) (next_random(&random) % limit_of(of));
}

static void
shuffle(element *elements, size_t count, uint64_t state)
{
	for (size_t i = count; i > 1; i--)
	{
		size_t		j = random_below(&state, i);
		element		moved = elements[i - 1];

		elements[i - 1] = elements[j];
		elements[j] = moved;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	element		elements[MOST_ELEMENTS];
	source		from = {data, size};
	plan		of = take_plan(&from);
	size_t		count = 0;
	bf_filter	filters[3];
	uint8_t    *bytes[3];

	for (; from.left > 0 && count < MOST_ELEMENTS; count++)
	{
		uint64_t	last = count > 0 ? elements[count - 1].hash : 1;

		elements[count].hash = take_hash(&from, of.params.seed, of.salt, last);
		elements[count].number = number_for(&of, elements[count].hash, count);
	}

	bytes[0] = check_build(&of, elements, count / 2, &filters[0]);
	of.salt = ~of.salt;
	bytes[1] = check_build(&of, elements + count / 2, count - count / 2, &filters[1]);
	shuffle(elements, count, of.salt);
	bytes[2] = check_build(&of, elements, count, &filters[2]);
	check_union(&of, &filters[0], &filters[1], &filters[2]);
	for (int i = 0; i < 3; i++)
		free(bytes[i]);
	return 0;
}
