#!/usr/bin/python3
"""Prints the tables of doc/peers.md, "Is it in the set?" and "Outside the server", from bench/results/peers_*.csv."""
import csv
import os

from results import DIRECTORY

PEERS = ("bloomfilter stored", "bloomfilter stored, 1e-6", "bloomfilter built by the query", "= ANY (array)", "hashed IN",
         "semi-join", "semi-join, work_mem 4 MB", "btree index", "hash index", "PL/Python set", "BRIN bloom",
         "contrib/bloom")  # fmt: skip
OUTSIDE = "bloomfilter in SQL", "bloomtype's core in C", "libbloom in C", "Python set", "clients/python"
KEYS = "seconds per key"
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
    return short(nanoseconds * float(row["median"]), ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))) if row else "–"


def size(row):
    if not row:
        return "–"
    return short(float(row["median"]), ((2**30, "GB"), (2**20, "MB"), (2**10, "kB"), (1, "bytes"))) if float(row["median"]) else "0"


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


def membership():
    rows = read("membership")
    sizes = sorted({n for case, _, n, _ in rows if case == "membership"})
    top = max(n for n in sizes if n <= 10000000)

    def of(peer, case, metric, n=top):
        return rows.get((case, peer, n, metric))

    present, absent = "membership, present keys", "membership, absent keys"
    peers = [peer for peer in PEERS if of(peer, absent, KEYS)]
    print("{:,} keys\n".format(top))
    table(("", "present key", "ratio", "absent key", "ratio", "on disk", "memory", "false positives"),
          ([CODE.get(peer, peer), time(of(peer, present, KEYS)), ratio(of(peer, present, KEYS)), time(of(peer, absent, KEYS)),
            ratio(of(peer, absent, KEYS)), size(of(peer, "membership", "bytes")), size(of(peer, "membership", "memory")),
            share(of(peer, "membership", "false positives"))] for peer in peers))  # fmt: skip
    table(("absent key", *map("{:,} keys".format, sizes)),
          ([CODE.get(peer, peer), *(time(of(peer, absent, KEYS, n)) for n in sizes)] for peer in PEERS
           if any(of(peer, absent, KEYS, n) for n in sizes)))  # fmt: skip
    case = next(case for case, _, n, _ in rows if n == top and case.endswith(" probes"))
    table(("%s, %s keys" % (case.partition(", ")[2], "{:,}".format(top)), "time", "ratio", "built once", "built in each query"),
          ([CODE.get(peer, peer), time(of(peer, case, "time"), 1e6), ratio(of(peer, case, "time")),
            time(of(peer, "membership", "build once"), 1e6), time(of(peer, "membership", "build in each query"), 1e6)]
           for peer in PEERS if of(peer, case, "time") or of(peer, "membership", "build once")))  # fmt: skip
    texts = "membership, texts of 32 bytes"
    table(("texts of 32 bytes", "present key", "ratio", "absent key", "ratio", "on disk"),
          ([CODE.get(peer, peer), time(of(peer, texts + ", present keys", KEYS)), ratio(of(peer, texts + ", present keys", KEYS)),
            time(of(peer, texts + ", absent keys", KEYS)), ratio(of(peer, texts + ", absent keys", KEYS)),
            size(of(peer, texts, "bytes"))] for peer in PEERS if of(peer, texts, "bytes")))  # fmt: skip


def outside():
    rows = read("outside")
    for n in sorted({n for _, _, n, _ in rows}):
        cases = ["outside, " + case for case in ("add", "present keys", "absent keys")]
        table(("{:,} keys".format(n), "add", "ratio", "present key", "ratio", "absent key", "ratio", "bytes", "false positives"),
              ([peer, *(form(rows[case, peer, n, KEYS]) for case in cases for form in (time, ratio)),
                size(rows["outside", peer, n, "bytes"]), share(rows["outside", peer, n, "false positives"])]
               for peer in OUTSIDE if ("outside", peer, n, "bytes") in rows))  # fmt: skip


membership()
outside()
