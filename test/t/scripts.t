#!/usr/bin/python3 -B
"""Each script explains itself, refuses wrong usage, and passes shellcheck, where it is installed. The documents name
only scripts that exist. script/dev/record-results keeps one row for each name. Each row of doc/test-results.md belongs
to a check of script/dev/verify-release. What a script skips is part of its result. Prints TAP; needs no server.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from tap import done, ok, same, skip

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "script/dev/lib.sh"
SCRIPTS = sorted(path for path in ROOT.glob("script/**/*") if path.is_file() and path != LIBRARY)
DOCUMENTS = "*.md", "doc/*.md", "test/**/*.md", ".github/workflows/*.yml", "debian/*", "Dockerfile", "Makefile"


def run(*command, variables=(), **options):
    """Runs a command without the variables of the script that runs this test."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BLOOMTYPE_")}
    return subprocess.run(command, capture_output=True, text=True, env={**environment, **dict(variables)}, **options)


def explains_itself(path):
    name = str(path.relative_to(ROOT))
    ok(os.access(path, os.X_OK), f"{name} is executable")
    for option in "--help", "-h":
        got = run(path, option)
        ok((got.returncode, got.stderr) == (0, "") and re.match(rf"Usage: {re.escape(name)}[ \n]", got.stdout),
           f"{name} {option}", got)  # fmt: skip
        ok("\nExit status: " in got.stdout, f"{name} {option} names the exit status", got.stdout)
    got = run(path, "--no-such-option")
    ok((got.returncode, got.stdout) == (2, "") and f"\nUsage: {name}" in got.stderr, f"{name} refuses wrong usage", got)


def shellcheck():
    if not shutil.which("shellcheck"):
        return skip("shellcheck", "it is not installed")
    got = run("shellcheck", "-x", LIBRARY, *ROOT.glob(".ci/run"), *ROOT.glob("test/install/*.t"), *SCRIPTS)
    return same(got.stdout + got.stderr, "", "shellcheck")


def named_scripts_exist():
    for path in sorted(path for pattern in DOCUMENTS for path in ROOT.glob(pattern) if path.is_file()):
        names = set(re.findall(r"\bscript/[a-z/-]*[a-z]", path.read_text()))
        same([name for name in sorted(names) if not (ROOT / name).exists()], [],
             f"the scripts in {path.relative_to(ROOT)} exist")  # fmt: skip


def records_results():
    if not shutil.which("git"):
        return skip("script/dev/record-results", "git is not installed")
    with tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory)
        page = copy / "doc/test-results.md"
        record = copy / "script/dev/record-results"
        (copy / "doc").mkdir()
        page.write_text("Text\n\n| run |\n| --- |\n")
        record.parent.mkdir(parents=True)
        shutil.copy(ROOT / "script/dev/record-results", record)
        shutil.copy(LIBRARY, record.parent)
        identity = ["-c", "user.name=test", "-c", "user.email="]
        for git in ["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "Test"]:
            run("git", *git, cwd=copy, check=True)
        commit = run("git", "rev-parse", "--short", "HEAD", cwd=copy).stdout.strip()

        def recorded(name, output, status=0):
            got = run(record, name, "--", "sh", "-c", f"printf '{output}'; exit {status}").returncode
            same(got, status, f"record-results exits with the status {status} of the command")
            rows = [line.split(" | ") for line in page.read_text().split("\n")[4:-1]]
            return [[row[0], *row[2:5]] for row in rows]

        first = ["| a", commit, "", "x\\|y"]
        same(recorded("a", "x|y\n"), [first], "record-results appends a row")
        second = ["| b", commit, "15.3, 19rc1", "1 passed, 0 failed"]
        same(recorded("b", "PostgreSQL 19rc1\nPostgreSQL 15.3 PostgreSQL 15.3\n1 passed, 0 failed\n== end\n"),
             [first, second], "and another")  # fmt: skip
        record.write_text(record.read_text() + "\n")
        changed = ["| a", commit + "+", "", "exit status 3: no"]
        same(recorded("a", "# no\n\n", 3), [changed, second], "and replaces the row of the same name")
        run(record, "c", "--", 'echo "$WORD"', variables={"WORD": "seen"})
        row = page.read_text().split("\n")[-2].split(" | ")
        same([row[4], row[6]], ["seen", '`echo "$WORD"` |'], "record-results shows a shell command as it was given")
    return None


def results_belong_to_checks():
    """Each row of doc/test-results.md is that of a check."""
    listed = run(ROOT / "script/dev/verify-release", "--list").stdout
    titles = {f"{title} (`{check}`)" for check, title in
              re.findall(r"^(\S+) +(?:\d+ min \d+ s +)?(.*)$", listed, re.MULTILINE)}  # fmt: skip
    rows = re.findall(r"^\| (.*?) \|", (ROOT / "doc/test-results.md").read_text(), re.MULTILINE)[2:]
    ok(rows, "doc/test-results.md has results")
    same([row for row in rows if row not in titles], [], "each row of doc/test-results.md is that of a check")


def copies_what_differs():
    """script/test --keep must not touch a file that is the same, because make would build it again."""
    with tempfile.TemporaryDirectory() as directory:
        tree, copy = pathlib.Path(directory) / "tree", pathlib.Path(directory) / "copy"

        def write(base, **files):
            for name, text in files.items():
                path = base / name.replace("__", "/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)

        def update():
            script = f'. {tree}/script/dev/lib.sh && copy_sources "{copy}"'
            same(run("bash", "-c", script).stderr, "", "copy_sources reports nothing")
            return {str(path.relative_to(copy)): path.read_text() for path in copy.glob("[!s]*/**/*") if path.is_file()}

        (tree / "script/dev").mkdir(parents=True)
        shutil.copy(LIBRARY, tree / "script/dev")
        write(tree, core__a="1", core__b="2", core__c="3", core__build__d="4", core__old="5", gone__e="6",
              test__unit__Makefile="9")  # fmt: skip
        before = {"core/a": "1", "core/b": "2", "core/c": "3", "core/build/d": "4", "core/old": "5", "gone/e": "6",
                  "test/unit/Makefile": "9"}  # fmt: skip
        same(update(), before, "copy_sources copies a tree")
        write(copy, test__unit__build__program="built")
        os.utime(copy / "core/a", (1, 1))
        os.utime(copy / "core/b", (1, 1))
        write(tree, core__b="changed", added__x__y="7", core__build__z="8")
        os.utime(tree / "core/b", (0, 0))
        (tree / "core/old").rename(tree / "core/new")
        shutil.rmtree(tree / "gone")
        after = {"core/a": "1", "core/b": "changed", "core/c": "3", "core/build/d": "4", "core/build/z": "8",
                 "core/new": "5", "added/x/y": "7", "test/unit/Makefile": "9",
                 "test/unit/build/program": "built"}  # fmt: skip
        same(update(), after, "and then what differs, but keeps what was built")
        same((copy / "core/a").stat().st_mtime, 1, "a file that is the same keeps its time")
        ok((copy / "core/b").stat().st_mtime > 1, "a changed file is new, however old its source is")


def names_what_was_skipped():
    script = f'. {LIBRARY} && make_work && trap tell_counts EXIT && tap printf "$TAP"'
    tap = "ok 1 - a\nok 2 # SKIP b: not here\nok 3 # SKIP c: nor here\n"
    got = run("bash", "-c", script, variables={"TAP": tap})
    same(got.stdout, f"{tap}1 passed, 0 failed; skipped: b: not here; skipped: c: nor here\n",
         "a skipped test is named beside the counts")  # fmt: skip
    got = run("bash", "-c", script, variables={"TAP": "ok 1 # SKIP a: not here\n"})
    same(got.returncode, 1, "a script that skips all fails")


for script in SCRIPTS:
    explains_itself(script)
shellcheck()
named_scripts_exist()
records_results()
results_belong_to_checks()
copies_what_differs()
names_what_was_skipped()
done()
