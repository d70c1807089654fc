#!/usr/bin/python3 -B
"""Writes the golden vectors as C tables, with all bytes that reference.py computes, for ../unit/test_golden.c. That
program compares the core with them on any processor, without PostgreSQL."""

import json
import random
from dataclasses import replace

import reference as ref
import vectors as golden

rng = random.Random("golden")


def c_bytes(data):
    return '"' + "".join(f"\\x{byte:02x}" for byte in data) + '"'


def c_name(text):
    return json.dumps(text.encode("ascii", "backslashreplace").decode())


def c_bool(truth):
    return str(truth).lower()


def c_array(kind, numbers):
    return f"({kind}[]) {{{', '.join(map(str, numbers))}}}" if numbers else "NULL"


def c_table(kind, name, rows):
    return f"static const {kind} {name}[] = {{\n" + "".join(f"\t{{{row}}},\n" for row in rows) + "};\n"


def c_double(number):
    return "INFINITY" if number == float("inf") else repr(float(number))


def layout(name):
    return f"BF_{name.upper()}"


def hash_row(vector):
    canonical = bytes.fromhex(vector["canonical"])
    seed = int(vector["seed"]) % 2**64
    return f"{c_bytes(canonical)}, {len(canonical)}, {seed}u, 0x{vector['xxh64']}u"


def size_rows(document):
    for kind, rate, items, k, m in document["sizes"]:
        yield f"{layout(kind)}, {rate!r}, {items}, {k}, {m}, false"
    for vector in document["filters"] + document["counters"]:
        items, own = vector["items"], c_bool(vector["items"] is None)
        if items is None:
            items = len(set(golden.elements_of(vector)))
        if items > 0:
            yield f"{layout(vector['layout'])}, {vector['rate']!r}, {items}, {vector['k']}, {vector['m']}, {own}"


def value(f):
    data = f.encode()
    return f"{c_bool(isinstance(f, ref.Counter))}, {c_bytes(data)}, {len(data)}"


def reads(f, hashes):
    """What some of the hashes and others read."""
    asked = [*hashes[:5], *(rng.getrandbits(64) for _ in range(40))]
    read = f.read_hash if isinstance(f, ref.Counter) else f.contains_hash
    return "".join(f"{{0x{h:x}u, {int(read(h))}}}, " for h in asked)


def value_row(name, f, vector):
    """Elements are a series of numbers from the first one, or given by their hashes."""
    elements = golden.elements_of(vector) if vector else []
    first, hashes = 0, [ref.hash_of(canonical, f.seed) for _, canonical in elements]
    written = c_array("const uint64_t", [f"0x{h:x}u" for h in hashes])
    if vector and "series" in vector:
        first, written = vector["series"][0], "NULL"
    numbers = vector.get("numbers") or [1] if vector else [1]
    total = f.total() if isinstance(f, ref.Counter) and not f.levels else -1
    row = [
        c_name(name), f"{{{value(f)}}}", first, written, len(elements), c_array("const uint32_t", numbers),
        len(numbers), f"{{{reads(f, hashes)}}}", len(hashes[:5]) + 40, c_double(f.cardinality()),
        c_double(f.current_rate()), c_double(total),
    ]  # fmt: skip
    return ", ".join(map(str, row))


def element_of(counter, an_element, number):
    """A counter of this element alone, by which add, remove and raise change another."""
    element_class, canonical = an_element
    listed = ((ref.hash_of(canonical, counter.seed), min(number, counter.limit)),)
    return replace(counter, element_class=element_class, levels=False, listed=listed, numbers=None)


COMBINATIONS = {
    "sum": "BF_SUM", "sum_agg": "BF_SUM", "add": "BF_SUM", "difference": "BF_DIFFERENCE", "remove": "BF_DIFFERENCE",
    "union": "BF_GREATER", "union_agg": "BF_GREATER", "raise": "BF_GREATER", "intersection": "BF_LESSER",
}  # fmt: skip
COMBINE = {
    (ref.Filter, "BF_GREATER"): ref.union, (ref.Filter, "BF_LESSER"): ref.intersect,
    (ref.Counter, "BF_SUM"): ref.sum_of, (ref.Counter, "BF_GREATER"): ref.greater,
}  # fmt: skip


def operation_row(operator, number, a, b, result):
    return f"{operator}, {number}, {{{value(a)}}}, {{{value(b)}}}, {{{value(result)}}}"


def one_operand_rows(vector, f, result):
    """The core has loops over dense payloads, and expands hashes; the rest is the extension's."""
    operator = {"fold": "FOLD", "fold_like": "FOLD", "decay": "DECAY"}.get(vector["operation"], "AT_LEAST")
    if not result.sparse and (operator == "FOLD" or not f.sparse):
        yield operation_row(operator, vector.get("number", 1), f, f, result)


def operation_rows(vector, operands, result):
    """Steps of two operands. The extension's own are those without a size, which may differ in parameters, and those
    that take what a dense operand reads of single hashes."""
    operator = COMBINATIONS.get(vector["operation"])
    if operator is None:
        yield from one_operand_rows(vector, operands[0], result)
        return
    for i, b in enumerate(operands[1:], 2):
        a = operands[0] if i == 2 else step
        step = result if i == len(operands) else COMBINE[type(a), operator](a, b)
        if a.m and b.m and (not step.sparse or (a.sparse and b.sparse)):
            yield operation_row(operator, 0, a, b, step)


def all_operation_rows(document, filters, counters):
    for vector in document["operations"]:
        if "refused" not in vector:
            operands = [filters[name] for name in vector["of"]]
            yield from operation_rows(vector, operands, golden.result_of(vector, filters))
    known = dict(counters)
    for vector, result in zip(document["counter_operations"], golden.counter_results(document, counters)):
        operands = [known[name] for name in vector["of"]]
        if "element" in vector:
            operands.append(element_of(operands[0], *golden.arguments_of(vector)))
        if result is not None:
            yield from operation_rows(vector, operands, result)
        if "name" in vector:
            known[vector["name"]] = result


def all_value_rows(document, filters, counters):
    for part, values in (("filters", filters), ("counters", counters)):
        for vector in document[part]:
            yield value_row(vector["name"], values[vector["name"]], vector)
    for part, decode in (("accepted", ref.decode), ("accepted_counters", ref.decode_counter)):
        for vector in document[part]:
            yield value_row(vector["why"], decode(bytes.fromhex(vector["bytes"])), None)


def refusal_rows(document):
    for part in "refused", "refused_counters":
        for vector in document[part]:
            data = bytes.fromhex(vector["bytes"])
            yield f"{c_name(vector['why'])}, {{{c_bool(part != 'refused')}, {c_bytes(data)}, {len(data)}}}"


def main():
    document = golden.read()
    filters, counters = golden.filters_of(document), golden.counters_of(document)
    print(c_table("golden_hash", "hashes", map(hash_row, document["hashes"])))
    print(c_table("golden_size", "sizes", size_rows(document)))
    print(c_table("golden_set", "sets", all_value_rows(document, filters, counters)))
    print(c_table("golden_refusal", "refusals", refusal_rows(document)))
    print(c_table("golden_operation", "operations", all_operation_rows(document, filters, counters)))


if __name__ == "__main__":
    main()
