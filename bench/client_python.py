#!/usr/bin/python3 -B
"""The Python client against Python's set and other Bloom filter packages. Needs no server.

Usage: client_python.py [N...]   numbers of elements; default: 10000 1000000

Compares with those of pybloomfilter (pybloomfiltermmap3, in C), rbloom (in Rust) and pybloom_live (in Python) that can
be imported: put their directories into PYTHONPATH. All filters have room for N elements at 1 %. One call adds or
probes one element. Prints nanoseconds per call, and minimum, median and maximum of the ratio of 5 runs by turns; a
ratio above 1 means that the client is slower.
"""

import gc
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "..", "clients", "python"))
from bloomtype import BloomFilter, geometry  # noqa: E402

REPEATS = 5
RATE = 0.01


def peers():
    """The name of each peer, and a function that makes an empty one for a number of elements."""
    yield "set", lambda n: set()
    try:
        import pybloomfilter
        yield "pybloomfiltermmap3", lambda n: pybloomfilter.BloomFilter(n, RATE)
    except ImportError:
        print("pybloomfiltermmap3 cannot be imported")
    try:
        import rbloom
        yield "rbloom", lambda n: rbloom.Bloom(n, RATE)
    except ImportError:
        print("rbloom cannot be imported")
    try:
        import pybloom_live
        yield "pybloom_live", lambda n: pybloom_live.BloomFilter(n, RATE)
    except ImportError:
        print("pybloom_live cannot be imported")


def add(empty, values):
    """The filter of the values, and the seconds that adding them took."""
    add_one = empty.add
    start = time.perf_counter()
    for value in values:
        add_one(value)
    return empty, time.perf_counter() - start


def probe(whole, values):
    start = time.perf_counter()
    for value in values:
        value in whole
    return time.perf_counter() - start


def times(make, n, present, absent):
    """The seconds of adding, of probing what is present and of probing what is absent."""
    whole, adding = add(make(n), present)
    return adding, probe(whole, present), probe(whole, absent)


def compare(kind, n, values, name, make):
    present, absent = values[:n], values[n:]
    gc.collect()
    pairs = []
    for turn in range(REPEATS):
        mine_first = turn % 2 == 0
        both = [times(one, n, present, absent) for one in ((BloomFilter, make) if mine_first else (make, BloomFilter))]
        pairs.append(both if mine_first else both[::-1])
    for i, what in enumerate(("add", "probe, present", "probe, absent")):
        mine, other = ([pair[side][i] / n * 1e9 for pair in pairs] for side in (0, 1))
        ratios = [a / b for a, b in zip(mine, other)]
        print("%-5s %9d  %-16s %-20s %7.0f ns %7.0f ns   %6.2f %6.2f %6.2f" % (
            kind, n, what, name, statistics.median(mine), statistics.median(other),
            min(ratios), statistics.median(ratios), max(ratios)), flush=True)  # fmt: skip


def main(counts):
    print("Python %s, the client %s" % (sys.version.split()[0], geometry.IMPLEMENTATION))
    others = list(peers())
    print("%-5s %9s  %-16s %-20s %10s %10s   %s" % (
        "", "elements", "", "peer", "client", "peer", "ratio min/med/max"))  # fmt: skip
    for n in counts:
        for kind, values in ("int", list(range(2 * n))), ("str", ["user%d" % i for i in range(2 * n)]):
            for name, make in others:
                compare(kind, n, values, name, make)


if __name__ == "__main__":
    main([int(float(word)) for word in sys.argv[1:]] or [10_000, 1_000_000])
