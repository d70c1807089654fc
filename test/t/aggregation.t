#!/usr/bin/python3 -B
"""The aggregates at any scale: one set gives one value by whatever plan, a filter that sizes itself keeps
its rate, states cross from hashes to bits and combine, memory is bounded, filters are brought to one size.

    prove test/t/aggregation.t       PGDATABASE names a database with the extension bloomtype

What is right comes from test/golden/reference.py, that is from doc/format.md. Needs python3-xxhash, psql
and a superuser; one part builds the extension anew with a low threshold, with the server's PG_CONFIG.
Everything lives in a schema of its own, which goes away at the end.
"""

import concurrent.futures
import contextlib
import decimal
import functools
import hashlib
import math
import os
import random
import re
import shutil
import statistics
import struct
import subprocess
import tempfile
import uuid
from dataclasses import dataclass, field, replace

import harness
import reference as ref
from harness import (Failed, clean_up_when_terminated, done, extension_schema, hex_of, note, ok, part, quote, same,
                     sanitized, skip, value)

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

SCHEMA = "bloomtype_aggregation"
SETS = 1000
LARGEST_SET = 20_000


# ---------------------------------------------------------------------------------------------------
# The server
# ---------------------------------------------------------------------------------------------------

MARK = "=== end of statement ==="
SETTINGS = f"""
SET search_path = {SCHEMA}, @extschema@, pg_catalog;
SET standard_conforming_strings = on;
SET client_min_messages = error;
SET bytea_output = hex;
SET extra_float_digits = 1;
SET default_statistics_target = 10;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
"""
PARALLEL = """
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 4;
"""
EXPLAIN_ANALYZE = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) "
TO_SPILL = "SET work_mem = '64kB'; SET hash_mem_multiplier = 1; SET enable_sort = off;\n"


def psql(*statements, settings=""):
    """The lines that each of these statements gives, all run in one session."""
    script = SETTINGS + settings + "".join(f"{s.strip()}\n;\n\\echo {MARK}\n" for s in statements)
    output = "".join(line + "\n" for line in harness.psql(script, PGAPPNAME="aggregation.t"))
    parts = [part.strip("\n") for part in output.split(MARK + "\n")[:-1]]
    return [part.split("\n") if part else [] for part in parts]


def ask(statement, settings=""):
    """The lines of one statement."""
    return psql(statement, settings=settings)[0]


def ask_one(statement, settings=""):
    """The fields of a statement that gives one row."""
    (line,) = ask(statement, settings)
    return line.split("|")


def copy(table, rows, columns=""):
    """Fills a table from rows of strings, None being NULL."""
    lines = ["\t".join("\\N" if v is None else v.replace("\\", "\\\\") for v in row) for row in rows]
    script = SETTINGS + f"COPY {table} {columns} FROM STDIN;\n" + "\n".join(lines + ["\\.\n"])
    harness.psql(script)


def sha256(f):
    return None if f is None else hashlib.sha256(f.encode()).hexdigest()


def sha256_sql(f):
    return f"encode(sha256(({f})::bytea), 'hex')"


# ---------------------------------------------------------------------------------------------------
# Comparisons
# ---------------------------------------------------------------------------------------------------


def same_answers(got, expected, name):
    """Two dictionaries."""
    wrong = [key for key in expected if got.get(key) != expected[key]] + [k for k in got if k not in expected]
    detail = [f"{key}: got {got.get(key)}, expected {expected.get(key)}" for key in wrong[:5]]
    ok(not wrong, name, f"{len(wrong)} of {len(expected)} differ", *detail)


def check_plan(lines, patterns, name):
    plan = "\n".join(lines)
    ok(all(re.search(pattern, plan) for pattern in patterns), f"{name}: plan", " ... ".join(patterns), plan)


# ---------------------------------------------------------------------------------------------------
# The reference, remembering what is slow
# ---------------------------------------------------------------------------------------------------

own_m = functools.lru_cache(None)(ref.choose_own_m)


@functools.lru_cache(None)
def created(layout, p, items, seed=0):
    return ref.create(layout, p, items=items, seed=seed)


def self_sized(p, element_class, hashes, seed=0):
    unsized = ref.empty(p, seed=seed)
    if not hashes:
        return unsized
    return replace(unsized, m=own_m(p, len(set(hashes)))).with_hashes(element_class, hashes)


def hashes_of(numbers):
    return [ref.hash_of(ref.int8(number)) for number in numbers]


def onto(base, element_class, hashes):
    """What bloom_agg makes of elements, of which there are the hashes with the base's seed."""
    if base.without_size:
        return self_sized(base.p, element_class, hashes, base.seed)
    return base.with_hashes(element_class if hashes else base.element_class, hashes)


def random_number(rng, lowest, highest):
    """Evenly spread over the orders of magnitude."""
    return math.exp(rng.uniform(math.log(lowest), math.log(highest)))


def random_seed(rng):
    return rng.choice((0, rng.getrandbits(64)))


# ---------------------------------------------------------------------------------------------------
# One set, one value: sets of elements
# ---------------------------------------------------------------------------------------------------


def spell_numeric(rng, number):
    """Equal numbers of different scale are one element."""
    text = format(number, "f")
    return text + ("" if "." in text else ".") + "0" * rng.randint(1, 3) if rng.random() < 0.5 else text


def random_decimals(rng, n):
    return {decimal.Decimal(rng.randint(-(10**12), 10**12)).scaleb(-rng.randint(0, 8)) for _ in range(n)}


def random_words(rng, n):
    return ["".join(rng.choices("abcdefghij '", k=rng.choice((1, 3, 8, 8, 8, 40)))) + str(i) for i in range(n)]


def random_integers(rng, n):
    first = rng.choice((0, 0, -(2**63), 2**63 - 1 - LARGEST_SET, rng.getrandbits(40)))
    if rng.random() < 0.5:
        return {first + i for i in range(n)}
    return {rng.getrandbits(64) - 2**63 for _ in range(n)}


TYPES = {  # how to draw n values, and how SQL writes one
    "bigint": (random_integers, lambda rng, v: str(v)),
    "text": (random_words, lambda rng, v: v),
    "uuid": (
        lambda rng, n: {uuid.UUID(int=rng.getrandbits(128)) for _ in range(n)},
        lambda rng, v: rng.choice((str(v), str(v).upper())),
    ),
    "numeric": (random_decimals, spell_numeric),
    "double precision": (
        lambda rng, n: {rng.choice((rng.random(), float(rng.randint(-50000, 50000)))) for _ in range(n)},
        lambda rng, v: rng.choice(("-0", "0")) if v == 0 else repr(v),
    ),
}


@dataclass
class Set:
    id: int
    table: "Table"
    items: int  # or None
    rate: float
    base: ref.Filter  # what the aggregate has the parameters of: empty, without a size, or something in it
    base_is_null: bool
    canonical: list  # of the distinct elements
    rows: list = field(default_factory=list)  # SQL text or None, with duplicates

    def expected(self):
        hashes = [ref.hash_of(c, self.base.seed) for c in self.canonical]
        return onto(self.base, self.table.element_class, hashes)


@dataclass
class Table:
    form: str
    sql_type: str
    arguments: str  # those behind x
    joined: bool = False  # the filters come from another table
    sets: list = field(default_factory=list)

    @property
    def name(self):
        return f"{self.form}_{self.sql_type.split()[0]}"

    @property
    def title(self):
        return f"{self.call()} of {self.sql_type}"

    @property
    def element_class(self):
        return ref.CLASSES[self.sql_type]

    def source(self, elements=None):
        join = f" JOIN {self.name}_base AS b USING (id)" if self.joined else ""
        return f"{elements or self.name} AS e{join}"

    def call(self, modifier="", order=""):
        return f"bloom_agg({modifier}x{self.arguments}{order})"

    def query(self, elements=None, modifier="", order="", by="id"):
        digest = sha256_sql(self.call(modifier, order))
        return f"SELECT {by}, {digest} FROM {self.source(elements)} GROUP BY {by}"


FORMS = {
    "self": (", NULL::bigint", False), "plain": ("", False), "rate": (", NULL, rate", False),
    "items": (", items", False), "both": (", items, rate", False),
    "onto": (", base", True), "inline": (", base", False),
}  # fmt: skip
TABLES = (
    ("plain", "bigint"), ("plain", "text"), ("self", "bigint"), ("rate", "bigint"), ("rate", "uuid"),
    ("items", "bigint"), ("items", "text"), ("both", "bigint"), ("both", "numeric"),
    ("onto", "bigint"), ("onto", "double precision"), ("onto", "text"),
    ("inline", "bigint"), ("inline", "text"),
)  # fmt: skip


def random_base(rng, table, n):
    """A filter to add n elements to."""
    draw, _ = TYPES[table.sql_type]
    inline = table.form == "inline"
    kind = rng.choice(("null", "unsized", "empty", "empty", "few", "few", "many", "bits"))
    rate = random_number(rng, 1e-6, 0.5)
    if kind == "null":
        return ref.empty()
    if kind == "unsized":
        return ref.empty(rate, seed=random_seed(rng))
    layout = rng.choice(ref.LAYOUTS)
    items = round(random_number(rng, max(1, n / 5), 10 * n + 2))
    if inline:
        items = min(items, 60)
    base = created(layout, rate, items, random_seed(rng))
    if kind == "empty":
        return base
    before = [ref.element(table.sql_type, v) for v in draw(rng, 3 if kind == "few" else rng.randint(1, items))]
    base = base.add(before)
    if kind == "bits" and base.sparse:  # an intersection is dense however little is in it
        base = replace(base, hashes=None, bits=base.bits_with(bytes(base.m // 8), base.hashes))
    return base


def make_set(rng, number, table, n):
    if table.form == "inline":
        n = min(n, 400)
    draw, write = TYPES[table.sql_type]
    values = draw(rng, n)
    items = rate = None
    if table.form in ("onto", "inline"):
        base = random_base(rng, table, n)
    else:
        rate = random_number(rng, 1e-6, 0.5) if table.form in ("rate", "both") else 0.01
        if table.form == "items" or table.form == "both" and rng.random() < 0.8:
            items = round(random_number(rng, max(1, n / 5), 30 * n + 2))
        base = created("blocked", rate, items) if items else ref.empty(rate)
    is_null = base == ref.empty() and table.form in ("onto", "inline")
    canonical = [ref.element(table.sql_type, v)[1] for v in values]
    rows = [write(rng, v) for v in values]
    if values:
        share = rng.choice((0, 0.05, 0.3))
        some = list(values)
        rows += [write(rng, rng.choice(some)) for _ in range(round(share * len(some)))]
    rows += [None] * (rng.choice((0, 0, 1, 5)) if rows else rng.randint(1, 9))
    return Set(number, table, items, rate, base, is_null, canonical, rows)


def load(rng, table):
    """One row per element, those of all sets mixed."""
    joined, inline = table.joined, table.form == "inline"
    rows = []
    for s in table.sets:
        base = None if s.base_is_null else hex_of(s.base)
        tail = [None if s.items is None else str(s.items), None if s.rate is None else repr(s.rate)]
        tail += [base] if inline else []
        rows += [[str(s.id), str(rng.randrange(8)), x, *tail] for x in s.rows]
    rng.shuffle(rows)
    columns = f"id int, part int, x {table.sql_type}, items bigint, rate float8" + ", base bloomfilter" * inline
    psql(f"CREATE UNLOGGED TABLE {table.name} ({columns})")
    copy(table.name, rows)
    if joined:
        psql(f"CREATE UNLOGGED TABLE {table.name}_base (id int PRIMARY KEY, base bloomfilter)")
        bases = [[str(s.id), None if s.base_is_null else hex_of(s.base)] for s in table.sets]
        copy(f"{table.name}_base", bases)
        psql(f"ANALYZE {table.name}_base")
    by = {"x": "hash (x)", "id": "hash (id)"}
    statements = [f"ANALYZE {table.name}"]
    if not joined:
        for key, method in by.items():
            name = f"{table.name}_by_{key}"
            statements += [f"CREATE TABLE {name} (LIKE {table.name}) PARTITION BY {method}"]
            statements += [
                f"CREATE UNLOGGED TABLE {name}_{i} PARTITION OF {name} "
                f"FOR VALUES WITH (MODULUS 3, REMAINDER {i})"
                for i in range(3)
            ]
            statements += [f"INSERT INTO {name} SELECT * FROM {table.name}", f"ANALYZE {name}"]
    psql(*statements)


def make_tables(rng):
    tables = [Table(form, sql_type, *FORMS[form]) for form, sql_type in TABLES]
    sizes = [math.floor(math.exp(math.log(LARGEST_SET + 1) * rng.random() ** 2.2)) - 1 for _ in range(SETS)]
    sizes[: 2 * len(tables) : 2] = [0] * len(tables)
    sizes[1 : 2 * len(tables) : 2] = [rng.choice((7, 8, 9, LARGEST_SET)) for _ in tables]
    for number, n in enumerate(sizes):
        table = tables[number // 2 % len(tables)]
        table.sets.append(make_set(rng, number, table, n))
    for table in tables:
        load(rng, table)
    return tables


def answers(lines):
    return dict(line.rsplit("|", 1) for line in lines)


def variations(table):
    """Ways to aggregate the sets of a table: name, settings, query, what the plan must show."""
    query = table.query()
    yield "hashed", "SET enable_sort = off;", query, [r"\bHashAggregate"]
    yield "sorted groups", "SET enable_hashagg = off;", query, [r"\bGroupAggregate"]
    for order in ("x", "x DESC", "md5(x::text)"):
        yield f"ORDER BY {order}", "", table.query(order=f" ORDER BY {order}"), []
    if table.form in ("onto", "inline"):
        extra = ", base" if table.form == "inline" else ""
        once = f"(SELECT DISTINCT ON (id, x) id, x{extra} FROM {table.name})"
        yield "distinct rows", "", table.query(once), []
    else:
        yield "DISTINCT", "", table.query(modifier="DISTINCT "), []
    doubled = f"(SELECT * FROM {table.name} UNION ALL SELECT * FROM {table.name})"
    yield "every row twice", "", table.query(doubled), []
    for workers in range(5):
        settings = PARALLEL + f"ALTER TABLE {table.name} SET (parallel_workers = {workers});"
        if workers == 2:
            settings += "SET parallel_leader_participation = off;"
        if workers == 0:
            yield "no worker", settings + "SET max_parallel_workers_per_gather = 0;", query, []
        else:
            plan = ["Finalize", "Partial", f"Workers Planned: {workers}"]
            yield f"{workers} workers", settings, query, plan
    sorting = PARALLEL + f"ALTER TABLE {table.name} SET (parallel_workers = 3); SET enable_hashagg = off;"
    plan = ["Finalize GroupAggregate", "Gather Merge", "Partial GroupAggregate"]
    yield "3 workers, sorted groups", sorting, query, plan
    if not table.joined:
        wise = "SET enable_partitionwise_aggregate = on;"
        plan = ["Finalize", "Append", "Partial"]
        yield "partition-wise, in part", wise, table.query(f"{table.name}_by_x"), plan
        plan = [r"(?s)Append.*Aggregate.*Aggregate"]
        yield "partition-wise, in full", wise, table.query(f"{table.name}_by_id"), plan
        plan = ["Finalize", "Gather", "Partial"]
        yield "partition-wise, parallel", wise + PARALLEL, table.query(f"{table.name}_by_x"), plan


def forced_parallel_setting():
    (version,) = ask_one("SHOW server_version_num")
    return "debug_parallel_query" if int(version) >= 160000 else "force_parallel_mode"


def run_variations(table):
    """What the server says, of one table: for each variation its plan and the digests."""
    results = []
    for name, settings, query, plan in variations(table):
        lines = psql(f"EXPLAIN (COSTS OFF) {query}", query, settings=settings + "\n")
        results.append((name, plan, *lines))
    return results


def test_sets(rng):
    """Returns the tables."""
    tables = make_tables(rng)
    sizes = [len(s.canonical) for table in tables for s in table.sets]
    note(f"{len(sizes)} sets of {min(sizes)} to {max(sizes)} elements, {sum(sizes)} in all")
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        futures = {table.name: executor.submit(run_variations, table) for table in tables}
        expected = {t.name: {str(s.id): sha256(s.expected()) for s in t.sets} for t in tables}
        for table in tables:
            for name, plan, explained, lines in futures[table.name].result():
                title = f"{table.title}, {name}"
                if plan:
                    check_plan(explained, plan, title)
                title += f": {len(table.sets)} sets as by the reference"
                same_answers(answers(lines), expected[table.name], title)
    return tables, expected


def test_forms_agree(tables, expected):
    """The form that takes everything from a filter gives the same as the more special ones; and all of
    it once more where the plan is forced into a worker."""
    forced = forced_parallel_setting()
    for table in tables:
        if table.form in ("onto", "inline"):
            continue
        copy_base = f"{table.name}_base"
        psql(f"CREATE UNLOGGED TABLE {copy_base} (id int PRIMARY KEY, base bloomfilter)")
        copy(copy_base, [[str(s.id), hex_of(s.base)] for s in table.sets])
        queries = {
            "bloom_agg(x, base)": f"SELECT id, {sha256_sql('bloom_agg(x, base)')} FROM {table.name} "
            f"JOIN {copy_base} USING (id) GROUP BY id",
        }
        if table.form in ("self", "plain"):
            for call in ("bloom_agg(x)", "bloom_agg(x, NULL, 0.01)", "bloom_agg(x, NULL::bloomfilter)"):
                queries[call] = f"SELECT id, {sha256_sql(call)} FROM {table.name} GROUP BY id"
        if table.form == "items":
            call = "bloom_agg(x, items, 0.01)"
            queries[call] = f"SELECT id, {sha256_sql(call)} FROM {table.name} GROUP BY id"
        lines = psql(*queries.values())
        for call, answer in zip(queries, lines):
            same_answers(answers(answer), expected[table.name], f"{table.title} as {call}")
    shown, name = [], "the same in a worker"
    for table in tables:
        settings = f"SET {forced} = on; SET max_parallel_workers_per_gather = 2;\n"
        explained, lines = psql(f"EXPLAIN (COSTS OFF) {table.query()}", table.query(), settings=settings)
        shown += explained
        same_answers(answers(lines), expected[table.name], f"{table.title}, {name}")
    check_plan(shown, ["Single Copy: true"], name)


def test_partitions_of_the_input(tables, expected):
    """Sets divided at random: a union of the parts at equal size is the whole."""
    for table in tables:
        parts = f"SELECT id, part, {table.call()} AS f FROM {table.source()} GROUP BY id, part"
        sized = {str(s.id) for s in table.sets if not s.base.without_size}
        # a part whose rows were all null has no class or no size, which changes nothing
        of_one_size = f"({parts}) AS p WHERE id IN ({', '.join(sized) or 'NULL'}) GROUP BY id"
        queries = [
            f"SELECT id, {sha256_sql('bloom_union_agg(f)')} FROM {of_one_size}",
            f"SELECT id, {sha256_sql('bloom_union_agg(f ORDER BY part DESC)')} FROM {of_one_size}",
            f"SELECT id, part, {sha256_sql('f')} FROM ({parts}) AS p",
        ]
        up, down, single = psql(*queries)
        if sized:
            wanted = {key: digest for key, digest in expected[table.name].items() if key in sized}
            same_answers(answers(up), wanted, f"{table.title}: {len(sized)} unions of parts are the wholes")
            same(sorted(down), sorted(up), f"{table.title}: unions of parts, in the other order")

        # the same groups, too many for the memory allowed; serial, and in workers
        settings = TO_SPILL + f"ALTER TABLE {table.name} SET (parallel_workers = 2);"
        for name, more in (("spilled", ""), ("spilled, 2 workers", PARALLEL)):
            explained, lines = psql(EXPLAIN_ANALYZE + queries[2], queries[2], settings=settings + more)
            plan = [r"\bHashAggregate", "Disk Usage: [1-9]"] + (["Finalize", "Partial"] if more else [])
            groups = f"{table.title}, {len(single)} groups"
            check_plan(explained, plan, f"{groups}, {name}")
            same(sorted(lines), sorted(single), f"{groups}, {name}: as in memory")


# Workers that saw no row


def test_idle_workers():
    """Tables of one page, read by a leader and four workers, of which at most one sees a row."""
    sources = {
        "one row": "VALUES (7::bigint)",
        "a few rows": "SELECT i::bigint FROM generate_series(1, 5) AS i",
        "a page of rows": "SELECT i::bigint % 60 FROM generate_series(1, 150) AS i",
        "only nulls": "SELECT NULL::bigint FROM generate_series(1, 20)",
        "no rows": "SELECT 1 WHERE false",
    }
    seven = ref.build("classic", 0.01, series(100, 200), items=100, seed=5)
    forms = {
        "bloom_agg(x)": ref.empty(),
        "bloom_agg(x, NULL, 0.2)": ref.empty(0.2),
        "bloom_agg(x, 100)": created("blocked", 0.01, 100),
        "bloom_agg(x, 5, 0.001)": created("blocked", 0.001, 5),
        f"bloom_agg(x, {value(seven)})": seven,
        f"bloom_agg(x, {value(created('blocked', 0.1, 10, 3))})": created("blocked", 0.1, 10, 3),
    }
    idle = runs = 0
    for number, (name, rows) in enumerate(sources.items()):
        table = f"page_{number}"
        psql(
            f"CREATE TABLE {table} (x bigint) WITH (parallel_workers = 4, autovacuum_enabled = off)",
            f"INSERT INTO {table} {rows}",
            f"INSERT INTO {table} VALUES (1)",
            f"DELETE FROM {table} WHERE ctid = (SELECT max(ctid) FROM {table})",
            f"ANALYZE {table}",
            # so that workers seem worth it
            f"UPDATE pg_class SET reltuples = 100000 * relpages WHERE oid = '{table}'::regclass",
        )
        present = ask(f"SELECT x FROM {table} WHERE x IS NOT NULL")
        (pages,) = ask_one(f"SELECT pg_relation_size('{table}') / current_setting('block_size')::int")
        ok(int(pages) == 1, f"{name}: one page")
        queries = [f"SELECT coalesce({sha256_sql(call)}, 'null') FROM {table}" for call in forms]
        for participation in ("on", "off"):
            settings = PARALLEL + f"SET parallel_leader_participation = {participation};\n"
            explained = psql(*(EXPLAIN_ANALYZE + q for q in queries), settings=settings)
            digests = psql(*queries, settings=settings)
            for call, plan, (digest,) in zip(forms, explained, digests):
                base = forms[call]
                hashes = [ref.hash_of(ref.int8(int(x)), base.seed) for x in present]
                wanted = sha256(ref.empty() if name == "no rows" else onto(base, 20, hashes))
                if name == "no rows" and "::bloomfilter" in call:
                    wanted = "null"
                title = f"{name}, 4 workers, leader {participation}, {call[:40]}"
                same(digest, wanted, title)
                check_plan(plan, ["Finalize Aggregate", "Partial Aggregate", "Workers Planned: 4"], title)
                launched = int(re.search(r"Workers Launched: (\d)", "\n".join(plan))[1])
                runs += 1
                idle += launched + (participation == "on") > 1
    ok(idle > 0, f"in {idle} of {runs} runs a process saw no row")


def series(first, last):
    return [ref.element("bigint", number) for number in range(first, last + 1)]


# ---------------------------------------------------------------------------------------------------
# One set, one value: sets of filters
# ---------------------------------------------------------------------------------------------------


def random_operand(rng, layout, k, seed, element_class, m, shared):
    """Null, empty, sparse or dense; with a rate of its own."""
    if rng.random() < 0.05:
        return None
    f = ref.Filter(layout, k, ref.single(random_number(rng, 1e-9, 0.5)), seed, m)
    if m == 0:
        return replace(f, layout="blocked")
    how = rng.choice(("empty", "few", "few", "few", "many", "many", "bits"))
    if how == "empty":
        return replace(f, element_class=rng.choice((0, element_class)))
    if how == "bits":
        return replace(f, element_class=element_class, hashes=None, bits=rng.randbytes(m // 8))
    hashes = [rng.getrandbits(64) for _ in range(4)] + rng.sample(shared, 5)
    if how == "many":
        hashes += shared[: rng.randrange(len(shared))]
    return f.with_hashes(element_class, hashes)


def test_filters(rng):
    """bloom_union_agg and bloom_intersect_agg over random filters."""
    groups = {}
    for number in range(200):
        layout = rng.choice(("blocked", "blocked", "classic"))
        parameters = (layout, rng.randint(1, 20), rng.getrandbits(64), rng.choice(list(ref.CLASSES.values())))
        shared = [rng.getrandbits(64) for _ in range(300)]
        m = rng.choice((512, 1024, 3072, 12288, 49152)) if layout == "blocked" else 960
        groups[str(number)] = [
            random_operand(rng, *parameters, rng.choice((m, m, m, 0)), shared) for _ in range(rng.randint(1, 12))
        ]
    rows = [
        [number, str(rng.randrange(2)), None if f is None else hex_of(f)]
        for number, members in groups.items()
        for f in members
    ]
    rng.shuffle(rows)
    psql("CREATE UNLOGGED TABLE operands (id int, part int, f bloomfilter)")
    copy("operands", rows)
    psql(
        "CREATE TABLE operands_by (LIKE operands) PARTITION BY LIST (part)",
        "CREATE UNLOGGED TABLE operands_0 PARTITION OF operands_by FOR VALUES IN (0)",
        "CREATE UNLOGGED TABLE operands_1 PARTITION OF operands_by FOR VALUES IN (1)",
        "INSERT INTO operands_by SELECT * FROM operands",
        "ANALYZE operands",
        "ANALYZE operands_by",
    )

    present = {number: [f for f in fs if f is not None] for number, fs in groups.items()}
    wanted = {
        "bloom_union_agg": {n: sha256(ref.union_agg(fs) if fs else ref.empty()) for n, fs in present.items()},
        "bloom_intersect_agg": {
            n: sha256(functools.reduce(ref.intersect, fs)) if fs else "" for n, fs in present.items()
        },
    }
    forced = f"SET {forced_parallel_setting()} = on; SET max_parallel_workers_per_gather = 2;"
    twice = "(SELECT * FROM operands UNION ALL SELECT * FROM operands) AS o"
    for name, expected in wanted.items():

        def query(source="operands", order=""):
            return f"SELECT id, coalesce({sha256_sql(f'{name}(f{order})')}, '') FROM {source} GROUP BY id"

        workers = [
            (f"{w} workers", PARALLEL + f"ALTER TABLE operands SET (parallel_workers = {w});", query(),
             ["Finalize", "Partial", f"Workers Planned: {w}"])
            for w in (1, 2, 3, 4)
        ]  # fmt: skip
        ways = [
            ("hashed", "SET enable_sort = off;", query(), [r"\bHashAggregate"]),
            ("sorted groups", "SET enable_hashagg = off;", query(), [r"\bGroupAggregate"]),
            ("by size", "", query(order=" ORDER BY length(f::text)"), []),
            ("by size, descending", "", query(order=" ORDER BY length(f::text) DESC"), []),
            ("by digest", "", query(order=" ORDER BY md5(f::text)"), []),
            *workers,
            ("partition-wise", "SET enable_partitionwise_aggregate = on; SET cpu_tuple_cost = 10;",
             query("operands_by"), ["Finalize", "Append", "Partial"]),
            ("forced into a worker", forced, query(), ["Single Copy: true"]),
            ("every row twice", "", query(twice), []),
            ("spilled", TO_SPILL, query(), ["Disk Usage: [1-9]"]),
            ("spilled, 2 workers", TO_SPILL + PARALLEL + "ALTER TABLE operands SET (parallel_workers = 2);",
             query(), ["Finalize", "Partial", "Disk Usage: [1-9]"]),
        ]  # fmt: skip
        for how, settings, sql, plan in ways:
            explain = EXPLAIN_ANALYZE if "spilled" in how else "EXPLAIN (COSTS OFF) "
            explained, lines = psql(explain + sql, sql, settings=settings + "\n")
            if plan:
                check_plan(explained, plan, f"{name}, {how}")
            same_answers(answers(lines), expected, f"{name} of {len(groups)} sets of filters, {how}")


# ---------------------------------------------------------------------------------------------------
# Filters that size themselves
# ---------------------------------------------------------------------------------------------------

RATES = (0.01, 0.3, 1e-4)
COUNTS = (0, 1, 2, 7, 8, 9, 63, 64, 65, 1000, 2**20 - 1, 2**20)


def self_sized_call(x, p):
    return f"bloom_agg({x})" if p == 0.01 else f"bloom_agg({x}, NULL, {p!r})"


def items_for(p, m):
    """An expected count for which the size is m, so that a filter can be built at that size."""
    items = ref.capacity(p, m)
    assert ref.choose_m("blocked", p, items) == m
    return items


def test_self_sized():
    """Sizes, representation and bytes as the page says; rates measured, as the mean over many sets."""
    for p in RATES:
        for n in COUNTS:
            sets = max(1, min(1000, 100_000 // max(n, 1)))
            probes = 1_000_000 if sets == 1 else 400_000 // sets
            whole = n <= 1000
            shown = "f::text" if whole else "'\\x' || encode(substr(f::bytea, 1, 28), 'hex')"
            query = f"""
                SELECT s, {shown},
                    (SELECT count(*) FROM generate_series(1, {n}) AS i WHERE NOT f @> ((s << 32) + i)),
                    (SELECT count(*) FROM generate_series(1, {probes}) AS i WHERE f @> (-((s << 32) + i)))
                FROM generate_series(1::bigint, {sets}) AS s, LATERAL
                    (SELECT {self_sized_call("(s << 32) + i", p)} AS f FROM generate_series(1, {n}) AS i) AS b
                """
            name = f"self-sized for {n} at {p}"
            rows = [line.split("|") for line in ask(query)]
            m = own_m(p, n) if n else 0
            k = ref.choose_k("blocked", p)
            sparse = n == 0 or ref.may_be_sparse(n, m)
            if n == 0:
                shown = {row[1] for row in rows}
                same(shown, {hex_of(ref.empty())}, f"{name}: the empty filter without a size")
            else:
                header = ref.HEADER.pack(1, 0, int(sparse), k, 20, ref.single(p), 0, m).hex()
                heads = {row[1][2:58] for row in rows}
                same(heads, {header}, f"{name}: {m} bits, {'sparse' if sparse else 'dense'}")
            if whole and n:
                checked = rows[: max(3, 3000 // n)]
                wrong = []
                for s, f, *_ in checked:
                    first = (int(s) << 32) + 1
                    if f != hex_of(self_sized(p, 20, hashes_of(range(first, first + n)))):
                        wrong.append(s)
                ok(not wrong, f"{name}: {len(checked)} filters have the reference's bytes", wrong[:5])
            same(sum(int(row[2]) for row in rows), 0, f"{name}: no false negative")
            rates = [int(row[3]) / probes for row in rows]
            rate = statistics.mean(rates)
            if sparse:
                same(rate, 0.0, f"{name}: no false positive in {sets} x {probes} probes")
                continue
            theory = ref.expected_rate("blocked", k, m, n)
            sigma = math.sqrt(theory * (1 - theory) / (sets * probes))
            if sets > 1:
                sigma = max(sigma, statistics.stdev(rates) / math.sqrt(sets))
            figures = f"{rate:.6f}, sigma {sigma:.6f}, expected {theory:.6f}"
            ok(rate <= p * 1.05 + 4 * sigma, f"{name}: measured rate as promised: {figures}")
            ok(abs(rate - theory) <= 0.05 * theory + 4 * sigma, f"{name}: measured rate as expected", figures)


def test_self_sized_is_sized(rng):
    """At the size that it chose, the filter is the one that was asked for: at sizes too large for the
    reference to build, and beyond 2^24, where the way there is another."""
    for n, p in ((2**20, 0.01), (2**20, 0.3), (2**20, 1e-4), (2**24 + 1, 0.01)):
        m = own_m(p, n)
        items = items_for(p, m)
        first = rng.randrange(2**40)
        rows = f"(SELECT generate_series({first}, {first + n - 1}) AS x) AS s"
        members = f"(SELECT x FROM {rows} WHERE x % {max(1, n >> 20)} = 0) AS s"
        name = f"self-sized for {n} at {p}"
        alike, bits, missing, found = ask_one(f"""
            SELECT a = b, length(a::bytea) * 8 - 224, (SELECT count(*) FROM {members} WHERE NOT a @> x),
                (SELECT count(*) FROM generate_series(1, 1000000) AS i WHERE a @> (-i)::bigint)
            FROM (SELECT {self_sized_call("x", p)} AS a FROM {rows}) AS a,
                (SELECT bloom_agg(x, {items}, {p!r}) AS b FROM {rows}) AS b
            """)
        same(alike, "t", f"{name}: the bytes of bloom_agg(x, {items}, {p})")
        same(int(bits), m, f"{name}: {m} bits")
        same(missing, "0", f"{name}: no false negative")
        rate = int(found) / 1e6
        ok(rate <= p * 1.05 + 4 * math.sqrt(p * (1 - p) / 1e6), f"{name}: measured rate {rate}")


def test_too_many():
    """More elements than the largest filter has room for are refused, not taken at a worse rate."""
    p, n = 1e-9, 28_000_000
    try:
        ref.choose_m("blocked", p, n)
    except ValueError:
        note(f"{n} elements at {p} are too many, says the reference")
    else:
        raise Failed(f"{n} elements at {p} are not too many, says the reference")
    try:
        ask(f"SELECT length({self_sized_call('x', p)}::bytea) FROM generate_series(1, {n}) AS x")
    except Failed as failure:
        ok("would be too large" in str(failure), f"self-sized for {n} at {p}: refused", failure)
    else:
        ok(False, f"self-sized for {n} at {p}: refused")


# The crossing from a set to bits

LIMIT = 1000  # of the variant


def bits_at_most(hashes, k):
    """The filter of 2^31 bits, as the numbers of the bits that are set."""
    return {b for h in hashes for b in ref.bit_numbers(h, "blocked", k, ref.MAX_BITS)}


def crossed(p, element_class, hashes):
    """What the page says of an aggregate that sizes itself, with the variant's limit."""
    hashes = set(hashes)
    if len(hashes) <= LIMIT:
        return self_sized(p, element_class, hashes)
    k, nblocks = ref.choose_k("blocked", p), ref.MAX_BITS // ref.BLOCK
    bits = bits_at_most(hashes, k)
    share = -math.expm1(k * math.log1p(-1 / ref.BLOCK))
    n = math.floor(math.log1p(-len(bits) / ref.MAX_BITS) / math.log1p(-share / nblocks))
    m = own_m(p, n)
    folded = ref.Filter("blocked", k, ref.single(p), 0, m, element_class, None, bytes(m // 8))
    return folded.with_hashes(element_class, hashes)


@contextlib.contextmanager
def variant():
    """The functions of the database run from a build that goes over to bits at LIMIT hashes."""
    directory = tempfile.mkdtemp(prefix="bloomtype.")
    library = os.path.join(directory, "build", "bloomtype.so")
    try:
        os.chmod(directory, 0o755)
        # a copy without what another build may have left between the sources
        source, build = os.path.join(directory, "source"), os.path.join(directory, "build")
        os.mkdir(source)
        os.mkdir(build)
        for name in os.listdir(TOP):
            path = os.path.join(TOP, name)
            if name in ("src", "sql"):
                shutil.copytree(path, os.path.join(source, name), ignore=shutil.ignore_patterns("*.o", "*.bc"))
            elif name == "Makefile" or name.endswith(".control"):
                shutil.copy(path, source)
        made = subprocess.run(
            ["make", "-s", "-j2", "-C", build, "-f", os.path.join(source, "Makefile"), "with_llvm=no",
             f"COPT=-DBF_SIZING_LIMIT={LIMIT}", f"PG_CONFIG={os.environ.get('PG_CONFIG', 'pg_config')}",
             "bloomtype.so"],
            capture_output=True, encoding="utf-8",
        )  # fmt: skip
        if made.returncode != 0:
            raise Failed(f"the variant does not build: {made.stderr[-1500:]}")
        os.chmod(build, 0o755)
        os.chmod(library, 0o755)
        psql(f"UPDATE pg_proc SET probin = {quote(library)} WHERE probin = '$libdir/bloomtype'")
        yield
    finally:
        with contextlib.suppress(Failed):
            psql(f"UPDATE pg_proc SET probin = '$libdir/bloomtype' WHERE probin = {quote(library)}")
        shutil.rmtree(directory, ignore_errors=True)


def test_crossing(rng):
    with variant():
        for n in (LIMIT - 1, LIMIT, LIMIT + 1, 5000, 100_000):
            first = rng.randrange(2**40)
            (digest,) = ask_one(
                f"SELECT {sha256_sql('bloom_agg(x)')} FROM "
                f"(SELECT generate_series({first}, {first + n - 1}) AS x UNION ALL SELECT {first}) AS s"
            )
            expected = crossed(0.01, 20, hashes_of(range(first, first + n)))
            same(digest, sha256(expected), f"limit {LIMIT}, {n} elements: {expected.m} bits, the reference's")
        call = "bloom_agg(x::text, NULL, 0.0001)"
        (digest,) = ask_one(f"SELECT {sha256_sql(call)} FROM generate_series(1, 1500) AS x")
        texts = [ref.hash_of(str(x).encode()) for x in range(1, 1501)]
        same(digest, sha256(crossed(1e-4, 25, texts)), "the same for text, at another rate")
        lines = ask(f"""
            SELECT x % 3, {sha256_sql("bloom_agg(x)")} FROM generate_series(1, 6000) AS x
            WHERE x % 3 < 2 OR x < 900 GROUP BY 1""")
        thirds = {0: range(3, 6001, 3), 1: range(1, 6001, 3), 2: range(2, 900, 3)}
        wanted = {str(g): sha256(crossed(0.01, 20, hashes_of(third))) for g, third in thirds.items()}
        same_answers(answers(lines), wanted, "two groups cross, one does not")
        lines = ask(f"""
            SELECT x, {sha256_sql("f")} FROM
                (SELECT x, bloom_agg(x) OVER (ORDER BY x) AS f FROM generate_series(1, 1003) AS x) AS w
            WHERE x >= 998""")
        wanted = {str(n): sha256(crossed(0.01, 20, hashes_of(range(1, n + 1)))) for n in range(998, 1004)}
        same_answers(answers(lines), wanted, "a window that grows over the limit")

        # states of both kinds, combined in this order
        parts = {  # the elements of the first and of the second
            "set and set, together within the limit": (range(0, 700), range(100, 800)),
            "set and set, together beyond": (range(0, 600), range(5000, 5700)),
            "set and bits": (range(0, 600), range(5000, 10000)),
            "bits and set": (range(0, 5000), range(4900, 5600)),
            "bits and bits": (range(0, 5000), range(3000, 9000)),
        }
        settings = "SET enable_partitionwise_aggregate = on; SET cpu_tuple_cost = 10;\n"
        for number, (name, (one, two)) in enumerate(parts.items()):
            table = f"mixture_{number}"
            query = f"SELECT {sha256_sql('bloom_agg(x)')} FROM {table}"
            *_, plan, (digest,) = psql(
                f"CREATE TABLE {table} (part int, x bigint) PARTITION BY LIST (part)",
                f"CREATE TABLE {table}_1 PARTITION OF {table} FOR VALUES IN (1)",
                f"CREATE TABLE {table}_2 PARTITION OF {table} FOR VALUES IN (2)",
                f"INSERT INTO {table} SELECT 1, generate_series({one[0]}, {one[-1]})",
                f"INSERT INTO {table} SELECT 2, generate_series({two[0]}, {two[-1]})",
                f"ANALYZE {table}",
                f"EXPLAIN (COSTS OFF) {query}",
                query,
                settings=settings,
            )
            check_plan(plan, [rf"(?s)Finalize.*Append.*Partial.*{table}_1.*Partial.*{table}_2"], name)
            same(digest, sha256(crossed(0.01, 20, hashes_of({*one, *two}))), f"{name}: the reference's bytes")

        # in workers: one table from which each of two sees less than the limit, one of which each sees more
        for n in (1500, 60_000):
            table = f"crossing_{n}"
            psql(f"CREATE TABLE {table} (x bigint) WITH (parallel_workers = 2)",
                 f"INSERT INTO {table} SELECT generate_series(1, {n})", f"ANALYZE {table}")  # fmt: skip
            query = f"SELECT {sha256_sql('bloom_agg(x)')} FROM {table}"
            plan, (digest,) = psql(f"EXPLAIN (COSTS OFF) {query}", query, settings=PARALLEL)
            check_plan(plan, ["Finalize", "Partial", "Workers Planned: 2"], f"{n} elements, 2 workers")
            (serial,) = ask_one(query)
            same(serial, sha256(crossed(0.01, 20, hashes_of(range(1, n + 1)))), f"{n} elements, serial")
            same(digest, serial, f"{n} elements, 2 workers: the same")
    (digest,) = ask_one(f"SELECT {sha256_sql('bloom_agg(x)')} FROM generate_series(1, 1500) AS x")
    same(digest, sha256(self_sized(0.01, 20, hashes_of(range(1, 1501)))), "with the library as it was")


# ---------------------------------------------------------------------------------------------------
# Memory
# ---------------------------------------------------------------------------------------------------


def test_memory():
    """The peak of a backend, before and after. A first run of everything but the aggregate itself has
    taken what rows take."""
    peak = "(regexp_match(pg_read_file('/proc/self/status', 0, 10000), 'VmHWM:\\s+(\\d+)'))[1]"
    try:
        ask(f"SELECT {peak}::int")
    except Failed:
        skip("memory", "no /proc here")
        return
    if sanitized():
        skip("memory", "a sanitizer takes some of its own")
        return
    dense = value(ref.build("blocked", 0.01, series(1, 1000), items=1000))
    cases = [  # aggregate, rows, what each is, kilobytes allowed
        ("bloom_agg(x)", 5_000_000, "i % 1000", 600),
        ("bloom_agg(x, 1000)", 5_000_000, "i % 1000", 600),
        ("bloom_agg(x, 1000000)", 1_000_000, "i % 1000", 600),
        (f"bloom_agg(x, {dense})", 1_000_000, "i % 1000", 600),
        ("bloom_agg(x)", 1_000_000, "(i % 1000)::text", 600),
        ("bloom_agg(x)", 1_000_000, "(i % 1000)::numeric / 8", 600),
        ("bloom_agg(x)", 1_000_000, "('10.0.0.0'::inet + i % 1000)", 600),
        ("bloom_agg(x)", 1_000_000, "make_interval(days => (i % 1000)::int)", 600),
        ("bloom_agg(x)", 200_000, "repeat('wide', 2000) || i % 100", 600),
        ("bloom_union_agg(x)", 200_000, f"CASE i % 2 WHEN 0 THEN {dense} END", 600),
        ("bloom_intersect_agg(x)", 200_000, f"CASE i % 2 WHEN 0 THEN {dense} END", 600),
        ("bloom_agg(x)", 2**20, "i", (43 * 2**20 + 2**22) // 1024),  # 43 bytes each, and the result
        ("bloom_agg(x)", 2**24, "i", 512 * 1024),
        ("bloom_agg(x)", 2**24 + 1, "i", 512 * 1024),
    ]  # fmt: skip
    for call, rows, x, allowed in cases:

        def run(aggregate, rows):
            numbers = f"(SELECT generate_series(1::bigint, {rows}) AS i) AS s"  # not kept, as in FROM
            return f"SELECT {aggregate} FROM (SELECT {x} AS x FROM {numbers}) AS t"

        show = f"SELECT {peak}"
        answer = f"# {call}"
        *_, (before,), _, (after,) = psql(run(answer, 3000), show, run(answer, rows), show)
        grown = int(after) - int(before)
        name = f"{call.replace(dense, 'f')} of {rows} rows of {x.replace(dense, 'f')}"
        ok(grown <= allowed, f"{name}: {grown} kB more, at most {allowed}")

    groups, each = 200_000, 512
    numbers = f"generate_series(1, {groups}) AS i"

    def grouped(aggregate):
        return f"SELECT count(f) FROM (SELECT i, {aggregate} AS f FROM {numbers} GROUP BY i) AS s"

    *_, (before,), _, (after,) = psql(
        grouped("count(i)"), f"SELECT {peak}", grouped("bloom_agg(i)"), f"SELECT {peak}",
        settings="SET work_mem = '1GB'; SET enable_sort = off;\n",
    )  # fmt: skip
    grown = (int(after) - int(before)) * 1024 / groups
    ok(grown <= each, f"{groups} groups: {grown:.0f} bytes for each more than count takes, at most {each}")


# ---------------------------------------------------------------------------------------------------
# Wherever SQL has aggregates
# ---------------------------------------------------------------------------------------------------

CLASSIC = ref.build("classic", 0.02, series(1001, 1010), items=40, seed=9)
FORMS_ANYWHERE = {  # calls, and what they add to
    "self": ("bloom_agg(%sx)", ref.empty()),
    "rate": ("bloom_agg(%sx, NULL, 0.1)", ref.empty(0.1)),
    "items": ("bloom_agg(%sx, 50)", created("blocked", 0.01, 50)),
    "both": ("bloom_agg(%sx, 1000, 0.2)", created("blocked", 0.2, 1000)),
    "onto": ("bloom_agg(%sx, (SELECT f FROM kept WHERE name = 'classic'))", CLASSIC),
}


def base_of(label):
    """A label says what the aggregate adds to: a form above, or its own parameters."""
    if label in FORMS_ANYWHERE:
        return FORMS_ANYWHERE[label][1]
    kind, *numbers = label.split(":")
    if kind == "items":
        return created("blocked", 0.01, int(numbers[0]))
    if kind == "both":
        return created("blocked", float(numbers[1]), int(numbers[0]))
    assert kind == "rate"
    return ref.empty(float(numbers[0]))


@functools.lru_cache(None)
def filter_text(label, elements):
    """What bloom_agg must give for an array_agg of the same rows."""
    if elements == "":  # over no rows; the filter to add to is not seen then
        return "" if label == "onto" else hex_of(ref.empty())
    base = base_of(label)
    hashes = [ref.hash_of(ref.int8(int(x)), base.seed) for x in elements[1:-1].split(",") if x != "NULL"]
    return hex_of(onto(base, 20, hashes))


def check_rows(lines, name, expect=None):
    """Rows of a label, a filter, and the array of its elements."""
    wrong = []
    for line in lines:
        label, f, elements = line.split("|")
        want = filter_text(label, elements)
        if f != want:
            wrong.append(f"{label} over {elements}: got {f[:200]}, expected {want[:200]}")
    enough = lines and (expect is None or len(lines) == expect)
    ok(enough and not wrong, f"{name}: {len(lines)} rows", *wrong[:3])


def select(label, source="", tail="", modifier="", array=None, call=None):
    """The three columns that check_rows() wants."""
    call = (call or FORMS_ANYWHERE[label][0]) % modifier
    return f"SELECT '{label}', {call}{tail}, {array or f'array_agg({modifier}x)'}{tail} FROM {source or 'few'}"


def make_few(rng):
    rows = []
    for i in range(120):
        x = None if rng.random() < 0.1 else rng.choice((rng.randrange(40), rng.getrandbits(50)))
        rows.append([str(i), str(rng.randrange(6)), str(rng.randrange(3)), None if x is None else str(x)])
    psql("CREATE TABLE few (i int, g int, h int, x bigint)", "CREATE TABLE kept (name text, f bloomfilter)",
         f"INSERT INTO kept VALUES ('classic', {value(CLASSIC)})")  # fmt: skip
    copy("few", rows)
    psql("ANALYZE few")


def select_ordered(label, order, distinct=""):
    """Ordered one way inside bloom_agg, another way for array_agg."""
    call = FORMS_ANYWHERE[label][0][:-1] + f" ORDER BY {order})"
    return select(label, call=call, modifier=distinct, array=f"array_agg({distinct}x ORDER BY x)")


def test_modifiers():
    for label, (call, _) in FORMS_ANYWHERE.items():
        queries = {
            "plain": select(label),
            "no rows": f"{select(label)} WHERE false",
            "FILTER": select(label, tail=" FILTER (WHERE g = 2)"),
            "FILTER of nothing": select(label, tail=" FILTER (WHERE false)"),
            "FILTER of nulls": select(label, tail=" FILTER (WHERE x IS NULL)"),
            "ORDER BY": select_ordered(label, "g DESC, x NULLS FIRST"),
            "ORDER BY and FILTER": f"{select_ordered(label, 'x DESC')} WHERE g > 3",
            "GROUP BY": f"{select(label)} GROUP BY g",
            "HAVING": f"{select(label)} GROUP BY g, h HAVING # {call % ''} > 3",
            "LATERAL": f"""SELECT s.* FROM (SELECT DISTINCT g FROM few) AS d,
                LATERAL ({select(label)} WHERE few.g <= d.g) AS s""",
        }
        if label != "onto":  # there DISTINCT and its ORDER BY would concern the filters, too
            queries["DISTINCT"] = select(label, modifier="DISTINCT ")
            queries["DISTINCT, ORDER BY"] = select_ordered(label, "x DESC", "DISTINCT ") + " WHERE x IS NOT NULL"
            if label != "self":  # all arguments must then be ordered by
                del queries["DISTINCT, ORDER BY"]
        for (name, query), lines in zip(queries.items(), psql(*queries.values())):
            check_rows(lines, f"{label}, {name}")


def test_grouping_sets():
    ways = {
        "hashed": "SET enable_sort = off;",
        "sorted": "SET enable_hashagg = off;",
        "mixed": "",
        "spilled": TO_SPILL,
    }
    sets = {
        "GROUPING SETS ((g), (h), (g, h), ())": 6 + 3 + 18 + 1,
        "CUBE (g, h)": 6 + 3 + 18 + 1,
        "ROLLUP (h, g)": 3 + 18 + 1,
        "GROUPING SETS ((), ())": 2,
    }
    for way, settings in ways.items():
        queries = [f"{select(label)} GROUP BY {by}" for label in FORMS_ANYWHERE for by in sets]
        names = [(label, by) for label in FORMS_ANYWHERE for by in sets]
        for (label, by), lines in zip(names, psql(*queries, settings=settings + "\n")):
            check_rows(lines, f"{label}, {by}, {way}", sets[by])
    query = f"{select('items')} GROUP BY CUBE (g, h)"
    plan = ask(f"EXPLAIN (COSTS OFF) {query}")
    check_plan(plan, ["Aggregate"], "CUBE")


FRAMES = (
    "ORDER BY i", "ORDER BY g", "PARTITION BY h ORDER BY i", "",
    "ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ORDER BY i ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING",
    "ORDER BY i ROWS BETWEEN 6 PRECEDING AND 4 PRECEDING",
    "ORDER BY i ROWS BETWEEN 2 FOLLOWING AND 9 FOLLOWING",
    "ORDER BY i ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "ORDER BY i RANGE BETWEEN 10 PRECEDING AND 10 FOLLOWING",
    "ORDER BY g RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ORDER BY g GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "PARTITION BY h ORDER BY g GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
)  # fmt: skip
EXCLUSIONS = ("", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS")


def test_windows():
    """Every row's filter is that of the rows in its frame; also when all rows are kept and read in the
    end, when later rows have long been added to the state."""
    for label in FORMS_ANYWHERE:
        for frame in FRAMES:
            exclusions = EXCLUSIONS if "BETWEEN" in frame else ("",)
            queries = []
            for exclusion in exclusions:
                direct = select(label, tail=f" OVER ({frame}{exclusion})")
                kept = f"""
                    SELECT '{label}', filters[n], elements[n] FROM generate_series(1, 120) AS n,
                        (SELECT array_agg(f) AS filters, array_agg(coalesce(a::text, '')) AS elements
                        FROM ({direct}) AS w (label, f, a)) AS v"""
                queries += [direct, kept]
            results = psql(*queries)
            for exclusion, direct, late in zip(exclusions, results[::2], results[1::2]):
                name = f"{label} OVER ({frame}{exclusion})"
                check_rows(direct, name, 120)
                same(sorted(late), sorted(direct), f"{name}, kept")


def test_windows_of_filters():
    frames = ("ORDER BY n", "ORDER BY n ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW",
              "ORDER BY n % 4 GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES")  # fmt: skip
    psql("""CREATE TABLE fills AS
        SELECT n, (SELECT bloom_agg(x, 1000) FROM generate_series(n % 5 + 1, n * n * n / 60) AS x) AS f
        FROM generate_series(1, 40) AS n""")
    for frame in frames:
        lines = ask(f"""SELECT bloom_union_agg(f) OVER w, bloom_intersect_agg(f) OVER w, array_agg(f) OVER w
            FROM fills WINDOW w AS ({frame})""")
        wrong = []
        for line in lines:
            union, intersection, members = line.split("|")
            filters = [ref.decode(bytes.fromhex(f)) for f in re.findall("x([0-9a-f]+)", members)]
            wanted = hex_of(ref.union_agg(filters) if filters else ref.empty())
            if union != wanted:
                wrong.append(f"union of {members}: {union}, expected {wanted}")
            wanted = hex_of(functools.reduce(ref.intersect, filters)) if filters else ""
            if intersection != wanted:
                wrong.append(f"intersection of {members}: {intersection}, expected {wanted}")
        name = f"bloom_union_agg and bloom_intersect_agg OVER ({frame})"
        ok(len(lines) == 40 and not wrong, name, *wrong[:3])


def test_side_by_side():
    """Several aggregates in one query, some of which share a state."""
    (line,) = ask("""
        SELECT count(*), count(x), bloom_agg(x), bloom_agg(x), bloom_agg(x, 50), bloom_agg(x, 50),
            bloom_agg(DISTINCT x), bloom_agg(x, NULL, 0.1), bloom_agg(x) FILTER (WHERE g > 2), bloom_agg(x),
            array_agg(x), array_agg(x) FILTER (WHERE g > 2) FROM few""")
    rows, values, *filters, elements, some = line.split("|")
    want = [filter_text(label, elements) for label in ("self", "self", "items", "items", "self", "rate")]
    want += [filter_text("self", some), filter_text("self", elements)]
    same((rows, filters), ("120", want), "several in one query, with count(*)")
    same(int(values), elements.count(",") + 1 - elements.count("NULL"), "count(x) beside it")

    # an aggregate of the user's own whose result is the state: the two share it
    (x,) = ask_one("SELECT proargtypes[0]::regtype FROM pg_proc WHERE proname = 'bloom_agg' AND pronargs = 1")
    functions = "(SFUNC = bloom_agg_add, STYPE = internal, FINALFUNC = bloom_agg_serialize)"
    psql(*(f"CREATE AGGREGATE state_of ({arguments}) {functions}" for arguments in (x, f"{x}, float8")))
    queries = [
        f"SELECT {first}, {second}, array_agg(x) FROM few {group}"
        for arguments in ("x", "x, 50")
        for first, second in (
            (f"bloom_agg({arguments})", f"state_of({arguments})"),
            (f"state_of({arguments})", f"bloom_agg({arguments})"),
        )
        for group in ("", "GROUP BY g", "GROUP BY g, h", "WHERE x IS NULL", "WHERE g = 1")
    ]
    wrong = []
    for query, lines in zip(queries, psql(*queries)):
        label = "items" if "50" in query else "self"
        for line in lines:
            *both, elements = line.split("|")
            state, f = both if query.startswith("SELECT state") else both[::-1]
            base = base_of(label)
            hashes = sorted({ref.hash_of(ref.int8(int(x))) for x in elements[1:-1].split(",") if x != "NULL"})
            want = onto(base, 20, hashes).encode() if label == "items" else None
            if want is None:
                want = ref.HEADER.pack(1, 0, 3, 6, 20 if hashes else 0, ref.single(0.01), 0, 0)
                want += b"".join(struct.pack("<Q", h) for h in hashes)
            if f != filter_text(label, elements):
                wrong.append(f"{query}: filter {f[:300]}")
            if state != "\\x" + want.hex():
                wrong.append(f"{query}: state {state[:300]}, expected {want.hex()[:300]}")
    ok(not wrong, "a filter and its state by two aggregates that share the state", *wrong[:3])

    wrong = []
    for line in ask("""
            SELECT state_of(x) OVER w, bloom_agg(x) OVER w, state_of(x) FILTER (WHERE true) OVER w,
                array_agg(x) OVER w FROM few WINDOW w AS (ORDER BY i)"""):
        before, f, after, elements = line.split("|")
        if before != after or f != filter_text("self", elements):
            wrong.append(line)
    ok(not wrong, "the same in a window", *wrong[:3])


def test_programs():
    """PL/pgSQL, prepared statements, cursors, materialized views, upserts."""
    loop = """
        CREATE FUNCTION looped() RETURNS TABLE (label text, f bloomfilter, a bigint[]) LANGUAGE plpgsql AS $$
        DECLARE
            r record;
            taken int := 0;
        BEGIN
            FOR n IN 1 .. 60 LOOP
                label := 'self';
                SELECT bloom_agg(x), array_agg(x) INTO f, a FROM few WHERE i < n;
                RETURN NEXT;
                label := 'items:' || n;
                SELECT bloom_agg(x, n), array_agg(x) INTO f, a FROM few WHERE i < n;
                RETURN NEXT;
                label := 'both:' || n || ':0.1';
                f := (SELECT bloom_agg(x, n, 0.1) FROM few);
                a := (SELECT array_agg(x) FROM few);
                RETURN NEXT;
                label := 'rate:' || 0.5 / n;
                EXECUTE 'SELECT bloom_agg(x, NULL, $1), array_agg(x) FROM few WHERE g = $2'
                    INTO f, a USING 0.5 / n, n % 6;
                RETURN NEXT;
                BEGIN  -- an aggregate that fails on the way
                    PERFORM bloom_agg(x, CASE WHEN i < 50 THEN 10 ELSE 100000 END) FROM few;
                    taken := taken + 1;
                EXCEPTION WHEN invalid_parameter_value THEN NULL;
                END;
                FOR r IN SELECT bloom_agg(x) AS f, array_agg(x) AS a FROM few GROUP BY g LIMIT 2 LOOP
                    label := 'self'; f := r.f; a := r.a;
                    RETURN NEXT;
                END LOOP;
            END LOOP;
            IF taken > 0 THEN RAISE 'other parameters within a group were taken'; END IF;
        END $$"""
    polymorphic = """
        CREATE FUNCTION filter_of(VARIADIC x anyarray) RETURNS bloomfilter LANGUAGE plpgsql AS $$
        BEGIN RETURN (SELECT bloom_agg(e) FROM unnest(x) AS e); END $$"""
    calls = {  # and what is in the filters
        "1, 2": ("bigint", (1, 2)),
        "'1'::text, '2'": ("text", ("1", "2")),
        "1::numeric, 2.0": ("numeric", (decimal.Decimal(1), decimal.Decimal(2))),
        "1::smallint, 2::smallint": ("smallint", (1, 2)),
        "true": ("boolean", (True,)),
    }
    several = f"SELECT {', '.join(f'filter_of({arguments})' for arguments in calls)}"
    *_, lines, (filters,) = psql(loop, polymorphic, "SELECT * FROM looped()", several)
    check_rows(lines, "PL/pgSQL loops", 360)
    want = [
        ref.build_self_sized(0.01, [ref.element(sql_type, x) for x in values])
        for sql_type, values in calls.values()
    ]
    same(filters.split("|"), [hex_of(f) for f in want], "PL/pgSQL with several types")

    prepare = """PREPARE q (bigint, float8, int) AS
        SELECT 'both:' || $1 || ':' || $2, bloom_agg(x, $1, $2), array_agg(x) FROM few WHERE g <> $3"""
    calls = [(items, rate, g) for items in (1, 10, 1000, 20) for rate in (0.01, 0.25) for g in (0, 5)]
    for mode in ("auto", "force_custom_plan", "force_generic_plan"):
        executions = [f"EXECUTE q ({items}, {rate}, {g})" for items, rate, g in calls]
        results = psql(prepare, *executions, settings=f"SET plan_cache_mode = {mode};\n")
        check_rows(sum(results, []), f"prepared, {mode}", len(calls))
    results = psql(
        "PREPARE q (float8) AS SELECT 'rate:' || $1, bloom_agg(x, NULL, $1), array_agg(x) FROM few GROUP BY g",
        *(f"EXECUTE q ({1 / n})" for n in range(2, 12)),
        settings="SET plan_cache_mode = force_generic_plan;\n",
    )
    check_rows(sum(results, []), "prepared, self-sized, generic", 60)

    for label in ("self", "items", "onto"):
        query = f"{select(label)} GROUP BY g"
        window = select(label, tail=" OVER (ORDER BY i ROWS BETWEEN 7 PRECEDING AND CURRENT ROW)")
        held = psql(
            "BEGIN", f"DECLARE c SCROLL CURSOR WITH HOLD FOR {query}", "FETCH 2 FROM c", "COMMIT",
            "FETCH ALL FROM c", "FETCH BACKWARD 3 FROM c", "CLOSE c",
        )  # fmt: skip
        check_rows(sum(held, []), f"{label}, WITH HOLD cursor", 9)
        scrolled = psql(
            "BEGIN", f"DECLARE c SCROLL CURSOR FOR {window}", "FETCH 50 FROM c", "FETCH BACKWARD 20 FROM c",
            "FETCH FORWARD 60 FROM c", "FETCH ABSOLUTE 1 FROM c", "COMMIT",
        )  # fmt: skip
        check_rows(sum(scrolled, []), f"{label}, SCROLL cursor on a window", 131)
        by_turns = psql(
            "BEGIN", f"DECLARE a CURSOR FOR {window}", f"DECLARE b CURSOR FOR {query}", "FETCH 5 FROM a",
            "FETCH 2 FROM b", "FETCH 30 FROM a", "FETCH ALL FROM b", "FETCH ALL FROM a", "COMMIT",
        )  # fmt: skip
        check_rows(sum(by_turns, []), f"{label}, two cursors by turns", 126)

        view = f"""CREATE MATERIALIZED VIEW view_{label} AS SELECT g, s.* FROM (SELECT DISTINCT g FROM few) AS d,
            LATERAL ({select(label)} WHERE few.g = d.g) AS s (label, f, a)"""
        read = f"SELECT label, f, a FROM view_{label}"
        results = psql(
            view, read, "INSERT INTO few SELECT i + 1000, g, h, x + 100 FROM few WHERE i < 20",
            f"REFRESH MATERIALIZED VIEW view_{label}", read, "DELETE FROM few WHERE i BETWEEN 1000 AND 1010",
            f"CREATE UNIQUE INDEX ON view_{label} (g)", f"REFRESH MATERIALIZED VIEW CONCURRENTLY view_{label}",
            read, "DELETE FROM few WHERE i >= 1000",
        )  # fmt: skip
        one, two, three = results[1], results[4], results[8]
        check_rows(one, f"{label}, materialized view", 6)
        check_rows(two, f"{label}, refreshed", 6)
        check_rows(three, f"{label}, refreshed concurrently", 6)
        ok(len({*map(str, (one, two, three))}) == 3, f"{label}, and changed each time")


def test_upsert():
    lines = psql(
        "CREATE TABLE totals (g int PRIMARY KEY, f bloomfilter)",
        *(
            f"INSERT INTO totals SELECT g, bloom_agg(x, 50) FROM few WHERE i % 4 = {n} GROUP BY g "
            "ON CONFLICT (g) DO UPDATE SET f = totals.f | excluded.f"
            for n in range(4)
        ),
        "UPDATE totals SET f = (SELECT bloom_agg(x, totals.f) FROM few WHERE few.g = totals.g)",
        "SELECT 'items', f, (SELECT array_agg(x) FROM few WHERE few.g = totals.g) FROM totals",
    )[-1]
    check_rows(lines, "upserts, and an update with a correlated subquery", 6)


def test_changing_parameters():
    """Both parameters must be the same in all rows of a group, also in rows that other processes saw."""
    function = """CREATE FUNCTION refusal(statement text) RETURNS text LANGUAGE plpgsql AS $$
        BEGIN EXECUTE statement; RETURN 'taken'; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $$"""
    psql(
        function,
        "CREATE TABLE unlike (part int, x int, items bigint, rate float8) PARTITION BY LIST (part)",
        "CREATE TABLE unlike_0 PARTITION OF unlike FOR VALUES IN (0)",
        "CREATE TABLE unlike_1 PARTITION OF unlike FOR VALUES IN (1)",
        """INSERT INTO unlike
            SELECT i % 2, i, 100 + 900 * (i % 2), 0.01 + 0.1 * (i % 2) FROM generate_series(1, 500) AS i""",
        "ANALYZE unlike",
    )
    queries = {
        "items": "SELECT bloom_agg(x, items) FROM unlike",
        "rate": "SELECT bloom_agg(x, 100, rate) FROM unlike",
        "rate, self-sized": "SELECT bloom_agg(x, NULL, rate) FROM unlike",
        "items or none": "SELECT bloom_agg(x, nullif(items, 100)) FROM unlike",
        "none or items": "SELECT bloom_agg(x, nullif(items, 1000)) FROM unlike",
    }
    wise = "SET enable_partitionwise_aggregate = on; SET cpu_tuple_cost = 10;\n"
    plan = ask(f"EXPLAIN (COSTS OFF) {queries['items']}", settings=wise)
    check_plan(plan, ["Finalize", "Append", "Partial"], "changing parameters")
    for name, query in queries.items():
        for how, settings in (("serial", ""), ("combined", wise)):
            answer = ask(f"SELECT refusal({quote(query)})", settings=settings)
            same(answer, ["22023"], f"changing {name}, {how}: refused")


def test_compiled():
    """With expressions compiled to machine code, where the server can."""
    if ask("SELECT pg_jit_available()", "SET jit = on;\n") != ["t"]:
        skip("JIT", "not available")
        return
    costs = ("jit_above_cost", "jit_inline_above_cost", "jit_optimize_above_cost")
    settings = "SET jit = on;\n" + "".join(f"SET {cost} = 0;\n" for cost in costs)
    for label in ("self", "items"):
        queries = f"{select(label)} GROUP BY CUBE (g, h)", select(label, tail=" OVER (ORDER BY i)")
        grouped, window = psql(*queries, settings=settings)
        check_rows(grouped, f"{label}, CUBE, JIT", 28)
        check_rows(window, f"{label}, window, JIT", 120)


# ---------------------------------------------------------------------------------------------------
# Filters of different sizes
# ---------------------------------------------------------------------------------------------------


SPANS = {1: (1, 3), 2: (2, 60), 3: (50, 1000), 4: (1, 20_000), 5: (10_001, 70_000), 6: (3, 9), 7: (900, 1010)}
PROBES = 400_000


@dataclass
class Combination:
    """Of groups: in SQL, by the reference, and what it must contain."""

    name: str
    expression: str
    wanted: ref.Filter
    members: list  # spans

    @property
    def probes(self):
        return PROBES if self.wanted.bits is not None else 10_000

    def query(self):
        lost = " + ".join(
            f"(SELECT count(*) FROM generate_series({first}, {last}) AS x WHERE NOT f @> x::bigint)"
            for first, last in self.members
        )
        found = f"(SELECT count(*) FROM generate_series(1, {self.probes}) AS x WHERE f @> (-x)::bigint)"
        return f"""SELECT {sha256_sql("f")}, {lost}, bloom_fpp(f), {found}
            FROM (SELECT ({self.expression}) AS f OFFSET 0) AS s"""

    def problems(self, line):
        """What is wrong with the answer: bytes, elements lost, the current rate and the measured one."""
        digest, lost, fpp, found = line.split("|")
        fpp, rate, now = float(fpp), int(found) / self.probes, self.wanted.current_rate()
        sigma = math.sqrt(fpp * (1 - fpp) / self.probes)
        wrong = {
            "bytes": digest != sha256(self.wanted),
            "lost": lost != "0",
            "bloom_fpp": not math.isclose(fpp, now, rel_tol=1e-9),
            "measured rate": abs(rate - fpp) > 0.1 * fpp + 4 * sigma,
        }
        return [f"{self.name}, {what}: {line} of {self.probes}, expected rate {now}" for what in wrong if wrong[what]]


def check_combinations(tests, name):
    tests = list(tests)
    answers = psql(*(test.query() for test in tests))
    wrong = [problem for test, (line,) in zip(tests, answers) for problem in test.problems(line)]
    ok(not wrong, f"{len(tests)} {name}: the reference's bytes, nothing lost, rates as told", *wrong[:5])


def brought_together(table, filters):
    """Each pair of groups at the size of the smaller one."""

    def span_in_common(a, b):
        return max(SPANS[a][0], SPANS[b][0]), min(SPANS[a][1], SPANS[b][1])

    for a, b in ((a, b) for a in SPANS for b in SPANS if filters[a].m < filters[b].m):
        folded = ref.fold_like(filters[b], filters[a])
        for sign, function in (("|", ref.union), ("&", ref.intersect)):
            yield Combination(
                f"{a} {sign} {b}",
                f"""SELECT a.f {sign} bloom_fold(b.f, a.f) FROM {table} AS a, {table} AS b
                    WHERE a.g = {a} AND b.g = {b}""",
                function(filters[a], folded),
                [SPANS[a], SPANS[b]] if sign == "|" else [span_in_common(a, b)],
            )
    everything = functools.reduce(ref.union, [ref.fold_like(f, filters[1]) for f in filters.values()])
    for how, order in (("", ""), (", in another order", " ORDER BY -g")):
        yield Combination(
            "all" + how,
            f"""SELECT bloom_union_agg(bloom_fold(t.f, least.f){order.replace("g", "t.g")})
                FROM {table} AS t, {table} AS least WHERE least.g = 1""",
            everything,
            list(SPANS.values()),
        )


def test_sizes():
    """Self-sized groups of very different size, which share some elements."""
    for p in (0.01, 0.3):
        table = f"sizes_{round(1 / p)}"
        rows = ", ".join(f"({g}, {first}::bigint, {last}::bigint)" for g, (first, last) in SPANS.items())
        psql(f"""CREATE TABLE {table} AS
            SELECT g, (SELECT {self_sized_call("x", p)} FROM generate_series(a, b) AS x) AS f
            FROM (VALUES {rows}) AS v (g, a, b)""")
        filters = {g: self_sized(p, 20, hashes_of(range(first, last + 1))) for g, (first, last) in SPANS.items()}
        stored = answers(ask(f"SELECT g, {sha256_sql('f')} FROM {table}"))
        wanted = {str(g): sha256(f) for g, f in filters.items()}
        same_answers(stored, wanted, f"groups of 3 to 60,000 at {p}: the reference's bytes")
        check_combinations(brought_together(table, filters), f"combinations of sizes at {p}, folded")
        for aggregate in ("bloom_union_agg", "bloom_intersect_agg"):
            query, name = f"SELECT {aggregate}(f) FROM {table}", f"{aggregate} of sizes at {p}"
            workers = PARALLEL + f"ALTER TABLE {table} SET (parallel_workers = 2);"
            check_refused(query, "of different sizes", name)
            check_refused(query, "of different sizes", f"{name}, in workers", workers)

        # the smallest size that keeps the rate: these have powers of two of blocks
        cases = [(g, rate) for g in filters for rate in (0.05, 0.3, 0.5) if filters[g].current_rate() <= rate]
        folds, wrong = set(), []
        lines = psql(*(f"SELECT bloom_fold(f, {rate!r}) FROM {table} WHERE g = {g}" for g, rate in cases))
        for (g, rate), (text,) in zip(cases, lines):
            m = filters[g].m
            sizes = (m >> i for i in reversed(range(32)) if m >> i >= ref.BLOCK)
            least = next(s for s in sizes if filters[g].fold(s).current_rate() <= ref.single(rate))
            folds.add(m // least)
            if text != hex_of(replace(filters[g].fold(least), p=ref.single(rate))):
                wrong.append(f"group {g} at {rate}: {text[:100]}")
        ok(not wrong, f"bloom_fold of self-sized groups at {p}, by {sorted(folds)}", *wrong[:5])


def check_refused(statement, why, name, settings=""):
    try:
        ask(statement, settings=settings)
    except Failed as failure:
        ok(why in str(failure), f"{name}: refused", failure)
    else:
        ok(False, f"{name}: refused")


FIRST, DOUBLINGS = 4000, 4  # of 65 blocks and more, from which on twice the elements have twice the blocks


def generations(p):
    """Each next filter is built with twice the expected elements, which are all new. Brought to the size of
    the first, all that there are so far are the filter of that size."""
    like, last = created("blocked", p, FIRST), 0
    for g in range(DOUBLINGS + 1):
        last = FIRST * (2 ** (g + 1) - 1)
        yield Combination(
            f"{g} doublings",
            f"""SELECT bloom_union_agg(bloom_fold(t.f, first.f)) FROM grown AS t, grown AS first
                WHERE first.g = 0 AND t.g <= {g}""",
            like.with_hashes(20, hashes_of(range(1, last + 1))),
            [(1, last)],
        )


def test_growing():
    """Filters over four doublings: each keeps its rate, one of all rounds adds up, folded together they have
    what theory says of so many elements in the first one's bits."""
    for p in (0.01, 0.001):
        psql("DROP TABLE IF EXISTS grown",
             f"""CREATE TABLE grown AS SELECT g, (SELECT bloom_agg(x::bigint, ({FIRST} * 2 ^ g)::bigint, {p!r})
                FROM generate_series({FIRST} * (2 ^ g - 1)::int + 1, {FIRST} * (2 ^ (g + 1) - 1)::int) AS x) AS f
             FROM generate_series(0, {DOUBLINGS}) AS g""")  # fmt: skip
        sizes = [int(bits) for bits in ask("SELECT bits FROM grown, bloom_info(f) ORDER BY g")]
        same(sizes, [sizes[0] << g for g in range(DOUBLINGS + 1)], f"{FIRST} elements and twice as many each, at {p}")
        tests = list(generations(p))
        check_combinations(tests, f"generations at {p}, folded together")
        k = ref.choose_k("blocked", p)
        for test in tests:
            theory = ref.expected_rate("blocked", k, sizes[0], test.members[0][1])
            now = test.wanted.current_rate()
            name = f"{test.name} at {p}: {now:.3g}, in theory {theory:.3g}"
            # four deviations of the mean over blocks, whose rates vary by about as much as they are
            ok(abs(now / theory - 1) < 0.05 + 4 / math.sqrt(sizes[0] / ref.BLOCK), name)
        (found,) = ask(f"""SELECT count(*) FROM generate_series(1, {PROBES}) AS x
            WHERE EXISTS (SELECT FROM grown WHERE f @> (-x)::bigint)""")
        theory = 1 - (1 - p) ** (DOUBLINGS + 1)
        rate, sigma = int(found) / PROBES, math.sqrt(theory / PROBES)
        name = f"any of {DOUBLINGS + 1} generations at {p}: {rate:.3g}, at most {theory:.3g}"
        ok(rate <= 1.05 * theory + 4 * sigma, name)
        (lost,) = ask(f"""SELECT count(*) FROM generate_series(1, {FIRST * (2 ** (DOUBLINGS + 1) - 1)}) AS x
            WHERE NOT EXISTS (SELECT FROM grown WHERE f @> x::bigint)""")
        same(lost, "0", f"generations at {p}: nothing is lost")
        grow = "SELECT bloom_fold(a.f, b.f) FROM grown AS a, grown AS b WHERE a.g = 0 AND b.g = 1"
        check_refused(grow, "cannot fold", f"a dense filter that is to grow, at {p}")


# ---------------------------------------------------------------------------------------------------


def main():
    clean_up_when_terminated()
    rng = random.Random("aggregation")
    global SETTINGS
    SETTINGS = SETTINGS.replace("@extschema@", extension_schema())
    psql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE", f"CREATE SCHEMA {SCHEMA}")
    # The plans that are compared are not all the best ones: many small groups are not worth parts.
    psql(*(f"ALTER FUNCTION bloom_agg_{name} COST 1" for name in ("combine", "serialize", "deserialize")))
    try:
        sets = part(test_sets, rng)
        if sets:
            part(test_forms_agree, *sets)
            part(test_partitions_of_the_input, *sets)
        part(test_idle_workers)
        part(test_filters, rng)
        part(test_self_sized)
        part(test_self_sized_is_sized, rng)
        part(test_too_many)
        part(test_crossing, rng)
        part(test_memory)
        part(make_few, rng)
        part(test_modifiers)
        part(test_grouping_sets)
        part(test_windows)
        part(test_windows_of_filters)
        part(test_side_by_side)
        part(test_programs)
        part(test_upsert)
        part(test_changing_parameters)
        part(test_compiled)
        part(test_sizes)
        part(test_growing)
    finally:
        with contextlib.suppress(Failed):
            psql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    done()


if __name__ == "__main__":
    main()
