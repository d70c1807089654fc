#!/usr/bin/python3 -B
"""Bloomslices under random work of several sessions: in every snapshot, the index answers as a sequential scan.

Writers change tables in all ways that SQL has and at all isolation levels, while owners VACUUM, merge, rebuild, replace,
attach and alter. The tables have filters of every kind; those of "alike" can be compared by @>=, those of "classes" hold
integers or text, so that asking some is an error, and those of "large" take 1 MB. Every session compares the answers of
the index with those of a scan: writers within their transactions, readers also in snapshots that they keep while the
others go on.

The statements of each session come from a seed. How sessions meet does not.

    SLICES_SEED     another seed than the usual one
    SLICES_SECONDS  how long the sessions run
"""

import os
import time

from session import Session, ask, run
from slices_queries import (ALIKE, KEYS, KINDS, LARGE_SOURCE, SOURCE, Answers, array, classes, expression, join, key,
                            order, partial, rows, superset)
from tap import note, ok
from workers import CONCURRENT, DDL, DML, ISOLATIONS, run_workers, totals, transact

SEED = os.environ.get("SLICES_SEED", "bloomslices")
SECONDS = float(os.environ.get("SLICES_SECONDS", "40"))
WRITERS, READERS, OWNERS = 3, 2, 2
IDS = 3000
MOST_ROWS = {"large": 25}  # of a table; beyond, an owner deletes some. Slices need 762 rows
CANCELLED = {"57014"}

Session.settings = "SET client_min_messages = error; SET lock_timeout = '1s'; SET deadlock_timeout = '50ms'; " \
    "SET jit = off; SET enable_seqscan = off;"  # fmt: skip

# The indexes plain_f_* and the parts come and go. TABLE_f stays.
SETUP = SOURCE + """
CREATE TABLE plain (id int PRIMARY KEY, n int, kind text, f bloomfilter, note text) WITH (toast_tuple_target = 128);
CREATE INDEX plain_f ON plain USING bloomslices (f);
CREATE INDEX plain_f_some ON plain USING bloomslices (f) WITH (expected_items = 100) WHERE n % 3 = 0;
CREATE INDEX plain_f_same ON plain USING bloomslices ((f | f)) WITH (expected_items = 100, seed = 7);
CREATE TABLE alike (id int, n int, kind text, f bloomfilter, note text);
CREATE INDEX alike_f ON alike USING bloomslices (f);
CREATE TABLE parted (id int PRIMARY KEY, n int, kind text, f bloomfilter, note text) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (1000);
CREATE TABLE parted_2 (note text, f bloomfilter, gone int, kind text, id int NOT NULL, n int);
ALTER TABLE parted_2 DROP gone;
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES FROM (1000) TO (2000);
CREATE UNLOGGED TABLE parted_3 PARTITION OF parted FOR VALUES FROM (2000) TO (MAXVALUE);
CREATE INDEX parted_f ON parted USING bloomslices (f);
CREATE TABLE tree (id int, n int, kind text, f bloomfilter, note text);
CREATE TABLE tree_a (more int) INHERITS (tree);
CREATE INDEX tree_f ON tree USING bloomslices (f) WITH (expected_items = 100);
CREATE INDEX tree_a_f ON tree_a USING bloomslices (f) WITH (expected_items = 30);
CREATE TABLE classes (id int, n int, kind text, f bloomfilter, note text);
CREATE INDEX classes_f ON classes USING bloomslices (f);
CREATE TABLE large (id int, n int, kind text, f bloomfilter, note text);
CREATE INDEX large_f ON large USING bloomslices (f);
""" + LARGE_SOURCE  # fmt: skip
TABLES = ["plain", "alike", "parted_1", "parted_2", "parted_3", "tree", "tree_a", "classes", "large"]
ROOTS = ["plain"] * 4 + ["alike"] * 3 + ["parted"] * 3 + ["tree", "tree", "classes", "large"]
OF_INTEGERS = "kind IN ('dense', 'sparse', 'empty', 'null')"
BOUNDS = {"parted_1": ("FROM (MINVALUE) TO (1000)", "id >= 1000"), "parted_3": ("FROM (2000) TO (MAXVALUE)", "id < 2000")}


# What all do: compare

def question(r):
    table = r.choice(ROOTS)
    if table == "classes":
        return classes(r, table)
    kinds = [rows, rows, order, join]
    if table == "plain":
        kinds += [partial, expression]
    if table == "alike":
        kinds += [superset, superset]
    return r.choice(kinds)(r, table)


def compare(worker, asked, in_one_statement):
    """False if the transaction has failed."""
    r = worker.random
    answers = Answers(worker.session, r, asked, in_one_statement)
    worker.remember(f"{answers.state} {asked.kind}")
    worker.states[answers.state] += answers.state != "00000"
    if answers.state in CONCURRENT:
        return False
    if answers.wrong or answers.state != "00000" and (in_one_statement or answers.state != "42804"):
        worker.fault(f"{asked.kind} is wrong, {answers.settings}", f"{answers.state} "
                     f"{answers.wrong or worker.session.error}\nby index: {asked.by_index}\nby scan: "
                     f"{asked.by_scan}")  # fmt: skip
        return False
    worker.counts[asked.kind] += 1
    worker.counts["rows found"] += int(answers.rows)
    worker.counts["errors"] += answers.state == "42804"
    if r.random() < 0.2:
        worker.counts["plans"] += 1
        worker.counts["plans with the index"] += answers.uses_index()
    return True


PREPARED = "f @> $1", "f @@ bloom_query($1)", "bloom_contains_least(f, ARRAY[$1, $1 + 1, $1 + 2], 2)"


def prepared(worker):
    """A generic plan of a statement that each session prepares once. It compares by itself."""
    r = worker.random
    which = r.randrange(len(PREPARED))
    table, name = r.choice(["plain", "parted", "tree"]), f"asked_{which}"
    if f"{table}_{name}" not in worker.counts:
        form = f"SELECT tableoid, ctid FROM {table} WHERE "
        sql = f"PREPARE {table}_{name} (bigint) AS WITH a AS MATERIALIZED ({form}{PREPARED[which]}), b AS MATERIALIZED " \
            f"({form}({PREPARED[which]}) IS TRUE) (TABLE a EXCEPT ALL TABLE b) UNION ALL (TABLE b EXCEPT ALL TABLE a)"
        if worker.attempt(f"SET LOCAL plan_cache_mode = force_generic_plan; {sql}") is None:
            return False
        worker.counts[f"{table}_{name}"] += 1
    lines = worker.attempt(f"SET LOCAL plan_cache_mode = force_generic_plan; EXECUTE {table}_{name} ({key(r)})")
    worker.counts["prepared statements"] += lines is not None
    if lines:
        worker.fault("a prepared statement", f"{table}_{name}: {lines[:5]}")
    return lines is not None


def fetch(worker):
    """A cursor that is fetched while others, and a writer itself, go on. What it gives was decided when it was declared."""
    r = worker.random
    table = r.choice(["plain", "parted", "alike"])
    if r.random() < 0.5:
        c = f"f @> {key(r)}"
        by_index, by_scan = [f"SELECT tableoid, ctid FROM {table} WHERE {form}" for form in (c, f"({c}) IS TRUE")]
    else:
        d = f"f <-> bloom_query({array(r)})"
        by_index, by_scan = [f"SELECT {d} FROM {table} ORDER BY {by}" for by in (d, f"({d}) + 0")]
    want = worker.attempt(by_scan)
    if want is None or worker.attempt(f"DECLARE c CURSOR FOR {by_index}") is None:
        return False
    got = worker.attempt(f"FETCH {r.choice([0, 1, 5])} c")
    if got is None or worker.name.startswith("writer") and not change(worker):
        return False
    time.sleep(r.random() / 10)
    rest = worker.attempt("FETCH ALL c; CLOSE c")
    if rest is None:
        return False
    worker.counts["cursors"] += 1
    if sorted(got + rest) != sorted(want) or "<->" in by_index and got + rest != want:
        worker.fault("a cursor is wrong", f"{len(got)} + {len(rest)} rows, by scan {len(want)}: {by_index}")
    return True


def look(worker):
    r = worker.random
    if r.random() < 0.1:
        return prepared(worker)
    one_snapshot = worker.isolation != "READ COMMITTED"
    if one_snapshot and r.random() < 0.15:
        return fetch(worker)
    asked = question(r)
    if asked.kind == "classes" and not one_snapshot:
        return True
    return compare(worker, asked, asked.kind != "classes" and (not one_snapshot or r.random() < 0.7))


# What writers do

def some_of(r, table):
    """Rows of the source for a table."""
    if table == "large":
        return f"SELECT {r.randrange(IDS)} AS id, 1 AS n, kind, f FROM large_source WHERE id = {r.randint(1, 3)}"
    if table == "classes":
        which = r.choice([OF_INTEGERS, OF_INTEGERS, OF_INTEGERS, "kind = 'text'"])
    elif table == "alike":
        which = f"kind IN ({ALIKE})"
    else:
        which = r.choice(["kind <> 'text'", f"kind = '{r.choice(list(KINDS))}'"])
    step = r.choice([2, 7, 30])
    return f"""SELECT (id * 7 + i * 541 + {r.randrange(IDS)}) % {IDS} AS id, id % 10 AS n, kind, f
        FROM source, generate_series(1, {r.choice([1, 1, 1, 5])}) AS i
        WHERE {which} AND id % {step} = {r.randrange(step)}"""


def insert(r, table):
    conflict = ""
    if table in ("plain", "parted"):
        conflict = r.choice([" ON CONFLICT DO NOTHING",
                             " ON CONFLICT (id) DO UPDATE SET f = excluded.f, kind = excluded.kind"])  # fmt: skip
    return f"INSERT INTO {table} (id, n, kind, f, note) SELECT DISTINCT ON (id) id, n, kind, f, " \
        f"repeat('x', {r.choice([1, 200])}) FROM ({some_of(r, table)}) AS s{conflict}"


def update(r, table):
    by_key = r.choice([f"f @> {key(r)}", f"bloom_contains_least(f, {array(r)}, 6)"]) if table != "classes" else "false"
    where = r.choice([f"id % 40 = {r.randrange(40)}", f"id % 40 = {r.randrange(40)}", f"id % 7 = 3 AND {by_key}"])
    if table == "large":
        return f"UPDATE large SET n = n + 1, f = bloom_add(f, {r.randint(1, KEYS)}::bigint) WHERE id % 5 = {r.randrange(5)}"
    added = f"f = bloom_add(f, {r.randint(1, KEYS)}::bigint)"
    change = r.choice([added, added, "n = n + 1", "note = note || 'y'", "f = NULL", "f = f", f"id = (id + 37) % {IDS}",
                       "f = bloom_create(100)"])  # fmt: skip
    if change == added:
        where += " AND kind NOT IN ('text', 'no size')"
    if change.startswith("f = bloom_create"):
        change += ", kind = 'empty'"
    return f"UPDATE {table} SET {change} WHERE {where}"


def delete(r, table):
    if table == "classes":
        return f"DELETE FROM classes WHERE kind {r.choice(['=', '=', '<>'])} 'text'"
    by_key = f" AND f @> {key(r)}" if r.random() < 0.5 else ""
    step = 3 if by_key else r.choice([11, 40])
    return f"DELETE FROM {table} WHERE id % {step} = {r.randrange(step)}{by_key}"


def merge(r, table):
    return f"""MERGE INTO {table} AS t USING (SELECT DISTINCT ON (id) * FROM ({some_of(r, table)}) AS s) AS s ON t.id = s.id
        WHEN MATCHED AND s.id % 3 = 0 THEN DELETE
        WHEN MATCHED THEN UPDATE SET f = s.f, kind = s.kind
        WHEN NOT MATCHED THEN INSERT (id, n, kind, f) VALUES (s.id, s.n, s.kind, s.f)"""


def copy(worker, table):
    first = worker.random.randrange(IDS)
    lines = worker.attempt(f"SELECT DISTINCT ON (id) id, n, kind, f FROM ({some_of(worker.random, table)}) AS s")
    found = [line.split("|") for line in lines or ()]
    return lines is not None and (not found or worker.copy(f"{table} (id, n, kind, f)", [
        [str((int(id) + first) % IDS), n, kind, f or None] for id, n, kind, f in found]))  # fmt: skip


def change(worker):
    r = worker.random
    table = r.choice(ROOTS)
    make = r.choice([insert, insert, insert, update, update, update, delete, merge, copy])
    if table == "large" and r.random() < 0.7 or make is merge and table in ("large", "tree", "parted"):
        table = "plain"  # MERGE may not move a row to another partition
    if make is copy:
        return copy(worker, "alike" if table == "large" else table)
    # Two rows of a statement may be for one id.
    return worker.attempt(make(r, table), DML | {"21000"}) is not None


# What readers do: several looks from one snapshot, which stays while the others go on.

def read(worker):
    r = worker.random
    worker.isolation = r.choice(ISOLATIONS[1:] if r.random() < 0.7 else ISOLATIONS[:1])
    worker.attempt(f"BEGIN ISOLATION LEVEL {worker.isolation}{r.choice(['', ', READ ONLY'])}")
    good = worker.attempt("SELECT count(*) FROM pg_am") is not None
    until = time.monotonic() + r.choice([0, 0.1, 0.5, 1])
    while good:
        good = look(worker)
        if time.monotonic() > until:
            break
        time.sleep(r.random() / 50)
    worker.attempt("ROLLBACK" if not good else "COMMIT")


# What owners do

def indexes_of(worker, table):
    return worker.attempt(f"""SELECT c.oid::regclass FROM pg_index JOIN pg_class AS c ON c.oid = indexrelid JOIN pg_am AS a
        ON a.oid = relam WHERE amname = 'bloomslices' AND indisvalid AND indrelid = '{table}'::regclass""")


def verify(worker):
    """Runs bloomslices_check on all indexes of a table. The lock keeps a rebuild from dropping them."""
    table = worker.random.choice(TABLES)
    worker.attempt("BEGIN")
    if worker.attempt(f"LOCK TABLE {table} IN ACCESS SHARE MODE") is not None:
        for index in indexes_of(worker, table) or ():
            # An index that is too new for the snapshot is refused.
            if worker.attempt(f"SELECT bloomslices_check('{index}'), bloomslices_info('{index}')", {"55000"}) is None:
                break
            worker.counts["bloomslices_check"] += 1
    worker.attempt("ROLLBACK")


def thin_out(worker):
    table = worker.random.choice(TABLES + ["large"])
    if int((worker.attempt(f"SELECT count(*) FROM ONLY {table}") or ["0"])[0]) > MOST_ROWS.get(table, 2500):
        worker.attempt(f"DELETE FROM ONLY {table} WHERE random() < {worker.random.choice([0.3, 0.8])}")


def move_partition(worker):
    """Detaches a partition, changes it, and attaches it again. Without the lock two statements of one snapshot may see
    different partitions."""
    part = worker.random.choice(list(BOUNDS))
    bounds, outside = BOUNDS[part]
    alone = "BEGIN; LOCK TABLE parted IN ACCESS EXCLUSIVE MODE; ALTER TABLE parted {}; COMMIT"
    worker.attempt(alone.format(f"DETACH PARTITION {part}"), DDL)
    worker.attempt("ROLLBACK")
    worker.attempt(f"UPDATE {part} SET f = bloom_create(100), kind = 'empty' WHERE id % 10 = 1", DDL)
    for _ in range(100):
        worker.attempt(f"DELETE FROM {part} WHERE {outside}", DDL)
        done = worker.attempt(alone.format(f"ATTACH PARTITION {part} FOR VALUES {bounds}"), DDL) is not None
        worker.attempt("ROLLBACK")
        if done or worker.attempt(f"SELECT FROM pg_inherits WHERE inhrelid = '{part}'::regclass"):
            return
        time.sleep(0.05)
    worker.fault("a partition", f"{part} cannot be attached again")


def replace_index(worker):
    r = worker.random
    name, column = r.choice([("plain_f_some", "(f) {} WHERE n % 3 = 0"), ("plain_f_same", "((f | f)) {}"),
                             ("plain_f_2", "(f) {}")])  # fmt: skip
    shape = r.choice(["", f"WITH (expected_items = {r.choice([1, 50, 100, 3000])}, seed = {r.choice([0, 0, 7])})"])
    worker.attempt(f"DROP INDEX {r.choice(['', 'CONCURRENTLY '])}IF EXISTS {name}", DDL)
    worker.attempt(f"CREATE INDEX {r.choice(['', 'CONCURRENTLY '])}{name} ON plain "
                   f"USING bloomslices {column.format(shape)}", DDL)  # fmt: skip


def rebuild(worker):
    r = worker.random
    table, how = r.choice(TABLES), r.choice(["", " CONCURRENTLY", " CONCURRENTLY"])
    for index in (indexes_of(worker, table) or ())[:1]:
        worker.attempt(r.choice([f"REINDEX TABLE{how} {table}", f"REINDEX INDEX{how} {index}"]), DDL)


def merge_slabs(worker):
    """Also one that is cancelled."""
    r = worker.random
    for index in indexes_of(worker, r.choice(TABLES)) or ():
        worker.attempt(f"SET statement_timeout = {r.choice([0, 0, 0, 2, 5, 20])}", CANCELLED)
        worker.attempt(f"SELECT bloomslices_merge('{index}')", DDL | CANCELLED)
        worker.attempt("SET statement_timeout = 0", CANCELLED)


def vacuum(worker):
    options = worker.random.choice(["", "(INDEX_CLEANUP on)", "(FREEZE)"])
    worker.attempt(f"VACUUM {options} {worker.random.choice(TABLES)}", DDL)


def alter(worker):
    r = worker.random
    table = r.choice([table for table in TABLES if table != "large" and not table.startswith("parted_")])
    worker.attempt(r.choice([
        f"ALTER TABLE {table} ALTER f SET STORAGE {r.choice(['MAIN', 'EXTERNAL', 'EXTENDED'])}",
        f"ALTER TABLE {table} SET (toast_tuple_target = {r.choice([128, 2000])})",
        f"BEGIN; ALTER TABLE {table} ADD c{r.randrange(10**9)} int DEFAULT random(); COMMIT",
        f"ALTER TABLE {table} ALTER n TYPE {r.choice(['int', 'bigint'])}",
        f"VACUUM FULL {table}", f"ANALYZE {table}", f"TRUNCATE ONLY {table}", "CLUSTER plain USING plain_pkey",
        f"ALTER INDEX {r.choice(['plain_f', 'tree_f'])} SET (expected_items = {r.choice([30, 100, 1000])})",
    ]), DDL)  # fmt: skip
    worker.attempt("ROLLBACK")


def drop_invalid(worker):
    """Drops what failed REINDEX and CREATE INDEX CONCURRENTLY have left, but for one."""
    lines = worker.attempt("SELECT indexrelid::regclass FROM pg_index JOIN pg_class ON oid = indexrelid "
                           "WHERE NOT indisvalid AND relkind = 'i' AND relname ~ '_cc|_f_'")  # fmt: skip
    for index in (lines or ())[1:]:
        worker.attempt(f"DROP INDEX IF EXISTS {index}", DDL)


WORKS = [vacuum, vacuum, vacuum, merge_slabs, merge_slabs, merge_slabs, rebuild, rebuild, replace_index, move_partition,
         alter, drop_invalid]  # fmt: skip


def own(worker):
    worker.isolation = "READ COMMITTED"
    work = worker.random.choice(WORKS)
    work(worker)
    worker.counts[work.__name__] += 1
    thin_out(worker)
    verify(worker)
    compare(worker, rows(worker.random, "plain"), True)


# All together

def test_sessions():
    ask(SETUP)
    prepare = ask("SHOW max_prepared_transactions") != ["0"]
    if not prepare:
        note("max_prepared_transactions = 0: without prepared transactions")
    counts, states, faults = totals(run_workers(f"SLICES_SEED={SEED}", SECONDS, [
        ("writer", WRITERS, lambda worker: transact(worker, change, look, prepare)), ("reader", READERS, read),
        ("owner", OWNERS, own)]))  # fmt: skip
    ok(not faults, f"{WRITERS} writers, {READERS} readers and {OWNERS} owners: the index answers as the scan", *faults[:3])
    note(f"SLICES_SEED={SEED}")
    note(" ".join(f"{name}: {count}" for name, count in sorted(counts.items())))
    note("SQLSTATEs: " + " ".join(f"{state}: {count}" for state, count in sorted(states.items(), key=str)))
    for kind in "rows", "order", "join", "lateral", "superset", "partial", "expression", "classes", "prepared statements", \
            "cursors", "bloomslices_check":  # fmt: skip
        ok(counts[kind] > 2, f"comparisons by {kind}: {counts[kind]}")
    ok(counts["rows found"] > 1000, f"{counts['rows found']} rows are found")
    ok(0 < counts["errors"] < counts["classes"], f"keys of another class are {counts['errors']} errors")
    ok(counts["plans with the index"] > 0.7 * counts["plans"], "plans use the index", counts)


def test_end():
    """When all have ended, every index agrees with its table."""
    wrong = []
    with Session() as session:
        for table in TABLES:
            session.ask(f"VACUUM {table}")
        for index in session.ask("SELECT c.oid::regclass FROM pg_class AS c JOIN pg_am AS a ON a.oid = relam JOIN pg_index "
                                 "ON indexrelid = c.oid WHERE amname = 'bloomslices' AND relkind = 'i' AND indisvalid"):
            _, state = session.attempt(f"SELECT bloomslices_check('{index}')")
            wrong += [] if state == "00000" else [f"{index}: {session.error}"]
    ok(not wrong, "in the end bloomslices_check finds nothing", *wrong)


run(test_sessions, test_end)
