#!/usr/bin/python3 -B
"""Searches with a snapshot that is older than old_snapshot_threshold, which PostgreSQL 15 and 16 have: they raise an
error where a B-tree does, since VACUUM may have removed rows that the snapshot sees.

    test/durability/old_snapshots.t        PG_CONFIG names the PostgreSQL that has the extension
"""

import time

from durable import DATABASE, Server, main, own_directory
from bloomset_checks import RARE, USE_SETS, by_index, contains, scan
from tap import same, skip

TOO_OLD = "72000"
directory = own_directory()


def state_of(session, query):
    """The SQLSTATE of a query, whose failure the transaction survives."""
    session.ask("SAVEPOINT here")
    state = session.attempt(query)[1]
    session.ask("ROLLBACK TO here")
    return state


def bloomset():
    """Fails if no page that a search reads is tested, or the page of an insert is."""
    server = Server(directory, "server")
    if server.major >= 17:
        return skip("bloomset", "PostgreSQL 17 has no old_snapshot_threshold")
    server.init(old_snapshot_threshold="0").start()
    server.run("createdb", DATABASE)
    server.sql("CREATE EXTENSION bloomtype", "CREATE TABLE seen (k bigint)", "CREATE TABLE other ()",
               "INSERT INTO seen SELECT generate_series(1, 300)", "CREATE INDEX seen_b ON seen (k)",
               f"CREATE INDEX seen_k ON seen USING bloomset (k) WITH ({RARE}, expected_items = 300)")  # fmt: skip
    with server.connect() as old, server.connect() as new:
        old.each("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM other")
        queries = {
            "contains by column": contains("seen", -1), "contains by index": by_index("seen_k", -1),
            "partitions": "SELECT bloomset_partitions('seen', 'k', -1)",
            "filters": "SELECT count(*) FROM bloomset_filters('seen', 'k')",
        }  # fmt: skip
        for name, query in queries.items():
            same(state_of(old, query), "00000", f"{name}: while no page has changed")
        new.each("INSERT INTO seen VALUES (301)", "DELETE FROM seen WHERE k = 1")
        b_tree = "SET LOCAL enable_seqscan = off; SELECT count(*) FROM seen WHERE k = 1"
        # with a threshold of 0, PostgreSQL takes snapshots of 5 seconds for old when others have committed since
        for _ in range(60):
            time.sleep(0.5)
            new.each("INSERT INTO seen VALUES (302)", "VACUUM seen")
            if state_of(old, b_tree) == TOO_OLD:
                break
        same(state_of(old, b_tree), TOO_OLD, "a B-tree refuses the snapshot")
        for name, query in queries.items():
            same(state_of(old, query), TOO_OLD, f"{name}: refuses it")
        same(state_of(old, "INSERT INTO seen VALUES (303)"), "00000", "an insert goes on")
        same(state_of(old, "SELECT bloomset_info('seen_k')"), "00000", "bloomset_info does, too")
        same(new.ask(contains("seen", -1)), ["f"], "a new snapshot denies")
        new.ask("DROP INDEX seen_b")
        same(state_of(old, USE_SETS + scan("seen", -1)), TOO_OLD, "the scan by a set refuses it")
    server.stop()
    return None


main(bloomset)
