#!/usr/bin/python3 -B
"""What counters promise in numbers, against theory: the rate after deletions, the error of bloom_count, and the chance
that 4 bits saturate. Bounds are four deviations of the measurement. The measured figures are notes.
"""

import functools
import math

from session import Session, ask, each, run
from tap import note, ok, same
import reference as ref

Session.settings = "SET client_min_messages = error; SET jit = off; SET max_parallel_workers_per_gather = 0;"


class Shape:
    """A kind of counter for a number of items, and what theory says about it."""

    def __init__(self, layout, p, items, width=4):
        self.layout, self.p, self.items, self.width = layout, p, items, width
        self.k, self.m = ref.choose_k(layout, p), ref.choose_m(layout, p, items)
        self.B, self.nblocks = ref.geometry(layout, self.m)
        self.share = -math.expm1(self.k * math.log1p(-1 / self.B))  # of its block's positions that an element takes
        self.name = f"{layout}, {width} bits, {items} items at {p}"

    def create(self, seed="0"):
        return f"bloom_create_counter({self.items}, {self.p!r}, {self.width}, '{self.layout}', {seed})"

    def create_filter(self, seed="0"):
        return f"bloom_create({self.items}, {self.p!r}, '{self.layout}', {seed})"

    def rate(self, n):
        return ref.expected_rate(self.layout, self.k, self.m, n)

    def over_blocks(self, n, value):
        """The mean over blocks of a function of the number of their elements, and its deviation."""
        if self.layout == "classic":
            return value(n), 0.0
        value = functools.lru_cache(None)(value)
        values, squares = Each(value), Each(lambda j: value(j) ** 2)
        mean = ref.poisson_mean(n / self.nblocks, values)
        return mean, math.sqrt(max(0.0, ref.poisson_mean(n / self.nblocks, squares) - mean**2))

    def deviation(self, n, trials):
        """Of a rate of n elements that so many trials measure: that of the trials, that of the blocks by the number of
        their elements, and that of the positions taken in a block with this number, which is less."""
        rate = self.rate(n)
        if self.layout == "classic":
            return math.sqrt(rate / trials) + 2 * rate * self.k / math.sqrt(self.m)
        r = ref.block_rates(self.B, self.k)
        _, spread = self.over_blocks(n, lambda j: r[j])
        return math.sqrt(rate * (1 - rate) / trials + 2 * spread**2 / self.nblocks)


class Each:
    def __init__(self, value):
        self.value = value

    def __getitem__(self, j):
        return self.value(j)


def near(measured, theory, deviation, name, share=0.0):
    """Is a figure within four deviations, and this share of it for an approximate theory?"""
    text = f"{name}: measured {measured:.6g}, in theory {theory:.6g}"
    ok(abs(measured - theory) <= 4 * deviation + share * theory, text, f"deviation {deviation:.3g}")
    note(text)


# Deletions

PROBES = 400_000
ONE_BY_ONE = """
CREATE FUNCTION without(c bloomcounter, last int) RETURNS bloomcounter LANGUAGE plpgsql AS $$
BEGIN
    FOR x IN REVERSE last .. 1 LOOP c := bloom_remove(c, x); END LOOP;
    RETURN c;
END $$"""
DELETIONS = (  # a shape, the number of deletions, and the number of counters
    (Shape("blocked", 0.01, 100_000), 100_000, 1), (Shape("blocked", 0.1, 50_000, 8), 50_000, 1),
    (Shape("classic", 0.01, 100_000), 50_000, 1), (Shape("blocked", 0.1, 100_000, 16), 20_000, 1),
    (Shape("blocked", 0.01, 3_000), 3_000, 20), (Shape("classic", 0.02, 2_000, 8), 2_000, 20),
)  # fmt: skip


def test_deletions():
    """Elements come and go, all at once or, in small counters, one by one. Then the counter holds what a filter built
    from the rest holds, and has its rate."""
    each(ONE_BY_ONE)
    for shape, deleted, sets in DELETIONS:
        n, trials = shape.items, PROBES // sets

        def counted(last):
            return f"(SELECT bloom_counter_agg(x, {shape.create('s')}) FROM generate_series(1, {last}) AS x)"

        whole = counted(deleted + n)
        rest = f"without({whole}, {deleted})" if sets > 1 else f"{whole} - {counted(deleted)}"
        kept = f"generate_series({deleted + 1}, {deleted + n}) AS x"
        (line,) = ask(f"""
            SELECT bool_and(c::bloomfilter::bytea = f::bytea), bool_and(abs(bloom_fpp(c) - bloom_fpp(f)) < 1e-12),
                sum((SELECT count(*) FROM {kept} WHERE NOT c @> x)),
                sum((SELECT count(*) FROM generate_series(1, {trials}) AS x WHERE c @> -x))
            FROM generate_series(1, {sets}) AS s, LATERAL (SELECT {rest} AS c OFFSET 0) AS a,
                LATERAL (SELECT bloom_agg(x, {shape.create_filter('s')}) AS f FROM {kept} OFFSET 0) AS b""")
        equal, alike, lost, hits = line.split("|")
        name = f"{shape.name}, after {deleted} deletions"
        same((equal, alike, lost), ("t", "t", "0"), f"{name}: as a filter of the rest, no false negative")
        near(int(hits) / (trials * sets), shape.rate(n), shape.deviation(n, trials * sets), f"{name}: rate")


# The error of bloom_count


def count_exceeds(shape, n, excess):
    """The probability that bloom_count of a member exceeds the truth by so much, where all were added once: each of its
    positions has got that much from others. By one it is the rate of the others, exactly; above it takes the positions
    as independent."""
    if excess == 1:
        return shape.rate(n - 1)
    distinct = ref.block_rates(shape.B, shape.k).distinct

    def of_block(j):
        below = math.fsum(binomial(j, shape.share, i) for i in range(excess))
        return math.fsum(d * (1 - below) ** e for e, d in enumerate(distinct))

    return shape.over_blocks(n - 1, of_block)[0]


def binomial(n, p, i):
    if i > n:
        return 0.0
    return math.exp(math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1)
                    + i * math.log(p) + (n - i) * math.log1p(-p))  # fmt: skip


def test_errors_of_counts():
    for shape in (Shape("blocked", 0.01, 200_000), Shape("blocked", 0.1, 100_000, 8), Shape("classic", 0.01, 200_000)):
        for load in (0.5, 1, 2):
            n = int(shape.items * load)
            line = ask(f"""
                SELECT {", ".join(f"count(*) FILTER (WHERE bloom_count(c, x) - 1 >= {e})" for e in range(4))},
                    avg(bloom_count(c, x) - 1)
                FROM (SELECT bloom_counter_agg(x, {shape.create()}) AS c FROM generate_series(1, {n}) AS x
                    OFFSET 0) AS s, generate_series(1, {n}) AS x""")[0]
            *exceeding, mean = line.split("|")
            name = f"{shape.name}, {load:.0%} full"
            same(exceeding[0], str(n), f"{name}: no count is below the truth")
            for excess in (1, 2, 3):
                theory = count_exceeds(shape, n, excess)
                near(int(exceeding[excess]) / n, theory, shape.deviation(n, n) if excess == 1 else
                     2 * math.sqrt(theory / n) + 1 / n, f"{name}: share of counts that are {excess} or more too high",
                     0 if excess == 1 else 0.1)  # fmt: skip
            note(f"{name}: mean error of bloom_count {float(mean):.6f}")


def test_errors_of_other_counts():
    """Whatever was counted, a read exceeds the truth exactly if others have taken all its positions."""
    shape = Shape("blocked", 0.01, 100_000)
    for load in (0.5, 1, 2):
        n = int(shape.items * load)
        line = ask(f"""
            SELECT count(*) FILTER (WHERE read > t), count(*) FILTER (WHERE read < t) FROM (
                SELECT bloom_count(c, x) AS read, 1 + x % 10 AS t FROM generate_series(1, {n}) AS x, (
                    SELECT bloom_counter_agg(x, {shape.create()}) AS c
                    FROM generate_series(1, {n}) AS x, generate_series(0, x % 10) OFFSET 0) AS s) AS r""")[0]
        exceeding, below = map(int, line.split("|"))
        same(below, 0, f"counts of 1 to 10, {load:.0%} full: none is below the truth")
        near(exceeding / n, shape.rate(n - 1), shape.deviation(n, n), f"counts of 1 to 10, {load:.0%} full: too high")


# Saturation

LIMIT = 15


def poisson_at_least(load, number):
    below = math.fsum(math.exp(-load + i * math.log(load) - math.lgamma(i + 1)) for i in range(number))
    if below < 0.5:
        return 1 - below
    return math.fsum(math.exp(-load + i * math.log(load) - math.lgamma(i + 1)) for i in range(number, number + 200))


def saturates(j, share):
    """The chance of a position of a block with j elements."""
    return math.fsum(binomial(j, share, i) for i in range(LIMIT, min(j, 120) + 1))


def fan_bound(m, load, number):
    """Fan, Cao, Almeida and Broder 2000: the chance that any of m numbers reaches this is at most that."""
    return m * (math.e * load / number) ** number


def test_saturation():
    """How many positions saturate. The elements of a block are Poisson distributed, and so is what a position gets."""
    for layout in ("blocked", "classic"):
        shape = Shape(layout, 0.01, 50_000)
        for times in (1, 4, 6, 8):
            n = shape.items * times
            (line,) = ask(f"""SELECT i.saturated, i.positions_set, i.positions FROM
                (SELECT bloom_counter_agg(x, {shape.create()}) AS c FROM generate_series(1, {n}) AS x OFFSET 0) AS s,
                bloom_info(c) AS i""")
            saturated, taken, positions = map(int, line.split("|"))
            load = n * shape.share * shape.B / shape.m
            chance, bound = poisson_at_least(load, LIMIT), fan_bound(shape.m, load, LIMIT)
            _, spread = shape.over_blocks(n, lambda j: saturates(j, shape.share))
            deviation = math.sqrt(shape.m * chance + shape.nblocks * (shape.B * spread) ** 2)
            name = f"{shape.name}, {times} times the elements, {load:.2f} for each position"
            same(positions, shape.m, f"{name}: positions")
            near(taken / positions, -math.expm1(-load), 1 / math.sqrt(shape.m) if layout == "classic" else
                 2 / math.sqrt(shape.nblocks * 8), f"{name}: share of positions set")  # fmt: skip
            if times == 1:
                chances = f"the chance is {shape.m * chance:.2g} in theory, and at most {bound:.2g}"
                same(saturated, 0, f"{name}: none is saturated; {chances}")
            else:
                near(saturated, shape.m * chance, deviation, f"{name}: saturated positions")
                ok(saturated <= bound + 4 * deviation, f"{name}: {saturated} saturated, bound {bound:.4g}")
    classic = Shape("classic", 0.01, 50_000)
    note(f"Fan et al. for {classic.m} numbers: m (e ln 2 / 16)^16 = {fan_bound(classic.m, math.log(2), 16):.3g}")


def test_chance_of_saturation():
    """The share of counters in which anything saturates, of many that are overfull."""
    for layout, times, sets in (("blocked", 4, 2000), ("classic", 4, 1000), ("blocked", 5, 1500), ("classic", 5, 1000)):
        shape = Shape(layout, 0.01, 1000)
        n = shape.items * times
        (line,) = ask(f"""SELECT count(*) FILTER (WHERE i.saturated > 0) FROM generate_series(1, {sets}) AS s, LATERAL
                (SELECT bloom_counter_agg(x, {shape.create("s")}) AS c FROM generate_series(1, {n}) AS x OFFSET 0) AS t,
                bloom_info(c) AS i""")
        load = n * shape.share * shape.B / shape.m
        of_block, _ = shape.over_blocks(n, lambda j: -math.expm1(shape.B * math.log1p(-saturates(j, shape.share))))
        chance = -math.expm1(shape.nblocks * math.log1p(-of_block))
        bound = fan_bound(shape.m, load, LIMIT)
        measured, deviation = int(line) / sets, math.sqrt(chance / sets)
        name = f"{shape.name}, {n} elements: chance that one of {shape.m} positions saturates"
        near(measured, chance, deviation + 1 / sets, name, 0.05)
        ok(measured <= bound + 4 * deviation, f"{name}: at most {bound:.3g}, Fan et al.")


run(test_deletions, test_errors_of_counts, test_errors_of_other_counts, test_saturation, test_chance_of_saturation)
