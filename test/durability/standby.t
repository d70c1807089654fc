#!/usr/bin/python3 -B
"""A streaming standby: the same filters and counters, queries in parallel plans while the primary writes, promotion.

    test/durability/standby.t       PG_CONFIG names the PostgreSQL that has the extension
"""

import os
import subprocess

from durable import DATABASE, Server, main, manifest, own_directory, setup, verify
from session import CHEAP_WORKERS, psycopg
from tap import note, ok, same

SECONDS = int(os.environ.get("STANDBY_SECONDS", "10"))
directory = own_directory()
primary = Server(directory, "primary")
standby = Server(directory, "standby")

PARALLEL = CHEAP_WORKERS + "SET max_parallel_workers_per_gather = 2;"
SERIAL = "SET max_parallel_workers_per_gather = 0;"

# Names and queries. The result must be the same on both servers, in parallel and serial plans.
QUERIES = [
    ("probing a constant filter",
     "SELECT count(*) FROM numbers WHERE constant_numbers() @> i AND i BETWEEN 1 AND 2000"),
    ("probing a stored filter",
     "SELECT count(*) FILTER (WHERE f @> (i::bigint * 1000003)) FROM numbers, (SELECT f FROM filters "
     "WHERE storage = 'external' AND type = 'bigint' AND n = 320000 ORDER BY id LIMIT 1 OFFSET 0) AS s"),
    ("probing many stored filters for one element",
     "SELECT count(*) FROM filters WHERE type = 'bigint' AND f @> 1000003::bigint * 7"),
    ("bloom_agg over a table", "SELECT sha256(bloom_agg(i)::bytea) FROM numbers"),
    ("bloom_union_agg over stored filters",
     "SELECT string_agg(sha256(u::bytea)::text, ' ' ORDER BY type) FROM "
     "(SELECT type, bloom_union_agg(f) AS u FROM filters WHERE how = 'union' GROUP BY type) AS v"),
    ("probing a stored counter",
     "SELECT count(*) FILTER (WHERE c @> (i::bigint * 1000003)), sum(bloom_count(c, i::bigint * 1000003)) "
     "FROM numbers, (SELECT c FROM counters WHERE storage = 'external' AND type = 'bigint' AND n = 60000 "
     "AND (bloom_info(c)).representation = 'dense' ORDER BY id LIMIT 1 OFFSET 0) AS s"),
    ("bloom_counter_agg over a table", "SELECT sha256(bloom_counter_agg(i)::bytea) FROM numbers"),
    ("bloom_sum_agg over stored counters",
     "SELECT string_agg(sha256(s::bytea)::text, ' ' ORDER BY type) FROM "
     "(SELECT type, bloom_sum_agg(c) AS s FROM counters WHERE how = 'sum' GROUP BY type) AS v"),
    ("a hash join on filters", "SELECT count(*) FROM filters a JOIN in_domain b ON a.f = b.f"),
    ("cardinality of every filter", "SELECT count(# f), sum(# f) FILTER (WHERE # f < 1e9)::numeric(30, 3) "
     "FROM (SELECT f FROM filters ORDER BY id OFFSET 0) AS s"),
]


def caught_up():
    lsn = primary.value("SELECT pg_current_wal_insert_lsn()")
    standby.poll(f"SELECT pg_last_wal_replay_lsn() >= '{lsn}'")


def query_both():
    for name, query in QUERIES:
        with standby.connect(PARALLEL) as session:
            plan = session.explain(query, ", ANALYZE, TIMING OFF")
        want = primary.value(f"{SERIAL} {query}")
        got = [standby.value(f"{setting} {query}") for setting in (PARALLEL, SERIAL)]
        same(got, [want, want], f"standby: {name}, in parallel and not")
        if "a hash join" not in name and "every filter" not in name:
            launched = [node["Workers Launched"] for node in plan if "Workers Launched" in node]
            ok(launched and all(launched), "with workers", plan)


def query_while_written():
    """Rows that are replaced all the time hold a filter, a counter and their digest, which must always agree on the
    standby. The counter holds the last ten versions."""
    primary.sql("""
        CREATE TABLE live (id integer PRIMARY KEY, version integer, f bloomfilter, c bloomcounter, digest bytea);
        CREATE INDEX ON live USING hash (f);
        CREATE INDEX ON live USING hash (c);
        INSERT INTO live SELECT id, 0, f, c, sha256(f::bytea || c::bytea) FROM generate_series(1, 40) AS id,
            LATERAL (SELECT bloom_create(id * 100), (SELECT bloom_counter_agg(-i, id * 100)
                     FROM generate_series(0, id * 50 + 9) AS i)) AS v (f, c);
    """)
    script = os.path.join(directory, "write.sql")
    with open(script, "w") as file:
        file.write("""
            \\set id random(1, 40)
            UPDATE live SET version = version + 1, f = new, c = next, digest = sha256(new::bytea || next::bytea)
            FROM (SELECT bloom_agg(version + i, f) AS new, bloom_remove(bloom_add(c, version + 1), version - 9) AS next
                  FROM live, generate_series(1, 30) AS i WHERE id = :id GROUP BY id) AS v WHERE id = :id;
        """)
    caught_up()
    environment = {**os.environ, "PGHOST": primary.home, "PGPORT": "5432", "PGUSER": "postgres"}
    writer = subprocess.Popen([os.path.join(primary.bin, "pgbench"), "-n", "-T", str(SECONDS), "-f", script,
                               DATABASE], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    looks = seen = wrong = conflicts = 0
    versions = set()
    while writer.poll() is None:
        try:
            rows, bad, version = standby.sql(f"""{PARALLEL}
                SELECT count(*), count(*) FILTER (WHERE sha256(f::bytea || c::bytea) <> digest
                        OR version > 0 AND NOT f @> version OR NOT c @> version OR NOT c @> (version - 9)),
                    sum(version)
                FROM live""")[0]
        except psycopg.Error as error:
            # Any query on a standby must expect this.
            assert "conflict with recovery" in str(error), error
            conflicts += 1
            continue
        looks, seen, wrong = looks + 1, seen + int(rows), wrong + int(bad) + (rows != "40")
        versions.add(version)
    said = writer.communicate()[0]
    same(writer.returncode, 0, "the primary writes all the time")
    note(next((line for line in said.split("\n") if "transactions actually processed" in line), said))
    ok(wrong == 0 and len(versions) > 1,
       f"standby: of {seen} filters and counters seen in {looks} queries meanwhile, each is whole, and has its last "
       "elements",
       f"wrong: {wrong}", versions)
    note(f"{len(versions)} states seen, {conflicts} queries cancelled by a conflict with recovery")


def run():
    primary.init(wal_level="replica", hot_standby="on").start()
    primary.run("pg_basebackup", "--pgdata", standby.data, "--write-recovery-conf", "--no-sync",
                "--checkpoint=fast", "--dbname", primary.conninfo(""))
    standby.configure(unix_socket_directories=f"'{standby.home}'", max_standby_streaming_delay="10min")
    standby.start()
    setup(primary)
    primary.sql("""DO $$ BEGIN
        EXECUTE format('CREATE FUNCTION constant_numbers() RETURNS bloomfilter IMMUTABLE PARALLEL SAFE
                        RETURN %L::bloomfilter', (SELECT bloom_agg(i) FROM generate_series(1, 2000) AS i));
        END $$""")
    caught_up()
    want, _ = manifest(primary)
    same(standby.value("SELECT pg_is_in_recovery()"), "t", "the standby is one")
    verify(standby, want, "standby", writable=False)
    query_both()
    query_while_written()
    caught_up()
    live = "SELECT id, version, f, c, sha256(f::bytea || c::bytea) = digest FROM live ORDER BY id"
    same(standby.sql(live), primary.sql(live), "standby: in the end it has the same rows as the primary")

    primary.stop("immediate")
    standby.run("pg_ctl", "promote", "--wait", "--silent", "--pgdata", standby.data)
    same(standby.value("SELECT pg_is_in_recovery()"), "f", "promoted")
    verify(standby, want, "promoted")
    standby.sql("""
        UPDATE live SET version = version + 1, f = bloom_add(f, version + 1), c = bloom_add(c, version + 1),
            digest = sha256(bloom_add(f, version + 1)::bytea || bloom_add(c, version + 1)::bytea);
        UPDATE filters SET f = bloom_add(f, NULL::text);
    """, "VACUUM FULL filters")
    same(standby.value("SELECT count(*) FROM live WHERE f @> version AND c @> version "
                       "AND digest = sha256(f::bytea || c::bytea)"), "40", "promoted: goes on writing")
    verify(standby, want, "promoted, updated, VACUUM FULL")
    standby.stop()


main(run)
