#!/usr/bin/python3 -B
"""bloom_union_agg and bloom_intersect_agg over random sets of filters, by every plan, compared with
test/golden/reference.py.
"""

import functools
import random
from dataclasses import replace

from aggregates import (ANALYZE, APPEND, FINAL, FORCED, HASHED, PARALLEL, PARTIAL, PARTITIONWISE, SORTED, TO_SPILL,
                        answers, check_plan, copy, explained, forced_parallel, random_number, run, same_answers,
                        sha256, sha256_sql, spills)
from session import each, hex_of
import reference as ref


def random_operand(rng, layout, k, seed, element_class, m, shared):
    """Null, empty, sparse or dense; with a rate of its own."""
    if rng.random() < 0.05:
        return None
    f = ref.Filter(layout, k, ref.single(random_number(rng, 1e-9, 0.5)), seed, m)
    if m == 0:
        return replace(f, layout="blocked")
    how = rng.choice(("empty", "few", "few", "few", "many", "many", "bits"))
    if how == "empty":
        return replace(f, element_class=rng.choice((0, element_class)))
    if how == "bits":
        return replace(f, element_class=element_class, hashes=None, bits=rng.randbytes(m // 8))
    hashes = [rng.getrandbits(64) for _ in range(4)] + rng.sample(shared, 5)
    if how == "many":
        hashes += shared[: rng.randrange(len(shared))]
    return f.with_hashes(element_class, hashes)


def random_groups(rng):
    for number in range(200):
        layout = rng.choice(("blocked", "blocked", "classic"))
        parameters = (layout, rng.randint(1, 20), rng.getrandbits(64), rng.choice(list(ref.CLASSES.values())))
        shared = [rng.getrandbits(64) for _ in range(300)]
        m = rng.choice((512, 1024, 3072, 12288, 49152)) if layout == "blocked" else 960
        yield str(number), [
            random_operand(rng, *parameters, rng.choice((m, m, m, 0)), shared) for _ in range(rng.randint(1, 12))
        ]


def load(rng, groups):
    rows = [
        [number, str(rng.randrange(2)), None if f is None else hex_of(f)]
        for number, members in groups.items()
        for f in members
    ]
    rng.shuffle(rows)
    each("CREATE UNLOGGED TABLE operands (id int, part int, f bloomfilter)")
    copy("operands", rows)
    each(
        "CREATE TABLE operands_by (LIKE operands) PARTITION BY LIST (part)",
        "CREATE UNLOGGED TABLE operands_0 PARTITION OF operands_by FOR VALUES IN (0)",
        "CREATE UNLOGGED TABLE operands_1 PARTITION OF operands_by FOR VALUES IN (1)",
        "INSERT INTO operands_by SELECT * FROM operands",
        "ANALYZE operands, operands_by",
    )


def variations(name):
    """Ways to aggregate the groups: name, settings, query, what the plan must show."""

    def query(source="operands", order=""):
        return f"SELECT id, coalesce({sha256_sql(f'{name}(f{order})')}, '') FROM {source} GROUP BY id"

    def workers(number):
        return PARALLEL + f"ALTER TABLE operands SET (parallel_workers = {number});"

    yield "hashed", "SET enable_sort = off;", query(), [HASHED]
    yield "sorted groups", "SET enable_hashagg = off;", query(), [SORTED]
    yield "by size", "", query(order=" ORDER BY length(f::text)"), []
    yield "by size, descending", "", query(order=" ORDER BY length(f::text) DESC"), []
    yield "by digest", "", query(order=" ORDER BY md5(f::text)"), []
    for number in (1, 2, 3, 4):
        yield f"{number} workers", workers(number), query(), [FINAL, {"Workers Planned": number}, PARTIAL]
    yield "partition-wise", PARTITIONWISE, query("operands_by"), [FINAL, APPEND, PARTIAL]
    yield "forced into a worker", forced_parallel(), query(), [FORCED]
    yield "every row twice", "", query("(SELECT * FROM operands UNION ALL SELECT * FROM operands) AS o"), []
    yield "spilled", TO_SPILL, query(), [HASHED]
    yield "spilled, 2 workers", TO_SPILL + workers(2), query(), [FINAL, PARTIAL]


def test_filters():
    rng = random.Random("aggregation")
    groups = dict(random_groups(rng))
    load(rng, groups)
    present = {number: [f for f in fs if f is not None] for number, fs in groups.items()}
    wanted = {
        "bloom_union_agg": {n: sha256(ref.union_agg(fs) if fs else ref.empty()) for n, fs in present.items()},
        "bloom_intersect_agg": {
            n: sha256(functools.reduce(ref.intersect, fs)) if fs else "" for n, fs in present.items()
        },
    }
    for name, expected in wanted.items():
        for how, settings, query, nodes in variations(name):
            plan, lines = explained(query, settings, ANALYZE if "spilled" in how else "")
            if nodes:
                check_plan(plan if spills(plan) == ("spilled" in how) else [], nodes, f"{name}, {how}")
            same_answers(answers(lines), expected, f"{name} of {len(groups)} sets of filters, {how}")


run(test_filters)
