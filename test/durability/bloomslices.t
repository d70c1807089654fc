#!/usr/bin/python3 -B
"""Indexes of bloomslices on a server that is killed, also amid merges, and on its standby.

    ROUNDS=20 test/durability/bloomslices.t        PG_CONFIG names the PostgreSQL that has the extension

After each round and at each moment of the standby, the index must answer as a scan of its table does, and agree with it
bit by bit. WAL is replayed with wal_consistency_checking = generic, which compares each page with the one that the
primary wrote, and pages have checksums.

fsync is off because the operating system, whose cache has all that was written, goes on.
"""

import collections
import concurrent.futures
import os
import random
import signal
import threading
import time

from durable import DATABASE, Server, main, own_directory
from bloomset_checks import PATIENCE
from session import in_thread, psycopg
from slices_checks import DIFFERENT, check, differences, filters
from tap import note, ok, same

ROUNDS = int(os.environ.get("ROUNDS", "6"))
SECONDS = float(os.environ.get("STANDBY_SECONDS", "15"))
CLIENTS = 3
SETTINGS = {
    "wal_consistency_checking": "'generic'", "shared_buffers": "16MB", "max_wal_size": "128MB",
    "checkpoint_timeout": "30s", "full_page_writes": "on", "max_prepared_transactions": "10",
}  # fmt: skip
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


def faults_in_log(server):
    words = "PANIC", "inconsistent page", "invalid page", "page verification failed", "TRAP:"
    return [line.strip() for line in server.log() if any(word in line for word in words)]


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


class Clients:
    """Sessions that write until the server has gone, and note what was committed."""

    def __init__(self, server, number, pause=0):
        self.server, self.number, self.pause = server, number, pause
        self.committed, self.errors = collections.Counter(), []
        self.works = [in_thread(self.write, client) for client in range(CLIENTS)] + [in_thread(self.maintain)]

    def write(self, client):
        r = random.Random(f"{self.number} {client}")
        with self.server.connect() as session:
            for n in range(self.number * 10**6 + 1, 10**9):
                try:
                    for statement in "BEGIN", *transaction(r, client, n):
                        session.rows(statement)
                    session.rows("COMMIT")
                    self.committed[client] = n
                    time.sleep(self.pause)
                except psycopg.Error as problem:
                    if session.connection.closed:
                        return
                    if problem.sqlstate not in ("40P01", "55P03"):
                        self.errors.append(problem)
                    session.attempt("ROLLBACK")

    def maintain(self):
        r = random.Random(f"{self.number} owner")
        with self.server.connect() as session:
            while not session.connection.closed:
                session.attempt(f"SET statement_timeout = {r.choice([0, 0, 10, 50])}")
                _, state = session.attempt(r.choice([
                    "VACUUM small", "SELECT bloomslices_merge('small_f')", "SELECT bloomslices_merge('large_f')",
                    "VACUUM small", "CHECKPOINT", "REINDEX INDEX CONCURRENTLY small_f",
                    "VACUUM large", "CREATE INDEX CONCURRENTLY again ON small USING bloomslices (f)",
                    "DROP INDEX IF EXISTS again",
                ]))  # fmt: skip
                if state not in ("00000", "lost", "40P01", "55P03", "57P01", "42P07", "57014"):
                    self.errors.append(session.error)
                time.sleep(r.random() / 10)

    def end(self):
        for work in self.works:
            work.result(PATIENCE)


def crash(server, number):
    """One round: clients write, the server is killed and recovers, indexes and tables are compared."""
    clients = Clients(server, number)
    time.sleep(random.uniform(1, 3))
    server.kill()
    clients.end()
    server.start()
    wrong = check_all(server, number) + clients.errors
    with server.connect() as session:
        for name, in session.rows("SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid"):
            session.ask(f"DROP INDEX {name}")
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
            future.result(PATIENCE)
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


def without_wal():
    """With wal_level = minimal a transaction writes no WAL of a file that it has made, and syncs that instead."""
    server = Server(directory, "minimal").init(**{**SETTINGS, "wal_level": "minimal", "max_wal_senders": "0"}).start()
    server.run("createdb", DATABASE)
    server.sql(SCHEMA)
    index = "CREATE INDEX {t}_f ON {t} USING bloomslices (f)"
    tables = []
    for threshold in "0", "'1GB'":
        for change in index, "REINDEX INDEX {t}_f", "TRUNCATE {t}":
            table = f"t{len(tables)}"
            tables.append(table)
            make = [f"CREATE TABLE {table} (id int, f bloomfilter)"]
            before = [] if change == index else [*make, index.format(t=table)]
            rows = f"INSERT INTO {table} SELECT id, f FROM source"
            within = [*(make if change == index else []), rows, change.format(t=table), rows]
            server.sql(f"SET wal_skip_threshold = {threshold}", *before, "; ".join(["BEGIN", *within, "COMMIT"]), rows)
    server.kill()
    server.start()
    same(check_all(server, 0, tables), [], "wal_level = minimal: after a crash the indexes agree with their tables")
    server.stop()


# A standby

primary, standby = Server(directory, "primary"), Server(directory, "standby")


def caught_up():
    lsn = primary.value("SELECT pg_current_wal_insert_lsn()")
    standby.poll(f"SELECT pg_last_wal_replay_lsn() >= '{lsn}'")


def start_standby():
    # Synchronous replication is off, so the standby is behind, sometimes far.
    primary.init("--data-checksums", **SETTINGS, hot_standby="on", autovacuum="off", wal_keep_size="'4GB'").start()
    primary.run("createdb", DATABASE)
    primary.sql(SCHEMA)
    primary.run("pg_basebackup", "--pgdata", standby.data, "--write-recovery-conf", "--no-sync", "--checkpoint=fast",
                "--dbname", primary.conninfo(""))  # fmt: skip
    standby.configure(unix_socket_directories=f"'{standby.home}'", max_standby_streaming_delay="-1")
    standby.start()
    caught_up()


class Readers:
    """Sessions on the standby that compare index and table as long as the primary is at work."""

    def __init__(self):
        self.stop, self.counts, self.wrong = threading.Event(), collections.Counter(), []
        self.works = [in_thread(self.read, number) for number in range(3)]

    def read(self, number):
        r = random.Random(f"reader {number}")
        with standby.connect(INDEX) as session:
            while not self.stop.is_set() and len(self.wrong) < 5:
                session.attempt(f"BEGIN ISOLATION LEVEL {r.choice(['READ COMMITTED', 'REPEATABLE READ'])}")
                for key in keys(r.random())[:r.randint(1, 10)]:
                    lines, state = session.attempt(DIFFERENT.format(r.choice(TABLES), key))
                    if lines or state not in ("00000", "40001", "40P01", "57014"):
                        self.wrong.append(f"{key}: {lines[:5]} {state} {session.error}")
                    self.counts[state] += 1
                    if state != "00000":
                        break
                session.attempt("ROLLBACK")

    def end(self):
        self.stop.set()
        for work in self.works:
            work.result(PATIENCE)


def standby_under_load():
    # so that the standby, which compares each page, keeps up
    readers, clients = Readers(), Clients(primary, 1, pause=0.1)
    time.sleep(SECONDS)
    with primary.connect() as session:
        session.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                    f"AND backend_type = 'client backend' AND datname = '{DATABASE}'")
    clients.end()
    time.sleep(1)
    readers.end()
    same(clients.errors, [], "primary: no unexpected error")
    ok(not readers.wrong, "standby: at every moment the index answers as the scan", *readers.wrong[:4])
    ok(readers.counts["00000"] > 100, "standby: many comparisons", readers.counts)
    note(f"{readers.counts}")
    caught_up()
    same(check_all(standby), [], "standby: in the end the indexes agree with their tables")
    same(faults_in_log(standby), [], "standby: replayed pages are the same")


def promotion():
    primary.stop("immediate")
    standby.run("pg_ctl", "promote", "--wait", "--silent", "--pgdata", standby.data)
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


main(crashes, without_wal, start_standby, standby_under_load, promotion, rewound)
