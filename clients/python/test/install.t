#!/usr/bin/python3 -B
"""The installation of README.md, into a virtual environment and from packages of the system alone. The network stays
unused. Prints TAP; needs no server, but what README.md installs by apt.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, "..", "..", "..", "test", "t")]
from tap import clean_up_when_terminated, done, part, same, skip  # noqa: E402

QUESTION = """
from bloomtype import BloomFilter
print(BloomFilter.load(BloomFilter.build(["alice"]).to_text()).cardinality())
"""


def run(*command):
    """The exit status and what the command prints."""
    got = subprocess.run(command, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return got.returncode, got.stdout


def test_install(directory):
    source, python = os.path.join(directory, "source"), os.path.join(directory, "venv", "bin", "python")
    shutil.copytree(os.path.join(HERE, ".."), source, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    status, log = run(sys.executable, "-m", "venv", "--system-site-packages", os.path.join(directory, "venv"))
    same(status, 0, f"the virtual environment: {log}")
    status, log = run(python, "-m", "pip", "install", "--no-index", "--no-build-isolation", source)
    same((status, log if status else ""), (0, ""), "pip installs the package without an index")
    same(run(python, "-c", QUESTION), (0, "1.0\n"), "the installed package makes and reads a filter")


def main():
    clean_up_when_terminated()
    missing = [name for name in ("ensurepip", "setuptools", "wheel", "xxhash") if not importlib.util.find_spec(name)]
    with tempfile.TemporaryDirectory() as directory:
        if missing:
            skip("the installation", f"Python has no {', '.join(missing)}")
        else:
            part(test_install, directory)
    done()


main()
