/*
 * server_fuzzer_inputs.c
 *		What server_fuzzer sends: mutated filters, and arguments for the calls.
 */
#include <stdlib.h>
#include <string.h>

#include "server_fuzzer.h"

#define POOL_VALUE_MAX	8192	/* bytes of the filters in the pool */
#define MEDIUM_MAX		40000	/* bytes that the server soon stops reading by slices */

void
load_types(Fuzzer *fuzzer)
{
	PGresult   *result = ask(fuzzer, "SELECT type::oid, type, class, x FROM fuzz.element_type, "
							 "unnest(literals) WITH ORDINALITY AS u (x, n) "
							 "ORDER BY type::text COLLATE \"C\", n", 0);

	for (int i = 0; i < PQntuples(result); i++)
	{
		Oid			oid = (Oid) strtoul(PQgetvalue(result, i, 0), NULL, 10);
		ElementType *type;

		if (fuzzer->ntypes == 0 || fuzzer->types[fuzzer->ntypes - 1].oid != oid)
		{
			if (fuzzer->ntypes == MAX_TYPES)
				fatal(fuzzer, "too many types");
			type = &fuzzer->types[fuzzer->ntypes++];
			type->oid = oid;
			type->name = strdup(PQgetvalue(result, i, 1));
			type->class = atoi(PQgetvalue(result, i, 2));
		}
		type = &fuzzer->types[fuzzer->ntypes - 1];
		type->literals = realloc(type->literals, (size_t) (type->nliterals + 1) * sizeof(char *));
		type->literals[type->nliterals++] = strdup(PQgetvalue(result, i, 3));
	}
	PQclear(result);
}

void
load_seeds(Fuzzer *fuzzer)
{
	PGresult   *result = ask(fuzzer, "SELECT DISTINCT length(bytes), bytes FROM fuzz.seed ORDER BY 1, 2", 1);

	for (int i = 0; i < PQntuples(result); i++)
	{
		bool		small = PQgetlength(result, i, 1) <= POOL_VALUE_MAX;
		Bytes	   *to = small ? &fuzzer->pool[fuzzer->npool++] : &fuzzer->big[fuzzer->nbig++];

		if (fuzzer->npool > MAX_SEEDS || fuzzer->nbig > MAX_SEEDS)
			fatal(fuzzer, "too many seeds");
		set_bytes(to, PQgetvalue(result, i, 1), (size_t) PQgetlength(result, i, 1));
	}
	while (fuzzer->nmedium < fuzzer->nbig && fuzzer->big[fuzzer->nmedium].size <= MEDIUM_MAX)
		fuzzer->nmedium++;
	if (fuzzer->npool == 0 || fuzzer->nmedium == 0)
		fatal(fuzzer, "no seeds");
	PQclear(result);
}

static const char *
draw_text(Random *random, const char *const *usual, const char *const *odd)
{
	const char *const *from = one_in(random, 12) ? odd : usual;
	int			n = 0;

	while (from[n])
		n++;
	return from[below(random, (uint64_t) n)];
}

/* Mostly an element that the filter takes. */
static void
draw_element(const Fuzzer *fuzzer, Input *input, Random *random)
{
	int			class = (int) filter_class(&input->value);
	const ElementType *type = &fuzzer->types[below(random, (uint64_t) fuzzer->ntypes)];

	if (!one_in(random, 30))
	{
		while (type->class < 0 || (class != 0 && type->class != class))
			type = &fuzzer->types[(type - fuzzer->types + 1) % fuzzer->ntypes];
	}
	input->type = (int) (type - fuzzer->types);
	input->element = one_in(random, 40) ? NULL : type->literals[below(random, (uint64_t) type->nliterals)];
}

/* Mostly a filter that combines with the value. */
static void
draw_sibling(const Fuzzer *fuzzer, Input *input, Random *random)
{
	if (one_in(random, 12))
		set_bytes(&input->sibling, input->value.data, input->value.size);
	else
		make_sibling(&input->value, &input->sibling, random);
	for (int tries = 0; tries < 20 && one_in(random, 30); tries++)
	{
		const Bytes *other = &fuzzer->pool[below(random, (uint64_t) fuzzer->npool)];

		if (is_filter(other->data, other->size))
			set_bytes(&input->sibling, other->data, other->size);
	}
}

static void
draw_arguments(const Fuzzer *fuzzer, Input *input, Random *random)
{
	static const char *const integers[] = {"1", "2", "10", "1000", "100000", NULL};
	static const char *const odd_integers[] = {
		"0", "-1", "2147483647", "2147483648", "-2147483648", "9223372036854775807",
		"-9223372036854775808", "9007199254740993", "1000000000", NULL
	};
	static const char *const rates[] = {"0.5", "0.1", "0.01", "0.001", "1e-6", "1e-9", NULL};
	static const char *const odd_rates[] = {
		"0", "-0", "1", "-1", "NaN", "Infinity", "-Infinity", "5e-324", "0.50000001", "0.9999999999999999",
		"9.9999e-10", "1e308", NULL
	};
	static const char *const layouts[] = {"blocked", "classic", NULL};
	static const char *const odd_layouts[] = {"", "BLOCKED", "blocked ", "clas", "東京", "%s%n", NULL};

	draw_element(fuzzer, input, random);
	input->integer = draw_text(random, integers, odd_integers);
	input->rate = draw_text(random, rates, odd_rates);
	input->text = draw_text(random, layouts, odd_layouts);
	input->repeat = one_in(random, 8) ? 3 : (int) below(random, 2);
	input->planned = one_in(random, 64);
	input->sized = one_in(random, 64);
	draw_sibling(fuzzer, input, random);
}

/* COPY leaves the pipeline, so only the first input of a window may use it. */
static Way
draw_way(const Fuzzer *fuzzer, Random *random, bool first)
{
	static const Way ways[] = {
		BINARY, BINARY, BINARY, BINARY, BINARY, BINARY, BINARY, BINARY, BINARY, BINARY, BINARY,
		TEXT, TEXT, TEXT, TEXT, TEXT, BYTEA_CAST, BYTEA_CAST, TEXT_CAST, ARRAY
	};
	Way			way = ways[below(random, sizeof(ways) / sizeof(ways[0]))];
	bool		soft = PQserverVersion(fuzzer->client.conn) >= 160000;

	if (first)
		return one_in(random, 2) ? COPY_BINARY : COPY_TEXT;
	return way == TEXT_CAST && soft && one_in(random, 2) ? SOFT : way;
}

/* The binary form of an array of one filter. */
static void
make_array(Bytes *array, const Bytes *value, Oid filter_oid)
{
	array->size = 0;
	append_network32(array, 1);
	append_network32(array, 0);
	append_network32(array, filter_oid);
	append_network32(array, 1);
	append_network32(array, 1);
	append_network32(array, (uint32_t) value->size);
	append_bytes(array, value->data, value->size);
}

/* Makes the bytes to send, and decides whether the server should accept them. */
static void
encode_input(const Fuzzer *fuzzer, Input *input, Random *random)
{
	switch (input->way)
	{
		case BINARY:
		case BYTEA_CAST:
		case COPY_BINARY:
			set_bytes(&input->sent, input->value.data, input->value.size);
			input->valid = is_filter(input->value.data, input->value.size);
			break;
		case ARRAY:
			make_array(&input->sent, &input->value, fuzzer->client.filter_oid);
			input->valid = is_filter(input->value.data, input->value.size);
			break;
		case COPY_TEXT:
		case TEXT:
		case TEXT_CAST:
		case SOFT:
			make_text(&input->value, &input->sent, random);
			input->valid = is_filter_text(&input->sent, &input->value);
			break;
	}
}

/* FNV-1a. An array contains an OID, so the filter in it counts instead. */
static void
add_to_digest(uint64_t *digest, const Input *input)
{
	const Bytes *bytes = input->way == ARRAY ? &input->value : &input->sent;

	for (size_t i = 0; i < bytes->size; i++)
		*digest = (*digest ^ bytes->data[i]) * UINT64_C(0x100000001b3);
}

static const Bytes *
draw_base(const Fuzzer *fuzzer, const Bytes *base, Random *random)
{
	if (one_in(random, 4000))
		return &fuzzer->big[below(random, (uint64_t) fuzzer->nbig)];
	if (one_in(random, 200))
		return &fuzzer->big[below(random, (uint64_t) fuzzer->nmedium)];
	return base;
}

/* Lets some valid filters join the pool, where they replace others once it is full. */
static void
add_to_pool(Fuzzer *fuzzer, const Input *input, Random *random)
{
	Bytes	   *to;

	if (input->value.size > POOL_VALUE_MAX || !one_in(random, 8))
		return;
	to = fuzzer->npool < 2 * MAX_SEEDS ? &fuzzer->pool[fuzzer->npool++]
		: &fuzzer->pool[below(random, 2 * MAX_SEEDS)];
	set_bytes(to, input->value.data, input->value.size);
}

void
make_input(Fuzzer *fuzzer, Input *input, uint64_t number, bool first)
{
	Random		random = {fuzzer->seed * UINT64_C(0xD1342543DE82EF95) + number};
	const Bytes *base = &fuzzer->pool[below(&random, (uint64_t) fuzzer->npool)];
	const Bytes *other = &fuzzer->pool[below(&random, (uint64_t) fuzzer->npool)];

	base = draw_base(fuzzer, base, &random);
	input->number = number;
	input->way = draw_way(fuzzer, &random, first);
	input->accepted = false;
	set_bytes(&input->value, base->data, base->size);
	mutate(&input->value, other, &random);
	encode_input(fuzzer, input, &random);
	fuzzer->counts.per_way[input->way]++;
	add_to_digest(&fuzzer->counts.digest, input);

	memset(input->results, 0, sizeof(input->results));
	if (input->valid)
	{
		draw_arguments(fuzzer, input, &random);
		add_to_pool(fuzzer, input, &random);
	}
}
