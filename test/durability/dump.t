#!/usr/bin/python3 -B
"""pg_dump and restore, in plain, custom and directory format, and COPY BINARY.

    test/durability/dump.t       PG_CONFIG names the PostgreSQL that has the extension

DURABILITY_SHARE names a directory for dumps that travel from release to release. The first release makes the filters
and counters and notes their SHA-256. Each later one restores the dumps of the release before it, and the custom dump
of each earlier one. Every release leaves its dumps there. Without the directory, one server restores its own dumps. The
dump of a database with version 1.0.0 of the extension makes one with the newest.
"""

import json
import os
import shutil

import stored_counters
from durable import (DATABASE, Server, lost_elements, main, manifest, megabytes, own_directory, server_user, setup,
                     setup_counters, verify)
import stored_sets
import stored_slices
from tap import note, ok, same

OID = "SELECT 'bloomfilter'::regtype::oid, 'bloomcounter'::regtype::oid"
VERSION = "SELECT extversion FROM pg_extension WHERE extname = 'bloomtype'"
FORMATS = ["plain", "inserts", "custom", "directory", "binary"]

directory = own_directory()
share = os.environ.get("DURABILITY_SHARE") or os.path.join(directory, "dumps")
server = Server(directory, "server")
major = server.major

TABLES = ["filters_external", "filters_extended", "filters_lz4", "filters_main", "filters_plain", "by_hash_0",
          "by_hash_1", "in_domain", "lists", "composites", "defaults", "numbers", *stored_counters.TABLES,
          *stored_sets.TABLES, *stored_slices.TABLES]


def size_of(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(path, name)) for name in os.listdir(path))


def dump(database, form, path):
    if form == "binary":
        os.mkdir(path)
        if server_user():
            shutil.chown(path, server_user())
        for section in "pre-data", "post-data":
            server.run("pg_dump", f"--section={section}", f"--file={path}/{section}", database)
        for table in TABLES:
            server.sql(f"COPY {table} TO '{path}/{table}' (FORMAT binary)", database=database)
        with open(f"{path}/oid", "w") as file:
            file.write(server.value(OID, database=database))
    elif form == "inserts":
        server.run("pg_dump", "--rows-per-insert=100", f"--file={path}", database)
    else:
        server.run("pg_dump", f"--format={form}", f"--file={path}", database)
    if form == "directory":
        os.chmod(path, 0o755)  # the next release's user may be another one


def run_script(database, path):
    server.run("psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-f", path, env={"PGDATABASE": database})


def restore(database, form, path):
    server.run("createdb", database)
    if form == "binary":
        # Arrays and composite values have the OID of the type in their binary form, so let it be another one.
        server.sql(f"CREATE TYPE one_more_in_{major} AS (a integer)", database=database)
        run_script(database, f"{path}/pre-data")
        server.sql(*(f"COPY {table} FROM '{path}/{table}' (FORMAT binary)" for table in TABLES), database=database)
        run_script(database, f"{path}/post-data")
        server.sql("REFRESH MATERIALIZED VIEW united", "REFRESH MATERIALIZED VIEW counters_summed",
                   database=database)
    elif form in ("plain", "inserts"):
        run_script(database, path)
    else:
        server.run("pg_restore", "--exit-on-error", f"--dbname={database}", path)


def control(want):
    """The proof must notice damage: one bit, a missing filter, one in place of another, and another count."""
    server.run("createdb", f"--template={DATABASE}", "damaged")
    server.sql("""
        UPDATE filters_lz4 SET f = set_byte(f::bytea, 100, get_byte(f::bytea, 100) # 4)::bloomfilter
            WHERE id = (SELECT min(id) FROM filters_lz4 WHERE n = 3000 AND (bloom_info(f)).representation = 'dense');
        DELETE FROM in_domain WHERE id = (SELECT min(id) FROM in_domain);
        UPDATE composites SET c.f = bloom_create(10)
            WHERE id = (SELECT min(id) FROM composites WHERE type = 'uuid' AND n = 3000);
        UPDATE counters_lz4 SET c = set_byte(c::bytea, 100, get_byte(c::bytea, 100) # 1)::bloomcounter
            WHERE id = (SELECT min(id) FROM counters_lz4 WHERE n = 300 AND (bloom_info(c)).representation = 'dense');
        """, database="damaged")
    got, _ = manifest(server, "damaged")
    wrong = sorted(name.split()[0] for name in want.keys() | got.keys() if want.get(name, 0) != got.get(name, 0))
    same(wrong, ["composite", "counter", "domain", "table"],
         "control: a bit, a missing filter, a wrong one and another count are noticed")
    same(lost_elements(server, "damaged")[1] >= 3000, True, "control: lost elements are noticed")
    damage_count()
    same(lost_elements(server, "damaged", ({}, stored_counters.PLACES))[1], 1, "control: a count that is too small is noticed")
    server.run("dropdb", "damaged")


def damage_count():
    """Of an element that is counted twice, one time is taken away."""
    server.sql("""UPDATE counters_extended SET c = bloom_remove(c, 4::bigint * 1000003)
        WHERE id = (SELECT min(id) FROM counters WHERE type = 'bigint' AND how LIKE '%counts%' AND n = 300
                    AND (bloom_info(c)).representation = 'sparse')""", database="damaged")


def first_version():
    """A database with version 1.0.0: restored from its dump it has the newest version, as after an update."""
    newest = server.value("SELECT default_version FROM pg_available_extensions WHERE name = 'bloomtype'",
                          database="postgres")
    setup(server, "first", "1.0.0")
    want, _ = manifest(server, "first")
    same(server.value(VERSION, database="first"), "1.0.0", "a database with version 1.0.0")
    for form in "plain", "custom":
        path = os.path.join(directory, f"first.{form}")
        dump("first", form, path)
        restore("restored", form, path)
        same(server.value(VERSION, database="restored"), newest, f"1.0.0, {form}: restored with version {newest}")
        verify(server, want, f"1.0.0 to {newest}, {form}", "restored")
        server.run("dropdb", "restored")
    server.sql("ALTER EXTENSION bloomtype UPDATE", database="first")
    same(server.value(VERSION, database="first"), newest, f"updated to {newest}")
    verify(server, want, f"1.0.0 updated to {newest}", "first")
    setup_counters(server, "first")
    want.update(manifest(server, "first", ({}, stored_counters.PLACES))[0])
    verify(server, want, f"1.0.0 updated to {newest}, with counters", "first")
    server.run("dropdb", "first")


def make():
    """Makes the filters in the first release, and notes their digests."""
    setup(server)
    stored_sets.setup_sets(server, DATABASE)
    stored_slices.setup_slices(server, DATABASE)
    want, _ = manifest(server)
    with open(os.path.join(share, "manifest.json"), "w") as file:
        json.dump(want, file)
    stored = server.sql("SELECT storage, count(*), sum(pg_column_size(f)), count(pg_column_compression(f)) "
                        "FROM filters GROUP BY storage ORDER BY storage")
    note(f"made by PostgreSQL {major}: " + "; ".join(
        f"{storage}: {rows} filters, {megabytes(int(size))}, {compressed} compressed"
        for storage, rows, size, compressed in stored))
    sizes = [entry[1] for entry in want.values() if entry]
    note(f"{len(want)} filters and counters of {min(sizes)} to {max(sizes)} bytes")
    compressed = {row[0]: int(row[3]) for row in stored}
    ok(compressed["extended"] > 0 and compressed["lz4"] > 0 and compressed["external"] == 0,
       "some filters are compressed, with pglz and lz4")
    verify(server, want, f"{major} as made")
    control(want)
    first_version()
    for form in FORMATS:
        dump(DATABASE, form, os.path.join(target, form))


def travel():
    with open(os.path.join(share, "manifest.json")) as file:
        want = json.load(file)
    for source in sources:
        for form in FORMATS if source == sources[-1] else ["custom"]:
            path = os.path.join(share, source, form)
            restore("restored", form, path)
            if form == "binary":
                with open(f"{path}/oid") as file:
                    oids = zip(file.read().split("\t"), server.value(OID, database="restored").split("\t"))
                ok(all(there != here for there, here in oids), "the types have other OIDs than where they were copied")
            label = f"{source} to {major}, {form} ({megabytes(size_of(path))})"
            verify(server, want, label, "restored")
            stored_sets.verify_sets(server, label, "restored")
            stored_slices.verify_slices(server, label, "restored")
            if source == sources[-1] and source != str(major):
                dump("restored", form, os.path.join(target, form))
            server.run("dropdb", "restored")


def run():
    server.init().start()
    if not sources:
        make()
        sources.append(str(major))
    travel()
    server.stop()


os.makedirs(share, exist_ok=True)
sources = sorted((name for name in os.listdir(share) if name.isdigit()), key=int)
target = os.path.join(share, str(major))
os.mkdir(target)
if server_user():
    shutil.chown(target, server_user())
main(run)
