#!/usr/bin/python3 -B
"""The shape that an index of bloomslices takes from its table by default, against the sizes and rates that doc/format.md's
mathematics give, and what pg_stat_progress_create_index shows of a build.

    SLICES_SEED     another seed than the usual one
"""

import math
import os
import random

from session import Session, in_thread, result_of, run, wide
from slices_checks import check, differences
from tap import ok, same
import reference

SEED = os.environ.get("SLICES_SEED", "slices")
FILTERS = 400
MADE_FOR = 20000
RATE = 0.01
HASHES = reference.choose_k("blocked", RATE)
KEYS = [f"{100000 * row + i}::bigint" for row in (1, 20, 21, 399, 400) for i in (1, 2, 90000)] + ["-1::bigint"]
ABSENT = 300

Session.settings = "SET client_min_messages = notice; SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off;"


def make(session, table, sizes, made_for=MADE_FOR):
    """Makes a table of filters of these numbers of elements, which are numbered from 1 on."""
    session.ask(f"""CREATE TABLE {table} AS SELECT s::int AS id, f FROM unnest('{{{','.join(map(str, sizes))}}}'::int[])
        WITH ORDINALITY AS _ (size, s), LATERAL (SELECT bloom_agg((100000 * s + i)::bigint, {made_for}, {RATE}) AS f
        FROM generate_series(1, size) AS i) AS made""")


def build(session, table, options=""):
    """The bits of a new index, its bytes, and the notices."""
    session.ask(f"DROP INDEX IF EXISTS {table}_f")
    session.notices.clear()
    session.ask(f"CREATE INDEX {table}_f ON {table} USING bloomslices (f) {options}")
    ((bits, size),) = session.rows(f"SELECT bits, bytes FROM bloomslices_info('{table}_f')")
    return bits and int(bits), int(size), list(session.notices)


def kept(bits, sizes):
    """The share of filters whose elements keep their rate in so many bits."""
    return sum(reference.expected_rate("blocked", HASHES, bits, size) <= RATE for size in sizes) / len(sizes)


def best_bytes(session, table, sizes):
    """The fewest bytes of an index that expected_items makes, and that keeps the rate of nineteen of twenty."""
    steps = sorted({math.ceil(max(sizes) / 1.15**step) for step in range(60)} | {sorted(sizes)[len(sizes) * 19 // 20 - 1]})
    best = math.inf
    for items in steps:
        bits, size, _ = build(session, table, f"WITH (expected_items = {items})")
        if kept(bits, sizes) >= 0.95:
            best = min(best, size)
    return best


def rechecked(session, table):
    """Filters that a search for an absent key tests, on average."""
    total = 0
    for key in range(1, ABSENT + 1):
        (scan,) = session.explain(f"SELECT FROM {table} WHERE f @> {-key}::bigint", ", ANALYZE, TIMING off")
        total += scan["Rows Removed by Index Recheck"] + scan["Actual Rows"]
    return total / ABSENT


def expected_rechecked(bits, sizes):
    """What theory expects, and its standard deviation. Filters of more than bits / k elements are always tested."""
    rates = [1 if size > bits // HASHES else reference.expected_rate("blocked", HASHES, bits, size) for size in sizes]
    return sum(rates), math.sqrt(sum(rate * (1 - rate) for rate in rates) / ABSENT)


def laws():
    source = random.Random(SEED)
    return {
        "equal sizes": [300] * FILTERS,
        "Zipfian sizes": [30000 // i for i in range(1, FILTERS + 1)],
        "Zipfian sizes, exponent 1/2": [int(8000 / math.sqrt(i)) for i in range(1, FILTERS + 1)],
        "Zipfian sizes, exponent 3/2": [max(int(50000 / i**1.5), 1) for i in range(1, FILTERS + 1)],
        "log-normal sizes": [1 + int(source.lognormvariate(5, 1)) for _ in range(FILTERS)],
        "sizes from 1 to 1,000": [source.randint(1, 1000) for _ in range(FILTERS)],
    }


def elements():
    """The shape keeps the rate of nineteen of twenty filters, and takes at most twice as much as it must."""
    with Session() as session:
        for name, sizes in laws().items():
            make(session, "sized", sizes)
            best = best_bytes(session, "sized", sizes)
            bits, size, notices = build(session, "sized")
            items = sorted(sizes)[FILTERS * 19 // 20 - 1]
            same(bits, reference.choose_m("blocked", RATE, items), f"{name}: the size for {items} elements")
            same(notices, [f'bloomslices index "sized_f" is built with expected_items = {items}'], f"{name}: a notice says so")
            ok(kept(bits, sizes) >= 0.95, f"{name}: 95 % keep their rate", kept(bits, sizes))
            ok(size <= 2 * best, f"{name}: at most twice the bytes of the best expected_items", size, best)
            wrong = check(session, "sized_f") + differences(session, "sized", KEYS)
            ok(not wrong, f"{name}: answers as a scan", *wrong)
            session.ask("ANALYZE sized")
            got, (mean, deviation) = rechecked(session, "sized"), expected_rechecked(bits, sizes)
            ok(abs(got - mean) <= 5 * deviation, f"{name}: a search tests as many filters as theory says", got, mean, deviation)
            session.ask("DROP TABLE sized")


def own_size():
    """Filters that need more than half of their own size give the index their shape, without a notice."""
    with Session() as session:
        for name, made_for, sizes in (
            ("dense filters", 500, [200] * FILTERS),
            ("more than one dense filter in twenty", MADE_FOR, [4000] * 21 + [100] * (FILTERS - 21)),
            ("two blocks of which one is enough", 100, [5] * FILTERS),
            ("no elements", MADE_FOR, []),
        ):
            make(session, "owned", sizes, made_for)
            session.ask(f"INSERT INTO owned VALUES (0, bloom_create({MADE_FOR})), (0, NULL)")
            bits, _, notices = build(session, "owned")
            same((bits, notices), (reference.choose_m("blocked", RATE, made_for) if sizes else None, []), name)
            session.ask("DROP TABLE owned")
        make(session, "owned", [4000] * 20 + [100] * (FILTERS - 20))
        bits, _, notices = build(session, "owned")
        same((bits, len(notices)), (reference.choose_m("blocked", RATE, 100), 1), "one dense filter in twenty does not")
        wrong = check(session, "owned_f") + differences(session, "owned", KEYS)
        ok(not wrong, "and is found", *wrong)
        bits, _, notices = build(session, "owned", "WITH (expected_items = 3000)")
        same((bits, notices), (reference.choose_m("blocked", RATE, 3000), []), "expected_items decides")
        for rate in "0.99999", "1e-30":
            session.ask(f"""UPDATE owned SET f = overlay(f::bytea PLACING
                (SELECT decode(string_agg(substr(encode(float4send({rate}), 'hex'), i, 2), ''), 'hex')
                 FROM unnest('{{7,5,3,1}}'::int[]) AS i) FROM 9)::bloomfilter""")
            bits, _, notices = build(session, "owned")
            same((bits, notices), (reference.choose_m("blocked", RATE, MADE_FOR), []), f"foreign filters of rate {rate}")


def later():
    """Each build chooses anew; until then all filters are found, however many elements they have."""
    own, small, large = (reference.choose_m("blocked", RATE, items) for items in (MADE_FOR, 100, 1000))
    with Session() as session:
        make(session, "growing", [])
        session.ask("CREATE INDEX growing_f ON growing USING bloomslices (f)")
        make(session, "added", [100] * FILTERS)
        make(session, "larger", [1000] * FILTERS + [30000])
        got, wrong = [], []
        for step in ("INSERT INTO growing TABLE added", "REINDEX INDEX growing_f", "INSERT INTO growing TABLE larger",
                     "SELECT bloomslices_merge('growing_f')", "VACUUM growing", "REINDEX INDEX CONCURRENTLY growing_f",
                     "ALTER INDEX growing_f SET (expected_items = 100)", "REINDEX INDEX growing_f",
                     "ALTER INDEX growing_f RESET (expected_items)", "VACUUM FULL growing"):  # fmt: skip
            session.ask(step)
            got += session.ask("SELECT bits FROM bloomslices_info('growing_f')")
            wrong += check(session, "growing_f") + differences(session, "growing", KEYS)
        same([int(bits) for bits in got], [own, small, small, small, small, large, large, small, small, large], "the shapes")
        ok(not wrong, "the index answers as a scan meanwhile", *wrong)
        session.ask("CREATE TABLE parts (LIKE growing) PARTITION BY RANGE (id)")
        session.ask("CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (1000)")
        session.ask("CREATE TABLE high PARTITION OF parts FOR VALUES FROM (1000) TO (9000)")
        session.ask("INSERT INTO parts TABLE added; INSERT INTO parts SELECT 1000 + id, f FROM larger")
        session.ask("CREATE INDEX parts_f ON parts USING bloomslices (f)")
        got = session.ask("SELECT bits FROM unnest('{low_f_idx,high_f_idx}'::regclass[]) AS i, bloomslices_info(i)")
        same([int(bits) for bits in got], [small, large], "each partition has its own")
        wrong = check(session, "parts_f") + differences(session, "parts", KEYS)
        ok(not wrong, "and answers as a scan", *wrong)


PROGRESS = """SELECT phase, tuples_done, tuples_total FROM pg_stat_progress_create_index WHERE pid = {}"""


def progress():
    """The view moves while the rows are read, and while the slices are written, which takes longer."""
    with Session("SET maintenance_work_mem = '4MB';") as session, Session() as watching:
        session.ask("CREATE TABLE wide (f bloomfilter); ALTER TABLE wide ALTER f SET STORAGE external")
        session.ask(f"INSERT INTO wide SELECT {wide(1 << 20)} FROM generate_series(1, {FILTERS})")
        building = in_thread(session.ask, "CREATE INDEX wide_f ON wide USING bloomslices (f)")
        seen = []
        while not building.done():
            seen += watching.rows(PROGRESS.format(session.pid))
        result_of(building)
    phases = list(dict.fromkeys(phase for phase, *_ in seen if "scanning" in phase or "writing" in phase))
    same(phases, ["building index: scanning table", "building index: writing slices"], "a build has these phases")
    for phase in phases:
        done = [int(done) for shown, done, _ in seen if shown == phase]
        ok(done == sorted(done) and len(set(done)) >= 10 and max(done) <= FILTERS, f"{phase}: rows go up", done)
    same({total for phase, _, total in seen if "writing" in phase}, {str(FILTERS)}, "to the number of rows")


run(elements, own_size, later, progress)
