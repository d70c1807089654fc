#!/usr/bin/python3 -B
"""Join filters never change a result of a join that runs again while its inner side returns other rows than before: random
queries, and each reason for other rows.

JOIN_QUERIES is the number of random queries, and JOIN_SEED the first one's seed.
"""

import os
import time

from join_queries import RESULT_OF_TIMEOUT, SETTINGS
from rescan_queries import EACH, INDEXES, KINDS, Queries, Statement, grown_table, tables
from session import Session, ask, each, has, run
from tap import note, ok, same, skip

QUERIES = int(os.environ.get("JOIN_QUERIES", "200"))
SEED = int(os.environ.get("JOIN_SEED", "1"))
Session.settings = SETTINGS
GOES_BACK = "BACKWARD", "ABSOLUTE", "RELATIVE", "LAST"  # commands that need a cursor with SCROLL


def goes_back(statement):
    return any(word in command for command in statement.cursor for word in GOES_BACK)


def commands_of(statement):
    if not statement.cursor:
        return [statement.sql]
    scroll, hold = " SCROLL" * goes_back(statement), " WITH HOLD" * ("COMMIT" in statement.cursor)
    return [f"DECLARE c{scroll} CURSOR{hold} FOR {statement.sql}", *statement.cursor]


def outcome(session, statement, mode):
    """What each command returns, or the SQLSTATE of the first that fails."""
    session.each(f"SET bloomtype.join_filters = {mode}", "BEGIN")
    results, state = [], "00000"
    for command in (*statement.setup, *commands_of(statement)):
        rows, state = session.attempt(command)
        results += rows
        if state != "00000":
            break
    session.each("ROLLBACK", "CLOSE ALL", "DROP TABLE IF EXISTS grown")
    return state, results


def is_expected(statement, rows):
    """Is the result that which follows from the tables? A cursor that goes back returns some rows several times."""
    if statement.rows is None:
        return True
    return set(rows) <= set(statement.rows) if goes_back(statement) else rows == statement.rows


def explain(session, statement, counts):
    """Counts what the plan has, with filters."""
    session.ask("BEGIN")
    session.each(*statement.setup)
    plan = session.explain(statement.sql, ", ANALYZE, TIMING off")
    session.ask("ROLLBACK")
    builds = [node for node in plan if "Join Filter Name" in node]
    counts["explained"] += 1
    counts["three filters"] += len(builds) > 2
    counts["dropping"] += sum(node.get("Rows Dropped", 0) for node in builds) > 0
    counts["removed"] += any(node.get("Probes Removed", 0) > 0 for node in builds)
    counts["rebuilt"] += any(node["Actual Loops"] > 1 for node in builds)
    counts["batches"] += any(node.get("Hash Batches", 1) > 1 for node in plan)


def compare(session, seed, counts):
    """Runs a random query with filters and without; returns what differs, if anything."""
    queries = Queries(seed)
    statement, settings = queries.statement(), [*queries.settings(), *queries.filter_settings()]
    for kind in queries.kinds:
        counts[kind] = counts.get(kind, 0) + 1
    settings = f"RESET ALL; {Session.settings} {'; '.join(settings)};"
    session.ask(f"{settings} SET statement_timeout = '5s'")
    expected = outcome(session, statement, "off")
    if expected[0] == RESULT_OF_TIMEOUT:
        return None
    counts["compared"] += expected[0] == "00000"
    session.ask(settings)
    got = outcome(session, statement, "force")
    if got != expected or (expected[0] == "00000" and not is_expected(statement, expected[1])):
        text = "; ".join(["BEGIN", *statement.setup, *commands_of(statement)])
        return f"seed {seed}: by the tables {shown(statement.rows)}; {expected[0]} {shown(expected[1])};" \
               f" with filters {got[0]} {shown(got[1])} {session.error or ''}\n{settings}\n{text}"  # fmt: skip
    if queries.maybe(0.2):
        session.ask(f"{settings} SET bloomtype.join_filters = force")
        explain(session, statement, counts)
    return None


def shown(rows):
    """The different rows, each with its number."""
    return ", ".join(f"{row!r} {rows.count(row)} times" for row in dict.fromkeys(rows or ()))


def compare_all(seeds, counts):
    """What differs, also where a comparison cannot end."""
    session = Session()
    for seed in seeds:
        try:
            difference = compare(session, seed, counts)
        except Exception as problem:
            difference = f"seed {seed}: {problem!r}"
            session.connection.close()
            session = Session()
        if difference:
            yield difference
    session.connection.close()


def test_tables():
    each("SET statement_timeout = 0", *tables())


def test_random_queries():
    """Fails if a query of rescan_queries.py has another result with filters, or than follows from its tables."""
    counts = dict.fromkeys(("compared", "explained", "three filters", "dropping", "removed", "rebuilt", "batches"), 0)
    begin = time.monotonic()
    different = list(compare_all(range(SEED, SEED + QUERIES), counts))
    seconds = time.monotonic() - begin
    same(different, [], f"{QUERIES} random queries have the same result with filters and without")
    note(f"{QUERIES / seconds:.1f} queries in a second; {counts}")
    ok(counts["compared"] >= 0.9 * QUERIES, "nearly all of them have a result", counts)
    for count, name in (
            ("dropping", "filters drop rows"), ("rebuilt", "filters are built again"), ("batches", "hash tables have batches"),
            ("removed", "probes are removed")):  # fmt: skip
        ok(counts[count] >= 0.1 * counts["explained"], f"in many of them {name}", counts)
    ok(counts["three filters"] > 0, "and some have three filters", counts)
    expected = {f"{group}: {kind}" for group, kinds in KINDS.items() for kind in kinds}
    same(expected - counts.keys(), set(), "and they are of all kinds")


# The ways to other rows. An inner side has 80 rows or more, which are several batches at 64 kB, so that each run builds it
# again. The outer side keeps rows: groups of a hash join, or those that a merge join has sorted.

HASH_ONLY = """SET enable_mergejoin = off; SET enable_nestloop = off; SET enable_material = off; SET work_mem = '64kB';
    SET hash_mem_multiplier = 1; SET max_parallel_workers_per_gather = 0; SET bloomtype.join_filter_min_rows = 0;"""
MERGE_ONLY = HASH_ONLY + "SET enable_hashjoin = off; SET enable_mergejoin = on; SET enable_incremental_sort = off;"
WORKERS = """SET max_parallel_workers_per_gather = 2; SET enable_gathermerge = off;
    SET parallel_leader_participation = off;"""
KEPT = "(SELECT k, count(*) AS c, max(pad) AS pad FROM kept WHERE costly(v) >= 0 GROUP BY k) AS p"
CURSOR = "FETCH 1 FROM c", "SET work_mem = '1MB'", "FETCH ALL FROM c"
THREE = "generate_series(1, 3) AS g"
GROWING = f"(SELECT g, grow(g) FROM {THREE} OFFSET 0) AS driver"
LOCKING = f"(SELECT g, lock_rows(g) FROM {THREE} OFFSET 0) AS driver"
SORTED = "(SELECT * FROM picked ORDER BY t OFFSET 0) AS y"


def hashed(inner, drive=THREE):
    """How many groups are partners of an inner side: as many as it has different keys."""
    return f"""SELECT (SELECT count(*) FROM {KEPT} WHERE EXISTS (SELECT FROM ({inner}) AS i
        WHERE i.k = p.k AND length(i.pad) + p.c + g >= 0)) FROM {drive}"""


def merged(inner, drive=THREE):
    """How many rows of an inner side lack a partner: none."""
    return f"""SELECT (SELECT count(*) - count(p.k) FROM ({inner}) AS i
        LEFT JOIN kept AS p ON i.k = p.k AND length(i.pad) + p.v + g > 0) FROM {drive}"""


def unchanged(query, answers, settings=HASH_ONLY, setup=(), cursor=CURSOR):
    """Is the result this one, with filters and without?"""
    statement = Statement(setup, query, answers, cursor)
    with Session(settings) as session:
        session.each("BEGIN", *setup)
        plan = session.explain(query, ", ANALYZE, TIMING off")
        session.ask("ROLLBACK")
        ok(any(has(node, {"Node Type": ("Hash", "Sort")}) and node["Actual Loops"] > 1 for node in plan),
           f"an inner side is built again: {' '.join(query.split())[:150]}", plan)  # fmt: skip
        for mode in "off", "force":
            same(outcome(session, statement, mode), ("00000", answers), f"the result is right: {mode}")


def test_ties():
    """Fails if a node that chooses among ties counts as one that returns the same rows at each run. A sort orders ties
    otherwise with more memory."""
    of_groups = ", ".join(f"(array_agg({column}))[1] AS {column}" for column in ("k", "pad"))
    for inner, keys in (
            ("SELECT * FROM picked ORDER BY t LIMIT 120", 120),
            ("SELECT * FROM picked ORDER BY t OFFSET 20 ROWS FETCH FIRST 120 ROWS ONLY", 120),
            ("SELECT DISTINCT ON (d) * FROM picked ORDER BY d", 100),
            ("SELECT * FROM (SELECT *, row_number() OVER (ORDER BY t) AS n FROM picked) AS n WHERE n <= 120", 120),
            ("SELECT first_value(k) OVER w AS k, pad FROM picked WINDOW w AS (PARTITION BY d)", 100),
            (f"SELECT {of_groups} FROM picked GROUP BY d", 100),
            (f"SELECT {of_groups} FROM {SORTED} GROUP BY d", 100)):  # fmt: skip
        unchanged(hashed(inner), [str(keys)] * 3, HASH_ONLY + "SET enable_hashagg = off;")
        unchanged(merged(inner), ["0"] * 3, MERGE_ONLY + "SET enable_hashagg = off;")


def test_float_sums():
    """Fails if a sum of floats counts as the same at each run: it rounds in the order of its input."""
    query = f"""SELECT (SELECT count(*) FROM (SELECT d, s, count(*) AS c FROM sums WHERE costly(d) >= 0 GROUP BY d, s) AS p
        JOIN (SELECT d, sum(f) AS s, min(pad) AS pad FROM {SORTED} GROUP BY d) AS i
        ON i.d = p.d AND i.s = p.s AND p.c + length(i.pad) + g > 0) FROM generate_series(1, 3) AS g"""
    unchanged(query, ["100"] * 3)


def test_probe_below():
    """Fails if LIMIT counts as the same though the probe of another filter below it has removed itself."""
    unchanged(hashed(f"SELECT y.* FROM {SORTED} JOIN pairs_2 USING (x) ORDER BY t LIMIT 120"), ["120"] * 3,
              HASH_ONLY + "SET bloomtype.join_filter_window = 16;", cursor=())  # fmt: skip


def test_number_of_batches():
    """Fails if LIMIT counts as the same though a join below it has another number of batches, which decides the order of
    its rows."""
    unchanged(hashed("SELECT l.* FROM picked AS l JOIN all_pairs USING (x) LIMIT 120"), ["120"] * 3)


def test_moved_rows():
    """Fails if LIMIT counts as the same though an index returns rows in another order after an insert."""
    for kind in "gist", "gist order", "spgist order":
        inner = f"SELECT k, pad FROM grown {INDEXES[kind][1]} LIMIT 100"
        unchanged(hashed(inner, GROWING), ["100"] * 3, setup=grown_table(kind), cursor=())


def test_workers():
    """Fails, though not surely, if LIMIT counts as the same though workers return rows in another order."""
    query = merged("SELECT k, pad FROM picked WHERE pad > '' LIMIT 120", "generate_series(1, 12) AS g")
    unchanged(query, ["0"] * 12, MERGE_ONLY + WORKERS, cursor=())


def test_samples():
    """Fails if a sample counts as the same at each run: workers draw another one."""
    sample = "SELECT k, pad FROM picked TABLESAMPLE bernoulli (30)"
    unchanged(merged(f"{sample} UNION ALL {sample}"), ["0"] * 3, MERGE_ONLY + WORKERS, cursor=())


def test_settings():
    """Fails if a stable function counts as the same at each run: a setting may change while a cursor is open."""
    most = "SELECT * FROM picked WHERE x < current_setting('test.most')::int"
    unchanged(hashed(most), ["100", "100", "300"], setup=["SET LOCAL test.most = 100"],
              cursor=["FETCH 2 FROM c", "SET LOCAL test.most = 300", "FETCH ALL FROM c"])  # fmt: skip


def test_system_columns():
    """Fails if a row counts as the same though it has been locked meanwhile, which it shows."""
    unchanged(hashed("SELECT * FROM grown WHERE xmax <> 0", LOCKING), ["80", "160", "240"], cursor=(),
              setup=["CREATE TEMP TABLE grown AS SELECT * FROM picked WHERE x < 240"])  # fmt: skip


def test_subplans():
    """Fails if a subplan of the inner side counts as the same at each run. It is expensive, and must be cheaper than the
    outer side."""
    chosen = f"(SELECT k FROM grown {INDEXES['gist'][1]} OFFSET q.x LIMIT 1)"
    query = hashed(f"SELECT {chosen} AS k, pad FROM picked AS q WHERE x < 100 OFFSET 0", GROWING)
    unchanged(query.replace("costly(v)", "costly(v) + costly(w) + costly(k)"), ["100"] * 3, setup=grown_table("gist"),
              cursor=())  # fmt: skip


def test_foreign_scans():
    """Fails if a foreign scan counts as the same at each run: another server decides which rows it returns."""
    if not ask("SELECT FROM pg_available_extensions WHERE name = 'postgres_fdw'"):
        skip("postgres_fdw", "it is not installed")
        return
    host, port, database, user, schema = ask(
        "SELECT split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'), current_database(),"
        " current_user, current_schema")[0].split("|")
    each(f"CREATE EXTENSION postgres_fdw SCHEMA {schema}",
         f"""CREATE SERVER here FOREIGN DATA WRAPPER postgres_fdw
             OPTIONS (host '{host}', port '{port}', dbname '{database}', fetch_size '50')""",
         f"CREATE USER MAPPING FOR CURRENT_USER SERVER here OPTIONS (user '{user}')",
         "CREATE VIEW shuffled AS SELECT k, pad FROM picked ORDER BY random() LIMIT 150",
         f"""CREATE FOREIGN TABLE far (k int, pad text) SERVER here
             OPTIONS (schema_name '{schema}', table_name 'shuffled')""")  # fmt: skip
    unchanged(hashed("SELECT * FROM far"), ["150"] * 3, cursor=())
    each("ALTER SERVER here OPTIONS (ADD fdw_startup_cost '1e6')")  # so that it joins
    with Session("SET bloomtype.join_filters = on; SET bloomtype.join_filter_notices = on; SET client_min_messages = notice;") as session:
        session.ask("EXPLAIN SELECT FROM picked LEFT JOIN (SELECT a.k FROM far AS a JOIN far AS b USING (k)) AS f USING (k)")
        ok(any("(a, b)" in notice for notice in session.notices), "a notice names the tables of a foreign join",
           session.notices)


def test_ways_to_run_again():
    """Fails if a join counts as one that is run once in one of the ways to run it again: beside the subplans above, the
    inner side of a nested loop, and the recursive part of a query."""
    inner = "SELECT l.k, l.t, l.pad FROM picked AS l JOIN all_pairs USING (x) LIMIT 120"
    rows = f"""SELECT p.c FROM {KEPT} WHERE EXISTS (SELECT FROM ({inner}) AS i WHERE i.k = p.k AND length(i.pad) + p.c > 0)
        OFFSET 0"""
    loop = f"SELECT g FROM {THREE} LEFT JOIN ({rows}) AS l ON l.c + g > 0"
    recursive = f"""WITH RECURSIVE r (g, c, n) AS (SELECT 0, {EACH}::bigint, 120::bigint UNION SELECT g + 1, l.c, l.n
        FROM r JOIN (SELECT *, count(*) OVER () AS n FROM ({rows}) AS l) AS l ON l.c = r.c WHERE g < 3) SELECT n FROM r"""
    for cursor in ("FETCH 2 FROM c", *CURSOR[1:]), ():
        unchanged(loop, [str(g) for g in (1, 2, 3) for _ in range(120)], cursor=cursor)
        unchanged(recursive, ["120"] * 4, cursor=cursor)


run(test_tables, test_ties, test_float_sums, test_probe_below, test_number_of_batches, test_moved_rows, test_workers,
    test_samples, test_settings, test_system_columns, test_subplans, test_foreign_scans, test_ways_to_run_again,
    test_random_queries)
