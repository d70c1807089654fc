#!/usr/bin/python3 -B
"""A counter that triggers keep current, by the SQL of doc/counting.md: after every kind of statement, after statements
that meet, and after 10,000 random statements of several sessions it equals one that is counted from the table.

At each moment one snapshot sees the table and its counter, so they must agree in every query.
"""

import os
import random
import re
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import recipes
from session import Session, ask, extension_schema, in_thread, result_of, run, wait_until_blocked
from tap import note, ok, same

WRITERS = 3
STATEMENTS = 10000
SEED = 20261122
CAPACITY = 5000  # dense from 2,500 customers on
CUSTOMERS = 20000
ROWS = 5000  # so few of each customer that no number of 4 bits saturates

Session.settings = "SET client_min_messages = error;"


# The SQL of the document, for a smaller counter

def block(*parts):
    return recipes.block("counting.md", *parts).replace("100000", str(CAPACITY))


CREATE_FUNCTIONS = block("CREATE FUNCTION count_customers", "CREATE FUNCTION recount_customers")
CREATE_TRIGGERS = block("CREATE TRIGGER count_insert", "INSERT INTO counters")
LOCK_FIRST = block("CREATE TRIGGER lock_first")
RECOUNT = block("SELECT FROM counters", "FOR NO KEY UPDATE;\nUPDATE counters")
KEEP_DELTAS = block("CREATE TABLE customer_deltas")
FOLD = block("WITH folded AS (DELETE FROM customer_deltas RETURNING")
RECOUNT_DELTAS = block("SELECT FROM counters", "WITH folded AS (DELETE FROM customer_deltas)\n")
APPEND_ROWS = block("CREATE FUNCTION append_customer")
HOLDS_WITH_DELTAS = block("OR EXISTS (SELECT FROM customer_deltas")

# orders has partitions, and customers come and go with their orders.
SETUP = f"""
DROP TABLE IF EXISTS orders, customers, counters, customer_deltas;
DROP FUNCTION IF EXISTS count_customers, recount_customers, lock_customers, append_customer;
CREATE TABLE counters (name text PRIMARY KEY, c bloomcounter NOT NULL);
CREATE TABLE customers (customer bigint PRIMARY KEY);
CREATE TABLE orders (id bigint, customer bigint REFERENCES customers ON UPDATE CASCADE ON DELETE CASCADE,
    paid boolean NOT NULL DEFAULT false, part int NOT NULL DEFAULT 0, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE orders_0 PARTITION OF orders FOR VALUES IN (0);
CREATE TABLE orders_1 PARTITION OF orders FOR VALUES IN (1);
INSERT INTO customers SELECT i FROM generate_series(0, 5000) AS i;
INSERT INTO orders SELECT i, i % 700, false, i % 2 FROM generate_series(1, 1000) AS i;
"""
CREATE = SETUP + CREATE_FUNCTIONS + CREATE_TRIGGERS
PARTITION_TRIGGERS = re.sub(r"LOCK.*?;|INSERT INTO counters.*?;", "", CREATE_TRIGGERS, flags=re.S).replace(
    "ON orders", "ON orders_1")  # fmt: skip

COUNTED = f"SELECT bloom_create_counter({CAPACITY}) + bloom_counter_agg(customer, {CAPACITY}) FROM orders"
STORED = "SELECT c FROM counters WHERE name = 'customers'"
WITH_DELTAS = "SELECT c + (SELECT bloom_sum_agg(added) FROM customer_deltas) - " \
              "(SELECT bloom_sum_agg(removed) FROM customer_deltas) FROM counters WHERE name = 'customers'"  # fmt: skip
# Added and removed, a dense counter leaves the other in its dense form.
DENSE = "(({}) + d.c) - d.c"
AGREE = ("WITH d AS (SELECT bloom_counter_agg(-i, %d) AS c FROM generate_series(1, %d) AS i) SELECT %s = %s FROM d"
         % (CAPACITY, CAPACITY * 6 // 10, DENSE, DENSE))  # fmt: skip
MISSED = "SELECT count(*) FROM orders, counters WHERE NOT c @> customer"


def agree(name, stored=STORED):
    same(ask(AGREE.format(stored, COUNTED)), ["t"], name)


# Every kind of statement

STATEMENTS_OF_EACH_KIND = {
    "INSERT": "INSERT INTO orders SELECT i, i % 700, false, i % 2 FROM generate_series(1001, 1100) AS i",
    "INSERT of a NULL": "INSERT INTO orders (id) VALUES (2001), (2002)",
    "INSERT of no row": "INSERT INTO orders SELECT FROM orders WHERE id < 0",
    "INSERT with ON CONFLICT DO NOTHING": "INSERT INTO orders VALUES (1, 5), (3001, 6) ON CONFLICT DO NOTHING",
    "INSERT with ON CONFLICT DO UPDATE": """INSERT INTO orders VALUES (2, 705), (4, NULL), (3002, 706)
        ON CONFLICT (id, part) DO UPDATE SET customer = excluded.customer""",
    "UPDATE": "UPDATE orders SET customer = customer + 1 WHERE id % 3 = 0",
    "UPDATE that exchanges customers": "UPDATE orders SET customer = 700 - customer WHERE customer <= 700",
    "UPDATE of another column": "UPDATE orders SET paid = NOT paid",
    "UPDATE from and to NULL": "UPDATE orders SET customer = CASE WHEN customer IS NULL THEN 7 END WHERE id > 990",
    "UPDATE of no row": "UPDATE orders SET customer = 1 WHERE id < 0",
    "UPDATE into another partition": "UPDATE orders SET part = 1 - part, customer = customer + 2 WHERE id % 5 = 0",
    "MERGE": """MERGE INTO orders AS o USING generate_series(500, 1500) AS i ON o.id = i
        WHEN MATCHED AND i % 3 = 0 THEN DELETE
        WHEN MATCHED THEN UPDATE SET customer = i
        WHEN NOT MATCHED AND i % 2 = 0 THEN INSERT VALUES (i, i, true, 1)""",
    "WITH: rows deleted and inserted again": """WITH gone AS (DELETE FROM orders WHERE id < 100 RETURNING *)
        INSERT INTO orders SELECT id, customer + 1, paid, part FROM gone""",
    "WITH: all three at once": """WITH gone AS (DELETE FROM orders WHERE id < 100 RETURNING *),
        changed AS (UPDATE orders SET customer = customer + 3 WHERE id BETWEEN 200 AND 300 RETURNING *)
        INSERT INTO orders SELECT id + 100000, customer FROM changed""",
    "a foreign key with ON UPDATE CASCADE": "UPDATE customers SET customer = -customer WHERE customer BETWEEN 1 AND 50",
    "a foreign key with ON DELETE CASCADE": "DELETE FROM customers WHERE customer BETWEEN 51 AND 99",
    "INSERT into a partition with triggers": """
        INSERT INTO orders_1 SELECT 50000, customer, false, 1 FROM customers LIMIT 1""",
    "DELETE": "DELETE FROM orders WHERE id % 4 = 0",
    "TRUNCATE of a partition": "TRUNCATE orders_1",
    "more rows": "INSERT INTO orders SELECT i, 700, false, 1 FROM generate_series(60000, 60003) AS i",
    "DELETE without WHERE": "DELETE FROM orders",
    "the first rows": "INSERT INTO orders SELECT i, 700 FROM generate_series(70000, 70003) AS i",
    "TRUNCATE": "TRUNCATE customers CASCADE",
}  # fmt: skip


def test_each_kind():
    ask(CREATE + PARTITION_TRIGGERS)
    agree("the first count")
    for name, sql in STATEMENTS_OF_EACH_KIND.items():
        ask(sql)
        agree(f"{name}: the counter equals the table")
    with Session() as session:
        session.ask("INSERT INTO customers VALUES (1), (2)")
        session.copy("orders (id, customer, part)", [["1", "1", "0"], ["2", "2", "1"], ["3", None, "1"]])
    agree("COPY: the counter equals the table")
    same(ask("SELECT bloom_count(c, 1) FROM counters"), ["1"], "and has the rows of COPY")
    with Session() as session:
        session.each("BEGIN", "DELETE FROM orders", "SAVEPOINT a", "INSERT INTO orders VALUES (9, 1)",
                     "ROLLBACK TO a", "INSERT INTO orders VALUES (10, 2)", "ROLLBACK")  # fmt: skip
    agree("ROLLBACK: the counter equals the table")


def test_nothing_changed():
    """Statements that change no customer write no counter."""
    ask(CREATE)
    for sql in (
        "INSERT INTO orders SELECT FROM orders WHERE id < 0",
        "INSERT INTO orders (id) VALUES (-1)",
        "UPDATE orders SET paid = true, part = 1",
        "UPDATE orders SET customer = customer",
        "DELETE FROM orders WHERE id < 0",
    ):
        before = ask("SELECT xmin FROM counters")
        ask(sql)
        same(ask("SELECT xmin FROM counters"), before, f"{sql}: no new version of the counter")


def test_saturation():
    """Rows of one customer beyond the limit: no error and no false negative, and a new count repairs the counter."""
    ask(CREATE)
    reading = "SELECT bloom_count(c, 4000) FROM counters"
    more = "INSERT INTO orders SELECT i, 4000 FROM generate_series(10000, {}) AS i"
    ask(more.format(10013))
    same(ask(reading), ["14"], "14 rows of a customer read 14")
    ask("UPDATE orders SET paid = NOT paid WHERE customer = 4000")
    same(ask(reading), ["14"], "an UPDATE of another column does not saturate the counter")
    ask(more.format(10039).replace("10000", "10014"))
    same(ask(reading), ["15"], "40 rows read 15")
    ask("DELETE FROM orders WHERE id BETWEEN 10000 AND 10038")
    same(ask(reading), ["15"], "a deletion of 39 at once leaves 15")
    ask("DELETE FROM orders WHERE customer = 4000")
    same(ask(reading), ["15"], "15 stays when all are gone")
    ask(RECOUNT)
    same(ask(reading), ["0"], "until the table is counted again")
    agree("which makes the counter equal the table")


# Sessions that meet

def meet(first_sql, second_sql, *, isolation="READ COMMITTED", end="COMMIT", setup=CREATE):
    """The second session comes while the first has not committed. Returns the SQLSTATE of the second."""
    ask(setup)
    with Session() as first, Session() as second:
        for session in first, second:
            session.ask(f"BEGIN ISOLATION LEVEL {isolation}")
            if isolation != "READ COMMITTED":
                session.ask("SELECT count(*) FROM orders")  # takes the snapshot
        first.ask(first_sql)
        waiting = in_thread(second.attempt, second_sql)
        wait_until_blocked(second, first)
        first.ask(end)
        state = result_of(waiting)[1]
        second.attempt("COMMIT")
    return state


INSERT = "INSERT INTO orders VALUES (9001, 8)"
OTHER_INSERT = "INSERT INTO orders VALUES (9002, 9)"


def test_meeting():
    for name, first, second in (
        ("two INSERT", INSERT, OTHER_INSERT),
        ("DELETE and INSERT of the same customers", "DELETE FROM orders WHERE customer < 50",
         "INSERT INTO orders SELECT 10000 + i, i FROM generate_series(0, 49) AS i"),
        ("UPDATE and DELETE of the same rows", "UPDATE orders SET customer = customer + 10 WHERE id < 50",
         "DELETE FROM orders WHERE id < 50"),
        ("INSERT and a new count", INSERT, RECOUNT),
        ("a new count and INSERT", RECOUNT, INSERT),
        ("TRUNCATE of a partition and INSERT", "TRUNCATE orders_1", OTHER_INSERT),
        ("INSERT and TRUNCATE of another partition", INSERT, "TRUNCATE orders_1"),
    ):  # fmt: skip
        setup = CREATE + PARTITION_TRIGGERS
        for end in "COMMIT", "ROLLBACK":
            same(meet(first, second, end=end, setup=setup), "00000", f"{name}, {end}: the second goes on")
            agree(f"{name}, {end}: the counter equals the table")
        for isolation in "REPEATABLE READ", "SERIALIZABLE":
            if "TRUNCATE" not in first:
                state = meet(first, second, isolation=isolation, setup=setup)
                same(state, "40001", f"{name}, {isolation}: the second fails")
                agree(f"{name}, {isolation}: the counter equals the table")


def test_initial_count():
    """A transaction that has written before the triggers are there is waited for, and counted."""
    ask(SETUP + CREATE_FUNCTIONS)
    with Session() as writer, Session() as creator, Session() as other:
        writer.each("BEGIN", INSERT)
        creating = in_thread(creator.each, "BEGIN", *[sql for sql in CREATE_TRIGGERS.split(";\n") if sql.strip()])
        wait_until_blocked(creator, writer)
        writer.ask("COMMIT")
        result_of(creating)
        waiting = in_thread(other.attempt, OTHER_INSERT)
        wait_until_blocked(other, creator)
        creator.ask("COMMIT")
        same(result_of(waiting)[1], "00000", "a writer waits for the first count")
    agree("the first count has what came before it and during it")


def deadlock(setup):
    """Two transactions, each of which changes a row that the other changes afterwards. The SQLSTATEs of both."""
    ask(setup)
    with Session() as first, Session() as second:
        for session in first, second:
            session.ask("BEGIN")
        first.ask("DELETE FROM orders WHERE id = 1")
        waiting = in_thread(second.attempt, "DELETE FROM orders WHERE id = 2")
        wait_until_blocked(second, first)
        states = [first.attempt("DELETE FROM orders WHERE id = 2")[1]]
        first.attempt("COMMIT")
        states.append(result_of(waiting)[1])
        second.attempt("COMMIT")
    return sorted(states)


def test_deadlock():
    same(deadlock(CREATE), ["00000", "40P01"], "transactions of several statements may deadlock")
    agree("and the counter equals the table")
    same(deadlock(CREATE + LOCK_FIRST), ["00000", "00000"], "not if the counter is locked first")
    agree("and the counter equals the table, too")


# Statements at random

class Writer:
    """Random transactions of one session."""

    def __init__(self, number, statements, top):
        self.randomness = random.Random(f"{SEED} {number} {statements} {top}")
        self.left, self.top = statements, top
        self.states, self.kinds = {}, {}

    def customer(self):
        """SQL of a random customer. Where the top is less than the number of customers, some have many orders."""
        return f"CASE WHEN random() < 0.02 THEN NULL ELSE floor({self.top} * random()) END"

    def ids(self, most):
        first = self.randomness.randrange(ROWS)
        return f"generate_series({first}, {first + self.randomness.randint(0, most) - 1})"

    def insert(self):
        return (f"INSERT INTO orders SELECT i, {self.customer()}, false, i % 2 FROM {self.ids(50)} AS i "
                "ON CONFLICT DO NOTHING")  # fmt: skip

    def upsert(self):
        return (f"INSERT INTO orders SELECT i, {self.customer()}, false, i % 2 FROM {self.ids(50)} AS i ORDER BY i "
                "ON CONFLICT (id, part) DO UPDATE SET customer = excluded.customer")  # fmt: skip

    def update(self):
        return f"UPDATE orders SET customer = {self.customer()} WHERE id IN (SELECT {self.ids(30)})"

    def pay(self):
        return f"UPDATE orders SET paid = NOT paid WHERE id IN (SELECT {self.ids(30)})"

    def delete(self):
        return f"DELETE FROM orders WHERE id IN (SELECT {self.ids(30)})"

    def merge(self):
        """Inserts or updates, not both: PostgreSQL 15.18 then fills transition tables of partitioned tables wrongly."""
        action = self.randomness.choice((
            f"WHEN MATCHED THEN UPDATE SET customer = {self.customer()}",
            f"WHEN NOT MATCHED THEN INSERT VALUES (i, {self.customer()}, false, i % 2)"))  # fmt: skip
        return f"""MERGE INTO orders AS o USING {self.ids(30)} AS i ON o.id = i AND o.part = i % 2
            WHEN MATCHED AND random() < 0.3 THEN DELETE {action}"""

    def do(self, session, sql):
        state = session.attempt(sql)[1]
        self.states[state] = self.states.get(state, 0) + 1
        self.left -= 1
        return state == "00000"

    def change(self, session):
        kinds = {self.insert: 5, self.upsert: 3, self.update: 4, self.pay: 1, self.delete: 4, self.merge: 2}
        (kind,) = self.randomness.choices(list(kinds), kinds.values())
        return self.do(session, kind())

    def transact(self, session):
        if self.randomness.random() < 0.001:
            self.do(session, "TRUNCATE orders")
            return
        if self.randomness.random() < 0.5:
            self.change(session)
            return
        isolation = "REPEATABLE READ" if self.randomness.random() < 0.2 else "READ COMMITTED"
        session.ask(f"BEGIN ISOLATION LEVEL {isolation}")
        for _ in range(self.randomness.randint(1, 4)):
            savepoint = self.randomness.random() < 0.3
            if savepoint:
                session.ask("SAVEPOINT a")
            worked = self.change(session)
            if savepoint and self.randomness.random() < 0.5:
                session.ask("ROLLBACK TO a")
            elif not worked:
                break
        session.attempt("ROLLBACK" if self.randomness.random() < 0.2 else "COMMIT")

    def run(self):
        with Session() as session:
            session.ask(f"SELECT setseed({self.randomness.random()})")
            while self.left > 0:
                self.transact(session)


class Sampler:
    """Repeats a query while others write, and keeps each answer that was not expected."""

    def __init__(self, *queries):
        self.queries, self.samples, self.wrong, self.stop = queries, 0, [], threading.Event()

    def run(self):
        with Session() as session:
            while not self.stop.is_set():
                for sql, expected in self.queries:
                    got = session.ask(sql)
                    self.wrong += [(sql, got)] * (got != [expected])
                self.samples += 1
                self.stop.wait(0.05)


def repeat(sql, pause, stop, states):
    with Session() as session:
        while not stop.is_set():
            states.add(session.attempt(sql)[1])
            stop.wait(pause)


def write_at_random(statements, top, sampler, jobs=()):
    """Runs the writers, the sampler and other jobs, each a string of SQL, at once. Returns the SQLSTATEs of the
    writers with their numbers, and those of the jobs."""
    writers = [Writer(number, statements // WRITERS + 1, top) for number in range(WRITERS)]
    states = set()
    with ThreadPoolExecutor(WRITERS + 1 + len(jobs)) as executor:
        others = [executor.submit(sampler.run)]
        others += [executor.submit(repeat, sql, pause, sampler.stop, states) for sql, pause in jobs]
        try:
            for future in [executor.submit(writer.run) for writer in writers]:
                future.result()
        finally:
            sampler.stop.set()
        for future in others:
            future.result()
    total = {}
    for writer in writers:
        for state, number in writer.states.items():
            total[state] = total.get(state, 0) + number
    return total, states


def check_run(name, states, sampler, allowed):
    """Has a run done what it was for?"""
    note(f"{name}: {sampler.samples} samples, SQLSTATEs {states}")
    ok(set(states) <= allowed, f"{name}: no unexpected error", states)
    ok(states["00000"] > 0.8 * sum(states.values()), f"{name}: most statements succeed", states)
    ok(sampler.samples >= 5, f"{name}: enough samples", sampler.samples)
    same(sampler.wrong[:3], [], f"{name}: no sample is wrong")


# MERGE reports rows that another session has inserted meanwhile by 23505.
CONFLICTS = {"00000", "40001", "23505"}
MORE_CUSTOMERS = f"; INSERT INTO customers SELECT i FROM generate_series(5001, {CUSTOMERS}) AS i"


def check_every_level(stored=STORED):
    """Compares the dense forms of both counters at each level, and the count of each customer."""
    forms = AGREE.partition("SELECT (")[0]
    a, b = DENSE.format(stored), DENSE.format(COUNTED)
    wrong = ask(f"""{forms} SELECT level FROM d, generate_series(1, 15) AS level
        WHERE bloom_at_least({a}, level) <> bloom_at_least({b}, level)""")
    same(wrong, [], "the filters of all levels are equal")
    below, other, customers = ask(f"""{forms}, a AS MATERIALIZED (SELECT {a} AS c FROM d),
        b AS MATERIALIZED (SELECT {b} AS c FROM d)
        SELECT count(*) FILTER (WHERE bloom_count(a.c, customer) < rows),
            count(*) FILTER (WHERE bloom_count(a.c, customer) <> bloom_count(b.c, customer)), count(*)
        FROM a, b, (SELECT c.customer, count(o.customer) AS rows
            FROM customers AS c LEFT JOIN orders AS o USING (customer) GROUP BY 1) AS v""")[0].split("|")
    same((below, other), ("0", "0"), f"all {customers} customers have the same count, and none is below the truth")


def test_random():
    ask(CREATE + MORE_CUSTOMERS)
    sampler = Sampler((MISSED, "0"), (AGREE.format(STORED, COUNTED), "t"))
    states, _ = write_at_random(STATEMENTS * 7 // 10, CUSTOMERS, sampler)
    check_run("random statements", states, sampler, CONFLICTS | {"40P01"})
    agree("random statements: the counter equals the table")
    check_every_level()


def test_random_locked_first():
    ask(CREATE + LOCK_FIRST + MORE_CUSTOMERS)
    sampler = Sampler((MISSED, "0"), (AGREE.format(STORED, COUNTED), "t"))
    states, _ = write_at_random(STATEMENTS * 3 // 10, CUSTOMERS, sampler)
    check_run("the counter locked first", states, sampler, CONFLICTS)
    agree("the counter locked first: the counter equals the table")
    check_every_level()


def test_random_saturation():
    """Customers with some 50 orders each: the counter is never below the table."""
    ask(CREATE)
    below = f"""SELECT count(*) FROM counters AS a, ({COUNTED}) AS b (c), generate_series(1, 15) AS level
        WHERE bloom_at_least(a.c, level) | bloom_at_least(b.c, level) <> bloom_at_least(a.c, level)"""
    sampler = Sampler((MISSED, "0"), (below, "0"))
    states, _ = write_at_random(STATEMENTS // 10, 100, sampler, jobs=[(RECOUNT, 0.5)])
    check_run("saturated", states, sampler, CONFLICTS | {"40P01"})
    same(ask(MISSED), ["0"], "saturated: no false negative")
    ask(RECOUNT)
    agree("saturated: a new count equals the table")


# Deltas

def test_deltas_of_each_kind():
    ask(CREATE + PARTITION_TRIGGERS + KEEP_DELTAS)
    for name, sql in STATEMENTS_OF_EACH_KIND.items():
        ask(sql)
        agree(f"deltas, {name}: the counter with its deltas equals the table", WITH_DELTAS)
        if not name.startswith("INSERT"):
            ask(FOLD)
            agree(f"deltas, {name}: folded, the counter equals the table")
    same(ask("SELECT count(*) FROM customer_deltas"), ["0"], "no delta is left")
    before = ask("SELECT xmin FROM counters")
    ask(FOLD)
    same(ask("SELECT xmin FROM counters"), before, "without deltas, folding writes no counter")
    ask("UPDATE orders SET paid = true")
    same(ask("SELECT count(*) FROM customer_deltas"), ["0"], "a statement that changes no customer leaves no delta")


def test_replica_role():
    """What the apply process of logical replication does: row-level triggers fire, statement-level triggers do not.
    Here no statement-level trigger fires because none is ENABLE ALWAYS, except that of TRUNCATE."""
    ask(CREATE + KEEP_DELTAS + APPEND_ROWS)
    for sql in (
        "INSERT INTO orders SELECT i, i % 7, false, 1 FROM generate_series(2000, 2020) AS i",
        "INSERT INTO orders (id) VALUES (3000), (3001)",
        "UPDATE orders SET customer = customer + 1, part = 1 WHERE id % 3 = 0",
        "UPDATE orders SET customer = 5 WHERE customer IS NULL",
        "DELETE FROM orders WHERE id % 2 = 0",
        "TRUNCATE orders",
    ):
        ask("SET session_replication_role = replica; " + sql)
        agree(f"as a replica, {sql}: counted once", WITH_DELTAS)
        ask("INSERT INTO orders VALUES (4001, 400); UPDATE orders SET customer = 401 WHERE id = 4001; "
            "DELETE FROM orders WHERE id = 4001")  # fmt: skip
        agree("as itself: counted once", WITH_DELTAS)


def test_deltas_meeting():
    """Two writers do not wait for each other at any isolation level; jobs do."""
    setup = CREATE + KEEP_DELTAS
    for isolation in "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE":
        ask(setup)
        with Session("SET lock_timeout = '10s'") as first, Session("SET lock_timeout = '10s'") as second:
            for session in first, second:
                session.ask(f"BEGIN ISOLATION LEVEL {isolation}")
            states = [first.attempt(INSERT)[1], second.attempt(OTHER_INSERT)[1]]
            states += [session.attempt("COMMIT")[1] for session in (second, first)]
        same(states, ["00000"] * 4, f"deltas, {isolation}: writers do not wait for each other")
        agree(f"deltas, {isolation}: the counter with its deltas equals the table", WITH_DELTAS)
    for name, first, second in ("two folds", FOLD, FOLD), ("a fold and a new count", FOLD, RECOUNT_DELTAS), \
                               ("a new count and a fold", RECOUNT_DELTAS, FOLD):  # fmt: skip
        same(meet(first, second, setup=setup + INSERT), "00000", f"{name}: the second goes on")
        agree(f"{name}: the counter equals the table", WITH_DELTAS)


def test_deltas_behind_a_lock():
    """A job that comes while another one has locked the counter, and a delta in between."""
    for name, first, second in ("a new count", RECOUNT_DELTAS, FOLD), ("a fold", FOLD, RECOUNT_DELTAS):
        for setup in CREATE + KEEP_DELTAS, CREATE + KEEP_DELTAS + INSERT:
            ask(setup)
            with Session() as holder, Session() as waiter:
                holder.each("BEGIN", "SELECT FROM counters FOR NO KEY UPDATE")
                waiting = in_thread(waiter.attempt, second)
                wait_until_blocked(waiter, holder)
                ask(OTHER_INSERT)
                same(holder.attempt(first)[1], "00000", f"{name} that holds the lock meets no error")
                holder.attempt("COMMIT")
                same(result_of(waiting)[1], "00000", "nor does the job that waits for it")
            agree("the counter with its deltas equals the table", WITH_DELTAS)


def test_random_deltas():
    ask(CREATE + KEEP_DELTAS + MORE_CUSTOMERS)
    (holds,) = re.findall(r"SELECT (c @> .*) AS probably", HOLDS_WITH_DELTAS, re.S)
    holds = holds.replace("60001", "customer")
    missed = f"SELECT count(*) FROM orders, counters WHERE customer < 1000 AND NOT ({holds})"
    sampler = Sampler((missed, "0"), (AGREE.format(WITH_DELTAS, COUNTED), "t"))
    jobs = [(FOLD, 0.1), (FOLD, 0.15), (RECOUNT_DELTAS, 0.7)]
    states, of_jobs = write_at_random(STATEMENTS * 3 // 10, CUSTOMERS, sampler, jobs)
    check_run("deltas", states, sampler, CONFLICTS | {"40P01"})
    # counting and TRUNCATE lock the counter and the table in different orders
    ok(of_jobs <= {"00000", "40P01"}, "deltas: the jobs that fold and count meet no other error", of_jobs)
    ask(FOLD)
    agree("deltas, folded: the counter equals the table")
    check_every_level()


# Schemas

TENANTS = "counter_upkeep_a", "counter_upkeep_b"
TABLES = """
CREATE TABLE orders (id bigint PRIMARY KEY, customer bigint);
CREATE TABLE counters (name text PRIMARY KEY, c bloomcounter NOT NULL);
INSERT INTO orders SELECT i, i % 400 FROM generate_series(1, 500) AS i;
"""
FORMS = {
    "triggers": CREATE_FUNCTIONS + CREATE_TRIGGERS + LOCK_FIRST,
    "deltas": CREATE_FUNCTIONS + CREATE_TRIGGERS + KEEP_DELTAS,
    "replicated deltas": CREATE_FUNCTIONS + CREATE_TRIGGERS + KEEP_DELTAS + APPEND_ROWS,
}
SET_PATH = "SET search_path = {}, {};"


def drop_tenants():
    ask("".join(f"DROP SCHEMA IF EXISTS {tenant} CASCADE;" for tenant in TENANTS))


def create_tenants(form):
    """Tables and functions of the same names in the schema of each tenant."""
    drop_tenants()
    for tenant in TENANTS:
        ask(f"CREATE SCHEMA {tenant};" + SET_PATH.format(tenant, extension_schema()) + TABLES + FORMS[form])


def agree_in(tenant, name, stored=STORED):
    with Session(SET_PATH.format(tenant, extension_schema())) as session:
        same(session.ask(AGREE.format(stored, COUNTED)), ["t"], name)


WRITES_TO_THE_OTHER = """
INSERT INTO {0}.orders SELECT i, i FROM generate_series(501, 600) AS i;
UPDATE {0}.orders SET customer = customer + 1 WHERE id % 3 = 0;
DELETE FROM {0}.orders WHERE id % 5 = 0;
TRUNCATE {0}.orders;
INSERT INTO {0}.orders SELECT i, i FROM generate_series(1, 100) AS i
"""


def test_tenants():
    """A session of one tenant, and one without a search_path, write to the table of the other tenant."""
    one, other = TENANTS
    try:
        for form in FORMS:
            create_tenants(form)
            stored = WITH_DELTAS if "deltas" in form else STORED
            replica = "SET session_replication_role = replica;" if form == "replicated deltas" else ""
            for path in SET_PATH.format(other, extension_schema()), "SET search_path = '';":
                for sql in WRITES_TO_THE_OTHER.format(one).strip().split(";\n"):
                    with Session(path + replica) as session:
                        same(session.attempt(sql)[1], "00000", f"{form}: {sql}")
                    for tenant in TENANTS:
                        agree_in(tenant, f"{form}: the counter of {tenant} equals its table", stored)
    finally:
        drop_tenants()


def dump_and_restore(path, *options):
    """Dumps the data of a tenant, empties the tables, and loads the data again."""
    tenant, database = TENANTS[0], os.environ.get("PGDATABASE", "postgres")
    subprocess.run(["pg_dump", "--format=custom", "--data-only", *options, "-f", path, database], check=True)
    ask(f"TRUNCATE {tenant}.orders" + (f"; DELETE FROM {tenant}.counters" if len(options) == 1 else ""))
    return subprocess.run(["pg_restore", "--exit-on-error", "--data-only", "-d", database, path]).returncode


def test_restoring_data():
    """pg_restore --data-only fires the triggers with an empty search_path."""
    tenant = TENANTS[0]
    create_tenants("triggers")
    try:
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "data")
            orders = f"--table={tenant}.orders"
            same(dump_and_restore(path, f"--schema={tenant}", orders), 0, "pg_restore --data-only loads the table")
            agree_in(tenant, "which counts its rows")
            same(dump_and_restore(path, f"--schema={tenant}"), 0, "it loads the table and its counter")
        with Session(SET_PATH.format(tenant, extension_schema())) as session:
            same(session.ask(MISSED), ["0"], "which then misses nothing")
            twice = f"SELECT bloom_total(c) = 2 * bloom_total(({COUNTED})) FROM counters"
            same(session.ask(twice), ["t"], "but has each row twice")
            session.ask(RECOUNT)
        agree_in(tenant, "until it is counted again")
    finally:
        drop_tenants()


run(test_each_kind, test_nothing_changed, test_saturation, test_tenants, test_restoring_data, test_meeting,
    test_initial_count, test_deadlock, test_random, test_random_locked_first, test_random_saturation,
    test_deltas_of_each_kind, test_replica_role, test_deltas_meeting,
    test_deltas_behind_a_lock, test_random_deltas)  # fmt: skip
