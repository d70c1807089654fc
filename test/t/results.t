#!/usr/bin/python3 -B
"""The measurements in bench/results that the documents and pictures show: each file has its columns and all its points,
the figures obey theory, and the pictures in doc/images are drawn from files that are there. Prints TAP; needs no
server. script/bench accuracy measures, script/dev/pictures draws.
"""

import csv
import itertools
import math
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

from tap import done, ok, part, same

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench/results"
sys.path.insert(1, str(ROOT / "bench"))
import theory  # noqa: E402

SIGMAS = 4
LAYOUTS = "blocked", "classic"
COLUMNS = {
    "rate": "layout rate_asked elements hashes bits representation filters probes false_positives rate "
            "rate_standard_error expected_rate rate_over_asked standard_error_over_asked",
    "overfilled": "layout rate_asked capacity_elements hashes bits load_of_capacity elements representation filters "
                  "probes rate rate_standard_error bloom_fpp expected_rate",
    "bits": "layout elements rate_asked hashes bits bits_per_element bound_bits_per_element "
            "classic_formula_bits_per_element cuckoo_bits_per_element xor_bits_per_element",
    "estimates": "estimate layout capacity_elements hashes bits load_of_capacity overlap_of_set filters truth mean "
                 "standard_deviation expected_standard_deviation",
    "accuracy_sql": "layout rate_asked capacity_elements seed elements overlap_of_set figure probes from_sql from_core",
    "machine": "name bytes",
    "joins": "case metric median low high goal verdict",
    "peers_*": "case peer elements metric unit minimum median maximum ratio_minimum ratio_median ratio_maximum",
}  # fmt: skip
SVG = "{http://www.w3.org/2000/svg}"


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def rows_of(name):
    with open(RESULTS / (name + ".csv"), newline="") as file:
        return [{column: number(field) for column, field in row.items()} for row in csv.DictReader(file)]


def shown(row):
    return " ".join(f"{name}={field}" for name, field in row.items())


def none(wrong, name):
    """Passes if the list of wrong rows is empty."""
    return ok(not wrong, name, *map(shown, wrong[:3]), f"{len(wrong)} rows")


def columns():
    for path in sorted(RESULTS.glob("*.csv")):
        name = re.sub(r"^peers_.*", "peers_*", path.stem)
        with open(path, newline="") as file:
            header, *rows = csv.reader(file)
        same(header, COLUMNS.get(name, "").split(), f"columns of {path.name}")
        ok(rows and all(len(row) == len(header) for row in rows), f"{path.name} has {len(rows)} complete rows")


def standard_error(row):
    """At least that of the rate that theory expects: of no false positive at all, none can be told."""
    return max(row["rate_standard_error"], math.sqrt(row["expected_rate"] / row["probes"]))


def rate():
    rows = rows_of("rate")
    steps = sorted({10**decade * step for decade in range(8) for step in (1, 2, 5) if 10**decade * step <= 10**7})
    rates = [10.0**-decade for decade in range(1, 7)]
    same([(row["layout"], row["rate_asked"], row["elements"]) for row in rows],
         list(itertools.product(LAYOUTS, rates, steps)), "rate.csv has all points")  # fmt: skip
    none([row for row in rows if row["rate_over_asked"] > 1 + SIGMAS * row["standard_error_over_asked"]],
         "no rate is above the one asked for")  # fmt: skip
    none([row for row in rows if row["expected_rate"] > row["rate_asked"] * (1 + 1e-6)],
         "by theory, none is expected to be")  # fmt: skip
    none([row for row in rows if abs(row["rate"] - row["expected_rate"]) > SIGMAS * standard_error(row)],
         "every rate is the expected one")  # fmt: skip
    none([row for row in rows if math.sqrt(row["expected_rate"] / row["probes"]) > 0.05 * row["rate_asked"]],
         "there are enough probes for a standard error of 5 % of the rate asked for")  # fmt: skip
    none([row for row in rows if row["standard_error_over_asked"] > 0.1],
         "it is at most 10 % with the differences between filters")  # fmt: skip
    # those of large filters take longer
    small = [row for row in rows if row["elements"] <= 1000]
    again = [theory.rate(row["layout"], int(row["hashes"]), int(row["bits"]), int(row["elements"])) for row in small]
    none([row for row, expected in zip(small, again) if not math.isclose(row["expected_rate"], expected, rel_tol=1e-5)],
         "the expected rates are those of theory.py")  # fmt: skip


def overfilled():
    rows = rows_of("overfilled")
    for layout, asked in itertools.product(LAYOUTS, (0.01, 0.001)):
        loads = [row["load_of_capacity"] for row in rows if (row["layout"], row["rate_asked"]) == (layout, asked)]
        ok(loads and min(loads) <= 0.05 and 1 in loads and max(loads) == 4,
           f"overfilled.csv has loads of 0.05 to 4 of {layout} filters at {asked:g}", loads)  # fmt: skip
    none([row for row in rows if row["load_of_capacity"] <= 1
          and row["rate"] > row["rate_asked"] + SIGMAS * standard_error(row)],
         "no rate is above the one asked for up to the capacity")  # fmt: skip
    none([row for row in rows if abs(row["rate"] - row["expected_rate"]) > SIGMAS * standard_error(row)],
         "every rate is the expected one")  # fmt: skip
    none([row for row in rows if abs(row["bloom_fpp"] / row["expected_rate"] - 1) > 0.02],
         "bloom_fpp is within 2 % of the expected rate")  # fmt: skip


def bits():
    rows = rows_of("bits")
    same({(row["layout"], row["elements"]) for row in rows}, set(itertools.product(LAYOUTS, (100, 10000, 1000000))),
         "bits.csv has all sizes")  # fmt: skip
    none([row for row in rows if row["bits_per_element"] < row["bound_bits_per_element"]],
         "no filter is below the information bound")  # fmt: skip
    wrong = [row for row in rows if row["layout"] == "blocked" and
             row["bits"] != theory.reference.choose_m("blocked", row["rate_asked"], int(row["elements"]))]  # fmt: skip
    none(wrong, "the blocked sizes are those of reference.py")
    none([row for row in rows if row["layout"] == "classic" and row["elements"] == 1000000 and row["rate_asked"] < 0.2
          and not -0.001 < row["bits_per_element"] / row["classic_formula_bits_per_element"] - 1 < 0.04],
         "large classic filters take at most 4 % more bits than the classic formula")  # fmt: skip


def clamped(row):
    """Is an intersection so close to 0 that its estimate is often cut off there?"""
    return (row["estimate"] in ("intersection", "jaccard")
            and row["truth"] < SIGMAS * row["expected_standard_deviation"])  # fmt: skip


def estimates():
    rows = rows_of("estimates")
    pairs = set(itertools.product(("cardinality", "union", "intersection", "jaccard"), LAYOUTS, (1000, 10000, 100000)))
    same({(row["estimate"], row["layout"], row["capacity_elements"]) for row in rows}, pairs,
         "estimates.csv has all estimates")  # fmt: skip
    exact = [row for row in rows if row["expected_standard_deviation"] == 0]
    ok(exact, "some filters are sparse")
    none([row for row in exact if row["mean"] != row["truth"] or row["standard_deviation"] > 1e-12],
         "sparse filters know their cardinality, and equal filters that they are equal")  # fmt: skip
    rows = [row for row in rows if row["expected_standard_deviation"] > 0 and not clamped(row)]
    none([row for row in rows if abs(row["mean"] - row["truth"])
          > SIGMAS * row["expected_standard_deviation"] / math.sqrt(row["filters"])
          + row["expected_standard_deviation"] ** 2 / max(row["truth"], 1)], "no estimate is biased")  # fmt: skip
    # the standard deviation of n normal values has a relative error of 1 / sqrt(2 n)
    none([row for row in rows if abs(row["standard_deviation"] / row["expected_standard_deviation"] - 1)
          > SIGMAS / math.sqrt(2 * row["filters"]) + 0.02], "every standard deviation is the expected one")  # fmt: skip


def repeated_in_sql():
    rows = rows_of("accuracy_sql")
    figures = "false_positives", "bloom_fpp", "cardinality", "union", "intersection", "jaccard"
    same({row["figure"] for row in rows}, set(figures), "accuracy_sql.csv has all figures")
    none([row for row in rows if row["from_sql"] != row["from_core"]], "SQL and the core agree in every digit")
    found = sum(row["from_sql"] for row in rows if row["figure"] == "false_positives")
    ok(found > 1000, "SQL has found false positives", found)


def pictures():
    for script in sorted((ROOT / "bench/plots").glob("*.gp")):
        files = re.findall(r"'(\w+\.csv)'", script.read_text())
        picture = ROOT / "doc/images" / (script.stem + ".svg")
        if script.stem == "style" or not all((RESULTS / file).exists() for file in files):
            continue
        ok(files, f"{script.name} draws measurements")
        if not ok(picture.exists(), f"{picture.name} exists"):
            continue
        text = picture.read_text()
        root = xml.etree.ElementTree.fromstring(text)
        title = re.search(r"^# Title: (.*)", script.read_text(), re.M).group(1)
        same(root.findtext(SVG + "title"), title, f"{picture.name} has its title")
        ok("prefers-color-scheme:dark" in text, f"{picture.name} adapts to dark pages")
        colours = set(re.findall(r'(?:fill|stroke|color)="(rgb\([^"]*|black|white|#[0-9a-fA-F]{6})"', text))
        palette = re.findall(r"^\w+ +(#\w+)", (ROOT / "bench/plots/palette").read_text(), re.M)
        same(sorted(colours - set(palette)), [], f"{picture.name} has the colours of the palette only")
        ok(len(text) < 60000, f"{picture.name} is small", len(text))


def tables():
    """doc/peers.md has the tables that the measurements give."""
    run = subprocess.run([sys.executable, "-B", ROOT / "bench/peers/tables.py"], capture_output=True, text=True)
    page = (ROOT / "doc/peers.md").read_text()
    printed = run.stdout.strip().split("\n\n")
    ok(run.returncode == 0 and len(printed) > 1, "tables.py prints tables", run.stderr)
    for table in printed:
        ok("\n\n%s\n\n" % table in page, "peers.md has the table of " + table.split("|")[1].strip(), table)


for test in columns, rate, overfilled, bits, estimates, repeated_in_sql, pictures, tables:
    part(test)
done()
