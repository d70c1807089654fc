#!/usr/bin/python3 -B
"""The recipes of doc/counting.md, from "One-hit wonders" on, on data of a few seconds.

Guarantees hold exactly. Rates are within 4 standard deviations of theory.
"""

import math
import random
import re
import time

from recipes import DOC, block
from session import Session, extension_schema, in_thread, run
from tap import note, ok, same
import counter_recipes as recipes

SIGMAS = 4


def check(figure):
    if isinstance(figure, recipes.Exact):
        same(figure.got, figure.expected, figure.name)
    elif isinstance(figure, recipes.Rate):
        got, p = figure.hits / figure.tries, figure.expected
        sigma = math.hypot(math.sqrt(p * (1 - p) / figure.tries), figure.spread)
        # One hit may always happen.
        ok(abs(got - p) <= SIGMAS * sigma + 1 / figure.tries,
           f"{figure.name}: {got:.3g} of {figure.tries}, expected {p:.3g} +- {sigma:.2g}")  # fmt: skip
    else:
        note(f"{figure.name}: {figure.value}")


def recipe(function, scale):
    def test():
        start = time.monotonic()
        with Session() as s:
            for figure in function(s, scale):
                check(figure)
        note(f"{function.__name__} took {time.monotonic() - start:.1f} s")

    test.__name__ = function.__name__
    return test


def tables():
    with Session() as s:
        s.rows(recipes.TABLES)


# The SQL of the document itself

def own_session():
    """A session whose tables are its own."""
    session = Session(f"SET search_path = pg_temp, {extension_schema()};")
    session.ask("CREATE TABLE recipes (name text PRIMARY KEY, c bloomcounter NOT NULL)")
    return session


def numbers_after_ticks(create, table, tick, name, next_number):
    """Compares a counter after each tick with a dictionary of the numbers. Some ticks come without a row."""
    randomness, numbers, wrong = random.Random(name), {}, []
    with own_session() as s:
        s.ask(block("counting.md", create) + f"; TRUNCATE {table}")
        for now in range(40):
            taken = [randomness.randrange(100) for _ in range(randomness.choice((0, 1, 60)))]
            if taken:
                s.ask(f"INSERT INTO {table} SELECT unnest(ARRAY{taken})")
            s.ask(block("counting.md", tick))
            numbers = {x: next_number(numbers.get(x, 0), taken.count(x)) for x in range(100)}
            got = s.rows(f"""SELECT x, bloom_count(c, x) FROM recipes, generate_series(0, 99) AS x
                WHERE name = '{name}' ORDER BY x""")
            wrong += [now] * ({int(x): int(number) for x, number in got} != numbers)
            wrong += [now] * (s.ask(f"SELECT count(*) FROM {table}") != ["0"])
    same(wrong, [], f"{name}: after each tick, a sparse counter has the exact numbers")


def ticks():
    numbers_after_ticks("CREATE TABLE events (session", "events", "bloom_decay(c) |", "live",
                        lambda left, seen: 11 if seen else max(left - 1, 0))  # fmt: skip
    numbers_after_ticks("CREATE TABLE request_log (client", "request_log", "bloom_decay(c, 10) +", "buckets",
                        lambda held, sent: min(max(held - 10, 0) + sent, 255))  # fmt: skip


def meeting(create, tick, name, raise_one, expected):
    """A tick that waits for a session which changes the same counter."""
    with Session() as first, Session() as second:
        first.ask(block("counting.md", create))
        first.each("BEGIN", raise_one)
        waiting = in_thread(second.attempt, block("counting.md", tick))
        while first.ask(f"SELECT {first.pid} = ANY (pg_blocking_pids({second.pid}))") != ["t"]:
            time.sleep(0.01)
        first.ask("COMMIT")
        same(waiting.result(60)[1], "00000", f"{name}: a tick waits for another session")
        got = first.ask(f"SELECT bloom_count(c, x) FROM recipes, unnest('{{-1,4711}}'::int[]) AS x WHERE name = '{name}'")
        same(got, expected, f"{name}: and loses neither its change nor the rows of the tick")
        first.ask(f"DELETE FROM recipes WHERE name = '{name}'")


def meetings():
    with Session() as s:
        s.ask("CREATE TABLE IF NOT EXISTS recipes (name text PRIMARY KEY, c bloomcounter NOT NULL)")
    meeting("CREATE TABLE events (session", "bloom_decay(c) |", "live",
            "UPDATE recipes SET c = bloom_raise(c, -1, 11) WHERE name = 'live'", ["10", "11"])  # fmt: skip
    meeting("CREATE TABLE request_log (client", "bloom_decay(c, 10) +", "buckets",
            "UPDATE recipes SET c = bloom_add(c, 4711, 25) WHERE name = 'buckets'", ["31", "15"])  # fmt: skip
    with Session() as s:
        s.ask("DROP TABLE events, request_log")


def lonely_node():
    with own_session() as s:
        s.ask(block("counting.md", "CREATE TABLE links", "CREATE TABLE nodes"))
        s.ask("INSERT INTO nodes SELECT 20, own, own FROM (SELECT bloom_level_agg(-1, 4, 600) AS own) AS n")
        s.ask(block("counting.md", "FOR round IN"))
        same(s.ask("SELECT c = own, bloom_count(c, -1) FROM nodes WHERE node = 20"), ["t|4"],
             "a node without neighbours keeps its own items")  # fmt: skip
        wrong = s.ask("""SELECT node, item FROM nodes, generate_series(0, 199) AS item,
            LATERAL (SELECT abs(node - item / 10) AS apart) AS a, LATERAL (SELECT least(apart, 20 - apart) AS hops) AS h
            WHERE node < 20 AND bloom_count(c, item) <> greatest(4 - hops, 0)""")
        same(wrong, [], "every node of a ring reads the distance of every item")


def no_rows():
    """What the document says that an aggregate is over no rows."""
    claims = re.findall(r"`(bloom_\w+_agg\b[^`]*)` over no rows is (`NULL`|an empty counter)",
                        " ".join((DOC / "counting.md").read_text().split()))  # fmt: skip
    ok(len(claims) >= 3, f"the document says it of {len(claims)} aggregates", claims)
    for call, answer in claims:
        given = call if "(" in call else call + "(c)"
        with Session() as s:
            got = s.ask(f"""SELECT {given} IS NULL
                FROM (SELECT bloom_create_counter(10), 1, 1, 1000) AS v (c, customer, value, n) WHERE false""")
        same(got, ["t" if answer == "`NULL`" else "f"], f"{call} over no rows is {answer}")


run(tables, ticks, meetings, lonely_node, no_rows,
    recipe(recipes.one_hit_wonders, 50000),
    recipe(recipes.time_to_live, 1500),
    recipe(recipes.rate_limits, 2000),
    recipe(recipes.several_sets, 100),
    recipe(recipes.attenuated, 250),
    recipe(recipes.counts, 50000))  # fmt: skip
