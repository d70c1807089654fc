#!/usr/bin/python3 -B
"""Filters of different sizes: folded to one size they combine without loss, and keep the rates of theory. Expected
bytes come from test/golden/reference.py.
"""

import functools
import math
from dataclasses import dataclass, replace

from aggregates import (PARALLEL, answers, check_refused, created, hashes_of, run, same_answers, self_sized,
                        self_sized_call, sha256, sha256_sql)
from session import ask, each, hex_of
from tap import ok, same
import reference as ref

SPANS = {1: (1, 3), 2: (2, 60), 3: (50, 1000), 4: (1, 20_000), 5: (10_001, 70_000), 6: (3, 9), 7: (900, 1010)}
PROBES = 400_000


@dataclass
class Combination:
    """A combination of groups: in SQL, by the reference, and the elements that it must contain."""

    name: str
    expression: str
    wanted: ref.Filter
    members: list  # spans

    @property
    def probes(self):
        return PROBES if self.wanted.bits is not None else 10_000

    def query(self):
        lost = " + ".join(
            f"(SELECT count(*) FROM generate_series({first}, {last}) AS x WHERE NOT f @> x::bigint)"
            for first, last in self.members
        )
        found = f"(SELECT count(*) FROM generate_series(1, {self.probes}) AS x WHERE f @> (-x)::bigint)"
        return f"""SELECT {sha256_sql("f")}, {lost}, bloom_fpp(f), {found}
            FROM (SELECT ({self.expression}) AS f OFFSET 0) AS s"""

    def problems(self, line):
        """The faults of an answer: bytes, lost elements, the current rate, the measured rate."""
        digest, lost, fpp, found = line.split("|")
        fpp, rate, now = float(fpp), int(found) / self.probes, self.wanted.current_rate()
        sigma = math.sqrt(fpp * (1 - fpp) / self.probes)
        wrong = {
            "bytes": digest != sha256(self.wanted),
            "lost": lost != "0",
            "bloom_fpp": not math.isclose(fpp, now, rel_tol=1e-9),
            "measured rate": abs(rate - fpp) > 0.1 * fpp + 4 * sigma,
        }
        return [f"{self.name}, {what}: {line} of {self.probes}, expected rate {now}" for what in wrong if wrong[what]]


def check_combinations(tests, name):
    tests = list(tests)
    results = each(*(test.query() for test in tests))
    wrong = [problem for test, (line,) in zip(tests, results) for problem in test.problems(line)]
    ok(not wrong, f"{len(tests)} {name}: the reference's bytes, nothing lost, rates as told", *wrong[:5])


def brought_together(table, filters):
    """Each pair of groups at the size of the smaller one."""

    def span_in_common(a, b):
        return max(SPANS[a][0], SPANS[b][0]), min(SPANS[a][1], SPANS[b][1])

    for a, b in ((a, b) for a in SPANS for b in SPANS if filters[a].m < filters[b].m):
        folded = ref.fold_like(filters[b], filters[a])
        for sign, function in (("|", ref.union), ("&", ref.intersect)):
            yield Combination(
                f"{a} {sign} {b}",
                f"""SELECT a.f {sign} bloom_fold(b.f, a.f) FROM {table} AS a, {table} AS b
                    WHERE a.g = {a} AND b.g = {b}""",
                function(filters[a], folded),
                [SPANS[a], SPANS[b]] if sign == "|" else [span_in_common(a, b)],
            )
    everything = functools.reduce(ref.union, [ref.fold_like(f, filters[1]) for f in filters.values()])
    for how, order in (("", ""), (", in another order", " ORDER BY -g")):
        yield Combination(
            "all" + how,
            f"""SELECT bloom_union_agg(bloom_fold(t.f, least.f){order.replace("g", "t.g")})
                FROM {table} AS t, {table} AS least WHERE least.g = 1""",
            everything,
            list(SPANS.values()),
        )


def make_groups(table, p):
    """Stores self-sized groups of very different size, which share some elements; returns the reference's."""
    rows = ", ".join(f"({g}, {first}::bigint, {last}::bigint)" for g, (first, last) in SPANS.items())
    each(f"""CREATE TABLE {table} AS
        SELECT g, (SELECT {self_sized_call("x", p)} FROM generate_series(a, b) AS x) AS f
        FROM (VALUES {rows}) AS v (g, a, b)""")
    filters = {g: self_sized(p, 20, hashes_of(range(first, last + 1))) for g, (first, last) in SPANS.items()}
    stored = answers(ask(f"SELECT g, {sha256_sql('f')} FROM {table}"))
    wanted = {str(g): sha256(f) for g, f in filters.items()}
    same_answers(stored, wanted, f"groups of 3 to 60,000 at {p}: the reference's bytes")
    return filters


def check_folds(table, p, filters):
    """bloom_fold finds the smallest size that keeps the rate. The groups have powers of two of blocks."""
    cases = [(g, rate) for g in filters for rate in (0.05, 0.3, 0.5) if filters[g].current_rate() <= rate]
    folds, wrong = set(), []
    lines = each(*(f"SELECT bloom_fold(f, {rate!r}) FROM {table} WHERE g = {g}" for g, rate in cases))
    for (g, rate), (text,) in zip(cases, lines):
        m = filters[g].m
        sizes = (m >> i for i in reversed(range(32)) if m >> i >= ref.BLOCK)
        least = next(s for s in sizes if filters[g].fold(s).current_rate() <= ref.single(rate))
        folds.add(m // least)
        if text != hex_of(replace(filters[g].fold(least), p=ref.single(rate))):
            wrong.append(f"group {g} at {rate}: {text[:100]}")
    ok(not wrong, f"bloom_fold of self-sized groups at {p}, by {sorted(folds)}", *wrong[:5])


def test_sizes():
    for p in (0.01, 0.3):
        table = f"sizes_{round(1 / p)}"
        filters = make_groups(table, p)
        check_combinations(brought_together(table, filters), f"combinations of sizes at {p}, folded")
        for aggregate in ("bloom_union_agg", "bloom_intersect_agg"):
            query, name = f"SELECT {aggregate}(f) FROM {table}", f"{aggregate} of sizes at {p}"
            workers = PARALLEL + f"ALTER TABLE {table} SET (parallel_workers = 2);"
            check_refused(query, "of different sizes", name)
            check_refused(query, "of different sizes", f"{name}, in workers", workers)
        check_folds(table, p, filters)


FIRST, DOUBLINGS = 4000, 4  # from 65 blocks on twice the elements have twice the blocks


def generations(p):
    """Each next filter is built for twice the elements, which are all new. Folded to the size of the first, the union
    of the filters so far is the filter of that size."""
    like, last = created("blocked", p, FIRST), 0
    for g in range(DOUBLINGS + 1):
        last = FIRST * (2 ** (g + 1) - 1)
        yield Combination(
            f"{g} doublings",
            f"""SELECT bloom_union_agg(bloom_fold(t.f, first.f)) FROM grown AS t, grown AS first
                WHERE first.g = 0 AND t.g <= {g}""",
            like.with_hashes(20, hashes_of(range(1, last + 1))),
            [(1, last)],
        )


def make_generations(p):
    """Stores the filters; returns their sizes in bits."""
    each("DROP TABLE IF EXISTS grown",
         f"""CREATE TABLE grown AS SELECT g, (SELECT bloom_agg(x::bigint, ({FIRST} * 2 ^ g)::bigint, {p!r})
            FROM generate_series({FIRST} * (2 ^ g - 1)::int + 1, {FIRST} * (2 ^ (g + 1) - 1)::int) AS x) AS f
         FROM generate_series(0, {DOUBLINGS}) AS g""")  # fmt: skip
    return [int(bits) for bits in ask("SELECT bits FROM grown, bloom_info(f) ORDER BY g")]


def check_theory(tests, p, m):
    k = ref.choose_k("blocked", p)
    for test in tests:
        theory = ref.expected_rate("blocked", k, m, test.members[0][1])
        now = test.wanted.current_rate()
        name = f"{test.name} at {p}: {now:.3g}, in theory {theory:.3g}"
        # four deviations of the mean over blocks, whose rates vary by about as much as they are
        ok(abs(now / theory - 1) < 0.05 + 4 / math.sqrt(m / ref.BLOCK), name)


def check_any_generation(p):
    """An element that any generation holds."""
    (found,) = ask(f"""SELECT count(*) FROM generate_series(1, {PROBES}) AS x
        WHERE EXISTS (SELECT FROM grown WHERE f @> (-x)::bigint)""")
    theory = 1 - (1 - p) ** (DOUBLINGS + 1)
    rate, sigma = int(found) / PROBES, math.sqrt(theory / PROBES)
    name = f"any of {DOUBLINGS + 1} generations at {p}: {rate:.3g}, at most {theory:.3g}"
    ok(rate <= 1.05 * theory + 4 * sigma, name)
    (lost,) = ask(f"""SELECT count(*) FROM generate_series(1, {FIRST * (2 ** (DOUBLINGS + 1) - 1)}) AS x
        WHERE NOT EXISTS (SELECT FROM grown WHERE f @> x::bigint)""")
    same(lost, "0", f"generations at {p}: nothing is lost")


def test_growing():
    """Filters over four doublings: each keeps its rate, the rates of all add up, and their folded union has the rate
    that theory gives for its elements in the bits of the first."""
    for p in (0.01, 0.001):
        sizes = make_generations(p)
        same(sizes, [sizes[0] << g for g in range(DOUBLINGS + 1)], f"{FIRST} elements and twice as many each, at {p}")
        tests = list(generations(p))
        check_combinations(tests, f"generations at {p}, folded together")
        check_theory(tests, p, sizes[0])
        check_any_generation(p)
        grow = "SELECT bloom_fold(a.f, b.f) FROM grown AS a, grown AS b WHERE a.g = 0 AND b.g = 1"
        check_refused(grow, "cannot fold", f"a dense filter that would have to grow, at {p}")


run(test_sizes, test_growing)
