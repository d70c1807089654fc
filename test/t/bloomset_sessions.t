#!/usr/bin/python3 -B
"""Sets under random work of several sessions: at every moment, every value that a session sees in a table is in its
set.

Writers change a plain table, a partitioned table and an inheritance tree in all ways that SQL has and at all isolation
levels, while two sessions rebuild, replace, attach, detach, truncate and vacuum, so the sets, which are made for 20
elements, also grow all the time. Every session compares sets and tables, each comparison in one statement: writers
within their transactions, readers also in snapshots that they keep while the others go on. The table itself says what
is right.

The statements of each session come from a seed. How sessions meet does not.

    BLOOMSET_SEED     another seed than the usual one
    BLOOMSET_SECONDS  how long the sessions run
"""

import os
import time

from bloomset_checks import (USE_SETS, VALID_SETS, denied, denied_by_filters, denied_by_index, denied_by_partitions,
                             denied_by_scan, settled)
from session import Session, ask, run, together
from tap import note, ok, same
from workers import DDL, DML, ISOLATIONS, run_workers, totals, transact

SEED = os.environ.get("BLOOMSET_SEED", "bloomset")
SECONDS = float(os.environ.get("BLOOMSET_SECONDS", "40"))
WRITERS, READERS, OWNERS = 3, 2, 2
IDS = 4000
MOST_ROWS = 2500  # of a table; beyond, an owner deletes some
WITH = "WITH (expected_items = 20)"

Session.settings = "SET client_min_messages = error; SET lock_timeout = '1s'; SET deadlock_timeout = '50ms';"

# The sets on plain_k2 and of the parts come and go. plain_k stays, so a set that answers is always there.
SETUP = f"""
CREATE TABLE plain (id int PRIMARY KEY, k bigint, s text, flag boolean NOT NULL DEFAULT false);
CREATE INDEX plain_k ON plain USING bloomset (k) {WITH};
CREATE INDEX plain_k2 ON plain USING bloomset (k) WITH (expected_items = 20, seed = 2);
CREATE INDEX plain_s ON plain USING bloomset (s) WITH (expected_items = 20, false_positive_rate = 1e-4, seed = -7);
CREATE INDEX plain_flagged ON plain USING bloomset (k) {WITH} WHERE flag;
CREATE INDEX plain_rest ON plain USING bloomset ((k % 1000)) {WITH};
CREATE TABLE parted (id int PRIMARY KEY, k bigint, s text, flag boolean NOT NULL DEFAULT false) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (1000);
CREATE TABLE parted_2 (flag boolean NOT NULL DEFAULT false, s text, gone int, k bigint, id int NOT NULL);
ALTER TABLE parted_2 DROP gone;
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES FROM (1000) TO (2000);
CREATE TABLE parted_3 PARTITION OF parted FOR VALUES FROM (2000) TO (MAXVALUE) PARTITION BY RANGE (id);
CREATE TABLE parted_3a PARTITION OF parted_3 FOR VALUES FROM (MINVALUE) TO (3000);
CREATE TABLE parted_3b PARTITION OF parted_3 FOR VALUES FROM (3000) TO (MAXVALUE);
CREATE INDEX parted_k ON parted USING bloomset (k) {WITH};
CREATE INDEX parted_s ON parted USING bloomset (s) {WITH};
CREATE TABLE tree (id int, k bigint, s text, flag boolean NOT NULL DEFAULT false);
CREATE TABLE tree_a () INHERITS (tree);
CREATE TABLE tree_b (more int, flag boolean NOT NULL DEFAULT false, s text, k bigint, id int);
ALTER TABLE tree_b INHERIT tree;
CREATE TABLE tree_bb () INHERITS (tree_b);
""" + "".join(
    f"CREATE INDEX {table}_k ON {table} USING bloomset (k) {WITH}; "
    f"CREATE INDEX {table}_s ON {table} USING bloomset (s);"
    for table in ("tree", "tree_a", "tree_b", "tree_bb")
) + f"""
CREATE MATERIALIZED VIEW seen AS SELECT id, k FROM plain;
CREATE UNIQUE INDEX ON seen (id);
CREATE INDEX seen_k ON seen USING bloomset (k) {WITH};
"""  # fmt: skip
ROOTS = "plain", "parted", "tree"
PARTS = {
    "plain": ["plain"], "parted": ["parted_1", "parted_2", "parted_3a", "parted_3b"],
    "tree": ["tree", "tree_a", "tree_b", "tree_bb"],
}  # fmt: skip
TABLES = [part for parts in PARTS.values() for part in parts]
BOUNDS = {
    "parted_1": ("FROM (MINVALUE) TO (1000)", "id >= 1000"),
    "parted_2": ("FROM (1000) TO (2000)", "NOT id BETWEEN 1000 AND 1999"),
    "parted_3": ("FROM (2000) TO (MAXVALUE)", "id < 2000"),
}


def check(worker, kind, query, allowed=frozenset()):
    """Runs a query that must return no row."""
    lines = worker.attempt(query, allowed)
    if lines is not None:
        worker.counts[kind] += 1
        if lines:
            worker.fault(f"{kind} is wrong", f"{len(lines)} rows, among them {lines[:5]}\n{query}")
    return lines is not None


def look(worker):
    """Compares a random set with its table. False if the transaction has failed."""
    choose = worker.random.choice
    root = choose(ROOTS)
    table, column = choose([root, root, *PARTS[root]]), choose("kks")
    some = f"id % 20 = {worker.random.randrange(20)}"
    # A query that waited for a partition while it was detached still reads it, and then asks the others.
    attached = f"tableoid IN (SELECT relid FROM pg_partition_tree('{root}'))" if root == "parted" else "true"
    kind = choose(["contains"] * 5 + ["partitions", "filters", "scan", "partial", "expression", "view"])
    if kind == "contains":
        return check(worker, kind, denied(table, column, attached if table == root else "true"))
    if kind == "partitions":
        return check(worker, kind, denied_by_partitions(root, column, f"{some} AND {attached}"))
    if kind == "filters":
        # Without a usable set they are an error.
        return check(worker, kind, denied_by_filters(root, column, f"{some} AND {attached}"), {"55000"})
    if kind == "scan":
        return worker.attempt(USE_SETS) is not None and check(worker, kind, denied_by_scan(table, column, some)) \
            and worker.attempt("RESET enable_seqscan; RESET enable_indexscan; RESET enable_indexonlyscan") is not None
    if kind == "partial":
        return check(worker, kind, denied_by_index("plain_flagged", "plain", "k", "flag"))
    if kind == "expression":
        return check(worker, kind, denied_by_index("plain_rest", "plain", "(k % 1000)"))
    return check(worker, kind, denied("seen"))


def absent(worker):
    """Counts how often a set says "no": one that always says "maybe" would pass every check."""
    lines = worker.attempt("SELECT count(*) FILTER (WHERE NOT bloomset_contains("
                         f"'{worker.random.choice(ROOTS)}', 'k', -i)) FROM generate_series(1, 10) AS i")  # fmt: skip
    if lines:
        worker.counts["absent"] += 10
        worker.counts["no"] += int(lines[0])
    return lines is not None


# What writers do

def new_value(r):
    return r.randrange(1, 200) if r.random() < 0.4 else r.randrange(1, 10**12)


CONFLICTS = " ON CONFLICT DO NOTHING", " ON CONFLICT (id) DO UPDATE SET k = excluded.k, s = excluded.s"


def insert(r, table):
    conflict = "" if table.startswith("tree") else r.choice(CONFLICTS)
    first, number, k = r.randrange(IDS), r.choice([1, 1, 1, 5, 40, 150]), new_value(r)
    return f"""INSERT INTO {table} (id, k, s, flag)
        SELECT i, {k} + i * {r.choice([0, 1, 7919])}, 'w' || {k} + i, i % 3 = 0
        FROM generate_series({first}, {first + number - 1}) AS i{conflict}"""


def update(r, table):
    change = r.choice(["k = k + 1", f"k = {new_value(r)} + id", f"s = 'w' || {new_value(r)}", "flag = NOT flag",
                       "k = NULL", f"k = {new_value(r)}, s = NULL, flag = true",
                       f"id = (id + {r.randrange(IDS)}) % {IDS}"])  # fmt: skip
    return f"UPDATE {table} SET {change} WHERE id % {r.choice([37, 97, 400])} = {r.randrange(37)}"


def delete(r, table):
    return f"DELETE FROM {table} WHERE id % {r.choice([37, 97])} = {r.randrange(37)}"


def merge(r, table):
    first, k = r.randrange(IDS), new_value(r)
    return f"""MERGE INTO {table} AS t
        USING (SELECT i AS id, {k} + i AS k FROM generate_series({first}, {first + 30}, 3) AS i) AS n ON t.id = n.id
        WHEN MATCHED AND n.id % 2 = 0 THEN UPDATE SET k = n.k, s = 'm' || n.k
        WHEN MATCHED THEN DELETE
        WHEN NOT MATCHED THEN INSERT (id, k, s) VALUES (n.id, n.k, 'm' || n.k)"""


def copy(r, worker, table):
    first, number, k = r.randrange(IDS), r.choice([1, 20, 100]), new_value(r)
    return worker.copy(f"{table} (id, k, s)", [(str(i), str(k + i), f"c{k + i}") for i in range(first, first + number)])


def change(worker):
    r = worker.random
    root = r.choice(ROOTS)
    table = r.choice([root, root, *PARTS[root]])
    make = r.choice([insert, insert, insert, update, update, delete, merge, copy])
    if root == "parted" and make not in (update, delete):
        table = root  # a leaf refuses most rows
    if make is copy:
        return copy(r, worker, table)
    return worker.attempt(make(r, table), DML) is not None


# What readers do: several looks from one snapshot, which stays while the others go on.

def read(worker):
    r = worker.random
    isolation = r.choice(ISOLATIONS[1:] if r.random() < 0.7 else ISOLATIONS[:1])
    worker.attempt(f"BEGIN ISOLATION LEVEL {isolation}{r.choice(['', ', READ ONLY'])}")
    good = worker.attempt("SELECT count(*) FROM pg_am") is not None
    until = time.monotonic() + r.choice([0, 0.05, 0.2, 0.5])
    while good:
        if isolation == "READ COMMITTED" and r.random() < 0.3:
            good = absent(worker)
        good = good and look(worker)
        if time.monotonic() > until:
            break
        time.sleep(r.random() / 50)
    worker.attempt("ROLLBACK" if not good else "COMMIT")
    absent(worker)


# What owners do

def verify(worker, table):
    """Runs bloomset_check on all valid sets of a table. The lock keeps a rebuild from dropping them."""
    worker.attempt("BEGIN")
    if worker.attempt(f"LOCK TABLE {table} IN ACCESS SHARE MODE") is not None:
        for index in worker.attempt(VALID_SETS.format(table)) or ():
            # A set that is too new for the snapshot is refused.
            if worker.attempt(f"SELECT bloomset_check({index})", {"55000"}) is None:
                break
            worker.counts["bloomset_check"] += 1
    worker.attempt("ROLLBACK")


def thin_out(worker, table):
    if int((worker.attempt(f"SELECT count(*) FROM ONLY {table}") or ["0"])[0]) > MOST_ROWS:
        worker.attempt(f"DELETE FROM ONLY {table} WHERE id % 2 = {worker.random.randrange(2)}")


def change_tree(worker, root, statement):
    """Without the lock a query that waits for a child meanwhile still reads it (find_all_inheritors), and then asks the
    tree, which has it no more; and the subqueries of a statement can have different children.
    """
    done = worker.attempt(f"BEGIN; LOCK TABLE {root} IN ACCESS EXCLUSIVE MODE; {statement}; COMMIT", DDL) is not None
    if not done:
        worker.attempt("ROLLBACK")
    return done


def move_partition(worker):
    """Detaches a partition, changes it, and attaches it again."""
    r = worker.random
    part = r.choice(list(BOUNDS))
    if worker.attempt(f"ALTER TABLE parted DETACH PARTITION {part}{r.choice(['', ' CONCURRENTLY'])}", DDL) is None:
        worker.attempt(f"ALTER TABLE parted DETACH PARTITION {part} FINALIZE", DDL)
    if r.random() < 0.5:
        worker.attempt(f"UPDATE {part} SET k = {new_value(r)} + id WHERE id % 10 = 1", DDL)
    if r.random() < 0.3:
        worker.attempt(f"DROP INDEX IF EXISTS {part}_other; "
                       f"CREATE INDEX {part}_other ON {part} USING bloomset (k) WITH (seed = {r.randrange(100)})", DDL)
    bounds, outside = BOUNDS[part]
    for _ in range(100):
        worker.attempt(f"DELETE FROM {part} WHERE {outside}", DDL)
        if change_tree(worker, "parted", f"ALTER TABLE parted ATTACH PARTITION {part} FOR VALUES {bounds}") or \
                worker.attempt(f"SELECT FROM pg_inherits WHERE inhrelid = '{part}'::regclass AND NOT inhdetachpending"):
            return
        worker.attempt(f"ALTER TABLE parted DETACH PARTITION {part} FINALIZE", DDL)
        time.sleep(0.05)
    worker.fault("a partition", f"{part} cannot be attached again")


def move_child(worker):
    child = worker.random.choice(["tree_a", "tree_b"])
    change_tree(worker, "tree", f"ALTER TABLE {child} NO INHERIT tree")
    worker.attempt(f"UPDATE {child} SET k = {new_value(worker.random)} + id WHERE id % 10 = 2", DDL)
    for _ in range(100):
        if change_tree(worker, "tree", f"ALTER TABLE {child} INHERIT tree") or \
                worker.attempt(f"SELECT FROM pg_inherits WHERE inhrelid = '{child}'::regclass"):
            return
    worker.fault("a child", f"{child} cannot inherit again")


def drop_invalid(worker):
    """Drops what failed REINDEX and CREATE INDEX CONCURRENTLY have left, but for one. ATTACH PARTITION may take such an
    index for that of the partition: then it cannot be dropped (2BP01)."""
    lines = worker.attempt("SELECT indexrelid::regclass FROM pg_index JOIN pg_class ON oid = indexrelid "
                           "WHERE NOT indisvalid AND relkind = 'i' AND relname ~ '_cc|_k2'")  # fmt: skip
    for index in (lines or ())[1:]:
        worker.attempt(f"DROP INDEX IF EXISTS {index}", DDL | {"2BP01"})


def replace_set(worker):
    r = worker.random
    worker.attempt(f"DROP INDEX {r.choice(['', 'CONCURRENTLY '])}IF EXISTS plain_k2", DDL)
    worker.attempt(f"CREATE INDEX {r.choice(['', 'CONCURRENTLY '])}plain_k2 ON plain USING bloomset (k) "
                   f"WITH (expected_items = {r.choice([5, 20, 3000])}, seed = {r.randrange(-9, 9)})", DDL)  # fmt: skip


def rebuild(worker):
    r = worker.random
    table, how = r.choice(TABLES), r.choice(["", " CONCURRENTLY"])
    indexes = [f"{table}_k", f"{table}_s"] if table in ("plain", "tree", "tree_a", "tree_b", "tree_bb") \
        else ["parted_k", "parted_s"]
    worker.attempt(r.choice([f"REINDEX TABLE{how} {table}", f"REINDEX INDEX{how} {r.choice(indexes)}"]), DDL)


def rewrite(worker):
    table = worker.random.choice(TABLES)
    worker.attempt(worker.random.choice([f"VACUUM (FULL) {table}", "CLUSTER plain USING plain_pkey",
                                         f"TRUNCATE ONLY {table}", "TRUNCATE plain"]), DDL)  # fmt: skip


def set_options(worker):
    r = worker.random
    worker.attempt(f"ALTER INDEX {r.choice(['plain_k', 'plain_k2', 'tree_k'])} "
                   f"SET (seed = {r.randrange(100)}, expected_items = {r.choice([10, 1000])})", DDL)


def refresh(worker):
    worker.attempt(f"REFRESH MATERIALIZED VIEW {worker.random.choice(['', 'CONCURRENTLY '])}seen", DDL)


def vacuum(worker):
    worker.attempt(f"VACUUM (INDEX_CLEANUP on) {worker.random.choice(TABLES)}", DDL)


WORKS = [vacuum, vacuum, rebuild, rebuild, rebuild, replace_set, move_partition, move_child, rewrite, set_options,
         refresh, drop_invalid]  # fmt: skip


def own(worker):
    work = worker.random.choice(WORKS)
    work(worker)
    worker.counts[work.__name__] += 1
    for table in worker.random.sample(TABLES, 2):
        thin_out(worker, table)
    verify(worker, worker.random.choice(TABLES))
    look(worker)


# All together

def test_sessions():
    ask(SETUP)
    prepare = ask("SHOW max_prepared_transactions") != ["0"]
    if not prepare:
        note("max_prepared_transactions = 0: without prepared transactions")
    counts, states, faults = totals(run_workers(f"BLOOMSET_SEED={SEED}", SECONDS, [
        ("writer", WRITERS, lambda worker: transact(worker, change, look, prepare)), ("reader", READERS, read),
        ("owner", OWNERS, own)]))  # fmt: skip
    ok(not faults, f"{WRITERS} writers, {READERS} readers and {OWNERS} owners: no value is denied, no unexpected error",
       *faults[:3])  # fmt: skip
    note(" ".join(f"{name}: {count}" for name, count in sorted(counts.items())))
    note("SQLSTATEs: " + " ".join(f"{state}: {count}" for state, count in sorted(states.items(), key=str)))
    for kind in "contains", "partitions", "filters", "scan", "partial", "expression", "view", "bloomset_check":
        ok(counts[kind] > 10, f"many comparisons by {kind}", counts)
    ok(counts["no"] > counts["absent"] / 10, "sets deny absent values", counts["no"], counts["absent"])


def test_growth():
    """The sets have grown, otherwise the sessions have tested little."""
    grown = ask("""SELECT max((bloomset_info(indexrelid)).generations) FROM pg_index
        JOIN pg_class ON oid = indexrelid WHERE relname IN ('plain_k', 'plain_s', 'tree_a_k') AND indisvalid""")
    ask("INSERT INTO plain SELECT i, i, i FROM generate_series(10001, 14000) AS i")
    ask("UPDATE plain SET k = k + 1000000 WHERE id > 10000")
    after = ask("SELECT (bloomset_info('plain_k'::regclass)).generations")
    ok(int(after[0]) >= 2, "sets grow", grown, after)


def fill_tiny(number, session):
    for first in range(4000 * number, 4000 * number + 4000, 1000):
        session.ask(f"INSERT INTO tiny SELECT generate_series({first}, {first + 300})")


def test_small_sets():
    """Fails if writers go on in a full generation however long another session takes to append the next one. The bits
    of a tiny one are soon all set, and the rate of the set stays near 1. By chance it can be a few times the one asked.
    Also fails if a session that has waited for another's growth appends the same generation again."""
    high, missed = [], []
    for _ in range(40):
        ask("""CREATE TABLE tiny (k bigint);
            CREATE INDEX tiny_k ON tiny USING bloomset (k) WITH (expected_items = 1, false_positive_rate = 1e-4);
            CREATE INDEX tiny_3k ON tiny USING bloomset ((k * 3)) WITH (expected_items = 1)""")
        together(*[fill_tiny] * 4)
        missed += ask(denied("tiny")) + ask(denied_by_index("tiny_3k", "tiny", "(k * 3)"))
        high += ask("""SELECT set, requested_rate, current_rate, generations
            FROM unnest('{tiny_k,tiny_3k}'::regclass[]) AS set, bloomset_info(set) WHERE current_rate > 6 * requested_rate""")
        ask("DROP TABLE tiny")
    same(missed, [], "small sets that several sessions let grow miss nothing")
    same(high, [], "small sets keep their rate beside several writers")


def test_end():
    """When all have ended, everything is right, and sets are usable again."""
    ask("INSERT INTO tree SELECT i, i, i FROM generate_series(1, 10) AS i")
    for table in *ROOTS, *TABLES:
        for column in "k", "s":
            same(ask(denied(table, column)), [], f"in the end {table}.{column} misses nothing")
            same(ask(denied_by_filters(table, column)), [], f"in the end the filters of {table}.{column} miss nothing")
    for table in TABLES:
        with Session() as session:
            sets = session.ask(VALID_SETS.format(table))
            states = [session.attempt(f"SELECT bloomset_check({index})")[1] for index in sets]
        ok(sets and set(states) == {"00000"}, f"in the end bloomset_check finds nothing in {len(sets)} sets of {table}",
           states)  # fmt: skip
    ask("REINDEX TABLE plain; TRUNCATE plain")
    with Session() as session:
        ok(settled(session, "SELECT bloomset_contains('plain', 'k', 1)"), "an emptied table has no value")


run(test_sessions, test_growth, test_small_sets, test_end)
