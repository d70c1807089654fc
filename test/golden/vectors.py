#!/usr/bin/python3 -B
"""Computes the outputs in vectors.json again from its inputs, by reference.py; as a module, reads the vectors.

    test/golden/vectors.py
"""

import datetime
import decimal
import hashlib
import ipaddress
import itertools
import json
import math
import os
import re
import uuid

import reference as ref

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vectors.json")
# Bytes of a vector that are written out; longer ones are recorded by length and SHA-256.
LONGEST_HEX = 700
LONGEST_COUNTER_HEX = 100

# SQL literals to Python values

LITERAL = re.compile(r"'(?P<text>(?:[^']|'')*)'::(?P<type>[a-z0-9 ]+?)(?:\(\d+\))?")
OWN_TYPES = {"mood": "enum", "positive": "integer"}  # made by SETUP
UNITS = {"year": 360 * 86400, "month": 30 * 86400, "day": 86400, "hour": 3600, "second": 1}


def date_number(text):
    """Days since 2000-01-01, in any year: the calendar recurs after 400 years."""
    text, before_christ = re.subn(" BC$", "", text)
    year, month, day = map(int, text.split("-"))
    cycles, year = divmod(1 - year if before_christ else year, 400)
    return (datetime.date(2000 + year, month, day) - datetime.date(2000, 1, 1)).days + (cycles - 5) * 146097


def parse_date(text):
    if "infinity" in text:
        return float(text)
    return datetime.date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else date_number(text)


def parse_timestamp(text):
    if "infinity" in text:
        return float(text)
    if text.endswith(" BC"):
        return date_number(text.replace(" 00:00:00", "")) * 86_400_000_000
    return datetime.datetime.fromisoformat(text)


def parse_time(text):
    return 86_400_000_000 if text == "24:00" else datetime.time.fromisoformat(text)


def parse_interval(text):
    seconds = decimal.Decimal(0)
    for number, unit in re.findall(r"(-?[0-9.]+) ([a-z]+?)s?\b", text):
        seconds += decimal.Decimal(number) * UNITS[unit]
    return int(seconds * 1_000_000)


PARSE = {
    "smallint": int, "integer": int, "bigint": int,
    "real": float, "double precision": float,
    "numeric": decimal.Decimal,
    "text": str, "varchar": str, "char": str, "name": str, "enum": str,
    "bytea": lambda text: bytes.fromhex(text[2:]),
    "uuid": uuid.UUID,
    "boolean": lambda text: text == "true",
    "date": parse_date, "time": parse_time, "timetz": datetime.time.fromisoformat,
    "timestamp": parse_timestamp, "timestamptz": parse_timestamp, "interval": parse_interval,
    "inet": ipaddress.ip_interface, "cidr": ipaddress.ip_interface,
    "macaddr": lambda text: bytes.fromhex(text.replace(":", "")),
    "macaddr8": lambda text: bytes.fromhex(text.replace(":", "")),
}  # fmt: skip


def parse(literal):
    """Class and canonical bytes of an SQL literal such as 'alice'::text."""
    match = LITERAL.fullmatch(literal)
    sql_type = OWN_TYPES.get(match["type"], match["type"])
    return ref.element(sql_type, PARSE[sql_type](match["text"].replace("''", "'")))


# Vectors


def series(first, last):
    return [ref.element("bigint", number) for number in range(first, last + 1)]


def elements_of(vector):
    return series(*vector["series"]) if "series" in vector else [parse(e) for e in vector["elements"]]


def filter_of(vector):
    elements, seed = elements_of(vector), int(vector["seed"])
    if vector["items"] is None:
        return ref.build_self_sized(vector["rate"], elements, seed=seed)
    return ref.build(vector["layout"], vector["rate"], elements, items=vector["items"], seed=seed)


def recorded(data, longest=LONGEST_HEX):
    if len(data) <= longest:
        return {"bytes": data.hex()}
    return {"length": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def complete_hash(vector):
    element_class, canonical = parse(vector["element"])
    digest = ref.hash_of(canonical, int(vector["seed"]))
    return {**vector, "class": element_class, "canonical": canonical.hex(), "xxh64": f"{digest:016x}"}


def complete_size(vector):
    layout, rate, items = vector[:3]
    return [layout, rate, items, ref.choose_k(layout, rate), ref.choose_m(layout, rate, items)]


def measured(f):
    """What the records of filters and of counters share."""
    cardinality = f.cardinality()
    return {
        "k": f.k, "m": f.m, "class": f.element_class, "sparse": f.sparse,
        "cardinality": cardinality if math.isfinite(cardinality) else "Infinity",
        "current_rate": f.current_rate(),
    }  # fmt: skip


def complete_filter(vector, f):
    inputs = {key: vector[key] for key in vector if key not in ("bytes", "length", "sha256")}
    return {**inputs, **measured(f), **recorded(f.encode())}


OPERATIONS = {"union": ref.union, "intersection": ref.intersect, "fold_like": ref.fold_like}


def result_of(vector, filters):
    operands = [filters[name] for name in vector["of"]]
    if vector["operation"] == "fold":
        return operands[0].fold(vector["m"])
    if vector["operation"] == "union_agg":
        return ref.union_agg(operands)
    return OPERATIONS[vector["operation"]](*operands)


# Vectors of counters


def numbered(vector):
    """Pairs of an element and its number; there may be fewer numbers than elements."""
    numbers = itertools.cycle(vector["numbers"])
    return [(an_element, next(numbers)) for an_element in elements_of(vector)]


def counter_of(vector):
    pairs, parameters = numbered(vector), {"width": vector["width"], "seed": int(vector["seed"])}
    if vector["items"] is None:
        build = {"counts": ref.build_counts_self_sized, "levels": ref.build_levels_self_sized}
        return build[vector["contents"]](vector["rate"], pairs, **parameters)
    build = {"counts": ref.build_counts, "levels": ref.build_levels}
    parameters["items"] = vector["items"]
    return build[vector["contents"]](vector["layout"], vector["rate"], pairs, **parameters)


def complete_counter(vector, c):
    inputs = {key: vector[key] for key in ("name", "layout", "rate", "items", "width", "seed", "contents")}
    inputs |= {key: vector[key] for key in ("series", "elements", "numbers") if key in vector}
    return {
        **inputs, **measured(c), "total": None if c.levels else c.total(),
        "reads": [c.read(an_element) for an_element in elements_of(vector)[:5]],
        **recorded(c.encode(), LONGEST_COUNTER_HEX),
    }  # fmt: skip


COUNTER_OPERATIONS = {
    "sum": ref.sum_of, "difference": ref.difference, "union": ref.greater, "intersection": ref.lesser,
    "sum_agg": lambda *counters: ref.sum_agg(counters), "union_agg": lambda *counters: ref.greater_agg(counters),
    "add": ref.Counter.add, "remove": ref.Counter.remove, "raise": ref.Counter.raise_,
    "decay": ref.Counter.decay, "at_least": ref.Counter.at_least, "to_filter": ref.Counter.to_filter,
}  # fmt: skip


def arguments_of(vector):
    an_element = [parse(vector["element"])] if "element" in vector else []
    return an_element + ([vector["number"]] if "number" in vector else [])


def counter_results(document, counters):
    """What each operation gives, or None if it is an error. Later operations may take named results."""
    known, results = dict(counters), []
    for vector in document["counter_operations"]:
        operands = [known[name] for name in vector["of"]]
        try:
            result = COUNTER_OPERATIONS[vector["operation"]](*operands, *arguments_of(vector))
        except ref.Refused:
            result = None
        results.append(result)
        if "name" in vector:
            known[vector["name"]] = result
    return results


def complete_counter_operation(vector, result):
    inputs = {key: vector[key] for key in ("name", "operation", "of", "element", "number") if key in vector}
    return {**inputs, **(recorded(result.encode(), LONGEST_COUNTER_HEX) if result else {"refused": True})}


def read():
    with open(PATH, encoding="utf-8") as file:
        return json.load(file)


def filters_of(document):
    return {vector["name"]: filter_of(vector) for vector in document["filters"]}


def counters_of(document):
    return {vector["name"]: counter_of(vector) for vector in document["counters"]}


def complete(document, filters, counters):
    """The document with every output computed anew."""

    def complete_operation(vector):
        inputs = {key: vector[key] for key in ("operation", "of", "m") if key in vector}
        try:
            return {**inputs, **recorded(result_of(vector, filters).encode())}
        except ref.Refused:
            return {**inputs, "refused": True}

    return {
        **document,
        "hashes": [complete_hash(vector) for vector in document["hashes"]],
        "sizes": [complete_size(vector) for vector in document["sizes"]],
        "filters": [complete_filter(vector, filters[vector["name"]]) for vector in document["filters"]],
        "operations": [complete_operation(vector) for vector in document["operations"]],
        "counters": [complete_counter(vector, counters[vector["name"]]) for vector in document["counters"]],
        "counter_operations": list(
            map(complete_counter_operation, document["counter_operations"], counter_results(document, counters))
        ),
    }


def write(document):
    """JSON with one vector to a line."""

    def dump(value):
        return json.dumps(value, ensure_ascii=False)

    def member(value):
        if isinstance(value, list):
            return "[\n" + ",\n".join(dump(item) for item in value) + "\n]"
        return dump(value)

    with open(PATH, "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(f"{dump(key)}: {member(document[key])}" for key in document) + "\n}\n")


if __name__ == "__main__":
    written = read()
    write(complete(written, filters_of(written), counters_of(written)))
