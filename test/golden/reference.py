"""The `bloomfilter` format, version 1, in plain Python: doc/format.md as a program.

Written from that page alone and for reading, as a pattern for ports to other languages; it is not
fast. The only package needed is xxhash (Debian: python3-xxhash).

    >>> f = build("blocked", 0.01, [element("text", "alice")], items=1000)
    >>> f.encode().hex()
    '01000106190000000ad7233c0000000000000000002800000000000049602e5f48eaa373'
    >>> f.contains(element("text", "alice")), f.contains(element("text", "bob"))
    (True, False)
"""

import datetime
import decimal
import functools
import ipaddress
import math
import struct
import uuid
from dataclasses import dataclass, replace
from typing import Optional

import xxhash

VERSION = 1
LAYOUTS = ("blocked", "classic")  # the header's 0 and 1
SPARSE, SIZES_ITSELF = 1, 2  # flags
BLOCK = 512  # bits in a block of the blocked layout
MAX_K = 32
MAX_BITS = 1 << 31
HEADER = struct.Struct("<BBBBIfQQ")  # 28 bytes
U64 = (1 << 64) - 1
G = 0x9E3779B97F4A7C15


class Refused(ValueError):
    """These bytes are not a filter, or these filters do not combine."""


# Elements: class and canonical bytes

CLASSES = {
    "smallint": 20, "integer": 20, "bigint": 20,
    "real": 701, "double precision": 701,
    "numeric": 1700,
    "text": 25, "varchar": 25, "char": 1042, "name": 25, "enum": 25,
    "bytea": 17, "uuid": 2950, "boolean": 16,
    "date": 1082, "time": 1083, "timetz": 1266, "timestamp": 1114, "timestamptz": 1184, "interval": 1186,
    "inet": 869, "cidr": 869, "macaddr": 829, "macaddr8": 774,
}

MICROSECOND = datetime.timedelta(microseconds=1)
EPOCH = datetime.datetime(2000, 1, 1)
EPOCH_UTC = EPOCH.replace(tzinfo=datetime.timezone.utc)


def int8(number):
    return struct.pack("<q", number)


def canonical_float(value):
    if math.isnan(value):
        return struct.pack("<Q", 0x7FF8000000000000)
    return struct.pack("<d", value + 0.0)  # -0.0 + 0.0 is +0.0


def canonical_real(value):
    return canonical_float(single(value))


def canonical_numeric(value: decimal.Decimal):
    if not value.is_finite():
        return str(value).encode()  # NaN, Infinity, -Infinity
    if value.is_zero():
        return b"0"
    text = format(value, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text).encode()


def canonical_text(value: str):
    return value.encode("utf-8")


def canonical_char(value: str):
    return value.rstrip(" ").encode("utf-8")


def since_epoch(width, count):
    """Dates and timestamps. What Python's types cannot hold is given as the number itself; the
    infinite ones are the ends of PostgreSQL's `width`-bit integer."""

    def canonical(value):
        if value in (math.inf, -math.inf):
            edge = 1 << (width - 1)
            return int8(edge - 1 if value > 0 else -edge)
        return int8(value if isinstance(value, int) else count(value))

    return canonical


def time_of_day(value):
    """Microseconds since midnight. 24:00 has no datetime.time: given as the number itself."""
    if isinstance(value, int):
        return value
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def canonical_timetz(value):
    """A datetime.time with a zone, or a pair: microseconds since midnight, seconds west of UTC."""
    if isinstance(value, tuple):
        return struct.pack("<qi", *value)
    west = -value.utcoffset() // datetime.timedelta(seconds=1)
    return struct.pack("<qi", time_of_day(value), west)


def canonical_interval(value):
    """A timedelta or a number of microseconds, for which a month was counted as 30 days."""
    microseconds = value if isinstance(value, int) else value // MICROSECOND
    return struct.pack("<qq", *divmod(microseconds, 86_400_000_000))


def canonical_inet(value):
    interface = ipaddress.ip_interface(value)
    return bytes((interface.version, interface.network.prefixlen)) + interface.ip.packed


CANONICAL = {
    "smallint": int8, "integer": int8, "bigint": int8,
    "real": canonical_real, "double precision": canonical_float,
    "numeric": canonical_numeric,
    "text": canonical_text, "varchar": canonical_text, "char": canonical_char,
    "name": canonical_text, "enum": canonical_text,
    "bytea": bytes,
    "uuid": lambda value: uuid.UUID(str(value)).bytes,
    "boolean": lambda value: b"\1" if value else b"\0",
    "date": since_epoch(32, lambda value: (value - EPOCH.date()).days),
    "time": lambda value: int8(time_of_day(value)),
    "timetz": canonical_timetz,
    "timestamp": since_epoch(64, lambda value: (value - EPOCH) // MICROSECOND),
    "timestamptz": since_epoch(64, lambda value: (value - EPOCH_UTC) // MICROSECOND),
    "interval": canonical_interval,
    "inet": canonical_inet, "cidr": canonical_inet,
    "macaddr": bytes, "macaddr8": bytes,
}


def element(sql_type, value):
    """An element as filters take it: its class and its canonical bytes."""
    return CLASSES[sql_type], CANONICAL[sql_type](value)


def hash_of(canonical, seed=0):
    return xxhash.xxh64_intdigest(canonical, seed & U64)


# From hash to bits

def geometry(layout, m):
    """Bits in a block, and the number of blocks."""
    return (BLOCK, m // BLOCK) if layout == "blocked" else (m, 1)


def bit_numbers(h, layout, k, m):
    B, nblocks = geometry(layout, m)
    block = ((h >> 32) * nblocks) >> 32
    y = h
    for _ in range(k):
        y = y * G & U64
        yield block * B + (y * B >> 64)


# Choosing k and m

BOUNDS = (  # of k = 2, 3, ...
    0.38141, 0.183453, 0.0890054, 0.0428406, 0.0203097, 0.00943578, 0.00427845,
    0.00188661, 8.06525e-4, 3.33382e-4, 1.3295e-4, 5.10606e-5, 1.88604e-5, 6.69393e-6,
    2.28177e-6, 7.46925e-7, 2.3487e-7, 7.09883e-8, 2.06434e-8, 5.78309e-9, 1.56304e-9,
)
EXACT_UP_TO = 4096  # bits of a single block


def single(number):
    """Rounded to IEEE single precision."""
    return struct.unpack("<f", struct.pack("<f", number))[0]


def choose_k(layout, p):
    p = single(p)
    if layout == "classic":
        return min(max(round(-math.log2(p)), 1), MAX_K)
    return 1 + sum(p < bound for bound in BOUNDS)


class BlockRates:
    """r(j) for blocks of B bits, j = 0, 1, 2, ..., worked out as far as asked for."""

    def __init__(self, B, k):
        self.B, self.k = B, k
        self.distinct = [1.0] + [0.0] * k  # D(e), after no throw at first
        for _ in range(k):
            self.distinct = [
                self.distinct[e] * e / B + (self.distinct[e - 1] * (B - e + 1) / B if e > 0 else 0.0)
                for e in range(k + 1)
            ]
        self.covered = [1.0] + [0.0] * k  # C(e, t), for the t reached
        self.rates = [0.0]

    def __getitem__(self, j):
        while len(self.rates) <= j and self.rates[-1] < 1.0:
            for _ in range(self.k):
                for e in range(self.k, 0, -1):
                    self.covered[e] += e / self.B * (self.covered[e - 1] - self.covered[e])
            rate = sum(d * c for d, c in zip(self.distinct[1:], self.covered[1:]))
            self.rates.append(rate if rate < 1 - 1e-12 else 1.0)
        return self.rates[min(j, len(self.rates) - 1)]


block_rates = functools.lru_cache(maxsize=64)(BlockRates)


def second_order_rate(m, k, n):
    """r(n) of one large block."""
    f = -math.expm1(k * n * math.log1p(-1 / m))
    u = 1 - f
    c = math.expm1(k * n * math.log1p(-1 / (m - 1) ** 2))
    var = m * u * f + m * (m - 1) * u**2 * c
    return f**k * math.exp(k * (k - 1) / 2 * var / (m * f) ** 2)


def mean(mode, ratio, r):
    """The mean of r(j) over a distribution, outwards from its greatest term by the ratios of each term
    to the one before. What is left out does not count in double precision."""
    weights, total = 1.0, r[mode]
    weight, j = 1.0, mode
    while weight >= 1e-17 * min(1.0, total):
        weight *= ratio(j)
        j += 1
        weights += weight
        total += weight * r[j]
    weight, j = 1.0, mode
    while j > 0 and weight >= 1e-17:
        j -= 1
        weight /= ratio(j)
        weights += weight
        total += weight * r[j]
    return total / weights


def poisson_mean(load, r):
    return mean(int(load), lambda j: load / (j + 1), r)


def binomial_mean(n, nblocks, r):
    return mean((n + 1) // nblocks, lambda j: (n - j) / ((j + 1) * (nblocks - 1)), r)


def single_block(load, r):
    """r(load), linear between whole numbers."""
    j = int(load)
    return r[j] + (load - j) * (r[j + 1] - r[j])


def classic_rate(k, m, n):
    return second_order_rate(m, k, n) if m > EXACT_UP_TO else block_rates(m, k)[n]


def expected_rate(layout, k, m, n):
    """The rate of n elements in a filter of any size. A blocked one is not sized by it: the constant for
    each element keeps this at or under p, whatever the number of blocks."""
    if layout == "classic":
        return classic_rate(k, m, n)
    r, nblocks = block_rates(BLOCK, k), m // BLOCK
    return r[n] if nblocks == 1 else binomial_mean(n, nblocks, r)


def least(enough, low, high):
    """The least whole number above low for which enough() is true; it is for high."""
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high


@functools.lru_cache(maxsize=None)
def bits_per_element(p):
    """C, in 1/1024 bit, of a blocked filter."""
    p, k = single(p), choose_k("blocked", p)
    r = block_rates(BLOCK, k)

    def enough(C):
        load = 1024 * BLOCK / C
        return single_block(load, r) <= p and poisson_mean(load, r) <= p

    return least(enough, 1024, 1 << 17)


def round_up_blocks(nblocks):
    """Seven significant bits."""
    unit = 1 << max(nblocks.bit_length() - 7, 0)
    return -(-nblocks // unit) * unit


def choose_m(layout, p, n):
    """The m of a filter for n elements."""
    p, k = single(p), choose_k(layout, p)
    if layout == "blocked":
        m = BLOCK * round_up_blocks(-(-n * bits_per_element(p) // (1024 * BLOCK)))
    elif classic_rate(k, MAX_BITS, n) <= p:
        m = 64 * least(lambda words: classic_rate(k, 64 * words, n) <= p, 0, MAX_BITS // 64)
    else:
        m = math.inf
    if m > MAX_BITS:
        raise ValueError("no filter keeps that rate with so many elements")
    return m


def capacity(p, m):
    """How many elements m bits of the blocked layout are for."""
    return 1024 * m // bits_per_element(p)


def choose_own_m(p, n):
    """The m of a filter that sizes itself, for n distinct hashes. Such a filter is blocked."""
    m = BLOCK
    while m < MAX_BITS and capacity(p, m) < n:
        m *= 2
    return m


# The filter

@dataclass(frozen=True)
class Filter:
    """Sparse if `hashes` is given (distinct and ascending), dense if `bits` is."""

    layout: str
    k: int
    p: float  # as rounded to single precision
    seed: int  # unsigned
    m: int
    element_class: int = 0
    hashes: Optional[tuple] = ()
    bits: Optional[bytes] = None

    @property
    def sparse(self):
        return self.bits is None

    @property
    def without_size(self):
        return self.m == 0

    def encode(self):
        payload = b"".join(struct.pack("<Q", h) for h in self.hashes) if self.sparse else self.bits
        return HEADER.pack(
            VERSION, LAYOUTS.index(self.layout), SPARSE if self.sparse else 0, self.k,
            self.element_class, self.p, self.seed, self.m,
        ) + payload  # fmt: skip

    def contains(self, an_element):
        element_class, canonical = an_element
        if self.element_class not in (0, element_class):
            raise Refused("elements of another class")
        return self.contains_hash(hash_of(canonical, self.seed))

    def contains_hash(self, h):
        if self.sparse:
            return h in self.hashes
        return all(self.bits[b >> 3] >> (b & 7) & 1 for b in bit_numbers(h, self.layout, self.k, self.m))

    def add(self, elements):
        """A filter that holds these elements, all of one class, too."""
        classes = {element_class for element_class, _ in elements} | {self.element_class} - {0}
        if len(classes) > 1:
            raise Refused("elements of different classes")
        added = (hash_of(canonical, self.seed) for _, canonical in elements)
        return self.with_hashes(max(classes, default=0), added)

    def with_hashes(self, element_class, added):
        typed = replace(self, element_class=element_class)
        if not self.sparse:
            return replace(typed, bits=self.bits_with(self.bits, added))
        hashes = sorted({*self.hashes, *added})
        if may_be_sparse(len(hashes), self.m):
            return replace(typed, hashes=tuple(hashes))
        return replace(typed, hashes=None, bits=self.bits_with(bytes(self.m // 8), hashes))

    def bits_with(self, bits, hashes):
        changed = bytearray(bits)
        for h in hashes:
            for b in bit_numbers(h, self.layout, self.k, self.m):
                changed[b >> 3] |= 1 << (b & 7)
        return bytes(changed)

    # Sizes

    def blocks(self):
        size = geometry(self.layout, self.m)[0] // 8
        return [self.bits[i : i + size] for i in range(0, len(self.bits), size)]

    def fold(self, m):
        """The same elements at another size: exactly the bits that they would have set there."""
        if self.sparse:
            return replace(self, m=m, hashes=()).with_hashes(self.element_class, self.hashes)
        if m != self.m and (self.layout == "classic" or self.m % m != 0):
            raise Refused("dense, and m is not divisible")
        t = self.m // m
        blocks = self.blocks()
        folded = [either(*blocks[i : i + t]) for i in range(0, len(blocks), t)]
        return replace(self, m=m, bits=b"".join(folded))

    # Estimates

    def cardinality(self):
        if self.sparse:
            return float(len(self.hashes))
        B, nblocks = geometry(self.layout, self.m)
        bits_set = popcount(self.bits)
        if bits_set == self.m:
            return math.inf
        share = -math.expm1(self.k * math.log1p(-1 / B))  # of its block's bits that an element sets
        return math.log1p(-bits_set / self.m) / math.log1p(-share / nblocks)

    def current_rate(self):
        if self.sparse:
            return len(self.hashes) / 2**64
        B, nblocks = geometry(self.layout, self.m)
        return math.fsum((popcount(block) / B) ** self.k for block in self.blocks()) / nblocks


def may_be_sparse(n, m):
    return 8 * n < m / 8


def popcount(data):
    return bin(int.from_bytes(data, "little")).count("1")


def either(first, *others):
    bits = int.from_bytes(first, "little")
    for other in others:
        bits |= int.from_bytes(other, "little")
    return bits.to_bytes(len(first), "little")


def both(first, second):
    bits = int.from_bytes(first, "little") & int.from_bytes(second, "little")
    return bits.to_bytes(len(first), "little")


def create(layout, p, *, items, seed=0):
    """An empty filter for that many elements."""
    m = choose_m(layout, p, items)
    return Filter(layout, choose_k(layout, p), single(p), seed & U64, m)


def empty(p=0.01, *, seed=0):
    """An empty filter without a size. An aggregate over no rows gives the one with these defaults."""
    return Filter("blocked", choose_k("blocked", p), single(p), seed & U64, 0)


def build(layout, p, elements, *, items, seed=0):
    """The filter of these elements, all of one class."""
    return create(layout, p, items=items, seed=seed).add(elements)


def build_self_sized(p, elements, *, seed=0):
    """The same, but sized for what came instead of what was expected."""
    hashes = {hash_of(canonical, seed) for _, canonical in elements}
    unsized = empty(p, seed=seed)
    return replace(unsized, m=choose_own_m(p, len(hashes))).add(elements) if hashes else unsized


# Union and intersection

def check_alike(a, b):
    """Equal but for size and rate."""
    if (a.layout, a.k, a.seed) != (b.layout, b.k, b.seed):
        raise Refused("other parameters")
    if a.element_class != b.element_class and a.element_class and b.element_class:
        raise Refused("elements of different classes")


def combination(a, b):
    """What both operations share: an empty filter of that size, the lower rate, the class."""
    check_alike(a, b)
    if a.m != b.m:
        raise Refused("different sizes")
    return Filter(a.layout, a.k, min(a.p, b.p), a.seed, a.m, a.element_class or b.element_class)


def lesser_without_size(a, b):
    return min(a, b, key=lambda f: (f.p, f.k, f.seed))


def union(a, b):
    if a.without_size and b.without_size:
        return lesser_without_size(a, b)
    if a.without_size or b.without_size:
        return b if a.without_size else a
    result = combination(a, b)
    dense = [f.bits for f in (a, b) if not f.sparse]
    hashes = [h for f in (a, b) if f.sparse for h in f.hashes]
    if dense:
        result = replace(result, hashes=None, bits=either(*dense))
    return result.with_hashes(result.element_class, hashes)


def intersect(a, b):
    if a.without_size and b.without_size:
        return lesser_without_size(a, b)
    if a.without_size or b.without_size:
        return replace(b if a.without_size else a, hashes=(), bits=None)
    result = combination(a, b)
    if not a.sparse and not b.sparse:
        return replace(result, hashes=None, bits=both(a.bits, b.bits))
    listed, other = (a, b) if a.sparse else (b, a)
    return replace(result, hashes=tuple(h for h in listed.hashes if other.contains_hash(h)))


def union_agg(filters):
    return functools.reduce(union, filters)


def fold_like(f, like):
    """f at the size and rate of another filter, with which the result combines."""
    if like.without_size:
        return f
    if f.without_size:
        return replace(like, element_class=0, hashes=(), bits=None)
    check_alike(f, like)
    return replace(f.fold(like.m), p=like.p)


# Reading

def decode(data):
    """The filter in these bytes, or Refused. `decode(data).encode() == data` for all it accepts."""

    def require(condition, message):
        if not condition:
            raise Refused(message)

    require(len(data) >= HEADER.size, "shorter than a header")
    version, layout, flags, k, element_class, p, seed, m = HEADER.unpack_from(data)
    payload = data[HEADER.size :]
    sparse = flags & SPARSE != 0

    require(version == VERSION, "another version")
    require(layout < len(LAYOUTS), "another layout")
    require(flags & SIZES_ITSELF == 0, "the state of an aggregate, not a value")
    require(flags & ~SPARSE == 0, "another flag")
    require(1 <= k <= MAX_K, "k outside 1 .. 32")
    require(element_class == 0 or element_class in CLASSES.values(), "a class not in the table")
    require(0 < p < 1, "p is not between 0 and 1")  # false for NaN
    require(m <= MAX_BITS, "m over 2^31")
    require(m % (BLOCK if LAYOUTS[layout] == "blocked" else 64) == 0, "m is not a multiple of its unit")

    fixed = (LAYOUTS[layout], k, p, seed, m, element_class)
    if m == 0:
        require(sparse and not payload and element_class == 0, "m = 0 in a filter with elements or bits")
        require(LAYOUTS[layout] == "blocked", "m = 0 in the classic layout")
        return Filter(*fixed)
    if not sparse:
        require(len(payload) == m // 8, "length of the bits")
        require(element_class != 0, "class 0 in a dense filter")
        return Filter(*fixed, hashes=None, bits=bytes(payload))
    require(len(payload) % 8 == 0, "length of the hashes")
    hashes = struct.unpack(f"<{len(payload) // 8}Q", payload)
    require(may_be_sparse(len(hashes), m), "too many hashes")
    require(all(a < b for a, b in zip(hashes, hashes[1:])), "hashes not strictly ascending")
    require(not hashes or element_class != 0, "class 0 in a filter with hashes")
    return Filter(*fixed, hashes=hashes)
