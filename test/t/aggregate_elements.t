#!/usr/bin/python3 -B
"""One set gives one value by every plan: bloom_agg over random sets of elements, in all its forms, compared with
test/golden/reference.py.
"""

import concurrent.futures
import decimal
import math
import random
import uuid
from dataclasses import dataclass, field, replace

from aggregates import (ANALYZE, APPEND, FINAL, FORCED, GATHER, HASHED, PARALLEL, PARTIAL, SORTED, TO_SPILL, answers,
                        ask_one, check_plan, copy, created, explained, forced_parallel, onto, random_number, run,
                        same_answers, sha256, sha256_sql, spills)
from session import ask, each, hex_of, value
from tap import note, ok, part, same
import reference as ref
from vectors import series

SETS = 1000
LARGEST_SET = 20_000


def random_seed(rng):
    return rng.choice((0, rng.getrandbits(64)))


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


def partitioned(name, key):
    """Statements that make a copy of a table, partitioned by the hash of a column."""
    copy_ = f"{name}_by_{key}"
    yield f"CREATE TABLE {copy_} (LIKE {name}) PARTITION BY HASH ({key})"
    for i in range(3):
        bounds = f"FOR VALUES WITH (MODULUS 3, REMAINDER {i})"
        yield f"CREATE UNLOGGED TABLE {copy_}_{i} PARTITION OF {copy_} {bounds}"
    yield f"INSERT INTO {copy_} SELECT * FROM {name}"
    yield f"ANALYZE {copy_}"


def load_bases(name, sets):
    each(f"CREATE UNLOGGED TABLE {name} (id int PRIMARY KEY, base bloomfilter)")
    copy(name, [[str(s.id), None if s.base_is_null else hex_of(s.base)] for s in sets])
    each(f"ANALYZE {name}")


def load(rng, table):
    """Stores one row per element, those of all sets mixed."""
    inline = table.form == "inline"
    rows = []
    for s in table.sets:
        base = None if s.base_is_null else hex_of(s.base)
        tail = [None if s.items is None else str(s.items), None if s.rate is None else repr(s.rate)]
        tail += [base] if inline else []
        rows += [[str(s.id), str(rng.randrange(8)), x, *tail] for x in s.rows]
    rng.shuffle(rows)
    columns = f"id int, part int, x {table.sql_type}, items bigint, rate float8" + ", base bloomfilter" * inline
    each(f"CREATE UNLOGGED TABLE {table.name} ({columns})")
    copy(table.name, rows)
    each(f"ANALYZE {table.name}")
    if table.joined:
        load_bases(f"{table.name}_base", table.sets)
    else:
        each(*partitioned(table.name, "x"), *partitioned(table.name, "id"))


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


def serial_variations(table):
    """Ways to aggregate the sets of a table: name, settings, query, what the plan must show."""
    query = table.query()
    yield "hashed", "SET enable_sort = off;", query, [HASHED]
    yield "sorted groups", "SET enable_hashagg = off;", query, [SORTED]
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


def parallel_variations(table):
    query = table.query()
    yield "no worker", PARALLEL + "SET max_parallel_workers_per_gather = 0;", query, []
    for workers in range(1, 5):
        settings = PARALLEL + f"ALTER TABLE {table.name} SET (parallel_workers = {workers});"
        if workers == 2:
            settings += "SET parallel_leader_participation = off;"
        yield f"{workers} workers", settings, query, [FINAL, {"Workers Planned": workers}, PARTIAL]
    sorting = PARALLEL + f"ALTER TABLE {table.name} SET (parallel_workers = 3); SET enable_hashagg = off;"
    plan = [{**FINAL, **SORTED}, {"Node Type": "Gather Merge"}, {**PARTIAL, **SORTED}]
    yield "3 workers, sorted groups", sorting, query, plan
    if not table.joined:
        wise = "SET enable_partitionwise_aggregate = on;"
        yield "partition-wise, in part", wise, table.query(f"{table.name}_by_x"), [FINAL, APPEND, PARTIAL]
        simple = {"Node Type": "Aggregate", "Partial Mode": "Simple"}
        yield "partition-wise, in full", wise, table.query(f"{table.name}_by_id"), [APPEND, simple, simple]
        query = table.query(f"{table.name}_by_x")
        yield "partition-wise, parallel", wise + PARALLEL, query, [FINAL, GATHER, PARTIAL]


def run_variations(table):
    """The server's answers for one table: for each variation the plan that is wanted, the plan, and the digests."""
    variations = [*serial_variations(table), *parallel_variations(table)]
    return [(name, plan, *explained(query, settings)) for name, settings, query, plan in variations]


def test_sets(tables, expected, results):
    for table in tables:
        for name, wanted, plan, lines in results[table.name].result():
            title = f"{table.title}, {name}"
            if wanted:
                check_plan(plan, wanted, title)
            title += f": {len(table.sets)} sets as by the reference"
            same_answers(answers(lines), expected[table.name], title)


def other_forms(table):
    """The same by other calls, above all by the form that takes everything from a filter."""
    base = f"{table.name}_base"
    load_bases(base, table.sets)
    call = "bloom_agg(x, base)"
    yield call, f"SELECT id, {sha256_sql(call)} FROM {table.name} JOIN {base} USING (id) GROUP BY id"
    calls = {
        "self": ("bloom_agg(x)", "bloom_agg(x, NULL, 0.01)", "bloom_agg(x, NULL::bloomfilter)"),
        "items": ("bloom_agg(x, items, 0.01)",),
    }
    calls["plain"] = calls["self"]
    for call in calls.get(table.form, ()):
        yield call, f"SELECT id, {sha256_sql(call)} FROM {table.name} GROUP BY id"


def test_forms_agree(tables, expected):
    for table in tables:
        if table.form not in ("onto", "inline"):
            for call, query in other_forms(table):
                same_answers(answers(ask(query)), expected[table.name], f"{table.title} as {call}")


def test_forced_worker(tables, expected):
    shown, name = [], "the same in a worker"
    for table in tables:
        plan, lines = explained(table.query(), forced_parallel())
        shown += plan
        same_answers(answers(lines), expected[table.name], f"{table.title}, {name}")
    check_plan(shown, [FORCED], name)


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
        up, down, single = each(*queries)
        if sized:
            wanted = {key: digest for key, digest in expected[table.name].items() if key in sized}
            same_answers(answers(up), wanted, f"{table.title}: {len(sized)} unions of parts are the wholes")
            same(sorted(down), sorted(up), f"{table.title}: unions of parts, in the other order")
        check_spilled(table, queries[2], single)


def check_spilled(table, query, expected):
    """The same groups, too many for the memory allowed; serial, and in workers."""
    settings = TO_SPILL + f"ALTER TABLE {table.name} SET (parallel_workers = 2);"
    for name, more in (("spilled", ""), ("spilled, 2 workers", PARALLEL)):
        plan, lines = explained(query, settings + more, ANALYZE)
        groups = f"{table.title}, {len(expected)} groups, {name}"
        wanted = [{**FINAL, **HASHED}, PARTIAL] if more else [HASHED]
        check_plan(plan if spills(plan) else [], wanted, groups)
        same(sorted(lines), sorted(expected), f"{groups}: as in memory")


# Workers without rows


ONE_PAGE = {
    "one row": "VALUES (7::bigint)",
    "a few rows": "SELECT i::bigint FROM generate_series(1, 5) AS i",
    "a page of rows": "SELECT i::bigint % 60 FROM generate_series(1, 150) AS i",
    "only nulls": "SELECT NULL::bigint FROM generate_series(1, 20)",
    "no rows": "SELECT 1 WHERE false",
}
SEVEN = ref.build("classic", 0.01, series(100, 200), items=100, seed=5)
FORMS_OF_ONE_PAGE = {
    "bloom_agg(x)": ref.empty(),
    "bloom_agg(x, NULL, 0.2)": ref.empty(0.2),
    "bloom_agg(x, 100)": created("blocked", 0.01, 100),
    "bloom_agg(x, 5, 0.001)": created("blocked", 0.001, 5),
    f"bloom_agg(x, {value(SEVEN)})": SEVEN,
    f"bloom_agg(x, {value(created('blocked', 0.1, 10, 3))})": created("blocked", 0.1, 10, 3),
}


def load_one_page(table, rows):
    each(
        f"CREATE TABLE {table} (x bigint) WITH (parallel_workers = 4, autovacuum_enabled = off)",
        f"INSERT INTO {table} {rows}",
        f"INSERT INTO {table} VALUES (1)",
        f"DELETE FROM {table} WHERE ctid = (SELECT max(ctid) FROM {table})",
        f"ANALYZE {table}",
        # so that workers seem worth it
        f"UPDATE pg_class SET reltuples = 100000 * relpages WHERE oid = '{table}'::regclass",
    )


def digest_of_one_page(name, call, present):
    base = FORMS_OF_ONE_PAGE[call]
    if name == "no rows":
        return "null" if "::bloomfilter" in call else sha256(ref.empty())
    return sha256(onto(base, 20, [ref.hash_of(ref.int8(int(x)), base.seed) for x in present]))


def test_idle_workers():
    """Tables of one page, read by a leader and four workers, of which at most one sees a row."""
    idle = runs = 0
    for number, (name, rows) in enumerate(ONE_PAGE.items()):
        table = f"page_{number}"
        load_one_page(table, rows)
        present = ask(f"SELECT x FROM {table} WHERE x IS NOT NULL")
        (pages,) = ask_one(f"SELECT pg_relation_size('{table}') / current_setting('block_size')::int")
        ok(int(pages) == 1, f"{name}: one page")
        for participation in ("on", "off"):
            settings = PARALLEL + f"SET parallel_leader_participation = {participation};"
            for call in FORMS_OF_ONE_PAGE:
                query = f"SELECT coalesce({sha256_sql(call)}, 'null') FROM {table}"
                plan, (digest,) = explained(query, settings, ANALYZE)
                title = f"{name}, 4 workers, leader {participation}, {call[:40]}"
                same(digest, digest_of_one_page(name, call, present), title)
                check_plan(plan, [FINAL, {"Workers Planned": 4}, PARTIAL], title)
                launched = next((node["Workers Launched"] for node in plan if "Workers Launched" in node), 0)
                runs += 1
                idle += launched + (participation == "on") > 1
    ok(idle > 0, f"in {idle} of {runs} runs a process saw no row")


def test_everything():
    tables = make_tables(random.Random("aggregation"))
    sizes = [len(s.canonical) for table in tables for s in table.sets]
    note(f"{len(sizes)} sets of {min(sizes)} to {max(sizes)} elements, {sum(sizes)} in all")
    with concurrent.futures.ThreadPoolExecutor(1) as executor:  # the server works while the reference does
        results = {table.name: executor.submit(run_variations, table) for table in tables}
        expected = {t.name: {str(s.id): sha256(s.expected()) for s in t.sets} for t in tables}
        part(test_sets, tables, expected, results)
        for test in test_forms_agree, test_forced_worker, test_partitions_of_the_input:
            part(test, tables, expected)


run(test_everything, test_idle_workers)
