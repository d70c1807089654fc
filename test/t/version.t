#!/usr/bin/python3 -B
"""The version is the same wherever it is written: the control file decides. Connects as libpq does.

A version in development says so wherever a released one has its date or "stable". The scripts of released versions do
not change: this test has the SHA-256 of each.
"""

import datetime
import hashlib
import json
import pathlib
import re

from session import psycopg
from tap import done, ok, part, same, skip

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Files that may name an archive or a package with its version.
NAMING = ["README.md", "CONTRIBUTING.md", "doc/*.md", "Makefile", "Dockerfile*", "debian/*", "packaging/*",
          ".github/**/*", "clients/*/README.md"]  # fmt: skip
RESULTS = ROOT / "doc/test-results.md"  # of the versions that were tested
# By version: the script that leads to it, from nothing or from the version before.
RELEASED = {
    "1.0.0": ("bloomtype--1.0.0.sql", "a111b98d30891868cab0b6a9f6ed887c629e28ade8ac5a902acf225368af9f00"),
    "1.1.0": ("bloomtype--1.0.0--1.1.0.sql", "c4acac68797e768416f1f5ead09b3fd3e21a013c2fb966489f1dce5e2593749d"),
    "1.2.0": ("bloomtype--1.1.0--1.2.0.sql", "4223a56bd30cbd82781e72f58a61f4150098da2d7fc188fe330101a8d30939c8"),
    "1.3.0": ("bloomtype--1.2.0--1.3.0.sql", "45e2f9dbfa526277009d513bdb78a6dd73ee5e870dc4cd9d458c28218f1bda8b"),
    "1.4.0": ("bloomtype--1.3.0--1.4.0.sql", "32d01d4b05faf29a09be708fcc76ab9b43f86806a785fb420366ad5f26cb1607"),
}
# In development before the newest, which is, too: their scripts may still change.
PENDING = []
# Of a released version and of one in development: META.json's status, and the distribution in debian/changelog.
STATES = {True: ("stable", "unstable"), False: ("testing", "experimental")}


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def check_files(version):
    ok(re.fullmatch(r"\d+\.\d+\.\d+", version), f"the control file's version is {version}")
    released = check_changelog(version)
    status, distribution = STATES[released is not None]
    meta = json.loads(text("META.json"))
    provided = meta["provides"]["bloomtype"]
    same((meta["version"], provided["version"]), (version, version), "META.json, both times")
    same(meta["release_status"], status, "the status that META.json gives")
    ok((ROOT / provided["docfile"]).is_file(), "the document that META.json names is there")
    newest = re.match(r"bloomtype \(([\d.]+)-\S+\) (\S+);", text("debian/changelog"))
    same(newest and newest.groups(), (version, distribution), "debian/changelog: version and distribution")
    said = re.search(r"^This is version ([\d.]+)(?:, (in development)| of (\S+));", text("README.md"), re.M)
    same(said and said.groups(), (version, None if released else "in development", released), "README.md")
    client = re.search(r'^version = "([^"]+)"$', text("clients/python/pyproject.toml"), re.M)
    same(client and client[1], version, "clients/python/pyproject.toml")
    package = "clients/javascript/package.json"
    lock = json.loads(text(package.replace(".json", "-lock.json")))
    same((json.loads(text(package))["version"], lock["version"], lock["packages"][""]["version"]), (version,) * 3,
         f"{package} and its lock, both times")  # fmt: skip
    spec = re.search(r"^Version: *(\S+)$", text("packaging/bloomtype.spec"), re.M)
    same(spec and spec[1], version, "packaging/bloomtype.spec")
    named = {}
    for path in sorted({path for pattern in NAMING for path in ROOT.glob(pattern) if path.is_file()} - {RESULTS}):
        others = set(re.findall(r"bloomtype[-_ :=]v?(\d+\.\d+\.\d+)", path.read_text(encoding="utf-8"))) - {version}
        if others:
            named[str(path.relative_to(ROOT))] = others
    same(named, {}, "no other version in what is named bloomtype-VERSION")


def check_changelog(version):
    """The date of the newest entry, None if the version is in development."""
    newest = re.search(r"^## (.*)$", text("CHANGELOG.md"), re.M)[1]
    match = re.fullmatch(r"\[([\d.]+)\] - (?:Unreleased|(\d{4}-\d\d-\d\d))", newest)
    if not ok(match, "the newest entry of CHANGELOG.md has a version, and a date or 'Unreleased'", newest):
        return None
    same(match[1], version, "the version of that entry")
    if match[2]:
        ok(datetime.date.fromisoformat(match[2]), "its date")
    return match[2]


def check_scripts(version):
    """One script creates the first version, and each later one adds the script that updates to it."""
    dated = re.findall(r"^## \[([\d.]+)\] - \d", text("CHANGELOG.md"), re.M)[::-1]
    same(list(RELEASED), dated, "this test knows the script of each version that has a date in CHANGELOG.md")
    for script, digest in RELEASED.values():
        same(hashlib.sha256((ROOT / "sql" / script).read_bytes()).hexdigest(), digest, f"{script} is as released")
    order = [*RELEASED] if version in RELEASED else [*RELEASED, *PENDING, version]
    same({path.name for path in ROOT.glob("sql/*")},
         {f"bloomtype--{order[0]}.sql", *(f"bloomtype--{old}--{new}.sql" for old, new in zip(order, order[1:]))},
         "the scripts of all versions, and no other file")  # fmt: skip
    same(json.loads(text("META.json"))["provides"]["bloomtype"]["file"], f"sql/bloomtype--{order[0]}.sql",
         "the script that META.json names")  # fmt: skip


def check_server(version, db):
    same(db.execute("SELECT default_version FROM pg_available_extensions WHERE name = 'bloomtype'").fetchone()[0],
         version, "what CREATE EXTENSION installs")  # fmt: skip
    installed = {row[0] for row in db.execute(
        "SELECT version FROM pg_available_extension_versions WHERE name = 'bloomtype'")}  # fmt: skip
    same(installed, {version, *RELEASED, *PENDING}, "every version can be created")
    stuck = db.execute("""SELECT source FROM pg_extension_update_paths('bloomtype')
        WHERE target = %s AND path IS NULL""", [version]).fetchall()  # fmt: skip
    same(stuck, [], "a path of update scripts leads from each of them to the newest")
    if db.info.server_version < 180000:
        skip("name and version of the library", "pg_get_loaded_modules() came with PostgreSQL 18")
        return
    db.execute("LOAD 'bloomtype'")
    library = db.execute("""SELECT module_name, version FROM pg_get_loaded_modules()
        WHERE file_name LIKE 'bloomtype%'""").fetchall()  # fmt: skip
    same(library, [("bloomtype", version)], "name and version of the library")


def main():
    version = re.search(r"^default_version = '(.*)'$", text("bloomtype.control"), re.M)[1]
    part(check_files, version)
    part(check_scripts, version)
    with psycopg.connect(autocommit=True) as db:
        part(check_server, version, db)
    done()


main()
