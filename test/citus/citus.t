#!/usr/bin/python3 -B
"""bloomtype on a Citus cluster of a coordinator and two workers.

    script/dev/citus [SOURCE]       installs Citus and bloomtype, and runs this

A table on the coordinator holds the same rows as each distributed one. Filters and counters of the two must have the
same SHA-256. All servers force join filters.
The servers listen on Unix sockets only. They reach each other through bench/wire.py, which counts the bytes. The
client's own connection to the coordinator is not counted.
"""

import atexit
import contextlib
import os
import re
import subprocess
import sys
import time
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "..", "durability"))
from durable import Server, bindir, own_directory  # noqa: E402
from session import psycopg  # noqa: E402
from tap import done, note, ok, part, same  # noqa: E402

WIRE = os.path.join(HERE, "..", "..", "bench", "wire.py")
DATABASE = "citus"
SHARDS = 16
ROWS = int(os.environ.get("ROWS", "4000000"))
KEYS = ROWS // 8
FILTERS = 400
COMBINE = "citus.allow_aggregate_worker_combine_on_internal_types"
SETTINGS = {
    "shared_preload_libraries": "'citus'",
    "session_preload_libraries": "'bloomtype'",
    "bloomtype.join_filters": "force",
    "wal_level": "logical",
    "max_worker_processes": "32",
    "max_prepared_transactions": "100",
    "work_mem": "'64MB'",
    "max_parallel_workers_per_gather": "0",  # several shards of a query run at once
    "citus.shard_count": str(SHARDS),
    "citus.shard_replication_factor": "1",
    "citus.node_connection_timeout": "'30s'",
    # The maintenance daemon's queries would be counted.
    "citus.distributed_deadlock_detection_factor": "-1",
    "citus.recover_2pc_interval": "-1",
}

# The cluster


def has_citus():
    config = os.environ.get("PG_CONFIG", "pg_config")
    share = subprocess.run([config, "--sharedir"], check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
    return os.path.exists(os.path.join(share.strip(), "extension", "citus.control"))


def knows_setting(name):
    listed = subprocess.run([os.path.join(bindir(), "postgres"), "--describe-config"], check=True,
                            stdout=subprocess.PIPE, encoding="utf-8").stdout
    return any(line.startswith(name + "\t") for line in listed.split("\n"))


class Cluster:
    def __init__(self, directory):
        self.directory = directory
        self.counts = os.path.join(directory, "counts")
        if knows_setting("output_plugin_libraries"):
            SETTINGS["output_plugin_libraries"] = "'pgoutput, test_decoding, citus'"  # logical splits use the last
        self.servers = [Server(directory, name) for name in ("coordinator", "one", "two")]
        for server in self.servers:
            server.init(**SETTINGS, **{"citus.local_hostname": f"'{server.home}'"}).start()
        self.coordinator, *self.workers = self.servers
        self.start_wire()
        for server in self.servers:
            server.run("createdb", DATABASE)
            server.sql("CREATE EXTENSION citus", database=DATABASE)
        self.connection = None
        self.connect()
        self.sql("SELECT citus_set_coordinator_host(%s, 5432)", self.host(self.coordinator))
        for worker in self.workers:
            self.sql("SELECT citus_add_node(%s, 5432)", self.host(worker))

    def host(self, server):
        """The directory of the socket through which the other servers reach this one."""
        return os.path.join(self.directory, "to-" + server.name)

    def start_wire(self):
        for server in self.servers:
            os.mkdir(self.host(server))
        pairs = [f"{self.host(server)}/.s.PGSQL.5432={server.home}/.s.PGSQL.5432" for server in self.servers]
        wire = subprocess.Popen([sys.executable, "-B", WIRE, self.counts, *pairs],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        atexit.register(wire.kill)
        while not (os.path.exists(self.counts) and os.path.getsize(self.counts)):
            if wire.poll() is not None:
                raise OSError("bench/wire.py does not start")
            time.sleep(0.05)

    def stop(self):
        self.connection.close()
        for server in self.servers:
            server.stop("immediate")

    def connect(self):
        if self.connection:
            self.connection.close()
        self.connection = psycopg.connect(self.coordinator.conninfo(DATABASE), autocommit=True)

    def sql(self, query, *parameters):
        """The rows of a query, each a tuple; None if it returns none."""
        cursor = self.connection.execute(query, parameters or None)
        return cursor.fetchall() if cursor.description else None

    def value(self, query, *parameters):
        ((value,),) = self.sql(query, *parameters)
        return value

    def error(self, query, *parameters):
        """The message of the error that a query ends with; None if it succeeds."""
        try:
            self.sql(query, *parameters)
        except psycopg.Error as error:
            return str(error)
        return None

    def bytes(self):
        with open(self.counts) as counts:
            return sum(map(int, counts.read().split()))

    @contextlib.contextmanager
    def settings(self, **values):
        for name, value in values.items():
            self.sql(f"SET {name.replace('__', '.')} = {value}")
        try:
            yield
        finally:
            for name in values:
                self.sql(f"RESET {name.replace('__', '.')}")

    def on_workers(self, query):
        """The single value that each worker answers."""
        return [result for (result,) in self.sql("SELECT result FROM run_command_on_workers(%s)", query)]


cluster = None


def plan_of(query, *parameters):
    return "\n".join(line for (line,) in cluster.sql("EXPLAIN (VERBOSE, COSTS OFF) " + query, *parameters))


def queries_in(plan):
    return [line.strip().removeprefix("Query: ") for line in plan.split("\n") if line.strip().startswith("Query: ")]


def kind_of(plan):
    """Where an aggregate runs: on the shards alone (pushed), on shards and coordinator (split), or on the coordinator
    alone (pulled)."""
    queries = queries_in(plan)
    assert queries, plan
    if any("partial_agg(" in query for query in queries):
        return "split"
    return "pushed" if any(re.search(r"\bbloom_(\w+_)?agg\(", query) for query in queries) else "pulled"


def measured(name, plan, query, *parameters):
    """Runs a query and notes its cost in a row of the table in doc/distributed.md. Returns the rows, bytes and seconds."""
    before, start = cluster.bytes(), time.monotonic()
    rows = cluster.sql(query, *parameters)
    seconds, moved = time.monotonic() - start, cluster.bytes() - before
    note(f"| {name} | {plan} | {moved / 1e6:.2f} MB | {seconds:.2f} s |")
    return rows, moved, seconds


# The extension itself


def test_extension():
    count = "SELECT count(*) FROM pg_extension WHERE extname = 'bloomtype'"
    schema = "SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'bloomtype'"
    cluster.sql("CREATE EXTENSION bloomtype")
    same(cluster.on_workers(count), ["1", "1"], "CREATE EXTENSION reaches the workers")
    cluster.sql("CREATE SCHEMA blooms")
    cluster.sql("ALTER EXTENSION bloomtype SET SCHEMA blooms")
    same(cluster.on_workers(schema), ["blooms", "blooms"], "SET SCHEMA reaches the workers")
    cluster.sql("DROP EXTENSION bloomtype")
    same(cluster.on_workers(count), ["0", "0"], "DROP EXTENSION reaches the workers")
    cluster.sql("CREATE EXTENSION bloomtype")
    for worker in cluster.workers:
        note(f"{worker.name}: " + worker.value("SELECT citus_version()", database=DATABASE))


# Stored filters


def digest(table):
    return cluster.value(f"SELECT encode(sha256(string_agg(sha256(f::bytea), '' ORDER BY id)), 'hex') FROM {table}")


def same_filters(name):
    same(digest("filters"), digest("plain_filters"), f"{name}: same bytes")


def test_stored():
    """Ways into a distributed table, and changes there. Elements 1 to 500 are in all filters of plain_filters."""
    cluster.sql(f"""CREATE TABLE plain_filters AS
        SELECT id::bigint, (SELECT bloom_agg(x, 10000) FROM (SELECT generate_series(1, 500) UNION ALL
            SELECT generate_series(id * 10000, id * 10000 + 1500)) AS s (x)) AS f
        FROM generate_series(1, {FILTERS}) AS id""")
    cluster.sql("CREATE TABLE filters (id bigint PRIMARY KEY, f bloomfilter)")
    cluster.sql("SELECT create_distributed_table('filters', 'id')")
    cluster.sql("INSERT INTO filters SELECT id, f FROM plain_filters")
    same_filters("INSERT ... SELECT")

    for form in "binary", "text":
        cluster.sql("TRUNCATE filters")
        copy = f"(FORMAT {form})"
        with cluster.connection.cursor().copy(f"COPY (SELECT id, f FROM plain_filters) TO STDOUT {copy}") as copied:
            content = list(copied)
        with cluster.connection.cursor().copy(f"COPY filters FROM STDIN {copy}") as target:
            for chunk in content:
                target.write(bytes(chunk))
        same_filters(f"COPY, {form}")

    change = """INSERT INTO {0} AS t SELECT id, bloom_add(bloom_create(10000), id::integer) FROM {1}
        ON CONFLICT (id) DO UPDATE SET f = t.f | EXCLUDED.f"""
    cluster.sql("ALTER TABLE plain_filters ADD PRIMARY KEY (id)")
    cluster.sql(change.format("filters", f"generate_series(1, {FILTERS + 50}) AS id"))
    cluster.sql(change.format("plain_filters", f"generate_series(1, {FILTERS + 50}) AS id"))
    same_filters("ON CONFLICT with |")
    for table in "filters", "plain_filters":
        cluster.sql(f"UPDATE {table} SET f = bloom_add(f, %s::integer) WHERE id = %s", 77777, 7)
        cluster.sql(f"UPDATE {table} SET f = f | bloom_add(bloom_create(10000), 88888) WHERE id %% 3 = %s", 1)
    same_filters("UPDATE of one shard and of all")


def placement(index=0, table="filters"):
    """A shard, the node that has it and the other node."""
    shard, here = cluster.sql("""SELECT shardid, nodename FROM citus_shards WHERE table_name = %s::regclass
        ORDER BY shardid OFFSET %s LIMIT 1""", table, index)[0]
    (there,) = {cluster.host(worker) for worker in cluster.workers} - {here}
    return shard, here, there


def test_moves():
    for index, mode in enumerate(("block_writes", "force_logical")):
        shard, here, there = placement(index)
        cluster.sql("SELECT citus_move_shard_placement(%s, %s, 5432, %s, 5432, %s)", shard, here, there, mode)
        same(placement(index)[1], there, f"shard moved, {mode}")
        same_filters(f"shard moved, {mode}")
    for mode in "block_writes", "force_logical":
        shards = cluster.value("SELECT count(*) FROM citus_shards WHERE table_name = 'filters'::regclass")
        shard, low, high = cluster.sql("""SELECT shardid, shardminvalue::integer, shardmaxvalue::integer
            FROM pg_dist_shard WHERE logicalrelid = 'filters'::regclass ORDER BY shardid DESC LIMIT 1""")[0]
        cluster.sql("""SELECT citus_split_shard_by_split_points(%s, ARRAY[%s::text],
            (SELECT array_agg(nodeid) FROM pg_dist_node WHERE nodename = ANY (%s)), %s)""",
            shard, (low + high) // 2, [cluster.host(worker) for worker in cluster.workers], mode)  # fmt: skip
        same(cluster.value("SELECT count(*) FROM citus_shards WHERE table_name = 'filters'::regclass"), shards + 1,
             f"shard split, {mode}")
        same_filters(f"shard split, {mode}")
    drained = cluster.host(cluster.workers[0])
    on_drained = "SELECT count(*) FROM citus_shards WHERE table_name = 'filters'::regclass AND nodename = %s"
    cluster.sql("SELECT citus_drain_node(%s, 5432, 'block_writes')", drained)
    same(cluster.value(on_drained, drained), 0, "worker drained")
    same_filters("worker drained")
    cluster.sql("SELECT citus_set_node_property(%s, 5432, 'shouldhaveshards', true)", drained)
    cluster.sql("SELECT rebalance_table_shards('filters', shard_transfer_mode => 'force_logical')")
    ok(cluster.value(on_drained, drained) > 0, "shards rebalanced")
    same_filters("shards rebalanced")


def test_filter_aggregates():
    for aggregate in "bloom_union_agg", "bloom_intersect_agg":
        query = "SELECT sha256({}::bytea) FROM {}"
        expected = cluster.value(query.format(f"{aggregate}(f)", "plain_filters"))
        costs = {}
        for form, kind in ((f"{aggregate}(f)", "split"), (f"{aggregate}(f ORDER BY id)", "pulled")):
            text = query.format(form, "filters")
            same(kind_of(plan_of(text)), kind, f"{form} is {kind}")
            rows, costs[kind], _ = measured(f"`{form}`, {FILTERS} filters of 12 kB", kind, text)
            same(rows, [(expected,)], f"{form}: same bytes")
        ok(costs["split"] < costs["pulled"] / 2, f"{aggregate} split moves less than half of the bytes", costs)
        same(cluster.sql(query.format(f"{aggregate}(f)", "filters WHERE id < 0")),
             cluster.sql(query.format(f"{aggregate}(f)", "plain_filters WHERE id < 0")), f"{aggregate} of no filter")
        grouped = f"SELECT id %% 7, sha256({aggregate}(f)::bytea) FROM {{}} WHERE id > %s GROUP BY 1 ORDER BY 1"
        same(cluster.sql(grouped.format("filters"), 3), cluster.sql(grouped.format("plain_filters"), 3),
             f"{aggregate} by groups: same bytes")


def test_distributed_by_filter():
    cluster.sql("CREATE TABLE by_filter (f bloomfilter, id bigint)")
    cluster.sql("SELECT create_distributed_table('by_filter', 'f')")
    for _ in range(2):
        cluster.sql("INSERT INTO by_filter SELECT f, id FROM plain_filters")
    same(cluster.value("SELECT count(DISTINCT f) FROM by_filter"),
         cluster.value("SELECT count(DISTINCT f) FROM plain_filters"), "count(DISTINCT f)")
    same(digest("(SELECT DISTINCT id, f FROM by_filter)"), digest("plain_filters"),
         "distributed by a filter: same bytes")
    plan = plan_of("SELECT f, count(*) FROM by_filter GROUP BY f")
    ok("GROUP BY f" in plan and "count(*)" in plan, "GROUP BY the filter is pushed", plan)
    for id, f in cluster.sql("SELECT id, f FROM plain_filters ORDER BY id LIMIT 20"):
        same(cluster.sql("SELECT id FROM by_filter WHERE f = %s::bloomfilter", f), [(id,), (id,)], f"filter {id} found")
    plan = plan_of("SELECT id FROM by_filter WHERE f = %s::bloomfilter", f)
    ok("Task Count: 1\n" in plan, "an equal filter is looked for in one shard", plan)
    same(cluster.value("SELECT count(*) FROM by_filter AS a JOIN plain_filters AS b USING (f)"), 2 * (FILTERS + 50),
         "join on the filter")


# Filters of a large table's column

# Distributed by id: grp and key are in all shards. Prices are distributed by id, too, and have every hundredth key.
def make_events():
    cluster.sql(f"""CREATE TABLE plain_events AS SELECT id, id * 7919 % {KEYS} AS key, (id % 5)::integer AS grp
        FROM generate_series(1::bigint, {ROWS}) AS id""")
    cluster.sql("CREATE TABLE events (id bigint, key bigint, grp integer)")
    cluster.sql("SELECT create_distributed_table('events', 'id')")
    cluster.sql("INSERT INTO events SELECT * FROM plain_events")
    cluster.sql("CREATE TABLE visits (tenant integer, key bigint)")
    cluster.sql("SELECT create_distributed_table('visits', 'tenant', colocate_with => 'none')")
    cluster.sql(f"INSERT INTO visits SELECT id % 64, key FROM plain_events WHERE id <= {KEYS}")
    cluster.sql("CREATE TABLE prices (id bigint, key bigint)")
    cluster.sql("SELECT create_distributed_table('prices', 'id', colocate_with => 'none')")
    cluster.sql(f"INSERT INTO prices SELECT i, i * 100 FROM generate_series(1, {KEYS}) AS i")
    cluster.sql("ANALYZE")
    same(cluster.sql("SELECT count(*), count(DISTINCT key), sum(key) FROM events"),
         cluster.sql("SELECT count(*), count(DISTINCT key), sum(key) FROM plain_events"), f"{ROWS} rows, {KEYS} keys")


def sha(expression, tail=""):
    return f"SELECT sha256(({expression})::bytea) FROM {{}}{tail}"


def checked(name, query, kind):
    """A query of events, run as planned, that must agree with the one of plain_events. Returns the bytes moved."""
    expected = cluster.sql(query.format("plain_events"))
    text = query.format("events")
    same(kind_of(plan_of(text)), kind, f"{name} is {kind}")
    rows, moved, _ = measured(name, kind, text)
    same(rows, expected, f"{name}: same bytes")
    return moved


SPLIT = f"bloom_union_agg(bloom_add(bloom_create({KEYS}), key))"


def splits_internal_states():
    """The setting is hidden from pg_settings."""
    return cluster.value("SELECT current_setting(%s, true)", COMBINE) == "on"


def test_default_settings():
    """Where Citus can split states of type internal, it refuses polymorphic aggregates at run time."""
    if not splits_internal_states():
        return
    for form in ("bloom_agg(key)", f"bloom_agg(key, {KEYS})", f"bloom_agg(key, {KEYS}, 0.001)",
                 "bloom_counter_agg(key)", f"bloom_level_agg(key, grp + 1, {KEYS})"):  # fmt: skip
        query = sha(form)
        expected = cluster.sql(query.format("plain_events"))
        refused = cluster.error(query.format("events"))
        if refused:
            ok("could not confirm type correctness" in refused, f"{form} by default: refused as documented", refused)
            note(f"| `{form}`, default settings | error: {refused.splitlines()[0]} | | |")
        else:
            same(cluster.sql(query.format("events")), expected, f"{form} by default: same bytes")


def test_bloom_agg():
    plain = "SELECT sha256(bloom_agg(key)::bytea) FROM plain_events"
    measured("`bloom_agg(key)`, plain table", "one process", plain)
    for form in (
        "bloom_agg(key)",
        f"bloom_agg(key, {KEYS})",
        f"bloom_agg(key, {KEYS}, 0.001)",
        f"bloom_agg('n' || key, {KEYS})",
        "bloom_agg(DISTINCT key)",
        f"bloom_agg(key, {KEYS}) FILTER (WHERE grp = 1)",
    ):
        checked(f"`{form}`", sha(form), "pulled")
    tail = " GROUP BY grp ORDER BY grp"
    checked(f"`bloom_agg(key, {KEYS}) ... GROUP BY grp`", sha(f"bloom_agg(key, {KEYS})", tail), "pulled")


def test_split_form():
    """Filters of one element each, united on the workers and on the coordinator."""
    for form, same_as in (
        (SPLIT, f"bloom_agg(key, {KEYS})"),
        (f"bloom_union_agg(bloom_add(bloom_create({KEYS}, 0.001), key))", f"bloom_agg(key, {KEYS}, 0.001)"),
        (f"bloom_union_agg(bloom_add(bloom_create({KEYS}), 'n' || key))", f"bloom_agg('n' || key, {KEYS})"),
        (f"{SPLIT} FILTER (WHERE grp = 1)", f"bloom_agg(key, {KEYS}) FILTER (WHERE grp = 1)"),
        (f"{SPLIT} FILTER (WHERE grp = 9)", f"bloom_agg(key, {KEYS}) FILTER (WHERE grp = 9)"),  # no row
        (SPLIT.replace("key", "nullif(key, key)"), f"bloom_agg(nullif(key, key), {KEYS})"),
    ):
        checked(f"`{form}`", sha(form), "split")
        expected = cluster.sql(sha(same_as).format("plain_events"))
        same(cluster.sql(sha(form).format("plain_events")), expected, f"{form} is {same_as}")
    checked(f"`{SPLIT} ... GROUP BY grp`", sha(SPLIT, " GROUP BY grp ORDER BY grp"), "split")
    measured(f"`{SPLIT}`, plain table", "one process", sha(SPLIT).format("plain_events"))


def test_per_shard():
    """The forms that run bloom_agg on the shards."""
    tail = " WHERE id <= 1000 GROUP BY id ORDER BY id"
    checked("`bloom_agg(key) ... GROUP BY id`, 1,000 groups", sha("bloom_agg(key)", tail), "pushed")
    expected = cluster.sql(sha(f"bloom_agg(key, {KEYS})").format("plain_events"))
    rows, _, _ = measured(
        "`bloom_union_agg(result::bloomfilter) FROM run_command_on_shards(...)`", "by hand",
        f"""SELECT sha256(bloom_union_agg(result::bloomfilter)::bytea)
            FROM run_command_on_shards('events', 'SELECT bloom_agg(key, {KEYS}) FROM %s')""")  # fmt: skip
    same(rows, expected, "run_command_on_shards: same bytes")
    per_tenant = f"""SELECT sha256(bloom_union_agg(f)::bytea)
        FROM (SELECT bloom_agg(key, {KEYS}) AS f FROM visits GROUP BY tenant) AS s"""
    same(kind_of(plan_of(per_tenant)), "split", "union of filters grouped by the distribution column is split")
    rows, _, _ = measured(f"the same of {KEYS} rows, `GROUP BY tenant` below it, 64 tenants", "split", per_tenant)
    expected = cluster.sql(f"SELECT sha256(bloom_agg(key, {KEYS})::bytea) FROM plain_events WHERE id <= {KEYS}")
    same(rows, expected, "union of filters grouped by the distribution column: same bytes")


def test_adding_to_a_filter():
    base = cluster.value(f"SELECT bloom_agg(key, {KEYS}) FROM plain_events")
    where = " WHERE id <= 1000"
    expected = cluster.value(f"SELECT sha256(bloom_agg(-key, %s::bloomfilter)::bytea) FROM plain_events{where}", base)
    size = len(base) // 2
    costs = []
    for form, kind in (
        ("bloom_agg(-key, f)", "pulled"),
        (f"f | bloom_agg(-key, {KEYS})", "pulled"),
        (f"f | bloom_union_agg(bloom_add(bloom_create({KEYS}), -key))", "split"),
    ):
        expression = re.sub(r"\bf\b", "%s::bloomfilter", form)
        query = f"SELECT sha256(({expression})::bytea) FROM events{where}"
        same(kind_of(plan_of(query, base)), kind, f"{form} is {kind}")
        rows, moved, _ = measured(f"`{form}`, 1,000 rows, filter of {size / 1000:.0f} kB", kind, query, base)
        same(rows, [(expected,)], f"{form}: same bytes")
        costs.append(moved)
    ok(costs[0] > 500 * size, "the filter to add to travels with each row", costs)
    ok(max(costs[1:]) < 100_000, "the filter before | does not", costs)


# Counters


def test_stored_counters():
    """Counters of counts and of levels in a distributed table, changed there, with the aggregates over them."""
    cluster.sql(f"""CREATE TABLE plain_counters AS SELECT id::bigint, 'counts' AS contents,
            (SELECT bloom_counter_agg(x, 2000) FROM generate_series(id * 1000, id * 1000 + id) AS x) AS c
        FROM generate_series(1, {FILTERS}) AS id""")
    cluster.sql(f"""INSERT INTO plain_counters SELECT {FILTERS} + id, 'levels',
            (SELECT bloom_level_agg(x, 1 + x % 9, 2000) FROM generate_series(id * 1000, id * 1000 + id) AS x)
        FROM generate_series(1, {FILTERS}) AS id""")
    cluster.sql("CREATE TABLE counters (id bigint PRIMARY KEY, contents text, c bloomcounter)")
    cluster.sql("SELECT create_distributed_table('counters', 'id')")
    cluster.sql("INSERT INTO counters SELECT * FROM plain_counters")
    for table in "counters", "plain_counters":
        cluster.sql(f"UPDATE {table} SET c = bloom_add(c, id::integer, 3)")
        cluster.sql(f"UPDATE {table} SET c = bloom_remove(c, id::integer, 2) WHERE contents = 'counts'")
    for query in (
        "SELECT id, sha256(c::bytea), bloom_count(c, id::integer) FROM {} ORDER BY id",
        "SELECT count(DISTINCT c) FROM {}",
        "SELECT count(*) FROM {} WHERE c @> 7777",
    ):
        same(cluster.sql(query.format("counters")), cluster.sql(query.format("plain_counters")), f"counters: {query}")
    for form, where in ("bloom_sum_agg(c)", "contents = 'counts'"), ("bloom_union_agg(c)", "contents = 'levels'"):
        for condition in where, "id < 0":
            query = f"SELECT sha256({form}::bytea) FROM {{}} WHERE {condition}"
            text = query.format("counters")
            same(kind_of(plan_of(text)), "split", f"{form} is split")
            rows, _, _ = measured(f"`{form}`, {FILTERS} counters", "split", text)
            same(rows, cluster.sql(query.format("plain_counters")), f"{form} where {condition}: same bytes")


def test_counters_of_events():
    """Counters of one element each are added up on the workers and on the coordinator."""
    for form, same_as in (
        (f"bloom_sum_agg(bloom_add(bloom_create_counter({KEYS}), key))", f"bloom_counter_agg(key, {KEYS})"),
        (f"bloom_union_agg(bloom_raise(bloom_create_counter({KEYS}), key, grp + 1))",
         f"bloom_level_agg(key, grp + 1, {KEYS})"),
    ):  # fmt: skip
        checked(f"`{form}`", sha(form), "split")
        expected = cluster.sql(sha(same_as).format("plain_events"))
        same(cluster.sql(sha(form).format("plain_events")), expected, f"{form} is {same_as}")
    for form in "bloom_counter_agg(key)", f"bloom_counter_agg(key, {KEYS})", f"bloom_level_agg(key, grp + 1, {KEYS})":
        checked(f"`{form}`", sha(form), "pulled")


# Joins


def test_joins():
    ((f,),), _, _ = measured(f"filter of the {KEYS} prices", "split", f"SELECT {SPLIT} FROM prices")
    expected = cluster.sql("SELECT count(*), sum(key) FROM plain_events WHERE key % 100 = 0 AND key > 0")
    costs = {}

    def joined(name, kind, query, *parameters):
        plan = plan_of(query, *parameters)
        is_kind = "repartition" if "MapMergeJob" in plan else "CTE" if "Distributed Subplan" in plan else "pushed"
        same(is_kind, kind, f"{name}: planned as {kind}")
        rows, *costs[name] = measured(f"join, {name}", kind, query, *parameters)
        same(rows, expected, f"{name}: same result")

    cluster.sql("CREATE TABLE known (f bloomfilter)")
    cluster.sql("SELECT create_reference_table('known')")
    cluster.sql(f"INSERT INTO known SELECT {SPLIT} FROM prices")
    same(cluster.value("SELECT f FROM known"), f, "INSERT ... SELECT of a filter into a reference table")
    with cluster.settings(citus__enable_repartition_joins="on"):
        join = "SELECT count(*), sum(e.key) FROM events AS e JOIN prices AS p ON p.key = e.key"
        joined("no filter", "repartition", join)
        joined("filter as a literal", "repartition", join + " WHERE %s::bloomfilter @> e.key", f)
        refused = cluster.error(join + " WHERE (SELECT f FROM known) @> e.key")
        ok(refused, "a filter from a subquery in a repartition join is refused", "no error")
        note(f"| filter as `(SELECT f FROM known)` | error: {(refused or '').splitlines()[:1]} | | |")
        joined("filter in a reference table", "repartition", """SELECT count(*), sum(e.key)
            FROM events AS e JOIN known AS k ON k.f @> e.key JOIN prices AS p ON p.key = e.key""")
    joined("filtered in a CTE, filter as a literal", "CTE", """WITH e AS MATERIALIZED
        (SELECT key FROM events WHERE %s::bloomfilter @> key)
        SELECT count(*), sum(e.key) FROM e JOIN prices AS p ON p.key = e.key""", f)
    joined("filtered in a CTE, filter in a reference table", "CTE", """WITH e AS MATERIALIZED
        (SELECT key FROM events JOIN known ON f @> key)
        SELECT count(*), sum(e.key) FROM e JOIN prices AS p ON p.key = e.key""")
    joined("all in one statement", "CTE", f"""WITH k AS MATERIALIZED (SELECT {SPLIT} AS f FROM prices),
        e AS MATERIALIZED (SELECT key FROM events JOIN k ON f @> key)
        SELECT count(*), sum(e.key) FROM e JOIN prices AS p ON p.key = e.key""")
    whole = costs["no filter"][0]
    for name, (moved, _) in costs.items():
        if name != "no filter":
            # A literal is text, and each of the 16 tasks has it.
            most = whole if "literal" in name else whole / 3
            ok(moved < most, f"{name}: moves less than {most / 1e6:.1f} MB", moved)


# Join filters

JOINS = {
    # Queries of sale and buyer, which are distributed by the buyer, and of town, a reference table: {0} is a prefix of
    # the names of tables.
    "a join of the shards": "SELECT count(*), sum(v) FROM {0}sale JOIN {0}buyer AS b ON b.id = buyer WHERE kind = 3",
    "with a reference table": """SELECT name, count(*), sum(v) FROM {0}sale JOIN {0}buyer AS b ON b.id = buyer
        JOIN {0}town AS t ON t.id = town WHERE kind < 4 AND t.id < 3 GROUP BY name ORDER BY name""",
    "below GROUP BY": """SELECT count(*), sum(total) FROM (SELECT buyer, sum(v) AS total FROM {0}sale GROUP BY buyer) AS s
        JOIN {0}buyer AS b ON b.id = buyer WHERE kind = 3""",
    "of one shard": """SELECT count(*), sum(v) FROM {0}sale JOIN {0}town AS t ON t.id = town
        WHERE buyer = 77 AND t.id < 3""",
    "with a CTE of the coordinator": """WITH one AS MATERIALIZED (SELECT id FROM {0}buyer WHERE kind = 3 ORDER BY id LIMIT 50)
        SELECT count(*), sum(v) FROM {0}sale JOIN one ON one.id = buyer""",
    "semi-join": """SELECT count(*), sum(v) FROM {0}sale WHERE EXISTS
        (SELECT FROM {0}buyer AS b WHERE b.id = buyer AND kind = 3)""",
}  # fmt: skip
# One row of the shard, and a volatile function that reads what the coordinator has sent.
UNFILTERED = "of one shard", "with a CTE of the coordinator"


def make_sales():
    for prefix in "", "local_":
        cluster.sql(f"CREATE TABLE {prefix}town (id int, name text)")
        cluster.sql(f"CREATE TABLE {prefix}buyer (id bigint, kind int)")
        cluster.sql(f"CREATE TABLE {prefix}sale (buyer bigint, town int, v int)")
    cluster.sql("SELECT create_reference_table('town')")
    cluster.sql("SELECT create_distributed_table('buyer', 'id')")
    cluster.sql("SELECT create_distributed_table('sale', 'buyer', colocate_with => 'buyer')")
    for prefix in "", "local_":
        cluster.sql(f"INSERT INTO {prefix}town SELECT i, 'town ' || i FROM generate_series(0, 9) AS i")
        cluster.sql(f"INSERT INTO {prefix}buyer SELECT i, i % 10 FROM generate_series(1, 20000) AS i")
        cluster.sql(f"""INSERT INTO {prefix}sale SELECT 1 + hashint4(i) & 32767, i % 20, i % 1000
            FROM generate_series(1, 200000) AS i""")
        cluster.sql(f"ANALYZE {prefix}town, {prefix}buyer, {prefix}sale")


def test_join_filters():
    make_sales()
    for name, query in JOINS.items():
        with cluster.settings(bloomtype__join_filters="off"):
            expected = cluster.sql(query.format("local_"))
        for _ in range(2):
            same(cluster.sql(query.format("")), expected, f"{name}: same rows with join filters")
        if name not in UNFILTERED:
            plan = plan_of(query.format(""))
            ok("Custom Scan (Bloom Join Filter)" in plan, f"{name}: the workers build a filter", plan)
    for change in (
        "UPDATE {0}sale SET v = v + 1 FROM {0}buyer AS b WHERE b.id = buyer AND kind = 3",
        "DELETE FROM {0}sale USING {0}buyer AS b WHERE b.id = buyer AND kind = 4",
        "INSERT INTO {0}sale SELECT buyer, town, v FROM {0}sale JOIN {0}buyer AS b ON b.id = buyer WHERE kind = 5",
    ):
        for prefix in "", "local_":
            cluster.sql(change.format(prefix))
        rows = "SELECT count(*), sum(v), sum(buyer) FROM {0}sale"
        same(cluster.sql(rows.format("")), cluster.sql(rows.format("local_")), change.split()[0] + ": same rows")
    prepared = "SELECT count(*), sum(v) FROM {0}sale JOIN {0}buyer AS b ON b.id = buyer WHERE kind = $1"
    cluster.sql("PREPARE kinds (int) AS " + prepared.format(""))
    for kind in (3, 5, 6, 3, 5, 6, 3, 5, 6, 3):
        same(cluster.sql(f"EXECUTE kinds ({kind})"), cluster.sql(prepared.format("local_").replace("$1", str(kind))),
             f"a prepared statement, kind {kind}")  # fmt: skip


# Bloomsets


def shards_with(table, key):
    """The answer of each shard's bloomset, by the query of doc/distributed.md."""
    return {shard: result for shard, result in cluster.sql(f"""SELECT shardid, result::boolean
        FROM run_command_on_shards('{table}', $$SELECT bloomset_contains(%L, 'key', {key}::bigint)$$)""")}


def refused(server, table, where, *calls):
    """The shell of a table in shards has no rows, so its bloomset would deny every value."""
    message = f'table "{table}" is distributed, and its rows are in shards'
    for call in calls:
        with psycopg.connect(server.conninfo(DATABASE), autocommit=True) as connection:
            try:
                error = f"no error, but {connection.execute('SELECT * FROM ' + call).fetchall()}"
            except psycopg.Error as raised:
                error = str(raised)
        ok(message in error, f"{where}: {call} is an error", error)


def test_bloomsets():
    for table, distribute in (
        ("keyed", "create_distributed_table('keyed', 'id')"),
        ("shared", "create_reference_table('shared')"),
    ):
        cluster.sql(f"CREATE TABLE {table} (id bigint, key bigint)")
        cluster.sql(f"SELECT {distribute}")
        cluster.sql(f"INSERT INTO {table} SELECT id, id * 10 FROM generate_series(1, 10000) AS id")
        cluster.sql(f"CREATE INDEX {table}_set ON {table} USING bloomset (key)")
        for server, where in (cluster.coordinator, "coordinator"), (cluster.workers[0], "worker"):
            refused(server, table, where, f"bloomset_contains('{table}', 'key', 70::bigint)",
                    f"bloomset_contains('{table}_set', 70::bigint)", f"bloomset_partitions('{table}', 'key', 70::bigint)",
                    f"bloomset_filters('{table}', 'key')", f"bloomset_info('{table}_set')",
                    f"bloomset_check('{table}_set')")  # fmt: skip
        same(cluster.sql(f"SELECT id FROM {table} WHERE key = 70"), [(7,)], f"{table}: a row is found by its value")
        same(cluster.sql(f"SELECT id FROM {table} WHERE key = 71"), [], f"{table}: no row of an absent value")
    ids = range(7, 10000, 500)
    missed = wrong = 0
    for id in ids:
        home = cluster.value("SELECT get_shard_id_for_distribution_column('keyed', %s::bigint)", id)
        answers = shards_with("keyed", id * 10)
        missed += answers.pop(home) is not True
        wrong += sum(answers.values()) + sum(shards_with("keyed", id * 10 + 1).values())
    same(missed, 0, "each value is in the bloomset of its shard")
    # A bloomset has false positives.
    most = len(ids) * (2 * SHARDS - 1) / 10
    ok(wrong < most, "the other shards, and all for an absent value, say no", wrong)
    same(list(shards_with("shared", 70).values()), [True], "the shard of a reference table has a value")


# Bloomslices

SEGMENTS = 3000
# Dense filters, sparse ones, empty ones and nulls. Filter id has the keys 100 * id .. 100 * id + 60, and one of 0 .. 99.
MAKE_SEGMENTS = f"""CREATE TABLE plain_segments AS SELECT id::bigint, CASE id % 50
        WHEN 0 THEN NULL WHEN 1 THEN bloom_create(60)
        WHEN 2 THEN bloom_add(bloom_create(60), 100 * id) ELSE (SELECT bloom_agg(x, 60) FROM
        (SELECT generate_series(100 * id, 100 * id + 60) UNION ALL SELECT id % 100) AS s (x)) END AS f
    FROM generate_series(1, {SEGMENTS}) AS id"""
ON_SEGMENTS = {
    "@>": "SELECT id FROM {} WHERE f @> 70042", "<@": "SELECT id FROM {} WHERE 42 <@ f",
    "two keys": "SELECT id FROM {} WHERE f @> 42 AND f @> 4242", "an absent key": "SELECT id FROM {} WHERE f @> -1",
    "@@": "SELECT id FROM {} WHERE f @@ bloom_query(ARRAY[42, 70042, 70043], 2)",
    "any": "SELECT id FROM {} WHERE bloom_contains_any(f, ARRAY[70042, 80042])",
    "all": "SELECT id FROM {} WHERE bloom_contains_all(f, ARRAY[70042, 70043])",
    "least": "SELECT id FROM {} WHERE bloom_contains_least(f, ARRAY[70042, 70043, 42, 43], 2)",
    "at least 0": "SELECT id FROM {} WHERE bloom_contains_least(f, ARRAY[70042], 0)",
    "@>=": "SELECT id FROM {} WHERE f @>= bloom_add(bloom_add(bloom_create(60), 70042), 70043)",
    "a join": "SELECT k, id FROM wanted JOIN {} ON f @> k",
    "ORDER BY": "SELECT f <-> bloom_query(ARRAY[70042, 70043, 70099, 42]) AS d FROM {} "
                "ORDER BY f <-> bloom_query(ARRAY[70042, 70043, 70099, 42]) LIMIT 20",
    "ORDER BY without a limit": "SELECT f <-> bloom_query(ARRAY[42, 43]) AS d, id FROM {} "
                                "ORDER BY f <-> bloom_query(ARRAY[42, 43])",
}  # fmt: skip
# The index of one shard; run_command_on_shards() takes one value.
OF_SHARD = """SELECT {} FROM pg_index JOIN pg_class AS c ON c.oid = indexrelid JOIN pg_am AS a ON a.oid = relam
    WHERE amname = 'bloomslices' AND indrelid = %L::regclass"""


def on_segment_shards(call):
    """What a function says of the index of each shard."""
    return cluster.sql("SELECT success, result FROM run_command_on_shards('segments', %s)", OF_SHARD.format(call))


def use_indexes(setting):
    """On the workers. The coordinator's connections to them come with a new session."""
    for worker in cluster.workers:
        worker.sql(f"ALTER SYSTEM {setting}", database=DATABASE)
        worker.sql("SELECT pg_reload_conf()", database=DATABASE)
    time.sleep(1)
    cluster.connect()


def same_segments(name):
    """Each query gives what it gives of the plain table."""
    for what, query in ON_SEGMENTS.items():
        got, want = (cluster.sql(query.format(table)) for table in ("segments", "plain_segments"))
        same(sorted(got, key=str), sorted(want, key=str), f"{name}: {what}")
        if "LIMIT" in query:
            same(got, want, f"{name}: {what}, in order")
    for table in "segments", "plain_segments":
        error = cluster.error(f"SELECT id FROM {table} WHERE f @> '42'::text") or ""
        ok("holds elements of type bigint, not text" in error, f"{name}: another class in {table} is an error", error)
    checks = on_segment_shards("bloomslices_check(indexrelid)::text")
    shards = cluster.value("SELECT count(*) FROM citus_shards WHERE table_name = 'segments'::regclass")
    ok(len(checks) == shards and all(success for success, _ in checks), f"{name}: bloomslices_check by shard", checks)


def test_bloomslices():
    cluster.sql(MAKE_SEGMENTS)
    cluster.sql("CREATE TABLE wanted AS SELECT unnest(ARRAY[42, 70042, 80001, -1]) AS k")
    cluster.sql("SELECT create_reference_table('wanted')")
    cluster.sql("CREATE TABLE segments (id bigint, f bloomfilter)")
    cluster.sql("SELECT create_distributed_table('segments', 'id')")
    cluster.sql("INSERT INTO segments SELECT * FROM plain_segments WHERE id % 2 = 0")
    cluster.sql("CREATE INDEX segments_f ON segments USING bloomslices (f)")
    cluster.sql("INSERT INTO segments SELECT * FROM plain_segments WHERE id % 2 = 1")
    use_indexes("SET enable_seqscan = off")
    for what in "@>", "@@", "least", "@>=", "ORDER BY":
        plan = plan_of(ON_SEGMENTS[what].format("segments"))
        ok("segments_f" in plan, f"{what}: the plan of a shard uses its index", plan)
    same_segments("a distributed table")
    for server, where in (cluster.coordinator, "coordinator"), (cluster.workers[0], "worker"):
        refused(server, "segments", where, "bloomslices_info('segments_f')", "bloomslices_check('segments_f')",
                "bloomslices_merge('segments_f')")  # fmt: skip
    same(sum(int(rows) for _, rows in on_segment_shards("(bloomslices_info(indexrelid)).rows")), SEGMENTS,
         "bloomslices_info by shard has all rows")  # fmt: skip
    for table in "segments", "plain_segments":
        cluster.sql(f"UPDATE {table} SET f = bloom_add(f, 42) WHERE id % 7 = 3")
        cluster.sql(f"DELETE FROM {table} WHERE id % 11 = 3")
    same_segments("after changes")
    merges = on_segment_shards("bloomslices_merge(indexrelid)::text")
    ok(all(success for success, _ in merges), "bloomslices_merge by shard", merges)
    cluster.sql("VACUUM segments")
    same_segments("after VACUUM")
    shard, here, there = placement(0, "segments")
    cluster.sql("SELECT citus_move_shard_placement(%s, %s, 5432, %s, 5432, %s)", shard, here, there, "block_writes")
    same_segments("after a move")
    use_indexes("RESET enable_seqscan")


# Failures


def test_killed_worker():
    query = sha(SPLIT).format("events")
    before, filters = cluster.sql(query), digest("filters")
    victim = cluster.workers[1]
    victim.kill()
    for what, statement in (
        ("an aggregate", query),
        ("an update of all shards", "UPDATE filters SET f = bloom_add(f, 99999)"),
    ):
        error = cluster.error(statement) or ""
        ok(any(word in error for word in ("connection", "terminat")), f"killed worker: {what} is an error", error)
        note(f"killed worker, {what}: {error.splitlines()[:1]}")
    victim.start()
    cluster.connect()
    cluster.sql("SELECT recover_prepared_transactions()")
    same(cluster.sql(query), before, "worker restarted: same bytes of the aggregate")
    same(digest("filters"), filters, "worker restarted: same stored filters")


def test_cancelled():
    """A statement that is cancelled leaves nothing running on the workers."""
    with cluster.settings(statement_timeout="200"):  # ms
        error = cluster.error(f"SELECT {SPLIT} FROM events AS a, generate_series(1, 100)") or ""
        ok("statement timeout" in error, "a split aggregate is cancelled", error)
    running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query ~ 'partial_agg'"
    until = time.monotonic() + 10
    while Counter(cluster.on_workers(running + " AND pid <> pg_backend_pid()")) != {"0": 2}:
        if time.monotonic() > until:
            break
        time.sleep(0.1)
    same(cluster.on_workers(running + " AND pid <> pg_backend_pid()"), ["0", "0"], "and runs no longer on the workers")



def start():
    global cluster
    cluster = Cluster(own_directory())
    note(cluster.value("SELECT version()"))
    note(cluster.value("SELECT citus_version()"))


def use_no_internal_states():
    """As doc/distributed.md advises, where Citus has the setting."""
    if splits_internal_states():
        note(f"from here on with {COMBINE} = off")
        cluster.sql(f"ALTER DATABASE {DATABASE} SET {COMBINE} = off")
        cluster.connect()


def stop():
    cluster.stop()


if not has_citus():
    print("1..0 # SKIP this PostgreSQL has no Citus")
    sys.exit()
start()
for test in (
    test_extension, test_stored, test_moves, test_filter_aggregates, test_distributed_by_filter, make_events,
    test_stored_counters, test_split_form, test_per_shard, test_joins, test_default_settings, use_no_internal_states,
    test_bloom_agg, test_adding_to_a_filter, test_counters_of_events, test_join_filters, test_bloomsets, test_bloomslices,
    test_killed_worker, test_cancelled, stop,
):  # fmt: skip
    part(test)
done()
