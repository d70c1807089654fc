#!/usr/bin/python3 -B
"""Filters of the largest size, 2^31 bits or 256 MiB: dump and restore in every form, and logical replication.

    test/durability/cap.t [dump|limits|text|binary...]      PG_CONFIG names the PostgreSQL that has the extension

Also shows where PostgreSQL's limit of 1 GB for a value or a row in text form stops them, and the peak memory of each
program. Takes 4 GB of memory and 15 GB of disk.
"""

import contextlib
import os
import re
import shutil
import sys
import threading
import time

from durable import DATABASE, Failed, Server, children, main, own_directory, server_user
from session import psycopg
from tap import note, ok, same

HEADER = 28
BITS = 2 ** 31
SIZE = HEADER + BITS // 8
ELEMENT = "i::bigint * 1000003"
DENSE, SPARSE = 36000000, 33000000  # elements; up to BITS / 64 of them a filter keeps hashes

directory = own_directory()
dumps = os.path.join(directory, "dumps")
os.mkdir(dumps)
if server_user():
    shutil.chown(dumps, server_user())
server = Server(directory, "server")
subscriber = Server(directory, "subscriber")


@contextlib.contextmanager
def watched(label):
    """Shows the time that something took, and the peak memory of each program that it ran."""
    peaks, done = {}, threading.Event()

    def watch():
        while not done.wait(0.05):
            for parent in [os.getpid()] + [s.postmaster() for s in Server.running]:
                for process in children(parent):
                    with contextlib.suppress(OSError, StopIteration), open(f"/proc/{process}/status") as status:
                        fields = dict(line.split(":", 1) for line in status)
                        if "VmHWM" in fields:
                            name = fields["Name"].strip()
                            peaks[name] = max(peaks.get(name, 0), int(fields["VmHWM"].split()[0]))

    watcher = threading.Thread(target=watch, daemon=True)
    began = time.monotonic()
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        note(f"{label}: {time.monotonic() - began:.0f} s; " +
             ", ".join(f"{name} {peak / 1024:.0f} MB" for name, peak in sorted(peaks.items())))


def largest(layout="blocked"):
    """The largest number of elements that a filter may be made for."""
    try:
        server.sql(f"SELECT bloom_create(1::bigint << 40, 0.01, '{layout}')")
    except psycopg.Error as error:
        return int(re.search(r"enough for (\d+) elements", str(error))[1])


def setup():
    server.run("createdb", DATABASE)
    server.sql("CREATE EXTENSION bloomtype")
    room = largest()
    with watched("making them"):
        server.sql(f"""
            CREATE TABLE caps (name text PRIMARY KEY, n integer, touched integer, f bloomfilter);
            INSERT INTO caps SELECT 'dense', {DENSE}, 0, bloom_agg({ELEMENT}, {room})
                FROM generate_series(1, {DENSE}) AS i;
            INSERT INTO caps SELECT 'sparse', {SPARSE}, 0, bloom_agg({ELEMENT}, {room})
                FROM generate_series(1, {SPARSE}) AS i;
            INSERT INTO caps SELECT 'saturated', {DENSE}, 0,
                (substr(f::bytea, 1, {HEADER}) || decode(repeat('ff', {BITS // 8}), 'hex'))::bloomfilter
                FROM caps WHERE name = 'dense';
            CREATE TABLE one AS SELECT name, n, touched, f FROM caps WHERE name = 'dense';
            -- One block less.
            CREATE TABLE less AS SELECT 'less' AS name, 0 AS n, 0 AS touched,
                (substr(b, 1, 20) || substr(int8send({BITS - 512}), 8, 1) || substr(int8send({BITS - 512}), 7, 1)
                 || substr(int8send({BITS - 512}), 6, 1) || substr(int8send({BITS - 512}), 5, 1) || '\\x00000000'
                 || substr(b, {HEADER} + 1, {BITS // 8 - 64}))::bloomfilter AS f
                FROM (SELECT f::bytea AS b FROM one) AS v;
        """)
    same(server.sql("SELECT i.representation, i.bits, i.bytes > 2.6e8 FROM caps, bloom_info(f) AS i ORDER BY name"),
         [["dense", str(BITS), "t"], ["dense", str(BITS), "t"], ["sparse", str(BITS), "t"]],
         "filters of 2^31 bits: dense, saturated, sparse")
    same(server.sql("SELECT length(f::bytea) FROM caps ORDER BY name"),
         [[str(SIZE)], [str(SIZE)], [str(HEADER + 8 * SPARSE)]], "of their full size")


def digests(database=DATABASE, table="caps", on=server):
    return on.sql(f"SELECT name, n, length(f::bytea), sha256(f::bytea) FROM {table} ORDER BY name",
                  database=database)


def lost(database, step, on=server):
    return on.value(f"SELECT string_agg(name || ' ' || c, ', ') FROM (SELECT name, count(*) AS c FROM caps, "
                    f"LATERAL generate_series(1, n, {step}) AS i WHERE NOT f @> ({ELEMENT}) GROUP BY name) AS v",
                    database=database)


def restored(label, restore, table="caps", step=1000):
    """Tests what restore() puts into a new database."""
    server.run("createdb", "restored")
    try:
        with watched(f"{label}, restore"):
            restore()
        ok(digests("restored", table) == digests(table=table), f"{label}: the same SHA-256")
        if table == "caps":
            same(lost("restored", step), "", f"{label}: of every {step}th of the "
                 f"{2 * DENSE + SPARSE} elements none is lost")
    finally:
        server.run("dropdb", "restored")


def dumped(form, table="caps", step=1000, options=()):
    path = os.path.join(dumps, form)
    with watched(f"{form}, dump"):
        server.run("pg_dump", f"--format={form}", f"--file={path}", f"--table={table}", *options)
    size = os.path.getsize(path) if os.path.isfile(path) else \
        sum(os.path.getsize(os.path.join(path, name)) for name in os.listdir(path))

    def restore():
        server.sql("CREATE EXTENSION bloomtype", database="restored")
        if form == "plain":
            server.run("psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-f", path, env={"PGDATABASE": "restored"})
        else:
            server.run("pg_restore", "--exit-on-error", "--dbname=restored", path)

    restored(f"pg_dump, {form}, {size / 1e6:.0f} MB", restore, table, step)
    shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


def copied_binary():
    path = os.path.join(dumps, "binary")
    server.sql(f"COPY caps TO '{path}' (FORMAT binary)")

    def restore():
        server.sql(f"CREATE EXTENSION bloomtype; CREATE TABLE caps (name text, n integer, touched integer, "
                   f"f bloomfilter); COPY caps FROM '{path}' (FORMAT binary)", database="restored")

    restored(f"COPY BINARY, {os.path.getsize(path) / 1e6:.0f} MB", restore)
    os.remove(path)


def fails(label, pattern, what):
    """PostgreSQL's limits: an error that names them, and nothing worse."""
    try:
        what()
        said = ""
    except (Failed, psycopg.Error) as error:
        said = str(error)
    note(f"{label}: {said.strip().split(chr(10))[0][-150:]}")
    ok(re.search(pattern, said) and server.value("SELECT 1") == "1", f"{label}: an error, and the server goes on", said)


def dumps_and_restores():
    dumped("plain", step=10)
    dumped("custom", options=["--compress=1"])
    dumped("directory", options=["--compress=0"])
    copied_binary()


def limits():
    # As an INSERT the digits are a string literal, for which the parser's buffer doubles up to 2^29 bytes.
    dumped("plain", table="less", options=["--inserts"])
    fails("2^31 bits by --inserts", "invalid memory alloc request size 1073741824",
          lambda: dumped("plain", table="one", options=["--inserts"]))
    # A row in text form has less than 1 GB.
    server.sql("CREATE TABLE two AS SELECT a.f AS f, b.f AS g FROM one AS a, one AS b")
    fails("two of 2^31 bits in a row, in text", "out of memory|invalid memory alloc|Cannot enlarge",
          lambda: server.sql(f"COPY two TO '{dumps}/two'"))
    server.sql(f"COPY two TO '{dumps}/two' (FORMAT binary); CREATE TABLE two_again (LIKE two);"
               f"COPY two_again FROM '{dumps}/two' (FORMAT binary)")
    same(server.value("SELECT count(*) FROM two AS a JOIN two_again AS b ON a.f = b.f AND a.g = b.g"), "1",
         "two of 2^31 bits in a row, in binary: the same")
    server.sql("DROP TABLE two, two_again")


def caught_up():
    lsn = server.value("SELECT pg_current_wal_flush_lsn()")
    server.poll(f"SELECT coalesce(bool_and(replay_lsn >= '{lsn}'), false) FROM pg_stat_replication "
                "WHERE application_name = 'durability'", seconds=600)


def wait_for(condition, seconds=600):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited too long"
        time.sleep(0.2)


def replicated(binary):
    label = f"logical replication in {'binary' if binary else 'text'}"

    def change(name, sql):
        with watched(f"{label}, {name}"):
            server.sql(sql)
            caught_up()
        ok(digests() == digests(on=subscriber) and digests(table="whole") == digests(table="whole", on=subscriber),
           f"{label}, {name}: the same SHA-256")

    if subscriber not in Server.running:
        subscriber.init(wal_receiver_timeout="0").start()
        subscriber.run("createdb", DATABASE)
        subscriber.sql("CREATE EXTENSION bloomtype")
    server.sql("DROP TABLE IF EXISTS whole; CREATE TABLE whole AS SELECT name, n, touched, f FROM one;"
               "ALTER TABLE whole REPLICA IDENTITY FULL;"
               "DROP PUBLICATION IF EXISTS durability; CREATE PUBLICATION durability FOR TABLE caps, whole")
    subscriber.sql("DROP TABLE IF EXISTS caps, whole;"
                   "CREATE TABLE caps (name text PRIMARY KEY, n integer, touched integer, f bloomfilter);"
                   "CREATE TABLE whole (name text, n integer, touched integer, f bloomfilter);")
    with watched(f"{label}, initial copy"):
        subscriber.sql(f"CREATE SUBSCRIPTION durability CONNECTION '{server.conninfo()}' PUBLICATION durability "
                       f"WITH (binary = {str(binary).lower()})")
        subscriber.poll("SELECT count(*) FILTER (WHERE srsubstate = 'r') = 2 FROM pg_subscription_rel", seconds=600)
        caught_up()
    ok(digests() == digests(on=subscriber), f"{label}, initial copy: the same SHA-256")
    change("INSERT", "INSERT INTO caps SELECT name || ' again', n, 0, f FROM caps WHERE name IN ('dense', 'sparse')")
    change("UPDATE of another column", "UPDATE caps SET touched = touched + 1 WHERE name = 'dense again'")
    change("UPDATE of the filter", "UPDATE caps SET f = bloom_add(f, -1::bigint) WHERE name LIKE '% again'")
    change("DELETE", "DELETE FROM caps WHERE name LIKE '% again'")
    update = "UPDATE whole SET f = bloom_add(f, -1::bigint)"
    if not binary:
        # Old and new filter in one message, which in text has more than 1 GB. In binary form it passes.
        server.sql(update)
        wait_for(lambda: any("Cannot enlarge string buffer" in line for line in server.log()))
        ok(True, f"{label}, REPLICA IDENTITY FULL, UPDATE of the filter: an error in the log, replication stops")
        subscriber.sql("ALTER SUBSCRIPTION durability SET (binary = true)")
        update = "SELECT 1"
    change("REPLICA IDENTITY FULL, UPDATE of the filter, in binary", update)
    change("REPLICA IDENTITY FULL, DELETE", "DELETE FROM whole")
    same(lost(DATABASE, 1000, subscriber), "", f"{label}: no element is lost")
    subscriber.sql("DROP SUBSCRIPTION durability")


def run():
    server.init(wal_level="logical", wal_sender_timeout="0").start()
    setup()
    parts = {"dump": dumps_and_restores, "limits": limits, "text": lambda: replicated(False),
             "binary": lambda: replicated(True)}
    for part in sys.argv[1:] or parts:
        parts[part]()
    for running in Server.running.copy():
        running.stop()


main(run)
