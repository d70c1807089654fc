#!/usr/bin/python3 -B
"""pg_upgrade from one release to another, copying and linking, and logical replication between the two.

    OLD=15 NEW=17 test/durability/upgrade.t       both as Debian's packages, with the extension
"""

import os

from durable import Server, main, manifest, own_directory, setup, verify
from tap import note
from replicate import replicate

OLD, NEW = int(os.environ["OLD"]), int(os.environ["NEW"])
directory = own_directory()


def init(name, major):
    # Both must agree; 18 has checksums by default.
    options = ["--no-data-checksums"] if major >= 18 else []
    return Server(directory, name, major).init(*options, wal_level="logical", logical_decoding_work_mem="'1MB'")


def upgrade(old, want, mode):
    new = init(f"new_{mode}", NEW)
    new.run("pg_upgrade", f"--{mode}", "--old-bindir", old.bin, "--new-bindir", new.bin, "--old-datadir", old.data,
            "--new-datadir", new.data, "--username=postgres", "--socketdir", new.home)
    new.start()
    label = f"pg_upgrade --{mode}, {OLD} to {NEW}"
    verify(new, want, label)
    if mode == "link":
        goes_on(new, want, label)
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


def upgrades():
    old = init("old", OLD).start()
    setup(old)
    want, _ = manifest(old)
    note(f"{len(want)} filters of {sum(entry[1] for entry in want.values() if entry)} bytes")
    verify(old, want, f"{OLD} as made")
    old.stop()
    upgrade(old, want, "copy")
    upgrade(old, want, "link")


def replication():
    publisher, subscriber = init("publisher", OLD).start(), init("subscriber", NEW).start()
    replicate(publisher, subscriber)
    publisher.stop()
    subscriber.stop()


main(upgrades, replication)
