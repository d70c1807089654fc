#!/usr/bin/python3 -B
"""The version is the same wherever it is written: the control file decides. Connects as libpq does."""

import datetime
import json
import pathlib
import re

from session import psycopg
from tap import done, ok, part, same, skip

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Files that may name an archive or a package with its version.
NAMING = ["README.md", "CONTRIBUTING.md", "doc/*.md", "Makefile", "Dockerfile*", "debian/*", "packaging/*",
          ".github/**/*"]  # fmt: skip


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def check_files(version):
    ok(re.fullmatch(r"\d+\.\d+\.\d+", version), f"the control file's version is {version}")
    meta = json.loads(text("META.json"))
    provided = meta["provides"]["bloomtype"]
    same((meta["version"], provided["version"]), (version, version), "META.json, both times")
    same(provided["file"], f"sql/bloomtype--{version}.sql", "the script that META.json names")
    ok((ROOT / provided["file"]).is_file(), "that script is there")
    ok((ROOT / provided["docfile"]).is_file(), "the document that META.json names is there")
    check_changelog(version)
    newest = re.match(r"bloomtype \(([\d.]+)-\S+\) ", text("debian/changelog"))
    same(newest and newest[1], version, "debian/changelog")
    client = re.search(r'^version = "([^"]+)"$', text("clients/python/pyproject.toml"), re.M)
    same(client and client[1], version, "clients/python/pyproject.toml")
    package = "clients/javascript/package.json"
    lock = json.loads(text(package.replace(".json", "-lock.json")))
    same((json.loads(text(package))["version"], lock["version"], lock["packages"][""]["version"]), (version,) * 3,
         f"{package} and its lock, both times")  # fmt: skip
    spec = re.search(r"^Version: *(\S+)$", text("packaging/bloomtype.spec"), re.M)
    same(spec and spec[1], version, "packaging/bloomtype.spec")
    named = {}
    for path in sorted(path for pattern in NAMING for path in ROOT.glob(pattern) if path.is_file()):
        others = set(re.findall(r"bloomtype[-_ :=]v?(\d+\.\d+\.\d+)", path.read_text(encoding="utf-8"))) - {version}
        if others:
            named[str(path.relative_to(ROOT))] = others
    same(named, {}, "no other version in what is named bloomtype-VERSION")


def check_changelog(version):
    entries = re.findall(r"^## (.*)$", text("CHANGELOG.md"), re.M)
    newest = next((entry for entry in entries if entry != "[Unreleased]"), "")
    match = re.fullmatch(r"\[([\d.]+)\] - (\d{4}-\d\d-\d\d)", newest)
    if ok(match, "the newest entry of CHANGELOG.md has a version and a date", newest):
        same(match[1], version, "the version of that entry")
        ok(datetime.date.fromisoformat(match[2]), "its date")


def check_server(version, db):
    same(db.execute("SELECT default_version FROM pg_available_extensions WHERE name = 'bloomtype'").fetchone()[0],
         version, "what CREATE EXTENSION installs")  # fmt: skip
    installed = {row[0] for row in db.execute(
        "SELECT version FROM pg_available_extension_versions WHERE name = 'bloomtype'")}  # fmt: skip
    names = (re.fullmatch(r"bloomtype--([\d.]+)\.sql", path.name) for path in ROOT.glob("sql/*.sql"))
    kept = {match[1] for match in names if match}
    same(installed, kept, "every version whose script is kept is installed")
    stuck = db.execute("""SELECT source FROM pg_extension_update_paths('bloomtype')
        WHERE target = %s AND path IS NULL""", [version]).fetchall()  # fmt: skip
    same(stuck, [], "a path of upgrade scripts leads from each of them to the newest")
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
    with psycopg.connect(autocommit=True) as db:
        part(check_server, version, db)
    done()


main()
