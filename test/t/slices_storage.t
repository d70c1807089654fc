#!/usr/bin/python3 -B
"""The pages of bloomslices: every visible row of a table is found by the index exactly as by a scan of the table, whatever
filters it has, and while several sessions write, merge, cancel, VACUUM and rebuild.

    SLICES_SEED     another seed than the usual one
    SLICES_SECONDS  how long the sessions run
"""

import json
import os
import random
import struct
import time

from session import Session, ask, run, together
from slices_checks import DIFFERENT, check, differences, filters
from tap import note, ok, same

SEED = os.environ.get("SLICES_SEED", "slices")
SECONDS = float(os.environ.get("SLICES_SECONDS", "25"))
WRITERS, READERS = 3, 2

Session.settings = "SET client_min_messages = error; SET lock_timeout = '2s'; SET deadlock_timeout = '50ms'; " \
                   "SET enable_seqscan = off; SET jit = off;"  # fmt: skip

# Of every kind: exact ones, those of another size, rate or layout, of another seed, sparse, empty and null ones.
MIXED = f"""
INSERT INTO {{0}} {filters(150, 700, 200)};
INSERT INTO {{0}} {filters(150, 40, 5000, first=1000)};
INSERT INTO {{0}} {filters(90, 40, 100, first=2000)};
INSERT INTO {{0}} {filters(150, 40, 333, first=3000)};
INSERT INTO {{0}} {filters(150, 40, 200, rate="0.0001", first=4000)};
INSERT INTO {{0}} {filters(150, 40, 200, rate="0.2", first=5000)};
INSERT INTO {{0}} {filters(150, 40, 200, seed=7, first=6000)};
INSERT INTO {{0}} {filters(150, 40, 200, layout="classic", first=7000)};
INSERT INTO {{0}} {filters(5, 40, 200, first=8000)};
INSERT INTO {{0}} {filters(5, 40, 200, layout="classic", first=9000)};
INSERT INTO {{0}} SELECT 10000 + i, bloom_create(200, 0.01) FROM generate_series(1, 40) AS i;
INSERT INTO {{0}} SELECT 11000 + i, NULL FROM generate_series(1, 40) AS i;
INSERT INTO {{0}} SELECT 12000 + id, bloom_intersection(f, f) FROM {{0}} WHERE id BETWEEN 8000 AND 8010;
"""
KEYS = [f"{1000 * row + i}::bigint" for row in (1, 5, 17, 39, 40, 41, 300, 700) for i in (1, 5, 90, 150, 151, 500)]


def contents_of_every_kind():
    with Session() as session:
        for name, options in ("built", ""), ("built_small", " WITH (expected_items = 100)"), \
                ("built_wide", " WITH (expected_items = 30000)"), ("built_seed", " WITH (expected_items = 200, seed = 7)"):  # fmt: skip
            session.ask(f"CREATE TABLE {name} (id int, f bloomfilter); {MIXED.format(name)}")
            session.ask(f"CREATE INDEX {name}_f ON {name} USING bloomslices (f){options}")
            wrong = differences(session, name, KEYS) + check(session, f"{name}_f")
            ok(not wrong, f"an index over filters of every kind answers as the scan: {name}", *wrong)
            filled = name.replace("built", "filled")
            session.ask(f"CREATE TABLE {filled} (id int, f bloomfilter)",)
            session.ask(f"CREATE INDEX {filled}_f ON {filled} USING bloomslices (f){options}")
            session.ask(MIXED.format(filled))
            wrong = differences(session, filled, KEYS) + check(session, f"{filled}_f")
            session.ask(f"VACUUM {filled}")
            wrong += differences(session, filled, KEYS) + check(session, f"{filled}_f")
            ok(not wrong, f"one that is filled row by row, too, also after a merge: {filled}", *wrong)
        info = session.ask("SELECT bits, hashes, rows FROM bloomslices_info('built_f')")
        same(info, session.ask("SELECT bits, hashes, rows FROM bloomslices_info('filled_f')"),
             "both have the commonest shape and all rows")


def few_rows():
    """From 378 rows on they are sliced, in a slab of 4 tiles; fewer are in tiles of 127, to which rows can be added."""
    with Session() as session:
        session.ask(f"CREATE TABLE some_rows AS {filters(60, 505, 100)}")
        for n, slabs in (377, 3), (378, 1), (504, 1), (505, 2):
            session.ask(f"DROP TABLE IF EXISTS small; CREATE TABLE small AS SELECT * FROM some_rows WHERE id <= {n}")
            session.ask("CREATE INDEX small_f ON small USING bloomslices (f)")
            built = session.ask("SELECT slabs, rows FROM bloomslices_info('small_f')")
            wrong = differences(session, "small", KEYS[:12] + [f"{1000 * n + 1}::bigint"]) + check(session, "small_f")
            session.ask(f"INSERT INTO small SELECT * FROM some_rows WHERE id > {n - 130}")
            session.ask("VACUUM small")
            wrong += differences(session, "small", KEYS[:12] + ["505001::bigint"]) + check(session, "small_f")
            ok(built == [f"{slabs}|{n}"] and not wrong, f"{n} rows are in {slabs} slabs, and more come", built, *wrong)


def shape_of_a_sample():
    """A build takes the commonest shape of the live rows in a sample of blocks, all of a small table; the middle one of
    equally common ones."""
    small, large = filters(60, 400, 100), filters(60, 1000, 300, first=1000)
    info = "SELECT rows, rechecked FROM bloomslices_info('{}')"
    with Session() as session, Session() as reader:
        session.ask("CREATE TABLE grown (id int, f bloomfilter) WITH (autovacuum_enabled = off); "
                    f"CREATE INDEX grown_f ON grown USING bloomslices (f); INSERT INTO grown {small}; INSERT INTO grown {large}")
        got = []
        for command in "REINDEX INDEX grown_f", "REINDEX INDEX CONCURRENTLY grown_f", \
                "CREATE INDEX CONCURRENTLY grown_c ON grown USING bloomslices (f)":  # fmt: skip
            session.ask(command)
            got += session.ask(info.format("grown_c" if "grown_c" in command else "grown_f"))
        same(got, ["1400|400"] * 3, "after a change of sizes a build takes the size that most filters have")
        session.ask("CREATE TABLE equal WITH (autovacuum_enabled = off) AS SELECT * FROM grown WHERE id <= 1400; "
                    "CREATE INDEX equal_f ON equal USING bloomslices (f)")
        size = "SELECT bits = (SELECT bits FROM bloom_info(bloom_create({}))) FROM bloomslices_info('{}')"
        same(session.ask(size.format(300, "equal_f")), ["t"], "of 400 filters of each of two sizes it takes the larger")
        reader.ask("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        session.ask("DELETE FROM equal WHERE id > 1000; REINDEX INDEX equal_f")
        reader.ask("COMMIT")
        same(session.ask(size.format(100, "equal_f")), ["t"], "but not that of filters that are deleted")
        session.ask("CREATE TABLE sized AS SELECT bloom_agg(i, 100 * n) AS f FROM generate_series(1, 60) AS n, "
                    "generate_series(1, 40 * n) AS i GROUP BY n; INSERT INTO sized SELECT bloom_agg(1, 8000000); "
                    "CREATE INDEX sized_f ON sized USING bloomslices (f)")
        same(session.ask(size.format(3100, "sized_f")), ["t"], "of 61 sizes it takes the middle one")
        wrong = check(session, "grown_f") + differences(session, "grown", KEYS) + check(session, "equal_f")
        ok(not wrong, "no row is lost", *wrong)

        # One row on each of 5,000 blocks.  The first sample has blocks 39 and 117, and the greatest lacks the last one here.
        session.ask("CREATE UNLOGGED TABLE wide (id int, f bloomfilter, filler text DEFAULT repeat('x', 7000)); "
                    "ALTER TABLE wide ALTER filler SET STORAGE plain")
        unsampled = max(set(range(5000)) - {(2 * i + 1) * 5000 // 8192 for i in range(4096)})
        session.ask("INSERT INTO wide (id, f) SELECT i, bloom_add(bloom_create(1000, CASE WHEN i = 40 THEN 0.1 WHEN i < 110 THEN 0.01 "
                    "ELSE 0.001 END), i) FROM generate_series(0, 4999) AS i")
        same(session.ask("SELECT pg_relation_size('wide') / 8192"), ["5000"], "a table of 5,000 blocks")
        rate = "SELECT requested_rate FROM bloomslices_info('wide_f')"
        for where, n in ("true", 0.001), ("id BETWEEN 40 AND 109", 0.01), (f"id = {unsampled}", 0.001), ("id = 40", 0.1):
            session.ask(f"DROP INDEX IF EXISTS wide_f; CREATE INDEX wide_f ON wide USING bloomslices ((f | f)) WHERE {where}")
            same(session.ask(rate), [str(n)], f"the shape of an expression WHERE {where}")
        session.ask("DROP TABLE wide")

        # The expression would fail for the row that the transaction has replaced, and the index has only the new one.
        session.ask("CREATE TABLE replaced (n int, f bloomfilter); INSERT INTO replaced VALUES (0, bloom_create(9))")
        lines, state = session.attempt("BEGIN; UPDATE replaced SET n = 1; "
                                       "CREATE INDEX replaced_f ON replaced USING bloomslices (bloom_add(f, 7 / n)); COMMIT")
        same((lines, state), ([], "00000"), "the sample has only rows that the index gets")


def scan_over_merges():
    """A scan that searches many times, as for a join, keeps its copy of the directory: merges replace the slabs meanwhile."""
    join = "SELECT j.id, s.id FROM (SELECT i AS id, 1000 * (i % 400) + 7::bigint AS k FROM generate_series(1, 900) AS i) AS j, " \
           "scanned AS s WHERE s.f @> j.k"
    with Session() as session, Session() as other:
        session.ask("CREATE TABLE scanned (id int, f bloomfilter) WITH (autovacuum_enabled = off)")
        session.ask("CREATE INDEX scanned_f ON scanned USING bloomslices (f)")
        session.ask(f"INSERT INTO scanned {filters(60, 400, 100)}")
        wanted = sorted(session.ask(join.replace("s.f @> j.k", "(s.f @> j.k) IS TRUE")))
        plan = "".join(session.ask("EXPLAIN " + join))
        session.ask("BEGIN")
        session.ask(f"DECLARE c CURSOR FOR {join}")
        got = session.ask("FETCH 100 FROM c")
        for first in 10000, 20000, 30000:
            other.ask(f"INSERT INTO scanned {filters(60, 400, 100, first=first)}")
            other.ask("VACUUM scanned")
            got += session.ask("FETCH 100 FROM c")
        got += session.ask("FETCH ALL FROM c")
        session.ask("COMMIT")
        ok("scanned_f" in plan and len(wanted) >= 890, "a join searches the index for each row", plan, len(wanted))
        same(sorted(got), wanted, "it finds the rows of its snapshot while slabs are merged")


def shape_by_two_sessions():
    """The first row decides the shape: two at once decide for one of them."""
    ask("CREATE TABLE raced (id int, f bloomfilter); CREATE INDEX raced_f ON raced USING bloomslices (f)")
    rounds, wrong = 12, []
    for _ in range(rounds):
        ask("TRUNCATE raced")
        together(*[lambda number, session: session.ask(f"INSERT INTO raced {filters(50, 3, [60, 500][number])}")] * 2)
        with Session() as session:
            wrong += differences(session, "raced", KEYS) + check(session, "raced_f")
            wrong += [] if session.ask("SELECT rows FROM bloomslices_info('raced_f')") == ["6"] else ["rows are missing"]
    ok(not wrong, "two sessions whose rows have different sizes fill an empty index", *wrong)
    # One session remembers that the index has no shape.
    with Session() as first, Session() as second:
        ask("TRUNCATE raced")
        first.ask("INSERT INTO raced VALUES (0, NULL)")
        second.ask(f"INSERT INTO raced {filters(50, 3, 60)}")
        _, state = first.attempt(f"INSERT INTO raced {filters(50, 3, 500, first=100)}")
        wrong = differences(second, "raced", KEYS) + check(second, "raced_f")
        shape, _ = second.attempt("SELECT bits = (SELECT bits FROM bloom_info(bloom_create(60))) FROM bloomslices_info('raced_f')")
        ok((state, shape) == ("00000", ["t"]) and not wrong, "the first of two shapes stays", state, shape, *wrong)


def large_filters():
    """Filters above 50 kB have pages of their own; 762 of them become slices."""
    with Session() as session:
        session.ask("CREATE TABLE large (id int, f bloomfilter)")
        session.ask("CREATE INDEX large_f ON large USING bloomslices (f) WITH (expected_items = 45000)")
        session.ask(f"INSERT INTO large {filters(200, 80, 45000)}")
        session.ask(f"INSERT INTO large {filters(9000, 40, 45000, first=100)}")
        wrong = differences(session, "large", KEYS[:20]) + check(session, "large_f")
        session.ask("INSERT INTO large SELECT 1000 + i, f FROM large, generate_series(1, 7) AS i")
        before = session.ask("SELECT slabs FROM bloomslices_info('large_f')")
        session.ask("VACUUM large")
        after = session.ask("SELECT slabs FROM bloomslices_info('large_f')")
        wrong += differences(session, "large", KEYS[:20]) + check(session, "large_f")
        ok(not wrong, "large filters are found before and after they are merged", *wrong)
        same((before, after), (["960"], ["1"]), "each has a slab, and all have one")
        session.ask("REINDEX INDEX large_f")
        same(session.ask("SELECT slabs, rows FROM bloomslices_info('large_f')"), ["1|960"], "as after a build")
        wrong = differences(session, "large", KEYS[:20]) + check(session, "large_f")
        session.ask("SET maintenance_work_mem = '1MB'; REINDEX INDEX large_f")
        wrong += differences(session, "large", KEYS[:20]) + check(session, "large_f")
        ok(not wrong, "a build with little memory finds them, too", *wrong)


def many_slabs():
    """A row with a slab of its own takes the same work however many slabs there are, with free pages and without."""
    insert = "INSERT INTO many SELECT i, f FROM one_large, generate_series(1, {}) AS i"

    def pages_read(session):
        plan = session.ask(f"EXPLAIN (ANALYZE, BUFFERS, COSTS off, FORMAT JSON) {insert.format(100)}")
        buffers = json.loads("".join(plan))[0]["Plan"]
        return buffers["Shared Hit Blocks"] + buffers["Shared Read Blocks"]

    with Session() as session:
        session.ask(f"CREATE TABLE one_large AS {filters(200, 1, 43000)}")
        session.ask("CREATE TABLE many (id int, f bloomfilter) WITH (autovacuum_enabled = off)")
        session.ask("CREATE INDEX many_f ON many USING bloomslices (f) WITH (expected_items = 43000)")
        counts = []
        # A merge of its own, unlike VACUUM, leaves what the session remembers of the directory.
        for step in insert.format(100), insert.format(1500), "SELECT bloomslices_merge('many_f')", insert.format(300), \
                insert.format(900):  # fmt: skip
            session.ask(step)
            counts.append(pages_read(session))
        ok(counts[1] < 1.1 * counts[0], "a row reads as many pages among 1,700 slabs as among 100", *counts)
        ok(counts[4] < 1.1 * counts[3], "and as many among 1,400 in free pages as among 400", *counts)
        wrong = check(session, "many_f") + differences(session, "many", ["1001::bigint", "1500::bigint"])
        slabs = session.ask("SELECT slabs FROM bloomslices_info('many_f')")
        ok(not wrong and int(slabs[0]) > 1300, "and no slab is lost", slabs, *wrong)


def rows_in_the_making():
    """A merge leaves slabs alone to which a writer is adding a row."""
    ask("CREATE TABLE slow (id int, f bloomfilter) WITH (autovacuum_enabled = off); "
        "CREATE INDEX slow_f ON slow USING bloomslices (f) WITH (expected_items = 4000000)")
    ask(f"CREATE TABLE one AS {filters(200, 1, 4000000)}")
    merges = []

    def write(number, session):
        session.ask("INSERT INTO slow SELECT i, f FROM one, generate_series(1, 25) AS i")
        merges.append(None)

    def merge(number, session):
        while None not in merges:
            session.ask("SELECT bloomslices_merge('slow_f')")
            merges.insert(0, 1)

    together(write, merge)
    with Session() as session:
        wrong = check(session, "slow_f") + differences(session, "slow", ["1001::bigint", "1::bigint"])
        ok(not wrong, "rows that are added while slabs are merged are found", *wrong)
    ok(len(merges) > 5, "merges ran meanwhile", len(merges))


def nulls_only():
    with Session() as session:
        session.ask("CREATE TABLE nothing (id int, f bloomfilter); CREATE INDEX nothing_f ON nothing USING bloomslices (f)")
        session.ask("INSERT INTO nothing SELECT i, NULL FROM generate_series(1, 40000) AS i")
        wrong = check(session, "nothing_f")
        many = int(session.ask("SELECT slabs FROM bloomslices_info('nothing_f')")[0])
        session.ask("VACUUM nothing")
        few = int(session.ask("SELECT slabs FROM bloomslices_info('nothing_f')")[0])
        ok(many == 40 and few <= 2, "VACUUM joins the lists of rows without bits", many, few)
        wrong += check(session, "nothing_f")
        session.ask("DELETE FROM nothing WHERE id % 3 > 0", )
        session.ask("VACUUM nothing")
        wrong += check(session, "nothing_f")
        pages = int(session.ask("SELECT pages FROM bloomslices_info('nothing_f')")[0])
        ok(pages < 20, "and makes them shorter where rows are gone", pages)
        session.ask("REINDEX INDEX nothing_f")
        wrong += check(session, "nothing_f")
        session.ask(f"INSERT INTO nothing {filters(20, 10, 100)}")
        wrong += check(session, "nothing_f") + differences(session, "nothing", KEYS)
        ok(not wrong, "a table of nulls agrees with its index", *wrong)


def vacuum(session, table):
    """Removes all dead rows: waits for a worker of autovacuum, which keeps them while it analyzes another table."""
    while session.ask("SELECT pid FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'"):
        session.ask("SELECT pg_sleep(0.05)")
    session.ask(f"VACUUM {table}")


def space():
    """Pages of merged slabs and of cancelled merges are used again."""
    with Session() as session:
        session.ask("CREATE TABLE churned (id int, f bloomfilter) WITH (autovacuum_enabled = off)")
        session.ask("CREATE INDEX churned_f ON churned USING bloomslices (f)")
        session.ask(f"CREATE TABLE few AS {filters(300, 400, 1000)}")
        sizes = []
        for number in range(40):
            session.ask("INSERT INTO churned SELECT id, f FROM few UNION ALL SELECT id + 400, f FROM few")
            session.ask("DELETE FROM churned WHERE ctid IN (SELECT ctid FROM churned LIMIT 800)" if number else "SELECT")
            _, state = session.attempt(f"SET statement_timeout = {number % 5}; SELECT bloomslices_merge('churned_f')")
            session.set_timeout(0)
            vacuum(session, "churned")
            sizes.append(int(session.ask("SELECT pg_relation_size('churned_f')")[0]) // 8192)
        wrong = check(session, "churned_f") + differences(session, "churned", KEYS)
        ok(not wrong, "an index whose rows come and go answers as the scan", *wrong)
        ok(sizes[-1] <= 2 * max(sizes[:6]), "and hardly grows", sizes)
        session.ask("CREATE TABLE refilled (id int, f bloomfilter) WITH (autovacuum_enabled = off)")
        session.ask("CREATE INDEX refilled_f ON refilled USING bloomslices (f)")
        sizes = []
        for _ in range(6):
            session.ask("INSERT INTO refilled SELECT id, f FROM few, generate_series(1, 3)")
            vacuum(session, "refilled")
            sizes.append(int(session.ask("SELECT pg_relation_size('refilled_f')")[0]) // 8192)
            session.ask("DELETE FROM refilled")
            vacuum(session, "refilled")
        ok(sizes[-1] == sizes[2], "one that is emptied and filled again keeps its size", sizes)


def directory_of(session, index):
    """The next number of an index, and the entries of its directory by number, as bloomslices.h declares them."""
    session.ask("CHECKPOINT")
    (data,) = session.ask(f"SELECT encode(pg_read_binary_file(pg_relation_filepath('{index}')), 'hex')")
    data = bytes.fromhex(data)
    (next_number,), (npages,) = struct.unpack_from("=Q", data, 88), struct.unpack_from("=I", data, 112)
    slabs = []
    for page in struct.unpack_from(f"={npages}I", data, 172):
        (used,) = struct.unpack_from("=I", data, 8192 * page + 44)
        slabs += [struct.unpack_from("=QIIHHI", data, 8192 * page + 64 + 24 * i) for i in range(used)]
    return next_number, {number: tuple(slab) for number, *slab in slabs if slab[2] != 0}, slabs


def numbers():
    """No number of a slab is used again: readers know by it whether a page is still that of their slab."""
    with Session() as session:
        session.ask("CREATE TABLE numbered (id int, f bloomfilter) WITH (autovacuum_enabled = off); "
                    "CREATE INDEX numbered_f ON numbered USING bloomslices (f)")
        wrong, known, last = [], {}, 0
        for number in range(12):
            session.ask(f"INSERT INTO numbered {filters(60, 500, 100)}")
            session.ask("DELETE FROM numbered WHERE id % 2 = 0")
            _, state = session.attempt(f"SET statement_timeout = {number % 4}; SELECT bloomslices_merge('numbered_f')")
            session.set_timeout(0)
            session.ask("VACUUM numbered" if number % 2 else "SELECT bloomslices_merge('numbered_f')")
            next_number, slabs, entries = directory_of(session, "numbered_f")
            wrong += [f"{n} was {known[n]}, is {slab}" for n, slab in slabs.items() if known.get(n, slab) != slab]
            wrong += [f"{n} is new, after {last}" for n in slabs if n not in known and n < last]
            wrong += [f"{n} is not below {next_number}" for n in slabs if n >= next_number]
            wrong += ["a number twice"] if len(slabs) != sum(entry[3] != 0 for entry in entries) else []
            known.update(slabs)
            last = next_number
        ok(not wrong and len(known) > 20, f"{len(known)} slabs have numbers of their own", *wrong[:5])


def candidates():
    """VACUUM counts for the planner the rows that each search returns."""
    with Session() as session:
        session.ask("CREATE TABLE mixed (id int, f bloomfilter) WITH (autovacuum_enabled = off); "
                    "CREATE INDEX mixed_f ON mixed USING bloomslices (f)")
        session.ask(f"INSERT INTO mixed {filters(50, 300, 100)}")
        session.ask(f"INSERT INTO mixed {filters(50, 200, 100, seed=1, first=300)}")
        counts = []
        for change in "", "DELETE FROM mixed WHERE id > 450", "REINDEX INDEX mixed_f", "DELETE FROM mixed WHERE id > 300":
            session.ask(change or "SELECT")
            session.ask("VACUUM (INDEX_CLEANUP on) mixed")
            session.ask("CHECKPOINT")
            (data,) = session.ask("SELECT encode(pg_read_binary_file(pg_relation_filepath('mixed_f'), 168, 4), 'hex')")
            counts += struct.unpack("=I", bytes.fromhex(data))
        same(counts, [200, 150, 150, 0], "VACUUM counts candidates")


def definitions():
    """Partitions, expressions, predicates, unlogged tables, subtransactions, CREATE INDEX CONCURRENTLY."""
    with Session() as session:
        session.ask("CREATE TABLE parted (id int, f bloomfilter) PARTITION BY LIST ((id % 2)); "
                    "CREATE TABLE parted_0 PARTITION OF parted FOR VALUES IN (0); "
                    "CREATE UNLOGGED TABLE parted_1 PARTITION OF parted FOR VALUES IN (1); "
                    "CREATE INDEX parted_f ON parted USING bloomslices (f); "
                    "CREATE INDEX parted_some ON parted_0 USING bloomslices (f) WHERE id % 3 = 0; " + MIXED.format("parted"))
        wrong = differences(session, "parted", KEYS)
        session.ask("VACUUM parted")
        wrong += differences(session, "parted", KEYS) + check(session, "parted_0_f_idx") + check(session, "parted_some")
        ok(not wrong, "partitions, an unlogged one and a partial index", *wrong)
        session.ask("CREATE TABLE counted (id int, f bloomfilter) WITH (autovacuum_enabled = off)")
        session.ask("INSERT INTO counted SELECT i, NULL FROM generate_series(1, 90) AS i")
        session.ask("CREATE INDEX counted_f ON counted USING bloomslices (f) WHERE id % 3 = 0")
        session.ask("VACUUM counted")
        same(session.ask("SELECT reltuples FROM pg_class WHERE relname = 'counted_f'"), ["30"],
             "VACUUM does not take the rows of the table for those of a partial index")
        session.ask("CREATE TEMP TABLE fleeting (id int, f bloomfilter); "
                    "CREATE INDEX fleeting_f ON fleeting USING bloomslices (f);" + MIXED.format("fleeting"))
        wrong = differences(session, "fleeting", KEYS)
        session.ask("VACUUM fleeting")
        ok(not wrong + differences(session, "fleeting", KEYS), "a temporary table", *wrong)
        session.ask("CREATE TEMP TABLE emptied (id int, f bloomfilter) ON COMMIT DELETE ROWS; "
                    "CREATE INDEX emptied_f ON emptied USING bloomslices (f)")
        wrong = []
        for nulls, some in (0, 400), (400, 10), (0, 40):
            session.ask("BEGIN")
            session.ask(f"INSERT INTO emptied SELECT i, NULL FROM generate_series(1, {nulls}) AS i")
            session.ask(f"INSERT INTO emptied {filters(60, some, 100 + some)}")
            wrong += differences(session, "emptied", KEYS) + check(session, "emptied_f")
            session.ask("COMMIT")
        ok(not wrong, "a table that each transaction empties", *wrong)
        session.ask("BEGIN")
        for number in range(30):
            session.ask(f"SAVEPOINT s; INSERT INTO parted {filters(60, 9, 200, first=20000 + number)}")
            session.attempt("SELECT 1 / 0" if number % 2 else "SELECT 1")
            session.ask("ROLLBACK TO s" if number % 2 else "RELEASE s")
        session.ask("COMMIT")
        wrong = differences(session, "parted", KEYS) + check(session, "parted_0_f_idx")
        ok(not wrong, "subtransactions that commit and abort", *wrong)


# Sessions

SETUP = f"""
CREATE TABLE held (id int, f bloomfilter) WITH (autovacuum_enabled = off);
CREATE INDEX held_f ON held USING bloomslices (f);
CREATE TABLE source (id int, f bloomfilter);
INSERT INTO source {filters(150, 300, 200)};
INSERT INTO source {filters(150, 30, 900, first=1000)};
INSERT INTO source {filters(150, 30, 200, seed=1, first=2000)};
INSERT INTO source SELECT 3000 + i, NULL FROM generate_series(1, 100) AS i;
INSERT INTO source SELECT 4000 + i, bloom_create(200, 0.01) FROM generate_series(1, 20) AS i;
"""
CONCURRENT = {"00000", "40001", "40P01", "55P03", "57014"}
DDL = {"42P07", "42704", "55000", "XX000"}


def write(r, session, wrong):
    session.attempt(f"BEGIN ISOLATION LEVEL {r.choice(['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'])}")
    for _ in range(r.randint(1, 4)):
        session.attempt("SAVEPOINT s")
        session.attempt(f"SET LOCAL statement_timeout = {r.choice([0, 0, 0, 1, 3, 10])}")
        _, state = session.attempt(r.choice([
            f"INSERT INTO held SELECT id, f FROM source WHERE id % {r.choice([2, 5, 100])} = 0",
            f"INSERT INTO held SELECT id, f FROM source WHERE id % {r.choice([2, 5, 100])} = 0",
            f"UPDATE held SET f = bloom_add(f, {r.randrange(300000)}::bigint) WHERE id % 50 = {r.randrange(50)}",
            f"UPDATE held SET id = id + 1 WHERE id % 50 = {r.randrange(50)}",
            f"DELETE FROM held WHERE id % 7 = {r.randrange(7)}",
        ]))  # fmt: skip
        # 25P02: the statement before was cancelled
        if state not in CONCURRENT | {"25P02"}:
            wrong.append(f"{state} {session.error}")
        if state != "00000" or r.random() < 0.3:
            session.attempt("ROLLBACK TO s")
        session.attempt("SET LOCAL statement_timeout = 0")
    session.attempt(r.choice(["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"]))
    if session.attempt("SELECT count(*) > 5000 FROM held")[0] == ["t"]:
        session.attempt("DELETE FROM held WHERE random() < 0.7")


def read(r, session, wrong):
    session.attempt(f"BEGIN ISOLATION LEVEL {r.choice(['READ COMMITTED', 'REPEATABLE READ'])}")
    for _ in range(r.randint(1, 6)):
        key = f"{1000 * r.randint(1, 300) + r.randint(1, 160)}::bigint"
        lines, state = session.attempt(DIFFERENT.format("held", key))
        if lines or state not in CONCURRENT:
            wrong.append(f"{key}: {lines[:5]} {state} {session.error}")
        if state != "00000":
            break
        time.sleep(r.random() / 50)
    session.attempt("COMMIT")


def own(r, session, wrong):
    session.attempt(f"SET statement_timeout = {r.choice([0, 0, 1, 2, 5, 10, 20, 50])}")
    action = r.choice(["VACUUM held"] * 4 + ["SELECT bloomslices_merge('held_f')"] * 6 + [
        "REINDEX INDEX CONCURRENTLY held_f", "REINDEX INDEX held_f", "CREATE INDEX CONCURRENTLY second ON held USING "
        "bloomslices (f) WITH (expected_items = 300)", "DROP INDEX CONCURRENTLY IF EXISTS second",
        "SELECT bloomslices_check('held_f')", "VACUUM (FREEZE, INDEX_CLEANUP on) held", "CHECKPOINT",
        *["TRUNCATE held"] * (r.random() < 0.2)])  # fmt: skip
    _, state = session.attempt(action)
    if state not in CONCURRENT and not (state in DDL and "INDEX" in action):
        wrong.append(f"{action}: {state} {session.error}")
    session.attempt("SET statement_timeout = 0")
    time.sleep(r.random() / 30)


def sessions():
    ask(SETUP)
    until = time.monotonic() + SECONDS
    counts, wrong = {}, []

    def work(action):
        def loop(number, session):
            r = random.Random(f"{SEED} {number}")
            while time.monotonic() < until and len(wrong) < 5:
                action(r, session, wrong)
                counts[action.__name__] = counts.get(action.__name__, 0) + 1
        return loop

    together(*[work(write)] * WRITERS, *[work(read)] * READERS, *[work(own)] * 2)
    note(f"{counts}, rows: {ask('SELECT count(*) FROM held')}")
    with Session() as session:
        for name, in session.rows("SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid "
                                  "AND indrelid = 'held'::regclass"):  # fmt: skip
            session.ask(f"DROP INDEX {name}")
        wrong += check(session, "held_f") + differences(session, "held", KEYS)
        session.ask("VACUUM held")
        wrong += check(session, "held_f") + differences(session, "held", KEYS)
    ok(not wrong, f"sessions see the rows of the table, SLICES_SEED={SEED}", *wrong[:5])
    ok(all(counts.get(name, 0) > 20 for name in ("write", "read", "own")), "each kind of session did something", counts)


run(contents_of_every_kind, few_rows, shape_of_a_sample, scan_over_merges, shape_by_two_sessions, large_filters, many_slabs,
    rows_in_the_making, nulls_only, space, numbers, candidates, definitions, sessions)  # fmt: skip
