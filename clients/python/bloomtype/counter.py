"""The counter: a Bloom filter that keeps numbers instead of bits. This package only reads it."""

from __future__ import annotations

import math
import operator
import sys
from array import array
from typing import Optional, Sequence

from xxhash import xxh64_intdigest

from .elements import QUESTION_ENCODERS, ElementClass, class_of, find_encoder
from .encoding import Contents, CounterContents, Encoded, decode_counter
from .errors import ParameterError
from .filter import BloomFilter
from .geometry import PurePythonGeometry, shape_of


class BloomCounter:
    """How often elements of one SQL type were added, or their levels, as PostgreSQL's type bloomcounter.

    A number is never below the true one, and above it at the false-positive rate. A counter is immutable here. The
    classes of values, and the errors of a question, are those of BloomFilter.
    """

    def __init__(self, contents: CounterContents):
        """For load."""
        self._contents = contents
        self._geometry = PurePythonGeometry(*shape_of(contents.parameters))
        self._question_encoders = QUESTION_ENCODERS[contents.element_class]

    @classmethod
    def load(cls, data: Encoded) -> BloomCounter:
        """Reads a counter: its binary form, as bytes, bytearray or memoryview, or its text form, as str or ASCII bytes.

        Accepts exactly what the server accepts. Raises FormatError otherwise.
        """
        return cls(decode_counter(data))

    @property
    def element_type(self) -> Optional[str]:
        """The SQL type of the elements, such as "bigint"; None without elements."""
        return self._contents.element_class.sql_name if self._contents.element_class else None

    @property
    def limit(self) -> int:
        """The greatest number, which means "that or more"."""
        return int(2**self._contents.width) - 1

    @property
    def levels(self) -> bool:
        """Are the numbers levels instead of counts?"""
        return self._contents.levels

    @property
    def sparse(self) -> bool:
        """Does the counter store a hash and a number of each element?"""
        return self._contents.numbers is None

    def __eq__(self, other: object) -> bool:
        """Have both the same bytes?"""
        if not isinstance(other, BloomCounter):
            return NotImplemented
        return self._contents == other._contents

    def __hash__(self) -> int:
        return hash(self._contents.parameters)

    def __repr__(self) -> str:
        kind, what = "sparse" if self.sparse else "dense", "levels" if self.levels else "counts"
        return f"<{type(self).__name__}: {kind}, {what} up to {self.limit}, {self.element_type or 'no elements'}>"

    def count(self, value: object) -> int:
        """The number of a value, as bloom_count: 0 is certain."""
        encoder = self._question_encoders.get(type(value))
        if encoder is None:
            element_class = self._contents.element_class or class_of(value)
            encoder = find_encoder(value, element_class, QUESTION_ENCODERS[element_class])
        element_hash = xxh64_intdigest(encoder(value), self._contents.parameters.seed)
        if self._contents.numbers is None:
            return self._contents.listed.get(element_hash, 0)
        return min(map(self._number, self._geometry.positions(element_hash)))

    def __contains__(self, value: object) -> bool:
        """Is the value an element? False is certain."""
        return self.count(value) > 0

    def at_least(self, level: int) -> BloomFilter:
        """The filter of what reads this level or more, as bloom_at_least."""
        if not 1 <= operator.index(level) <= self.limit:
            raise ParameterError(f"the level must be 1 to {self.limit}")
        contents = self._contents
        if contents.numbers is None:
            hashes = {element_hash for element_hash, number in contents.listed.items() if number >= level}
            element_class = contents.element_class if hashes else ElementClass.NONE
            return BloomFilter._of_hashes(contents.parameters, element_class, hashes)
        binary = bytes(b"01"[number >= level] for number in reversed(self._numbers()))
        bits = bytearray(int(binary, 2).to_bytes(contents.parameters.bits // 8, "little"))
        return BloomFilter._of(Contents(contents.parameters, contents.element_class, set(), bits))

    def cardinality(self) -> float:
        """The estimated number of distinct elements: exact if sparse."""
        if self.sparse:
            return float(len(self._contents.listed))
        return self.at_least(1).cardinality()

    def total(self) -> float:
        """The estimated number of elements with repetitions: exact if sparse. Raises ParameterError for levels."""
        if self.levels:
            raise ParameterError("a counter of levels has no total")
        if self.sparse:
            return float(sum(self._contents.listed.values()))
        parameters, size = self._contents.parameters, self._geometry.block_bits
        distinct_positions = -size * math.expm1(parameters.hashes * math.log1p(-1 / size))  # of an element, on average
        return sum(self._numbers()) / distinct_positions

    def current_rate(self) -> float:
        """The false-positive rate that the counter has now, as bloom_fpp."""
        if self.sparse:
            return len(self._contents.listed) / 2**64
        return self.at_least(1).current_rate()

    def _number(self, position: int) -> int:
        """The number at a position of a dense counter."""
        assert self._contents.numbers is not None
        width = self._contents.width
        first_bit = position * width
        around = self._contents.numbers[first_bit // 8 : (first_bit + width + 7) // 8]
        return int.from_bytes(around, "little") >> first_bit % 8 & self.limit

    def _numbers(self) -> Sequence[int]:
        """The numbers at all positions of a dense counter."""
        packed = self._contents.numbers
        assert packed is not None
        if self._contents.width == 8:
            return packed
        if self._contents.width == 16:
            numbers = array("H", packed)
            if sys.byteorder == "big":
                numbers.byteswap()
            return numbers
        halves = bytearray(2 * len(packed))
        halves[::2] = packed.translate(bytes(byte & 15 for byte in range(256)))
        halves[1::2] = packed.translate(bytes(byte >> 4 for byte in range(256)))
        return halves
