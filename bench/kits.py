#!/usr/bin/python3
"""Join filters and the kits of TPC-DS and TPC-H: each statement with bloomtype.join_filters off, on and forced, by turns.

The kits are the programs by which the TPC lets anyone generate tables and queries. Their licences do not let this
repository contain them; bench/README.md says where they are and how to fill the directory KITS:

    tpcds/tpcds.sql      the definitions of the tables, as they come with the kit
    tpcds/data/*.dat     the rows, by dsdgen
    tpcds/queries.sql    the queries, by dsqgen in the dialect "netezza"
    tpch/dss.ddl         the definitions of the tables, as they come with the kit
    tpch/data/*.tbl      the rows, by dbgen
    tpch/queries/*.sql   the queries 1.sql to 22.sql, by qgen

Either kit may be missing. PostgreSQL takes neither all queries nor the rows as they are. What this program changes on the
way is in the function fill() and in the functions of TPCDS_CHANGES and TPCH_CHANGES; the files stay as they are.

Connects as psql does, as a superuser, and keeps a database for each kit, which it loads if it is not there: with primary
keys only, and TPC-H a second time with indexes on all foreign keys. It stops unless the modes agree in the result of a
statement. A statement that takes more than KITS_SECONDS of the processor with filters off is left out; each database
remembers these. script/bench --help lists the other variables, and bench/joins.py says what the figures are.
"""
import concurrent.futures
import csv
import fnmatch
import itertools
import os
import pathlib
import re
import statistics
import subprocess
import sys

from measure import Session, interval, spent_with
from session import in_thread  # measure lets this line find it

KITS = pathlib.Path(os.environ["KITS"])
TURNS = int(os.environ.get("KITS_TURNS", 7))
SECONDS = float(os.environ.get("KITS_SECONDS", 60))
WORKERS = int(os.environ.get("KITS_WORKERS", 0))
WORK_MEM = os.environ.get("KITS_WORK_MEM", "4MB")
CHOSEN = os.environ.get("KITS_STATEMENTS", "*").split()
MODES = os.environ.get("KITS_MODES", "off on force").split()
DIRECTORY = os.environ.get("RESULTS") or pathlib.Path(__file__).resolve().parent / "results"

SETTINGS = ("work_mem = '%s'" % WORK_MEM, "max_parallel_workers_per_gather = %d" % WORKERS, "jit = off",
            "synchronize_seqscans = off")  # fmt: skip
LOADED = "-c client_min_messages=warning -c session_preload_libraries=bloomtype"
# A statement that ends in time with filters off is cancelled in other modes after so many times KITS_SECONDS.
PATIENCE = 10
CANCELLED = "57014"


# Tables

# The primary keys of TPC-H, and its foreign keys, by table.
TPCH_KEYS = {
    "region": "r_regionkey", "nation": "n_nationkey", "supplier": "s_suppkey", "part": "p_partkey",
    "partsupp": "ps_partkey, ps_suppkey", "customer": "c_custkey", "orders": "o_orderkey",
    "lineitem": "l_orderkey, l_linenumber",
}  # fmt: skip
TPCH_FOREIGN = {
    "nation": ("n_regionkey",), "supplier": ("s_nationkey",), "partsupp": ("ps_partkey", "ps_suppkey"),
    "customer": ("c_nationkey",), "orders": ("o_custkey",),
    "lineitem": ("l_orderkey", "l_partkey, l_suppkey", "l_suppkey"),
}  # fmt: skip


def fill(database, table, path):
    """Copies a file to a table. Each line of it ends with a separator, and dsdgen writes Latin-1."""
    with subprocess.Popen(["sed", "s/|$//", path], stdout=subprocess.PIPE, env={**os.environ, "LC_ALL": "C"}) as lines:
        subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", database, "-c",
                        r"\copy %s FROM STDIN (DELIMITER '|', NULL '', ENCODING 'LATIN1')" % table],
                       stdin=lines.stdout, check=True)  # fmt: skip
    if lines.returncode:
        raise SystemExit("cannot read %s" % path)


def fill_all(session, database, directory, suffix):
    files = sorted((KITS / directory / "data").glob("*" + suffix))
    for path in files:
        fill(database, path.stem, path)
    tables = session.ask("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    empty = [table for table in tables if not session.rows("SELECT FROM %s LIMIT 1" % table)]
    if empty:
        raise SystemExit("%s: no rows for %s" % (KITS / directory / "data", ", ".join(empty)))


def load_tpcds(session, database):
    session.ask((KITS / "tpcds/tpcds.sql").read_text())
    fill_all(session, database, "tpcds", ".dat")


def load_tpch(session, database):
    session.ask((KITS / "tpch/dss.ddl").read_text())
    fill_all(session, database, "tpch", ".tbl")
    for table, key in TPCH_KEYS.items():
        session.ask("ALTER TABLE %s ADD PRIMARY KEY (%s)" % (table, key))


def load_indexes(session, _):
    for table, keys in TPCH_FOREIGN.items():
        for key in keys:
            session.ask("CREATE INDEX ON %s (%s)" % (table, key))


# Queries

def of_dates(sql):
    """A date and a number of days."""
    return re.sub(r"([+-]) *(\d+) days\b", r"\1 \2", sql)


def of_levels(sql):
    """The level of a rollup in an expression to sort by, where only names of input columns are known."""
    level = re.search(r"(grouping\(\w+\) *\+ *grouping\(\w+\)) +as +lochierarchy", sql)
    return re.sub(r"when +lochierarchy", lambda _: "when " + level[1], sql) if level else sql


CLAUSES = "select", "from", "where", "group", "order", "having"
# What may follow a subquery without a name.
AFTER = re.compile(r"\s*((where|group|order|having|limit|union|intersect|except|cross|inner|left|right|full|join|on)\b"
                   r"|[,;)]|$)", re.I)  # fmt: skip


def of_subqueries(sql):
    """A name for each subquery in FROM, which is needed before PostgreSQL 16."""
    result, numbers = [], itertools.count(1)
    clauses, needed = [""], []  # of each open parenthesis: the clause inside, and whether a name follows its end
    at, last = 0, ""
    for token in re.finditer(r"'[^']*'|\"[^\"]*\"|--[^\n]*|[(),;]|[^\s(),;'\"]+", sql):
        word = token[0].lower()
        result.append(sql[at:token.end()])
        at = token.end()
        if word == "(":
            needed.append(last in ("from", "join") or (last == "," and clauses[-1] == "from"))
            clauses.append("")
        elif word == ")":
            clauses.pop()
            if needed.pop() and AFTER.match(sql, at):
                result.append(" AS unnamed_%d" % next(numbers))
        elif word in CLAUSES:
            clauses[-1] = word
        last = word
    return "".join(result) + sql[at:]


def of_qgen(sql):
    """The precision of an interval, and the number of rows behind the end of a statement."""
    sql = re.sub(r"\bday *\(\d+\)", "day", sql)
    sql = re.sub(r";\s*limit -1;", ";", sql)
    return re.sub(r";\s*(limit \d+;)", r" \1", sql)


TPCDS_CHANGES = of_dates, of_levels, of_subqueries
TPCH_CHANGES = (of_qgen,)


def statements_in(sql, changes):
    for change in changes:
        sql = change(sql)
    sql = re.sub(r"^--.*\n", "", sql, flags=re.M)
    return [each.strip() for each in sql.split(";") if each.strip()]


def tpcds_queries():
    """Some queries have two statements, "a" and "b"."""
    text = (KITS / "tpcds/queries.sql").read_text()
    parts = re.split(r"^-- start query .* using template query(\d+)\.tpl$", text, flags=re.M)
    for number, text in sorted((int(number), text) for number, text in zip(parts[1::2], parts[2::2])):
        both = statements_in(text, TPCDS_CHANGES)
        for letter, sql in zip("ab" if len(both) > 1 else [""], both):
            yield "ds%02d%s" % (number, letter), sql, []


def tpch_queries(suffix=""):
    """One query has a view, which stays."""
    for number in range(1, 23):
        all_of = statements_in((KITS / "tpch/queries" / ("%d.sql" % number)).read_text(), TPCH_CHANGES)
        views = [each for each in all_of if re.match("create view", each, re.I)]
        (sql,) = (each for each in all_of if re.match("select|with", each, re.I))
        yield "h%02d%s" % (number, suffix), sql, views


KINDS = {
    # database: (name, directory, queries, what loads it, template)
    "tpcds": ("TPC-DS", "tpcds", tpcds_queries, load_tpcds, "template1"),
    "tpch": ("TPC-H", "tpch", tpch_queries, load_tpch, "template1"),
    "tpch_indexed": ("TPC-H, indexes on foreign keys", "tpch", lambda: tpch_queries("i"), load_indexes, "tpch"),
}


def loaded(database):
    with Session() as session:
        query = "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = '%s'"
        return session.ask(query % database) == ["loaded"]


def load(database):
    """Loads a database, unless that is done. A comment on the database says so."""
    if loaded(database):
        return
    _, _, _, fill_tables, template = KINDS[database]
    if template in KINDS:
        load(template)
    print("loading %s" % database, flush=True)
    with Session() as session:
        session.ask("DROP DATABASE IF EXISTS " + database)
        session.ask("CREATE DATABASE %s TEMPLATE %s" % (database, template))
    with connected(database) as session:
        session.ask("DROP EXTENSION IF EXISTS bloomtype")
        session.ask("SET maintenance_work_mem = '512MB'")
        session.ask("DROP TABLE IF EXISTS too_long")
        fill_tables(session, database)
        session.ask("VACUUM ANALYZE")
        session.ask("COMMENT ON DATABASE %s IS 'loaded'" % database)
        session.ask("CHECKPOINT")


def connected(database, *settings):
    before = os.environ["PGDATABASE"]
    os.environ["PGDATABASE"] = database
    try:
        return Session(*settings)
    finally:
        os.environ["PGDATABASE"] = before


# Runs

RESULTS = []


def setting(mode):
    return "bloomtype.join_filters = " + mode


def filters(session, sql, mode):
    session.ask("SET " + setting(mode))
    return sum("Join Filter Name" in node for node in session.explain(sql))


def ends(session, name, sql):
    """Does a statement end in time? Runs it once, to warm up, too, unless it is known not to. The processor time of the
    backend counts, whatever else the machine does."""
    known = session.ask("SELECT max(seconds) FROM too_long WHERE statement = '%s'" % name)[0]
    if known and float(known) >= SECONDS:
        return False
    session.ask("SET " + setting("off"))
    before = session.cpu_used()
    work = in_thread(session.attempt, sql)
    while not concurrent.futures.wait([work], 0.1).done:
        if session.cpu_so_far() - before > SECONDS:
            session.connection.cancel()
    _, state = work.result()
    if state == CANCELLED:
        session.ask("INSERT INTO too_long VALUES ('%s', %f)" % (name, SECONDS))
    elif state != "00000":
        raise SystemExit("%s: %s" % (name, session.error))
    return state == "00000"


def same(session, name, sql, mode, expected, got):
    """Compares results as sets. Of rows that sort alike, a LIMIT may keep others."""
    if sorted(expected, key=str) == sorted(got, key=str):
        return True
    whole = re.sub(r"\blimit\s+\d+\s*$", "", sql, flags=re.I)
    both = [sorted(spent_with(session, whole, setting(each))[2], key=str) for each in ("off", mode)]
    return whole != sql and both[0] == both[1]


def turns_of(session, name, sql):
    """The processor time of each mode, by turns, and every other time in the other order."""
    result, expected = [], None
    for turn in range(TURNS):
        figures = {}
        for mode in MODES if turn % 2 else MODES[::-1]:
            _, figures[mode], rows = spent_with(session, sql, setting(mode))
            if expected is None:
                first, expected = mode, rows
            elif not same(session, name, sql, mode, expected, rows):
                raise SystemExit("%s: the result with %s is not that with %s" % (name, mode, first))
        result.append(figures)
    return result


def record(case, name, metric, figures):
    RESULTS.append([case, name, metric, *("%.4g" % figure for figure in figures)])


def form(figures):
    return "%.2f (%.2f to %.2f)" % figures


def compare(session, case, name, sql):
    """The ratios of a statement for each mode but off, or None if it does not end in time."""
    session.set_timeout(0)
    placed = {mode: filters(session, sql, mode) for mode in MODES if mode != "off"}
    counts = "/".join(str(number) for number in placed.values())
    if TURNS == 0:
        print("%-8s %-9s" % (name, counts), flush=True)
        return None
    if not ends(session, name, sql):
        print("%-8s %-9s takes more than %g s" % (name, counts, SECONDS), flush=True)
        return None
    session.set_timeout(int(SECONDS * PATIENCE * 1000))
    turns = turns_of(session, name, sql)
    ratios = {mode: [figures["off"] / figures[mode] for figures in turns] for mode in placed}
    milliseconds = [1000 * statistics.median(figures[mode] for figures in turns) for mode in MODES]
    for mode, number in placed.items():
        record(case, name, "filters, " + mode, [number] * 3)
        record(case, name, "off : " + mode, interval(ratios[mode]))
    record(case, name, "off, ms", interval([1000 * figures["off"] for figures in turns]))
    print("%-8s %-9s %s   %s" % (name, counts, " ".join("%9.4g" % figure for figure in milliseconds),
                                "   ".join("%-22s" % form(interval(each)) for each in ratios.values())), flush=True)  # fmt: skip
    return placed, ratios


def means(ratios):
    return interval([statistics.geometric_mean(turn) for turn in zip(*ratios)])


def summary(case, measured, mode):
    """For measured[name] = (filters by mode, ratios by mode). What statements without a filter differ is the error."""
    ratios = {name: each[mode] for name, (_, each) in measured.items()}
    with_filter = [ratios[name] for name, (placed, _) in measured.items() if placed[mode]]
    without = [ratios[name] for name, (placed, _) in measured.items() if not placed[mode]]
    medians = {name: interval(each) for name, each in ratios.items()}
    order = sorted(medians, key=lambda name: medians[name])
    print("  off : %s" % mode)
    for title, some in (
            ("geometric mean", list(ratios.values())), ("geometric mean, with filters", with_filter),
            ("geometric mean, without filters", without)):  # fmt: skip
        if some:
            record(case, title, "off : " + mode, means(some))
            print("    %-33s %-22s %d statements" % (title, form(means(some)), len(some)))
    record(case, "worst", "off : " + mode, medians[order[0]])
    for title, names in ("worst", order[:10]), ("best", order[:-11:-1]):
        print("    %-6s %s" % (title, ", ".join("%s %s" % (name, form(medians[name])) for name in names)), flush=True)


def chosen(name):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in CHOSEN)


def run(database):
    title, _, queries, _, _ = KINDS[database]
    asked = [each for each in queries() if chosen(each[0])]
    if not asked:
        return
    load(database)
    case = "%s, work_mem %s%s" % (title, WORK_MEM, ", %d workers" % WORKERS if WORKERS else "")
    print("\n%s\n%-8s %-9s %s   %s" % (
        case, "", "filters", " ".join("%6s ms" % mode for mode in MODES),
        "   ".join("%-22s" % ("off : " + mode) for mode in MODES if mode != "off")), flush=True)  # fmt: skip
    with connected(database) as session:
        session.ask("DROP EXTENSION IF EXISTS bloomtype")
        session.ask("CREATE EXTENSION bloomtype")
        session.ask("CREATE TABLE IF NOT EXISTS too_long (statement text, seconds float8)")
    with connected(database, *SETTINGS) as session:
        measured = {}
        for name, sql, views in asked:
            for view in views:
                session.ask(re.sub("create view", "CREATE OR REPLACE VIEW", view, flags=re.I))
            figures = compare(session, case, name, sql)
            if figures:
                measured[name] = figures
    for mode in MODES:
        if measured and mode != "off":
            summary(case, measured, mode)


def write_results():
    os.makedirs(DIRECTORY, exist_ok=True)
    with open(os.path.join(DIRECTORY, "kits.csv"), "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("case", "statement", "metric", "median", "low", "high"))
        writer.writerows(RESULTS)


def main():
    os.environ["PGOPTIONS"] = LOADED
    if "off" not in MODES:
        raise SystemExit("KITS_MODES needs off")
    found = [database for database, kind in KINDS.items() if (KITS / kind[1]).is_dir()]
    if not found:
        raise SystemExit("%s has neither tpcds nor tpch" % KITS)
    for database in found:
        run(database)
    if CHOSEN == ["*"] and len(found) == len(KINDS) and TURNS:
        write_results()


main()
