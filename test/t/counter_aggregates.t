#!/usr/bin/python3 -B
"""The aggregates that make and combine counters: against bloom_agg, against count(*) and max() by SQL, and against the
model in counters.py, by every plan and in every place of a query.
"""

import collections
import functools
import random

import counters
from aggregates import (ANALYZE, APPEND, FINAL, GATHER, HASHED, PARALLEL, PARTIAL, PARTITIONWISE, SORTED, TO_SPILL,
                        answers, check_plan, copy, explained, forced_parallel, same_answers, spills)
from counters import gathered, hash_of
from session import Session, ask, each, quote, run
from tap import ok, same

# Counters to add to

KEPT = {
    "classic": counters.built(counters.create(40, 0.02, 8, "classic", 9), {hash_of(x, 9): 3 for x in range(1, 50, 2)}),
    "sparse": counters.built(counters.create(500), {hash_of(x, 0): x for x in range(1, 16)}),
    "dense": counters.built(counters.create(20), {hash_of(x, 0): 1 + x % 14 for x in range(40)}),
    "empty": counters.create(50, 0.001, 16, seed=-1),
    "unsized": counters.unsized(0.1, 16),
}
LEVELS = {
    "sparse levels": counters.built(counters.create(500), {hash_of(x, 0): x for x in range(1, 16)}, True),
    "dense levels": counters.built(counters.create(20), {hash_of(x, 0): 1 + x % 14 for x in range(40)}, True),
}
KEPT_LEVELS = {**KEPT, **LEVELS}
OF_SIZE = {  # arguments behind the element or the level, and the counter that they stand for
    "self": ("", counters.unsized()),
    "rate": (", NULL, 0.1", counters.unsized(0.1)),
    "items": (", 50", counters.create(50)),
    "both": (", 1000, 0.2", counters.create(1000, 0.2)),
}


def onto(name):
    return f", (SELECT c FROM kept WHERE name = {quote(name)})"


# What to call, the counter that it adds to, and whether it raises.
FORMS = {f"count, {name}": (f"bloom_counter_agg(%sx{tail}", base, False) for name, (tail, base) in OF_SIZE.items()}
FORMS |= {f"count onto {name}": (f"bloom_counter_agg(%sx{onto(name)}", c, False) for name, c in KEPT_LEVELS.items()}
FORMS |= {f"level, {name}": (f"bloom_level_agg(%sx, l{tail}", base, True) for name, (tail, base) in OF_SIZE.items()}
FORMS |= {f"level onto {name}": (f"bloom_level_agg(%sx, l{onto(name)}", c, True) for name, c in KEPT_LEVELS.items()}


def numbers_of(items, seed, raising):
    """The number of each hash among items "x" or "x:level"."""
    numbers = collections.Counter()
    for item in items:
        x, _, level = item.partition(":")
        h = hash_of(int(x), seed)
        numbers[h] = max(numbers[h], int(level)) if raising else numbers[h] + 1
    return numbers


def wanted(label, items):
    """The counter of these items, or None over no rows, where the counter to add to is not known."""
    call, base, raising = FORMS[label]
    if items is None:
        return None if " onto " in label else counters.unsized()
    numbers = {h: min(number, base.limit) for h, number in numbers_of(items, base.seed, raising).items()}
    return gathered(base, numbers, raising)


@functools.lru_cache(None)
def wanted_text(label, items):
    c = wanted(label, None if items == "" else [item for item in items[1:-1].split(",") if item != "NULL"])
    return "" if c is None else c.hex()


def check_rows(lines, name, expect=None):
    """Compares rows of a label, a counter, and the array of its items."""
    wrong = []
    for line in lines:
        label, c, items = line.split("|")
        want = wanted_text(label, items)
        if c != want:
            wrong.append(f"{label} over {items}: got {c[:300]}, expected {want[:300]}")
    ok(lines and expect in (None, len(lines)) and not wrong, f"{name}: {len(lines)} rows", len(wrong), *wrong[:3])


def items_of(label):
    return "(x || ':' || l)" if FORMS[label][2] else "(x::text)"


def select(label, source="few", tail="", modifier="", order="", where=""):
    """The three columns that check_rows() wants."""
    call = FORMS[label][0] % modifier + (f" ORDER BY {order})" if order else ")")
    return f"""SELECT '{label}', {call}{tail}, array_agg({modifier}{items_of(label)}){tail} FROM {source} {where}"""


def make_few():
    rng, rows = random.Random("counters"), []
    for i in range(120):
        x = None if rng.random() < 0.1 else rng.choice((rng.randrange(9), rng.randrange(40), rng.getrandbits(50)))
        rows.append([str(i), str(rng.randrange(6)), str(rng.randrange(3)), None if x is None else str(x),
                     str(rng.randint(1, 15))])  # fmt: skip
    each("CREATE TABLE few (i int, g int, h int, x bigint, l int)", "CREATE TABLE kept (name text, c bloomcounter)")
    each(*(f"INSERT INTO kept VALUES ({quote(name)}, {quote(c.hex())})" for name, c in KEPT_LEVELS.items()))
    copy("few", rows)
    each("ANALYZE few")


def test_modifiers():
    for label in FORMS:
        queries = {
            "plain": select(label),
            "no rows": select(label, where="WHERE false"),
            "FILTER": select(label, tail=" FILTER (WHERE g = 2)"),
            "FILTER of nothing": select(label, tail=" FILTER (WHERE false)"),
            "FILTER of nulls": select(label, tail=" FILTER (WHERE x IS NULL)"),
            "ORDER BY": select(label, order="g DESC, x NULLS FIRST, i"),
            "ORDER BY and FILTER": select(label, order="x DESC, l", where="WHERE g > 3"),
            "GROUP BY": select(label, where="GROUP BY g"),
            "HAVING": select(label, where=f"GROUP BY g, h HAVING # {FORMS[label][0] % ''}) > 3"),
            "ROLLUP": select(label, where="GROUP BY ROLLUP (g, h)"),
        }
        if "onto" not in label:  # its DISTINCT includes the counters
            queries["DISTINCT"] = select(label, modifier="DISTINCT ")
            queries["DISTINCT, GROUP BY"] = select(label, modifier="DISTINCT ", where="GROUP BY h")
        results = each(*queries.values())
        check_rows(sum(results, []), f"{label}, {', '.join(queries)}")


def test_grouping_sets():
    ways = {
        "hashed": "SET enable_sort = off;", "sorted": "SET enable_hashagg = off;", "mixed": "", "spilled": TO_SPILL
    }  # fmt: skip
    queries = [
        select(label, where=f"GROUP BY {by}")
        for label in FORMS
        for by in ("CUBE (g, h)", "GROUPING SETS ((), ())")
    ]
    for way, settings in ways.items():
        check_rows(sum(each(*queries, settings=settings), []), f"grouping sets, {way}", len(FORMS) * (28 + 2))


FRAMES = (
    "ORDER BY i", "ORDER BY g", "PARTITION BY h ORDER BY i", "",
    "ORDER BY i ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING",
    "ORDER BY i ROWS BETWEEN 30 PRECEDING AND 4 PRECEDING",
    "ORDER BY i ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ORDER BY i RANGE BETWEEN 10 PRECEDING AND 10 FOLLOWING EXCLUDE CURRENT ROW",
    "ORDER BY g GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES",
)  # fmt: skip


def test_windows():
    """Every row's counter is that of the rows in its frame, also where the start of the frame moves and rows leave it.
    It stays so when later rows are added to the state: a second query keeps all rows and reads them in the end."""
    for label in (label for label in FORMS if "rate" not in label and "both" not in label):
        queries = []
        for frame in FRAMES:
            direct = select(label, tail=f" OVER ({frame})")
            queries += [direct, f"""
                SELECT '{label}', counters[n], items[n] FROM generate_series(1, 120) AS n,
                    (SELECT array_agg(c) AS counters, array_agg(coalesce(a::text, '')) AS items
                    FROM ({direct}) AS w (label, c, a)) AS v"""]  # fmt: skip
        results = each(*queries)
        check_rows(sum(results, []), f"{label}, windows", 120 * len(queries))
        late = [sorted(kept) == sorted(direct) for direct, kept in zip(results[::2], results[1::2])]
        ok(all(late), f"{label}, windows that keep all rows")


def test_windows_of_counters():
    """bloom_sum_agg and bloom_union_agg over frames, some of them empty."""
    each("""CREATE TABLE days AS
        SELECT n, (SELECT bloom_counter_agg(x % 50, 60) FROM generate_series(n % 5 + 1, n * n / 8) AS x) AS c
        FROM generate_series(1, 40) AS n WHERE n * n / 8 > n % 5""")
    stored = {n: decode(text) for n, text in (line.split("|") for line in ask("SELECT n, c FROM days"))}
    for frame in ("ORDER BY n", "ORDER BY n ROWS BETWEEN 6 PRECEDING AND CURRENT ROW",
                  "ORDER BY n ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW",
                  "ORDER BY n ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING",
                  "ORDER BY n % 4 GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES"):  # fmt: skip
        query = f"""SELECT bloom_sum_agg(c) OVER w AS s, bloom_union_agg(c) OVER w AS u, array_agg(n) OVER w AS a
            FROM days WINDOW w AS ({frame})"""
        lines, wrong = ask(query), []
        late = ask(f"""SELECT sums[n], unions[n], members[n] FROM generate_series(1, {len(stored)}) AS n,
            (SELECT array_agg(s) AS sums, array_agg(u) AS unions, array_agg(coalesce(a::text, '')) AS members
            FROM ({query}) AS w) AS v""")
        same(sorted(late), sorted(lines), f"sums and unions OVER ({frame}), kept")
        for line in lines:
            total, union, members = line.split("|")
            members = [stored[n] for n in members[1:-1].split(",") if n]
            for got, operation in ((total, counters.plus), (union, counters.union)):
                want = functools.reduce(operation, members) if members else counters.unsized()
                if got != want.hex():
                    wrong.append(f"{line[:300]}: expected {want.hex()[:300]}")
        ok(len(lines) == len(stored) and not wrong, f"sums and unions OVER ({frame})", len(wrong), *wrong[:3])


def decode(text):
    return counters.decode(bytes.fromhex(text[2:]))


# One result by every plan

GROUPS, ROWS = 12, 150_000
BY_PLAN = [label for label in FORMS if label != "level, rate"]


def make_numbers():
    """Rows whose values follow Zipf's law, so that some saturate, in two partitions."""
    rng, rows = random.Random("numbers"), []
    for i in range(ROWS):
        x = int(20_000 ** rng.random())
        rows.append((i % 2, rng.randrange(GROUPS), x, 1 + int(15 * rng.random() ** 9)))
    each(
        "CREATE TABLE numbers (part int, g int, x bigint, l int) PARTITION BY LIST (part)",
        "CREATE TABLE numbers_0 PARTITION OF numbers FOR VALUES IN (0) WITH (parallel_workers = 2)",
        "CREATE TABLE numbers_1 PARTITION OF numbers FOR VALUES IN (1) WITH (parallel_workers = 2)",
    )
    copy("numbers", ([str(field) for field in row] for row in rows))
    each("ANALYZE numbers", "ANALYZE numbers_0", "ANALYZE numbers_1")
    return rows


def digests_by_group(rows):
    """The digest of each label and group, by the model."""
    items = collections.defaultdict(lambda: (collections.Counter(), collections.Counter()))
    for _, g, x, level in rows:
        counts, levels = items[g]
        counts[x] += 1
        levels[x] = max(levels[x], level)
    want = {}
    for label in BY_PLAN:
        _, base, raising = FORMS[label]
        for g, both in items.items():
            numbers = {hash_of(x, base.seed): min(base.limit, number) for x, number in both[raising].items()}
            want[f"{label}|{g}"] = counters.sha256(gathered(base, numbers, raising))
    return want


def by_group(label, source="numbers"):
    digest = f"encode(sha256(({FORMS[label][0] % ''}))::bytea), 'hex')"
    return f"SELECT '{label}', g, {digest} FROM {source} GROUP BY g"


WORKERS = PARALLEL + "SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = off;"
PLANS = {  # settings, and what the plan must have
    "serial, hashed": ("SET enable_sort = off;", [HASHED]),
    "serial, sorted": ("SET enable_hashagg = off;", [SORTED]),
    "parallel": (WORKERS, [FINAL, GATHER, PARTIAL]),
    "parallel, sorted": (WORKERS + "SET enable_hashagg = off;", [FINAL, GATHER, PARTIAL]),
    "partitionwise": (PARTITIONWISE, [FINAL, APPEND, PARTIAL]),
    "partitionwise, parallel": (PARTITIONWISE + WORKERS, [FINAL, GATHER, PARTIAL]),
    "in one worker": (forced_parallel, []),
}


def lower_costs():
    """Makes the planner split even small groups between workers."""
    each(*(
        f"ALTER FUNCTION bloom_counter_agg_{name} COST 1" for name in ("combine", "serialize", "deserialize")
    ))  # fmt: skip


def test_plans():
    want = digests_by_group(make_numbers())
    lower_costs()
    for plan, (settings, nodes) in PLANS.items():
        settings = settings() if callable(settings) else settings
        results = {}
        for label in BY_PLAN:
            got_nodes, lines = explained(by_group(label), settings)
            if nodes and (label in BY_PLAN[:1] or "level onto dense" in label):
                check_plan(got_nodes, nodes, f"{plan}, {label}")
            results |= answers(lines)
        same_answers(results, want, f"{plan}: {len(BY_PLAN)} calls, {GROUPS} groups, as the model")


def test_spilled():
    """Many groups, of which some are written to disk."""
    each("""CREATE TABLE many AS
        SELECT x % 9000 AS g, x / 7 % 5000 AS x, 1 + x % 15 AS l FROM generate_series(1, 40000) AS x""",
         "ANALYZE many")  # fmt: skip
    for label in ("count, self", "count, items", "count onto sparse", "level, self", "level, both", "level onto dense"):
        query = by_group(label, "(SELECT g::int, x, l::int FROM many) AS m")
        with Session(TO_SPILL) as one:
            nodes, lines = one.explain(query, ANALYZE), one.ask(query)
        ok(spills(nodes), f"{label}: 9000 groups are spilled")
        items = collections.defaultdict(list)
        for x in range(1, 40001):
            items[x % 9000].append(f"{x // 7 % 5000}:{1 + x % 15}" if FORMS[label][2] else str(x // 7 % 5000))
        want = {f"{label}|{g}": counters.sha256(wanted(label, some)) for g, some in items.items()}
        same_answers(answers(lines), want, f"{label}: spilled, as the model")


def test_sums_by_plan():
    """bloom_sum_agg and bloom_union_agg of stored counters."""
    each("""CREATE TABLE hours WITH (parallel_workers = 2) AS
        SELECT g, n, (SELECT bloom_counter_agg(x * g % (7 * n), 300) FROM generate_series(1, n) AS x) AS c
        FROM generate_series(1, 7) AS g, generate_series(1, 60) AS n""", "ANALYZE hours")  # fmt: skip
    stored = collections.defaultdict(list)
    for line in ask("SELECT g, c FROM hours"):
        g, text = line.split("|")
        stored[g].append(decode(text))
    query = "SELECT g, encode(sha256(%s(c)::bytea), 'hex') FROM hours GROUP BY g"
    for aggregate, operation in (("bloom_sum_agg", counters.plus), ("bloom_union_agg", counters.union)):
        want = {g: counters.sha256(functools.reduce(operation, members)) for g, members in stored.items()}
        for plan in ("serial, hashed", "serial, sorted", "parallel"):
            settings, nodes = PLANS[plan]
            got_nodes, lines = explained(query % aggregate, settings)
            check_plan(got_nodes, nodes, f"{aggregate}, {plan}")
            same_answers(answers(lines), want, f"{aggregate}, {plan}: as the model")
    empty = counters.unsized().hex()
    same(ask("SELECT bloom_sum_agg(c), bloom_union_agg(c) FROM hours WHERE g = 0"), [f"{empty}|{empty}"],
         "sums and unions over no rows")  # fmt: skip
    same(ask("SELECT bloom_sum_agg(nullif(c, c)), bloom_union_agg(nullif(c, c)) FROM hours"), [f"{empty}|{empty}"],
         "sums and unions over nulls")  # fmt: skip


# Against bloom_agg and SQL

SIZES = (  # rows, distinct values, expected items, rate
    (1, 1, "1", 0.01), (1, 1, "1000", 0.01), (24, 24, "1", 0.01), (25, 25, "1", 0.01), (26, 26, "1", 0.01),
    (27, 27, "1", 0.01), (100, 100, "1000", 0.5), (300, 300, "1000", 0.3), (495, 495, "1000", 1e-3),
    (512, 512, "1000", 0.01), (513, 513, "1000", 0.01), (5000, 160, "1000", 0.01), (5000, 500, "1000", 0.01),
    (5000, 1000, "1000", 1e-9), (20_000, 20_000, "1000", 0.01), (60_000, 60_000, "60000", 1e-4),
    (100_000, 10, "1000000", 0.01), (200_000, 40_000, "1000000", 0.01), (200_000, 60_000, "1000000", 0.01),
    (1_000_000, 300_000, "1e6", 0.01), (2_000_000, 2_000_000, "2e6", 0.01), (2_000_000, 1_500_000, "2e6", 0.1),
    (1, 1, "NULL", 0.01), (25, 25, "NULL", 0.01), (26, 26, "NULL", 0.01), (60, 51, "NULL", 0.01),
    (60, 52, "NULL", 0.01), (5000, 1000, "NULL", 0.2), (10_000, 3000, "NULL", 1e-6), (300_000, 100_000, "NULL", 0.01),
    (1_500_000, 1_000_000, "NULL", 0.01),
)  # fmt: skip


def test_as_filters():
    """A counter is the filter of the same elements and parameters, byte for byte, once it is cast to one."""
    rows = ", ".join(f"({n}, {d}, {e}::float8, {p!r}::float8)" for n, d, e, p in SIZES)
    for kind, x in (("integers", "(i::bigint * 7919 % d)"), ("texts", "'user' || i % d")):
        few = "" if kind == "integers" else "WHERE n <= 100000"
        lines = ask(f"""
            SELECT n, d, e, p, c::bloomfilter::bytea = f::bytea AND bloom_at_least(c, 1)::bytea = f::bytea
                AND v::bloomfilter::bytea = f::bytea
            FROM (VALUES {rows}) AS s (n, d, e, p), LATERAL (
                SELECT bloom_counter_agg(x, e, p) AS c, bloom_level_agg(x, 1 + i % 15, e, p) AS v,
                    bloom_agg(x, e, p) AS f
                FROM (SELECT {x} AS x, i FROM generate_series(1, n) AS i OFFSET 0) AS t) AS b {few}""")
        wrong = [line for line in lines if not line.endswith("|t")]
        ok(len(lines) > 20 and not wrong, f"{len(lines)} counters of {kind} as filters are those of bloom_agg", *wrong)
    same(ask("""SELECT bloom_counter_agg(x)::bloomfilter::bytea = bloom_agg(x)::bytea,
            bloom_counter_agg(x, 9)::bloomfilter::bytea = bloom_agg(x, 9)::bytea
        FROM (SELECT 1 AS x WHERE false) AS s"""), ["t|t"], "so they are over no rows")  # fmt: skip


def test_thresholds():
    """bloom_at_least and bloom_count against count(*) and max(), sparse and dense, at all widths."""
    each("SELECT setseed(0.5)",
         """CREATE TABLE zipf AS
        SELECT floor(3000 ^ random())::int AS x, 1 + floor(15 * random() ^ 4)::int AS l
        FROM generate_series(1, 20000)""",
         "CREATE TABLE truth AS SELECT x, count(*) AS n, max(l) AS l FROM zipf GROUP BY x")  # fmt: skip
    for width, limit in ((4, 15), (8, 255), (16, 65535)):
        for items in (100_000, 1500, 300):
            number = f"least(n, {limit})"
            checks = {
                "never below count(*)": f"bloom_count(c, x) >= {number}",
                "levels never below max()": "bloom_count(v, x) >= l",
                "found": "c @> x AND v @> x",
            }
            if items == 100_000:
                checks["as count(*)"] = f"bloom_count(c, x) = {number}"
                checks["levels as max()"] = "bloom_count(v, x) = l"
            sums = ", ".join(f"count(*) FILTER (WHERE ({check}) IS NOT TRUE)" for check in checks.values())
            made = f"""(SELECT bloom_counter_agg(x, (SELECT bloom_create_counter({items}, 0.01, {width}))) AS c,
                bloom_level_agg(x, l, (SELECT bloom_create_counter({items}, 0.01, {width}))) AS v FROM zipf) AS m"""
            (line,) = ask(f"SELECT {sums} FROM truth, {made}")
            same(line, "|".join("0" for _ in checks), f"{width} bits for {items} items: {', '.join(checks)}")
            if items != 100_000:
                continue
            lines = ask(f"""
                SELECT k FROM generate_series(1, {min(limit, 300)}) AS k, {made}, LATERAL (
                    SELECT bloom_agg(x, {items}) FILTER (WHERE {number} >= k) AS f,
                        bloom_agg(x, {items}) FILTER (WHERE l >= k) AS g, max({number}) AS n, max(l) AS l
                    FROM truth) AS t,
                    LATERAL (SELECT bloom_at_least(c, k) AS counted, bloom_at_least(v, k) AS levelled) AS a
                WHERE (CASE WHEN k <= n THEN counted::bytea = f::bytea ELSE # counted = 0 END
                    AND CASE WHEN k <= l THEN levelled::bytea = g::bytea ELSE # levelled = 0 END) IS NOT TRUE""")
            same(lines, [], f"{width} bits, sparse: bloom_at_least is bloom_agg of the values that occur so often")


# What is refused, and nulls

CHANGING = {
    "items": "SELECT bloom_counter_agg(x, items) FROM unlike",
    "rate": "SELECT bloom_counter_agg(x, 100, rate) FROM unlike",
    "rate, self-sized": "SELECT bloom_counter_agg(x, NULL, rate) FROM unlike",
    "items or none": "SELECT bloom_counter_agg(x, nullif(items, 100)) FROM unlike",
    "none or items": "SELECT bloom_counter_agg(x, nullif(items, 1000)) FROM unlike",
    "levels, items": "SELECT bloom_level_agg(x, 1, items) FROM unlike",
    "levels, rate": "SELECT bloom_level_agg(x, 1, 100, rate) FROM unlike",
    "counters of two sizes": "SELECT bloom_counter_agg(x, bloom_create_counter(items)) FROM unlike",
    "counters of two widths": "SELECT bloom_counter_agg(x, bloom_create_counter(9, 0.01, 4 + 4 * part)) FROM unlike",
    "levels, counters of two sizes": "SELECT bloom_level_agg(x, 1, bloom_create_counter(items)) FROM unlike",
}
REFUSED = {
    "SELECT bloom_counter_agg(x, 10, NULL) FROM few": "22004",
    "SELECT bloom_level_agg(x, l, 10, NULL) FROM few": "22004",
    "SELECT bloom_counter_agg(x, 0) FROM few": "22023",
    "SELECT bloom_counter_agg(x, 10, 0.6) FROM few": "22023",
    "SELECT bloom_level_agg(x, l, 'NaN'::float8) FROM few": "22023",
    "SELECT bloom_counter_agg(x, 1e12) FROM few": "54000",
    "SELECT bloom_level_agg(x, l, 1e12) FROM few": "54000",
    "SELECT bloom_counter_agg(x, 55e6) FROM few": "54000",
    "SELECT bloom_level_agg(x, NULL) FROM few": "22004",
    "SELECT bloom_level_agg(x, nullif(l, 7), 10) FROM few": "22004",
    "SELECT bloom_level_agg(x, nullif(l, 7), bloom_create_counter(10)) FROM few": "22004",
    "SELECT bloom_level_agg(x, 0) FROM few": "22003",
    "SELECT bloom_level_agg(x, -1, 10) FROM few": "22003",
    "SELECT bloom_level_agg(x, 16) FROM few": "22003",
    "SELECT bloom_level_agg(x, 16, 10) FROM few": "22003",
    "SELECT bloom_level_agg(x, 256, bloom_create_counter(10, 0.01, 8)) FROM few": "22003",
    "SELECT bloom_level_agg(x, 65536, bloom_create_counter(10, 0.01, 16)) FROM few": "22003",
    "SELECT bloom_counter_agg(x, bloom_add(bloom_create_counter(10), 'a'::text)) FROM few": "42804",
    "SELECT bloom_level_agg(x, l, bloom_add(bloom_create_counter(10), 'a'::text)) FROM few": "42804",
    "SELECT bloom_counter_agg('{}'::jsonb) FROM few": "0A000",
    "SELECT bloom_level_agg('{}'::jsonb, 1) FROM few": "0A000",
    "SELECT bloom_level_agg(x, 255, bloom_create_counter(10, 0.01, 8)) FROM few": "taken",
    "SELECT bloom_level_agg(x, 65535, bloom_create_counter(10, 0.01, 16)) FROM few": "taken",
    "SELECT bloom_level_agg(x, nullif(l, l)) FROM few WHERE x IS NULL": "taken",
    "SELECT bloom_level_agg(nullif(x, x), nullif(l, l), 10) FROM few": "taken",
}


def test_refused():
    each(
        """CREATE FUNCTION refusal(statement text) RETURNS text LANGUAGE plpgsql AS $$
        BEGIN EXECUTE statement; RETURN 'taken'; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $$""",
        "CREATE TABLE unlike (part int, x int, items bigint, rate float8) PARTITION BY LIST (part)",
        "CREATE TABLE unlike_0 PARTITION OF unlike FOR VALUES IN (0)",
        "CREATE TABLE unlike_1 PARTITION OF unlike FOR VALUES IN (1)",
        """INSERT INTO unlike
            SELECT i % 2, i, 100 + 900 * (i % 2), 0.01 + 0.1 * (i % 2) FROM generate_series(1, 500) AS i""",
        "ANALYZE unlike",
    )
    for name, query in CHANGING.items():
        for how, settings in (("serial", ""), ("combined", PARTITIONWISE)):
            same(ask(f"SELECT refusal({quote(query)})", settings), ["22023"], f"changing {name}, {how}: refused")
    for query, state in REFUSED.items():
        same(ask(f"SELECT refusal({quote(query)})"), [state], query)


def test_nulls():
    cases = {
        "bloom_counter_agg(x)": counters.unsized(),
        "bloom_counter_agg(x, NULL, 0.1)": counters.unsized(0.1),
        "bloom_counter_agg(x, 50)": counters.create(50),
        "bloom_counter_agg(x, 50, 0.1)": counters.create(50, 0.1),
        "bloom_level_agg(x, NULL)": counters.unsized(),
        "bloom_level_agg(x, 1, 50)": counters.create(50),
        "bloom_level_agg(x, NULL, 50, 0.1)": counters.create(50, 0.1),
        **{f"bloom_counter_agg(x{onto(name)})": c for name, c in KEPT_LEVELS.items()},
        **{f"bloom_level_agg(x, 1{onto(name)})": c for name, c in KEPT_LEVELS.items()},
        "bloom_counter_agg(x, NULL::bloomcounter)": counters.unsized(),
    }
    (got,) = ask(f"SELECT {', '.join(cases)} FROM (VALUES (NULL::int), (NULL)) AS v (x)")
    for call, text in zip(cases, got.split("|")):
        same(text, cases[call].hex(), f"{call} over nulls")
    calls = [call for call in cases if "kept" in call]
    same(ask(f"SELECT {', '.join(calls)} FROM (SELECT 1 AS x WHERE false) AS v"), ["|" * (len(calls) - 1)],
         "onto a counter, no rows give NULL")  # fmt: skip


run(make_few, test_modifiers, test_grouping_sets, test_windows, test_windows_of_counters, test_plans, test_spilled,
    test_sums_by_plan, test_as_filters, test_thresholds, test_refused, test_nulls)  # fmt: skip
