#!/usr/bin/python3 -B
"""Crash recovery: the postmaster and all its children killed with SIGKILL under load, again and again.

    ROUNDS=20 test/durability/crash.t       PG_CONFIG names the PostgreSQL that has the extension

Several clients of pgbench make, change and delete filters and counters. In the same transaction they note the
SHA-256 of both in a plain column; which transactions were committed is known from pgbench's own log. After recovery
exactly those are there (or one more of each client, whose answer was lost with the server), each filter and counter
has the noted SHA-256 and all its elements, can be found by the hash index, and verify_heapam() (where the server has
amcheck) finds nothing amiss. In every other round the server is killed a second time, while it recovers.

fsync is off because the operating system, whose cache has all that was written, goes on. full_page_writes is on
because SIGKILL may tear a page.
"""

import os
import random
import subprocess
import time

from durable import DATABASE, Server, main, own_directory
from tap import note, ok, same

ROUNDS = int(os.environ.get("ROUNDS", "20"))
CLIENTS = 4
KEPT = 50  # rows of a client and round that are not deleted again
LATEST = 8  # elements of a client and round that are not removed from its counter again
directory = own_directory()
server = Server(directory, "server")
committed = {}  # (round, client): number of the last transaction

# One filter and one counter of each client that every transaction changes: sparse, 10 kB, 120 kB, 1 MB. And many that
# come, are updated without a change of the filter and the counter, and go.
SCHEMA = """
CREATE EXTENSION bloomtype;
CREATE TABLE kept (client integer PRIMARY KEY, round integer, n integer, f bloomfilter, c bloomcounter, digest bytea);
INSERT INTO kept SELECT client, 0, 0, f, c, sha256(f::bytea || c::bytea) FROM (VALUES
    (0, bloom_create(1000000), bloom_create_counter(200000, 0.01, 16)),
    (1, (SELECT bloom_agg(-i, 8000) FROM generate_series(1, 8000) AS i),
        (SELECT bloom_counter_agg(-i, 2000) FROM generate_series(1, 8000) AS i)),
    (2, (SELECT bloom_agg(-i, e) FROM generate_series(1, 20000) AS i, bloom_create(100000, 0.01, 'classic') AS e),
        (SELECT bloom_counter_agg(-i, e)
         FROM generate_series(1, 20000) AS i, bloom_create_counter(12000, 0.01, 8, 'classic') AS e)),
    (3, (SELECT bloom_agg(-i, 800000) FROM generate_series(1, 200000) AS i),
        (SELECT bloom_counter_agg(-i, 200000) FROM generate_series(1, 200000) AS i))) AS v (client, f, c);
CREATE TABLE made (round integer, client integer, n integer, touched integer DEFAULT 0, first bigint, size integer,
    f bloomfilter, c bloomcounter, digest bytea, PRIMARY KEY (round, client, n));
CREATE INDEX made_f ON made USING hash (f);
CREATE INDEX made_c ON made USING hash (c);
"""

LOAD = f"""
\\set n :n + 1
\\set size random_exponential(1, 20000, 4)
\\set room random_exponential(1, 60000, 6)
\\set first :client_id * 1000000000 + :n * 100000
BEGIN;
INSERT INTO made (round, client, n, first, size, f, c, digest)
    SELECT :round, :client_id, :n, :first, :size, f, c, sha256(f::bytea || c::bytea)
    FROM (SELECT bloom_agg(i, :room::bigint) AS f, bloom_counter_agg(i, :room::bigint) AS c
          FROM generate_series(:first::bigint, :first + :size - 1) AS i) AS v;
UPDATE kept SET round = :round, n = :n, f = new, c = next, digest = sha256(new::bytea || next::bytea)
    FROM (SELECT bloom_add(f, :round * 1000000 + :n) AS new,
              CASE WHEN :n > {LATEST} THEN bloom_remove(added, :round * 1000000 + :n - {LATEST}, 2)
              ELSE added END AS next
          FROM kept, LATERAL (SELECT bloom_add(c, :round * 1000000 + :n, 2) OFFSET 0) AS a (added)
          WHERE client = :client_id) AS v
    WHERE client = :client_id;
UPDATE made SET touched = touched + 1 WHERE round = :round AND client = :client_id AND n = :n - 10;
DELETE FROM made WHERE round = :round AND client = :client_id AND n = :n - {KEPT};
COMMIT;
"""


def load(number):
    """Starts the clients, kills the server when all of them have committed something, and notes what they committed."""
    home = os.path.join(directory, f"round{number}")
    os.mkdir(home)
    script = os.path.join(home, "load.sql")
    with open(script, "w") as file:
        file.write(LOAD)
    clients = subprocess.Popen(
        [os.path.join(server.bin, "pgbench"), "-n", "-c", str(CLIENTS), "-T", "3600", "-l", "-f", script,
         "-D", "n=0", "-D", f"round={number}", DATABASE],
        env={**os.environ, "PGHOST": server.home, "PGPORT": "5432", "PGUSER": "postgres"}, cwd=home,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    server.poll(f"SELECT count(*) = {CLIENTS} FROM kept WHERE round = {number} AND n > 5")
    time.sleep(random.uniform(0, 3))
    victims = server.kill()
    clients.communicate()
    for client in range(CLIENTS):
        committed[number, client] = 0
    for name in os.listdir(home):
        if name.startswith("pgbench_log"):
            with open(os.path.join(home, name)) as log:
                for line in log:
                    committed[number, int(line.split()[0])] += 1
    return victims


def logged(what):
    return sum(what in line for line in server.log())


def kill_in_recovery():
    before = logged("redo starts")
    server.running.append(server)
    server.run("pg_ctl", "start", "--no-wait", "--silent", "--pgdata", server.data, "--log",
               os.path.join(server.home, "log"), stdout=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while logged("redo starts") == before and time.monotonic() < until:
        time.sleep(0.001)
    time.sleep(random.uniform(0, 0.05))
    server.kill()


def check(number, amcheck):
    """A list of the faults after recovery."""
    wrong = []
    for client in range(CLIENTS):
        answered = committed[number, client]
        found = int(server.value(f"SELECT n FROM kept WHERE client = {client} AND round = {number}"))
        if found not in (answered, answered + 1):
            wrong.append(f"client {client}: {answered} transactions were committed, {found} are there")
        committed[number, client] = found
    expected = ", ".join(f"({r}, {c}, {n})" for (r, c), n in committed.items())
    rows = server.sql(f"""
        WITH expected (round, client, last) AS (VALUES {expected}),
        rows AS (SELECT round, client, n, (n <= last - 10)::integer AS touched
                 FROM expected, generate_series(greatest(1, last - {KEPT} + 1), last) AS n)
        SELECT 'row', round, client, n, r.touched, m.touched
        FROM rows AS r FULL JOIN made AS m USING (round, client, n) WHERE r.touched IS DISTINCT FROM m.touched
        UNION ALL
        SELECT 'digest', round, client, n, NULL, NULL FROM made WHERE sha256(f::bytea || c::bytea) <> digest
        UNION ALL
        SELECT 'digest', round, client, n, NULL, NULL FROM kept WHERE sha256(f::bytea || c::bytea) <> digest
        UNION ALL
        SELECT 'element lost', round, client, n, count(*), NULL
        FROM made, LATERAL generate_series(first, first + size - 1) AS i WHERE NOT (f @> i AND c @> i) GROUP BY 2, 3, 4
        UNION ALL
        SELECT 'element lost', e.round, client, i, NULL, NULL
        FROM expected AS e JOIN kept USING (client), LATERAL generate_series(1, last) AS i
        WHERE NOT f @> (e.round * 1000000 + i)
        UNION ALL
        SELECT 'count lost', e.round, client, i, NULL, NULL
        FROM expected AS e JOIN kept USING (client),
            LATERAL generate_series(greatest(1, last - {LATEST} + 1), last) AS i
        WHERE bloom_count(c, e.round * 1000000 + i) < 2
        UNION ALL
        SELECT 'first element lost', client, i, NULL, NULL, NULL
        FROM kept, LATERAL generate_series(1, (ARRAY[0, 8000, 20000, 200000])[client + 1]) AS i WHERE NOT c @> -i
        UNION ALL
        SELECT 'first element lost', client, i, NULL, NULL, NULL
        FROM kept, LATERAL generate_series(1, (ARRAY[0, 8000, 20000, 200000])[client + 1]) AS i WHERE NOT f @> -i
        LIMIT 20""")
    wrong += ["\t".join(row) for row in rows]
    wrong += ["\t".join(row) for table in ("made", "kept") if amcheck for row in
              server.sql(f"SELECT '{table}', * FROM verify_heapam('{table}', check_toast => true) LIMIT 5")]
    return wrong + [fault for column in ("f", "c") for fault in lost_from_index(column)]


def lost_from_index(column):
    lookups = f"SELECT count(*) FROM made AS a WHERE NOT EXISTS (SELECT FROM made AS b WHERE b.{column} = a.{column} " \
        "AND (b.round, b.client, b.n) = (a.round, a.client, a.n))"
    setting = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; " \
        "SET enable_bitmapscan = off; ALTER TABLE made DROP CONSTRAINT made_pkey;"
    plan, missing = (server.sql(f"BEGIN; {setting} {query}; ROLLBACK") for query in (f"EXPLAIN {lookups}", lookups))
    if not any(f"made_{column}" in row[0] for row in plan):
        return [f"the hash index is not used: {plan}"]
    return [f"not found by the hash index: {missing}"] if missing != [["0"]] else []


def run():
    server.init(full_page_writes="on", shared_buffers="16MB", max_wal_size="64MB", min_wal_size="32MB",
                checkpoint_timeout="30s", checkpoint_completion_target="0.5").start()
    server.run("createdb", DATABASE)
    server.sql(SCHEMA)
    amcheck = server.value("SELECT count(*) FROM pg_available_extensions WHERE name = 'amcheck'") == "1"
    if amcheck:
        server.sql("CREATE EXTENSION amcheck")
    same(server.value("SELECT current_setting('fsync') || current_setting('full_page_writes') "
                      "|| current_setting('synchronous_commit')"), "offonon",
         "fsync is off, full_page_writes and synchronous_commit are on")
    for number in range(1, ROUNDS + 1):
        victims = load(number)
        if number % 2 == 0:
            kill_in_recovery()
        server.start()
        answered = sum(committed[number, client] for client in range(CLIENTS))
        wrong = check(number, amcheck)
        rows, size = server.sql("SELECT 2 * count(*), sum(length(f::bytea) + length(c::bytea)) / 1000000 FROM "
                                "(SELECT f, c FROM made UNION ALL SELECT f, c FROM kept) AS v")[0]
        ok(not wrong, f"round {number}: after {answered} transactions {victims} processes were killed"
           f"{' twice' if number % 2 == 0 else ''}; {rows} filters and counters ({size} MB) are right", *wrong)
    note(f"{sum(committed.values())} transactions in {ROUNDS} rounds")
    begun, redone = logged("automatic recovery in progress"), logged("redo done")
    ok(begun >= ROUNDS + ROUNDS // 2,
       f"the server began to recover {begun} times, and finished {redone} times")
    same(logged("PANIC") + logged("invalid page"), 0, "no PANIC in the log")
    server.stop()


main(run)
