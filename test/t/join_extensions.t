#!/usr/bin/python3 -B
"""Join filters and other extensions that hook the planner and the executor, loaded before bloomtype and after it, on a
server of its own. What the filters do is in join_filters.t.
"""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "..", "durability"))
from durable import Server, own_directory  # noqa: E402
from session import nodes_of  # noqa: E402
from tap import done, ok, part, same, skip  # noqa: E402

HASH_ONLY = "SET enable_mergejoin = off; SET enable_nestloop = off; SET max_parallel_workers_per_gather = 0;"
FORCE = "SET bloomtype.join_filters = force;"
QUERY = "SELECT count(*) FROM pairs JOIN wanted USING (k)"
DATABASE = "extensions"


def has_filter(plan):
    return any("Join Filter Name" in node for node in plan)


def make_server(directory):
    server = Server(directory, "server").init(shared_preload_libraries="'pg_stat_statements'").start()
    server.run("createdb", DATABASE)
    server.sql("CREATE EXTENSION bloomtype", "CREATE EXTENSION pg_stat_statements",
               # each value twice, the wanted ones not together: a probe would not pay there
               "CREATE TABLE pairs AS SELECT i % 5000 AS k, i FROM generate_series(0, 9999) AS i ORDER BY i * 7919 % 10000",
               "CREATE TABLE wanted AS SELECT i AS k FROM generate_series(1, 100) AS i",
               # every second row is not wanted
               "CREATE TABLE halved AS SELECT i + (i + 1) % 2 * 1000 AS k FROM generate_series(1, 200) AS i",
               "VACUUM ANALYZE pairs, wanted, halved", database=DATABASE)  # fmt: skip
    return server


def both_orders(server, test, name):
    """Runs a test in a session that loads an extension before bloomtype, and in one that loads it after."""
    for libraries in f"{name},bloomtype", f"bloomtype,{name}":
        with server.connect(database=DATABASE, options=f"-c session_preload_libraries={libraries}") as session:
            test(session, libraries)


def test_auto_explain(server):
    both_orders(server, check_auto_explain, "auto_explain")


def check_auto_explain(session, libraries):
    """The plan that it logs has the filter and its figures."""
    session.each(HASH_ONLY + FORCE, """SET auto_explain.log_min_duration = 0; SET auto_explain.log_level = notice;
                 SET auto_explain.log_format = json; SET auto_explain.log_analyze = on""")  # fmt: skip
    session.notices.clear()
    same(session.ask(QUERY), ["200"], f"{libraries}: the result")
    same(len(session.notices), 1, "one plan is logged")
    plan = nodes_of(json.loads(session.notices[0].partition("plan:\n")[2])["Plan"])
    (build,) = [node for node in plan if "Join Filter Name" in node]
    # the join reads one row before it builds the filter
    same((build["Join Filter Built From"], build["Rows Probed"]), (["wanted.k"], 9999), "with the filter and what it did")


def test_pg_stat_statements(server):
    """A statement has the same identifier with filters, and is counted once."""
    for libraries in "pg_stat_statements,bloomtype", "bloomtype,pg_stat_statements":
        server.stop()
        server.configure(shared_preload_libraries=f"'{libraries}'")
        server.start()
        with server.connect(HASH_ONLY + "SET pg_stat_statements.track_planning = on;", database=DATABASE) as session:
            session.each("SELECT pg_stat_statements_reset()", QUERY, FORCE)
            ok(has_filter(session.explain(QUERY)), f"{libraries}: there is a filter")
            session.each(QUERY, QUERY)
            same(session.ask(f"SELECT plans, calls, rows FROM pg_stat_statements WHERE query = '{QUERY}'"), ["3|3|3"],
                 "all calls are counted as one statement")  # fmt: skip


def test_pg_hint_plan(server):
    if server.value("SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_hint_plan'", database=DATABASE) == "0":
        skip("pg_hint_plan", "it is not installed")
    else:
        both_orders(server, check_pg_hint_plan, "pg_hint_plan")


def check_pg_hint_plan(session, libraries):
    """A hint decides the join, and a hash join has its filter."""
    session.ask(FORCE)
    for method, node, filtered in ("HashJoin", "Hash Join", True), ("NestLoop", "Nested Loop", False):
        query = f"/*+ {method}(pairs wanted) Leading((pairs wanted)) */ {QUERY}"
        plan = json.loads(session.rows(f"/*+ {method}(pairs wanted) Leading((pairs wanted)) */"
                                       f" EXPLAIN (FORMAT json) {QUERY}")[0][0])[0]["Plan"]  # fmt: skip
        plan = list(nodes_of(plan))
        ok(any(one["Node Type"] == node for one in plan), f"{libraries}: the hint {method} is followed", plan)
        same(has_filter(plan), filtered, f"{'a' if filtered else 'no'} filter")
        same(session.ask(query), ["200"], "the result")


def test_other_node(server, directory):
    """No filter is placed where another extension has put a node into the plan, on either side of a join. This one
    returns every second row of its input, so a filter that passes it changes the result."""
    subprocess.run(["make", "-s", "-C", directory, "-f", os.path.join(HERE, "..", "node", "Makefile"), "with_llvm=no",
                    f"PG_CONFIG={os.environ.get('PG_CONFIG', 'pg_config')}"],
                   check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    for query in ("SELECT count(*) FROM halved JOIN (SELECT k FROM wanted OFFSET 0) AS w USING (k)",
                  "SELECT count(*) FROM pairs JOIN (SELECT k FROM halved OFFSET 0) AS h USING (k)"):  # fmt: skip
        with server.connect(HASH_ONLY + f"LOAD '{directory}/other_node.so'; LOAD 'bloomtype';", database=DATABASE) as session:
            expected = session.ask(query)
            session.ask(FORCE)
            plan = session.explain(query)
            ok(any(node.get("Custom Plan Provider") == "Half" for node in plan), "there is a node of another extension", plan)
            ok(not has_filter(plan), "and no filter", plan)
            same(session.ask(query), expected, "the result is the same")
            session.ask("ALTER TABLE halved RENAME TO whole")
            ok(has_filter(session.explain(query.replace("halved", "whole"))), "without it there is one")
            session.ask("ALTER TABLE whole RENAME TO halved")


def main():
    directory = own_directory()
    server = make_server(directory)
    part(test_other_node, server, directory)
    part(test_auto_explain, server)
    part(test_pg_hint_plan, server)
    part(test_pg_stat_statements, server)
    done()


main()
