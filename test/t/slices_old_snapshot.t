#!/usr/bin/python3 -B
"""With old_snapshot_threshold, which PostgreSQL 15 and 16 have, VACUUM removes rows that an old snapshot sees. So a search
of bloomslices that reads a page that is newer than an old snapshot is an error, as it is with a B-tree.

The test runs a server of its own with a threshold of 0, with which PostgreSQL takes a snapshot to be old after five
seconds, but removes no row earlier.
"""

import os
import sys
import time

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "durability"))
from durable import DATABASE, Server, main, own_directory  # noqa: E402
from slices_checks import filters  # noqa: E402
from tap import ok, same  # noqa: E402

server = Server(own_directory(), "server")

OLD = 6  # seconds
TOO_OLD = "72000"
USE_INDEX = "SET enable_seqscan = off; SET enable_sort = off;"
BITMAP = "SET enable_indexscan = off; SET enable_seqscan = off;"

# What comes before the snapshot, and what another session does afterwards: an entry comes, slabs are merged, all slabs go.
CHANGES = {
    "an entry comes": ("INSERT INTO {0} SELECT * FROM source WHERE id < 50",
                       "INSERT INTO {0} SELECT * FROM source WHERE id = 51"),
    "slabs are merged": ("INSERT INTO {0} SELECT * FROM source", "SELECT bloomslices_merge('{0}_f')"),
    "all slabs go": ("BEGIN; INSERT INTO {0} SELECT * FROM source; ROLLBACK", "VACUUM {0}"),
}  # fmt: skip
SEARCHES = {
    "an index scan": (USE_INDEX, "SELECT id FROM {0} WHERE f @> 7001::bigint AND id > 0"),
    "a bitmap scan": (BITMAP, "SELECT id FROM {0} WHERE f @> 7001::bigint AND id > 0"),
    "an order": (USE_INDEX, "SELECT id FROM {0} ORDER BY f <-> bloom_query(7001::bigint) LIMIT 1"),
}
BTREE = (USE_INDEX, "SELECT id FROM {0} WHERE id = 7")


def start():
    threshold = {"old_snapshot_threshold": 0} if server.major < 17 else {}
    server.init(autovacuum="off", **threshold).start()
    server.run("createdb", DATABASE)
    server.sql("CREATE EXTENSION bloomtype", f"CREATE TABLE source AS {filters(20, 500, 100)}")


def make(table, before, column):
    """A table with an index of bloomslices, or of a B-tree; the row that its snapshot sees comes first."""
    method = "bloomslices" if column == "f" else "btree"
    server.sql(f"CREATE TABLE {table} (id int, f bloomfilter)", f"CREATE INDEX {table}_f ON {table} USING {method} ({column})",
               before.format(table))  # fmt: skip


def searches():
    cases, sessions = [], []
    for number, (name, (before, change)) in enumerate(CHANGES.items()):
        for search, (settings, query) in [*SEARCHES.items(), *[("a B-tree", BTREE)] * (number == 0)]:
            table = f"t{len(cases)}"
            make(table, before, "id" if search == "a B-tree" else "f")
            session = server.connect(settings)
            session.ask("BEGIN ISOLATION LEVEL REPEATABLE READ")
            found = session.ask(query.format(table))
            cases.append((f"{name}, {search}", table, change, query.format(table), found))
            sessions.append(session)
    time.sleep(OLD)
    for session, (name, table, change, query, found) in zip(sessions, cases):
        server.sql(change.format(table), f"VACUUM {table}")
        after, state = session.attempt(query)
        if server.major < 17:
            same((state, after), (TOO_OLD, []), f"{name}: the snapshot is too old")
        else:
            same((state, after), ("00000", found), f"{name}: the rows of the snapshot are found")
        session.attempt("ROLLBACK")
    ok(sum(found == ["7"] for *_, found in cases) == 7, "a row was found before, where there is one")


main(start, searches)
