"""How many distinct? bloomfilter, hll, ANALYZE and count(DISTINCT).

The elements of the first cases are all distinct, and another seed is another range of integers. An error is relative
to the exact number.
"""
import functools
import statistics
import typing

from plans import connect, expect
from results import Step


class Sketch(typing.NamedTuple):
    """SQL for one kind of value, with the name of a column or an expression in {}."""

    build: str
    sized: str  # for a known number of elements
    cardinality: str
    union: str
    both: str  # how many elements two values have in common


BLOOM = Sketch("bloom_agg({})", "bloom_agg({}, %d)", "bloom_cardinality({})", "bloom_union_agg({})",
               "bloom_intersection_cardinality({0}, {1})")  # fmt: skip
# hll has no intersection. What both have in common is the sum less the union.
HLL = Sketch("hll_add_agg(hll_hash_bigint({}))", "hll_add_agg(hll_hash_bigint({}))", "hll_cardinality({})",
             "hll_union_agg({})", "hll_cardinality({0}) + hll_cardinality({1}) - hll_cardinality({0} || {1})")  # fmt: skip
LARGE = "hll_add_agg(hll_hash_bigint({}), 14)"
SKETCHES = {"bloomfilter": BLOOM, "hll": HLL, "hll, log2m 14": HLL._replace(build=LARGE, sized=LARGE)}

SEEDS = {100: 200, 1000: 200, 10000: 100, 100000: 30, 1000000: 10, 10000000: 5}
SPACING = 1000000000
DAYS = 365


class State:
    """A session, and the kinds of values that this server has. Both are made when the first step needs them."""

    @functools.cached_property
    def session(self):
        return connect("work_mem = '64MB'")

    @functools.cached_property
    def sketches(self):
        if not self.session.ask("SELECT FROM pg_available_extensions WHERE name = 'hll'"):
            print("distinct: hll is not installed, so its cases are left out", flush=True)
            return {"bloomfilter": BLOOM}
        self.session.ask("CREATE EXTENSION IF NOT EXISTS hll")
        return SKETCHES


def percent(estimates, exact):
    return [100 * (float(estimate) / exact - 1) for estimate in estimates]


def mean_error(errors):
    return statistics.mean(map(abs, errors))


def sized(sketch, n):
    return sketch.sized % n if "%" in sketch.sized else sketch.sized


def add_errors(results, case, n, errors):
    """errors maps a peer to its signed errors in percent."""
    results.figures(case, n, "mean relative error", "%", {peer: mean_error(signed) for peer, signed in errors.items()})
    for metric, function in ("bias", statistics.mean), ("standard deviation", statistics.stdev):
        for peer, signed in errors.items():
            results.add(case, peer, n, metric, "%", [function(signed)], [])


def estimates(state, n, results):
    columns = ", ".join("%s, pg_column_size(%s)" % (sketch.cardinality.format(built), built)
                        for sketch in state.sketches.values() for built in [sketch.build.format("x")])  # fmt: skip
    rows = state.session.rows(
        "SELECT v.* FROM generate_series(1, %d::bigint) AS seed CROSS JOIN LATERAL "
        "(SELECT %s FROM (SELECT seed * %d + generate_series(1, %d) AS x) AS i) AS v" % (SEEDS[n], columns, SPACING, n))  # fmt: skip
    fields = list(zip(*rows))
    add_errors(results, "distinct", n, {peer: percent(fields[2 * i], n) for i, peer in enumerate(state.sketches)})
    results.figures("distinct", n, "size", "bytes",
                    {peer: statistics.median(map(int, fields[2 * i + 1])) for i, peer in enumerate(state.sketches)})  # fmt: skip


def build(state, n, results):
    """Time of a row of a table in which each value occurs once, and of one in which it occurs 100 times."""
    session, few = state.session, max(n // 100, 1)
    session.ask("CREATE UNLOGGED TABLE distinct_rows AS SELECT hashint8extended(i, 2) AS x, "
                "hashint8extended(i %% %d, 2) AS y FROM generate_series(1, %d::bigint) AS i" % (few, n))  # fmt: skip
    session.ask("VACUUM ANALYZE distinct_rows")
    for case, column, distinct in ("build, all distinct", "x", n), ("build, 100 of each", "y", few):
        calls = {peer: sketch.cardinality.format(sketch.build) for peer, sketch in state.sketches.items()}
        calls["bloomfilter, sized"] = BLOOM.cardinality.format(sized(BLOOM, distinct))
        calls["count(DISTINCT)"] = "count(DISTINCT {})"
        queries = {peer: "SELECT %s FROM distinct_rows" % call.format(column) for peer, call in calls.items()}
        expect(session, queries["count(DISTINCT)"], {"Node Type": "Aggregate", "Strategy": "Plain"},
               {"Node Type": "Seq Scan"})  # fmt: skip
        if column == "y":
            queries["DISTINCT, hashed"] = "SELECT count(*) FROM (SELECT DISTINCT y FROM distinct_rows) AS v"
            expect(session, queries["DISTINCT, hashed"], {"Strategy": "Hashed"}, {"Node Type": "Seq Scan"})
        results.compare(case, n, "time per row", "ns", {
            peer: lambda sql=sql: 1e9 * session.seconds(sql) / n for peer, sql in queries.items()})  # fmt: skip
    session.ask("DROP TABLE distinct_rows")


def unite(state, n, results):
    """365 days of n / 365 visits. There are a tenth as many visitors as visits."""
    session, visitors, case = state.session, max(n // 10, 1), "%d days, united" % DAYS
    session.ask("CREATE UNLOGGED TABLE distinct_visits AS SELECT i %% %d AS day, "
                "(hashint8extended(i, 1) & 9223372036854775807) %% %d AS x FROM generate_series(1, %d::bigint) AS i"
                % (DAYS, visitors, n))  # fmt: skip
    session.ask("VACUUM ANALYZE distinct_visits")
    tables, queries = {}, {}
    for i, (peer, sketch) in enumerate(state.sketches.items()):
        tables[peer] = "distinct_days_%d" % i
        session.ask("CREATE UNLOGGED TABLE %s AS SELECT day, %s AS s FROM distinct_visits GROUP BY day"
                    % (tables[peer], sized(sketch, visitors).format("x")))  # fmt: skip
        session.ask("VACUUM ANALYZE " + tables[peer])
        queries[peer] = "SELECT %s FROM %s" % (sketch.cardinality.format(sketch.union.format("s")), tables[peer])
    tables["count(DISTINCT)"] = "distinct_visits"
    queries["count(DISTINCT)"] = "SELECT count(DISTINCT x) FROM distinct_visits"
    results.compare(case, n, "time", "ms", {
        peer: lambda sql=sql: 1000 * session.seconds(sql) for peer, sql in queries.items()})  # fmt: skip
    results.figures(case, n, "size of all days", "bytes", {
        peer: int(session.ask("SELECT pg_total_relation_size('%s')" % table)[0]) for peer, table in tables.items()})  # fmt: skip
    exact = int(session.ask(queries["count(DISTINCT)"])[0])
    for peer, sql in queries.items():
        results.add(case, peer, n, "relative error", "%", percent(session.ask(sql), exact), [])
    session.ask("DROP TABLE " + ", ".join(tables.values()))


def common(state, n, results):
    """The number of elements that two sets of n elements have in common."""
    sets = ", ".join("%s AS s%d" % (sized(sketch, n).format("x"), i) for i, sketch in enumerate(state.sketches.values()))
    reads = ", ".join(sketch.both.format("a.s%d" % i, "b.s%d" % i) for i, sketch in enumerate(state.sketches.values()))
    side = "LATERAL (SELECT {} FROM (SELECT seed * {} + %d + generate_series(1, {}) AS x) AS i)".format(sets, SPACING, n)
    for share in 1, 10, 50:
        both = max(n * share // 100, 1)
        rows = state.session.rows("SELECT %s FROM generate_series(1, 20::bigint) AS seed, %s AS a, %s AS b" % (
            reads, side % 0, side % (n - both)))  # fmt: skip
        add_errors(results, "in both sets, %d %%" % share, n, {
            peer: percent(estimates, both) for peer, estimates in zip(state.sketches, zip(*rows))})  # fmt: skip


def sample(state, n, results):
    """pg_stats.n_distinct for columns of a table of n rows, in ten samples."""
    session = state.session
    numbers = [number for number in (100, 10000, 1000000) if number <= n // 10]
    random = "(hashint8extended(i, {1}) & 2147483647)"
    forms = {"uniform": "(%s %% {0})::int" % random, "skewed": "({0} * (%s / 2147483648.0::float8) ^ 4)::int" % random}
    columns = {"%s_%d" % (form, number): value.format(number, seed)
               for seed, number in enumerate(numbers) for form, value in forms.items()}  # fmt: skip
    session.ask("CREATE UNLOGGED TABLE distinct_sampled AS SELECT %s FROM generate_series(1, %d::bigint) AS i" % (
        ", ".join("%s AS %s" % (value, column) for column, value in columns.items()), n))  # fmt: skip
    found = {column: [] for column in columns}
    for _ in range(10):
        session.ask("ANALYZE distinct_sampled")
        for column, number in session.rows("SELECT attname, n_distinct FROM pg_stats WHERE tablename = 'distinct_sampled'"):
            found[column].append(float(number) if float(number) > 0 else -float(number) * n)
    for column, estimates in found.items():
        calls = ", ".join(sketch.cardinality.format(sketch.build).format(column) for sketch in state.sketches.values())
        exact, *others = session.rows(
            "SELECT (SELECT count(*) FROM (SELECT DISTINCT {1} FROM distinct_sampled) AS v), {0} FROM distinct_sampled"
            .format(calls, column))[0]  # fmt: skip
        errors = {peer: mean_error(percent([other], int(exact))) for peer, other in zip(state.sketches, others)}
        errors["pg_stats.n_distinct"] = mean_error(percent(estimates, int(exact)))
        results.figures("distinct of all rows, " + column.split("_")[0], int(exact), "mean relative error", "%", errors)
    session.ask("DROP TABLE distinct_sampled")


def steps(rows):
    state, million = State(), rows / 1e6
    plan = [Step("errors of %d elements" % n, seeds * n * 1.5e-7, functools.partial(estimates, state, n))
            for n, seeds in SEEDS.items() if n <= rows]  # fmt: skip
    set_size = max(rows // 100, 1000)
    return plan + [
        Step("time to build", 7 * million, functools.partial(build, state, rows)),
        Step("a union of %d days" % DAYS, 3 * million, functools.partial(unite, state, rows)),
        Step("what two sets have in common", set_size * 4e-5, functools.partial(common, state, set_size)),
        Step("ANALYZE", 4 * million, functools.partial(sample, state, rows)),
    ]
