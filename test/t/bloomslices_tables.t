#!/usr/bin/python3 -B
"""Random schemas and random changes in one session: indexes of bloomslices, however they are defined, answer as a
sequential scan after each step.

A schema is a table, a partitioned or an inheritance tree, permanent, unlogged or temporary, whose columns differ in their
order, with one to four indexes: of the column, partial, of an expression, with and without a shape.

    SLICES_SEED     another seed than the usual one
    SLICES_SECONDS  how long it goes on
    SLICES_ONLY     the number of a single schema, to repeat a failure
"""

import collections
import os
import random
import time

from session import Session, ask, each, in_thread, result_of, run, wait_until_blocked
from slices_queries import (ALIKE, KEYS, KINDS, SOURCE, Answers, classes, expression, join, order, partial, rows, superset)
from tap import note, ok, same

SEED = os.environ.get("SLICES_SEED", "schemas")
SECONDS = float(os.environ.get("SLICES_SECONDS", "40"))
ONLY = os.environ.get("SLICES_ONLY")
IDS = 600
STEPS, QUESTIONS = 6, 12  # of a schema, after each step
LEAST = 12  # schemas, however slow the machine is

Session.settings = "SET client_min_messages = error; SET jit = off;"

COLUMNS = ["id int", "n int", "kind text", "f bloomfilter", "note text"]
INTEGERS = "kind IN ('dense', 'sparse', 'empty', 'null')"
# What each INSERT adds, one of these.
CONTENTS = {"everything": ["kind <> 'text'"], "alike": [f"kind IN ({ALIKE})"],
            "classes": [INTEGERS] * 4 + ["kind = 'text'"], "one kind": [f"kind = '{kind}'" for kind in KINDS],
            "nothing": ["false"]}  # fmt: skip


class Schema:
    """Random SQL of a table t, and what may be asked of it."""

    def __init__(self, r):
        self.r, self.contents = r, r.choice(["everything"] * 3 + ["alike", "alike", "classes", "one kind", "nothing"])
        self.filters = r.choice(CONTENTS[self.contents])
        self.persistence = r.choice(["", "", "UNLOGGED ", "TEMPORARY "])
        self.shape = r.choice(["table", "table", "partitions", "children"])
        self.kinds = [classes] if self.contents == "classes" else [rows, rows, rows, order, order, join]
        if self.contents in ("alike", "nothing"):
            self.kinds += [superset, superset]
        self.leaves = ["t"] if self.shape == "table" else ["t_1", "t_2"]
        self.indexes = []

    def columns(self):
        columns = COLUMNS + [f"gone{i} int" for i in range(self.r.randrange(3))]
        self.r.shuffle(columns)
        return columns

    def dropped(self, table, columns):
        return "".join(f"ALTER TABLE {table} DROP {column.split()[0]};" for column in columns if column.startswith("gone"))

    def options(self):
        r = self.r
        return f" WITH (toast_tuple_target = {r.choice([128, 2000])})" if self.shape == "table" else ""

    def create(self):
        r, make = self.r, f"CREATE {self.persistence}TABLE"
        columns = self.columns()
        if self.shape != "partitions":
            # A child's columns that it inherits are dropped before.
            yield f"{make} t ({', '.join(columns)}){self.options()}; {self.dropped('t', columns)}"
        if self.shape == "children":
            yield f"{make} t_1 (more int) INHERITS (t); {make} t_2 (other text, f bloomfilter) INHERITS (t)"
        if self.shape == "partitions":
            # No partitioned table is unlogged from PostgreSQL 18 on, but its partitions can be.
            yield f"{make.replace('UNLOGGED ', '')} t ({', '.join(COLUMNS)}) PARTITION BY RANGE (id)"
            for number, bounds in (1, "FROM (MINVALUE) TO (300)"), (2, "FROM (300) TO (MAXVALUE)"):
                columns = self.columns()
                yield f"{make} t_{number} ({', '.join(columns)}); {self.dropped(f't_{number}', columns)} " \
                    f"ALTER TABLE t ATTACH PARTITION t_{number} FOR VALUES {bounds}"
        if r.random() < 0.4:
            yield f"ALTER TABLE t ALTER f SET STORAGE {r.choice(['MAIN', 'EXTENDED', 'PLAIN'])}"

    def parameters(self):
        r = self.r
        if r.random() < 0.4:
            return ""
        return f" WITH (expected_items = {r.choice([1, 30, 100, 100, 1000])}, seed = {r.choice([0, 0, 7])}, " \
            f"false_positive_rate = {r.choice([0.01, 0.01, 0.2, 0.0001])})"

    def create_indexes(self):
        r = self.r
        for number in range(r.choice([1, 1, 2, 4])):
            column, predicate = r.choice([("f", "")] * 3 + [("f", " WHERE n % 3 = 0"), ("(f | f)", "")])
            if not number and not predicate:
                column = "f"
            self.kinds += [partial] if predicate and self.contents != "classes" else []
            self.kinds += [expression] if column != "f" and self.contents != "classes" else []
            tables = ["t", *self.leaves] if self.shape == "children" else ["t"]
            for table in tables:
                name = f"{table}_f_{number}"
                yield f"CREATE INDEX {name} ON {table} USING bloomslices ({column}){self.parameters()}{predicate}"
                self.indexes.append(name)

    def insert(self):
        r = self.r
        table = r.choice(["t", *self.leaves]) if self.shape == "children" else "t"
        step, times = r.choice([(1, 1), (1, 4), (1, 4), (2, 1), (7, 1), (2, 12)])
        if self.contents == "classes":
            self.filters = r.choice(CONTENTS["classes"])
        return f"INSERT INTO {table} (id, n, kind, f, note) SELECT (id * 7 + {r.randrange(IDS)}) % {IDS}, id % 10, kind, f," \
            f" repeat('x', {r.choice([1, 300])}) FROM source, generate_series(1, {times}) " \
            f"WHERE {self.filters} AND id % {step} = {r.randrange(step)}"

    def change(self):
        r = self.r
        some, all_leaves = f"id % {r.choice([2, 5])} = {r.randrange(5)}", r.choice(self.leaves)
        index = r.choice(self.indexes)
        add = f"f = bloom_add(f, {r.randint(1, KEYS)}::bigint)"
        if self.contents == "classes" and r.random() < 0.4:
            return "DELETE FROM t WHERE kind = 'text'"
        return r.choice([
            *[self.insert()] * 4, f"DELETE FROM t WHERE {some}", f"DELETE FROM t WHERE {some}", f"TRUNCATE {all_leaves}",
            f"UPDATE t SET n = n + 1 WHERE {some}", f"UPDATE t SET f = NULL WHERE {some}", f"VACUUM {all_leaves}",
            f"UPDATE t SET {add} WHERE {some} AND kind NOT IN ('text', 'no size')",
            f"UPDATE t SET id = {IDS} - id WHERE {some}",
            *[f"VACUUM {all_leaves}", f"SELECT bloomslices_merge('{index}')"] * 4, f"REINDEX INDEX {index}",
            f"REINDEX TABLE {all_leaves}", f"VACUUM FULL {all_leaves}",
            f"ALTER TABLE t ALTER n TYPE {r.choice(['int', 'bigint'])}",
            f"REINDEX INDEX CONCURRENTLY {index}" if self.shape != "partitions" else f"ANALYZE {all_leaves}",
            f"BEGIN; {self.insert()}; SAVEPOINT s; {self.insert()}; ROLLBACK TO s; COMMIT",
            f"BEGIN; {self.insert()}; ROLLBACK; {self.insert()}",
        ])  # fmt: skip


class Program:
    """A schema, and the steps that change it, in a session."""

    def __init__(self, number, session, counts):
        self.r = random.Random(f"{SEED} {number}")
        self.session, self.counts, self.schema = session, counts, Schema(self.r)
        self.statements, self.wrong = [], []

    def do(self, sql):
        self.statements.append(sql)
        for statement in sql.split("; "):
            self.session.ask(statement)

    def compare(self):
        for _ in range(QUESTIONS):
            asked = self.r.choice(self.schema.kinds)(self.r, "t")
            answers = Answers(self.session, self.r, asked, asked.kind != "classes" and self.r.random() < 0.8)
            self.counts[asked.kind] += 1
            self.counts["rows found"] += int(answers.rows)
            self.counts["errors"] += answers.state != "00000"
            if self.r.random() < 0.2:
                self.counts["plans"] += 1
                self.counts["plans with the index"] += answers.uses_index()
            if answers.wrong or answers.state not in ("00000", "42804"):
                self.wrong.append(f"{asked.kind}, {answers.settings}: {answers.state} "
                                  f"{answers.wrong or self.session.error}\nby index: {asked.by_index}\n"
                                  f"by scan: {asked.by_scan}")  # fmt: skip
        for index in self.schema.indexes:
            if self.session.attempt(f"SELECT bloomslices_check('{index}')")[1] != "00000":
                self.wrong.append(f"bloomslices_check: {self.session.error}")

    def run(self):
        steps = list(self.schema.create())
        fill_first = self.r.random() < 0.5
        steps += [self.schema.insert()] if fill_first else []
        steps += list(self.schema.create_indexes()) + [self.schema.insert()]
        for step in steps:
            self.do(step)
        for _ in range(STEPS):
            self.session.ask("BEGIN ISOLATION LEVEL REPEATABLE READ")
            self.compare()
            self.session.ask("ROLLBACK")
            if self.wrong:
                return
            self.do(self.schema.change())


def test_schemas():
    ask(SOURCE)
    counts, faults, until = collections.Counter(), [], time.monotonic() + SECONDS
    number = int(ONLY or 0)
    while (time.monotonic() < until or number < LEAST) and not faults:
        with Session() as session:
            program = Program(number, session, counts)
            try:
                program.run()
            except Exception as problem:
                program.wrong.append(str(problem))
            session.attempt("ROLLBACK")
            session.ask("DROP TABLE t CASCADE")
        if program.wrong:
            faults.append(f"SLICES_SEED={SEED} SLICES_ONLY={number}: " + "\n".join(program.wrong[:2] + program.statements))
        if ONLY:
            break
        number += 1
    ok(not faults, f"{number} schemas: the index answers as the scan", *faults)
    note(" ".join(f"{name}: {count}" for name, count in sorted(counts.items())))
    if not faults and not ONLY:
        ok(0 < counts["errors"] < counts["classes"], f"keys of another class are {counts['errors']} errors")
        ok(counts["rows found"] > 1000, f"{counts['rows found']} rows are found")
        ok(counts["plans with the index"] > 0.7 * counts["plans"], "plans use the index", counts)


def test_snapshot_imported_during_build():
    """Fails if a sound index is called damaged that lacks a row which only an imported snapshot sees: CREATE INDEX
    CONCURRENTLY does not wait for a session that imports one while it waits for others."""
    each("CREATE TABLE late_import (v int, f bloomfilter)",
         "INSERT INTO late_import SELECT i, bloom_agg(i, 10) FROM generate_series(1, 9) AS i GROUP BY i")  # fmt: skip
    with Session() as old, Session() as new, Session() as other:
        old.ask("BEGIN ISOLATION LEVEL REPEATABLE READ")
        (snapshot,) = old.ask("SELECT pg_export_snapshot()")
        new.ask("DELETE FROM late_import WHERE v = 7")
        building = in_thread(new.attempt, "CREATE INDEX CONCURRENTLY late_import_f ON late_import USING bloomslices (f)")
        wait_until_blocked(new, old)
        other.each("BEGIN ISOLATION LEVEL REPEATABLE READ", f"SET TRANSACTION SNAPSHOT '{snapshot}'")
        old.ask("COMMIT")
        same(result_of(building)[1], "00000", "the index is built")
        same(other.ask("SELECT count(*) FROM late_import"), ["9"], "the snapshot sees the deleted row")
        same(other.attempt("SELECT bloomslices_check('late_import_f')")[1], "55000", "its check is refused")
        other.ask("ROLLBACK")
        same(new.attempt("SELECT bloomslices_check('late_import_f')")[1], "00000", "and passes for other snapshots")


run(test_schemas, test_snapshot_imported_during_build)
