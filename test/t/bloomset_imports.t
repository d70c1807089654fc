#!/usr/bin/python3 -B
"""bloomset_new and bloomset_find while other sessions import the same elements, move rows between partitions, and
attach, detach, drop, rebuild and truncate: no element is stored twice or left out, and no row is missed.

What the functions say is compared with queries of the table. Some tests say which precaution they fail without.
"""

import random
import time

from session import NO_WORKERS, Session, ask, each, in_thread, result_of, run, together, wait_until_blocked
from tap import ok, same

Session.settings = "SET client_min_messages = error;" + NO_WORKERS
SECONDS = 6
SEED = 20261128
IDS = 3000
TABLE = """
CREATE TABLE {0} (part int, id bigint) PARTITION BY LIST (part);
CREATE TABLE {0}_0 PARTITION OF {0} FOR VALUES IN (0);
CREATE TABLE {0}_1 (id bigint, part int);
ALTER TABLE {0} ATTACH PARTITION {0}_1 FOR VALUES IN (1);
CREATE TABLE {0}_2 PARTITION OF {0} FOR VALUES IN (2);
CREATE TABLE {0}_9 PARTITION OF {0} FOR VALUES IN (9);
CREATE INDEX {0}_id ON {0} USING bloomset (id) WITH (expected_items = 20);
CREATE INDEX ON {0}_0 (id)
"""


def make(name):
    each(*TABLE.format(name).split(";"))


def new(table, *ids):
    return f"SELECT bloomset_new('{table}', 'id', '{{{','.join(map(str, ids))}}}'::bigint[]) AS id"


def store(table, ids, part):
    return f"INSERT INTO {table} (part, id) SELECT {part}, id FROM ({new(table, *ids)}) AS n"


def found(table, id):
    """Does the function find what a query of the same snapshot finds?"""
    return (f"SELECT ARRAY(SELECT r::text FROM bloomset_find(NULL::{table}, 'id', {id}) AS r ORDER BY 1)"
            f" = ARRAY(SELECT r::text FROM {table} AS r WHERE id = {id} ORDER BY 1)")  # fmt: skip


# Random work

def until_end(work):
    """Repeats work(session, randomness), which returns states and faults; they are returned together."""
    def repeat(number, session):
        randomness, states, faults, times = random.Random(f"{SEED} {number}"), set(), [], 0
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            some_states, some_faults = work(session, randomness)
            states, faults, times = states | some_states, faults + some_faults, times + 1
        return states, faults, times
    return repeat


def import_some(session, randomness):
    """Imports up to 200 ids, some of them twice, and rolls back a fifth."""
    first = randomness.randrange(IDS)
    ids = [(first + randomness.randrange(300)) % IDS for _ in range(randomness.choice([1, 5, 200]))]
    session.ask("BEGIN")
    state = session.attempt(store("busy", ids, randomness.randrange(3)))[1]
    session.ask("COMMIT" if state == "00000" and randomness.random() > 0.2 else "ROLLBACK")
    return {state}, []


def move_some(session, randomness):
    """Moves rows to other partitions, and looks for rows at the same time as others do."""
    id = randomness.randrange(IDS)
    state = session.attempt(f"UPDATE busy SET part = (part + 1) % 3 WHERE id BETWEEN {id} AND {id + 20} AND part < 3")[1]
    return {state}, []


def search(session, randomness):
    id = randomness.randrange(IDS + 100)
    answer, state = session.attempt(found("busy", id))
    return {state}, [] if answer == ["t"] else [(id, answer, state)]


CHANGES = [
    ["ALTER TABLE busy DETACH PARTITION busy_9 CONCURRENTLY", "ALTER TABLE busy ATTACH PARTITION busy_9 FOR VALUES IN (9)"],
    ["ALTER TABLE busy DETACH PARTITION busy_9", "ALTER TABLE busy ATTACH PARTITION busy_9 FOR VALUES IN (9)"],
    ["DROP TABLE busy_9", "CREATE TABLE busy_9 PARTITION OF busy FOR VALUES IN (9)"],
    ["TRUNCATE busy_9"], ["REINDEX INDEX CONCURRENTLY busy_1_id_idx"], ["REINDEX TABLE CONCURRENTLY busy_2"], ["VACUUM busy"],
    ["DROP INDEX CONCURRENTLY IF EXISTS another", "CREATE INDEX another ON busy_2 USING bloomset (id) WITH (seed = 3)"],
]  # fmt: skip


def change(session, randomness):
    states = {session.attempt(statement)[1] for statement in randomness.choice(CHANGES)}
    time.sleep(0.05)
    return states, []


def test_random_work():
    """Fails if imports of one element do not wait for each other."""
    make("busy")
    works = [import_some, import_some, import_some, move_some, search, search, change]
    results = together(*map(until_end, works))
    for work, (states, faults, times) in zip(works, results):
        same(faults, [], f"{work.__name__}, {times} times: no row is missed")
        # A DETACH that is cancelled by a deadlock makes the statements after it fail.
        allowed = {move_some: {"40001"}, change: {"40P01", "42P07", "42P17"}}.get(work, set())
        ok(states <= allowed | {"00000"} and "00000" in states, f"{work.__name__}: no error", states)
        ok(times > 5, f"{work.__name__}: went on", times)
    same(ask("SELECT id FROM busy GROUP BY id HAVING count(*) > 1"), [], "no element is stored twice")
    ids = list(range(IDS))
    absent = ask(f"SELECT i FROM generate_series(0, {IDS - 1}) AS i WHERE i NOT IN (SELECT id FROM busy) ORDER BY i")
    same(ask(new("busy", *ids) + " ORDER BY id"), absent, "what is left is new")


# Two sessions

def meet(first_does, second_does, end="COMMIT", table="met"):
    """The second waits for what the first has done in its transaction; returns what the second answers."""
    with Session() as first, Session() as second:
        first.each("BEGIN", *first_does)
        waiting = in_thread(second.attempt, second_does)
        wait_until_blocked(second, first)
        first.ask(end)
        return result_of(waiting)


def test_same_element():
    """Fails if an import looks before it has waited: the second must see what the first has stored."""
    make("met")
    for end, answer in ("ROLLBACK", ["1", "2"]), ("COMMIT", ["2"]):
        same(meet([store("met", [1], 0)], new("met", 1, 2) + " ORDER BY id", end), (answer, "00000"), f"after {end}")
    same(meet([store("met", [5], 1)], "SELECT bloomset_new('met', 'id', '{5,6}'::int[])"), (["6"], "00000"), "int and bigint")


def test_other_elements():
    """Imports of other elements do not wait, except for those of the same one of 256 locks."""
    make("apart")
    with Session() as first, Session("SET lock_timeout = '10ms';") as second:
        first.each("BEGIN", store("apart", [1], 0))
        waited = [second.attempt(new("apart", i))[1] for i in range(2, 102)]
        same(waited.count("00000") + waited.count("55P03"), 100, "each one is new, or waits")
        # The chance of more than 5 of 100 is 1e-6.
        ok(waited.count("00000") >= 95, "few wait", waited.count("00000"))
        first.ask("COMMIT")


def test_order_of_locks():
    """Fails if a call takes its locks in the order of its elements."""
    make("ordered")
    ids = list(range(1, 40))

    def store_all(number, session):
        states = set()
        for turn in range(30):
            turned = [turn * 100 + i for i in (ids if number == 0 else reversed(ids))]
            states.add(session.attempt(store("ordered", turned, number))[1])
        return states
    same(set.union(*together(store_all, store_all)), {"00000"}, "no deadlock")
    same(ask("SELECT count(*), count(DISTINCT id) FROM ordered"), [f"{30 * len(ids)}|{30 * len(ids)}"], "all once")


def test_partition_goes_while_waiting():
    """Fails if a function goes on with a partition that has gone while it waited."""
    calls = {"bloomset_find": "SELECT count(*) FROM bloomset_find(NULL::{0}, 'id', 7)",
             "bloomset_new": "SELECT count(*) - 1 FROM bloomset_new('{0}', 'id', '{{7,8}}'::bigint[])"}  # fmt: skip
    changes = {
        "DROP TABLE": ["DROP TABLE {0}_9"],
        "DETACH PARTITION": ["ALTER TABLE {0} DETACH PARTITION {0}_9"],
        "DROP INDEX": ["DROP INDEX {0}_id", "CREATE INDEX ON {0} USING bloomset (id)"],
        "TRUNCATE": ["TRUNCATE {0}_9"],
        "another column": ["ALTER TABLE {0} ADD COLUMN more text DEFAULT 'm'"],
        "a new partition": ["LOCK TABLE {0}", "CREATE TABLE {0}_8 PARTITION OF {0} FOR VALUES IN (8)"],
    }
    for number, (change, statements) in enumerate(changes.items()):
        for function, call in calls.items():
            table = f"gone_{function[9:]}_{number}"
            make(table)
            ask(f"INSERT INTO {table} (part, id) VALUES (9, 100), (0, 7)")
            answer, state = meet([s.format(table) for s in statements], call.format(table))
            same((answer, state), (["1" if function == "bloomset_find" else "0"], "00000"), f"{function}, {change}")


def test_partition_comes_while_waiting():
    """Fails if an import finds the partitions before it has its locks."""
    make("coming")
    ask("CREATE TABLE coming_5 (part int, id bigint); INSERT INTO coming_5 VALUES (5, 77)")
    answer = meet([store("coming", [77], 0), "DELETE FROM coming", "ALTER TABLE coming ATTACH PARTITION coming_5 FOR VALUES IN (5)"],
                  new("coming", 77, 78))  # fmt: skip
    same(answer, (["78"], "00000"), "a row of a partition that was attached meanwhile")


def test_find_keeps_its_snapshot():
    """Fails if bloomset_find takes snapshots of its own: a repeatable read must not see what came later."""
    make("steady")
    ask("INSERT INTO steady (part, id) VALUES (0, 1)")
    for level in "REPEATABLE READ", "SERIALIZABLE":
        with Session() as reader:
            reader.each(f"BEGIN ISOLATION LEVEL {level}", "SELECT count(*) FROM steady")
            ask("UPDATE steady SET part = (part + 1) % 3; INSERT INTO steady (part, id) VALUES (2, 1)")
            before = reader.ask("SELECT count(*) FROM steady WHERE id = 1")
            same(reader.ask("SELECT count(*) FROM bloomset_find(NULL::steady, 'id', 1)"), before, f"{level}: as queries do")
            same(reader.attempt(new("steady", 1))[1], "0A000", f"{level}: bloomset_new is refused")
            reader.ask("ROLLBACK")


def test_locks():
    """Imports take one lock for each part of the hashes that an element is in, until the transaction ends."""
    make("held")
    locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 'held'::regclass"
    with Session() as session:
        session.each("BEGIN", "SAVEPOINT here", new("held", *range(2000)))
        same(ask(locks), ["256"], "2,000 elements take all")
        session.ask("ROLLBACK TO here")
        same(ask(locks), ["0"], "a savepoint gives them back")
        session.each(new("held", 1), new("held", 1))
        same(ask(locks), ["1"], "one element takes one")
        session.ask("SELECT pg_advisory_unlock_all()")
        same(ask(locks), ["1"], "that users cannot give back")
        session.ask("COMMIT")
        same(ask(locks), ["0"], "and ends with the transaction")
    with Session() as user, Session("SET lock_timeout = '1s';") as session:
        user.ask("SELECT pg_advisory_lock('held'::regclass::int, n) FROM generate_series(0, 255) AS n")
        same(session.attempt(new("held", 1))[1], "00000", "advisory locks of users are others")


def test_readers():
    """Fails if who may not import keeps others from it."""
    make("read")
    each("CREATE ROLE import_reader", "GRANT SELECT ON read TO import_reader")
    each(*(f"GRANT USAGE ON SCHEMA {schema} TO import_reader" for schema in [ask("SELECT current_schema()")[0]]))
    for start in "BEGIN READ ONLY", "BEGIN; SET LOCAL ROLE import_reader":
        with Session() as reader, Session("SET lock_timeout = '1s';") as session:
            reader.each(*start.split("; "))
            same(sorted(reader.ask(new("read", 1, 2))), ["1", "2"], f"{start}: an answer")
            same(session.attempt(new("read", 1))[1], "00000", "and others import")
            reader.ask("ROLLBACK")
    each("REVOKE ALL ON read FROM import_reader", *(f"REVOKE USAGE ON SCHEMA {schema} FROM import_reader"
         for schema in [ask("SELECT current_schema()")[0]]), "DROP ROLE import_reader")  # fmt: skip


run(test_random_work, test_same_element, test_other_elements, test_order_of_locks, test_partition_goes_while_waiting,
    test_partition_comes_while_waiting, test_find_keeps_its_snapshot, test_locks, test_readers)  # fmt: skip
