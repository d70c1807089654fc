#!/usr/bin/python3 -B
"""Damaged sets: every statement that uses one either works or says that the index is corrupted (XX001, XX002). The
server never crashes or hangs, and where whole pages or headers are wrong no value that the table has is denied.

The test writes into the files of indexes while a server of its own is stopped. Each case damages one of many sets of
the same values, which have grown over several pages. Then a session reads, writes and repairs the set: REINDEX always
helps. Bits that are lost in the blocks of a page can only be found by bloomset_check, or by checksums, which are off.

    BLOOMSET_SEED     another seed than the usual one
    BLOOMSET_RANDOM   how many bits are flipped
    BLOOMSET_NUMBERS  how many wrong numbers are tried in each place, at most 8
"""

import os
import random
import struct

from bloomset_checks import USE_SETS
from damage import (CONTENTS, HEADER, NOISE, PAGE, WORDS, Case, Damaged, extend, flip_case, lower_of, number_cases,
                    overwrite, page_cases, pages_of)
from durable import main
from tap import ok

SEED = os.environ.get("BLOOMSET_SEED", "damage")
RANDOM = int(os.environ.get("BLOOMSET_RANDOM", "50"))
NUMBERS = int(os.environ.get("BLOOMSET_NUMBERS", "2"))
LONGS = [struct.pack("<Q", word) for word in (1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)] + \
    [struct.pack("<d", number) for number in (0.5, -1, float("nan"), float("inf"))]
TABLES = 60
ROWS = 3000
rng = random.Random(SEED)

# Sets that grow to several generations, of which the last has several pages. That of "other" has text and another seed.
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
    USE_SETS + "SET plan_cache_mode = force_generic_plan; "
    "PREPARE p AS SELECT count(*) FROM {t} WHERE k = $1; EXECUTE p (-5)",
    "SELECT pg_indexes_size('{t}')",
]  # fmt: skip
WRITERS = [
    "INSERT INTO {t} VALUES (77)", "INSERT INTO {t} SELECT i FROM generate_series(100001, 100400) AS i", "VACUUM {t}",
    "UPDATE {t} SET k = k + 500000 WHERE k BETWEEN 100 AND 300", "DELETE FROM {t} WHERE k = 5", "ANALYZE {t}",
    "VACUUM (INDEX_CLEANUP on) {t}", "INSERT INTO {t} SELECT i FROM generate_series(200001, 204000) AS i",
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

young, other = {}, []  # metapages of sets that have not grown, and the pages of another set


def metapage_of_other(pages, _):
    """The metapage is that of a set of text with another seed."""
    pages[0] = other[0]


def file_of_other(pages, _):
    pages[:] = other


def older_metapage(pages, table):
    """The metapage is that of a set that has not grown: a write of it was lost."""
    pages[0] = young[table]


def whole_pages(last):
    cases = page_cases(range(last + 1), range(last + 1))
    cases += [Case("the older metapage", older_metapage), Case("the metapage of another set", metapage_of_other),
              Case("the file of another set", file_of_other)]  # fmt: skip
    cases += [Case("zero pages behind the end", extend(*[bytes(PAGE)] * 3)),
              Case("pages twice behind the end", lambda pages, _: pages.extend(pages[1:]))]  # fmt: skip
    return cases + [Case("the metapage is noise behind its header", overwrite(0, HEADER, NOISE[HEADER:])),
                    Case("the metapage is 0 behind its header", overwrite(0, HEADER, bytes(PAGE - HEADER)))]  # fmt: skip


def wrong_numbers(last):
    """In each place of the headers of a first and a last page, and in some places of the metapage."""
    cases = []
    for n in 0, 1, last:
        for size, numbers in (4, WORDS), (8, LONGS):
            places = range(8, end_of(n), size)
            some = places if n else rng.sample(places, min(15 * NUMBERS, len(places)))
            cases += number_cases(rng, n, some, size, numbers, NUMBERS)
    # The number of generations that a page of the first one names, if it is less than it was.
    return cases + [Case(f"page 1 names {word[0]} generations", overwrite(1, 40, word)) for word in WORDS[:2]]


def flipped_bits(last):
    """In headers and in the metapage, where they must be noticed, and anywhere."""
    cases = []
    for _ in range(RANDOM):
        n = rng.choice([0, 0, rng.randint(1, last)])
        cases.append(flip_case(n, rng.randrange(8, end_of(n)), rng.randrange(8)))
    for _ in range(RANDOM // 4):
        cases.append(flip_case(rng.randint(0, last), rng.randrange(HEADER, PAGE), rng.randrange(8), True))
    return cases


def examine(case, number):
    """What is wrong with what the statements on a damaged set say."""

    def texts(statements):
        return [sql.format(t=f"t{number}", last=ROWS) for sql in statements]

    present = texts(PRESENT)

    def denies(sql, lines):
        return sql in present and lines and not case.lies

    return [fault for statements in (READERS + PRESENT, WRITERS + READERS, [DENIED])
            for fault in damaged.statements(texts(statements), denies)]  # fmt: skip


metapage_end = PAGE


def end_of(number):
    """Where the numbers of a page end."""
    return metapage_end if number == 0 else CONTENTS


def fill(session):
    """Lets all sets grow anew."""
    for number in range(TABLES):
        session.ask(f"TRUNCATE t{number}; INSERT INTO t{number} SELECT i FROM generate_series(1, 10) AS i")
    session.ask("CHECKPOINT")
    for number in range(TABLES):
        young[number] = pages_of(damaged.path(f"t{number}_k"))[0]
        session.ask(f"INSERT INTO t{number} SELECT i FROM generate_series(11, {ROWS}) AS i")


def first_look():
    """Returns the number of the last page of a set. Only numbers are before pd_lower of the metapage."""
    global metapage_end
    paths = damaged.prepare()
    damaged.server.start()
    other.extend(pages_of(damaged.path("other_k")))
    pages = pages_of(paths[0])
    metapage_end = lower_of(pages[0])
    generations = int(damaged.server.value("SELECT (bloomset_info('t0_k'::regclass)).generations"))
    ok(generations >= 3 and len(pages) >= 5 and HEADER < metapage_end < PAGE,
       f"a set has {len(pages)} pages in {generations} generations, and {metapage_end - HEADER} bytes in its metapage")
    return len(pages) - 1


def tree():
    """A damaged leaf makes the whole tree an error for values that it might have."""

    def lose_all(pages, _):
        pages[1:] = [bytes(PAGE)] * (len(pages) - 1)

    damaged.damage(damaged.prepare(), [Case("", lose_all)], [3])
    with damaged.server.connect() as session:
        states = [session.attempt(sql)[1] for sql in (
            "SELECT bloomset_contains('tree', 'k', -77)", "SELECT bloomset_partitions('tree', 'k', 77)",
            "SELECT count(*) FROM bloomset_filters('tree', 'k')", "SELECT bloomset_contains('t3', 'k', 77)",
        )]  # fmt: skip
    ok(set(states) <= {"XX001", "XX002"}, "a damaged leaf is an error of its tree", states)


damaged = Damaged("bloomset", TABLES, "t{}_k", SCHEMA, fill, examine)


def run():
    last = first_look()
    for name, cases in ("wrong pages", whole_pages), ("wrong numbers", wrong_numbers), ("flipped bits", flipped_bits):
        damaged.report(cases(last), name)
    damaged.lost_bits([1 + number % last for number in range(10)])
    tree()
    damaged.end()


main(run)
