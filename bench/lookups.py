#!/usr/bin/python3
"""Look-ups that bloomsets answer: the figures of doc/usernames.md, doc/deduplication.md and doc/trace-search.md.

Connects as psql does, as a superuser, to an empty database with bloomtype in it. Runs the SQL of the guides on larger
data, each against indexes or a scan. ROWS is the number of events; there are a tenth as many names and a quarter as
many spans. LOOKUPS names the parts to run, by their functions; by default all. The times are processor times of the backend, which other processes disturb less, except those of
postgres_fdw. The server should write no full-page images.
"""

import os

from measure import Session, heading, report, rows
import recipes

PAIRS = 5
SERIAL = "max_parallel_workers_per_gather = 0", "jit = off", "client_min_messages = warning"


def show(name, value):
    print("%-64s %s" % (name, value), flush=True)


def connect(schema, *settings):
    """A session in a schema of its own."""
    session = Session(*SERIAL, "search_path = %s, public" % schema, *settings)
    session.ask("CREATE SCHEMA IF NOT EXISTS " + schema)
    return session


class Statement:
    """A prepared statement with a number as its parameter."""

    def __init__(self, session, sql):
        self.session = session
        session.ask("DEALLOCATE ALL; PREPARE statement (bigint) AS " + sql)

    def seconds(self, keys, elapsed):
        clock = self.session.seconds if elapsed else self.session.cpu_seconds
        return clock("; ".join("EXECUTE statement(%d)" % key for key in keys))


def measure(name, base, work, keys, elapsed=False):
    """Runs both by turns, once for each of the keys, of which keys(turn) makes new ones; both are a session and a
    statement."""
    base, work = Statement(*base), Statement(*work)
    base.seconds(keys(0), elapsed), work.seconds(keys(0), elapsed)  # warm up
    pairs = [(base.seconds(keys(turn), elapsed), work.seconds(keys(turn), elapsed)) for turn in range(1, PAIRS + 1)]
    report("%s, %d times" % (name, len(keys(0))), *zip(*pairs), [w / b for b, w in pairs], "", None)


def sizes(session, **relations):
    for name, relation in relations.items():
        show("bytes of the " + name.replace("_", " "), session.ask("SELECT sum(%s)" % relation)[0])


def of_indexes(method, table):
    """The bytes of the indexes of an access method on the partitions of a table."""
    return ("(SELECT sum(pg_relation_size(i.oid)) FROM pg_class AS i JOIN pg_am AS a ON a.oid = i.relam "
            "JOIN pg_index ON indexrelid = i.oid JOIN pg_inherits ON inhrelid = indrelid "
            "WHERE amname = '%s' AND inhparent = '%s'::regclass)" % (method, table))  # fmt: skip


# Is this username taken?

FAR = """
CREATE EXTENSION IF NOT EXISTS postgres_fdw;
CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname '%s');
CREATE USER MAPPING FOR CURRENT_USER SERVER far;
CREATE FOREIGN TABLE far_accounts (key text) SERVER far OPTIONS (schema_name 'usernames', table_name 'accounts')
"""


def usernames():
    session, other = connect("usernames"), connect("usernames")
    n = rows() // 10
    session.ask(recipes.block("usernames.md", "CREATE TABLE accounts").split("INSERT")[0])
    session.ask("INSERT INTO accounts (name) SELECT 'user_' || i FROM generate_series(1, %d) AS i" % n)
    session.ask("CREATE TABLE plain (LIKE accounts INCLUDING ALL); INSERT INTO plain (name) SELECT name FROM accounts")
    session.each("DROP INDEX plain_key_idx", "REINDEX INDEX accounts_key_set", "VACUUM ANALYZE")
    sizes(session, set="pg_relation_size('accounts_key_set')", index="pg_relation_size('accounts_key_key')")
    session.ask(FAR % tuple(session.ask("SELECT split_part(current_setting('unix_socket_directories'), ',', 1)") +
                            session.ask("SELECT current_setting('port')") + session.ask("SELECT current_database()")))
    session.ask(recipes.block("usernames.md", "CREATE FUNCTION is_taken").replace(
        "FROM accounts", "FROM far_accounts").split("SELECT is_taken")[0])  # fmt: skip
    heading()
    for name, value in ("free", "'free' || $1::text"), ("taken", "'user_' || $1::text"):
        index = "EXISTS (SELECT FROM accounts WHERE key = (SELECT %s))" % value
        measure("a %s name, set and index : index" % name, (other, "SELECT " + index),
                (session, "SELECT CASE WHEN bloomset_contains('accounts', 'key', %s) THEN %s END" % (value, index)),
                lambda turn: range(1, 5001))  # fmt: skip
        measure("a %s name, postgres_fdw and filters : postgres_fdw" % name,
                (other, "SELECT " + index.replace("accounts", "far_accounts")),
                (session, "SELECT is_taken(%s)" % value), lambda turn: range(1, 501), elapsed=True)  # fmt: skip
    register = "INSERT INTO %s (name) VALUES ('new_' || $1::text)"
    measure("registration, set : none", (other, register % "plain"), (session, register % "accounts"),
            lambda turn: range(5000 * turn, 5000 * turn + 5000))  # fmt: skip
    session.ask("DROP SCHEMA usernames CASCADE")


# Seen before?

DAYS = 30
DAY = """
SELECT format('CREATE TABLE events_%s PARTITION OF events FOR VALUES FROM (%L) TO (%L)', i, day, day + 1)
FROM generate_series(1, {}) AS i, LATERAL (SELECT date '2026-01-01' + i AS day) AS d
"""
FILL = "INSERT INTO events SELECT md5(i::text)::uuid, '', date '2026-01-02' + i %% %d FROM generate_series(1, %d) AS i"
IDS = "ARRAY(SELECT md5(($1 + i)::text)::uuid FROM generate_series(1, %d) AS i)"
STORE = "INSERT INTO events (id, body) SELECT id, '' FROM {}".format
NEW = "bloomset_new('events', 'id', {}) AS new (id)".format
# Each id by itself.
PROBE = "unnest({}) AS new (id) WHERE (SELECT true FROM events AS e WHERE e.id = new.id LIMIT 1) IS NULL".format


def events(schema, n, days, with_set):
    """A session in a schema with the table of the guide, which has a partition for each day."""
    session = connect(schema)
    table, indexes = recipes.block("deduplication.md", "CREATE TABLE events").split("CREATE TABLE events_old")
    tree, of_set = indexes[indexes.index("CREATE INDEX"):].split("CREATE INDEX events_id_set")
    session.ask(table + tree)
    if with_set:
        session.ask("CREATE INDEX events_id_set" + of_set.replace("1100000", str(11 * n // days // 10)))
    session.each(*session.ask(DAY.format(days)), "CREATE TABLE events_today PARTITION OF events DEFAULT")
    session.each(FILL % (days, n), "VACUUM ANALYZE")
    return session


def deduplication():
    n = rows()
    without, session = events("without_set", n, DAYS, False), events("with_set", n, DAYS, True)
    sizes(session, sets=of_indexes("bloomset", "events"), B_trees=of_indexes("btree", "events"))
    heading()
    for kind, first in ("new", 2 * n), ("seen before", 0):
        for size, number in (1, 1000), (1000, 5):
            ids = IDS % size
            measure("%d events %s, with set : without" % (size, kind), (without, STORE(PROBE(ids))), (session, STORE(NEW(ids))),
                    lambda turn: [first + size * (number * turn + i) for i in range(number)])  # fmt: skip
    session.ask("DROP SCHEMA with_set, without_set CASCADE")


# Which of many ids are new, a tenth of them not, from all partitions?

YEAR = 365
STAGE = """
CREATE TABLE staging AS SELECT md5((CASE WHEN i % 10 = 0 THEN i * 7919 % {n} + 1 ELSE -i END)::text)::uuid AS id
FROM generate_series(1, {size}::bigint) AS i;
ANALYZE staging
"""
STAGED = "ARRAY(SELECT id FROM staging)"


def imports():
    n = rows()
    session = events("imports", n, YEAR, True)
    other = connect("imports")
    sizes(session, sets=of_indexes("bloomset", "events"), B_trees=of_indexes("btree", "events"))
    heading()
    not_exists = "SELECT count(*) FROM staging AS s WHERE NOT EXISTS (SELECT FROM events AS e WHERE e.id = s.id) AND $1 > 0"
    for size in 1000, 10000, 100000:
        session.ask("DROP TABLE IF EXISTS staging;" + STAGE.format(n=n, size=size))
        for name, work in ("bloomset_new", "SELECT count(*) FROM " + NEW(STAGED) + " WHERE $1 > 0"), (
                "each by B-trees", "SELECT count(*) FROM " + PROBE(STAGED) + " AND $1 > 0"):  # fmt: skip
            # the time of each is the same, and long
            if work.count("unnest") == 0 or size == 1000:
                measure("%d ids, %s : NOT EXISTS" % (size, name), (other, not_exists), (session, work), lambda turn: [turn + 1])
    session.ask("DROP SCHEMA imports CASCADE")


# Which segment holds this trace id?

SEGMENTS = 240
SPANS = """
SELECT format('CREATE TABLE %s_%s PARTITION OF %s FOR VALUES FROM (%L) TO (%L)', name, i, name, t, t + interval '1 hour')
FROM unnest('{{spans,indexed,paired,bare}}'::text[]) AS name, generate_series(0, {segments} - 1) AS i,
  LATERAL (SELECT timestamptz '2026-06-01' + i * interval '1 hour') AS h (t)
"""
LOAD = """
INSERT INTO spans SELECT timestamptz '2026-06-01' + i * interval '{segments} hours' / {n},
  md5((i / 4)::text)::uuid, 'service ' || i % 4 FROM generate_series(0, {n} - 1) AS i;
INSERT INTO indexed SELECT * FROM spans;
CREATE INDEX ON indexed (trace);
INSERT INTO paired SELECT * FROM spans;
CREATE INDEX ON paired (trace)
"""


def load_spans(session, n):
    guide = recipes.block("trace-search.md", "CREATE INDEX spans_trace_set").replace(
        "100000", str(max(n // 4 * 11 // 10 // SEGMENTS, 1)))  # fmt: skip
    session.ask(guide)
    session.ask("".join("CREATE TABLE %s (LIKE spans) PARTITION BY RANGE (received);" % name
                        for name in ("indexed", "paired", "bare")))  # fmt: skip
    session.ask(guide[guide.index("CREATE INDEX"):].replace("spans", "paired"))
    session.each(*session.ask(SPANS.format(segments=SEGMENTS)))
    session.each(LOAD.format(segments=SEGMENTS, n=n), "VACUUM ANALYZE")
    sizes(session, sets=of_indexes("bloomset", "spans"), B_trees=of_indexes("btree", "indexed"),
          spans="(SELECT sum(pg_relation_size(inhrelid)) FROM pg_inherits WHERE inhparent = 'spans'::regclass)")  # fmt: skip


def searches(session, n):
    def keys(turn):
        return [n // 4 * i // 50 + turn for i in range(50)]

    find = session, "SELECT * FROM bloomset_find(NULL::spans, 'trace', md5($1::text)::uuid)"
    both = connect("traces"), find[1].replace("spans", "paired")
    search = "SELECT * FROM %s WHERE trace = md5($1::text)::uuid"
    heading()
    scanning = connect("traces", "enable_bitmapscan = off")
    measure("set alone : scan of %d segments" % SEGMENTS, (scanning, search % "spans"), find, lambda turn: keys(turn)[:2])
    for mode in "custom", "generic":
        other = connect("traces", "plan_cache_mode = force_%s_plan" % mode)
        measure("set alone : query by B-trees, %s plan" % mode, (other, search % "indexed"), find, keys)
        measure("set and B-trees : query by B-trees, %s plan" % mode, (other, search % "indexed"), both, keys)
    measure("set and B-trees : set alone", find, both, keys)
    measure("set alone : query by the sets", (connect("traces", "plan_cache_mode = force_custom_plan"), search % "spans"),
            find, keys)  # fmt: skip


def traces():
    session = connect("traces")
    n = rows() // 4
    load_spans(session, n)
    partitions = "SELECT avg(c) FROM generate_series(1, 2000) AS i, LATERAL (" \
                 "SELECT count(*) AS c FROM bloomset_partitions('spans', 'trace', md5((i * %d)::text)::uuid)) AS v"
    show("segments that are read, trace absent, and present",
         ", ".join(session.ask(partitions % times)[0] for times in (-1, n // 8001)))  # fmt: skip
    searches(session, n)
    insert = ("INSERT INTO %s SELECT timestamptz '2026-06-11' - interval '1 s', md5(($1 + i / 4)::text)::uuid, 'late' "
              "FROM generate_series(1, 10000) AS i")  # fmt: skip
    for name, table in ("set", "spans"), ("B-tree", "indexed"), ("both", "paired"):
        measure("INSERT of 10000 spans, %s : none" % name, (connect("traces"), insert % "bare"), (session, insert % table),
                lambda turn: [(n + turn) * 100000 + 10000 * i for i in range(3)])  # fmt: skip
    session.ask("DROP SCHEMA traces CASCADE")


def main():
    wanted = os.environ.get("LOOKUPS", "").split()
    for part in usernames, deduplication, imports, traces:
        if wanted and part.__name__ not in wanted:
            continue
        print("\n" + part.__name__, flush=True)
        part()


main()
