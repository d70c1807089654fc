#!/usr/bin/python3
"""Prints tables of doc/peers.md from bench/results/peers_*.csv: "Is it in the set?" and "Outside the server"."""
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
CODE = {"= ANY (array)": "`= ANY (array)`", "hashed IN": "hashed `IN`", "contrib/bloom": "`contrib/bloom`"}


def read(module):
    with open(os.path.join(DIRECTORY, "peers_%s.csv" % module), newline="") as file:
        return {(row["case"], row["peer"], int(row["elements"]), row["metric"]): row for row in csv.DictReader(file)}


def short(value, suffixes):
    """A value with two or three digits, in the unit of a list of (divisor, unit), largest first, that suits it."""
    divisor, unit = next((entry for entry in suffixes if value >= entry[0]), suffixes[-1])
    value /= divisor
    return ("%.0f %s" if value >= 20 else "%.1f %s" if value >= 2 else "%.2f %s") % (value, unit)


def time(row, nanoseconds=1):
    return short(nanoseconds * float(row["median"]), TIMES) if row else "–"


def size(row):
    if not row:
        return "–"
    return short(float(row["median"]), SIZES) if float(row["median"]) else "0"


def number(text):
    value = float(text)
    return "{:,.0f}".format(value) if value >= 20 else "%.1f" % value if value >= 2 else "%.2f" % value


def ratio(row):
    if not row or not row["ratio_median"]:
        return "–"
    return " / ".join(number(row["ratio_" + which]) for which in ("minimum", "median", "maximum"))


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
    sizes = sorted({n for case, _, n, _ in rows if case == "membership"})
    top = max(n for n in sizes if n <= 10000000)
    answers(rows, "membership", top)
    case = "membership, absent keys"
    table((case, *map("{:,} keys".format, sizes)),
          ([CODE.get(peer, peer), *(cells(rows, case, peer, n)[0] for n in sizes)] for peer in PEERS
           if any((case, peer, n, KEYS) in rows for n in sizes)))  # fmt: skip
    whole_queries(rows, top)
    for case, n in sorted({(case, n) for case, _, n, metric in rows if "texts" in case and metric == "memory"}):
        answers(rows, case, n)


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
           for peer in PEERS if of("time", peer, case) or of("bytes", peer)))  # fmt: skip


def outside():
    rows = read("outside")
    for n in sorted({n for _, _, n, _ in rows}):
        peers = [peer for peer in OUTSIDE if ("outside", peer, n, "bytes") in rows]
        table(("{:,} keys".format(n), "add", "ratio", "present key", "ratio", "absent key", "ratio", "bytes",
               "false positives"),
              ([peer, *(cell for case in ("add", "present keys", "absent keys")
                        for cell in cells(rows, "outside, " + case, peer, n)),
                size(rows["outside", peer, n, "bytes"]), share(rows["outside", peer, n, "false positives"])]
               for peer in peers))  # fmt: skip


membership()
outside()
