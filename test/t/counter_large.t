#!/usr/bin/python3 -B
"""Counters of several megabytes, which the extension reads and writes in pieces. What an operation does to the numbers
is told by bloom_at_least, whose results are bits of a filter, for several thresholds; sums by the aggregate over both
sets.
"""

import random

from counters import decode
from session import Session, run
from tap import ok, same

Session.settings = "SET client_min_messages = error; SET jit = off; SET max_parallel_workers_per_gather = 0;"

LARGE = {  # a counter, its elements, and how often they are added
    "4 bits": ("bloom_create_counter(1000000)", 900_000, 1),
    "4 bits, saturated": ("bloom_create_counter(400000, 0.01, 4, 'classic', 2)", 400_000, 15),
    "8 bits, classic": ("bloom_create_counter(300000, 0.01, 8, 'classic', 3)", 500_000, 60),
    "16 bits": ("bloom_create_counter(200000, 0.1, 16, 'blocked', 4)", 500_000, 600),
}


def check_large(name, create, n, most, limit):
    """The operations on numbers, told by what they do to bloom_at_least for every threshold: bits of a filter. Sums are
    told by the aggregate over both sets."""
    times = f"1 + (x::bigint * x % {most})::int"  # most elements occur once, so that the sets are cheap to build
    most_of = n * 9 // 10  # what is in the first set only; as many are in the second one only
    with Session() as one:
        one.rows(f"""
            CREATE TEMP TABLE element AS SELECT x, CASE WHEN x % 50 = 0 THEN {times} ELSE 1 END AS t
                FROM generate_series(1, {n + most_of}) AS x;
            CREATE TEMP TABLE large AS SELECT
                (SELECT bloom_counter_agg(x, (SELECT {create})) FROM element, generate_series(1, t)
                    WHERE x <= {n}) AS a,
                (SELECT bloom_counter_agg(x, (SELECT {create})) FROM element, generate_series(1, t)
                    WHERE x > {most_of}) AS b,
                (SELECT bloom_counter_agg(x, (SELECT {create})) FROM element,
                    generate_series(1, t * (1 + (x BETWEEN {most_of + 1} AND {n})::int))) AS ab,
                (SELECT bloom_level_agg(x, t, (SELECT {create})) FROM element WHERE x <= {n}) AS l,
                (SELECT bloom_level_agg(x, {most} + 1 - t, (SELECT {create})) FROM element WHERE x > {most_of}) AS m,
                (SELECT bloom_level_agg(x, greatest(CASE WHEN x <= {n} THEN t END,
                    CASE WHEN x > {most_of} THEN {most} + 1 - t END), (SELECT {create})) FROM element) AS lm""")
        (dense,) = one.ask("""SELECT
            0 = ALL (SELECT get_byte(v::bytea, 2) & 1 FROM unnest(ARRAY[a, b, ab, l, m, lm]) AS v) FROM large""")
        same(dense, "t", f"{name}: all are dense")
        answers = one.ask("""SELECT (a + b)::bytea = ab::bytea, (b + a)::bytea = ab::bytea,
            (l | m)::bytea = lm::bytea, (m | l)::bytea = lm::bytea,
            (lm & l)::bytea = l::bytea, (ab & a)::bytea = (a & a)::bytea
            FROM large""")
        same(answers, ["t|t|t|t|t|t"], f"{name}: sum, greater, lesser")
        if "saturated" not in name:
            same(one.ask("SELECT (ab - b)::bytea = a::bytea, (ab - a)::bytea = b::bytea FROM large"), ["t|t"],
                 f"{name}: (a + b) - b = a")  # fmt: skip
        thresholds = sorted({1, 2, 3, 5, min(most, limit - 3), limit - 2, limit})
        for k in thresholds:
            line = one.ask(f"""SELECT
                bloom_at_least(a | m, {k})::bytea = (bloom_at_least(a, {k}) | bloom_at_least(m, {k}))::bytea,
                bloom_at_least(a & m, {k})::bytea = (bloom_at_least(a, {k}) & bloom_at_least(m, {k}))::bytea,
                CASE WHEN {k} + 2 <= {limit}
                    THEN bloom_at_least(bloom_decay(ab, 2), {k})::bytea = bloom_at_least(ab, {k} + 2)::bytea
                    ELSE # bloom_at_least(bloom_decay(ab, 2), {k}) = 0 END,
                (bloom_at_least(ab, {k}) @>= bloom_at_least(a, {k}))
                FROM large""")
            same(line, ["t|t|t|t"], f"{name}: |, & and decay at the threshold {k}")
        same(one.ask(f"""SELECT i.positions_set = f.bits_set, i.saturated = g.bits_set, i.cardinality = f.cardinality
            FROM large, bloom_info(ab) AS i, bloom_info(bloom_at_least(ab, 1)) AS f,
                bloom_info(bloom_at_least(ab, {limit})) AS g"""), ["t|t|t"],
             f"{name}: positions set and saturated")
        check_thresholds(name, thresholds, one)


def check_thresholds(name, thresholds, one):
    texts = ", ".join(f"bloom_at_least(ab, {k})" for k in thresholds)
    ((counter, *filters),) = one.rows(f"SELECT ab, {texts} FROM large")
    c = decode(bytes.fromhex(counter[2:]))
    places = random.Random(name).sample(range(c.m), 30_000) + [*range(3000), *range(c.m - 3000, c.m)]
    for k, text in zip(thresholds, filters):
        bits = bytes.fromhex(text[2:])[28:]
        wrong = [i for i in places if (c.dense[i] >= k) != (bits[i >> 3] >> (i & 7) & 1)]
        ok(not wrong, f"{name}: bloom_at_least {k} tells the number of each position", wrong[:5])


def test_large():
    for name, (create, n, most) in LARGE.items():
        check_large(name, create, n, most, {"4": 15, "8": 255, "1": 65535}[name[0]])


run(test_large)
