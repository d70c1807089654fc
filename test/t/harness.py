"""What the tests in Python share: the Test Anything Protocol, and psql. Whoever imports it can import reference.py,
too. It is no test and not executable, so that nothing takes it for one.
"""

import os
import signal
import subprocess
import sys
import traceback

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")
sys.path.insert(1, GOLDEN)

# ---------------------------------------------------------------------------------------------------
# TAP
# ---------------------------------------------------------------------------------------------------

count = failed = 0


def shortened(text):
    return text if len(text) <= 4000 else f"{text[:2000]} ... {text[-2000:]}"


def ok(condition, name, *diagnostics):
    global count, failed
    count += 1
    failed += not condition
    print(f"{'ok' if condition else 'not ok'} {count} - {name.replace('#', '')}", flush=True)
    if not condition:
        for diagnostic in diagnostics:
            for line in shortened(str(diagnostic)).strip("\n").split("\n"):
                print(f"#   {line}", flush=True)
    return condition


def same(got, expected, name):
    return ok(got == expected, name, f"got      {got!r}", f"expected {expected!r}")


def skip(name, why):
    global count
    count += 1
    print(f"ok {count} # SKIP {name}: {why}", flush=True)


def note(text):
    print(f"# {text}", flush=True)


def part(function, *arguments):
    """Runs a part of the tests. One that fails altogether does not keep the next from running."""
    try:
        return function(*arguments)
    except Failed as problem:
        ok(False, f"{function.__name__} runs to its end", problem)
    except Exception:
        ok(False, f"{function.__name__} runs to its end", traceback.format_exc())
    return None


def done():
    """Ends the tests, and tells that they came to their end."""
    print(f"1..{count}", flush=True)
    sys.exit(failed != 0 or count == 0)


def clean_up_when_terminated():
    """Lets "finally" take effect when somebody ends the test."""
    for number in signal.SIGHUP, signal.SIGINT, signal.SIGTERM:
        signal.signal(number, lambda number, frame: sys.exit(128 + number))


# ---------------------------------------------------------------------------------------------------
# The server
# ---------------------------------------------------------------------------------------------------


class Failed(Exception):
    """What psql or another program said when it failed."""


def psql(script, *options, **environment):
    """The lines that a script prints that is to succeed."""
    run = subprocess.run(
        ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", *options], input=script, capture_output=True, encoding="utf-8",
        env={**os.environ, "PGCLIENTENCODING": "UTF8", "LC_MESSAGES": "C", **environment},
    )  # fmt: skip
    if run.returncode != 0:
        raise Failed(run.stderr.strip())
    return run.stdout.split("\n")[:-1]


def sanitized():
    """Has the server a sanitizer in it? That takes memory of its own, as much as it likes."""
    config = os.environ.get("PG_CONFIG", "pg_config")
    return "-fsanitize" in subprocess.run([config, "--cflags"], stdout=subprocess.PIPE, encoding="utf-8").stdout


def extension_schema():
    """Where bloomtype is, as SQL has it."""
    schemas = psql("SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'bloomtype';\n")
    if not schemas:
        sys.exit("no extension bloomtype here")
    return schemas[0]


def quote(text):
    return "'" + text.replace("'", "''") + "'"


def hex_of(f):
    """The text form of a filter of reference.py."""
    return "\\x" + f.encode().hex()


def value(f):
    return quote(hex_of(f)) + "::bloomfilter"


def wide(m, first=1, blocks=32):
    """In SQL, and quickly made: a dense filter of integers that has m bits. So many different blocks, of
    hexadecimal digits, which set 44 % of the bits, are repeated to fill it."""
    header = "01000006140000000ad7233c0000000000000000" + m.to_bytes(8, "little").hex()
    runs = f"string_agg(repeat(md5(i::text) || md5((-i)::text), {m // 512 // blocks}), '' ORDER BY i)"
    series = f"generate_series({first}, {first + blocks - 1}) AS i"
    return f"('\\x{header}' || convert_to((SELECT {runs} FROM {series}), getdatabaseencoding()))::bloomfilter"
