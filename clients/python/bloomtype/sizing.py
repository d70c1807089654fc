"""Choosing the number of hash functions and of bits, so that a filter has the same bytes as the server's.

The functions take the false-positive rate in single precision.
"""

from __future__ import annotations

import math
import operator
import struct
from functools import lru_cache
from typing import Callable, Iterator, List

from .encoding import BLOCK_BITS, BLOCKED, LAYOUTS, MAX_BITS, SIZE_UNIT, Parameters
from .errors import ParameterError

LOWEST_RATE, HIGHEST_RATE = 1e-9, 0.5

# The rates below which 2, 3, ... hash functions need the fewest bits in a large blocked filter.
_BOUNDS = (
    0.38141, 0.183453, 0.0890054, 0.0428406, 0.0203097, 0.00943578, 0.00427845,
    0.00188661, 8.06525e-4, 3.33382e-4, 1.3295e-4, 5.10606e-5, 1.88604e-5, 6.69393e-6,
    2.28177e-6, 7.46925e-7, 2.3487e-7, 7.09883e-8, 2.06434e-8, 5.78309e-9, 1.56304e-9,
)  # fmt: skip

_EXACT_BITS = 4096  # the rate of a larger block is approximated
_UNITS = 1024  # bits of an element are counted in units of 1/1024
_SIGNIFICANT_BITS = 7  # of the number of blocks


def parameters_for(expected_items: float, false_positive_rate: float, layout: str, seed: int) -> Parameters:
    """The parameters of bloom_create. Raises ParameterError where bloom_create reports an error."""
    items = _as_double(expected_items)
    if not items >= 1:
        raise ParameterError(f"expected_items is {items:.15g}; it must be at least 1")
    unsized = unsized_parameters(false_positive_rate, layout, seed)
    if items <= MAX_BITS:
        bits = bits_for(unsized.layout, unsized.rate, unsized.hashes, math.ceil(items))
        if bits <= MAX_BITS:
            return Parameters(unsized.layout, unsized.hashes, unsized.rate, unsized.seed, bits)
    raise ParameterError(f"a filter of {items:.15g} elements at this rate would have more than 2^31 bits")


def unsized_parameters(false_positive_rate: float, layout: str, seed: int) -> Parameters:
    """The same without a size."""
    rate = single_rate(false_positive_rate)
    if str(layout).lower() not in LAYOUTS:
        raise ParameterError(f"the layout is {layout!r}; it must be one of {', '.join(LAYOUTS)}")
    seed = operator.index(seed)
    if not -(2**63) <= seed < 2**63:
        raise ParameterError("the seed must be a signed number of 64 bits")
    return Parameters(layout.lower(), hashes_for(layout.lower(), rate), rate, seed % 2**64, 0)


def single_rate(false_positive_rate: float) -> float:
    """A rate in single precision. Raises ParameterError if a filter cannot be created with it."""
    if 0 <= _as_double(false_positive_rate) <= 1:
        single: float = _rounded(false_positive_rate)
        if _rounded(LOWEST_RATE) <= single <= HIGHEST_RATE:
            return single
    raise ParameterError(
        f"the false-positive rate is {_as_double(false_positive_rate)}; it must be {LOWEST_RATE} to {HIGHEST_RATE}"
    )


def _as_double(number: float) -> float:
    """The number as a float, infinite if it is too large. Raises TypeError for what is no number."""
    try:
        return math.fsum([number])
    except OverflowError:
        return math.inf


def _rounded(rate: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", rate))[0])


def hashes_for(layout: str, rate: float) -> int:
    """The number of hash functions."""
    if layout == BLOCKED:
        return 1 + sum(rate < bound for bound in _BOUNDS)
    return math.floor(0.5 - math.log2(rate))


@lru_cache(maxsize=1024)
def bits_for(layout: str, rate: float, hashes: int, items: int) -> int:
    """The size of a filter with room for this number of elements. It may be more than a filter can have."""
    if layout == BLOCKED:
        blocks = -(-items * _units_per_item(rate, hashes) // (BLOCK_BITS * _UNITS))
        return BLOCK_BITS * _round_up(blocks)
    unit = SIZE_UNIT[layout]
    too_few = math.floor(items * _information(rate) / unit)
    return unit * _least(lambda units: _rate_of_block(unit * units, hashes, items) <= rate, too_few)


def self_sized_bits(rate: float, hashes: int, items: int) -> int:
    """The size of a blocked filter that sizes itself for this number of elements."""
    bits = BLOCK_BITS
    while _UNITS * bits // _units_per_item(rate, hashes) < items:
        bits *= 2
    return bits


def _information(rate: float) -> float:
    """The bits per element that every structure with this rate needs. A Bloom filter needs more."""
    return -math.log2(rate)


def _round_up(blocks: int) -> int:
    step = 1 << max(blocks.bit_length() - _SIGNIFICANT_BITS, 0)
    return -(-blocks // step) * step


def _least(enough: Callable[[int], bool], too_few: int) -> int:
    """The least whole number that is enough, if every greater one is enough too. too_few is not enough."""
    low, high = too_few, too_few + 1
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high


@lru_cache(maxsize=1024)
def _units_per_item(rate: float, hashes: int) -> int:
    """The bits that an element takes in a blocked filter, times 1024: the constant c of the format."""
    rates = _RatesOfBlock(BLOCK_BITS, hashes)

    def enough(units: int) -> bool:
        items = BLOCK_BITS * _UNITS / units  # the mean number of elements in a block
        return _poisson_mean(items, rates) <= rate and _interpolated(items, rates) <= rate

    return _least(enough, math.floor(_UNITS * _information(rate)))


def _interpolated(items: float, rates: _RatesOfBlock) -> float:
    whole = math.floor(items)
    return rates[whole] + (items - whole) * (rates[whole + 1] - rates[whole])


def _poisson_mean(mean: float, rates: _RatesOfBlock) -> float:
    """The mean rate of a block, if the number of its elements has a Poisson distribution."""
    weight, total = math.exp(-mean), 0.0
    items = 0
    while items <= mean or weight > 1e-20:
        total += weight * rates[items]
        items += 1
        weight *= mean / items
    return total


class _RatesOfBlock:
    """rates[j] is the expected rate of a block with j elements, computed step by step as far as it is asked for."""

    def __init__(self, block_bits: int, hashes: int):
        self._hashes = hashes
        self._distinct = _distinct_distribution(block_bits, hashes)
        self._steps = _covered(block_bits, hashes)
        self._rates: List[float] = []

    def __getitem__(self, items: int) -> float:
        while len(self._rates) <= items:
            covered = next(self._steps)
            self._rates.append(sum(d * c for d, c in zip(self._distinct, covered)))
            for _ in range(self._hashes - 1):
                next(self._steps)
        return self._rates[items]


def _distinct_distribution(block_bits: int, hashes: int) -> List[float]:
    """The probabilities that the throws of one element hit exactly 0, 1, ... different bits."""
    distinct = [1.0] + [0.0] * hashes
    for _ in range(hashes):
        distinct = [
            (distinct[e] * e + (distinct[e - 1] * (block_bits - e + 1) if e else 0)) / block_bits
            for e in range(hashes + 1)
        ]
    return distinct


def _covered(block_bits: int, hashes: int) -> Iterator[List[float]]:
    """For 0, 1, ... throws: the probabilities that they hit all of 0, 1, ... given bits."""
    covered = [1.0] + [0.0] * hashes
    while True:
        yield covered
        covered = [1.0] + [
            covered[e] + e / block_bits * (covered[e - 1] - covered[e]) for e in range(1, hashes + 1)
        ]


def _rate_of_block(block_bits: int, hashes: int, items: int) -> float:
    """The expected rate of a block with this number of elements."""
    if block_bits <= _EXACT_BITS:
        return _RatesOfBlock(block_bits, hashes)[items]
    throws = hashes * items
    fill = -math.expm1(throws * math.log1p(-1 / block_bits))
    unset = 1 - fill
    covariance = math.expm1(throws * math.log1p(-1 / (block_bits - 1) ** 2))
    variance = block_bits * unset * fill + block_bits * (block_bits - 1) * unset**2 * covariance
    correction = hashes * (hashes - 1) / 2 * variance / (block_bits * fill) ** 2
    return float(fill**hashes * math.exp(correction))
