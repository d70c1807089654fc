#!/usr/bin/python3 -B
"""Too little memory and killed workers: an error, and the server and all that is stored live on.

    prove -v test/t/limits.t       PG_CONFIG, or the pg_config in PATH, chooses the PostgreSQL

Starts a private server, since it limits and kills processes of it. Every function and aggregate, as the
catalog lists them, works on filters of 16 MiB in a process that may take ever more memory, from next to
none. That PostgreSQL restarts all its processes when one is killed with SIGKILL is its design; nothing
that was committed may be lost then. Needs prlimit from util-linux.
"""

import os
import re
import shutil
import subprocess
import sys
import time

from harness import Failed, done, note, ok, part, same, sanitized, skip, wide

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "durability"))
import durable  # noqa: E402

BITS = 1 << 27
ROOM = (1, 12, 28, 52, 84)  # MiB that a backend may take beyond what it has
PATIENCE = 60  # seconds


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

    def session(self, script, *options):
        process = subprocess.Popen(
            [f"{self.bin}/psql", "-XAtq", "-v", "VERBOSITY=sqlstate", *options],
            env={**os.environ, "PGHOST": self.home, "PGPORT": "5432", "PGUSER": "postgres", "PGDATABASE": "postgres"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
        )  # fmt: skip
        process.stdin.write(script)
        process.stdin.close()
        process.stdin = None
        return process

    def psql(self, script, strict=True):
        process = self.session(script, *(("-v", "ON_ERROR_STOP=1") if strict else ()))
        output, _ = process.communicate()
        if strict and process.returncode != 0:
            raise Failed(output[-2000:])
        return output.split("\n")[:-1]


# ---------------------------------------------------------------------------------------------------
# Tests
# ---------------------------------------------------------------------------------------------------

EMPTY = f"'\\x01000106000000000ad7233c0000000000000000{BITS.to_bytes(8, 'little').hex()}'::bloomfilter"
SETUP = f"""
CREATE EXTENSION bloomtype;
CREATE TABLE data AS SELECT d AS d, d2, s, s2, d::bytea AS b, e, bloom_add({EMPTY}, 1) AS small
FROM (SELECT {wide(BITS)} AS d) AS a, (SELECT {wide(BITS, first=2)} AS d2) AS b,
    (SELECT bloom_agg(x, {EMPTY}) AS s FROM generate_series(1, 1000000) x) AS c,
    (SELECT bloom_agg(x, {EMPTY}) AS s2 FROM generate_series(500000, 1500000) x) AS c2,
    (SELECT bloom_agg(x) AS e FROM generate_series(1, 5) x) AS e;
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
    "bigint": "100000000", "float8": "0.01", "double precision": "0.01", "text": "'blocked'", "bytea": "b",
    "anycompatible": "1", "cstring": "bloomfilter_out(d)", "items": "100000000",
}  # fmt: skip

NEXT = "SELECT # bloom_agg(x, 1000) FROM generate_series(1, 100) x;\n"  # that the session goes on


def fingerprints(server):
    return server.psql("SELECT encode(sha256(x::bytea), 'hex') FROM data, unnest(ARRAY[d, d2, s, s2, e, small]) x;")


def calls(server):
    """Every function and aggregate that SQL can call, on the largest arguments."""
    rows = server.psql("""
        SELECT proname, prokind, (SELECT string_agg(CASE WHEN proargnames[n] = 'expected_items' THEN 'items'
                ELSE t::regtype::text END, ',' ORDER BY n) FROM unnest(proargtypes) WITH ORDINALITY a (t, n)),
            prorettype = 'bool'::regtype
        FROM pg_depend JOIN pg_proc p ON p.oid = objid AND classid = 'pg_proc'::regclass
        WHERE deptype = 'e' AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomtype')
            AND NOT 'internal'::regtype = ANY (proargtypes) AND proname !~ '_agg_(add|final)$' ORDER BY 1, 3;""")  # fmt: skip
    found = []
    for name, kind, types, _ in (row.split("|") for row in rows):
        types = types.split(",")
        unknown = [t for t in types if t != "bloomfilter" and t not in VALUES]
        ok(not unknown, f"{name}: values for its arguments are known", unknown) if unknown else None
        if kind == "a" and types[0] == "bloomfilter":
            row = "CASE x WHEN 1 THEN d WHEN 2 THEN {} ELSE small END"
            for other in ("d2", "s"):
                found.append(f"SELECT {name}({row.format(other)}) IS NULL FROM data, generate_series(1, 3) x")
            found.append(f"SELECT {name}(CASE x WHEN 1 THEN d ELSE d2 END) IS NULL FROM data, parts GROUP BY x / 10")
        elif kind == "a":
            arguments = ", ".join({**VALUES, "anycompatible": "x"}.get(t, "d") for t in types)
            only = "" if "d" not in arguments.split(", ") else "data, "
            found.append(f"SELECT {name}({arguments}) IS NULL FROM {only}generate_series(1, 400000) x")
            found.append(f"SELECT {name}({arguments}) IS NULL FROM {only}parts GROUP BY x / 10")
        else:
            pairs = [["d", "d2"], ["s", "d"], ["small", "d"], ["s", "s2"]]
            for names in {0: [[]], 1: [["d"], ["s"]]}.get(types.count("bloomfilter"), pairs):
                names = list(names)
                arguments = ", ".join(names.pop(0) if t == "bloomfilter" else VALUES.get(t, "NULL") for t in types)
                found.append(f"SELECT ({name}({arguments})) IS NULL FROM data")
    return found


LIMIT = """COPY (SELECT) TO PROGRAM 'prlimit --pid $PPID --as={}:unlimited';"""
BEYOND = '$(( $(sed -n "s/VmSize:[^0-9]*\\([0-9]*\\) kB/\\1/p" /proc/$PPID/status) * 1024 + {} ))'


def test_memory(server):
    """Everything in turn, in one session, with room that ends at one allocation after the other."""
    before = fingerprints(server)
    works = calls(server)
    note(f"{len(works)} calls, each with {len(ROOM)} limits")
    script = SETTINGS
    for number, work in enumerate(works):
        for room in ROOM:
            script += LIMIT.format(BEYOND.format(room << 20)) + f"\n{work};\n\\echo @ {number} {room} :SQLSTATE\n"
    script += LIMIT.format("unlimited") + "\n" + SETTINGS
    for number, work in enumerate(works):
        script += f"{work};\n\\echo @ {number} 0 :SQLSTATE\n"
    codes = {}
    output = server.psql(script, strict=False)
    for line in output:
        if line.startswith("@ "):
            _, number, room, code = line.split()
            codes.setdefault(int(number), []).append((int(room), code))
    for number, work in enumerate(works):
        got = dict(codes.get(number, []))
        states = [got.get(room, "lost") for room in ROOM]
        good = got.get(0) == "00000" and set(states) <= {"00000", "53200"} and states == sorted(states, reverse=True)
        ok(good, f"too little memory is an error: {work}", got)
    failed = [sum(code == "53200" for _, code in codes.get(number, [])) for number in range(len(works))]
    note(f"{sum(failed)} calls ran out of memory, {sum(n > 0 for n in failed)} of {len(works)} kinds")
    # these read some of a filter or compare sizes, or make one that is empty or of two elements
    frugal = re.compile(r"bloom_(bytes|create|contains|contained|eq|ne)\(|bloom_add\(s,|bloom_agg\(x[^d]*\) IS NULL FROM parts")
    ample = [work for work, n in zip(works, failed) if n == 0 and not frugal.search(work)]
    same(ample, [], "all that take much memory run out of it somewhere")
    same(fingerprints(server), before, "what is stored is as it was")
    ok(not server.logged("terminated by signal"), "no process died")


def test_server_memory(server):
    """Under ulimit -v, workers run out of memory, too."""
    (size,) = server.psql("COPY (SELECT) TO PROGRAM 'cp /proc/$PPID/status ../status'; "
                          "SELECT substring(pg_read_file('../status'), 'VmSize:\\s*(\\d+)');")  # fmt: skip
    server.limit((int(size) + (30 << 10)) << 10)
    for query in (
        "SELECT bloom_agg(x * 7) IS NULL FROM big",
        "SELECT bloom_agg(x, d) IS NULL FROM big, data",
        "SELECT bloom_union_agg(CASE x % 2 WHEN 0 THEN d ELSE d2 END) IS NULL FROM big, data WHERE x < 10",
        "SELECT bloom_intersect_agg(CASE x % 2 WHEN 0 THEN d ELSE d2 END) IS NULL FROM big, data WHERE x < 10",
    ):
        (plan,) = ["\n".join(server.psql(PARALLEL + f"EXPLAIN {query};"))]
        output = server.psql(PARALLEL + f"{query};\n\\echo :SQLSTATE\n{NEXT}", strict=False)
        good = "Gather" in plan and output[-2:] == ["53200", "100"]
        ok(good, f"under ulimit -v: {query}", plan, output)
    ok(not server.logged("terminated by signal"), "no process died")
    server.limit("unlimited")


PARALLEL = """
SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0; SET parallel_leader_participation = off;
"""
# Takes hours, in workers.
LONG = {
    "bloom_agg": "bloom_agg(x + y)",
    "bloom_agg, sized": "bloom_agg(x + y, 1000000)",
    "bloom_agg onto": "bloom_agg(x + y, (SELECT d FROM data))",
    "bloom_union_agg": "bloom_union_agg((SELECT small FROM data))",
    "bloom_intersect_agg": "bloom_intersect_agg((SELECT d FROM data))",
}


def in_worker(server, call, action):
    """Starts that query, does something to its first worker, and gives what the session says, or None."""
    name = "bloomtype_victim"
    session = server.session(f"SET application_name = {name};{PARALLEL}\nSELECT {call} IS NULL FROM big, "
                             f"generate_series(1, 100000000) y;\n\\echo :SQLSTATE\n{NEXT}")  # fmt: skip
    deadline = time.monotonic() + PATIENCE
    found = []
    while not found and time.monotonic() < deadline and session.poll() is None:
        time.sleep(0.05)
        found = server.psql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'parallel worker' "
                            f"AND application_name = '{name}' "
                            "AND now() > query_start + interval '0.1 s' LIMIT 1;")  # fmt: skip
    if not found:
        session.kill()
        return None
    action(found[0])
    try:
        output, _ = session.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        session.kill()
        return "still running"
    return output.split("\n")[:-1]


def test_workers(server):
    before = fingerprints(server)
    for name, call in LONG.items():
        output = in_worker(server, call, lambda pid: server.psql(f"SELECT pg_terminate_backend({pid});"))
        ok(output and output[-2:] == ["57P01", "100"],
           f"a worker of {name} is terminated: an error, and the session goes on", output)  # fmt: skip
    output = in_worker(server, LONG["bloom_agg"], lambda pid: server.psql(f"SELECT pg_cancel_backend({pid});"))
    ok(output and output[-2:] == ["57014", "100"], "a worker is cancelled: an error, and the session goes on", output)
    ok(not server.logged("terminated by signal"), "no process died")
    same(fingerprints(server), before, "what is stored is as it was")


def test_kill(server):
    """PostgreSQL cannot know what a process that was killed has done to the shared memory, and restarts all."""
    server.psql("CREATE TABLE kept AS SELECT x % 100 AS g, bloom_agg(x) AS f FROM big GROUP BY 1; CHECKPOINT; "
                "INSERT INTO kept SELECT 100 + x % 100, bloom_agg(x, 20000) FROM big GROUP BY 1;")  # fmt: skip
    digest = "SELECT count(*), encode(sha256(string_agg(f::bytea, NULL ORDER BY g)), 'hex') FROM kept;"
    stored, before = server.psql(digest), fingerprints(server)
    open_one = server.session("BEGIN; DELETE FROM kept WHERE g < 50; SELECT pg_sleep(1000);")
    output = in_worker(server, LONG["bloom_agg"],
                       lambda pid: server.psql(f"COPY (SELECT) TO PROGRAM 'kill -9 {pid}';", strict=False))  # fmt: skip
    ok(output is not None and "100" not in output, "a worker is killed: the session is lost", output)
    open_one.communicate(timeout=PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while server.psql("SELECT 'up';", strict=False) != ["up"] and time.monotonic() < deadline:
        time.sleep(0.1)
    ok(server.logged("was terminated by signal 9") and server.logged("automatic recovery in progress"),
       "the server recovers by itself")  # fmt: skip
    same(server.psql(digest), stored, "no filter that was committed is lost or changed")
    same(fingerprints(server), before, "nor any from before")
    lost = server.psql("SELECT count(*) FROM kept, generate_series(100 + g % 100, 1000000, 1000) x WHERE NOT f @> x;")
    same(lost, ["0"], "nor any element")


def main():
    server = Server().start()
    server.psql(SETUP)
    if sanitized():
        skip("memory that ends", "a sanitizer wants no end of it")
    else:
        part(test_memory, server)
        part(test_server_memory, server)
    part(test_workers, server)
    part(test_kill, server)
    done()


if __name__ == "__main__":
    main()
