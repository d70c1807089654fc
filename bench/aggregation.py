#!/usr/bin/python3
"""Building filters, against reading the column or other aggregates of its kind.

Connects as psql does, to a database with bloomtype in it.  ROWS sets the
number of rows, 10 million by default; DISTINCT that of the memory test, 100
million.  Compares with hll where its extension is available.
"""
import os

from measure import Session, compare, heading, rows

ROWS = rows()


def make_tables(session):
    session.ask("SET client_min_messages = warning")
    session.ask("DROP TABLE IF EXISTS bench_rows, bench_texts, bench_filters")
    session.ask("CREATE UNLOGGED TABLE bench_rows AS SELECT i AS x, i %% 100000 AS y, i / 10 AS g "
                "FROM generate_series(1, %d::bigint) AS i" % ROWS)
    session.ask("CREATE UNLOGGED TABLE bench_texts AS SELECT md5(i::text) AS t FROM generate_series(1, %d) AS i" % ROWS)
    session.ask("CREATE UNLOGGED TABLE bench_filters AS SELECT s, "
                "(SELECT bloom_agg(s * 1000000 + i, 800000) FROM generate_series(1, 130000) AS i) AS f "
                "FROM generate_series(1, 1000) AS s")
    session.ask("ALTER TABLE bench_rows SET (parallel_workers = 2)")
    for table in ("bench_rows", "bench_texts", "bench_filters"):
        session.ask("VACUUM ANALYZE " + table)
    session.ask("CHECKPOINT")


def has_hll(session):
    if not session.ask("SELECT 1 FROM pg_available_extensions WHERE name = 'hll'"):
        return False
    session.ask("SET client_min_messages = warning; CREATE EXTENSION IF NOT EXISTS hll")
    return True


def peak_memory():
    distinct = int(os.environ.get("DISTINCT", 100000000))
    session = Session("max_parallel_workers_per_gather = 0", "jit = off")
    session.ask("SELECT bloom_agg(x) IS NULL FROM bench_rows WHERE x < 1000")
    before = session.memory()["RssAnon"]
    peak = session.memory()["VmHWM"] - session.memory()["VmRSS"]
    session.ask("SELECT bloom_agg(i) IS NULL FROM (SELECT g * 10 + i AS i FROM generate_series(1, 10) AS i, "
                "(SELECT s * 1000000 + r AS g FROM generate_series(0, %d) AS s, generate_series(1, 1000000) AS r) AS r) AS v"
                % max(distinct // 10000000 - 1, 0))
    after = session.memory()
    used = (after["VmHWM"] - after["VmRSS"] + after["RssAnon"] - before - max(peak, 0)) / 2**20
    print("%-64s %6.0f MiB over the backend's base        <= 512   %s" % (
        "peak memory of bloom_agg(x), %d million distinct" % (distinct // 1000000), used,
        "met" if used <= 512 else "MISSED"), flush=True)


def sizes():
    """The cost of sizing filters again and again."""
    groups = ("SELECT count(f) FROM (SELECT bloom_agg(x, {}, {}) AS f FROM "
              "(SELECT i AS x, i % 50000 AS g FROM generate_series(1, 100000) AS i) AS v GROUP BY g) AS f")
    session = Session("max_parallel_workers_per_gather = 0", "jit = off", "work_mem = '256MB'")
    one = groups.format("1000 + 0 * (g % 2)", "0.01 + 0 * (g % 2)")
    compare("50,000 groups with two n : with one n", one, groups.format("1000 + 500 * (g % 2)", "0.01 + 0 * (g % 2)"),
            1.3, session=session, repeats=9)
    compare("50,000 groups, each with another n : with one n", one, groups.format("1000 + g", "0.01 + 0 * (g % 2)"),
            1.3, session=session, repeats=9)
    compare("50,000 groups with two rates : with one rate", one, groups.format("1000 + 0 * (g % 2)", "0.01 + 0.01 * (g % 2)"),
            1.3, session=session, repeats=9)
    session.ask("CREATE TEMP TABLE bench_sizes AS SELECT (SELECT bloom_agg(i, bloom_create(40, 0.1 / (1 + g % 10), "
                "CASE g / 10 % 2 WHEN 0 THEN 'blocked' ELSE 'classic' END)) FROM generate_series(1, 40) AS i) AS f "
                "FROM generate_series(1, 2000) AS g")
    compare("bloom_info : bloom_fpp, 2,000 filters of 10 rates and both layouts", "SELECT sum(bloom_fpp(f)) FROM bench_sizes",
            "SELECT sum(capacity) FROM bench_sizes, bloom_info(f)", 3, session=session, repeats=9)


def main():
    session = Session("max_parallel_workers_per_gather = 0", "jit = off")
    make_tables(session)
    heading()
    compare("bloom_agg(x, %d) : count(x)" % ROWS, "SELECT count(x) FROM bench_rows",
            "SELECT bloom_agg(x, %d) IS NULL FROM bench_rows" % ROWS, 1.3)
    compare("bloom_agg(y, 100000) : count(y), 100,000 distinct", "SELECT count(y) FROM bench_rows",
            "SELECT bloom_agg(y, 100000) IS NULL FROM bench_rows", 1.25)
    compare("bloom_agg(x), self-sized, all distinct : count(x)", "SELECT count(x) FROM bench_rows",
            "SELECT bloom_agg(x) IS NULL FROM bench_rows", 2.0)
    compare("bloom_agg(text of 32 bytes, %d) : count(text)" % ROWS, "SELECT count(t) FROM bench_texts",
            "SELECT bloom_agg(t, %d) IS NULL FROM bench_texts" % ROWS, 1.6)
    if has_hll(session):
        compare("bloom_agg(y) : hll_add_agg(hll_hash_bigint(y))", "SELECT hll_add_agg(hll_hash_bigint(y)) IS NULL FROM bench_rows",
                "SELECT bloom_agg(y) IS NULL FROM bench_rows", 1.0)
    compare("serial : 2 workers, bloom_agg(x, %d)" % ROWS, "SELECT bloom_agg(x, %d) IS NULL FROM bench_rows" % ROWS,
            "SELECT bloom_agg(x, %d) IS NULL FROM bench_rows" % ROWS, 1.7, faster=True,
            other=Session("max_parallel_workers_per_gather = 2", "jit = off", "parallel_leader_participation = off",
                          "parallel_setup_cost = 0", "parallel_tuple_cost = 0"))
    for plan, setting in ("", "enable_hashagg = on"), (", both by sorting", "enable_hashagg = off"):
        compare("bloom_agg(x) : count(DISTINCT x), per group of 10" + plan,
                "SELECT sum(n) FROM (SELECT count(DISTINCT x) AS n FROM bench_rows GROUP BY g) AS v",
                "SELECT count(f) FROM (SELECT bloom_agg(x) AS f FROM bench_rows GROUP BY g) AS v", 1.0,
                session=Session("max_parallel_workers_per_gather = 0", "jit = off", "work_mem = '64MB'", setting))
    compare("bloom_union_agg of 1,000 filters of 1 MB : reading them",
            "SELECT sum(octet_length(f::bytea)) FROM bench_filters",
            "SELECT bloom_union_agg(f) IS NULL FROM bench_filters", 1.2)
    sizes()
    peak_memory()
    session.ask("DROP TABLE bench_rows, bench_texts, bench_filters")


main()
