#!/usr/bin/python3
"""seeds.py DIRECTORY: writes inputs made from test/golden/vectors.json to DIRECTORY/decode, named by
their SHA-1 as libFuzzer names its own. What they are made of is described in frame.h."""

import hashlib
import json
import os
import struct
import sys

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "vectors.json")


# Filters are paired with filters, and counters with counters.
PARTS = (
    ("filters", "accepted", "refused", "operations"),
    ("counters", "accepted_counters", "refused_counters", "counter_operations"),
)


def encodings(document, parts):
    """All values and refusals of these parts that are written out, in the order of the file."""
    for part in parts:
        for vector in document[part]:
            if "bytes" in vector:
                yield bytes.fromhex(vector["bytes"])


def write(directory, data):
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, hashlib.sha1(data).hexdigest()), "wb") as file:
        file.write(data)


def write_pairs(data):
    for first, second in zip(data, data[1:] + data[:1]):
        for options, pieces in ((0, 7), (3, 0)):
            frame = struct.pack("<BBH", options, pieces, len(first)) + first + second
            write(os.path.join(sys.argv[1], "decode"), frame)


def main():
    with open(VECTORS, encoding="utf-8") as file:
        document = json.load(file)
    for parts in PARTS:
        write_pairs(list(encodings(document, parts)))


if __name__ == "__main__":
    main()
