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
import itertools
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
CREATE FUNCTION pg_temp.add_times(c bloomcounter, x anyelement, n integer, most integer) RETURNS bloomcounter
LANGUAGE plpgsql AS $$
BEGIN WHILE n > 0 LOOP c := bloom_add(c, x, least(n, most)); n := n - most; END LOOP; RETURN c; END $$;
CREATE FUNCTION pg_temp.fill(c bloomcounter, elements bigint[], numbers integer[], levels boolean, most integer)
RETURNS bloomcounter LANGUAGE plpgsql AS $$
BEGIN FOR i IN 1 .. cardinality(elements) LOOP
IF levels THEN c := bloom_raise(c, elements[i], numbers[i]);
ELSE c := pg_temp.add_times(c, elements[i], numbers[i], most); END IF;
END LOOP; RETURN c; END $$;
"""
Session.settings = SETUP

DECODE = {"bloomfilter": ref.decode, "bloomcounter": ref.decode_counter}
OTHER_TYPE = {"bloomfilter": "bloomcounter", "bloomcounter": "bloomfilter"}


def sql_type_of(f):
    return "bloomcounter" if isinstance(f, ref.Counter) else "bloomfilter"


def literal(f):
    return f"{quote(hex_of(f))}::{sql_type_of(f)}"


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


def test_vectors_are_the_references(document, filters, counters):
    again = golden.complete(document, filters, counters)
    for part in ("hashes", "sizes", "filters", "operations", "counters", "counter_operations"):
        differing = [a for a, b in zip(document[part], again[part]) if a != b]
        ok(not differing, f"reference.py computes the {part} of vectors.json", *differing[:5])
    for part, decode in (("accepted", ref.decode), ("accepted_counters", ref.decode_counter)):
        accepted = [bytes.fromhex(vector["bytes"]) for vector in document[part]]
        changed = [data.hex() for data in accepted if decode(data).encode() != data]
        ok(not changed, f"reference.py takes and gives what a reader must accept: {part}", *changed)
    known = {vector["element"] for vector in document["hashes"]}
    used = {e for part in ("filters", "counters") for vector in document[part] for e in vector.get("elements", ())}
    used |= {vector["element"] for vector in document["counter_operations"] if "element" in vector}
    ok(used <= known, "the canonical bytes of every element are listed", used - known)
    ok(os.path.getsize(golden.PATH) < 260_000, "vectors.json is below 260 kB")


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


def test_queries(document):
    """A query has the canonical bytes of its keys, which are those that are hashed."""
    canonical = {vector["element"]: (vector["class"], vector["canonical"]) for vector in document["hashes"]}
    for (element, (element_class, key)), answer in zip(canonical.items(), ask(f"bloom_query({e})" for e in canonical)):
        data, key = bytes.fromhex(answer[2:]), bytes.fromhex(key)
        stored = 3500 if "::mood" in element else element_class
        same(data, struct.pack("<IIII", stored, 1, 1, len(key)) + key, f"bytes of a query for {element}")


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


def test_round_trips(values, sql_type):
    for casts in (
        f"::{sql_type}::text::{sql_type}::text",
        f"::{sql_type}::bytea::{sql_type}::bytea",
        f"::bytea::{sql_type}::text",
    ):
        answers = ask(quote(hex_of(f)) + casts for f in values.values())
        for (vector, f), answer in zip(values.items(), answers):
            same(answer, hex_of(f), f"{vector}: {casts}")
    capitals = ask(quote("\\x" + f.encode().hex().upper()) + f"::{sql_type}" for f in values.values())
    expected = [hex_of(f) for f in values.values()]
    same(capitals, expected, f"capital hexadecimal digits of a {sql_type} are read, small ones written")


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


def test_binary_copy(values, sql_type):
    data = [f.encode() for f in values.values()]
    with Session(f"CREATE TEMP TABLE golden (i int, f {sql_type})") as there:
        copy_in(there.connection, copy_data([struct.pack("!i", i), field] for i, field in enumerate(data)))
        query = "COPY (SELECT f FROM golden ORDER BY i) TO STDOUT (FORMAT binary)"
        with there.connection.cursor().copy(query) as copy:
            got = b"".join(copy)
    same(got, copy_data([field] for field in data), f"{len(data)} values of {sql_type} through binary COPY and back")


def refused_by_reference(data, sql_type="bloomfilter"):
    try:
        DECODE[sql_type](data)
    except ref.Refused:
        return True
    return False


def test_refusals(refused, sql_type):
    for vector in refused:
        by_reference = refused_by_reference(bytes.fromhex(vector["bytes"]), sql_type)
        ok(by_reference, f"reference.py refuses: {vector['why']}")

    for name, cast, state in (("text", sql_type, "22P0[23]"), ("bytea", f"bytea::{sql_type}", "22P03")):
        statements = [f"SELECT '\\x{vector['bytes']}'::{cast}" for vector in refused]
        for vector, answer in zip(refused, ask(f"pg_temp.refusal({quote(s)})" for s in statements)):
            ok(re.fullmatch(state, answer), f"refused as {name}: {vector['why']}", answer)

    with Session(f"CREATE TEMP TABLE golden (f {sql_type})") as there:
        for vector in refused:
            try:
                copy_in(there.connection, copy_data([[bytes.fromhex(vector["bytes"])]]))
                answer = "accepted"
            except psycopg.Error as error:
                answer = error.sqlstate
            same(answer, "22P03", f"refused in binary COPY: {vector['why']}")


def test_bytes_of_the_other_type(values, sql_type):
    """Each type refuses the bytes of the other."""
    other = OTHER_TYPE[sql_type]
    by_reference = all(refused_by_reference(f.encode(), other) for f in values.values())
    ok(by_reference, f"reference.py refuses {len(values)} values of {sql_type} as {other}")
    statements = [f"SELECT {quote(hex_of(f))}::bytea::{other}" for f in values.values()]
    answers = set(ask(f"pg_temp.refusal({quote(statement)})" for statement in statements))
    same(answers, {"22P03"}, f"{len(values)} values of {sql_type} are refused as {other}")


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
    BEGIN RETURN data::{0}::bytea = data; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $$;
"""


def test_random_bytes(rng, values, sql_type):
    """Server and reference refuse the same damaged values."""
    sound = [f.encode() for f in values.values() if len(f.encode()) < 200]
    damaged = [damage(rng, rng.choice(sound)) for _ in range(2000)]
    questions = "".join(f"SELECT pg_temp.taken('\\x{data.hex()}');\n" for data in damaged)
    answers = session.ask(TAKEN.format(sql_type) + questions)
    expected = ["refused" if refused_by_reference(data, sql_type) else "true" for data in damaged]
    differing = [
        (data.hex(), answer, want)
        for data, answer, want in zip(damaged, answers, expected)
        if not (answer == want or want == "refused" and answer == "22P03")
    ]
    taken = expected.count("true")
    ok(not differing, f"{len(damaged)} damaged {sql_type}s: {taken} still are sound, to both", *differing[:5])
    again = (data == DECODE[sql_type](data).encode() for data, want in zip(damaged, expected) if want == "true")
    ok(all(again), "reference.py gives them back unchanged")


def test_estimates(name, filters):
    answers = ask(f"bloom_cardinality({literal(f)}) || ' ' || bloom_fpp({literal(f)})" for f in filters.values())
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
        "EXCEPTION WHEN invalid_parameter_value OR datatype_mismatch OR numeric_value_out_of_range THEN\n"
        "RETURN 'refused'; END $$;\n"
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
    filters, counters = golden.filters_of(document), golden.counters_of(document)
    test_vectors_are_the_references(document, filters, counters)
    document["hashes"] = [v for v in document["hashes"] if usable(v["element"])]
    document["filters"] = [v for v in document["filters"] if all(map(usable, v.get("elements", ())))]
    filters = {vector["name"]: filters[vector["name"]] for vector in document["filters"]}
    document["operations"] = [v for v in document["operations"] if all(name in filters for name in v["of"])]
    document["counters"] = [v for v in document["counters"] if all(map(usable, v.get("elements", ())))]
    counters = {vector["name"]: counters[vector["name"]] for vector in document["counters"]}
    results = {vector["name"] for vector in document["counter_operations"] if "name" in vector}
    document["counter_operations"] = [
        v for v in document["counter_operations"] if all(name in counters or name in results for name in v["of"])
    ]
    return document, filters, counters


def test_random(encoding, filters):
    rng = random.Random("bloomtype")
    alphabet = "abc defgh'\\" + ("äöüßé" if encoding == "LATIN1" else "")
    if encoding in ("UTF8", "SQL_ASCII"):
        alphabet += "äß東京🐘"
    test_random_bytes(rng, filters, "bloomfilter")
    test_random_sizes(rng)
    test_estimates("random filter", test_random_filters(rng, alphabet))
    for test in test_membership, test_random_operations, test_random_aggregates, test_random_folds:
        test(rng)


# Counters


def sql_numbered_source(vector):
    """Rows of an element x and its number n."""
    numbers = vector["numbers"]
    if "series" in vector:
        first, last = vector["series"]
        number = f"({sql_array(numbers)})[(i - {first}) % {len(numbers)} + 1]"
        return f"(SELECT i AS i, i::bigint AS x, {number} AS n FROM generate_series({first}, {last}) AS i) AS v"
    if not vector["elements"]:
        return "(VALUES (1, NULL::integer, 1)) AS v(i, x, n)"
    rows = zip(vector["elements"], itertools.cycle(numbers))
    return "(VALUES " + ", ".join(f"({i}, {e}, {n})" for i, (e, n) in enumerate(rows)) + ") AS v(i, x, n)"


def sql_array(numbers):
    return f"ARRAY{numbers}::integer[]"


def sql_create_counter(layout, rate, items, width, seed=0):
    return f"bloom_create_counter({items}, {rate!r}, {width}, '{layout}', {quote(str(seed))}::bigint)"


def counter_templates(vector, create):
    """What bloom_counter_agg and bloom_level_agg may be given besides the elements to get these parameters."""
    rate, items, usual = vector["rate"], vector["items"], vector["width"] == 4 and vector["seed"] == "0"
    if items is None:
        unsized = literal(ref.empty_counter(rate, width=vector["width"], seed=int(vector["seed"])))
        return [f", {unsized}"] + [f", NULL, {rate!r}"] * usual + [""] * (usual and rate == 0.01)
    if vector["layout"] == "blocked" and usual:
        return [f", {create}", f", {items}, {rate!r}"] + [f", {items}"] * (rate == 0.01)
    return [f", {create}"]


def ways_to_build_counter(vector):
    """SQL expressions that must all give the bytes of that vector."""
    source, levels = sql_numbered_source(vector), vector["contents"] == "levels"
    limit, items = (1 << vector["width"]) - 1, vector["items"]
    create = sql_create_counter(vector["layout"], vector["rate"], items, vector["width"], vector["seed"])
    for template in counter_templates(vector, create):
        for order in ("v.i", "v.i DESC", "md5(v.i::text)"):
            if levels:
                aggregate = f"(SELECT bloom_level_agg(x, n{template} ORDER BY {order}) FROM {source})"
            else:
                rows = f"{source}, generate_series(1, n)"
                aggregate = f"(SELECT bloom_counter_agg(x{template} ORDER BY {order}) FROM {rows})"
            yield f"aggregate (x{template[:40]}), by {order}", aggregate
    if items is not None and vector["numbers"]:
        yield from ways_to_build_counter_by_element(vector, create, limit)


def ways_to_build_counter_by_element(vector, create, limit):
    source, levels = sql_numbered_source(vector), vector["contents"] == "levels"

    def with_element(counter, x, n):
        return f"bloom_raise({counter}, {x}, {n})" if levels else f"pg_temp.add_times({counter}, {x}, {n}, {limit})"

    aggregate = "bloom_union_agg" if levels else "bloom_sum_agg"
    yield f"{aggregate} of single elements", f"(SELECT {aggregate}({with_element(create, 'x', 'n')}) FROM {source})"
    if "series" in vector:
        for order in ("i", "i DESC"):
            arrays = f"array_agg(x ORDER BY {order}), array_agg(n ORDER BY {order})"
            filled = f"pg_temp.fill({create}, {arrays}, {str(levels).lower()}, {limit})"
            yield f"one element after the other, by {order}", f"(SELECT {filled} FROM {source})"
    else:
        pairs = list(zip(vector["elements"], itertools.cycle(vector["numbers"])))
        for some in (pairs, pairs[::-1]):
            yield f"{len(some)} elements", functools.reduce(lambda c, pair: with_element(c, *pair), some, create)


def test_built_counters(document, counters):
    nothing = hex_of(ref.empty_counter())
    for aggregate in "bloom_counter_agg(1)", "bloom_level_agg(1, 1)", "bloom_sum_agg(c)", "bloom_union_agg(c)":
        (answer,) = ask([f"{aggregate} FROM (SELECT NULL::bloomcounter AS c) AS s WHERE false"])
        same(answer, nothing, f"{aggregate} over no rows")
    cases = [
        (vector["name"], how, expression)
        for vector in document["counters"]
        for how, expression in ways_to_build_counter(vector)
    ]
    for (name, how, _), answer in zip(cases, ask(digest(expression) for _, _, expression in cases)):
        same(answer, digest_of(counters[name]), f"{name}: {how}")


def test_counters_as_filters(document, counters):
    """The cast of a counter has the bytes of a filter that never was a counter."""
    answers = ask(digest(f"{literal(c)}::bloomfilter") for c in counters.values())
    for vector, answer in zip(document["counters"], answers):
        same(answer, digest_of(filter_of(vector)), f"{vector['name']}: as a filter")


def test_counts(counters):
    """What is read, too much included."""
    numbers = series(1, 300)
    chosen = {name: c for name, c in counters.items() if c.element_class == ref.CLASSES["bigint"] and c.m > 0}
    answers = ask(
        f"string_agg(bloom_count(c, x) || ' ' || (c @> x)::int, ',' ORDER BY x) "
        f"FROM generate_series(1::bigint, {len(numbers)}) AS x, (SELECT {literal(c)} AS c) AS s"
        for c in chosen.values()
    )
    for (name, c), answer in zip(chosen.items(), answers):
        reads = [c.read(an_element) for an_element in numbers]
        same(answer, ",".join(f"{read} {int(read > 0)}" for read in reads), f"{name}: what 1 to {len(numbers)} read")


def test_totals(name, counters):
    totals = {vector: c for vector, c in counters.items() if not c.levels}
    for (vector, c), answer in zip(totals.items(), ask(f"bloom_total({literal(c)})" for c in totals.values())):
        close(answer, c.total(), f"{name} {vector}: total")
    levels = [c for c in counters.values() if c.levels]
    answers = set(ask_or_refusal(f"bloom_total({literal(c)})" for c in levels))
    same(answers, {"refused"}, f"{name}: {len(levels)} counters of levels have no total")


def info_of(c):
    """The columns of bloom_info that follow from the bytes, as text; what is null is empty."""
    known = [c.layout, kind(c), "levels" if c.levels else "counts", c.width, c.m or "", c.k]
    if c.sparse:
        return "|".join(map(str, known + [""] * 3))
    B, nblocks = ref.geometry(c.layout, c.m)
    full = sum(0 not in c.numbers[i * B : (i + 1) * B] for i in range(nblocks))
    return "|".join(map(str, known + [ref.count_set(c.numbers), c.numbers.count(c.limit), full]))


def test_info(counters):
    columns = "layout, representation, contents, counter_bits, positions, hashes, positions_set, saturated, full_blocks"
    answers = ask(f"{columns} FROM bloom_info({literal(c)})" for c in counters.values())
    for (name, c), answer in zip(counters.items(), answers):
        same(answer, info_of(c), f"{name}: bloom_info")


COUNTER_SQL = {
    "sum": "{0} + {1}", "difference": "{0} - {1}", "union": "{0} | {1}", "intersection": "{0} & {1}",
    "add": "bloom_add({0}, {1}, {2})", "remove": "bloom_remove({0}, {1}, {2})", "raise": "bloom_raise({0}, {1}, {2})",
    "decay": "bloom_decay({0}, {1})", "at_least": "bloom_at_least({0}, {1})", "to_filter": "({0})::bloomfilter",
}  # fmt: skip


def sql_operation(vector, known):
    operands = [literal(known[name]) for name in vector["of"]]
    if vector["operation"] not in COUNTER_SQL:
        return f"(SELECT bloom_{vector['operation']}(x) FROM {sql_values(operands)})"
    more = [vector[key] for key in ("element", "number") if key in vector]
    return COUNTER_SQL[vector["operation"]].format(*operands, *more)


def test_counter_operations(document, counters):
    vectors = document["counter_operations"]
    results = golden.counter_results(document, counters)
    known = {**counters, **{v["name"]: result for v, result in zip(vectors, results) if "name" in v}}
    answers = ask_or_refusal(sql_operation(vector, known) for vector in vectors)
    for vector, result, answer in zip(vectors, results, answers):
        more = " ".join(str(vector[key]) for key in ("element", "number") if key in vector)
        name = f"{vector['operation']} of {', '.join(vector['of'])} {more}"
        same(answer, hex_of(result) if result else "refused", name)


# Random comparisons of counters


def random_counter(rng, layout, k, seed, m, width):
    """Empty, sparse or dense, counts or levels, with a rate of its own; rarely without a size."""
    c = ref.Counter(layout, k, ref.single(random_number(rng, 1e-9, 0.5)), seed, m, width=width)
    how = rng.choice(("unsized", "empty", "few", "few", "some", "some", "many", "numbers", "numbers"))
    if how == "unsized":
        return replace(c, layout="blocked", m=0, width=rng.choice((4, 8, 16)))
    if how == "empty":
        return c
    numbers = (1, 1, 2, 3, c.limit - 1, c.limit)
    if how == "numbers":
        few = rng.random() < 0.5
        drawn = rng.choices((0, 1, c.limit) if few else numbers, weights=(20, 5, 1) if few else None, k=m)
        return replace(c, element_class=20, levels=rng.random() < 0.4, listed=None, numbers=tuple(drawn))
    elements = rng.sample(NUMBERS, {"few": 3, "some": 12, "many": 60}[how])
    pairs = [(an_element, rng.choice(numbers)) for an_element in elements]
    return c.lift(pairs) if rng.random() < 0.4 else c.count(pairs)


NUMBERS = series(1, 80)


def random_parameters(rng):
    layout = rng.choice(ref.LAYOUTS)
    unit = 512 if layout == "blocked" else 64
    return layout, rng.randint(1, 20), rng.getrandbits(64), unit * rng.choice((1, 1, 2, 3)), rng.choice((4, 8, 16))


def described(*counters):
    return " and ".join(f"{kind(c)} {'levels' if c.levels else 'counts'} {c.width}x{c.m}" for c in counters)


def test_random_counter_sizes(rng):
    for _ in range(100):
        layout, rate, width = rng.choice(ref.LAYOUTS), random_number(rng, 1e-9, 0.5), rng.choice((4, 8, 16))
        items = round(random_number(rng, 1, 1e8))
        name = f"random size of a counter: {layout}, {rate}, {items}, {width} bits"
        create = sql_create_counter(layout, rate, items, width)
        size = f"bloom_counter_bytes({items}, {rate!r}, {width}, '{layout}')"
        try:
            expected = ref.create_counter(layout, rate, items=items, width=width)
        except ValueError:
            for sql in create, size:
                same(session.ask(f"SELECT pg_temp.refusal({quote(f'SELECT {sql}')})"), ["54000"], f"{name}: too many")
        else:
            same(ask([create]), [hex_of(expected)], name)
            stored = 4 + 28 + expected.m * width // 8  # the stored form has PostgreSQL's header of 4 bytes
            same(ask([size]), [str(stored)], f"{name}: bytes")


def test_random_counter_operations(rng):
    cases = []
    for _ in range(400):
        parameters = random_parameters(rng)
        a, b = random_counter(rng, *parameters), random_counter(rng, *parameters)
        if rng.random() < 0.05:
            b = rng.choice((random_counter(rng, *random_parameters(rng)), replace(b, k=33 - b.k)))
        elif rng.random() < 0.3 and not a.without_size and not b.without_size:
            a = ref.sum_of(a, b)
        cases.append((a, b))
    for operation, compute in (
        ("sum", ref.sum_of), ("difference", ref.difference), ("union", ref.greater), ("intersection", ref.lesser),
    ):  # fmt: skip
        answers = ask_or_refusal(COUNTER_SQL[operation].format(*map(literal, case)) for case in cases)
        for case, answer in zip(cases, answers):
            same(answer, attempt(compute, *case), f"random {operation}: {described(*case)}")


def test_random_counter_aggregates(rng):
    for name, operation in (("bloom_sum_agg", ref.sum_agg), ("bloom_union_agg", ref.greater_agg)):
        cases = []
        for _ in range(60):
            parameters = random_parameters(rng)
            cases.append([random_counter(rng, *parameters) for _ in range(rng.randint(1, 6))])
        answers = ask(f"{name}(x ORDER BY i) FROM {sql_values(list(map(literal, case)))}" for case in cases)
        for case, answer in zip(cases, answers):
            same(answer, hex_of(operation(case[::-1])), f"random {name}: {described(*case)}")


def test_random_extensions(rng):
    """Aggregates that add to a counter, in any order."""
    cases = []
    for _ in range(200):
        c = random_counter(rng, *random_parameters(rng))
        if c.without_size:
            c = ref.empty_counter(c.p, width=c.width, seed=c.seed)
        numbers = (1, 1, 2, 3, c.limit if c.width < 16 else 9)
        pairs = [(element, rng.choice(numbers)) for element in rng.choices(range(1, 81), k=rng.choice((1, 4, 12, 40)))]
        cases.append((c, pairs))
    for name, rows, change in (
        ("bloom_counter_agg(x", "generate_series(1, n)", ref.Counter.count),
        ("bloom_level_agg(x, n", "generate_series(1, 1)", ref.Counter.lift),
    ):
        answers = ask(
            f"{name}, {literal(c)} ORDER BY md5(v::text)) "
            f"FROM (VALUES {', '.join(f'({x}::bigint, {n})' for x, n in pairs)}) AS v(x, n), {rows}"
            for c, pairs in cases
        )
        for (c, pairs), answer in zip(cases, answers):
            numbered = [(NUMBERS[x - 1], n) for x, n in pairs]
            sized = ref.create_for(c.p, numbered, width=c.width, seed=c.seed) if c.without_size else c
            expected = change(sized, numbered)
            same(answer, hex_of(expected), f"random {name}): {described(c)} becomes {described(expected)}")


def test_random_changes(rng):
    """One element, or all numbers."""
    cases = []
    for _ in range(600):
        c = random_counter(rng, *random_parameters(rng))
        operation = rng.choice(("add", "remove", "remove", "remove", "raise", "decay", "at_least"))
        number = rng.choice((1, 1, 2, 3, c.limit - 1, c.limit, 0, c.limit + 1))
        element = rng.randint(1, 80)
        both = operation in ("add", "remove", "raise")
        arguments = [NUMBERS[element - 1], number] if both else [number]
        sql = COUNTER_SQL[operation].format(literal(c), *([f"{element}::bigint", number] if both else [number]))
        cases.append((f"random {operation} of {number}: {described(c)}", operation, c, arguments, sql))
    for (name, operation, c, arguments, _), answer in zip(cases, ask_or_refusal(case[-1] for case in cases)):
        same(answer, attempt(golden.COUNTER_OPERATIONS[operation], c, *arguments), name)


def test_counters(document, counters, rng):
    test_built_counters(document, counters)
    test_counters_as_filters(document, counters)
    accepted = {
        f"accepted, {v['why']}": ref.decode_counter(bytes.fromhex(v["bytes"])) for v in document["accepted_counters"]
    }
    everything = {**counters, **accepted}
    test_round_trips(everything, "bloomcounter")
    test_binary_copy(everything, "bloomcounter")
    test_refusals(document["refused_counters"], "bloomcounter")
    test_bytes_of_the_other_type(everything, "bloomcounter")
    test_counts(counters)
    test_estimates("golden counter", everything)
    test_totals("golden counter", everything)
    test_info(everything)
    test_counter_operations(document, counters)
    test_random_bytes(rng, everything, "bloomcounter")
    for test in (
        test_random_counter_sizes, test_random_counter_operations, test_random_counter_aggregates,
        test_random_extensions, test_random_changes,
    ):  # fmt: skip
        test(rng)


def main():
    encoding, version = session.ask("SHOW server_encoding; SHOW server_version_num")
    document, filters, counters = usable_vectors(encoding, version)
    test_hashes(document)
    test_queries(document)
    test_equality(document)
    test_sizes(document)
    test_built_filters(document, filters)
    accepted = {f"accepted, {v['why']}": ref.decode(bytes.fromhex(v["bytes"])) for v in document["accepted"]}
    everything = {**filters, **accepted}
    test_round_trips(everything, "bloomfilter")
    test_binary_copy(everything, "bloomfilter")
    test_refusals(document["refused"], "bloomfilter")
    test_bytes_of_the_other_type(everything, "bloomfilter")
    test_estimates("golden filter", everything)
    test_operations(document, filters)
    test_random(encoding, everything)
    test_counters(document, counters, random.Random("bloomcounter"))
    done()


main()
