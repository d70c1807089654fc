#!/usr/bin/python3 -B
"""Damaged bloomslices: every statement that uses one either gives the right rows or says that the index is corrupted
(XX001, XX002). The server never crashes or hangs, and REINDEX always helps.

The test writes into the files of indexes while a server of its own is stopped. Each case damages one of many indexes of
the same filters, which have slabs of each kind. Bits that are lost, and entries that name another row, can only be found
by bloomslices_check, or by checksums, which are off.

    SLICES_SEED     another seed than the usual one
    SLICES_RANDOM   how many bits are flipped
    SLICES_NUMBERS  how many wrong numbers are tried in each place, at most 8
"""

import collections
import os
import random
import resource
import struct
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "durability"))
from durable import DATABASE, Server, main, own_directory  # noqa: E402
from session import psycopg  # noqa: E402
from tap import note, ok, same  # noqa: E402

SEED = os.environ.get("SLICES_SEED", "damage")
RANDOM = int(os.environ.get("SLICES_RANDOM", "60"))
NUMBERS = int(os.environ.get("SLICES_NUMBERS", "2"))
PAGE = 8192
HEADER = 24  # of every page of PostgreSQL; what follows are the fields
CONTENTS = 64
WORDS = [struct.pack("<I", word) for word in (0, 1, 3, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)]
LONGS = [struct.pack("<Q", word) for word in (0, 2, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)]
TABLES = 40
MOST = 2  # faults of a case that are shown
TIMEOUT = 20  # seconds; a statement on an index of 500 kB that takes longer hangs
CORRUPTED = {"XX001", "XX002"}
directory = own_directory()
server = Server(directory, "server")
rng = random.Random(SEED)

# Rows that are sliced, rows in a tile, rows without bits; the last table has large filters, each in a slab of its own.
SCHEMA = f"""
CREATE EXTENSION bloomtype;
CREATE TABLE source AS
SELECT i AS id, CASE WHEN i % 100 = 7 THEN NULL WHEN i % 100 = 8 THEN bloom_create(100) WHEN i % 100 = 9
    THEN bloom_agg(i * 50 + j, bloom_create(100, seed => 3)) ELSE bloom_agg(i * 50 + j, 100) END AS f
FROM generate_series(1, 700) AS i, generate_series(1, 100) AS j GROUP BY i;
CREATE TABLE large AS SELECT i AS id, bloom_agg(i * 50 + j, 60000) AS f FROM generate_series(1, 3) AS i,
    generate_series(1, 20000) AS j GROUP BY i;
""" + "".join(f"CREATE TABLE t{number} (id int, f bloomfilter);" for number in range(TABLES))
FILL = """
DROP INDEX IF EXISTS {t}_f;
TRUNCATE {t};
INSERT INTO {t} SELECT * FROM {source} WHERE id <= 550;
CREATE INDEX {t}_f ON {t} USING bloomslices (f);
INSERT INTO {t} SELECT * FROM {source} WHERE id > 550;
"""

USE_INDEX = "SET enable_seqscan = off; SET enable_bitmapscan = off; "
USE_BITMAP = "SET enable_seqscan = off; SET enable_indexscan = off; "
BY_TABLE = "SET enable_indexscan = off; SET enable_bitmapscan = off; "
# Queries and statements on a damaged index.
QUERIES = [
    "SELECT id FROM {t} WHERE f @> 20050 ORDER BY id", "SELECT id FROM {t} WHERE f @> 31000 ORDER BY id",
    "SELECT id FROM {t} WHERE f @> -77 ORDER BY id",
    "SELECT id FROM {t} WHERE bloom_contains_least(f, ARRAY(SELECT generate_series(20000, 20200)), 40) ORDER BY id",
]  # fmt: skip
ORDERED = "SELECT f <-> q FROM {t}, bloom_query(ARRAY(SELECT generate_series(20000, 20200))) AS q ORDER BY " \
    "{t}.f <-> bloom_query(ARRAY(SELECT generate_series(20000, 20200)))"
READERS = [(USE_INDEX, sql) for sql in [*QUERIES, ORDERED]] + [(USE_BITMAP, sql) for sql in QUERIES]
OTHERS = [
    "SELECT * FROM bloomslices_info('{t}_f')", "SELECT bloomslices_check('{t}_f')",
    "EXPLAIN SELECT id FROM {t} WHERE f @> 20050",
]  # fmt: skip
WRITERS = [
    "INSERT INTO {t} SELECT * FROM source WHERE id <= 200", "DELETE FROM {t} WHERE id % 3 = 0",
    "UPDATE {t} SET f = f WHERE id % 50 = 1", "VACUUM {t}", "SELECT bloomslices_merge('{t}_f')",
    "INSERT INTO {t} SELECT * FROM source", "VACUUM (INDEX_CLEANUP on) {t}", "ANALYZE {t}",
]  # fmt: skip

Case = collections.namedtuple("Case", "name damage lies", defaults=[False])


# Damages: functions of the pages of a file, which change the list.

def put(page, at, data):
    return page[:at] + data + page[at + len(data):]


def change(number, at, data):
    def damage(pages):
        pages[number] = put(pages[number], at, data)

    return damage


def flip(number, at, bit):
    def damage(pages):
        pages[number] = put(pages[number], at, bytes([pages[number][at] ^ 1 << bit]))

    return damage


def copy(a, b):
    def damage(pages):
        pages[b] = pages[a]

    return damage


def swap(a, b):
    def damage(pages):
        pages[a], pages[b] = pages[b], pages[a]

    return damage


def cut(keep):
    def damage(pages):
        del pages[keep:]

    return damage


def tear(pages):
    pages[-1] = pages[-1][: PAGE - 100]


def kind_of(page):
    return struct.unpack_from("<H", page, 30)[0]


def lower_of(page):
    return struct.unpack_from("<H", page, 12)[0]


def sample(pages):
    """The metapage, the directory, and some pages of rows and of bits."""
    rows = [n for n, page in enumerate(pages) if kind_of(page) == 3]
    bits = [n for n, page in enumerate(pages) if kind_of(page) == 4]
    return [n for n, page in enumerate(pages) if kind_of(page) in (1, 2)] + rows[:4] + rng.sample(bits, 4)


def page_cases(pages):
    noise = random.Random("noise").randbytes(PAGE)
    some = sample(pages)
    cases = [Case(f"page {n} is zero", change(n, 0, bytes(PAGE))) for n in some]
    cases += [Case(f"page {n} is noise", change(n, 8, noise[8:])) for n in some]
    cases += [Case(f"pages {a} and {b} are swapped", swap(a, b)) for a in some for b in some if a < b]
    cases += [Case(f"page {b} is a copy of page {a}", copy(a, b)) for a in some for b in some if a != b]
    cases += [Case(f"the file has {n} pages", cut(n)) for n in {0, 1, 2, *some, len(pages) - 1}]
    return cases + [Case("the last page is torn", tear),
                    Case("noise behind the end", lambda all_pages: all_pages.extend([noise, bytes(PAGE)]))]


def number_cases(pages):
    """Wrong numbers in the fields of pages, and in the metapage and the directory."""
    cases = []
    for n in sample(pages):
        end = lower_of(pages[n]) if kind_of(pages[n]) in (1, 2) else CONTENTS
        for size, numbers in (4, WORDS), (8, LONGS):
            places = list(range(8, end, size))
            for at in places if end == CONTENTS else rng.sample(places, min(20 * NUMBERS, len(places))):
                cases += [Case(f"page {n}, bytes {at} to {at + size - 1}: {data.hex()}", change(n, at, data))
                          for data in rng.sample(numbers, NUMBERS)]  # fmt: skip
    return rng.sample(cases, min(len(cases), 200 * NUMBERS))


def flip_cases(pages):
    cases = []
    for _ in range(RANDOM):
        n, bit = rng.randrange(len(pages)), rng.randrange(8)
        at = rng.randrange(8, CONTENTS)
        cases.append(Case(f"page {n}, byte {at}, bit {bit} flipped", flip(n, at, bit)))
        at = rng.randrange(CONTENTS, PAGE)
        cases.append(Case(f"page {n}, byte {at}, bit {bit} flipped", flip(n, at, bit), kind_of(pages[n]) in (3, 4)))
    return cases


# The files

def pages_of(path):
    with open(path, "rb") as file:
        data = file.read()
    return [data[start:start + PAGE] for start in range(0, len(data), PAGE)]


def write(path, pages):
    with open(path, "r+b") as file:
        file.write(b"".join(pages))
        file.truncate()


def source_of(number):
    return "large" if number == TABLES - 1 else "source"


def prepare():
    """Builds all indexes anew, and stops the server with everything written."""
    with server.connect() as session:
        for number in range(TABLES):
            session.ask(FILL.format(t=f"t{number}", source=source_of(number)))
        session.ask("CHECKPOINT")
        paths = [os.path.join(server.data, path) for path in session.ask(
            f"SELECT pg_relation_filepath(format('t%s_f', i)) FROM generate_series(0, {TABLES - 1}) AS i")]  # fmt: skip
    server.stop()
    return paths


# One case

said = collections.Counter()
right = {}  # the rows of each query, by the source


def examine(case, number):
    """What is wrong with what the statements on a damaged index say."""
    wrong = []
    table = f"t{number}"

    def run_all(statements, expected):
        with server.connect(f"SET statement_timeout = '{TIMEOUT}s';") as session:
            for settings, sql in statements:
                session.ask("RESET enable_seqscan; RESET enable_indexscan; RESET enable_bitmapscan; " + settings)
                lines, state = session.attempt(sql.format(t=table))
                said[state] += 1
                if state not in CORRUPTED and state != "00000":
                    wrong.append(f"{state}: {sql.format(t=table)}: {session.error}")
                elif state == "00000" and expected and not case.lies and lines != right[source_of(number), sql]:
                    wrong.append(f"other rows: {sql.format(t=table)}: {lines}")
                if state == "lost":
                    return

    run_all(READERS, True)
    run_all([("", sql) for sql in OTHERS + WRITERS], False)
    run_all(READERS + [("", sql) for sql in OTHERS], False)
    with server.connect(f"SET statement_timeout = '{TIMEOUT}s';") as session:
        states = [session.attempt(sql.format(t=table))[1] for sql in ("REINDEX INDEX {t}_f", "SELECT bloomslices_check('{t}_f')")]
    return wrong if states == ["00000"] * 2 else wrong + [f"REINDEX: {states}"]


def alive():
    try:
        return server.value("SELECT 1") == "1"
    except psycopg.Error:
        return False


def run_cases(cases, numbers):
    """Damages one index for each case, a number of cases at a time."""
    faults = collections.defaultdict(list)
    for start in range(0, len(cases), len(numbers)):
        batch = list(zip(cases[start:start + len(numbers)], numbers))
        paths = prepare()
        for case, number in batch:
            pages = pages_of(paths[number])
            case.damage(pages)
            write(paths[number], pages)
        server.start()
        for case, number in batch:
            faults[case.name] += examine(case, number)
            if not alive():
                faults[case.name].append("the server has crashed")
                server.running.remove(server)
                server.start()
    return faults


def report(cases, name, numbers):
    bad = {case: wrong for case, wrong in run_cases(cases, numbers).items() if wrong}
    ok(not bad, f"{len(cases)} {name}: each statement works or says that the index is corrupted",
       f"{len(bad)} cases", *[f"{case}: {line[:250]}" for case, wrong in bad.items() for line in wrong[:MOST]])


def first_look():
    """The rows of all queries, and the pages of an index of each source."""
    paths = prepare()
    server.start()
    with server.connect() as session:
        for number in (0, TABLES - 1):
            session.ask(BY_TABLE)
            for _, sql in READERS:
                right[source_of(number), sql] = session.ask(sql.format(t=f"t{number}"))
    ok(right["source", QUERIES[0]] and right["source", QUERIES[1]] and right["large", QUERIES[0]], "the queries find rows")
    files = pages_of(paths[0]), pages_of(paths[-1])
    same([{kind_of(page) for page in pages} for pages in files], [{1, 2, 3, 4}] * 2, "all kinds of pages")
    return files


def lost_bits(bits):
    """bloomslices_check finds what no reader can: bits that a page has lost."""
    paths = prepare()
    for number, n in enumerate(bits):
        pages = pages_of(paths[number])
        pages[n] = put(pages[n], CONTENTS, bytes(PAGE - CONTENTS))
        write(paths[number], pages)
    server.start()
    with server.connect() as session:
        states = {session.attempt(f"SELECT bloomslices_check('t{number}_f')")[1] for number in range(len(bits))}
    same(states, {"XX002"}, "bloomslices_check finds lost bits")


def crashes():
    signs = "PANIC", "TRAP:", "was terminated by signal"
    return [line for line in server.log() if any(sign in line for sign in signs)]


def run():
    # Damaged numbers may ask for much space.
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (256 << 20, hard))
    server.init(*["--no-data-checksums"] if server.major >= 18 else [], autovacuum="off", shared_buffers="32MB").start()
    server.run("createdb", DATABASE)
    server.sql(SCHEMA)
    small, large = first_look()
    numbers = list(range(TABLES - 1))
    report(page_cases(small), "wrong pages", numbers)
    report(number_cases(small), "wrong numbers", numbers)
    report(flip_cases(small), "flipped bits", numbers)
    report(rng.sample(page_cases(large) + number_cases(large), 12), "damages of large rows", [TABLES - 1])
    note("SQLSTATEs: " + " ".join(f"{state}: {count}" for state, count in sorted(said.items())))
    ok(said["XX002"] > 100, "damage is found", said)
    lost_bits([n for n, page in enumerate(small) if kind_of(page) == 4 and any(page[CONTENTS:])][:20])
    same(crashes(), [], "the server has not crashed")
    server.stop()


main(run)
