#!/usr/bin/python3 -B
"""script/demo-distributed with few rows: it succeeds, filters save rows and bytes, and no file remains. It starts servers
of its own.
"""

import os
import pathlib
import re
import subprocess
import tempfile

from tap import clean_up_when_terminated, done, ok, same, skip

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "script/demo-distributed"
ROWS = 20000


def program_output(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **options).stdout.strip()


def run_demo(directory):
    # A script that runs script/test may have set these for the test server.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BLOOMTYPE_")}
    run = subprocess.run([SCRIPT, str(ROWS)], env={**environment, "TMPDIR": directory}, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True)  # fmt: skip
    same(run.returncode, 0, "the demonstration succeeds") or ok(False, "output", run.stdout)
    return {name.strip(): [int(number) for number in numbers.split()]
            for name, numbers in re.findall(r"^    (\S.*?)((?: +\d+){3})$", run.stdout, re.M)}  # fmt: skip


def check(figures):
    """Each figure is rows and bytes that crossed, and milliseconds."""
    (all_rows, plain, _), (passing, filtered, _) = figures["without the filter"], figures["with the filter"]
    same(all_rows, ROWS, "a join without the filter pulls all rows")
    # 1 % of the customers match, and at most 0.1 % of the others pass.
    ok(ROWS * 0.007 < passing < ROWS * 0.014, "a join with the filter pulls 1 %", passing)
    ok(filtered * 20 <= plain, "and at most a twentieth of the bytes", filtered, plain)
    same([figures[name][0] for name in ("from the rows, at the hub", "on each server, united at the hub")], [ROWS, 2],
         "bloom_agg on each server returns the filters only")  # fmt: skip
    listed, compared = figures["by a list of all keys and hashes"], figures["by a filter each way"]
    ok(compared[1] * 5 <= listed[1], "filters show which rows differ with a fifth of the bytes", compared, listed)


clean_up_when_terminated()
share = program_output(os.environ.get("PG_CONFIG", "pg_config"), "--sharedir")
if os.path.exists(f"{share}/extension/postgres_fdw.control"):
    with tempfile.TemporaryDirectory() as own:
        os.chmod(own, 0o755)
        found = run_demo(own)
        same(os.listdir(own), [], "no file remains")
    check(found)
else:
    skip("script/demo-distributed", "postgres_fdw is not installed")
done()
