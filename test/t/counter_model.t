#!/usr/bin/python3 -B
"""Counters against a model. A million random operations on several counters are played in the server. Each read is
compared with a multiset, which no counter may fall below, and with the numbers at each position, as counters.py keeps
them. Then the laws of the operators, for all pairs of very different counters.
"""

import hashlib
import random
import time
from dataclasses import dataclass, replace

import counters
from counters import OPERATIONS, Error, hash_of
from session import Session, ask, each, quote, run
from tap import note, ok, same
import reference as ref

Session.settings = "SET client_min_messages = error; SET jit = off;"

ADD, REMOVE, RAISE, DECAY, CLEAR, REFUSE, DIGEST, READ = range(8)
COMBINE = {"+": 10, "-": 11, "|": 12, "&": 13}
REFUSE_DIFFERENCE = 14

# Plays operations on four counters. It returns what the element of each operation reads after it, -1 for an operation
# that should have been refused, and the digests asked for.
PLAYED = f"""
CREATE FUNCTION played(start bloomcounter, codes int[], targets int[], others int[], xs int[], ts int[],
    OUT reads int[], OUT digests text[], OUT c bloomcounter[]) LANGUAGE plpgsql AS $$
DECLARE
    code int; i int; x int; before bytea; unused bloomcounter;
BEGIN
    c := ARRAY[start, start, start, start];
    FOR n IN 1 .. cardinality(codes) LOOP
        code := codes[n]; i := targets[n]; x := xs[n];
        IF code = {ADD} THEN c[i] := bloom_add(c[i], x, ts[n]);
        ELSIF code = {REMOVE} THEN c[i] := bloom_remove(c[i], x, ts[n]);
        ELSIF code = {RAISE} THEN c[i] := bloom_raise(c[i], x, ts[n]);
        ELSIF code = {READ} THEN NULL;
        ELSIF code = {DECAY} THEN c[i] := bloom_decay(c[i], ts[n]);
        ELSIF code = {COMBINE["+"]} THEN c[i] := c[i] + c[others[n]];
        ELSIF code = {COMBINE["-"]} THEN c[i] := c[i] - c[others[n]];
        ELSIF code = {COMBINE["|"]} THEN c[i] := c[i] | c[others[n]];
        ELSIF code = {COMBINE["&"]} THEN c[i] := c[i] & c[others[n]];
        ELSIF code = {CLEAR} THEN c[i] := start;
        ELSIF code = {DIGEST} THEN digests[n] := encode(sha256(c[i]::bytea), 'hex');
        ELSE
            before := c[i]::bytea;
            BEGIN
                IF code = {REFUSE} THEN unused := bloom_remove(c[i], x, ts[n]);
                ELSE unused := c[i] - c[others[n]];
                END IF;
                reads[n] := -1;
                CONTINUE;
            EXCEPTION WHEN invalid_parameter_value THEN
                IF c[i]::bytea <> before THEN RAISE 'a refused operation changed its argument'; END IF;
            END;
        END IF;
        reads[n] := bloom_count(c[i], x);
    END LOOP;
END $$"""


class Slot:
    """A counter, and the multiset that it counts. `exact` means that nothing in it was read from a dense counter."""

    def __init__(self, start):
        self.counter, self.truth, self.exact = start.copy(), {}, True


class Play:
    """Makes up operations, applies them to the models, and records what the server must answer."""

    def __init__(self, name, start, universe, levels, most):
        self.name, self.start, self.levels, self.most = name, start, levels, most
        self.rng = random.Random(name)
        self.universe = range(1, universe + 1)
        self.slots = [Slot(start) for _ in range(4)]
        self.operations, self.expected, self.digests = [], [], {}
        self.kinds, self.dense, self.saturated = {}, 0, 0

    def emit(self, code, i, x, times=0, other=0):
        slot = self.slots[i]
        self.operations.append((code, i + 1, other + 1, x, times))
        read, truth = slot.counter.read(hash_of(x, self.start.seed)), slot.truth.get(x, 0)
        self.expected.append((read, truth, slot.counter.sparse and slot.exact))
        self.kinds[code] = self.kinds.get(code, 0) + 1
        self.dense += not slot.counter.sparse
        self.saturated += read == self.start.limit

    def hash(self, x):
        return hash_of(x, self.start.seed)

    def number(self):
        return self.rng.randint(1, self.most) if self.rng.random() < 0.3 else 1

    def add(self, i, x, times):
        slot = self.slots[i]
        slot.counter.add(self.hash(x), times)
        slot.truth[x] = slot.truth.get(x, 0) + times
        if self.levels:  # these forget what is above the limit
            slot.truth[x] = min(slot.truth[x], self.start.limit)
        self.emit(ADD, i, x, times)

    def remove(self, i, x):
        slot = self.slots[i]
        held, h = slot.truth.get(x, 0), self.hash(x)
        if held and not slot.counter.levels and self.rng.random() < 0.95:
            times = self.rng.randint(1, min(held, self.start.limit))
            slot.counter.remove(h, times)
            slot.truth[x] = held - times
            if held == times:
                del slot.truth[x]
            self.emit(REMOVE, i, x, times)
            return
        # More than it reads, or anything from levels, is provably not there.
        read = slot.counter.read(h)
        if slot.counter.levels or read < self.start.limit:
            self.emit(REFUSE, i, x, self.rng.randint(1 if slot.counter.levels else read + 1, self.start.limit))
        else:
            self.emit(READ, i, x)

    def raise_to(self, i, x, level):
        slot = self.slots[i]
        slot.counter.raise_to(self.hash(x), level)
        slot.truth[x] = max(slot.truth.get(x, 0), level)
        self.emit(RAISE, i, x, level)

    def decay(self, i, x, by):
        slot = self.slots[i]
        slot.counter.decay(by)
        slot.truth = {y: number - by for y, number in slot.truth.items() if number > by}
        self.emit(DECAY, i, x, by)

    def clear(self, i, x):
        self.slots[i] = Slot(self.start)
        self.emit(CLEAR, i, x)

    def combine(self, i, j, sign, x):
        a, b = self.slots[i], self.slots[j]
        both = {y: (a.truth.get(y, 0), b.truth.get(y, 0)) for y in {**a.truth, **b.truth}}
        fits = all(m >= n for m, n in both.values())
        try:
            counter = OPERATIONS[sign](a.counter, b.counter)
        except Error:
            self.emit(REFUSE_DIFFERENCE, i, x, other=j)
            return
        if sign == "-" and not fits:  # taking out what was never put in would make false negatives
            self.emit(READ, i, x)
            return
        truth = {"+": sum, "|": max, "&": min, "-": lambda pair: pair[0] - pair[1]}[sign]
        clipped = self.start.limit if self.levels else 1 << 60
        a.truth = {y: min(clipped, truth(pair)) for y, pair in both.items() if truth(pair)}
        a.exact = a.exact and b.exact and (sign != "&" or a.counter.sparse and b.counter.sparse)
        a.counter = counter
        self.emit(COMBINE[sign], i, x, other=j)

    def difference(self, i):
        """Builds a small counter of elements that are in another, and subtracts it from that."""
        held = sorted(self.slots[i].truth)
        self.clear(3, 1)
        for x in self.rng.sample(held, min(len(held), self.rng.choice((1, 3, 60)))):
            times = self.rng.randint(1, min(self.slots[i].truth[x], self.start.limit))
            self.add(3, x, times)
        self.combine(i, 3, "-", self.rng.choice(held or [1]))

    def round_trip(self, i, j):
        """(a + b) - b"""
        x = self.rng.choice(self.universe)
        self.combine(i, j, "+", x)
        self.combine(i, j, "-", x)

    def step_of_counts(self, i, x, die):
        if die < 0.50:
            self.add(i, x, self.number())
        elif die < 0.985:
            self.remove(i, x)
        elif die < 0.987:
            self.clear(i, x)
        elif die < 0.991:
            self.difference(i)
        elif die < 0.996:
            self.round_trip(i, (i + 1) % 3)
        else:
            self.combine(i, self.rng.randrange(3), self.rng.choice("+-"), x)

    def step_of_levels(self, i, x, die):
        if die < 0.55:
            self.raise_to(i, x, self.rng.randint(1, self.most))
        elif die < 0.65:
            self.add(i, x, self.number())
        elif die < 0.70:
            self.remove(i, x)
        elif die < 0.95:
            self.emit(READ, i, x)
        elif die < 0.97:
            self.decay(i, x, self.rng.choice((1, 1, 2, self.most)))
        elif die < 0.985:
            self.combine(i, self.rng.randrange(3), self.rng.choice("|&+"), x)
        elif die < 0.99:
            self.clear(i, x)
        else:
            self.emit(READ, i, x)

    def digest(self, i):
        self.digests[len(self.operations)] = hashlib.sha256(self.slots[i].counter.encode()).hexdigest()
        self.emit(DIGEST, i, 1)

    def make_up(self, length):
        step = self.step_of_levels if self.levels else self.step_of_counts
        while len(self.operations) < length:
            i, x = self.rng.randrange(3), self.rng.choice(self.universe)
            step(i, x, self.rng.random())
            if self.rng.random() < 0.002:
                self.digest(i)

    def answers(self, one):
        columns = ", ".join(f"'{{{','.join(map(str, column))}}}'" for column in zip(*self.operations))
        finals = " || ".join(f"(c[{i}])::text || ' '" for i in range(1, 5))
        xs = f"FROM generate_series(1, {len(self.universe)}) AS x"
        counts = " || ".join(f"(SELECT array_agg(bloom_count(c[{i}], x) ORDER BY x) {xs})" for i in range(1, 5))
        found = " || ".join(f"(SELECT array_agg((c[{i}] @> x)::int ORDER BY x) {xs})" for i in range(1, 5))
        ((reads, digests, finals, counts, found),) = one.rows(
            f"""SELECT reads, (SELECT string_agg(d, ' ') FROM unnest(digests) AS d), {finals}, {counts}, {found}
            FROM played({quote(self.start.hex())}, {columns})"""
        )
        number_lists = ([int(n) for n in text[1:-1].split(",")] for text in (reads, counts, found))
        return *number_lists, (digests or "").split(), finals.split()

    def check(self, one):
        reads, counts, found, digests, finals = self.answers(one)
        limit = self.start.limit
        name = f"{self.name}: {len(reads)} operations"
        rows = list(zip(self.operations, self.expected, reads))
        below = [row for row in rows if row[2] < min(row[1][1], limit)]
        ok(len(reads) == len(self.operations) and not below, f"{name}: nothing reads below the truth", below[:3])
        inexact = [row for row in rows if row[1][2] and row[2] != row[1][1] and row[2] != limit]
        ok(not inexact, f"{name}: sparse counters are exact", inexact[:3])
        wrong = [(n, row) for n, row in enumerate(rows) if row[2] != row[1][0]]
        ok(not wrong, f"{name}: each reads the least of its positions", wrong[:3])
        same(digests, list(self.digests.values()), f"{name}: {len(digests)} digests of the bytes")
        same(finals, [slot.counter.hex() for slot in self.slots], f"{name}: the bytes in the end")
        truths = [slot.truth.get(x, 0) for slot in self.slots for x in self.universe]
        lost = [t for t, n, yes in zip(truths, counts, found) if n < min(t, limit) or yes < (t > 0) or yes != (n > 0)]
        ok(not lost, f"{name}: no false negative in the end", lost[:3])
        note(f"{name}, {self.dense} of them on dense counters, {self.saturated} on saturated elements, {self.kinds}")


@dataclass
class Setup:
    name: str
    start: counters.Counter
    universe: int
    levels: bool = False
    most: int = 3
    saturates: bool = False


SETUPS = (
    Setup("counts, 4 bits", counters.create(150), 250),
    Setup("counts, 4 bits, saturated", counters.create(60), 200, most=15, saturates=True),
    Setup("counts, 8 bits, crowded", counters.create(1, width=8), 80, most=9),
    Setup("counts, 16 bits, seed", counters.create(100, 0.1, 16, seed=-3), 160, most=65535, saturates=True),
    Setup("counts, classic", counters.create(100, 0.01, 4, "classic", 9), 160),
    Setup("counts, classic, 16 bits", counters.create(40, 0.001, 16, "classic"), 160),
    Setup("counts, sparse", counters.create(5000), 150, most=15, saturates=True),
    Setup("levels, 4 bits", counters.create(100), 160, True, 15, True),
    Setup("levels, 8 bits", counters.create(1, width=8), 120, True, 40),
    Setup("levels, 16 bits, classic", counters.create(20, 0.01, 16, "classic"), 120, True, 3),
    Setup("levels, sparse", counters.create(5000), 150, True, 15, True),
)
LENGTH = 92_000


def test_interleavings():
    each(PLAYED)
    total, begun = 0, time.monotonic()
    for setup in SETUPS:
        play = Play(setup.name, setup.start, setup.universe, setup.levels, setup.most)
        play.make_up(LENGTH)
        with Session() as one:
            play.check(one)
        ok(play.saturated > 0 or not setup.saturates, f"{setup.name}: some are saturated")
        sparse, dense = len(play.operations) - play.dense, play.dense
        expected = (True, False) if "sparse" in setup.name else (True, True)
        same((sparse > 0, dense > 0), expected, f"{setup.name}: both representations where it has both")
        total += len(play.operations)
    ok(total >= 1_000_000, f"{total} operations in all")
    note(f"{time.monotonic() - begun:.0f} s")


# The laws of the operators

COMBINED = """
CREATE FUNCTION combined(sign text, a bloomcounter, b bloomcounter) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    x text := a; y text := b; result text;
BEGIN
    BEGIN
        CASE sign WHEN '+' THEN result := a + b; WHEN '-' THEN result := a - b;
                  WHEN '|' THEN result := a | b; WHEN '&' THEN result := a & b; END CASE;
    EXCEPTION WHEN OTHERS THEN result := SQLSTATE;
    END;
    IF a::text <> x OR b::text <> y THEN RAISE 'an operand has changed'; END IF;
    RETURN result;
END $$"""


def built(start, numbers, raising=False):
    return counters.built(start, {hash_of(x, start.seed): number for x, number in numbers}, raising)


def pool(start):
    """Counters of one family, by name."""
    rng = random.Random(start.hex())
    most = -(-start.m * start.width // 80) - 1  # hashes of a sparse counter
    crowd = [(x, rng.randint(1, 3)) for x in range(1, 2 * most)]
    dense = built(start, crowd)
    members = {
        "empty": start,
        "one": built(start, [(1, 1)]),
        "sparse": built(start, [(x, rng.randint(1, 3)) for x in range(1, 12)]),
        "at the sparse limit": built(start, [(x, 1) for x in range(1, most + 1)]),
        "just dense": built(start, [(x, 1) for x in range(1, most + 2)]),
        "dense": dense,
        "another dense": built(start, [(-x, 2) for x, _ in crowd]),
        "dense without elements": counters.minus(dense, dense),
        "sparse, saturated": built(start, [(1, start.limit), (2, start.limit), (-3, 1)]),
        "dense, saturated": built(dense, [(1, start.limit), (900, start.limit)]),
        "sparse levels": built(start, [(x, rng.randint(1, start.limit)) for x in range(5, 15)], True),
        "other sparse levels": built(start, [(-x, rng.randint(1, start.limit)) for x in range(5, most)], True),
        "dense levels": built(start, [(x, rng.randint(1, 9)) for x in range(1, 2 * most)], True),
        "another rate": replace(built(start, [(x, 1) for x in range(1, 9)]), p=ref.single(start.p * 0.97)),
        "without a size": counters.unsized(width=start.width),
        "without a size, another rate": counters.unsized(0.1, start.width),
        "without a size, another width": counters.unsized(width=8 if start.width == 4 else 4),
        "text": replace(built(start, [(77, 2)]), element_class=25),
        "dense text": replace(dense, element_class=25),
    }
    assert members["at the sparse limit"].sparse and not members["just dense"].sparse
    return members


FAMILIES = {
    "4 bits": counters.create(100),
    "8 bits": counters.create(60, width=8),
    "16 bits, seed": counters.create(40, 0.1, 16, seed=-5),
    "4 bits, classic": counters.create(80, 0.01, 4, "classic"),
    "8 bits, classic, seed": counters.create(50, 0.001, 8, "classic", 1 << 62),
    "16 bits, classic": counters.create(20, 0.01, 16, "classic"),
    "4 bits, one block": counters.create(1),
}


def expectation(sign, a, b):
    try:
        return {OPERATIONS[sign](a, b).hex()}
    except Error as problem:
        both = sign == "-" and (a.levels or b.levels) and a.element_class != b.element_class
        return {str(problem), counters.INVALID} if both else {str(problem)}


def check_pairs(family, members, got):
    wrong = []
    for (left, right, sign), answer in got.items():
        want = expectation(sign, members[left], members[right])
        if answer not in want:
            wrong.append(f"{left} {sign} {right}: got {answer[:300]}, expected {str(want)[:300]}")
    count = len(members) ** 2 * len(OPERATIONS)
    ok(len(got) == count and not wrong, f"{family}: {count} combinations are the model's", len(wrong), *wrong[:5])
    wrong = [
        key for key, answer in got.items() if key[2] in "+|&" and answer != got[key[1], key[0], key[2]]
    ]
    ok(not wrong, f"{family}: + | & are commutative", wrong[:5])
    unsized, sized = "without a size", [name for name, c in members.items() if c.m]
    identities = [(name, sign) for name in sized for sign in "+-|" if got[name, unsized, sign] != members[name].hex()]
    ok(not identities, f"{family}: a counter without a size is the identity of + and |, and taken off changes nothing",
       identities[:5])  # fmt: skip


def check_triples(family, one):
    for sign, condition in (("+", "true"), ("|", "true"), ("&", "true")):
        lines = one.ask(f"""
            WITH these AS MATERIALIZED (SELECT * FROM pool, bloom_info(c) WHERE name !~ 'text' AND {condition})
            SELECT a.name, b.name, d.name FROM these AS a, these AS b, these AS d
            WHERE ((a.c {sign} b.c) {sign} d.c)::bytea <> (a.c {sign} (b.c {sign} d.c))::bytea""")
        ok(not lines, f"{family}: {sign} is associative", len(lines), *lines[:5])


def check_round_trips(family, members, one):
    """(a + b) - b = a where nothing saturates. It is dense if a + b is."""
    pairs = []
    for left, a in members.items():
        for right, b in members.items():
            counts = not (a.levels or b.levels) and a.m and a.p <= b.p and "text" not in left + right
            if counts and not counters.plus(a, b).saturated():
                pairs.append((left, right))
    lines = one.ask(f"""
        SELECT a.name, b.name, (a.c + b.c - b.c)::bytea = CASE
            WHEN get_byte((a.c + b.c)::bytea, 2) & 1 = 1 OR get_byte(a.c::bytea, 2) & 1 = 0 THEN a.c::bytea
            ELSE (a.c + z.c)::bytea END
        FROM pool AS a, pool AS b, pool AS z, (VALUES {", ".join(f"({quote(a)}, {quote(b)})" for a, b in pairs)})
            AS v (a, b)
        WHERE a.name = v.a AND b.name = v.b AND z.name = 'dense without elements'""")
    wrong = [line for line in lines if not line.endswith("|t")]
    ok(len(lines) == len(pairs) > 40 and not wrong, f"{family}: (a + b) - b = a for {len(pairs)} pairs", *wrong[:5])


def check_order(family, members, one):
    """The aggregates give the same bytes in any order, those of the operator."""
    all_names = [name for name in members if "text" not in name]
    sparse = [name for name in all_names if members[name].sparse]
    counts = [name for name in all_names if not members[name].levels]
    for aggregate, sign, names in (
        ("bloom_sum_agg", "+", all_names), ("bloom_sum_agg", "+", sparse), ("bloom_sum_agg", "+", counts),
        ("bloom_union_agg", "|", all_names), ("bloom_union_agg", "|", sparse), ("bloom_union_agg", "|", counts),
    ):  # fmt: skip
        want = None
        for name in names:
            want = members[name] if want is None else OPERATIONS[sign](want, members[name])
        lines = one.ask(f"""SELECT DISTINCT {aggregate}(c ORDER BY md5(name || n))::text
            FROM pool, generate_series(1, 20) AS n
            WHERE name IN ({", ".join(map(quote, names))}) GROUP BY n""")
        same(lines, [want.hex()], f"{family}: {aggregate} of {len(names)} in 20 orders")


def test_laws():
    each(COMBINED)
    for family, start in FAMILIES.items():
        members = pool(start)
        rows = ", ".join(f"({quote(name)}, {quote(c.hex())}::bloomcounter)" for name, c in members.items())
        with Session() as one:
            one.rows(f"CREATE TEMP TABLE pool AS SELECT * FROM (VALUES {rows}) AS v (name, c)")
            got = one.rows("""SELECT a.name, b.name, sign, combined(sign, a.c, b.c)
                FROM pool AS a, pool AS b, unnest('{+,-,|,&}'::text[]) AS sign""")
            check_pairs(family, members, {(a, b, sign): answer for a, b, sign, answer in got})
            check_triples(family, one)
            check_round_trips(family, members, one)
            check_order(family, members, one)


def unlike(c):
    """What differs in one parameter from c, and the SQLSTATE of a combination."""
    numbers = [(x, 1) for x in range(1, 400 if not c.sparse else 9)]
    blank = replace(c, element_class=0, numbers={}, dense=None)
    others = {
        "layout": replace(blank, layout="classic"),
        "k": replace(blank, k=c.k + 1),
        "seed": replace(blank, seed=c.seed + 1),
        "size": replace(blank, m=2 * c.m),
        "width 8": replace(blank, width=8),
        "width 16": replace(blank, width=16),
    }
    others = {name: (built(other, numbers), counters.INVALID) for name, other in others.items()}
    others["class"] = (replace(c, element_class=25), counters.MISMATCH)
    others["size, without elements"] = (replace(blank, m=2 * c.m), counters.INVALID)
    others["width, without elements"] = (replace(blank, width=8), counters.INVALID)
    return others


AGGREGATED = """
CREATE FUNCTION aggregated(aggregate text, a bloomcounter, b bloomcounter) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT %s(c) FROM (VALUES ($1), ($2)) AS v (c)', aggregate) USING a, b;
    RETURN 'taken';
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE;
END $$"""


def test_mismatches():
    each(AGGREGATED)
    start = counters.create(100)
    for kind, c in (("sparse", built(start, [(1, 1), (2, 1)])), ("dense", built(start, [(x, 1) for x in range(400)]))):
        for name, (other, sqlstate) in unlike(c).items():
            a, b = (f"{quote(x.hex())}::bloomcounter" for x in (c, other))
            calls = [f"combined({quote(sign)}, {x}, {y})" for sign in "+-|&" for x, y in ((a, b), (b, a))]
            calls += [
                f"aggregated('{aggregate}', {x}, {y})"
                for aggregate in ("bloom_sum_agg", "bloom_union_agg") for x, y in ((a, b), (b, a))
            ]  # fmt: skip
            (answers,) = ask(f"SELECT {', '.join(calls)}")
            same(answers.split("|"), [sqlstate] * len(calls), f"{kind}, another {name}: refused")


run(test_interleavings, test_laws, test_mismatches)
