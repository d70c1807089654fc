#!/usr/bin/python3
"""Counters against filters of the same elements, and the cost of keeping one current.

Connects as psql does, to a database with bloomtype in it. ROWS sets the number of
rows, 10 million by default.
"""
from measure import Session, compare, heading, report, rows

ROWS = rows()
LEADER_ONLY = ("max_parallel_workers_per_gather = 0", "jit = off")


def make_tables(session):
    session.ask("SET client_min_messages = warning")
    session.ask("DROP TABLE IF EXISTS bench_rows, bench_stored, bench_keys, bench_orders, bench_counter")
    session.ask("CREATE UNLOGGED TABLE bench_rows AS SELECT i AS x, i %% 100000 AS y "
                "FROM generate_series(1, %d::bigint) AS i" % ROWS)
    session.ask("CREATE UNLOGGED TABLE bench_stored (n bigint, f bloomfilter, c bloomcounter)")
    for n in sizes():
        session.ask("INSERT INTO bench_stored SELECT {0}, bloom_agg(x, {0}), bloom_counter_agg(x, {0}) "
                    "FROM bench_rows WHERE x <= {0}".format(n))
    session.ask("CREATE UNLOGGED TABLE bench_keys AS SELECT i * 7919 %% %d + 1 AS k "
                "FROM generate_series(1, 2000000::bigint) AS i" % ROWS)
    for table in ("bench_rows", "bench_keys"):
        session.ask("VACUUM ANALYZE " + table)
    session.ask("CHECKPOINT")


def sizes():
    return [n for n in (100000, 1000000, 10000000) if n <= ROWS]


def building(session):
    compare("bloom_counter_agg(x, %d) : bloom_agg(x, %d)" % (ROWS, ROWS),
            "SELECT bloom_agg(x, %d) IS NULL FROM bench_rows" % ROWS,
            "SELECT bloom_counter_agg(x, %d) IS NULL FROM bench_rows" % ROWS, 1.8, session=session, repeats=7)
    compare("the same, 100,000 distinct", "SELECT bloom_agg(y, 100000) IS NULL FROM bench_rows",
            "SELECT bloom_counter_agg(y, 100000) IS NULL FROM bench_rows", 1.3, session=session, repeats=7)


def probing(session):
    """Each statement copies the value once: 12 MB of a filter and 49 MB of a counter for 10 million elements."""
    for n in sizes():
        for which, key in ("present", "k %% %d + 1" % n), ("absent", "k + %d" % ROWS):
            ask = "SELECT count(*) FROM bench_stored, bench_keys WHERE n = %d AND {} @> (%s)" % (n, key)
            compare("stored counter of %d @> %s key : filter" % (n, which), ask.format("f"), ask.format("c"), 1.3,
                    session=session, repeats=9)
        one = ("DO $$ BEGIN FOR i IN 1 .. 1000 LOOP PERFORM {} @> i FROM bench_stored WHERE n = %d; COMMIT; "
               "END LOOP; END $$" % n)
        compare("1,000 transactions with one key, stored counter of %d : filter" % n, one.format("f"), one.format("c"),
                1.3, session=session, repeats=9)
    counts = "SELECT sum(%s) FROM bench_stored, bench_keys WHERE n = 100000"
    compare("bloom_count(c, key) : (f @> key)::int, 100000", counts % "(f @> k)::int", counts % "bloom_count(c, k)", 1.3,
            session=session, repeats=9)


def upkeep(session):
    """A statement that inserts 10,000 rows, without and with a trigger that adds them to a counter."""
    session.ask("""
        CREATE TABLE bench_orders (id bigserial PRIMARY KEY, customer bigint NOT NULL, placed timestamptz DEFAULT now());
        CREATE TABLE bench_counter AS SELECT bloom_counter_agg(i, 100000) AS c FROM generate_series(0, 99999) AS i;
        CREATE OR REPLACE FUNCTION bench_count() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            UPDATE bench_counter SET c = c + (SELECT bloom_counter_agg(customer, 100000) FROM added);
            RETURN NULL;
        END $$;
        CREATE TRIGGER bench_count AFTER INSERT ON bench_orders REFERENCING NEW TABLE AS added
            FOR EACH STATEMENT EXECUTE FUNCTION bench_count()""")
    insert = "INSERT INTO bench_orders (customer) SELECT i %% 100000 FROM generate_series(%d, %d) AS i"
    base, work = [], []
    for run in range(26):
        for times, state in ((base, "DISABLE"), (work, "ENABLE")):
            session.ask("ALTER TABLE bench_orders %s TRIGGER bench_count" % state)
            times.append(session.seconds(insert % (run * 10000, run * 10000 + 9999)))
    base, work = base[1:], work[1:]
    report("INSERT of 10,000 rows, trigger with a counter of 100,000 : none", base, work,
           [w / b for b, w in zip(base, work)], "<= 1.5", lambda ratio: ratio <= 1.5)


def main():
    session = Session(*LEADER_ONLY)
    make_tables(session)
    heading()
    building(session)
    probing(session)
    upkeep(session)
    session.ask("DROP TABLE bench_rows, bench_stored, bench_keys, bench_orders, bench_counter; DROP FUNCTION bench_count")


main()
