"""The bytes of filters and counters: a header of 28 bytes, and a payload. They are validated as on the server."""

from __future__ import annotations

import binascii
import struct
from dataclasses import dataclass
from typing import Dict, Optional, Set, Tuple, Union

from .elements import ElementClass
from .errors import FormatError

BLOCKED, CLASSIC = "blocked", "classic"
LAYOUTS = (BLOCKED, CLASSIC)  # the number of a layout is its index
MAX_HASHES = 32
MAX_BITS = 2**31
BLOCK_BITS = 512  # of the blocked layout
SIZE_UNIT = {BLOCKED: BLOCK_BITS, CLASSIC: 64}  # the size is a multiple of this number of bits

_VERSION = 1
_SPARSE, _COUNTER, _LEVELS = 1, 4, 32  # flags
_WIDTHS = {0: 4, 8: 8, 16: 16}  # of the numbers of a counter, by their flags
_HEADER = struct.Struct("<4BIfQQ")
_HASH_BYTES = 8
_NUMBER_BYTES = 2  # of a sparse counter

Encoded = Union[bytes, bytearray, memoryview, str]


@dataclass(frozen=True)
class Parameters:
    """The parameters of a filter or a counter. Filters combine if theirs are equal, except for the rate."""

    layout: str
    hashes: int  # k
    rate: float  # the requested false-positive rate, a number of single precision
    seed: int  # unsigned
    bits: int  # m; 0 if the filter has no size

    @property
    def sparse_end(self) -> int:
        """The number of hashes from which on a filter is dense, because they would take as much room as the bits."""
        return self.bits // (8 * _HASH_BYTES)


@dataclass(frozen=True)
class Contents:
    """The contents of a filter. It is dense if it has bits. If it is sparse, they are None."""

    parameters: Parameters
    element_class: ElementClass
    hashes: Set[int]  # empty if dense
    bits: Optional[bytearray] = None


def encode(contents: Contents) -> bytes:
    """The binary form of a filter."""
    parameters = contents.parameters
    header = _HEADER.pack(
        _VERSION,
        LAYOUTS.index(parameters.layout),
        _SPARSE if contents.bits is None else 0,
        parameters.hashes,
        contents.element_class,
        parameters.rate,
        parameters.seed,
        parameters.bits,
    )
    if contents.bits is None:
        return header + struct.pack(f"<{len(contents.hashes)}Q", *sorted(contents.hashes))
    return header + contents.bits


@dataclass(frozen=True)
class CounterContents:
    """The contents of a counter. Its parameters have positions where those of a filter have bits."""

    parameters: Parameters
    element_class: ElementClass
    width: int  # of the numbers, in bits
    levels: bool  # levels instead of counts
    listed: Dict[int, int]  # the number of each hash; empty if dense
    numbers: Optional[bytes] = None  # the packed numbers of all positions; None if sparse


def decode(data: Encoded) -> Contents:
    """Reads the binary or the text form of a filter. Raises FormatError if it breaks a rule of the format."""
    header = _read_header(_to_bytes(data))
    if header.flags & _COUNTER:
        raise FormatError("this is a bloomcounter, not a bloomfilter")
    if header.flags & ~_SPARSE:
        raise FormatError(f"unknown flags {header.flags & ~_SPARSE}")
    parameters = header.parameters
    _check_size(header, 1)
    if header.sparse:
        count = _count_of(header, _HASH_BYTES, parameters.bits // 8)
        return Contents(parameters, header.element_class, set(_read_hashes(header, count)))
    _check_dense(header, parameters.bits // 8)
    return Contents(parameters, header.element_class, set(), bytearray(header.payload))


def decode_counter(data: Encoded) -> CounterContents:
    """Reads the binary or the text form of a counter. Raises FormatError if it breaks a rule of the format."""
    header = _read_header(_to_bytes(data))
    if not header.flags & _COUNTER:
        raise FormatError("this is a bloomfilter, not a bloomcounter")
    width = _WIDTHS.get(header.flags & ~(_SPARSE | _COUNTER | _LEVELS))
    if width is None:
        raise FormatError(f"unknown flags {header.flags}")
    levels = bool(header.flags & _LEVELS)
    parameters, element_class = header.parameters, header.element_class
    _check_size(header, width)
    dense_bytes = parameters.bits * width // 8
    if not header.sparse:
        _check_dense(header, dense_bytes)
        return CounterContents(parameters, element_class, width, levels, {}, bytes(header.payload))
    count = _count_of(header, _HASH_BYTES + _NUMBER_BYTES, dense_bytes)
    if not count and (levels or element_class != ElementClass.NONE):
        raise FormatError("a counter without elements holds no levels and has no element class")
    numbers = struct.unpack(f"<{count}H", header.payload[_HASH_BYTES * count :])
    wrong = next((number for number in numbers if not 1 <= number < 2**width), None)
    if wrong is not None:
        raise FormatError(f"a number of an element is {wrong}, not 1 to {2**width - 1}")
    return CounterContents(parameters, element_class, width, levels, dict(zip(_read_hashes(header, count), numbers)))


@dataclass(frozen=True)
class _Header:
    flags: int
    parameters: Parameters
    element_class: ElementClass
    payload: memoryview

    @property
    def sparse(self) -> bool:
        return bool(self.flags & _SPARSE)


def _to_bytes(data: Encoded) -> memoryview:
    if isinstance(data, str):
        if not data.startswith("\\x"):
            raise FormatError("the text form begins with \\x")
        digits: Union[str, bytes, memoryview] = data[2:]
    else:
        try:
            binary = memoryview(data)
        except TypeError:
            raise TypeError(f"expected bytes, bytearray, memoryview or str, not {type(data).__name__}") from None
        binary = binary.cast("B") if binary.c_contiguous else memoryview(binary.tobytes())
        if binary[:2] != b"\\x":
            return binary
        digits = binary[2:]  # the text form from a database in SQL_ASCII
    try:
        return memoryview(binascii.unhexlify(digits))
    except ValueError:
        raise FormatError("the text form is \\x and an even number of hexadecimal digits") from None


def _read_header(data: memoryview) -> _Header:
    """Checks what filters and counters have in common, except for their sizes."""
    if len(data) < _HEADER.size:
        raise FormatError(f"the header has {_HEADER.size} bytes, but there are only {len(data)}")
    version, layout, flags, k, oid, rate, seed, bits = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise FormatError(f"the format version is {version}, not {_VERSION}")
    if layout >= len(LAYOUTS):
        raise FormatError(f"unknown layout {layout}")
    if not 1 <= k <= MAX_HASHES:
        raise FormatError(f"the number of hash functions is {k}, not 1 to {MAX_HASHES}")
    if not 0 < rate < 1:
        raise FormatError(f"the false-positive rate is {rate}, not between 0 and 1")
    try:
        element_class = ElementClass(oid)
    except ValueError:
        raise FormatError(f"unknown element class {oid}") from None
    return _Header(flags, Parameters(LAYOUTS[layout], k, rate, seed, bits), element_class, data[_HEADER.size :])


def _check_size(header: _Header, width: int) -> None:
    """Checks the number of positions, which take this number of bits each."""
    layout, positions = header.parameters.layout, header.parameters.bits
    if positions * width > MAX_BITS:
        raise FormatError(f"the size is {positions} positions of {width} bits, more than {MAX_BITS} bits")
    if positions % SIZE_UNIT[layout]:
        raise FormatError(f"the size of layout {layout} is {positions}, not a multiple of {SIZE_UNIT[layout]}")
    if positions == 0 and (layout != BLOCKED or not header.sparse or header.element_class != ElementClass.NONE):
        raise FormatError("what has no size is blocked and sparse and has no element class")


def _count_of(header: _Header, element_bytes: int, dense_bytes: int) -> int:
    """The number of elements of a sparse payload, which takes less room than a dense one."""
    count, rest = divmod(len(header.payload), element_bytes)
    if rest:
        raise FormatError(f"a sparse payload of {len(header.payload)} bytes is not a multiple of {element_bytes}")
    if count and len(header.payload) >= dense_bytes:
        raise FormatError(f"{count} hashes are too many for this size")
    if count and header.element_class == ElementClass.NONE:
        raise FormatError("there are elements, but no element class")
    return count


def _read_hashes(header: _Header, count: int) -> Tuple[int, ...]:
    hashes: Tuple[int, ...] = struct.unpack_from(f"<{count}Q", header.payload)
    if len(set(hashes)) != count or sorted(hashes) != list(hashes):
        raise FormatError("the hashes are not strictly ascending")
    return hashes


def _check_dense(header: _Header, dense_bytes: int) -> None:
    if len(header.payload) != dense_bytes:
        raise FormatError(f"the payload has {len(header.payload)} bytes, not {dense_bytes}")
    if header.element_class == ElementClass.NONE:
        raise FormatError("a dense payload needs an element class")
