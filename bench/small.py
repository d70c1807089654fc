#!/usr/bin/python3
"""Many small filters: looking at each, rolling up groups, and ANALYZE.

Connects as psql does, to a database with bloomtype in it.
"""
from measure import Session, compare, heading

SERIAL = "max_parallel_workers_per_gather = 0", "jit = off"


def make_tables(session):
    session.ask("SET client_min_messages = warning")
    session.ask("DROP TABLE IF EXISTS small_filters, small_bytes, small_sample, small_groups")
    session.ask("CREATE UNLOGGED TABLE small_filters AS SELECT g, (SELECT bloom_agg(i, 40) FROM generate_series(g, g + 39) AS i) AS f "
                "FROM generate_series(1, 100000) AS g")
    session.ask("CREATE UNLOGGED TABLE small_bytes AS SELECT g, f::bytea AS f FROM small_filters LIMIT 40000")
    session.ask("CREATE UNLOGGED TABLE small_sample AS SELECT * FROM small_filters LIMIT 40000")
    session.ask("CREATE UNLOGGED TABLE small_groups AS SELECT i % 300000 AS g, i AS x FROM generate_series(1, 3000000) AS i")
    for table in ("small_filters", "small_bytes", "small_sample", "small_groups"):
        session.ask("VACUUM ANALYZE " + table)


def main():
    session = Session(*SERIAL)
    make_tables(session)
    heading()
    look = "SELECT count(*) FROM small_filters WHERE f @> 5"
    compare("# f : f @> 5, 100,000 filters of 64 bytes", look, "SELECT sum(# f) FROM small_filters", 2, repeats=9)
    compare("bloom_fpp(f) : f @> 5", look, "SELECT sum(bloom_fpp(f)) FROM small_filters", 4, repeats=9)
    compare("bloom_info(f) : bloom_fpp(f), 2,000 of them",
            "SELECT sum(bloom_fpp(f)) FROM small_filters WHERE g <= 2000",
            "SELECT sum(capacity) FROM small_filters, bloom_info(f) WHERE g <= 2000", 3, repeats=9)
    for plan, settings in (("", SERIAL), (", both by sorting", SERIAL + ("enable_hashagg = off",)), (", in parallel", ("jit = off",))):
        compare("sum(# f) : sum of count(DISTINCT), 300,000 groups" + plan,
                "SELECT sum(n) FROM (SELECT count(DISTINCT x) AS n FROM small_groups GROUP BY g) AS v",
                "SELECT sum(# f) FROM (SELECT bloom_agg(x) AS f FROM small_groups GROUP BY g) AS v", 1, session=Session(*settings))
    for target in (100, 1000):
        compare("ANALYZE of 40,000 filters : of the same as bytea, target %d" % target, "ANALYZE small_bytes", "ANALYZE small_sample", 1,
                session=Session("default_statistics_target = %d" % target), repeats=9)
    session.ask("DROP TABLE small_filters, small_bytes, small_sample, small_groups")


main()
