/*
 * build.c
 *		Any elements into filters under construction, as the aggregates build
 *		them.
 *
 * An input is a byte of options, k, the number of 64-bit words or of blocks, the
 * seed of the set's salt, and elements. An element is a byte for the kind of
 * hash, and its bytes. Two sets, of the first and the second half of the
 * elements, grow until they are larger than the bits, and then become bits.
 * Finally they are united. The results are compared with sorted hashes and with
 * bits that are set one by one.
 */
#include <endian.h>

#include "acceptable.h"
#include "bulk.h"
#include "dense.h"
#include "format.h"
#include "fuzz.h"
#include "hash.h"
#include "hashset.h"
#include "probe.h"
#include "reference.h"
#include "sparse.h"
#include "stream.h"

#define MOST_ELEMENTS	512

/* A filter under construction. */
typedef struct builder
{
	bf_params	params;
	bf_shape	shape;
	bf_hashset	set;			/* until there are bits */
	uint8_t    *bits;
} builder;

static void
make_slots(bf_hashset *set, uint8_t log2_slots)
{
	set->log2_slots = log2_slots;
	set->count = 0;
	set->has_zero = false;
	set->slots = allocate(sizeof(uint64_t) << log2_slots);
}

/* Reads all hashes of a set, in pieces, and returns how many. */
static size_t
read_set(const bf_hashset *set, size_t piece, uint64_t *out)
{
	size_t		nslots = bf_hashset_slots(set);
	size_t		count = 0;

	for (size_t at = 0; at < nslots; at += piece)
	{
		size_t		to = nslots - at < piece ? nslots : at + piece;
		uint64_t   *part = room_for(sizeof(uint64_t) * (to - at + 1));
		size_t		got = bf_hashset_read(set, at, to, part, NULL);

		memcpy(out + count, part, sizeof(uint64_t) * got);
		count += got;
		free(part);
	}
	demand(count == set->count);
	return count;
}

static void
grow(bf_hashset *set, size_t piece)
{
	bf_hashset	old = *set;
	uint64_t   *hashes = room_for(sizeof(uint64_t) * (old.count + 1));
	size_t		count = read_set(&old, piece, hashes);

	make_slots(set, old.log2_slots + 1);
	for (size_t i = 0; i < count; i++)
	{
		bf_hashset_prefetch(set, hashes[i]);
		demand(bf_hashset_add(set, hashes[i]));
	}
	demand(set->count == old.count);
	free(hashes);
	free(old.slots);
}

static void
go_over_to_bits(builder *of, size_t piece)
{
	uint64_t   *hashes = room_for(sizeof(uint64_t) * (of->set.count + 1));
	size_t		count = read_set(&of->set, piece, hashes);

	of->bits = allocate(of->params.m / 8);
	for (size_t i = 0; i < count; i++)
		bf_bits_add(of->bits, &of->shape, hashes[i]);
	free(hashes);
	free(of->set.slots);
	of->set.slots = NULL;
}

static void
build(builder *of, const bf_params *params, uint64_t salt, size_t piece,
	  const uint64_t *hashes, size_t count)
{
	of->params = *params;
	of->shape = bf_shape_of(params);
	of->bits = NULL;
	of->set.salt = salt | 1;
	make_slots(&of->set, BF_HASHSET_MIN_LOG2);
	for (size_t i = 0; i < count; i++)
	{
		if (of->bits != NULL)
		{
			bf_bits_add(of->bits, &of->shape, hashes[i]);
			continue;
		}
		if (bf_hashset_full(&of->set))
			grow(&of->set, piece);
		bf_hashset_add(&of->set, hashes[i]);
		demand(!bf_hashset_add(&of->set, hashes[i]));
		if (of->set.count > bf_sparse_limit(params))
			go_over_to_bits(of, piece);
	}
}

/*
 * The finished value, in memory of its own. Compacting destroys the set, and
 * must leave the same hashes as reading.
 */
static uint8_t *
finish(builder *of, size_t piece, bf_filter *filter)
{
	uint8_t    *bytes;
	uint64_t   *hashes;
	size_t		nslots;
	size_t		count = 0;

	*filter = (bf_filter) {.params = of->params, .sparse = of->bits == NULL};
	if (of->bits != NULL)
	{
		bytes = room_for(bf_encoded_size(filter));
		memcpy(bf_encode_header(filter, bytes), of->bits, of->params.m / 8);
		free(of->bits);
		return bytes;
	}

	nslots = bf_hashset_slots(&of->set);
	filter->nhashes = of->set.count;
	hashes = room_for(sizeof(uint64_t) * (filter->nhashes + 1));
	read_set(&of->set, piece, hashes);
	for (size_t at = 0; at < nslots; at += piece)
		count += bf_hashset_compact(&of->set, at, nslots - at < piece ? nslots : at + piece, count);
	demand(count + of->set.has_zero == filter->nhashes);
	if (of->set.has_zero)
		of->set.slots[count++] = 0;
	demand(sort_hashes(hashes, count) == count && sort_hashes(of->set.slots, count) == count);
	demand(memcmp(hashes, of->set.slots, sizeof(uint64_t) * count) == 0);

	if (count == 0)
		filter->params.element_class = BF_CLASS_NONE;
	bytes = room_for(bf_encoded_size(filter));
	put_hashes(bf_encode_header(filter, bytes), hashes, count);
	free(hashes);
	free(of->set.slots);
	return bytes;
}

/*
 * The payload of the elements' filter, by the offsets and rules of
 * doc/format.md.
 */
static uint8_t *
expected_payload(const bf_params *params, const uint64_t *hashes, size_t count, uint64_t *size)
{
	uint64_t   *sorted = copy_of(hashes, sizeof(uint64_t) * count);
	size_t		distinct = sort_hashes(sorted, count);
	uint8_t    *payload;

	if (8 * distinct < params->m / 8)
	{
		*size = 8 * distinct;
		payload = room_for(*size);
		put_hashes(payload, sorted, distinct);
	}
	else
	{
		*size = params->m / 8;
		payload = allocate(*size);
		for (size_t i = 0; i < distinct; i++)
			ref_add(payload, params, sorted[i]);
	}
	free(sorted);
	return payload;
}

/*
 * Builds a filter, compares it byte for byte, reads it back and probes every
 * element.
 */
static uint8_t *
check_build(const bf_params *params, uint64_t salt, size_t piece,
			const uint64_t *hashes, size_t count, bf_filter *filter)
{
	builder		of;
	uint8_t    *bytes;
	uint8_t    *expected;
	uint64_t	size;
	uint64_t	total;

	build(&of, params, salt, piece, hashes, count);
	bytes = finish(&of, piece, filter);
	total = bf_encoded_size(filter);
	expected = expected_payload(params, hashes, count, &size);
	demand(total == BF_HEADER_SIZE + size);
	demand(memcmp(bytes + BF_HEADER_SIZE, expected, size) == 0);
	demand(acceptable(bytes, total, false));
	demand(bf_decode(bytes, total, BF_VALUE, filter).error == BF_OK);
	demand(bf_check_hashes(filter, 0, filter->nhashes).error == BF_OK);
	for (size_t i = 0; i < count; i++)
		demand(bf_contains(filter, hashes[i]));
	free(expected);
	return bytes;
}

/* The bits of a filter at its own size. */
static uint8_t *
bits_of(const bf_filter *filter)
{
	bf_update	update = bf_update_of(&filter->params, false);
	uint8_t    *bits;

	if (!filter->sparse)
		return copy_of(filter->payload, filter->params.m / 8);
	bits = allocate(filter->params.m / 8);
	bf_expand(filter, 0, filter->nhashes, &update, bits);
	return bits;
}

/* The union of two parts is the filter of the whole. */
static void
check_union(const bf_filter *left, const bf_filter *right, const bf_filter *whole)
{
	size_t		size = whole->params.m / 8;
	uint8_t    *united = bits_of(left);
	uint8_t    *other = bits_of(right);
	uint8_t    *all = bits_of(whole);

	bf_or(united, other, size);
	demand(memcmp(united, all, size) == 0);
	if (left->sparse && right->sparse && whole->sparse)
	{
		bf_merge	merge = {
			.a = left->payload, .acount = left->nhashes,
			.b = right->payload, .bcount = right->nhashes
		};
		uint8_t    *merged = room_for(8 * whole->nhashes);

		demand(bf_merge_union(&merge, merged, UINT64_MAX) == whole->nhashes);
		demand(bf_merge_done(&merge));
		demand(memcmp(merged, whole->payload, 8 * whole->nhashes) == 0);
		free(merged);
	}
	free(all);
	free(other);
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

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t	hashes[MOST_ELEMENTS];
	source		from = {data, size};
	unsigned	options = (unsigned) take(&from, 1);
	bf_params	params = {.layout = options & 1 ? BF_CLASSIC : BF_BLOCKED, .rate = 0.01f};
	size_t		piece = 1 + options / 2;
	size_t		count = 0;
	uint64_t	salt;
	bf_filter	filters[3];
	uint8_t    *bytes[3];

	params.k = 1 + (uint32_t) take(&from, 1) % BF_MAX_K;
	params.m = (1 + take(&from, 1) % 48) * (options & 1 ? BF_WORD_BITS : BF_BLOCK_BITS);
	params.element_class = classes[params.k % NCLASSES];
	salt = params.seed = take(&from, 4) * UINT64_C(0xD1342543DE82EF95);
	for (; from.left > 0 && count < MOST_ELEMENTS; count++)
		hashes[count] = take_hash(&from, params.seed, salt, count > 0 ? hashes[count - 1] : 1);

	bytes[0] = check_build(&params, salt, piece, hashes, count / 2, &filters[0]);
	bytes[1] = check_build(&params, ~salt, piece, hashes + count / 2, count - count / 2, &filters[1]);
	bytes[2] = check_build(&params, salt, piece, hashes, count, &filters[2]);
	check_union(&filters[0], &filters[1], &filters[2]);
	for (int i = 0; i < 3; i++)
		free(bytes[i]);
	return 0;
}
