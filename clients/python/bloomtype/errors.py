"""The exceptions of this package. All of them are BloomtypeError and a built-in exception."""


class BloomtypeError(Exception):
    """Base class of the exceptions of this package."""


class FormatError(BloomtypeError, ValueError):
    """The bytes are not a filter. The message says which rule they break."""


class ParameterError(BloomtypeError, ValueError):
    """A parameter is out of range, or the filter has no size."""


class MismatchError(BloomtypeError, ValueError):
    """The filters have different parameters or sizes, so that they do not combine."""


class ElementTypeError(BloomtypeError, TypeError):
    """The value is not of the type of the filter's elements, or of no supported type."""


class ElementValueError(BloomtypeError, ValueError):
    """The value has a supported type, but PostgreSQL has no such value."""
