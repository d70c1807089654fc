#!/usr/bin/python3
"""Bloomsets, against B-trees, stored filters and bloom_agg; and whether plans gain by scanning one.

Connects as psql does, as a superuser, to an empty database with bloomtype in it, and runs pgbench. ROWS is the number
of rows of the large tables; all other sizes are in proportion to it, but there are at most 365 partitions. The goals
are for 10 million. BLOOMSET names the parts to run, by their functions; by default all. The server should write no
full-page images, or the WAL of an INSERT depends on when the last checkpoint was. All plans are serial unless their row
says otherwise. ratios.py explains the tables.
"""
import os

from measure import Session, pgbench, rows
from ratios import (PARTS, SETTINGS, TURNS, compare, expect, fraction, heading, kilobytes, milliseconds, note, part, show,
                    show_spent, show_times, spent, spent_by_turns, timed)  # fmt: skip

ROWS = rows()
MANY = ROWS // 10  # rows of an INSERT, of the tables of look-ups, absent keys of a rate
ASKED = ROWS // 20  # keys of a query
FEW = ROWS // 100  # what a set that grows was made for
TRANSACTIONS = max(ROWS // 500, 200)
PARTITIONS = max(10, min(365, ROWS // 1000))
# Each partition answers with the rate asked for, so that an absent key is a false positive somewhere in 0.4 % of cases.
RATE_OF_PARTITION = 1e-5

BY_INDEX = SETTINGS + ("enable_hashjoin = off", "enable_mergejoin = off", "enable_bitmapscan = off", "enable_memoize = off")

# The keys i > 0 are in tables, keys i < 0 are in none. Two of 10 million are equal with probability 3e-6.
KEY = "hashint8extended(%s, 0)"
SOURCES = """
CREATE UNLOGGED TABLE source AS SELECT i, {key} AS k FROM generate_series(1, {rows}::bigint) AS i;
CREATE UNLOGGED TABLE texts AS SELECT md5(i::text) AS k FROM generate_series(1, {many}) AS i;
CREATE UNLOGGED TABLE absent AS SELECT {absent} AS k FROM generate_series(1, {many}::bigint) AS i;
""".format(key=KEY % "i", absent=KEY % "-i", rows=ROWS, many=MANY)  # fmt: skip
QUIET = "WITH (autovacuum_enabled = off)"


def scanned(session, sql):
    """The scans of a plan, in short."""
    scans = [node["Index Name"] if "Index Name" in node else node["Node Type"] for node in session.explain(sql)
             if "Scan" in node["Node Type"] or node["Node Type"] == "BitmapAnd"]  # fmt: skip
    return ", ".join(scan for scan in scans if scan != "Bitmap Heap Scan")


# INSERT of many rows in one statement

@part
def inserts(session):
    heading("INSERT of %d rows, bloomset : B-tree" % MANY)
    made = "expected_items = %d" % MANY
    for name, column, source, options in (
            ("bigint, random", "bigint", "SELECT k FROM source LIMIT %d" % MANY, made),
            ("bigint, random, set made for 10,000", "bigint", "SELECT k FROM source LIMIT %d" % MANY, "expected_items = 10000"),
            ("bigint, ascending", "bigint", "SELECT i FROM source LIMIT %d" % MANY, made),
            ("text of 32 bytes, random", "text", "SELECT k FROM texts", made)):  # fmt: skip
        for table, index in ("with_btree", "btree (k)"), ("with_set", "bloomset (k) WITH (%s)" % options):
            session.ask("CREATE TABLE %s (k %s) %s" % (table, column, QUIET))
            session.ask("CREATE INDEX ON %s USING %s" % (table, index))
        pairs = spent_by_turns(session, "INSERT INTO with_btree " + source, "INSERT INTO with_set " + source,
                               "TRUNCATE with_btree, with_set")  # fmt: skip
        show_spent(name, pairs, "<= 0.6", "<= 1.0")
        session.ask("DROP TABLE with_btree, with_set")


@part
def inserts_of_known_values(session):
    heading("INSERT of %d rows whose values are there, bloomset : no index" % MANY)
    source = "SELECT k FROM source LIMIT %d" % MANY
    for table in "without", "with_set":
        session.ask("CREATE TABLE %s (k bigint) %s" % (table, QUIET))
        session.ask("INSERT INTO %s %s" % (table, source))
    session.ask("CREATE INDEX ON with_set USING bloomset (k)")
    pairs = spent_by_turns(session, "INSERT INTO without " + source, "INSERT INTO with_set " + source)
    show_spent("bigint, random", pairs, "<= 1.3", "<= 1.0")
    session.ask("DROP TABLE without, with_set")


# Transactions of one row

NEW_KEY = "\\set key random(1, 4611686018427387904)\n"


def by_pgbench(session, base, work, transactions, clients=1, protocol="prepared"):
    """Pairs of the seconds and the bytes of WAL of one transaction; transactions has the number of each."""
    return [tuple(pgbench(session, script, number, clients, protocol) for script, number in zip((base, work), transactions))
            for _ in range(TURNS)]  # fmt: skip


@part
def transactions(session):
    heading("transactions of one row, B-tree : bloomset, ratio of transactions a second; WAL, bloomset : B-tree")
    source = "SELECT k FROM source LIMIT %d" % MANY
    insert = NEW_KEY + "INSERT INTO %s VALUES (:key);\n"
    for table, index in ("with_btree", "btree (k)"), ("with_set", "bloomset (k) WITH (expected_items = %d)" % (2 * MANY)):
        session.ask("CREATE TABLE %s (k bigint) %s" % (table, QUIET))
        session.ask("INSERT INTO %s %s" % (table, source))
        session.ask("CREATE INDEX ON %s USING %s" % (table, index))
    for clients in 1, 4:
        pairs = by_pgbench(session, insert % "with_btree", insert % "with_set", (TRANSACTIONS, TRANSACTIONS), clients)
        show("INSERT of a bigint, random, %d rows before, %d clients" % (MANY, clients),
             [(base[0], work[0]) for base, work in pairs], milliseconds, ">= 1.0", inverse=True)  # fmt: skip
        show("  its WAL", [(base[1], work[1]) for base, work in pairs], lambda number: "%.0f" % number)
    loop = "DO $$ BEGIN FOR i IN 1 .. %d LOOP INSERT INTO %%s VALUES (%s); COMMIT; END LOOP; END $$" % (
        TRANSACTIONS, KEY % "(random() * 1e15)::bigint")  # fmt: skip
    pairs = spent_by_turns(session, loop % "with_btree", loop % "with_set")
    show_times("%d of them by a loop in the server" % TRANSACTIONS, pairs, ">= 1.0", inverse=True)
    session.ask("DROP TABLE with_btree, with_set")


@part
def one_key(session):
    heading("adding one key in a transaction, INSERT with bloomset : UPDATE ... bloom_add, %d elements" % MANY)
    half = "SELECT k FROM source LIMIT %d" % (MANY // 2)
    session.ask("CREATE TABLE filters %s AS SELECT 1 AS n, (SELECT bloom_agg(k, %d) FROM (%s) AS h) AS f" % (QUIET, MANY, half))
    session.ask("ALTER TABLE filters ADD PRIMARY KEY (n), SET (toast.autovacuum_enabled = off)")
    session.ask("CREATE TABLE with_set (k bigint) %s; INSERT INTO with_set %s" % (QUIET, half))
    session.ask("CREATE INDEX ON with_set USING bloomset (k) WITH (expected_items = %d)" % MANY)
    note("bytes of the filter, of the bloomset", ", ".join(session.ask(
        "SELECT bloom_bytes(%d, 0.01) UNION ALL SELECT pg_indexes_size('with_set')" % MANY)))  # fmt: skip
    for clients in 1, 4:
        pairs = by_pgbench(session, NEW_KEY + "UPDATE filters SET f = bloom_add(f, :key::bigint) WHERE n = 1;\n",
                           NEW_KEY + "INSERT INTO with_set VALUES (:key);\n", (100, TRANSACTIONS), clients)  # fmt: skip
        show("bigint, random, %d clients" % clients, [(base[0], work[0]) for base, work in pairs], milliseconds, "<= 1/100")
        show("  its WAL", [(base[1], work[1]) for base, work in pairs], lambda number: "%.0f" % number, "<= 1/1000")
        session.ask("VACUUM filters")
    session.ask("DROP TABLE filters, with_set")


# Size, build, and many keys in one query

def make_tables(session):
    """Tables of many and of all rows, each with a B-tree, and filters of them."""
    session.ask("CREATE TABLE stored (n bigint, f bloomfilter)")
    for name, number in ("some_rows", MANY), ("all_rows", ROWS):
        session.ask("CREATE TABLE %s (k bigint) %s; INSERT INTO %s SELECT k FROM source LIMIT %d" % (name, QUIET, name, number))
        session.ask("CREATE INDEX %s_btree ON %s (k)" % (name, name))
        session.ask("VACUUM ANALYZE " + name)
        session.ask("INSERT INTO stored SELECT {0}, bloom_agg(k, {0}) FROM {1}".format(number, name))
    session.ask("CREATE TABLE asked_absent AS SELECT k FROM absent LIMIT %d" % ASKED)
    session.ask("CREATE TABLE asked_half AS (SELECT k FROM some_rows LIMIT {0}) UNION ALL (SELECT k FROM absent LIMIT {0})"
                .format(ASKED // 2))  # fmt: skip
    for table in "stored", "asked_absent", "asked_half":
        session.ask("VACUUM ANALYZE " + table)


@part
def builds(session):
    heading("build of %d rows, bloomset : bloom_agg" % ROWS)
    parallel = Session(*SETTINGS, "max_parallel_workers_per_gather = 2", "max_parallel_maintenance_workers = 2")
    for name, arguments, options, goal, by in (
            ("size given", ", %d" % ROWS, " WITH (expected_items = %d)" % ROWS, "<= 1.5", session),
            ("size found from the rows", "", "", "<= 1.5", session),
            ("size found from the rows, two workers", "", "", "", parallel)):  # fmt: skip
        aggregate = "SELECT bloom_agg(k%s) IS NULL FROM all_rows" % arguments
        create = "CREATE INDEX built ON all_rows USING bloomset (k)" + options
        by.ask(aggregate)  # warm up
        pairs = []
        for _ in range(TURNS):
            pairs.append((timed(by, aggregate), timed(by, create)))
            by.ask("DROP INDEX built")
        show_times(name, pairs, goal)
    pairs = []
    for _ in range(TURNS):
        pairs.append((timed(session, "CREATE INDEX built_btree ON all_rows (k)"), timed(session, create)))
        session.ask("DROP INDEX built, built_btree")
    show_times("size found from the rows : build of a B-tree", pairs)


def make_sets(session):
    for name in "some_rows", "all_rows":
        session.ask("CREATE INDEX IF NOT EXISTS {0}_set ON {0} USING bloomset (k)".format(name))


@part
def bytes_of_indexes(session):
    heading("bytes, bloomset of 1 % : B-tree, bigint")
    make_sets(session)
    for name, number in ("some_rows", MANY), ("all_rows", ROWS):
        sizes = tuple(int(session.ask("SELECT pg_relation_size('%s_%s')" % (name, kind))[0]) for kind in ("btree", "set"))
        show("%d rows" % number, [sizes], kilobytes, "<= 1/17")


CONTAINS = "SELECT count(*) FROM %s AS a WHERE bloomset_contains('%s', 'k', a.k)"
EXISTS = "SELECT count(*) FROM %s AS a WHERE EXISTS (SELECT FROM %s AS t WHERE t.k = a.k)"
STORED = "SELECT count(*) FROM %s AS a WHERE (SELECT f FROM stored WHERE n = %d) @> a.k"


@part
def many_keys(session):
    heading("%d keys in one query, bloomset_contains : baseline" % ASKED)
    make_sets(session)
    by_index = Session(*BY_INDEX)
    for table, number in ("some_rows", MANY), ("all_rows", ROWS):
        for name, asked in ("absent", "asked_absent"), ("half of them there", "asked_half"):
            where = "%s, %d rows" % (name, number)
            expect(by_index, EXISTS % (asked, table), "%s_btree" % table, "Index Only Scan")
            compare("EXISTS by the B-tree, " + where, EXISTS % (asked, table), CONTAINS % (asked, table), "<= 0.3",
                    session=by_index, other=session)  # fmt: skip
            compare("EXISTS as the planner chooses, " + where, EXISTS % (asked, table), CONTAINS % (asked, table),
                    session=session)  # fmt: skip
            compare("stored_filter @> x, " + where, STORED % (asked, number), CONTAINS % (asked, table), "<= 1.3",
                    session=session)  # fmt: skip
            compare("count(*) over the keys, " + where, "SELECT count(*) FROM %s AS a WHERE a.k <> 0" % asked,
                    CONTAINS % (asked, table), session=session)  # fmt: skip


@part
def a_better_btree(session):
    """What a bloomset costs a query that another index answers."""
    heading("look-up by a B-tree, with a bloomset beside it : without")
    make_sets(session)
    session.ask("CREATE TABLE only_btree %s AS SELECT k FROM some_rows" % QUIET)
    session.ask("CREATE INDEX only_btree_k ON only_btree (k)")
    session.ask("VACUUM ANALYZE only_btree")
    expect(session, "SELECT FROM some_rows WHERE k = 5", "some_rows_btree")
    look_up = NEW_KEY + "SELECT EXISTS (SELECT FROM %s WHERE k = :key::bigint);\n"
    for protocol in "simple", "prepared":
        pairs = by_pgbench(session, look_up % "only_btree", look_up % "some_rows", (TRANSACTIONS, TRANSACTIONS), protocol=protocol)
        show("absent key, %s protocol of pgbench" % protocol, [(base[0], work[0]) for base, work in pairs], milliseconds)
    session.ask("DROP TABLE only_btree")


# Partitions

def make_partitions(session):
    for table in "days_btree", "days_set", "days_plain":
        session.ask("CREATE TABLE %s (day int, k bigint) PARTITION BY LIST (day)" % table)
        for day in range(PARTITIONS):
            session.ask("CREATE TABLE %s_%d PARTITION OF %s FOR VALUES IN (%d) %s" % (table, day, table, day, QUIET))
        session.ask("INSERT INTO %s SELECT i %% %d, k FROM source LIMIT %d" % (table, PARTITIONS, MANY))
    session.ask("CREATE INDEX ON days_btree (k)")
    session.ask("CREATE INDEX ON days_set USING bloomset (k) WITH (false_positive_rate = %g)" % RATE_OF_PARTITION)
    for table in "days_btree", "days_set", "days_plain":
        session.ask("VACUUM ANALYZE " + table)


@part
def partitions(session):
    heading("absent key in %d partitions, bloomset : the query by B-trees" % PARTITIONS)
    make_partitions(session)
    query = NEW_KEY + "SELECT day FROM %s WHERE k = :key::bigint;\n"
    contains = NEW_KEY + "SELECT bloomset_contains('days_set', 'k', :key::bigint);\n"
    found = NEW_KEY + "SELECT count(*) FROM bloomset_partitions('days_set', 'k', :key::bigint);\n"
    # the first query of a client reads the catalog, which many transactions hide
    slow, few, number = (max(TRANSACTIONS // share, 20) for share in (400, 100, 10))
    for protocol in "simple", "prepared":
        for clients in 1, 4:
            pairs = by_pgbench(session, query % "days_btree", contains, (few * clients, number), clients, protocol)
            show("bloomset_contains, %s protocol of pgbench, %d clients" % (protocol, clients),
                 [(base[0], work[0]) for base, work in pairs], milliseconds, "<= 0.05")  # fmt: skip
    for name, work, base, numbers in (
            ("bloomset_partitions", found, "days_btree", (few, number)),
            ("the query by bloomsets", query % "days_set", "days_btree", (few, few)),
            ("the query by bloomsets : without index", query % "days_set", "days_plain", (slow, few))):  # fmt: skip
        for protocol in "simple", "prepared":
            pairs = by_pgbench(session, query % base, work, numbers, protocol=protocol)
            show("%s, %s" % (name, protocol), [(base[0], work[0]) for base, work in pairs], milliseconds)
    fresh = [(Session(*SETTINGS).seconds("SELECT day FROM days_btree WHERE k = 5"),
              Session(*SETTINGS).seconds("SELECT bloomset_contains('days_set', 'k', 5::bigint)"))
             for _ in range(TURNS)]  # fmt: skip
    show("bloomset_contains, first query of a session", fresh, milliseconds)
    session.ask("DROP TABLE days_btree, days_set, days_plain")


# Growth

@part
def growth(session):
    heading("%d rows into a set made for %d" % (ROWS, FEW))
    load = "INSERT INTO %s SELECT k FROM source"
    sets = {"presized": ROWS, "grown": FEW}
    pairs, rates = [], []
    for seed in range(1, TURNS + 1):
        for table, items in sets.items():
            session.ask("DROP TABLE IF EXISTS {0}; CREATE TABLE {0} (k bigint) {1}".format(table, QUIET))
            session.ask("CREATE INDEX {0}_set ON {0} USING bloomset (k) WITH (expected_items = {1}, seed = {2})"
                        .format(table, items, seed))  # fmt: skip
        session.ask("CHECKPOINT")
        pairs.append(tuple(spent(session, load % table) for table in sets))
        rates.append([int(session.ask(CONTAINS % ("absent", table))[0]) / MANY for table in sets])
    show_spent("the load, grown : made for them all", pairs, "<= 1.5")
    show("rate of the grown set by %d absent keys : asked for" % MANY, [(0.01, grown) for _, grown in rates], fraction, "<= 1.0")
    show("rate of the set made for them all : asked for", [(0.01, presized) for presized, _ in rates], fraction)
    sizes = tuple(int(session.ask("SELECT pg_relation_size('%s_set')" % table)[0]) for table in sets)
    show("bytes, grown : made for them all", [sizes], kilobytes)
    note("bloomset_info of the grown set", session.ask("SELECT bloomset_info('grown_set')")[0])
    compare("%d absent keys, grown : made for them all" % ASKED, CONTAINS % ("asked_absent", "presized"),
            CONTAINS % ("asked_absent", "grown"), session=session)  # fmt: skip
    session.ask("DROP TABLE presized, grown")


# Scans

SCANNED = """
CREATE TABLE {table} WITH (autovacuum_enabled = off)
  AS SELECT k, (i * 7919 % 100)::int AS a, i AS t, repeat('x', 60) AS filler FROM source LIMIT {many};
CREATE INDEX {table}_a ON {table} (a);
CREATE INDEX {table}_t ON {table} (t)
"""
# %s is a key that is absent, or one that is there.
CONDITIONS = {
    "k = {key}": "k = %s",
    "k IN ({key}, 4 absent)": "k IN (%s, " + ", ".join(KEY % -i for i in range(2, 6)) + ")",
    "k = {key}, a = 7 (1 % of the rows)": "k = %s AND a = 7",
    "k = {key}, t in a range of 1 %": "k = %s AND t BETWEEN {0} AND {0} + {1}".format(MANY // 2, MANY // 100),
    "k = {key}, t in a range of 30 %": "k = %s AND t BETWEEN {0} AND {0} + {1}".format(MANY // 2, MANY * 3 // 10),
    "k = {key} OR a = 7": "k = %s OR a = 7",
}


def scan(session, name, sql):
    """Compares a query on two tables that differ by the bloomset, and shows the plan on the one that has it."""
    compare(name, sql % "scanned_plain", sql % "scanned_set", session=session)
    note("", "%s : %s" % (scanned(session, sql % "scanned_set"), scanned(session, sql % "scanned_plain")))


@part
def scans(session):
    heading("count(*) of %d rows, B-trees on a and t; with a bloomset on k : without it" % MANY)
    for table in "scanned_plain", "scanned_set":
        session.ask(SCANNED.format(table=table, many=MANY))
    session.ask("CREATE INDEX scanned_k ON scanned_set USING bloomset (k)")
    for table in "scanned_plain", "scanned_set":
        session.ask("VACUUM ANALYZE " + table)
    absent, there = (session.ask("SELECT k FROM %s LIMIT 1" % table)[0] for table in ("absent", "source"))
    for condition, where in CONDITIONS.items():
        for name, key in ("absent", absent), ("there", there):
            scan(session, condition.format(key=name), "SELECT count(*) FROM %%s WHERE %s" % (where % ("'%s'::bigint" % key)))
    generic_plans(session, absent, there)
    session.ask("CREATE TABLE hundred AS SELECT k FROM absent LIMIT 100; ANALYZE hundred")
    scan(session, "join with 100 absent keys", "SELECT count(*) FROM hundred AS h JOIN %s AS s ON s.k = h.k")
    session.ask("DROP TABLE scanned_plain, scanned_set, hundred")


def generic_plans(session, absent, there):
    """The planner does not know the key."""
    generic = Session(*SETTINGS, "plan_cache_mode = force_generic_plan")
    for number, (condition, where) in enumerate(CONDITIONS.items()):
        for table in "scanned_plain", "scanned_set":
            generic.ask("PREPARE %s_%d (bigint) AS SELECT count(*) FROM %s WHERE %s" % (table, number, table, where % "$1"))
        for name, key in ("absent", absent), ("there", there):
            scan(generic, "generic plan, " + condition.format(key=name), "EXECUTE %%s_%d ('%s')" % (number, key))


def main():
    os.environ["PGOPTIONS"] = "-c client_min_messages=warning -c search_path=bench_bloomset,public"
    session = Session(*SETTINGS)
    session.ask("DROP SCHEMA IF EXISTS bench_bloomset CASCADE; CREATE SCHEMA bench_bloomset")
    session.ask(SOURCES)
    for table in "source", "texts", "absent":
        session.ask("VACUUM ANALYZE " + table)
    make_tables(session)
    for name in os.environ.get("BLOOMSET", "").split() or PARTS:
        PARTS[name](session)
    session.ask("DROP SCHEMA bench_bloomset CASCADE")


main()
