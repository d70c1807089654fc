#!/usr/bin/python3 -B
"""Everything that takes long can be cancelled: every loop over the largest filters and counters, by the client's cancel
request and by statement_timeout.

Shows the time from the request to the error, as the median and the worst of a few times; the aim is 100 ms. The tests
only demand that it is below half a minute, since machines may be busy. Takes up to 3 GB of memory.
"""

import json
import math
import os
import random
import re
import statistics
import time

from session import PATIENCE, Session, ask, in_order, in_thread, own_schema, wide
from tap import clean_up_when_terminated, done, note, ok, part
import reference as ref

NAME = f"bloomtype_cancel_{os.getpid()}"
ROUNDS = 2
AIM = 100  # milliseconds
BOUND = 30000

Session.settings = """
SET client_min_messages = notice;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
SET enable_partitionwise_aggregate = on;
SET enable_sort = off; -- sorted aggregation copies its input
SET plan_cache_mode = force_generic_plan; -- or the planner would compute constant expressions
"""


SETUP = """
-- Aggregates over these three rows combine the states of the partitions, which the planner takes for large.
CREATE TABLE parts (x int) PARTITION BY LIST (x);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1) WITH (autovacuum_enabled = off);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2) WITH (autovacuum_enabled = off);
CREATE TABLE parts_3 PARTITION OF parts FOR VALUES IN (3) WITH (autovacuum_enabled = off);
INSERT INTO parts SELECT x FROM generate_series(1, 3) AS x, generate_series(1, 2000);
ANALYZE parts;
DELETE FROM parts WHERE ctid <> '(0,1)';

-- Aggregates whose result is the state that workers would send.
CREATE AGGREGATE state_onto (@element@, bloomfilter)
    (SFUNC = bloom_agg_add, STYPE = internal, FINALFUNC = bloom_agg_serialize);
CREATE AGGREGATE state_of_levels (@element@, integer, bloomcounter)
    (SFUNC = bloom_level_agg_add, STYPE = internal, FINALFUNC = bloom_counter_agg_serialize);
CREATE AGGREGATE state_of_union (bloomfilter)
    (SFUNC = bloom_union_agg_add, STYPE = bloomfilter);

-- Shows other sessions how far a statement has come.
CREATE FUNCTION mark(place text, number bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN PERFORM set_config('application_name', place, false); RETURN number; END $$;
"""

expressions = []  # all that are cancelled


class Work:
    """An expression that takes long or is repeated. A subquery should only return whether a value is null: the server
    copies a subquery's result, and nothing can cancel that."""

    def __init__(self, name, expression, marked=False, within=0.09):
        self.name, self.expression = name, expression
        self.marked = marked  # the expression itself shows when to cancel it
        expressions.append(expression)
        self.within = within  # seconds that it may run before


def block(number, work):
    """PL/pgSQL that computes until it is cancelled, and reports the time of the error."""
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


def reaches(control, place):
    """Waits until a session works at this place."""
    deadline = time.monotonic() + PATIENCE
    query = f"SELECT FROM pg_stat_activity WHERE application_name = '{place}' AND state = 'active'"
    while not control.rows(query):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def cancel_all(target, running, works, rng):
    """Cancels each work in each round; returns the times of the requests."""
    asked = {}
    with Session() as control:
        for number, work in enumerate(works):
            for round_ in range(1, ROUNDS + 1):
                delay = rng.choice((0, 0.01, 0.04)) if work.marked else rng.uniform(0.003, work.within)
                if running.done() or not reaches(control, f"{NAME} {number} {round_}"):
                    # it would never end
                    control.rows(f"SELECT pg_terminate_backend({target.pid})")
                    return asked
                time.sleep(delay)
                asked[number, round_] = time.time()
                # a cancel request of the protocol may interrupt twice, up to PostgreSQL 17
                control.rows(f"SELECT pg_cancel_backend({target.pid})")
    return asked


def race(rng, title, variables, prepare, works):
    """Runs all works in one session and cancels them."""
    blocks = "".join(block(number, work) for number, work in enumerate(works))
    with Session() as target:
        running = in_thread(target.attempt, f"DO $do$ DECLARE r boolean; {variables} BEGIN {prepare} {blocks} END $do$")
        asked = cancel_all(target, running, works, rng)
        _, state = running.result()
        ok(state == "00000", f"{title}: nothing but cancellations", state, target.error)
    took = {}
    for notice in target.notices:
        word, *place, moment = notice.split()
        if word == "cancelled":
            number, round_ = map(int, place)
            took.setdefault(number, []).append(1000 * (float(moment) - asked.get((number, round_), math.nan)))
    for number, work in enumerate(works):
        times = took.get(number, [])
        if ok(len(times) == ROUNDS and max(times) < BOUND, f"{work.name}: cancelled", f"{times} ms"):
            report(work.name, times)


slow = []


def report(name, times):
    median, worst = statistics.median(times), max(times)
    note(f"{name}: cancelled after {median:.0f} ms, at worst {worst:.0f} ms")
    if worst > AIM:
        slow.append((median, worst, name))


# The expected count that takes exactly the most bits there may be.
ITEMS = ref.capacity(0.01, ref.MAX_BITS)
F = wide(ref.MAX_BITS)
G = wide(ref.MAX_BITS, first=2)
POSITIONS = ref.MAX_BITS // 4
C = wide(POSITIONS, width=4)
D = wide(POSITIONS, first=2, width=4)
EMPTY_COUNTER = f"bloom_create_counter({ref.capacity(0.01, POSITIONS)})"


THREE = "FROM generate_series(1, 3) AS x"
PARTS = "FROM parts GROUP BY x / 10"
# VALUES would have the server copy the filters.
OF_DENSE = "CASE x WHEN 1 THEN f WHEN 2 THEN g ELSE e END"


def works_on_dense(functions):
    union, intersect = f"bloom_union_agg({OF_DENSE})", f"bloom_intersect_agg({OF_DENSE})"
    works = [
        Work("256 MiB | 256 MiB", "f | g"),
        Work("256 MiB & 256 MiB", "f & g"),
        Work("# of 256 MiB", "# f"),
        Work("256 MiB = as many equal", "f = h"),
        Work("256 MiB <> as many equal", "f <> h"),
        Work("256 MiB @>= as many equal", "f @>= h"),
        Work("256 MiB <=@ as many equal", "f <=@ h"),
        Work("256 MiB | as many equal", "f | h"),
        Work("256 MiB | 256 MiB that differ in the last bits", "f | late"),
        Work("8 elements | 256 MiB", "e | f"),
        Work("bloom_fold of 256 MiB to one block", "bloom_fold(few, 0.5)"),
        Work("bloom_fold of 256 MiB to 32 blocks", "bloom_fold(f, 0.02)"),
        Work("bloom_fold of 256 MiB that stays", "bloom_fold(f, bloom_fpp(f))"),
        Work("bloom_fold of 256 MiB to another filter's 1 block", "bloom_fold(f, bloom_create(1))"),
        Work("bloom_fold of 256 MiB to another filter's 128 MiB", "bloom_fold(f, half)"),
        Work("bloom_add to 256 MiB", "bloom_add(f, 1)"),
        Work("bloom_agg onto 256 MiB", f"SELECT bloom_agg(x, f) IS NULL {THREE}"),
        Work("bloom_union_agg of 256 MiB", f"SELECT {union} IS NULL {THREE}", within=0.6),
        Work("bloom_intersect_agg of 256 MiB", f"SELECT {intersect} IS NULL {THREE}", within=0.6),
        Work("bloom_agg onto 256 MiB, combined", f"SELECT bloom_agg(x, f) IS NULL {PARTS}", within=0.6),
        Work("bloom_union_agg of 256 MiB, combined", f"SELECT {union} IS NULL {PARTS}", within=0.6),
        Work("bloom_intersect_agg of 256 MiB, combined", f"SELECT {intersect} IS NULL {PARTS}", within=0.6),
        Work("bloom_agg onto 256 MiB, state sent", "SELECT state_onto(1, f) IS NULL", within=0.3),
        Work("bloom_union_agg of 256 MiB, state sent", f"SELECT state_of_union({OF_DENSE})::bytea IS NULL {THREE}",
             within=0.6),
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
    return works


def test_dense(rng, functions):
    with Session() as session:
        plan = session.explain(f"SELECT bloom_agg(x, 100) {PARTS}")
    wanted = [{"Strategy": "Hashed", "Partial Mode": "Finalize"}, {"Partial Mode": "Partial"}]
    ok(in_order(plan, wanted), "states combine", json.dumps(plan))
    names = ("e", "f", "g", "h", "few", "half", "late", "small")
    variables = " ".join(f"{name} bloomfilter;" for name in names)
    prepare = f"""
        small := (SELECT bloom_agg(x) FROM generate_series(1, 8) AS x);
        e := (SELECT bloom_agg(x, {ITEMS}) FROM generate_series(1, 8) AS x);
        f := {F}; g := {G}; h := f;
        few := {wide(ref.MAX_BITS, blocks=1)};
        half := {wide(ref.MAX_BITS // 2, blocks=1)};
        late := set_byte(f::bytea, length(f::bytea) - 1, 255)::bloomfilter;"""
    race(rng, "dense", variables, prepare, works_on_dense(functions))


def works_on_counters():
    dense = "CASE x WHEN 1 THEN c WHEN 2 THEN d ELSE e END"
    return [
        Work("256 MiB + 256 MiB", "c + d"),
        Work("256 MiB - 256 MiB", "s - d"),
        Work("counters, 256 MiB | 256 MiB", "c | d"),
        Work("counters, 256 MiB & 256 MiB", "c & d"),
        Work("8 elements + 256 MiB", "e + c"),
        Work("counters, 256 MiB = as many equal", "c = h"),
        Work("# of a counter of 256 MiB", "# c"),
        Work("bloom_total of 256 MiB", "bloom_total(c)"),
        Work("bloom_fpp of a counter of 256 MiB", "bloom_fpp(c)"),
        Work("bloom_info of a counter of 256 MiB", "SELECT positions FROM bloom_info(c)"),
        Work("bloom_at_least of 256 MiB", "bloom_at_least(c, 2)"),
        Work("256 MiB to a filter", "c::bloomfilter"),
        Work("bloom_decay of 256 MiB", "bloom_decay(c)"),
        Work("bloom_add to a counter of 256 MiB", "bloom_add(c, 1)"),
        Work("bloom_remove from 256 MiB", "bloom_remove(s, 1)"),
        Work("bloom_raise in 256 MiB", "bloom_raise(c, 1, 15)"),
        Work("bloom_counter_agg onto 256 MiB", f"SELECT bloom_counter_agg(x, c) IS NULL {THREE}"),
        Work("bloom_level_agg onto 256 MiB", f"SELECT bloom_level_agg(x, 3, c) IS NULL {THREE}"),
        Work("bloom_level_agg onto 256 MiB, combined", f"SELECT bloom_level_agg(x, 3, c) IS NULL {PARTS}", within=0.6),
        Work("bloom_level_agg onto 256 MiB, state sent", "SELECT state_of_levels(1, 1, c) IS NULL", within=0.3),
        Work("bloom_sum_agg of 256 MiB", f"SELECT bloom_sum_agg({dense}) IS NULL {THREE}", within=0.6),
        Work("bloom_sum_agg of 256 MiB, combined", f"SELECT bloom_sum_agg({dense}) IS NULL {PARTS}", within=0.6),
        Work("bloom_union_agg of counters of 256 MiB", f"SELECT bloom_union_agg({dense}) IS NULL {THREE}", within=0.6),
        Work("bloomcounter_send of 256 MiB", "bloomcounter_send(c)"),
        Work("counter of 256 MiB to bytea", "c::bytea"),
        Work("counter of 256 MiB from bytea", "b::bloomcounter"),
        Work("counter of 256 MiB, text output", "bloomcounter_out(c)"),
        Work("counter of 256 MiB, text output and input", "bloomcounter_in(bloomcounter_out(c))", within=0.6),
    ]


def test_counters(rng):
    names = ("c", "d", "e", "h", "s")
    variables = "b bytea; " + " ".join(f"{name} bloomcounter;" for name in names)
    prepare = f"""
        e := (SELECT bloom_counter_agg(x, {EMPTY_COUNTER}) FROM generate_series(1, 8) AS x);
        c := {C}; d := {D}; h := c; s := bloom_add(c + d, 1); b := c::bytea;"""
    race(rng, "counters", variables, prepare, works_on_counters())


def test_sparse_counters(rng):
    """Many hashes and numbers: 4 million and a few."""
    two = "IS NULL FROM generate_series(1, 2) AS x"
    works = [
        Work("sparse + sparse, 4 million hashes each", "f + g"),
        Work("sparse - sparse, 4 million hashes each", "g - f"),
        Work("counters, sparse | sparse, 4 million hashes each", "f | g"),
        Work("counters, sparse & sparse, 4 million hashes each", "f & g"),
        Work("sparse + dense of 256 MiB, 4 million hashes", "f + c"),
        Work("dense of 256 MiB - sparse, 4 million hashes", "u - f"),
        Work("counters, sparse | dense of 256 MiB, 4 million hashes", "f | c"),
        Work("counters, sparse & dense of 256 MiB, 4 million hashes", "f & c"),
        Work("bloom_total of 4 million hashes", "bloom_total(f)"),
        Work("bloom_at_least of 4 million hashes", "bloom_at_least(f, 1)"),
        Work("bloom_decay of 4 million hashes", "bloom_decay(f)"),
        Work("bloom_add to a counter of 4 million hashes", "bloom_add(f, -1)"),
        Work("bloom_remove from 4 million hashes", "bloom_remove(f, 1)"),
        Work("bloom_raise in 4 million hashes", "bloom_raise(f, 1, 2)"),
        Work("bloom_counter_agg onto 4 million hashes", f"SELECT bloom_counter_agg(x, f) {two}", within=0.3),
        Work("bloom_sum_agg of 4 million hashes", f"SELECT bloom_sum_agg(CASE x WHEN 1 THEN f ELSE g END) {two}",
             within=0.3),
        Work("sparse counter from bytea, 4 million hashes", "b::bloomcounter"),
        Work("sparse counter, text output and input, 4 million hashes", "bloomcounter_in(bloomcounter_out(f))",
             within=0.3),
    ]
    variables = "b bytea; c bloomcounter; f bloomcounter; g bloomcounter; u bloomcounter;"
    prepare = f"""
        f := (SELECT bloom_counter_agg(x, {EMPTY_COUNTER}) FROM generate_series(1, 4000000) AS x);
        g := (SELECT bloom_counter_agg(x, f) FROM generate_series(-100000, 100000) AS x);
        b := f::bytea; c := {C}; u := c + f;"""
    race(rng, "sparse counters", variables, prepare, works)


def test_text(rng):
    works = [
        Work("256 MiB text output", "bloomfilter_out(f)"),
        Work("256 MiB text output and a copy by the server", "f::text"),
        Work("256 MiB text output and input", "bloomfilter_in(bloomfilter_out(f))", within=0.6),
        Work("256 MiB from bytea", "b::bloomfilter"),
        Work("bloom_add of 512 MiB of text", "bloom_add(c, t)"),
        Work("@> of 512 MiB of text", "d @> t"),
        Work("<@ of 512 MiB of text", "t <@ d"),
        Work("bloom_count of 512 MiB of text", "bloom_count(k, t)"),
        Work("counter @> 512 MiB of text", "k @> t"),
        Work("bloom_agg of 256 MiB of bytea", "SELECT bloom_agg(b) IS NULL FROM generate_series(1, 3)"),
    ]
    variables = "b bytea; c bloomfilter; d bloomfilter; f bloomfilter; k bloomcounter; t text;"
    prepare = f"""f := {F}; t := f::text; b := f::bytea; c := bloom_create(100); d := bloom_add(c, 'a'::text);
        k := bloom_add(bloom_create_counter(100), 'a'::text);"""
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


def test_queries(rng):
    """4 million keys, all of them in one filter and none in another."""
    works = [
        Work("bloom_query of 4 million keys", "bloom_query(k)"),
        Work("bloom_query of at least 2 of 4 million keys", "bloom_query(k, 2)"),
        Work("bloom_hits of 4 million keys", "bloom_hits(f, k)"),
        Work("bloom_contains_any of 4 million absent keys", "bloom_contains_any(none, k)"),
        Work("bloom_contains_all of 4 million present keys", "bloom_contains_all(whole, k)"),
        Work("bloom_contains_least of 4 million keys", "bloom_contains_least(f, k, 3000000)"),
        Work("filter @@ query of 4 million keys", "whole @@ q"),
        Work("filter <-> query of 4 million keys", "f <-> q"),
        Work("filter of another class @@ changing queries of 4 million keys", "bloom_create(1) @@ bloom_query(k)"),
        Work("query of 4 million keys, text output", "bloomquery_out(q)"),
        Work("query of 4 million keys, text output and input", "bloomquery_in(bloomquery_out(q))"),
        Work("bloomquery_send of 4 million keys", "bloomquery_send(q)"),
    ]
    variables = "f bloomfilter; whole bloomfilter; none bloomfilter; k bigint[]; q bloomquery;"
    prepare = f"""
        f := {F}; none := bloom_add(bloom_create({ITEMS}), -1);
        whole := ('\\x01000006140000000ad7233c00000000000000000002000000000000' || repeat('f', 128))::bloomfilter;
        k := ARRAY(SELECT generate_series(1::bigint, 4000000)); q := bloom_query(k);"""
    race(rng, "queries", variables, prepare, works)


def test_building(rng):
    """Work within a single row, or after the last one."""

    def aggregate(call, last, place):
        """An aggregate over the rows up to the last, which shows when it has reached a place."""
        x = f"CASE WHEN i = {place} THEN mark(@place@, i) ELSE i END"
        return f"SELECT {call.format(x)} IS NULL FROM (SELECT generate_series(1::bigint, {last}) AS i) AS s"

    limit, many = 1 << 24, 5_000_000
    own_size, sized = "bloom_agg({})", f"bloom_agg({{}}, {ITEMS})"
    counts = "bloom_counter_agg({})"
    works = [
        Work("bloom_agg of 2^24 values, the result", aggregate(own_size, limit, limit), marked=True),
        Work("bloom_agg of 2^24 + 1 values, hashes to bits", aggregate(own_size, limit + 1, limit), marked=True),
        Work("bloom_agg of 2^24 + 1 values, the result", aggregate(own_size, limit + 1, limit + 1), marked=True),
        Work("bloom_agg of 5 million values, sized, the result", aggregate(sized, many, many), marked=True),
        Work("bloom_counter_agg of 2^24 values, the result", aggregate(counts, limit, limit), marked=True),
        Work("bloom_counter_agg of 2^24 + 1 values, hashes to numbers", aggregate(counts, limit + 1, limit),
             marked=True),
        Work("bloom_counter_agg of 2^24 + 1 values, the result", aggregate(counts, limit + 1, limit + 1), marked=True),
    ]
    race(rng, "building", "", "", works)


# A file in the server's data directory.
COPY = f"{NAME}.copy"
STORED = f"""
COPY stored TO PROGRAM 'cat > {COPY}' (FORMAT binary);
CREATE UNLOGGED TABLE loaded (LIKE stored);
CREATE FUNCTION load() RETURNS void LANGUAGE plpgsql AS $$
BEGIN EXECUTE format('COPY loaded FROM %L (FORMAT binary)', current_setting('data_directory') || '/{COPY}'); END $$;
CREATE FUNCTION constant() RETURNS bloomfilter LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN RETURN (SELECT f FROM stored); END $$;
CREATE FUNCTION estimate() RETURNS void LANGUAGE plpgsql AS $$
BEGIN EXECUTE 'EXPLAIN SELECT FROM parts WHERE x <@ constant()'; END $$;
CREATE UNLOGGED TABLE keys AS SELECT generate_series(1, 1000) AS x;
CREATE INDEX keys_set ON keys USING bloomset (x) WITH (expected_items = 2e8);
CREATE UNLOGGED TABLE filters AS SELECT bloom_agg(i * 1000 + x, 200000) AS f, i
FROM generate_series(1, 60) AS i, generate_series(1, 100000) AS x GROUP BY i;
CREATE INDEX filters_slices ON filters USING bloomslices (f);
CREATE FUNCTION search(condition text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL enable_seqscan = off;
    EXECUTE 'SELECT FROM filters WHERE ' || condition;
END $$;
CREATE FUNCTION rebuild() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'REINDEX INDEX keys_set'; END $$;
"""


TIMED = {
    "text output": "SELECT f FROM stored",
    "union": "SELECT # (f | f) FROM stored, generate_series(1, 100)",
    "fold": "SELECT # bloom_fold(f, 0.02) FROM stored, generate_series(1, 100)",
    "cardinality": "SELECT sum(# f) FROM stored, generate_series(1, 1000)",
    "bloom_agg onto it": """SELECT # bloom_agg(x, f) FROM stored, generate_series(1, 10) AS x,
            generate_series(1, 100) AS y GROUP BY y""",
    "equality": "SELECT count(*) FROM stored AS a, stored AS b, generate_series(1, 1000) WHERE a.f = b.f",
    "hits": """SELECT sum(bloom_hits(f, k)) FROM stored, (SELECT array_agg(x) AS k FROM generate_series(1, 1000000) x) AS k,
            generate_series(1, 1000)""",
    "membership": "SELECT count(*) FROM stored, generate_series(1, 100000000) AS x WHERE f @> x",
    "bloom_union_agg": "SELECT # bloom_union_agg(f) FROM stored, generate_series(1, 1000)",
    # the server reads a whole field before it checks for a cancellation; the type's own part is "from bytea"
    "binary input": "SELECT load() FROM generate_series(1, 1000)",
    "selectivity": "SELECT estimate() FROM generate_series(1, 1000)",
    "bloomset, build": "SELECT rebuild() FROM generate_series(1, 1000)",
    "bloomset_contains": "SELECT count(*) FROM generate_series(1, 100000000) AS x WHERE bloomset_contains('keys', 'x', x)",
    "bloomset_partitions": "SELECT bloomset_partitions('keys', 'x', x) FROM generate_series(1, 100000000) AS x",
    "bloomset_filters": "SELECT (bloomset_filters('keys', 'x')).generation FROM generate_series(1, 1000)",
    "bloomset_info": "SELECT bloomset_info('keys_set') FROM generate_series(1, 1000)",
    "bloomset_find": "SELECT bloomset_find(NULL::keys, 'x', x) FROM generate_series(1, 10000000) AS x",
    "bloomset_new": "SELECT count(*) FROM generate_series(1, 1000),"
    " LATERAL bloomset_new('keys', 'x', ARRAY(SELECT generate_series(-1000000, 0)))",
    "bloomset_check": "SELECT bloomset_check('keys_set') FROM generate_series(1, 1000)",
    "bloomslices, many keys": "SELECT search('f @@ bloom_query(ARRAY(SELECT generate_series(1, 1000000)), 500000)')"
    " FROM generate_series(1, 1000)",
    "bloomslices, superset": "SELECT search('f @>= (SELECT bloom_union_agg(f) FROM filters WHERE i < 50)')"
    " FROM generate_series(1, 1000)",
    "bloomslices_info": "SELECT bloomslices_info('filters_slices') FROM generate_series(1, 1000000)",
    "bloomslices_check": "SELECT bloomslices_check('filters_slices') FROM generate_series(1, 1000)",
    "bloomslices_merge": "SELECT bloomslices_merge('filters_slices') FROM generate_series(1, 1000000)",
}
expressions.extend(TIMED.values())


def time_over(session, query, limit):
    """Milliseconds from the time limit to the error; None if there was another error or none."""
    session.ask(f"SET statement_timeout = {limit}")
    began = time.perf_counter()
    _, state = session.attempt(query)
    return 1000 * (time.perf_counter() - began) - limit if state == "57014" else None


def test_statement_timeout():
    ask(f"CREATE UNLOGGED TABLE stored AS SELECT {F} AS f;\n" + STORED)
    for name, query in TIMED.items():
        with Session() as session:
            over = [time_over(session, query, limit) for limit in (60, 250, 400)]
        if ok(None not in over and max(over) < BOUND, f"256 MiB {name}: statement_timeout", over):
            report(f"256 MiB {name}, statement_timeout", over)


# Functions whose time does not grow with a filter's size.
BRIEF = {"bloom_create", "bloom_bytes", "bloom_create_counter", "bloom_counter_bytes", "bloom_contains_joinsel",
         "bloom_contains_support", "bloom_join_filter", "bloomset_handler", "bloomslices_handler"}

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
    for row in ask(COVERED):
        function, kind, name = row.split("|", 2)
        functions.add(function)
        name = name.split(".")[-1]
        if re.search(patterns[kind].format(re.escape(name)), all_of_them):
            covered.add(function)
    ok(len(functions) > 30 and functions <= covered, "every function was cancelled", sorted(functions - covered))


def main():
    clean_up_when_terminated()
    rng = random.Random("cancel")
    functions = ask("SELECT DISTINCT proname FROM pg_proc WHERE proname LIKE 'bloom%'")
    query = "SELECT proargtypes[0]::regtype FROM pg_proc WHERE proname = 'bloom_agg' AND pronargs = 1"
    with own_schema():
        (element,) = ask(query)
        ask(SETUP.replace("@element@", element))
        try:
            part(test_dense, rng, functions)
            for test in test_counters, test_sparse_counters, test_text, test_sparse, test_queries, test_building:
                part(test, rng)
            part(test_statement_timeout)
            part(test_coverage)
        finally:
            ask(f"COPY (SELECT WHERE false) TO PROGRAM 'rm -f {COPY}'")
    for median, worst, name in sorted(slow, reverse=True):
        note(f"above {AIM} ms: {name}: {median:.0f} ms, at worst {worst:.0f} ms")
    done()


main()
