#!/usr/bin/python3 -B
"""The Python client against the golden vectors, which the second implementation has computed from doc/format.md: the
hash of every element that Python has a value for, sizes, filters, combinations, and what a reader accepts and refuses.
Prints TAP; needs no server.
"""

import datetime
import decimal
import functools
import hashlib
import ipaddress
import json
import math
import os
import re
import struct
import sys
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
CLIENT = os.environ.get("BLOOMTYPE_CLIENT", os.path.join(HERE, ".."))
sys.path[1:1] = [CLIENT, os.path.join(ROOT, "test", "t")]
from tap import done, ok, part, same  # noqa: E402

from bloomtype import (  # noqa: E402
    BloomCounter, BloomFilter, Char, ElementTypeError, FormatError, MacAddr, MacAddr8, MismatchError, ParameterError,
)  # fmt: skip

with open(os.path.join(ROOT, "test", "golden", "vectors.json"), encoding="utf-8") as file:
    VECTORS = json.load(file)
HEADER_BYTES = 28

# PostgreSQL's values that Python does not have: infinite dates, years outside 1 to 9999, 24 o'clock, long intervals.
NOT_IN_PYTHON = {
    "'infinity'::date", "'-infinity'::date", "'4713-01-01 BC'::date", "'0001-12-31 BC'::date", "'5874897-12-31'::date",
    "'infinity'::timestamp", "'-infinity'::timestamp", "'4713-01-01 00:00:00 BC'::timestamp",
    "'infinity'::timestamptz", "'-infinity'::timestamptz", "'24:00'::time", "'170000000 years'::interval",
}  # fmt: skip


def single(text):
    return struct.unpack("<f", struct.pack("<f", float(text)))[0]


def interval(text):
    units = {"second": 1, "hour": 3600, "day": 86400, "month": 30 * 86400, "year": 360 * 86400}
    parts = re.findall(r"(\S+) (\w+?)s?(?: |$)", text)
    return sum((datetime.timedelta(seconds=units[unit]) * float(number) for number, unit in parts),
               datetime.timedelta())  # fmt: skip


def with_minutes(text):
    """Python reads offsets from UTC without minutes only from 3.11 on."""
    return re.sub(r"([+-]\d\d)$", r"\1:00", text)


def time_of(text):
    """Python has no 24:00, but from 3.14 on it reads that as midnight."""
    if text.startswith("24"):
        raise ValueError(text)
    return datetime.time.fromisoformat(text)


PYTHON_VALUE = {
    "smallint": int, "integer": int, "bigint": int, "positive": int, "real": single, "double precision": float,
    "numeric": decimal.Decimal, "text": str, "varchar": str, "name": str, "mood": str, "char": Char,
    "bytea": lambda text: bytes.fromhex(text[2:]), "uuid": uuid.UUID, "boolean": lambda text: text == "true",
    "date": datetime.date.fromisoformat, "time": time_of,
    "timestamp": datetime.datetime.fromisoformat,
    "timetz": lambda text: datetime.time.fromisoformat(with_minutes(text)),
    "timestamptz": lambda text: datetime.datetime.fromisoformat(with_minutes(text)),
    "interval": interval, "inet": ipaddress.ip_interface, "cidr": ipaddress.ip_network,
    "macaddr": MacAddr, "macaddr8": MacAddr8,
}  # fmt: skip


def python_value(literal):
    text, sql_type = re.fullmatch(r"'(.*)'::([a-z0-9 ]+)(?:\(\d+\))?", literal).groups()
    return PYTHON_VALUE[sql_type](text.replace("''", "'"))


HASH = {vector["element"]: (vector["class"], vector["xxh64"]) for vector in VECTORS["hashes"] if vector["seed"] == "0"}


def of_one_hash(empty, literal):
    """The filter of an element that is no Python value: the bytes of an empty one, and the recorded hash."""
    element_class, element_hash = HASH[literal]
    data = bytearray(empty.to_bytes())
    data[4:8] = struct.pack("<I", element_class)
    return BloomFilter.load(data + bytes.fromhex(element_hash)[::-1])


def elements_of(vector):
    if "series" in vector:
        first, last = vector["series"]
        return list(range(first, last + 1))
    return [python_value(literal) for literal in vector["elements"] if literal not in NOT_IN_PYTHON]


def built(vector):
    parameters = {"layout": vector["layout"], "seed": int(vector["seed"])}
    result = BloomFilter.build(elements_of(vector), vector["items"], vector["rate"], **parameters)
    for literal in NOT_IN_PYTHON.intersection(vector.get("elements", ())):
        result |= of_one_hash(BloomFilter(vector["items"], vector["rate"], **parameters), literal)
    return result


def recorded(vector, result):
    """The form in which the vectors record these bytes."""
    if "bytes" in vector:
        return result.to_bytes().hex()
    return f"{len(result.to_bytes())} {hashlib.sha256(result.to_bytes()).hexdigest()}"


def expected(vector):
    return vector.get("bytes") or f"{vector['length']} {vector['sha256']}"


def near(got, wanted):
    return got == wanted or math.isclose(got, wanted, rel_tol=1e-9)


def test_hashes():
    impossible = set()
    for vector in VECTORS["hashes"]:
        literal = vector["element"]
        try:
            value = python_value(literal)
        except (ValueError, OverflowError):
            impossible.add(literal)
            continue
        one = BloomFilter(100, seed=int(vector["seed"]))
        one.add(value)
        got = one.to_bytes()[HEADER_BYTES:][::-1].hex(), int.from_bytes(one.to_bytes()[4:8], "little")
        same(got, (vector["xxh64"], vector["class"]), f"hash and class of {literal}, seed {vector['seed']}")
        ok(value in one, f"{literal} is in its filter")
    same(sorted(impossible), sorted(NOT_IN_PYTHON), "the values that Python does not have")


def test_sizes():
    for layout, rate, items, k, bits in VECTORS["sizes"]:
        sized = BloomFilter(items, rate, layout=layout)
        same((sized.hashes, sized.bits), (k, bits), f"size: {layout}, {items} elements at {rate}")


def test_filters(filters):
    for vector in VECTORS["filters"]:
        name = vector["name"]
        filters[name] = result = built(vector)
        same(recorded(vector, result), expected(vector), f"built: {name}")
        same((result.sparse, result.hashes, result.bits), (vector["sparse"], vector["k"], vector["m"]),
             f"described: {name}")  # fmt: skip
        read = BloomFilter.load(result.to_bytes())
        same(read.to_bytes(), result.to_bytes(), f"read and written: {name}")
        missing = [value for value in elements_of(vector) if value not in read]
        same(missing, [], f"contains its elements: {name}")
        got = read.cardinality(), read.current_rate()
        wanted = float(vector["cardinality"]), vector["current_rate"]
        ok(all(map(near, got, wanted)), f"cardinality and rate: {name}", f"got      {got}", f"expected {wanted}")


def fold_to(operand, bits):
    """Folds by way of an empty filter of that size."""
    data = bytearray(operand.to_bytes()[:HEADER_BYTES])
    data[2], data[4:8], data[20:28] = 1, bytes(4), struct.pack("<Q", bits)
    return operand.fold_like(BloomFilter.load(data))


def result_of(vector, filters):
    operands = [filters[name] for name in vector["of"]]
    if vector["operation"] == "fold":
        return fold_to(*operands, vector["m"])
    if vector["operation"] == "fold_like":
        return operands[0].fold_like(operands[1])
    if vector["operation"] == "intersection":
        return operands[0] & operands[1]
    return functools.reduce(BloomFilter.union, operands)


def test_operations(filters):
    for vector in VECTORS["operations"]:
        name = f"{vector['operation']} of {', '.join(vector['of'])} {vector.get('m', '')}"
        before = [filters[operand].to_bytes() for operand in vector["of"]]
        try:
            result = result_of(vector, filters)
        except (MismatchError, ElementTypeError) as problem:
            ok("refused" in vector, f"{name} is refused", problem)
        else:
            same(recorded(vector, result), "refused" if "refused" in vector else expected(vector), name)
        same([filters[operand].to_bytes() for operand in vector["of"]], before, f"{name}: the operands stay")


def test_accepted_and_refused():
    for vector in VECTORS["accepted"]:
        data = bytes.fromhex(vector["bytes"])
        for form in data, bytearray(data), memoryview(data), "\\x" + vector["bytes"], "\\x" + vector["bytes"].upper():
            read = BloomFilter.load(form)
            same((read.to_bytes(), read.to_text()), (data, "\\x" + vector["bytes"]),
                 f"read and written: {vector['why']}, {type(form).__name__}")  # fmt: skip
    for vector in VECTORS["refused"]:
        for form in bytes.fromhex(vector["bytes"]), "\\x" + vector["bytes"]:
            try:
                BloomFilter.load(form)
            except FormatError as problem:
                ok(str(problem), f"refused: {vector['why']}, {type(form).__name__}: {problem}")
            else:
                ok(False, f"refused: {vector['why']}, {type(form).__name__}")


def test_other_type():
    for reader, key, name in (
        (BloomFilter, "accepted_counters", "bloomcounter"), (BloomCounter, "accepted", "bloomfilter"),
    ):  # fmt: skip
        for vector in VECTORS[key]:
            try:
                reader.load(bytes.fromhex(vector["bytes"]))
            except FormatError as problem:
                ok(f"this is a {name}" in str(problem), f"{reader.__name__} refuses: {vector['why']}", problem)
            else:
                ok(False, f"{reader.__name__} refuses: {vector['why']}")


def test_counters():
    """Those whose bytes are recorded."""
    counters = {}
    for vector in VECTORS["counters"]:
        if "bytes" not in vector:
            continue
        name = vector["name"]
        counters[name] = counter = BloomCounter.load(bytes.fromhex(vector["bytes"]))
        reads = [counter.count(value) for value in elements_of(vector)[:5]]
        if not NOT_IN_PYTHON.intersection(vector.get("elements", ())):
            same(reads, vector["reads"], f"reads: counter {name}")
        got = counter.cardinality(), counter.current_rate(), None if counter.levels else counter.total()
        wanted = float(vector["cardinality"]), vector["current_rate"], vector["total"]
        right = all(a == b or near(a, b) for a, b in zip(got, wanted))
        ok(right, f"estimates: counter {name}", f"got      {got}", f"expected {wanted}")
    ok(len(counters) > 20, f"{len(counters)} counters have recorded bytes")
    for vector in VECTORS["counter_operations"]:
        if vector["operation"] in ("at_least", "to_filter") and vector["of"][0] in counters:
            try:
                got = recorded(vector, counters[vector["of"][0]].at_least(vector.get("number", 1)))
            except ParameterError:
                got = "refused"
            wanted = "refused" if "refused" in vector else expected(vector)
            same(got, wanted, f"{vector['operation']} {vector.get('number', '')} of {vector['of'][0]}")


def test_accepted_and_refused_counters():
    for vector in VECTORS["accepted_counters"]:
        for form in bytes.fromhex(vector["bytes"]), "\\x" + vector["bytes"]:
            ok(BloomCounter.load(form).cardinality() >= 0, f"read: counter, {vector['why']}, {type(form).__name__}")
    for vector in VECTORS["refused_counters"]:
        try:
            BloomCounter.load(bytes.fromhex(vector["bytes"]))
        except FormatError as problem:
            ok(str(problem), f"refused: counter, {vector['why']}: {problem}")
        else:
            ok(False, f"refused: counter, {vector['why']}")


def main():
    filters = {}
    part(test_hashes)
    part(test_sizes)
    part(test_filters, filters)
    part(test_operations, filters)
    part(test_accepted_and_refused)
    part(test_other_type)
    part(test_counters)
    part(test_accepted_and_refused_counters)
    done()


main()
