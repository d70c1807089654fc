#!/usr/bin/python3 -B
"""check.py COMMAND...: the core alone, without PostgreSQL, against the golden vectors. From the inputs in vectors.json
answer.c, run as COMMAND, must compute the outputs byte for byte, and it must read every filter and write it back
unchanged. test/unit/Makefile runs this."""

import functools
import hashlib
import itertools
import json
import math
import os
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "..", "t"))
from tap import done, ok, same  # noqa: E402

VECTORS = os.path.join(HERE, "vectors.json")


def near(got, expected):
    return got == expected or math.isclose(got, expected, rel_tol=1e-9)


class Core:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        self.process.stdin.write(" ".join(str(word) or "-" for word in words) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"no answer to {' '.join(map(str, words))[:1000]}")
        return answer.rstrip("\n")


def recorded(vector, digits):
    """The form in which vectors.json records these bytes, or "refused"."""
    if "bytes" in vector or digits == "refused":
        return digits
    data = bytes.fromhex(digits)
    return f"{len(data)} {hashlib.sha256(data).hexdigest()}"


def expected(vector):
    if "refused" in vector:
        return "refused"
    return vector.get("bytes") or f"{vector['length']} {vector['sha256']}"


def build(core, vector, canonical):
    parameters = (vector["layout"], vector["rate"], vector["items"] or 0, vector["seed"])
    if "series" in vector:
        return core.ask("series", *parameters, vector["class"], *vector["series"])
    elements = [canonical[element] for element in vector["elements"]]
    return core.ask("build", *parameters, vector["class"], *elements)


def result_of(core, vector, filters):
    operands = [filters[name] for name in vector["of"]]
    if vector["operation"] == "fold":
        return core.ask("fold", operands[0], vector["m"])
    if vector["operation"] == "union_agg":
        return functools.reduce(lambda a, b: core.ask("union", a, b), operands)
    return core.ask(vector["operation"], *operands)


def canonical_elements(vector, canonical):
    if "series" not in vector:
        return [canonical[element] for element in vector["elements"]]
    first, last = vector["series"]
    return [struct.pack("<q", number).hex() for number in range(first, last + 1)]


def build_counter(core, vector, elements):
    parameters = [vector[key] for key in ("layout", "rate", "items", "width", "seed", "class", "contents")]
    pairs = zip((element or "-" for element in elements), itertools.cycle(vector["numbers"]))
    return core.ask("counter", *(parameter or 0 for parameter in parameters), *itertools.chain(*pairs))


COMBINATIONS = {
    "sum": "sum", "difference": "difference", "union": "greater", "intersection": "lesser",
    "sum_agg": "sum", "union_agg": "greater",
}  # fmt: skip


def change_counter(core, vector, operands, of_element):
    if vector["operation"] in COMBINATIONS:
        return functools.reduce(lambda a, b: core.ask(COMBINATIONS[vector["operation"]], a, b), operands)
    if vector["operation"] == "to_filter":
        return core.ask("at_least", *operands, 1)
    element = of_element[vector["element"]] if "element" in vector else ()
    return core.ask(vector["operation"], *operands, *element, vector["number"])


def check_counters(core, document, canonical):
    counters = {}
    for vector in document["counters"]:
        name, elements = vector["name"], canonical_elements(vector, canonical)
        counter = counters[name] = build_counter(core, vector, elements)
        same(recorded(vector, counter), expected(vector), f"built: counter {name}")
        same(core.ask("read_counter", counter), counter, f"read and written: counter {name}")
        reads = core.ask("numbers", counter, *(element or "-" for element in elements[:5]))
        same(reads.split(), [str(number) for number in vector["reads"]], f"numbers: {name}")
        got = list(map(float, core.ask("measure_counter", counter).split()))
        wanted = [float(vector[key]) for key in ("cardinality", "current_rate", "total") if vector[key] is not None]
        right = len(got) == len(wanted) and all(map(near, got, wanted))
        ok(right, f"cardinality, rate and total: {name}", f"got      {got}", f"expected {wanted}")
    of_element = {v["element"]: (v["class"], v["canonical"] or "-") for v in document["hashes"]}
    for vector in document["counter_operations"]:
        operands = [counters[name] for name in vector["of"]]
        answer = change_counter(core, vector, operands, of_element)
        same(recorded(vector, answer), expected(vector), f"{vector['operation']} of {' and '.join(vector['of'])}")
        if "name" in vector:
            counters[vector["name"]] = answer


def main():
    core = Core(sys.argv[1:])
    with open(VECTORS, encoding="utf-8") as file:
        document = json.load(file)
    for vector in document["hashes"]:
        got = core.ask("hash", vector["seed"], vector["canonical"])
        same(got, vector["xxh64"], f"hash of {vector['element']}, seed {vector['seed']}")
    for layout, rate, items, k, m in document["sizes"]:
        same(core.ask("size", layout, rate, items), f"{k} {m}", f"size: {layout}, {items} elements at {rate}")

    canonical = {vector["element"]: vector["canonical"] for vector in document["hashes"]}
    filters = {}
    for vector in document["filters"]:
        name = vector["name"]
        filters[name] = build(core, vector, canonical)
        same(recorded(vector, filters[name]), expected(vector), f"built: {name}")
        same(core.ask("read", filters[name]), filters[name], f"read and written: {name}")
        got = list(map(float, core.ask("measure", filters[name]).split()))
        wanted = [float(vector["cardinality"]), vector["current_rate"]]
        ok(all(map(near, got, wanted)), f"cardinality and rate: {name}", f"got      {got}", f"expected {wanted}")
    for vector in document["operations"]:
        got = recorded(vector, result_of(core, vector, filters))
        same(got, expected(vector), f"{vector['operation']} of {' and '.join(vector['of'])}")
    check_counters(core, document, canonical)
    for suffix, question in (("", "read"), ("_counters", "read_counter")):
        for vector in document["accepted" + suffix]:
            same(core.ask(question, vector["bytes"]), vector["bytes"], f"read and written: {vector['why']}")
        for vector in document["refused" + suffix]:
            got = core.ask(question, vector["bytes"])
            ok(got.startswith("refused"), f"refused: {vector['why']}", f"got {got}")
    done()


if __name__ == "__main__":
    main()
