#!/usr/bin/python3 -B
"""The recipes of doc/counting.md, from "One-hit wonders" on, on data of a few seconds.

Guarantees hold exactly. Rates are within 4 standard deviations of theory.
"""

import math
import time

from session import Session, run
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


run(tables,
    recipe(recipes.one_hit_wonders, 50000),
    recipe(recipes.time_to_live, 1500),
    recipe(recipes.rate_limits, 2000),
    recipe(recipes.several_sets, 100),
    recipe(recipes.attenuated, 250),
    recipe(recipes.counts, 50000))  # fmt: skip
