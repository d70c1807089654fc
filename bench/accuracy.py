#!/usr/bin/python3 -B
"""Rates and estimates of filters against theory, as CSV files in bench/results or the directory RESULTS.

The program that the variable ACCURACY names, bench/accuracy.c, measures over src/core; this one adds theory. Then it
repeats a random sample of the points in SQL, where every figure must be the same. Connects as psql does, to a database
with bloomtype in it. PROBES bounds the probes of one rate, 5e8 by default: with fewer the errors are larger.
"""
import csv
import os
import pathlib
import random
import subprocess
import sys
import time

import theory
from measure import Session

RESULTS = pathlib.Path(os.environ.get("RESULTS") or pathlib.Path(__file__).resolve().parent / "results")
SAMPLES = 30
SAMPLE_PROBES = 500000
SAMPLE_ELEMENTS = 1000000  # at most


def measured(*arguments):
    """The lines that accuracy.c prints. Shows on a terminal how many there are so far."""
    lines = []
    with subprocess.Popen([os.environ["ACCURACY"], *map(str, arguments)], text=True, stdout=subprocess.PIPE) as process:
        for line in process.stdout:
            lines.append(line)
            if sys.stderr.isatty():
                print("\r%s: %d lines\r" % (arguments[0], len(lines)), end="", file=sys.stderr, flush=True)
    if process.returncode != 0:
        sys.exit("%s ended with status %d" % (process.args, process.returncode))
    return lines


def rows_of(part):
    return list(csv.DictReader(measured(part, os.environ.get("PROBES", "5e8"))))


def write(name, rows):
    RESULTS.mkdir(parents=True, exist_ok=True)
    with open(RESULTS / (name + ".csv"), "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def digits(number):
    return "%.6g" % number


def expected_rate(row):
    return theory.rate(row["layout"], int(row["hashes"]), int(row["bits"]), int(row["elements"]))


def rate():
    rows = rows_of("rate")
    for row in rows:
        asked = float(row["rate_asked"])
        row["expected_rate"] = digits(expected_rate(row))
        row["rate_over_asked"] = digits(float(row["rate"]) / asked)
        row["standard_error_over_asked"] = "%.3g" % (float(row["rate_standard_error"]) / asked)
    return rows


def overfilled():
    rows = rows_of("overfilled")
    for row in rows:
        row["expected_rate"] = digits(expected_rate(row))
    return rows


def bits():
    rows = rows_of("bits")
    for row in rows:
        row["bits_per_element"] = digits(int(row["bits"]) / int(row["elements"]))
        for name, number in theory.bits_per_element(float(row["rate_asked"])).items():
            row[name + "_bits_per_element"] = digits(number)
    return rows


def expected_deviation(row):
    size = round(float(row["load_of_capacity"]) * int(row["capacity_elements"]))
    common = round(float(row["overlap_of_set"] or 1) * size)
    if row["estimate"] == "cardinality" and theory.is_sparse(size, int(row["bits"])):
        return 0
    estimates = theory.Estimates(row["layout"], int(row["hashes"]), int(row["bits"]))
    return estimates.deviation(row["estimate"], size, common)


def estimates():
    rows = rows_of("estimates")
    for row in rows:
        row["expected_standard_deviation"] = digits(expected_deviation(row))
    return rows


def make_filters(session, point, *ranges):
    """Filters of ranges of integers, one row for each."""
    session.ask("DROP TABLE IF EXISTS sample")
    session.ask("CREATE TEMP TABLE sample (id int, f bloomfilter)")
    for number, (first, last) in enumerate(ranges):
        session.ask("INSERT INTO sample SELECT %d, bloom_agg(i, bloom_create({capacity_elements}, {rate_asked}, "
                    "'{layout}', {seed})) FROM generate_series(%d::bigint, %d) AS i".format(**point)
                    % (number, first, last))  # fmt: skip


def figures(lines):
    """The numbers in the first line of a result of SQL or of accuracy.c."""
    return [float(number) for number in lines[0].replace("|", " ").split()]


def one_filter(session, point):
    """False positives, current rate and cardinality of one filter: from SQL, and from the core."""
    elements = int(point["elements"])
    make_filters(session, point, (1, elements))
    sql = session.ask("SELECT (SELECT count(*) FROM generate_series(%d::bigint, %d) AS i WHERE (SELECT f FROM sample) "
                      "@> i), bloom_fpp(f), # f FROM sample" % (elements + 1, elements + SAMPLE_PROBES))
    core = measured("point", point["layout"], point["capacity_elements"], point["rate_asked"], point["seed"], elements,
                    SAMPLE_PROBES)  # fmt: skip
    return ("false_positives", "bloom_fpp", "cardinality"), figures(sql), figures(core)


def two_filters(session, point):
    n = int(point["capacity_elements"])
    common = round(float(point["overlap_of_set"]) * n)
    make_filters(session, point, (1, n), (n - common + 1, 2 * n - common))
    sql = session.ask("SELECT bloom_union_cardinality(a.f, b.f), bloom_intersection_cardinality(a.f, b.f), "
                      "bloom_jaccard(a.f, b.f) FROM sample a, sample b WHERE a.id = 0 AND b.id = 1")
    core = measured("pair", point["layout"], n, point["rate_asked"], point["seed"], common)
    return ("union", "intersection", "jaccard"), figures(sql), figures(core)


def repeat_in_sql(rates, loads, pairs):
    """Some points of each file, each with one seed. SQL and the core must agree in every digit."""
    choice = random.Random(1970)
    session = Session("extra_float_digits = 3", "max_parallel_workers_per_gather = 0", "client_min_messages = warning")
    points = [dict(row, capacity_elements=row["elements"]) for row in rates if int(row["elements"]) <= SAMPLE_ELEMENTS]
    points = choice.sample(points, SAMPLES) + [
        dict(row, capacity_elements=100000) for row in choice.sample(loads, SAMPLES // 3)
    ]
    pairs = [dict(row, rate_asked=0.01) for row in pairs if row["estimate"] == "union"]
    rows = []
    for ask, sample in (one_filter, points), (two_filters, choice.sample(pairs, SAMPLES // 3)):
        for point in sample:
            point["seed"] = choice.randint(1, 10)
            for figure, sql, core in zip(*ask(session, point)):
                rows.append({
                    **{name: point[name] for name in ("layout", "rate_asked", "capacity_elements", "seed")},
                    "elements": point.get("elements", point["capacity_elements"]),
                    "overlap_of_set": point.get("overlap_of_set", ""),
                    "figure": figure, "probes": SAMPLE_PROBES if figure == "false_positives" else "",
                    "from_sql": "%.17g" % sql, "from_core": "%.17g" % core,
                })  # fmt: skip
    return rows


def main():
    tables = {}
    for part in bits, estimates, overfilled, rate:
        start = time.perf_counter()
        tables[part.__name__] = part()
        write(part.__name__, tables[part.__name__])
        print("%-20s %5d rows %5.0f s" % (part.__name__ + ".csv", len(tables[part.__name__]),
                                          time.perf_counter() - start), flush=True)  # fmt: skip
    worst = max(tables["rate"], key=lambda row: float(row["rate_over_asked"]))
    print("highest rate over the rate asked for: %(rate_over_asked)s, standard error %(standard_error_over_asked)s "
          "(%(layout)s, %(elements)s elements, rate %(rate_asked)s)" % worst)
    rows = repeat_in_sql(tables["rate"], tables["overfilled"], tables["estimates"])
    write("accuracy_sql", rows)
    different = sum(row["from_sql"] != row["from_core"] for row in rows)
    print("%d figures again in SQL: %d differ from those of the core" % (len(rows), different))
    sys.exit(different != 0)


if __name__ == "__main__":
    main()
