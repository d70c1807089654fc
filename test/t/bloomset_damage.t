#!/usr/bin/python3 -B
"""Damaged sets: every statement that uses one either works or says that the index is corrupted (XX001, XX002). The server
never crashes or hangs, and where whole pages or headers are wrong no value that the table has is denied.

The test writes into the files of indexes while a server of its own is stopped. Each case damages one of many sets of the
same values, which have grown over several pages. Then a session reads, writes and repairs the set: REINDEX always helps.
Bits that are lost in the blocks of a page can only be found by bloomset_check, or by checksums, which are off here.

    BLOOMSET_SEED     another seed than the usual one
    BLOOMSET_RANDOM   how many bits are flipped
    BLOOMSET_NUMBERS  how many wrong numbers are tried in each place, at most 8
"""

import collections
import os
import random
import resource
import struct
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "durability"))
from bloomset_checks import USE_SETS  # noqa: E402
from durable import DATABASE, Server, main, own_directory  # noqa: E402
from session import psycopg  # noqa: E402
from tap import note, ok, same  # noqa: E402

SEED = os.environ.get("BLOOMSET_SEED", "damage")
RANDOM = int(os.environ.get("BLOOMSET_RANDOM", "50"))
NUMBERS = int(os.environ.get("BLOOMSET_NUMBERS", "1"))
PAGE = 8192
HEADER = 24  # of every page of PostgreSQL; what follows is the set's own
BLOCKS = 64  # where the 127 blocks of 64 bytes begin that fill a page of elements
WORDS = [struct.pack("<I", word) for word in (0, 1, 3, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)]
LONGS = [struct.pack("<Q", word) for word in (1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)] + \
    [struct.pack("<d", number) for number in (0.5, -1, float("nan"), float("inf"))]
TABLES = 60
ROWS = 3000
MOST = 2  # faults of a case that are shown
TIMEOUT = 20  # seconds; a statement on a set of 50 kB that takes longer hangs
CORRUPTED = {"00000", "XX001", "XX002"}
directory = own_directory()
server = Server(directory, "server")
rng = random.Random(SEED)

# Sets that grow to several generations, of which the last has several pages. The seed of "other" differs, and its values.
SCHEMA = f"""
CREATE EXTENSION bloomtype;
CREATE TABLE tree (k bigint, p int) PARTITION BY LIST (p);
CREATE TABLE other (k text);
CREATE INDEX other_k ON other USING bloomset (k) WITH (expected_items = 500, false_positive_rate = 1e-7, seed = 5);
INSERT INTO other SELECT 'x' || i FROM generate_series(1, {ROWS}) AS i;
""" + "".join(f"""
    CREATE TABLE t{number} (k bigint, p int NOT NULL DEFAULT {number} CHECK (p = {number}));
    CREATE INDEX t{number}_k ON t{number} USING bloomset (k) WITH (expected_items = 500, false_positive_rate = 1e-7);
    ALTER TABLE tree ATTACH PARTITION t{number} FOR VALUES IN ({number});
    """ for number in range(TABLES))  # fmt: skip

# What sessions do with a damaged set.
READERS = [
    "SELECT bloomset_contains('{t}', 'k', 77)", "SELECT bloomset_contains('{t}', 'k', -77)",
    "SELECT bloomset_contains('{t}_k'::regclass, {last})",
    "SELECT count(*) FROM bloomset_partitions('{t}', 'k', 77)",
    "SELECT bit_length(string_agg(filter::bytea, '')) FROM bloomset_filters('{t}', 'k')",
    "SELECT * FROM bloomset_info('{t}_k'::regclass)", "SELECT bloomset_check('{t}_k'::regclass)",
    USE_SETS + "SELECT count(*) FROM {t} WHERE k = 77", USE_SETS + "EXPLAIN SELECT count(*) FROM {t} WHERE k = -77",
    USE_SETS + "SET plan_cache_mode = force_generic_plan; PREPARE p AS SELECT count(*) FROM {t} WHERE k = $1; EXECUTE p (-5)",
    "SELECT pg_indexes_size('{t}')",
]  # fmt: skip
WRITERS = [
    "INSERT INTO {t} VALUES (77)", "INSERT INTO {t} SELECT i FROM generate_series(100001, 100400) AS i",
    "UPDATE {t} SET k = k + 500000 WHERE k BETWEEN 100 AND 300", "VACUUM {t}", "DELETE FROM {t} WHERE k = 5",
    "VACUUM (INDEX_CLEANUP on) {t}", "ANALYZE {t}", "INSERT INTO {t} SELECT i FROM generate_series(200001, 204000) AS i",
]  # fmt: skip
# Values that the table has and the set denies; each must be asked for itself, because some pages may be good.
DENIED = "SELECT k FROM (SELECT DISTINCT k FROM {t} OFFSET 0) AS s WHERE NOT bloomset_contains('{t}', 'k', k) LIMIT 3"
BY_PARTITIONS = "SELECT k FROM (SELECT DISTINCT k FROM {t} LIMIT 200) AS s " \
    "WHERE NOT EXISTS (SELECT FROM bloomset_partitions('{t}', 'k', k))"
BY_FILTERS = "SELECT k FROM (SELECT DISTINCT k FROM {t} OFFSET 0) AS s WHERE NOT EXISTS " \
    "(SELECT FROM bloomset_filters('{t}', 'k') WHERE filter @> k) LIMIT 3"
BY_SCAN = USE_SETS + "SELECT k FROM (SELECT DISTINCT k FROM {t} LIMIT 50) AS s " \
    "WHERE NOT EXISTS (SELECT FROM {t} AS t WHERE t.k = s.k OFFSET 0)"
PRESENT = [DENIED, BY_PARTITIONS, BY_FILTERS, BY_SCAN]

Case = collections.namedtuple("Case", "name damage denies", defaults=[False])


# Damages: functions of the pages of a file and the number of its table, which change the list.

def put(page, at, data):
    return page[:at] + data + page[at + len(data):]


def zero(number):
    def damage(pages, _):
        pages[number] = bytes(PAGE)

    return damage


def swap(a, b):
    def damage(pages, _):
        pages[a], pages[b] = pages[b], pages[a]

    return damage


def repeat(a, b):
    def damage(pages, _):
        pages[b] = pages[a]

    return damage


def cut(keep):
    def damage(pages, _):
        del pages[keep:]

    return damage


def tear(pages, _):
    """The file ends within a page."""
    pages[-1] = pages[-1][: PAGE - 100]


def extend(*more):
    def damage(pages, _):
        pages.extend(more)

    return damage


def overwrite(number, at, data):
    def damage(pages, _):
        pages[number] = put(pages[number], at, data)

    return damage


def flip(number, at, bit):
    def damage(pages, _):
        pages[number] = put(pages[number], at, bytes([pages[number][at] ^ 1 << bit]))

    return damage


def metapage_of_other(pages, _):
    """The metapage is that of a set of text with another seed."""
    pages[0] = other[0]


def file_of_other(pages, _):
    pages[:] = other


def older_metapage(pages, table):
    """The metapage is that of a set that has not grown: a write of it was lost."""
    pages[0] = young[table]


def fixed_cases(last):
    """The damages of whole pages and of single numbers. The LSN at the start of a page is PostgreSQL's own affair: if it
    is wrong, no page can be written."""
    noise = random.Random("noise").randbytes(PAGE)
    cases = [Case(f"page {n} is zero", zero(n)) for n in range(last + 1)]
    cases += [Case(f"pages {a} and {b} are swapped", swap(a, b)) for a in range(last + 1) for b in range(a)]
    cases += [Case(f"page {b} is a copy of page {a}", repeat(a, b)) for a in range(last + 1) for b in range(last + 1)
              if a != b]  # fmt: skip
    cases += [Case(f"the file has {n} pages", cut(n)) for n in range(last + 1)]
    cases += [Case("the last page is torn", tear), Case("the older metapage", older_metapage)]
    cases += [Case("the metapage of another set", metapage_of_other), Case("the file of another set", file_of_other)]
    cases += [Case("zero pages behind the end", extend(*[bytes(PAGE)] * 3)),
              Case("noise behind the end", extend(noise, noise)),
              Case("a page twice behind the end", lambda pages, _: pages.extend(pages[1:]))]  # fmt: skip
    cases += [Case(f"page {n} is noise", overwrite(n, 8, noise[8:])) for n in range(last + 1)]
    cases += [Case("the metapage is noise behind its header", overwrite(0, HEADER, noise[HEADER:])),
              Case("the metapage is 0 behind its header", overwrite(0, HEADER, bytes(PAGE - HEADER)))]  # fmt: skip
    return cases


def number_cases(last):
    """Wrong numbers in each place of the headers of a first and a last page, and of the metapage."""
    cases = []
    for n in 0, 1, last:
        for size, numbers in (4, WORDS), (8, LONGS):
            for at in range(8, end_of(n), size):
                cases += [Case(f"page {n}, bytes {at} to {at + size - 1}: {data.hex()}", overwrite(n, at, data))
                          for data in rng.sample(numbers, NUMBERS)]
    return cases


def random_cases(last):
    """Flips of single bits: in headers and in the metapage, where they must be noticed, and anywhere."""
    cases = []
    for _ in range(RANDOM):
        n, bit = rng.choice([0, 0, rng.randint(1, last)]), rng.randrange(8)
        at = rng.randrange(8, end_of(n))
        cases.append(Case(f"page {n}, byte {at}, bit {bit} flipped", flip(n, at, bit)))
    for _ in range(RANDOM // 4):
        n, bit, at = rng.randint(0, last), rng.randrange(8), rng.randrange(HEADER, PAGE)
        cases.append(Case(f"page {n}, byte {at}, bit {bit} flipped, maybe an element's", flip(n, at, bit), True))
    return cases


# The files

def path_of(index):
    return os.path.join(server.data, server.value(f"SELECT pg_relation_filepath('{index}')"))


def pages_of(path):
    with open(path, "rb") as file:
        data = file.read()
    return [data[start:start + PAGE] for start in range(0, len(data), PAGE)]


def write(path, pages):
    with open(path, "r+b") as file:
        file.write(b"".join(pages))
        file.truncate()


# One case

def outcome(session, sql, table):
    lines, state = session.attempt(sql.format(t=table, last=ROWS))
    return lines, state, session.error


def examine(case, table):
    """What is wrong with what the statements on a damaged set say."""
    wrong = []

    def run_all(statements):
        with server.connect(f"SET statement_timeout = '{TIMEOUT}s';") as session:
            for sql in statements:
                lines, state, error = outcome(session, sql, table)
                said[state] += 1
                if state not in CORRUPTED:
                    wrong.append(f"{state}: {sql.format(t=table, last=ROWS)}: {error}")
                elif state == "00000" and sql in PRESENT and lines and not case.denies:
                    wrong.append(f"denied: {sql.format(t=table, last=ROWS)}: {lines}")
                if state == "lost":
                    return

    run_all(READERS + PRESENT)
    run_all(WRITERS + READERS)
    run_all([DENIED])
    return wrong


def repair(table):
    with server.connect(f"SET statement_timeout = '{TIMEOUT}s';") as session:
        states = [outcome(session, sql, table)[1] for sql in ["REINDEX INDEX {t}_k", "SELECT bloomset_check('{t}_k'::regclass)"]]
        lines, state, error = outcome(session, DENIED, table)
        return [] if (states, lines, state) == (["00000"] * 2, [], "00000") else [f"REINDEX: {states} {lines} {error}"]


said = collections.Counter()
young, other = {}, []  # metapages of sets that have not grown, and the pages of another set
metapage_end = PAGE


def end_of(number):
    """Where the numbers of a page end."""
    return metapage_end if number == 0 else BLOCKS


def prepare():
    """Lets all sets grow anew, and stops the server with everything written."""
    with server.connect() as session:
        for number in range(TABLES):
            session.ask(f"TRUNCATE t{number}; INSERT INTO t{number} SELECT i FROM generate_series(1, 10) AS i")
        session.ask("CHECKPOINT")
        paths = [os.path.join(server.data, path) for path in session.ask(
            f"SELECT pg_relation_filepath(format('t%s_k', i)) FROM generate_series(0, {TABLES - 1}) AS i")]  # fmt: skip
        for number, path in enumerate(paths):
            young[number] = pages_of(path)[0]
            session.ask(f"INSERT INTO t{number} SELECT i FROM generate_series(11, {ROWS}) AS i")
    server.stop()
    return paths


def first_look():
    """Returns the number of the last page of a set. Only numbers are before pd_lower of the metapage."""
    global metapage_end
    paths = prepare()
    server.start()
    other.extend(pages_of(path_of("other_k")))
    pages = pages_of(paths[0])
    (metapage_end,) = struct.unpack_from("<H", pages[0], 12)
    generations = int(server.value("SELECT (bloomset_info('t0_k'::regclass)).generations"))
    ok(generations >= 3 and len(pages) >= 5 and HEADER < metapage_end < PAGE,
       f"a set has {len(pages)} pages in {generations} generations, and {metapage_end - HEADER} bytes in its metapage")
    return len(pages) - 1


def run_cases(cases):
    """Damages one set for each case, a number of cases at a time."""
    faults = collections.defaultdict(list)
    for start in range(0, len(cases), TABLES):
        batch = cases[start:start + TABLES]
        paths = prepare()
        for number, case in enumerate(batch):
            pages = pages_of(paths[number])
            case.damage(pages, number)
            write(paths[number], pages)
        server.start()
        for number, case in enumerate(batch):
            wrong = examine(case, f"t{number}")
            if not alive():
                wrong.append("the server has crashed")
                server.running.remove(server)
                server.start()
            faults[case.name] += wrong + repair(f"t{number}")
    return faults


def alive():
    try:
        return server.value("SELECT 1") == "1"
    except psycopg.Error:
        return False


def crashes():
    return [line for line in server.log() if any(what in line for what in ("PANIC", "TRAP:", "was terminated by signal"))]


def report(faults, cases, name):
    bad = {case: wrong for case, wrong in faults.items() if wrong}
    ok(not bad, f"{len(cases)} {name}: each statement works or says that the index is corrupted",
       f"{len(bad)} cases", *[f"{case}: {line[:250]}" for case, wrong in bad.items() for line in wrong[:MOST]])


def damage():
    last = first_look()
    for name, cases in ("wrong pages", fixed_cases(last)), ("wrong numbers", number_cases(last)), \
            ("flipped bits", random_cases(last)):  # fmt: skip
        report(run_cases(cases), cases, name)
    note("SQLSTATEs: " + " ".join(f"{state}: {count}" for state, count in sorted(said.items())))
    ok(said["XX002"] > 100, "damage is found", said)


def lost_bits():
    """bloomset_check finds what no reader can: blocks of a page that have lost their bits."""
    paths = prepare()
    for number in range(10):
        pages = pages_of(paths[number])
        page = 1 + number % (len(pages) - 1)
        pages[page] = put(pages[page], BLOCKS, bytes(PAGE - BLOCKS))
        write(paths[number], pages)
    server.start()
    with server.connect() as session:
        states = [session.attempt(f"SELECT bloomset_check('t{number}_k'::regclass)")[1] for number in range(10)]
    same(set(states), {"XX002"}, "bloomset_check finds lost bits")


def tree():
    """A damaged leaf makes the whole tree an error for values that it might have."""
    paths = prepare()
    pages = pages_of(paths[3])
    pages[1:] = [bytes(PAGE)] * (len(pages) - 1)
    write(paths[3], pages)
    server.start()
    with server.connect() as session:
        states = [session.attempt(sql)[1] for sql in (
            "SELECT bloomset_contains('tree', 'k', -77)", "SELECT bloomset_partitions('tree', 'k', 77)",
            "SELECT count(*) FROM bloomset_filters('tree', 'k')", "SELECT bloomset_contains('t3', 'k', 77)")]  # fmt: skip
    ok(set(states) <= {"XX001", "XX002"}, "a damaged leaf is an error of its tree", states)


def run():
    # Damaged numbers may ask for much space.
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (256 << 20, hard))
    server.init(*["--no-data-checksums"] if server.major >= 18 else [], autovacuum="off", shared_buffers="32MB").start()
    server.run("createdb", DATABASE)
    server.sql(SCHEMA)
    damage()
    lost_bits()
    tree()
    same(crashes(), [], "the server has not crashed")
    server.stop()


main(run)
