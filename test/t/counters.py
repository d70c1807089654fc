"""A model of counters that change in place, so that it can follow a million operations: the number at each position, in
plain Python. Hashes and positions come from test/golden/reference.py, whose counters never change.
"""

import functools
import hashlib
import struct
from dataclasses import dataclass, field, replace
from typing import Optional

import session  # makes reference.py known
import reference as ref

COUNTER, LEVELS = 4, 32  # flags
WIDTH_FLAGS = {4: 0, 8: 8, 16: 16}
INVALID, MISMATCH = "22023", "42804"


class Error(Exception):
    """An operation is refused, with this SQLSTATE."""


def require(condition, sqlstate=INVALID):
    if not condition:
        raise Error(sqlstate)


@functools.lru_cache(None)
def positions(h, layout, k, m):
    return tuple(dict.fromkeys(ref.bit_numbers(h, layout, k, m)))


@functools.lru_cache(None)
def hash_of(number, seed):
    """The hash of an integer."""
    return ref.hash_of(ref.int8(number), seed)


@dataclass
class Counter:
    """Sparse if `dense` is None: then `numbers` holds the number of each hash."""

    layout: str
    k: int
    p: float
    seed: int
    m: int
    width: int = 4
    element_class: int = 0
    levels: bool = False
    numbers: dict = field(default_factory=dict)
    dense: Optional[list] = None

    @property
    def limit(self):
        return (1 << self.width) - 1

    @property
    def sparse(self):
        return self.dense is None

    @property
    def empty(self):
        return self.sparse and not self.numbers

    def copy(self):
        return replace(self, numbers=dict(self.numbers), dense=None if self.sparse else list(self.dense))

    def places(self, h):
        return positions(h, self.layout, self.k, self.m)

    def read(self, h):
        if self.sparse:
            return self.numbers.get(h, 0)
        dense = self.dense
        return min([dense[i] for i in self.places(h)])

    def saturated(self):
        return self.limit in (self.numbers.values() if self.sparse else self.dense)

    def settle(self, raising=True):
        """Turns a sparse counter dense that is too large: by adding its numbers after a sum, by raising to them after a
        maximum. Makes an empty one canonical. Modifies and returns the counter, as all that follow do."""
        if self.empty:
            self.element_class, self.levels = 0, False
        elif self.sparse and 80 * len(self.numbers) >= self.m * self.width:
            self.turn_dense(raising)
        return self

    def turn_dense(self, raising):
        numbers, self.numbers, self.dense = self.numbers, {}, [0] * self.m
        for h, number in numbers.items():
            self.apply(h, number, raising)
        return self

    def apply(self, h, number, raising):
        """Adds to or raises the positions of a dense counter."""
        dense, limit = self.dense, self.limit
        for i in self.places(h):
            dense[i] = max(dense[i], number) if raising else min(limit, dense[i] + number)

    def add(self, h, times=1, element_class=20):
        self.element_class = self.element_class or element_class
        if self.sparse:
            self.numbers[h] = min(self.limit, self.numbers.get(h, 0) + times)
            return self.settle(False)
        self.apply(h, times, False)
        return self

    def raise_to(self, h, level, element_class=20):
        self.element_class, self.levels = self.element_class or element_class, True
        if self.sparse:
            self.numbers[h] = max(self.numbers.get(h, 0), level)
            return self.settle()
        self.apply(h, level, True)
        return self

    def remove(self, h, times=1):
        require(not self.levels)
        return self.take(h, times).settle()

    def take(self, h, times):
        now, limit = self.read(h), self.limit
        require(now >= times or now == limit)
        if self.sparse:
            if now == times and now != limit:
                del self.numbers[h]
            elif now != limit:
                self.numbers[h] -= times
            return self
        for i in self.places(h):
            if self.dense[i] != limit:
                self.dense[i] -= times
        return self

    def decay(self, by=1):
        self.levels = True
        if not self.sparse:
            self.dense = [max(0, number - by) for number in self.dense]
        self.numbers = {h: number - by for h, number in self.numbers.items() if number > by}
        return self.settle()

    def at_least(self, level):
        """The filter of what reads that much."""
        like = ref.Filter(self.layout, self.k, self.p, self.seed, self.m)
        if self.sparse:
            hashes = [h for h, number in self.numbers.items() if number >= level]
            return like.with_hashes(self.element_class, hashes) if hashes else like
        bits = sum(1 << i for i, number in enumerate(self.dense) if number >= level)
        return replace(like, element_class=self.element_class, hashes=None, bits=bits.to_bytes(self.m // 8, "little"))

    def payload(self):
        if self.sparse:
            hashes = sorted(self.numbers)
            return struct.pack(f"<{len(hashes)}Q", *hashes) + struct.pack(
                f"<{len(hashes)}H", *(self.numbers[h] for h in hashes)
            )
        if self.width == 4:
            return bytes(low | high << 4 for low, high in zip(self.dense[::2], self.dense[1::2]))
        return struct.pack(f"<{self.m}{'B' if self.width == 8 else 'H'}", *self.dense)

    def encode(self):
        flags = COUNTER | WIDTH_FLAGS[self.width] | (ref.SPARSE if self.sparse else 0) | (LEVELS if self.levels else 0)
        return ref.HEADER.pack(
            ref.VERSION, ref.LAYOUTS.index(self.layout), flags, self.k, self.element_class, self.p, self.seed, self.m
        ) + self.payload()  # fmt: skip

    def hex(self):
        return "\\x" + self.encode().hex()


def decode(data):
    """The counter in bytes that are known to be one."""
    _, layout, flags, k, element_class, p, seed, m = ref.HEADER.unpack_from(data)
    width = next(width for width, flag in WIDTH_FLAGS.items() if flags & 24 == flag)
    payload = data[ref.HEADER.size :]
    c = Counter(ref.LAYOUTS[layout], k, p, seed, m, width, element_class, bool(flags & LEVELS))
    if flags & ref.SPARSE:
        n = len(payload) // 10
        c.numbers = dict(zip(struct.unpack_from(f"<{n}Q", payload), struct.unpack_from(f"<{n}H", payload, 8 * n)))
    elif width == 4:
        c.dense = [number for byte in payload for number in (byte & 15, byte >> 4)]
    else:
        c.dense = list(struct.unpack(f"<{m}{'B' if width == 8 else 'H'}", payload))
    return c


def sha256(c):
    return hashlib.sha256(c.encode()).hexdigest()


def create(items, p=0.01, width=4, layout="blocked", seed=0):
    f = ref.create(layout, p, items=items, seed=seed)
    return Counter(layout, f.k, f.p, f.seed, f.m, width)


def unsized(p=0.01, width=4):
    f = ref.empty(p)
    return Counter(f.layout, f.k, f.p, f.seed, 0, width)


def built(like, numbers, raising=False):
    """A copy of a counter to which elements with these hashes and numbers were added, or that was raised to them."""
    c = like.copy()
    for h, number in numbers.items():
        (c.raise_to if raising else c.add)(h, number)
    return c


# Combinations of two counters


def combined(a, b):
    """A sparse counter without elements, with the parameters of both."""
    require((a.layout, a.k, a.seed, a.m, a.width) == (b.layout, b.k, b.seed, b.m, b.width))
    require(not (a.element_class and b.element_class) or a.element_class == b.element_class, MISMATCH)
    return Counter(a.layout, a.k, min(a.p, b.p), a.seed, a.m, a.width, a.element_class or b.element_class)


def with_contents(result, c, levels):
    """The result, which becomes a copy of the contents of c."""
    result.numbers, result.dense, result.levels = dict(c.numbers), None if c.sparse else list(c.dense), levels
    return result.settle()


def lesser_without_size(a, b):
    return min(a, b, key=lambda c: (c.p, c.k, c.seed, c.width))


def joined(a, b, raising):
    """a + b, or a | b."""
    if not a.m and not b.m:
        return lesser_without_size(a, b).copy()
    if not a.m or not b.m:
        return (a if a.m else b).copy()
    result = combined(a, b)
    if a.empty or b.empty:
        rest = b if a.empty else a
        return with_contents(result, rest, rest.levels)
    result.levels = raising or a.levels or b.levels
    if a.sparse and b.sparse:
        for h in {**a.numbers, **b.numbers}:
            x, y = a.numbers.get(h, 0), b.numbers.get(h, 0)
            result.numbers[h] = max(x, y) if raising else min(a.limit, x + y)
        return result.settle(raising)
    if not a.sparse and not b.sparse:
        if raising:
            result.dense = [max(x, y) for x, y in zip(a.dense, b.dense)]
        else:
            result.dense = [min(a.limit, x + y) for x, y in zip(a.dense, b.dense)]
        return result
    dense, listed = (b, a) if a.sparse else (a, b)
    result.dense = list(dense.dense)
    for h, number in listed.numbers.items():
        result.apply(h, number, raising)
    return result


def plus(a, b):
    return joined(a, b, False)


def union(a, b):
    return joined(a, b, True)


def minus(a, b):
    if not b.m:
        return a.copy()
    if not a.m:
        a = replace(b, element_class=0, levels=False, numbers={}, dense=None)
    result = combined(a, b)
    if b.empty:
        return with_contents(result, a, a.levels)
    require(not a.levels and not b.levels)
    with_contents(result, a, False)
    if b.sparse:
        for h, number in b.numbers.items():
            result.take(h, number)
        return result.settle()
    if a.sparse:
        result.element_class = a.element_class or b.element_class
        result.turn_dense(False)
    limit = a.limit
    require(all(x == limit or x >= y for x, y in zip(result.dense, b.dense)))
    result.dense = [x if x == limit else x - y for x, y in zip(result.dense, b.dense)]
    return result


def intersection(a, b):
    if not a.m or not b.m:
        rest = a if a.m else b if b.m else lesser_without_size(a, b)
        return replace(rest, element_class=0, levels=False, numbers={}, dense=None)
    result = combined(a, b)
    if not a.sparse and not b.sparse:
        result.levels, result.dense = True, [min(x, y) for x, y in zip(a.dense, b.dense)]
        return result
    listed, other = (a, b) if a.sparse else (b, a)
    numbers = {h: min(number, other.read(h)) for h, number in listed.numbers.items()}
    result.numbers, result.levels = {h: number for h, number in numbers.items() if number}, True
    return result.settle()


OPERATIONS = {"+": plus, "-": minus, "|": union, "&": intersection}


# What the aggregates give


def gathered(base, numbers, raising=False):
    """The result of an aggregate onto a counter over elements with these hashes. A counter without a size takes the one
    that its elements need."""
    if base.m == 0 and numbers:
        base = replace(base, m=ref.choose_own_m(base.p, len(numbers)))
    return built(base, numbers, raising)
