#!/usr/bin/python3 -B
"""Runs the SQL in README.md and doc/*.md by psql, and compares the output shown there.

All ```sql blocks of a file run in one session and one transaction; BEGIN and COMMIT in the text are skipped, and so are
blocks marked ```sql no-run. A ```text block behind a block must be the output of psql, up to the error in a block with
"-- ERROR". Also follows every relative link of the Markdown pages to its file and its anchor, and demands that every
trigger function names its schemas: another session's search_path would lead it to other tables.
"""
import collections
import pathlib
import re
import subprocess

from tap import done, ok

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```sql\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.M | re.S)
MARK = "--- block %d ---"
TRIGGER = re.compile(r"^CREATE (?:OR REPLACE )?FUNCTION (\w+)\(\) RETURNS trigger\b(.*?)\$", re.M | re.S)
CODE = re.compile(r"^ *```.*?^ *```$", re.M | re.S)
LINK = re.compile(r"\]\(\s*<?([^)>\s]+)|\b(?:href|src|srcset)=[\"']([^\"'\s]+)")


def run(blocks):
    """The output of each block. All run in one session, which is rolled back."""
    script = "BEGIN;\nCREATE SCHEMA documentation;\nSET search_path = documentation, public;\n"
    for number, (sql, _) in enumerate(blocks):
        sql = re.sub(r"^(CREATE EXTENSION bloomtype|BEGIN|COMMIT);$", "", sql, flags=re.M)
        script += "SAVEPOINT block;\n\\echo %s\n%s\nROLLBACK TO block;\n" % (MARK % number, sql) \
            if "-- ERROR" in sql else "\\echo %s\n%s\n" % (MARK % number, sql)
    script += "ROLLBACK;\n"
    shell = subprocess.run(["psql", "-X", "-q", "-v", "VERBOSITY=terse"], input=script, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return re.split(r"^--- block \d+ ---\n", shell.stdout, flags=re.M)[1:]


def first_error(output):
    """The output up to its first error, without the error's position."""
    return re.sub(r"(^ERROR: .*?)( at character \d+)?\n.*", r"\1", output, flags=re.M | re.S)


def tidy(text):
    return [line.rstrip() for line in (text or "").strip("\n").split("\n")]


def prose(page):
    return CODE.sub("", page.read_text())


def anchors(page):
    """The anchors of a page's headings, as GitHub derives them."""
    slugs = collections.Counter()
    found = set()
    for heading in re.findall(r"^#{1,6} +(.*?)[ #]*$", prose(page), re.M):
        slug = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        found.add("%s-%d" % (slug, slugs[slug]) if slugs[slug] else slug)
        slugs[slug] += 1
    return found


def broken_links(page):
    """The relative links of a page that lead to no file or to no anchor, and the number of its relative links."""
    links = [a or b for a, b in LINK.findall(prose(page))]
    links = [link for link in links if not re.match(r"[a-z]+:", link)]
    broken = []
    for link in links:
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    return broken, len(links)


def check_links():
    for page in sorted(ROOT.glob("*.md")) + sorted((ROOT / "doc").glob("*.md")) + sorted((ROOT / "test").glob("*.md")):
        broken, number = broken_links(page)
        ok(not broken, "%s: %d relative links" % (page.relative_to(ROOT), number), *broken)


def check_triggers():
    for page in sorted(ROOT.glob("*.md")) + sorted((ROOT / "doc").glob("*.md")):
        for name, head in TRIGGER.findall(page.read_text()):
            ok("SET search_path" in head, "%s: %s has a search_path of its own" % (page.name, name))


def main():
    check_links()
    check_triggers()
    for path in [ROOT / "README.md"] + sorted((ROOT / "doc").glob("*.md")):
        blocks = BLOCK.findall(path.read_text())
        outputs = run(blocks) if blocks else []
        outputs += [""] * (len(blocks) - len(outputs))
        for (sql, shown), output in zip(blocks, outputs):
            expects_error = "-- ERROR" in sql
            output = first_error(output) if expects_error else output
            good = ("ERROR:" in output) == expects_error and (not shown or tidy(shown) == tidy(output))
            ok(good, path.name + ": " + sql.strip().split("\n")[0], output)
    done()


main()
