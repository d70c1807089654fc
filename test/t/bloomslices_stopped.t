#!/usr/bin/python3 -B
"""Processes that are stopped amid a search of bloomslices or an insert, and go on when others have merged, and used the
pages that the merge has freed: the answers are those of a scan, and nothing is damaged.

The test sends signals to server processes, for which it must run on the server's machine as their user or root.
"""

import concurrent.futures
import os
import signal
import time

from session import Session, ask, in_thread, result_of, run
from slices_queries import LARGE_SOURCE, SOURCE, Question, different
from tap import done, ok, skip

MOST = 5  # seconds that a process is stopped
ROUNDS = 20

Session.settings = "SET client_min_messages = error; SET jit = off; SET enable_seqscan = off;"


def set_up():
    ask(SOURCE + LARGE_SOURCE)


def stopped(session, sql, delay, meanwhile):
    """Stops the process of a session after some time in a statement, does something else, and lets it go on. What it has
    locked keeps the others waiting, therefore not for long. Returns what the statement says, and whether it was at work
    when it was stopped."""
    asking = in_thread(session.attempt, sql)
    time.sleep(delay)
    os.kill(session.pid, signal.SIGSTOP)
    amid = not asking.done()
    try:
        doing = in_thread(meanwhile)
        concurrent.futures.wait([doing], MOST)
    finally:
        os.kill(session.pid, signal.SIGCONT)
    lines, state = result_of(asking)
    result_of(doing)
    return lines, state, amid


def how_long(session, *statements):
    """The least time that any of these takes."""
    times = []
    for sql in statements:
        began = time.monotonic()
        session.ask(sql)
        times.append(time.monotonic() - began)
    return min(times)


# As many rows with bits as before, so that they use all pages that the merge has freed.
REUSE = "INSERT INTO stopped SELECT id, 2, f FROM source, generate_series(1, 16) " \
    "WHERE kind IN ('larger', 'smaller', 'dense', 'dense too', 'sparse')"


def fill_stopped(other):
    """Tiles, which the next merge replaces, with rows of which every other has gone."""
    other.each("TRUNCATE stopped",
               "INSERT INTO stopped SELECT id, 1, f FROM source, generate_series(1, 8) WHERE kind <> 'text'",
               "DELETE FROM stopped WHERE id % 2 = 0")  # fmt: skip


def test_stopped_readers():
    """A reader goes on when a merge has replaced what it was to read, and other rows use these pages. Fails if it takes
    the contents of a page for those that were there, or for damage, or does not start over."""
    ask("CREATE TABLE stopped (id int, n int, f bloomfilter) WITH (autovacuum_enabled = off); "
        "CREATE INDEX stopped_f ON stopped USING bloomslices (f)")
    # With so many keys the search takes most of the time.
    query = "SELECT id, count(*) FROM stopped WHERE " \
        "bloom_contains_least(f, ARRAY(SELECT generate_series(1, 3000)), 120) GROUP BY id ORDER BY id"
    wrong, met = [], 0
    with Session() as reader, Session() as other:

        def replace():
            other.each("VACUUM stopped", REUSE)

        for number in range(ROUNDS):
            fill_stopped(other)
            reader.ask("BEGIN ISOLATION LEVEL REPEATABLE READ")
            reader.ask("SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off")
            want = reader.ask(query)
            reader.ask("SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = on")
            duration = how_long(reader, query, query)
            lines, state, amid = stopped(reader, query, duration * number / ROUNDS, replace)
            met += amid
            if state != "00000" or lines != want:
                wrong.append(f"{number}: {state} {reader.error if state != '00000' else set(lines) ^ set(want)}")
            reader.ask("ROLLBACK")
    ok(not wrong, "readers that are stopped while merges replace what they read", *wrong[:3])
    ok(met > ROUNDS / 4, f"{met} readers were stopped amid their work")


# Keys whose bits are in all parts of a row.
ANY = "bloom_contains_any(f, ARRAY(SELECT generate_series(1, 60)))"


def test_stopped_writers():
    """A writer goes on when others have merged and read meanwhile. Fails if a merge takes a slab in which a row is in the
    making, or a reader meets one that is published before its bits are there. An UPDATE that is not HOT and leaves the
    filter as it is writes little but to the index."""
    wrong, met = [], 0
    for name, some in ("small", "SELECT id, 3, f FROM source WHERE kind <> 'text'"), \
            ("large", "SELECT id, 3, f FROM large_source, generate_series(1, 2)"):  # fmt: skip
        table = f"stopped_{name}"
        ask(f"CREATE TABLE {table} (id int, n int, f bloomfilter) WITH (autovacuum_enabled = off); INSERT INTO {table} {some}; "
            f"CREATE INDEX {table}_f ON {table} USING bloomslices (f); CREATE INDEX {table}_n ON {table} (n)")  # fmt: skip
        with Session() as writer, Session() as other:
            update = f"UPDATE {table} SET n = n + 1"

            def look_at():
                for sql in f"SELECT count(*) FROM {table} WHERE {ANY}", f"SELECT bloomslices_merge('{table}_f')":
                    if other.attempt(sql)[1] != "00000":
                        wrong.append(f"{sql}: {other.error}")

            duration = how_long(writer, update, update, update)
            for number in range(ROUNDS):
                if number % 5 == 4:
                    other.ask(f"VACUUM {table}")
                lines, state, amid = stopped(writer, update, duration * number / ROUNDS, look_at)
                met += amid
                wrong += [] if state == "00000" else [f"{update}: {writer.error}"]
                lines = other.ask(different(Question("rows", table, f"SELECT ctid FROM {table} WHERE {ANY}",
                                                     f"SELECT ctid FROM {table} WHERE ({ANY}) IS TRUE")))
                wrong += [] if lines[0].split("|")[1] == "0" else [f"{number}: {lines}"]
            _, state = other.attempt(f"SELECT bloomslices_check('{table}_f')")
            wrong += [] if state == "00000" else [other.error]
    ok(not wrong, "writers that are stopped while others merge and read", *wrong[:3])
    ok(met > ROUNDS / 2, f"{met} writers were stopped amid their work")


def may_stop():
    """May the test send signals to the server's processes?"""
    with Session() as session:
        try:
            os.kill(session.pid, signal.SIGCONT)
        except (PermissionError, ProcessLookupError):
            return False
        return True


if may_stop():
    run(set_up, test_stopped_readers, test_stopped_writers)
else:
    skip("processes that are stopped", "the test may not send signals to them")
    done()
