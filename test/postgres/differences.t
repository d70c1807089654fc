#!/usr/bin/python3 -B
"""Usage: differences.t SUITE DIRECTORY [WHY]

Compares the outputs of PostgreSQL's tests without join filters with the expected ones, and those with join filters with
those without. script/dev/postgres-tests has left them in DIRECTORY/SUITE-RUN. Each difference must be listed in the
file "differences". WHY says why the expected outputs are those of another server; then nothing is compared with them.
Prints TAP.
"""

import itertools
import pathlib
import re
import subprocess
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "t"))
from tap import done, note, ok, skip  # noqa: E402

SUITE, DIRECTORY = sys.argv[1], pathlib.Path(sys.argv[2])
RULE = re.compile(r"-+(\+-+)*$")
END = re.compile(r"\(\d+ rows?\)$")
PLAN = "<a plan>"


def listed():
    """What the file "differences" lists: the pairs of test and lines that differ, and the tests that show objects of
    the extension."""
    text = pathlib.Path(__file__).with_name("differences").read_text()
    pairs, test = set(), None
    for changed, lines in itertools.groupby(text.splitlines(), lambda line: line[:1] in {"-", "+"}):
        if changed:
            pairs.add((test, "\n".join(lines)))
        else:
            test = ([line[3:] for line in lines if line.startswith("== ")] or [test])[-1]
    return pairs, set(re.findall(r"^\* (\S+)", text, re.MULTILINE))


LISTED, SHOWING_OBJECTS = listed()
found = set()


def results(run):
    return {path.stem: path for path in (DIRECTORY / f"{SUITE}-{run}/tests/results").glob("*.out")}


def tables(lines):
    """The result of each query with rows, from its heading to its number of rows, as slices."""
    result, start = [], None
    for number, line in enumerate(lines):
        if RULE.match(line):
            start = number - 1
        elif END.match(line) and start is not None:
            result.append(slice(start, number + 1))
            start = None
    return result


def shows_filter(lines):
    return any("Bloom Join Filter" in line or "bloom_join_filter(" in line for line in lines)


def without_plans(before, after):
    """Both outputs without the plans that show a join filter in the second one; and the number of these plans."""
    pairs = list(zip(tables(before), tables(after), strict=False))
    if len(tables(before)) != len(tables(after)):
        return before, after, 0
    plans = [pair for pair in pairs if shows_filter(after[pair[1]])]
    before, after = list(before), list(after)
    for first, second in reversed(plans):
        before[first] = after[second] = [PLAN]
    return before, after, len(plans)


def hunks(before, after):
    """The groups of lines that differ."""
    if before == after:
        return []
    paths = [DIRECTORY / name for name in ("before", "after")]
    for path, lines in zip(paths, (before, after), strict=True):
        path.write_text("".join(line + "\n" for line in lines), errors="surrogateescape")
    diff = subprocess.run(["diff", "-U0", *paths], capture_output=True, text=True, errors="surrogateescape", check=False)
    return hunks_of_diff(diff.stdout)


def hunks_of_diff(text):
    """The groups of lines that differ in an output of diff."""
    changes = itertools.groupby(text.splitlines()[2:], lambda line: line[:1] in {"-", "+"})
    return ["\n".join(lines) for changed, lines in changes if changed]


def judge(run, test, differences):
    new = [one for one in differences if (f"{SUITE}/{test}", one) not in LISTED]
    found.update((f"{SUITE}/{test}", one) for one in differences)
    ok(not new, f"{SUITE}, {run}: {test} has no unknown difference")
    for one in new:
        note(f"== {SUITE}/{test}\n{one}\n")


def all_ran(run):
    """A test without an output, or a run that has not come to its end, compares nothing."""
    log = (DIRECTORY / f"{SUITE}-{run}/tests.log").read_text(errors="surrogateescape")
    number = re.search(r"\b(?:All|of) (\d+) tests\b", log)
    ok(number and int(number[1]) == len(results(run)), f"{SUITE}, {run}: all tests ran", log[-2000:])


def compare_with_expected():
    all_ran("off")
    if sys.argv[3:]:
        skip(f"{SUITE}, off: the expected output", sys.argv[3])
        return
    path = DIRECTORY / f"{SUITE}-off/tests/regression.diffs"
    text = path.read_text(errors="surrogateescape") if path.exists() else ""
    parts = re.split(r"^diff .*/results/([\w-]+)\.out$\n", text, flags=re.MULTILINE)
    differences = dict(zip(parts[1::2], parts[2::2], strict=True))
    for test in sorted(results("off").keys() | differences.keys()):
        if f"{SUITE}/{test}" not in SHOWING_OBJECTS:
            judge("off", test, hunks_of_diff(differences.get(test, "")))


def compare(off, force):
    plans = 0
    before, after = results(off), results(force)
    all_ran(force)
    ok(before.keys() == after.keys(), f"{SUITE}, {force}: the tests of {off} ran", before.keys() ^ after.keys())
    for test in sorted(before.keys() & after.keys()):
        texts = [paths[test].read_text(errors="surrogateescape").splitlines() for paths in (before, after)]
        first, second, shown = without_plans(*texts)
        judge(force, test, hunks(first, second))
        plans += shown
    note(f"{SUITE}, {force}: {plans} plans show a join filter")
    ok(plans > 0 or SUITE == "isolation", f"{SUITE}, {force}: plans have join filters")


def no_crash():
    for log in sorted(DIRECTORY.glob(f"{SUITE}-*/log")):
        # Without ^, the time would grow with the square of the longest line, which has 20 kB.
        crashes = re.findall(r"(?m)^.*(?:PANIC:|terminated by signal|TRAP:).*", log.read_text(errors="surrogateescape"))
        ok(not crashes, f"no crash in {log.parent.name}", *crashes)


sys.stdout.reconfigure(errors="surrogateescape")
compare_with_expected()
compare("off", "force")
compare("hash-off", "hash-force")
no_crash()
for test, lines in sorted(LISTED - found):
    if test.startswith(f"{SUITE}/"):
        note(f"not seen: {test}\n{lines}")
done()
