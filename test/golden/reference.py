"""The format of `bloomfilter` and `bloomcounter`, version 1, in plain Python: doc/format.md as a program.

Written from that page alone and for reading, as a pattern for ports to other languages; it is not
fast. The only package needed is xxhash (Debian: python3-xxhash).

    >>> f = build("blocked", 0.01, [element("text", "alice")], items=1000)
    >>> f.encode().hex()
    '01000106190000000ad7233c0000000000000000002800000000000049602e5f48eaa373'
    >>> f.contains(element("text", "alice")), f.contains(element("text", "bob"))
    (True, False)
    >>> c = build_counts("blocked", 0.01, [(element("text", "alice"), 3)], items=1000)
    >>> c.remove(element("text", "alice")).read(element("text", "alice"))
    2
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
SPARSE, SIZES_ITSELF, COUNTER, LEVELS = 1, 2, 4, 32  # flags
WIDTHS = {4: 0, 8: 8, 16: 16}  # bits of a counter's numbers, and the flags that say so
WIDTH_FLAGS = 8 | 16
BLOCK = 512  # bits in a block of the blocked layout
MAX_K = 32
MAX_BITS = 1 << 31
MAX_NUMBERS_BITS = 1 << 31  # of all numbers of a counter together
HEADER = struct.Struct("<BBBBIfQQ")  # 28 bytes
U64 = (1 << 64) - 1
G = 0x9E3779B97F4A7C15


class Refused(ValueError):
    """These bytes are no value of the type, or an operation is an error for these values."""


def require(condition, message):
    if not condition:
        raise Refused(message)


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


def choose_m(layout, p, n, largest=MAX_BITS):
    """The m of a filter or a counter for n elements."""
    p, k = single(p), choose_k(layout, p)
    if layout == "blocked":
        m = BLOCK * round_up_blocks(-(-n * bits_per_element(p) // (1024 * BLOCK)))
    elif classic_rate(k, largest, n) <= p:
        m = 64 * least(lambda words: classic_rate(k, 64 * words, n) <= p, 0, largest // 64)
    else:
        m = math.inf
    if m > largest:
        raise ValueError("the largest size does not keep that rate with so many elements")
    return m


def capacity(p, m):
    """How many elements m bits of the blocked layout are for."""
    return 1024 * m // bits_per_element(p)


def choose_own_m(p, n, largest=MAX_BITS):
    """The m of a filter or a counter that sizes itself, for n distinct hashes. It is blocked."""
    m = BLOCK
    while m < largest and capacity(p, m) < n:
        m *= 2
    return m


# What filters and counters have in common

@dataclass(frozen=True)
class Parameters:
    """The header without its flags."""

    layout: str
    k: int
    p: float  # as rounded to single precision
    seed: int  # unsigned
    m: int
    element_class: int = 0

    @property
    def without_size(self):
        return self.m == 0

    def encode(self):
        return HEADER.pack(
            VERSION, LAYOUTS.index(self.layout), self.flags, self.k,
            self.element_class, self.p, self.seed, self.m,
        ) + self.payload  # fmt: skip

    def hash_to_find(self, an_element):
        element_class, canonical = an_element
        require(self.element_class in (0, element_class), "elements of another class")
        return hash_of(canonical, self.seed)

    def class_with(self, elements):
        """The class once it holds these elements, too."""
        classes = {element_class for element_class, _ in elements} | {self.element_class} - {0}
        require(len(classes) <= 1, "elements of different classes")
        return max(classes, default=0)

    def cardinality_of_dense(self, positions_set):
        B, nblocks = geometry(self.layout, self.m)
        if positions_set == self.m:
            return math.inf
        share = -math.expm1(self.k * math.log1p(-1 / B))  # of its block's positions that an element has
        return math.log1p(-positions_set / self.m) / math.log1p(-share / nblocks)

    def rate_of_dense(self, set_in_each_block):
        B, nblocks = geometry(self.layout, self.m)
        return math.fsum((positions_set / B) ** self.k for positions_set in set_in_each_block) / nblocks


# The filter

@dataclass(frozen=True)
class Filter(Parameters):
    """Sparse if `hashes` is given (distinct and ascending), dense if `bits` is."""

    hashes: Optional[tuple] = ()
    bits: Optional[bytes] = None

    @property
    def sparse(self):
        return self.bits is None

    @property
    def flags(self):
        return SPARSE if self.sparse else 0

    @property
    def payload(self):
        return encode_hashes(self.hashes) if self.sparse else self.bits

    def contains(self, an_element):
        return self.contains_hash(self.hash_to_find(an_element))

    def contains_hash(self, h):
        if self.sparse:
            return h in self.hashes
        return all(self.bits[b >> 3] >> (b & 7) & 1 for b in bit_numbers(h, self.layout, self.k, self.m))

    def add(self, elements):
        """A filter that holds these elements, all of one class, too."""
        added = (hash_of(canonical, self.seed) for _, canonical in elements)
        return self.with_hashes(self.class_with(elements), added)

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
        return self.cardinality_of_dense(popcount(self.bits))

    def current_rate(self):
        if self.sparse:
            return len(self.hashes) / 2**64
        return self.rate_of_dense(popcount(block) for block in self.blocks())


def may_be_sparse(n, m):
    return n == 0 or 8 * n < m / 8


def encode_hashes(hashes):
    return struct.pack(f"<{len(hashes)}Q", *hashes)


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
    require((a.layout, a.k, a.seed) == (b.layout, b.k, b.seed), "other parameters")
    require(a.element_class == b.element_class or not a.element_class or not b.element_class, "different classes")


def combination(a, b):
    """a with the parameters of all its combinations with b: the lower rate, the class of either."""
    check_alike(a, b)
    require(a.m == b.m, "different sizes")
    return replace(a, p=min(a.p, b.p), element_class=a.element_class or b.element_class)


def lesser_without_size(a, b):
    return min(a, b, key=lambda f: (f.p, f.k, f.seed, f.flags))


def union(a, b):
    if a.without_size and b.without_size:
        return lesser_without_size(a, b)
    if a.without_size or b.without_size:
        return b if a.without_size else a
    dense = [f.bits for f in (a, b) if not f.sparse]
    hashes = [h for f in (a, b) if f.sparse for h in f.hashes]
    result = replace(combination(a, b), hashes=(), bits=None)
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
    return replace(result, hashes=tuple(h for h in listed.hashes if other.contains_hash(h)), bits=None)


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


# The counter

@dataclass(frozen=True)
class Counter(Parameters):
    """Sparse if `listed` is given (hashes with their numbers, by ascending hash), dense if `numbers` is."""

    width: int = 4
    levels: bool = False
    listed: Optional[tuple] = ()
    numbers: Optional[tuple] = None

    @property
    def sparse(self):
        return self.numbers is None

    @property
    def without_elements(self):
        return self.sparse and not self.listed

    @property
    def limit(self):
        return (1 << self.width) - 1

    @property
    def flags(self):
        return COUNTER | WIDTHS[self.width] | SPARSE * self.sparse | LEVELS * self.levels

    @property
    def payload(self):
        if not self.sparse:
            return encode_numbers(self.width, self.numbers)
        return encode_hashes([h for h, _ in self.listed]) + encode_numbers(16, [n for _, n in self.listed])

    def positions(self, h):
        """Distinct: two throws that hit the same position count once."""
        return set(bit_numbers(h, self.layout, self.k, self.m))

    def read(self, an_element):
        """How often or at which level, or more. The limit means "that or more"."""
        return self.read_hash(self.hash_to_find(an_element))

    def read_hash(self, h):
        if self.sparse:
            return dict(self.listed).get(h, 0)
        return min(self.numbers[position] for position in self.positions(h))

    def contains(self, an_element):
        return self.read(an_element) >= 1

    # Changes of an element. What goes up is `plus` for counts and the built-in `max` for levels.

    def plus(self, number, times):
        return min(self.limit, number + times)

    def minus(self, number, times):
        """What has reached the limit stays there: nobody knows how much more was added."""
        return number if number == self.limit else number - times

    def fits(self, number, times):
        return number >= times or number == self.limit

    def add(self, an_element, times=1):
        self.check_number(times)
        return self.count([(an_element, times)])

    def raise_(self, an_element, level):
        self.check_number(level)
        return self.lift([(an_element, level)])

    def remove(self, an_element, times=1):
        self.check_number(times)
        require(not self.levels, "nothing can be removed from levels")
        self.class_with([an_element])
        _, canonical = an_element
        return self.without([(hash_of(canonical, self.seed), times)])

    def check_number(self, number):
        require(1 <= number <= self.limit, "a number outside 1 .. the limit")

    def count(self, counted):
        """A counter that holds these elements, all of one class, that many times more. Pairs."""
        return self.with_elements(counted, self.plus, self.levels)

    def lift(self, lifted):
        """A counter that holds these elements, all of one class, at these levels or more. Pairs."""
        return self.with_elements(lifted, max, True)

    def with_elements(self, pairs, up, levels):
        if not pairs:
            return self
        require(not self.without_size, "no size")
        element_class = self.class_with([an_element for an_element, _ in pairs])
        hashed = [(hash_of(canonical, self.seed), number) for (_, canonical), number in pairs]
        return replace(self, element_class=element_class, levels=levels).with_hashes(hashed, up)

    def with_hashes(self, pairs, up):
        if not self.sparse:
            numbers = list(self.numbers)
            for h, number in pairs:
                for position in self.positions(h):
                    numbers[position] = up(numbers[position], number)
            return replace(self, numbers=tuple(numbers))
        numbers = dict(self.listed)
        for h, number in pairs:
            numbers[h] = min(self.limit, up(numbers.get(h, 0), number))
        listing = self.listing(numbers)
        return listing if counter_may_be_sparse(len(numbers), self.m, self.width) else listing.dense(up)

    def listing(self, numbers):
        """Sparse, with the numbers that are not 0. Without any it has no class and no contents."""
        listed = tuple(sorted((h, number) for h, number in numbers.items() if number > 0))
        sparse = replace(self, listed=listed, numbers=None)
        return sparse if listed else replace(sparse, element_class=0, levels=False)

    def dense(self, up):
        return replace(self, listed=None, numbers=(0,) * self.m).with_hashes(self.listed, up)

    def without(self, pairs):
        numbers = dict(self.listed) if self.sparse else list(self.numbers)
        for h, times in pairs:
            if self.sparse:
                require(self.fits(numbers.get(h, 0), times), "not held that often")
                numbers[h] = self.minus(numbers[h], times)
                continue
            positions = self.positions(h)
            require(self.fits(min(numbers[position] for position in positions), times), "not held that often")
            for position in positions:
                numbers[position] = self.minus(numbers[position], times)
        return self.listing(numbers) if self.sparse else replace(self, numbers=tuple(numbers))

    # Changes of all numbers

    def decay(self, by=1):
        """Numbers at the limit, too, are lowered."""
        self.check_number(by)
        lowered = replace(self, levels=True)
        if self.sparse:
            return lowered.listing({h: max(0, number - by) for h, number in self.listed})
        return replace(lowered, numbers=tuple(max(0, number - by) for number in self.numbers))

    def fold(self, m):
        """The same elements in fewer blocks. Only an aggregate that sizes itself does this."""
        require(not self.sparse and self.layout == "blocked" and self.m % m == 0, "not divisible")
        t = self.m // m  # neighbouring blocks that become one
        up = max if self.levels else self.plus
        numbers = [0] * m
        for position, number in enumerate(self.numbers):
            folded = position // (t * BLOCK) * BLOCK + position % BLOCK
            numbers[folded] = up(numbers[folded], number)
        return replace(self, m=m, numbers=tuple(numbers))

    def at_least(self, level):
        """The filter of what reads this level or more."""
        self.check_number(level)
        empty_filter = Filter(self.layout, self.k, self.p, self.seed, self.m)
        if self.sparse:
            hashes = [h for h, number in self.listed if number >= level]
            return empty_filter.with_hashes(self.element_class if hashes else 0, hashes)
        bits = sum(1 << position for position, number in enumerate(self.numbers) if number >= level)
        return replace(
            empty_filter, element_class=self.element_class, hashes=None, bits=bits.to_bytes(self.m // 8, "little")
        )

    def to_filter(self):
        return self.at_least(1)

    # Estimates

    def cardinality(self):
        """Of distinct elements."""
        if self.sparse:
            return float(len(self.listed))
        return self.cardinality_of_dense(count_set(self.numbers))

    def total(self):
        """The number of additions, repetitions included."""
        require(not self.levels, "levels have no total")
        if self.sparse:
            return float(sum(number for _, number in self.listed))
        B, _ = geometry(self.layout, self.m)
        return sum(self.numbers) / (B * -math.expm1(self.k * math.log1p(-1 / B)))

    def current_rate(self):
        if self.sparse:
            return len(self.listed) / 2**64
        B, _ = geometry(self.layout, self.m)
        return self.rate_of_dense(count_set(self.numbers[i : i + B]) for i in range(0, self.m, B))


def counter_may_be_sparse(n, m, width):
    return n == 0 or 10 * n < m * width / 8


def count_set(numbers):
    return sum(number > 0 for number in numbers)


def encode_numbers(width, numbers):
    if width == 4:
        return bytes(low | high << 4 for low, high in zip(numbers[::2], numbers[1::2]))
    return struct.pack(f"<{len(numbers)}{'B' if width == 8 else 'H'}", *numbers)


def decode_numbers(width, data):
    if width == 4:
        return tuple(number for byte in data for number in (byte & 15, byte >> 4))
    return struct.unpack(f"<{8 * len(data) // width}{'B' if width == 8 else 'H'}", data)


def create_counter(layout, p, *, items, width=4, seed=0):
    """An empty counter for that many distinct elements."""
    m = choose_m(layout, p, items, MAX_NUMBERS_BITS // width)
    return Counter(layout, choose_k(layout, p), single(p), seed & U64, m, width=width)


def empty_counter(p=0.01, *, width=4, seed=0):
    """An empty counter without a size. An aggregate over no rows gives the one with these defaults."""
    return Counter("blocked", choose_k("blocked", p), single(p), seed & U64, 0, width=width)


def create_for(p, pairs, *, width=4, seed=0):
    """An empty counter that sized itself for the elements of these pairs."""
    hashes = {hash_of(canonical, seed) for (_, canonical), _ in pairs}
    m = choose_own_m(p, len(hashes), MAX_NUMBERS_BITS // width) if hashes else 0
    return replace(empty_counter(p, width=width, seed=seed), m=m)


def build_counts(layout, p, counted, *, items, width=4, seed=0):
    """The counter of pairs of an element and how often it is added; the elements are all of one class."""
    return create_counter(layout, p, items=items, width=width, seed=seed).count(counted)


def build_levels(layout, p, lifted, *, items, width=4, seed=0):
    """The counter of pairs of an element and a level; the greatest level of each element counts."""
    return create_counter(layout, p, items=items, width=width, seed=seed).lift(lifted)


def build_counts_self_sized(p, counted, *, width=4, seed=0):
    return create_for(p, counted, width=width, seed=seed).count(counted)


def build_levels_self_sized(p, lifted, *, width=4, seed=0):
    return create_for(p, lifted, width=width, seed=seed).lift(lifted)


# Sum, difference, union and intersection of counters

def counter_combination(a, b):
    require(a.width == b.width, "different widths")
    return combination(a, b)


def sum_of(a, b):
    return merge(a, b, a.plus, a.levels or b.levels)


def greater(a, b):
    """The union. What one counter alone holds stays counts."""
    either_alone = a.without_elements or b.without_elements
    return merge(a, b, max, a.levels or b.levels or not either_alone)


def merge(a, b, up, levels):
    if a.without_size and b.without_size:
        return lesser_without_size(a, b)
    if a.without_size or b.without_size:
        return b if a.without_size else a
    result = replace(counter_combination(a, b), levels=levels)
    if not a.sparse and not b.sparse:
        return replace(result, numbers=tuple(map(up, a.numbers, b.numbers)))
    listed, other = (b, a) if b.sparse else (a, b)
    return replace(result, listed=other.listed, numbers=other.numbers).with_hashes(listed.listed, up)


def difference(a, b):
    if b.without_size:
        return a
    if a.without_size:
        require(b.without_elements, "not held that often")
        return b
    result = counter_combination(a, b)
    if b.without_elements:
        return result
    require(not a.levels and not b.levels, "levels have no difference")
    if b.sparse:
        return result.without(b.listed)
    result = result.dense(a.plus) if a.sparse else result
    require(all(map(a.fits, result.numbers, b.numbers)), "not held that often")
    return replace(result, numbers=tuple(map(a.minus, result.numbers, b.numbers)))


def lesser(a, b):
    """The intersection."""
    if a.without_size and b.without_size:
        return lesser_without_size(a, b)
    if a.without_size or b.without_size:
        return (b if a.without_size else a).listing({})
    result = replace(counter_combination(a, b), levels=True)
    if not a.sparse and not b.sparse:
        return replace(result, numbers=tuple(map(min, a.numbers, b.numbers)))
    listed, other = (a, b) if a.sparse else (b, a)
    return result.listing({h: min(number, other.read_hash(h)) for h, number in listed.listed})


def sum_agg(counters):
    return functools.reduce(sum_of, counters)


def greater_agg(counters):
    return functools.reduce(greater, counters)


# Reading

def decode_header(data, known_flags):
    """The parameters, the flags and the payload, after the checks that do not depend on the type."""
    require(len(data) >= HEADER.size, "shorter than a header")
    version, layout, flags, k, element_class, p, seed, m = HEADER.unpack_from(data)
    require(version == VERSION, "another version")
    require(layout < len(LAYOUTS), "another layout")
    require(flags & SIZES_ITSELF == 0, "the state of an aggregate, not a value")
    require(flags & ~known_flags == 0, "another flag")
    require(1 <= k <= MAX_K, "k outside 1 .. 32")
    require(element_class == 0 or element_class in CLASSES.values(), "a class not in the table")
    require(0 < p < 1, "p is not between 0 and 1")  # false for NaN
    require(m % (BLOCK if LAYOUTS[layout] == "blocked" else 64) == 0, "m is not a multiple of its unit")
    payload = data[HEADER.size :]
    if m == 0:
        require(flags & SPARSE and not payload and element_class == 0, "m = 0 with elements or positions")
        require(LAYOUTS[layout] == "blocked", "m = 0 in the classic layout")
    return (LAYOUTS[layout], k, p, seed, m, element_class), flags, payload


def decode_hashes(data):
    hashes = struct.unpack(f"<{len(data) // 8}Q", data)
    require(all(a < b for a, b in zip(hashes, hashes[1:])), "hashes not strictly ascending")
    return hashes


def decode(data):
    """The filter in these bytes, or Refused. `decode(data).encode() == data` for all it accepts."""
    parameters, flags, payload = decode_header(data, SPARSE)
    *_, m, element_class = parameters
    require(m <= MAX_BITS, "m over 2^31")
    if not flags & SPARSE:
        require(len(payload) == m // 8, "length of the bits")
        require(element_class != 0, "class 0 in a dense filter")
        return Filter(*parameters, hashes=None, bits=bytes(payload))
    require(len(payload) % 8 == 0, "length of the hashes")
    require(may_be_sparse(len(payload) // 8, m), "too many hashes")
    require(not payload or element_class != 0, "class 0 in a filter with hashes")
    return Filter(*parameters, hashes=decode_hashes(payload))


def decode_counter(data):
    """The counter in these bytes, or Refused."""
    parameters, flags, payload = decode_header(data, SPARSE | COUNTER | WIDTH_FLAGS | LEVELS)
    *_, m, element_class = parameters
    require(flags & COUNTER, "a filter")
    require(flags & WIDTH_FLAGS in WIDTHS.values(), "an unknown width")
    width = next(width for width, flag in WIDTHS.items() if flag == flags & WIDTH_FLAGS)
    require(m * width <= MAX_NUMBERS_BITS, "m over the maximum of this width")
    contents = {"width": width, "levels": flags & LEVELS != 0}
    if not flags & SPARSE:
        require(len(payload) == m * width // 8, "length of the numbers")
        require(element_class != 0, "class 0 in a dense counter")
        return Counter(*parameters, **contents, listed=None, numbers=decode_numbers(width, payload))
    n, rest = divmod(len(payload), 10)
    require(rest == 0, "length of the hashes and their numbers")
    require(counter_may_be_sparse(n, m, width), "too many hashes")
    require((n > 0) == (element_class != 0), "a class without elements, or elements without a class")
    require(n > 0 or not flags & LEVELS, "levels without elements")
    numbers = decode_numbers(16, payload[8 * n :])
    require(all(1 <= number < 1 << width for number in numbers), "a number that is 0 or above the limit")
    return Counter(*parameters, **contents, listed=tuple(zip(decode_hashes(payload[: 8 * n]), numbers)))
