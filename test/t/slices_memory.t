#!/usr/bin/python3 -B
"""The memory that a build or a merge of bloomslices takes is within maintenance_work_mem, or within autovacuum_work_mem,
and that of the rows that a search finds is within work_mem.

The test runs a server of its own, whose autovacuum is quick and may take little memory.
"""

import os
import re
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "durability"))
from durable import DATABASE, Server, main, own_directory  # noqa: E402
from session import sanitized  # noqa: E402
from slices_checks import check  # noqa: E402
from tap import note, ok, same  # noqa: E402

# glibc otherwise keeps what a process has freed, the more the more it has had at once.
os.environ["MALLOC_MMAP_THRESHOLD_"] = "131072"
server = Server(own_directory(), "server")

TILE, MOST_TILES = 127, 512
ROWS = TILE * MOST_TILES
MORE = 120 * TILE
FULL = 112 + 63 * TILE  # the first fit on a page


def start():
    server.init(autovacuum_naptime="'1s'", autovacuum_work_mem="'1MB'", shared_buffers="64MB").start()
    server.run("createdb", DATABASE)
    server.sql(
        "CREATE EXTENSION bloomtype",
        "CREATE TABLE source AS SELECT bloom_agg(i, 50) AS f FROM generate_series(1, 50) AS i",
    )


def make(table, rows):
    server.sql(
        f"CREATE TABLE {table} (id int, f bloomfilter) WITH (autovacuum_enabled = off)",
        f"INSERT INTO {table} SELECT i, f FROM source, generate_series(1, {rows}) AS i",
        f"CREATE INDEX {table}_f ON {table} USING bloomslices (f)",
    )


def fields_of(pid):
    with open(f"/proc/{pid}/status") as status:
        return {name: int(kilobytes) for name, kilobytes in re.findall(r"(\w+):\s+(\d+) kB", status.read())}


def grown_by(session, first, command):
    """The memory in MB that a command takes at its peak. Pages of shared memory count once a process has used them: after
    the first command it has used nearly all."""
    session.ask(first)
    before = fields_of(session.pid)["RssAnon"]
    session.ask(command)
    after = fields_of(session.pid)
    return (after["VmHWM"] - after["RssShmem"] - after["RssFile"] - before) / 1024


def partitions():
    """Builds of the indexes of all partitions do not add up. Each holds 10 MB of rows."""
    limit, filters = 24, 700
    server.sql(
        "CREATE TABLE parted (part int, f bloomfilter) PARTITION BY LIST (part)",
        *[f"CREATE TABLE parted_{part} PARTITION OF parted FOR VALUES IN ({part})" for part in range(12)],
        f"INSERT INTO parted SELECT part, f FROM generate_series(0, 11) AS part, generate_series(1, {filters}) AS i, "
        "(SELECT bloom_agg(i, 12000) AS f FROM generate_series(1, 12000) AS i) AS one",
    )
    with server.connect(f"SET maintenance_work_mem = '{limit}MB';") as session:
        grown = grown_by(session, "SELECT sum(length(f::bytea)) FROM parted",
                         "CREATE INDEX parted_f ON parted USING bloomslices (f)")  # fmt: skip
        info = session.ask("SELECT rows FROM bloomslices_info('parted_f')")
    note(f"{grown:.1f} MB")
    same(info, [str(12 * filters)], "12 partitions have an index")
    ok(grown <= limit or sanitized(), f"within maintenance_work_mem = {limit} MB", grown)


def peak():
    """The greatest slab loses a fourth of its rows and is merged with others into one of the same size, which takes the
    most."""
    limit = 16  # MB; half of it suffices for two copies of a block of the slab
    make("worn", ROWS)
    server.sql("DELETE FROM worn WHERE id % 100 < 27",
               f"INSERT INTO worn SELECT {ROWS} + i, f FROM source, generate_series(1, {MORE}) AS i")  # fmt: skip
    with server.connect(f"SET maintenance_work_mem = '{limit}MB';") as session:
        grown = grown_by(session, "SELECT count(*) FROM worn", "VACUUM worn")
        info = session.ask("SELECT slabs, rows, dead FROM bloomslices_info('worn_f')")
        wrong = check(session, "worn_f")
    note(f"{grown:.1f} MB")
    same(info[0].split("|")[1:], [str(ROWS - sum(i % 100 < 27 for i in range(1, ROWS + 1)) + MORE), "0"],
         "a slab that has lost rows is merged")  # fmt: skip
    ok((grown <= limit or sanitized()) and not wrong, f"within maintenance_work_mem = {limit} MB", grown, *wrong)


def hits():
    """Each of 800,000 rows is a hit. An order keeps those within work_mem, and a scan that goes on sorts all on disk; as a
    scan of the table, it returns each row once."""
    limit, rows = 4, 800000
    make("found", rows)
    queries = {
        "the nearest rows": "SELECT id FROM found ORDER BY f <-> bloom_query(1) LIMIT 10",
        "all rows": "SELECT id FROM found WHERE f @> 1 OFFSET 799999",
        "all rows in an order": "SELECT id FROM found ORDER BY f <-> bloom_query(1) OFFSET 799999",
    }
    for name, query in queries.items():
        with server.connect(f"SET work_mem = '{limit}MB'; SET enable_seqscan = off; SET enable_bitmapscan = off; "
                            "SET enable_sort = off;") as session:  # fmt: skip
            session.ask("SELECT id FROM found WHERE f @> 1 LIMIT 1")
            grown = grown_by(session, "SELECT count(*), sum(ctid::text::point <-> point(0, 0)) FROM found", query)
            plan = "".join(session.ask("EXPLAIN " + query))
        note(f"{name}: {grown:.1f} MB")
        ok((grown <= limit + 2 or sanitized()) and "found_f" in plan, f"{name}: within work_mem = {limit} MB", grown, plan)
    with server.connect("SET work_mem = '64kB'; SET enable_seqscan = off; SET enable_sort = off; "
                        "SET enable_bitmapscan = off") as session:  # fmt: skip
        by_condition = "SELECT count(*), count(DISTINCT id), sum(id) FROM (SELECT id FROM found WHERE f @> 1 OFFSET 0) AS t"
        by_order = "SELECT count(*), count(DISTINCT id), sum(id) FROM (SELECT id FROM found ORDER BY f <-> bloom_query(1)) AS t"
        same(session.ask(by_condition) + session.ask(by_order), [f"{rows}|{rows}|{rows * (rows + 1) // 2}"] * 2,
             "each row comes once")  # fmt: skip


def autovacuum():
    """Two copies of a block of 64 tiles exceed half of 1 MB."""
    server.sql("CREATE TABLE small (id int, f bloomfilter) WITH (autovacuum_enabled = off)",
               "CREATE INDEX small_f ON small USING bloomslices (f)",
               f"INSERT INTO small SELECT i, f FROM source, generate_series(1, {FULL}) AS i",
               "ALTER TABLE small SET (autovacuum_enabled = on, autovacuum_vacuum_insert_threshold = 1, "
               "autovacuum_vacuum_insert_scale_factor = 0)")  # fmt: skip
    server.poll("SELECT autovacuum_count > 0 FROM pg_stat_all_tables WHERE relname = 'small'")
    same(server.value("SELECT slabs FROM bloomslices_info('small_f')"), "2",
         "autovacuum makes slabs within autovacuum_work_mem")
    server.sql("CREATE TABLE other (id int, f bloomfilter) WITH (autovacuum_enabled = off)",
               "CREATE INDEX other_f ON other USING bloomslices (f)",
               f"INSERT INTO other SELECT i, f FROM source, generate_series(1, {FULL}) AS i", "VACUUM other")  # fmt: skip
    same(server.value("SELECT slabs FROM bloomslices_info('other_f')"), "1", "VACUUM within maintenance_work_mem")


def end():
    server.stop()


main(start, hits, partitions, peak, autovacuum, end)
