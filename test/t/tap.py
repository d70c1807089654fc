"""The Test Anything Protocol, for all tests in Python."""

import signal
import sys
import traceback

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
                note(f"  {line}")
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
    """Runs one part of the tests. An exception fails this part and does not keep the next from running."""
    try:
        return function(*arguments)
    except Exception:
        ok(False, f"{function.__name__} runs to its end", traceback.format_exc())
    return None


def done():
    """Prints the plan and exits."""
    print(f"1..{count}", flush=True)
    sys.exit(failed != 0 or count == 0)


def clean_up_when_terminated():
    """Turns signals into exceptions, so that "finally" takes effect."""
    for number in signal.SIGHUP, signal.SIGINT, signal.SIGTERM:
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
