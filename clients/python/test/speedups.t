#!/usr/bin/python3 -B
"""The optional module in C against the same in Python, and the tests golden.t and client.t with it. It is built in a
temporary directory. Prints TAP; needs no server, but a C compiler and Python's headers.
"""

import glob
import os
import random
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, "..", "..", "..", "test", "t")]
from tap import clean_up_when_terminated, done, ok, part, same, skip  # noqa: E402


def build(directory):
    """Builds the package there; returns the path of the module in C, or None."""
    source = os.path.join(directory, "source")
    shutil.copytree(os.path.join(HERE, ".."), source, ignore=shutil.ignore_patterns("build", "*.so", "*.egg-info"))
    command = [sys.executable, "-W", "ignore", "setup.py", "--quiet", "build_ext", "--inplace"]
    log = subprocess.run(command, cwd=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    print(*(f"# {line}" for line in log.splitlines()), sep="\n")
    return next(iter(glob.glob(os.path.join(source, "bloomtype", "_speedups*.so"))), None)


def test_same_bits(geometry, rng):
    for _ in range(300):
        block_bits = rng.choice((64, 128, 512, 64 * rng.randint(1, 300)))
        shape = block_bits, rng.randint(1, 40), rng.randint(1, 32)
        both = geometry.Geometry(*shape), geometry.PurePythonGeometry(*shape)
        same(*((one.block_bits, one.blocks) for one in both), f"{shape}: the geometry")
        hashes = [rng.choice((0, 2**64 - 1, 2**63, rng.getrandbits(64))) for _ in range(20)]
        questions = hashes + [rng.getrandbits(64) for _ in range(100)]
        bits = [geometry.bits_of(one, hashes) for one in both]
        same(*bits, f"{shape}: the bits of 20 elements")
        same(*([one.contains(bits[0], question) for question in questions] for one in both), f"{shape}: the answers")


def test_misuse(geometry):
    """The module in C checks what would lead outside its memory."""
    def error_of(function, *arguments):
        try:
            function(*arguments)
        except (TypeError, ValueError, OverflowError) as problem:
            return type(problem)
        return None

    one, none = geometry.Geometry(512, 2, 6), geometry.Geometry(512, 0, 6)
    for method in one.contains, one.add:
        for arguments, expected in (
            ((bytearray(127), 0), ValueError), ((bytearray(129), 0), ValueError), ((bytearray(), 0), ValueError),
            ((bytes(128), 0), TypeError), ((None, 0), TypeError), ((bytearray(128),), TypeError),
            ((bytearray(128), 0, 0), TypeError), ((), TypeError), ((bytearray(128), "0"), TypeError),
            ((bytearray(128), -1), OverflowError), ((bytearray(128), 2**64), OverflowError),
            ((bytearray(128), 2**64 - 1), None),
        ):  # fmt: skip
            same(error_of(method, *arguments), expected, f"{method.__name__} of {str(arguments)[:40]}")
    same(error_of(none.add, bytearray(), 0), ValueError, "adding without a size")
    for shape in (2**32, 1, 1), (2**31, 2, 1), (8, 2**32, 1), (512, 1, 33), (2**63, 2, 1), (12, 1, 1), (4, 1, 1):
        same(error_of(geometry.Geometry, *shape), ValueError, f"a geometry of {shape}")


def test_other_tests(source):
    for name in "golden.t", "client.t":
        environment = {**os.environ, "BLOOMTYPE_CLIENT": source}
        got = subprocess.run([os.path.join(HERE, name)], env=environment, stdout=subprocess.PIPE, text=True)
        failures = [line for line in got.stdout.splitlines() if line.startswith("not ok")]
        same((got.returncode, failures[:5]), (0, []), f"{name} with the module in C")


def main():
    clean_up_when_terminated()
    with tempfile.TemporaryDirectory() as directory:
        if not build(directory):
            skip("the module in C", "it cannot be built here")
            done()
        source = os.path.join(directory, "source")
        sys.path.insert(1, source)
        from bloomtype import geometry

        same(geometry.IMPLEMENTATION, "in C", "the package uses the module")
        part(test_same_bits, geometry, random.Random("geometry"))
        part(test_misuse, geometry)
        part(test_other_tests, source)
    done()


main()
