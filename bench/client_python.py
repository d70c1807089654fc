#!/usr/bin/python3 -B
"""The Python client against Python's set and other Bloom filter packages. Needs no server.

Usage: client_python.py [N...]   numbers of elements; default: 10000 1000000

Compares with those of pybloomfilter (pybloomfiltermmap3, in C), rbloom (in Rust) and pybloom_live (in Python) that can
be imported: put their directories into PYTHONPATH. BLOOMTYPE_CLIENT names another directory with the client, such as
one where "setup.py build_ext --inplace" has built its module in C. All filters have room for N elements at 1 %. One
call adds or probes one element. Prints nanoseconds of processor time per call, and minimum, median and maximum of the
ratio of 5 runs by turns. A ratio above 1 means that the client is slower. Then compares reading a dense counter with
probing a filter, and prints the seconds of folding filters that have many possible sizes.
"""

import gc
import os
import random
import statistics
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.environ.get("BLOOMTYPE_CLIENT", os.path.join(HERE, "..", "clients", "python")))
from bloomtype import BloomCounter, BloomFilter, geometry  # noqa: E402

REPEATS = 5
RATE = 0.01
CALLS = 100_000  # of one run, or the number of elements


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


def add(whole, values):
    """The seconds that adding these values takes."""
    add_one = whole.add
    start = time.process_time()
    for value in values:
        add_one(value)
    return time.process_time() - start


def probe(whole, values):
    start = time.process_time()
    for value in values:
        value in whole
    return time.process_time() - start


def times(make, n, present, absent):
    """The nanoseconds per call of adding, of probing what is present and of probing what is absent."""
    rounds = max(CALLS // n, 1)
    adding = [(whole, add(whole, present)) for whole in (make(n) for _ in range(rounds))]
    whole = adding[0][0]
    probing = [[probe(whole, values) for _ in range(rounds)] for values in (present, absent)]
    return [sum(seconds) / rounds / n * 1e9 for seconds in ([seconds for _, seconds in adding], *probing)]


def compare(kind, n, values, name, make):
    present, absent = values[:n], values[n:]
    gc.collect()
    pairs = []
    for turn in range(REPEATS):
        mine_first = turn % 2 == 0
        both = [times(one, n, present, absent) for one in ((BloomFilter, make) if mine_first else (make, BloomFilter))]
        pairs.append(both if mine_first else both[::-1])
    for i, what in enumerate(("add", "probe, present", "probe, absent")):
        mine, other = ([pair[side][i] for pair in pairs] for side in (0, 1))
        ratios = [a / b for a, b in zip(mine, other)]
        print("%-5s %9d  %-16s %-20s %7.0f ns %7.0f ns   %6.2f %6.2f %6.2f" % (
            kind, n, what, name, statistics.median(mine), statistics.median(other),
            min(ratios), statistics.median(ratios), max(ratios)), flush=True)  # fmt: skip


def encoded(flags, bits, payload):
    return struct.pack("<4BIfQQ", 1, 0, flags, 6, 20, RATE, 0, bits) + payload


def compare_counter(n):
    """Probes of a filter of the same size and of what it contains: both read all positions of an element."""
    whole = BloomFilter.build(range(n), n, RATE)
    for flags, width in (4, 4), (12, 8), (20, 16):
        counter = BloomCounter.load(encoded(flags, whole.bits, b"\x11" * (whole.bits * width // 8)))
        pairs = [[probe(one, range(n)) for one in (counter, whole)] for _ in range(REPEATS)]
        ratios = [reading / probing for reading, probing in pairs]
        print("counter of %2d bits, %d elements: %.0f ns, times a probe of a filter: %.2f %.2f %.2f" % (
            width, n, statistics.median(reading for reading, _ in pairs) / n * 1e9,
            min(ratios), statistics.median(ratios), max(ratios)), flush=True)  # fmt: skip


def time_folds(n, blocks):
    rng = random.Random(1)
    hashes = sorted({rng.getrandbits(64) for _ in range(n)})
    whole = BloomFilter.load(encoded(1, 512 * blocks, struct.pack("<%dQ" % len(hashes), *hashes)))
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        whole.fold(RATE)
        seconds.append(time.process_time() - start)
    print("fold of %d hashes and %d blocks: %.2f %.2f %.2f s" % (
        n, blocks, min(seconds), statistics.median(seconds), max(seconds)), flush=True)  # fmt: skip


def main(counts):
    print("Python %s, the client %s" % (sys.version.split()[0], geometry.IMPLEMENTATION))
    others = list(peers())
    print("%-5s %9s  %-16s %-20s %10s %10s   %s" % (
        "", "elements", "", "peer", "client", "peer", "ratio min/med/max"))  # fmt: skip
    for n in counts:
        for kind, values in ("int", list(range(2 * n))), ("str", ["user%d" % i for i in range(2 * n)]):
            for name, make in others:
                compare(kind, n, values, name, make)
        compare_counter(n)
    time_folds(1_000_000, 2**22)
    time_folds(100_000, 3_603_600)  # 360 divisors


if __name__ == "__main__":
    main([int(float(word)) for word in sys.argv[1:]] or [10_000, 1_000_000])
