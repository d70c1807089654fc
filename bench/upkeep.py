#!/usr/bin/python3
"""Changing a stored filter: the time and WAL of an UPDATE, and what remains until VACUUM, as doc/keeping-current.md says.

Connects as psql does, to a database with bloomtype in it, and runs pgbench.  The
server should write no full-page images, or the WAL of a form depends on when the
last checkpoint was.  Each measurement begins with filters that are half full and
just written, and adds too few keys to fill them.
"""
from measure import Session, pgbench, report_transactions, transactions_heading

SIZES = {"2.4 kB": 2000, "12 kB": 10000, "122 kB": 100000, "1.2 MB": 1000000}
WHOLE = SIZES["1.2 MB"]
PAIRS = 5
QUIET = "WITH (autovacuum_enabled = off, toast.autovacuum_enabled = off)"

SETUP = """
SET client_min_messages = warning;
DROP TABLE IF EXISTS given, filters, new_keys;
CREATE TABLE given AS SELECT n, (SELECT bloom_agg(-i, n) FROM generate_series(1, n / 2) AS i) AS f
  FROM unnest('{{{sizes}}}'::int[]) AS n;
CREATE TABLE filters (n int PRIMARY KEY, f bloomfilter) {quiet};
CREATE TABLE new_keys (key bigint PRIMARY KEY) {quiet};
CHECKPOINT
""".format(quiet=QUIET, sizes=",".join(map(str, SIZES.values())))
RESET = "TRUNCATE filters, new_keys; INSERT INTO filters SELECT * FROM given"

# Transactions of pgbench. Every filter holds the key of the first kind, none that of the second.
PRESENT = "\\set key -random(1, %d)\n" % (min(SIZES.values()) // 2)
NEW = "\\set key random(1, 1099511627776)\n"
KEY = ":key::bigint"
INSERT = NEW + "INSERT INTO new_keys VALUES (:key) ON CONFLICT DO NOTHING;\n"


def update(value, n=WHOLE):
    return "UPDATE filters SET f = %s WHERE n = %d;\n" % (value, n)


def run(session, script, transactions):
    session.ask(RESET)
    return pgbench(session, script, transactions)


def compare(session, name, work, number):
    """Runs both by turns and shows the ratio of their times, and the WAL of one transaction."""
    report_transactions(name + " : INSERT of the key", [
        [run(session, INSERT, 4000), run(session, work, number)] for _ in range(PAIRS)])  # fmt: skip


def new_keys(session):
    for (size, n), number in zip(SIZES.items(), (1000, 1000, 500, 100)):
        compare(session, "bloom_add of a new key, %s" % size, NEW + update("bloom_add(f, %s)" % KEY, n), number)


def present_keys(session):
    for name, value, number in (
            ("bloom_add", "bloom_add(f, %s)" % KEY, 4000),
            ("f | filter of the key", "f | bloom_add(bloom_create(%d), %s)" % (WHOLE, KEY), 400),
            ("bloom_agg(key, f)", "(SELECT bloom_agg(key, f) FROM (VALUES (%s)) AS v (key))" % KEY, 400)):  # fmt: skip
        compare(session, "%s, key is there, 1.2 MB" % name, PRESENT + update(value), number)


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
    for part in new_keys, present_keys, bloat:
        part(session)
    session.ask("DROP TABLE given, filters, new_keys")


main()
