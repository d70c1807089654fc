#!/usr/bin/python3
"""bloomslices, against B-trees on pairs (set, key), stored filters, COBS and sequential scans.

Connects as psql does, as a superuser, to an empty database with bloomtype in it, and runs pgbench. The goals are for
ROWS = 10 million; a tenth of it makes a tenth of the sets, but each has as many keys. SLICES names the parts to run, by
their functions; by default all. The server should hold all tables and indexes in shared_buffers, or the time is that of
copying pages from the operating system's cache, and write no full-page images.

COBS is the program of https://github.com/bingmann/cobs, built from its source; without it the part "least" is left out.
ratios.py explains the tables.
"""
import os
import random
import re
import resource
import statistics
import subprocess
import tempfile
import threading
import time

from measure import Session, pgbench, rows
from ratios import (PARTS, SETTINGS, TURNS, expect, heading, kilobytes, milliseconds, note, part, show, show_spent,
                    show_times, spent, timed)  # fmt: skip

SHARE = min(1, rows() / 1e7)


def scaled(number):
    return max(int(number * SHARE), 100)


# Sets. The planner scans a table of much fewer than 500.
FEW, SOME, MANY = 500, max(scaled(5000), 500), max(scaled(50000), 500)
KEYS = 11000  # of a set
SMALL = 200  # keys of a small set
GROWN = scaled(8128)  # sets that are added one by one
LARGE = 1000000  # keys of a large set
GROWN_LARGE = scaled(1016)
READY_LARGE = 16  # different ones of them, because making them takes longer than adding them
FINGERPRINTS = scaled(1000000)
MAINTENANCE = "256MB"
ASKED = 1000  # keys in a query for at least 800 of them
LEAST = 800

# A prepared statement would otherwise be planned five times for its parameters. A B-tree is slower by a bitmap scan.
GENERIC = SETTINGS + ("plan_cache_mode = force_generic_plan", "enable_bitmapscan = off")
QUIET = "WITH (parallel_workers = 0, autovacuum_enabled = off%s)"
TOASTED = QUIET % ", toast.autovacuum_enabled = off"

# Key number j of set number i > 0. The function hashes 32 bits, so that no two below 2^31 are the same by their number, and
# two of 55 million by chance with probability 8e-5. Sets below 0 have keys that are in none.
KEY = "hashint8extended((%s) * {0} + (%s), 0)".format(KEYS)
LARGE_KEY = "hashint8extended((%s) * {0} + (%s), 0)".format(LARGE)


def filter_of(number, keys, rate):
    """SQL for the filter of a set."""
    key = (LARGE_KEY if keys > KEYS else KEY) % (number, "j")
    return "(SELECT bloom_agg(%s, %d, %g) FROM generate_series(1, %d::bigint) AS j)" % (key, keys, rate, keys)


def index(session, table):
    session.ask("CREATE INDEX {0}_f ON {0} USING bloomslices (f)".format(table))


def make_filters(session, table, sets, keys, rate):
    session.ask("CREATE TABLE {0} {1} AS SELECT i::int AS id, {2} AS f FROM generate_series(1, {3}::bigint) AS i"
                .format(table, TOASTED, filter_of("i", keys, rate), sets))  # fmt: skip
    index(session, table)
    session.ask("VACUUM ANALYZE " + table)


def make_pairs(session, table, sets, keys):
    session.ask("CREATE TABLE {0} {1} AS SELECT i::int AS id, {2} AS key FROM generate_series(1, {3}::bigint) AS i, "
                "generate_series(1, {4}::bigint) AS j"
                .format(table, QUIET % "", KEY % ("i", "j"), sets, keys))  # fmt: skip
    session.ask("CREATE INDEX {0}_key ON {0} (key)".format(table))
    session.ask("VACUUM ANALYZE " + table)


TABLES = {
    "filters_few": (make_filters, FEW, KEYS, 0.001),
    "filters_some": (make_filters, SOME, KEYS, 0.001),
    "ready": (make_filters, SOME, KEYS, 0.01),
    "pairs_few": (make_pairs, FEW, KEYS),
    "pairs_some": (make_pairs, SOME, KEYS),
}


def need(session, *names):
    """Makes tables that several parts use."""
    for name in names:
        if session.ask("SELECT to_regclass('%s')" % name) == [""]:
            make, *arguments = TABLES[name]
            make(session, name, *arguments)


# One key

CONDITION = {"filters": "f @> %s", "pairs": "key = %s"}
# SQL for keys, of which each turn has others, and pgbench's variables for KEY
ABSENT = ("SELECT " + KEY % ("-1 - {turn}", "i") + " FROM generate_series(1, {number}::bigint) AS i",
          "\\set i -random(1, 100000)\n\\set j random(1, %d)\n" % KEYS)  # fmt: skip
PRESENT = ("SELECT " + KEY % ("1 + floor(%d * random())::bigint" % FEW, "1 + floor(%d * random())::bigint" % KEYS)
           + " FROM generate_series(1, {number}) AS i",
           "\\set i random(1, %d)\n\\set j random(1, %d)\n" % (FEW, KEYS))  # fmt: skip


def find(table, key):
    """SQL that finds the sets that hold a key."""
    return "SELECT id FROM %s WHERE %s" % (table, CONDITION[table.partition("_")[0]] % key)


def make_loop(session, table):
    """Makes a function that asks for keys one after the other, each by the same prepared plan."""
    session.ask("PREPARE asking (bigint) AS " + find(table, "$1"))
    expect(session, "EXECUTE asking (42)", "Index Scan", table + ("_key" if table.startswith("pairs") else "_f"))
    session.ask("DEALLOCATE asking")
    session.ask("""
CREATE OR REPLACE FUNCTION ask_{0}(keys bigint[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  asked bigint;
  found bigint;
  total bigint := 0;
BEGIN
  FOREACH asked IN ARRAY keys LOOP
    PERFORM {1};
    GET DIAGNOSTICS found = ROW_COUNT;
    total := total + found;
  END LOOP;
  RETURN total;
END $$""".format(table, find(table, "asked").removeprefix("SELECT ")))


def ask_in_server(session, keys, tables, numbers):
    """Pairs of the times of one key, each turn with other keys, and the sets found for a key of each table."""
    ask = "SELECT ask_%s(ARRAY(SELECT * FROM asked LIMIT %d))"
    pairs, found = [], []
    for turn in range(TURNS + 1):
        session.ask("CREATE TEMP TABLE asked AS " + keys.format(turn=turn, number=max(numbers)))
        work = [(ask % (table, number), number) for table, number in zip(tables, numbers)]
        found.append([int(session.ask(sql)[0]) / number for sql, number in work])
        pairs.append([[figure / number for figure in timed(session, sql)] for sql, number in work])
        session.ask("DROP TABLE asked")
    return pairs[1:], [statistics.mean(each) for each in zip(*found)]


def ask_by_turns(name, keys, tables, numbers, goal):
    """Compares the times of one key of two tables, each asked for so many, in the server and from a client."""
    sql, variables = keys
    scripts = [variables + find(table, KEY % (":i::bigint", ":j::bigint")) + ";\n" for table in tables]
    with Session(*GENERIC) as session:
        for table in tables:
            make_loop(session, table)
        pairs, found = ask_in_server(session, sql, tables, numbers)
        show_times(name, pairs, goal)
        pairs = [[pgbench(session, script, number)[0] for script, number in zip(scripts, numbers)] for _ in range(TURNS)]
        show("  from a client", pairs, milliseconds)
    note("  sets found for a key", ", ".join("%.3g" % each for each in found))


@part
def one_key(session):
    heading("one key at 0.1 %, in a loop in the server, bloomslices : B-tree on (key)")
    need(session, "pairs_few", "filters_few", "pairs_some", "filters_some")
    for name, keys, number, kind, goal in (
            ("absent", ABSENT, FEW, "few", "<= 1.2"), ("present", PRESENT, FEW, "few", "<= 1.5"),
            ("absent", ABSENT, SOME, "some", "<= 2.5")):  # fmt: skip
        ask_by_turns("%s, %d sets of %d keys" % (name, number, KEYS), keys, ("pairs_" + kind, "filters_" + kind),
                     (2000, 2000), goal)  # fmt: skip


@part
def small_sets(session):
    heading("one key at 0.1 %, in a loop in the server, bloomslices : B-tree on (key)")
    make_filters(session, "filters_small", MANY, SMALL, 0.001)
    make_pairs(session, "pairs_small", MANY, SMALL)
    ask_by_turns("absent, %d sets of %d keys" % (MANY, SMALL), ABSENT, ("pairs_small", "filters_small"), (2000, 1000), "<= 8")
    session.ask("DROP TABLE filters_small, pairs_small")


@part
def many_sets(session):
    """Each filter again with its blocks in other orders: as random as others for a key that none has."""
    heading("one key at 0.1 %%, in a loop in the server, %d sets : %d sets" % (MANY, SOME))
    need(session, "filters_some")
    session.ask("CREATE TABLE filters_many (id int, f bloomfilter) " + TOASTED)
    session.ask("INSERT INTO filters_many SELECT {0} * turn + id, (substr(b, 1, 32) || substr(b, 33 + at) || substr(b, 33, at))"
                "::bloomfilter FROM generate_series(0, {1}) AS turn, LATERAL (SELECT id, f::bytea AS b, 64 * (16 * turn + 1) AS at "
                "FROM filters_some OFFSET 0) AS s".format(SOME, MANY // SOME - 1))  # fmt: skip
    session.ask("VACUUM ANALYZE filters_many")
    index(session, "filters_many")
    ask_by_turns("absent, %d sets of %d keys" % (MANY, KEYS), ABSENT, ("filters_some", "filters_many"), (2000, 500), "<= 7")
    session.ask("DROP TABLE filters_many")


# Size and build

@part
def sizes(session):
    heading("bytes, bloomslices : pairs with their B-tree")
    need(session, "pairs_some", "filters_some", "ready")
    pairs = int(session.ask("SELECT pg_total_relation_size('pairs_some')")[0])
    for name, table, goal in ("1 %", "ready", "<= 1/50"), ("0.1 %", "filters_some", "<= 1/33"):
        of_index, total = session.rows("SELECT pg_indexes_size('{0}'), pg_total_relation_size('{0}')".format(table))[0]
        show("%s, %d sets of %d keys" % (name, SOME, KEYS), [(pairs, int(of_index))], kilobytes, goal)
        show("  with the table of filters", [(pairs, int(total))], kilobytes)


def peak_of(session, sql):
    """The most private memory in bytes that a statement takes, by samples."""
    start, most = session.memory()["RssAnon"], [0]
    ended = threading.Event()

    def sample():
        while not ended.wait(0.005):
            most.append(session.memory()["RssAnon"])

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        session.ask(sql)
    finally:
        ended.set()
        sampler.join()
    return max(most) - start


@part
def builds(session):
    heading("CREATE INDEX, %d sets of %d keys, bloomslices : B-tree on (key)" % (SOME, KEYS))
    need(session, "pairs_some", "filters_some")
    pairs = []
    for _ in range(TURNS):
        pairs.append((timed(session, "CREATE INDEX built_key ON pairs_some (key)"),
                      timed(session, "CREATE INDEX built_f ON filters_some USING bloomslices (f)")))  # fmt: skip
        session.ask("DROP INDEX built_key, built_f")
    show_times("0.1 %%, maintenance_work_mem %s" % MAINTENANCE, pairs, "<= 1/50")
    for megabytes in 16, 64, 256:
        with Session(*SETTINGS, "maintenance_work_mem = '%dMB'" % megabytes) as fresh:
            peak = peak_of(fresh, "CREATE INDEX built_f ON filters_some USING bloomslices (f)")
        show("memory : maintenance_work_mem", [(megabytes << 20, peak)], kilobytes, "<= 1")
        session.ask("DROP INDEX built_f")


# Filters that are also united: made for far more keys than most of them have

ROOM = 200000  # keys for which they are made
SEGMENTS = max(scaled(3000), FEW)
NUMBERS = {"1,600 keys each": "1600", "Zipfian numbers of keys": "greatest(160000 / i, 1)"}


def make_roomy(session, number, sets):
    series = "FROM generate_series(1, %d::bigint) AS i, LATERAL (SELECT %s AS keys) AS n" % (sets, number)
    keys = "generate_series(1, keys::bigint) AS j"
    key = LARGE_KEY % ("i", "j")
    session.ask("CREATE TABLE filters_fitted {0} AS SELECT i::int AS id, keys, (SELECT bloom_agg({1}, {2}) FROM {3}) AS f {4}"
                .format(TOASTED, key, ROOM, keys, series))  # fmt: skip
    session.ask("CREATE TABLE filters_roomy {0} AS TABLE filters_fitted".format(TOASTED))
    session.ask("CREATE TABLE pairs_roomy {0} AS SELECT i::int AS id, {1} AS key {2}, {3}".format(QUIET % "", key, series, keys))
    for table in "filters_fitted", "filters_roomy", "pairs_roomy":
        session.ask("VACUUM ANALYZE " + table)


def best_items(session):
    """The fewest elements that keep the rate of nineteen of twenty filters: an index for fewer keeps that of fewer."""
    return int(session.ask("SELECT percentile_disc(0.95) WITHIN GROUP (ORDER BY keys) FROM filters_fitted")[0])


def compare_shapes(session, name, sets):
    default = "CREATE INDEX filters_fitted_f ON filters_fitted USING bloomslices (f)"
    for against, sql, turns in (
            ("expected_items = %d, the best" % best_items(session),
             "CREATE INDEX other ON filters_fitted USING bloomslices (f) WITH (expected_items = %d)" % best_items(session), TURNS),
            ("the B-tree of pairs", "CREATE INDEX other ON pairs_roomy (key)", TURNS),
            ("expected_items = %d, as made for" % ROOM,
             "CREATE INDEX other ON filters_roomy USING bloomslices (f) WITH (expected_items = %d)" % ROOM, 1)):  # fmt: skip
        pairs = []
        for _ in range(turns):
            session.ask("DROP INDEX IF EXISTS filters_fitted_f, other")
            pairs.append((timed(session, sql), timed(session, default)))
        goal = "<= 2" if against.endswith("best") else ""
        size = session.rows("SELECT pg_relation_size('other'), pg_relation_size('filters_fitted_f')")[0]
        show("%d sets, %s: bytes : %s" % (sets, name, against), [[int(each) for each in size]], kilobytes, goal)
        show_times("  CREATE INDEX", pairs)
    session.ask("ALTER INDEX other RENAME TO filters_roomy_f")


@part
def shapes(session):
    heading("filters made for %d keys at 1 %%, bloomslices by default : others" % ROOM)
    for name, number in NUMBERS.items():
        make_roomy(session, number, SEGMENTS)
        compare_shapes(session, name, SEGMENTS)
        ask_by_turns("  an absent key : expected_items = %d" % ROOM, ABSENT, ("filters_roomy", "filters_fitted"), (500, 500), "")
        session.ask("DROP TABLE filters_fitted, filters_roomy, pairs_roomy")


# Adding sets

def add(table, source, first, last):
    """SQL that adds sets one by one, each in a transaction."""
    return ("DO $$ BEGIN FOR n IN %d .. %d LOOP INSERT INTO %s (f) %s; COMMIT; END LOOP; END $$"
            % (first, last, table, source))  # fmt: skip


def with_vacuum(table, source, number):
    """Statements that add sets, with VACUUM when autovacuum comes by its defaults, and at the end."""
    statements, there = [], 0
    while there < number:
        more = min(1001 + there // 5, number - there)
        statements += [add(table, source, there + 1, there + more), "VACUUM " + table]
        there += more
    return statements


def grow(session, name, source, number, goals):
    pairs = []
    for _ in range(TURNS):
        session.ask("TRUNCATE grown_alone, grown_indexed")
        session.ask("CHECKPOINT")
        pairs.append([spent(session, *with_vacuum(table, source, number)) for table in ("grown_alone", "grown_indexed")])
    show_spent(name, pairs, *goals)
    note("  slabs, rows", session.ask("SELECT slabs, rows FROM bloomslices_info('grown_indexed_f')")[0])


def make_grown(session):
    session.ask("DROP TABLE IF EXISTS grown_alone, grown_indexed")
    for table in "grown_alone", "grown_indexed":
        session.ask("CREATE TABLE %s (f bloomfilter) %s" % (table, TOASTED))
    index(session, "grown_indexed")


COPIED = "SELECT f FROM %s WHERE id = 1 + n %% %d"


@part
def adding(session):
    heading("adding %d sets of %d keys at 1 %%, with merges, filters with bloomslices : filters alone" % (GROWN, KEYS))
    need(session, "ready")
    make_grown(session)
    session.ask("CREATE INDEX ready_id ON ready (id)")
    goals = "<= 2.0", "<= 4"
    grow(session, "copied from a table of filters", COPIED % ("ready", SOME), GROWN, goals)
    grow(session, "built from its keys", "VALUES (%s)" % filter_of("n", KEYS, 0.01), GROWN, goals)
    session.ask("DROP INDEX ready_id")


@part
def adding_large(session):
    heading("adding %d sets of %d keys at 1 %%, with merges, filters with bloomslices : filters alone" % (GROWN_LARGE, LARGE))
    make_grown(session)
    make_filters(session, "ready_large", READY_LARGE, LARGE, 0.01)
    grow(session, "copied from a table of filters", COPIED % ("ready_large", READY_LARGE), GROWN_LARGE, ("<= 2.0", "<= 3.5"))
    session.ask("DROP TABLE ready_large, grown_alone, grown_indexed")


# At least so many of many keys

LETTERS = 31  # of a key, as the search for genes has them
QUERIES = 100  # of a turn
# How the processor's work is shared does not depend on the letters.
ALPHABET = bytes(b"ACGT"[byte & 3] for byte in range(256))


def text_of(random_source, number):
    """Text in which that many keys begin."""
    return random_source.randbytes(number + LETTERS - 1).translate(ALPHABET).decode()


def make_documents(session, directory, texts):
    session.ask("CREATE TABLE documents (id int, bytes bytea) " + TOASTED)
    session.copy("documents", ((str(number), "\\x" + text.encode().hex()) for number, text in enumerate(texts)))
    os.mkdir(directory)
    for number, text in enumerate(texts):
        with open("%s/%d.txt" % (directory, number), "w") as file:
            file.write(text)


def make_queries(session, directory, texts, random_source):
    """Each turn's queries as a table and as a file. The text of each is in one document."""
    session.ask("CREATE TABLE queries (turn int, keys text[])")
    for turn in range(TURNS + 1):
        wanted = []
        for _ in range(QUERIES):
            start = random_source.randrange(KEYS - ASKED)
            wanted.append(random_source.choice(texts)[start:start + ASKED + LETTERS - 1])
        session.copy("queries", ((str(turn), "{%s}" % ",".join(text[i:i + LETTERS] for i in range(ASKED))) for text in wanted))
        for name, chosen in ("all", wanted), ("one", wanted[:1]):
            with open("%s/%s_%d" % (directory, name, turn), "w") as file:
                file.writelines(">%d\n%s\n" % query for query in enumerate(chosen))


def make_kmer_filters(session, rate):
    """The filters of the documents and their index, and a function that asks a turn's queries. Returns k."""
    session.ask("DROP TABLE IF EXISTS filters_of_texts")
    session.ask("CREATE TABLE filters_of_texts %s AS SELECT id, (SELECT bloom_agg(convert_from(substr(bytes, j, %d), 'UTF8'), "
                "%d, %g) FROM generate_series(1, %d) AS j) AS f FROM (SELECT id, bytes || '' AS bytes FROM documents OFFSET 0) AS d"
                % (TOASTED, LETTERS, KEYS, rate, KEYS))  # fmt: skip
    index(session, "filters_of_texts")
    session.ask("VACUUM ANALYZE filters_of_texts")
    return int(session.ask("SELECT hashes FROM bloomslices_info('filters_of_texts_f')")[0])


AT_LEAST = "SELECT id FROM filters_of_texts WHERE bloom_contains_least(f, %%s, %d)" % LEAST


def make_least_loop(session):
    session.ask("PREPARE asking (text[]) AS " + AT_LEAST % "$1")
    expect(session, "EXECUTE asking ('{a}')", "Index Scan", "filters_of_texts_f")
    session.ask("DEALLOCATE asking")
    session.ask("""
CREATE OR REPLACE FUNCTION ask_least(asked int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  query record;
  found bigint;
  total bigint := 0;
BEGIN
  FOR query IN SELECT keys FROM queries WHERE turn = asked LOOP
    PERFORM %s;
    GET DIAGNOSTICS found = ROW_COUNT;
    total := total + found;
  END LOOP;
  RETURN total;
END $$""" % (AT_LEAST % "query.keys").removeprefix("SELECT "))


def run_cobs(cobs, *arguments):
    """The seconds, those of the processor, and the number of results."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    run = subprocess.run([cobs, *arguments], check=True, text=True, capture_output=True)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    found = sum(map(int, re.findall(r"^\*.*\t(\d+)$", run.stdout, re.M)))
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, found


def cobs_query(cobs, directory, turn):
    """The same for one query, without what the program does once. Its own timer leaves out that it counts."""
    arguments = ["query", "--index", directory + "/index.cobs_classic", "--threshold", str(LEAST / ASKED), "--load-complete",
                 "--threads", "1", "--file"]  # fmt: skip
    *once, _ = run_cobs(cobs, *arguments, "%s/one_%d" % (directory, turn))
    *times, found = run_cobs(cobs, *arguments, "%s/all_%d" % (directory, turn))
    return *((figure - first) / (QUERIES - 1) for figure, first in zip(times, once)), found


def compare_with_cobs(session, cobs, directory, rate):
    hashes = make_kmer_filters(session, rate)
    run_cobs(cobs, "classic-construct", "--file-type", "text", "--num-hashes", str(hashes), "--false-positive-rate", str(rate),
             "--term-size", str(LETTERS), "--no-canonicalize", "--clobber", "--memory", "1Gi", "--threads", "1",
             directory + "/documents", directory + "/index.cobs_classic")  # fmt: skip
    with Session(*GENERIC) as asking:
        make_least_loop(asking)
        pairs = []
        for turn in range(TURNS + 1):
            *base, exact = cobs_query(cobs, directory, turn)
            ask = "SELECT ask_least(%d)" % turn
            found = int(asking.ask(ask)[0])
            if found != exact:
                raise SystemExit("bloomslices finds %d rows, COBS %d" % (found, exact))
            pairs.append((base, [figure / QUERIES for figure in timed(asking, ask)]))
    show_times("rate %g, %d hash functions" % (rate, hashes), pairs[1:], "<= 2")
    note("  sets found for a query", "%.3g" % (exact / QUERIES))


@part
def least(session):
    heading("at least %d of %d keys of %d letters, %d sets of %d keys, bloomslices : COBS"
            % (LEAST, ASKED, LETTERS, SOME, KEYS))  # fmt: skip
    cobs = os.environ.get("COBS")
    if not cobs:
        note("left out: COBS is not given", "")
        return
    random_source = random.Random(1)
    texts = [text_of(random_source, KEYS) for _ in range(SOME)]
    with tempfile.TemporaryDirectory() as directory:
        make_documents(session, directory + "/documents", texts)
        make_queries(session, directory, texts, random_source)
        for rate in 0.01, 0.001:
            compare_with_cobs(session, cobs, directory, rate)
    session.ask("DROP TABLE documents, queries, filters_of_texts")


# Superimposed codes

# Fingerprints share 11 features in groups of about 500, and have 29 others of 8,192.
FINGERPRINT = """
CREATE TABLE fingerprints {0} AS
  SELECT i::int AS id, (SELECT bloom_agg(CASE WHEN j <= 11 THEN i % {1} * 11 + j
                                         ELSE -1 - (hashint8extended(i * 64 + j, 0) & 8191) END, 200)
                        FROM generate_series(1, 40) AS j) AS f
  FROM generate_series(1, {2}::bigint) AS i
"""


def codes(session, groups):
    """A filter of the bits that a group shares, for each turn, and the number of its bits."""
    return session.rows("SELECT g, bits_set FROM (SELECT bloom_intersect_agg(f) AS g FROM fingerprints WHERE id %% %d <= %d "
                        "GROUP BY id %% %d) AS c, bloom_info(g)" % (groups, TURNS, groups))  # fmt: skip


def superset_times(scan, session, sql):
    """The times of both and the number of rows."""
    expect(scan, sql, "Seq Scan")
    expect(session, sql, "fingerprints_f")
    (exact,), (found,) = scan.ask(sql), session.ask(sql)
    if found != exact:
        raise SystemExit("bloomslices finds %s rows, the scan %s" % (found, exact))
    return (timed(scan, sql), timed(session, sql)), int(found)


@part
def supersets(session):
    groups = max(FINGERPRINTS // 500, TURNS + 1)
    session.ask(FINGERPRINT.format(TOASTED, groups, FINGERPRINTS))
    index(session, "fingerprints")
    session.ask("VACUUM ANALYZE fingerprints")
    heading("f @>= g, %d fingerprints of %s bits, bloomslices : sequential scan"
            % (FINGERPRINTS, session.ask("SELECT bits FROM bloomslices_info('fingerprints_f')")[0]))  # fmt: skip
    asked = codes(session, groups)
    with Session(*SETTINGS, "enable_indexscan = off", "enable_bitmapscan = off") as scan:
        pairs, matches = zip(*[superset_times(scan, session, "SELECT count(*) FROM fingerprints WHERE f @>= '%s'" % code)
                               for code, _ in asked])  # fmt: skip
    show_times("g of " + ", ".join(bits for _, bits in asked) + " bits", pairs[1:], "<= 1/30")
    note("  matches", ", ".join(map(str, matches)))
    session.ask("DROP TABLE fingerprints")


def main():
    os.environ["PGOPTIONS"] = ("-c client_min_messages=warning -c search_path=bench_slices,public -c maintenance_work_mem="
                               + MAINTENANCE + " " + " ".join("-c " + s.replace(" ", "") for s in GENERIC))  # fmt: skip
    session = Session(*SETTINGS)
    session.ask("DROP SCHEMA IF EXISTS bench_slices CASCADE; CREATE SCHEMA bench_slices")
    for name in os.environ.get("SLICES", "").split() or PARTS:
        PARTS[name](session)
    session.ask("DROP SCHEMA bench_slices CASCADE")


main()
