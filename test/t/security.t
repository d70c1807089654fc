#!/usr/bin/python3 -B
"""The attacks of doc/security.md, carried out by somebody who has read doc/format.md, and the defences. The attacker
computes with test/golden/reference.py and the specification of XXH64. Expected effects come from theory.

Needs pgcrypto. Everything is rolled back. Random values come from fixed seeds; their bounds are 4 standard deviations.
"""

import functools
import hashlib
import hmac
import math
import random
import statistics
import struct
import sys
import uuid
from dataclasses import replace

from session import Session, hex_of, psycopg, quote, value
from tap import done, ok, part, same
import reference as ref

U64 = ref.U64
SEED = 0x5EC0DE  # known to the attacker, as he can read the filter
RATE = 0.01
KEY = hashlib.sha256(b"not known to the attacker").digest()
SIGMAS = 4


def between(low, got, high, name):
    ok(low <= got <= high, f"{name}: {got:.6g}", f"expected {low!r} .. {high!r}, got {got!r}")


def near(got, mean, sigma, name):
    between(mean - SIGMAS * sigma, got, mean + SIGMAS * sigma, f"{name}, expected {mean:.6g} +- {sigma:.2g}")


def near_binomial(hits, tries, rate, name):
    near(hits, tries * rate, math.sqrt(tries * rate * (1 - rate)), name)


class Rolled(Session):
    """A session in a schema of its own and one transaction, which is rolled back."""

    settings = """
        SET client_min_messages = warning;
        SET extra_float_digits = 3;
        BEGIN;
        CREATE SCHEMA bloomtype_security;
        SELECT set_config('search_path', 'bloomtype_security, ' || extnamespace::regnamespace, true)
        FROM pg_extension WHERE extname = 'bloomtype';
        """


def run(script):
    """The lines of a script, which is then rolled back."""
    with Rolled("CREATE EXTENSION IF NOT EXISTS pgcrypto" if "hmac(" in script else "") as session:
        return session.ask(script)


def ask(*expressions, setup=""):
    """The values of these SQL expressions."""
    return run(setup + "".join(f"SELECT {expression};\n" for expression in expressions))


def rows(sql_type, values):
    """A table v with these values as column x."""
    texts = ("\\\\x" + value.hex() if isinstance(value, bytes) else str(value) for value in values)
    return "unnest(" + quote("{" + ",".join(texts) + "}") + f"::{sql_type}[]) AS v (x)"


def create(f):
    """SQL for an empty filter with the parameters of that one, by its bytes."""
    return value(ref.Filter(f.layout, f.k, f.p, f.seed, f.m))


def counter_value(c):
    return quote(hex_of(c)) + "::bloomcounter"


def decoded(answer):
    return ref.decode(bytes.fromhex(answer[2:]))


def keyed(text):
    """The recipe's element."""
    return ref.element("bytea", hmac.new(KEY, text.encode(), hashlib.sha256).digest())


SQL_KEYED = f"hmac(convert_to(x, 'UTF8'), {quote(chr(92) + 'x' + KEY.hex())}, 'sha256')"


# XXH64, from its specification

P1, P2, P3, P4, P5 = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
)  # fmt: skip


def inverse(odd):
    return pow(odd, -1, 1 << 64)


inverse_P2 = inverse(P2)


def rotate(x, left):
    return (x << left | x >> (64 - left)) & U64


def step(word):
    """What becomes of 8 bytes of input before they meet the rest: the seed has no part in it."""
    return rotate(word * P2 & U64, 31) * P1 & U64


def unstep(word):
    return rotate(word * inverse(P1) & U64, 33) * inverse(P2) & U64


def unshift(x, right):
    """Inverse of x ^= x >> right."""
    shifted = x
    for _ in range(64 // right):
        shifted = x ^ shifted >> right
    return shifted


def element_of(h, seed):
    """The 8 bytes that have this hash."""
    h = unshift(h, 32) * inverse(P3) & U64
    h = unshift(h, 29) * inverse(P2) & U64
    h = rotate((unshift(h, 33) - P4) * inverse(P1) & U64, 37)
    return struct.pack("<Q", unstep(h ^ (seed + P5 + 8) & U64))


def number_of(h, seed):
    return struct.unpack("<q", element_of(h, seed))[0]


def partner(data):
    """Other 16 bytes with the same hash, under every seed. The first word flips a bit that rotation
    and multiplication by an odd number carry to the top, where the second word flips it back."""
    first, second = struct.unpack("<QQ", data)
    return struct.pack("<QQ", unstep(step(first) ^ 1 << 36), unstep(step(second) ^ 1 << 63))


def relative(data, a):
    """Other 64 bytes with the same hash, under all but a share a / 2^33 of the seeds: a is added to
    one of the four sums, unless it carries beyond bit 32, and taken off again 32 bytes later."""
    words = list(struct.unpack("<8Q", data))
    words[0] = (words[0] + a * inverse_P2) & U64
    words[4] = (words[4] - (a << 31) * P1 * inverse_P2) & U64
    return struct.pack("<8Q", *words)


def is_printable(data):
    return all(0x20 <= byte < 0x7F for byte in data)


def text_pair(source):
    """Two texts of 64 printable characters that are relatives."""
    base = bytes(source.choices(range(0x20, 0x7F), k=64))
    for a in range(1, 1 << 22):
        if is_printable(struct.pack("<Q", (struct.unpack_from("<Q", base)[0] + a * inverse_P2) & U64)):
            other = relative(base, a)
            if is_printable(other):
                return base.decode(), other.decode()
    sys.exit("no such pair of texts")


def test_the_hash_can_be_inverted():
    source = random.Random(1)
    numbers = sorted(source.randrange(-(1 << 63), 1 << 63) for _ in range(500))
    words = sorted("".join(source.choices("abcdefghijkl", k=8)) for _ in range(500))
    seed = source.getrandbits(63)
    empty = f"bloom_create(100000, 0.01, 'blocked', {seed})"
    stored = ask(
        f"bloom_agg(x, {empty}) FROM {rows('bigint', numbers)}", f"bloom_agg(x, {empty}) FROM {rows('text', words)}"
    )
    sparse = [decoded(answer) for answer in stored]
    read = [[element_of(h, f.seed) for h in f.hashes] for f in sparse]
    same(sorted(struct.unpack("<q", e)[0] for e in read[0]), numbers, "a sparse filter of integers lists them")
    same(sorted(e.decode() for e in read[1]), words, "a sparse filter of texts of 8 bytes lists them")


def test_collisions_under_every_seed():
    source = random.Random(2)
    given = [uuid.UUID(int=source.getrandbits(128)) for _ in range(200)]
    others = [uuid.UUID(bytes=partner(u.bytes)) for u in given]
    ok(not set(given) & set(others), "every uuid has a partner")
    seeds = [source.getrandbits(64) - (1 << 63) for _ in range(200)]
    pairs = ", ".join(f"({seed}, uuid '{u}', uuid '{v}')" for seed, u, v in zip(seeds, given, others))
    same(
        ask(f"count(*) FROM (VALUES {pairs}) AS v (s, u, p)"
            " WHERE bloom_add(bloom_create(1000000, 1e-9, seed => s), u) @> p"),
        ["200"],
        "200 uuids with 200 seeds: each filter seems to hold the other one of the pair",
    )  # fmt: skip
    one, other = text_pair(source)
    ok(one != other, f"{one} is not {other}")
    add = f"bloom_add(bloom_create(1000000, 1e-9, seed => s), {quote(one)} || suffix) @> ({quote(other)} || suffix)"
    same(
        ask(f"count(*) FROM generate_series(1, 100) AS s, (VALUES (''), (' of Troy')) AS v (suffix) WHERE {add}"),
        ["200"],
        "two texts of 64 characters with 100 seeds, alone and before a common suffix",
    )
    base = source.randbytes(64)
    family = [relative(base, a) for a in range(1000)]
    same(len(set(family)), 1000, "1000 different strings of 64 bytes")
    same(
        ask(*(f"# bloom_agg(x, bloom_create(100000, 0.01, seed => {s})) FROM {rows('bytea', family)}"
              for s in seeds[:20])),
        ["1"] * 20,
        "1000 strings of 64 bytes are one element under each of 20 seeds",
    )  # fmt: skip
    same(
        ask(*(f"# bloom_agg({SQL_KEYED}, bloom_create(100000, 0.01)) FROM {table}"
              for table in (f"(VALUES ({quote(one)}), ({quote(other)})) AS v (x)",
                            rows("text", [s.hex() for s in family])))),
        ["2", "1000"],
        "under a secret key the same values are as many elements as values",
    )  # fmt: skip


# The attacker chooses elements

def bits_of(f, h):
    return set(ref.bit_numbers(h, f.layout, f.k, f.m))


@functools.lru_cache(None)
def chosen_for_classic(items):
    """Texts up to the filter's capacity, each of which sets k new bits; and the number of hashes computed to find
    them."""
    f = ref.create("classic", RATE, items=items, seed=SEED)
    taken = bytearray(f.m)
    texts, tries = [], 0
    while len(texts) < items:
        tries += 1
        text = f"visitor{tries}"
        fresh = []
        for b in ref.bit_numbers(ref.hash_of(text.encode(), SEED), "classic", f.k, f.m):
            if taken[b]:
                break
            taken[b] = 1
            fresh.append(b)
        if len(fresh) == f.k:
            texts.append(text)
        else:
            for b in fresh:
                taken[b] = 0
    return f, texts, tries


def fill_block(f, block, bits, source, limit):
    """At most limit integers that all fall into that block and fill it up. Inversion of the
    hash gives an integer for each hash; of 200 hashes in the block the one with most new bits is taken.
    The set bits holds the bits that are set, and receives the new ones."""
    nblocks = f.m // ref.BLOCK
    low = -(-(block << 32) // nblocks)
    high = -(-(block + 1 << 32) // nblocks)
    numbers = []
    full = len(bits) + ref.BLOCK - sum(1 for b in bits if b // ref.BLOCK == block)
    while len(bits) < full and len(numbers) < limit:
        hashes = [source.randrange(low, high) << 32 | source.getrandbits(32) for _ in range(200)]
        best = max(hashes, key=lambda h: len(bits_of(f, h) - bits))
        bits |= bits_of(f, best)
        numbers.append(number_of(best, f.seed))
    return numbers


@functools.lru_cache(None)
def chosen_for_blocked(items):
    """As many integers as the filter has room for, which fill one block after the other."""
    f = ref.create("blocked", RATE, items=items, seed=SEED)
    source = random.Random(3)
    numbers, bits, block = [], set(), 0
    while len(numbers) < items:
        numbers += fill_block(f, block, bits, source, items - len(numbers))
        block += 1
    return f, numbers


def expected_tries(f, items):
    """Mean and standard deviation of the number of hashes to find that many elements with only new bits."""
    mean = variance = 0.0
    for i in range(items):
        q = math.prod(1 - (i * f.k + j) / f.m for j in range(f.k))
        mean += 1 / q
        variance += (1 - q) / q**2
    return mean, math.sqrt(variance)


def attacked(f, sql_type, values, expression="x"):
    """What the server says of the filter with those values: its bytes, rate, alarm, and how many of
    100,000 values that it does not hold it seems to hold."""
    element_class = "bigint" if sql_type == "bigint" else "text"
    probe = "-x::bigint" if element_class == "bigint" else "'stranger' || x"
    if expression != "x":
        probe = expression.replace("x,", f"({probe})::text,", 1)
    return ask(
        "f FROM filter",
        "bloom_fpp(f) FROM filter",
        "overfull FROM filter, bloom_info(f)",
        "round(# f) FROM filter",
        f"count(*) FROM filter, generate_series(1, 100000) AS x WHERE f @> ({probe})",
        setup=f"CREATE TEMP TABLE filter AS SELECT bloom_agg({expression}, {create(f)}) AS f"
        f" FROM {rows(sql_type, values)};\n",
    )  # fmt: skip


def alarms(f, sql_type, values, counts):
    """Is the filter overfull with the first n values, for each n in counts?"""
    return ask(*(
        f"overfull FROM (SELECT bloom_agg(x, {create(f)}) AS f FROM {rows(sql_type, values[:n])}) AS s, bloom_info(f)"
        for n in counts
    ))  # fmt: skip


def test_pollution_of_a_classic_filter():
    items = 500
    f, texts, tries = chosen_for_classic(items)
    same(len(set(texts)), items, "no text twice, as many as the filter is for")
    mean, sigma = expected_tries(f, items)
    near(tries, mean, sigma, "classic: hashes computed to choose 500 texts")
    data, rate, overfull, cardinality, hits = attacked(f, "text", texts)
    same(decoded(data), f.add([ref.element("text", text) for text in texts]), "classic: as foreseen, byte by byte")
    same(ref.popcount(decoded(data).bits), items * f.k, "classic: every insert has set k new bits")
    worst = (items * f.k / f.m) ** f.k
    ok(math.isclose(float(rate), worst, rel_tol=1e-9), f"classic: bloom_fpp is {worst:.4f}", rate)
    near_binomial(int(hits), 100000, worst, "classic: of 100,000 others it seems to hold")
    between(10, worst / RATE, 12, "classic: times the rate asked for")
    same(overfull, "t", "classic: overfull shows it")
    alarm = math.floor((1.5 * f.p) ** (1 / f.k) * f.m / f.k) + 1
    between(0.7, alarm / items, 0.8, "classic: share of the capacity at which it should")
    same(alarms(f, "text", texts, (alarm - 1, alarm)), ["f", "t"], "classic: and does")
    expected = math.log1p(-items * f.k / f.m) / (f.k * math.log1p(-1 / f.m))
    same(int(cardinality), round(expected), "classic: so does the cardinality")
    between(1.6, expected / items, 1.8, "classic: times as many elements as were inserted")


def worst_blocked(f, items):
    """The worst rate that items elements can cause. The rate is the mean of a convex function of the bits set in each
    block, so it is greatest if as many as possible are full and one has the rest."""
    full, rest = divmod(items * f.k, ref.BLOCK)
    return (full + (rest / ref.BLOCK) ** f.k) / (f.m // ref.BLOCK)


def test_pollution_of_a_blocked_filter():
    items = 1000
    f, numbers = chosen_for_blocked(items)
    same(len(set(numbers)), items, "no number twice, as many as the filter is for")
    data, rate, overfull, cardinality, hits = attacked(f, "bigint", numbers)
    polluted = f.add([ref.element("bigint", number) for number in numbers])
    same(decoded(data), polluted, "blocked: as foreseen, byte by byte")
    ok(math.isclose(float(rate), polluted.current_rate(), rel_tol=1e-9), "blocked: bloom_fpp is the rate of the bits")
    worst = worst_blocked(f, items)
    between(0.75 * worst, float(rate), worst, f"blocked: at most theory's worst, {worst:.4f}, and near it")
    near_binomial(int(hits), 100000, polluted.current_rate(), "blocked: of 100,000 others it seems to hold")
    between(40, float(rate) / RATE, 60, "blocked: times the rate asked for")
    same(overfull, "t", "blocked: overfull shows it")
    dense = f.m // 64
    between(0.15, dense / items, 0.17, "blocked: share of the capacity at which it becomes dense")
    same(alarms(f, "bigint", numbers, (dense - 1, dense)), ["f", "t"], "blocked: overfull shows it from there on")
    between(1.0, int(cardinality) / items, 1.2, "blocked: cardinality hardly shows it")


FULL_BLOCKS = """
WITH s AS MATERIALIZED (SELECT f::bytea AS b FROM filter)
SELECT count(*) FROM s, generate_series(0, (length(b) - 28) / 64 - 1) AS i
WHERE bit_count(substr(b, 29 + 64 * i, 64)) > 460;
"""


def test_pollution_of_one_block():
    """The whole is watched, the part is not."""
    items, block = 100000, 777
    f = ref.create("blocked", RATE, items=items, seed=SEED)
    nblocks = f.m // ref.BLOCK
    honest = [ref.element("bigint", number) for number in range(1, 90001)]
    before = f.add(honest)
    own = before.blocks()[block]
    bits = {block * ref.BLOCK + i for i in range(ref.BLOCK) if own[i >> 3] >> (i & 7) & 1}
    least = -(-(ref.BLOCK - len(bits)) // f.k)
    source = random.Random(4)
    numbers = fill_block(f, block, bits, source, 1000)
    between(least, len(numbers), least + 30, f"one block: inserts to fill it, at least {least}")
    low = -(-(block << 32) // nblocks)
    victims = [number_of(low << 32 | source.getrandbits(52), SEED) for _ in range(1000)]
    ask_victims = f"SELECT count(*) FROM filter, {rows('bigint', victims)} WHERE f @> x;\n"
    answers = run(
        f"CREATE TEMP TABLE filter AS SELECT bloom_agg(x::bigint, {create(f)}) AS f"
        f" FROM generate_series(1, 90000) AS x;\n{ask_victims}" + FULL_BLOCKS
        + f"UPDATE filter SET f = (SELECT bloom_agg(x, f) FROM {rows('bigint', numbers)});\n"
        + "SELECT overfull FROM filter, bloom_info(f);\nSELECT bloom_fpp(f) FROM filter;\n" + FULL_BLOCKS
        + ask_victims
    )  # fmt: skip
    hits_before, full_before, overfull, rate, full, hits = answers
    own_rate = (ref.popcount(own) / ref.BLOCK) ** f.k
    near_binomial(int(hits_before), 1000, own_rate, "one block: of 1000 values in it the filter seemed to hold")
    same(full_before, "0", "one block: none was nearly full")
    same(hits, "1000", "one block: now it seems to hold all of them")
    same(overfull, "f", "one block: overfull does not show it")
    expected = before.current_rate() + (1 - own_rate) / nblocks
    ok(math.isclose(float(rate), expected, rel_tol=1e-9), f"one block: 1 / {nblocks} more is the rate", rate, expected)
    same(full, "1", "one block: the count of nearly full blocks shows it")


def chance_of_more_bits(bits, throws):
    """The probabilities that 0, 1, ... throws at a block hit more than this number of different bits."""
    hit = [1.0] + [0.0] * bits
    chances = [0.0]
    for _ in range(throws):
        chances.append(chances[-1] + hit[bits] * (1 - bits / ref.BLOCK))
        for e in range(bits, 0, -1):
            hit[e] = hit[e] * e / ref.BLOCK + hit[e - 1] * (ref.BLOCK - e + 1) / ref.BLOCK
        hit[0] = 0.0
    return chances


def test_nearly_full_blocks_come_by_attack_only():
    """The mean number of blocks with more than 460 bits in the largest filter, at its capacity. The
    elements in a block have Poisson's distribution."""
    chances = chance_of_more_bits(460, 4000)
    for p in (0.5, 0.1, 0.01, 0.001, 1e-4, 1e-6, 1e-9):
        k = ref.choose_k("blocked", p)
        mean = 10000 * ref.BLOCK / ref.choose_m("blocked", p, 10000)
        weight, chance, reach = math.exp(-mean), 0.0, 4000 // k
        for j in range(1, reach):
            weight *= mean / j
            chance += weight * chances[k * j]
        blocks = (chance + weight) * (ref.MAX_BITS // ref.BLOCK)
        ok(reach > 2 * mean and blocks < 1e-9, f"p = {p}: no block has more than 460 bits by chance", blocks)


def test_when_honest_inserts_overfill():
    """overfull comes where theory has 1.5 times the rate."""
    items = 20000
    for layout in ref.LAYOUTS:
        f = ref.create(layout, RATE, items=items, seed=SEED)
        low, high = items, 2 * items
        while high - low > 1:
            middle = (low + high) // 2
            if ref.expected_rate(layout, f.k, f.m, middle) <= 1.5 * f.p:
                low = middle
            else:
                high = middle
        answers = ask(*(
            f"overfull FROM (SELECT bloom_agg(x, {create(f)}) AS f FROM generate_series(1, {n}) AS x) AS s,"
            " bloom_info(f)"
            for n in (items, round(low * 0.98), round(low * 1.02))
        ))  # fmt: skip
        same(answers, ["f", "f", "t"], f"{layout}: honestly overfull at {low / items:.2f} times its capacity")


# The attacker chooses probes

@functools.lru_cache(None)
def members():
    """A filter of 2000 texts at its capacity, as the server has it."""
    data = ask(f"bloom_agg('member' || x, {create(ref.create('blocked', RATE, items=2000, seed=SEED))})"
               " FROM generate_series(1, 2000) AS x")[0]  # fmt: skip
    return decoded(data)


@functools.lru_cache(None)
def forged(tries):
    """The texts among many that the filter seems to hold, found without the server."""
    f = members()
    candidates = (f"forged{i}" for i in range(tries))
    return [text for text in candidates if f.contains_hash(ref.hash_of(text.encode(), SEED))]


def test_forging():
    tries = 200000
    f, texts = members(), forged(tries)
    near_binomial(len(texts), tries, f.current_rate(), "forged values in 200,000 hashes")
    near(tries / len(texts), 1 / f.current_rate(), math.sqrt(1 / tries / f.current_rate()) / f.current_rate(),
         "hashes for each")  # fmt: skip
    between(0.8 / RATE, 1 / f.current_rate(), 1.25 / RATE, "which is about one over the rate asked for")
    hits = ask(f"count(*) FROM {rows('text', texts)} WHERE {value(f)} @> x")[0]
    same(int(hits), len(texts), "the server takes all of them")


def test_dictionary():
    hits = ask(f"count(*) FROM generate_series(-100000, 2000) AS x WHERE {value(members())} @> ('member' || x)")[0]
    near_binomial(int(hits) - 2000, 100001, members().current_rate(), "a dictionary gives all members, and others")
    first, second = (
        f"(SELECT bloom_agg('member' || x, bloom_create(2000, {RATE}, seed => {seed}))"
        " FROM generate_series(1, 2000) AS x)" for seed in (1, 2)
    )  # fmt: skip
    one, other, both = ask(
        f"bloom_fpp({first})",
        f"bloom_fpp({second})",
        "count(*) FROM generate_series(-1000000, 2000) AS x"
        f" WHERE {first} @> ('member' || x) AND {second} @> ('member' || x)",
    )
    near_binomial(int(both) - 2000, 1000001, float(one) * float(other), "two filters of other seeds: others in both")


def test_a_chosen_victim():
    """To have one value of the attacker's choice found, he sets its bits by others."""
    for layout in ref.LAYOUTS:
        f = ref.create(layout, RATE, items=2000, seed=SEED)
        missing, texts, tries = bits_of(f, ref.hash_of(b"victim", SEED)), [], 0
        while missing:
            tries += 1
            text = f"innocent{tries}"
            found = bits_of(f, ref.hash_of(text.encode(), SEED)) & missing
            if found:
                missing -= found
                texts.append(text)
        between(1, len(texts), f.k, f"{layout}: inserts that set all bits of a victim, at most k")
        # 1000 texts more make the filter dense.
        honest = "SELECT 'member' || x FROM generate_series(1, 1000) AS x"
        honest += f" UNION ALL SELECT x FROM {rows('text', texts)}"
        found = (
            f"f @> 'victim', overfull FROM (SELECT bloom_agg(x, {create(f)}) AS f FROM {values}) AS s, bloom_info(f)"
            for values in (f"({honest}) AS v (x)", rows("text", texts))
        )
        same(ask(*found), ["t|f", "f|f"], f"{layout}: found in a dense filter, not in a sparse one, none overfull")


# The recipe

def honest_bits(f, items, sets=40):
    """Mean and standard deviation of the bits set, and of the rate, over random sets."""
    source = random.Random(5)
    filters = [f.with_hashes(17, [source.getrandbits(64) for _ in range(items)]) for _ in range(sets)]
    rates = [g.current_rate() for g in filters]
    return statistics.mean(rates), statistics.stdev(rates) * math.sqrt(1 + 1 / sets)


def test_the_key_against_pollution():
    for (f, values), layout in ((chosen_for_classic(500)[:2], "classic"), (chosen_for_blocked(1000), "blocked")):
        texts = [str(x) for x in values]
        data, rate, overfull, cardinality, hits = attacked(f, "text", texts, SQL_KEYED)
        same(decoded(data), f.add([keyed(text) for text in texts]), f"{layout}, keyed: the bytes")
        mean, sigma = honest_bits(f, len(texts))
        near(float(rate), mean, sigma, f"{layout}, keyed: chosen values give the rate of random ones")
        near_binomial(int(hits), 100000, decoded(data).current_rate(), f"{layout}, keyed: of 100,000 others")
        same(overfull, "f", f"{layout}, keyed: not overfull")
        between(0.9, int(cardinality) / len(texts), 1.1, f"{layout}, keyed: cardinality over elements")


def test_the_key_against_forging():
    texts = forged(200000)
    f = ref.create("blocked", RATE, items=2000, seed=SEED)
    data, hits = ask(
        "f FROM filter",
        f"count(*) FROM filter, {rows('text', texts)} WHERE f @> {SQL_KEYED}",
        setup=f"CREATE TEMP TABLE filter AS SELECT bloom_agg({SQL_KEYED}, {create(f)}) AS f"
        f" FROM (SELECT 'member' || i FROM generate_series(1, 2000) AS i) AS v (x);\n",
    )
    same(decoded(data), f.add([keyed(f"member{i}") for i in range(1, 2001)]), "keyed: the bytes of the members' filter")
    near_binomial(int(hits), len(texts), decoded(data).current_rate(), "keyed: forged values are taken by chance only")
    # Whoever can read the filter, but has not the key, cannot tell members from others.
    wrong = hashlib.sha256(b"guessed").digest()
    guesses = [hmac.new(wrong, f"member{i}".encode(), hashlib.sha256).digest() for i in range(1, 2001)]
    found = sum(decoded(data).contains(ref.element("bytea", guess)) for guess in guesses)
    near_binomial(found, 2000, decoded(data).current_rate(), "keyed: with another key members are found by chance only")


# Filters from elsewhere, and rights

def test_filters_that_lie():
    ones = ref.Filter("blocked", 1, ref.single(0.99999994), 0, 512, 25, None, b"\xff" * 64)
    answers = ask(
        f"count(*) FROM generate_series(1, 1000) AS i WHERE {value(ones)} @> i::text",
        f"overfull FROM bloom_info({value(ones)})",
        f"bloom_fpp({value(ones)})",
        f"# {value(ones)}",
    )
    same(answers, ["1000", "f", "1", "Infinity"], "all ones hold everything, and need not be overfull; bloom_fpp tells")
    large = ref.Filter("blocked", 6, ref.single(0.01), 0, 1 << 31, 25, (1,))
    small = ref.Filter("blocked", 6, ref.single(0.01), 0, 512, 25, None, bytes(64))
    same(len(large.encode() + small.encode()), 128, "128 bytes of filters")
    try:
        ask(f"{value(large)} | {value(small)}")
    except psycopg.Error as problem:
        ok("of different sizes" in str(problem), "have no union of 256 MiB", problem)
    else:
        ok(False, "have no union of 256 MiB")


GUARDED = """
CREATE TABLE patients AS SELECT i AS id, 'p' || i % 50 AS name, i % 10 = 0 AS visible
    FROM generate_series(1, 10000) AS i;
ANALYZE patients;
CREATE VIEW few WITH (security_barrier) AS SELECT * FROM patients WHERE visible;
CREATE TABLE guarded AS SELECT * FROM patients;
ANALYZE guarded;
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON guarded USING (visible);
CREATE ROLE bloomtype_reader;
GRANT USAGE ON SCHEMA bloomtype_security TO bloomtype_reader;
GRANT SELECT ON few, guarded TO bloomtype_reader;
"""


def plan(query, role=""):
    with Rolled(GUARDED + role) as session:
        return session.explain(query)


def test_barriers():
    same(
        ask("count(*) FROM pg_depend AS d JOIN pg_proc AS p ON p.oid = d.objid"
            " WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e' AND p.proleakproof"
            " AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomtype')"),
        ["0"],
        "no function is leakproof",
    )  # fmt: skip
    f, c = ref.create("blocked", RATE, items=100), ref.create_counter("blocked", RATE, items=100)
    check_barriers("filter", *(value(f.add([ref.element("text", name)])) for name in ("p7", "nobody")))
    check_barriers("counter", *(counter_value(c.add(ref.element("text", name))) for name in ("p7", "nobody")))


def check_barriers(kind, common, rare):
    """A value that holds a common value of the guarded tables, and one that holds none."""
    holds, lacks = f"{common} @> name", f"{rare} @> name"
    reader = "SET LOCAL ROLE bloomtype_reader"
    for relation in ("few", "guarded"):
        nodes = plan(f"SELECT count(*) FROM {relation} WHERE {holds}", reader)
        if relation == "few":
            above = any(node["Node Type"] == "Subquery Scan" for node in nodes)
            ok(above, f"{kind}: the test stays above a security barrier view", *nodes)
        else:
            before = any(node.get("Filter", "").startswith("(visible AND ") for node in nodes)
            ok(before, f"{kind}: the policy comes before the test", *nodes)
        estimates = {plan(f"SELECT * FROM {relation} WHERE {test}", reader)[0]["Plan Rows"] for test in (holds, lacks)}
        same(len(estimates), 1, f"{kind}, {relation}: estimates tell nothing of rows that may not be read")
    estimates = {plan(f"SELECT * FROM patients WHERE {test}")[0]["Plan Rows"] for test in (holds, lacks)}
    same(len(estimates), 2, f"{kind}: to whom may read them they do")


def test_what_plans_show():
    f = ref.create("blocked", RATE, items=100).add([ref.element("bigint", 7)])
    stored = f"CREATE TABLE stored AS SELECT {value(f)} AS f; CREATE TABLE numbers AS SELECT 7 AS x;\n"
    prepared = "PREPARE ask (bloomfilter) AS SELECT FROM numbers WHERE $1 @> x;\nSET LOCAL plan_cache_mode = {};\n"
    for name, setup, query, shown in (
        ("a literal", "", f"SELECT FROM numbers WHERE {value(f)} @> x", True),
        ("a parameter, custom plan", prepared.format("force_custom_plan"), f"EXECUTE ask ({value(f)})", True),
        ("a parameter, generic plan", prepared.format("force_generic_plan"), f"EXECUTE ask ({value(f)})", False),
        ("a scalar subquery", "", "SELECT FROM numbers WHERE (SELECT f FROM stored) @> x", False),
    ):
        with Rolled(stored + setup) as session:
            nodes = session.explain(query, ", ANALYZE")
        same(f.encode().hex() in str(nodes), shown, f"{name} is {'' if shown else 'not '}printed in a plan")


# Counters

def decoded_counter(answer):
    return ref.decode_counter(bytes.fromhex(answer[2:]))


def once(numbers):
    """Elements that are counted once."""
    return [(ref.element("bigint", number), 1) for number in numbers]


def hash_of_number(number):
    return ref.hash_of(ref.element("bigint", number)[1], SEED)


def within_block(block, nblocks, source):
    """Random hashes that fall into a block."""
    low, high = (-(-(b << 32) // nblocks) for b in (block, block + 1))
    return lambda: source.randrange(low, high) << 32 | source.getrandbits(32)


def saturating(c, positions, draw, tries):
    """Integers that, each added once, bring all these positions to the limit: of some hashes the one that meets most
    positions that are still below it."""
    missing = {position: c.limit - c.numbers[position] for position in positions}
    numbers = []
    while missing:
        best = max((draw() for _ in range(tries)), key=lambda h: len(c.positions(h) & missing.keys()))
        met = c.positions(best) & missing.keys()
        if met:
            numbers.append(number_of(best, c.seed))
        for position in met:
            missing[position] -= 1
            if not missing[position]:
                del missing[position]
    return numbers


def counted(c, numbers):
    """SQL for a counter with the parameters of c that holds these integers once each."""
    empty = ref.Counter(c.layout, c.k, c.p, c.seed, c.m, width=c.width)
    return f"(SELECT bloom_counter_agg(x, {counter_value(empty)}) FROM {rows('bigint', numbers)})"


def test_an_element_made_irremovable():
    """The attacker adds other elements, each once, and has all of them removed again."""
    victim = -1
    for layout in ref.LAYOUTS:
        c = ref.create_counter(layout, RATE, items=2000, seed=SEED).count(once(range(1, 1801)))
        source, h = random.Random(6), hash_of_number(victim)
        nblocks = c.m // ref.BLOCK
        draw, tries = within_block((h >> 32) * nblocks >> 32, nblocks, source), 200
        if layout == "classic":
            draw, tries = functools.partial(source.getrandbits, 64), 2000
        added = saturating(c, c.positions(h), draw, tries)
        between(c.limit, len(added), c.limit * len(c.positions(h)),
                f"{layout}: inserts that saturate the positions of an element, 15 to 15 k")  # fmt: skip
        after = c.count(once(added))
        freed = after.without([(hash_of_number(number), 1) for number in added])
        other = ref.Counter(layout, c.k, c.p, SEED + 1, c.m)
        answers = ask(
            "c FROM counter",
            f"bloom_count(c, {victim}::bigint), saturated, overfull FROM counter, bloom_info(c)",
            "freed FROM counter",
            f"bloom_count(freed, {victim}::bigint), saturated FROM counter, bloom_info(freed)",
            f"bloom_remove(bloom_add(freed, {victim}::bigint), {victim}::bigint) @> {victim}::bigint FROM counter",
            f"saturated FROM bloom_info((SELECT bloom_counter_agg(x, {counter_value(other)})"
            f" FROM (SELECT generate_series(1::bigint, 1800) UNION ALL SELECT x FROM {rows('bigint', added)})"
            " AS s (x)))",
            setup=f"""CREATE TEMP TABLE counter AS SELECT c, c - {counted(c, added)} AS freed
                FROM (SELECT {counter_value(c)} + {counted(c, added)} AS c OFFSET 0) AS s;\n""",
        )
        sticky = sum(number == c.limit for number in after.numbers)
        same(decoded_counter(answers[0]), after, f"{layout}: as foreseen, byte by byte")
        same(answers[1], f"15|{sticky}|f", f"{layout}: what was never added is counted 15 times, and not overfull")
        same(decoded_counter(answers[2]), freed, f"{layout}: the others are removed again, byte by byte")
        same(answers[3], f"15|{sticky}", f"{layout}: what is saturated stays")
        same(answers[4], "t", f"{layout}: the element cannot be removed any more")
        same(answers[5], "0", f"{layout}: under another seed the same elements saturate nothing")


def test_a_saturated_block():
    items, block = 100000, 777
    c = ref.create_counter("blocked", RATE, items=items, seed=SEED).count(once(range(1, 90001)))
    nblocks = c.m // ref.BLOCK
    own = range(block * ref.BLOCK, (block + 1) * ref.BLOCK)
    draw = within_block(block, nblocks, random.Random(7))
    added = saturating(c, own, draw, 100)
    least = -(-sum(c.limit - c.numbers[position] for position in own) // c.k)
    between(least, len(added), 1.2 * least, f"inserts that saturate a block, at least {least}")
    victims = rows("bigint", [number_of(draw(), SEED) for _ in range(1000)])
    answers = run(
        f"CREATE TEMP TABLE counter AS SELECT {counter_value(c)} + {counted(c, added)} AS c;\n"
        "SELECT saturated, full_blocks, overfull FROM counter, bloom_info(c);\n"
        f"SELECT count(*) FROM counter, {victims} WHERE bloom_count(c, x) = 15;\n"
        f"UPDATE counter SET c = c - {counted(c, added)};\n"
        f"UPDATE counter SET c = c - {counted(c, range(1, 90001))};\n"
        "SELECT saturated, positions_set FROM counter, bloom_info(c);\n"
        f"SELECT count(*) FROM counter, {victims} WHERE c @> x;\n"
    )  # fmt: skip
    same(answers[0], "512|1|f", "a saturated block: saturated and full_blocks show it, overfull does not")
    same(answers[1], "1000", "all of 1000 elements of that block seem to be there 15 times")
    same(answers[2], "512|512", "when all elements have been removed, that block stays")
    same(answers[3], "1000", "and still seems to hold all of its elements")


def test_nothing_saturates_by_chance():
    """The mean number of saturated positions in the largest counter, at its capacity, with distinct elements. The
    number at a position has Poisson's distribution, with many blocks."""
    for p in (0.5, 0.1, 0.01, 0.001, 1e-4, 1e-6, 1e-9):
        for layout in ref.LAYOUTS:
            k, m = ref.choose_k(layout, p), ref.choose_m(layout, p, 10000)
            B, _ = ref.geometry(layout, m)
            mean = 10000 / (m / B) * -math.expm1(k * math.log1p(-1 / B))
            chance = sum(math.exp(i * math.log(mean) - mean - math.lgamma(i + 1)) for i in range(15, 60))
            ok(chance * 2**29 < 1e-5, f"{layout}, p = {p}: no position is at 15 by chance", chance * 2**29)


def test_removal_of_what_was_never_added():
    """False positives can be removed. Then the counter no longer finds elements that are there."""
    c = ref.create_counter("blocked", RATE, items=2000, seed=SEED).count(once(range(1, 2001)))
    numbers, removed, asked, candidate = list(c.numbers), [], 0, 1000000
    while len(removed) < 20:
        asked, candidate = asked + 1, candidate + 1
        positions = c.positions(hash_of_number(candidate))
        if all(numbers[position] for position in positions):
            removed.append(candidate)
            for position in positions:
                numbers[position] -= 1
    rate = c.current_rate()
    near(asked, 20 / rate, math.sqrt(20) / rate, "questions until 20 false positives are found")
    after = replace(c, numbers=tuple(numbers))
    lost = [n for n in range(1, 2001) if not all(numbers[position] for position in c.positions(hash_of_number(n)))]
    between(2 * len(removed), len(lost), c.k * len(removed), "elements that are lost by their removal, at most k each")
    answers = run(
        f"CREATE TEMP TABLE counter AS SELECT {counter_value(c)} AS c;\n"
        + "".join(f"UPDATE counter SET c = bloom_remove(c, {number}::bigint);\n" for number in removed)
        + "SELECT c FROM counter;\n"
        "SELECT count(*) FROM counter, generate_series(1::bigint, 2000) AS x WHERE NOT c @> x;\n"
    )  # fmt: skip
    same(decoded_counter(answers[0]), after, "as foreseen, byte by byte")
    same(answers[1], str(len(lost)), "the server does not find them either")


def test_a_member_hidden():
    """A false positive that shares a position of a chosen member, at which there is a 1."""
    c = ref.create_counter("blocked", RATE, items=2000, seed=SEED).count(once(range(1, 2001)))
    h = hash_of_number(7)
    single = {position for position in c.positions(h) if c.numbers[position] == 1}
    nblocks = c.m // ref.BLOCK
    draw, tries = within_block((h >> 32) * nblocks >> 32, nblocks, random.Random(8)), 1
    while not (c.read_hash(other := draw()) and c.positions(other) & single):
        tries += 1
    between(1, tries, 100000, "hashes until one hides a chosen member")
    number = number_of(other, SEED)
    answer = ask(f"c @> 7::bigint, bloom_remove(c, {number}::bigint) @> 7::bigint"
                 f" FROM (SELECT {counter_value(c)} AS c OFFSET 0) AS s")  # fmt: skip
    same(answer, ["t|f"], "one removal hides it")


def failure(statement, setup=""):
    """The SQLSTATE of a statement in a transaction that is rolled back."""
    with Rolled(setup) as session:
        return session.attempt(statement)[1]


def test_counters_of_clients():
    c = ref.create_counter("blocked", RATE, items=2000, seed=SEED).count(once(range(1, 2001)))
    ours = counter_value(c)
    answer = ask(f"positions_set FROM bloom_info({ours} - {ours})")
    same(answer, ["0"], "whoever can read a counter can subtract all that it holds")
    stranger = next(n for n in range(3000, 4000) if not c.read_hash(hash_of_number(n)))
    same(failure(f"SELECT {ours} - {counted(c, [stranger])}"), "22023", "what it provably lacks is refused")
    full = counter_value(replace(c, numbers=(15,) * c.m))
    listed = counter_value(replace(c, numbers=None, listed=((hash_of_number(7), 15),)))
    poisoned = f"bloom_remove({ours} + {listed}, 7::bigint)"
    answers = ask(
        f"saturated = positions FROM bloom_info({ours} + {full})",
        f"count(*) FROM generate_series(3001::bigint, 4000) AS x WHERE (SELECT {full} - {ours}) @> x",
        f"{poisoned} @> 7::bigint, bloom_count({poisoned}, 7::bigint)",
        f"length({listed}::bytea), saturated IS NULL FROM bloom_info({listed})",
        *(f"# bloom_at_least({counter}, 15) = 0" for counter in (ours, full, listed)),
    )
    same(answers[0], "t", "a counter of numbers at the limit, added, saturates all")
    same(answers[1], "1000", "nothing can be subtracted from it")
    same(answers[2], "t|15", "one element at the limit, added, can never be removed")
    same(answers[3], "38|t", "it takes 38 bytes, and bloom_info has no number of saturated positions for it")
    same(answers[4:], ["t", "f", "f"], "bloom_at_least(c, 15) shows each of them")
    beyond = replace(c, numbers=None, listed=((hash_of_number(7), 16),))
    same(failure(f"SELECT {counter_value(beyond)}"), "22P03", "a number beyond the limit is refused")


def test_what_a_counter_tells():
    """A sparse one lists its elements with their numbers. The difference of two states has what came in between."""
    given = {number: number % 15 + 1 for number in random.Random(9).sample(range(1 << 62), 300)}
    pairs = ", ".join(f"({number}::bigint, {times})" for number, times in given.items())
    empty = f"bloom_create_counter(10000, seed => {SEED})"
    answer, found = ask(
        f"bloom_counter_agg(x, {empty}) FROM (VALUES {pairs}) AS v (x, n), generate_series(1, n)",
        "count(*) FROM (SELECT later - c AS between_them FROM (SELECT c, bloom_add(c, 777777::bigint) AS later FROM"
        f" (SELECT bloom_counter_agg(x, {empty}) AS c FROM generate_series(1::bigint, 9000) AS x) AS a OFFSET 0) AS b"
        " OFFSET 0) AS d, generate_series(700001::bigint, 800000) AS x WHERE between_them @> x",
    )
    told = {number_of(h, SEED): times for h, times in decoded_counter(answer).listed}
    same(told, given, "a sparse counter of integers lists them, and how often each was added")
    same(found, "1", "of 100,000 candidates only the added one is in the difference of two states")


COUNTED = """
CREATE TABLE counted AS SELECT bloom_counter_agg(i, 100) AS c FROM generate_series(1, 50) AS i;
CREATE ROLE bloomtype_clerk;
GRANT USAGE ON SCHEMA bloomtype_security TO bloomtype_clerk;
{}
SET LOCAL ROLE bloomtype_clerk;
"""


def test_rights_over_counters():
    reading = ["SELECT c FROM counted", "SELECT c @> 7 FROM counted", "SELECT bloom_count(c, 7) FROM counted",
               "SELECT bloom_total(c) FROM counted", "SELECT # bloom_at_least(c, 2) FROM counted",
               "SELECT bloom_sum_agg(c) FROM counted", "SELECT bloom_info(c) FROM counted"]  # fmt: skip
    changing = ["UPDATE counted SET c = bloom_add(c, 7)", "UPDATE counted SET c = bloom_remove(c, 7)",
                "UPDATE counted SET c = c - c"]  # fmt: skip
    replacing = "UPDATE counted SET c = bloom_create_counter(100)"
    for grant, statements, state in (
        ("", reading + changing + [replacing], "42501"),
        ("GRANT SELECT ON counted TO bloomtype_clerk;", reading, "00000"),
        ("GRANT SELECT ON counted TO bloomtype_clerk;", changing + [replacing], "42501"),
        ("GRANT UPDATE ON counted TO bloomtype_clerk;", reading + changing, "42501"),
        ("GRANT UPDATE ON counted TO bloomtype_clerk;", [replacing], "00000"),
    ):
        got = {statement: failure(statement, COUNTED.format(grant)) for statement in statements}
        same(got, dict.fromkeys(statements, state), f"{grant or 'no privilege'}: {state} from {len(got)} statements")


for test in (
    test_the_hash_can_be_inverted,
    test_collisions_under_every_seed,
    test_pollution_of_a_classic_filter,
    test_pollution_of_a_blocked_filter,
    test_pollution_of_one_block,
    test_nearly_full_blocks_come_by_attack_only,
    test_when_honest_inserts_overfill,
    test_forging,
    test_dictionary,
    test_a_chosen_victim,
    test_the_key_against_pollution,
    test_the_key_against_forging,
    test_filters_that_lie,
    test_barriers,
    test_what_plans_show,
    test_an_element_made_irremovable,
    test_a_saturated_block,
    test_nothing_saturates_by_chance,
    test_removal_of_what_was_never_added,
    test_a_member_hidden,
    test_counters_of_clients,
    test_what_a_counter_tells,
    test_rights_over_counters,
):
    part(test)
done()
