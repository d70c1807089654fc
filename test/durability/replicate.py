"""Logical replication between two servers, of one release or of two: the initial copy, and every kind of change,
in text and in binary form.
"""

from durable import ELEMENTS, DATABASE, lost_elements, manifest, setup
from tap import note, ok, same

# One table with a key, one whose rows are found by comparing all columns, one the same in arrays, a composite
# value and a domain, and one whose filters are found through a hash index.
SCHEMA = """
CREATE EXTENSION bloomtype;
CREATE TYPE named AS (name text, f bloomfilter);
CREATE DOMAIN blocked AS bloomfilter CHECK ((bloom_info(VALUE)).layout = 'blocked');
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'über');
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE TABLE keyed (id integer PRIMARY KEY, type text, first integer, n integer, touched integer, f bloomfilter);
CREATE TABLE whole (id integer, type text, first integer, n integer, touched integer, f bloomfilter);
ALTER TABLE whole REPLICA IDENTITY FULL;
CREATE TABLE nested (id integer, type text, first integer, n integer, touched integer, f blocked, c named,
    fs bloomfilter[], cs named[]);
ALTER TABLE nested REPLICA IDENTITY FULL;
CREATE TABLE hashed (f bloomfilter, type text, first integer, n integer);
ALTER TABLE hashed REPLICA IDENTITY FULL;
CREATE INDEX ON hashed USING hash (f);
CREATE TABLE counted (id integer PRIMARY KEY, type text, first integer, n integer, touched integer, c bloomcounter);
CREATE TABLE counted_whole (id integer, type text, first integer, n integer, touched integer, c bloomcounter);
ALTER TABLE counted_whole REPLICA IDENTITY FULL;
"""
TABLES = ["keyed", "whole", "nested", "hashed", "counted", "counted_whole"]

# Filters, and counters.
PLACES = {
    "keyed": "SELECT id, type, first, n, f FROM keyed",
    "whole": "SELECT id, type, first, n, f FROM whole",
    "domain": "SELECT id, type, first, n, f FROM nested",
    "composite": "SELECT id, type, first, n, (c).f FROM nested",
    "array": "SELECT id, type, first, n, fs[2] FROM nested",
    "array of composites": "SELECT id, type, first, n, cs[1].f FROM nested",
    "hashed": "SELECT row_number() OVER (ORDER BY type, first, n, f::bytea), type, first, n, f FROM hashed",
}, {
    "counted": "SELECT id, type, first, n, c FROM counted",
    "counted whole": "SELECT id, type, first, n, c FROM counted_whole",
}

# Each statement is a transaction.
FILL = """
INSERT INTO keyed SELECT DISTINCT ON (id) id, type, first, n, 0, f FROM filters WHERE {which} ORDER BY id;
INSERT INTO whole SELECT id, type, first, n, 0, f FROM keyed WHERE {which};
INSERT INTO nested SELECT id, type, first, n, 0, f, (type, f)::named, ARRAY[NULL, f], ARRAY[(NULL, f)]::named[]
    FROM keyed WHERE {which} AND (bloom_info(f)).layout = 'blocked' AND id % 3 = 0;
INSERT INTO hashed SELECT f, type, first, n FROM keyed WHERE {which} AND n < 1000 AND id % 3 = 0;
INSERT INTO counted SELECT DISTINCT ON (id) id, type, first, n, 0, c FROM counters WHERE {which} ORDER BY id;
INSERT INTO counted_whole SELECT * FROM counted WHERE {which};
"""

# Unchanged filters, inline and out of line; changed filters; filters that come, go and change places; deleted rows.
CHANGES = [
    ("rows are updated, their filters are not",
     "UPDATE {table} SET touched = 1 WHERE id % 2 = 0"),
    ("elements are added",
     "UPDATE {table} SET touched = 2, n = n + 10, f = (SELECT bloom_agg({integer}, f) "
     "FROM generate_series(first + n, first + n + 9) AS i) WHERE type = 'integer'"),
    ("the same element is added again",
     "UPDATE {table} SET touched = 3, f = bloom_add(f, {integer_first}) WHERE type = 'integer'"),
    ("filters are replaced by those of other rows, and by null",
     "UPDATE {table} AS t SET touched = 4, f = o.f, type = o.type, first = o.first, n = o.n FROM {table} AS o "
     "WHERE o.id = t.id + 3 AND t.id % 5 = 0; "
     "UPDATE {table} SET f = NULL, type = NULL WHERE id % 31 = 0"),
    ("rows are deleted, and some come again",
     "CREATE TEMPORARY TABLE gone AS SELECT * FROM {table} WHERE id % 7 = 0; DELETE FROM {table} WHERE id % 7 = 0; "
     "INSERT INTO {table} SELECT * FROM gone WHERE id % 2 = 0; DROP TABLE gone"),
    ("a transaction that is rolled back, in part and as a whole",
     "BEGIN; UPDATE {table} SET f = NULL; ROLLBACK; BEGIN; SAVEPOINT a; DELETE FROM {table}; ROLLBACK TO a; "
     "UPDATE {table} SET touched = 5 WHERE id % 11 = 0; COMMIT"),
    ("a large transaction, sent while it is under way",
     "BEGIN; UPDATE {table} SET f = f | f, touched = 6; UPDATE {table} SET touched = 7; COMMIT"),
]

# Elements come and go as often as stored_counters.TIMES says. Nothing is removed from a counter at the limit: it would stay.
COUNTS = "t.type = 'integer' AND t.n > 0 AND (bloom_info(t.c)).contents = 'counts'"
COUNTER_CHANGES = [
    ("rows are updated, their counters are not",
     "UPDATE {table} SET touched = 1 WHERE id % 2 = 0"),
    ("elements are added",
     "UPDATE {table} SET touched = 2, n = n + 1, c = bloom_add(c, {next}, 1 + (first + n) % 3) "
     "WHERE type = 'integer' AND n > 0"),
    ("elements are removed",
     "UPDATE {table} AS t SET touched = 3, n = n - 1, c = bloom_remove(c, {last}, 1 + (first + n - 1) % 3) "
     f"WHERE {COUNTS}"),
    ("counters are added and subtracted",
     f"UPDATE {{table}} AS t SET touched = 4, c = c + c WHERE {COUNTS}; "
     "UPDATE {table} AS t SET touched = 5, c = t.c - s.c FROM counters AS s "
     f"WHERE s.storage = 'external' AND s.id = t.id AND {COUNTS}"),
    ("levels are raised and decay", "UPDATE {table} SET touched = 6, n = 1, first = 1, type = 'integer', "
     "c = bloom_decay(bloom_raise(c, 3, 7), 4) WHERE type = 'integer' AND n > 0"),
    ("counters are replaced by those of other rows, and by null",
     "UPDATE {table} AS t SET touched = 7, c = o.c, type = o.type, first = o.first, n = o.n FROM {table} AS o "
     "WHERE o.id = t.id + 3 AND t.id % 5 = 0; UPDATE {table} SET c = NULL, type = NULL WHERE id % 31 = 0"),
    ("counters are deleted", "DELETE FROM {table} WHERE id % 7 = 0"),
    ("a large transaction over counters",
     "BEGIN; UPDATE {table} SET c = c | c, touched = 8; UPDATE {table} SET touched = 9; COMMIT"),
]


def statements_of(text):
    return filter(None, map(str.strip, text.split(";")))


def caught_up(publisher, subscriber):
    lsn = publisher.value("SELECT pg_current_wal_flush_lsn()")
    publisher.poll(f"SELECT replay_lsn >= '{lsn}' FROM pg_stat_replication WHERE application_name = 'durability'")
    assert subscriber.value("SELECT count(*) FROM pg_stat_subscription WHERE pid IS NOT NULL") != "0"


def compare(publisher, subscriber, label):
    there, agreed = manifest(publisher, places=PLACES)
    here, agreed_too = manifest(subscriber, places=PLACES)
    size = sum(entry[1] for entry in there.values() if entry)
    wrong = [name for name in sorted(there.keys() | here.keys()) if there.get(name, 0) != here.get(name, 0)]
    ok(not wrong and agreed and agreed_too and there,
       f"{label}: the SHA-256 of all {len(there)} filters and counters ({size / 1e6:.1f} MB) is the same", wrong[:10])
    columns = "SELECT md5(string_agg(t::text, ' ' ORDER BY t::text COLLATE \"C\")) FROM (SELECT id, type, first, n, " \
        "touched FROM {}) AS t"
    for table in filter("hashed".__ne__, TABLES):
        query = columns.format(table)
        if publisher.value(query) != subscriber.value(query):
            ok(False, f"{label}: the other columns of {table}")


def change_counters(publisher, subscriber, label):
    element = ELEMENTS["integer"]
    for name, statements in COUNTER_CHANGES:
        for table in "counted", "counted_whole":
            text = statements.format(table=table, next=element.replace("i ", "(first + n) "),
                                     last=element.replace("i ", "(first + n - 1) "))
            publisher.sql(*statements_of(text))
        caught_up(publisher, subscriber)
        compare(publisher, subscriber, f"{label}, {name}")


def subscribe(publisher, subscriber, binary):
    form = "binary" if binary else "text"
    label = f"{publisher.major} to {subscriber.major} in {form}"
    # Since 16 a large transaction may be applied by a worker while it is under way.
    streaming = "parallel" if binary and subscriber.major >= 16 else "on"
    publisher.sql(*statements_of(FILL.format(which="id % 2 = 0")))
    subscriber.sql(f"CREATE SUBSCRIPTION durability CONNECTION '{publisher.conninfo()}' PUBLICATION durability "
                   f"WITH (binary = {str(binary).lower()}, streaming = {streaming})")
    subscriber.poll(f"SELECT count(*) FILTER (WHERE srsubstate = 'r') = {len(TABLES)} FROM pg_subscription_rel")
    caught_up(publisher, subscriber)
    compare(publisher, subscriber, f"{label}, initial copy")

    publisher.sql(*statements_of(FILL.format(which="id % 2 = 1")))
    caught_up(publisher, subscriber)
    compare(publisher, subscriber, f"{label}, inserted")

    for name, statements in CHANGES:
        text = "; ".join(
            statements.format(table=table, integer=ELEMENTS["integer"],
                              integer_first=ELEMENTS["integer"].replace("i ", "first "))
            for table in ("keyed", "whole", "nested"))
        publisher.sql(*statements_of(text))
        publisher.sql("UPDATE nested SET c = (type, f)::named, fs = ARRAY[NULL, f]::bloomfilter[], "
                      "cs = ARRAY[(NULL, f)]::named[] WHERE (c).f IS DISTINCT FROM f")
        caught_up(publisher, subscriber)
        compare(publisher, subscriber, f"{label}, {name}")

    change_counters(publisher, subscriber, label)
    publisher.sql("UPDATE hashed SET f = bloom_add(f, NULL::integer), n = n - 1 WHERE n > 250",
                  "DELETE FROM hashed WHERE n BETWEEN 30 AND 100",
                  "UPDATE hashed SET f = NULL, type = NULL WHERE n = 4")
    caught_up(publisher, subscriber)
    compare(publisher, subscriber, f"{label}, rows found by their filter")
    probed, lost = lost_elements(subscriber, places=PLACES)
    ok(probed > 0 and lost == 0, f"{label}: of {probed} elements none is lost", f"lost: {lost}")

    errors = [line for line in publisher.log() + subscriber.log() if "ERROR" in line or "PANIC" in line]
    same(errors, [], f"{label}: no error in the logs")
    stats = publisher.value("SELECT format('%s MB decoded; %s transactions (%s MB) spilled, %s (%s MB) streamed', "
                            "total_bytes / 1000000, spill_txns, spill_bytes / 1000000, stream_txns, "
                            "stream_bytes / 1000000) FROM pg_stat_replication_slots WHERE slot_name = 'durability'")
    note(stats)

    subscriber.sql("DROP SUBSCRIPTION durability")
    for server in publisher, subscriber:
        server.sql(f"TRUNCATE {', '.join(TABLES)}")


def replicate(publisher, subscriber):
    setup(publisher)
    publisher.sql(SCHEMA[SCHEMA.index("CREATE TABLE"):])
    publisher.sql("CREATE PUBLICATION durability FOR TABLE " + ", ".join(TABLES))
    subscriber.run("createdb", DATABASE)
    # Another OID for the type than at the publisher.
    subscriber.sql("CREATE TYPE one_more AS (a integer)")
    subscriber.sql(SCHEMA)
    for name in "bloomfilter", "bloomcounter":
        query = f"SELECT '{name}'::regtype::oid"
        ok(publisher.value(query) != subscriber.value(query), f"{name} has another OID at the subscriber")
    for binary in False, True:
        subscribe(publisher, subscriber, binary)
