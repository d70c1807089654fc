#!/usr/bin/python3 -B
"""Whatever takes long can be cancelled: every loop over the largest filters, by pg_cancel_backend() and by
statement_timeout.

    prove -v test/t/cancel.t       PGDATABASE names a database with the extension bloomtype

Shows how long it took from the request to the error, as the median and the worst of a few times; the aim
is 100 ms. The tests only demand that it is below half a minute, since machines may be busy. Takes up to 3 GB
of memory. Needs python3-xxhash, psql and a superuser. Everything lives in a schema of its own.
"""

import math
import os
import random
import re
import statistics
import subprocess

from harness import Failed, clean_up_when_terminated, done, extension_schema, note, ok, part, wide
import reference as ref

SCHEMA = "bloomtype_cancel"
NAME = f"bloomtype_cancel_{os.getpid()}"
ROUNDS = 3
AIM = 100  # milliseconds
BOUND = 30000
PATIENCE = 60  # seconds until a statement must have come to where it is to be cancelled

SETTINGS = f"""
SET search_path = {SCHEMA}, @extschema@, pg_catalog;
SET client_min_messages = notice;
SET bytea_output = hex;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
SET enable_partitionwise_aggregate = on;
SET enable_sort = off; -- sorted aggregation copies its input
SET plan_cache_mode = force_generic_plan; -- or the planner would compute what is constant
"""


# ---------------------------------------------------------------------------------------------------
# The server
# ---------------------------------------------------------------------------------------------------

SETUP = f"""
CREATE SCHEMA {SCHEMA};

-- Aggregates over these three rows combine the states of the partitions, of which the planner thinks much.
CREATE TABLE {SCHEMA}.parts (x int) PARTITION BY LIST (x);
CREATE TABLE {SCHEMA}.parts_1 PARTITION OF {SCHEMA}.parts FOR VALUES IN (1) WITH (autovacuum_enabled = off);
CREATE TABLE {SCHEMA}.parts_2 PARTITION OF {SCHEMA}.parts FOR VALUES IN (2) WITH (autovacuum_enabled = off);
CREATE TABLE {SCHEMA}.parts_3 PARTITION OF {SCHEMA}.parts FOR VALUES IN (3) WITH (autovacuum_enabled = off);
INSERT INTO {SCHEMA}.parts SELECT x FROM generate_series(1, 3) AS x, generate_series(1, 2000);
ANALYZE {SCHEMA}.parts;
DELETE FROM {SCHEMA}.parts WHERE ctid <> '(0,1)';

-- Aggregates whose result is the state that workers would send.
CREATE AGGREGATE {SCHEMA}.state_onto (@element@, bloomfilter)
    (SFUNC = bloom_agg_add, STYPE = internal, FINALFUNC = bloom_agg_serialize);
CREATE AGGREGATE {SCHEMA}.state_of_union (bloomfilter)
    (SFUNC = bloom_union_agg_add, STYPE = bloomfilter);

-- Tells the world how far a statement has come.
CREATE FUNCTION {SCHEMA}.mark(place text, number bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN PERFORM set_config('application_name', place, false); RETURN number; END $$;

-- Waits until a session is there, then for the delay, and cancels; gives the time, or null if it never came.
CREATE FUNCTION {SCHEMA}.cancel(place text, delay float8) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
    deadline timestamptz := clock_timestamp() + interval '{PATIENCE} s';
    target int;
    now float8;
BEGIN
    LOOP
        PERFORM pg_stat_clear_snapshot();
        SELECT pid INTO target FROM pg_stat_activity WHERE application_name = place AND state = 'active';
        EXIT WHEN target IS NOT NULL;
        IF clock_timestamp() > deadline THEN RETURN NULL; END IF;
        PERFORM pg_sleep(0.002);
    END LOOP;
    PERFORM pg_sleep(delay);
    now := extract(epoch FROM clock_timestamp());
    PERFORM pg_cancel_backend(target);
    RETURN now;
END $$;
"""


def start(script):
    process = subprocess.Popen(
        ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
        env={**os.environ, "PGAPPNAME": NAME, "LC_MESSAGES": "C"},
    )  # fmt: skip
    process.stdin.write(SETTINGS + script)
    process.stdin.close()
    process.stdin = None
    return process


def psql(script):
    process = start(script)
    output, errors = process.communicate()
    if process.returncode != 0:
        raise Failed(errors.strip())
    return output.split("\n")[:-1]


expressions = []  # all that were cancelled


class Work:
    """An expression that takes long, or would if it were computed again and again. No more than whether it
    is null should leave a subquery: the server copies a subquery's result, and no one can cancel that."""

    def __init__(self, name, expression, marked=False, within=0.09):
        self.name, self.expression = name, expression
        self.marked = marked  # the expression itself tells when it is to be cancelled
        expressions.append(expression)
        self.within = within  # seconds; how long to let it run at most


def block(number, work):
    """PL/pgSQL that computes until it is cancelled, and tells when it has been."""
    places = f"'{NAME} {number} ' || round"
    mark = "" if work.marked else f"PERFORM set_config('application_name', {places}, false);"
    expression = work.expression.replace("@place@", places)
    return f"""
        FOR round IN 1 .. {ROUNDS} LOOP
            BEGIN
                {mark}
                LOOP r := ({expression}) IS NULL; END LOOP;
            EXCEPTION WHEN query_canceled THEN
                RAISE NOTICE 'cancelled % % %', {number}, round, extract(epoch FROM clock_timestamp());
            END;
        END LOOP;"""


def race(rng, title, variables, prepare, works):
    """All of this work in one session, cancelled by another."""
    blocks = "".join(block(number, work) for number, work in enumerate(works))
    target = start(f"DO $do$ DECLARE r boolean; {variables} BEGIN {prepare} {blocks} END $do$;\n")
    steps = [
        (number, round_, rng.choice((0, 0.01, 0.04)) if work.marked else rng.uniform(0.003, work.within))
        for number, work in enumerate(works)
        for round_ in range(1, ROUNDS + 1)
    ]
    asked = {}
    control = start(
        "".join(f"SELECT {n}, {r}, {SCHEMA}.cancel('{NAME} {n} {r}', {delay});\n" for n, r, delay in steps)
    )
    _, errors = target.communicate()
    if target.returncode != 0:  # there is nothing left to wait for
        control.terminate()
    output, problems = control.communicate()
    for line in output.split("\n")[:-1]:
        number, round_, moment = line.split("|")
        asked[number, round_] = float(moment or "nan")  # it never came
    ok(target.returncode == 0, f"{title}: nothing but cancellations", errors, problems)
    done = {}
    for line in errors.split("\n"):
        words = line.split()
        if "cancelled" in words:
            number, round_, moment = words[words.index("cancelled") + 1 :][:3]
            took = float(moment) - asked.get((number, round_), math.nan)
            done.setdefault(int(number), []).append(took * 1000)
    for number, work in enumerate(works):
        times = done.get(number, [])
        good = len(times) == ROUNDS and max(times) < BOUND
        ok(good, f"{work.name}: cancelled", f"{times} ms")
        if good:
            report(work.name, times)


slow = []


def report(name, times):
    median, worst = statistics.median(times), max(times)
    note(f"{name}: cancelled after {median:.0f} ms, at worst {worst:.0f} ms")
    if worst > AIM:
        slow.append((median, worst, name))


# ---------------------------------------------------------------------------------------------------
# Tests
# ---------------------------------------------------------------------------------------------------


# The expected count that takes exactly the most bits there may be.
ITEMS = ref.capacity(0.01, ref.MAX_BITS)
F = wide(ref.MAX_BITS)
G = wide(ref.MAX_BITS, first=2)


def test_dense(rng, functions):
    three, parts = "FROM generate_series(1, 3) AS x", f"FROM {SCHEMA}.parts GROUP BY x / 10"
    one = "CASE x WHEN 1 THEN f WHEN 2 THEN g ELSE e END"  # VALUES would have the server copy them
    union, intersect = f"bloom_union_agg({one})", f"bloom_intersect_agg({one})"
    plan = psql(f"EXPLAIN (COSTS OFF) SELECT bloom_agg(x, 100) {parts};\n")
    ok("Finalize Hash" in plan[0] and "Partial" in "".join(plan), "states combine", "\n".join(plan))
    works = [
        Work("256 MiB | 256 MiB", "f | g"),
        Work("256 MiB & 256 MiB", "f & g"),
        Work("# of 256 MiB", "# f"),
        Work("256 MiB = as many equal", "f = h"),
        Work("256 MiB <> as many equal", "f <> h"),
        Work("256 MiB @>= as many equal", "f @>= h"),
        Work("256 MiB <=@ as many equal", "f <=@ h"),
        Work("256 MiB | as many equal", "f | h"),
        Work("256 MiB | as many, of which all but the last bits are equal", "f | late"),
        Work("8 elements | 256 MiB", "e | f"),
        Work("bloom_fold of 256 MiB to one block", "bloom_fold(few, 0.5)"),
        Work("bloom_fold of 256 MiB to 32 blocks", "bloom_fold(f, 0.02)"),
        Work("bloom_fold of 256 MiB that stays", "bloom_fold(f, bloom_fpp(f))"),
        Work("bloom_fold of 256 MiB to another filter's 1 block", "bloom_fold(f, bloom_create(1))"),
        Work("bloom_fold of 256 MiB to another filter's 128 MiB", "bloom_fold(f, half)"),
        Work("bloom_add to 256 MiB", "bloom_add(f, 1)"),
        Work("bloom_agg onto 256 MiB", f"SELECT bloom_agg(x, f) IS NULL {three}"),
        Work("bloom_union_agg of 256 MiB", f"SELECT {union} IS NULL {three}", within=0.6),
        Work("bloom_intersect_agg of 256 MiB", f"SELECT {intersect} IS NULL {three}", within=0.6),
        Work("bloom_agg onto 256 MiB, combined", f"SELECT bloom_agg(x, f) IS NULL {parts}", within=0.6),
        Work("bloom_union_agg of 256 MiB, combined", f"SELECT {union} IS NULL {parts}", within=0.6),
        Work("bloom_intersect_agg of 256 MiB, combined", f"SELECT {intersect} IS NULL {parts}", within=0.6),
        Work("bloom_agg onto 256 MiB, state sent", "SELECT state_onto(1, f) IS NULL", within=0.3),
        Work("bloom_union_agg of 256 MiB, state sent", f"SELECT state_of_union({one})::bytea IS NULL {three}", within=0.6),
        Work("bloom_fpp of 256 MiB", "bloom_fpp(f)"),
        Work("bloom_info of 256 MiB", "SELECT bits FROM bloom_info(f)"),
        Work("bloom_union_cardinality of 256 MiB", "bloom_union_cardinality(f, g)"),
        Work("bloom_intersection_cardinality, 64 bytes and 256 MiB", "bloom_intersection_cardinality(small, g)"),
        Work("bloom_jaccard of 256 MiB", "bloom_jaccard(f, g)"),
        Work("bloomfilter_send of 256 MiB", "bloomfilter_send(f)"),
        Work("256 MiB to bytea", "f::bytea"),
    ]
    for name, call in (("bloom_hash", "bloom_hash(f)"), ("bloom_hash_extended", "bloom_hash_extended(f, 1)")):
        works += [Work(f"{name} of 256 MiB", call)] * (name in functions)
    names = ("e", "f", "g", "h", "few", "half", "late", "small")
    variables = " ".join(f"{name} bloomfilter;" for name in names)
    prepare = f"""
        small := (SELECT bloom_agg(x) FROM generate_series(1, 8) AS x);
        e := (SELECT bloom_agg(x, {ITEMS}) FROM generate_series(1, 8) AS x);
        f := {F}; g := {G}; h := f;
        few := {wide(ref.MAX_BITS, blocks=1)};
        half := {wide(ref.MAX_BITS // 2, blocks=1)};
        late := set_byte(f::bytea, length(f::bytea) - 1, 255)::bloomfilter;"""
    race(rng, "dense", variables, prepare, works)


def test_text(rng):
    works = [
        Work("256 MiB text output", "bloomfilter_out(f)"),
        Work("256 MiB text output and a copy by the server", "f::text"),
        Work("256 MiB text output and input", "bloomfilter_in(bloomfilter_out(f))", within=0.6),
        Work("256 MiB from bytea", "b::bloomfilter"),
        Work("bloom_add of 512 MiB of text", "bloom_add(c, t)"),
        Work("@> of 512 MiB of text", "d @> t"),
        Work("<@ of 512 MiB of text", "t <@ d"),
        Work("bloom_agg of 256 MiB of bytea", "SELECT bloom_agg(b) IS NULL FROM generate_series(1, 3)"),
    ]
    variables = "b bytea; c bloomfilter; d bloomfilter; f bloomfilter; t text;"
    prepare = f"f := {F}; t := f::text; b := f::bytea; c := bloom_create(100); d := bloom_add(c, 'a'::text);"
    race(rng, "text", variables, prepare, works)


def test_sparse(rng):
    """Many hashes: 4 million and a few."""
    one = "CASE x WHEN 1 THEN f ELSE g END"
    union, intersect = f"bloom_union_agg({one})", f"bloom_intersect_agg({one})"
    two = "IS NULL FROM generate_series(1, 2) AS x"
    works = [
        Work("sparse text output, 4 million hashes", "bloomfilter_out(f)"),
        Work("sparse text output and input, 4 million hashes", "bloomfilter_in(bloomfilter_out(f))", within=0.3),
        Work("sparse from bytea, 4 million hashes", "b::bloomfilter"),
        Work("sparse | sparse, 4 million hashes each", "f | g"),
        Work("sparse & sparse, 4 million hashes each", "f & g"),
        Work("sparse = equal, 4 million hashes", "f = h"),
        Work("sparse @>= equal, 4 million hashes", "f @>= h"),
        Work("sparse | dense of 256 MiB, 4 million hashes", "f | d"),
        Work("sparse & dense of 256 MiB, 4 million hashes", "f & d"),
        Work("dense of 256 MiB @>= sparse of 4 million hashes", "u @>= f"),
        Work("bloom_fold of 4 million hashes", "bloom_fold(f, 0.01)"),
        Work("bloom_add to 4 million hashes", "bloom_add(f, 1)"),
        Work("bloom_agg onto 4 million hashes", f"SELECT bloom_agg(x, f) {two}", within=0.3),
        Work("bloom_union_agg of 4 million hashes", f"SELECT {union} {two}", within=0.3),
        Work("bloom_intersect_agg of 4 million hashes", f"SELECT {intersect} {two}", within=0.3),
        Work("bloom_union_cardinality of 4 million hashes", "bloom_union_cardinality(f, g)"),
        Work("bloom_jaccard of 4 million hashes and 256 MiB", "bloom_jaccard(f, u)"),
    ]
    variables = "b bytea; d bloomfilter; f bloomfilter; g bloomfilter; h bloomfilter; u bloomfilter;"
    rows = "(SELECT generate_series({}, {} + 4000000)::bigint AS x) AS s"
    prepare = f"""
        f := (SELECT bloom_agg(x, {ITEMS}) FROM {rows.format(1, 1)});
        g := (SELECT bloom_agg(x, f) FROM generate_series(-100000, 0) AS x);
        h := bloom_add(f, 1);
        b := f::bytea; d := {F}; u := f | d;"""
    race(rng, "sparse", variables, prepare, works)


def test_building(rng):
    """What happens within a single row, or after the last one."""
    def aggregate(call, last, place):
        """The rows up to the last, at one of which it is told that it has come so far."""
        x = f"CASE WHEN i = {place} THEN {SCHEMA}.mark(@place@, i) ELSE i END"
        return f"SELECT {call.format(x)} IS NULL FROM (SELECT generate_series(1::bigint, {last}) AS i) AS s"

    limit, many = 1 << 24, 5_000_000
    own_size, sized = "bloom_agg({})", f"bloom_agg({{}}, {ITEMS})"
    works = [
        Work("bloom_agg of 2^24 values, the result", aggregate(own_size, limit, limit), marked=True),
        Work("bloom_agg of 2^24 + 1 values, hashes to bits", aggregate(own_size, limit + 1, limit), marked=True),
        Work("bloom_agg of 2^24 + 1 values, the result", aggregate(own_size, limit + 1, limit + 1), marked=True),
        Work("bloom_agg of 5 million values, sized, the result", aggregate(sized, many, many), marked=True),
    ]
    race(rng, "building", "", "", works)


# Into the server's data directory, and from there.
COPY = f"{NAME}.copy"
STORED = f"""
COPY {SCHEMA}.stored TO PROGRAM 'cat > {COPY}' (FORMAT binary);
CREATE UNLOGGED TABLE {SCHEMA}.loaded (LIKE {SCHEMA}.stored);
CREATE FUNCTION {SCHEMA}.load() RETURNS void LANGUAGE plpgsql AS $$
BEGIN EXECUTE format('COPY loaded FROM %L (FORMAT binary)', current_setting('data_directory') || '/{COPY}'); END $$;
CREATE FUNCTION {SCHEMA}.constant() RETURNS bloomfilter LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN RETURN (SELECT f FROM stored); END $$;
CREATE FUNCTION {SCHEMA}.estimate() RETURNS void LANGUAGE plpgsql AS $$
BEGIN EXECUTE 'EXPLAIN SELECT FROM parts WHERE x <@ constant()'; END $$;
"""


def test_statement_timeout(rng):
    psql(f"CREATE UNLOGGED TABLE {SCHEMA}.stored AS SELECT {F} AS f;\n" + STORED)
    queries = {
        "text output": "SELECT f FROM stored",
        "union": "SELECT # (f | f) FROM stored, generate_series(1, 100)",
        "fold": "SELECT # bloom_fold(f, 0.02) FROM stored, generate_series(1, 100)",
        "cardinality": "SELECT sum(# f) FROM stored, generate_series(1, 1000)",
        "bloom_agg onto it": """SELECT # bloom_agg(x, f) FROM stored, generate_series(1, 10) AS x,
            generate_series(1, 100) AS y GROUP BY y""",
        "equality": "SELECT count(*) FROM stored AS a, stored AS b, generate_series(1, 1000) WHERE a.f = b.f",
        "membership": "SELECT count(*) FROM stored, generate_series(1, 100000000) AS x WHERE f @> x",
        "bloom_union_agg": "SELECT # bloom_union_agg(f) FROM stored, generate_series(1, 1000)",
        # the server reads the whole of a field before it looks for a cancellation; the type's part is "from bytea"
        "binary input": "SELECT load() FROM generate_series(1, 1000)",
        "selectivity": "SELECT estimate() FROM generate_series(1, 1000)",
    }
    expressions.extend(queries.values())
    for name, query in queries.items():
        over = []
        for limit in (60, 250, 400):
            process = start(f"\\timing on\nSET statement_timeout = {limit};\n{query};\n")
            output, errors = process.communicate()
            times = [line.split()[1] for line in output.split("\n") if line.startswith("Time:")]
            cancelled = process.returncode != 0 and "57014" in errors
            if not cancelled or not times:
                over = []
                break
            over.append(float(times[-1]) - limit)
        ok(len(over) == 3 and max(over) < BOUND, f"256 MiB {name}: statement_timeout", over, errors[-500:])
        if over:
            report(f"256 MiB {name}, statement_timeout", over)


# What takes no longer the larger a filter is.
BRIEF = {"bloom_create", "bloom_bytes", "bloom_contains_joinsel"}

COVERED = """
WITH member AS (SELECT classid, objid FROM pg_depend WHERE deptype = 'e'
        AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomtype')),
    part AS (SELECT 'function' AS kind, proname::text AS name, oid FROM pg_proc
        UNION ALL SELECT 'operator', oprname, unnest(ARRAY[oprcode, oprrest]) FROM pg_operator
        UNION ALL SELECT 'function', a.aggfnoid::regproc::text, unnest(ARRAY[aggtransfn, aggfinalfn, aggcombinefn,
            aggserialfn, aggdeserialfn]) FROM pg_aggregate a
        UNION ALL SELECT 'cast', casttarget::regtype::text, castfunc FROM pg_cast
        UNION ALL SELECT 'function', 'load', typreceive FROM pg_type)
SELECT p.proname, kind, name FROM member JOIN pg_proc p ON p.oid = objid AND classid = 'pg_proc'::regclass
JOIN pg_language l ON l.oid = prolang AND (lanname = 'c' OR prokind = 'a') JOIN part ON part.oid = p.oid;
"""


def test_coverage():
    """Was every function of ours cancelled, by its name or as part of an operator, an aggregate or a cast?"""
    all_of_them = "\n".join(expressions)
    patterns = {"function": r"\b{}\(", "operator": r"(?<!\S){} ", "cast": r"::{}\b"}
    covered, functions = set(BRIEF), set()
    for row in psql(COVERED):
        function, kind, name = row.split("|", 2)
        functions.add(function)
        name = name.split(".")[-1]
        if re.search(patterns[kind].format(re.escape(name)), all_of_them):
            covered.add(function)
    ok(len(functions) > 30 and functions <= covered, "every function was cancelled", sorted(functions - covered))


def main():
    clean_up_when_terminated()
    global SETTINGS
    SETTINGS = SETTINGS.replace("@extschema@", extension_schema())
    functions = psql("SELECT DISTINCT proname FROM pg_proc WHERE proname LIKE 'bloom%';\n")
    rng = random.Random("cancel")
    query = "SELECT proargtypes[0]::regtype FROM pg_proc WHERE proname = 'bloom_agg' AND pronargs = 1;\n"
    (element,) = psql(query)
    psql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE;\n" + SETUP.replace("@element@", element))
    try:
        for function, *arguments in (
            (test_dense, rng, functions), (test_text, rng), (test_sparse, rng), (test_building, rng),
            (test_statement_timeout, rng), (test_coverage,),
        ):  # fmt: skip
            part(function, *arguments)
    finally:
        psql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE;\nCOPY (SELECT) TO PROGRAM 'rm -f {COPY}';\n")
    for median, worst, name in sorted(slow, reverse=True):
        note(f"above {AIM} ms: {name}: {median:.0f} ms, at worst {worst:.0f} ms")
    done()


if __name__ == "__main__":
    main()
