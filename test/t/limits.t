#!/usr/bin/python3 -B
"""Too little memory and killed workers give an error; the server goes on and loses nothing.

Starts a private server of PG_CONFIG's PostgreSQL, and limits and kills its processes. Every function and aggregate in
the catalog works on filters and counters of 16 MiB in a process that may take more memory from one run to the next.
PostgreSQL restarts all its processes when one is killed with SIGKILL; nothing that was committed may be lost then.
Needs prlimit from util-linux.
"""

import concurrent.futures
import contextlib
import os
import re
import shutil
import sys
import time

from session import CHEAP_WORKERS, PATIENCE, in_thread, psycopg, sanitized, wide
from tap import done, note, ok, part, same, skip

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "durability"))
import durable  # noqa: E402

BITS = 1 << 27
POSITIONS = BITS // 4  # of a counter of 4 bits
ROOM = (1, 12, 28, 52, 84)  # MiB that a backend may take beyond its present size


class Server(durable.Server):
    def __init__(self):
        super().__init__(durable.own_directory(), "server")
        self.init(shared_buffers="32MB", max_wal_size="4GB", autovacuum="off", restart_after_crash="on")

    def run(self, program, *arguments, **options):
        # every large piece of memory is given back at once, whatever went before
        malloc = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
        return super().run(program, *arguments, **{**options, "env": {**malloc, **options.get("env", {})}})

    def limit(self, size):
        """How much memory each process that it starts from now on may take."""
        self.run(shutil.which("prlimit"), f"--pid={self.postmaster()}", f"--as={size}:")

    def logged(self, text):
        return any(text in line for line in self.log())

    def ask(self, *statements, settings=""):
        with self.connect(settings) as session:
            return sum(session.each(*statements), [])

    def connect(self, settings="", database="postgres"):
        return super().connect(settings, database)


EMPTY = f"'\\x01000106000000000ad7233c0000000000000000{BITS.to_bytes(8, 'little').hex()}'::bloomfilter"
EMPTY_COUNTER = f"'\\x01000506000000000ad7233c0000000000000000{POSITIONS.to_bytes(8, 'little').hex()}'::bloomcounter"
SETUP = f"""
CREATE EXTENSION bloomtype;
CREATE TABLE data AS SELECT d AS d, d2, s, s2, d::bytea AS b, e, bloom_add({EMPTY}, 1) AS small, k, bloom_query(k) AS q
FROM (SELECT {wide(BITS)} AS d) AS a, (SELECT {wide(BITS, first=2)} AS d2) AS b,
    (SELECT bloom_agg(x, {EMPTY}) AS s FROM generate_series(1, 1000000) x) AS c,
    (SELECT bloom_agg(x, {EMPTY}) AS s2 FROM generate_series(500000, 1500000) x) AS c2,
    (SELECT bloom_agg(x) AS e FROM generate_series(1, 5) x) AS e,
    (SELECT array_agg(x) AS k FROM generate_series(1, 2000000) x) AS k;
CREATE TABLE counters AS SELECT c, c2, cs, cs2, c + c2 AS c_c2, c + cs AS c_cs, cs + cs2 AS cs_cs2,
    bloom_add({EMPTY_COUNTER}, 1) AS c_small
FROM (SELECT {wide(POSITIONS, width=4)} AS c) AS a, (SELECT {wide(POSITIONS, first=2, width=4)} AS c2) AS b,
    (SELECT bloom_counter_agg(x, {EMPTY_COUNTER}) AS cs FROM generate_series(1, 1000000) x) AS c1,
    (SELECT bloom_counter_agg(x, {EMPTY_COUNTER}) AS cs2 FROM generate_series(500000, 1500000) x) AS c2;
CREATE TABLE big AS SELECT x FROM generate_series(1, 1000000) x;
CREATE TABLE parts (x int) PARTITION BY LIST (x);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO parts SELECT x FROM generate_series(1, 2) x, generate_series(1, 2000);
ANALYZE;
DELETE FROM parts WHERE ctid <> '(0,1)';
"""
SETTINGS = """
SET max_parallel_workers_per_gather = 0; SET enable_partitionwise_aggregate = on; SET enable_sort = off;
SET hash_mem_multiplier = 100;
"""
VALUES = {
    "bigint": "50000000", "float8": "0.01", "double precision": "0.01", "text": "'blocked'", "bytea": "b",
    "anycompatible": "1", "anycompatiblearray": "k", "bloomquery": "q", "cstring": "bloomfilter_out(d)", "items": "50000000", "integer": "1", "width": "4",
}  # fmt: skip
# Other values for the functions of counters.
COUNTER_VALUES = {**VALUES, "bytea": "c::bytea", "cstring": "bloomcounter_out(c)"}
# What stands for an argument of a type: one value, the pairs for two, and the values of an aggregate; small ones last.
OURS = {
    "bloomfilter": (["d", "s"], [["d", "d2"], ["s", "d"], ["small", "d"], ["s", "s2"]], ["d", "d2", "s", "small"]),
    "bloomcounter": (["c_cs", "cs"], [["c_c2", "c2"], ["c_cs", "cs"], ["c_cs", "c_small"], ["cs_cs2", "cs2"]],
                     ["c", "c2", "cs", "c_small"]),
}  # fmt: skip

NEXT = "SELECT # bloom_agg(x, 1000) FROM generate_series(1, 100) x"  # shows that the session goes on


def fingerprints(server):
    return server.ask("SELECT encode(sha256(x::bytea), 'hex') FROM data, unnest(ARRAY[d, d2, s, s2, e, small]) x;",
                      "SELECT encode(sha256(x::bytea), 'hex') FROM counters, unnest(ARRAY[c, c2, cs, cs2, c_small]) x;")


def calls(server):
    """Every function and aggregate that SQL can call, on the largest arguments."""
    rows = server.ask("""
        SELECT proname, prokind, (SELECT string_agg(CASE WHEN proargnames[n] = 'expected_items' THEN 'items'
                WHEN proargnames[n] = 'counter_bits' THEN 'width' ELSE t::regtype::text END, ',' ORDER BY n)
                FROM unnest(proargtypes) WITH ORDINALITY a (t, n)),
            prorettype = 'bloomcounter'::regtype
        FROM pg_depend JOIN pg_proc p ON p.oid = objid AND classid = 'pg_proc'::regclass
        WHERE deptype = 'e' AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomtype')
            -- those that take a relation, or its row type, read page by page, those in SQL read catalogs, and plans
            -- call the one with any argument
            AND prolang <> (SELECT oid FROM pg_language WHERE lanname = 'sql')
            AND provariadic <> '"any"'::regtype
            AND NOT proargtypes::oid[] && '{internal,regclass,anyelement}'::regtype[]::oid[] AND proname !~ '_agg_(add|final)$' ORDER BY 1, 3;""")  # fmt: skip
    found = []
    for name, kind, types, makes_counter in (row.split("|") for row in rows):
        types = types.split(",")
        unknown = [t for t in types if t not in OURS and t not in VALUES]
        ok(not unknown, f"{name}: values for its arguments are known", unknown) if unknown else None
        ours = "bloomcounter" if "bloomcounter" in types or makes_counter == "t" else "bloomfilter"
        values, table = (COUNTER_VALUES, "counters") if ours == "bloomcounter" else (VALUES, "data")
        if name == "bloomquery_in":
            values = {**values, "cstring": "bloomquery_out(q)"}
        singles, pairs, rows_of_agg = OURS[ours]
        if name == "bloom_fold" and ours == "bloomcounter":
            singles = ["cs_cs2", "cs"]  # which have a rate below that to fold to
        if kind == "a" and types[0] == ours:
            first, second, third, small = rows_of_agg
            row = f"CASE x WHEN 1 THEN {first} WHEN 2 THEN {{}} ELSE {small} END"
            for other in (second, third):
                found.append(f"SELECT {name}({row.format(other)}) IS NULL FROM {table}, generate_series(1, 3) x")
            found.append(f"SELECT {name}(CASE x WHEN 1 THEN {first} ELSE {second} END) IS NULL"
                         f" FROM {table}, parts GROUP BY x / 10")
        elif kind == "a":
            arguments = ", ".join({**values, "anycompatible": "x"}.get(t, rows_of_agg[0]) for t in types)
            only = "" if ours not in types else f"{table}, "
            found.append(f"SELECT {name}({arguments}) IS NULL FROM {only}generate_series(1, 400000) x")
            found.append(f"SELECT {name}({arguments}) IS NULL FROM {only}parts GROUP BY x / 10")
        else:
            for names in {0: [[]], 1: [[single] for single in singles]}.get(types.count(ours), pairs):
                names = list(names)
                arguments = ", ".join(names.pop(0) if t == ours else values.get(t, "NULL") for t in types)
                found.append(f"SELECT ({name}({arguments})) IS NULL FROM {table}")
    return found


LIMIT = "COPY (SELECT WHERE false) TO PROGRAM 'prlimit --pid $PPID --as={}:unlimited'"
BEYOND = '$(( $(sed -n "s/VmSize:[^0-9]*\\([0-9]*\\) kB/\\1/p" /proc/$PPID/status) * 1024 + {} ))'


def states_of(server, works, limits):
    """The SQLSTATE of each work under each limit, all in one session."""
    with server.connect(SETTINGS) as session:
        session.ask("LOAD 'bloomtype'")  # which under a limit fails with an error of the dynamic loader
        for work in works:
            for room in limits:
                session.ask(LIMIT.format(BEYOND.format(room << 20) if room else "unlimited"))
                yield work, room, session.attempt(work)[1]


def test_memory(server):
    """All calls in one session, with limits that fail one allocation after the other."""
    before = fingerprints(server)
    works = calls(server)
    note(f"{len(works)} calls, each with {len(ROOM)} limits")
    codes = {work: {} for work in works}
    for work, room, state in (*states_of(server, works, ROOM), *states_of(server, works, [None])):
        codes[work][room] = state
    for work, got in codes.items():
        states = [got.get(room, "lost") for room in ROOM]
        good = got.get(None) == "00000" and set(states) <= {"00000", "53200"} and states == sorted(states, reverse=True)
        ok(good, f"too little memory is an error: {work}", got)
    failed = {work: list(got.values()).count("53200") for work, got in codes.items()}
    note(f"{sum(failed.values())} calls ran out of memory, {sum(map(bool, failed.values()))} of {len(works)} kinds")
    # these read some of a filter, compare sizes, or make a filter that is empty or has two elements
    frugal = re.compile(r"bloom_(bytes|create|contains|contained|count|counter_bytes|create_counter|eq|ne)\(|bloom_query\(1\)|"
                        r"bloom_add\(s,|bloom_(counter_|level_)?agg\(x[^dc]*\) IS NULL FROM parts")  # fmt: skip
    ample = [work for work, n in failed.items() if n == 0 and not frugal.search(work)]
    same(ample, [], "all calls that take much memory run out of it somewhere")
    same(fingerprints(server), before, "stored filters are unchanged")
    ok(not server.logged("terminated by signal"), "no process died")


def test_server_memory(server):
    """Under ulimit -v, workers run out of memory, too."""
    size = server.ask("COPY (SELECT WHERE false) TO PROGRAM 'cp /proc/$PPID/status ../status'",
                      "SELECT substring(pg_read_file('../status'), 'VmSize:\\s*(\\d+)')")[0]  # fmt: skip
    server.limit((int(size) + (30 << 10)) << 10)
    for query in (
        "SELECT bloom_agg(x * 7) IS NULL FROM big",
        "SELECT bloom_agg(x, d) IS NULL FROM big, data",
        "SELECT bloom_union_agg(CASE x % 2 WHEN 0 THEN d ELSE d2 END) IS NULL FROM big, data WHERE x < 10",
        "SELECT bloom_intersect_agg(CASE x % 2 WHEN 0 THEN d ELSE d2 END) IS NULL FROM big, data WHERE x < 10",
        "SELECT bloom_counter_agg(x * 7) IS NULL FROM big",
        "SELECT bloom_sum_agg(CASE x % 2 WHEN 0 THEN c ELSE c2 END) IS NULL FROM big, counters WHERE x < 10",
    ):
        with server.connect(PARALLEL) as session:
            gathers = any(node["Node Type"] == "Gather" for node in session.explain(query))
            (_, state), after = session.attempt(query), session.attempt(NEXT)
        ok(gathers and (state, after) == ("53200", (["100"], "00000")), f"under ulimit -v: {query}", state, after)
    ok(not server.logged("terminated by signal"), "no process died")
    server.limit("unlimited")


PARALLEL = CHEAP_WORKERS + "SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = off;"
# Takes hours, in workers.
LONG = {
    "bloom_agg": "bloom_agg(x + y)",
    "bloom_agg, sized": "bloom_agg(x + y, 1000000)",
    "bloom_agg onto": "bloom_agg(x + y, (SELECT d FROM data))",
    "bloom_union_agg": "bloom_union_agg((SELECT small FROM data))",
    "bloom_intersect_agg": "bloom_intersect_agg((SELECT d FROM data))",
    "bloom_counter_agg": "bloom_counter_agg(x + y)",
    "bloom_level_agg, sized": "bloom_level_agg(x + y, 1, 1000000)",
    "bloom_sum_agg": "bloom_sum_agg((SELECT c_small FROM counters))",
}


WORKER = """SELECT pid FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND leader_pid = {}
    AND now() > query_start + interval '0.1 s' LIMIT 1"""


def in_worker(server, call, action):
    """Starts a query and does something to its first worker, in SQL that knows the worker as {}. Returns the SQLSTATE
    of the query, and the outcome of the next one in its session."""
    with server.connect(PARALLEL) as session:
        running = in_thread(session.attempt, f"SELECT {call} IS NULL FROM big, generate_series(1, 100000000) y")
        deadline = time.monotonic() + PATIENCE
        found = []
        while not found and time.monotonic() < deadline and not running.done():
            time.sleep(0.05)
            found = server.ask(WORKER.format(session.pid))
        if not found:
            return "no worker", None
        with contextlib.suppress(psycopg.OperationalError):
            server.ask(action.format(found[0]))
        try:
            return running.result(PATIENCE)[1], session.attempt(NEXT)
        except concurrent.futures.TimeoutError:
            return "still running", None


def test_workers(server):
    before, goes_on = fingerprints(server), (["100"], "00000")
    for name, call in LONG.items():
        got = in_worker(server, call, "SELECT pg_terminate_backend({})")
        ok(got == ("57P01", goes_on), f"a worker of {name} is terminated: an error, and the session goes on", got)
    got = in_worker(server, LONG["bloom_agg"], "SELECT pg_cancel_backend({})")
    ok(got == ("57014", goes_on), "a worker is cancelled: an error, and the session goes on", got)
    ok(not server.logged("terminated by signal"), "no process died")
    same(fingerprints(server), before, "stored filters are unchanged")


def is_up(server):
    try:
        return server.ask("SELECT 'up'") == ["up"]
    except psycopg.OperationalError:
        return False


def test_kill(server):
    """PostgreSQL cannot know what a process that was killed has done to the shared memory, and restarts all."""
    server.ask("CREATE TABLE kept AS SELECT x % 100 AS g, bloom_agg(x) AS f FROM big GROUP BY 1", "CHECKPOINT",
               "INSERT INTO kept SELECT 100 + x % 100, bloom_agg(x, 20000) FROM big GROUP BY 1")  # fmt: skip
    digest = "SELECT count(*), encode(sha256(string_agg(f::bytea, NULL ORDER BY g)), 'hex') FROM kept"
    stored, before = server.ask(digest), fingerprints(server)
    with server.connect() as open_one:
        open_one.each("BEGIN", "DELETE FROM kept WHERE g < 50")
        got = in_worker(server, LONG["bloom_agg"], "COPY (SELECT WHERE false) TO PROGRAM 'kill -9 {}'")
        ok(got[1] and got[1][1] == "lost", "a worker is killed: the session is lost", got)
    deadline = time.monotonic() + PATIENCE
    while not is_up(server) and time.monotonic() < deadline:
        time.sleep(0.1)
    ok(server.logged("was terminated by signal 9") and server.logged("automatic recovery in progress"),
       "the server recovers by itself")  # fmt: skip
    same(server.ask(digest), stored, "no filter that was committed is lost or changed")
    same(fingerprints(server), before, "nor any from before")
    lost = server.ask("SELECT count(*) FROM kept, generate_series(100 + g % 100, 1000000, 1000) x WHERE NOT f @> x")
    same(lost, ["0"], "nor any element")


def main():
    server = Server().start()
    server.ask(SETUP)
    if sanitized():
        skip("memory that ends", "a sanitizer wants no end of it")
    else:
        part(test_memory, server)
        part(test_server_memory, server)
    part(test_workers, server)
    part(test_kill, server)
    done()


main()
