#!/usr/bin/python3 -B
"""Filters and counters between servers through postgres_fdw: two private servers beside the tested one, which reaches
them through a proxy that counts bytes. Checks the queries of doc/distributed.md by their remote SQL, by the rows and
bytes that cross, and by comparison with a local copy of the rows.
"""

import math
import os
import subprocess
import sys
import time
from typing import NamedTuple

from session import Session, ask, extension_schema, in_order, own_schema
from tap import clean_up_when_terminated, done, ok, part, same, skip

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(1, os.path.join(ROOT, "test", "durability"))
from durable import DATABASE, Server, own_directory  # noqa: E402

ROWS = 40000  # half on each server
CUSTOMERS = 2000
NAMES = "one", "two"
SOCKET = ".s.PGSQL.5432"
FAR = "bloomtype_{}"  # the names of the foreign servers


class Wire:
    """The proxy between this server and the others."""

    def __init__(self, directory):
        self.home, self.counts = os.path.join(directory, "wire"), os.path.join(directory, "bytes")
        for name in NAMES:
            os.makedirs(os.path.join(self.home, name))
        pairs = (f"{self.home}/{name}/{SOCKET}={directory}/{name}/{SOCKET}" for name in NAMES)
        self.process = subprocess.Popen([sys.executable, "-B", f"{ROOT}/bench/wire.py", self.counts, *pairs])
        until = time.monotonic() + 60
        while not self.total() and time.monotonic() < until:
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def total(self):
        """The bytes sent to the other servers and received from them."""
        try:
            with open(self.counts) as file:
                return [int(number) for number in file.read().split()]
        except FileNotFoundError:
            return []


class Crossing(NamedTuple):
    result: list
    nodes: list  # of the plan
    remote: list  # SQL
    rows: int
    sent: int
    received: int


class Hub(Session):
    """The session that asks the other servers."""

    wire = None

    def cross(self, query):
        """The result of a query, and what crossed."""
        result, before = self.ask(query), self.wire.total()
        nodes = self.explain(query, ", ANALYZE, VERBOSE, COSTS off, TIMING off, SUMMARY off")
        sent, received = (now - then for now, then in zip(self.wire.total(), before))
        foreign = [node for node in nodes if node["Node Type"] == "Foreign Scan"]
        rows = sum(round(node["Actual Rows"] * node["Actual Loops"]) for node in foreign)
        return Crossing(result, nodes, [node["Remote SQL"] for node in foreign], rows, sent, received)

    def far(self, query):
        """The same, and tests that the result is that of the local copy of the rows."""
        crossing = self.cross(query)
        same(crossing.result, self.ask(query.replace("far_", "near_")), query)
        return crossing


# The rows with an id of at most ROWS / 2 are on server one, the others on server two.
SALES = f"""
    SELECT i AS id, 1 + (hashint8extended(i, 1) & 2147483647) % {CUSTOMERS} AS customer, i % 1000 AS amount,
        'name ' || i AS name, md5(i::text)::uuid AS token, date '2024-01-01' + i::integer % 1000 AS day,
        i / 7.0 AS price, int8send(i) AS bytes, '10.0.0.0'::inet + i AS address
    FROM generate_series({{}}::bigint, {{}}) AS i"""
COLUMNS = """id bigint, customer bigint, amount bigint, name text, token uuid, day date, price numeric, bytes bytea,
    address inet"""


def fill(server, first, last):
    server.run("createdb", DATABASE)
    schema = extension_schema()
    server.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}; CREATE EXTENSION bloomtype SCHEMA {schema}",
               f"CREATE TABLE public.sales AS {SALES.format(first, last)}", "ANALYZE")  # fmt: skip


def foreign_server(name, host, extensions="bloomtype"):
    shipped = f"extensions '{extensions}', " if extensions else ""
    return f"""
        CREATE SERVER {name} FOREIGN DATA WRAPPER postgres_fdw OPTIONS (
            host '{host}', port '5432', dbname '{DATABASE}', {shipped} fetch_size '10000', async_capable 'true');
        CREATE USER MAPPING FOR CURRENT_USER SERVER {name} OPTIONS (user 'postgres');"""


def connect_servers(hub, schema):
    half = ROWS // 2
    hub.ask(f"""
        CREATE EXTENSION IF NOT EXISTS postgres_fdw SCHEMA {schema};
        {"".join(foreign_server(FAR.format(name), f"{hub.wire.home}/{name}") for name in NAMES)}
        CREATE TABLE far_sales ({COLUMNS}) PARTITION BY RANGE (id);
        CREATE FOREIGN TABLE far_one PARTITION OF far_sales FOR VALUES FROM (MINVALUE) TO ({half + 1})
            SERVER {FAR.format("one")} OPTIONS (schema_name 'public', table_name 'sales');
        CREATE FOREIGN TABLE far_two PARTITION OF far_sales FOR VALUES FROM ({half + 1}) TO (MAXVALUE)
            SERVER {FAR.format("two")} OPTIONS (schema_name 'public', table_name 'sales');
        CREATE TABLE near_sales AS {SALES.format(1, ROWS)};
        CREATE VIEW near_one AS SELECT * FROM near_sales WHERE id <= {half};
        CREATE VIEW near_two AS SELECT * FROM near_sales WHERE id > {half};
        CREATE TABLE customers AS
            SELECT i AS id, i % 100 AS segment FROM generate_series(1::bigint, {CUSTOMERS}) AS i;
        CREATE TABLE filters AS SELECT 'seven' AS name, bloom_agg(id) AS f FROM customers WHERE segment = 7;
        CREATE TABLE token_filter AS SELECT bloom_agg(token) AS f FROM near_one WHERE id % 100 = 0;""")
    hub.ask("ANALYZE")


SEVEN = "(SELECT bloom_agg(id) FROM customers WHERE segment = 7)"
STORED = "(SELECT f FROM filters WHERE name = 'seven')"


def aggregates_run_remotely(hub):
    forms = ["bloom_agg(customer)", f"bloom_agg(customer, {CUSTOMERS})", "bloom_agg(customer, NULL, 0.001)",
             f"bloom_agg(customer, {CUSTOMERS}, 0.001)", "bloom_agg(customer, bloom_create(3000, seed => 5))",
             f"bloom_agg(customer, {STORED})", "bloom_agg(DISTINCT customer)", "bloom_agg(customer ORDER BY id)",
             "bloom_agg(customer) FILTER (WHERE amount < 100)", "bloom_agg(customer + 1)",
             "bloom_agg(name)", "bloom_agg(lower(name))", "bloom_agg(token)", "bloom_agg(day)", "bloom_agg(price)",
             "bloom_agg(bytes)", "bloom_agg(address)"]  # fmt: skip
    for form in forms:
        crossing = hub.far(f"SELECT {form} FROM far_one")
        same((len(crossing.remote), "bloom_agg(" in crossing.remote[0], crossing.rows), (1, True, 1),
             "it runs remotely, and one row crosses")
        # A filter crosses as hexadecimal digits.
        size = len(crossing.result[0])
        ok(size <= crossing.received <= size + 1000, "and only the filter returns", f"{crossing.received} for {size}")
    grouped = hub.far("SELECT amount / 100, bloom_agg(customer, 1000) FROM far_one GROUP BY 1 ORDER BY 1")
    same(grouped.rows, 10, "GROUP BY runs remotely")
    estimated = hub.far("SELECT # bloom_agg(customer), bloom_fpp(bloom_agg(customer)) FROM far_one")
    ok(estimated.received < 1000, "if only an estimate is selected, no filter crosses", estimated.received)


def tests_run_remotely(hub):
    passing = int(hub.ask(f"SELECT count(*) FROM near_one WHERE {SEVEN} @> customer")[0])
    size = 2 * int(hub.ask(f"SELECT length({SEVEN}::bytea)")[0])
    for condition, rows in [
        (f"{SEVEN} @> customer", passing), (f"customer <@ {SEVEN}", passing), (f"{STORED} @> customer", passing),
        (f"bloom_contains({STORED}, customer)", passing), (f"NOT {SEVEN} @> customer", ROWS // 2 - passing),
    ]:  # fmt: skip
        crossing = hub.far(f"SELECT id FROM far_one WHERE {condition} ORDER BY id")
        same((len(crossing.remote), "::bloomfilter" in crossing.remote[0].replace(extension_schema() + ".", ""),
              crossing.rows), (1, True, rows), "the filter is sent as a parameter, and what passes crosses")
        ok(size <= crossing.sent <= size + 2000, "the filter is sent once", f"{crossing.sent} for {size}")
        counted = hub.far(f"SELECT count(*) FROM far_one WHERE {condition}")
        same(counted.rows, 1, "count(*) runs remotely")
    several = hub.far(f"SELECT id FROM far_one WHERE {STORED} @> ANY (ARRAY[customer, id]) ORDER BY id")
    same(several.rows, len(several.result), "a test of several values runs remotely")
    between = hub.far("SELECT count(*) FROM far_one WHERE (SELECT bloom_agg(customer) FROM far_two WHERE amount = 7)"
                      " @> customer")  # fmt: skip
    same(between.rows, 2, "a filter that one server builds is tested by the other")
    tokens = hub.far("SELECT id FROM far_one WHERE (SELECT f FROM token_filter) @> token ORDER BY id")
    same(tokens.rows, len(tokens.result), "a filter of another type runs remotely")
    hub.ask("BEGIN")
    nodes = hub.explain(f"DELETE FROM far_one WHERE {SEVEN} @> customer", ", VERBOSE")
    ok(in_order(nodes, [{"Node Type": "Foreign Scan", "Operation": "Delete"}]), "DELETE runs remotely", nodes)
    hub.ask(f"DELETE FROM far_one WHERE {SEVEN} @> customer")
    same(hub.ask("SELECT count(*) FROM far_one"), [str(ROWS // 2 - passing)], "and deletes what passes the filter")
    hub.ask("ROLLBACK")


COUNTS = "(SELECT c FROM counters)"


def counters_run_remotely(hub):
    hub.ask("CREATE TABLE counters AS SELECT bloom_counter_agg(id) AS c FROM customers WHERE segment % 20 = 7")
    for form in ["bloom_counter_agg(customer)", f"bloom_counter_agg(customer, {CUSTOMERS}, 0.001)",
                 f"bloom_counter_agg(customer, {COUNTS})", "bloom_level_agg(customer, 1 + (amount % 9)::integer)",
                 f"bloom_sum_agg(bloom_add(bloom_create_counter({CUSTOMERS}), customer))",
                 f"bloom_union_agg(bloom_raise(bloom_create_counter({CUSTOMERS}), customer, 3))"]:  # fmt: skip
        crossing = hub.far(f"SELECT {form} FROM far_one")
        same((len(crossing.remote), "_agg(" in crossing.remote[0], crossing.rows), (1, True, 1),
             "it runs remotely, and one row crosses")
    sent = []
    for condition in (f"{COUNTS} @> customer", f"bloom_count({COUNTS}, customer) BETWEEN 1 AND 3",
                      f"{COUNTS.replace('c ', 'c::bloomfilter ', 1)} @> customer"):  # fmt: skip
        crossing = hub.far(f"SELECT id FROM far_one WHERE {condition} ORDER BY id")
        same((len(crossing.remote), "bloom" in crossing.remote[0], crossing.rows), (1, True, len(crossing.result)),
             "what passes crosses")
        ok(0 < crossing.rows < ROWS / 10, "these are few", crossing.rows)
        sent.append(crossing.sent)
    size = 2 * int(hub.ask(f"SELECT length({COUNTS}::bytea) - 28")[0])
    ok(min(sent[:2]) - sent[2] > 0.7 * size, "a counter cast to a filter takes a quarter of the bytes", sent, size)
    parts = [f"SELECT bloom_counter_agg(customer, {CUSTOMERS}) AS c FROM far_{name}" for name in NAMES]
    added = hub.cross(f"SELECT bloom_sum_agg(c) FROM ({' UNION ALL '.join(parts)}) AS counters")
    same(added.result, hub.ask(f"SELECT bloom_counter_agg(customer, {CUSTOMERS}) FROM near_sales"),
         "counters of two servers, added, are the counter of all rows")


def servers_aggregate_at_once(hub):
    parts = [f"SELECT bloom_agg(customer, {CUSTOMERS}) AS f FROM far_{name}" for name in NAMES]
    united = hub.cross(f"SELECT bloom_union_agg(f) FROM ({' UNION ALL '.join(parts)}) AS filters")
    same(united.result, hub.ask(f"SELECT bloom_agg(customer, {CUSTOMERS}) FROM near_sales"),
         "filters of two servers, united, are the filter of all rows")
    same(united.rows, 2, "each server sends one row")
    foreign = [node.get("Async Capable") for node in united.nodes if node["Node Type"] == "Foreign Scan"]
    same(foreign, [True, True], "both servers aggregate at the same time")
    grouped = hub.cross(f"""
        SELECT bloom_union_agg(f) FROM (
            SELECT bloom_agg(customer, {CUSTOMERS}) AS f FROM far_sales GROUP BY id <= {ROWS // 2}) AS filters""")
    same(grouped.result, united.result, "a query of the partitioned table gives the same filter")
    same(grouped.rows, ROWS, "but pulls all rows")


def joins_send_the_filter(hub):
    join = "SELECT count(*), sum(amount) FROM {} AS s JOIN customers AS c ON c.id = s.customer WHERE segment = 7"
    rest = f" AND {SEVEN} @> s.customer"
    plain, filtered = hub.cross(join.format("far_sales")), hub.cross(join.format("far_sales") + rest)
    same(filtered.result, plain.result, "a filter does not change the result of a join")
    same(filtered.result, hub.ask(join.format("near_sales")), "which is that of local tables")
    passing = int(hub.ask(f"SELECT count(*) FROM near_sales WHERE {SEVEN} @> customer")[0])
    same((plain.rows, filtered.rows), (ROWS, passing), "only the rows that pass the filter cross")
    counted = hub.cross(f"SELECT count(*) FROM far_sales WHERE {SEVEN} @> customer")
    same((counted.result, counted.rows), ([str(passing)], passing), "count(*) over partitions pulls these rows")
    # 1 % of the rows match, and 1 % of the others pass.
    ok(passing <= ROWS * 0.03, "these are about 2 %", passing)
    bytes_of = [crossing.sent + crossing.received for crossing in (plain, filtered)]
    ok(bytes_of[1] * 20 <= bytes_of[0], "at most a twentieth of the bytes cross", bytes_of)
    same([node.get("Async Capable") for node in filtered.nodes if node["Node Type"] == "Foreign Scan"], [True, True],
         "both servers filter at the same time")
    materialized = hub.cross(f"""
        WITH c AS MATERIALIZED (SELECT id FROM customers WHERE segment = 7)
        SELECT count(*), sum(amount) FROM far_sales AS s JOIN c ON c.id = s.customer
        WHERE (SELECT bloom_agg(id) FROM c) @> s.customer""")
    same((materialized.result, materialized.rows), (plain.result, passing), "the same with a MATERIALIZED CTE")


def forms_that_pull_rows(hub):
    """What the guide warns of, and what it says instead."""
    for query in [
        f"SELECT bloom_agg(customer, {CUSTOMERS}) FROM far_sales",
        "SELECT bloom_agg(id::text) FROM far_sales",
        f"SELECT count(*) FROM far_sales AS s, {SEVEN} AS q (f) WHERE q.f @> s.customer",
        "SELECT count(*) FROM far_sales AS s JOIN filters AS q ON q.f @> s.customer WHERE q.name = 'seven'",
    ]:
        same(hub.far(query).rows, ROWS, "pulls all rows")
    hub.ask(f"""
        {foreign_server("bloomtype_bare", f"{hub.wire.home}/one", "")}
        CREATE FOREIGN TABLE bare ({COLUMNS}) SERVER bloomtype_bare
            OPTIONS (schema_name 'public', table_name 'sales')""")
    bare = hub.cross(f"SELECT bloom_agg(customer, {CUSTOMERS}) FROM bare")
    same(bare.result, hub.ask(f"SELECT bloom_agg(customer, {CUSTOMERS}) FROM far_one"),
         "without the option extensions the filter is the same")
    same(bare.rows, ROWS // 2, "but pulls all rows")


def views_run_remotely(hub, one):
    one.sql("CREATE VIEW public.texts AS SELECT id::text AS id FROM public.sales")
    hub.ask(f"""CREATE FOREIGN TABLE far_texts (id text) SERVER {FAR.format("one")}
        OPTIONS (schema_name 'public', table_name 'texts');
        CREATE VIEW near_texts AS SELECT id::text AS id FROM near_one""")
    same(hub.far("SELECT bloom_agg(id) FROM far_texts").rows, 1, "a view on the remote server does the cast there")


def types_of_the_user(hub, one):
    """postgres_fdw runs nothing remotely for enums and domains. A view and the base type help."""
    own = "CREATE TYPE {0}mood AS ENUM ('sad', 'happy'); CREATE DOMAIN {0}positive AS bigint CHECK (VALUE > 0)"
    columns = "(ARRAY['sad', 'happy'])[1 + id % 2]::{0}mood AS mood, id::{0}positive AS number"
    one.sql(own.format("public."), f"""
        CREATE TABLE public.own AS SELECT {columns.format("public.")} FROM public.sales WHERE id <= 1000;
        CREATE VIEW public.own_filter AS SELECT bloom_agg(mood, 10) AS f FROM public.own""")
    server = FAR.format("one")
    hub.ask(f"""
        {own.format("")};
        CREATE TABLE near_own AS SELECT {columns.format("")} FROM near_one WHERE id <= 1000;
        CREATE VIEW near_base AS SELECT number::bigint FROM near_own;
        CREATE VIEW near_own_filter AS SELECT bloom_agg(mood, 10) AS f FROM near_own;
        CREATE FOREIGN TABLE far_own (mood mood, number positive) SERVER {server}
            OPTIONS (schema_name 'public', table_name 'own');
        CREATE FOREIGN TABLE far_base (number bigint) SERVER {server} OPTIONS (schema_name 'public', table_name 'own');
        CREATE FOREIGN TABLE far_own_filter (f bloomfilter) SERVER {server}
            OPTIONS (schema_name 'public', table_name 'own_filter')""")
    for column in "mood", "number":
        same(hub.far(f"SELECT bloom_agg({column}) FROM far_own").rows, 1000, f"{column}: all rows cross")
    same(hub.far("SELECT bloom_agg(number) FROM far_base").rows, 1, "a column declared with its base type")
    same(hub.far("SELECT f, f @> 'sad'::mood FROM far_own_filter").rows, 1, "a view that builds a filter of an enum")


def mistakes_are_errors(hub, two):
    """A column that is declared with another type, and an extension in another schema, give errors and no rows."""
    hub.ask(f"""CREATE FOREIGN TABLE wrong (customer text) SERVER {FAR.format("one")}
        OPTIONS (schema_name 'public', table_name 'sales')""")
    for query in ["SELECT count(*) FROM wrong WHERE (SELECT bloom_agg('a'::text)) @> customer",
                  "SELECT count(*) FROM customers WHERE (SELECT bloom_agg(customer) FROM wrong) @> id::text"]:
        same(hub.attempt(query), ([], "42804"), f"a text that is a bigint remotely: {query}")
    two.sql("CREATE DATABASE elsewhere")
    two.sql("CREATE SCHEMA elsewhere; CREATE EXTENSION bloomtype SCHEMA elsewhere; CREATE TABLE public.t (x bigint)",
            database="elsewhere")
    hub.ask(foreign_server("bloomtype_elsewhere", f"{hub.wire.home}/two").replace(DATABASE, "elsewhere"))
    hub.ask("""CREATE FOREIGN TABLE elsewhere (x bigint) SERVER bloomtype_elsewhere
        OPTIONS (schema_name 'public', table_name 't')""")
    same(hub.attempt("SELECT bloom_agg(x) FROM elsewhere"), ([], "42883"), "bloomtype in another schema remotely")


# Which rows differ?

ACCOUNTS = 20000
MISSING, CHANGED = 200, 100  # one in so many: on each server, and with another balance
DIFFERENCES = """
    SELECT 'one' AS here, id FROM account_hashes
    WHERE NOT (SELECT bloom_agg(hash, bloom_create({n}, seed => {seed})) FROM account_hashes_two) @> hash
    UNION ALL
    SELECT 'two', id FROM account_hashes_two
    WHERE NOT (SELECT bloom_agg(hash, bloom_create({n}, seed => {seed})) FROM account_hashes) @> hash"""


def accounts(number):
    return f"""
        CREATE TABLE accounts AS
            SELECT i AS id, 'account ' || md5(i::text) AS name,
                CASE WHEN {number} = 1 AND i % {CHANGED} = 7 THEN -i ELSE i END AS balance
            FROM generate_series(1, {ACCOUNTS}) AS i WHERE i % {MISSING} <> {number};
        CREATE MATERIALIZED VIEW account_hashes AS SELECT id, md5(a::text)::uuid AS hash FROM accounts AS a"""


def differing_rows_are_found(one, two, wire):
    one.sql(accounts(1))
    two.sql(accounts(2))
    one.sql(f"""
        CREATE EXTENSION postgres_fdw;
        {foreign_server("two", f"{wire.home}/two")}
        CREATE FOREIGN TABLE account_hashes_two (id integer, hash uuid) SERVER two
            OPTIONS (schema_name 'public', table_name 'account_hashes')""")
    changed = set(range(7, ACCOUNTS + 1, CHANGED))
    there = [{i for i in range(1, ACCOUNTS + 1) if i % MISSING != number} for number in (1, 2)]
    differing = {(here, i) for here, own, other in [("one", *there), ("two", *reversed(there))]
                 for i in own if i in changed or i not in other}
    with Hub("", host=one.home, port=5432, user="postgres", dbname=DATABASE) as session:
        session.ask("SET search_path = public, " + extension_schema())
        lists = session.cross("SELECT * FROM account_hashes FULL JOIN account_hashes_two USING (id, hash)")
        rounds = [session.cross(DIFFERENCES.format(n=ACCOUNTS, seed=seed)) for seed in (1, 2)]
    found = [{(here, int(i)) for here, i in (line.split("|") for line in crossing.result)} for crossing in rounds]
    for number, crossing in enumerate(rounds):
        ok(found[number] <= differing, f"round {number + 1} lists only rows that differ", found[number] - differing)
        ok(len(crossing.remote) >= 2 and all("bloom" in sql for sql in crossing.remote), "both filters cross",
           crossing.remote)
        # Four standard deviations above the rate of a full filter.
        hidden, expected = len(differing - found[number]), 0.01 * len(differing)
        ok(hidden <= expected + 4 * math.sqrt(expected), f"round {number + 1} hides about 1 % of {len(differing)}",
           hidden)  # fmt: skip
    same(sorted(differing - found[0] - found[1]), [], "two rounds with different seeds find all")
    bytes_of = [crossing.sent + crossing.received for crossing in (lists, rounds[0])]
    ok(bytes_of[1] * 5 <= bytes_of[0], "a round takes at most a fifth of the bytes of a list of all hashes", bytes_of)


# Replication


def filters_are_replicated(one, two, wire):
    """Server one gathers the filters of server two, and unites them with its own."""
    table = "CREATE TABLE public.filters (server text PRIMARY KEY, note int DEFAULT 0, f bloomfilter)"
    row = f"INSERT INTO public.filters SELECT '{{}}', 0, bloom_agg(id, {ROWS}) FROM public.sales"
    for server in one, two:
        server.sql(table, row.format(server.name), "ALTER TABLE public.filters ALTER f SET STORAGE EXTERNAL")
    two.sql("CREATE PUBLICATION filters FOR TABLE public.filters")
    publisher = two.conninfo().replace(two.home, f"{wire.home}/two")
    one.sql(f"CREATE SUBSCRIPTION filters CONNECTION '{publisher}' PUBLICATION filters WITH (binary = true)")
    one.poll("SELECT count(*) = 2 AND bool_and(srsubstate = 'r') FROM public.filters, pg_subscription_rel")
    size = int(two.value(f"SELECT bloom_bytes({ROWS})"))
    for change, there, low, high in [
        ("f = bloom_add(f, 1000000::bigint)", "f @> 1000000::bigint", size, size + 5000),
        ("note = 1", "note = 1", 0, 5000),
    ]:
        before = wire.total()
        two.sql(f"UPDATE public.filters SET {change}")
        one.poll(f"SELECT {there} FROM public.filters WHERE server = 'two'")
        crossed = sum(wire.total()) - sum(before)
        ok(low <= crossed <= high, f"{change} sends {low} to {high} bytes", crossed)
    got = one.value("SELECT bloom_union_agg(f) FROM public.filters")
    same([got], ask(f"SELECT bloom_add(bloom_agg(id, {ROWS}), 1000000::bigint) FROM near_sales"),
         "replicated filters, united, are the filter of all rows")
    one.sql("DROP SUBSCRIPTION filters")


def standbys_aggregate(hub, directory, one):
    """A foreign server may be a standby: building, testing and uniting write nothing there."""
    standby = Server(directory, "standby")
    standby.run("pg_basebackup", "--checkpoint=fast", "--write-recovery-conf", "-h", one.home, "-D", standby.data)
    standby.configure(unix_socket_directories=f"'{standby.home}'")
    standby.start()
    same(standby.value("SELECT pg_is_in_recovery()"), "t", "the standby is one")
    hub.ask(f"ALTER SERVER {FAR.format('one')} OPTIONS (SET host '{standby.home}')")
    same(hub.far(f"SELECT bloom_agg(customer, {CUSTOMERS}) FROM far_one").rows, 1, "a standby builds a filter")
    same(hub.far(f"SELECT count(*) FROM far_one WHERE {SEVEN} @> customer").rows, 1, "and tests one")
    hub.ask(f"ALTER SERVER {FAR.format('one')} OPTIONS (SET host '{hub.wire.home}/one')")
    standby.stop()


def main():
    clean_up_when_terminated()
    if not ask("SELECT FROM pg_available_extensions WHERE name = 'postgres_fdw'"):
        skip("postgres_fdw", "it is not installed")
        done()
    directory = own_directory()
    one, two = (Server(directory, name).init(wal_level="logical").start() for name in NAMES)
    fill(one, 1, ROWS // 2)
    fill(two, ROWS // 2 + 1, ROWS)
    with Wire(directory) as Hub.wire, own_schema() as schema:
        try:
            with Hub() as hub:
                connect_servers(hub, schema)
                part(aggregates_run_remotely, hub)
                part(tests_run_remotely, hub)
                part(counters_run_remotely, hub)
                part(servers_aggregate_at_once, hub)
                part(joins_send_the_filter, hub)
                part(forms_that_pull_rows, hub)
                part(views_run_remotely, hub, one)
                part(types_of_the_user, hub, one)
                part(mistakes_are_errors, hub, two)
                part(standbys_aggregate, hub, directory, one)
            part(filters_are_replicated, one, two, Hub.wire)
            part(differing_rows_are_found, one, two, Hub.wire)
        finally:
            ask("DROP SERVER IF EXISTS bloomtype_one, bloomtype_two, bloomtype_bare, bloomtype_elsewhere CASCADE")
    done()


main()
