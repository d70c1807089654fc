#!/usr/bin/python3 -B
"""The Python client against a server, with random values of every class and random filters: what one builds has the
bytes that the other builds and answers alike, combinations and estimates are equal, and both accept the same bytes.
Connects as libpq does, to a database with the extension bloomtype. Needs psycopg 3. Prints TAP.
"""

import datetime
import decimal
import ipaddress
import math
import os
import random
import re
import struct
import subprocess
import sys
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENT = os.environ.get("BLOOMTYPE_CLIENT", os.path.join(HERE, ".."))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path[1:1] = [CLIENT, os.path.join(ROOT, "test", "t")]
from session import extension_schema, psycopg  # noqa: E402
from tap import done, ok, part, same  # noqa: E402

from bloomtype import BloomCounter, BloomFilter, BloomtypeError, Char, FormatError, MacAddr, MacAddr8  # noqa: E402

HEADER_BYTES = 28
TYPES = {"bloomfilter": BloomFilter, "bloomcounter": BloomCounter}
ACCEPTS = """
CREATE FUNCTION pg_temp.accepts_{0}(bytes bytea) RETURNS bool LANGUAGE plpgsql AS
$$BEGIN PERFORM bytes::{0}; RETURN true; EXCEPTION WHEN invalid_binary_representation THEN RETURN false; END$$;
CREATE FUNCTION pg_temp.accepts_{0}(digits text) RETURNS bool LANGUAGE plpgsql AS
$$BEGIN PERFORM digits::{0}; RETURN true;
EXCEPTION WHEN invalid_text_representation OR invalid_binary_representation THEN RETURN false; END$$;
"""

connection = psycopg.connect(autocommit=True, client_encoding="UTF8")
connection.execute(f"SET search_path = {extension_schema()}, pg_catalog")
for sql_type in TYPES:
    connection.execute(ACCEPTS.format(sql_type))
(ENCODING,) = connection.execute("SHOW server_encoding").fetchone()


def ask(sql, *parameters, binary=False):
    """The first row of the result."""
    return connection.cursor(binary=binary).execute(sql, parameters).fetchone()


def answer(sql, *parameters):
    """The first field of the result, or "refused" for an error that the client has, too."""
    try:
        (field,) = ask(sql, *parameters)
        return field
    except (psycopg.errors.InvalidParameterValue, psycopg.errors.DatatypeMismatch,
            psycopg.errors.ProgramLimitExceeded, psycopg.errors.NumericValueOutOfRange):
        return "refused"


def attempt(function, *arguments):
    """The result of the client: a filter in its text form."""
    try:
        result = function(*arguments)
        return result.to_text() if isinstance(result, BloomFilter) else result
    except BloomtypeError:
        return "refused"


# Random values


def some_text(rng):
    letters = "ab '\\\"\x01~" if ENCODING != "UTF8" else "ab '\\\"\x01~äß東京🐘\u0301\u200f\uffff"
    return "".join(rng.choices(letters, k=rng.choice((0, 1, 2, 5, 40)))) + rng.choice(("", "", " ", "  "))


def some_number(rng):
    special = "0 -0 0.00 1 1.0 1.50 1E+5 1e-5 100 NaN Infinity -Infinity 1E+1000 12E-1000".split()
    digits = str(rng.getrandbits(rng.choice((1, 8, 64, 200)))) + "0" * rng.choice((0, 0, 3))
    scaled = decimal.Decimal(rng.choice("+-") + digits).scaleb(-rng.randint(-30, 30), decimal.Context(prec=200))
    return rng.choice((scaled, scaled, decimal.Decimal(rng.choice(special))))


def some_float(rng):
    special = (0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 5e-324, 1.5)
    any_bits = struct.unpack("<d", rng.getrandbits(64).to_bytes(8, "little"))[0]
    return rng.choice((any_bits, rng.uniform(-10, 10), rng.choice(special)))


def some_zone(rng, widest):
    seconds = rng.choice((0, 3600, -19800, rng.randint(-widest, widest)))
    return datetime.timezone(datetime.timedelta(seconds=seconds))


def some_time(rng, tzinfo=None):
    return datetime.time(rng.randrange(24), rng.randrange(60), rng.randrange(60), rng.randrange(10**6), tzinfo)


def some_day(rng):
    return datetime.date.fromordinal(rng.choice((rng.randint(2, 3652058), rng.randint(720000, 760000))))


def some_moment(rng, tzinfo=None):
    return datetime.datetime.combine(some_day(rng), some_time(rng), tzinfo)


def some_interface(rng):
    if rng.random() < 0.5:
        return ipaddress.IPv4Interface((rng.getrandbits(32), rng.randint(0, 32)))
    return ipaddress.IPv6Interface((rng.getrandbits(128), rng.randint(0, 128)))


def some_address(rng):
    version = rng.choice((ipaddress.IPv4Address, ipaddress.IPv6Address))
    return version(rng.getrandbits(32 if version is ipaddress.IPv4Address else 128))


# SQL type, as the values are sent, and how to draw a value.
KINDS = {
    "bigint": lambda rng: rng.choice((rng.randint(-(2**63), 2**63 - 1), rng.randint(-300, 300))),
    "float8": some_float,
    "numeric": some_number,
    "text": some_text,
    "char(12)": lambda rng: Char(some_text(rng).replace("\x01", "")[:12]),
    "bytea": lambda rng: rng.randbytes(rng.choice((0, 1, 7, 8, 33, 100))),
    "uuid": lambda rng: uuid.UUID(int=rng.getrandbits(128)),
    "bool": lambda rng: rng.random() < 0.5,
    "date": some_day,
    "time": some_time,
    "timetz": lambda rng: some_time(rng, some_zone(rng, 57599)),
    "timestamp": some_moment,
    "timestamptz": lambda rng: some_moment(rng, some_zone(rng, 50000)),
    "interval": lambda rng: datetime.timedelta(rng.randint(-(10**6), 10**6), 0, rng.randrange(86400 * 10**6)),
    "inet": lambda rng: rng.choice((some_interface, some_address))(rng),
    "cidr": lambda rng: some_interface(rng).network,
    "macaddr": lambda rng: MacAddr(rng.randbytes(6)),
    "macaddr8": lambda rng: MacAddr8(rng.randbytes(8)),
}  # fmt: skip
AS_TEXT = {"char(12)": str, "inet": str, "cidr": str, "macaddr": bytes.hex, "macaddr8": bytes.hex, "interval": None}


def sent(kind, values):
    """What psycopg can send as an array of this type."""
    as_text = AS_TEXT.get(kind)
    return list(map(as_text, values)) if as_text else list(values)


def text_of(data):
    return "\\x" + bytes(data).hex()


# Both directions


def test_builds(rng):
    for kind, draw in KINDS.items():
        for count in (1, 2, 7, 8, 30, 300):
            values = [draw(rng) for _ in range(count)] + [None] * rng.choice((0, 1))
            rng.shuffle(values)
            drawn = [value for value in values if value is not None]
            array = sent(kind, drawn) + [None] * (len(values) - len(drawn))
            items, rate = rng.choice((1, 10, 100, 5000)), rng.choice((0.5, 0.1, 0.01, 1e-6))
            layout, seed = rng.choice(("blocked", "classic")), rng.choice((0, 7, -1, rng.getrandbits(63)))
            name = f"{kind}, {count} values, {items} expected at {rate}"
            source = f"FROM unnest(%s::{kind}[]) AS x"
            for sql, mine in (
                (f"bloom_agg(x, {items}, {rate})", BloomFilter.build(values, items, rate)),
                (f"bloom_agg(x, bloom_create({items}, {rate}, '{layout}', {seed}))",
                 BloomFilter.build(values, items, rate, layout=layout, seed=seed)),
                ("bloom_agg(x)", BloomFilter.build(iter(values))),
                (f"bloom_agg(x, NULL::float8, {rate})", BloomFilter.build(values, None, rate)),
            ):  # fmt: skip
                (got,) = ask(f"SELECT {sql} {source}", array)
                same(mine.to_text(), got, f"built: {name}, {sql}")
    same(BloomFilter.build([]).to_text(), ask("SELECT bloom_agg(1) WHERE false")[0], "built: of nothing")
    same(BloomFilter.build([None], 10).to_text(), ask("SELECT bloom_agg(NULL::int, 10)")[0], "built: of None")


def test_questions(rng):
    """The answers of an overfull filter, so that many of them are false positives."""
    for kind, draw in KINDS.items():
        for count, layout in (3, "blocked"), (3, "classic"), (90, "blocked"), (90, "classic"):
            values = [draw(rng) for _ in range(count)]
            questions = values[:10] + [draw(rng) for _ in range(300)]
            sql = f"SELECT bloom_agg(x, bloom_create(40, 0.3, '{layout}')) FROM unnest(%s::{kind}[]) AS x"
            (made,) = ask(sql, sent(kind, values), binary=True)
            theirs = f"SELECT array_agg(%s::bytea::bloomfilter @> x ORDER BY i) FROM unnest(%s::{kind}[])"
            (wanted,) = ask(f"{theirs} WITH ORDINALITY AS q (x, i)", made, sent(kind, questions))
            mine = BloomFilter.load(made)
            same([question in mine for question in questions], wanted, f"questions: {kind}, {count}, {layout}")
    questions = ["ab", "ab  ", "", " ", "x"]
    mine = BloomFilter.build(map(Char, ("ab ", "")), 10)
    sql = "SELECT array_agg(%s::bloomfilter @> x ORDER BY i) FROM unnest(%s::text[]) WITH ORDINALITY AS q (x, i)"
    (wanted,) = ask(sql, mine.to_text(), questions)
    same([question in mine for question in questions], wanted, "questions: texts about char(n)")


def test_types(rng):
    """A filter of each class, and a question and an element of each class."""
    filters = {kind: BloomFilter.build([draw(rng)], 10) for kind, draw in KINDS.items()}
    for held, one in filters.items():
        for kind, draw in KINDS.items():
            value = draw(rng)
            added = one.copy()
            for what, sql, mine in (
                ("asked about", "f @> x", lambda one=one, value=value: value in one),
                ("adding", "bloom_add(f, x)", lambda added=added, value=value: added.add(value) or added),
            ):
                from_both = f"FROM (SELECT %s::bloomfilter AS f, (%s::{kind}[])[1] AS x) AS s"
                wanted = answer(f"SELECT {sql} {from_both}", one.to_text(), sent(kind, [value]))
                same(attempt(mine), wanted, f"a filter of {held}, {what} {kind}")


def test_transfer(rng):
    for count in (0, 3, 300):
        mine = BloomFilter.build([rng.getrandbits(60) for _ in range(count)], 100)
        for sql, parameter in (
            ("%s::bloomfilter", mine.to_text()), ("%s::bytea::bloomfilter", mine.to_bytes()),
            ("%b::bytea::bloomfilter", bytes(mine)),
        ):  # fmt: skip
            for binary in (False, True):
                (got,) = ask(f"SELECT {sql}", parameter, binary=binary)
                same(BloomFilter.load(got), mine, f"sent as {sql}, received as {type(got).__name__}: {count} elements")
        query = f"SELECT '{mine.to_text()}'::bloomfilter"
        with connection.cursor().copy(f"COPY ({query}) TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(["bytea"])
            ((got,),) = copy.rows()
        same(BloomFilter.load(got), mine, f"received by COPY: {count} elements")


# Combinations


def random_filter(rng, layout, items, rate, seed):
    if rng.random() < 0.1:
        return BloomFilter.build([], None, rate, seed=seed)
    start, count = rng.randrange(50), rng.choice((0, 1, 5, 8, 20, 60, 1000))
    return BloomFilter.build(range(start, start + count), items, rate, layout=layout, seed=seed)


def random_pair(rng):
    layout, items, rate = rng.choice(("blocked", "classic")), rng.choice((10, 50, 100, 400)), rng.choice((0.1, 0.01))
    first = random_filter(rng, layout, items, rate, 0)
    if rng.random() < 0.1:
        return first, BloomFilter.build(["a"], items, rate, layout=layout)
    if rng.random() < 0.1:
        return first, random_filter(rng, layout, items, rate, 1)
    items = rng.choice((items, items, items, 2 * items, 3 * items))
    return first, random_filter(rng, layout, items, rng.choice((rate, rate, rate * 1.1, 0.3)), 0)


COMBINATIONS = {
    "a | b": BloomFilter.union, "a & b": BloomFilter.intersection, "bloom_fold(a, b)": BloomFilter.fold_like,
    "bloom_union_cardinality(a, b)": BloomFilter.union_cardinality,
    "bloom_intersection_cardinality(a, b)": BloomFilter.intersection_cardinality,
    "bloom_jaccard(a, b)": BloomFilter.jaccard,
}  # fmt: skip


def alike(got, wanted):
    if not isinstance(got, float) or not isinstance(wanted, float):
        return got == wanted
    both_nan = math.isnan(got) and math.isnan(wanted)
    # An intersection is a small difference of large numbers.
    return both_nan or math.isclose(got, wanted, rel_tol=1e-9, abs_tol=1e-9)


def test_combinations(rng):
    pairs = [random_pair(rng) for _ in range(150)]
    # The sparse filter is dense at the size of the other. Its elements include those of the other.
    pairs.append((BloomFilter.build(range(10), 40), BloomFilter.build(range(15), 80)))
    for number, pair in enumerate(pairs):
        for order in pair, pair[::-1]:
            for sql, mine in COMBINATIONS.items():
                source = "FROM (SELECT %s::bloomfilter AS a, %s::bloomfilter AS b) AS s"
                wanted = answer(f"SELECT {sql} {source}", *(one.to_text() for one in order))
                got = attempt(mine, *order)
                ok(alike(got, wanted), f"{sql} of pair {number}", repr(order), f"got      {got}", f"expected {wanted}")


def test_estimates(rng):
    for number in range(100):
        one = rng.choice(random_pair(rng))
        wanted = ask("SELECT # f, bloom_fpp(f) FROM (SELECT %s::bloomfilter AS f) AS s", one.to_text())
        got = one.cardinality(), one.current_rate()
        ok(alike(got[0], wanted[0]), f"cardinality of {one} {number}", f"got      {got}", f"expected {wanted}")
        same(got[1], wanted[1], f"current rate of {one} {number}")
        compare_fold(one, rng.choice((1e-5, 0.02, 0.1, 0.5, 0.6)))
        compare_fold(one, wanted[1])


def compare_fold(one, rate):
    wanted = answer("SELECT bloom_fold(%s::bloomfilter, %s::float8)", one.to_text(), rate)
    same(attempt(one.fold, rate), wanted, f"{one} folded to the rate {rate!r}")


def filter_of_hashes(rng, blocks, count, least):
    header = struct.pack("<4BIfQQ", 1, 0, 1, 6, 20 if count else 0, 0.01, 0, 512 * blocks)
    hashes = sorted({rng.randrange(least, 2**64) for _ in range(count)})
    return BloomFilter.load(header + struct.pack(f"<{len(hashes)}Q", *hashes))


def test_folds(rng):
    # At a rate that a size has exactly, and next to it: numbers of double precision decide.
    for items in 300, 2000, 20000:
        for share in 0.01, 0.1, 0.4, 0.9:
            one = BloomFilter.build(range(int(items * share)), items)
            for rate in 0.001, 0.02, 0.2:
                sql = "SELECT bloom_fpp(bloom_fold(%s::bloomfilter, %s::float8))"
                (reached,) = ask(sql, one.to_text(), max(rate, one.current_rate()))
                for near in math.nextafter(reached, 0), reached, math.nextafter(reached, 1):
                    compare_fold(one, near)
    # 2520 blocks have 48 divisors. The last hashes are in one half of the filter, and in one block.
    for count, least in (0, 0), (1, 0), (315, 0), (3000, 0), (20000, 0), (9000, 2**63), (9000, 2**64 - 2**50):
        sparse = filter_of_hashes(rng, 2520, count, least)
        dense = sparse | filter_of_hashes(rng, 2520, 20159, 2**61)
        for one in sparse, dense:
            for rate in 0.001, 0.01, 0.1, 0.5:
                compare_fold(one, rate)
    # All blocks are equal, and so is the rate at every size, except for rounding.
    for ones, blocks in (225, 375), (255, 245), (255, 385), (267, 81), (267, 135), (267, 162), (267, 189), (256, 360):
        header = struct.pack("<4BIfQQ", 1, 0, 0, 6, 20, 0.01, 0, 512 * blocks)
        one = BloomFilter.load(header + blocks * (2**ones - 1).to_bytes(64, "little"))
        compare_fold(one, one.current_rate())


def test_sizes(rng):
    special = (0, 0.5, 1, 1.5, 3e8, 1e12, math.inf, math.nan)
    for _ in range(300):
        items = rng.choice((10 ** rng.uniform(0, 8.5), 10 ** rng.uniform(0, 3), rng.choice(special)))
        rate = rng.choice((10 ** rng.uniform(-9, -0.31), 10 ** rng.uniform(-3, -1), 0.5, 1e-9, 0.6, 1e-10,
                           math.nextafter(1e-9, 0), 9.9999997e-10, 9.9999996e-10, 0.5 + 2**-25, 0.5 + 2**-24))
        layout = rng.choice(("blocked", "CLASSIC", "classic", "round"))
        wanted = answer("SELECT bloom_create(%s::float8, %s::float8, %s)", items, rate, layout)
        same(attempt(lambda i=items, r=rate, l=layout: BloomFilter(i, r, layout=l)), wanted,
             f"size of {layout} for {items} at {rate}")  # fmt: skip


# Counters


def test_counters(rng):
    """Counts and levels of values of every class, of overfull counters, too."""
    for kind, draw in KINDS.items():
        for number in range(4):
            values = [draw(rng) for _ in range(rng.choice((1, 5, 60)))]
            layout, width = rng.choice(("blocked", "classic")), rng.choice((4, 8, 16))
            create = f"bloom_create_counter(30, 0.2, {width}, '{layout}', {rng.randrange(9)})"
            aggregate = rng.choice((f"bloom_counter_agg(x, {create})", f"bloom_level_agg(x, 3, {create})"))
            sql = f"SELECT {aggregate} FROM unnest(%s::{kind}[]) AS x, generate_series(1, {rng.choice((1, 2, 20))})"
            (made,) = ask(sql, sent(kind, values), binary=True)
            mine, name = BloomCounter.load(made), f"{kind}, counter {number}"
            questions = values[:5] + [draw(rng) for _ in range(40)]
            theirs = f"SELECT array_agg(bloom_count(%s::bytea::bloomcounter, x) ORDER BY i) FROM unnest(%s::{kind}[])"
            (wanted,) = ask(f"{theirs} WITH ORDINALITY AS q (x, i)", made, sent(kind, questions))
            same([mine.count(question) for question in questions], wanted, f"{name}: what values read")
            columns = "cardinality, total, current_rate, saturated >= 0 IS TRUE"
            wanted = ask(f"SELECT {columns} FROM bloom_info(%s::bytea::bloomcounter)", made)
            got = mine.cardinality(), None if mine.levels else mine.total(), mine.current_rate(), not mine.sparse
            ok(all(map(alike, got, wanted)), f"{name}: estimates", f"got      {got}", f"expected {wanted}")
            level = rng.choice((1, 2, 3, 15, 16))
            wanted = answer(f"SELECT bloom_at_least(%s::bytea::bloomcounter, {level})", made)
            same(attempt(mine.at_least, level), wanted, f"{name}: what reads {level}")


# Hostile bytes


def accepts(reader, form):
    try:
        read = reader.load(form)
    except FormatError as problem:
        assert str(problem)
        return False
    if reader is BloomCounter:
        return True
    written = read.to_text() if isinstance(form, str) else read.to_bytes()
    return True if written == (form.lower() if isinstance(form, str) else form) else "written differently"


def compare_verdicts(name, forms, sql_type="bloomfilter"):
    kind = "text" if isinstance(forms[0], str) else "bytea"
    verdicts = f"SELECT array_agg(pg_temp.accepts_{sql_type}(x) ORDER BY i)"
    (wanted,) = ask(f"{verdicts} FROM unnest(%s::{kind}[]) WITH ORDINALITY AS q (x, i)", forms)
    differing = [(form, yes) for form, yes in zip(forms, wanted) if accepts(TYPES[sql_type], form) is not yes]
    same(differing[:3], [], f"{name}: both accept {sum(wanted)} of {len(wanted)}")
    ok(0 < sum(wanted) < len(wanted), f"{name}: some are accepted, some refused")


def victims(rng):
    return {
        "empty": BloomFilter(100), "without a size": BloomFilter.build([]),
        "sparse": BloomFilter.build(range(5), 100), "dense": BloomFilter.build(range(60), 50),
        "classic sparse": BloomFilter.build(["a", "b"], 200, layout="classic", seed=-1),
        "classic dense": BloomFilter.build(range(9), 5, 0.1, layout="classic"),
        "empty intersection": BloomFilter.build([1], 100) & BloomFilter.build([2], 100),
        "uuids": BloomFilter.build([uuid.UUID(int=rng.getrandbits(128))], 100, 1e-6),
    }  # fmt: skip


def flipped(data, bit):
    changed = bytearray(data)
    changed[bit >> 3] ^= 1 << (bit & 7)
    return bytes(changed)


def mutated(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        where = rng.randrange(len(data) + 1)
        how = rng.choice(("set", "set", "header", "insert", "delete", "double"))
        if how == "insert":
            data[where:where] = rng.randbytes(rng.choice((1, 8)))
        elif how == "delete":
            del data[where : where + rng.choice((1, 8))]
        elif how == "double":
            data += data[HEADER_BYTES:]
        elif data:
            where = rng.randrange(min(len(data), HEADER_BYTES)) if how == "header" else rng.randrange(len(data))
            data[where] = rng.choice((0, 1, 2, 32, 33, 128, 255, rng.randrange(256)))
    return bytes(data)


def test_hostile_bytes(rng):
    for name, victim in victims(rng).items():
        compare_damaged(rng, name, victim.to_bytes(), "bloomfilter")
    for width in 4, 8, 16:
        for rows in 4, 40:
            aggregate = f"bloom_counter_agg(mod(i, 30), bloom_create_counter(10, 0.1, {width}))"
            (data,) = ask(f"SELECT {aggregate} FROM generate_series(1, {rows}) AS i", binary=True)
            compare_damaged(rng, f"counter of {width} bits, {rows} rows", data, "bloomcounter")


def compare_damaged(rng, name, data, sql_type):
    lengths = [data[:end] for end in range(len(data) + 1)] + [data + b"\0"]
    compare_verdicts(f"{name}, every length", lengths, sql_type)
    bits = [data, *(flipped(data, bit) for bit in range(8 * HEADER_BYTES))]
    compare_verdicts(f"{name}, every bit of the header flipped", bits, sql_type)
    compare_verdicts(f"{name}, mutated", [data, *(mutated(rng, data) for _ in range(800))], sql_type)


def test_hostile_text(rng):
    good = BloomFilter.build(range(5), 100).to_text()
    texts = [good, good.upper().replace("\\X", "\\x"), good.upper(), good[1:], good[:-1], good + "0", good + "00", "",
             "\\x", "\\", " " + good, good + " ", good + "\n", good[:40] + " " + good[40:],
             good[:-1] + "g"]  # fmt: skip
    if ENCODING == "UTF8":
        texts += [good[:-1] + "٣", good[:-2] + "１２"]
    for _ in range(500):
        at = rng.randrange(len(good))
        texts.append(good[:at] + rng.choice("0123456789abcdefABCDEFgx\\ -+_\t") + good[at + rng.choice((0, 1, 1, 1)) :])
    compare_verdicts("text", texts)


def test_documents():
    """The examples of README.md print what their comments say."""
    with open(os.path.join(HERE, "..", "README.md"), encoding="utf-8") as file:
        code = "".join(re.findall(r"^```python\n(.*?)^```$", file.read(), re.M | re.S))
    settings = {"PGOPTIONS": f"-c search_path={extension_schema()}", "PGCLIENTENCODING": "UTF8"}
    environment = {**os.environ, "PYTHONPATH": CLIENT, **settings}
    got = subprocess.run([sys.executable, "-B", "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
    promised = [comment.split(":")[0] for comment in re.findall(r"^print.*  # (.*)$", code, re.M)]
    same(len(promised), 5, "the examples print five results")
    same((got.returncode, got.stdout.splitlines()), (0, promised), "the examples run")


def main():
    for test in (
        test_builds, test_questions, test_types, test_transfer, test_combinations, test_estimates, test_folds,
        test_sizes, test_counters,
        test_hostile_bytes, test_hostile_text,
    ):  # fmt: skip
        part(test, random.Random(test.__name__))
    part(test_documents)
    done()


main()
