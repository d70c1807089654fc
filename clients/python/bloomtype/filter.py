"""The Bloom filter."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Iterable, Mapping, Optional, Set, Tuple

from xxhash import xxh64_intdigest

from . import geometry, sizing
from .elements import ENCODERS, QUESTION_ENCODERS, ElementClass, Encoder, class_of, find_encoder
from .encoding import BLOCK_BITS, BLOCKED, MAX_BITS, Contents, Encoded, Parameters, decode, encode
from .errors import ElementTypeError, MismatchError, ParameterError

_EXACTLY_SIZED = 2**24  # up to this number of elements, a filter sizes itself by their exact number


class BloomFilter:
    """A set of elements of one SQL type, as PostgreSQL's type bloomfilter.

    ``value in filter`` has no false negatives. False positives occur at a rate that the creator chooses. The filter can
    be changed, like a set: ``add``, ``update``, ``|=`` and ``&=`` change it; all other methods leave it as it is and
    return a new filter where they return one.

    The first element decides the class of all elements: integers, text, timestamps and so on. A value of another class
    raises ElementTypeError, also in a question, because ``False`` would be a wrong answer where SQL reports an error.
    None is not an element: adding it does nothing, and asking about it raises ElementTypeError.
    """

    _parameters: Parameters
    _class: ElementClass
    _hashes: Set[int]  # of the elements, if the filter is sparse
    _bits: Optional[bytearray]  # None if the filter is sparse
    _geometry: geometry.Geometry
    _encoders: Mapping[type, Encoder]  # those of the class
    _question_encoders: Mapping[type, Encoder]

    def __init__(
        self, expected_items: float, false_positive_rate: float = 0.01, *, layout: str = BLOCKED, seed: int = 0
    ):
        """Makes an empty filter, as bloom_create does. At expected_items elements it has false_positive_rate.

        layout is "blocked" or "classic", expected_items at least 1, false_positive_rate 1e-9 to 0.5, and the seed a
        signed number of 64 bits. Raises ParameterError otherwise, and if the filter would have more than 2^31 bits.
        """
        self._assign(_empty(sizing.parameters_for(expected_items, false_positive_rate, layout, seed)))

    @classmethod
    def build(
        cls,
        values: Iterable[object],
        expected_items: Optional[float] = None,
        false_positive_rate: float = 0.01,
        *,
        layout: str = BLOCKED,
        seed: int = 0,
    ) -> BloomFilter:
        """The filter of these values, with the bytes that bloom_agg gives. None is skipped.

        Without expected_items, the filter is sized for the number of its elements; such filters are blocked. Of no
        values, it is an empty filter of the size asked for, or without a size.
        """
        if expected_items is not None:
            self = cls(expected_items, false_positive_rate, layout=layout, seed=seed)
            self.update(values)
            return self
        unsized = sizing.unsized_parameters(false_positive_rate, layout, seed)
        if unsized.layout != BLOCKED:
            raise ParameterError("a filter that sizes itself is blocked; give expected_items for another layout")
        self = cls._of(_empty(replace(unsized, bits=MAX_BITS)))
        self.update(values)
        return self._sized_by_elements()

    @classmethod
    def load(cls, data: Encoded) -> BloomFilter:
        """Reads a filter: its binary form, as bytes, bytearray or memoryview, or its text form, as str or ASCII bytes.

        Accepts exactly what the server accepts. Raises FormatError otherwise.
        """
        return cls._of(decode(data))

    def to_bytes(self) -> bytes:
        """The binary form. In SQL: ``%s::bytea::bloomfilter``."""
        return encode(self._contents())

    __bytes__ = to_bytes

    def to_text(self) -> str:
        """The text form. In SQL: ``%s::bloomfilter``."""
        return "\\x" + self.to_bytes().hex()

    def copy(self) -> BloomFilter:
        """An independent copy."""
        bits = None if self._bits is None else bytearray(self._bits)
        return self._of(Contents(self._parameters, self._class, set(self._hashes), bits))

    __copy__ = copy

    def __reduce__(self) -> Tuple[object, ...]:
        """Pickles the binary form."""
        return type(self).load, (self.to_bytes(),)

    # What the filter is

    @property
    def layout(self) -> str:
        """"blocked" or "classic"."""
        return self._parameters.layout

    @property
    def bits(self) -> int:
        """The size in bits; 0 in the empty filter without a size."""
        return self._parameters.bits

    @property
    def hashes(self) -> int:
        """The number of hash functions."""
        return self._parameters.hashes

    @property
    def requested_rate(self) -> float:
        """The false-positive rate that was asked for, in single precision."""
        return self._parameters.rate

    @property
    def seed(self) -> int:
        """The seed, signed as in SQL."""
        seed = self._parameters.seed
        return seed - 2**64 if seed >= 2**63 else seed

    @property
    def element_type(self) -> Optional[str]:
        """The SQL type of the elements, such as "bigint"; None while nothing has been added."""
        return self._class.sql_name if self._class else None

    @property
    def sparse(self) -> bool:
        """Does the filter store hashes of its elements instead of bits?"""
        return self._bits is None

    def __repr__(self) -> str:
        kind = "sparse" if self.sparse else "dense"
        return f"<{type(self).__name__}: {kind}, {self.layout}, {self.bits} bits, {self.element_type or 'no elements'}>"

    def __eq__(self, other: object) -> bool:
        """Have both the same bytes? This holds for filters of the same elements with the same parameters."""
        if not isinstance(other, BloomFilter):
            return NotImplemented
        return self._contents() == other._contents()

    __hash__ = None  # type: ignore[assignment]

    # Elements

    def __contains__(self, value: object) -> bool:
        """Is the value an element? False is certain.

        Raises ElementTypeError for a value of another class than the elements, and ElementValueError for a value that
        PostgreSQL does not have.
        """
        encoder = self._question_encoders.get(type(value)) or self._find_question_encoder(value)
        element_hash = xxh64_intdigest(encoder(value), self._parameters.seed)
        if self._bits is None:
            return element_hash in self._hashes
        return self._geometry.contains(self._bits, element_hash)

    def add(self, value: object) -> None:
        """Adds an element. Raises the same errors as a question, and ParameterError if the filter has no size."""
        if value is None:
            return
        encoder = self._encoders.get(type(value)) or self._find_encoder(value)
        element_hash = xxh64_intdigest(encoder(value), self._parameters.seed)
        if not self._class:
            self._set_class(class_of(value))
        if self._bits is not None:
            self._geometry.add(self._bits, element_hash)
        else:
            self._hashes.add(element_hash)
            if len(self._hashes) >= self._parameters.sparse_end:
                self._become_dense()

    def update(self, values: Iterable[object]) -> None:
        """Adds all these elements. If one of them raises an error, those before it have been added."""
        for value in values:
            self.add(value)

    # Combining

    def union(self, other: BloomFilter) -> BloomFilter:
        """The filter of the elements of both. Raises MismatchError or ElementTypeError if they do not combine."""
        _check_filter(other)
        if not (self.bits and other.bits):
            return self._without_size_of_two(other) or (self if self.bits else other).copy()
        parameters, element_class = self._common(other)
        if self.sparse and other.sparse:
            return self._of_hashes(parameters, element_class, self._hashes | other._hashes)
        bits = geometry.combine(self._as_bits(), other._as_bits(), union=True)
        return self._of(Contents(parameters, element_class, set(), bits))

    def intersection(self, other: BloomFilter) -> BloomFilter:
        """A filter that contains every element that both contain, and possibly more. Raises as union does."""
        _check_filter(other)
        if not (self.bits and other.bits):
            return self._without_size_of_two(other) or (self if self.bits else other)._emptied()
        parameters, element_class = self._common(other)
        if self._bits is not None and other._bits is not None:
            bits = geometry.combine(self._bits, other._bits, union=False)
            return self._of(Contents(parameters, element_class, set(), bits))
        listed, asked = (self, other) if self.sparse else (other, self)
        hashes = {element_hash for element_hash in listed._hashes if asked._contains_hash(element_hash)}
        return self._of(Contents(parameters, element_class, hashes))

    def __or__(self, other: object) -> BloomFilter:
        if not isinstance(other, BloomFilter):
            return NotImplemented
        return self.union(other)

    def __and__(self, other: object) -> BloomFilter:
        if not isinstance(other, BloomFilter):
            return NotImplemented
        return self.intersection(other)

    def __ior__(self, other: object) -> BloomFilter:
        if not isinstance(other, BloomFilter):
            return NotImplemented
        self._assign(self.union(other)._contents())
        return self

    def __iand__(self, other: object) -> BloomFilter:
        if not isinstance(other, BloomFilter):
            return NotImplemented
        self._assign(self.intersection(other)._contents())
        return self

    def fold(self, false_positive_rate: float) -> BloomFilter:
        """The filter at the smallest size at which it still has at most this rate, as bloom_fold.

        Raises ParameterError if the rate is out of range, or below the current one.
        """
        requested_rate = sizing.single_rate(false_positive_rate)
        current_rate = self.current_rate()
        if current_rate > false_positive_rate:
            raise ParameterError(f"the filter has a rate of {current_rate} already, higher than {false_positive_rate}")
        folded = self.copy()
        if self.layout == BLOCKED and self.bits:
            folded = self._resized(BLOCK_BITS * self._least_blocks(false_positive_rate))
        folded._parameters = replace(folded._parameters, rate=requested_rate)
        return folded

    def fold_like(self, other: BloomFilter) -> BloomFilter:
        """The filter at the size and the requested rate of other, so that both combine, as bloom_fold.

        Raises MismatchError if the filter cannot be brought to that size, or if other parameters differ.
        """
        _check_filter(other)
        if not other.bits:
            return self.copy()
        if not self.bits:
            return other._emptied(ElementClass.NONE)
        self._common_class(other)
        self._check_same(other, "layout", "hashes", "seed")
        folded = self._resized(other.bits)
        folded._parameters = other._parameters
        return folded

    # Estimates

    def cardinality(self) -> float:
        """The estimated number of distinct elements: exact if sparse, and infinite if all bits are set."""
        if self.sparse:
            return float(len(self._hashes))
        return self._cardinality_of(sum(self._bits_set_by_block()))

    def current_rate(self) -> float:
        """The false-positive rate that the filter has now, as bloom_fpp."""
        if self.sparse:
            return len(self._hashes) / 2**64
        counts = Counter(self._bits_set_by_block())
        size, blocks = self._geometry.block_bits, self._geometry.blocks
        total = 0.0
        for ones, number in sorted(counts.items()):  # the order and the rounding of the server
            total += number * (ones / size) ** self.hashes
        return total / blocks

    def union_cardinality(self, other: BloomFilter) -> float:
        """The estimated number of distinct elements of both together; infinite if all bits are set.

        The filters must combine, except that the sizes of blocked filters may differ if one divides the other.
        """
        return _size_of_union(*self._at_one_size(other))

    def intersection_cardinality(self, other: BloomFilter) -> float:
        """The estimated number of distinct elements that both have; nan if all bits are set."""
        return self._common_and_all(other)[0]

    def jaccard(self, other: BloomFilter) -> float:
        """The estimated Jaccard similarity: the common elements over all. It is 1 for two empty filters."""
        common, union = self._common_and_all(other)
        return common / union if union else 1.0

    # Internals

    @classmethod
    def _of(cls, contents: Contents) -> BloomFilter:
        self = cls.__new__(cls)
        self._assign(contents)
        return self

    def _assign(self, contents: Contents) -> None:
        self._parameters = contents.parameters
        self._hashes = contents.hashes
        self._bits = contents.bits
        self._geometry = geometry.geometry_of(contents.parameters)
        self._set_class(contents.element_class)

    def _set_class(self, element_class: ElementClass) -> None:
        self._class = element_class
        self._encoders = ENCODERS[element_class]
        self._question_encoders = QUESTION_ENCODERS[element_class]

    def _contents(self) -> Contents:
        return Contents(self._parameters, self._class, self._hashes, self._bits)

    def _emptied(self, element_class: Optional[ElementClass] = None) -> BloomFilter:
        """This filter without its elements."""
        element_class = self._class if element_class is None else element_class
        return self._of(Contents(self._parameters, element_class, set()))

    @classmethod
    def _of_hashes(cls, parameters: Parameters, element_class: ElementClass, hashes: Set[int]) -> BloomFilter:
        """The filter that is built from these hashes: sparse if it may be."""
        if not hashes or len(hashes) < parameters.sparse_end:
            return cls._of(Contents(parameters, element_class, hashes))
        bits = geometry.bits_of(geometry.geometry_of(parameters), hashes)
        return cls._of(Contents(parameters, element_class, set(), bits))

    def _find_encoder(self, value: object) -> Encoder:
        """For values whose type is not exactly one of those of the class."""
        if not self.bits:
            raise ParameterError("the filter has no size; make one with expected_items")
        element_class = self._class or class_of(value)
        return find_encoder(value, element_class, ENCODERS[element_class])

    def _find_question_encoder(self, value: object) -> Encoder:
        element_class = self._class or class_of(value)
        return find_encoder(value, element_class, QUESTION_ENCODERS[element_class])

    def _contains_hash(self, element_hash: int) -> bool:
        if self._bits is None:
            return element_hash in self._hashes
        return self._geometry.contains(self._bits, element_hash)

    def _as_bits(self) -> bytearray:
        return geometry.bits_of(self._geometry, self._hashes) if self._bits is None else self._bits

    def _common(self, other: BloomFilter) -> Tuple[Parameters, ElementClass]:
        """The parameters and the class of a combination of two filters that have a size."""
        self._check_same(other, "layout", "hashes", "seed", "bits")
        rate = min(self.requested_rate, other.requested_rate)
        return replace(self._parameters, rate=rate), self._common_class(other)

    def _common_class(self, other: BloomFilter) -> ElementClass:
        if self._class and other._class and self._class != other._class:
            raise ElementTypeError(f"one filter holds {self.element_type}, the other {other.element_type}")
        return self._class or other._class

    def _check_same(self, other: BloomFilter, *names: str) -> None:
        for name in names:
            ours, theirs = getattr(self, name), getattr(other, name)
            if ours != theirs:
                raise MismatchError(f"the filters do not combine: {name} is {ours} in one and {theirs} in the other")

    def _without_size_of_two(self, other: BloomFilter) -> Optional[BloomFilter]:
        """What two filters without a size combine to; None if one of them has a size."""
        if self.bits or other.bits:
            return None
        lesser = min(self, other, key=lambda f: (f.requested_rate, f.hashes, f._parameters.seed))
        return lesser.copy()

    def _resized(self, bits: int) -> BloomFilter:
        """The filter at this size, if it can be brought to it."""
        parameters = replace(self._parameters, bits=bits)
        if self._bits is None:
            return self._of_hashes(parameters, self._class, set(self._hashes))
        if bits == self.bits:
            return self.copy()
        if self.layout != BLOCKED or self.bits % bits:
            raise MismatchError(f"a dense {self.layout} filter of {self.bits} bits does not fold to {bits} bits")
        folded = geometry.fold(self._bits, bits // BLOCK_BITS)
        return self._of(Contents(parameters, self._class, set(), folded))

    def _least_blocks(self, rate: float) -> int:
        """The least number of blocks at which the filter, which is blocked, has at most this rate.

        Folding never lowers the rate. So no divisor of a size with a higher rate is the least one. A filter is folded
        step by step, because a small one folds faster.
        """
        divisors = geometry.divisors(self._geometry.blocks)
        primes = [q for q in divisors if sum(q % d == 0 for d in divisors) == 2]
        if self.sparse:
            most = len(self._hashes)
            few = [b for b in divisors if replace(self._parameters, bits=BLOCK_BITS * b).sparse_end <= most]
            least = divisors[len(few)]  # the rate of a sparse filter does not depend on its size
        else:
            few, least = divisors, self._geometry.blocks
        candidates = {b for b in few if b < least}
        for start in reversed(few):
            pending = [(self, start)]
            while pending:
                source, blocks = pending.pop()
                if not any(blocks % c == 0 for c in candidates):
                    continue
                folded = source._resized(BLOCK_BITS * blocks)
                folded_rate = folded.current_rate()
                if folded_rate > rate * (1 + 1e-9):  # more than rounding can do
                    candidates = {c for c in candidates if blocks % c}
                    continue
                candidates.discard(blocks)
                if folded_rate <= rate:
                    least = min(least, blocks)
                    candidates = {c for c in candidates if c < least}
                pending += [(folded, blocks // q) for q in primes if blocks % q == 0]
        return least

    def _sized_by_elements(self) -> BloomFilter:
        """This filter, which has the maximal size, at the size of a filter that sizes itself."""
        if len(self._hashes) > _EXACTLY_SIZED:
            self._become_dense()
        items = math.floor(self.cardinality())
        if not items:
            return self._of(_empty(replace(self._parameters, bits=0)))
        return self._resized(sizing.self_sized_bits(self.requested_rate, self.hashes, items))

    def _become_dense(self) -> None:
        self._bits, self._hashes = self._as_bits(), set()

    def _bits_set_by_block(self) -> Tuple[int, ...]:
        return geometry.bits_set_by_block(self._as_bits(), self._geometry.block_bits)

    def _cardinality_of(self, ones: int) -> float:
        """The number of elements that set this number of bits."""
        if ones == self.bits:
            return math.inf
        share = -math.expm1(self.hashes * math.log1p(-1 / self._geometry.block_bits))  # of a block, by one element
        return math.log1p(-ones / self.bits) / math.log1p(-share / self._geometry.blocks)

    def _at_one_size(self, other: BloomFilter) -> Tuple[BloomFilter, BloomFilter]:
        """Both filters at one size, for estimates. Raises if they do not combine, or no size divides the other.

        A sparse filter takes the size of the other one. Of two dense filters, the larger one is folded.
        """
        _check_filter(other)
        if not (self.bits and other.bits):
            return self, other
        self._common_class(other)
        self._check_same(other, "layout", "hashes", "seed")
        lesser, greater = sorted((self.bits, other.bits))
        if self.layout != BLOCKED or greater % lesser:
            self._check_same(other, "bits")
        if self.sparse and other.sparse:
            bits = greater  # keeps both sparse
        elif self.sparse or other.sparse:
            bits = other.bits if self.sparse else self.bits
        else:
            bits = lesser
        first, second = (f if f.bits == bits else f._resized(bits) for f in (self, other))
        return first, second

    def _common_and_all(self, other: BloomFilter) -> Tuple[float, float]:
        """The cardinality of the intersection and of the union."""
        first, second = self._at_one_size(other)
        union = _size_of_union(first, second)
        if union == math.inf:
            return math.nan, union
        # A sparse filter tells its exact number also where it would be dense at the common size.
        mine, its = (f.cardinality() for f in (self if self.sparse else first, other if other.sparse else second))
        return max(0.0, min(mine + its - union, mine, its)), union


def _check_filter(other: object) -> None:
    if not isinstance(other, BloomFilter):
        raise TypeError(f"expected a BloomFilter, not {type(other).__name__}")


def _empty(parameters: Parameters) -> Contents:
    return Contents(parameters, ElementClass.NONE, set())


def _size_of_union(first: BloomFilter, second: BloomFilter) -> float:
    """The cardinality of the union of two filters that combine, by their hashes if both are sparse."""
    if first.sparse and second.sparse:
        return float(len(first._hashes | second._hashes))
    return first.union(second).cardinality()
