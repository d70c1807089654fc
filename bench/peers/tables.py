#!/usr/bin/python3
"""Prints the tables of doc/peers.md from bench/results/peers_*.csv. No figure is printed if its repetitions differ
by more than five times, or if a time is not longer than the scan that it leaves out."""
import csv
import os

from results import DIRECTORY

PEERS = ("bloomfilter stored", "bloomfilter stored, 1e-6", "bloomfilter built by the query", "= ANY (array)",
         "hashed IN", "semi-join", "semi-join, work_mem 4 MB", "btree index", "hash index", "PL/Python set",
         "BRIN bloom", "contrib/bloom")  # fmt: skip
OUTSIDE = "bloomfilter in SQL", "bloomtype's core in C", "libbloom in C", "Python set", "clients/python"
KEYS = "seconds per key"
TIMES = (1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")
SIZES = (2**30, "GB"), (2**20, "MB"), (2**10, "kB"), (1, "bytes")
CODE = {"= ANY (array)": "`= ANY (array)`", "hashed IN": "hashed `IN`", "contrib/bloom": "`contrib/bloom`",
        "clients/python": "clients/python, without C"}  # fmt: skip
VARIES = "varies"
MOST_SPREAD = 5
CLAMPED = 0.1  # nanoseconds that membership.py gives a probe at least
LARGE = "hll, log2m 14"


def read(module):
    with open(os.path.join(DIRECTORY, "peers_%s.csv" % module), newline="") as file:
        return {(row["case"], row["peer"], int(row["elements"]), row["metric"]): row for row in csv.DictReader(file)}


def short(value, suffixes):
    """A value with two or three digits, in the unit of a list of (divisor, unit), largest first, that suits it."""
    divisor, unit = next((entry for entry in suffixes if value >= entry[0]), suffixes[-1])
    value /= divisor
    return ("%.0f %s" if value >= 20 else "%.1f %s" if value >= 2 else "%.2f %s") % (value, unit)


def scatters(row, prefix=""):
    return float(row[prefix + "maximum"]) > MOST_SPREAD * float(row[prefix + "minimum"])


def time(row, nanoseconds=1):
    if not row:
        return "–"
    if scatters(row) or row["metric"] == KEYS and float(row["minimum"]) <= CLAMPED:
        return VARIES
    return short(nanoseconds * float(row["median"]), TIMES)


def size(row):
    if not row:
        return "–"
    return short(float(row["median"]), SIZES) if float(row["median"]) else "0"


def number(text):
    value = float(text)
    if value >= 20:
        return "{:,.0f}".format(value)
    return "%.1f" % value if value >= 2 else "%.2f" % value if value >= 0.1 else "%.2g" % value


def ratio(row, prefix="ratio_"):
    if not row or not row["ratio_median"]:
        return "–"
    if scatters(row, prefix):
        return VARIES
    if row["ratio_minimum"] == row["ratio_maximum"]:
        return number(row["ratio_median"])
    return " / ".join(number(row[prefix + which]) for which in ("minimum", "median", "maximum"))


def share(row):
    value = float(row["median"])
    return "exact" if value == 0 else "%.2f %%" % (100 * value) if value > 1e-4 else "%.1g" % value


def table(heads, rows):
    print("| %s |\n| %s |" % (" | ".join(heads), " | ".join("---" for _ in heads)))
    for row in rows:
        print("| %s |" % " | ".join(row))
    print()


def title(case, n):
    return "%s, %s keys" % (case, "{:,}".format(n))


def cells(rows, case, peer, n):
    """The time for a key, and its ratio."""
    row = rows.get((case, peer, n, KEYS))
    return time(row), ratio(row)


def membership():
    rows = read("membership")
    top = max(n for case, _, n, _ in rows if case == "membership" and n <= 10000000)
    answers(rows, "membership", top)
    whole_queries(rows, top)


def answers(rows, case, n):
    peers = [peer for peer in PEERS if (case + ", absent keys", peer, n, KEYS) in rows]
    table((title(case, n), "present key", "ratio", "absent key", "ratio", "on disk", "memory",
           "false positives"),
          ([CODE.get(peer, peer), *cells(rows, case + ", present keys", peer, n),
            *cells(rows, case + ", absent keys", peer, n), size(rows[case, peer, n, "bytes"]),
            size(rows[case, peer, n, "memory"]), share(rows[case, peer, n, "false positives"])]
           for peer in peers))  # fmt: skip


def whole_queries(rows, n):
    case = next(case for case, _, elements, _ in rows if elements == n and case.endswith(" probes"))

    def of(metric, peer, case="membership"):
        return rows.get((case, peer, n, metric))

    table((title(case, n), "time", "ratio", "built once", "built in each query"),
          ([CODE.get(peer, peer), time(of("time", peer, case), 1e6), ratio(of("time", peer, case)),
            time(of("build once", peer), 1e6), time(of("build in each query", peer), 1e6)]
           for peer in PEERS if of("time", peer, case)))  # fmt: skip


def outside():
    rows = read("outside")
    sizes = sorted({n for _, _, n, _ in rows})
    for n in sizes[:1] + sizes[2:]:
        peers = [peer for peer in OUTSIDE if ("outside", peer, n, "bytes") in rows]
        table(("{:,} keys".format(n), "add", "ratio", "present key", "ratio", "absent key", "ratio", "bytes",
               "false positives"),
              ([CODE.get(peer, peer), *(cell for case in ("add", "present keys", "absent keys")
                        for cell in cells(rows, "outside, " + case, peer, n)),
                size(rows["outside", peer, n, "bytes"]), share(rows["outside", peer, n, "false positives"])]
               for peer in peers))  # fmt: skip


def routing():
    """Ratios of the peers to the filter, whose own figure is the first column."""
    rows = read("routing")
    titles = {"bloomslices": "bloomslices", "B-tree (key)": "B-tree", "GIN on bigint[]": "GIN"}
    measured = {peer for _, peer, *_ in rows}
    peers = [peer for peer in titles if peer in measured]
    for sets, name in ("500 sets", "500 sets of 2,000 to 20,000 keys"), ("50,000 sets", "50,000 sets of 200 keys"):
        cases = [case for case in dict.fromkeys(case for case, *_ in rows) if case.startswith(sets + ", ")]
        of = {(case, peer, metric): row for (case, peer, _, metric), row in rows.items() if case.startswith(sets)}
        lines = [["bytes", size(of[sets, "bloomfilter", "size"]), *(ratio(of[sets, peer, "size"]) for peer in peers)],
                 ["wrong sets for a key", number(of[sets, "bloomfilter", "wrong sets of a key"]["median"]),
                  *("the same" if peer == "bloomslices" else "none" for peer in peers)]]  # fmt: skip
        for case in cases:
            title = case[len(sets) + 2 :].replace("000", ",000")
            adds = (case, "bloomfilter", "WAL") in of
            lines.append([("add " if adds else "find ") + title, time(of[case, "bloomfilter", "time"], 1e6),
                          *(ratio(of[case, peer, "time"]) for peer in peers)])  # fmt: skip
            if adds:
                lines.append(["the same, WAL", size(of[case, "bloomfilter", "WAL"]),
                              *(number(of[case, peer, "WAL"]["ratio_median"]) for peer in peers)])  # fmt: skip
        table((name, "bloomfilter", *(titles[peer] for peer in peers)), lines)


def percent(row):
    value = float(row["median"])
    if value == 0:
        return "exact"
    return ("%.0f %%" if value >= 5 else "%.1f %%" if value >= 1 else "%.2g %%") % value


def distinct():
    rows = read("distinct")
    sketches = "bloomfilter", "hll", LARGE
    sizes = sorted({n for case, _, n, _ in rows if case == "distinct"})
    table(("distinct elements", "error of bloomfilter", "of hll", "of hll, 10 kB", "bytes of bloomfilter", "of hll",
           "of hll, 10 kB"),
          (["{:,}".format(n), *(percent(rows["distinct", peer, n, "mean relative error"]) for peer in sketches),
            *(size(rows["distinct", peer, n, "size"]) for peer in sketches)] for n in sizes))  # fmt: skip
    peers = "hll", LARGE, "bloomfilter, sized", "count(DISTINCT)"
    lines = []
    for name, case, metric in (
            ("time to build, all values distinct", "build, all distinct", "time per row"),
            ("time to build, each value 100 times", "build, 100 of each", "time per row"),
            ("time to unite 365 days", "365 days, united", "time"),
            ("bytes of 365 days", "365 days, united", "size of all days"),
            ("error of the elements in both of two sets of 100,000, 1 %", "in both sets, 1 %", "mean relative error"),
            ("the same, 10 %", "in both sets, 10 %", "mean relative error"),
            ("the same, 50 %", "in both sets, 50 %", "mean relative error")):  # fmt: skip
        found = {peer: row for (of, peer, _, what), row in rows.items() if of == case and what == metric}
        own = found["bloomfilter"]
        shown = percent(own) if "%" in own["unit"] else size(own) if own["unit"] == "bytes" else time(
            own, 1e6 if own["unit"] == "ms" else 1)  # fmt: skip
        lines.append([name, shown, *(ratio(found.get(peer)) for peer in peers)])
    table(("10 million rows", "bloomfilter", "hll", "hll, 10 kB", "filter of a given size", "`count(DISTINCT)`"), lines)


def joins():
    rows = {(case, peer, metric): row for (case, peer, _, metric), row in read("joins").items()}
    names = list(dict.fromkeys(case.split(",")[0] for case, *_ in rows))

    def line(name, *settings):
        cases = [name + ", " + setting for setting in settings]
        past = "rows past the scans"
        return [name, *("{:,}".format(round(float(rows[cases[0], form, past]["median"])))
                        for form in ("plain", "filters")),
                *(ratio(rows.get((case, "plain", "time"))) for case in cases)]  # fmt: skip

    heads = "query", "rows, plain", "rows, filters"
    settings = "4 MB", "64 MB", "4 MB, 2 workers"
    table((*heads, "`work_mem` 4 MB", "64 MB", "4 MB, two workers"),
          (line(name, *settings) for name in names if (name + ", 4 MB", "plain", "time") in rows))  # fmt: skip
    lines = [line(name, "4 MB, primary key") for name in names]
    (name, *cells) = line("Q17", "4 MB, index on part")
    table((*heads, "`work_mem` 4 MB"), [*lines, [name + ", index on `l_partkey`", *cells]])


for print_tables in membership, outside, routing, distinct, joins:
    print_tables()
