#!/usr/bin/python3 -B
"""Random interleavings of updates, rollbacks and probes: a call site never takes one filter for another.

    prove -v test/t/probing.t      PGDATABASE names a database with the extension bloomtype

A program is a few hundred statements for one backend, drawn by chance: stored filters are replaced, deleted,
moved, rolled back to what they were, and probed meanwhile in every way that SQL has. What is stored at every
moment is known from a model kept here, through savepoints and rollbacks, and what a filter says about an
element comes from test/golden/reference.py, so the server's answers are never compared with each other.
Filters come in families whose members have one header and one length but other bits, in every form of
storage; answers that come from another filter than the one probed are soon wrong.

    PROBING_SEED      another seed than the usual one
    PROBING_PROGRAMS  how many programs
    PROBING_ONLY      the number of a single one, to repeat a failure

Needs python3-xxhash, psql and a superuser. Everything lives in a schema and a role of its own, which go away
at the end.
"""

import collections
import contextlib
import os
import random
import subprocess

from harness import Failed, clean_up_when_terminated, done, extension_schema, note, ok, sanitized
import reference as ref

SCHEMA = ROLE = "bloomtype_probing"
SEED = os.environ.get("PROBING_SEED", "probing")
PROGRAMS = int(os.environ.get("PROBING_PROGRAMS", 16))
STEPS = 90  # of a program
KEYS = 16  # elements that are probed: 1, 2, ..., or k1, k2, ...
COPIES = 30  # of each of them in a table for parallel workers
TYPES = ("bigint", "text")
DOMAIN_KEY = 3  # what a domain's check probes


# ---------------------------------------------------------------------------------------------------
# Filters
# ---------------------------------------------------------------------------------------------------


def key(element_type, n):
    return ref.element("bigint", n) if element_type == "bigint" else ref.element("text", f"k{n}")


class Pooled:
    """A filter that is stored now and then, and what it says about every key."""

    def __init__(self, number, family, value, element_type, members):
        self.number, self.family, self.value, self.element_type = number, family, value, element_type
        self.bytes = value.encode()
        self.members = members
        self.says = {(t, n): self.ask(t, n) for t in TYPES for n in range(1, KEYS + 1)}

    def ask(self, element_type, n):
        try:
            return "t" if self.value.contains(key(element_type, n)) else "f"
        except ref.Refused:
            return "e"


def dense(layout, k, m, fill, zeros=0):
    """Filters of random bits, each set with probability 2^-fill; of no others than the elements' if that is 0.
    Some bytes at the beginning hold no others in any case."""

    def make(rng, element_type, seed, elements):
        bits = rng.randbytes(m // 8) if fill else bytes(m // 8)
        for _ in range(fill - 1):
            bits = ref.both(bits, rng.randbytes(m // 8))
        bits = bytes(zeros) + bits[zeros:]
        return ref.Filter(layout, k, ref.single(0.01), seed, m, ref.CLASSES[element_type], None, bits).add(elements)

    return make


def sparse(layout, m, others, limit=1 << 64):
    """Filters of exact hashes, of which so many below a limit belong to no key."""

    def make(rng, element_type, seed, elements):
        value = ref.Filter(layout, 6, ref.single(0.01), seed, m)
        others_ = {rng.randrange(limit) for _ in range(others)}
        value = value.add(elements).with_hashes(ref.CLASSES[element_type], others_)
        assert value.sparse and len(value.hashes) == len(elements) + others
        return value

    return make


FAMILIES = {
    # stored inline, with the short header
    "a word": dense("classic", 3, 64, 2),
    "32 bytes": dense("classic", 4, 256, 2),
    "few hashes": sparse("blocked", 1 << 13, 0),
    # inline or not
    "1 kB": dense("blocked", 4, 1 << 13, 1),
    "4 kB": dense("blocked", 4, 1 << 15, 1),
    "4 kB, odd": dense("blocked", 5, 1 << 15, 1),
    "2 kB of hashes": sparse("classic", 1 << 16, 250),
    # out of line, large enough to be read by slices
    "20 kB": dense("blocked", 6, 20 << 13, 1),
    "20 kB, odd": dense("blocked", 3, 20 << 13, 1),
    "20 kB, classic": dense("classic", 6, 20 << 13, 1),
    "20 kB of hashes": sparse("blocked", 1 << 20, 2500),
    "20 kB of near hashes": sparse("blocked", 1 << 20, 2600, 1 << 40),
    # more than the least work_mem
    "80 kB": dense("blocked", 6, 80 << 13, 1),
    "80 kB, classic": dense("classic", 4, 80 << 13, 1),
    "100 kB of hashes": sparse("classic", 1 << 23, 12500),
    # worth compressing; the first fits inline then
    "30 kB of zeros": dense("classic", 6, 30 << 13, 0),
    "80 kB, half zeros": dense("blocked", 6, 80 << 13, 1, 40 << 10),
    "200 kB of zeros": dense("blocked", 6, 200 << 13, 0),
}


def make_pool(rng):
    pool = []
    for family, make in FAMILIES.items():
        for element_type, seed in (("bigint", 0), ("bigint", 0), ("bigint", 9), ("text", 9), ("text", 9)):
            members = sorted(rng.sample(range(1, KEYS + 1), KEYS // 2))  # as many, for the length of sparse ones
            value = make(rng, element_type, seed, [key(element_type, n) for n in members])
            pool.append(Pooled(len(pool) + 1, family, value, element_type, members))
    for value in (ref.empty(), ref.create("blocked", 0.01, items=1000), ref.create("classic", 0.1, items=10)):
        pool.append(Pooled(len(pool) + 1, "empty", value, "", []))
    return pool


# ---------------------------------------------------------------------------------------------------
# The server
# ---------------------------------------------------------------------------------------------------

MARK = "=== end of statement ==="
PARALLEL = "SET max_parallel_workers_per_gather = 2"
SETTINGS = f"""
SET search_path = {SCHEMA}, @extschema@, pg_catalog;
SET client_min_messages = error;
SET bytea_output = hex;
SET jit = off;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 0;
SET probing.watch = '';
SET probing.said = '';
"""

# One table, the partitions of which store filters each in its way. Tuples of the third are so large that even
# the smallest filter is put out of line.
PARTITIONS = {"outside": (1, 5), "packed": (6, 10), "tight": (11, 15), "inside": (16, 19)}
STORAGE = {"outside": "EXTERNAL", "packed": "EXTENDED", "tight": "EXTERNAL", "inside": "PLAIN"}
IDS = range(1, 20)
INSIDE_LIMIT = 5000  # bytes: what fits into a page
# further stored filters: broken ones have negative numbers, those of the pool begin here
POOL_IDS = 1000
BROKEN = (-1, -2, -3)

SETUP = f"""
DROP SCHEMA IF EXISTS {SCHEMA} CASCADE;
DROP ROLE IF EXISTS {ROLE};
CREATE SCHEMA {SCHEMA};
CREATE ROLE {ROLE};
GRANT USAGE ON SCHEMA {SCHEMA} TO {ROLE};

CREATE TABLE pool (id int PRIMARY KEY, class text, f bloomfilter);
CREATE TABLE keys (n int, i int, b bigint, t text) WITH (parallel_workers = 2);
INSERT INTO keys SELECT n, n, n, 'k' || n FROM generate_series(1, {KEYS}) AS n;
CREATE TABLE many_keys (LIKE keys) WITH (parallel_workers = 2);
INSERT INTO many_keys SELECT keys.* FROM keys, generate_series(1, {COPIES});

CREATE TABLE stored (id int PRIMARY KEY, class text, f bloomfilter,
    padding text GENERATED ALWAYS AS (CASE WHEN id BETWEEN 11 AND 15 THEN repeat(' ', 2100) END) STORED)
    PARTITION BY RANGE (id);
""" + "".join(
    f"CREATE TABLE {name} PARTITION OF stored FOR VALUES FROM ({first}) TO ({last + 1})"
    f" WITH (parallel_workers = 2{', toast_tuple_target = 128' if name == 'tight' else ''});\n"
    f"ALTER TABLE {name} ALTER f SET STORAGE {STORAGE[name]}, ALTER padding SET STORAGE PLAIN;\n"
    for name, (first, last) in PARTITIONS.items()
) + f"""
-- What cannot be read: the wrong length, at once and in slices, and another version.
CREATE TABLE broken (id int PRIMARY KEY, f bloomfilter);
CREATE FUNCTION forge(bytea, int) RETURNS bloomfilter LANGUAGE internal IMMUTABLE STRICT AS 'bytea_substr_no_len';

CREATE VIEW everything AS
    SELECT id, f FROM stored UNION ALL SELECT -id, f FROM broken UNION ALL SELECT {POOL_IDS} + id, f FROM pool;

-- One site for whatever is probed in a transaction.
CREATE TYPE pair AS (id int, f bloomfilter);
CREATE DOMAIN with_bigint AS bloomfilter CHECK (VALUE @> {DOMAIN_KEY});
CREATE DOMAIN with_text AS bloomfilter CHECK (VALUE @> 'k{DOMAIN_KEY}');

-- A row's filters before and after, told to whoever is watching.
CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    said text := '';
    whose bloomfilter;
BEGIN
    IF current_setting('probing.watch') = '' THEN
        RETURN NEW;
    END IF;
    FOR n IN 1 .. {KEYS} LOOP
        FOR i IN 1 .. 3 LOOP
            BEGIN
                IF n = 9 AND i = 3 THEN
                    NEW.f := NEW.f::bytea::bloomfilter;
                END IF;
                IF current_setting('probing.watch') = 'bigint' THEN
                    said := said || letter(CASE i WHEN 2 THEN OLD.f ELSE NEW.f END @> n);
                ELSIF i = 2 THEN
                    said := said || letter('k' || n <@ OLD.f);
                ELSE
                    said := said || letter('k' || n <@ NEW.f);
                END IF;
            EXCEPTION WHEN datatype_mismatch THEN
                said := said || 'e';
            END;
        END LOOP;
    END LOOP;
    PERFORM set_config('probing.said', current_setting('probing.said') || said, false);
    RETURN NEW;
END $$;
CREATE FUNCTION letter(boolean) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT coalesce(left($1::text, 1), 'n') $$;
CREATE TRIGGER before BEFORE UPDATE ON stored FOR EACH ROW EXECUTE FUNCTION watch();
CREATE TRIGGER after AFTER UPDATE ON stored FOR EACH ROW EXECUTE FUNCTION watch();

ALTER TABLE stored ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON stored TO {ROLE};
CREATE POLICY holds ON stored FOR SELECT TO {ROLE} USING (CASE class
    WHEN 'bigint' THEN f @> current_setting('probing.key')::bigint
    WHEN 'text' THEN 'k' || current_setting('probing.key') <@ f END);
"""

# @T@ is the type of the elements, @KEY@ makes one of a number n. Where the value comes from: 0 its TOAST
# pointer, if it has one, 1 a copy in memory, 2 read from text. Which call site asks: see the CASE.
FUNCTIONS = f"""
CREATE TABLE checked_@T@ (f bloomfilter, k @T@, CHECK (f @> k));

CREATE FUNCTION parameter(f bloomfilter, k @T@) RETURNS boolean LANGUAGE plpgsql AS
$$ BEGIN RETURN k <@ f; END $$;
CREATE FUNCTION inlined(f bloomfilter, k @T@) RETURNS boolean IMMUTABLE LANGUAGE sql AS
$$ SELECT f @> k $$;
CREATE FUNCTION called(f bloomfilter, k @T@) RETURNS boolean IMMUTABLE SECURITY DEFINER LANGUAGE sql AS
$$ SELECT f @> k $$;

CREATE FUNCTION probe_@T@(ids int[], sources int[], sites int[], numbers int[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text := '';
    answer boolean;
    zero int := 0;
    n int;
    k @T@;
    g bloomfilter;
    r record;
    p pair;
    several bloomfilter[];
BEGIN
    FOR j IN 1 .. cardinality(ids) LOOP
        n := numbers[j];
        k := @KEY@;
        BEGIN
            CASE sources[j]
                WHEN 0 THEN SELECT f INTO g FROM everything WHERE id = ids[j];
                WHEN 1 THEN SELECT f::bytea::bloomfilter INTO g FROM everything WHERE id = ids[j];
                WHEN 2 THEN SELECT f::text::bloomfilter INTO g FROM everything WHERE id = ids[j];
            END CASE;
            CASE sites[j]
                WHEN 0 THEN answer := g @> k;
                WHEN 1 THEN answer := k <@ g;
                WHEN 2 THEN answer := bloom_contains(g, k);
                WHEN 3 THEN
                    SELECT 0, g AS f INTO r;
                    answer := r.f @> k;
                WHEN 4 THEN
                    p.f := g;
                    answer := p.f @> k;
                WHEN 5 THEN
                    several[1 + n % 3] := g;
                    answer := several[1 + n % 3] @> k;
                WHEN 6 THEN EXECUTE 'SELECT $1 @> $2' INTO answer USING g, k;
                WHEN 7 THEN answer := (SELECT f FROM everything WHERE id = ids[j]) @> k;
                WHEN 8 THEN SELECT f @> k INTO answer FROM everything WHERE id = ids[j];
                WHEN 9 THEN answer := parameter(g, k);
                WHEN 10 THEN answer := g @> ANY (ARRAY[k, NULL, k]);
                WHEN 11 THEN answer := called(g, k);
                WHEN 12 THEN answer := g @> k AND 1 / zero > 0;
                WHEN 13 THEN answer := CASE WHEN g IS NOT NULL THEN g::with_@T@ IS NOT NULL END;
                WHEN 14 THEN answer := g @> CASE WHEN n > 0 THEN k ELSE NULL END OR g @> k;
            END CASE;
            said := said || letter(answer);
        EXCEPTION
            WHEN datatype_mismatch THEN said := said || 'e';
            WHEN data_corrupted OR invalid_binary_representation THEN said := said || 'x';
            WHEN division_by_zero THEN said := said || 'z';
            WHEN check_violation THEN said := said || 'c';
        END;
    END LOOP;
    RETURN said;
END $$;

-- The same with nothing that could catch an error.
CREATE FUNCTION plainly_@T@(ids int[], numbers int[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text := '';
    k @T@;
    g bloomfilter;
    n int;
    r record;
BEGIN
    FOR j IN 1 .. cardinality(ids) LOOP
        n := numbers[j];
        k := @KEY@;
        g := NULL;
        FOR r IN SELECT f FROM everything WHERE id = ids[j] LOOP
            g := r.f;
        END LOOP;
        said := said || letter(g @> k);
    END LOOP;
    RETURN said;
END $$;

-- Updates that fail or not, and the same probes after each, inside and outside the block.
CREATE FUNCTION churn_@T@(targets int[], filters int[], fail boolean[],
    ids int[], sources int[], sites int[], numbers int[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text := '';
BEGIN
    FOR u IN 1 .. cardinality(targets) LOOP
        BEGIN
            UPDATE stored SET (f, class) = (SELECT f, class FROM pool WHERE id = filters[u]) WHERE id = targets[u];
            said := said || probe_@T@(ids, sources, sites, numbers);
            IF fail[u] THEN
                RAISE division_by_zero;
            END IF;
        EXCEPTION WHEN division_by_zero THEN
            NULL;
        END;
        said := said || probe_@T@(ids, sources, sites, numbers);
    END LOOP;
    RETURN said;
END $$;
"""
# A procedure's transactions end between its probes; its variables stay.
FUNCTIONS += """
CREATE PROCEDURE commit_@T@(targets int[], filters int[], fail boolean[],
    ids int[], sources int[], sites int[], numbers int[], INOUT said text) LANGUAGE plpgsql AS $$
DECLARE
    n int;
    k @T@;
    g bloomfilter;
    before bloomfilter;
BEGIN
    FOR u IN 1 .. cardinality(targets) LOOP
        UPDATE stored SET (f, class) = (SELECT f, class FROM pool WHERE id = filters[u]) WHERE id = targets[u];
        said := said || probe_@T@(ids, sources, sites, numbers);
        SELECT f INTO before FROM pool WHERE id = filters[u];
        IF fail[u] THEN
            ROLLBACK;
        ELSE
            COMMIT;
        END IF;
        said := said || probe_@T@(ids, sources, sites, numbers);
        SELECT f INTO g FROM pool WHERE id = filters[u] AND class = '@T@';
        FOR m IN 1 .. 4 LOOP
            n := m;
            k := @KEY@;
            said := said || letter(CASE WHEN m < 4 AND g IS NOT NULL THEN before ELSE g END @> k);
        END LOOP;
    END LOOP;
END $$;
"""
SITES = range(15)


def run(script):
    return subprocess.run(
        ["psql", "-XAtq"], input=SETTINGS + script, capture_output=True, encoding="utf-8",
        env={**os.environ, "PGAPPNAME": "probing.t", "LC_MESSAGES": "C"},
    )  # fmt: skip


def psql(*statements):
    """The lines of each of these statements, all of which are to succeed, and their SQLSTATE."""
    process = run("".join(f"{s}\n;\n\\echo {MARK} :SQLSTATE\n" for s in statements))
    results, lines = [], []
    for line in process.stdout.split("\n"):
        if line.startswith(MARK):
            results.append((lines, line[len(MARK) + 1 :]))
            lines = []
        else:
            lines.append(line)
    return results, process.stderr


def ask(statement):
    results, errors = psql(statement)
    if len(results) != 1 or results[0][1] != "00000":
        raise Failed(errors)
    return results[0][0]


def set_up(pool):
    broken = [f.bytes for f in (next(f for f in pool if f.family == name) for name in ("20 kB", "4 kB", "80 kB"))]
    broken = [broken[0][:-64], broken[1][:-1], b"\2" + broken[2][1:]]
    functions = [
        FUNCTIONS.replace("@T@", t).replace("@KEY@", made) for t, made in (("bigint", "n"), ("text", "'k' || n"))
    ]
    script = "\\set ON_ERROR_STOP on\n" + SETUP + "".join(functions)
    script += "COPY pool FROM STDIN;\n"
    script += "".join(f"{f.number}\t{f.element_type}\t\\\\x{f.bytes.hex()}\n" for f in pool) + "\\.\n"
    script += "".join(
        f"INSERT INTO broken VALUES ({i + 1}, forge('\\x{data.hex()}', 1));\n" for i, data in enumerate(broken)
    )
    script += "ANALYZE pool, keys, many_keys;\n"
    process = run(script)
    if process.returncode != 0:
        raise Failed(process.stderr)


# ---------------------------------------------------------------------------------------------------
# Programs
# ---------------------------------------------------------------------------------------------------


class Statement:
    """A statement, the error that it should give, and what it should say: lines, or a function that finds
    fault with them."""

    def __init__(self, situation, sql, expected=(), answers=0, state="00000"):
        self.situation, self.sql, self.expected, self.answers, self.state = situation, sql, expected, answers, state

    def fault(self, lines, state):
        if state != self.state:
            return f"got      SQLSTATE {state}\nexpected SQLSTATE {self.state}"
        if callable(self.expected):
            return self.expected(lines)
        expected = list(self.expected)
        return None if lines == expected else f"got      {lines}\nexpected {expected}"


def letter(expression):
    return f"coalesce(left(({expression})::text, 1), 'n')"


def braces(values):
    return "'{" + ",".join(str(v).lower() for v in values) + "}'"


class Program:
    def __init__(self, rng, pool):
        self.rng, self.pool = rng, {f.number: f for f in pool}
        self.rows = {}  # id: number in the pool, or None for NULL
        self.stack = []  # of a transaction and its savepoints: name, rows, cursors
        self.cursors = {}  # name: answers to come
        self.held = set()  # names of those that outlive their transaction
        self.names = 0
        self.statements = []

    # the model

    def value(self, id_):
        """What is stored there: a filter, "x" if it is broken, None for NULL or no row."""
        if id_ < 0:
            return "x"
        number = id_ - POOL_IDS if id_ > POOL_IDS else self.rows.get(id_)
        return self.pool.get(number)

    def answer(self, id_, element_type, n):
        value = self.value(id_)
        return "n" if value is None else value if value == "x" else value.says[element_type, n]

    def suits(self, id_, element_type):
        value = self.value(id_)
        return value is None or value.element_type in ("", element_type)

    def some_ids(self, element_type, least=1):
        """Rows that can be probed by elements of that type without an error."""
        suitable = [id_ for id_ in self.rows if self.suits(id_, element_type)]
        if len(suitable) < least:
            self.replace_some(element_type)
            return self.some_ids(element_type, least)
        return sorted(self.rng.sample(suitable, self.rng.randint(least, len(suitable))))

    def some_filter(self, id_, element_type=None):
        fits = [
            f.number
            for f in self.pool.values()
            if (id_ < PARTITIONS["inside"][0] or len(f.bytes) <= INSIDE_LIMIT)
            and (element_type is None or f.element_type == element_type)
        ]
        number = self.rows.get(id_)
        if number is not None and self.rng.random() < 0.4:  # one of the same header and length
            family = self.pool[number].family, self.pool[number].element_type
            fits = [n for n in fits if (self.pool[n].family, self.pool[n].element_type) == family] or fits
        return self.rng.choice(fits)

    def some_type(self):
        return self.rng.choice(("bigint", "bigint", "text"))

    # statements

    def say(self, situation, sql, expected=(), answers=0, state="00000"):
        self.statements.append(Statement(situation, sql, expected, answers, state))

    def do(self, sql):
        self.say("updates", sql)

    def probe(self, situation, sql, answers):
        """One that gives a string of answers."""
        answers = "".join(answers)
        self.say(situation, sql, [answers], len(answers))

    def failing(self, situation, sql, state):
        if self.stack:
            self.do("SAVEPOINT failing")
        self.say(situation, sql, (), 1, state)
        if self.stack:
            self.do("ROLLBACK TO failing")
            self.do("RELEASE failing")

    def contains(self, f, k):
        return self.rng.choice((f"({f} @> {k})", f"({f} @> {k})", f"({k} <@ {f})", f"bloom_contains({f}, {k})"))

    def column(self, element_type, table="x"):
        return table + "." + ("t" if element_type == "text" else self.rng.choice("ib"))

    def literal(self, element_type, n):
        if element_type == "text":
            return self.rng.choice((f"'k{n}'", f"'k{n}'::text", f"'k{n}'::varchar"))
        return self.rng.choice((f"{n}", f"{n}::bigint", f"{n}::smallint"))

    # what changes filters

    def fill(self):
        self.do("TRUNCATE stored")
        for id_ in IDS:
            self.rows[id_] = self.some_filter(id_, self.rng.choice(("bigint", "bigint", "text")))
        self.do(self.insert())

    def insert(self):
        values = ", ".join(f"({id_}, {number})" for id_, number in self.rows.items())
        return (
            f"INSERT INTO stored SELECT v.id, class, f FROM (VALUES {values}) AS v (id, number)"
            " JOIN pool ON pool.id = number"
        )

    def replace_some(self, element_type=None):
        id_ = self.rng.choice(IDS)
        number = self.some_filter(id_, element_type)
        kind = self.rng.randrange(7) if element_type is None else 0
        source = self.rng.choice(("f", "f", "f::bytea::bloomfilter", "bloom_union(f, f)"))
        chosen = f"SELECT id, class, {source} AS f FROM pool WHERE id = {number}"
        if kind == 0:
            self.do(f"DELETE FROM stored WHERE id = {id_}")
            self.do(f"INSERT INTO stored SELECT {id_}, class, f FROM ({chosen}) AS c")
        elif kind == 1:
            self.do(
                f"INSERT INTO stored SELECT {id_}, class, f FROM ({chosen}) AS c"
                " ON CONFLICT (id) DO UPDATE SET (class, f) = (excluded.class, excluded.f)"
            )
        elif kind == 2:
            if id_ in self.rows:
                number = None
            self.do(f"UPDATE stored SET (class, f) = (NULL, NULL) WHERE id = {id_}")
        elif kind == 3:
            self.do(f"DELETE FROM stored WHERE id = {id_}")
            self.rows.pop(id_, None)
            return
        else:
            self.do(f"UPDATE stored SET (class, f) = (c.class, c.f) FROM ({chosen}) AS c WHERE stored.id = {id_}")
        if id_ in self.rows or kind < 2:
            self.rows[id_] = number

    def swap(self):
        first, last = self.rng.choice(list(PARTITIONS.values()))
        a, b = self.rng.sample(range(first, last + 1), 2)
        self.do(
            "UPDATE stored SET (class, f) = (o.class, o.f) FROM stored AS o"
            f" WHERE (stored.id, o.id) IN (({a}, {b}), ({b}, {a}))"
        )
        if a in self.rows and b in self.rows:
            self.rows[a], self.rows[b] = self.rows[b], self.rows[a]

    def rewrite(self):
        name = self.rng.choice(list(PARTITIONS))
        kind = self.rng.randrange(3)
        if kind == 0 and not self.cursors:
            self.do(f"TRUNCATE {name}")
            first, last = PARTITIONS[name]
            self.rows = {id_: number for id_, number in self.rows.items() if not first <= id_ <= last}
            for id_ in self.rng.sample(range(first, last + 1), 3):
                self.rows[id_] = self.some_filter(id_)
                self.do(f"INSERT INTO stored SELECT {id_}, class, f FROM pool WHERE id = {self.rows[id_]}")
        elif not self.stack:
            self.do(self.rng.choice((f"VACUUM FULL {name}", f"CLUSTER {name} USING {name}_pkey", f"VACUUM {name}")))

    # transactions

    def remember(self, name):
        self.stack.append((name, dict(self.rows), dict(self.cursors)))

    def transaction(self):
        if not self.stack:
            self.do("BEGIN")
            self.remember("")
            return
        kind = self.rng.random()
        if kind < 0.4 and len(self.stack) < 5:
            self.names += 1
            self.do(f"SAVEPOINT s{self.names}")
            self.remember(f"s{self.names}")
        elif kind < 0.8 and len(self.stack) > 1:
            at = self.rng.randrange(1, len(self.stack))
            name, rows, cursors = self.stack[at]
            if self.rng.random() < 0.75:
                self.do(f"ROLLBACK TO {name}")
                del self.stack[at + 1 :]
                self.rows, self.cursors = dict(rows), dict(cursors)
            else:
                self.do(f"RELEASE {name}")
                del self.stack[at:]
        elif kind > 0.9:
            self.end(self.rng.choice(("COMMIT", "ROLLBACK")))

    def end(self, how):
        self.do(how)
        if how == "ROLLBACK":
            _, self.rows, self.cursors = self.stack[0]
        self.cursors = {name: answers for name, answers in self.cursors.items() if name in self.held}
        self.stack = []

    def settings(self):
        self.do(f"SET work_mem = '{self.rng.choice(('64kB', '64kB', '300kB', '64MB'))}'")
        self.do(f"SET plan_cache_mode = {self.rng.choice(('auto', 'force_generic_plan', 'force_custom_plan'))}")

    # probes

    def nested(self, ids, element_type, filters_outside):
        """Rows of id, n and the answer, from a nested loop of filters and keys."""
        chosen = f"id = ANY ({braces(ids)})"
        if filters_outside:
            tables = f"stored AS s, LATERAL (SELECT * FROM keys WHERE n <> -s.id OFFSET 0) AS x WHERE s.{chosen}"
        else:
            tables = f"keys AS x, LATERAL (SELECT * FROM stored WHERE id <> -x.n AND {chosen} OFFSET 0) AS s"
        a = letter(self.contains("s.f", self.column(element_type)))
        return f"SELECT s.id, x.n, {a} AS a FROM {tables}"

    def gather(self, columns, answer, tables):
        """The answers of a query as one string, in the order of these columns, which is not that of the probes."""
        query = f"SELECT {columns}, {answer} AS a FROM {tables} OFFSET 0"
        return f"SELECT string_agg(a, '' ORDER BY {columns}) FROM ({query}) AS q"

    def all_answers(self, ids, element_type):
        return [self.answer(id_, element_type, n) for id_ in ids for n in range(1, KEYS + 1)]

    def probe_nested(self):
        element_type = self.some_type()
        ids = self.some_ids(element_type)
        outside = self.rng.random() < 0.5
        query = self.nested(ids, element_type, outside)
        self.probe(
            f"joins, {'filters' if outside else 'keys'} outside",
            f"SELECT string_agg(a, '' ORDER BY id, n) FROM ({query} OFFSET 0) AS q",
            self.all_answers(ids, element_type),
        )

    def probe_turns(self):
        """Stored filters and their copies in memory by turns; and arrays of filters."""
        element_type = self.some_type()
        ids = self.some_ids(element_type)
        chosen = f"FROM stored WHERE id = ANY ({braces(ids)})"
        rows = f"SELECT id, 0 AS place, f {chosen} UNION ALL SELECT id, 1, f::bytea::bloomfilter {chosen}"
        if self.rng.random() < 0.5:
            rows += (
                " UNION ALL SELECT u.id, 2, u.f FROM"
                f" (SELECT array_agg(id ORDER BY id) AS i, array_agg(f ORDER BY id) AS f {chosen}) AS v,"
                " LATERAL unnest(v.i, v.f) AS u (id, f)"
            )
        copies = 3 if "unnest" in rows else 2
        a = letter(self.contains("v.f", self.column(element_type)))
        query = (
            f"SELECT v.id, v.place, x.n, {a} AS a"
            f" FROM (SELECT * FROM ({rows}) AS u ORDER BY id, place) AS v, keys AS x"
        )
        if self.rng.random() < 0.7:  # keys outside
            query = (
                f"SELECT v.id, v.place, x.n, {a} AS a FROM keys AS x,"
                f" LATERAL (SELECT * FROM ({rows}) AS u WHERE id <> -x.n ORDER BY id, place) AS v"
            )
        expected = [
            self.answer(id_, element_type, n) for id_ in ids for _ in range(copies) for n in range(1, KEYS + 1)
        ]
        sql = f"SELECT string_agg(a, '' ORDER BY id, place, n) FROM ({query} OFFSET 0) AS q"
        self.probe("stored and in memory by turns", sql, expected)

    def probe_init_plan(self):
        element_type = self.some_type()
        (id_, *_) = self.some_ids(element_type)
        asked = self.contains(f"(SELECT f FROM stored WHERE id = {id_})", self.column(element_type))
        if self.rng.random() < 0.5:
            self.probe(
                "a filter in an InitPlan",
                self.gather("n", letter(asked), "keys AS x"),
                self.all_answers([id_], element_type),
            )
        else:
            found = [n for n in range(1, KEYS + 1) if self.answer(id_, element_type, n) == "t"]
            sql = f"SELECT string_agg(n::text, ',' ORDER BY n) FROM keys AS x WHERE {asked}"
            self.say("a filter in an InitPlan", sql, [",".join(map(str, found))], KEYS)

    def probe_parallel(self):
        element_type = self.some_type()
        ids = self.some_ids(element_type)
        hits = {id_: self.all_answers([id_], element_type).count("t") for id_ in ids}
        column = self.column(element_type)
        self.do(PARALLEL)
        if self.rng.random() < 0.5:
            asked = self.contains(f"(SELECT f FROM stored WHERE id = {ids[0]})", column)
            total = COPIES * hits[ids[0]]
            sql = f"SELECT count(*) FROM many_keys AS x WHERE {asked}"
            self.say("parallel workers", sql, [str(total)], COPIES * KEYS)
        else:
            asked = self.contains("s.f", column)
            lines = [f"{id_}|{hits[id_]}" for id_ in ids if hits[id_]]
            sql = (
                "SELECT s.id, count(*) FROM stored AS s, keys AS x"
                f" WHERE s.id = ANY ({braces(ids)}) AND {asked} GROUP BY s.id ORDER BY s.id"
            )
            self.say("parallel workers", sql, lines, KEYS * len(ids))
        self.do("SET max_parallel_workers_per_gather = 0")

    def probe_prepared(self):
        element_type = self.some_type()
        for _ in range(6):
            n = self.rng.randint(1, KEYS)
            k = f"'k{n}'" if element_type == "text" else n
            (id_, *_) = self.some_ids(element_type)
            sql = f"EXECUTE one_{element_type} ({id_}, {k})"
            self.probe("prepared statements", sql, self.answer(id_, element_type, n))
        for _ in range(2):
            small = [f for f in self.pool.values() if f.element_type == element_type and len(f.bytes) < 200]
            f = self.rng.choice(small)
            answers = [f.says[element_type, n] for n in range(1, KEYS + 1)]
            self.probe("prepared statements", f"EXECUTE given_{element_type} ('\\x{f.bytes.hex()}')", answers)

    def prepare(self):
        for element_type in TYPES:
            column = "t" if element_type == "text" else "b"
            self.do(
                f"PREPARE one_{element_type} (int, {element_type}) AS"
                f" SELECT {letter('f @> $2')} FROM stored WHERE id = $1"
            )
            self.do(
                f"PREPARE given_{element_type} (bloomfilter) AS SELECT string_agg(a, '' ORDER BY n)"
                f" FROM (SELECT n, {letter(f'{column} <@ $1')} AS a FROM keys OFFSET 0) AS q"
            )

    def spec(self, element_type, length):
        """Probes for the functions in PL/pgSQL: few filters, met again and again. An error ends a call site:
        PL/pgSQL gives up the state of an expression that failed in this transaction. So most have none."""
        errors = self.rng.random() < 0.2
        few = self.rng.choice((1, 2, 3, 6, 12))
        candidates = [*IDS, *IDS, *(POOL_IDS + number for number in self.pool)]
        ids = self.rng.choices(candidates, k=few)
        ids += [self.rng.choice([i for i in self.rows] or [1])]
        if self.rng.random() < 0.5:
            number = self.rng.choice(list(self.pool))
            like = (self.pool[number].family, self.pool[number].element_type)
            ids += [POOL_IDS + n for n, f in self.pool.items() if (f.family, f.element_type) == like]
        if errors:
            ids.append(self.rng.choice(BROKEN))
        else:
            ids = [id_ for id_ in ids if self.suits(id_, element_type)] or self.some_ids(element_type)
        site = self.rng.choice(SITES)
        chosen = [self.rng.choice(ids) for _ in range(length)]
        if self.rng.random() < 0.3:
            chosen = [id_ for id_ in chosen for _ in range(2)]
        sources = [self.rng.choice((0, 0, 0, 1, 1, 2)) for _ in chosen]
        sites = [self.rng.choice((0, 0, site, site, self.rng.choice(SITES))) for _ in chosen]
        numbers = [DOMAIN_KEY if site == 13 else self.rng.randint(1, KEYS) for site in sites]
        return chosen, sources, sites, numbers

    def spec_answers(self, element_type, spec):
        for id_, _, site, n in zip(*spec):
            a = self.answer(id_, element_type, n)
            yield {10: {"f": "n"}, 12: {"t": "z", "n": "z"}, 13: {"f": "c"}}.get(site, {}).get(a, a)

    def probe_in_function(self):
        element_type = self.some_type()
        spec = self.spec(element_type, 24)
        arrays = ", ".join(braces(s) for s in spec)
        answers = self.spec_answers(element_type, spec)
        self.probe("PL/pgSQL", f"SELECT probe_{element_type}({arrays})", answers)

    def probe_plainly(self):
        element_type = self.some_type()
        ids = self.some_ids(element_type)
        others = [POOL_IDS + n for n, f in self.pool.items() if f.element_type == element_type]
        ids += self.rng.sample(others, 4)
        ids = [self.rng.choice(ids) for _ in range(16)]
        numbers = [self.rng.randint(1, KEYS) for _ in ids]
        answers = [self.answer(id_, element_type, n) for id_, n in zip(ids, numbers)]
        sql = f"SELECT plainly_{element_type}({braces(ids)}, {braces(numbers)})"
        self.probe("PL/pgSQL that catches nothing", sql, answers)
        if self.rng.random() < 0.3:
            f = self.rng.choice([f for f in self.pool.values() if f.element_type not in ("", element_type)])
            ids.insert(self.rng.randrange(16), POOL_IDS + f.number)
            numbers.append(1)
            sql = f"SELECT plainly_{element_type}({braces(ids)}, {braces(numbers)})"
            self.failing("PL/pgSQL that catches nothing", sql, "42804")
            if self.stack:
                ids.remove(POOL_IDS + f.number)
                answers = [self.answer(id_, element_type, n) for id_, n in zip(ids, reversed(numbers))]
                sql = f"SELECT plainly_{element_type}({braces(ids)}, {braces(reversed(numbers))})"
                self.probe("PL/pgSQL that catches nothing", sql, answers)

    def probe_churn(self):
        element_type = self.some_type()
        spec = self.spec(element_type, 10)
        targets = self.rng.choices([id_ for id_ in spec[0] if id_ in IDS] or IDS, k=4)
        filters = [self.some_filter(id_, self.rng.choice((element_type, element_type, None))) for id_ in targets]
        fail = [self.rng.random() < 0.5 for _ in targets]
        commits = not self.stack and self.rng.random() < 0.7
        answers = []
        for id_, number, fails in zip(targets, filters, fail):
            before = dict(self.rows)
            if id_ in self.rows:
                self.rows[id_] = number
            answers += self.spec_answers(element_type, spec)
            if fails:
                self.rows = before
            answers += self.spec_answers(element_type, spec)
            if commits:
                fits = self.pool[number].element_type == element_type
                answers += [self.pool[number].says[element_type, n] if fits else "n" for n in range(1, 5)]
        arrays = ", ".join(braces(s) for s in (targets, filters, fail, *spec))
        if commits:
            self.probe("commits in a procedure", f"CALL commit_{element_type}({arrays}, '')", answers)
        else:
            self.probe("updates and rollbacks in PL/pgSQL", f"SELECT churn_{element_type}({arrays})", answers)

    def open_cursor(self):
        if not self.stack or len(self.cursors) > 2:
            return
        element_type = self.some_type()
        ids = self.some_ids(element_type)
        self.names += 1
        name = f"c{self.names}"
        hold = ""
        if self.rng.random() < 0.4:
            hold = "WITH HOLD "
            self.held.add(name)
        self.do(f"DECLARE {name} CURSOR {hold}FOR {self.nested(ids, element_type, self.rng.random() < 0.4)}")
        self.cursors[name] = {
            (id_, n): self.answer(id_, element_type, n) for id_ in ids for n in range(1, KEYS + 1)
        }

    def fetch(self):
        if not self.cursors:
            self.open_cursor()
            return
        name = self.rng.choice(list(self.cursors))
        answers = self.cursors[name]
        rest = self.rng.random() < 0.2
        most = len(answers) if rest else self.rng.randint(1, 20)

        def fault(lines):
            for line in lines:
                id_, n, a = line.split("|")
                expected = answers.pop((int(id_), int(n)), "nothing more")
                if a != expected:
                    return f"got      {line}\nexpected {expected}"
            return "rows are missing" if answers and (rest or len(lines) < most) else None

        self.say("cursors", f"FETCH {'ALL' if rest else most} FROM {name}", fault, 0 if rest else most)

    def probe_array(self):
        element_type = self.some_type()
        ids = self.some_ids(element_type)
        chosen = self.rng.sample(range(1, KEYS + 1), self.rng.randint(1, 4))
        array = "ARRAY[" + ", ".join(self.literal(element_type, n) for n in chosen) + f"]::{element_type}[]"
        if self.rng.random() < 0.5:
            array = f"(SELECT array_agg({self.column(element_type)}) FROM keys AS x WHERE n = ANY ({braces(chosen)}))"
            array += "::" + element_type + "[]"
        every = self.rng.random() < 0.5
        asked = letter(f"f @> {'ALL' if every else 'ANY'} ({array})")
        answers = []
        for id_ in ids:
            said = [self.answer(id_, element_type, n) for n in chosen]
            answers.append(said[0] if said[0] == "n" else "ft"[(all if every else any)(a == "t" for a in said)])
        sql = self.gather("id", asked, f"stored WHERE id = ANY ({braces(ids)})")
        self.probe("ANY and ALL of an array of keys", sql, answers)
        # an array of filters, one after the other at a single call site
        asked = letter(f"{self.column(element_type)} <@ ALL (SELECT f FROM stored WHERE id = ANY ({braces(ids)}))")
        if self.rng.random() < 0.7:
            filters = f"ARRAY(SELECT f FROM stored WHERE id = ANY ({braces(ids)}))"
            asked = letter(f"{self.column(element_type)} <@ ALL ({filters})")
        answers = []
        for n in range(1, KEYS + 1):
            said = {self.answer(id_, element_type, n) for id_ in ids}
            answers.append("f" if "f" in said else "n" if "n" in said else "t")
        sql = self.gather("n", asked, "keys AS x")
        self.probe("an array of filters", sql, answers)

    def probe_literal(self):
        element_type = self.some_type()
        ids = self.some_ids(element_type)
        n, m = self.rng.sample(range(1, KEYS + 1), 2)
        first = self.contains("f", self.literal(element_type, n))
        second = self.contains("f", self.literal(element_type, m))
        answers = [self.answer(id_, element_type, n) for id_ in ids]
        others = [self.answer(id_, element_type, m) for id_ in ids]
        if self.rng.random() < 0.6:
            asked, situation = letter(first), "a literal key"
        elif self.rng.random() < 0.5:
            asked, situation = letter(f"{first} OR {second}"), "OR"
            answers = [max(a, b) if a != "n" else a for a, b in zip(answers, others)]
        else:
            asked, situation = letter(f"CASE WHEN id % 2 = 0 THEN {first} ELSE {second} END"), "CASE"
            answers = [b if id_ % 2 else a for id_, a, b in zip(ids, answers, others)]
        sql = self.gather("id", asked, f"stored WHERE id = ANY ({braces(ids)})")
        self.probe(situation, sql, answers)

    def probe_mismatch(self):
        """Some row of a query has a filter of another class."""
        element_type = self.some_type()
        wrong = [id_ for id_ in self.rows if not self.suits(id_, element_type)]
        if wrong:
            ids = sorted({*self.some_ids(element_type), *wrong})
            sql = f"SELECT string_agg(a, '') FROM ({self.nested(ids, element_type, True)} OFFSET 0) AS q"
            self.failing("another class", sql, "42804")
            asked = self.contains("f", self.literal(element_type, self.rng.randint(1, KEYS)))
            sql = self.gather("id", letter(asked), f"stored WHERE id = ANY ({braces(ids)})")
            self.failing("another class", sql, "42804")

    def probe_in_sql_function(self):
        element_type = self.some_type()
        ids = self.some_ids(element_type)[:5]
        name = self.rng.choice(("inlined", "called", "parameter"))
        column = "x.t" if element_type == "text" else "x.b"
        a = letter(f"{name}(s.f, {column})")
        sql = self.gather("id, n", a, f"keys AS x, stored AS s WHERE id = ANY ({braces(ids)})")
        situation = "PL/pgSQL called by row" if name == "parameter" else f"an SQL function, {name}"
        self.probe(situation, sql, self.all_answers(ids, element_type))

    def probe_trigger(self):
        element_type = self.some_type()
        id_ = self.rng.choice(list(self.rows) or [1])
        if id_ not in self.rows:
            return
        old = self.rows[id_]
        new = self.some_filter(id_)
        self.rows[id_] = new
        self.do(f"SET probing.watch = '{element_type}'")
        self.do("SET probing.said = ''")
        n = self.rng.randint(1, KEYS)
        returning = letter(f"f @> {self.literal(element_type, n)}")
        mismatch = not self.suits(id_, element_type)
        sql = f"UPDATE stored SET (class, f) = (SELECT class, f FROM pool WHERE id = {new}) WHERE id = {id_}"
        if mismatch:
            self.do(sql)
        else:
            self.probe("RETURNING", f"{sql} RETURNING {returning}", self.answer(id_, element_type, n))
        sees = [self.pool[new] if i != 2 else self.pool.get(old) for _ in range(KEYS) for i in (1, 2, 3)]
        numbers = [n for n in range(1, KEYS + 1) for _ in range(3)]
        answers = ["n" if f is None else f.says[element_type, n] for f, n in zip(sees, numbers)]
        self.probe("triggers", "SELECT current_setting('probing.said')", answers * 2)
        self.do("SET probing.watch = ''")

    def probe_check(self):
        element_type = self.some_type()
        ids = self.some_ids(element_type)
        table = f"checked_{element_type}"
        pairs = [(id_, n) for id_ in ids for n in range(1, KEYS + 1)]
        good = [p for p in pairs if self.answer(p[0], element_type, p[1]) in "tn"]
        bad = [p for p in pairs if self.answer(p[0], element_type, p[1]) == "f"]

        def insert(pairs):
            places = ", ".join(f"({i}, {id_}, {n})" for i, (id_, n) in enumerate(pairs))
            column = "x.t" if element_type == "text" else "x.b"
            return (
                f"INSERT INTO {table} SELECT f, {column} FROM (SELECT * FROM (VALUES {places}) AS p (place, id, n)"
                " ORDER BY place) AS p JOIN stored AS s USING (id) JOIN keys AS x USING (n)"
            )

        self.rng.shuffle(good)
        if good:
            self.say("CHECK", insert(good[:60]), (), len(good[:60]))
        if bad:
            self.failing("CHECK", insert(good[:10] + [self.rng.choice(bad)]), "23514")
        self.do(f"DELETE FROM {table}")

    def probe_policy(self):
        n = self.rng.randint(1, KEYS)
        found = [id_ for id_, f in self.rows.items() if f and self.pool[f].element_type
                 and self.answer(id_, self.pool[f].element_type, n) == "t"]  # fmt: skip
        self.do(f"SET probing.key = {n}")
        self.do(f"SET ROLE {ROLE}")
        sql = "SELECT string_agg(id::text, ',' ORDER BY id) FROM stored"
        self.say("a policy", sql, [",".join(map(str, sorted(found)))], len(self.rows))
        self.do("RESET ROLE")

    STEPS = (
        [replace_some] * 8 + [swap, rewrite, settings] + [transaction] * 9
        + [probe_nested] * 4 + [probe_turns] * 3 + [probe_init_plan] * 2 + [probe_prepared]
        + [probe_in_function] * 6 + [probe_plainly] * 2 + [probe_churn] * 2 + [open_cursor] + [fetch] * 4
        + [probe_array] * 2 + [probe_literal] * 3 + [probe_mismatch, probe_in_sql_function, probe_trigger]
        + [probe_check, probe_policy]
    )  # fmt: skip

    def make(self):
        self.fill()
        self.prepare()
        self.settings()
        for i in range(STEPS):
            self.rng.choice(self.STEPS)(self)
            if i % (STEPS // 2) == 5:  # workers take their time to start
                self.probe_parallel()
        if self.stack:
            self.end("COMMIT")
        for element_type in TYPES:  # what there is in the end
            self.probe_nested()
        return self.statements


class Score:
    def __init__(self):
        self.answers, self.faults = 0, []


def run_program(number, pool, scores):
    statements = Program(random.Random(f"{SEED} {number}"), pool).make()
    results, errors = psql(*(s.sql for s in statements))
    again = f"PROBING_SEED={SEED} PROBING_ONLY={number}"
    faults = []
    for i, (statement, (lines, state)) in enumerate(zip(statements, results)):
        score = scores[statement.situation]
        score.answers += statement.answers
        fault = statement.fault(lines, state)
        if fault:
            before = "\n".join(f"{s.sql[:300]};" for s in statements[max(0, i - 6) : i])
            faults.append(f"{again}, statement {i + 1}:\n{before}\n{statement.sql[:1500]};\n{fault}")
            score.faults.append(faults[-1])
            if state != statement.state:
                break  # what follows is not what it was meant to be
    if len(results) < len(statements):
        faults.append(f"{again}: the session ended at statement {len(results) + 1}:\n{errors[-1000:]}")
    name = f"program {number}: {len(statements)} statements"
    ok(not faults, name, f"{len(faults)} are wrong", *faults[:2])


# ---------------------------------------------------------------------------------------------------
# Tests
# ---------------------------------------------------------------------------------------------------


def test_pool(pool):
    """What the programs rely on."""
    denied = [(f.number, n) for f in pool for n in f.members if f.says[f.element_type, n] != "t"]
    ok(not denied, "the reference denies no member", denied)
    alike = collections.Counter((f.bytes[:28], len(f.bytes)) for f in pool if f.element_type)
    distinct = {f.bytes for f in pool}
    twins = sum(number for number in alike.values() if number > 1)
    ok(twins >= 4 * len(FAMILIES) and len(distinct) == len(pool), "most have twins of one header and other bits", alike)
    stored = ask("SELECT id, encode(f::bytea, 'hex') FROM pool ORDER BY id")
    ok(stored == [f"{f.number}|{f.bytes.hex()}" for f in pool], "filters are stored as they were made")


def test_plans():
    program = Program(random.Random(1), [])
    process = run(
        f"{PARALLEL};\n"
        "EXPLAIN (COSTS OFF) SELECT count(*) FROM many_keys AS x WHERE (SELECT f FROM stored WHERE id = 1) @> x.b;\n"
        f"EXPLAIN (COSTS OFF) SELECT s.id, count(*) FROM stored AS s, keys AS x"
        f" WHERE s.id = ANY ('{{1,2,7,8,12}}') AND s.f @> x.b GROUP BY s.id ORDER BY s.id;\n"
        "SET max_parallel_workers_per_gather = 0;\n"
        + "".join(
            "EXPLAIN (COSTS OFF) " + program.nested([1, 2], "bigint", outside) + ";\n" for outside in (True, False)
        )
    )
    ok(process.stdout.count("Gather") >= 2, "workers probe filters of an InitPlan and of a join", process.stdout)
    lines = [line.strip() for line in process.stdout.split("\n")]
    scans = [i for i, line in enumerate(lines) if "Seq Scan on keys" in line][-2:]
    loops = [i for i, line in enumerate(lines) if line.startswith("Nested Loop")][-2:]
    ok(len(scans) == len(loops) == 2 and scans[0] > loops[0] + 1 and scans[1] == loops[1] + 1,
       "joins are nested either way", process.stdout)  # fmt: skip


def test_storage(pool):
    """Every form of storage: what a value takes more than its bytes tells where it is."""
    wanted = {
        1: ("few hashes", "short"), 2: ("1 kB", "inline"), 3: ("20 kB", "out of line"),
        6: ("30 kB of zeros", "compressed inline"), 7: ("200 kB of zeros", "compressed out of line"),
        8: ("80 kB, half zeros", "compressed out of line, in many pieces"),
        11: ("1 kB", "out of line"), 12: ("a word", "out of line"), 16: ("4 kB", "inline"),
    }  # fmt: skip
    numbers = {id_: next(f.number for f in pool if f.family == family) for id_, (family, _) in wanted.items()}
    program = Program(random.Random(1), pool)
    program.rows = dict(numbers)
    ask("TRUNCATE stored")
    ask(program.insert())
    forms = ask(
        "SELECT id, CASE WHEN pg_column_compression(f) IS NULL THEN"
        "  CASE pg_column_size(f) - octet_length(f::bytea) WHEN 0 THEN 'out of line' WHEN 1 THEN 'short'"
        "   WHEN 4 THEN 'inline' END"
        " WHEN pg_column_size(f) > 8000 THEN 'compressed out of line, in many pieces'"
        " WHEN pg_column_size(f) > 2000 THEN 'compressed out of line' ELSE 'compressed inline' END"
        " FROM stored ORDER BY id"
    )
    expected = [f"{id_}|{form}" for id_, (_, form) in wanted.items()]
    ok(forms == expected, "values are stored in every form", f"got      {forms}", f"expected {expected}")


FLAT = f"""
CREATE TABLE flat (id int PRIMARY KEY, f bloomfilter);
INSERT INTO flat SELECT id, bloom_agg(x, 16000)
    FROM generate_series(1, 12) AS id, generate_series(1, 3000) AS x GROUP BY id;
CREATE FUNCTION used(OUT bytes bigint, OUT anonymous bigint) LANGUAGE sql AS $$
    SELECT (SELECT sum(total_bytes) FROM pg_backend_memory_contexts),
        1024 * (SELECT m[1]::bigint FROM regexp_matches(pg_read_file('/proc/self/status'), 'RssAnon:\\s*(\\d+)') AS m)
$$;
-- Twelve filters, each of which is replaced in every round and then probed again and again, and two by turns,
-- one being in memory. Gives how many elements were denied that a filter holds.
CREATE FUNCTION probe_flat(rounds int, keys int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    r record;
    g bloomfilter;
    several record;
    denied bigint := 0;
BEGIN
    FOR i IN 1 .. rounds LOOP
        BEGIN
            UPDATE flat SET f = bloom_add(f, -i);
            FOR r IN SELECT id, f FROM flat LOOP
                g := r.f;
                FOR k IN 1 .. keys LOOP
                    denied := denied + (NOT g @> k)::int;
                END LOOP;
                denied := denied + (NOT g @> -i)::int;
            END LOOP;
            SELECT a.f AS a, b.f::bytea::bloomfilter AS b INTO several FROM flat AS a, flat AS b
                WHERE a.id = 1 + i % 12 AND b.id = 12 - i % 12;
            FOR k IN 1 .. keys LOOP
                denied := denied + (NOT several.a @> k)::int
                    + (NOT CASE k % 2 WHEN 0 THEN several.a ELSE several.b END @> k)::int;
            END LOOP;
            IF i % 5 = 0 THEN
                RAISE division_by_zero;
            END IF;
        EXCEPTION WHEN division_by_zero THEN
            NULL;
        END;
    END LOOP;
    RETURN denied;
END $$;
"""


def test_memory():
    """A million probes of stored filters that change, in one transaction: what a session holds stays flat."""
    process = run("\\set ON_ERROR_STOP on\n" + FLAT)
    if process.returncode != 0:
        raise Failed(process.stderr)
    results, errors = psql(
        "SET work_mem = '512kB'",
        "BEGIN",
        "DECLARE slices CURSOR FOR SELECT f @> i FROM generate_series(1, 10000) AS i, flat",
        "DECLARE copies CURSOR FOR SELECT f @> i FROM generate_series(1, 100000) AS i, flat WHERE id <= 6",
        "MOVE 5000 FROM slices", "MOVE 5000 FROM copies",
        "SELECT probe_flat(5, 100)",
        "SELECT * FROM used()",
        "MOVE 30000 FROM slices", "MOVE 500000 FROM copies",
        "SELECT probe_flat(25, 1700)",
        "SELECT * FROM used()",
    )  # fmt: skip
    good = len(results) == 12 and all(state == "00000" for _, state in results)
    ok(good, "a million probes: run", errors)
    if not good:
        return
    denied = [results[i][0] for i in (6, 10)]
    ok(denied == [["0"], ["0"]], "a million probes: no element denied", denied)
    before, after = ([int(field) for field in results[i][0][0].split("|")] for i in (7, 11))
    grown = [(b - a) / 1024 for a, b in zip(before, after)]
    note(f"after a million probes, memory contexts have {grown[0]:+.0f} kB, anonymous memory {grown[1]:+.0f} kB")
    ok(grown[0] < 200 and (grown[1] < 2000 or sanitized()), "a million probes: memory stays flat", grown)


WEIGHTS = f"""
CREATE TABLE heavy (id int PRIMARY KEY, plain bloomfilter, packed bloomfilter);
ALTER TABLE heavy ALTER packed SET STORAGE EXTENDED;
CREATE FUNCTION probe_heavy(packs boolean, rounds int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    r record;
    g bloomfilter;
    found bigint := 0;
BEGIN
    FOR i IN 1 .. rounds LOOP
        FOR r IN SELECT id, CASE WHEN packs THEN packed ELSE plain END AS f FROM heavy ORDER BY id LOOP
            g := r.f;
            FOR k IN 1 .. 200 LOOP
                found := found + (g @> k)::int;
            END LOOP;
        END LOOP;
    END LOOP;
    RETURN found;
END $$;
"""


def test_work_mem():
    """The copies take work_mem or are a single one, whatever they take when stored. One is made when as much has been
    read of a filter for single probes, long before 200 of them."""
    size, filters, rounds = 1 << 20, 6, 4
    header = ref.Filter("blocked", 6, ref.single(0.01), 0, 8 * size, ref.CLASSES["bigint"], None, b"").encode()
    zeros = f"'\\x{header.hex()}'::bytea || decode(repeat('00', {size}), 'hex')"
    process = run(
        f"\\set ON_ERROR_STOP on\n{WEIGHTS}INSERT INTO heavy SELECT id, f, f"
        f" FROM generate_series(1, {filters}) AS id, CAST({zeros} AS bloomfilter) AS f;\n"
    )
    if process.returncode != 0:
        raise Failed(process.stderr)
    for packs in (False, True):
        for work_mem, copies in (("64kB", 1), (f"{size * 7 // 2048}kB", 3), ("64MB", filters)):
            results, errors = psql(
                f"SELECT probe_heavy({packs}, 1)", f"SET work_mem = '{work_mem}'", "BEGIN", "SELECT * FROM used()",
                f"SELECT probe_heavy({packs}, {rounds})", "SELECT * FROM used()",
            )  # fmt: skip
            name = f"{filters} filters of 1 MB, {'compressed' if packs else 'plain'}, work_mem {work_mem}"
            if len(results) != 6 or results[4] != (["0"], "00000"):
                ok(False, name, results[4:], errors)
                continue
            before, after = (int(results[i][0][0].split("|")[0]) for i in (3, 5))
            kept = (after - before) / size
            ok(copies - 0.5 < kept < copies + 0.5, f"{name}: keeps {copies}", f"{kept:.2f} MB")


# ---------------------------------------------------------------------------------------------------
# The copies that all call sites share
# ---------------------------------------------------------------------------------------------------

PARTS, SPREAD, KEPT = 365, 36500, "bloomtype stored%"
SHARED = f"""
CREATE TABLE large (id int PRIMARY KEY, f bloomfilter);
CREATE TABLE spread (part int, k bigint) PARTITION BY LIST (part);
DO $$ BEGIN
    FOR i IN 0 .. {PARTS - 1} LOOP
        EXECUTE format('CREATE TABLE spread_%1$s PARTITION OF spread FOR VALUES IN (%1$s)', i);
    END LOOP;
END $$;
INSERT INTO spread SELECT i % {PARTS}, i FROM generate_series(1, {SPREAD}) AS i;
CREATE FUNCTION memory(OUT contexts bigint, OUT copies bigint, OUT now bigint, OUT most bigint) LANGUAGE sql AS $$
    SELECT (SELECT sum(total_bytes) FROM pg_backend_memory_contexts),
        (SELECT count(*) FROM pg_backend_memory_contexts WHERE name LIKE '{KEPT}'),
        kb[1] * 1024, (kb[1] + kb[2] - kb[3]) * 1024
    FROM (SELECT array_agg(m[1]::bigint) AS kb FROM pg_read_file('/proc/self/status') AS status,
        unnest('{{RssAnon,VmHWM,VmRSS}}'::text[]) AS name, regexp_matches(status, name || ':\\s*(\\d+)') AS m) AS s
$$;
-- Reads all pages of a table's TOAST table, to have them in the process's account of shared memory.
CREATE FUNCTION touch(regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE (SELECT format('SELECT sum(length(chunk_data)) FROM %s', reltoastrelid::regclass) FROM pg_class WHERE oid = $1);
END $$;
CREATE FUNCTION ten_sites(f bloomfilter) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    found bigint := 0;
BEGIN
    FOR k IN 1 .. 2000 LOOP
        {" ".join("found := found + (f @> k)::int;" for _ in range(10))}
    END LOOP;
    RETURN found;
END $$;
-- Odd filters hold everything, even ones nothing.
CREATE TABLE opposites (id int PRIMARY KEY, f bloomfilter);
CREATE FUNCTION get(i int) RETURNS bloomfilter LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT f FROM opposites WHERE id = i);
END $$;
-- One call site has a shortcut to the first filter while another one meets all others.
CREATE FUNCTION two_sites(often boolean) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    a bloomfilter := (SELECT f FROM opposites WHERE id = 1);
    g bloomfilter;
    r record;
    wrong int := 0;
BEGIN
    FOR i IN 1 .. 2 LOOP
        FOR k IN 1 .. 300 LOOP
            wrong := wrong + (NOT a @> k)::int;
        END LOOP;
        FOR r IN SELECT id, f FROM opposites WHERE id > 1 ORDER BY id LOOP
            g := r.f;
            FOR k IN 1 .. 300 LOOP
                wrong := wrong + ((g @> k) <> (r.id % 2 = 1))::int
                    + CASE WHEN often OR k = 300 THEN (NOT a @> k)::int ELSE 0 END;
            END LOOP;
        END LOOP;
    END LOOP;
    RETURN wrong;
END $$;
CREATE PROCEDURE commits(INOUT copies bigint, INOUT after bigint, INOUT wrong int) LANGUAGE plpgsql AS $$
BEGIN
    wrong := two_sites(true);
    SELECT m.copies INTO copies FROM memory() AS m;
    COMMIT;
    SELECT m.copies INTO after FROM memory() AS m;
END $$;
CREATE TABLE thousands (id int, f bloomfilter);
INSERT INTO thousands SELECT i, f FROM generate_series(1, 3000) AS i,
    (SELECT bloom_agg(j, 10000000) AS f FROM generate_series(1, 1200) AS j) AS v;
"""


def stored(table, id_, header, *runs):
    """An INSERT of a filter whose bits are runs of one byte."""
    data = " || ".join(f"decode(repeat('{byte:02x}', {count}), 'hex')" for byte, count in runs)
    return f"INSERT INTO {table} VALUES ({id_}, ('\\x{header.hex()}'::bytea || {data})::bloomfilter);\n"


def header_of(size):
    return ref.Filter("blocked", 6, ref.single(0.01), 0, 8 * size, ref.CLASSES["bigint"], None, b"").encode()


def set_up_shared():
    half = 6 << 20
    bits = b"\xff" * half + bytes(half)
    script = SHARED + stored("large", 1, header_of(2 * half), (255, half), (0, half))
    size = 1 << 20
    for i in range(1, 9):
        script += stored("opposites", i, header_of(size), (255 * (i % 2), size))
    process = run("\\set ON_ERROR_STOP on\n" + script)
    if process.returncode != 0:
        raise Failed(process.stderr)
    return ref.Filter("blocked", 6, ref.single(0.01), 0, 16 * half, ref.CLASSES["bigint"], None, bits)


def steps(name, *statements):
    """Statements, each with what it should say, or None for anything."""
    results, errors = psql(*(sql for sql, _ in statements))
    wrong = [
        f"{sql}\ngot      {lines}, SQLSTATE {state}\nexpected {wanted}"
        for (sql, wanted), (lines, state) in zip(statements, results)
        if wanted is not None and lines != wanted
    ]
    ok(len(results) == len(statements) and not wrong, name, *wrong[:2], errors)
    return [lines for lines, _ in results]


def test_shared_memory(large):
    """A filter of 12 MB at many call sites: one copy."""
    holds = [large.contains(ref.element("bigint", k)) for k in range(1, SPREAD + 1)]
    found, ten = sum(holds), 10 * sum(holds[:2000])
    lines = steps(
        "one filter, 365 partitions and ten expressions: the answers are right",
        ("SET work_mem = '4MB'", []), ("SELECT touch('large')", None), ("SELECT count(*) FROM spread WHERE k > 0", None),
        ("BEGIN", []),
        ("SELECT * FROM memory()", None),
        ("SELECT count(*) FROM spread WHERE (SELECT f FROM large) @> k", [str(found)]),
        ("SELECT * FROM memory()", None),
        ("SELECT ten_sites(f) FROM large", [str(ten)]),
        ("SELECT * FROM memory()", None),
        ("COMMIT", []),
        ("SELECT * FROM memory()", None),
    )  # fmt: skip
    if len(lines) != 11:
        return
    before, partitions, expressions, after = ([int(n) for n in lines[i][0].split("|")] for i in (4, 6, 8, 10))
    for name, there in ("365 partitions", partitions), ("ten expressions", expressions):
        contexts, now, most = ((there[i] - before[j]) / 2**20 for i, j in ((0, 0), (2, 2), (3, 2)))
        note(f"{name}: memory contexts {contexts:+.1f} MB, anonymous memory {now:+.1f} MB, at most {most:+.1f} MB")
        ok(11 <= contexts < 14 and there[1] == 2, f"{name}: one copy", contexts, there)
        ok(most < 20 or sanitized(), f"{name}: no more than work_mem and 16 MB", most)
    ok(after[1] == 0 and after[0] - before[0] < 2**20, "the copy ends with the transaction", before, after)


def test_compressed_in_row():
    """An array is looked up within one row, so nothing that a probe allocates may wait for the row's end."""
    lines = steps(
        "a filter of 128 kB compressed in its row, 5,000 elements",
        ("CREATE TEMP TABLE packed (f bloomfilter)", []), ("ALTER TABLE packed ALTER f SET STORAGE main", []),
        ("INSERT INTO packed SELECT (decode('01000006140000000ad7233c0000000000000000', 'hex') || "
         "decode('0000100000000000' || repeat('00', 131072), 'hex'))::bloomfilter", []),
        ("SELECT pg_column_size(f) < 2000 FROM packed", ["t"]),
        ("SELECT * FROM memory()", None),
        ("SELECT f @> ANY (ARRAY(SELECT generate_series(1, 5000))) FROM packed", ["f"]),
        ("SELECT * FROM memory()", None),
    )  # fmt: skip
    if len(lines) == 7:
        before, after = ([int(n) for n in lines[i][0].split("|")] for i in (4, 6))
        grown = (after[3] - before[3]) / 2**20
        ok(grown < 20 or sanitized(), "memory does not grow with the elements", f"{grown:.0f} MB")


def test_end_of_transaction():
    none, kept, gone = "SELECT two_sites(true)", ("SELECT copies FROM memory()", ["2"]), ("SELECT copies FROM memory()", ["0"])
    probe = (none, ["0"])
    steps(
        "copies end with a transaction, however it ends",
        ("SET work_mem = '4MB'", []), probe, gone,
        ("BEGIN", []), probe, kept, ("COMMIT", []), gone,
        ("BEGIN", []), probe, kept, ("ROLLBACK", []), gone,
        ("BEGIN", []), ("SAVEPOINT a", []), probe, ("ROLLBACK TO a", []), kept, probe, ("COMMIT", []), gone,
        ("BEGIN", []), probe, ("SELECT 1 / 0", []), ("COMMIT", []), gone,
        ("SELECT two_sites(false) / 0", []), gone,
        ("CALL commits(0, 0, 0)", ["2|0|0"]), gone,
        ("SET max_parallel_workers_per_gather = 2", []),
        ("SELECT count(*) FROM many_keys AS x WHERE (SELECT f FROM opposites WHERE id = 1) @> x.b", [str(COPIES * KEYS)]), gone,
    )  # fmt: skip
    steps(
        "a cursor WITH HOLD says the same after its transaction",
        ("SET work_mem = '4MB'", []), ("BEGIN", []),
        ("DECLARE c CURSOR WITH HOLD FOR SELECT count(*) FILTER (WHERE f @> k), id FROM opposites, generate_series(1, 300) AS k"
         " GROUP BY id ORDER BY id", []),
        ("FETCH 2 FROM c", ["300|1", "0|2"]), kept, ("COMMIT", []), gone,
        ("UPDATE opposites SET f = f", []),
        ("FETCH ALL FROM c", [f"{300 * (i % 2)}|{i}" for i in range(3, 9)]), gone, ("CLOSE c", []),
    )  # fmt: skip
    # Two expressions copy their filters in turn: each finds the other's where its own was in the transaction before.
    steps(
        "commits in a DO block",
        ("SET work_mem = '4MB'", []),
        ("DO $$ DECLARE wrong int := 0; BEGIN FOR i IN 1 .. 9 LOOP FOR k IN 1 .. 600 LOOP"
         " IF (k <= 300) = (i % 2 = 1) THEN wrong := wrong + (NOT get(1) @> k)::int;"
         " ELSE wrong := wrong + (get(2) @> k)::int; END IF; END LOOP;"
         " IF i % 3 = 0 THEN ROLLBACK; ELSE COMMIT; END IF; END LOOP;"
         " PERFORM set_config('probing.said', wrong::text, false); END $$", []),
        ("SELECT current_setting('probing.said')", ["0"]), gone,
    )  # fmt: skip


def test_eviction():
    for work_mem in "64kB", "2500kB", "3500kB", "64MB":
        steps(
            f"two call sites by turns and eight filters, work_mem {work_mem}",
            (f"SET work_mem = '{work_mem}'", []),
            ("SELECT two_sites(true)", ["0"]), ("SELECT two_sites(false)", ["0"]),
            ("BEGIN", []), ("SELECT two_sites(false)", ["0"]), ("SET work_mem = '1200kB'", []),
            ("SELECT two_sites(true)", ["0"]), ("SELECT two_sites(false)", ["0"]), ("COMMIT", []),
        )  # fmt: skip
    probe = "SELECT count(*) FROM gone, generate_series(1, 300) AS k WHERE f @> k"
    other = "(SELECT f FROM opposites WHERE id = 2)"
    steps(
        "a filter that is dropped or replaced in its transaction",
        ("BEGIN", []), ("CREATE TABLE gone AS SELECT f FROM opposites WHERE id = 1", []), (probe, ["300"]),
        ("SAVEPOINT s", []), ("DROP TABLE gone", []),
        (f"CREATE TABLE gone AS SELECT {other} AS f", []), (probe, ["0"]),
        ("ROLLBACK TO s", []), (probe, ["300"]),
        (f"UPDATE gone SET f = {other}", []), (probe, ["0"]),
        ("ROLLBACK TO s", []), (probe, ["300"]),
        ("TRUNCATE gone", []), (f"INSERT INTO gone SELECT {other}", []), (probe, ["0"]), ("ROLLBACK", []),
    )  # fmt: skip


def test_many_filters():
    """What is known of thousands of filters without a copy is bounded, too."""
    used = f"SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE name LIKE '{KEPT}'"
    for work_mem, most in (("1MB", 160), ("64kB", 64)):
        lines = steps(
            f"one key in 3,000 filters, work_mem {work_mem}",
            (f"SET work_mem = '{work_mem}'", []), ("BEGIN", []),
            ("SELECT count(*) FROM thousands WHERE f @> 1", ["3000"]),
            ("SELECT count(*) FROM thousands WHERE f @> -1", ["0"]), (used, None), ("COMMIT", []),
        )  # fmt: skip
        bytes_ = int(lines[4][0])
        ok(bytes_ < most * 1024, f"one key in 3,000 filters, work_mem {work_mem}: at most {most} kB", bytes_)


def main():
    clean_up_when_terminated()
    global SETTINGS
    SETTINGS = SETTINGS.replace("@extschema@", extension_schema())
    note(f"PROBING_SEED={SEED}")
    pool = make_pool(random.Random(f"{SEED} pool"))
    scores = collections.defaultdict(Score)
    try:
        set_up(pool)
        test_pool(pool)
        test_plans()
        test_storage(pool)
        only = os.environ.get("PROBING_ONLY")
        for number in [int(only)] if only else range(1, PROGRAMS + 1):
            run_program(number, pool, scores)
        test_memory()
        test_work_mem()
        large = set_up_shared()
        test_shared_memory(large)
        test_compressed_in_row()
        test_end_of_transaction()
        test_eviction()
        test_many_filters()
        for situation, score in sorted(scores.items()):
            answers = f", {score.answers} answers" if score.answers else ""
            ok(not score.faults, f"{situation}{answers}", f"{len(score.faults)} are wrong", *score.faults[:1])
        note(f"{sum(score.answers for score in scores.values())} answers")
    except Failed as problem:
        ok(False, "runs to its end", problem)
    finally:
        with contextlib.suppress(Failed):
            run(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE;\nDROP ROLE IF EXISTS {ROLE};\n")
    done()


if __name__ == "__main__":
    main()
