#!/usr/bin/python3
"""Probing filters, against the least cost of a row and other tests of membership.

Connects as psql does, to a database with bloomtype in it, on a server where
bench/baseline is installed.  ROWS sets the number of rows, 10 million by
default.  All plans are serial.
"""
import re

from measure import Session, compare, heading, report, rows

ROWS = rows()
KEYS = ROWS // 2
SETTINGS = "max_parallel_workers_per_gather = 0", "jit = off"
PLENTY = SETTINGS + ("work_mem = '2GB'",)

TABLES = {
    # y is one of a million values, 1 % of which are below 10,000
    "bench_rows": "SELECT i AS x, i * 618033 %% 1000000 AS y FROM generate_series(1, %d::bigint) AS i" % ROWS,
    # holds only values that are not in bench_rows.x; rate 1 %
    "bench_stored": "SELECT n, (SELECT bloom_agg(-i, n) FROM (SELECT generate_series(1, n) AS i) AS v) AS f "
                    "FROM unnest('{100000,1000000,10000000}'::bigint[]) AS n",
    "bench_small": "SELECT bloom_agg(i, 10000) AS f FROM generate_series(0, 9999::bigint) AS i",
    # more than m / 64 elements each, so they are dense
    "bench_1mb": "SELECT s, (SELECT bloom_agg(s * 1000000 + i, 800000) FROM generate_series(1, 130000) AS i) AS f "
                 "FROM generate_series(1, 500::bigint) AS s",
    "bench_100kb": "SELECT s, (SELECT bloom_agg(s * 1000000 + i, 80000) FROM generate_series(1, 13000) AS i) AS f "
                   "FROM generate_series(1, 5000::bigint) AS s",
    "bench_classic": "SELECT s, (SELECT bloom_agg(s * 1000000 + i, bloom_create(800000, 0.01, 'classic')) "
                     "FROM generate_series(1, 130000) AS i) AS f FROM generate_series(1, 500::bigint) AS s",
    "bench_365": "SELECT s, (SELECT bloom_agg(s * 1000000 + i, 660000) FROM generate_series(1, 110000) AS i) AS f "
                 "FROM generate_series(1, 365::bigint) AS s",
    "bench_5000": "SELECT i * 7919 AS k FROM generate_series(1, 5000::bigint) AS i",
    "bench_keys": "SELECT 2 * i AS k FROM generate_series(1, %d::bigint) AS i" % KEYS,
    "bench_fact": "SELECT 1 + floor(random() * {0})::bigint AS a, 1 + floor(random() * {0})::bigint AS b, "
                  "1 + floor(random() * {0})::bigint AS c, 1 + floor(random() * {1})::bigint AS o "
                  "FROM generate_series(1, {2})".format(ROWS // 50, ROWS // 4, ROWS),
    "bench_orders": "SELECT i AS id, i %% 10 AS region, 'the customer of ' || i AS note "
                    "FROM generate_series(1, %d::bigint) AS i" % (ROWS // 4),
}
for dimension in "abc":
    TABLES["bench_" + dimension] = ("SELECT i AS id, i %% 20 AS kind FROM generate_series(1, %d::bigint) AS i" % (ROWS // 50))

STORED = "(SELECT f FROM bench_stored WHERE n = %d)"
PARSED = "(SELECT f::bytea::bloomfilter FROM bench_stored WHERE n = %d)"


def make_tables(session):
    session.ask("SET client_min_messages = warning")
    session.ask("DROP TABLE IF EXISTS bench_parts, " + ", ".join(TABLES))
    for table, query in TABLES.items():
        session.ask("CREATE UNLOGGED TABLE %s AS %s" % (table, query))
    session.ask("CREATE UNLOGGED TABLE bench_parts (part int, x bigint) PARTITION BY LIST (part)")
    for part in range(365):
        session.ask("CREATE UNLOGGED TABLE bench_part_%d PARTITION OF bench_parts FOR VALUES IN (%d)" % (part, part))
    session.ask("INSERT INTO bench_parts SELECT x % 365, x FROM bench_rows")
    session.ask("VACUUM ANALYZE bench_parts")
    for table in "bench_a", "bench_b", "bench_c", "bench_orders":
        session.ask("ALTER TABLE %s ADD PRIMARY KEY (id)" % table)
    for table in TABLES:
        session.ask("VACUUM ANALYZE " + table)
    for function, arguments in ("bench_hash_only", "bloomfilter, anyelement"), ("bench_detoast", "bloomfilter"):
        session.ask("CREATE OR REPLACE FUNCTION %s(%s) RETURNS boolean IMMUTABLE STRICT LANGUAGE c "
                    "AS 'bench_baseline', '%s'" % (function, arguments, function))
    # immutable, because PostgreSQL hashes "= ANY" only for an array known to the planner
    session.ask("CREATE OR REPLACE FUNCTION bench_array() RETURNS bigint[] IMMUTABLE LANGUAGE sql "
                "AS 'SELECT array_agg(k) FROM bench_keys'")
    session.ask("CHECKPOINT")


def expect(session, sql, **wanted):
    """Stops unless the plan has nodes with these properties, given as regular expressions."""
    plan = session.explain(sql)
    for name, pattern in wanted.items():
        if not any(re.search(pattern, str(node.get(name.replace("_", " "), ""))) for node in plan):
            raise SystemExit("no %s \"%s\" in the plan:\n%s" % (name, pattern, plan))


def expect_toast_pointer(session):
    """A first probe reads slices; had the InitPlan fetched the filter, it would read all of it."""
    sql = "SELECT count(*) FROM generate_series(1, 1::bigint) AS x WHERE %s @> x" % (STORED % 10000000)
    session.ask(sql)
    pages = session.explain(sql, ", ANALYZE, BUFFERS")[0]["Shared Hit Blocks"]
    if pages > 100:
        raise SystemExit("the InitPlan fetches the stored filter: %d pages for one probe" % pages)


def stored_or_in_memory(session):
    expect_toast_pointer(session)
    sql = "SELECT count(*) FROM bench_rows WHERE %s @> x"
    expect(session, sql % (STORED % 10000000), Subplan_Name="InitPlan", Filter=r"@> x\)$")
    compare("12 MB filter in an InitPlan, stored : parsed", sql % (PARSED % 10000000), sql % (STORED % 10000000), 1.1,
            session=session)
    sql = "SELECT count(*) FROM bench_rows, (SELECT %s AS f FROM bench_stored WHERE n = 10000000 OFFSET 0) AS s WHERE f @> x"
    expect(session, sql % "f", Node_Type="Nested Loop", Join_Filter=r"^\(bench_stored.f @> bench_rows.x\)$")
    compare("12 MB filter in a joined row, stored : parsed", sql % "f::bytea::bloomfilter", sql % "f", 1.1, session=session)


def probe_over_hash(session, name, n, goal, repeats=9):
    base, work = ("SELECT count(*) FROM bench_rows WHERE %s" % (condition % (STORED % n))
                  for condition in ("bench_hash_only(%s, x)", "%s @> x"))
    session.ask(base), session.ask(work)  # warm up
    pairs = [(session.cpu_seconds(base), session.cpu_seconds(work)) for _ in range(repeats)]
    report("CPU ns that an absent element takes over its hash, " + name, *zip(*pairs),
           [1e9 * (w - b) / ROWS for b, w in pairs], "<= %g ns" % goal, lambda ns: ns <= goal)


def many_filters(name, table, goal, session):
    detoast = "SELECT count(*) FROM %s WHERE bench_detoast(f)" % table
    probe = "SELECT count(*) FROM %s WHERE f @> 42::bigint" % table
    compare("one key after another against %s : detoasting them" % name, detoast, probe, goal, session=session, faster=True,
            repeats=9)
    pairs = []
    for _ in range(9):
        fresh = Session(*SETTINGS)
        fresh.ask("SELECT bench_detoast(bloom_create(1)), bloom_create(1) @> 42::bigint")  # load the libraries
        fresh.ask("SELECT count(*) FROM %s" % table)
        pairs.append((fresh.seconds(detoast), fresh.seconds(probe)))
    report("the same, the first key of a session", *zip(*pairs), [b / w for b, w in pairs], ">= %g" % goal, lambda r: r >= goal)
    compare("three keys at once against %s : detoasting them" % name, detoast,
            "SELECT count(*) FROM %s WHERE f @> ANY ('{42,43,44}'::bigint[])" % table, goal / 3, session=session, faster=True)


def partitions(session):
    """One stored filter at 365 call sites."""
    sql = "SELECT count(*) FROM bench_parts WHERE %s @> x"
    stored, parsed = sql % (STORED % 10000000), sql % (PARSED % 10000000)
    compare("12 MB filter and 365 partitions, stored : parsed", parsed, stored, 1.2, session=session)
    fresh = Session(*SETTINGS)
    fresh.ask("SELECT count(*) FROM bench_parts WHERE x > 0")
    fresh.ask("BEGIN")
    before, contexts = fresh.memory(), fresh.ask("SELECT sum(total_bytes) FROM pg_backend_memory_contexts")
    fresh.ask(stored)
    after, kept = fresh.memory(), fresh.ask("SELECT sum(total_bytes) FROM pg_backend_memory_contexts")
    print("growth of the backend by this query: anonymous memory %.1f MB, memory contexts %.1f MB; work_mem is 4 MB" % (
        (after["RssAnon"] - before["RssAnon"]) / 2**20, (int(kept[0]) - int(contexts[0])) / 2**20), flush=True)


def many_by_many(session):
    """5,000 keys and 365 filters of 0.8 MB, 290 MB together, in both orders of the join."""
    outside = {
        "filters": "SELECT count(*) FROM (SELECT f FROM bench_365 OFFSET 0) AS f "
                   "CROSS JOIN LATERAL (SELECT k FROM bench_5000 WHERE f @> k OFFSET 0) AS k",
        "keys": "SELECT count(*) FROM (SELECT k FROM bench_5000 OFFSET 0) AS k "
                "CROSS JOIN LATERAL (SELECT s FROM bench_365 WHERE f @> k OFFSET 0) AS f",
    }
    for memory in "4MB", "400MB":
        session.ask("SET work_mem = '%s'" % memory)
        compare("5,000 keys and 365 filters, work_mem %s: keys outside : inside" % memory, outside["filters"], outside["keys"],
                3, session=session, repeats=3)
    session.ask("RESET work_mem")


def bloom_joins(session):
    plain = ("SELECT count(*) FROM bench_fact JOIN bench_a ON a = bench_a.id JOIN bench_b ON b = bench_b.id "
             "JOIN bench_c ON c = bench_c.id WHERE bench_a.kind = 3 AND bench_b.kind = 5 AND bench_c.kind = 7")
    bloom = plain + "".join(" AND (SELECT bloom_agg(id) FROM bench_%s WHERE kind = %d) @> %s" % (d, kind, d)
                            for d, kind in (("a", 3), ("b", 5), ("c", 7)))
    expect(session, plain, Node_Type="Hash Join")
    expect(session, bloom, Filter=r"@> a\) AND \(.*@> b\) AND \(.*@> c\)")
    compare("join of three dimensions at 5 % : with filters", plain, bloom, 1, session=session, faster=True)
    plain = "SELECT count(note) FROM bench_fact JOIN bench_orders ON o = id WHERE region = 3"
    bloom = plain + " AND (SELECT bloom_agg(id) FROM bench_orders WHERE region = 3) @> o"
    expect(session, plain, Node_Type="Hash Join")
    session.ask("SET work_mem = '4MB'")
    plans = [session.explain(sql, ", ANALYZE, TIMING OFF") for sql in (plain, bloom)]
    batches = [max(node.get("Hash Batches", 0) for node in plan) or "none" for plan in plans]
    compare("hash join of %s batches at 4 MB : with a filter, %s" % tuple(batches),
            plain, bloom, 1, session=session, faster=True)


def peak(sql):
    """The most private memory, in MiB, that a fresh backend takes for a query."""
    session = Session(*PLENTY)
    session.ask("SELECT count(x) FROM bench_rows"), session.ask("SELECT count(k) FROM bench_keys")
    before = session.memory()
    session.ask(sql)
    after = session.memory()
    return (after["VmHWM"] - after["VmRSS"] + after["RssAnon"] - before["RssAnon"]) / 2**20


def other_memberships():
    session = Session(*PLENTY)
    sql = "SELECT count(*) FROM bench_rows WHERE "
    bloom = sql + "(SELECT bloom_agg(k, %d) FROM bench_keys) @> x" % KEYS
    others = {"hash semi join": (sql + "x IN (SELECT k FROM bench_keys)", {"Node_Type": "Hash Join", "Join_Type": "Semi"}),
              "hashed subplan": (sql + "(x IN (SELECT k FROM bench_keys)) IS TRUE", {"Filter": "hashed SubPlan"}),
              "hashed array": (sql + "x = ANY (bench_array())", {"Filter": r"ANY \('\{"})}
    used = {"filter": peak(bloom)}
    for name, (other, plan) in others.items():
        # prepared, as planning with a long array takes longer than the query
        expect(session, other, **plan)
        session.ask("PREPARE other AS " + other)
        compare("%s of %d keys : filter, built in the query" % (name, KEYS), "EXECUTE other", bloom, 1,
                session=session, faster=True)
        session.ask("DEALLOCATE other")
        used[name] = peak(other)
    print("peak memory of these queries: " + ", ".join("%s %.0f MiB" % item for item in used.items()), flush=True)


def main():
    session = Session(*SETTINGS)
    make_tables(session)
    heading()
    stored_or_in_memory(session)
    for name, n, goal in ("120 kB", 100000, 4.5), ("1.2 MB", 1000000, 8), ("12 MB", 10000000, 14):
        probe_over_hash(session, name, n, goal)
    compare("12 kB filter, stored, 1 % hits : y <> 0", "SELECT count(*) FROM bench_rows WHERE y <> 0",
            "SELECT count(*) FROM bench_rows WHERE (SELECT f FROM bench_small) @> y", 1.5, session=session)
    many_filters("500 stored filters of 1 MB", "bench_1mb", 40, session)
    many_filters("5,000 stored filters of 100 kB", "bench_100kb", 5, session)
    compare("one key in 500 stored filters of 1 MB, classic : blocked", "SELECT count(*) FROM bench_1mb WHERE f @> 42::bigint",
            "SELECT count(*) FROM bench_classic WHERE f @> 42::bigint", 3, session=session, repeats=9)
    partitions(session)
    many_by_many(session)
    bloom_joins(session)
    other_memberships()
    session.ask("DROP FUNCTION bench_hash_only, bench_detoast, bench_array; DROP TABLE bench_parts, " + ", ".join(TABLES))


main()
