"""From the hash of an element to its bits. This module decides what a blocked and a classic filter do differently."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Iterable, List, Tuple

from .encoding import BLOCK_BITS, BLOCKED, Parameters

_MULTIPLIER = 0x9E3779B97F4A7C15
_LOW_64 = 2**64 - 1


class PurePythonGeometry:
    """The places of bits in a filter. Nothing can be added to a filter without blocks, which has no size.

    A filter consists of blocks. An element has bits in one block, one for each hash function.
    """

    __slots__ = ("block_bits", "blocks", "_multipliers")

    def __init__(self, block_bits: int, blocks: int, hashes: int):
        self.block_bits = block_bits
        self.blocks = blocks
        # Round i of the format multiplies the hash by the i-th power of the multiplier.
        self._multipliers = tuple(pow(_MULTIPLIER, i, 2**64) for i in range(1, hashes + 1))

    def contains(self, bits: bytearray, element_hash: int) -> bool:
        """Are all bits of an element set?"""
        size = self.block_bits
        start = ((element_hash >> 32) * self.blocks >> 32) * size
        for multiplier in self._multipliers:
            bit = start + ((element_hash * multiplier & _LOW_64) * size >> 64)
            if not bits[bit >> 3] >> (bit & 7) & 1:
                return False
        return True

    def add(self, bits: bytearray, element_hash: int) -> None:
        """Sets the bits of an element."""
        for bit in self.positions(element_hash):
            bits[bit >> 3] |= 1 << (bit & 7)

    def positions(self, element_hash: int) -> List[int]:
        """The numbers of the bits of an element, some of which may be equal."""
        size = self.block_bits
        start = ((element_hash >> 32) * self.blocks >> 32) * size
        return [start + ((element_hash * multiplier & _LOW_64) * size >> 64) for multiplier in self._multipliers]


if TYPE_CHECKING:
    Geometry = PurePythonGeometry
else:
    try:
        from ._speedups import Geometry
    except ImportError:
        Geometry = PurePythonGeometry

# Whether the module in C is in use
IMPLEMENTATION = "in Python" if Geometry is PurePythonGeometry else "in C"


def shape_of(parameters: Parameters) -> Tuple[int, int, int]:
    """The arguments of Geometry for a filter or a counter with these parameters."""
    block_bits = BLOCK_BITS if parameters.layout == BLOCKED else parameters.bits
    return block_bits, parameters.bits // block_bits, parameters.hashes


def geometry_of(parameters: Parameters) -> Geometry:
    """The geometry of a filter with these parameters."""
    return Geometry(*shape_of(parameters))


def bits_of(geometry: Geometry, hashes: Iterable[int]) -> bytearray:
    """The bits of a filter with these elements."""
    bits = bytearray(geometry.block_bits * geometry.blocks // 8)
    for element_hash in hashes:
        geometry.add(bits, element_hash)
    return bits


def combine(first: bytearray, second: bytearray, *, union: bool) -> bytearray:
    """The bits that are set in either, or in both."""
    a, b = int.from_bytes(first, "little"), int.from_bytes(second, "little")
    return bytearray((a | b if union else a & b).to_bytes(len(first), "little"))


def fold(bits: bytearray, blocks: int) -> bytearray:
    """Brings the bits of a blocked filter to this number of blocks, which divides its own."""
    block_bytes = BLOCK_BITS // 8
    run = len(bits) // (block_bytes * blocks)  # neighbouring blocks that become one
    folded = bytearray()
    for start in range(0, len(bits), run * block_bytes):
        block = 0
        for offset in range(start, start + run * block_bytes, block_bytes):
            block |= int.from_bytes(bits[offset : offset + block_bytes], "little")
        folded += block.to_bytes(block_bytes, "little")
    return folded


def divisors(number: int) -> List[int]:
    """All divisors, in ascending order."""
    low = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return sorted({*low, *(number // d for d in low)})


def bits_set_by_block(bits: bytearray, block_bits: int) -> Tuple[int, ...]:
    """How many bits of each block are set."""
    size = block_bits // 8
    return tuple(_count_ones(bits[start : start + size]) for start in range(0, len(bits), size))


if hasattr(int, "bit_count"):  # Python 3.10 and later

    def _count_ones(data: bytearray) -> int:
        return int.from_bytes(data, "little").bit_count()

else:

    def _count_ones(data: bytearray) -> int:
        return bin(int.from_bytes(data, "little")).count("1")
