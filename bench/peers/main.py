#!/usr/bin/python3
"""bloomtype side by side with its peers: `script/bench peers`.

Connects as psql does, to a database with bloomtype in it. ROWS is the number of rows, 10 million by default. Arguments
name the modules to run; by default all run.
"""
import importlib
import os
import sys

import results

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from measure import rows  # noqa: E402

MODULES = ("membership", "routing", "outside", "distinct", "joins")


def main():
    names = sys.argv[1:] or MODULES
    results.run({name: importlib.import_module(name) for name in names}, rows())


main()
