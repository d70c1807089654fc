#!/usr/bin/python3
"""The figures of the recipes in doc/counting.md, from "One-hit wonders" on.

Connects as psql does, to an empty database with bloomtype in it. Runs the recipes of test/t/counter_recipes.py on
larger data, prints what they find beside what theory expects, and compares the time of a probe in a counter with that
in the filters that could replace it. Takes some minutes.
"""
import math
import statistics

from measure import Session
import counter_recipes as recipes

PAIRS = 5
SCALES = {
    recipes.one_hit_wonders: 200000,
    recipes.time_to_live: 10000,
    recipes.rate_limits: 40000,
    recipes.several_sets: 250,
    recipes.attenuated: 1000,
    recipes.counts: 1000000,
}

# Probes of elements that are absent: the counter, and the filters. Each table has one row.
TWO_FILTERS = "CREATE TABLE last_two AS SELECT f, older FROM rotated WHERE tick = 40"
ELEVEN_FILTERS = "CREATE TABLE last_slots AS SELECT " + ", ".join(
    f"(SELECT f FROM slots WHERE tick = {tick}) AS f{tick}" for tick in range(30, 41))
THREE_FILTERS = "CREATE TABLE three AS SELECT " + ", ".join(
    f"(SELECT f FROM zone_filters WHERE zone = {zone}) AS f{zone}" for zone in (1, 2, 3))
ABSENT = "FROM generate_series(-1000000, -1) AS i, "
LIVE = f"SELECT count(*) FILTER (WHERE c @> i) {ABSENT} recipes WHERE name = 'live'"
ZONE = f"SELECT sum(bloom_count(c, i)) {ABSENT} recipes WHERE name = 'zones'"
PROBES = {
    recipes.time_to_live: (
        ("a probe of two filters : of the counter", TWO_FILTERS, LIVE,
         f"SELECT count(*) FILTER (WHERE f @> i OR older @> i) {ABSENT} last_two"),
        ("a probe of eleven filters : of the counter", ELEVEN_FILTERS, LIVE,
         "SELECT count(*) FILTER (WHERE " + " OR ".join(f"f{tick} @> i" for tick in range(30, 41)) +
         f") {ABSENT} last_slots"),
    ),
    recipes.several_sets: (
        ("a probe of three filters : of the counter", THREE_FILTERS, ZONE,
         f"SELECT sum(CASE WHEN f3 @> i THEN 3 WHEN f2 @> i THEN 2 WHEN f1 @> i THEN 1 ELSE 0 END) {ABSENT} three"),
    ),
}  # fmt: skip


def show(figure):
    if isinstance(figure, recipes.Exact):
        line = "as guaranteed" if figure.got == figure.expected else f"MISSED: {figure.got!r}, not {figure.expected!r}"
    elif isinstance(figure, recipes.Rate):
        got, p = figure.hits / figure.tries, figure.expected
        sigma = math.hypot(math.sqrt(p * (1 - p) / figure.tries), figure.spread)
        line = f"{got:.3g}   expected {p:.3g} +- {sigma:.2g}   ({figure.hits} of {figure.tries})"
    else:
        line = figure.value
    print(f"{figure.name:76} {line}", flush=True)


def compare(session, name, setup, base, work):
    session.ask(setup)
    session.ask(base), session.ask(work)  # warm up
    ratios = sorted(1 / session.cpu_seconds(base) * session.cpu_seconds(work) for _ in range(PAIRS))
    print(f"{name + ', CPU time, min/med/max':76} "
          f"{ratios[0]:.2f} {statistics.median(ratios):.2f} {ratios[-1]:.2f}", flush=True)  # fmt: skip


def main():
    session = Session("max_parallel_workers_per_gather = 0", "jit = off")
    session.ask(recipes.TABLES)
    for recipe, scale in SCALES.items():
        print(f"\n{recipe.__name__}({scale})", flush=True)
        for figure in recipe(session, scale):
            show(figure)
        for probe in PROBES.get(recipe, ()):
            compare(session, *probe)


main()
