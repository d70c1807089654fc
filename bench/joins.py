#!/usr/bin/python3
"""Join filters: queries with bloomtype.join_filters off against on.

Connects as psql does, as a superuser, to an empty database with bloomtype in it, and runs pgbench. The goals are for
ROWS = 10 million; all tables are in proportion to it. JOINS names the parts to run, by their functions; by default all
but prices, which measures the constants of src/join/price.c, and duckdb, which runs the shapes in DuckDB with its own
filters off and on. The server should hold all tables in shared_buffers and run no autovacuum.

A row has the milliseconds of the processors, and the ratios off / on of these and of the time that passes: the median of
TURNS pairs by turns, and its interval by order statistics (the second least and the second greatest of nine: 96 %). A
goal is missed if the interval excludes it, and open if only the median misses it. The processors' time is that of the
backend and of its workers. Workers are counted in ticks of the kernel, usually 10 ms.
"""
import contextlib
import csv
import itertools
import json
import os
import statistics
import sys
import time

from duckdb_session import DuckDB
from measure import Session, cpu_used, interval, pgbench, postmaster, rows, spent_with
from ratios import PARTS, note, part

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
import joins as peers  # noqa: E402  (that of peers, before the one here)
import tpch  # noqa: E402
from plans import agree  # noqa: E402
from results import DIRECTORY  # noqa: E402

ROWS = rows()
FEWER = max(ROWS * 3 // 10, 1000)
TURNS = 9

SERIAL = ("max_parallel_workers_per_gather = 0", "jit = off", "synchronize_seqscans = off")  # fmt: skip
WORKERS = ("max_parallel_workers_per_gather = 2", *SERIAL[1:])
SMALL, LARGE = "4 MB", "256 MB"
CASES = {
    SMALL: ("work_mem = '4MB'", *SERIAL),
    LARGE: ("work_mem = '256MB'", *SERIAL),
    SMALL + ", 2 workers": ("work_mem = '4MB'", *WORKERS),
    LARGE + ", 2 workers": ("work_mem = '256MB'", *WORKERS),
}  # fmt: skip
LOADED = "-c client_min_messages=warning -c session_preload_libraries=bloomtype"
OFF, ON = ("bloomtype.join_filters = " + mode for mode in ("off", "on"))


# Figures

RESULTS = []


def verdict(figures, goal):
    """Of a goal such as ">= 1.5" for (median, low, high)."""
    if not goal:
        return ""
    sign, number = goal.split()
    median, low, high = figures if sign == ">=" else (-figures[0], -figures[2], -figures[1])
    limit = float(number) if sign == ">=" else -float(number)
    return "met" if median >= limit else "open" if high >= limit else "MISSED"


def columns(title):
    print("\n%-58s %9s %9s   %-22s %-22s %-8s %s" % (
        title, "off", "on", "ratio of CPU", "ratio of time", "goal", "CPU, time"), flush=True)  # fmt: skip


def record(name, metric, figures, goal):
    RESULTS.append([name, metric, *("%.4g" % figure for figure in figures), goal, verdict(figures, goal)])


def show(name, pairs, goal="", remark=""):
    """The ratios of pairs (off, on), each (seconds, seconds of processors). Returns those of the processors."""
    ratios = [[off[i] / on[i] for off, on in pairs] for i in (1, 0)]
    both = [interval(each) for each in ratios]
    for metric, figures in zip(("CPU", "time"), both):
        record(name, metric, figures, goal)
    print("%-58s %6.4g ms %6.4g ms   %-22s %-22s %-8s %-11s %s" % (
        name, *(1000 * statistics.median(pair[i][1] for pair in pairs) for i in (0, 1)),
        *("%.2f (%.2f to %.2f)" % figures for figures in both), goal,
        ", ".join(verdict(figures, goal) for figures in both) if goal else "", remark), flush=True)  # fmt: skip
    return ratios[0]


def show_figure(name, values, unit, goal=""):
    """A figure that is no ratio."""
    figures = interval(values)
    record(name, unit, figures, goal)
    print("%-58s %.4g (%.4g to %.4g) %-10s %-8s %s" % (name, *figures, unit, goal, verdict(figures, goal)), flush=True)


def mean_of_turns(ratios):
    """The geometric mean over the queries, for each turn."""
    return [statistics.geometric_mean(each) for each in zip(*ratios)]


# Runs

def processes(session):
    """Those that the server has started and not waited for."""
    with open("/proc/{0}/task/{0}/children".format(postmaster(session))) as children:
        return set(children.read().split())


def turns_of(session, works):
    """The figures of works, each (sql, setting), by turns, and every other time in the other order."""
    turns = []
    for turn in range(TURNS):
        order = works if turn % 2 else works[::-1]
        figures = {work: spent_with(session, *work)[:2] for work in order}
        turns.append([figures[work] for work in works])
    return turns


def by_turns(session, name, *works):
    """The same for works with the same result, after one run of each to warm up."""
    agree(name, *(sorted(spent_with(session, *work)[2]) for work in works))
    return turns_of(session, works)


def filters_of(session, sql):
    """The number of scans that probe a filter, and what the filters of a query do."""
    session.ask("SET " + ON)
    plan = session.explain(sql, ", ANALYZE, TIMING off")
    probes = sum(node.get("Filter", "").count("bloom_join_filter(") for node in plan)
    removed, dropped, probed = (sum(node.get(key, 0) for node in plan)
                                for key in ("Probes Removed", "Rows Dropped", "Rows Probed"))  # fmt: skip
    return probes, "%d probes, %d removed, %.2g of %.2g dropped" % (probes, removed, dropped, probed) if probes else "no probe"


def compare(session, name, sql, goal=""):
    _, remark = filters_of(session, sql)
    return show(name, by_turns(session, name, (sql, OFF), (sql, ON)), goal, remark)


def make(session, *scripts):
    """Runs each statement as a transaction, as VACUUM needs it."""
    for script in scripts:
        session.each(*script.split("; "))


# Tables

def dimension(name, number):
    """Each kind is a twentieth of its rows."""
    return ("CREATE UNLOGGED TABLE {0} AS SELECT i::int AS id, {2} AS kind, {2} AS sort, {2} AS class, md5(i::text) AS name "
            "FROM generate_series(0, {1}::bigint - 1) AS i; ALTER TABLE {0} ADD PRIMARY KEY (id); VACUUM ANALYZE {0}"
            .format(name, number, tpch.pick(1, 20)))  # fmt: skip


def fact(name, number, **keys):
    """Its keys by name: numbers below the one given, or SQL."""
    picked = ", ".join("%s AS %s" % (key if isinstance(key, str) else tpch.pick(seed, key), column)
                       for seed, (column, key) in enumerate(keys.items(), 2))  # fmt: skip
    return ("CREATE UNLOGGED TABLE {0} AS SELECT i::int AS id, {2}, {3} AS v, md5(i::text) AS note "
            "FROM generate_series(0, {1}::bigint - 1) AS i; VACUUM ANALYZE {0}"
            .format(name, number, picked, tpch.pick(99, 1000)))  # fmt: skip


def wishes(name, number, of):
    """Each key twice on average, so that a semi-join is no inner join."""
    return ("CREATE UNLOGGED TABLE {0} AS SELECT {1} AS key, {2} AS kind FROM generate_series(1, {3}::bigint) AS i; "
            "VACUUM ANALYZE {0}".format(name, tpch.pick(1, of), tpch.pick(2, 20), number))  # fmt: skip


# The shapes

SHAPES = {
    # name: (SQL with the number of rows as a suffix of tables, goals by case, as serial ones)
    "below GROUP BY": ("""SELECT count(*), sum(total) FROM (SELECT a, sum(v) AS total FROM fact GROUP BY a) AS g
        JOIN large_a ON large_a.id = a WHERE kind = 1""", ">= 5", (SMALL, LARGE)),
    "spilling": ("""SELECT count(*), max(name), max(note) FROM fact JOIN large_a ON large_a.id = a WHERE kind < 4""",
                 ">= 1.9", (SMALL,)),
    "three large dimensions": ("""SELECT count(*), sum(v) FROM fact JOIN large_a AS x ON x.id = a
        JOIN large_b AS y ON y.id = b JOIN large_c AS z ON z.id = c WHERE x.kind < 4 AND y.kind < 4 AND z.kind < 4""",
                               ">= 2.0", (SMALL, LARGE)),
    "semi-join": ("SELECT count(*), sum(v) FROM fact WHERE a IN (SELECT key FROM wishes WHERE kind < 4)",
                  ">= 1.8", (SMALL, LARGE)),
    "semi-join, three tenths": (
        "SELECT count(*), sum(v) FROM fewer WHERE a IN (SELECT key FROM fewer_wishes WHERE kind < 4)",
        ">= 1.3", (SMALL, LARGE)),
    "star of 20 %": ("""SELECT count(*), sum(v) FROM fact JOIN large_a AS x ON x.id = a JOIN small_s AS y ON y.id = s
        JOIN small_t AS z ON z.id = t WHERE x.kind < 4 AND y.kind < 4 AND z.kind < 4""", ">= 1.5", (SMALL, LARGE)),
    "before a sort": ("""SELECT count(*), max(note) FROM (SELECT fact.id, v, note FROM fact JOIN large_a ON large_a.id = a
        WHERE kind < 4 ORDER BY v OFFSET 0) AS q""", "", ()),
}  # fmt: skip


# The rows of a large dimension, and the keys of each table.
MANY = max(ROWS // 10, 100)
KEYS = {"fact": "a b c s t", "fewer": "a", "large_a": "id", "large_b": "id", "large_c": "id", "small_s": "id",
        "small_t": "id", "wishes": "key", "fewer_wishes": "key"}  # fmt: skip


def make_shapes(session):
    make(session, fact("fact", ROWS, a=MANY, b=MANY, c=MANY, s=1000, t=10000), fact("fewer", FEWER, a=FEWER // 10),
         *(dimension("large_" + name, MANY) for name in "abc"), dimension("small_s", 1000), dimension("small_t", 10000),
         wishes("wishes", MANY // 5 * 4, MANY), wishes("fewer_wishes", FEWER // 25 * 2, FEWER // 10))  # fmt: skip


@part
def shapes(session):
    make_shapes(session)
    for case, settings in CASES.items():
        columns("%d rows, work_mem %s" % (ROWS, case))
        with Session(*settings) as fresh:
            for name, (sql, goal, where) in SHAPES.items():
                compare(fresh, "%s, %s" % (name, case), sql, goal if case in where else "")
    session.ask("DROP TABLE " + ", ".join(KEYS))


# The shapes in DuckDB, with its own filters

DUCKDB_OFF, DUCKDB_ON = ("disabled_optimizers = '%s'" % name for name in ("join_filter_pushdown", ""))


def shapes_in_duckdb(other, answers, keys):
    """Returns the number of rows that the filters drop. Stops unless the answers are those of the server."""
    columns("%d rows, DuckDB %s, %s keys" % (ROWS, other.rows("SELECT version()")[0][0], keys))
    total = 0
    for name, (sql, _, _) in SHAPES.items():
        turns = by_turns(other, name, (sql, DUCKDB_OFF), (sql, DUCKDB_ON))
        other.ask("SET " + DUCKDB_ON)
        agree(name, answers[name], other.rows(sql))
        probes, dropped, read = other.dropped(sql)
        show("%s, %s keys" % (name, keys), turns, remark="%d scans, %.2g of %.2g dropped" % (probes, dropped, read))
        total += dropped
    return total


def duckdb(session):
    make_shapes(session)
    answers = {name: session.rows(sql) for name, (sql, _, _) in SHAPES.items()}
    with DuckDB() as other:
        for table in KEYS:
            other.copy(session, table)
        session.ask("DROP TABLE " + ", ".join(KEYS))
        shapes_in_duckdb(other, answers, "dense")
        # Of keys that are dense and unique it makes an array, and its filter is only the least and the greatest.
        for table, keys in KEYS.items():
            spread = ", ".join("{0} * {1} AS {0}".format(key, (2**31 - 1) // max(MANY, 10000)) for key in keys.split())
            other.ask("CREATE OR REPLACE TABLE {0} AS SELECT * REPLACE ({1}) FROM {0}".format(table, spread))
        if not shapes_in_duckdb(other, answers, "sparse"):
            raise SystemExit("no filter of DuckDB drops a row")


# Queries like those of TPC-H

def with_filters_by_hand(session, name, query):
    """The ratios off / on, and by hand / on, or None if there are fewer probes than by hand."""
    works = (query.plain(), OFF), (query.plain(), ON), (query.filtered(), OFF)
    probes, remark = filters_of(session, query.plain())
    turns = by_turns(session, name, *works)
    ratio = show(name, [(off, on) for off, on, _ in turns], ">= 0.97", remark)
    can = probes >= query.tests()
    hand = show("  %d filters by hand : on" % query.tests(), [(hand, on) for _, on, hand in turns], ">= 0.97" if can else "")
    return ratio, hand if can else None


def run_queries(session, case, queries, by_hand):
    ratios, hand_ratios = [], []
    for query in queries:
        name = "%s, %s" % (query.name, case)
        if by_hand:
            ratio, hand = with_filters_by_hand(session, name, query)
            hand_ratios += [hand] if hand else []
        else:
            ratio = compare(session, name, query.plain(), ">= 0.97")
        ratios.append(ratio)
    show_figure("geometric mean, CPU, off : on", mean_of_turns(ratios), "", ">= 1.10")
    if hand_ratios:
        show_figure("geometric mean, CPU, by hand : on, with as many probes", mean_of_turns(hand_ratios), "", ">= 1.0")


@part
def queries(session):
    for name, sql in {**tpch.dimensions(FEWER), "lineitem": tpch.lineitem(FEWER)}.items():
        make(session, sql, "VACUUM ANALYZE " + name)
    plain = [query for query in peers.QUERIES if query.name != peers.NEEDS_INDEX]
    for case, settings in CASES.items():
        columns("%d lines, no index on them, work_mem %s" % (FEWER, case))
        with Session(*settings) as fresh:
            run_queries(fresh, case, plain, case in (SMALL, LARGE))
    for name, sql, asked in (
            ("primary key", "ALTER TABLE lineitem ADD PRIMARY KEY (l_orderkey, l_linenumber)", peers.QUERIES),
            ("and index on part", "CREATE INDEX lineitem_partkey ON lineitem (l_partkey)", (peers.INDEXED,))):  # fmt: skip
        session.ask(sql)
        columns("%d lines, %s, work_mem %s" % (FEWER, name, SMALL))
        with Session(*CASES[SMALL]) as fresh:
            run_queries(fresh, "%s, %s" % (SMALL, name), asked, True)
    session.ask("DROP TABLE region, nation, supplier, part, customer, orders, lineitem")


# The adverse set

# The planner expects 99.5 % of the rows for the first, and for the second one row in 8,000 instead of one in 20.
NONE = "nullif(o.v, o.v) <> 5000"
ONE_KIND = "i.kind = 1 AND i.sort = 1 AND i.class = 1"
COUNT = "SELECT count(*), sum(o.v) FROM %s AS o JOIN %s AS i ON i.id = o.%s WHERE %s"
ADVERSE = {
    "unselective": COUNT % ("outside", "inside", "a", "true"),
    "half-selective": COUNT % ("outside", "inside", "a", "i.kind < 10"),
    "nine tenths pass": COUNT % ("outside", "inside", "a", "i.kind < 18"),
    "two fifths pass, in the order of their keys": COUNT % ("outside", "inside", "in_order", "i.id % 100 < 40"),
    "a quarter passes, tiny table": COUNT % ("outside", "inside_tiny", "tiny", "i.id < 25"),
    "skewed keys, nearly all rows pass": COUNT % ("outside", "inside", "skewed", "i.id < %d" % (FEWER // 10 // 20)),
    "no row expected to pass, all do": COUNT % ("outside", "inside", "one_kind", ONE_KIND),
    "the same, %d rows" % (FEWER // 10): COUNT % ("outside_few", "inside", "one_kind", ONE_KIND),
    "the same, %d rows" % (FEWER // 100): COUNT % ("outside_fewer", "inside", "one_kind", ONE_KIND),
    "all rows expected to pass, a twentieth does": COUNT % (
        "outside", "inside", "a", "CASE WHEN i.kind = 1 THEN i.id END <> -1"),
    "inner as large as outer": COUNT % ("outside", "outside", "id", "i.v < 500"),
    "outer side empty, inner of all rows": COUNT % ("outside_all", "inside_all", "a", "i.kind < 4 AND " + NONE),
    "the same, below a group": "SELECT count(*), sum(o.v) FROM (SELECT a, sum(v) AS v FROM outside_all AS o WHERE %s GROUP BY a) "
                               "AS o JOIN inside_all AS i ON i.id = a WHERE i.kind < 4" % NONE,
    "outer side of one row, inner of all rows": COUNT % (
        "outside_all", "inside_all", "a", "i.kind < 4 AND CASE WHEN o.id = 77 THEN 1 END <> 5"),
}  # fmt: skip


@part
def adverse(session):
    number = FEWER // 10
    one_kind = "(SELECT array_agg(id) FROM inside WHERE kind = 1)"
    few = "CREATE UNLOGGED TABLE {0} AS SELECT * FROM outside LIMIT {1}; VACUUM ANALYZE {0}"
    make(session, dimension("inside", number), dimension("inside_all", ROWS), dimension("inside_tiny", 100),
         fact("outside", FEWER, a=number, in_order="(i / 10)::int", tiny=100,
              skewed="floor(%d * (1 - %s / 1e6) ^ 60)::int" % (number, tpch.pick(50, 1000000)),
              one_kind="(" + one_kind + ")[1 + %s]" % tpch.pick(51, number // 21)),
         few.format("outside_few", FEWER // 10), few.format("outside_fewer", FEWER // 100), fact("outside_all", ROWS, a=ROWS))  # fmt: skip
    for case, settings in CASES.items():
        columns("%d rows, work_mem %s" % (FEWER, case))
        with Session(*settings) as fresh:
            for name, sql in ADVERSE.items():
                compare(fresh, "%s, %s" % (name, case), sql, ">= 0.97")
    session.ask("DROP TABLE inside, inside_all, inside_tiny, outside, outside_few, outside_fewer, outside_all")


# Small statements

TRANSACTIONS = max(FEWER // 100, 5000)
POINT = "SELECT v FROM points WHERE id = %s"


@contextlib.contextmanager
def options_of_sessions(options):
    before = os.environ["PGOPTIONS"]
    os.environ["PGOPTIONS"] = options
    yield
    os.environ["PGOPTIONS"] = before


def option(setting):
    """For sessions with the library."""
    return "%s -c %s" % (LOADED, setting.replace(" ", ""))


def by_clients(session, script, setting, protocol):
    """The seconds of a transaction of a client, and those of its backend, which the server waits for when it ends."""
    before, others = cpu_used(session) - session.cpu_used(), processes(session)
    with options_of_sessions(option(setting)):
        seconds, _ = pgbench(session, script, TRANSACTIONS, protocol=protocol)
    while processes(session) - others:
        time.sleep(0.01)
    return seconds, (cpu_used(session) - session.cpu_used() - before) / TRANSACTIONS


@part
def small(session):
    make(session, dimension("tiny_a", 100), dimension("tiny_b", 10), fact("points", FEWER // 10, a=100),
         "ALTER TABLE points ADD PRIMARY KEY (id)")  # fmt: skip
    columns("%d statements of a client" % TRANSACTIONS)
    point = "\\set id random(1, %d)\n%%s;\n" % (FEWER // 10 - 1)
    for name, script in (
            ("point query", point % (POINT % ":id")),
            ("point query with a join", point % (POINT % ":id").replace("points", "points JOIN tiny_a AS d ON d.id = a")
             .replace("WHERE id", "WHERE points.id")),
            ("join of tiny tables", "SELECT count(*) FROM tiny_a AS a JOIN tiny_b AS b ON a.kind = b.id;\n")):  # fmt: skip
        for protocol in "simple", "prepared":
            pairs = [[by_clients(session, script, setting, protocol) for setting in (OFF, ON)] for _ in range(TURNS)]
            show("%s, %s" % (name, protocol), pairs, ">= 0.97")
    session.ask("DROP TABLE tiny_a, tiny_b, points")


# Planning

def loop(sql, number):
    """A statement that plans and runs another one again and again."""
    return "DO $$ BEGIN FOR n IN 1 .. %d LOOP EXECUTE '%s'; END LOOP; END $$" % (number, sql)


def statement_times(sql, number, *options):
    """Nanoseconds of the processor for a statement, for sessions with each of these options, by turns."""
    turns = []
    for turn in range(2 * TURNS + 1):
        order = options if turn % 2 else options[::-1]
        figures = {}
        for each in order:
            with options_of_sessions(each), Session(*SERIAL, "join_collapse_limit = 1") as fresh:
                fresh.ask(loop(sql, 10))
                figures[each] = fresh.cpu_seconds(loop(sql, number)) / number * 1e9
        turns.append([figures[each] for each in options])
    return turns


@part
def planning(session):
    make(session, fact("points", 10000, **{"k%d" % i: 1000 for i in range(8)}), "ALTER TABLE points ADD PRIMARY KEY (id)",
         *(dimension("d%d" % i, 1000) for i in range(8)))  # fmt: skip
    joins = "SELECT count(*) FROM points %s WHERE %s LIMIT 0" % (
        " ".join("JOIN d{0} ON d{0}.id = k{0}".format(i) for i in range(8)), " AND ".join("d%d.kind < 4" % i for i in range(8)))
    print("\n%-58s %s" % ("processor time of a statement", "median and interval"))
    for name, sql, number, goal in (
            ("point query, on : off", POINT % 77, FEWER // 100, "<= 1000"),
            ("eight joins, on : off", joins, FEWER // 2000, "<= 30000")):  # fmt: skip
        turns = statement_times(sql, max(number, 100), option(OFF), option(ON))
        show_figure(name, [on - off for off, on in turns], "ns", goal)
        note("  off", "%.5g ns" % statistics.median(off for off, _ in turns))
    turns = statement_times("SELECT 1", FEWER // 10, "-c client_min_messages=warning", option(OFF))
    show_figure("SELECT 1, loaded and off : not loaded", [off - bare for bare, off in turns], "ns", "<= 20")
    note("  not loaded", "%.5g ns" % statistics.median(bare for bare, _ in turns))
    session.ask("DROP TABLE points, d0, d1, d2, d3, d4, d5, d6, d7")


# Prices, in nanoseconds

FORCED = "bloomtype.join_filters = force"
# Probes are never judged, and plans join in the order of the query.
PRICING = ("bloomtype.join_filter_window = 16777216", "join_collapse_limit = 1", "enable_mergejoin = off",
           "enable_nestloop = off", *SERIAL)  # fmt: skip
# Keys by size; the planner builds from the smaller side.
INNER = {"1k": 1000, "10k": 10000, "100k": 100000, "1m": 1000000, "2m": 2000000,
         "numeric": 100000, "uuid": 100000, "text": 100000}  # fmt: skip
TYPES = {"numeric": "(%s)::numeric", "uuid": "md5((%s)::text)::uuid", "text": "'key ' || (%s)"}
INNER = {key: min(number, FEWER * 2 // 3) for key, number in INNER.items()}
PRICED = "SELECT count(*), sum(o.v) FROM %s JOIN %s AS i ON i.id = o.k%s"
# The outer side, from a table to be named.
SCAN = "{0} AS o"
JOIN = "({0} AS o JOIN inner_1k AS j ON j.id = o.t)"
TWO_JOINS = "({0} AS o JOIN inner_1k AS j ON j.id = o.t JOIN inner_1k AS l ON l.id = o.u)"
SORT = "(SELECT * FROM {0} ORDER BY t OFFSET 0) AS o"
GROUP = "(SELECT k{1}, sum(v) AS v FROM {0} GROUP BY k{1}) AS o"
PRICES = [("a scan, %s" % key if key in TYPES else "a scan", SCAN, key, "1GB") for key in INNER] + [
    ("a scan, spilling", SCAN, "1m", "16MB"), ("a scan, spilling", SCAN, "2m", "16MB"),
    ("a join", JOIN, "10k", "1GB"), ("a join", JOIN, "1m", "1GB"), ("two joins", TWO_JOINS, "10k", "1GB"),
    ("a sort", SORT, "10k", "1GB"), ("a sort on disk", SORT, "10k", "16MB"),
    ("groups", GROUP, "10k", "1GB"), ("groups", GROUP, "1m", "1GB"),
]  # fmt: skip


def price(session, outer, key, work_mem):
    """For each turn the nanoseconds for a key of a build, for a row of a probe, and those that a dropped row saves.
    All rows of one table pass, and none of another."""
    session.ask("SET work_mem = '%s'" % work_mem)
    # The planner must not take the groups for the smaller side.
    inner = ("(SELECT id FROM inner_%s WHERE id = id + 0)" if outer == GROUP else "inner_%s") % key
    joins = [PRICED % (way.format(table, key), inner, key)
             for way, table in ((SCAN, "single"), (outer, "hits"), (outer, "misses"))]  # fmt: skip
    session.ask("SET " + FORCED)
    for sql in joins:
        if not any("bloom_join_filter(" in node.get("Filter", "") and node["Alias"] != "i" for node in session.explain(sql)):
            raise SystemExit("the plan does not probe the outer side: " + sql)
    result = []
    for times in turns_of(session, [(sql, mode) for sql in joins for mode in (OFF, FORCED)]):
        single, hits, misses = ([times[i][1] * 1e9, times[i + 1][1] * 1e9] for i in (0, 2, 4))
        build = single[1] - single[0]
        probe = (hits[1] - hits[0] - build) / FEWER
        result.append((build / INNER[key], probe, (misses[0] - misses[1] + build) / FEWER + probe))
    return result


def of_type(key, number):
    return TYPES.get(key, "(%s)::int") % number


def keyed(name, sign):
    """A table with a key for each inner table."""
    keys = ", ".join("%s AS k%s" % (of_type(key, sign + tpch.pick(seed, number)), key)
                     for seed, (key, number) in enumerate(INNER.items(), 60))  # fmt: skip
    others = ", ".join("%s AS %s" % (tpch.pick(seed, 1000), column) for seed, column in enumerate("tuv", 70))
    return ("CREATE UNLOGGED TABLE {0} AS SELECT {1}, {2} FROM generate_series(1, {3}::bigint) AS i; VACUUM ANALYZE {0}"
            .format(name, keys, others, FEWER))  # fmt: skip


def prices(session):
    for key, number in INNER.items():
        make(session, "CREATE UNLOGGED TABLE inner_{0} AS SELECT {2} AS id FROM generate_series(0, {1} - 1) AS i; "
                      "VACUUM ANALYZE inner_{0}".format(key, number, of_type(key, "i")))  # fmt: skip
    make(session, keyed("hits", ""), keyed("misses", "-1 - "))
    # The planner takes it for the larger side.
    make(session, "CREATE UNLOGGED TABLE single WITH (autovacuum_enabled = off) AS SELECT * FROM hits LIMIT 1",
         "UPDATE pg_class SET relpages = 1, reltuples = 1e7 WHERE relname = 'single'")  # fmt: skip
    print("\n%-40s %-22s %-22s %s" % ("nanoseconds", "build, a key", "probe, a row", "saved, a dropped row"))
    for name, outer, key, work_mem in PRICES:
        with Session(*PRICING) as fresh:
            figures = zip(*price(fresh, outer, key, work_mem))
        print("%-40s %-22s %-22s %s" % ("%s, %d keys" % (name, INNER[key]), *("%.3g (%.3g to %.3g)" % interval(each)
                                                                      for each in figures)), flush=True)  # fmt: skip
    session.ask("DROP TABLE hits, misses, single, " + ", ".join("inner_" + key for key in INNER))
    compile_prices(session)


# Of JIT, in milliseconds

PARTITIONS = 20
COMPILERS = {"plain": (-1, -1), "optimized": (-1, 0), "inlined and optimized": (0, 0)}
CONDITIONS = {"no condition": "", "a condition on the first column": "WHERE o.id >= 0", "a condition on the key": "WHERE o.k >= 0"}


def compiling(session, sql):
    (plan,) = session.ask("EXPLAIN (ANALYZE, FORMAT JSON) " + sql)
    return json.loads(plan)[0]["JIT"]["Timing"]["Total"]


def compile_prices(session):
    """What JIT takes more for each partition that probes a filter, by the number of columns before the key."""
    make(session, "CREATE TABLE small AS SELECT i AS id FROM generate_series(0, 99) AS i; ANALYZE small")
    print("\n%-58s %s" % ("compiling, milliseconds for a scan", "median and interval"))
    for columns in 1, 21:
        texts = "".join(", c%d text" % i for i in range(columns - 1))
        make(session, "CREATE TABLE parts (id int%s, k int) PARTITION BY HASH (id)" % texts,
             *("CREATE TABLE parts_%d PARTITION OF parts FOR VALUES WITH (MODULUS %d, REMAINDER %d)" % (i, PARTITIONS, i)
               for i in range(PARTITIONS)), "INSERT INTO parts (id, k) SELECT i, i FROM generate_series(0, 999) AS i",
             "ANALYZE parts")  # fmt: skip
        for (compiler, (inline, optimize)), (name, where) in itertools.product(COMPILERS.items(), CONDITIONS.items()):
            sql = "SELECT count(*) FROM parts AS o JOIN small AS i ON i.id = o.k " + where
            with Session(*PRICING, "jit = on", "jit_above_cost = 0", "jit_inline_above_cost = %d" % inline,
                         "jit_optimize_above_cost = %d" % optimize) as fresh:  # fmt: skip
                times = []
                for _ in range(TURNS):
                    off, forced = (fresh.ask("SET " + mode) or compiling(fresh, sql) for mode in (OFF, FORCED))
                    times.append((forced - off) / PARTITIONS)
            print("%-58s %s" % ("%s, %s, key in column %d" % (compiler, name, columns + 1),
                                "%.3g (%.3g to %.3g)" % interval(times)), flush=True)  # fmt: skip
        session.ask("DROP TABLE parts")
    session.ask("DROP TABLE small")


def write_results():
    os.makedirs(DIRECTORY, exist_ok=True)
    with open(os.path.join(DIRECTORY, "joins.csv"), "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("case", "metric", "median", "low", "high", "goal", "verdict"))
        writer.writerows(RESULTS)


def main():
    os.environ["PGOPTIONS"] = LOADED
    with Session("maintenance_work_mem = '512MB'") as session:
        chosen = os.environ.get("JOINS", "").split()
        for name in chosen or PARTS:
            {**PARTS, "prices": prices, "duckdb": duckdb}[name](session)
        if not chosen:
            write_results()


main()
