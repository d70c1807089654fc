#!/usr/bin/python3 -B
"""Damaged bloomslices: every statement that uses one either gives the right rows or says that the index is corrupted
(XX001, XX002). The server never crashes or hangs, and REINDEX always helps.

The test writes into the files of indexes while a server of its own is stopped. Each case damages one of many indexes of
the same filters, which have slabs of each kind. Bits that are lost, and entries that name another row, can only be found
by bloomslices_check, or by checksums, which are off.

    SLICES_SEED     another seed than the usual one
    SLICES_RANDOM   how many bits are flipped
    SLICES_NUMBERS  how many wrong numbers are tried in each place, at most 6
"""

import os
import random
import struct

from damage import CONTENTS, PAGE, WORDS, Case, Damaged, flip_case, lower_of, number_cases, page_cases, pages_of
from durable import main
from tap import ok, same

SEED = os.environ.get("SLICES_SEED", "damage")
RANDOM = int(os.environ.get("SLICES_RANDOM", "30"))
NUMBERS = int(os.environ.get("SLICES_NUMBERS", "1"))
LONGS = [struct.pack("<Q", word) for word in (0, 2, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)]
TABLES = 40
SOURCES = {TABLES - 2: "few", TABLES - 1: "large"}  # the tables with other filters than those of `source`
rng = random.Random(SEED)

# Rows that are sliced, rows in a tile, rows without bits; the last tables have few filters, which are packed, and large
# ones, each in a slab of its own.
SCHEMA = f"""
CREATE EXTENSION bloomtype;
CREATE TABLE source AS
SELECT i AS id, CASE WHEN i % 100 = 7 THEN NULL WHEN i % 100 = 8 THEN bloom_create(100) WHEN i % 100 = 9
    THEN bloom_agg(i * 50 + j, bloom_create(100, seed => 3)) ELSE bloom_agg(i * 50 + j, 100) END AS f
FROM generate_series(1, 700) AS i, generate_series(1, 100) AS j GROUP BY i;
CREATE TABLE large AS SELECT i AS id, bloom_agg(i * 50 + j, 60000) AS f FROM generate_series(1, 3) AS i,
    generate_series(1, 20000) AS j GROUP BY i;
CREATE TABLE few AS SELECT i AS id, bloom_agg(i * 50 + j, 10000) AS f FROM unnest('{{1,2,3,551,552,553}}'::int[]) AS i,
    generate_series(1, 20000) AS j GROUP BY i;
""" + "".join(f"CREATE TABLE t{number} (id int, f bloomfilter);" for number in range(TABLES))
FILL = """
DROP INDEX IF EXISTS {t}_f;
TRUNCATE {t};
INSERT INTO {t} SELECT * FROM {source} WHERE id <= 550;
CREATE INDEX {t}_f ON {t} USING bloomslices (f);
INSERT INTO {t} SELECT * FROM {source} WHERE id > 550;
"""

SETTINGS = "SET enable_seqscan = {}; SET enable_indexscan = {}; SET enable_bitmapscan = {}; "
USE_INDEX = SETTINGS.format("off", "on", "off")
USE_BITMAP = SETTINGS.format("off", "off", "on")
BY_TABLE = SETTINGS.format("on", "off", "off")
# Queries and statements on a damaged index.
QUERIES = [
    "SELECT id FROM {t} WHERE f @> 20050 ORDER BY id", "SELECT id FROM {t} WHERE f @> 31000 ORDER BY id",
    "SELECT id FROM {t} WHERE f @> -77 ORDER BY id",
    "SELECT id FROM {t} WHERE bloom_contains_least(f, ARRAY(SELECT generate_series(20000, 20200)), 40) ORDER BY id",
]  # fmt: skip
ORDERED = "SELECT f <-> q FROM {t}, bloom_query(ARRAY(SELECT generate_series(20000, 20200))) AS q ORDER BY " \
    "{t}.f <-> bloom_query(ARRAY(SELECT generate_series(20000, 20200)))"
READERS = [USE_INDEX + sql for sql in [*QUERIES, ORDERED]] + [USE_BITMAP + sql for sql in QUERIES]
OTHERS = [
    "SELECT * FROM bloomslices_info('{t}_f')", "SELECT bloomslices_check('{t}_f')",
    "EXPLAIN SELECT id FROM {t} WHERE f @> 20050",
]  # fmt: skip
WRITERS = [
    "INSERT INTO {t} SELECT * FROM source WHERE id <= 200", "DELETE FROM {t} WHERE id % 3 = 0",
    "UPDATE {t} SET f = f WHERE id % 50 = 1", "VACUUM {t}", "SELECT bloomslices_merge('{t}_f')",
    "INSERT INTO {t} SELECT * FROM source", "VACUUM (INDEX_CLEANUP on) {t}", "ANALYZE {t}",
]  # fmt: skip


def kind_of(page):
    return struct.unpack_from("<H", page, 30)[0]


def sample(pages):
    """The metapage, the directory, and some pages of rows and of bits."""
    rows = [n for n, page in enumerate(pages) if kind_of(page) == 3]
    bits = [n for n, page in enumerate(pages) if kind_of(page) == 4]
    return [n for n, page in enumerate(pages) if kind_of(page) in (1, 2)] + rows[:4] + rng.sample(bits, 4)


def whole_pages(pages):
    some = sample(pages)
    return page_cases(some, {0, 1, 2, *some, len(pages) - 1})


def wrong_numbers(pages):
    """In the fields of pages, and in the metapage and the directory."""
    cases = []
    for n in sample(pages):
        end = lower_of(pages[n]) if kind_of(pages[n]) in (1, 2) else CONTENTS
        for size, numbers in (4, WORDS), (8, LONGS):
            places = list(range(8, end, size))
            some = places if end == CONTENTS else rng.sample(places, min(20 * NUMBERS, len(places)))
            cases += number_cases(rng, n, some, size, numbers, NUMBERS)
    return rng.sample(cases, min(len(cases), 200 * NUMBERS))


def flipped_bits(pages):
    cases = []
    for _ in range(RANDOM):
        n, bit = rng.randrange(len(pages)), rng.randrange(8)
        cases.append(flip_case(n, rng.randrange(8, CONTENTS), bit))
        cases.append(flip_case(n, rng.randrange(CONTENTS, PAGE), bit, kind_of(pages[n]) in (3, 4)))
    return cases


def set_kinds(n, kind):
    """Gives all entries of a page a kind."""
    def damage(pages, _):
        page = bytearray(pages[n])
        for at in range(CONTENTS + 6, lower_of(pages[n]), 8):
            struct.pack_into("<H", page, at, kind)
        pages[n] = bytes(page)

    return damage


def wrong_kinds(pages):
    """Kinds that no entry of a slab has: those of rows with bits are 1 to 3, those of the others 4 to 6."""
    cases = []
    for n in [n for n, page in enumerate(pages) if kind_of(page) == 3]:
        (first,) = struct.unpack_from("<H", pages[n], CONTENTS + 6)
        cases += [Case(f"page {n}, kind {kind}", set_kinds(n, kind)) for kind in (6 if first < 4 else 1, 7, 200, 0xFFFF)]
    return cases


def fill(session):
    for number in range(TABLES):
        session.ask(FILL.format(t=f"t{number}", source=SOURCES.get(number, "source")))


right = {}  # what each query on a table says


def examine(case, number):
    """What is wrong with what the statements on a damaged index say."""

    def texts(statements):
        return [sql.format(t=f"t{number}") for sql in statements]

    answers = right[SOURCES.get(number, "source")]
    expected = {sql.format(t=f"t{number}"): answers[sql] for sql in READERS}
    wrong = damaged.statements(texts(READERS), lambda sql, lines: not case.lies and lines != expected[sql])
    return wrong + damaged.statements(texts(OTHERS + WRITERS)) + damaged.statements(texts(READERS + OTHERS))


def first_look():
    """The rows of all queries, and the pages of an index of each source."""
    paths = damaged.prepare()
    damaged.server.start()
    with damaged.server.connect() as session:
        for number in 0, *SOURCES:
            right[SOURCES.get(number, "source")] = {
                sql: session.ask(BY_TABLE + sql.split("; ")[-1].format(t=f"t{number}")) for sql in READERS
            }
    ok(all(answers[READERS[0]] for answers in right.values()) and right["source"][READERS[1]], "the queries find rows")
    files = [pages_of(paths[number]) for number in (0, *SOURCES)]
    same([{kind_of(page) for page in pages} for pages in files], [{1, 2, 3, 4}] * 3, "all kinds of pages")
    return files


damaged = Damaged("bloomslices", TABLES, "t{}_f", SCHEMA, fill, examine)


def run():
    small, *others = first_look()
    numbers = list(range(min(SOURCES)))
    damaged.report(whole_pages(small), "wrong pages", numbers)
    damaged.report(wrong_numbers(small), "wrong numbers", numbers)
    damaged.report(flipped_bits(small), "flipped bits", numbers)
    damaged.report(wrong_kinds(small), "wrong kinds", numbers)
    for pages, (number, source) in zip(others, SOURCES.items()):
        damaged.report(rng.sample(whole_pages(pages) + wrong_numbers(pages), 12), f"damages of {source} rows", [number])
    damaged.lost_bits([n for n, page in enumerate(small) if kind_of(page) == 4 and any(page[CONTENTS:])][:20])
    damaged.end()


main(run)
