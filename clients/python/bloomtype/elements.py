"""Element classes, and the bytes of a value that are hashed.

The class of an element is the OID of a PostgreSQL type. Two values of one class are equal in SQL exactly if their
canonical bytes are equal.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import ipaddress
import re
import struct
import uuid
from typing import Any, Callable, Dict, Mapping, Union

from .errors import ElementTypeError, ElementValueError

Encoder = Callable[[Any], bytes]


class ElementClass(enum.IntEnum):
    """The classes of elements, by the OID of their PostgreSQL type."""

    NONE = 0
    BOOLEAN = 16
    BYTEA = 17
    BIGINT = 20
    TEXT = 25
    DOUBLE = 701
    MACADDR8 = 774
    MACADDR = 829
    INET = 869
    CHAR = 1042
    DATE = 1082
    TIME = 1083
    TIMESTAMP = 1114
    TIMESTAMPTZ = 1184
    INTERVAL = 1186
    TIMETZ = 1266
    NUMERIC = 1700
    UUID = 2950

    @property
    def sql_name(self) -> str:
        """The name of the type in SQL, as bloom_info shows it."""
        return _SQL_NAMES.get(self, self.name.lower())


_SQL_NAMES = {
    ElementClass.DOUBLE: "double precision",
    ElementClass.CHAR: "character",
    ElementClass.TIME: "time without time zone",
    ElementClass.TIMETZ: "time with time zone",
    ElementClass.TIMESTAMP: "timestamp without time zone",
    ElementClass.TIMESTAMPTZ: "timestamp with time zone",
}


class Char(str):
    """A value of the SQL type char(n). Blanks at its end do not count."""

    __slots__ = ()

    def __new__(cls, text: str) -> Char:
        if not isinstance(text, str):
            raise TypeError(f"expected str, not {type(text).__name__}")  # str(None) would be "None"
        return super().__new__(cls, text)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class MacAddr(bytes):
    """A value of the SQL type macaddr, from 6 bytes or from text such as "08:00:2b:01:02:03"."""

    __slots__ = ()
    size = 6

    def __new__(cls, address: Union[bytes, str]) -> MacAddr:
        if isinstance(address, str):
            address = _parse_mac(address, cls.size)
        elif isinstance(address, int):
            raise TypeError("expected bytes or str, not int")  # bytes(6) would be six zeros
        self = super().__new__(cls, address)
        if len(self) != cls.size:
            raise ElementValueError(f"this address must have {cls.size} bytes, not {len(self)}")
        return self

    def __str__(self) -> str:
        return self.hex(":")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class MacAddr8(MacAddr):
    """A value of the SQL type macaddr8, from 8 bytes or from text such as "08:00:2b:01:02:03:04:05"."""

    __slots__ = ()
    size = 8


def _parse_mac(text: str, size: int) -> bytes:
    if not re.fullmatch(r"[0-9a-fA-F]{2}([:.-]?[0-9a-fA-F]{2})*", text):
        raise ElementValueError(f"not an address of {size} bytes: {text!r}")
    return bytes.fromhex(re.sub("[:.-]", "", text))


_pack_bigint = struct.Struct("<q").pack
_pack_double = struct.Struct("<d").pack
_NAN = struct.pack("<Q", 0x7FF8000000000000)

# What the type numeric can hold.
_DIGITS_BEFORE_POINT = 131072
_DIGITS_AFTER_POINT = 16383

_EPOCH = datetime.datetime(2000, 1, 1)
_EPOCH_UTC = datetime.datetime(2000, 1, 1, tzinfo=datetime.timezone.utc)
_MICROSECOND = datetime.timedelta(microseconds=1)
_SECOND = datetime.timedelta(seconds=1)
_WIDEST_ZONE = datetime.timedelta(hours=16)


def _boolean(value: bool) -> bytes:
    return b"\1" if value else b"\0"


def _bigint(value: int) -> bytes:
    try:
        return _pack_bigint(value)
    except struct.error:
        raise ElementValueError("integer out of range of bigint; a filter of numeric takes a Decimal") from None


def _double(value: float) -> bytes:
    if value != value:
        return _NAN
    return _pack_double(value + 0.0)  # turns -0.0 into 0.0


def _numeric(value: decimal.Decimal) -> bytes:
    if value.is_nan():
        return b"NaN"
    if value.is_infinite():
        return b"Infinity" if value > 0 else b"-Infinity"
    if not value:
        return b"0"
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # the value is finite
    zeros_at_end = len(digits) - len(bytes(digits).rstrip(b"\0"))
    if value.adjusted() >= _DIGITS_BEFORE_POINT or -(exponent + zeros_at_end) > _DIGITS_AFTER_POINT:
        raise ElementValueError("number out of range of numeric")
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.encode()


def _text(value: str) -> bytes:
    if "\0" in value:
        raise ElementValueError("PostgreSQL has no text with the character U+0000")
    try:
        return value.encode()
    except UnicodeEncodeError as problem:
        raise ElementValueError(f"text without a form in UTF-8: {problem.reason}") from None


def _char(value: str) -> bytes:
    return _text(value.rstrip(" "))


def _uuid(value: uuid.UUID) -> bytes:
    return value.bytes


def _date(value: datetime.date) -> bytes:
    return _pack_bigint(value.toordinal() - _EPOCH.toordinal())


def _microseconds(value: datetime.time) -> bytes:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return _pack_bigint(seconds * 1_000_000 + value.microsecond)


def _time(value: datetime.time) -> bytes:
    if value.tzinfo is not None:
        raise _wrong_type(ElementClass.TIME, ElementClass.TIMETZ)
    return _microseconds(value)


def _timetz(value: datetime.time) -> bytes:
    if value.tzinfo is None:
        raise _wrong_type(ElementClass.TIMETZ, ElementClass.TIME)
    offset = value.utcoffset()
    if offset is None:
        raise ElementValueError("the zone of this time has no fixed offset from UTC")
    if offset % _SECOND or abs(offset) >= _WIDEST_ZONE:
        raise ElementValueError(f"PostgreSQL has no zone with the offset {offset}")
    return _microseconds(value) + struct.pack("<i", -(offset // _SECOND))


def _timestamp(value: datetime.datetime) -> bytes:
    if value.tzinfo is not None:
        raise _wrong_type(ElementClass.TIMESTAMP, ElementClass.TIMESTAMPTZ)
    return _pack_bigint((value - _EPOCH) // _MICROSECOND)


def _timestamptz(value: datetime.datetime) -> bytes:
    if value.tzinfo is None:
        raise _wrong_type(ElementClass.TIMESTAMPTZ, ElementClass.TIMESTAMP)
    if value.utcoffset() is None:
        raise ElementValueError("the zone of this time has no offset from UTC")
    return _pack_bigint((value - _EPOCH_UTC) // _MICROSECOND)


def _interval(value: datetime.timedelta) -> bytes:
    # A timedelta keeps 0 <= seconds < 86400 and 0 <= microseconds < 1000000, as the format asks for.
    return struct.pack("<qq", value.days, value.seconds * 1_000_000 + value.microseconds)


def _address(value: Union[ipaddress.IPv4Address, ipaddress.IPv6Address], prefix: int) -> bytes:
    if getattr(value, "scope_id", None) is not None:
        raise ElementValueError("PostgreSQL has no address with a scope")
    return bytes((value.version, prefix)) + value.packed


def _host(value: Union[ipaddress.IPv4Address, ipaddress.IPv6Address]) -> bytes:
    return _address(value, value.max_prefixlen)


def _interface(value: Union[ipaddress.IPv4Interface, ipaddress.IPv6Interface]) -> bytes:
    return _address(value, value.network.prefixlen)


def _network(value: Union[ipaddress.IPv4Network, ipaddress.IPv6Network]) -> bytes:
    return _address(value.network_address, value.prefixlen)


# The encoders of each class, by the type of the value. A filter of a class takes these values as elements.
ENCODERS: Mapping[ElementClass, Dict[type, Encoder]] = {
    ElementClass.NONE: {},
    ElementClass.BOOLEAN: {bool: _boolean},
    ElementClass.BYTEA: {bytes: bytes, bytearray: bytes, memoryview: bytes},
    ElementClass.BIGINT: {int: _bigint},
    ElementClass.TEXT: {str: _text},
    ElementClass.DOUBLE: {float: _double},
    ElementClass.MACADDR8: {MacAddr8: bytes},
    ElementClass.MACADDR: {MacAddr: bytes},
    ElementClass.INET: {
        ipaddress.IPv4Address: _host,
        ipaddress.IPv6Address: _host,
        ipaddress.IPv4Interface: _interface,
        ipaddress.IPv6Interface: _interface,
        ipaddress.IPv4Network: _network,
        ipaddress.IPv6Network: _network,
    },
    ElementClass.CHAR: {Char: _char},
    ElementClass.DATE: {datetime.date: _date},
    ElementClass.TIME: {datetime.time: _time},
    ElementClass.TIMESTAMP: {datetime.datetime: _timestamp},
    ElementClass.TIMESTAMPTZ: {datetime.datetime: _timestamptz},
    ElementClass.INTERVAL: {datetime.timedelta: _interval},
    ElementClass.TIMETZ: {datetime.time: _timetz},
    ElementClass.NUMERIC: {decimal.Decimal: _numeric},
    ElementClass.UUID: {uuid.UUID: _uuid},
}

# The same for questions. A filter of char(n) also answers about text.
QUESTION_ENCODERS: Mapping[ElementClass, Dict[type, Encoder]] = {
    **ENCODERS,
    ElementClass.CHAR: {Char: _char, str: _char},
}

_CLASS_OF_TYPE = {kind: element_class for element_class, encoders in ENCODERS.items() for kind in encoders}


def _element_type(value: object) -> type:
    """The nearest supported type that the value is an instance of."""
    for kind in type(value).__mro__:
        if kind in _CLASS_OF_TYPE:
            return kind
    name = type(value).__name__
    if value is None:
        raise ElementTypeError("None is not an element; SQL's answer about it is NULL")
    if isinstance(value, enum.Enum):
        raise ElementTypeError(f"a member of {name} is not an element; pass the label of the enum as str")
    raise ElementTypeError(f"elements of type {name} are not supported")


def class_of(value: object) -> ElementClass:
    """The class of a value. Raises ElementTypeError if its type is not supported."""
    if isinstance(value, datetime.time):
        return ElementClass.TIME if value.tzinfo is None else ElementClass.TIMETZ
    if isinstance(value, datetime.datetime):
        return ElementClass.TIMESTAMP if value.tzinfo is None else ElementClass.TIMESTAMPTZ
    return _CLASS_OF_TYPE[_element_type(value)]


def find_encoder(value: object, element_class: ElementClass, encoders: Mapping[type, Encoder]) -> Encoder:
    """The one of these encoders of a class that takes the value. Raises ElementTypeError if there is none."""
    kind = _element_type(value)
    if kind not in encoders:
        raise _wrong_type(element_class, class_of(value))
    return encoders[kind]


def _wrong_type(held: ElementClass, given: ElementClass) -> ElementTypeError:
    return ElementTypeError(f"the elements are of type {held.sql_name}, not {given.sql_name}")
