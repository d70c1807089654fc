#!/usr/bin/python3
"""Adds keys to a set in a Python program, and asks for keys, as outside.c does: the same arguments, and the same line
of figures. The first argument is "set", or "client" for clients/python. The bytes of a set are the memory that it
takes.
"""
import os
import struct
import sys
import time

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients", "python"))
HEADER, ROW = 19, struct.Struct(">hiq")


def read_keys(path):
    with open(path, "rb") as file:
        data = file.read()
    rows = memoryview(data)[HEADER : HEADER + (len(data) - HEADER) // ROW.size * ROW.size]
    return [key for _, _, key in ROW.iter_unpack(rows)]


def memory():
    with open("/proc/self/status") as status:
        return 1024 * int(next(line for line in status if line.startswith("RssAnon")).split()[1])


def make_set(keys):
    """The keys are objects of their own: those of the list go with it."""
    found = set()
    for key in keys:
        found.add(key)
    return found


def make_client(keys):
    import bloomtype

    found = bloomtype.BloomFilter(len(keys), 0.01)
    found.update(keys)
    return found


def nanoseconds_of_loop(keys):
    start = time.process_time()
    for key in keys:
        if key:
            pass
    return 1e9 * (time.process_time() - start) / len(keys)


def ask(found, keys):
    """The nanoseconds of asking for a key, without those of the loop, and the hits."""
    hits = 0
    start = time.process_time()
    for key in keys:
        if key in found:
            hits += 1
    taken = 1e9 * (time.process_time() - start) / len(keys)
    return taken - nanoseconds_of_loop(keys), hits


def main():
    kind, keys, present, absent = sys.argv[1:]
    make = {"set": make_set, "client": make_client}[kind]
    make([1])  # imports what it needs
    before = memory()
    keys = read_keys(keys)
    start = time.process_time()
    found = make(keys)
    add = 1e9 * (time.process_time() - start) / len(keys)
    if kind == "set":
        add -= nanoseconds_of_loop(keys)
    del keys
    size = memory() - before if kind == "set" else len(found.to_bytes())
    (present, present_hits), (absent, absent_hits) = (ask(found, read_keys(path)) for path in (present, absent))
    print("%.3f %.3f %.3f %d %d %d" % (add, present, absent, size, present_hits, absent_hits))


main()
