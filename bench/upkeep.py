#!/usr/bin/python3
"""Keeping a stored filter current: time and WAL of the forms in doc/keeping-current.md.

Connects as psql does, to a database with bloomtype in it, and runs pgbench.  The
server should write no full-page images, or the WAL of a form depends on when the
last checkpoint was.  Each measurement begins with filters that are half full and
just written, and adds too few keys to fill them.
"""
from measure import Session, pgbench, report_transactions, transactions_heading

SIZES = {"2.4 kB": 2000, "12 kB": 10000, "121 kB": 100000, "1.2 MB": 1000000}
WHOLE = SIZES["1.2 MB"]
SHARDS = 64
PAIRS = 5
QUIET = "WITH (autovacuum_enabled = off, toast.autovacuum_enabled = off)"

SETUP = """
SET client_min_messages = warning;
DROP TABLE IF EXISTS given, given_shards, {tables} CASCADE;
CREATE TABLE given AS SELECT n, (SELECT bloom_agg(-i, n) FROM generate_series(1, n / 2) AS i) AS f
  FROM unnest('{{{sizes}}}'::int[]) AS n;
CREATE TABLE given_shards AS SELECT hashint8extended(-i, 0) & {shards} - 1 AS shard,
  bloom_agg(-i, {whole} / {shards}) AS f FROM generate_series(1, {whole}::bigint / 2) AS i GROUP BY 1;
CREATE TABLE filters (n int PRIMARY KEY, f bloomfilter) {quiet};
CREATE TABLE filters_suppressed (n int PRIMARY KEY, f bloomfilter) {quiet};
CREATE TRIGGER suppress BEFORE UPDATE ON filters_suppressed
  FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
CREATE TABLE shards (shard int PRIMARY KEY, f bloomfilter) {quiet};
CREATE TABLE new_keys (key bigint PRIMARY KEY) {quiet};
CREATE TABLE waiting_keys (key bigint PRIMARY KEY) {quiet};
INSERT INTO waiting_keys SELECT -i FROM generate_series(1, 10000) AS i;
ANALYZE waiting_keys;
CREATE TABLE keys_plain (key bigint);
CREATE TABLE keys_statement (key bigint);
CREATE TABLE keys_row (key bigint);
CREATE OR REPLACE FUNCTION keep_by_statement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE filters SET f = (SELECT bloom_agg(key, filters.f) FROM new_rows)
  WHERE n = 100000 AND EXISTS (SELECT FROM new_rows);
  RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION keep_by_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE filters SET f = bloom_add(f, NEW.key) WHERE n = 100000;
  RETURN NULL;
END $$;
CREATE TRIGGER keep AFTER INSERT ON keys_statement REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION keep_by_statement();
CREATE TRIGGER keep AFTER INSERT ON keys_row FOR EACH ROW EXECUTE FUNCTION keep_by_row();
CHECKPOINT
"""

TABLES = "filters, filters_suppressed, shards, new_keys, waiting_keys, keys_plain, keys_statement, keys_row"
SETUP = SETUP.format(quiet=QUIET, sizes=",".join(map(str, SIZES.values())), whole=WHOLE, shards=SHARDS, tables=TABLES)
RESET = """
TRUNCATE filters, filters_suppressed, shards, new_keys, keys_plain, keys_statement, keys_row;
INSERT INTO filters SELECT * FROM given;
INSERT INTO filters_suppressed SELECT * FROM given;
INSERT INTO shards SELECT * FROM given_shards
"""

# Transactions of pgbench. Every filter holds the key of the first kind, none that of the second.
PRESENT = "\\set key -random(1, %d)\n" % (min(SIZES.values()) // 2)
NEW = "\\set key random(1, 1099511627776)\n"
KEY = ":key::bigint"
SHARD = "hashint8extended(%s, 0) & %d" % (KEY, SHARDS - 1)
INSERT = "INSERT INTO new_keys VALUES (:key) ON CONFLICT DO NOTHING;\n"
ROWS = "INSERT INTO %s SELECT :key::bigint + i FROM generate_series(1, %d) AS i;\n"
MERGE = ("WITH moved AS (DELETE FROM new_keys RETURNING key) UPDATE filters "
         "SET f = (SELECT bloom_agg(key, filters.f) FROM moved) WHERE n = %d AND EXISTS (SELECT FROM moved);\n" % WHOLE)


def update(value, n=WHOLE, table="filters", condition=""):
    return "UPDATE %s SET f = %s WHERE n = %d%s;\n" % (table, value, n, condition)


def add(**how):
    return update("bloom_add(f, %s)" % KEY, **how)


def guarded(**how):
    return add(condition=" AND NOT f @> " + KEY, **how)


def run(session, script, transactions, clients):
    session.ask(RESET)
    return pgbench(session, script, transactions, clients)


def compare(session, name, base, work, transactions, goal=None, clients=1):
    """Runs both by turns and shows the ratio of their times, and the WAL of one transaction."""
    pairs = [[run(session, script, number, clients) for script, number in zip((base, work), transactions)]
             for _ in range(PAIRS)]  # fmt: skip
    report_transactions(name, pairs, goal)


def present_keys(session):
    for clients in 1, 4:
        compare(session, "bloom_add : guarded UPDATE, key is there, 1.2 MB, %d clients" % clients,
                PRESENT + guarded(), PRESENT + add(), (40000, 40000), 1.5, clients)  # fmt: skip
    for name, value in ("bloom_agg(key, f)", "(SELECT bloom_agg(key, f) FROM (VALUES (%s)) AS v (key))" % KEY), \
                       ("f | filter of the key", "f | bloom_add(bloom_create(%d), %s)" % (WHOLE, KEY)):
        compare(session, "%s : guarded UPDATE, key is there, 1.2 MB" % name, PRESENT + guarded(),
                PRESENT + update(value), (4000, 400))  # fmt: skip
    compare(session, "bloom_add, suppress_redundant_updates_trigger : guarded UPDATE", PRESENT + guarded(),
            PRESENT + add(table="filters_suppressed"), (40000, 40000))  # fmt: skip


def new_keys(session):
    for (size, n), number in zip(SIZES.items(), (1000, 1000, 500, 100)):
        compare(session, "bloom_add of a new key, %s : INSERT of the key" % size, NEW + INSERT, NEW + add(n=n),
                (4000, number))  # fmt: skip
    compare(session, "guarded UPDATE : bloom_add, new key, 1.2 MB", NEW + add(), NEW + guarded(), (100, 100))
    shard = NEW + "UPDATE shards SET f = bloom_add(f, %s) WHERE shard = %s;\n" % (KEY, SHARD)
    for clients in 1, 4:
        compare(session, "one of %d shards : one filter of 1.2 MB, new key, %d clients" % (SHARDS, clients),
                NEW + add(), shard, (100, 2000), clients=clients)  # fmt: skip
    compare(session, "10,000 keys merged from a side table : bloom_add of one, 1.2 MB", NEW + add(),
            NEW + ROWS % ("new_keys", 10000) + MERGE, (100, 20))  # fmt: skip


def triggers(session):
    for number in 1000, 10000:
        compare(session, "INSERT of %d rows, trigger of the statement : none, 121 kB" % number,
                NEW + ROWS % ("keys_plain", number), NEW + ROWS % ("keys_statement", number),
                (40000 // number, 40000 // number))  # fmt: skip
        compare(session, "INSERT of %d rows, trigger of each row : of the statement" % number,
                NEW + ROWS % ("keys_statement", number), NEW + ROWS % ("keys_row", number), (40000 // number, 1))


def probes(session):
    whole = "SELECT f @> %s FROM filters WHERE n = %d" % (KEY, WHOLE)
    compare(session, "probe of one of %d shards : of one filter of 1.2 MB" % SHARDS, NEW + whole + ";\n",
            NEW + "SELECT f @> %s FROM shards WHERE shard = %s;\n" % (KEY, SHARD), (4000, 4000))  # fmt: skip
    compare(session, "probe of filter and side table of 10,000 keys : of the filter", NEW + whole + ";\n",
            NEW + whole.replace("FROM", "OR EXISTS (SELECT FROM waiting_keys WHERE key = %s) FROM" % KEY) + ";\n",
            (4000, 4000))  # fmt: skip


def bloat(session):
    """The size of a table with one filter of 1.2 MB after 200 updates, by the frequency of VACUUM."""
    for name, every in ("never", 201), ("after each 50", 50), ("after each 10", 10), ("after each", 1):
        session.ask("CREATE TABLE bloated %s AS SELECT * FROM given WHERE n = %d" % (QUIET, WHOLE))
        for i in range(1, 201):
            session.ask("UPDATE bloated SET f = bloom_add(f, %d::bigint)" % (2**41 + i))
            if i % every == 0:
                session.ask("VACUUM bloated")
        print("a table after 200 updates of 1.2 MB, vacuumed %-14s %s" % (
            name, session.ask("SELECT pg_size_pretty(pg_table_size('bloated'))")[0]), flush=True)
        session.ask("DROP TABLE bloated")


def main():
    session = Session()
    session.ask(SETUP)
    transactions_heading()
    for part in present_keys, new_keys, triggers, probes, bloat:
        part(session)
    session.ask("DROP TABLE given, given_shards, %s CASCADE" % TABLES)


main()
