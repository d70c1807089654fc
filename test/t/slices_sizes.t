#!/usr/bin/python3 -B
"""An index of few rows takes at most twice the bytes of its filters and three pages, however it comes to have them, and
answers as a scan; with more rows it has tiles and slices."""

from session import Session, run
from slices_checks import check, differences
from tap import ok, same

PAGE = 8192
MERGED = 93  # rows of which VACUUM makes a tile; the file keeps the pages where they were
KILOBYTES = 1, 2, 4, 8, 12, 50, 100
ROWS = 1, 2, 10, 60, 112
KEYS = [f"{1000 * row + i}::bigint" for row in (1, 2, 9, 10, 60) for i in (1, 30, 31)]

Session.settings = "SET client_min_messages = error; SET enable_seqscan = off; SET jit = off;"


def bytes_of(session, index):
    return int(session.ask(f"SELECT pg_relation_size('{index}')")[0])


def limit(session, table):
    return 2 * int(session.ask(f"SELECT sum((bloom_info(f)).bits / 8) FROM {table}")[0]) + 3 * PAGE


def make(session, table, kilobytes):
    """Makes a table; returns SQL that adds dense filters of about that size, numbered from one number to another."""
    session.ask(f"CREATE TABLE {table} (id int, f bloomfilter) WITH (autovacuum_enabled = off)")
    session.ask(f"ALTER TABLE {table} ALTER f SET STORAGE external")
    return f"""INSERT INTO {table} SELECT s, bloom_agg((1000 * s + i)::bigint, {820 * kilobytes})
        FROM generate_series({{}}, {{}}) AS s, generate_series(1, {400 * kilobytes}) AS i GROUP BY s"""


def sizes(session, kilobytes, rows):
    """The bytes of an index beyond its limit after each step, and what it answers otherwise than a scan."""
    beyond, wrong = {}, []

    def look(step):
        beyond[step] = bytes_of(session, "few_f") - limit(session, "few")
        wrong.extend(check(session, "few_f") + differences(session, "few", KEYS))

    insert = make(session, "few", kilobytes)
    session.ask("CREATE INDEX few_f ON few USING bloomslices (f)")
    for row in range(1, rows + 1):
        session.ask(insert.format(row, row))
    look("inserted")
    session.ask("VACUUM (INDEX_CLEANUP on) few")
    if rows < MERGED:
        look("VACUUM")
    session.ask("REINDEX INDEX few_f")
    look("REINDEX")
    session.ask("DROP TABLE few")
    return beyond, wrong


def few():
    with Session() as session:
        for kilobytes in KILOBYTES:
            for rows in ROWS:
                beyond, wrong = sizes(session, kilobytes, rows)
                name = f"{rows} filters of {kilobytes} kB"
                ok(not wrong and max(beyond.values()) <= 0, f"{name} take little, built and inserted", beyond, *wrong)


def more():
    """From 128 rows on new rows go to tiles; VACUUM merges the packed ones into a tile, and packs the rows of one that are few."""
    slabs = "SELECT slabs, rows, dead FROM bloomslices_info('more_f')"
    with Session() as session:
        insert = make(session, "more", 8)
        session.ask("CREATE INDEX more_f ON more USING bloomslices (f)")
        got, wrong = [], []
        for step in insert.format(1, 127), insert.format(128, 130), "VACUUM more", insert.format(131, 370), \
                "DELETE FROM more WHERE id NOT IN (1, 30, 65, 66, 200, 300, 350)", "VACUUM more", "REINDEX INDEX more_f":  # fmt: skip
            session.ask(step)
            got += session.ask(slabs)
            wrong += check(session, "more_f") + differences(session, "more", KEYS + ["65001::bigint"])
        same(got, ["127|127|0", "128|130|0", "2|130|0", "3|370|0", "3|370|0", "6|7|114", "7|7|0"],
             "the number of parts")
        ok(not wrong, "the index answers as a scan meanwhile", *wrong)


def too_wide():
    """A slip of the pen in expected_items is an error before it fills the disk; what the filters themselves need is none."""
    with Session() as session:
        session.ask("CREATE TABLE wide AS SELECT i AS id, bloom_agg(i, 100) AS f FROM generate_series(1, 10) AS i GROUP BY i")
        create = "CREATE INDEX wide_f ON wide USING bloomslices (f) WITH (expected_items = {})"
        _, state = session.attempt(create.format(100000000))
        same((state, "would take" in str(session.error), "which need" in str(session.error)), ("54000", True, True),
             "10 filters of 114 MB of 100 elements")
        _, state = session.attempt(create.format(100000))
        same(state, "00000", "10 filters of 120 kB are less than 1 GB")
        session.notices.clear()
        session.ask("CREATE TABLE no_wide AS TABLE wide WITH NO DATA")
        session.attempt(create.format(10000).replace("wide", "no_wide"))
        same(len(session.notices), 0, "no notice of 12 kB for each filter of an empty table")
        session.ask("DROP INDEX no_wide_f; SET client_min_messages = notice")
        session.attempt(create.format(100000000).replace("wide", "no_wide"))
        same([" for each filter" in notice for notice in session.notices], [True], "but one of 114 MB")


run(few, more, too_wide)
