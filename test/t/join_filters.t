#!/usr/bin/python3 -B
"""Join filters never change a result: random queries with filters and without, and the ways to a wrong answer one by
one.

JOIN_QUERIES is the number of random queries, and JOIN_SEED the first one's seed.
"""

import os
import re
from xml.etree import ElementTree

from join_queries import RESULT_OF_TIMEOUT, SETTINGS, Queries, tables
from session import Session, each, in_thread, result_of, run, wait_until_blocked
from tap import note, ok, same

QUERIES = int(os.environ.get("JOIN_QUERIES", "250"))
SEED = int(os.environ.get("JOIN_SEED", "1"))
Session.settings = SETTINGS


def outcome(session, query, timeout):
    """The rows in an order of their own, or the SQLSTATE, and how often the query called the sequence. The timeout is in
    ms."""
    session.notices.clear()
    before = session.ask("SELECT last_value FROM calls")
    session.set_timeout(timeout)
    rows, state = session.attempt(query)
    session.set_timeout(0)
    after = session.ask("SELECT last_value FROM calls")
    return (state, sorted(rows), int(after[0]) - int(before[0]))


def keys_of(groups):
    return {group.rpartition(":")[0] for group in groups}


def cut(groups, expected):
    """Groups, as their notices, that are not as expected. A filter may leave out groups that have no match, or let a
    join end later, so that workers return more."""
    return [group for group in groups - expected if group.rpartition(":")[0] in keys_of(expected)]


def dropped(plan):
    return sum(node.get("Rows Dropped", 0) for node in plan)


def has_filter(session, query, settings=""):
    session.ask(settings)
    return any("Join Filter Name" in node for node in session.explain(query))


def has_merge_filter(plan, figure="Join Filter Name"):
    """Has a plan a filter below a sort, with this property if that is a figure?"""
    return any(above["Node Type"] == "Sort" and node.get(figure) for above, node in zip(plan, plan[1:]))


def compare(seed, counts):
    """Runs a random query with filters and without; returns what differs, if anything."""
    queries = Queries(seed)
    query = queries.query()
    with Session("; ".join(queries.settings()) + ";") as session:
        if queries.maybe(0.15):
            session.ask("SET force_parallel_mode = on" if session.connection.info.server_version < 160000
                        else "SET debug_parallel_query = on")  # fmt: skip
        session.ask("SET client_min_messages = notice")
        expected, groups = outcome(session, query, 3000), set(session.notices)
        counts["compared"] += expected[0] == "00000"
        if expected[0] == RESULT_OF_TIMEOUT:
            return None
        session.ask("; ".join(queries.filter_settings()))
        got, cuts = outcome(session, query, 60000), cut(set(session.notices), groups)
        counts["groups"] += len(session.notices)
        if expected[0] == "00000" and queries.maybe(0.25):
            plan = session.explain(query, ", ANALYZE, TIMING off")
            counts["explained"] += 1
            counts["filtered"] += any("Join Filter Name" in node for node in plan)
            counts["merging"] += has_merge_filter(plan, "Rows Dropped")
            counts["dropping"] += dropped(plan) > 0
            counts["removed"] += any(node.get("Probes Removed", 0) > 0 for node in plan)
            counts["copied"] += any("Copy of Join Filter" in node for node in plan)
        if got != expected or cuts:
            return f"seed {seed}: {expected[0]}, {len(expected[1])} rows, {expected[2]} calls;" \
                   f" with filters {got[0]}, {len(got[1])} rows, {got[2]} calls\n{query}" \
                   f"\n{session.error or ''}\ngroups that are cut: {cuts[:9]}"  # fmt: skip
    return None


def compare_all(seeds, counts):
    """What differs, also where a comparison cannot end."""
    for seed in seeds:
        try:
            difference = compare(seed, counts)
        except Exception as problem:
            difference = f"seed {seed}: {problem!r}"
        if difference:
            yield difference


def test_random_queries():
    each("SET statement_timeout = 0", *tables())
    counts = dict.fromkeys(("compared", "explained", "filtered", "merging", "dropping", "removed", "copied", "groups"), 0)
    different = list(compare_all(range(SEED, SEED + QUERIES), counts))
    same(different, [], f"{QUERIES} random queries have the same result with filters and without")
    note(f"{counts}")
    ok(counts["compared"] >= 0.9 * QUERIES, "nearly all of them have a result", counts)
    ok(counts["dropping"] >= 0.3 * counts["explained"], "in many of them filters drop rows", counts)
    ok(counts["merging"] >= 0.05 * counts["explained"], "in some those of merge joins", counts)
    ok(counts["removed"] > 0, "and probes are removed", counts)
    ok(counts["groups"] > 0, "and groups are not cut", counts)
    ok(counts["copied"] > 0, "and workers have copies of filters", counts)


# The ways to a wrong answer

FORCE = "SET bloomtype.join_filters = force;"
HASH_ONLY = "SET enable_mergejoin = off; SET enable_nestloop = off; SET max_parallel_workers_per_gather = 0;"
MERGE_ONLY = HASH_ONLY + """SET enable_mergejoin = on; SET enable_hashjoin = off; SET enable_indexscan = off;
    SET enable_indexonlyscan = off; SET enable_bitmapscan = off; SET enable_incremental_sort = off;"""


def both(query, settings=HASH_ONLY, filtered=True, **parameters):
    """The lines of a query with filters, which must be those without."""
    with Session(settings, **parameters) as session:
        expected = session.attempt(query)
        session.ask(FORCE)
        plan = session.explain(query)
        if filtered is not None:
            same(any("Join Filter Name" in node for node in plan), filtered,
                 f"a filter is {'' if filtered else 'not '}placed")  # fmt: skip
        got = session.attempt(query)
        ok(sorted(got[0]) == sorted(expected[0]) and got[1] == expected[1],
           f"same result: {' '.join(query.split())[:70]}",
           *(expected[1], len(expected[0]), got[1], len(got[0]), session.error))  # fmt: skip
        return got


def test_half_groups():
    """Fails if a filter begins or ends in the middle of a group: a group of one row is an error that no complete
    group causes."""
    each("CREATE TABLE pairs AS SELECT i / 2 AS k, i FROM generate_series(0, 9999) AS i", "CREATE INDEX ON pairs (k)",
         "CREATE TABLE wanted AS SELECT i AS k FROM generate_series(10, 4999) AS i WHERE i % 4 <> 0",
         "CREATE TABLE few AS SELECT 4000 AS k", "VACUUM ANALYZE pairs, wanted, few")  # fmt: skip
    query = "SELECT * FROM (SELECT k, 1 / (count(*) - 1) AS one FROM pairs GROUP BY k) AS g JOIN {} USING (k)"
    sorted_groups = HASH_ONLY + "SET enable_hashagg = off; SET enable_sort = off; SET bloomtype.join_filter_window = 1;"
    same(both(query.format("few"), sorted_groups)[1], "00000", "no group is cut at the first outer row")
    for settings in sorted_groups, HASH_ONLY + "SET bloomtype.join_filter_window = 1;":
        same(both(query.format("wanted"), settings)[1], "00000", "no group is cut by a pause")
    window = """SELECT * FROM (SELECT k, 1 / (count(*) OVER (PARTITION BY k) - 1) AS one FROM pairs) AS g
        JOIN {} USING (k)"""
    same(both(window.format("wanted"), sorted_groups)[1], "00000", "nor is a partition of a window")
    # a join that keeps its outer rows reads one of them before it builds
    kept = "SELECT * FROM (SELECT p.k, 1 / (count(*) - 1) AS one FROM pairs AS p {} GROUP BY p.k) AS g JOIN few USING (k)"
    for join in "LEFT JOIN wanted AS w ON w.k = p.i", "WHERE NOT EXISTS (SELECT FROM wanted AS w WHERE w.k = p.i + 20000)":
        same(both(kept.format(join))[1], "00000", "nor by a row that a join below reads first")
    # a filter that reaches some of the rows of a group: one child of an Append computes the key
    partial = """SELECT * FROM (SELECT k, 1 / (count(*) - 2) AS one
        FROM (SELECT k, i FROM pairs UNION ALL SELECT k + 0, i FROM pairs) AS u GROUP BY k) AS g JOIN few USING (k)"""
    same(both(partial, HASH_ONLY, filtered=False)[1], "00000", "nor is a group of which a filter reaches a part")


def test_other_groups():
    """Fails if a filter passes a node that computes something from rows with several keys."""
    each("CREATE COLLATION any_case (PROVIDER = icu, LOCALE = 'und-u-ks-level2', DETERMINISTIC = false)",
         "CREATE TABLE words (w text COLLATE any_case)", "INSERT INTO words VALUES ('a'), ('A'), ('b'), ('A'), ('B')",
         "INSERT INTO words SELECT 'c' || i FROM generate_series(1, 100) AS i",
         "CREATE TABLE word (w text COLLATE any_case)", "INSERT INTO word VALUES ('a')", "ANALYZE words, word")  # fmt: skip
    for inner in ("SELECT k, count(*) OVER (PARTITION BY i % 7) AS n FROM pairs",
                  "SELECT k, row_number() OVER (ORDER BY i) AS n FROM pairs",
                  "SELECT DISTINCT ON (i % 2) k, i AS n FROM pairs WHERE i >= 7999 ORDER BY i % 2, i",
                  "SELECT k, i AS n FROM pairs WHERE k > 3990 ORDER BY i LIMIT 25",
                  "SELECT k, i AS n FROM pairs WHERE k > 3990 ORDER BY i OFFSET 5"):  # fmt: skip
        rows, _ = both(f"SELECT * FROM ({inner}) AS q JOIN few USING (k)", filtered=None)
        ok(rows, "there is a result")
    same(both("""SELECT * FROM (SELECT w, count(*) FROM words GROUP BY w) AS q
              JOIN word AS o ON q.w COLLATE "C" = o.w COLLATE "C" """, filtered=False)[0], ["a|3|a"], "groups of another equality than that of the join")  # fmt: skip


def test_sets_of_integers():
    """Fails if a set of integers lacks one at its ends, or has one beyond, up to the ends of a type, in any width."""
    ends = {"smallint": 2 ** 15, "int": 2 ** 31, "bigint": 2 ** 63}
    for kind, end in ends.items():
        values = {v for middle in (-end, -1000, 0, 3000, end - 1) for v in range(middle - 70, middle + 70) if -end <= v < end}
        each(f"CREATE TABLE {kind}_values (k {kind})",
             f"INSERT INTO {kind}_values SELECT unnest('{{{','.join(map(str, sorted(values)))}}}'::bigint[])",
             f"ANALYZE {kind}_values")  # fmt: skip
    keys = {f"k >= {low} AND k < {high}" for end in ends.values()
            for low, high in ((-end, 5 - end), (end - 5, end), (-1010, -990), (0, 1), (-end, end))}  # fmt: skip
    keys |= {"k % 7 = 3", f"k = {-2 ** 63} OR k = {2 ** 63 - 1}", "k IN (-1, 0, 3000)", "k IS NULL"}
    with Session(HASH_ONLY) as session:
        for outer in ends:
            for inner in ends:
                query = " UNION ALL ".join(f"""SELECT {number}, count(*), sum(o.k::numeric) FROM {outer}_values AS o
                    JOIN (SELECT k FROM {inner}_values WHERE {key} OFFSET 0) AS i ON o.k = i.k"""
                    for number, key in enumerate(sorted(keys)))  # fmt: skip
                session.ask("SET bloomtype.join_filters = off")
                expected = session.ask(query)
                session.ask(FORCE + "SET bloomtype.join_filter_window = 100000")
                same(session.ask(query), expected, f"{outer} joins {inner}")
                ok(dropped(session.explain(query, ", ANALYZE, TIMING off")) > 1000, "and rows are dropped")


def test_equal_values():
    """Fails if values that SQL takes for equal have different hashes."""
    pairs = [("smallint", "-1", "bigint", "-1"), ("int", "-5", "smallint", "-5"), ("numeric", "1.0", "numeric", "1.000"),
             ("float8", "-0", "float8", "0"), ("float4", "-0", "float8", "0"), ("float8", "NaN", "float4", "NaN"),
             ("text", "a", "varchar", "a"), ("char(5)", "a", "char(3)", "a"), ("numeric", "NaN", "numeric", "NaN"),
             ("interval", "1 day", "interval", "24 hours"), ("jsonb", "1.0", "jsonb", "1"), ("int[]", "{1}", "int[]", "{1}"),
             ("timetz", "12:00+00", "timetz", "12:00+00"), ("inet", "10.0.0.1", "inet", "10.0.0.1/32")]  # fmt: skip
    for number, (left, one, right, other) in enumerate(pairs):
        each(f"CREATE TABLE left_{number} AS SELECT '{one}'::{left} AS k FROM generate_series(1, 50)",
             f"CREATE TABLE right_{number} AS SELECT '{other}'::{right} AS k", f"ANALYZE left_{number}, right_{number}")
        for way in "left_{0} AS l JOIN right_{0} AS r", "right_{0} AS r JOIN left_{0} AS l":
            join = f"SELECT count(*) FROM {way.format(number)} ON l.k = r.k"
            same(both(join)[0], ["50"], f"{left} {one} meets {right} {other}")
            same(both(join, MERGE_ONLY, filtered=None)[0], ["50"], "also in a merge join")
    # an integer that is equal to something else has the hash of that family, not that of an integer
    each("CREATE TYPE boxed AS (i int)",
         "CREATE FUNCTION is_boxed(int, boxed) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN $1 = ($2).i; END'",
         "CREATE FUNCTION is_boxed(boxed, int) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN $2 = ($1).i; END'",
         "CREATE FUNCTION are_boxed(boxed, boxed) RETURNS bool LANGUAGE sql IMMUTABLE STRICT RETURN ($1).i = ($2).i",
         "CREATE FUNCTION hash_boxed(boxed) RETURNS int LANGUAGE sql IMMUTABLE STRICT RETURN hashint4(($1).i)",
         "CREATE OPERATOR =# (LEFTARG = int, RIGHTARG = boxed, FUNCTION = is_boxed, COMMUTATOR = #=, HASHES)",
         "CREATE OPERATOR #= (LEFTARG = boxed, RIGHTARG = int, FUNCTION = is_boxed, COMMUTATOR = =#, HASHES)",
         "CREATE OPERATOR #=# (LEFTARG = boxed, RIGHTARG = boxed, FUNCTION = are_boxed, COMMUTATOR = #=#, HASHES)",
         """CREATE OPERATOR CLASS int_or_boxed FOR TYPE boxed USING hash AS OPERATOR 1 #=#, FUNCTION 1 hash_boxed(boxed),
            OPERATOR 1 =# (int, boxed), OPERATOR 1 #= (boxed, int), OPERATOR 1 = (int, int),
            FUNCTION 1 (int, int) hashint4(int)""",
         "CREATE TABLE boxes AS SELECT ROW(i)::boxed AS k FROM generate_series(1, 10) AS i", "ANALYZE boxes")  # fmt: skip
    same(both("SELECT count(*) FROM pairs AS p JOIN boxes AS b ON p.k =# b.k")[0],
         both("SELECT count(*) FROM pairs AS p JOIN boxes AS b ON p.k = (b.k).i", filtered=None)[0], "an integer meets a box")


def test_changing_inner_side():
    """Fails if nodes keep rows of a filter whose inner side has changed."""
    each("CREATE TABLE outer_rows AS SELECT i % 50 AS k, i FROM generate_series(1, 500) AS i",
         "CREATE TABLE inner_rows AS SELECT i % 50 AS k, i % 7 AS v FROM generate_series(1, 100) AS i",
         "ANALYZE outer_rows, inner_rows")  # fmt: skip
    inner = "(SELECT k FROM inner_rows WHERE v = x OFFSET 0) AS i"
    for outer in ("(SELECT k, i FROM outer_rows ORDER BY i OFFSET 0)",
                  "(SELECT k, count(*) FROM outer_rows GROUP BY k OFFSET 0)",
                  "(SELECT DISTINCT k FROM outer_rows ORDER BY k OFFSET 0)", "outer_rows",
                  "(SELECT a.k FROM (SELECT 1 AS one, i FROM outer_rows) AS b JOIN outer_rows AS a USING (i) OFFSET 0)"):  # fmt: skip
        rows, _ = both(f"SELECT x, (SELECT count(*) FROM {outer} AS o JOIN {inner} ON o.k = i.k)"
                       " FROM generate_series(0, 7) AS x", filtered=None if outer != "outer_rows" else True)
        ok(len({row.split("|")[1] for row in rows}) > 1, "the counts differ between rescans", rows)


def test_old_parameters():
    """Fails if the row by which a join finds out whether its outer side is empty asks the filter of the parameters
    before: a join looks for that row if it has found none in its last run, which had the same inner side."""
    rows, _ = both("""SELECT a, (SELECT array_agg((SELECT count(*) FROM (SELECT k FROM pairs WHERE b = 1 OFFSET 0) AS p
        JOIN (SELECT k FROM wanted WHERE k < 200 AND k % 10 = 9 - a OFFSET 0) AS w USING (k))) FROM generate_series(1, 2) AS b)
        FROM generate_series(0, 3) AS a""", HASH_ONLY + "SET enable_material = off; SET max_parallel_workers_per_gather = 0;")  # fmt: skip
    ok(len({row.split("|")[1] for row in rows}) > 1, "the counts differ", rows)


def test_unordered_inner_side():
    """Fails if a filter stays while the inner side has other rows at each rescan, because workers order them."""
    each("CREATE TABLE source AS SELECT i AS k, repeat('y', 300) AS pad FROM generate_series(1, 60000) AS i",
         "CREATE TABLE looked_up AS SELECT k FROM source", "CREATE TABLE driving AS SELECT generate_series(1, 12) AS id",
         "ANALYZE source, looked_up, driving")  # fmt: skip
    rows, _ = both("""SELECT d.id, l.n FROM driving AS d, LATERAL (SELECT count(*) AS n, d.id FROM looked_up AS o
        JOIN (SELECT * FROM source WHERE pad > '' LIMIT 20000) AS s ON s.k = o.k WHERE o.k + d.id > 0) AS l""",
        """SET statement_timeout = 0; SET enable_mergejoin = off; SET enable_memoize = off; SET enable_material = off;
        SET work_mem = '64kB'; SET hash_mem_multiplier = 1; SET max_parallel_workers_per_gather = 2;
        SET bloomtype.join_filter_window = 16777216;""")  # fmt: skip
    same({row.split("|")[1] for row in rows}, {"20000"}, "each rescan finds all rows of the LIMIT")


def test_workers_on_the_inner_side():
    """Workers return the same rows at each rescan, in another order: groups may keep theirs."""
    rows, _ = both("""SELECT d.id, l.n FROM driving AS d, LATERAL (SELECT sum(g.n) AS n, d.id
        FROM (SELECT k, count(*) AS n FROM looked_up GROUP BY k OFFSET 0) AS g
        JOIN (SELECT k FROM source WHERE k < 30) AS s USING (k) WHERE g.k + d.id > 0) AS l""",
        """SET statement_timeout = 0; SET enable_mergejoin = off; SET enable_nestloop = off; SET enable_memoize = off;
        SET max_parallel_workers_per_gather = 2;""")  # fmt: skip
    same({row.split("|")[1] for row in rows}, {"29"}, "each rescan has the same groups")
    # workers draw another sample at each rescan, and the join keeps what it has sorted
    each("CREATE TABLE sampled AS SELECT i AS k FROM generate_series(1, 20000) AS i", "CREATE TABLE nothing (k int)",
         "CREATE TABLE kept AS TABLE sampled", "ANALYZE sampled, nothing, kept")  # fmt: skip
    with Session(WORKERS + """SET enable_mergejoin = on; SET enable_hashjoin = off; SET enable_gathermerge = off;
                 SET parallel_leader_participation = off;""" + FORCE) as session:  # fmt: skip
        rows = session.ask("""SELECT d.id, l.n FROM driving AS d, LATERAL (SELECT count(b.k) AS n, d.id FROM
            (SELECT k FROM sampled TABLESAMPLE bernoulli (50) UNION ALL SELECT k FROM nothing TABLESAMPLE bernoulli (50))
            AS s LEFT JOIN kept AS b ON s.k = b.k AND s.k + b.k + d.id > 0) AS l""")
    ok(all(9000 < int(row.split("|")[1]) < 11000 for row in rows), "each sample finds its rows", rows)


def test_chain_of_subqueries():
    """Fails if planning takes time that doubles with each WITH that reads the one before twice."""
    chain = "".join(f", c{i} AS MATERIALIZED (SELECT a.k FROM c{i - 1} AS a JOIN c{i - 1} AS b USING (k))" for i in range(1, 31))
    with Session(HASH_ONLY + FORCE) as session:
        same(session.attempt(f"WITH c0 AS MATERIALIZED (SELECT 1 AS k){chain} SELECT * FROM c30"), (["1"], "00000"), "planned")


def test_subplan_of_many_partitions():
    """Fails if memory grows with the partitions that call a subplan times the partitions that it scans."""
    each("CREATE TABLE calling (k int) PARTITION BY RANGE (k)", "CREATE TABLE called (k int) PARTITION BY RANGE (k)",
         *(f"CREATE TABLE {table}_{i} PARTITION OF {table} FOR VALUES FROM ({i}) TO ({i + 1})"
           for table in ("calling", "called") for i in range(60)),
         "INSERT INTO calling SELECT generate_series(0, 59)", "INSERT INTO called SELECT generate_series(0, 59)",
         "ANALYZE calling, called")  # fmt: skip
    query = """SELECT max((SELECT max(total_bytes) FROM pg_backend_memory_contexts WHERE name = 'ExecutorState'))
        FROM calling AS p WHERE (SELECT count(*) FROM called AS c JOIN few AS f ON f.k = c.k WHERE f.k <> p.k) < 2"""
    sizes = []
    with Session(HASH_ONLY) as session:
        for mode in "off", "force":
            session.ask(f"SET bloomtype.join_filters = {mode}")
            sizes += map(int, session.ask(query))
    ok(sizes[1] < 2 * sizes[0], "bytes of the executor", sizes)


def test_expensive_keys():
    """Fails if a filter costs more than the join, because its keys are expensive to hash and few rows reach the join."""
    each("""CREATE TABLE spelled AS SELECT i % 1000 AS c, md5(i::text) COLLATE any_case AS w
            FROM generate_series(1, 20000) AS i""", "CREATE TABLE chosen AS SELECT w FROM spelled WHERE c < 30",
         "CREATE TABLE classes AS SELECT i AS c, i % 1000 AS z FROM generate_series(1, 1000) AS i",
         "ANALYZE spelled, chosen, classes")  # fmt: skip
    query = "SELECT count(*) FROM (spelled AS s JOIN classes AS k ON k.c = s.c + 0) JOIN chosen USING (w) WHERE z < 3"
    both(query, HASH_ONLY + "SET join_collapse_limit = 1;")
    with Session(HASH_ONLY + "SET join_collapse_limit = 1; SET bloomtype.join_filters = on;") as session:
        ok(not has_filter(session, query), "not placed unless forced")


def test_security_barrier():
    """Fails if a hash function that is not leakproof sees rows that a view hides."""
    each("""CREATE FUNCTION equal(int, int) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN $1 = $2; END'""",
         """CREATE FUNCTION hash(int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
            BEGIN IF $1 = 13 THEN RAISE 'saw 13'; END IF; RETURN hashint4($1); END $$""",
         """CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = equal, COMMUTATOR = ===, HASHES,
            RESTRICT = eqsel, JOIN = eqjoinsel)""",
         "CREATE OPERATOR CLASS telling FOR TYPE int USING hash AS OPERATOR 1 === (int, int), FUNCTION 1 hash(int)",
         "CREATE TABLE secrets AS SELECT i AS id, i % 1000 AS k FROM generate_series(1, 20000) AS i",
         "CREATE TABLE allowed AS SELECT i AS k FROM generate_series(0, 999) AS i WHERE i <> 13",
         "CREATE TABLE guesses AS SELECT i AS k FROM generate_series(20, 60) AS i", "ANALYZE secrets, allowed, guesses",
         "CREATE VIEW guarded WITH (security_barrier) AS SELECT secrets.* FROM secrets JOIN allowed USING (k)")  # fmt: skip
    with Session(HASH_ONLY + "SET join_collapse_limit = 1;" + FORCE) as session:
        same(session.attempt("SELECT count(*) FROM guarded AS g JOIN guesses AS s ON g.k === s.k"), (["820"], "00000"),
             "a function sees what the view returns")  # fmt: skip
        probes = sum(node.get("Filter", "").count("bloom_join_filter(")
                     for node in session.explain("SELECT FROM guarded AS g JOIN guesses AS s USING (k)"))
        same(probes, 2, "functions of PostgreSQL's own see all rows")


def test_merge_joins():
    """Fails if a merge join drops rows of its inner side that it returns, or that its outer side wants now."""
    each("CREATE TABLE first_rows (k int, v int)", "CREATE TABLE second_rows (k bigint, w int)",
         "INSERT INTO first_rows SELECT nullif(i, 7), i % 5 FROM generate_series(1, 40) AS i",
         "INSERT INTO second_rows SELECT nullif(i % 60, 8), i % 5 FROM generate_series(1, 200) AS i",
         "ANALYZE first_rows, second_rows")  # fmt: skip
    for kind, filtered in ("", True), ("LEFT", None), ("RIGHT", None), ("FULL", False):
        for tables in "first_rows AS a {} JOIN second_rows AS b", "second_rows AS b {} JOIN first_rows AS a":
            both(f"SELECT a.*, b.* FROM {tables.format(kind)} ON a.k = b.k", MERGE_ONLY, filtered)
    for negation in "", "NOT":
        both(f"SELECT * FROM second_rows AS b WHERE {negation} EXISTS (SELECT FROM first_rows AS a WHERE a.k = b.k)",
             MERGE_ONLY, filtered=None)  # fmt: skip
    # one side or both sides change with a row, and a side that does not keeps what it has sorted
    outer = "(SELECT k, v FROM first_rows WHERE {} OFFSET 0) AS a"
    inner = "(SELECT k, w FROM second_rows WHERE {} OFFSET 0) AS b"
    for conditions in ("v = x", "true"), ("true", "w = x"), ("v = x", "w = x"), ("v > x", "w <> 2"):
        for kind in "JOIN", "LEFT JOIN":
            join = f"{outer.format(conditions[0])} {kind} {inner.format(conditions[1])} ON a.k = b.k"
            rows, _ = both(f"SELECT x, (SELECT count(b.w) + count(*) FROM {join}) FROM generate_series(0, 6) AS x",
                           MERGE_ONLY + "SET enable_material = off;", filtered=None)  # fmt: skip
            ok(len({row.split("|")[1] for row in rows}) > 1, "the counts differ between rescans", rows)
            both(f"SELECT x, l.* FROM generate_series(0, 6) AS x, LATERAL (SELECT a.*, w FROM {join} OFFSET 0) AS l",
                 MERGE_ONLY + "SET enable_nestloop = on;", filtered=None)  # fmt: skip
    with Session(MERGE_ONLY + FORCE) as session:
        ok(has_merge_filter(session.explain("SELECT FROM first_rows AS a JOIN second_rows AS b ON a.k = b.k")),
           "the filters are those of merge joins")  # fmt: skip


def test_end_of_merge_join():
    """Fails if a merge join with a filter reads rows that it would not read without, which may fail."""
    each("CREATE TABLE scanned AS SELECT i AS k, i AS v, i <= 50 AS low FROM generate_series(1, 5000) AS i",
         "CREATE TABLE smallest AS SELECT i AS k FROM generate_series(1, 50) AS i", "CREATE INDEX ON scanned (k)",
         "VACUUM ANALYZE scanned, smallest")  # fmt: skip
    settings = MERGE_ONLY + "SET enable_indexscan = on; SET enable_seqscan = off;"
    query = "SELECT count(*) FROM smallest JOIN scanned USING (k) WHERE 10 / (v - 60) < 10"
    same(both(query, settings, filtered=False), (["50"], "00000"), "the scan ends after the outer rows")
    same(both(query.replace("60", "40"), settings, filtered=False)[1], "22012", "and fails before")
    each("CREATE TABLE indexed AS TABLE smallest", "CREATE INDEX ON indexed (k)", "VACUUM ANALYZE indexed")
    settings += "SET enable_hashjoin = on; SET enable_sort = off;"
    below = "SELECT low FROM {} WHERE 10 / (v - 60) < 10 OFFSET 0"
    for tables in "scanned JOIN indexed USING (k)", "indexed JOIN scanned USING (k)":
        same(both(f"SELECT count(*) FROM ({below.format(tables)}) AS q JOIN (SELECT true AS low OFFSET 0) AS t USING (low)",
                  settings, filtered=None), (["50"], "00000"), "nor does a filter of a hash join above")  # fmt: skip


def test_end_of_nested_loop():
    """Fails if a nested loop reads on behind the only match, which a filter of a join above drops: that may fail. The
    type has no hash function."""
    each("CREATE TABLE singles AS SELECT i::bit(16) AS b, i AS v, i > 50 AS high FROM generate_series(1, 5000) AS i",
         "CREATE UNIQUE INDEX ON singles (b)", "CREATE TABLE bits AS SELECT i::bit(16) AS b FROM generate_series(1, 2) AS i",
         "VACUUM ANALYZE singles, bits")  # fmt: skip
    settings = """SET max_parallel_workers_per_gather = 0; SET enable_mergejoin = off; SET enable_indexscan = off;
        SET enable_bitmapscan = off; SET enable_material = off; SET enable_nestloop = off;"""
    query = """SELECT count(*) FROM (SELECT high FROM bits JOIN singles USING (b) WHERE 10 / (v - 60) < 10 OFFSET 0) AS q
        JOIN (SELECT true AS high OFFSET 0) AS t USING (high)"""
    same(both(query, settings, filtered=None), (["0"], "00000"), "the scan ends at the match")


def test_empty_inner_side():
    """Fails if a hash join that finds its inner side empty has read more than one row, because a filter of a join above
    dropped that: a later row fails. The planner expects rows, which have been deleted."""
    each("""CREATE TABLE facts AS SELECT i AS id, i % 100 AS a, i % 10 AS b, CASE WHEN i = 5000 THEN 0 ELSE 1 END AS z
            FROM generate_series(1, 20000) AS i""",
         "CREATE TABLE strangers AS SELECT -i AS id FROM generate_series(1, 6) AS i",
         "CREATE TABLE emptied AS SELECT i AS id, i % 10 AS f FROM generate_series(0, 999) AS i",
         "VACUUM ANALYZE facts, strangers, emptied", "DELETE FROM emptied WHERE f = 3")  # fmt: skip
    settings = HASH_ONLY + "SET max_parallel_workers_per_gather = 0; SET join_collapse_limit = 1;"
    facts = "facts AS f JOIN emptied AS e ON f.b = e.id AND e.f = 3"
    for query in f"SELECT sum(f.id) FROM ({facts}) JOIN strangers AS s ON f.a = s.id WHERE 1 / f.z > 0", \
            f"""SELECT sum(n) FROM (SELECT f.a, count(*) AS n FROM {facts} WHERE 1 / f.z > 0 GROUP BY f.a) AS q
            JOIN strangers AS s ON q.a = s.id""":  # fmt: skip
        same(both(query, settings, filtered=None), ([""], "00000"), "the join reads a row and stops")
    same(both("SELECT sum(f.id) FROM (facts AS f JOIN emptied AS e ON f.b = e.id) JOIN strangers AS s ON f.a = s.id",
              settings), ([""], "00000"), "no row")  # fmt: skip


def test_unhashable_elements():
    """Fails if a merge join of arrays, rows or ranges gets a filter though their elements have no hash function."""
    each("CREATE TYPE of_bits AS (b bit(16))",
         """CREATE TABLE made AS SELECT ARRAY[i::bit(16)] AS a, ROW(i::bit(16))::of_bits AS r, ARRAY[i] AS n
            FROM generate_series(1, 300) AS i""",
         """CREATE TABLE sought AS SELECT ARRAY[(i % 1000)::bit(16)] AS a, ROW((i % 1000)::bit(16))::of_bits AS r,
            ARRAY[i % 1000] AS n FROM generate_series(1, 20000) AS i""", "ANALYZE made, sought")  # fmt: skip
    for column in "a", "r", "n":
        same(both(f"SELECT count(*) FROM made JOIN sought USING ({column})", MERGE_ONLY, filtered=column == "n"),
             (["6000"], "00000"), f"keys of column {column}")  # fmt: skip


def test_reevaluated_rows():
    """Fails if EvalPlanQual probes the filter of the query: it asks for row versions that the filter never saw."""
    each("CREATE TABLE changed (k int, v int)", "INSERT INTO changed SELECT i, 0 FROM generate_series(1, 100) AS i",
         "CREATE TABLE matched (k int)", "INSERT INTO matched VALUES (5)", "ANALYZE changed, matched")  # fmt: skip
    for mode, clause in ("off", ""), ("force", ""), ("force", "WHERE c.v >= 0 ORDER BY c.v"):
        with Session(HASH_ONLY + f"SET bloomtype.join_filters = {mode};") as waiting, Session() as first:
            first.each("BEGIN", "UPDATE changed SET k = k + 1000", "UPDATE matched SET k = k + 1000")
            future = in_thread(waiting.ask, f"SELECT c.k FROM changed AS c JOIN matched AS m ON c.k = m.k {clause} FOR UPDATE")
            wait_until_blocked(waiting)
            first.ask("COMMIT")
            rows = result_of(future)
        same(len(rows), 1, f"{mode} {clause}: a row that changed with its match is found")
    with Session(HASH_ONLY + FORCE) as waiting, Session() as first:
        first.each("BEGIN", "UPDATE changed SET v = v + 1")
        future = in_thread(waiting.ask, """UPDATE changed SET v = v + 10 FROM matched WHERE changed.k = matched.k
                           RETURNING v""")  # fmt: skip
        wait_until_blocked(waiting)
        first.ask("COMMIT")
        same(result_of(future), ["11"], "an update of a row that another one has changed")


def test_cached_plans():
    """Fails if a plan outlives the probe function that it calls."""
    with Session(HASH_ONLY + FORCE + "SET plan_cache_mode = force_generic_plan;") as session:
        session.ask("PREPARE counted(int) AS SELECT count(*) FROM pairs"
                    " JOIN (SELECT k + $1 AS k FROM few OFFSET 0) AS f USING (k)")
        same(session.ask("EXECUTE counted(1)"), ["2"], "a generic plan")
        session.each("BEGIN", "REVOKE EXECUTE ON FUNCTION bloom_join_filter FROM PUBLIC")
        ok(not any("Join Filter" in line for line in session.ask("EXPLAIN EXECUTE counted(3)")),
           "none if not everybody may execute the probe")  # fmt: skip
        session.each("ROLLBACK", "BEGIN")
        session.ask("DROP EXTENSION bloomtype CASCADE")
        same(session.ask("EXECUTE counted(2)"), ["2"], "the same after DROP EXTENSION")
        session.ask("ROLLBACK")
        same(session.ask("EXECUTE counted(3)"), ["2"], "and when that is rolled back")
        ok(any("Join Filter" in line for line in session.ask("EXPLAIN EXECUTE counted(3)")), "it has a filter again")
        session.ask("SET bloomtype.join_filters = off; DISCARD PLANS")
        ok(not any("Join Filter" in line for line in session.ask("EXPLAIN EXECUTE counted(3)")), "and none if off")


def test_cursors():
    """A cursor runs the plan bit by bit, and one with workers without them."""
    workers = "SET max_parallel_workers_per_gather = 2; SET enable_mergejoin = off; SET enable_nestloop = off;"
    for settings in HASH_ONLY, workers:
        with Session(settings + FORCE) as session:
            session.ask("BEGIN; DECLARE c CURSOR FOR SELECT p.i FROM pairs AS p JOIN wanted USING (k)")
            got = session.ask("FETCH 1 FROM c") + session.ask("FETCH 10 FROM c") + session.ask("FETCH ALL FROM c")
            expected = session.ask(f"SET LOCAL bloomtype.join_filters = off;"
                                   " SELECT p.i FROM pairs AS p JOIN wanted USING (k)")  # fmt: skip
            same(sorted(got), sorted(expected), "all rows of a cursor")
            session.ask("DECLARE s SCROLL CURSOR FOR SELECT p.i FROM pairs AS p JOIN wanted USING (k) ORDER BY i")
            forward = session.ask("FETCH 20 FROM s")
            back = session.ask("FETCH BACKWARD 19 FROM s")
            same(back, forward[:19][::-1], "a cursor that goes back")


def test_cursor_of_another_role():
    """Fails if the removal of a probe checks the rights of the role that fetches, which core does not."""
    each("CREATE ROLE opener", "CREATE ROLE fetcher", """DO $$ BEGIN
             EXECUTE format('GRANT USAGE ON SCHEMA %I TO opener, fetcher', current_schema()); END $$""",
         "GRANT SELECT ON pairs, wanted TO opener, fetcher",
         "CREATE FUNCTION permitted(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 >= 0; END'",
         "REVOKE EXECUTE ON FUNCTION permitted FROM PUBLIC", "GRANT EXECUTE ON FUNCTION permitted TO opener")  # fmt: skip
    query = "SELECT p.i FROM pairs AS p JOIN (SELECT i / 2 AS k FROM pairs OFFSET 0) AS w USING (k) WHERE permitted(p.i)"
    with Session(HASH_ONLY + FORCE + "SET bloomtype.join_filter_window = 16;") as session:
        session.ask(f"BEGIN; SET LOCAL ROLE opener; DECLARE c CURSOR FOR {query}; SET LOCAL ROLE fetcher")
        rows, state = session.attempt("FETCH ALL FROM c")
        same((state, len(rows)), ("00000", 20000), "the fetcher gets all rows")
        session.ask("ROLLBACK")
    each("DROP FUNCTION permitted", "DROP OWNED BY opener, fetcher", "DROP ROLE opener, fetcher")


def test_removal_beside_subplan():
    """Fails if a probe stays because the scan's other conditions cannot be compiled twice."""
    query = "SELECT count(*) FROM pairs AS p JOIN wanted USING (k) WHERE p.i NOT IN (SELECT k FROM few)"
    settings = HASH_ONLY + "SET bloomtype.join_filter_window = 16;"
    both(query, settings)
    with Session(settings + FORCE) as session:
        plan = session.explain(query, ", ANALYZE, TIMING off")
        ok(any("hashed SubPlan" in node.get("Filter", "") for node in plan), "a subplan beside the probe", plan)
        same([node["Probes Removed"] for node in plan if "Join Filter Name" in node], [1], "the probe is removed")


def test_small_scans():
    """Fails if many scans go on with a filter that drops nothing since each ends before its probe is judged, or if
    none tries again."""
    each("CREATE TABLE present AS SELECT i AS k FROM generate_series(0, 99) AS i",
         "CREATE TABLE days (day int, k int) PARTITION BY LIST (day)",
         """DO $$ BEGIN FOR i IN 0..99 LOOP
            EXECUTE format('CREATE TABLE day_%s PARTITION OF days FOR VALUES IN (%s)', i, i); END LOOP; END $$""",
         "INSERT INTO days SELECT i / 100, i % 100 + CASE WHEN i < 5000 THEN 0 ELSE 1000 END FROM generate_series(0, 9999) AS i",
         "ANALYZE present, days")  # fmt: skip
    query = "SELECT count(*) FROM days JOIN present USING (k)"
    settings = HASH_ONLY + "SET bloomtype.join_filter_window = 16;"
    both(query, settings)
    with Session(settings + FORCE) as session:
        plan = session.explain(f"{query} WHERE day < 50", ", ANALYZE, TIMING off")
        ((probed, removed),) = [(node["Rows Probed"], node["Probes Removed"]) for node in plan if "Rows Probed" in node]
        ok(probed < 500 and removed > 30, "most partitions without a row to drop lose the probe", probed, removed)
        plan = session.explain(query, ", ANALYZE, TIMING off")
        ok(dropped(plan) > 1000, "later partitions drop rows", dropped(plan))


def test_rows_in_order_of_keys():
    """Fails if a probe pauses or goes, though it pays in all, where rows that match stand together; or if it stays in
    a long rest of the scan where all match, or where it drops only null keys."""
    each("CREATE TABLE fifty AS SELECT generate_series(0, 49) AS k")
    for name, matches, other, dropped_rows, removed in (("short", "i % 2000 < 200", "-i - 1", (178000, 180000), 0),
            ("long", "(i + 50000) % 100000 < 8000", "-i - 1", (140000, 184000), 0),
            ("rest", "i >= 20000", "-i - 1", (19000, 20000), 1),
            ("null", "i % 10 = 9", "NULL", (15000, 27000), 1)):  # fmt: skip
        each(f"""CREATE TABLE {name}_runs AS SELECT CASE WHEN {matches} THEN i % 50 ELSE {other} END AS k
                 FROM generate_series(0, 199999) AS i""", f"ANALYZE fifty, {name}_runs")  # fmt: skip
        with Session(HASH_ONLY + FORCE) as session:
            plan = session.explain(f"SELECT FROM {name}_runs JOIN fifty USING (k)", ", ANALYZE, TIMING off")
        (build,) = [node for node in plan if "Join Filter Name" in node]
        ok(dropped_rows[0] <= build["Rows Dropped"] <= dropped_rows[1], f"dropped rows, {name} runs", build)
        same(build["Probes Removed"], removed, f"whether the probe is removed, {name} runs")
        ok(build["Rows Probed"] < 33000 or not removed, f"it is removed soon, {name} runs", build)


def test_removal_of_alternating_probe():
    """Fails if a probe stays because it pays now and then."""
    each("""CREATE TABLE alternating AS SELECT CASE WHEN i / 16 % 2 = 0 THEN -1 - i ELSE i % 10 END AS k
            FROM generate_series(0, 9999) AS i""", "CREATE TABLE ten AS SELECT generate_series(0, 9) AS k",
         "ANALYZE alternating, ten")  # fmt: skip
    with Session(HASH_ONLY + "SET bloomtype.join_filter_window = 16;" + FORCE) as session:
        plan = session.explain("SELECT count(*) FROM alternating JOIN ten USING (k)", ", ANALYZE, TIMING off")
    (build,) = [node for node in plan if "Join Filter Name" in node]
    same(build["Probes Removed"], 1, "the probe is removed")
    ok(build["Rows Dropped"] >= 5 * 15, "not by three windows in a row", build)


def test_loading():
    """The library comes with the session, or with the first function of the extension."""
    before = Session.settings
    Session.settings = before.replace("LOAD 'bloomtype';", "")
    query = "EXPLAIN SELECT FROM pairs JOIN few USING (k)"
    placed = [True, True]
    options = "-c session_preload_libraries=bloomtype -c bloomtype.join_filters=force"
    with Session(HASH_ONLY, options=options) as session:
        placed[0] = any("Join Filter" in line for line in session.ask(query))
    with Session(HASH_ONLY + "SET bloomtype.join_filters = force;") as session:
        ok(not any("Join Filter" in line for line in session.ask(query)), "nothing happens without the library")
        session.ask("SELECT bloom_create(10)")
        placed[1] = any("Join Filter" in line for line in session.ask(query))
    Session.settings = before
    same(placed, [True, True], "filters by session_preload_libraries, and by a setting before the library comes")


def test_memory():
    """Filters keep to a quarter of what a hash table may take, and give up rather than fail."""
    each("CREATE TABLE many AS SELECT i AS k FROM generate_series(1, 60000) AS i",
         "CREATE TABLE probing AS SELECT i * 3 AS k FROM generate_series(1, 100000) AS i",
         "ANALYZE many, probing")  # fmt: skip
    small = "SET work_mem = '64kB'; SET hash_mem_multiplier = 1; SET bloomtype.join_filters = on;"
    with Session(HASH_ONLY + small) as session:
        # the last two: the planner expects too many keys, or far too few
        for condition, rows, builds, keeps in (("k <= 600", 600, 1, True), ("k <= 8000", 8000, 1, True),
                ("k <= 60000", 60000, 0, None), ("abs(k) < 60001 AND abs(k) > 0", 60000, 1, False)):  # fmt: skip
            inner = f"(SELECT k FROM many WHERE {condition} OFFSET 0)"
            same(session.ask(f"SELECT count(*) FROM probing JOIN {inner} AS m USING (k)"), [str(rows // 3)],
                 f"the result with {rows} keys")  # fmt: skip
            plan = session.explain(f"SELECT FROM probing JOIN {inner} AS m USING (k)", ", ANALYZE, TIMING off")
            nodes = [node for node in plan if "Join Filter Name" in node]
            same(len(nodes), builds, f"filters for {rows} keys")
            for node in nodes:
                ok(node["Filter Size"] <= 16, "its size", node["Filter Size"])
                same(node["Rows Dropped"] > 0, keeps, "whether it drops rows")
                same(node["Probes Removed"], int(not keeps), "and goes otherwise")


def test_large_shared_filter():
    """A Parallel Hash takes its memory by an estimate, which may be far too high."""
    each("CREATE TABLE inner_guess AS SELECT generate_series(1, 1000) AS k",
         "CREATE TABLE outer_guess AS TABLE inner_guess", "ANALYZE inner_guess, outer_guess")  # fmt: skip
    for rows, filtered in (10000000, True), (20000000, False):
        with Session(FORCE + """SET max_parallel_workers_per_gather = 2; SET work_mem = '4GB';
                     SET enable_mergejoin = off; SET enable_nestloop = off;""") as session:  # fmt: skip
            session.each("BEGIN", f"""UPDATE pg_class SET reltuples = {rows} * (1 + (relname = 'outer_guess')::int)
                         WHERE relname IN ('inner_guess', 'outer_guess')""")  # fmt: skip
            plan = session.explain("SELECT FROM outer_guess JOIN inner_guess USING (k)")
            session.ask("ROLLBACK")
            same(any("Join Filter Name" in node for node in plan), filtered, f"a filter for {rows} rows")
            ok(any(node.get("Parallel Aware") and node["Node Type"] == "Hash" for node in plan), "in a Parallel Hash")


def test_order_of_probes():
    """Fails if a large filter, or one of texts, is probed before a small one that drops nearly as many rows."""
    each("CREATE TABLE star AS SELECT i % 1000 AS small, i % 1000 AS large FROM generate_series(1, 10000) AS i",
         "CREATE TABLE small_point AS SELECT generate_series(0, 999) AS id", "CREATE TABLE large_point AS TABLE small_point",
         "ALTER TABLE small_point ADD PRIMARY KEY (id)", "ALTER TABLE large_point ADD PRIMARY KEY (id)",
         "ANALYZE star, small_point, large_point")  # fmt: skip
    query = "SELECT FROM star JOIN small_point AS s ON s.id = small JOIN large_point AS l ON l.id = large WHERE s.id < {} AND l.id < {}"
    for shares, first in ((200, 180), "small"), ((900, 20), "large"):
        with Session(HASH_ONLY + FORCE + "SET work_mem = '4GB';") as session:
            session.each("BEGIN", """UPDATE pg_class SET reltuples = CASE relname WHEN 'star' THEN 1e9 ELSE 1e8 END
                         WHERE relname IN ('star', 'large_point')""")  # fmt: skip
            (condition,) = [node["Filter"] for node in session.explain(query.format(*shares)) if node.get("Alias") == "star"]
            session.ask("ROLLBACK")
            same(re.findall("small|large", condition)[:1], [first], "the filter that a scan probes first")
    each("CREATE TABLE name_point (name text PRIMARY KEY, id int)", "INSERT INTO name_point SELECT 'n' || id, id FROM small_point",
         "CREATE TABLE named AS SELECT small, 'n' || small AS name FROM star", "ANALYZE named, name_point")  # fmt: skip
    query = """SELECT FROM named JOIN small_point AS s ON s.id = small JOIN name_point AS l USING (name)
        WHERE s.id < {} AND l.id < {}"""
    for shares, first in ((200, 180), "small"), ((850, 120), "name"):
        with Session(HASH_ONLY + FORCE) as session:
            (condition,) = [node["Filter"] for node in session.explain(query.format(*shares)) if node.get("Alias") == "named"]
            same(re.findall("small|name", condition)[:1], [first], "a text is probed first only if it drops many more rows")


def test_price_of_lower_joins():
    """Fails if a filter is left out though its rows would be looked up in large hash tables of lower joins."""
    each(*(f"CREATE TABLE point_{name} AS SELECT i AS id, i % 10 AS g FROM generate_series(0, 999) AS i" for name in "abc"),
         *(f"ALTER TABLE point_{name} ADD PRIMARY KEY (id)" for name in "abc"),
         "CREATE TABLE line AS SELECT i / 10 AS a, i / 10 AS b, i / 10 AS c FROM generate_series(0, 9999) AS i",
         "ANALYZE point_a, point_b, point_c, line")  # fmt: skip
    joins = " ".join(f"JOIN point_{name} AS p{name} ON p{name}.id = {name} AND p{name}.g < 2" for name in "abc")
    with Session(HASH_ONLY + "SET bloomtype.join_filters = on; SET work_mem = '8MB';") as session:
        session.each("BEGIN", """UPDATE pg_class SET reltuples = CASE relname WHEN 'line' THEN 1e8 ELSE 1e7 END
                     WHERE relname IN ('line', 'point_a', 'point_b', 'point_c')""")  # fmt: skip
        plan = session.explain(f"SELECT count(*) FROM line {joins}")
        session.ask("ROLLBACK")
    same(sum("Join Filter Name" in node for node in plan), 3, "filters of three joins that spill")


def test_least_gain():
    """Fails if a filter is placed for a gain below the errors of its prices: by a tiny table, for keys that are slow to
    hash, for null keys; or if a guess overrules the planner's estimate where it is sound, or where no probe may go."""
    each("""CREATE TABLE flow AS SELECT i % 1000 AS k, 'n' || i % 1000 AS name, i % 100 AS d,
            CASE WHEN i % 20 > 16 THEN i % 1000 END AS n FROM generate_series(1, 100000) AS i""",
         "CREATE TABLE basin AS SELECT i AS k, 'n' || i AS name, i % 100 AS g FROM generate_series(0, 999) AS i",
         "CREATE TABLE twice AS SELECT k, g FROM basin UNION ALL SELECT k, g FROM basin",
         "CREATE TABLE unique_basin (LIKE basin, PRIMARY KEY (k))", "INSERT INTO unique_basin TABLE basin",
         "CREATE TABLE pool (d int PRIMARY KEY)", "INSERT INTO pool SELECT generate_series(0, 99)",
         "CREATE TABLE pools AS TABLE pool UNION ALL TABLE pool",
         "CREATE TABLE wide_basin AS SELECT 'n' || i AS name, i % 300 AS g FROM generate_series(0, 59999) AS i",
         "ANALYZE flow, basin, twice, unique_basin, pool, pools, wide_basin")  # fmt: skip
    expected = {
        "flow JOIN unique_basin USING (k) WHERE g < 60": False, "flow JOIN unique_basin USING (k) WHERE g < 40": True,
        "flow JOIN pool USING (d) WHERE d < 5": False,
        "flow JOIN basin USING (name) WHERE g < 0": False, "flow JOIN basin USING (name) WHERE g < 15": False,
        "flow JOIN wide_basin USING (name) WHERE g = 0": True,
        "flow JOIN unique_basin AS b ON n = b.k": False, "flow JOIN unique_basin AS b ON n = b.k WHERE g < 18": True,
        "flow JOIN unique_basin AS b ON n = b.k WHERE n > -1 AND g < 80": True,
        "flow JOIN basin USING (k) WHERE g < 60": False, "flow JOIN twice USING (k) WHERE g < 30": True,
        "(SELECT d, count(*) FROM flow GROUP BY d, k) AS f JOIN pools USING (d)": False,
        "(SELECT d, count(*) FROM flow GROUP BY d, k) AS f JOIN pools USING (d) WHERE pools.d % 5 = 0": True,
    }
    with Session(HASH_ONLY + "SET bloomtype.join_filters = on; SET bloomtype.join_filter_min_rows = 0;") as session:
        for join, has in expected.items():
            same(has_filter(session, f"SELECT count(*) FROM {join}"), has, join)


def test_failing_search():
    """Fails if a session whose search for the probe was cancelled takes it for missing."""
    query = "SELECT FROM pairs JOIN few USING (k)"
    with Session(HASH_ONLY + FORCE) as session:
        with Session() as other:
            other.ask("BEGIN; LOCK TABLE pg_extension")
            session.set_timeout(200)
            same(session.attempt(query)[1], RESULT_OF_TIMEOUT, "a statement is cancelled while it searches")
            other.ask("ROLLBACK")
        session.set_timeout(0)
        ok(has_filter(session, query), "the next one has a filter")


def test_jit():
    """Fails if JIT code goes on with a probe that has been removed, or loses the rest of the condition."""
    both("SELECT count(*), sum(i) FROM pairs JOIN wanted USING (k) WHERE i % 3 = 1 AND i > 5",
         HASH_ONLY + "SET statement_timeout = 0; SET jit = on; SET jit_above_cost = 0; SET jit_inline_above_cost = 0;"
         " SET jit_optimize_above_cost = 0; SET bloomtype.join_filter_window = 2;")  # fmt: skip


def test_price_of_jit():
    """Fails if a filter is placed that saves less than JIT takes for the columns before the key, or to optimize."""
    columns = ", ".join(f"0::int2 AS c{i}" for i in range(30))
    each(f"CREATE TABLE key_last AS SELECT {columns}, i % 1000 AS k FROM generate_series(1, 100000) AS i",
         "CREATE TABLE key_first AS SELECT k FROM key_last", "CREATE TABLE selection (k int PRIMARY KEY, g int)",
         "INSERT INTO selection SELECT i, i % 100 FROM generate_series(0, 19999) AS i",
         "ANALYZE key_last, key_first, selection")  # fmt: skip
    query = "SELECT count(*) FROM {} JOIN selection USING (k) WHERE g = 1"
    with Session(HASH_ONLY + "SET bloomtype.join_filters = on; SET jit_above_cost = 0;") as session:
        expected = {"off": (True, True), "on": (True, False), "on; SET jit_optimize_above_cost = 0": (False, False)}
        for jit, has in expected.items():
            session.ask(f"SET jit_inline_above_cost = -1; SET jit_optimize_above_cost = -1; SET jit = {jit}")
            same(tuple(has_filter(session, query.format(table)) for table in ("key_first", "key_last")), has, f"jit = {jit}")


def test_share_that_is_read():
    """Fails if a filter is placed for rows that nobody is expected to read, or not for those that a node above needs.

    The tables are those of test_price_of_jit()."""
    join = "SELECT * FROM key_first JOIN selection USING (k) WHERE g = 1"
    expected = {f"{join} LIMIT 1": False, f"{join} LIMIT 1 OFFSET 900": True, f"{join} ORDER BY k LIMIT 1": True,
                f"SELECT k, count(*) FROM ({join}) AS q GROUP BY k LIMIT 1": True,
                f"SELECT * FROM ({join} LIMIT 1) AS q ORDER BY k": False}  # fmt: skip
    with Session(HASH_ONLY + "SET bloomtype.join_filters = on;") as session:
        for query, has in expected.items():
            same(has_filter(session, query), has, query)
        for share, has in {0.001: False, 1: True}.items():
            same(has_filter(session, f"DECLARE c CURSOR FOR {join}", f"SET cursor_tuple_fraction = {share}"), has,
                 f"a cursor of which {share} is read")  # fmt: skip
        query = f"SELECT * FROM generate_series(1, 9) AS n, LATERAL ({join} AND k <> n OFFSET 0) AS q LIMIT 1"
        ok(has_filter(session, query, "SET enable_nestloop = on"), "the inner side of a nested loop", session.explain(query))


def test_parallel_hash():
    """Fails if a process of a Parallel Hash keeps its inner rows to itself, at first or when the plan runs again."""
    join = "SELECT count(*) AS n FROM pairs JOIN (SELECT k FROM wanted WHERE k < 300) AS w USING (k)"
    query = f"SELECT v, n FROM (VALUES (1), (2), (3)) AS v (v) LEFT JOIN ({join}) AS q ON true"
    for launched in 0, 2:
        settings = f"""SET max_parallel_workers_per_gather = 2; SET max_parallel_workers = {launched};
            SET enable_mergejoin = off; SET enable_nestloop = off; SET enable_material = off;"""
        both(join, settings)
        rows, _ = both(query, settings)
        same(len({row.split("|")[1] for row in rows}), 1, f"{launched} workers: each run of the plan has the same result")


WORKERS = """SET statement_timeout = 0; SET max_parallel_workers_per_gather = 2; SET enable_mergejoin = off;
    SET enable_nestloop = off; SET enable_material = off; SET enable_memoize = off;"""


def copied(query, settings=WORKERS, **parameters):
    """As both(), for a join above a Gather, whose workers must have a copy of the filter."""
    with Session(settings + FORCE, **parameters) as session:
        plan = session.explain(query)
        ok(any("Copy of Join Filter" in node for node in plan), "the workers have a copy of the filter",
           [node["Node Type"] for node in plan])  # fmt: skip
    return both(query, settings)


def test_copies():
    """Fails if the workers of a Gather below a hash join use a filter that is not complete, that they do not all use,
    or whose inner side has changed."""
    each("""CREATE FUNCTION here(int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT LEAKPROOF PARALLEL RESTRICTED
            AS 'BEGIN RETURN $1; END'""",
         """CREATE FUNCTION slow(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
            AS 'BEGIN IF $1 % 226 = 0 THEN PERFORM pg_sleep(0.02); END IF; RETURN true; END'""",
         "CREATE TABLE spread AS SELECT i % 5000 AS k, i FROM generate_series(0, 9999) AS i",
         "CREATE TABLE other_pages AS SELECT k FROM generate_series(0, 4999) AS k WHERE k / 226 % 2 = 0",
         "CREATE TABLE wide AS SELECT i % 5000 AS k, repeat('x', 300) AS pad FROM generate_series(0, 29999) AS i",
         "VACUUM ANALYZE spread, other_pages, wide")  # fmt: skip
    wanted = "(SELECT k FROM wanted WHERE here(k) < 1500) AS w USING (k)"
    for settings in ("SET work_mem = '64kB'; SET hash_mem_multiplier = 1;", "SET max_parallel_workers = 0;",
                     "SET parallel_leader_participation = off;"):  # fmt: skip
        copied(f"SELECT count(*), sum(length(pad)) FROM wide JOIN {wanted}", WORKERS + settings)
        # The rows of a group are in different pages, and a part of them is an error. The second filter drops all rows of
        # some pages and none of others, so that a process may want to give it up.
        for inner, query in (("few", "SELECT k, 1 / (count(*) / 6) AS one FROM wide GROUP BY k"),
                             ("other_pages", "SELECT k, 1 / (count(*) / 2) AS one FROM spread WHERE slow(i) GROUP BY k")):  # fmt: skip
            query = f"SELECT * FROM ({query}) AS g JOIN (SELECT k FROM {inner} WHERE here(k) / 5000 = 0) AS w USING (k)"
            for hashed in "on", "off":
                _, state = copied(query, WORKERS + settings
                                  + f"SET enable_hashagg = {hashed}; SET bloomtype.join_filter_window = 1;")  # fmt: skip
                same(state, "00000", "no group is cut")
        copied(f"""SELECT v, n FROM (VALUES (1), (2), (3)) AS v (v) LEFT JOIN (SELECT count(*) AS n FROM wide
               JOIN {wanted}) AS q ON true""", WORKERS + settings)  # fmt: skip
        # LIMIT ends the workers, and the next run starts others, and builds anew if the hash table has several batches
        copied("""SELECT v, (SELECT count(pad) + 0 * v FROM (SELECT pad FROM wide
               JOIN (SELECT k FROM wanted WHERE here(k) > 0) AS w USING (k) LIMIT 50) AS q)
               FROM generate_series(1, 3) AS v""", WORKERS + settings)  # fmt: skip
        rows, _ = both("""SELECT x, (SELECT count(*) FROM wide AS o JOIN (SELECT k FROM wanted WHERE here(k) % 7 = x
                       OFFSET 0) AS i ON o.k = i.k) FROM generate_series(0, 6) AS x""", WORKERS + settings, filtered=None)  # fmt: skip
        ok(len({row.split("|")[1] for row in rows}) > 1, "the counts differ between rescans", rows)


def test_late_copy():
    """Fails if workers that start before the filter is complete never use it, or do so before it is. They have sent
    few rows when it comes: what their queues hold."""
    query = "SELECT count(*) FROM wide JOIN (SELECT k FROM {} OFFSET 0) AS w USING (k)"
    settings = WORKERS + "SET parallel_leader_participation = off;"
    # where the estimate is far too low, there is no room for the filter; the last key lets it be no set of integers
    for inner, least, most in (("wanted WHERE here(k) < 300", 20000, 29000),
            ("(SELECT k FROM wanted, generate_series(1, 40) WHERE here(k) % 1 = 0 UNION ALL SELECT 2000000000) AS u",
             0, 0)):  # fmt: skip
        both(query.format(inner), settings)
        with Session(settings + FORCE) as session:
            plan = session.explain(query.format(inner), ", ANALYZE, TIMING off")
        (gather,) = [node for node in plan if node["Node Type"] == "Gather"]
        (hashed,) = [node for node in plan if node["Node Type"] == "Hash"]
        ok(gather["Startup Cost"] < hashed["Total Cost"], "the join reads a row of the workers first", plan)
        ok(least <= dropped(plan) <= most, "rows that the workers drop", dropped(plan))
        (build,) = [node for node in plan if "Join Filter Name" in node]
        same(build["Probes Removed"] > 0, most == 0, "they remove their probes if no filter will come")
    # the leader gives up a filter for which the planner expects few keys
    query = """SELECT count(*) FROM wide JOIN (SELECT k FROM many WHERE here(k) > 0 AND abs(k) < 60001 AND abs(k) > 0
        OFFSET 0) AS w USING (k)"""
    with Session(settings + "SET work_mem = '64kB'; SET hash_mem_multiplier = 1; SET bloomtype.join_filters = on;") as session:
        (build,) = [node for node in session.explain(query, ", ANALYZE, TIMING off") if "Join Filter Name" in node]
        same([build["Filter Size"], build["Rows Dropped"]], [0, 0], "a filter is given up")
        same(session.ask(query), ["29994"], "and the workers go on without it")


def test_no_segment():
    """Fails if a join that runs without shared memory, because the server has no segment left, takes its filter for
    that of several processes. Each Gather of a query keeps its segment to the end."""
    with Session() as session:
        (backends,) = session.ask("""SELECT sum(setting::int) + 8 FROM pg_settings WHERE name IN ('max_connections',
            'autovacuum_max_workers', 'autovacuum_worker_slots', 'max_worker_processes', 'max_wal_senders')""")
    gathers = 64 + 5 * int(backends) + 20
    for key in "k", "here(k)":
        join = f"(SELECT count(*) FROM pairs JOIN (SELECT k FROM wanted WHERE {key} < 100) AS w USING (k) WHERE i > -{{}})"
        query = f"SELECT n, count(*) FROM unnest(ARRAY[{', '.join(map(join.format, range(gathers)))}]) AS n GROUP BY n"
        rows, state = both(query, """SET statement_timeout = 0; SET max_parallel_workers_per_gather = 1;
            SET max_parallel_workers = 0; SET enable_mergejoin = off; SET enable_nestloop = off;""")
        # a Parallel Hash that got the last segment fails for want of a second one, with a filter or without
        ok((len(rows), state) == (1, "00000") or (key == "k" and state == "53000"), "all joins have the same result", state)


def figures_of(nodes):
    """Asserts that the figures of the only filter of a plan are those of the scan that probes it, whose condition is
    nothing but the probe, in all processes; returns the build node."""
    (build,) = [node for node in nodes if "Join Filter Name" in node]
    (scan,) = [node for node in nodes if "bloom_join_filter" in node.get("Filter", "")]
    loops = scan["Actual Loops"]
    # EXPLAIN divides the rows by the loops, and rounds them
    ok(abs(scan["Rows Removed by Filter"] * loops - build["Rows Dropped"]) <= loops / 2, "all dropped rows are counted",
       scan, build)  # fmt: skip
    read = (scan["Actual Rows"] + scan["Rows Removed by Filter"]) * loops
    # each process of a join that reads an outer row before it builds the filter lets that pass
    ok(abs(read - build["Rows Probed"]) <= 2 * loops, "and all probed rows", scan, build)
    return build


WORKER = r" *Worker \d:  Rows Probed: \d+  Rows Dropped: \d+  Probes Removed: 0"


def test_figures_of_workers():
    """Fails if the figures of a filter miss those of a worker, also if a LIMIT ends it, or if it runs several times."""
    join = "SELECT count(*) AS n FROM pairs JOIN few USING (k)"
    queries = (join, "SELECT p.i FROM pairs AS p JOIN few USING (k) LIMIT 1",
               f"SELECT v, n FROM (VALUES (1), (2), (3)) AS v (v) LEFT JOIN ({join}) AS q ON true")  # fmt: skip
    for shared in "on", "off":
        for leader in "on", "off":
            with Session(FORCE + f"""SET max_parallel_workers_per_gather = 2; SET enable_mergejoin = off;
                         SET enable_nestloop = off; SET enable_material = off; SET enable_parallel_hash = {shared};
                         SET parallel_leader_participation = {leader};""") as session:  # fmt: skip
                for query in queries:
                    nodes = session.explain(query, ", ANALYZE, VERBOSE, TIMING off")
                    ok(any(node["Node Type"] == "Gather" for node in nodes), f"{shared}, {leader}: {query}")
                    build = figures_of(nodes)
                    same(build["Parallel Aware"], shared == "on", "the filter is one of all processes, or of each")
                    ok(shared == "off" or build["Keys Added"] == 1, "with the keys of all", build)
                    for figure in "Rows Probed", "Rows Dropped", "Probes Removed":
                        of_workers = sum(worker[figure] for worker in build["Join Filter Workers"])
                        ok(of_workers == build[figure] if leader == "off" else of_workers <= build[figure],
                           f"{figure} of each worker", build)  # fmt: skip
                text = session.ask(f"EXPLAIN (ANALYZE, VERBOSE, COSTS off, TIMING off) {join}")
                ok(leader == "on" or any(re.fullmatch(WORKER, line) for line in text), "as text", *text)


def test_figures_of_copies():
    """Fails if the figures of a filter miss those of a worker that has a copy."""
    query = "SELECT count(*) FROM spread JOIN (SELECT k FROM few WHERE here(k) > 0) AS f USING (k)"
    with Session(WORKERS + FORCE + "SET parallel_leader_participation = off;") as session:
        plan = session.explain(query, ", ANALYZE, VERBOSE, TIMING off")
        (build,) = [node for node in plan if "Join Filter Name" in node]
        (copy,) = [node for node in plan if "Copy of Join Filter" in node]
        ok(5000 < build["Rows Probed"] <= 10000, "workers probe the rows after those in their queues", build)
        ok(0.99 * build["Rows Probed"] < build["Rows Dropped"] < 10000, "and drop nearly all", build)
        same(build["Keys Added"], 1, "by the keys of the leader")
        for figure in "Rows Probed", "Rows Dropped":
            same(sum(worker[figure] for worker in copy["Join Filter Workers"]), build[figure], f"{figure} of each worker")


def test_explain():
    """What EXPLAIN shows in each format, at the build node and, where the server can, at the scan."""
    query = "SELECT count(*) FROM pairs AS p JOIN few AS f USING (k)"
    with Session(HASH_ONLY + FORCE) as session:
        at_scan = session.connection.info.server_version >= 180000
        lines = [line.strip() for line in session.ask(f"EXPLAIN (ANALYZE, COSTS off, TIMING off) {query}")]
        lines = [line for line in lines if re.match("(Join Filter|Rows Probed|Probes|Keys|Filter Size)", line)]
        figures = ["Rows Probed: 9999", "Probes Removed: 0"]
        same(lines, (["Join Filter $0 On: p.k", *figures] if at_scan else [])
             + ["Join Filter $0 Built From: f.k", "Keys Added: 1", "Filter Size: 1 kB", *figures], "text")  # fmt: skip
        nodes = session.explain(query, ", ANALYZE, TIMING off")
        build = figures_of(nodes)
        same([build[key] for key in ("Join Filter Name", "Join Filter Built From", "Keys Added", "Filter Size")],
             ["$0", ["f.k"], 1, 1], "JSON")  # fmt: skip
        figures = {key: build[key] for key in ("Rows Probed", "Rows Dropped", "Probes Removed")}
        expected = [{"Join Filter Name": "$0", "Join Filter On": ["p.k"], **figures}] if at_scan else []
        same([one for node in nodes for one in node.get("Join Filters", [])], expected, "JSON at the scan")
        (yaml,) = session.ask(f"EXPLAIN (FORMAT yaml) {query}")
        lines = [line.strip() for line in yaml.split("\n") if re.search("Join Filter|p\\.k\"$|f\\.k\"$", line)]
        same(lines, ["Join Filters:", '- Join Filter Name: "$0"', "Join Filter On:", '- "p.k"'] * at_scan
             + ['Custom Plan Provider: "Bloom Join Filter"', 'Join Filter Name: "$0"', "Join Filter Built From:", '- "f.k"'],
             "YAML")  # fmt: skip
        session.ask("SET bloomtype.join_filter_window = 10")
        (plan,) = session.ask("EXPLAIN (FORMAT xml, ANALYZE) SELECT FROM pairs AS p JOIN wanted USING (k)")
        namespace = {"e": "http://www.postgresql.org/2009/explain"}
        removed = [one.text for one in ElementTree.fromstring(plan).findall(".//e:Probes-Removed", namespace)]
        same(removed, ["1"] * (1 + at_scan), "a probe that was removed, in XML")


run(test_half_groups, test_other_groups, test_sets_of_integers, test_equal_values, test_changing_inner_side,
    test_old_parameters, test_unordered_inner_side, test_workers_on_the_inner_side, test_chain_of_subqueries, test_subplan_of_many_partitions, test_expensive_keys,
    test_security_barrier, test_merge_joins, test_end_of_merge_join, test_end_of_nested_loop, test_empty_inner_side,
    test_unhashable_elements, test_reevaluated_rows, test_cached_plans, test_cursors, test_cursor_of_another_role,
    test_small_scans, test_removal_beside_subplan, test_rows_in_order_of_keys, test_removal_of_alternating_probe,
    test_loading, test_memory, test_large_shared_filter, test_order_of_probes, test_price_of_lower_joins,
    test_least_gain, test_failing_search, test_jit, test_price_of_jit, test_share_that_is_read, test_parallel_hash,
    test_copies, test_late_copy, test_no_segment, test_figures_of_workers, test_figures_of_copies, test_explain,
    test_random_queries)  # fmt: skip
