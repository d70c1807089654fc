#!/usr/bin/python3
"""Counters against filters of the same elements, and the cost of keeping one current.

Connects as psql does, to a database with bloomtype in it. ROWS sets the number of
rows, 10 million by default.
"""
import statistics

from measure import Session, compare, heading, report, rows

ROWS = rows()
LEADER_ONLY = ("max_parallel_workers_per_gather = 0", "jit = off")


def make_tables(session):
    session.ask("SET client_min_messages = warning")
    session.ask("DROP TABLE IF EXISTS bench_rows, bench_stored, bench_keys, bench_counted, bench_counter")
    session.ask("CREATE UNLOGGED TABLE bench_rows AS SELECT i AS x, i %% 100000 AS y "
                "FROM generate_series(1, %d::bigint) AS i" % ROWS)
    session.ask("CREATE UNLOGGED TABLE bench_stored AS SELECT (SELECT bloom_agg(x, %d) FROM bench_rows) AS f, "
                "(SELECT bloom_counter_agg(x, %d) FROM bench_rows) AS c" % (ROWS, ROWS))
    session.ask("CREATE UNLOGGED TABLE bench_keys AS SELECT i * 16 AS present, %d + i AS absent "
                "FROM generate_series(1, 500000) AS i" % ROWS)
    for table in ("bench_rows", "bench_keys"):
        session.ask("VACUUM ANALYZE " + table)
    session.ask("CHECKPOINT")


def building(session):
    compare("bloom_counter_agg(x, %d) : bloom_agg(x, %d)" % (ROWS, ROWS),
            "SELECT bloom_agg(x, %d) IS NULL FROM bench_rows" % ROWS,
            "SELECT bloom_counter_agg(x, %d) IS NULL FROM bench_rows" % ROWS, 1.8, session=session, repeats=7)
    compare("the same, 100,000 distinct", "SELECT bloom_agg(y, 100000) IS NULL FROM bench_rows",
            "SELECT bloom_counter_agg(y, 100000) IS NULL FROM bench_rows", 1.3, session=session, repeats=7)


def probing(session):
    for which in ("present", "absent"):
        probe = "SELECT count(*) FROM bench_stored, bench_keys WHERE {} @> " + which
        compare("stored counter @> %s key : stored filter @> key" % which, probe.format("f"), probe.format("c"), 1.3,
                session=session, repeats=9)
        compare("stored bloom_count(c, %s key) : stored filter @> key" % which, probe.format("f"),
                "SELECT sum(bloom_count(c, %s)) FROM bench_stored, bench_keys" % which, 1.3, session=session, repeats=9)
    single = "SELECT {} @> %d FROM bench_stored"
    compare("1,000 statements with one key : stored filter", *[
        "DO $$ BEGIN FOR i IN 1 .. 1000 LOOP PERFORM %s @> i FROM bench_stored; COMMIT; END LOOP; END $$" % name
        for name in "fc"], 1.3, session=session, repeats=9)


def upkeep(session):
    """A statement that inserts 10,000 rows, with and without a trigger that adds them to a counter."""
    session.ask("""
        CREATE TABLE bench_counted (x bigint);
        CREATE TABLE bench_counter AS SELECT bloom_create_counter(100000) AS c;
        CREATE OR REPLACE FUNCTION bench_count() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            UPDATE bench_counter SET c = c + (SELECT bloom_counter_agg(x, 100000) FROM added);
            RETURN NULL;
        END $$;
        CREATE TRIGGER bench_count AFTER INSERT ON bench_counted REFERENCING NEW TABLE AS added
            FOR EACH STATEMENT EXECUTE FUNCTION bench_count()""")
    insert = "INSERT INTO bench_counted SELECT i %% 100000 FROM generate_series(%d, %d) AS i"
    start = 0
    for enabled in (True, False):  # warm up
        session.ask(insert % (0, 9999))
    session.ask("UPDATE bench_counter SET c = (SELECT bloom_counter_agg(x, 100000) FROM generate_series(0, 99999) AS x)")
    base, work = [], []
    for _ in range(25):
        for times, state in ((base, "DISABLE"), (work, "ENABLE")):
            session.ask("ALTER TABLE bench_counted %s TRIGGER bench_count" % state)
            times.append(session.seconds(insert % (start, start + 9999)))
            start += 10000
    report("INSERT of 10,000 rows, trigger with a counter of 100,000 : none", base, work,
           [w / b for b, w in zip(base, work)], "<= 1.5", lambda ratio: ratio <= 1.5)


def main():
    session = Session(*LEADER_ONLY)
    make_tables(session)
    heading()
    building(session)
    probing(session)
    upkeep(session)
    session.ask("DROP TABLE bench_rows, bench_stored, bench_keys, bench_counted, bench_counter;"
                "DROP FUNCTION bench_count")


main()
