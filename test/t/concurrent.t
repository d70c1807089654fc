#!/usr/bin/python3 -B
"""Several sessions that add to one stored filter: the forms of UPDATE that keep every session's elements, and those
that lose some, as doc/keeping-current.md says. Sessions first meet at the row's lock, then at random.

The expected filter is computed from the keys that were committed: the same elements and parameters give the same
bytes.
"""

import random
from collections import namedtuple

from session import Session, ask, in_thread, result_of, run, together, wait_until_blocked
from tap import ok, same

SESSIONS = 4
TRANSACTIONS = 25  # of each session and form
SEED = 20261122

Session.settings = "SET client_min_messages = warning;"


class Client(Session):
    """A session with the parameters of the forms below: id, size, keys, first, last; and f, a filter that it read."""

    def use(self, id, keys):
        self.values = {"id": id, "size": SIZES[id], "keys": keys, "first": keys[0], "last": keys[-1]}

    def do(self, *statements):
        """Runs statements up to the first that fails; returns the last SQLSTATE."""
        state = "00000"
        for statement in statements:
            lines, state = self.attempt(statement, self.values)
            if state != "00000":
                break
            if lines:
                (self.values["f"],) = lines
        return state

    def start(self, *statements):
        return in_thread(self.do, *statements)


# The forms

# Filter 1 is sparse and in its row, filter 2 is dense and out of line.
SIZES = {1: 1000, 2: 100000}
GIVEN = {1: 3, 2: 20000}

SETUP = """
CREATE TABLE filters (id int PRIMARY KEY, f bloomfilter NOT NULL);
CREATE TABLE keys (id int, key int);
"""
RESET = "TRUNCATE filters, keys;\n" + "".join(
    f"INSERT INTO filters SELECT {id}, bloom_agg(-i, {SIZES[id]}) FROM generate_series(1, {GIVEN[id]}) AS i;\n"
    for id in SIZES
)

# The statements of a transaction before the one that meets another session's, and that one.
Form = namedtuple("Form", "before statements")


def form(*statements, before=()):
    return Form(before, statements)


NEW = "unnest(%(keys)s::int[]) AS new (key)"
FILTER_OF_NEW = f"(SELECT bloom_agg(key, %(size)s) FROM {NEW})"
UPDATE_FROM_READ = f"UPDATE filters SET f = (SELECT bloom_agg(key, %(f)s::bloomfilter) FROM {NEW}) WHERE id = %(id)s"
SAFE = {
    "bloom_add": form("UPDATE filters SET f = bloom_add(bloom_add(f, %(first)s), %(last)s) WHERE id = %(id)s"),
    "a correlated subquery": form(f"""
        UPDATE filters SET f = (SELECT bloom_agg(key, filters.f) FROM {NEW}) WHERE id = %(id)s"""),
    "a union with a subquery": form(f"UPDATE filters SET f = f | {FILTER_OF_NEW} WHERE id = %(id)s"),
    "UPDATE ... FROM": form(f"""
        UPDATE filters SET f = f | n.g FROM (SELECT %(id)s AS id, {FILTER_OF_NEW} AS g) AS n
        WHERE filters.id = n.id"""),
    "MERGE": form(f"""
        MERGE INTO filters USING (SELECT %(id)s AS id, {FILTER_OF_NEW} AS g) AS n ON filters.id = n.id
        WHEN MATCHED THEN UPDATE SET f = f | n.g
        WHEN NOT MATCHED THEN INSERT VALUES (n.id, n.g)"""),
    "ON CONFLICT": form(f"""
        INSERT INTO filters VALUES (%(id)s, {FILTER_OF_NEW})
        ON CONFLICT (id) DO UPDATE SET f = filters.f | excluded.f"""),
    "SELECT ... FOR UPDATE, then UPDATE": form("SELECT f FROM filters WHERE id = %(id)s FOR UPDATE", UPDATE_FROM_READ),
}  # fmt: skip
LOSING = {
    "a subquery that reads the filter": form(f"""
        UPDATE filters SET f = (SELECT bloom_agg(key, (SELECT f FROM filters WHERE id = %(id)s)) FROM {NEW})
        WHERE id = %(id)s"""),
    "the filter joined to itself": form(f"""
        UPDATE filters SET f = old.f | {FILTER_OF_NEW} FROM filters AS old
        WHERE filters.id = %(id)s AND old.id = %(id)s"""),
    "the filter read in WITH": form(f"""
        WITH old AS MATERIALIZED (SELECT id, f FROM filters WHERE id = %(id)s)
        UPDATE filters SET f = old.f | {FILTER_OF_NEW} FROM old WHERE filters.id = old.id"""),
    "SELECT, then UPDATE": form(UPDATE_FROM_READ, before=("SELECT f FROM filters WHERE id = %(id)s",)),
}  # fmt: skip


def array(keys):
    return f"'{{{','.join(map(str, keys))}}}'::int[]"


def holds_exactly(id, keys, name):
    """Has the stored filter the given elements and these keys, and nothing else?"""
    expected = (f"SELECT bloom_agg(key, {SIZES[id]}) FROM (SELECT -i FROM generate_series(1, {GIVEN[id]}) AS i "
                f"UNION ALL SELECT unnest({array(keys)})) AS v (key)")  # fmt: skip
    got = ask(f"SELECT f = ({expected}) FROM filters WHERE id = {id}")
    ok(got == ["t"], name, f"not found: {lost(id, keys)}")


def lost(id, keys):
    found = ask(f"SELECT key FROM unnest({array(keys)}) AS v (key), filters WHERE id = {id} AND NOT f @> key")
    return [int(key) for key in found]


# Two sessions that meet

FIRST, SECOND = [11, 12], [21, 22]


def meet(form, id, *, isolation="READ COMMITTED", end="COMMIT"):
    """The first session holds the row when the second comes, which waits, and goes on when the first ends. Returns
    the SQLSTATE of the second."""
    ask(RESET)
    with Client() as first, Client() as second:
        for session, keys in (first, FIRST), (second, SECOND):
            session.use(id, keys)
            succeeded(session.do(f"BEGIN ISOLATION LEVEL {isolation}", *form.before, "SELECT WHERE false"))
        succeeded(first.do(*form.statements))
        waiting = second.start(*form.statements)
        wait_until_blocked(second, first)
        first.ask(end)
        state = result_of(waiting)
        second.attempt("COMMIT")
    return state


def succeeded(state):
    if state != "00000":
        raise RuntimeError(f"SQLSTATE {state}")


def test_read_committed():
    for id, size in (1, "sparse filter"), (2, "dense filter"):
        for name, form in SAFE.items():
            same(meet(form, id), "00000", f"{name}, {size}: the second goes on when the first commits")
            holds_exactly(id, FIRST + SECOND, f"{name}, {size}: nothing is lost")
            same(meet(form, id, end="ROLLBACK"), "00000", f"{name}, {size}: the second goes on after a rollback")
            holds_exactly(id, SECOND, f"{name}, {size}: the elements that were rolled back are not there")
        for name, form in LOSING.items():
            same(meet(form, id), "00000", f"{name}, {size}: no error")
            same(lost(id, FIRST + SECOND), FIRST, f"{name}, {size}: the elements of the first are lost")


def test_higher_isolation():
    """Where the statement cannot see what the first session did, it fails, and works when it is repeated."""
    for isolation in "REPEATABLE READ", "SERIALIZABLE":
        for name, form in {**SAFE, **LOSING}.items():
            same(meet(form, 1, isolation=isolation), "40001", f"{name}, {isolation}: the second fails")
            holds_exactly(1, FIRST, f"{name}, {isolation}: the elements of the first are there")
            with Client() as second:
                second.use(1, SECOND)
                succeeded(second.do(f"BEGIN ISOLATION LEVEL {isolation}", *form.before, *form.statements, "COMMIT"))
            holds_exactly(1, FIRST + SECOND, f"{name}, {isolation}: repeated, nothing is lost")


def test_absent_row():
    """Two sessions both try to make the filter's row: ON CONFLICT waits and adds, MERGE fails."""
    for name, state, keys in ("ON CONFLICT", "00000", FIRST + SECOND), ("MERGE", "23505", FIRST):
        ask("TRUNCATE filters")
        with Client() as first, Client() as second:
            for session, own in (first, FIRST), (second, SECOND):
                session.use(1, own)
                session.ask("BEGIN")
            succeeded(first.do(*SAFE[name].statements))
            waiting = second.start(*SAFE[name].statements)
            wait_until_blocked(second, first)
            first.ask("COMMIT")
            same(result_of(waiting), state, f"{name} without a row: the second ends with {state}")
            second.attempt("COMMIT")
        same(lost(1, keys), [], f"{name} without a row: committed elements are there")


# Building anew

REBUILD = "UPDATE filters SET f = (SELECT bloom_agg(key, 1000) FROM keys WHERE id = 1) WHERE id = 1"


def write(key):
    """First to the table, then to the filter."""
    return f"INSERT INTO keys VALUES (1, {key}); UPDATE filters SET f = bloom_add(f, {key}) WHERE id = 1"


def started(session, sql):
    return in_thread(session.attempt, sql)


def state_of(future):
    return result_of(future)[1]


def test_rebuild():
    """Building from the table while another session adds to both does not see what that one has not committed."""
    ask(RESET)
    with Session() as writer, Session() as builder:
        writer.each("BEGIN", write(11))
        building = started(builder, REBUILD)
        wait_until_blocked(builder, writer)
        writer.ask("COMMIT")
        same((state_of(building), lost(1, [11])), ("00000", [11]), "a filter built anew loses what comes meanwhile")

        ask(RESET)
        writer.each("BEGIN", write(11))
        builder.ask("BEGIN")
        locking = started(builder, "LOCK TABLE keys IN SHARE MODE")
        wait_until_blocked(builder, writer)
        writer.ask("COMMIT")
        same(state_of(locking), "00000", "the lock waits for writers")
        writing = started(writer, write(12))
        wait_until_blocked(writer, builder)
        builder.each(REBUILD, "COMMIT")
        same(state_of(writing), "00000", "and writers for the lock")
        same(lost(1, [11, 12]), [], "built anew under a lock of the table it loses nothing")


# Many sessions at random

def in_all_sessions(work):
    return together(*[work] * SESSIONS, session_class=Client)


def transact(session, chosen, id, keys, isolation, roll_back):
    """Runs two keys through each of these forms in one transaction. Returns True if it was committed, False if it
    was rolled back, None if it must be repeated."""
    session.ask(f"BEGIN ISOLATION LEVEL {isolation}")
    for place, form in enumerate(chosen):
        session.use(id, keys[2 * place : 2 * place + 2])
        state = session.do(*form.before, *form.statements)
        if state == "40001":
            session.ask("ROLLBACK")
            return None
        succeeded(state)
    if roll_back():
        session.ask("ROLLBACK")
        return False
    return True if session.attempt("COMMIT")[1] == "00000" else None


def writer(forms, id, isolation):
    """Transactions of one or two of the forms, each with new keys; a quarter is rolled back. Returns the keys that
    were committed."""

    def work(number, session):
        randomness = random.Random(f"{SEED} {number} {id} {isolation} {len(forms)} {forms[0]}")
        committed = []
        for transaction in range(TRANSACTIONS):
            keys = [1000 * (transaction + 1) + 10 * number + i for i in range(4)]
            chosen = [randomness.choice(forms) for _ in range(randomness.randint(1, 2))]
            result = None
            while result is None:
                result = transact(session, chosen, id, keys, isolation, lambda: randomness.random() < 0.25)
            committed += keys[: 2 * len(chosen)] if result else []
        return committed

    return work


def test_stress():
    def check(name, forms, id, isolation):
        ask(RESET)
        committed = sum(in_all_sessions(writer(forms, id, isolation)), [])
        holds_exactly(id, committed, f"{name}: the filter is that of the {len(committed)} keys committed")

    for name, form in SAFE.items():
        check(f"{SESSIONS} sessions, {name}", [form], 2, "READ COMMITTED")
    check(f"{SESSIONS} sessions, all forms, sparse", list(SAFE.values()), 1, "READ COMMITTED")
    everything = list(SAFE.values()) + list(LOSING.values())
    check(f"{SESSIONS} sessions, every form, repeatable read", everything, 1, "REPEATABLE READ")
    check(f"{SESSIONS} sessions, every form, serializable", everything, 1, "SERIALIZABLE")


def set_up():
    ask(SETUP)


run(set_up, test_read_committed, test_higher_isolation, test_absent_row, test_rebuild, test_stress)
