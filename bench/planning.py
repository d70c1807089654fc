#!/usr/bin/python3
"""Planning a condition on 365 partitions: an operator, whose rows are estimated, against a function.

Connects as psql does, to a database with bloomtype in it.  The filter is a
parameter of EXECUTE in PL/pgSQL, which plans each time and throws the plan
away: PREPARE and EXECUTE would copy the plan with a filter for each partition.
"""
from measure import Session, heading, report

PARTITIONS = 365
PLANNINGS = 100

PLAN = """CREATE FUNCTION bench_plan(condition text, items bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    filter bloomfilter := (SELECT f::bytea::bloomfilter FROM bench_filters WHERE n = items);
BEGIN
    FOR i IN 1 .. %d LOOP
        EXECUTE 'SELECT FROM bench_days WHERE ' || condition || ' LIMIT 0' USING filter;
    END LOOP;
END
$$""" % PLANNINGS


def make_tables(session):
    session.ask("CREATE TABLE bench_days (day integer, customer bigint) PARTITION BY LIST (day)")
    for day in range(PARTITIONS):
        session.ask("CREATE TABLE bench_days_%d PARTITION OF bench_days FOR VALUES IN (%d)" % (day, day))
    session.ask("INSERT INTO bench_days SELECT i %% %d, i * 618033 %% 1000000 FROM generate_series(1, %d::bigint) AS i"
                % (PARTITIONS, PARTITIONS * 1000))
    session.ask("CREATE TABLE bench_filters AS SELECT n, (SELECT bloom_agg(i, n) FROM generate_series(1, n) AS i) AS f "
                "FROM unnest('{1000000,10000000}'::bigint[]) AS n")
    session.ask("ANALYZE bench_days, bench_filters")
    session.ask(PLAN)


def main():
    session = Session("max_parallel_workers_per_gather = 0", "jit = off")
    make_tables(session)
    heading()
    for name, items in ("1.2 MB", 1000000), ("12 MB", 10000000):
        def seconds(condition):
            return session.cpu_seconds("SELECT bench_plan('%s', %d)" % (condition, items)) / PLANNINGS

        pairs = [(seconds("bloom_contains($1, customer)"), seconds("$1 @> customer")) for _ in range(10)][1:]
        report("CPU time to plan $1 @> customer, %s : bloom_contains()" % name, *zip(*pairs),
               [work / base for base, work in pairs], "<= 2", lambda ratio: ratio <= 2)
    session.ask("DROP TABLE bench_days, bench_filters")
    session.ask("DROP FUNCTION bench_plan")


main()
