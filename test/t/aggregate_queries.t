#!/usr/bin/python3 -B
"""The aggregates wherever SQL has them: modifiers, grouping sets, windows, PL/pgSQL, prepared statements, cursors,
views. Each row has a label, a filter and the array of its elements, from which test/golden/reference.py computes what
the filter must be.
"""

import decimal
import functools
import random
import re
import struct

from aggregates import (PARTITIONWISE, APPEND, FINAL, PARTIAL, TO_SPILL, ask_one, check_plan, copy, created, onto,
                        run)
from session import Session, ask, each, hex_of, quote, value
from tap import ok, same, skip
import reference as ref
from vectors import series

CLASSIC = ref.build("classic", 0.02, series(1001, 1010), items=40, seed=9)
FORMS_ANYWHERE = {  # calls, and the filters that they add to
    "self": ("bloom_agg(%sx)", ref.empty()),
    "rate": ("bloom_agg(%sx, NULL, 0.1)", ref.empty(0.1)),
    "items": ("bloom_agg(%sx, 50)", created("blocked", 0.01, 50)),
    "both": ("bloom_agg(%sx, 1000, 0.2)", created("blocked", 0.2, 1000)),
    "onto": ("bloom_agg(%sx, (SELECT f FROM kept WHERE name = 'classic'))", CLASSIC),
}


def base_of(label):
    """The filter that an aggregate with this label adds to. A label is a form above, or has parameters."""
    if label in FORMS_ANYWHERE:
        return FORMS_ANYWHERE[label][1]
    kind, *numbers = label.split(":")
    if kind == "items":
        return created("blocked", 0.01, int(numbers[0]))
    if kind == "both":
        return created("blocked", float(numbers[1]), int(numbers[0]))
    assert kind == "rate"
    return ref.empty(float(numbers[0]))


@functools.lru_cache(None)
def filter_text(label, elements):
    """The result of bloom_agg over the rows of which array_agg gave these elements."""
    if elements == "":  # no rows, so bloom_agg does not see the filter to add to
        return "" if label == "onto" else hex_of(ref.empty())
    base = base_of(label)
    hashes = [ref.hash_of(ref.int8(int(x)), base.seed) for x in elements[1:-1].split(",") if x != "NULL"]
    return hex_of(onto(base, 20, hashes))


def check_rows(lines, name, expect=None):
    """Compares rows of a label, a filter, and the array of its elements."""
    wrong = []
    for line in lines:
        label, f, elements = line.split("|")
        want = filter_text(label, elements)
        if f != want:
            wrong.append(f"{label} over {elements}: got {f[:200]}, expected {want[:200]}")
    enough = lines and (expect is None or len(lines) == expect)
    ok(enough and not wrong, f"{name}: {len(lines)} rows", *wrong[:3])


def select(label, source="", tail="", modifier="", array=None, call=None):
    """The three columns that check_rows() wants."""
    call = (call or FORMS_ANYWHERE[label][0]) % modifier
    return f"SELECT '{label}', {call}{tail}, {array or f'array_agg({modifier}x)'}{tail} FROM {source or 'few'}"


def make_few():
    rng, rows = random.Random("aggregation"), []
    for i in range(120):
        x = None if rng.random() < 0.1 else rng.choice((rng.randrange(40), rng.getrandbits(50)))
        rows.append([str(i), str(rng.randrange(6)), str(rng.randrange(3)), None if x is None else str(x)])
    each("CREATE TABLE few (i int, g int, h int, x bigint)", "CREATE TABLE kept (name text, f bloomfilter)",
         f"INSERT INTO kept VALUES ('classic', {value(CLASSIC)})")  # fmt: skip
    copy("few", rows)
    each("ANALYZE few")


def select_ordered(label, order, distinct=""):
    """Ordered one way inside bloom_agg, another way for array_agg."""
    call = FORMS_ANYWHERE[label][0][:-1] + f" ORDER BY {order})"
    return select(label, call=call, modifier=distinct, array=f"array_agg({distinct}x ORDER BY x)")


def test_modifiers():
    for label, (call, _) in FORMS_ANYWHERE.items():
        queries = {
            "plain": select(label),
            "no rows": f"{select(label)} WHERE false",
            "FILTER": select(label, tail=" FILTER (WHERE g = 2)"),
            "FILTER of nothing": select(label, tail=" FILTER (WHERE false)"),
            "FILTER of nulls": select(label, tail=" FILTER (WHERE x IS NULL)"),
            "ORDER BY": select_ordered(label, "g DESC, x NULLS FIRST"),
            "ORDER BY and FILTER": f"{select_ordered(label, 'x DESC')} WHERE g > 3",
            "GROUP BY": f"{select(label)} GROUP BY g",
            "HAVING": f"{select(label)} GROUP BY g, h HAVING # {call % ''} > 3",
            "LATERAL": f"""SELECT s.* FROM (SELECT DISTINCT g FROM few) AS d,
                LATERAL ({select(label)} WHERE few.g <= d.g) AS s""",
        }
        if label != "onto":  # its DISTINCT and ORDER BY include the filters
            queries["DISTINCT"] = select(label, modifier="DISTINCT ")
            queries["DISTINCT, ORDER BY"] = select_ordered(label, "x DESC", "DISTINCT ") + " WHERE x IS NOT NULL"
            if label != "self":  # all arguments must then be ordered by
                del queries["DISTINCT, ORDER BY"]
        for (name, query), lines in zip(queries.items(), each(*queries.values())):
            check_rows(lines, f"{label}, {name}")


def test_grouping_sets():
    ways = {
        "hashed": "SET enable_sort = off;",
        "sorted": "SET enable_hashagg = off;",
        "mixed": "",
        "spilled": TO_SPILL,
    }
    sets = {
        "GROUPING SETS ((g), (h), (g, h), ())": 6 + 3 + 18 + 1,
        "CUBE (g, h)": 6 + 3 + 18 + 1,
        "ROLLUP (h, g)": 3 + 18 + 1,
        "GROUPING SETS ((), ())": 2,
    }
    for way, settings in ways.items():
        queries = [f"{select(label)} GROUP BY {by}" for label in FORMS_ANYWHERE for by in sets]
        names = [(label, by) for label in FORMS_ANYWHERE for by in sets]
        for (label, by), lines in zip(names, each(*queries, settings=settings)):
            check_rows(lines, f"{label}, {by}, {way}", sets[by])
    query = f"{select('items')} GROUP BY CUBE (g, h)"
    with Session() as session:
        check_plan(session.explain(query), [{"Node Type": "Aggregate"}], "CUBE")


FRAMES = (
    "ORDER BY i", "ORDER BY g", "PARTITION BY h ORDER BY i", "",
    "ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ORDER BY i ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING",
    "ORDER BY i ROWS BETWEEN 6 PRECEDING AND 4 PRECEDING",
    "ORDER BY i ROWS BETWEEN 2 FOLLOWING AND 9 FOLLOWING",
    "ORDER BY i ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "ORDER BY i RANGE BETWEEN 10 PRECEDING AND 10 FOLLOWING",
    "ORDER BY g RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ORDER BY g GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "PARTITION BY h ORDER BY g GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
)  # fmt: skip
EXCLUSIONS = ("", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS")


def test_windows():
    """Every row's filter is that of the rows in its frame. It stays so when later rows are added to the state: a second
    query keeps all rows and reads them in the end."""
    for label in FORMS_ANYWHERE:
        for frame in FRAMES:
            exclusions = EXCLUSIONS if "BETWEEN" in frame else ("",)
            queries = []
            for exclusion in exclusions:
                direct = select(label, tail=f" OVER ({frame}{exclusion})")
                kept = f"""
                    SELECT '{label}', filters[n], elements[n] FROM generate_series(1, 120) AS n,
                        (SELECT array_agg(f) AS filters, array_agg(coalesce(a::text, '')) AS elements
                        FROM ({direct}) AS w (label, f, a)) AS v"""
                queries += [direct, kept]
            results = each(*queries)
            for exclusion, direct, late in zip(exclusions, results[::2], results[1::2]):
                name = f"{label} OVER ({frame}{exclusion})"
                check_rows(direct, name, 120)
                same(sorted(late), sorted(direct), f"{name}, kept")


def fault_of_window(union, intersection, members):
    filters = [ref.decode(bytes.fromhex(f)) for f in re.findall("x([0-9a-f]+)", members)]
    wanted = hex_of(ref.union_agg(filters) if filters else ref.empty())
    if union != wanted:
        return f"union of {members}: {union}, expected {wanted}"
    wanted = hex_of(functools.reduce(ref.intersect, filters)) if filters else ""
    return f"intersection of {members}: {intersection}, expected {wanted}" if intersection != wanted else None


def test_windows_of_filters():
    frames = ("ORDER BY n", "ORDER BY n ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW",
              "ORDER BY n % 4 GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES")  # fmt: skip
    each("""CREATE TABLE fills AS
        SELECT n, (SELECT bloom_agg(x, 1000) FROM generate_series(n % 5 + 1, n * n * n / 60) AS x) AS f
        FROM generate_series(1, 40) AS n""")
    for frame in frames:
        lines = ask(f"""SELECT bloom_union_agg(f) OVER w, bloom_intersect_agg(f) OVER w, array_agg(f) OVER w
            FROM fills WINDOW w AS ({frame})""")
        wrong = [fault for fault in (fault_of_window(*line.split("|")) for line in lines) if fault]
        name = f"bloom_union_agg and bloom_intersect_agg OVER ({frame})"
        ok(len(lines) == 40 and not wrong, name, *wrong[:3])


def test_side_by_side():
    """Several aggregates in one query, some of which share a state."""
    (line,) = ask("""
        SELECT count(*), count(x), bloom_agg(x), bloom_agg(x), bloom_agg(x, 50), bloom_agg(x, 50),
            bloom_agg(DISTINCT x), bloom_agg(x, NULL, 0.1), bloom_agg(x) FILTER (WHERE g > 2), bloom_agg(x),
            array_agg(x), array_agg(x) FILTER (WHERE g > 2) FROM few""")
    rows, values, *filters, elements, some = line.split("|")
    want = [filter_text(label, elements) for label in ("self", "self", "items", "items", "self", "rate")]
    want += [filter_text("self", some), filter_text("self", elements)]
    same((rows, filters), ("120", want), "several in one query, with count(*)")
    same(int(values), elements.count(",") + 1 - elements.count("NULL"), "count(x) beside it")


def make_state_of():
    """An aggregate whose result is the state, which it therefore shares with bloom_agg."""
    (x,) = ask_one("SELECT proargtypes[0]::regtype FROM pg_proc WHERE proname = 'bloom_agg' AND pronargs = 1")
    functions = "(SFUNC = bloom_agg_add, STYPE = internal, FINALFUNC = bloom_agg_serialize)"
    each(*(f"CREATE AGGREGATE state_of ({arguments}) {functions}" for arguments in (x, f"{x}, float8")))


def state_text(label, elements):
    hashes = sorted({ref.hash_of(ref.int8(int(x))) for x in elements[1:-1].split(",") if x != "NULL"})
    if label == "items":
        return hex_of(onto(base_of(label), 20, hashes))
    header = ref.HEADER.pack(1, 0, 3, 6, 20 if hashes else 0, ref.single(0.01), 0, 0)
    return "\\x" + (header + b"".join(struct.pack("<Q", h) for h in hashes)).hex()


def test_shared_state():
    make_state_of()
    queries = [
        f"SELECT {first}, {second}, array_agg(x) FROM few {group}"
        for arguments in ("x", "x, 50")
        for first, second in (
            (f"bloom_agg({arguments})", f"state_of({arguments})"),
            (f"state_of({arguments})", f"bloom_agg({arguments})"),
        )
        for group in ("", "GROUP BY g", "GROUP BY g, h", "WHERE x IS NULL", "WHERE g = 1")
    ]
    wrong = []
    for query, lines in zip(queries, each(*queries)):
        label = "items" if "50" in query else "self"
        for line in lines:
            *both, elements = line.split("|")
            state, f = both if query.startswith("SELECT state") else both[::-1]
            want = filter_text(label, elements), state_text(label, elements)
            if (f, state) != want:
                wrong.append(f"{query}: got {f[:300]}, state {state[:300]}, expected {want}")
    ok(not wrong, "a filter and its state by two aggregates that share the state", *wrong[:3])

    lines = ask("""
        SELECT state_of(x) OVER w, bloom_agg(x) OVER w, state_of(x) FILTER (WHERE true) OVER w,
            array_agg(x) OVER w FROM few WINDOW w AS (ORDER BY i)""")
    wrong = []
    for line in lines:
        before, f, after, elements = line.split("|")
        if before != after or f != filter_text("self", elements):
            wrong.append(line)
    ok(not wrong, "the same in a window", *wrong[:3])


LOOP = """
CREATE FUNCTION looped() RETURNS TABLE (label text, f bloomfilter, a bigint[]) LANGUAGE plpgsql AS $$
DECLARE
    r record;
    taken int := 0;
BEGIN
    FOR n IN 1 .. 60 LOOP
        label := 'self';
        SELECT bloom_agg(x), array_agg(x) INTO f, a FROM few WHERE i < n;
        RETURN NEXT;
        label := 'items:' || n;
        SELECT bloom_agg(x, n), array_agg(x) INTO f, a FROM few WHERE i < n;
        RETURN NEXT;
        label := 'both:' || n || ':0.1';
        f := (SELECT bloom_agg(x, n, 0.1) FROM few);
        a := (SELECT array_agg(x) FROM few);
        RETURN NEXT;
        label := 'rate:' || 0.5 / n;
        EXECUTE 'SELECT bloom_agg(x, NULL, $1), array_agg(x) FROM few WHERE g = $2'
            INTO f, a USING 0.5 / n, n % 6;
        RETURN NEXT;
        BEGIN  -- an aggregate that fails on the way
            PERFORM bloom_agg(x, CASE WHEN i < 50 THEN 10 ELSE 100000 END) FROM few;
            taken := taken + 1;
        EXCEPTION WHEN invalid_parameter_value THEN NULL;
        END;
        FOR r IN SELECT bloom_agg(x) AS f, array_agg(x) AS a FROM few GROUP BY g LIMIT 2 LOOP
            label := 'self'; f := r.f; a := r.a;
            RETURN NEXT;
        END LOOP;
    END LOOP;
    IF taken > 0 THEN RAISE 'other parameters within a group were taken'; END IF;
END $$"""
POLYMORPHIC = """
CREATE FUNCTION filter_of(VARIADIC x anyarray) RETURNS bloomfilter LANGUAGE plpgsql AS $$
BEGIN RETURN (SELECT bloom_agg(e) FROM unnest(x) AS e); END $$"""
SEVERAL_TYPES = {  # calls, and the elements of the filters
    "1, 2": ("bigint", (1, 2)),
    "'1'::text, '2'": ("text", ("1", "2")),
    "1::numeric, 2.0": ("numeric", (decimal.Decimal(1), decimal.Decimal(2))),
    "1::smallint, 2::smallint": ("smallint", (1, 2)),
    "true": ("boolean", (True,)),
}


def test_plpgsql():
    several = f"SELECT {', '.join(f'filter_of({arguments})' for arguments in SEVERAL_TYPES)}"
    *_, lines, (filters,) = each(LOOP, POLYMORPHIC, "SELECT * FROM looped()", several)
    check_rows(lines, "PL/pgSQL loops", 360)
    want = [
        ref.build_self_sized(0.01, [ref.element(sql_type, x) for x in values])
        for sql_type, values in SEVERAL_TYPES.values()
    ]
    same(filters.split("|"), [hex_of(f) for f in want], "PL/pgSQL with several types")


def test_prepared():
    prepare = """PREPARE q (bigint, float8, int) AS
        SELECT 'both:' || $1 || ':' || $2, bloom_agg(x, $1, $2), array_agg(x) FROM few WHERE g <> $3"""
    calls = [(items, rate, g) for items in (1, 10, 1000, 20) for rate in (0.01, 0.25) for g in (0, 5)]
    for mode in ("auto", "force_custom_plan", "force_generic_plan"):
        executions = [f"EXECUTE q ({items}, {rate}, {g})" for items, rate, g in calls]
        results = each(prepare, *executions, settings=f"SET plan_cache_mode = {mode};")
        check_rows(sum(results, []), f"prepared, {mode}", len(calls))
    results = each(
        "PREPARE q (float8) AS SELECT 'rate:' || $1, bloom_agg(x, NULL, $1), array_agg(x) FROM few GROUP BY g",
        *(f"EXECUTE q ({1 / n})" for n in range(2, 12)),
        settings="SET plan_cache_mode = force_generic_plan;",
    )
    check_rows(sum(results, []), "prepared, self-sized, generic", 60)


CURSORS_OF = ("self", "items", "onto")


def test_cursors():
    for label in CURSORS_OF:
        query = f"{select(label)} GROUP BY g"
        window = select(label, tail=" OVER (ORDER BY i ROWS BETWEEN 7 PRECEDING AND CURRENT ROW)")
        held = each(
            "BEGIN", f"DECLARE c SCROLL CURSOR WITH HOLD FOR {query}", "FETCH 2 FROM c", "COMMIT",
            "FETCH ALL FROM c", "FETCH BACKWARD 3 FROM c", "CLOSE c",
        )  # fmt: skip
        check_rows(sum(held, []), f"{label}, WITH HOLD cursor", 9)
        scrolled = each(
            "BEGIN", f"DECLARE c SCROLL CURSOR FOR {window}", "FETCH 50 FROM c", "FETCH BACKWARD 20 FROM c",
            "FETCH FORWARD 60 FROM c", "FETCH ABSOLUTE 1 FROM c", "COMMIT",
        )  # fmt: skip
        check_rows(sum(scrolled, []), f"{label}, SCROLL cursor on a window", 131)
        by_turns = each(
            "BEGIN", f"DECLARE a CURSOR FOR {window}", f"DECLARE b CURSOR FOR {query}", "FETCH 5 FROM a",
            "FETCH 2 FROM b", "FETCH 30 FROM a", "FETCH ALL FROM b", "FETCH ALL FROM a", "COMMIT",
        )  # fmt: skip
        check_rows(sum(by_turns, []), f"{label}, two cursors by turns", 126)


def test_materialized_views():
    for label in CURSORS_OF:
        view = f"""CREATE MATERIALIZED VIEW view_{label} AS SELECT g, s.* FROM (SELECT DISTINCT g FROM few) AS d,
            LATERAL ({select(label)} WHERE few.g = d.g) AS s (label, f, a)"""
        read = f"SELECT label, f, a FROM view_{label}"
        results = each(
            view, read, "INSERT INTO few SELECT i + 1000, g, h, x + 100 FROM few WHERE i < 20",
            f"REFRESH MATERIALIZED VIEW view_{label}", read, "DELETE FROM few WHERE i BETWEEN 1000 AND 1010",
            f"CREATE UNIQUE INDEX ON view_{label} (g)", f"REFRESH MATERIALIZED VIEW CONCURRENTLY view_{label}",
            read, "DELETE FROM few WHERE i >= 1000",
        )  # fmt: skip
        one, two, three = results[1], results[4], results[8]
        check_rows(one, f"{label}, materialized view", 6)
        check_rows(two, f"{label}, refreshed", 6)
        check_rows(three, f"{label}, refreshed concurrently", 6)
        ok(len({*map(str, (one, two, three))}) == 3, f"{label}, and changed each time")


def test_upsert():
    lines = each(
        "CREATE TABLE totals (g int PRIMARY KEY, f bloomfilter)",
        *(
            f"INSERT INTO totals SELECT g, bloom_agg(x, 50) FROM few WHERE i % 4 = {n} GROUP BY g "
            "ON CONFLICT (g) DO UPDATE SET f = totals.f | excluded.f"
            for n in range(4)
        ),
        "UPDATE totals SET f = (SELECT bloom_agg(x, totals.f) FROM few WHERE few.g = totals.g)",
        "SELECT 'items', f, (SELECT array_agg(x) FROM few WHERE few.g = totals.g) FROM totals",
    )[-1]
    check_rows(lines, "upserts, and an update with a correlated subquery", 6)


CHANGING = {
    "items": "SELECT bloom_agg(x, items) FROM unlike",
    "rate": "SELECT bloom_agg(x, 100, rate) FROM unlike",
    "rate, self-sized": "SELECT bloom_agg(x, NULL, rate) FROM unlike",
    "items or none": "SELECT bloom_agg(x, nullif(items, 100)) FROM unlike",
    "none or items": "SELECT bloom_agg(x, nullif(items, 1000)) FROM unlike",
}


def test_changing_parameters():
    """All rows of a group must have the same parameters, also rows that different processes see."""
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
    with Session(PARTITIONWISE) as session:
        check_plan(session.explain(CHANGING["items"]), [FINAL, APPEND, PARTIAL], "changing parameters")
    for name, query in CHANGING.items():
        for how, settings in (("serial", ""), ("combined", PARTITIONWISE)):
            answer = ask(f"SELECT refusal({quote(query)})", settings)
            same(answer, ["22023"], f"changing {name}, {how}: refused")


def test_compiled():
    """With expressions compiled to machine code, where the server can."""
    if ask("SELECT pg_jit_available()", "SET jit = on") != ["t"]:
        skip("JIT", "not available")
        return
    costs = ("jit_above_cost", "jit_inline_above_cost", "jit_optimize_above_cost")
    settings = "SET jit = on;" + "".join(f"SET {cost} = 0;" for cost in costs)
    for label in ("self", "items"):
        queries = f"{select(label)} GROUP BY CUBE (g, h)", select(label, tail=" OVER (ORDER BY i)")
        grouped, window = each(*queries, settings=settings)
        check_rows(grouped, f"{label}, CUBE, JIT", 28)
        check_rows(window, f"{label}, window, JIT", 120)


run(make_few, test_modifiers, test_grouping_sets, test_windows, test_windows_of_filters, test_side_by_side,
    test_shared_state, test_plpgsql, test_prepared, test_cursors, test_materialized_views, test_upsert,
    test_changing_parameters, test_compiled)  # fmt: skip
