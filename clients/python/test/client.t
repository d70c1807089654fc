#!/usr/bin/python3 -B
"""The Python client alone: behaviour, errors and edges. Expected values come from the documents, from theory, and from
sets. Prints TAP; needs no server.
"""

import copy
import datetime
import decimal
import enum
import fractions
import ipaddress
import math
import os
import pickle
import struct
import sys
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENT = os.environ.get("BLOOMTYPE_CLIENT", os.path.join(HERE, ".."))
sys.path[1:1] = [CLIENT, os.path.join(HERE, "..", "..", "..", "test", "t")]
from tap import done, ok, part, same  # noqa: E402

import bloomtype  # noqa: E402
from bloomtype import (  # noqa: E402
    BloomCounter, BloomFilter, BloomtypeError, Char, ElementTypeError, ElementValueError, FormatError, MacAddr,
    MacAddr8, MismatchError, ParameterError,
)  # fmt: skip

UTC = datetime.timezone.utc
LAYOUTS = "blocked", "classic"


def zone(**offset):
    return datetime.timezone(datetime.timedelta(**offset))


def error_of(function, *arguments, **named):
    """The exception that a call raises."""
    try:
        result = function(*arguments, **named)
    except Exception as problem:
        return problem
    return result


def raises(kind, function, *arguments, says="", **named):
    got = error_of(function, *arguments, **named)
    shown = ", ".join(map(repr, arguments))[:60]
    ok(type(got) is kind and says in str(got), f"{getattr(function, '__name__', function)}({shown}): {kind.__name__}",
       f"got {got!r}")  # fmt: skip


def test_empty():
    empty, unsized = BloomFilter(1000), BloomFilter.build([])
    for one in empty, unsized:
        same([value in one for value in (1, "a", 2.5, b"")], [False] * 4, f"{one} contains nothing")
        same((one.cardinality(), one.current_rate(), one.element_type, one.sparse), (0.0, 0.0, None, True),
             f"{one}: no elements")  # fmt: skip
        same(len(one.to_bytes()), 28, f"{one} is a header only")
        raises(ElementTypeError, one.__contains__, [1])
    same((unsized.bits, unsized.hashes), (0, 6), "the empty filter without a size")
    raises(ParameterError, unsized.add, 1, says="no size")
    unsized.add(None)
    same(unsized | empty, empty, "it is neutral in a union")
    same(unsized & BloomFilter.build([1], 10), BloomFilter.build([1], 10) & BloomFilter.build([2], 10),
         "it empties an intersection")  # fmt: skip


def test_one_element():
    for layout in LAYOUTS:
        one = BloomFilter(1, layout=layout)
        one.add("x")
        same(("x" in one, one.element_type), (True, "text"), f"one element, {layout}")
        before = one.to_bytes()
        one.add("x")
        one.add(None)
        same(one.to_bytes(), before, f"adding it again and adding None change nothing, {layout}")


def test_saturated():
    for layout in LAYOUTS:
        full = BloomFilter.build(range(3000), 1, layout=layout)
        same((full.cardinality(), full.current_rate()), (math.inf, 1.0), f"saturated, {layout}: estimates")
        ok(all(value in full for value in range(-100, 4000)), f"saturated, {layout}: contains everything")
        few = BloomFilter.build([1], 1, layout=layout)
        same(full.union_cardinality(few), math.inf, f"saturated, {layout}: union")
        ok(math.isnan(full.intersection_cardinality(few)) and math.isnan(full.jaccard(few)),
           f"saturated, {layout}: intersection and Jaccard")  # fmt: skip


def test_cap():
    # doc/reference.md: 216 million elements at 1 % blocked, 223 million classic.
    for layout, most in ("blocked", 216e6), ("classic", 223e6):
        largest = BloomFilter(most, layout=layout)
        ok(0.98 * 2**31 < largest.bits <= 2**31, f"the largest filter, {layout}: {largest.bits} bits")
        largest.update(range(100))
        ok(largest.sparse and BloomFilter.load(largest.to_bytes()) == largest, f"it stays small and readable, {layout}")
        raises(ParameterError, BloomFilter, most * 1.02, layout=layout, says="2^31")


def test_switch():
    """A filter is sparse while 64 n < m."""
    for layout, items in ("blocked", 20), ("classic", 100), ("classic", 1):
        growing = BloomFilter(items, layout=layout)
        last = (growing.bits - 1) // 64
        kinds = []
        for number in range(last + 3):
            same(growing.cardinality() if growing.sparse else number, number, f"{growing}: exact while sparse")
            kinds.append(growing.sparse)
            growing.add(number)
            size = 28 + (8 * (number + 1) if growing.sparse else growing.bits // 8)
            same(len(growing.to_bytes()), size, f"{growing} has {size} bytes")
        same(kinds, [number <= last for number in range(last + 3)], f"{growing}: dense from {last + 1} on")
        ok(all(number in growing for number in range(last + 3)), f"{growing}: contains what was added before")
        same(BloomFilter.build(reversed(range(last + 3)), items, layout=layout), growing, f"{growing}: in any order")


def test_rates():
    """The measured rate of a filter with as many elements as expected: at most what was asked for plus 4 sigma."""
    probes = 20000
    for layout in LAYOUTS:
        for items, rate in (300, 0.1), (2000, 0.01):
            sized = BloomFilter.build(range(items), items, rate, layout=layout)
            found = sum(value in sized for value in range(10**6, 10**6 + probes))
            most = probes * rate + 4 * math.sqrt(probes * rate * (1 - rate))
            ok(found <= most, f"{layout}, {items} at {rate}: {found} of {probes}, at most {most:.0f}")
            now = sized.current_rate()
            ok(abs(found - probes * now) < 4 * math.sqrt(probes * now), f"{layout}, {items}: current rate {now}")
            estimate = sized.cardinality()
            ok(abs(estimate - items) < 0.1 * items, f"{layout}: cardinality {estimate} of {items}")


class Mood(enum.Enum):
    OK = "ok"


class Named(str, enum.Enum):
    OK = "ok"


VALUES = {
    "bigint": 1, "double precision": 1.0, "numeric": decimal.Decimal(1), "text": "1", "character": Char("1"),
    "bytea": b"1", "uuid": uuid.UUID(int=1), "boolean": True, "date": datetime.date(2000, 1, 1),
    "time without time zone": datetime.time(0), "time with time zone": datetime.time(0, tzinfo=UTC),
    "timestamp without time zone": datetime.datetime(2000, 1, 1),
    "timestamp with time zone": datetime.datetime(2000, 1, 1, tzinfo=UTC), "interval": datetime.timedelta(1),
    "inet": ipaddress.ip_address("127.0.0.1"), "macaddr": MacAddr(bytes(6)), "macaddr8": MacAddr8(bytes(8)),
}  # fmt: skip


def test_classes():
    for held, element in VALUES.items():
        one = BloomFilter(10)
        one.add(element)
        same(one.element_type, held, f"the element type of {element!r}")
        before = one.to_bytes()
        for given, value in VALUES.items():
            if given == held:
                ok(value in one, f"a filter of {held} contains {value!r}")
                continue
            if (held, given) == ("character", "text"):
                ok(value in one, "a filter of char(n) answers about text")
            else:
                raises(ElementTypeError, one.__contains__, value, says=given)
            raises(ElementTypeError, one.add, value, says=given)
        for value in None, 1j, [1], object(), fractions.Fraction(1), Mood.OK:
            raises(ElementTypeError, one.__contains__, value)
        same(one.to_bytes(), before, f"a filter of {held} stays as it is")
    raises(ElementTypeError, BloomFilter(10).add, Mood.OK, says="label")


def test_equal_values():
    """Values that SQL compares as equal are one element; others are not."""
    at_noon = datetime.datetime(2024, 2, 29, 12, tzinfo=UTC)
    hundreds = [decimal.Decimal(text) for text in ("100", "100.000", "1E+2", "1.00e2")]
    zeros = [decimal.Decimal(text) for text in ("0", "-0.00", "0E+9", "0E-9")]
    for equal in (
        [0.0, -0.0], [math.nan, -math.nan], hundreds, zeros,
        [at_noon, at_noon.astimezone(zone(hours=5, minutes=30))], [b"ab", bytearray(b"ab"), memoryview(b"ab")],
        [Char("ab"), Char("ab  "), Char("ab ")], ["ok", Named.OK], [2, type("Whole", (int,), {})(2)],
        [datetime.timedelta(hours=36), datetime.timedelta(days=1, hours=12)],
        [*map(MacAddr, ("08:00:2b:01:02:03", "08002B010203", "0800.2b01.0203", b"\x08\0\x2b\1\2\3"))],
        [ipaddress.ip_interface("::1"), ipaddress.ip_address("::1"), ipaddress.ip_network("::1/128")],
    ):  # fmt: skip
        same(len({BloomFilter.build([value], 100).to_bytes() for value in equal}), 1, f"one element: {equal}")
    for different in (
        [decimal.Decimal("0.1"), decimal.Decimal("0.10000000000000001")], ["a", "a ", "A"],
        [Char("a"), Char("a\t"), Char("a\u00a0"), Char(" a")],
        [datetime.time(12, tzinfo=UTC), datetime.time(13, tzinfo=zone(hours=1))],
        [ipaddress.ip_interface("10.0.0.1/8"), ipaddress.ip_address("10.0.0.1"), ipaddress.ip_network("10.0.0.0/8")],
    ):  # fmt: skip
        same(BloomFilter.build(different, 100).cardinality(), float(len(different)), f"different: {different}")


def test_printed():
    """Elements print as PostgreSQL writes them. What repr() shows makes an equal value of the same class."""
    for element, printed in (
        (MacAddr("08-00-2B-01-02-03"), "08:00:2b:01:02:03"), (MacAddr8(bytes(range(8))), "00:01:02:03:04:05:06:07"),
        (Char("AB "), "AB "),
    ):  # fmt: skip
        same((str(element), f"{element}"), (printed, printed), f"{element!r}: printed")
        for again in eval(repr(element)), pickle.loads(pickle.dumps(element)), copy.deepcopy(element):
            same((type(again), again), (type(element), element), f"{element!r}: evaluated, pickled and copied")


def test_impossible_values():
    """Values that PostgreSQL does not have."""
    class NoOffset(datetime.tzinfo):
        def utcoffset(self, moment):
            return None

    for value in (
        2**63, -(2**63) - 1, decimal.Decimal("1E+131072"), decimal.Decimal("1E-16384"), "a\0b", "\ud800", Char("\0"),
        datetime.time(0, tzinfo=zone(hours=16)), datetime.time(0, tzinfo=zone(microseconds=1)),
        datetime.time(0, tzinfo=NoOffset()), datetime.datetime(2000, 1, 1, tzinfo=NoOffset()),
        ipaddress.ip_address("fe80::1%eth0"),
    ):  # fmt: skip
        one = BloomFilter(10)
        raises(ElementValueError, one.add, value)
        same((one.element_type, one), (None, BloomFilter(10)), f"{value!r:.40} leaves the filter without elements")
        raises(ElementValueError, one.__contains__, value)
    for value in 2**63 - 1, -(2**63), decimal.Decimal("9E+131071"), decimal.Decimal("1.0E-16383"):
        ok(value in BloomFilter.build([value], 10), f"{value!r:.40} is possible")
    for text in "08:00:2b:01:02", "08:00:2b:01:02:03:04", "08:00:2b:01:02:0g", "":
        raises(ElementValueError, MacAddr, text)
    raises(ElementValueError, MacAddr8, bytes(6))
    for kind in MacAddr, MacAddr8:
        raises(TypeError, kind, kind.size, says="not int")
    for value in None, 5, b"ab":
        raises(TypeError, Char, value, says="expected str")


def test_parameters():
    for items in 0, 0.99, -1, math.nan, math.inf, 1e300:
        raises(ParameterError, BloomFilter, items)
    for rate in 0, 0.51, 9.9e-10, math.nan, -1, 1, 1e300, math.inf, math.nextafter(0.5 + 2**-25, 1):
        raises(ParameterError, BloomFilter, 10, rate, says="rate")
    for seed in 2**63, -(2**63) - 1:
        raises(ParameterError, BloomFilter, 10, seed=seed, says="seed")
    for layout in "round", None, 1:
        raises(ParameterError, BloomFilter, 10, layout=layout, says="layout")
        raises(ParameterError, BloomFilter.build, [1], layout=layout, says="layout")
    raises(ParameterError, BloomFilter, expected_items=10**5000, says="2^31")
    raises(ParameterError, BloomFilter, 223900000, says="223900000 elements")
    raises(ParameterError, BloomFilter, 10, false_positive_rate=10**5000, says="rate")
    raises(ParameterError, BloomFilter, 10, seed=10**5000, says="seed")
    for arguments in ("10",), (None,), (10, "0.1"), (10, None):
        raises(TypeError, BloomFilter, *arguments, says="number")
    for seed in 1.5, "1", None:
        raises(TypeError, BloomFilter, 10, seed=seed, says="integer")
    raises(ParameterError, BloomFilter.build, [1], layout="classic", says="expected_items")
    lowest = BloomFilter(10, 1e-9).requested_rate  # below 1e-9: the limits are of single precision, as the rate
    for rate, rounded in (lowest, lowest), (math.nextafter(1e-9, 0), lowest), (0.5 + 2**-25, 0.5):
        made = BloomFilter(10, rate), BloomFilter.build([], 10, rate), BloomFilter(10).fold(rate)
        same([one.requested_rate for one in made], 3 * [rounded], f"{rate!r} rounds to a rate in the range")
    same(BloomFilter(10, seed=-(2**63)).seed, -(2**63), "a seed is signed")
    same(BloomFilter(99.5).bits, BloomFilter(100).bits, "a fraction of expected_items is rounded up")
    same(bloomtype.BloomFilter(10, layout="CLASSIC").layout, "classic", "a layout in upper case")


def test_like_a_set():
    filters = {}
    for name, first, last, items in ("a", 0, 5, 400), ("b", 3, 90, 400), ("c", 50, 300, 400):
        filters[name] = BloomFilter.build(range(first, last), items)
    a, b, c = filters.values()
    whole = BloomFilter.build(range(300), 400)
    same((a | b | c, a | (b | c), c | a | b), (whole, whole, whole), "a union is the filter of all elements")
    same((a & b, (a & b) & c), (b & a, a & (b & c)), "an intersection does not depend on the order")
    ok(all(value in a & b for value in (3, 4)) and 0 not in a & b, "an intersection contains what both contain")
    changed = a.copy()
    same((changed, changed == b), (a, False), "filters are equal by their bytes")
    changed |= b
    same((changed, a), (BloomFilter.build(range(90), 400), BloomFilter.build(range(5), 400)),
         "|= changes one filter only")  # fmt: skip
    changed &= c
    ok(60 in changed and 3 not in changed, "&= keeps common elements")
    for again in copy.copy(b), copy.deepcopy(b), pickle.loads(pickle.dumps(b)), BloomFilter.load(b.to_text()):
        again.add(10**6)
        ok(again != b and again.cardinality() > b.cardinality(), "a copy is independent")
    raises(TypeError, hash, a)
    raises(TypeError, lambda: a | {1})
    raises(TypeError, lambda: a & 1)
    same(a == {1}, False, "a filter is no set")
    b_before = b.to_bytes()
    raises(ElementTypeError, b.update, [7, 8, "x", 9])
    same(b.to_bytes(), b_before, "update adds what comes before an error: here, elements that were there")
    same(error_of(a.update, [100, "x", 101]) and (100 in a, 101 in a), (True, False), "and nothing after it")


def test_mismatches():
    a = BloomFilter.build([1], 100)
    for other in (
        BloomFilter.build([1], 1000), BloomFilter.build([1], 100, 0.001), BloomFilter.build([1], 100, seed=1),
        BloomFilter.build([1], 100, layout="classic"),
    ):  # fmt: skip
        for combine in BloomFilter.union, BloomFilter.intersection, BloomFilter.__ior__:
            raises(MismatchError, combine, a.copy(), other, says="do not combine")
    for other in 5, None, {1}, a.to_bytes():
        for combine in (
            a.union, a.intersection, a.fold_like, a.jaccard, a.union_cardinality, a.intersection_cardinality,
            BloomFilter.build([]).union,
        ):  # fmt: skip
            raises(TypeError, combine, other, says="expected a BloomFilter")
    raises(ElementTypeError, a.union, BloomFilter.build(["1"], 100), says="text")
    raises(ElementTypeError, a.jaccard, BloomFilter.build(["1"], 100), says="text")
    raises(MismatchError, BloomFilter.build(range(99), 100).fold_like, BloomFilter(1000), says="fold")
    raises(MismatchError, BloomFilter.build(range(99), 100, layout="classic").fold_like,
           BloomFilter(10, layout="classic"), says="fold")  # fmt: skip
    raises(ParameterError, BloomFilter.build(range(1000), 100).fold, 0.01, says="already")


def test_folding():
    wide = BloomFilter.build(range(100), 20000)
    same(wide.fold_like(BloomFilter(10000)), BloomFilter.build(range(100), 10000), "a sparse filter folds")
    wide = BloomFilter.build(range(6000), 20000)
    same(wide.fold_like(BloomFilter(10000)), BloomFilter.build(range(6000), 10000), "a dense filter folds")
    narrow = wide.fold(0.1)
    ok(narrow.bits < wide.bits and narrow.current_rate() <= 0.1, f"{narrow} has at most the rate asked for")
    ok(all(value in narrow for value in range(6000)), "it contains the elements")
    same(wide.fold(narrow.current_rate()).bits, narrow.bits, "a rate that is reached exactly is kept")
    ok(wide.fold(math.nextafter(narrow.current_rate(), 0)).bits > narrow.bits, "a rate next below that is not")
    full = BloomFilter.build(range(900), 1000, layout="classic")
    same(full.fold(full.current_rate()).to_bytes()[28:], full.to_bytes()[28:], "also in a filter that does not fold")
    same(wide.requested_rate == narrow.requested_rate, False, "its requested rate is the one asked for")


def test_estimates():
    """Two sets of 3000 with 1000 in common; five times the standard error of a filter with few bits set."""
    for items, layout in (5000, "blocked"), (5000, "classic"), (10**6, "blocked"):
        a = BloomFilter.build(range(3000), items, layout=layout)
        b = BloomFilter.build(range(2000, 5000), items, layout=layout)
        for name, got, wanted in (
            ("union", a.union_cardinality(b), 5000), ("intersection", a.intersection_cardinality(b), 1000),
            ("union the other way", b.union_cardinality(a), 5000), ("Jaccard", 5000 * a.jaccard(b), 1000),
        ):  # fmt: skip
            ok(abs(got - wanted) < (200 if items == 5000 else 1e-6), f"{a}: {name} {got}, exactly {wanted}")
    same(BloomFilter(10).jaccard(BloomFilter(10)), 1.0, "two empty filters are alike")


def test_forms():
    one = BloomFilter.build(["a", "b"], 100)
    same((bytes(one), one.to_bytes().hex()), (one.to_bytes(), one.to_text()[2:]), "binary and text form")
    spaced = memoryview(b"".join(bytes((byte, 0)) for byte in bytes(one)))[::2]
    for form in (
        one.to_bytes(), bytearray(bytes(one)), memoryview(bytes(one)), one.to_text(), spaced,
        one.to_text().encode(), memoryview(one.to_text().encode()),
    ):  # fmt: skip
        same(BloomFilter.load(form), one, f"read from {type(form).__name__}")
    data = bytearray(bytes(one))
    read = BloomFilter.load(data)
    data[-1] ^= 1
    same(read, one, "a filter does not share the bytes that it was read from")
    for length in range(len(data)):
        whole = length >= 28 and (length - 28) % 8 == 0  # fewer hashes are a sparse filter, too
        got = error_of(BloomFilter.load, bytes(one)[:length])
        ok(isinstance(got, BloomFilter if whole else FormatError), f"{length} of {len(data)} bytes", repr(got))
    for form in None, 7, ["\\x00"]:
        for reader in BloomFilter, BloomCounter:
            raises(TypeError, reader.load, form, says=f"or str, not {type(form).__name__}")
    for form in b"\\x0", b"\\x0g", b"\\x", "\\x\u0663\u0663":
        raises(FormatError, BloomFilter.load, form)
    for name in bloomtype.__all__:
        ok(hasattr(bloomtype, name), f"{name} is exported")
    for kind in FormatError, ParameterError, MismatchError, ElementValueError:
        ok(issubclass(kind, BloomtypeError) and issubclass(kind, ValueError), f"{kind.__name__} is a ValueError")
    ok(issubclass(ElementTypeError, BloomtypeError) and issubclass(ElementTypeError, TypeError), "and a TypeError")


def test_counter():
    """The dense counter of doc/format.md, over 1, 1, 2, 3 and 4."""
    text = (
        "\\x0101040314000000cdcccc3d00000000000000004000000000000000"
        "2000000000000300100000000001010000000110000000000020010100000001"
    )
    counter = BloomCounter.load(text)
    again, other = BloomCounter.load(text), BloomCounter.load(text.replace("2001", "3001"))
    same((counter == again, hash(counter) == hash(again), counter == other), (True, True, False),
         "counters are equal if their bytes are")  # fmt: skip
    raises(TypeError, BloomFilter(64, layout="classic").fold_like, counter, says="not BloomCounter")
    same([counter.count(value) for value in (1, 2, 3, 4, 142, 5)], [2, 1, 1, 1, 1, 0], "what elements read")
    same([value in counter for value in (1, 142, 5)], [True, True, False], "what the counter contains")
    for got, wanted in (
        (counter.cardinality(), 3.991763927904623), (counter.total(), 5.078945193023064),
        (counter.current_rate(), 0.005077362060546875),
    ):  # fmt: skip
        ok(math.isclose(got, wanted, rel_tol=1e-12), f"an estimate: {wanted}", got)
    twice = counter.at_least(2)
    same((1 in twice, 2 in twice, twice.element_type), (True, False, "bigint"), "the filter of what reads 2")
    same((counter.element_type, counter.limit, counter.levels), ("bigint", 15, False), "what the counter is")
    for value in "1", 1.0, True, None:
        raises(ElementTypeError, counter.count, value)
        raises(ElementTypeError, counter.__contains__, value)
    raises(ElementTypeError, counter.count, 1j, says="elements of type complex")
    for level in 0, 16, -1, 10**5000:
        raises(ParameterError, counter.at_least, level=level)
    for level in 1.5, "1", None:
        raises(TypeError, counter.at_least, level, says="integer")
    # One hash and a number in blocks of 512 positions of 4 bits.
    sparse = struct.pack("<4BIfQQQ", 1, 0, 5, 3, 20, 0.1, 0, 512, 7)
    same(BloomCounter.load(sparse + b"\x0f\0").cardinality(), 1.0, "a sparse counter")
    for number in 0, 16:
        data = sparse + struct.pack("<H", number)
        raises(FormatError, BloomCounter.load, data, says=f"number of an element is {number}")
    large = struct.pack("<4BIfQQ", 1, 0, 5, 3, 0, 0.1, 0, 2**29 + 512)
    raises(FormatError, BloomCounter.load, large, says="536871424 positions of 4 bits")


for test in (
    test_empty, test_one_element, test_saturated, test_cap, test_switch, test_rates, test_classes, test_equal_values,
    test_printed, test_impossible_values, test_parameters, test_like_a_set, test_mismatches, test_folding,
    test_estimates, test_forms, test_counter,
):  # fmt: skip
    part(test)
done()
