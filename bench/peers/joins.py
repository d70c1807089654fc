"""Joins, plain and with filters by the recipe of doc/bloom-join.md, on tables like those of TPC-H.

lineitem has three rows for every ten of ROWS: 3 million by default, which is scale factor 0.5. The dimensions and
orders have their primary keys. lineitem is a fact table without an index at first, and has its primary key later.
"""
import functools
import json
import time
import typing

import tpch
from plans import agree, connect, expect
from results import Step

SMALL = "work_mem = '4MB'"
SETTINGS = {
    "4 MB": (SMALL,),
    "64 MB": ("work_mem = '64MB'",),
    "4 MB, 2 workers": (SMALL, "max_parallel_workers_per_gather = 2"),
}
WITH_WORKERS = "star", "spill", "Q3", "Q10"
# Without an index on lineitem PostgreSQL expects one row of its anti-join, and runs a nested loop over whole scans.
NEEDS_INDEX = "Q21"
SPILLS = "spill, 4 MB", "spill, 4 MB, primary key"


class Query(typing.NamedTuple):
    name: str
    sql: str  # has a mark such as {l} where a filter can stand
    filters: dict  # of each mark: the tested column and the subquery that builds the filter, or the SQL itself
    other: str = ""  # the plain form, if it is not sql without filters

    def plain(self):
        return self.other or self.sql.format(**{mark: "" for mark in self.filters})

    def filtered(self):
        return self.sql.format(**{mark: part if isinstance(part, str) else "AND ({1}) @> {0}".format(*part)
                                  for mark, part in self.filters.items()})  # fmt: skip

    def tests(self):
        return sum(not isinstance(part, str) for part in self.filters.values())


NATIONS = "SELECT n_nationkey FROM nation JOIN region ON r_regionkey = n_regionkey WHERE r_name = '%s'"
BUILDING = "SELECT bloom_agg(c_custkey) FROM customer WHERE c_mktsegment = 'BUILDING'"
ASIANS = "SELECT bloom_agg(c_custkey) FROM customer WHERE c_nationkey IN (%s)" % (NATIONS % "ASIA")
QUARTER = "o_orderdate >= date '1993-10-01' AND o_orderdate < date '1994-01-01'"
YEAR = "o_orderdate >= date '1994-01-01' AND o_orderdate < date '1995-01-01'"
BOXES = "SELECT bloom_agg(p_partkey) FROM part WHERE p_brand = 'Brand#23' AND p_container = 'MED BOX'"
LATE = "SELECT bloom_agg(s_suppkey) FROM supplier JOIN nation ON n_nationkey = s_nationkey WHERE n_name = 'NATION 20'"
FEW = ("SELECT sum(l_extendedprice) / 7.0 FROM lineitem AS l JOIN part ON p_partkey = l_partkey JOIN "
         "(SELECT l_partkey AS key, 0.2 * avg(l_quantity) AS few FROM lineitem AS a WHERE true {a} GROUP BY l_partkey) AS a "
         "ON key = p_partkey WHERE p_brand = 'Brand#23' AND p_container = 'MED BOX' AND l_quantity < few {l}")  # fmt: skip
WAITING = """
    {with} SELECT s_name, count(*) AS numwait FROM supplier AS s, lineitem AS l, orders AS o, nation
    WHERE s_suppkey = l.l_suppkey AND o_orderkey = l.l_orderkey AND o_orderstatus = 'F'
      AND l.l_receiptdate > l.l_commitdate AND s_nationkey = n_nationkey AND n_name = 'NATION 20' {l}
      AND EXISTS (SELECT FROM lineitem AS l2 WHERE l2.l_orderkey = l.l_orderkey AND l2.l_suppkey <> l.l_suppkey {l2})
      AND NOT EXISTS (SELECT FROM lineitem AS l3 WHERE l3.l_orderkey = l.l_orderkey AND l3.l_suppkey <> l.l_suppkey
                      AND l3.l_receiptdate > l3.l_commitdate {l3})
    GROUP BY s_name ORDER BY numwait DESC, s_name LIMIT 100"""
WAITED = ("WITH w AS MATERIALIZED (SELECT bloom_agg(l_orderkey) AS f FROM lineitem "
          "WHERE l_receiptdate > l_commitdate AND (%s) @> l_suppkey)" % LATE)  # fmt: skip

QUERIES = (
    Query("star", """
        SELECT count(*), sum(l_extendedprice) FROM lineitem AS l
          JOIN orders AS o ON o_orderkey = l_orderkey JOIN part ON p_partkey = l_partkey JOIN supplier ON s_suppkey = l_suppkey
        WHERE o_orderpriority = '1-URGENT' AND p_brand = 'Brand#23' AND s_nationkey < 5 {p} {s} {o}""", {
        "p": ("l_partkey", "SELECT bloom_agg(p_partkey) FROM part WHERE p_brand = 'Brand#23'"),
        "s": ("l_suppkey", "SELECT bloom_agg(s_suppkey) FROM supplier WHERE s_nationkey < 5"),
        "o": ("l_orderkey", "SELECT bloom_agg(o_orderkey) FROM orders WHERE o_orderpriority = '1-URGENT'")}),
    Query("spill", """
        SELECT count(*), max(o_comment), max(l_comment) FROM lineitem AS l JOIN orders AS o ON o_orderkey = l_orderkey
        WHERE o_orderpriority = '1-URGENT' {o}""", {
        "o": ("l_orderkey", "SELECT bloom_agg(o_orderkey) FROM orders WHERE o_orderpriority = '1-URGENT'")}),
    Query("Q3", """
        SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
        FROM customer, orders AS o, lineitem AS l
        WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
          AND o_orderdate < date '1995-03-15' AND l_shipdate > date '1995-03-15' {c} {o}
        GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, l_orderkey LIMIT 10""", {
        "c": ("o_custkey", BUILDING),
        "o": ("l_orderkey", "SELECT bloom_agg(o_orderkey) FROM orders WHERE o_orderdate < date '1995-03-15' "
              "AND (%s) @> o_custkey" % BUILDING)}),
    Query("Q5", """
        SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
        FROM customer, orders AS o, lineitem AS l, supplier AS s, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
          AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA' AND """ + YEAR + """ {c} {o}
        GROUP BY n_name ORDER BY revenue DESC""", {
        "c": ("o_custkey", ASIANS),
        "o": ("l_orderkey", "SELECT bloom_agg(o_orderkey) FROM orders WHERE %s AND (%s) @> o_custkey" % (YEAR, ASIANS))}),
    Query("Q8", """
        SELECT extract(year FROM o_orderdate) AS year,
          sum(CASE WHEN n2.n_name = 'NATION 2' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
            / sum(l_extendedprice * (1 - l_discount)) AS share
        FROM part, supplier AS s, lineitem AS l, orders AS o, customer, nation AS n1, nation AS n2, region
        WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey
          AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA'
          AND s_nationkey = n2.n_nationkey AND o_orderdate BETWEEN date '1995-01-01' AND date '1996-12-31'
          AND p_type = 'ECONOMY ANODIZED STEEL' {p}
        GROUP BY 1 ORDER BY 1""", {
        "p": ("l_partkey", "SELECT bloom_agg(p_partkey) FROM part WHERE p_type = 'ECONOMY ANODIZED STEEL'")}),
    Query("Q10", """
        SELECT c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, c_address, c_comment
        FROM customer, orders AS o, lineitem AS l, nation
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND """ + QUARTER + """
          AND l_returnflag = 'R' AND c_nationkey = n_nationkey {o}
        GROUP BY c_custkey, c_name, c_acctbal, n_name, c_address, c_comment ORDER BY revenue DESC, c_custkey LIMIT 20""", {
        "o": ("l_orderkey", "SELECT bloom_agg(o_orderkey) FROM orders WHERE " + QUARTER)}),
    Query("Q17", FEW, {"a": ("l_partkey", BOXES), "l": ("l_partkey", BOXES)}),
    Query("Q18", """
        WITH big AS MATERIALIZED (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 300)
        SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity)
        FROM customer, orders AS o, lineitem AS l
        WHERE o_orderkey IN (SELECT l_orderkey FROM big) AND c_custkey = o_custkey AND o_orderkey = l_orderkey {o} {l}
        GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice ORDER BY o_totalprice DESC, o_orderkey LIMIT 100""", {
        "o": ("o_orderkey", "SELECT bloom_agg(l_orderkey) FROM big"),
        "l": ("l.l_orderkey", "SELECT bloom_agg(l_orderkey) FROM big")}, """
        SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity)
        FROM customer, orders AS o, lineitem AS l
        WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 300)
          AND c_custkey = o_custkey AND o_orderkey = l_orderkey
        GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice ORDER BY o_totalprice DESC, o_orderkey LIMIT 100"""),
    Query("Q21", WAITING, {"with": WAITED, "l": ("l.l_suppkey", LATE), "l2": ("l2.l_orderkey", "SELECT f FROM w"),
                           "l3": ("l3.l_orderkey", "SELECT f FROM w")}),
)  # fmt: skip
CORRELATED = ("SELECT sum(l_extendedprice) / 7.0 FROM lineitem AS l, part WHERE p_partkey = l_partkey AND p_brand = 'Brand#23' "
              "AND p_container = 'MED BOX' AND l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem AS a "
              "WHERE l_partkey = p_partkey)")  # fmt: skip
INDEXED = Query("Q17", FEW, QUERIES[6].filters, CORRELATED)


def main_nodes(plan, above=None):
    """The nodes of a plan and the nodes above them, without InitPlans."""
    if plan.get("Parent Relationship") != "InitPlan":
        yield plan, above
        for child in plan.get("Plans", ()):
            yield from main_nodes(child, plan)


def analyze(session, sql):
    ((text,),) = session.rows("EXPLAIN (FORMAT JSON, ANALYZE, TIMING OFF) " + sql)
    return list(main_nodes(json.loads(text)[0]["Plan"]))


def all_rows(node):
    return node["Actual Rows"] * node["Actual Loops"]


def passed(plan, aliases):
    """The number of rows that leave the scans of these tables. PostgreSQL rounds the rows of a loop, so those of an
    inner side count as the rows that leave its nested loop."""
    return sum(all_rows(above if above and above["Node Type"] == "Nested Loop" else node)
               for node, above in plan if node.get("Alias") in aliases)  # fmt: skip


def tested(plan):
    """For each table of a plan, the number of filters that its scan tests."""
    return {node["Alias"]: node["Filter"].count("@>") for node, _ in plan
            if "Alias" in node and "@>" in node.get("Filter", "")}  # fmt: skip


def batches(plan):
    return max((node.get("Hash Batches", 0) for node, _ in plan), default=0)


class State:
    @functools.cached_property
    def session(self):
        return connect("maintenance_work_mem = '512MB'")


def make(state, lines, results):
    session = state.session
    for name, sql in {**tpch.dimensions(lines), "lineitem": tpch.lineitem(lines)}.items():
        session.ask("DROP TABLE IF EXISTS " + name)
        session.ask(sql)
        session.ask("VACUUM ANALYZE " + name)
    session.ask("CHECKPOINT")


def compare(query, case, settings, lines, results):
    session = connect(*settings)
    forms = {"filters": query.filtered(), "plain": query.plain()}
    plans = {form: analyze(session, sql) for form, sql in forms.items()}
    scans = tested(plans["filters"])
    if sum(scans.values()) != query.tests() or tested(plans["plain"]):
        raise SystemExit("%s: the scans of the plan do not test the filters" % case)
    if case in SPILLS and lines >= 1000000 and batches(plans["plain"]) < 2:
        raise SystemExit("%s: the hash join does not spill" % case)
    answers = []

    def milliseconds(sql):
        start = time.perf_counter()
        answers.append(session.rows(sql))
        return 1000 * (time.perf_counter() - start)

    results.compare(case, lines, "time", "ms", {form: lambda sql=sql: milliseconds(sql) for form, sql in forms.items()})
    agree(case, *answers)
    results.figures(case, lines, "rows past the scans", "rows", {form: passed(plan, scans) for form, plan in plans.items()})
    for form, plan in plans.items():
        results.add(case, form, lines, "hash batches", "", [batches(plan)], [])
    session.connection.close()


def add_index(state, sql, results):
    state.session.ask(sql)


def with_index(state, lines, results):
    """The index finds the parts' lines without a filter."""
    expect(state.session, CORRELATED, {"Index Name": "lineitem_partkey"})
    compare(INDEXED, "Q17, 4 MB, index on part", (SMALL,), lines, results)
    state.session.ask("DROP TABLE region, nation, supplier, part, customer, orders, lineitem")


def steps(rows):
    state, lines = State(), max(rows * 3 // 10, 1000)
    cost = lines / 1e6

    def case(query, name, settings):
        seconds = {"Q17": 40, "Q18": 30, "Q21": 30, "spill": 20}.get(query.name, 10)
        return Step("%s, %s" % (query.name, name), seconds * cost,
                    functools.partial(compare, query, "%s, %s" % (query.name, name), settings, lines))  # fmt: skip

    return [
        Step("tables of %d lines" % lines, 10 * cost, functools.partial(make, state, lines)),
        *(case(query, name, settings) for query in QUERIES if query.name != NEEDS_INDEX
          for name, settings in SETTINGS.items() if name != "4 MB, 2 workers" or query.name in WITH_WORKERS),
        Step("primary key", cost, functools.partial(
            add_index, state, "ALTER TABLE lineitem ADD PRIMARY KEY (l_orderkey, l_linenumber)")),
        *(case(query, "4 MB, primary key", (SMALL,)) for query in QUERIES),
        Step("index", cost, functools.partial(add_index, state, "CREATE INDEX lineitem_partkey ON lineitem (l_partkey)")),
        Step("Q17, index on part", 3 * cost, functools.partial(with_index, state, lines)),
    ]  # fmt: skip
