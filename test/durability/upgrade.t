#!/usr/bin/python3 -B
"""pg_upgrade from one release to another, copying and linking, and logical replication between the two. The cluster has
a database with filters, counters and the indexes, and one with filters and version 1.0.0 of the extension.

Two servers that cannot upgrade a cluster with one table and without the extension skip pg_upgrade. One such pair is
17.12 and 18.6: the former keeps a version of each column in pg_attribute.attoptions, as pg_attver, which the latter
dumps and then refuses as an unrecognized parameter. Only a cluster without tables passes.

    OLD=15 NEW=17 test/durability/upgrade.t       both as Debian's packages, with the extension
    test/durability/upgrade.t                     from PG_CONFIG's to itself, without replication
"""

import os
import pathlib
import re

import stored_counters
from durable import DATABASE, Failed, Server, main, manifest, own_directory, setup, setup_counters, verify
import stored_sets
import stored_slices
from tap import note, same, skip
from replicate import replicate

OLD, NEW = (int(os.environ[name]) if name in os.environ else None for name in ("OLD", "NEW"))
FIRST = "first"  # the database with version 1.0.0
VERSION = "SELECT extversion FROM pg_extension WHERE extname = 'bloomtype'"
directory = own_directory()


def init(name, major):
    # Both must agree; 18 has checksums by default.
    server = Server(directory, name, major)
    options = ["--no-data-checksums"] if server.major >= 18 else []
    return server.init(*options, wal_level="logical", logical_decoding_work_mem="'1MB'")


def pg_upgrade(old, name, *how):
    """A new server with what a stopped one had. Raises Failed with the errors in the logs."""
    new = init(name, NEW)
    try:
        new.run("pg_upgrade", *how, "--old-bindir", old.bin, "--new-bindir", new.bin, "--old-datadir", old.data,
                "--new-datadir", new.data, "--username=postgres", "--socketdir", new.home)
    except Failed as failure:
        logs = pathlib.Path(new.data, "pg_upgrade_output.d").glob("*/log/pg_upgrade_dump_*.log")
        errors = [line for log in logs for line in log.read_text().splitlines() if "error:" in line]
        raise Failed("\n".join([str(failure), *errors])) from None
    return new


def refused():
    """The server's error when a cluster with one table and without the extension is upgraded, or None."""
    old = init("old_control", OLD).start()
    old.sql("CREATE TABLE control (i integer)", database="postgres")
    old.stop()
    try:
        pg_upgrade(old, "new_control")
    except Failed as failure:
        errors = re.findall("pg_restore: error: .*", str(failure))
        if not errors:
            raise
        return errors[0]
    return None


def upgrade(old, want, sets, slices, first, mode):
    new = pg_upgrade(old, f"new_{mode}", *(["--link"] if mode == "link" else []))  # 15 has no --copy, the default
    new.start()
    label = f"pg_upgrade --{mode}, {old.major} to {new.major}"
    verify(new, want, label)
    stored_sets.verify_upgraded(new, sets, label, DATABASE)
    stored_slices.verify_upgraded(new, slices, label, DATABASE)
    same(new.value(VERSION, database=FIRST), "1.0.0", f"{label}: the extension's version stays 1.0.0")
    verify(new, first, f"{label}, 1.0.0", FIRST)
    if mode == "link":
        goes_on(new, want, label)
        extension_goes_on(new, first, label)
    new.stop()


def goes_on(new, want, label):
    """The upgraded server can be written to and dumped."""
    new.sql("UPDATE filters SET f = bloom_add(f, NULL::text) WHERE id % 3 = 0",
            "VACUUM FULL filters", "REINDEX TABLE filters")
    verify(new, want, f"{label}, updated, VACUUM FULL, REINDEX")
    path = os.path.join(new.home, "dump")
    new.run("pg_dump", "--format=custom", f"--file={path}")
    new.run("createdb", "again")
    new.run("pg_restore", "--exit-on-error", "--dbname=again", path)
    verify(new, want, f"{label}, dumped and restored", "again")


def extension_goes_on(new, first, label):
    """The script that pg_upgrade leaves updates the extension. Then there can be counters beside the filters."""
    new.run("psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-f", "update_extensions.sql")
    same(new.value(VERSION, database=FIRST), new.value(VERSION), f"{label}: the extension is updated")
    verify(new, first, f"{label}, 1.0.0 updated", FIRST)
    setup_counters(new, FIRST)
    made, _ = manifest(new, FIRST, ({}, stored_counters.PLACES))
    verify(new, {**first, **made}, f"{label}, 1.0.0 updated, with counters", FIRST)


def upgrades():
    error = OLD and refused()
    if error:
        skip(f"pg_upgrade, {OLD} to {NEW}", f"one table without the extension fails, too: {error}")
        return
    old = init("old", OLD).start()
    setup(old)
    stored_sets.setup_sets(old, DATABASE)
    stored_slices.setup_slices(old, DATABASE)
    sets, slices = stored_sets.infos(old, DATABASE), stored_slices.infos(old, DATABASE)
    for row in sets + slices:
        note(" ".join(row))
    setup(old, FIRST, "1.0.0")
    (want, _), (first, _) = manifest(old), manifest(old, FIRST)
    note(f"{len(want)} filters and counters of {sum(entry[1] for entry in want.values() if entry)} bytes")
    verify(old, want, f"{old.major} as made")
    old.stop()
    upgrade(old, want, sets, slices, first, "copy")
    upgrade(old, want, sets, slices, first, "link")


def replication():
    publisher, subscriber = init("publisher", OLD).start(), init("subscriber", NEW).start()
    replicate(publisher, subscriber)
    publisher.stop()
    subscriber.stop()


main(upgrades, *([replication] if OLD else []))
