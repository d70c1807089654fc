"""What the durability tests of the index access methods share: clients that write until their server is killed, readers
that compare on a standby meanwhile, and how to start, end and promote these servers.
"""

import collections
import os
import random
import subprocess
import threading
import time

from durable import DATABASE
from session import in_thread, psycopg, result_of, until
from tap import note, ok, same

# WAL is replayed with comparisons of each page with the one that the primary wrote.
SETTINGS = {
    "wal_consistency_checking": "'generic'", "shared_buffers": "16MB", "max_wal_size": "128MB",
    "checkpoint_timeout": "30s", "full_page_writes": "on", "max_prepared_transactions": "20",
}  # fmt: skip
EXPECTED = {"00000", "lost", "40P01", "55P03", "57P01", "42P07", "57014"}


def logged(server, *words):
    return [line.strip() for line in server.log() if any(word in line for word in words)]


def faults_in_log(server):
    return logged(server, "PANIC", "inconsistent page", "invalid page", "page verification failed", "TRAP:")


# Clients

class Clients:
    """Sessions that write until the server has gone, and note what was committed.

    write(session, r, client, n) runs transaction n, and returns whether it was committed; maintain(session, r) runs a
    statement that may fail as long as others work, and returns its SQLSTATE.
    """

    def __init__(self, server, number, many, write, maintain, pause=0):
        self.server, self.number, self.write, self.maintain, self.pause = server, number, write, maintain, pause
        self.committed, self.errors = collections.Counter(), []
        self.works = [in_thread(self.write_all, client) for client in range(many)] + [in_thread(self.maintain_all)]

    def write_all(self, client):
        r = random.Random(f"{self.number} {client}")
        with self.server.connect() as session:
            for n in range(self.number * 10**6 + 1, 10**9):
                try:
                    if self.write(session, r, client, n):
                        self.committed[client] = n
                    time.sleep(self.pause)
                except psycopg.Error as problem:
                    if session.connection.closed:
                        return
                    if problem.sqlstate not in ("40P01", "55P03"):
                        self.errors.append(problem)
                    session.attempt("ROLLBACK")

    def maintain_all(self):
        r = random.Random(f"{self.number} owner")
        with self.server.connect() as session:
            while not session.connection.closed:
                if self.maintain(session, r) not in EXPECTED:
                    self.errors.append(session.error)

    def end(self):
        for work in self.works:
            result_of(work)

    def terminate(self):
        """Ends the sessions of a server that goes on."""
        self.server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                        f"AND backend_type = 'client backend' AND datname = '{DATABASE}'")
        self.end()


# Crashes

def recover(server, again):
    """Starts a server that was killed; again: kills it once more while it recovers."""
    if again:
        before = len(logged(server, "redo starts"))
        server.running.append(server)
        server.run("pg_ctl", "start", "--no-wait", "--silent", "--pgdata", server.data, "--log",
                   os.path.join(server.home, "log"), stdout=subprocess.DEVNULL)
        until(lambda: len(logged(server, "redo starts")) > before, "redo")
        time.sleep(random.uniform(0, 0.05))
        server.kill()
    server.start()


def tidy_up(server):
    """Ends what a crash has left under way: prepared transactions, and builds of indexes."""
    for name, in server.sql("SELECT gid FROM pg_prepared_xacts"):
        server.sql(f"COMMIT PREPARED '{name}'")
    for name, in server.sql("SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid"):
        server.sql(f"DROP INDEX {name}")


def without_wal(server, create, index, column, rows):
    """With wal_level = minimal a transaction writes no WAL of a file that it has made, and syncs that instead. Makes
    tables t0, t1 ... with indexes t0_column ... in such transactions, kills the server, and returns the tables. The
    statements and the three INSERTs of rows are formats of the table's name {t}."""
    tables = []
    for threshold in "0", "'1GB'":
        for change in index, f"REINDEX INDEX {{t}}_{column}", "TRUNCATE {t}":
            table = f"t{len(tables)}"
            tables.append(table)
            before = [] if change == index else [create, index]
            within = [*([create] if change == index else []), rows[0], change, rows[1]]
            server.sql(f"SET wal_skip_threshold = {threshold}", *[sql.format(t=table) for sql in before],
                       "; ".join(["BEGIN", *within, "COMMIT"]).format(t=table), rows[2].format(t=table))
    server.kill()
    server.start()
    return tables


# A standby

def caught_up(primary, standby):
    lsn = primary.value("SELECT pg_current_wal_insert_lsn()")
    standby.poll(f"SELECT pg_last_wal_replay_lsn() >= '{lsn}'")


def start_standby(primary, standby, settings, schema, **standby_settings):
    """Starts both. Synchronous replication is off, so the standby is behind, sometimes far."""
    primary.init("--data-checksums", **settings, hot_standby="on", autovacuum="off").start()
    primary.run("createdb", DATABASE)
    primary.sql(*schema)
    primary.run("pg_basebackup", "--pgdata", standby.data, "--write-recovery-conf", "--no-sync", "--checkpoint=fast",
                "--dbname", primary.conninfo(""))  # fmt: skip
    # Replay waits for queries as long as they take, so an old snapshot stays.
    standby.configure(unix_socket_directories=f"'{standby.home}'", max_standby_streaming_delay="-1", **standby_settings)
    standby.start()


def promote(primary, standby):
    primary.stop("immediate")
    standby.run("pg_ctl", "promote", "--wait", "--silent", "--pgdata", standby.data)


class Readers:
    """Sessions on a standby that compare indexes and tables as long as the primary is at work. ask(readers, session, r,
    isolation) makes one comparison in a transaction, and returns False if that has failed."""

    CONFLICTS = {"40001", "40P01", "57014"}

    def __init__(self, standby, ask, settings=""):
        self.standby, self.ask, self.settings = standby, ask, settings
        self.stop, self.counts, self.wrong = threading.Event(), collections.Counter(), []
        self.works = [in_thread(self.read, number) for number in range(3)]

    def query(self, session, sql, refused=frozenset()):
        lines, state = session.attempt(sql)
        if state == "00000":
            return lines
        if state not in self.CONFLICTS | refused:
            self.wrong.append(f"{state}: {sql}: {session.error}")
        self.counts["conflicts" if state in self.CONFLICTS else "refused"] += 1
        return None

    def compare(self, session, sql, isolation, refused=frozenset()):
        """Runs a query that must return no row."""
        lines = self.query(session, sql, refused)
        if lines:
            self.wrong.append(f"{isolation}: {len(lines)} rows {lines[:5]}: {sql}")
        self.counts[isolation] += lines is not None
        return lines is not None

    def read(self, number):
        r = random.Random(f"reader {number}")
        with self.standby.connect(self.settings) as session:
            while not self.stop.is_set() and len(self.wrong) < 5:
                isolation = r.choice(["READ COMMITTED", "REPEATABLE READ"])
                self.query(session, f"BEGIN ISOLATION LEVEL {isolation}; SELECT count(*) FROM pg_am")
                until_ = time.monotonic() + r.choice([0, 0.3, 1])
                while self.ask(self, session, r, isolation) and time.monotonic() < until_:
                    time.sleep(r.random() / 20)
                session.attempt("ROLLBACK")

    def end(self):
        self.stop.set()
        for work in self.works:
            result_of(work)

    def report(self, clients, what):
        same(clients.errors, [], "primary: no unexpected error")
        ok(not self.wrong, f"standby: at every moment {what}", *self.wrong[:4])
        note(" ".join(f"{name}: {count}" for name, count in self.counts.items()))
        many = self.counts["READ COMMITTED"] > 20 and self.counts["REPEATABLE READ"] > 20
        ok(many, "standby: many comparisons", self.counts)


def under_load(clients, readers, seconds):
    time.sleep(seconds)
    clients.terminate()
    time.sleep(1)
    readers.end()
