#!/usr/bin/python3
"""Look-ups that filters answer: the figures of doc/usernames.md, doc/deduplication.md and doc/trace-search.md.

Connects as psql does, as a superuser, to an empty database with bloomtype in it, and runs pgbench. Runs the SQL of the
guides on larger data, each against the index or the scan that it replaces. ROWS is the number of event ids; there are
a tenth as many names and a quarter as many spans. The server should write no full-page images; one case turns them on.
"""
import os
import re
import statistics

from measure import Session, compare, heading, pgbench, report_transactions, rows, transactions_heading
import recipes

PAIRS = 5
SERIAL = "max_parallel_workers_per_gather = 0", "jit = off"


def show(name, value):
    print("%-64s %s" % (name, value), flush=True)


def begin(schema):
    """A session in a schema of its own, which is also that of pgbench."""
    os.environ["PGOPTIONS"] = "-c search_path=%s,public -c client_min_messages=warning" % schema
    session = Session(*SERIAL)
    session.ask("CREATE SCHEMA " + schema)
    print("\n" + schema, flush=True)
    return session


def scaled(sql, **numbers):
    """The SQL of a guide with other numbers: scaled(sql, n=("old", "new"))."""
    for old, new in numbers.values():
        if old not in sql:
            raise ValueError("%s is not in the guide" % old)
        sql = sql.replace(old, str(new))
    return sql


def measure(session, name, base, work, transactions, clients=1):
    """Runs both by turns; transactions is a number or one for each."""
    numbers = transactions if isinstance(transactions, tuple) else (transactions, transactions)
    pairs = [[pgbench(session, script, number, clients) for script, number in zip((base, work), numbers)]
             for _ in range(PAIRS)]  # fmt: skip
    report_transactions(name, pairs)


def sizes(session, **relations):
    for name, relation in relations.items():
        show("bytes of the " + name.replace("_", " "), session.ask("SELECT sum(%s)" % relation)[0])


# Is this username taken?

FAR = """
CREATE EXTENSION IF NOT EXISTS postgres_fdw;
CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname '%s');
CREATE USER MAPPING FOR CURRENT_USER SERVER far;
CREATE FOREIGN TABLE far_accounts (key text) SERVER far
  OPTIONS (schema_name 'usernames', table_name 'accounts')
"""


# A name is one of 16 first names, one of 16 endings, and a number. The first of each list and small numbers are the most
# frequent. A later attempt has a longer number.
NAMES = """
CREATE FUNCTION uniform(i bigint, seed bigint) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN (hashint8extended(i, seed) & 4294967295) / 4294967296.0::float8;
CREATE FUNCTION wished_name(i bigint, attempt int) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN ('{{Maria,Jan,Anna,Lee,Ali,Sofia,Tom,Ines,Omar,Yuki,Nina,Paul,Eva,Max,Lucia,Ravi}}'::text[])
      [floor(17 ^ uniform(i, 1))]
    || ('{{_fox,_sun,Rider,_99,Blue,_wolf,Star,Cat,Moon,_sea,Stone,_fan,Bird,Hawk,Lion,Tree}}'::text[])
      [floor(17 ^ uniform(i, 2))]
    || floor((200000 * attempt) ^ uniform(i, 2 + attempt));

INSERT INTO accounts (name)
  SELECT wished_name(i, attempt) FROM generate_series(1, {n}) AS i, generate_series(1, 2) AS attempt
  ON CONFLICT (key) DO NOTHING
"""

# Newcomers try names until one is free. The form asks when they press a button, or while they type the first name, at
# its third letter and at each one after that.
ASKED = """
CREATE TABLE attempts AS
  SELECT i, attempt, lower(wished_name(i, attempt)) AS key
  FROM generate_series({first}, {last}) AS i, generate_series(1, 6) AS attempt;
CREATE TABLE asked AS
  SELECT 'button' AS form, key FROM attempts AS a
  WHERE NOT EXISTS (SELECT FROM attempts AS b WHERE b.i = a.i AND b.attempt < a.attempt
                    AND NOT EXISTS (SELECT FROM accounts WHERE accounts.key = b.key))
  UNION ALL
  SELECT 'letters', left(key, n) FROM attempts, generate_series(3, length(key)) AS n WHERE attempt = 1
"""
SAVED = """
SELECT form, count(*) AS asked, round(100 * avg((NOT taken)::int), 1) AS free_percent,
  round(100 * avg((NOT probably)::int), 1) AS saved_percent,
  round(100 * avg(probably::int) FILTER (WHERE NOT taken), 2) AS false_percent
FROM (SELECT form, f @> asked.key AS probably, a.key IS NOT NULL AS taken
  FROM asked JOIN name_filters ON part = part_of(asked.key) LEFT JOIN accounts AS a USING (key)) AS q
GROUP BY form ORDER BY form
"""


def accounts(session, n):
    parts = 1 << max(n // 1000, 1).bit_length()
    guide = recipes.block("usernames.md", "CREATE TABLE accounts")
    session.ask(scaled(guide, parts=("(0, 63)", "(0, %d)" % (parts - 1)), mask=("& 63", "& %d" % (parts - 1)),
                       room=("bloom_create(600)", "bloom_create(1200)")))  # fmt: skip
    session.ask(NAMES.format(n=n // 2))
    session.ask("CREATE TABLE plain (LIKE accounts INCLUDING ALL); INSERT INTO plain (name) SELECT name FROM accounts")
    session.ask("VACUUM ANALYZE")


def usernames():
    session = begin("usernames")
    n = rows() // 10
    accounts(session, n)
    session.ask(FAR % tuple(session.ask("SELECT split_part(current_setting('unix_socket_directories'), ',', 1)") +
                            session.ask("SELECT current_setting('port')") + session.ask("SELECT current_database()")))
    show("accounts", session.ask("SELECT count(*) FROM accounts")[0])
    sizes(session, filters="pg_table_size('name_filters')", index="pg_relation_size('accounts_key_key')")
    session.ask(ASKED.format(first=10 * n, last=10 * n + 50000) + "; ANALYZE")
    show("look-ups: form, asked, free %, saved %, false %", "  ".join(session.ask(SAVED)))
    transactions_heading()
    key = "\\set i random(1, %d)\n" % n
    free, taken = "'free' || :i::int", "lower(wished_name(:i::int %% %d + 1, 1))" % (n // 2)
    index = "SELECT EXISTS (SELECT FROM accounts WHERE key = (SELECT %s));\n"
    guarded = recipes.block("usernames.md", "CREATE FUNCTION is_taken")
    for name, value in ("free", free), ("taken", taken):
        measure(session, "look-up of a %s name, filter and index : index" % name, key + index % value,
                key + "SELECT is_taken(%s);\n" % value, 5000)  # fmt: skip
    guarded = re.search(r"^CREATE FUNCTION is_taken.*?^END \$\$;", guarded, re.M | re.S)[0]
    session.ask(guarded.replace("is_taken", "is_taken_far").replace("FROM accounts", "FROM far_accounts"))
    for name, value in ("free", free), ("taken", taken):
        measure(session, "the same, accounts by postgres_fdw, %s name" % name,
                key + index.replace("accounts", "far_accounts") % value,
                key + "SELECT is_taken_far(%s);\n" % value, 1000)  # fmt: skip
    for clients in 1, 4:
        register = key + "INSERT INTO %s (name) VALUES ('n%d_' || :client_id || '_' || :i) ON CONFLICT DO NOTHING;\n"
        measure(session, "registration, trigger : none, %d clients" % clients, register % ("plain", clients),
                register % ("accounts", clients), 4000, clients)  # fmt: skip
    session.ask("DROP SCHEMA usernames CASCADE")


# Seen before?

EVENTS = """
CREATE TABLE indexed (LIKE events INCLUDING DEFAULTS);
INSERT INTO indexed (id, body) SELECT md5(i::text)::uuid, '' FROM generate_series(1, {n}) AS i;
ALTER TABLE indexed ADD UNIQUE (id);
DELETE FROM seen;
INSERT INTO seen SELECT shard, now(), bloom_create(500, 0.001) | coalesce(f, bloom_create(500, 0.001))
  FROM generate_series(0, {last}) AS shard LEFT JOIN
    (SELECT shard_of(id) AS shard, bloom_agg(id, 500, 0.001) AS f FROM indexed GROUP BY 1) AS given USING (shard)
"""
IDS = "SELECT md5((:key::bigint + i)::text)::uuid AS id FROM generate_series(1, %d) AS i"
INDEXED = "INSERT INTO indexed (id, body) SELECT id, '' FROM (%s) AS batch ON CONFLICT DO NOTHING;\n"
FILTERED = "INSERT INTO events (id, body) SELECT id, '' FROM only_new(ARRAY(%s)) AS new (id);\n"


def one_event():
    """The statement of the guide for one event, as a transaction of pgbench."""
    sql = recipes.block("deduplication.md", "PREPARE receive_one")
    sql = sql[sql.index("WITH added"):sql.index(";") + 1]
    return sql.replace("$1", "md5(:key::text)::uuid").replace("$2", "''") + "\n"


def full_page_images(session, value):
    session.ask("ALTER SYSTEM %s" % ("RESET full_page_writes" if value is None else "SET full_page_writes = " + value))
    session.ask("SELECT pg_reload_conf()")
    Session(*SERIAL).ask("SELECT pg_sleep(0.5)")


def deduplicate(n):
    session = begin("deduplication_%d" % n)
    shards = 1 << (n // 400).bit_length()
    session.ask(scaled(recipes.block("deduplication.md", "CREATE TABLE seen"), mask=("& 255", "& %d" % (shards - 1)),
                       last=("(0, 255)", "(0, %d)" % (shards - 1))))  # fmt: skip
    session.ask(EVENTS.format(n=n, last=shards - 1))
    session.ask("VACUUM ANALYZE")
    session.ask("CHECKPOINT")
    show("ids in %d shards: rate now" % shards, session.ask("SELECT avg(bloom_fpp(f)) FROM seen")[0])
    sizes(session, filters="pg_total_relation_size('seen')", index="pg_relation_size('indexed_id_key')")
    new = "\\set key random(%d, 1000000000000000)\n" % (2 * n)
    old = "\\set key random(1, %d)\n" % (n - 1000)
    one = IDS % 1
    transactions_heading()
    for clients in 1, 4:
        measure(session, "one new event, filters : index, %d clients" % clients, new + INDEXED % one,
                new + one_event(), 5000, clients)  # fmt: skip
        measure(session, "1000 new events in a batch, filters : index, %d clients" % clients,
                new + INDEXED % (IDS % 1000), new + FILTERED % (IDS % 1000), 20, clients)  # fmt: skip
    measure(session, "20000 new events in a batch, filters : index", new + INDEXED % (IDS % 20000),
            new + FILTERED % (IDS % 20000), 3)  # fmt: skip
    measure(session, "one event seen before, filters : index", old + INDEXED % one, old + one_event(), 5000)
    full_page_images(session, "on")
    for name, script in ("index", new + INDEXED % one), ("filters", new + one_event()):
        session.ask("CHECKPOINT")
        wal = pgbench(session, script, 20000)[1]
        show("bytes of WAL for one new event, 20000 since a checkpoint, " + name, round(wal))
    full_page_images(session, None)
    session.ask("DROP SCHEMA deduplication_%d CASCADE" % n)


def deduplication():
    for n in rows() // 8, rows():
        deduplicate(n)


# Which segment holds this trace id?

SEGMENTS = 240
SPANS = """
SELECT format('CREATE TABLE spans_%s PARTITION OF spans FOR VALUES FROM (%L) TO (%L)', i, t, t + interval '1 hour'),
  format('CREATE TABLE indexed_%s PARTITION OF indexed FOR VALUES FROM (%L) TO (%L)', i, t, t + interval '1 hour')
FROM generate_series(0, {segments} - 1) AS i, LATERAL (SELECT timestamptz '2026-06-01' + i * interval '1 hour') AS h (t)
"""
LOAD = """
INSERT INTO spans SELECT timestamptz '2026-06-01' + i * interval '{segments} hours' / {n},
  md5((i / 4)::text)::uuid, 'service ' || i % 4 FROM generate_series(0, {n} - 1) AS i;
INSERT INTO indexed SELECT * FROM spans;
CREATE INDEX ON indexed (trace)
"""


def load_spans(session, n):
    session.ask(recipes.block("trace-search.md", "CREATE TABLE segments"))
    session.ask("CREATE TABLE indexed (LIKE spans) PARTITION BY RANGE (received)")
    for line in session.ask(SPANS.format(segments=SEGMENTS)):
        for statement in line.split("|"):
            session.ask(statement)
    session.ask(LOAD.format(segments=SEGMENTS, n=n))
    closing = [session.seconds("SELECT close_segment('spans_%d')" % i) for i in range(SEGMENTS)]
    building = [session.seconds("CREATE INDEX given_%d ON spans_%d (trace)" % (i, i)) for i in range(PAIRS)]
    session.ask("DROP INDEX " + ", ".join("given_%d" % i for i in range(PAIRS)))
    show("ms to close a segment, and to index one, median",
         "%.1f %.1f" % (1000 * statistics.median(closing), 1000 * statistics.median(building)))  # fmt: skip
    session.ask("VACUUM ANALYZE")
    of_all = "(SELECT sum(%s(inhrelid)) FROM pg_inherits WHERE inhparent = '%s'::regclass)"
    sizes(session, spans=of_all % ("pg_relation_size", "spans"), filters="pg_total_relation_size('segments')",
          indexes=of_all % ("pg_indexes_size", "indexed"))  # fmt: skip


def searches(session, n):
    """One search, without workers."""
    wanted = "md5('%d')::uuid" % (n // 9)
    find = "SELECT count(*) FROM find_trace(%s)" % wanted
    plain = "SELECT count(*) FROM %s WHERE trace = %s"
    lateral = """SELECT count(*) FROM segments AS g, LATERAL (
            SELECT FROM spans AS s WHERE s.received BETWEEN g.first AND g.last AND s.trace = %s OFFSET 0) AS s
        WHERE g.traces @> %s""" % (wanted, wanted)
    heading()
    compare("scan of %d segments : find_trace" % SEGMENTS, find, plain % ("spans", wanted), None, session=session)
    compare("one query with LATERAL : find_trace", find, lateral, None, session=session)
    transactions_heading()
    key = "\\set i random(1, %d)\n" % (n // 4 - 1)
    options = os.environ["PGOPTIONS"]
    for mode in "auto", "force_generic_plan":
        os.environ["PGOPTIONS"] = options + " -c plan_cache_mode=" + mode
        measure(session, "find_trace : index on each segment, plan_cache_mode " + mode,
                key + "SELECT * FROM indexed WHERE trace = md5(:i::text)::uuid;\n",
                key + "SELECT * FROM find_trace(md5(:i::text)::uuid);\n", 100)  # fmt: skip
    os.environ["PGOPTIONS"] = options


def traces():
    session = begin("traces")
    n = rows() // 4
    load_spans(session, n)
    candidates = "SELECT avg(c) FROM generate_series(1, 2000) AS i, LATERAL (" \
                 "SELECT count(*) AS c FROM candidates(md5((i * %d)::text)::uuid)) AS v"
    show("segments that are read, trace absent, and present",
         ", ".join(session.ask(candidates % times)[0] for times in (-1, n // 8001)))  # fmt: skip
    searches(session, n)
    insert = ("\\set i random(1, 1000000000)\nINSERT INTO %s SELECT timestamptz '2026-06-11' - interval '1 s', "
              "md5((:i::bigint + i / 4)::text)::uuid, 'late' FROM generate_series(1, 10000) AS i;\n")  # fmt: skip
    session.ask("DROP TRIGGER closed ON spans_%d" % (SEGMENTS - 1))
    measure(session, "INSERT of 10000 spans, index : none", insert % "spans", insert % "indexed", 5)
    session.ask("DROP SCHEMA traces CASCADE")


def main():
    for part in usernames, deduplication, traces:
        part()


main()
