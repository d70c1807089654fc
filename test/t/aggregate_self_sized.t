#!/usr/bin/python3 -B
"""Filters that size themselves: size, representation, bytes and rate as in test/golden/reference.py, and the crossing
from a set of hashes to bits, for which one part builds the extension with a low threshold, with the server's PG_CONFIG.
"""

import contextlib
import math
import os
import random
import shutil
import statistics
import subprocess
import tempfile

from aggregates import (APPEND, FINAL, PARALLEL, PARTIAL, PARTITIONWISE, answers, ask_one, check_plan, check_refused,
                        explained, hashes_of, own_m, run, same_answers, self_sized, self_sized_call, sha256,
                        sha256_sql)
from session import ask, each, hex_of, quote
from tap import note, ok, same
import reference as ref

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RATES = (0.01, 0.3, 1e-4)
COUNTS = (0, 1, 2, 7, 8, 9, 63, 64, 65, 1000, 2**20 - 1, 2**20)


def items_for(p, m):
    """An expected count for which the size is m, so that a filter can be built at that size."""
    items = ref.capacity(p, m)
    assert ref.choose_m("blocked", p, items) == m
    return items


class Sized:
    """Filters of n elements each that have sized themselves, as the server made them."""

    def __init__(self, p, n):
        self.p, self.n, self.name = p, n, f"self-sized for {n} at {p}"
        self.sets = max(1, min(1000, 100_000 // max(n, 1)))
        self.probes = 1_000_000 if self.sets == 1 else 400_000 // self.sets
        self.m, self.k = own_m(p, n) if n else 0, ref.choose_k("blocked", p)
        self.sparse = n == 0 or ref.may_be_sparse(n, self.m)
        self.whole = n <= 1000  # all bytes are compared, not only the header
        shown = "f::text" if self.whole else "'\\x' || encode(substr(f::bytea, 1, 28), 'hex')"
        self.rows = [line.split("|") for line in ask(f"""
            SELECT s, {shown},
                (SELECT count(*) FROM generate_series(1, {n}) AS i WHERE NOT f @> ((s << 32) + i)),
                (SELECT count(*) FROM generate_series(1, {self.probes}) AS i WHERE f @> (-((s << 32) + i)))
            FROM generate_series(1::bigint, {self.sets}) AS s, LATERAL
                (SELECT {self_sized_call("(s << 32) + i", p)} AS f FROM generate_series(1, {n}) AS i) AS b
            """)]  # fmt: skip

    def check_header(self):
        if self.n == 0:
            shown = {row[1] for row in self.rows}
            same(shown, {hex_of(ref.empty())}, f"{self.name}: the empty filter without a size")
        else:
            header = ref.HEADER.pack(1, 0, int(self.sparse), self.k, 20, ref.single(self.p), 0, self.m).hex()
            heads = {row[1][2:58] for row in self.rows}
            same(heads, {header}, f"{self.name}: {self.m} bits, {'sparse' if self.sparse else 'dense'}")

    def check_bytes(self):
        wrong, checked = [], self.rows[: max(3, 3000 // self.n)]
        for s, f, *_ in checked:
            first = (int(s) << 32) + 1
            if f != hex_of(self_sized(self.p, 20, hashes_of(range(first, first + self.n)))):
                wrong.append(s)
        ok(not wrong, f"{self.name}: {len(checked)} filters have the reference's bytes", wrong[:5])

    def check_rates(self):
        """Compares the mean over many sets with the promise and with theory."""
        rates = [int(row[3]) / self.probes for row in self.rows]
        rate = statistics.mean(rates)
        if self.sparse:
            same(rate, 0.0, f"{self.name}: no false positive in {self.sets} x {self.probes} probes")
            return
        theory = ref.expected_rate("blocked", self.k, self.m, self.n)
        sigma = math.sqrt(theory * (1 - theory) / (self.sets * self.probes))
        if self.sets > 1:
            sigma = max(sigma, statistics.stdev(rates) / math.sqrt(self.sets))
        figures = f"{rate:.6f}, sigma {sigma:.6f}, expected {theory:.6f}"
        ok(rate <= self.p * 1.05 + 4 * sigma, f"{self.name}: measured rate as promised: {figures}")
        ok(abs(rate - theory) <= 0.05 * theory + 4 * sigma, f"{self.name}: measured rate as expected", figures)


def test_self_sized():
    for p in RATES:
        for n in COUNTS:
            sized = Sized(p, n)
            sized.check_header()
            if sized.whole and n:
                sized.check_bytes()
            same(sum(int(row[2]) for row in sized.rows), 0, f"{sized.name}: no false negative")
            sized.check_rates()


def test_self_sized_is_sized():
    """At its own size a filter equals one that is built for that size. Checked at sizes too large for the reference
    to build, and beyond 2^24, where the aggregate goes another way."""
    rng = random.Random("aggregation")
    for n, p in ((2**20, 0.01), (2**20, 0.3), (2**20, 1e-4), (2**24 + 1, 0.01)):
        m = own_m(p, n)
        items = items_for(p, m)
        first = rng.randrange(2**40)
        rows = f"(SELECT generate_series({first}, {first + n - 1}) AS x) AS s"
        members = f"(SELECT x FROM {rows} WHERE x % {max(1, n >> 20)} = 0) AS s"
        name = f"self-sized for {n} at {p}"
        alike, bits, missing, found = ask_one(f"""
            SELECT a = b, length(a::bytea) * 8 - 224, (SELECT count(*) FROM {members} WHERE NOT a @> x),
                (SELECT count(*) FROM generate_series(1, 1000000) AS i WHERE a @> (-i)::bigint)
            FROM (SELECT {self_sized_call("x", p)} AS a FROM {rows}) AS a,
                (SELECT bloom_agg(x, {items}, {p!r}) AS b FROM {rows}) AS b
            """)
        same(alike, "t", f"{name}: the bytes of bloom_agg(x, {items}, {p})")
        same(int(bits), m, f"{name}: {m} bits")
        same(missing, "0", f"{name}: no false negative")
        rate = int(found) / 1e6
        ok(rate <= p * 1.05 + 4 * math.sqrt(p * (1 - p) / 1e6), f"{name}: measured rate {rate}")


def test_too_many():
    """More elements than the largest filter has room for are refused, not taken at a worse rate."""
    p, n = 1e-9, 28_000_000
    try:
        ref.choose_m("blocked", p, n)
        raise AssertionError(f"{n} elements at {p} are not too many for the reference")
    except ValueError:
        note(f"{n} elements at {p} are too many for the reference")
    statement = f"SELECT length({self_sized_call('x', p)}::bytea) FROM generate_series(1, {n}) AS x"
    check_refused(statement, "would be too large", f"self-sized for {n} at {p}")


# The crossing from a set to bits

LIMIT = 1000  # of the variant


def bits_at_most(hashes, k):
    """The filter of 2^31 bits, as the numbers of the bits that are set."""
    return {b for h in hashes for b in ref.bit_numbers(h, "blocked", k, ref.MAX_BITS)}


def crossed(p, element_class, hashes):
    """What the page says of an aggregate that sizes itself, with the variant's limit."""
    hashes = set(hashes)
    if len(hashes) <= LIMIT:
        return self_sized(p, element_class, hashes)
    k, nblocks = ref.choose_k("blocked", p), ref.MAX_BITS // ref.BLOCK
    bits = bits_at_most(hashes, k)
    share = -math.expm1(k * math.log1p(-1 / ref.BLOCK))
    n = math.floor(math.log1p(-len(bits) / ref.MAX_BITS) / math.log1p(-share / nblocks))
    m = own_m(p, n)
    folded = ref.Filter("blocked", k, ref.single(p), 0, m, element_class, None, bytes(m // 8))
    return folded.with_hashes(element_class, hashes)


def build_variant(directory):
    """Builds the extension so that it crosses to bits at LIMIT hashes; returns the library."""
    source, build = os.path.join(directory, "source"), os.path.join(directory, "build")
    os.mkdir(source)
    os.mkdir(build)
    # a copy without what another build may have left between the sources
    for name in os.listdir(TOP):
        path = os.path.join(TOP, name)
        if name in ("src", "sql"):
            shutil.copytree(path, os.path.join(source, name), ignore=shutil.ignore_patterns("*.o", "*.bc"))
        elif name == "Makefile" or name.endswith(".control"):
            shutil.copy(path, source)
    made = subprocess.run(
        ["make", "-s", "-j2", "-C", build, "-f", os.path.join(source, "Makefile"), "with_llvm=no",
         f"COPT=-DBF_SIZING_LIMIT={LIMIT}", f"PG_CONFIG={os.environ.get('PG_CONFIG', 'pg_config')}",
         "bloomtype.so"],
        capture_output=True, encoding="utf-8",
    )  # fmt: skip
    if made.returncode != 0:
        raise OSError(f"the variant does not build: {made.stderr[-1500:]}")
    library = os.path.join(build, "bloomtype.so")
    for path in directory, build, library:
        os.chmod(path, 0o755)
    return library


@contextlib.contextmanager
def variant():
    """The functions of the database run from the variant."""
    with tempfile.TemporaryDirectory(prefix="bloomtype.") as directory:
        library = quote(build_variant(directory))
        ask(f"UPDATE pg_proc SET probin = {library} WHERE probin = '$libdir/bloomtype'")
        try:
            yield
        finally:
            ask(f"UPDATE pg_proc SET probin = '$libdir/bloomtype' WHERE probin = {library}")


def digest_of(call, source):
    (digest,) = ask_one(f"SELECT {sha256_sql(call)} FROM {source}")
    return digest


def check_counts():
    rng = random.Random("crossing")
    for n in (LIMIT - 1, LIMIT, LIMIT + 1, 5000, 100_000):
        first = rng.randrange(2**40)
        source = f"(SELECT generate_series({first}, {first + n - 1}) AS x UNION ALL SELECT {first}) AS s"
        expected = crossed(0.01, 20, hashes_of(range(first, first + n)))
        name = f"limit {LIMIT}, {n} elements: {expected.m} bits, the reference's"
        same(digest_of("bloom_agg(x)", source), sha256(expected), name)
    digest = digest_of("bloom_agg(x::text, NULL, 0.0001)", "generate_series(1, 1500) AS x")
    texts = [ref.hash_of(str(x).encode()) for x in range(1, 1501)]
    same(digest, sha256(crossed(1e-4, 25, texts)), "the same for text, at another rate")


def check_groups_and_windows():
    lines = ask(f"""
        SELECT x % 3, {sha256_sql("bloom_agg(x)")} FROM generate_series(1, 6000) AS x
        WHERE x % 3 < 2 OR x < 900 GROUP BY 1""")
    thirds = {0: range(3, 6001, 3), 1: range(1, 6001, 3), 2: range(2, 900, 3)}
    wanted = {str(g): sha256(crossed(0.01, 20, hashes_of(third))) for g, third in thirds.items()}
    same_answers(answers(lines), wanted, "two groups cross, one does not")
    lines = ask(f"""
        SELECT x, {sha256_sql("f")} FROM
            (SELECT x, bloom_agg(x) OVER (ORDER BY x) AS f FROM generate_series(1, 1003) AS x) AS w
        WHERE x >= 998""")
    wanted = {str(n): sha256(crossed(0.01, 20, hashes_of(range(1, n + 1)))) for n in range(998, 1004)}
    same_answers(answers(lines), wanted, "a window that grows over the limit")


MIXTURES = {  # the elements of the first state and of the second, which are combined in this order
    "set and set, together within the limit": (range(0, 700), range(100, 800)),
    "set and set, together beyond": (range(0, 600), range(5000, 5700)),
    "set and bits": (range(0, 600), range(5000, 10000)),
    "bits and set": (range(0, 5000), range(4900, 5600)),
    "bits and bits": (range(0, 5000), range(3000, 9000)),
}


def check_mixtures():
    for number, (name, (one, two)) in enumerate(MIXTURES.items()):
        table = f"mixture_{number}"
        each(
            f"CREATE TABLE {table} (part int, x bigint) PARTITION BY LIST (part)",
            f"CREATE TABLE {table}_1 PARTITION OF {table} FOR VALUES IN (1)",
            f"CREATE TABLE {table}_2 PARTITION OF {table} FOR VALUES IN (2)",
            f"INSERT INTO {table} SELECT 1, generate_series({one[0]}, {one[-1]})",
            f"INSERT INTO {table} SELECT 2, generate_series({two[0]}, {two[-1]})",
            f"ANALYZE {table}",
        )
        plan, (digest,) = explained(f"SELECT {sha256_sql('bloom_agg(x)')} FROM {table}", PARTITIONWISE)
        scans = [{"Relation Name": f"{table}_{part}"} for part in (1, 2)]
        check_plan(plan, [FINAL, APPEND, PARTIAL, scans[0], PARTIAL, scans[1]], name)
        same(digest, sha256(crossed(0.01, 20, hashes_of({*one, *two}))), f"{name}: the reference's bytes")


def check_workers():
    """One table from which each of two workers sees less than the limit, and one from which each sees more."""
    for n in (1500, 60_000):
        table = f"crossing_{n}"
        each(f"CREATE TABLE {table} (x bigint) WITH (parallel_workers = 2)",
             f"INSERT INTO {table} SELECT generate_series(1, {n})", f"ANALYZE {table}")  # fmt: skip
        plan, (digest,) = explained(f"SELECT {sha256_sql('bloom_agg(x)')} FROM {table}", PARALLEL)
        check_plan(plan, [FINAL, {"Workers Planned": 2}, PARTIAL], f"{n} elements, 2 workers")
        serial = digest_of("bloom_agg(x)", table)
        same(serial, sha256(crossed(0.01, 20, hashes_of(range(1, n + 1)))), f"{n} elements, serial")
        same(digest, serial, f"{n} elements, 2 workers: the same")


def test_crossing():
    with variant():
        for check in check_counts, check_groups_and_windows, check_mixtures, check_workers:
            check()
    digest = digest_of("bloom_agg(x)", "generate_series(1, 1500) AS x")
    same(digest, sha256(self_sized(0.01, 20, hashes_of(range(1, 1501)))), "with the library as it was")


run(test_self_sized, test_self_sized_is_sized, test_too_many, test_crossing)
