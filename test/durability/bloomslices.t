#!/usr/bin/python3 -B
"""Indexes of bloomslices on a server that is killed, also amid merges, and on its standby.

    ROUNDS=20 test/durability/bloomslices.t        PG_CONFIG names the PostgreSQL that has the extension

After each round and at each moment of the standby, the index must answer as a scan of its table does, and agree with it
bit by bit. WAL is replayed with wal_consistency_checking = generic, which compares each page with the one that the
primary wrote, and pages have checksums.

fsync is off because the operating system, whose cache has all that was written, goes on.
"""

import concurrent.futures
import os
import random
import signal
import time

from durable import DATABASE, Server, main, own_directory
from indexes import (SETTINGS, Clients, Readers, caught_up, faults_in_log, promote, recover, start_standby, tidy_up,
                     under_load, without_wal)
from session import in_thread, result_of
from slices_checks import DIFFERENT, check, differences, filters
from tap import ok, same

ROUNDS = int(os.environ.get("ROUNDS", "6"))
SECONDS = float(os.environ.get("STANDBY_SECONDS", "15"))
CLIENTS = 3
directory = own_directory()

INDEX = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off; SET client_min_messages = error;"
SCHEMA = f"""
CREATE EXTENSION bloomtype;
CREATE TABLE source (id int, f bloomfilter);
INSERT INTO source {filters(150, 300, 200)};
INSERT INTO source {filters(150, 30, 900, first=1000)};
INSERT INTO source {filters(150, 30, 200, seed=1, first=2000)};
INSERT INTO source SELECT 3000 + i, NULL FROM generate_series(1, 100) AS i;
INSERT INTO source SELECT 4000 + i, bloom_create(200, 0.01) FROM generate_series(1, 20) AS i;
CREATE TABLE small (id int, client int, n int, f bloomfilter);
CREATE INDEX small_f ON small USING bloomslices (f);
CREATE TABLE large (id int, client int, n int, f bloomfilter);
CREATE INDEX large_f ON large USING bloomslices (f) WITH (expected_items = 45000);
CREATE UNLOGGED TABLE fleeting (id int, f bloomfilter);
CREATE INDEX fleeting_f ON fleeting USING bloomslices (f);
INSERT INTO fleeting TABLE source;
"""
TABLES = "small", "large"


def keys(number):
    r = random.Random(number)
    return [f"{1000 * r.randint(1, 300) + r.randint(1, 160)}::bigint" for _ in range(20)]


def faults_of(session, number=0, tables=TABLES):
    session.attempt(INDEX)
    return [fault for table in tables for fault in differences(session, table, keys(number))]


def check_all(server, number=0, tables=TABLES):
    with server.connect() as session:
        return [fault for table in tables for fault in check(session, f"{table}_f")] + faults_of(session, number, tables)


# Crashes

def transaction(r, client, n):
    """The statements of transaction n of a client; all its rows bear n."""
    some = r.choice([2, 7, 100])
    small = f"INSERT INTO small SELECT id, {client}, {n}, f FROM source WHERE id % {some} = 0"
    large = f"INSERT INTO large SELECT id, {client}, {n}, f FROM source WHERE id % 150 = {r.randrange(150)}"
    change = f"UPDATE small SET f = bloom_add(f, {r.randrange(300000)}::bigint) WHERE client = {client} AND n = {n - 3}"
    delete = f"DELETE FROM small WHERE client = {client} AND n % 3 = {r.randrange(3)} AND n < {n - 10}"
    undone = f"SAVEPOINT s; {small}; ROLLBACK TO s"
    return r.choice([[small], [small, large], [small, change], [undone, small], [delete, small], [large]])


def write(session, r, client, n):
    for statement in "BEGIN", *transaction(r, client, n), "COMMIT":
        session.rows(statement)
    return True


def maintain(session, r):
    session.attempt(f"SET statement_timeout = {r.choice([0, 0, 10, 50])}")
    _, state = session.attempt(r.choice([
        "VACUUM small", "SELECT bloomslices_merge('small_f')", "SELECT bloomslices_merge('large_f')",
        "VACUUM small", "CHECKPOINT", "REINDEX INDEX CONCURRENTLY small_f",
        "VACUUM large", "CREATE INDEX CONCURRENTLY again ON small USING bloomslices (f)",
        "DROP INDEX IF EXISTS again",
    ]))  # fmt: skip
    time.sleep(r.random() / 10)
    return state


def crash(server, number):
    """One round: clients write, the server is killed, every other time also in recovery, and indexes and tables are
    compared."""
    clients = Clients(server, number, CLIENTS, write, maintain)
    time.sleep(random.uniform(1, 3))
    server.kill()
    clients.end()
    recover(server, number % 2 == 0)
    wrong = check_all(server, number) + clients.errors
    tidy_up(server)
    with server.connect() as session:
        lost = [client for client, last in clients.committed.items() if session.ask(
            f"SELECT count(*) + (SELECT count(*) FROM large WHERE client = {client} AND n = {last}) "
            f"FROM small WHERE client = {client} AND n = {last}") == ["0"]]  # fmt: skip
        rows = session.ask("SELECT count(*) FROM small")
        empty = session.ask("SELECT count(*) FROM fleeting")
        session.ask("INSERT INTO fleeting TABLE source")
        session.ask("VACUUM small")
        session.ask("DELETE FROM small WHERE random() < 0.5")
    wrong += check_all(server, number, [*TABLES, "fleeting"])
    ok(not wrong and not lost and empty == ["0"], f"round {number}: the index agrees with {rows[0]} rows", *wrong,
       f"clients that lost a commit: {lost}, rows of an unlogged table: {empty}")  # fmt: skip


def make_mergeable(server):
    server.sql("DROP TABLE IF EXISTS merged; CREATE TABLE merged (id int, f bloomfilter) WITH (autovacuum_enabled = off); "
               "CREATE INDEX merged_f ON merged USING bloomslices (f) WITH (expected_items = 2000); "
               "INSERT INTO merged SELECT id, f FROM source, generate_series(1, 10)", "CHECKPOINT")  # fmt: skip


def slabs(server):
    return int(server.value("SELECT slabs FROM bloomslices_info('merged_f')"))


def size(server):
    return int(server.value("SELECT pg_relation_size('merged_f')"))


def kill_in_merge(server, delay):
    """Stops a merge after some time, lets others commit, which writes its WAL so far, and kills the server. Returns
    whether it was still at work."""
    with server.connect() as merging, server.connect() as other:
        pid = merging.pid
        work = in_thread(merging.attempt, "SELECT bloomslices_merge('merged_f')")
        time.sleep(delay)
        amid = not work.done()
        os.kill(pid, signal.SIGSTOP)
        # They wait if the session was stopped with a lock that they need.
        committing = in_thread(other.attempt, "INSERT INTO merged SELECT id, f FROM source")
        concurrent.futures.wait([committing], 0.5)
        server.kill()
        for future in work, committing:
            result_of(future)
    server.start()
    return amid


def crash_in_merge(server):
    make_mergeable(server)
    before = slabs(server)
    began = time.monotonic()
    server.sql("SELECT bloomslices_merge('merged_f')")
    duration, merged = time.monotonic() - began, slabs(server)
    ok(merged < before, "slabs are merged", before, merged)
    under_way = 0
    for number in range(1, 2 * ROUNDS + 1):
        if number % 5 == 1:
            make_mergeable(server)
        under_way += kill_in_merge(server, random.uniform(0, duration))
        wrong = check_all(server, number, ["merged"])
        ok(not wrong, f"kill {number} in or after a merge", *wrong)
        with server.connect() as session:
            session.ask("INSERT INTO merged SELECT id, f FROM source")
            session.ask("DELETE FROM merged WHERE random() < 0.2")
    server.sql("VACUUM merged")
    wrong = check_all(server, 0, ["merged"])
    ok(not wrong, "then a merge ends", *wrong)
    ok(under_way, f"{under_way} merges were under way")
    left = size(server)
    server.sql("REINDEX INDEX merged_f")
    ok(left < 4 * size(server), "merges that were killed leave no pages behind", left, size(server))


def crashes():
    server = Server(directory, "crashing").init("--data-checksums", **SETTINGS).start()
    server.run("createdb", DATABASE)
    server.sql(SCHEMA)
    for number in range(1, ROUNDS + 1):
        crash(server, number)
    crash_in_merge(server)
    same(faults_in_log(server), [], "crashes: no fault in the log")
    server.stop()


def minimal_wal():
    server = Server(directory, "minimal").init(**{**SETTINGS, "wal_level": "minimal", "max_wal_senders": "0"}).start()
    server.run("createdb", DATABASE)
    server.sql(SCHEMA)
    tables = without_wal(server, "CREATE TABLE {t} (id int, f bloomfilter)",
                         "CREATE INDEX {t}_f ON {t} USING bloomslices (f)", "f",
                         ["INSERT INTO {t} SELECT id, f FROM source"] * 3)  # fmt: skip
    same(check_all(server, 0, tables), [], "wal_level = minimal: after a crash the indexes agree with their tables")
    server.stop()


# A standby

primary, standby = Server(directory, "primary"), Server(directory, "standby")


def begin_replication():
    start_standby(primary, standby, {**SETTINGS, "wal_keep_size": "'4GB'"}, [SCHEMA])
    caught_up(primary, standby)


def compare(readers, session, r, isolation):
    (key, *_) = keys(r.random())
    return readers.compare(session, DIFFERENT.format(r.choice(TABLES), key), isolation)


def standby_under_load():
    # The pause lets the standby, which compares each page, keep up.
    readers, clients = Readers(standby, compare, INDEX), Clients(primary, 1, CLIENTS, write, maintain, pause=0.1)
    under_load(clients, readers, SECONDS)
    readers.report(clients, "the index answers as the scan")
    caught_up(primary, standby)
    same(check_all(standby), [], "standby: in the end the indexes agree with their tables")
    same(faults_in_log(standby), [], "standby: replayed pages are the same")
    with standby.connect() as session:
        same(session.attempt("SELECT * FROM bloomslices_info('fleeting_f')")[1], "55000",
             "standby: bloomslices_info of an unlogged table is refused")


def promotion():
    promote(primary, standby)
    same(check_all(standby), [], "promoted: the indexes agree with their tables")
    standby.sql("INSERT INTO fleeting TABLE source", "INSERT INTO small SELECT id, 9, 9, f FROM source",
                "INSERT INTO large SELECT id, 9, 9, f FROM source", "VACUUM small", "VACUUM large")
    same(check_all(standby, 1, [*TABLES, "fleeting"]), [], "promoted: which go on")
    same(faults_in_log(standby), [], "promoted: no fault in the log")
    standby.stop()


# A former primary

def cancel_a_merge(server):
    """VACUUM merges slowly into pages that a merge before has freed, and is cancelled amid."""
    server.sql("SELECT bloomslices_merge('merged_f')", "INSERT INTO merged SELECT id, f FROM source, generate_series(1, 3)",
               "VACUUM (INDEX_CLEANUP off) merged")  # fmt: skip
    with server.connect("SET vacuum_cost_delay = '10ms'; SET vacuum_cost_limit = 1; SET statement_timeout = '2s';") as session:
        _, state = session.attempt("VACUUM merged")
    same(state, "57014", "former primary: a merge is cancelled")


def rewound():
    """pg_rewind copies only pages that the WAL of the former primary names, so it must name all that a merge changes."""
    former, current = Server(directory, "former"), Server(directory, "current")
    former.init("--data-checksums", **SETTINGS, autovacuum="off", wal_keep_size="'4GB'").start()
    former.run("createdb", DATABASE)
    former.sql(SCHEMA)
    make_mergeable(former)
    former.run("pg_basebackup", "--pgdata", current.data, "--write-recovery-conf", "--no-sync", "--checkpoint=fast",
               "--dbname", former.conninfo(""))  # fmt: skip
    current.configure(unix_socket_directories=f"'{current.home}'")
    current.start()
    current.run("pg_ctl", "promote", "--wait", "--silent", "--pgdata", current.data)
    current.sql("CHECKPOINT", "INSERT INTO merged SELECT id, f FROM source")
    cancel_a_merge(former)
    former.stop()
    former.run("pg_rewind", "--no-sync", "--write-recovery-conf", "--target-pgdata", former.data, "--source-server",
               current.conninfo())  # fmt: skip
    former.configure(unix_socket_directories=f"'{former.home}'")
    former.start()
    lsn = current.value("SELECT pg_current_wal_insert_lsn()")
    former.poll(f"SELECT pg_last_wal_replay_lsn() >= '{lsn}'")
    same(check_all(former, 0, ["merged"]), [], "former primary: rewound, its index agrees with the table")
    former.stop()
    current.stop()


main(crashes, minimal_wal, begin_replication, standby_under_load, promotion, rewound)
