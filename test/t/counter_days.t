#!/usr/bin/python3 -B
"""A counter of seven days that slides, by the SQL of doc/counting.md: each night it equals one that is counted from
the visits, as long as no number saturates.
"""

import recipes
from session import ask, run
from tap import ok, same

DAYS = 30
VISITS = 4000  # a day
VISITORS = 20000

SETUP = recipes.block("counting.md", "CREATE TABLE visits")
SLIDE = recipes.block("counting.md", "UPDATE visitors_of_week")
DROP = "DROP TABLE IF EXISTS visits, visitors_of_days, visitors_of_week;"


def setup(bits, capacity):
    """The tables of the document with more days, and counters of this width and capacity."""
    sql = SETUP.replace("generate_series(1, 8)", f"generate_series(1, {DAYS})").replace("5000", str(VISITS))
    return DROP + sql.replace("visitor, 10000, 0.01, 8", f"visitor, {capacity}, 0.01, {bits}")


def counted(last_day, bits, capacity):
    return f"""(SELECT bloom_counter_agg(visitor, bloom_create_counter({capacity}, 0.01, {bits}))
        FROM (SELECT DISTINCT day, visitor FROM visits WHERE day BETWEEN {last_day - 6} AND {last_day}) AS v)"""


def below(last_day):
    """The number of visitors whose days read less than the truth."""
    return ask(f"""SELECT count(*) FROM (SELECT visitor, count(DISTINCT day) AS days FROM visits
        WHERE day BETWEEN {last_day - 6} AND {last_day} GROUP BY visitor) AS v, visitors_of_week
        WHERE bloom_count(c, visitor) < days OR NOT c @> visitor""")  # fmt: skip


def test_exact():
    """8 bits; once sparse, once dense, each with the bytes of a counter of the rows."""
    for capacity, representation in (100000, "sparse"), (2500, "dense"):
        ask(setup(8, capacity))
        wrong = []
        for day in range(8, DAYS + 1):
            ask(SLIDE)
            got = ask(f"""SELECT last_day, c = {counted(day, 8, capacity)}, (bloom_info(c)).representation
                FROM visitors_of_week""")
            wrong += [got] * (got != [f"{day}|t|{representation}"]) + [(day, "below")] * (below(day) != ["0"])
        same(wrong, [], f"{representation}: on {DAYS - 7} days the counter equals one of the rows")
        ask(SLIDE)
        same(ask("SELECT last_day FROM visitors_of_week"), [str(DAYS)], "a day that is not there does not slide it")


def test_saturation():
    """4 bits: never below the truth, and exact again when the sum is made anew."""
    capacity = 2500
    ask(setup(4, capacity))
    saturated = "SELECT (bloom_info(c)).saturated FROM visitors_of_week"
    wrong = []
    for day in range(8, DAYS + 1):
        ask(SLIDE)
        wrong += [day] * (below(day) != ["0"])
        (lower,) = ask(f"""SELECT count(*) FROM visitors_of_week, {counted(day, 4, capacity)} AS v (counted),
            generate_series(1, 15) AS level
            WHERE bloom_at_least(c, level) | bloom_at_least(counted, level) <> bloom_at_least(c, level)""")
        wrong += [(day, lower)] * (lower != "0")
    same(wrong, [], f"4 bits: on {DAYS - 7} days no level is below that of the rows")
    before = int(ask(saturated)[0])
    ask(f"""UPDATE visitors_of_week SET c = (SELECT bloom_sum_agg(c) FROM visitors_of_days
        WHERE day BETWEEN {DAYS - 6} AND {DAYS})""")
    after = int(ask(saturated)[0])
    ok(before > after > 0, "saturated positions collect, and a new sum loses those of past weeks", before, after)
    equal = ask(f"SELECT c = {counted(DAYS, 4, capacity)} FROM visitors_of_week")
    same(equal, ["t"], "it equals a counter of the rows")


run(test_exact, test_saturation)
