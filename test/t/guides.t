#!/usr/bin/python3 -B
"""What doc/daily-rollups.md, doc/similarity.md and doc/sizing.md promise: the errors of estimates, the rates, and the
report on all filters.

The sets are random, from a fixed seed, and their true sizes come from Python's sets. The standard deviations come from
the covariances of the bits of two sets and of their union, which bench/theory.py computes. Errors must be within four
of them, and as large as they say.
"""

import datetime
import functools
import itertools
import math
import random
import re
import sys
from pathlib import Path

import recipes
from session import Session, ask, extension_schema, run
from tap import note, ok, same
import reference as ref

sys.path.insert(1, str(Path(__file__).resolve().parents[2] / "bench"))
import theory  # noqa: E402

Session.settings = "SET jit = off; SET max_parallel_workers_per_gather = 0;"
SIGMAS = 4


class Errors(theory.Estimates):
    """The standard deviations of the estimates from filters of one size."""

    def __init__(self, layout, p, n):
        super().__init__(layout, ref.choose_k(layout, p), ref.choose_m(layout, p, n))
        self.layout, self.p, self.n = layout, p, n

    def dense(self, size):
        return 64 * size >= self.m

    def cardinality(self, size):
        return math.sqrt(self.covariance(size, size, size)) if self.dense(size) else 0.0

    def combination(self, a, b, common, factors):
        """Of a sum of the sizes of A, B and their union, each times a factor. The size of a sparse filter is exact."""
        sparse = not self.dense(a), not self.dense(b)
        if all(sparse):
            return 0.0
        factors = [0 if exact else factor for exact, factor in zip((*sparse, False), factors)]
        union = a + b - common
        sizes = a, b, union
        both = {(0, 0): a, (1, 1): b, (2, 2): union, (0, 1): common, (0, 2): a, (1, 2): b}
        variance = sum((1 if i == j else 2) * factors[i] * factors[j] * self.covariance(sizes[i], sizes[j], shared)
                       for (i, j), shared in both.items() if factors[i] and factors[j])  # fmt: skip
        return math.sqrt(max(variance, 0.0))

    def intersection(self, a, b, common):
        return self.combination(a, b, common, (1, 1, -1))

    def new(self, a, b, common):
        """Of the number of elements of B that are not in A."""
        return self.combination(a, b, common, (-1, 0, 1))

    def jaccard(self, a, b, common):
        union = a + b - common
        return self.combination(a, b, common, (1 / union, 1 / union, -(a + b) / union**2))


def table_below(document, text):
    """The rows of numbers of the first table below a text of a guide, by their first cell."""
    lines = (recipes.DOC / document).read_text().split(text)[1].split("\n\n")
    table = next(part for part in lines if part.startswith("|"))
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.split("\n")]
    return [cells[0]] + cells[2:]


# The tables of the guides

SHARES = (0.02, 0.05, *(share / 10 for share in range(1, 10)), 0.95, 0.98, 1)


def pairs_of_sets(errors, filled):
    """Sizes of A, B and their intersection, for unions of up to so many times n elements."""
    for a, b in itertools.combinations_with_replacement((share * filled for share in SHARES), 2):
        for common in (0, 0.05, 0.2, 0.5, 0.8, 1):
            if a + b - common * a <= filled * 1.000001:
                yield tuple(size * errors.n for size in (a, b, common * a))


@functools.cache
def constants():
    """The constants of the guide: of pairs, by the rate and how full the union is, and of single sets, by the rate."""
    head, first, *rows = table_below("similarity.md", "The constants depend on")
    rates = [float(p) for p in head[1:]]
    of_pairs = {(p, filled): float(cell) for filled, row in zip((1, 2, 4), rows) for p, cell in zip(rates, row[1:])}
    return of_pairs, dict(zip(rates, map(float, first[1:])))


def worst_of_pairs(errors, filled):
    """The greatest constant of any pair of sets with a union of up to so many times n elements."""
    worst = 0.0
    for a, b, common in itertools.chain.from_iterable(pairs_of_sets(errors, f) for f in (1, 2, 4) if f <= filled):
        union, scale = a + b - common, math.sqrt(a * b / errors.n)
        worst = max(worst, errors.intersection(a, b, common) / scale, errors.jaccard(a, b, common) * union / scale,
                    errors.new(a, b, common) / math.sqrt(union * b / errors.n))  # fmt: skip
    return worst


def test_constants():
    """Each constant holds, and is not much larger than it must be."""
    of_pairs, of_sets = constants()
    for p, shown in of_sets.items():
        errors = Errors("blocked", p, 100_000)
        sizes = (share * errors.n for share in SHARES)
        worst = max(errors.cardinality(size) * math.sqrt(errors.n) / size for size in sizes)
        ok(worst <= shown < worst + 0.02, f"similarity.md: cardinality at {p:g}", worst)
    for (p, filled), shown in of_pairs.items():
        worst = worst_of_pairs(Errors("blocked", p, 100_000), filled)
        ok(worst <= shown < worst + 0.02, f"similarity.md: pairs at {p:g}, union of {filled} n", worst)


def test_classic_constants():
    """The constants of classic filters are larger by these factors at most."""
    of_pairs, _ = constants()
    sentence = r"\*\*In classic filters\*\* the constants .* are up to (\S+), (\S+) and (\S+) times as large"
    factors = re.search(sentence, (recipes.DOC / "similarity.md").read_text()).groups()
    for filled, factor in zip((1, 2, 4), map(float, factors)):
        worst = max(worst_of_pairs(Errors("classic", p, 100_000), filled) / shown
                    for (p, of), shown in of_pairs.items() if of == filled)  # fmt: skip
        ok(worst <= factor < worst + 0.1, f"similarity.md: classic filters, union of {filled} n", worst)


def test_rates():
    """The rates in sizing.md are those of large filters that hold other than n elements."""
    head, *rows = table_below("sizing.md", "Rates in theory")
    for layout, p, *shown in rows:
        k, m = ref.choose_k(layout, float(p)), ref.choose_m(layout, float(p), 1_000_000)
        loads = (float(load.split()[0]) for load in head[2:])
        expected = [f"{ref.expected_rate(layout, k, m, int(1_000_000 * load)):.2g}" for load in loads]
        same(shown, expected, f"sizing.md: rates of a {layout} filter at {p}")


# Sizes that fold back

RATES = 0.5, 0.1, 0.01, 0.001, 1e-6, 1e-9
FEW = (*range(1, 65), 65, 100, 127, 128, 130, 190, 254)  # blocks
MANY = 256, 520, 1016, 5 << 10, 127 << 12, 1 << 20
FOLD_BACK = """
SELECT blocks FROM (VALUES {sizes}) AS v (blocks, n),
    LATERAL bloom_create(n, {p}, seed => blocks) AS old (f), bloom_info(old.f),
    LATERAL (SELECT {larger} AS f) AS new,
    LATERAL (SELECT bloom_agg(i, new.f) AS of_new, bloom_agg(i, old.f) AS of_old
             FROM generate_series(1, {elements}) AS i) AS filled
WHERE bits <> 512 * blocks OR (bloom_info(new.f)).bits <> {factor} * bits
    OR {elements} > 1 AND (bloom_info(of_new)).representation = 'sparse' OR bloom_fold(of_new, of_old) <> of_old
ORDER BY blocks"""


def test_fold_back():
    """The call of sizing.md makes a filter that folds to the size of the old one, whatever that is."""
    example = recipes.block("sizing.md", "CREATE TABLE larger")
    (call,) = re.findall(r"bloom_create\(4 \* capacity, requested_rate, layout, seed\)", example)
    for p, factor in itertools.product(RATES, (2, 4, 8, 16, 32)):
        if factor > 4 and p < 0.001:
            continue
        for sizes, elements in (FEW, f"{factor} * bits / 64 + 1"), (MANY, "1"):
            values = ", ".join(f"({blocks}, {ref.capacity(p, 512 * blocks)})" for blocks in sizes
                               if 512 * blocks * factor <= ref.MAX_BITS)  # fmt: skip
            bad = ask(FOLD_BACK.format(sizes=values, p=p, larger=call.replace("4", str(factor)), factor=factor,
                                       elements=elements))  # fmt: skip
            same(bad, [], f"sizing.md: {factor} times the capacity folds back at {p:g}, from {sizes[0]} blocks on")


# Random sets

PAIRS = 50
KINDS = tuple(Errors(layout, p, 3_000) for layout, p in (
    ("blocked", 0.01), ("blocked", 0.1), ("blocked", 0.0001), ("classic", 0.01)))  # fmt: skip


def random_pair(random_numbers, errors):
    """Two sets whose union is at most one and a half times what a filter has room for."""
    while True:
        a, b = (int(random_numbers.uniform(0.02, 0.9) * errors.n) for _ in range(2))
        common = int(random_numbers.choice((0, 0.1, 0.5, 0.9, 1)) * min(a, b))
        if a + b - common <= 1.5 * errors.n:
            elements = [random_numbers.getrandbits(63) for _ in range(a + b - common)]
            return set(elements[:a]), set(elements[a - common :])


class Deviations:
    """Errors of estimates over their standard deviations."""

    def __init__(self, name):
        self.name, self.all, self.free = name, [], []

    def add(self, estimate, truth, deviation, free=True):
        """An estimate that cannot go on one side of the truth is not free: it says nothing about the mean square."""
        if deviation == 0:
            return abs(estimate - truth) < 1e-9 * max(truth, 1)
        self.all.append((estimate - truth) / deviation)
        self.free += self.all[-1:] if free else []
        return True

    def check(self):
        worst, square = max(map(abs, self.all)), sum(z * z for z in self.free) / len(self.free)
        ok(worst <= SIGMAS, f"{self.name}: {len(self.all)} errors are within {SIGMAS} deviations", worst)
        ok(abs(square - 1) <= SIGMAS * math.sqrt(2 / len(self.free)),
           f"{self.name}: they are as large as the deviation says", square)  # fmt: skip
        note(f"{self.name}: {len(self.all)} errors, the worst {worst:.2f} deviations, mean square {square:.2f}")


def compare_pair(errors, sets, row, deviations):
    """Compares the estimates of a pair with the truth; returns whether those that are exact are right, and whether the
    bound of the guide holds."""
    a, b = map(len, sets)
    common, union = len(sets[0] & sets[1]), len(sets[0] | sets[1])
    of_a, of_union, of_common, similarity = row
    deviation = errors.intersection(a, b, common)
    free = 5 * deviation < common < min(a, b) - 5 * deviation
    exact = (
        deviations["cardinality"].add(of_a, a, errors.cardinality(a)),
        deviations["union"].add(of_union, union, errors.combination(a, b, common, (0, 0, 1))),
        deviations["intersection"].add(of_common, common, deviation, free),
        deviations["similarity"].add(similarity, common / union, errors.jaccard(a, b, common), free),
    )
    bound = SIGMAS * constants()[0][errors.p, 2] * math.sqrt(a * b / errors.n)
    held = abs(of_common - common) <= bound + 1e-6 and abs(similarity - common / union) <= bound / union + 1e-9
    return all(exact), held


def test_random_sets():
    random_numbers = random.Random(14)
    deviations = {name: Deviations(name) for name in ("cardinality", "union", "intersection", "similarity")}
    with Session() as session:
        session.ask("CREATE TABLE sets (pair int, side int, x bigint); CREATE INDEX ON sets (pair, side)")
        for errors in KINDS:
            pairs = [random_pair(random_numbers, errors) for _ in range(PAIRS)]
            session.ask("TRUNCATE sets")
            session.copy("sets", ((str(pair), str(side), str(x)) for pair, sets in enumerate(pairs)
                                  for side, elements in enumerate(sets) for x in elements))  # fmt: skip
            session.ask("ANALYZE sets")
            rows = session.rows(f"""
                SELECT # a.f, bloom_union_cardinality(a.f, b.f), bloom_intersection_cardinality(a.f, b.f),
                    bloom_jaccard(a.f, b.f)
                FROM generate_series(0, {PAIRS - 1}) AS seed,
                    LATERAL bloom_create({errors.n}, {errors.p}, '{errors.layout}', seed) AS e,
                    LATERAL (SELECT bloom_agg(x, e) AS f FROM sets WHERE pair = seed AND side = 0) AS a,
                    LATERAL (SELECT bloom_agg(x, e) AS f FROM sets WHERE pair = seed AND side = 1) AS b
                ORDER BY seed""")
            results = [compare_pair(errors, sets, map(float, row), deviations) for sets, row in zip(pairs, rows)]
            ok(all(exact for exact, _ in results), f"{errors.layout} at {errors.p}: sparse filters are exact")
            if errors.layout == "blocked":
                ok(all(held for _, held in results), f"blocked at {errors.p}: the bound of similarity.md holds")
    for each in deviations.values():
        each.check()


def test_small_in_large():
    """found_in of similarity.md, for a small set that shares half of its elements with a large one."""
    errors, small = Errors("blocked", 0.01, 5_000), 600
    deviations = Deviations("found_in")
    first = recipes.block("similarity.md", "CREATE FUNCTION found_in").split("\n\n")[0]
    rows = ask(first + f"""
        SELECT found_in(small, large) FROM generate_series(1, 300) AS seed,
            LATERAL (SELECT bloom_agg(i, bloom_create({errors.n}, {errors.p}, seed => seed)) AS small
                     FROM generate_series(1, {small}) AS i) AS s,
            LATERAL (SELECT bloom_agg(i, bloom_create({errors.n}, {errors.p}, seed => seed)) AS large
                     FROM generate_series({small // 2 + 1}, {errors.n + small // 2}) AS i) AS l""")
    rate = ref.expected_rate("blocked", ref.choose_k("blocked", errors.p), errors.m, errors.n)
    for row in rows:
        deviations.add(float(row), small / 2, math.sqrt(rate * (1 - rate) * small / 2) / (1 - rate))
    deviations.check()
    same(ask("SELECT found_in(bloom_create(20), bloom_agg(i, 20)) IS NULL FROM generate_series(1, 100000) AS i"), ["t"],
         "found_in answers NULL for a filter with all bits set")  # fmt: skip


def test_summarize():
    with Session() as session:
        session.ask(recipes.block("similarity.md", "CREATE FUNCTION summarize"))
        session.ask("INSERT INTO purchases VALUES ('closed', 1), ('open', 1), (NULL, 2); SELECT summarize()")
        session.ask("DELETE FROM purchases WHERE shop = 'closed'; SELECT summarize()")
        same(session.ask("SELECT shop FROM shops"), ["open"], "summarize keeps the shops that have purchases")


# The rollups

ROLLUP_ITEMS = 25_000  # as the guide says
WEEKS = 10
MONDAY = datetime.date(2026, 1, 5)


def random_weeks(random_numbers):
    """The visitors of each week: some are new, and others come back."""
    weeks, known = [], []
    for _ in range(WEEKS):
        new = [random_numbers.getrandbits(40) for _ in range(random_numbers.randint(1_500, 2_500))]
        old = random_numbers.sample(known, min(len(known), random_numbers.randint(1_000, 4_000)))
        weeks.append({*new, *old})
        known += new
    return weeks


def rows_of(weeks, random_numbers):
    for week, visitors in enumerate(weeks):
        for visitor in visitors:
            for _ in range(random_numbers.randint(1, 2)):
                day = MONDAY + datetime.timedelta(7 * week + random_numbers.randrange(7))
                yield str(day), random_numbers.choice("ABC"), str(visitor)


def within(estimate, truth, a, b, missing=0.0):
    """Is an error within four times the bound of the guide for sets of a and b elements?"""
    bound = SIGMAS * constants()[0][0.01, 1] * math.sqrt(a * b / ROLLUP_ITEMS)
    return truth - bound - missing <= estimate <= truth + bound + 1e-6


def test_rollups():
    random_numbers = random.Random(2026)
    weeks = random_weeks(random_numbers)
    with Session() as session:
        session.ask(recipes.block("daily-rollups.md", "CREATE FUNCTION roll_up"))
        session.ask("CREATE TABLE visits_all PARTITION OF visits DEFAULT")
        session.copy("visits", rows_of(weeks, random_numbers))
        session.ask("SELECT roll_up('2026-01-05', '2026-12-31')")
        for part in "CREATE MATERIALIZED VIEW weekly", "CREATE VIEW flow", "CREATE TABLE cohorts":
            session.ask(recipes.block("daily-rollups.md", part))
        check_counts(session, weeks)
        check_flow(session, weeks)
        check_cohorts(session, weeks)
        check_next_week(session)
        check_unchanged(session)


def check_next_week(session):
    """A visitor comes in the last week, a week without visitors follows, and then a newcomer comes with another."""
    monday = MONDAY + datetime.timedelta(7 * (WEEKS + 1))
    session.ask(f"""
        INSERT INTO visits VALUES ('{monday}', 'A', -1);
        INSERT INTO visits SELECT '{monday}', 'A', visitor FROM visits_all WHERE day = '{monday}'::date - 14;
        SELECT roll_up('{monday}', '{monday}');
        REFRESH MATERIALIZED VIEW weekly""")
    same(session.rows(f"SELECT round(new), stayed, lost FROM flow WHERE week = '{monday}'"), [["1", "0", "0"]],
         "daily-rollups.md: nobody stays after a week without visitors")  # fmt: skip
    session.ask(insert_of_cohorts())
    same(session.ask(f"SELECT newcomers @> -1 FROM cohorts WHERE week = '{monday}'"), ["t"],
         "daily-rollups.md: the next week gets its cohort")  # fmt: skip


def insert_of_cohorts():
    return recipes.block("daily-rollups.md", "CREATE TABLE cohorts").split(";", 1)[1]


def check_unchanged(session):
    before = session.rows("SELECT ctid, xmin FROM daily ORDER BY day, country")
    session.ask("SELECT roll_up('2026-01-05', '2026-12-31')")
    same(session.rows("SELECT ctid, xmin FROM daily ORDER BY day, country"), before,
         "daily-rollups.md: roll_up writes no filter that stays as it is")  # fmt: skip


def check_counts(session, weeks):
    deviations = Deviations("distinct visitors of some weeks")
    errors, good = Errors("blocked", 0.01, ROLLUP_ITEMS), True
    for first, last in itertools.combinations(range(WEEKS), 2):
        from_day, to_day = (MONDAY + datetime.timedelta(days) for days in (7 * first, 7 * last + 6))
        (line,) = session.ask(f"SELECT visitors_between('{from_day}', '{to_day}')")
        truth = len(set().union(*weeks[first : last + 1]))
        deviations.add(float(line), truth, errors.cardinality(truth))
        good &= abs(float(line) - truth) <= SIGMAS * constants()[1][0.01] * truth / math.sqrt(ROLLUP_ITEMS)
    ok(good, "daily-rollups.md: the error of distinct visitors")
    worst = max(map(abs, deviations.all))
    ok(worst <= SIGMAS, "distinct visitors of 45 ranges: errors are within 4 deviations", worst)
    note(f"distinct visitors: the worst error is {worst:.2f} deviations")


def check_flow(session, weeks):
    rows = session.rows("SELECT new, stayed, lost FROM flow ORDER BY week")
    good = []
    for week in range(1, WEEKS):
        before, now = weeks[week - 1], weeks[week]
        earlier = set().union(*weeks[:week])
        new, stayed, lost = map(float, rows[week])
        good += [within(new, len(now - earlier), len(earlier | now), len(now)),
                 within(stayed, len(now & before), len(now), len(before)),
                 within(lost, len(before - now), len(now | before), len(before))]  # fmt: skip
    same(good, [True] * 3 * (WEEKS - 1), "daily-rollups.md: the errors of new, stayed and lost")


def check_cohorts(session, weeks):
    rows = session.rows("""
        SELECT (c.week - '2026-01-05') / 7, (w.week - '2026-01-05') / 7, # newcomers,
            bloom_intersection_cardinality(newcomers, visitors)
        FROM cohorts AS c JOIN weekly AS w ON w.week > c.week ORDER BY 1, 2""")
    good = []
    for cohort, week, size, stayed in ((int(c), int(w), float(size), float(s)) for c, w, size, s in rows):
        earlier = set().union(*weeks[:cohort])
        newcomers = weeks[cohort] - earlier
        truth = len(newcomers & weeks[week])
        rate = ref.expected_rate("blocked", 6, Errors("blocked", 0.01, ROLLUP_ITEMS).m, len(earlier)) if earlier else 0
        missing = rate * len(newcomers) + SIGMAS * math.sqrt(rate * len(newcomers))
        good.append(within(stayed, truth, len(newcomers), len(weeks[week]), missing))
        of_size = SIGMAS * constants()[1][0.01] * len(newcomers) / math.sqrt(ROLLUP_ITEMS)
        good.append(abs(size - len(newcomers)) <= missing + of_size)
    same(good, [True] * WEEKS * (WEEKS - 1), "daily-rollups.md: the errors of the cohorts")


# The report

STRANGE = "Odd 'name' %s"
FILTERS_OF_THE_REPORT = f"""
CREATE TABLE plain AS SELECT bloom_agg(i, 1000) AS f FROM generate_series(1, 1200) AS i;
CREATE TABLE "{STRANGE}" AS SELECT bloom_agg(i, 1000) AS "{STRANGE}" FROM generate_series(1, 10) AS i;
CREATE TABLE saturated AS SELECT bloom_agg(i, 50) AS f FROM generate_series(1, 100000) AS i;
CREATE TABLE counters AS SELECT bloom_counter_agg(i, 1000) AS c FROM generate_series(1, 900) AS i;
CREATE TABLE nothing (f bloomfilter, i int);
CREATE TABLE nulls AS SELECT NULL::bloomfilter AS f UNION ALL SELECT bloom_agg(1) WHERE false;
CREATE TABLE dropped (i int, f bloomfilter);
ALTER TABLE dropped DROP COLUMN f;
CREATE TABLE parts (i int, f bloomfilter) PARTITION BY LIST (i);
CREATE TABLE part PARTITION OF parts FOR VALUES IN (1);
INSERT INTO parts VALUES (1, bloom_create(10));
CREATE MATERIALIZED VIEW filled AS SELECT f FROM plain;
CREATE MATERIALIZED VIEW unfilled AS SELECT f FROM plain WITH NO DATA;
CREATE TEMP TABLE of_this_session AS SELECT f FROM plain;
CREATE TABLE many AS SELECT bloom_agg(i, 10) AS f FROM generate_series(1, 5000) AS i GROUP BY i;
ANALYZE plain, counters, many"""
NUMBERS = "relation, attribute, filters, looked_at, overfull, percent_full"
HERE = "FROM filter_report({}) JOIN pg_class ON oid = relation WHERE relnamespace = current_schema()::regnamespace"


def test_report():
    schema = extension_schema()
    with Session() as session:
        session.ask(FILTERS_OF_THE_REPORT)
        function = recipes.block("sizing.md", "CREATE FUNCTION filter_report")
        session.ask(function.replace("search_path = public", f"search_path = {schema}"))
        capacity = ref.capacity(0.01, ref.choose_m("blocked", 0.01, 1000))
        rows = {row[0]: row for row in session.rows(f"SELECT {NUMBERS} {HERE.format(5000)}")}
        same(sorted(rows), sorted(['"%s"' % STRANGE, "counters", "filled", "many", "nothing", "nulls", "part", "plain",
                                   "saturated"]),
             "the report has every filter and counter that is stored, but no view and no temporary table")
        same([rows[name][2:4] for name in ("many", "nothing", "plain")], [["5000", "5000"], ["0", "0"], ["1", "1"]],
             "and their numbers")
        same(rows['"%s"' % STRANGE][1:], [STRANGE, "1", "1", "0", str(round(1000 / capacity))], "and strange names")
        same(rows["saturated"][4:], ["1", "Infinity"], "and a saturated filter")
        same([rows[name][4] for name in ("plain", "filled", "counters", "part")], ["1", "1", "0", "0"],
             "and what is overfull")  # fmt: skip
        for sample in 100, 20:
            looked_at = int(session.ask(f"SELECT looked_at {HERE.format(sample)} AND relname = 'many'")[0])
            same(looked_at, sample, f"a sample of {sample} filters reads that many")
        check_hidden_filters(session)
        check_nested_filters(session)
        check_locked(session)
        check_rights(session)
        check_attack(session)


UNUSUAL_TABLES = r"""
CREATE TABLE bloated AS
    SELECT i, repeat('x', 7000) AS filler, NULL::bloomfilter AS f FROM generate_series(1, 445) AS i;
ALTER TABLE bloated ALTER filler SET STORAGE PLAIN;
UPDATE bloated SET filler = repeat('y', 7000), f = CASE WHEN i = 300 THEN (SELECT f FROM plain) END;
DELETE FROM bloated WHERE i <> 300;
CREATE TABLE half_null AS SELECT CASE WHEN i % 2 = 0 THEN bloom_add(bloom_create(10), i) END AS f
    FROM generate_series(1, 1000) AS i;
CREATE TABLE parent AS SELECT f FROM plain;
CREATE TABLE child () INHERITS (parent);
INSERT INTO child SELECT f FROM plain;
CREATE TABLE no_room AS SELECT bloomfilter '\x01010120000000000700000000000000000000004000000000000000' AS f;
ANALYZE bloated, half_null, parent, child"""


def check_hidden_filters(session):
    """The figures of tables with dead rows, NULLs, children and a filter that has room for no element."""
    session.ask(UNUSUAL_TABLES)
    rows = {row[0]: row[1:] for row in session.rows(
        f"SELECT relation, filters, looked_at, overfull, coalesce(percent_full, -1) {HERE.format('')}")}
    same(rows["bloated"][:3], ["1", "1", "1"], "a single filter between dead rows is always found")
    same(rows["half_null"][:2], ["500", "100"], "NULL is no filter")
    same([rows[name][0] for name in ("parent", "child")], ["1", "1"], "a parent does not count the filters of its child")
    same(rows["no_room"][3], "-1", "a filter that has room for no element has no percentage")


NESTED = """
CREATE DOMAIN kept AS bloomfilter;
CREATE DOMAIN kept_again AS kept;
CREATE DOMAIN list AS kept[];
CREATE TYPE pair AS (name text, "a f" kept, c bloomcounter);
CREATE DOMAIN checked AS pair;
CREATE TYPE nest AS (p pair, ps checked[]);
CREATE TABLE nested (d kept_again, a bloomfilter[], l list, n nest, ps checked[]);
INSERT INTO nested SELECT f, ARRAY[f, NULL, e], ARRAY[[f, e], [f, e]], ROW(p, ARRAY[p, NULL, p])::nest, ARRAY[p, p, p]
    FROM plain, bloom_create(10) AS e, LATERAL (SELECT ROW('x', f, c)::pair AS p FROM counters) AS x;
INSERT INTO nested VALUES (NULL, NULL, NULL, NULL, NULL), (NULL, '{}', '{}', ROW(NULL, NULL), '{}');
ANALYZE nested"""
FILTERS_OF_NESTED = {"d": 1, "a[]": 2, "l[]": 4, "n.p.a f": 1, "n.p.c": 1, "n.ps[].a f": 2, "n.ps[].c": 2,
                     "ps[].a f": 3, "ps[].c": 3}  # fmt: skip


def check_nested_filters(session):
    """The filters in domains, arrays and composites."""
    session.ask(NESTED)
    rows = session.rows(f"SELECT attribute, filters, looked_at, overfull {HERE.format('')} AND relname = 'nested'")
    same({row[0]: row[1:3] for row in rows}, {name: [str(n)] * 2 for name, n in FILTERS_OF_NESTED.items()},
         "and has those inside of domains, arrays and composites")  # fmt: skip
    overfull = {"d": 1, "a[]": 1, "l[]": 2, "n.p.a f": 1, "n.ps[].a f": 2, "ps[].a f": 3}
    same({row[0]: int(row[3]) for row in rows if row[3] != "0"}, overfull, "and which of them are overfull")


def check_locked(session):
    """A table without a filter may be locked."""
    session.ask("CREATE TABLE locked (i int)")
    with Session() as other:
        other.each("BEGIN", "LOCK TABLE locked")
        session.ask("SET statement_timeout = '9s'")
        same(session.attempt("SELECT count(*) FROM filter_report()")[1], "00000", "and waits for no other table")
    session.ask("RESET statement_timeout")


ATTACK = """
CREATE TABLE {0}.loot (of name);
CREATE FUNCTION {0}.keep(of name) RETURNS void SECURITY DEFINER LANGUAGE sql AS 'INSERT INTO {0}.loot VALUES (of)';
CREATE FUNCTION {0}.attack(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF current_user <> '{0}' THEN PERFORM {0}.keep(current_user); END IF;
    RETURN i;
END $$;
CREATE TABLE {0}.bait (f {1}.bloomfilter);
INSERT INTO {0}.bait VALUES ({1}.bloom_create(10));
GRANT USAGE ON SCHEMA {0} TO PUBLIC;
GRANT SELECT ON {0}.bait TO PUBLIC;
CREATE INDEX ON {0}.bait (({0}.attack(1)));
ALTER TABLE {0}.bait ENABLE ROW LEVEL SECURITY;
CREATE POLICY attack ON {0}.bait USING ({0}.attack(1) = 1)"""


def check_attack(session):
    """A query of a superuser runs the expression of the index, and one of another role also the policy."""
    role = "guides_attacker"
    try:
        session.ask(f"CREATE ROLE {role}; CREATE SCHEMA {role} AUTHORIZATION {role}; SET ROLE {role}")
        session.ask(ATTACK.format(role, extension_schema()))
        session.ask(f"RESET ROLE; CREATE TABLE {role}.ours AS SELECT f FROM plain")
        same(session.ask(f"SELECT relation FROM filter_report() WHERE relation = '{role}.ours'::regclass"), [],
             "the report reads no table that the owner of its schema could replace")
        same(session.ask(f"SELECT of FROM {role}.loot"), [], "the report runs no code of another role")
        session.ask(f"SELECT f FROM {role}.bait")
        same(len(session.ask(f"SELECT DISTINCT of FROM {role}.loot")), 1, "which any other query does")
    finally:
        session.ask(f"RESET ROLE; DROP TABLE IF EXISTS {role}.ours; DROP OWNED BY {role} CASCADE; DROP ROLE {role}")


def check_rights(session):
    (name,) = session.ask("SELECT current_schema()")
    roles = {"guides_watcher": "IN ROLE pg_monitor", "guides_stranger": ""}
    try:
        for role, membership in roles.items():
            session.ask(f"CREATE ROLE {role} {membership}; GRANT USAGE ON SCHEMA {name} TO {role}")
        answers = []
        for role, what in itertools.product(roles, ("count(*) FROM filter_report()", "f FROM plain")):
            answers.append(session.attempt(f"SET ROLE {role}; SELECT {what}")[1])
            session.ask("RESET ROLE")
        same(answers, ["00000", "42501", "42501", "42501"],
             "a monitoring user sees the report and no filter, and a stranger sees neither")  # fmt: skip
    finally:
        names = ", ".join(roles)
        session.ask(f"RESET ROLE; DROP OWNED BY {names}; DROP ROLE {names}")


run(test_report, test_fold_back, test_constants, test_classic_constants, test_rates, test_random_sets,
    test_small_in_large, test_summarize, test_rollups)
