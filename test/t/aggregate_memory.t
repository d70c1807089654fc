#!/usr/bin/python3 -B
"""The memory that the aggregates take: the growth of a backend's peak."""

from aggregates import run
import counters
from session import ask, each, psycopg, quote, sanitized, value
from tap import ok, skip
import reference as ref
from vectors import series

PEAK = "SELECT (regexp_match(pg_read_file('/proc/self/status', 0, 10000), 'VmHWM:\\s+(\\d+)'))[1]"
DENSE = value(ref.build("blocked", 0.01, series(1, 1000), items=1000))
TWICE = {counters.hash_of(x, 0): 2 for x in range(1000)}
COUNTER = quote(counters.built(counters.create(1000), TWICE).hex()) + "::bloomcounter"
CASES = [  # aggregate, rows, what each is, kilobytes allowed
    ("bloom_agg(x)", 5_000_000, "i % 1000", 600),
    ("bloom_agg(x, 1000)", 5_000_000, "i % 1000", 600),
    ("bloom_agg(x, 1000000)", 1_000_000, "i % 1000", 600),
    (f"bloom_agg(x, {DENSE})", 1_000_000, "i % 1000", 600),
    ("bloom_agg(x)", 1_000_000, "(i % 1000)::text", 600),
    ("bloom_agg(x)", 1_000_000, "(i % 1000)::numeric / 8", 600),
    ("bloom_agg(x)", 1_000_000, "('10.0.0.0'::inet + i % 1000)", 600),
    ("bloom_agg(x)", 1_000_000, "make_interval(days => (i % 1000)::int)", 600),
    ("bloom_agg(x)", 200_000, "repeat('wide', 2000) || i % 100", 600),
    ("bloom_union_agg(x)", 200_000, f"CASE i % 2 WHEN 0 THEN {DENSE} END", 600),
    ("bloom_intersect_agg(x)", 200_000, f"CASE i % 2 WHEN 0 THEN {DENSE} END", 600),
    ("bloom_agg(x)", 2**20, "i", (43 * 2**20 + 2**22) // 1024),  # 43 bytes each, and the result
    ("bloom_agg(x)", 2**24, "i", 512 * 1024),
    ("bloom_agg(x)", 2**24 + 1, "i", 512 * 1024),
    ("bloom_counter_agg(x)", 5_000_000, "i % 1000", 600),
    ("bloom_counter_agg(x, 1000)", 5_000_000, "i % 1000", 600),
    ("bloom_counter_agg(x, 1000000)", 1_000_000, "i % 1000", 600),
    (f"bloom_counter_agg(x, {COUNTER})", 1_000_000, "i % 1000", 600),
    ("bloom_counter_agg(x)", 200_000, "repeat('wide', 2000) || i % 100", 600),
    ("bloom_level_agg(x, 7)", 1_000_000, "i % 1000", 600),
    ("bloom_level_agg(x, 7, 1000)", 1_000_000, "(i % 1000)::text", 600),
    ("bloom_sum_agg(x)", 200_000, f"CASE i % 2 WHEN 0 THEN {COUNTER} END", 600),
    ("bloom_union_agg(x)", 200_000, f"CASE i % 2 WHEN 0 THEN {COUNTER} END", 600),
    ("bloom_counter_agg(x, 1e7)", 10_000_000, "i", 300 * 1024),
    ("bloom_counter_agg(x)", 2**24, "i", 640 * 1024),  # 10 bytes instead of 8
    ("bloom_counter_agg(x)", 2**24 + 1, "i", 640 * 1024),  # 10 bytes instead of 8
]  # fmt: skip
GROUPS, EACH = 200_000, 512
EACH_COUNTER = EACH * 10 // 8  # 10 bytes for an element instead of 8


def peaks(warm_up, query, settings=""):
    """The growth of a backend's peak by a query, in kB. The first query takes the memory that rows need."""
    _, (before,), _, (after,) = each(warm_up, PEAK, query, PEAK, settings=settings)
    return int(after) - int(before)


def test_rows():
    for call, rows, x, allowed in CASES:

        def query(rows):
            numbers = f"(SELECT generate_series(1::bigint, {rows}) AS i) AS s"  # not kept, as in FROM
            return f"SELECT # {call} FROM (SELECT {x} AS x FROM {numbers}) AS t"

        grown = peaks(query(3000), query(rows))
        name = f"{call} of {rows} rows of {x}".replace(DENSE, "f").replace(COUNTER, "c")
        ok(grown <= allowed, f"{name}: {grown} kB more, at most {allowed}")


def test_groups():
    def query(aggregate):
        numbers = f"generate_series(1, {GROUPS}) AS i"
        return f"SELECT count(f) FROM (SELECT i, {aggregate} AS f FROM {numbers} GROUP BY i) AS s"

    settings = "SET work_mem = '1GB'; SET enable_sort = off;"
    calls = {"bloom_agg(i)": EACH, "bloom_counter_agg(i)": EACH_COUNTER, "bloom_level_agg(i, 1)": EACH_COUNTER}
    for call, most in calls.items():
        grown = peaks(query("count(i)"), query(call), settings) * 1024 / GROUPS
        ok(grown <= most, f"{call}, {GROUPS} groups: {grown:.0f} bytes for each more than count takes, at most {most}")


def test_memory():
    try:
        ask(PEAK)
    except psycopg.Error:
        skip("memory", "no /proc here")
        return
    if sanitized():
        skip("memory", "a sanitizer takes some of its own")
        return
    test_rows()
    test_groups()


run(test_memory)
