"""The bytes of a filter: a header of 28 bytes, and its payload. What is read here is validated as on the server."""

from __future__ import annotations

import binascii
import struct
from dataclasses import dataclass
from typing import List, Optional, Set, Tuple, Union

from .elements import ElementClass
from .errors import FormatError

BLOCKED, CLASSIC = "blocked", "classic"
LAYOUTS = (BLOCKED, CLASSIC)  # the number of a layout is its index
MAX_HASHES = 32
MAX_BITS = 2**31
BLOCK_BITS = 512  # of the blocked layout
SIZE_UNIT = {BLOCKED: BLOCK_BITS, CLASSIC: 64}  # the size is a multiple of this number of bits

_VERSION = 1
_SPARSE, _COUNTER = 1, 4  # flags
_HEADER = struct.Struct("<4BIfQQ")
_HASH_BYTES = 8

Encoded = Union[bytes, bytearray, memoryview, str]


@dataclass(frozen=True)
class Parameters:
    """What two filters must have in common to combine, except for the rate and the class."""

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


def decode(data: Encoded) -> Contents:
    """Reads the binary or the text form of a filter. Raises FormatError if it breaks a rule of the format."""
    data = _to_bytes(data)
    if len(data) < _HEADER.size:
        raise FormatError(f"a filter has at least {_HEADER.size} bytes, not {len(data)}")
    version, layout, flags, k, oid, rate, seed, bits = _HEADER.unpack_from(data)
    _check_kind(version, layout, flags)
    if not 1 <= k <= MAX_HASHES:
        raise FormatError(f"the number of hash functions is {k}, not 1 to {MAX_HASHES}")
    if not 0 < rate < 1:
        raise FormatError(f"the false-positive rate is {rate}, not between 0 and 1")
    parameters = Parameters(LAYOUTS[layout], k, rate, seed, bits)
    element_class = _class_of_oid(oid)
    sparse = bool(flags & _SPARSE)
    _check_size(parameters, sparse)
    payload = data[_HEADER.size :]
    if sparse:
        return Contents(parameters, element_class, _read_hashes(payload, parameters, element_class))
    return Contents(parameters, element_class, set(), _read_bits(payload, parameters, element_class))


def _to_bytes(data: Encoded) -> memoryview:
    if not isinstance(data, str):
        return memoryview(data).cast("B")
    if not data.startswith("\\x"):
        raise FormatError("the text form of a filter begins with \\x")
    try:
        return memoryview(binascii.unhexlify(data[2:]))
    except ValueError:
        raise FormatError("the text form of a filter is \\x and an even number of hexadecimal digits") from None


def _check_kind(version: int, layout: int, flags: int) -> None:
    if version != _VERSION:
        raise FormatError(f"the format version is {version}, not {_VERSION}")
    if flags & _COUNTER:
        raise FormatError("this is a bloomcounter, not a bloomfilter")
    if flags & ~_SPARSE:
        raise FormatError(f"unknown flags {flags & ~_SPARSE}")
    if layout >= len(LAYOUTS):
        raise FormatError(f"unknown layout {layout}")


def _class_of_oid(oid: int) -> ElementClass:
    try:
        return ElementClass(oid)
    except ValueError:
        raise FormatError(f"unknown element class {oid}") from None


def _check_size(parameters: Parameters, sparse: bool) -> None:
    bits, unit = parameters.bits, SIZE_UNIT[parameters.layout]
    if bits > MAX_BITS:
        raise FormatError(f"the filter has {bits} bits, more than {MAX_BITS}")
    if bits % unit:
        raise FormatError(f"the size of a {parameters.layout} filter is {bits} bits, not a multiple of {unit}")
    if bits == 0 and (parameters.layout != BLOCKED or not sparse):
        raise FormatError("a filter without a size is blocked and sparse")


def _read_hashes(payload: memoryview, parameters: Parameters, element_class: ElementClass) -> Set[int]:
    count, rest = divmod(len(payload), _HASH_BYTES)
    if rest:
        raise FormatError(f"the payload of a sparse filter has {len(payload)} bytes, not a multiple of {_HASH_BYTES}")
    if count and count >= parameters.sparse_end:
        raise FormatError(f"{count} hashes are too many for a sparse filter of {parameters.bits} bits")
    if count and element_class == ElementClass.NONE:
        raise FormatError("the filter has elements, but no element class")
    if parameters.bits == 0 and element_class != ElementClass.NONE:
        raise FormatError("a filter without a size has no element class")
    ascending: Tuple[int, ...] = struct.unpack(f"<{count}Q", payload)
    in_order: List[int] = sorted(ascending)
    hashes = set(ascending)
    if len(hashes) != count or in_order != list(ascending):
        raise FormatError("the hashes are not strictly ascending")
    return hashes


def _read_bits(payload: memoryview, parameters: Parameters, element_class: ElementClass) -> bytearray:
    if len(payload) != parameters.bits // 8:
        raise FormatError(f"the payload of a filter of {parameters.bits} bits has {len(payload)} bytes")
    if element_class == ElementClass.NONE:
        raise FormatError("a dense filter has an element class")
    return bytearray(payload)
