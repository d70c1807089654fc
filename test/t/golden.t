#!/usr/bin/python3 -B
"""The extension against doc/format.md: its bytes, refusals and estimates must be those of test/golden/reference.py,
which was written from that page alone, and of the golden vectors, which reference.py computed.

Everything that it creates is temporary.
"""

import datetime
import decimal
import functools
import hashlib
import ipaddress
import math
import os
import random
import re
import struct
import uuid
from dataclasses import replace

import session
from session import Session, extension_schema, hex_of, psycopg, quote, value
from tap import done, ok, same
import reference as ref
import vectors as golden
from vectors import filter_of, result_of, series

SETUP = f"""
SET search_path = {extension_schema()}, pg_catalog;
SET intervalstyle = postgres;
SET datestyle = iso;
SET extra_float_digits = 3;
SET client_min_messages = warning;
CREATE TYPE pg_temp.mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN pg_temp.positive AS integer CHECK (VALUE > 0);
CREATE FUNCTION pg_temp.refusal(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN EXECUTE statement; RETURN 'accepted'; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $$;
CREATE FUNCTION pg_temp.add_all(f bloomfilter, numbers bigint[]) RETURNS bloomfilter LANGUAGE plpgsql AS $$
DECLARE number bigint;
BEGIN FOREACH number IN ARRAY numbers LOOP f := bloom_add(f, number); END LOOP; RETURN f; END $$;
"""
Session.settings = SETUP


def ask(expressions):
    """The values of these SQL expressions, all in one session."""
    return session.ask("".join(f"SELECT {expression};\n" for expression in expressions))


def sql_values(literals):
    return "(VALUES " + ", ".join(f"({i}, {e})" for i, e in enumerate(literals)) + ") AS v(i, x)"


def sql_source(vector):
    if "series" in vector:
        first, last = vector["series"]
        return f"(SELECT i AS i, i::bigint AS x FROM generate_series({first}, {last}) AS i) AS v"
    if not vector["elements"]:
        return "(VALUES (1, NULL::integer)) AS v(i, x)"
    return sql_values(vector["elements"])


def sql_create(layout, rate, items, seed=0):
    return f"bloom_create({items}, {rate!r}, '{layout}', {quote(str(seed))}::bigint)"


def close(got, expected, name):
    got, expected = float(got), float(expected)
    near = got == expected or math.isclose(got, expected, rel_tol=1e-9)
    ok(near, name, f"got      {got!r}", f"expected {expected!r}")


def kind(f):
    return "sparse" if f.sparse else "dense"


def test_vectors_are_the_references(document, filters):
    again = golden.complete(document, filters)
    for part in ("hashes", "sizes", "filters", "operations"):
        differing = [a for a, b in zip(document[part], again[part]) if a != b]
        ok(not differing, f"reference.py computes the {part} of vectors.json", *differing[:5])
    accepted = [bytes.fromhex(vector["bytes"]) for vector in document["accepted"]]
    changed = [data.hex() for data in accepted if ref.decode(data).encode() != data]
    ok(not changed, "reference.py takes and gives what a reader must accept", *changed)
    known = {vector["element"] for vector in document["hashes"]}
    unknown = {e for vector in document["filters"] for e in vector.get("elements", ())} - known
    ok(not unknown, "the canonical bytes of every element of a filter are listed", unknown)
    ok(os.path.getsize(golden.PATH) < 200_000, "vectors.json is below 200 kB")


def test_hashes(document):
    """A sparse filter shows the hash of its only element."""
    vectors = document["hashes"]
    answers = ask(
        f"bloom_add({sql_create('blocked', 0.01, 100, vector['seed'])}, {vector['element']})"
        for vector in vectors
    )
    for vector, answer in zip(vectors, answers):
        data = bytes.fromhex(answer[2:])
        same(
            (struct.unpack_from("<I", data, 4)[0], f"{struct.unpack_from('<Q', data, 28)[0]:016x}"),
            (vector["class"], vector["xxh64"]),
            f"hash of {vector['element']}, seed {vector['seed']}",
        )


def test_equality(document):
    """Two elements of a class are equal in SQL exactly if their canonical bytes are; strings of
    class 25 compared as text, since there are no operators between enums and strings."""
    classes = {}
    for vector in document["hashes"]:
        classes.setdefault(vector["class"], {})[vector["element"]] = vector["canonical"]
    for element_class, elements in classes.items():
        cast = "::text" if element_class == ref.CLASSES["text"] else ""
        pairs = [(f"{a}{cast}", f"{b}{cast}") for a in elements for b in elements]
        answers = ask(
            "concat(" + ", ".join(f"({a} = {b})::int" for a, b in pairs[i : i + 90]) + ")"
            for i in range(0, len(pairs), 90)  # a function takes at most 100 arguments
        )
        expected = "".join(str(int(a == b)) for a in elements.values() for b in elements.values())
        same("".join(answers), expected, f"equality of {len(elements)} elements of class {element_class}")


def test_sizes(document):
    answers = ask(sql_create(*vector[:3]) for vector in document["sizes"])
    for (layout, rate, items, k, m), answer in zip(document["sizes"], answers):
        expected = ref.Filter(layout, k, ref.single(rate), 0, m)
        same(answer, hex_of(expected), f"size: {layout}, {items} elements at {rate}")


def ways_to_build(vector):
    """SQL expressions that must all give the bytes of that vector."""
    rate, items, seed = vector["rate"], vector["items"], int(vector["seed"])
    source = sql_source(vector)
    templates = []
    if items is None and seed == 0:
        templates += [f"x, NULL, {rate!r}"] + ["x"] * (rate == 0.01)
    if items is None:
        templates.append(f"x, {value(ref.empty(rate, seed=seed))}")
    else:
        create = sql_create(vector["layout"], rate, items, seed)
        templates.append(f"x, {create}")
        if vector["layout"] == "blocked" and seed == 0:
            templates += [f"x, {items}, {rate!r}"] + [f"x, {items}"] * (rate == 0.01)
        if vector.get("elements"):
            forwards = vector["elements"]
            for literals in (forwards, forwards[::-1], forwards + forwards):
                expression = functools.reduce(lambda f, e: f"bloom_add({f}, {e})", literals, create)
                yield f"bloom_add x {len(literals)}", expression
        elif "series" in vector:
            first, last = vector["series"]
            for order in (f"{first}, {last}", f"{last}, {first}, -1"):
                yield "bloom_add", f"pg_temp.add_all({create}, ARRAY(SELECT generate_series({order})))"
        else:
            yield "bloom_create", create
    for template in templates:
        for order in ("i", "i DESC", "md5(i::text)"):
            aggregate = f"(SELECT bloom_agg({template} ORDER BY {order}) FROM {source})"
            yield f"bloom_agg({template[:40]}), by {order}", aggregate


def digest(expression):
    return f"length(f) || ' ' || encode(sha256(f), 'hex') FROM (SELECT ({expression})::bytea AS f) AS s"


def digest_of(f):
    data = f.encode()
    return f"{len(data)} {hashlib.sha256(data).hexdigest()}"


def test_built_filters(document, filters):
    cases = [
        (vector["name"], how, expression)
        for vector in document["filters"]
        for how, expression in ways_to_build(vector)
    ]
    same(ask(["bloom_agg(1) WHERE false"])[0], hex_of(ref.empty()), "bloom_agg over no rows")
    for (name, how, _), answer in zip(cases, ask(digest(expression) for _, _, expression in cases)):
        same(answer, digest_of(filters[name]), f"{name}: {how}")


def test_round_trips(filters):
    for casts in (
        "::bloomfilter::text::bloomfilter::text",
        "::bloomfilter::bytea::bloomfilter::bytea",
        "::bytea::bloomfilter::text",
    ):
        answers = ask(quote(hex_of(f)) + casts for f in filters.values())
        for (vector, f), answer in zip(filters.items(), answers):
            same(answer, hex_of(f), f"{vector}: {casts}")
    capitals = ask(quote("\\x" + f.encode().hex().upper()) + "::bloomfilter" for f in filters.values())
    expected = [hex_of(f) for f in filters.values()]
    same(capitals, expected, "capital hexadecimal digits are read, small ones written")


def copy_data(rows):
    """The binary form of COPY for these rows of fields."""
    parts = [b"PGCOPY\n\xff\r\n\0", struct.pack("!ii", 0, 0)]
    for row in rows:
        parts.append(struct.pack("!h", len(row)))
        parts += [struct.pack("!i", len(field)) + field for field in row]
    return b"".join(parts) + struct.pack("!h", -1)


def copy_in(connection, data):
    with connection.cursor().copy("COPY golden FROM STDIN (FORMAT binary)") as copy:
        copy.write(data)


def test_binary_copy(filters):
    data = [f.encode() for f in filters.values()]
    with Session("CREATE TEMP TABLE golden (i int, f bloomfilter)") as there:
        copy_in(there.connection, copy_data([struct.pack("!i", i), field] for i, field in enumerate(data)))
        query = "COPY (SELECT f FROM golden ORDER BY i) TO STDOUT (FORMAT binary)"
        with there.connection.cursor().copy(query) as copy:
            got = b"".join(copy)
    same(got, copy_data([field] for field in data), f"{len(data)} filters through binary COPY and back")


def refused_by_reference(data):
    try:
        ref.decode(data)
    except ref.Refused:
        return True
    return False


def test_refusals(document):
    refused = document["refused"]
    for vector in refused:
        ok(refused_by_reference(bytes.fromhex(vector["bytes"])), f"reference.py refuses: {vector['why']}")

    for name, cast in (("text", "bloomfilter"), ("bytea", "bytea::bloomfilter")):
        statements = [f"SELECT '\\x{vector['bytes']}'::{cast}" for vector in refused]
        for vector, answer in zip(refused, ask(f"pg_temp.refusal({quote(s)})" for s in statements)):
            ok(re.match("22|54", answer), f"refused as {name}: {vector['why']}", answer)

    with Session("CREATE TEMP TABLE golden (f bloomfilter)") as there:
        for vector in refused:
            try:
                copy_in(there.connection, copy_data([[bytes.fromhex(vector["bytes"])]]))
            except psycopg.Error:
                pass
            (rows,) = there.ask("SELECT count(*) FROM golden; TRUNCATE golden")
            same(rows, "0", f"refused in binary COPY: {vector['why']}")


def damage(rng, sound):
    data = bytearray(sound)
    how = rng.randrange(4)
    if how == 0:  # the header
        data[rng.randrange(28)] = rng.choice((0, 1, 2, 3, 25, 64, 128, 255, rng.randrange(256)))
    elif how == 1:  # anywhere
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif how == 2:  # the length
        del data[rng.randrange(len(data)) :]
        data += rng.randbytes(rng.choice((0, 1, 8, 64)))
    else:  # m
        sizes = (0, 64, 128, 512, 1024, 1 << 31, (1 << 31) + 512, 1 << 63)
        data[20:28] = struct.pack("<Q", rng.choice(sizes))
    return bytes(data)


TAKEN = """CREATE FUNCTION pg_temp.taken(data bytea) RETURNS text LANGUAGE plpgsql AS $$
    BEGIN RETURN data::bloomfilter::bytea = data; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $$;
"""


def test_random_bytes(rng, filters):
    """Server and reference refuse the same damaged filters."""
    sound = [f.encode() for f in filters.values() if len(f.encode()) < 200]
    damaged = [damage(rng, rng.choice(sound)) for _ in range(2000)]
    answers = session.ask(TAKEN + "".join(f"SELECT pg_temp.taken('\\x{data.hex()}');\n" for data in damaged))
    expected = ["refused" if refused_by_reference(data) else "true" for data in damaged]
    differing = [
        (data.hex(), answer, want)
        for data, answer, want in zip(damaged, answers, expected)
        if not (answer == want or want == "refused" and re.match("22|54", answer))
    ]
    taken = expected.count("true")
    ok(not differing, f"{len(damaged)} damaged filters: {taken} still are filters, to both", *differing[:5])
    again = (data == ref.decode(data).encode() for data, want in zip(damaged, expected) if want == "true")
    ok(all(again), "reference.py gives them back unchanged")


def test_estimates(name, filters):
    answers = ask(f"bloom_cardinality({value(f)}) || ' ' || bloom_fpp({value(f)})" for f in filters.values())
    for (vector, f), answer in zip(filters.items(), answers):
        cardinality, rate = answer.split()
        close(cardinality, f.cardinality(), f"{name} {vector}: cardinality")
        close(rate, f.current_rate(), f"{name} {vector}: current rate")


def test_operations(document, filters):
    expressions = []
    for vector in document["operations"]:
        operands = [value(filters[name]) for name in vector["of"]]
        if vector["operation"] == "union":
            expressions.append(" | ".join(operands))
        elif vector["operation"] == "intersection":
            expressions.append(" & ".join(operands))
        elif vector["operation"] == "union_agg":
            expressions.append(f"(SELECT bloom_union_agg(x) FROM {sql_values(operands)})")
        elif vector["operation"] == "fold_like":
            expressions.append(f"bloom_fold({', '.join(operands)})")
        else:
            like = replace(filters[vector["of"][0]], m=vector["m"], hashes=(), bits=None)
            expressions.append(f"bloom_fold({operands[0]}, {value(like)})")
    for vector, answer in zip(document["operations"], ask_or_refusal(expressions)):
        expected = attempt(result_of, vector, filters)
        same(answer, expected, f"{vector['operation']} of {', '.join(vector['of'])}")
        same("refused" in vector, answer == "refused", f"{vector['operation']} of {vector['of']}: as recorded")


# Random comparisons


def random_number(rng, lowest, highest):
    """Evenly spread over the orders of magnitude."""
    return math.exp(rng.uniform(math.log(lowest), math.log(highest)))


def random_text(rng, alphabet):
    return "".join(rng.choice(alphabet) for _ in range(rng.choice((0, 1, 3, 8, 20, 40, 100))))


def random_datetime(rng, zone=None):
    after = datetime.timedelta(microseconds=rng.randrange(315_537_000_000_000_000))
    moment = datetime.datetime(1, 1, 3) + after
    return moment.replace(microsecond=rng.choice((0, moment.microsecond)), tzinfo=zone).isoformat(" ")


def random_zone(rng):
    return datetime.timezone(datetime.timedelta(minutes=rng.randint(-15 * 60, 15 * 60)))


def random_float(rng, form, size):
    while True:
        (number,) = struct.unpack(form, rng.randbytes(size))
        if math.isfinite(number):
            return rng.choice((number, ref.single(float(rng.randint(-1000, 1000))) / 8))


def random_numeric(rng):
    return decimal.Decimal(rng.randint(-(10 ** rng.randint(1, 40)), 10 ** rng.randint(1, 40))).scaleb(
        rng.randint(-30, 30), decimal.Context(prec=80)
    )


def random_interface(rng, host_bits):
    version = rng.choice((4, 6))
    bits = 32 if version == 4 else 128
    address = rng.getrandbits(bits)
    prefix = rng.randint(0, bits)
    if not host_bits:
        address = address >> (bits - prefix) << (bits - prefix)
    return f"{ipaddress.IPv4Address(address) if version == 4 else ipaddress.IPv6Address(address)}/{prefix}"


def random_interval(rng):
    return (
        f"{rng.randint(-300, 300)} months {rng.randint(-400, 400)} days "
        f"{rng.randint(-(10**6), 10**6)}.{rng.randrange(10**6):06d} seconds"
    )


def random_hex(rng, count):
    return ":".join(f"{byte:02x}" for byte in rng.randbytes(count))


def generators(rng, alphabet):
    return {
        "smallint": lambda: str(rng.randint(-(2**15), 2**15 - 1)),
        "integer": lambda: str(rng.randint(-(2**31), 2**31 - 1)),
        "bigint": lambda: str(rng.randint(-(2**63), 2**63 - 1) >> rng.randrange(64)),
        "real": lambda: f"{random_float(rng, '<f', 4):.9g}",
        "double precision": lambda: repr(random_float(rng, "<d", 8)),
        "numeric": lambda: rng.choice((str, "{:f}".format))(random_numeric(rng)),
        "text": lambda: random_text(rng, alphabet),
        "varchar(400)": lambda: random_text(rng, alphabet),
        "char(400)": lambda: random_text(rng, alphabet),
        "name": lambda: random_text(rng, "abcdefgh ")[:60],
        "bytea": lambda: "\\x" + rng.randbytes(rng.randrange(70)).hex(),
        "uuid": lambda: str(uuid.UUID(bytes=rng.randbytes(16))),
        "boolean": lambda: rng.choice(("true", "false")),
        "date": lambda: random_datetime(rng)[:10],
        "time": lambda: random_datetime(rng)[11:],
        "timetz": lambda: random_datetime(rng, random_zone(rng))[11:],
        "timestamp": lambda: random_datetime(rng),
        "timestamptz": lambda: random_datetime(rng, random_zone(rng)),
        "interval": lambda: random_interval(rng),
        "inet": lambda: random_interface(rng, host_bits=True),
        "cidr": lambda: random_interface(rng, host_bits=False),
        "macaddr": lambda: random_hex(rng, 6),
        "macaddr8": lambda: random_hex(rng, 8),
    }


def test_random_sizes(rng):
    cases = [
        (rng.choice(ref.LAYOUTS), random_number(rng, 1e-9, 0.5), round(random_number(rng, 1, 2e7)))
        for _ in range(300)
    ]
    for case, answer in zip(cases, ask(sql_create(*case) for case in cases)):
        layout, rate, items = case
        same(answer, hex_of(ref.create(layout, rate, items=items)), f"random size: {layout}, {rate}, {items}")


def test_random_filters(rng, alphabet):
    """Returns the filters, for the tests of estimates."""
    cases, filters = [], {}
    makers = generators(rng, alphabet)
    for i in range(300):
        sql_type = rng.choice(list(makers))
        items = round(random_number(rng, 1, 5000))
        literals = [
            f"{quote(makers[sql_type]())}::{sql_type}" for _ in range(rng.randint(1, min(2 * items, 150)))
        ]
        vector = {
            "layout": rng.choice(ref.LAYOUTS), "rate": random_number(rng, 1e-9, 0.5), "items": items,
            "seed": rng.randint(-(2**63), 2**63 - 1), "elements": literals,
        }  # fmt: skip
        if rng.random() < 0.25:
            vector.update(layout="blocked", items=None)
        if vector["items"] is None:
            template = value(ref.empty(vector["rate"], seed=vector["seed"]))
        else:
            template = sql_create(vector["layout"], vector["rate"], items, vector["seed"])
        cases.append((vector, f"(SELECT bloom_agg(x, {template}) FROM {sql_source(vector)})"))
        filters[f"{i}, {sql_type}"] = filter_of(vector)
    for (name, f), answer in zip(filters.items(), ask(expression for _, expression in cases)):
        same(answer, hex_of(f), f"random filter {name}: {f.layout}, k {f.k}, m {f.m}, {kind(f)}")
    return filters


def test_membership(rng):
    """False positives too are the same."""
    filters = []
    for layout in ref.LAYOUTS:
        for rate in (0.5, 0.2, 0.05, 0.01):
            seed = rng.randint(-(2**63), 2**63 - 1)
            filters.append(ref.build(layout, rate, series(1, 500), items=500, seed=seed))
    expressions = [
        f"string_agg((f @> x)::int::text, '' ORDER BY x) FROM generate_series(1, 2000) AS x, "
        f"(SELECT {value(f)} AS f) AS s"
        for f in filters
    ]
    for f, answer in zip(filters, ask(expressions)):
        expected = "".join(str(int(f.contains(e))) for e in series(1, 2000))
        found = expected.count("1")
        ok(answer == expected, f"membership, false positives included: {f.layout}, {f.p}, {found} found")


def random_operand(rng, layout, k, seed, element_class, m):
    """Empty, sparse or dense; with a rate of its own."""
    f = ref.Filter(layout, k, ref.single(random_number(rng, 1e-9, 0.5)), seed, m)
    if m == 0:
        return replace(f, layout="blocked")
    pool = [rng.getrandbits(64) >> rng.choice((0, 0, 0, 50)) for _ in range(4)]
    hashes = SHARED[: rng.randrange(50, len(SHARED))] + pool
    how = rng.choice(("empty", "typed", "few", "many", "many", "many", "bits", "bits", "bits", "bits"))
    if how == "empty":
        return f
    if how == "typed":
        return replace(f, element_class=element_class)
    if how == "bits":
        return replace(f, element_class=element_class, hashes=None, bits=rng.randbytes(m // 8))
    return f.with_hashes(element_class, hashes if how == "many" else hashes[:4])


SHARED = [random.Random(1).getrandbits(64) for _ in range(300)]


def attempt(operation, *operands):
    try:
        return hex_of(operation(*operands))
    except ref.Refused:
        return "refused"


def ask_or_refusal(expressions):
    """As ask(), but the answer of an expression that fails is 'refused'."""
    function = (
        "CREATE FUNCTION pg_temp.attempt(expression text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE r text;\n"
        "BEGIN EXECUTE 'SELECT (' || expression || ')::text' INTO r; RETURN r;\n"
        "EXCEPTION WHEN invalid_parameter_value OR datatype_mismatch THEN RETURN 'refused'; END $$;\n"
    )
    return session.ask(function + "".join(f"SELECT pg_temp.attempt({quote(e)});\n" for e in expressions))


def test_random_operations(rng):
    cases = []
    for _ in range(300):
        layout = rng.choice(("blocked", "blocked", "classic"))
        parameters = (layout, rng.randint(1, 32), rng.getrandbits(64), rng.choice(list(ref.CLASSES.values())))
        unit = 512 if layout == "blocked" else 64
        small = unit * rng.choice((1, 2, 3, 5, 12))
        sizes = [small, small]
        if rng.random() < 0.3:
            sizes[rng.randrange(2)] = rng.choice((0, 2 * small, 3 * small, 7 * unit))
        a, b = (random_operand(rng, *parameters, m) for m in sizes)
        if rng.random() < 0.1:
            b = rng.choice((
                replace(b, k=33 - b.k),
                replace(b, seed=b.seed ^ 1),
                replace(b, element_class=20 if b.element_class else 0),
            ))  # fmt: skip
        cases.append((a, b))
    described = [
        " and ".join(f"{kind(f)} of {f.m} bits" for f in case) + f", {case[0].layout}" for case in cases
    ]
    for name, operation in (("union", ref.union), ("intersection", ref.intersect), ("fold", ref.fold_like)):
        answers = ask_or_refusal(f"bloom_{name}({value(a)}, {value(b)})" for a, b in cases)
        for case, which, answer in zip(cases, described, answers):
            same(answer, attempt(operation, *case), f"random {name}: {which}")


def test_random_aggregates(rng):
    cases = []
    for _ in range(60):
        layout = rng.choice(("blocked", "blocked", "classic"))
        parameters = (layout, rng.randint(1, 32), rng.getrandbits(64), rng.choice(list(ref.CLASSES.values())))
        m = rng.choice((512, 1024, 3072, 12288)) if layout == "blocked" else 960
        cases.append([random_operand(rng, *parameters, rng.choice((0, m, m))) for _ in range(rng.randint(1, 6))])
    for name, operation in (
        ("bloom_union_agg", ref.union_agg),
        ("bloom_intersect_agg", lambda filters: functools.reduce(ref.intersect, filters)),
    ):
        answers = ask(f"{name}(x ORDER BY i) FROM {sql_values([value(f) for f in case])}" for case in cases)
        for case, answer in zip(cases, answers):
            same(answer, hex_of(operation(case[::-1])), f"random {name} of {[f.m for f in case]} bits")


def test_random_folds(rng):
    """The bits must be those of the fold, which must be the smallest that keeps the rate; the rate
    becomes the requested one."""
    cases = []
    while len(cases) < 150:
        layout = rng.choice(("blocked", "blocked", "blocked", "classic"))
        n = round(random_number(rng, 3, 6000))
        m = 512 * rng.choice((1, 2, 3, 12, 16, 35, 48, 64, 120))
        k = rng.randint(1, 20)
        hashes = [rng.getrandbits(64) for _ in range(n)]
        f = ref.Filter(layout, k, ref.single(0.01), 7, m).with_hashes(20, hashes)
        rate = random_number(rng, 1e-6, 0.5)
        if f.current_rate() < rate:
            cases.append((f, rate))
    smaller = 0
    for (f, rate), answer in zip(cases, ask(f"bloom_fold({value(f)}, {rate!r})" for f, rate in cases)):
        m = ref.decode(bytes.fromhex(answer[2:])).m
        expected = replace(f.fold(m), p=ref.single(rate))
        kinds = f"{kind(f)} to {kind(expected)}"
        same(answer, hex_of(expected), f"random fold: {f.layout}, {f.m} bits to {m}, {kinds}")
        ok(expected.current_rate() <= rate, f"random fold: rate {expected.current_rate()} of at most {rate}")
        if f.layout == "blocked":
            lesser = [b * 512 for b in range(1, m // 512) if f.m // 512 % b == 0]
            ok(all(f.fold(l).current_rate() > rate for l in lesser), f"random fold: nothing below {m} bits does")
        smaller += m < f.m
    ok(smaller > 30, f"{smaller} filters of 150 became smaller")


def usable_vectors(encoding, version):
    """The document without what this server cannot have: characters outside its encoding, and infinities of numeric
    before PostgreSQL 14."""

    def usable(literal):
        if encoding not in ("UTF8", "SQL_ASCII") and max(literal) > "\xff":
            return False
        return int(version) >= 140000 or not ("Infinity" in literal and "numeric" in literal)

    document = golden.read()
    filters = golden.filters_of(document)
    test_vectors_are_the_references(document, filters)
    document["hashes"] = [v for v in document["hashes"] if usable(v["element"])]
    document["filters"] = [v for v in document["filters"] if all(map(usable, v.get("elements", ())))]
    filters = {vector["name"]: filters[vector["name"]] for vector in document["filters"]}
    document["operations"] = [v for v in document["operations"] if all(name in filters for name in v["of"])]
    return document, filters


def test_random(encoding, filters):
    rng = random.Random("bloomtype")
    alphabet = "abc defgh'\\" + ("äöüßé" if encoding == "LATIN1" else "")
    if encoding in ("UTF8", "SQL_ASCII"):
        alphabet += "äß東京🐘"
    test_random_bytes(rng, filters)
    test_random_sizes(rng)
    test_estimates("random filter", test_random_filters(rng, alphabet))
    for test in test_membership, test_random_operations, test_random_aggregates, test_random_folds:
        test(rng)


def main():
    encoding, version = session.ask("SHOW server_encoding; SHOW server_version_num")
    document, filters = usable_vectors(encoding, version)
    test_hashes(document)
    test_equality(document)
    test_sizes(document)
    test_built_filters(document, filters)
    accepted = {f"accepted, {v['why']}": ref.decode(bytes.fromhex(v["bytes"])) for v in document["accepted"]}
    everything = {**filters, **accepted}
    test_round_trips(everything)
    test_binary_copy(everything)
    test_refusals(document)
    test_estimates("golden filter", everything)
    test_operations(document, filters)
    test_random(encoding, everything)
    done()


main()
