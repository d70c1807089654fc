"""Reads and writes the Bloom filters of the PostgreSQL extension bloomtype, without a server.

BloomFilter is the type bloomfilter: it has the same bytes as a filter that the server builds from the same elements
with the same parameters. BloomCounter reads the type bloomcounter.
"""

from .counter import BloomCounter
from .elements import Char, MacAddr, MacAddr8
from .errors import (
    BloomtypeError,
    ElementTypeError,
    ElementValueError,
    FormatError,
    MismatchError,
    ParameterError,
)
from .filter import BloomFilter
from .geometry import IMPLEMENTATION

__all__ = [
    "BloomCounter",
    "BloomFilter",
    "BloomtypeError",
    "Char",
    "ElementTypeError",
    "ElementValueError",
    "FormatError",
    "IMPLEMENTATION",
    "MacAddr",
    "MacAddr8",
    "MismatchError",
    "ParameterError",
]
