#!/usr/bin/python3
"""Keeping a counter current, and days that slide: time and WAL of the forms in doc/counting.md.

Connects as psql does, to a database with bloomtype in it, and runs pgbench.  The
server should write no full-page images, or the WAL of a form depends on when the
last checkpoint was.  Each measurement begins with counters that are half full and
just written.  ROWS is the number of visits in the week and a day that slide.
"""
import os
import statistics

from measure import Session, compare, heading, pgbench, report_transactions, rows, transactions_heading

os.environ["PGOPTIONS"] = "-c search_path=counting_upkeep,public"

SIZES = 10000, 100000, 1000000
ROWS_OF_STATEMENT = 1, 100, 10000
PAIRS = 5
QUIET = "WITH (autovacuum_enabled = off, toast.autovacuum_enabled = off)"
SERIAL = "max_parallel_workers_per_gather = 0", "jit = off"

# The functions of doc/counting.md, for a counter of %(n)d elements
FUNCTIONS = """
CREATE FUNCTION count_%(n)d() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  added bloomcounter := bloom_create_counter(%(n)d);
  removed bloomcounter := bloom_create_counter(%(n)d);
BEGIN
  IF TG_OP = 'INSERT' THEN
    added := (SELECT bloom_counter_agg(customer, %(n)d) FROM new_rows);
  ELSIF TG_OP = 'DELETE' THEN
    removed := (SELECT bloom_counter_agg(customer, %(n)d) FROM old_rows);
  ELSE
    added := (SELECT bloom_counter_agg(customer, %(n)d)
              FROM (SELECT customer FROM new_rows EXCEPT ALL SELECT customer FROM old_rows) AS d);
    removed := (SELECT bloom_counter_agg(customer, %(n)d)
                FROM (SELECT customer FROM old_rows EXCEPT ALL SELECT customer FROM new_rows) AS d);
  END IF;
  UPDATE counters SET c = c + added - removed WHERE n = %(n)d AND (# added > 0 OR # removed > 0);
  RETURN NULL;
END $$;
CREATE FUNCTION append_%(n)d() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO deltas (added) SELECT bloom_counter_agg(customer, %(n)d) FROM new_rows HAVING count(customer) > 0;
  RETURN NULL;
END $$;
CREATE TABLE orders_%(n)d (LIKE orders INCLUDING ALL);
CREATE TABLE orders_delta_%(n)d (LIKE orders INCLUDING ALL);
CREATE TRIGGER count_insert AFTER INSERT ON orders_%(n)d REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_%(n)d();
CREATE TRIGGER count_update AFTER UPDATE ON orders_%(n)d REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_%(n)d();
CREATE TRIGGER append AFTER INSERT ON orders_delta_%(n)d REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION append_%(n)d();
"""
SETUP = """
SET client_min_messages = warning;
CREATE SCHEMA counting_upkeep;
CREATE TABLE given AS SELECT n, (SELECT bloom_counter_agg(i, n) FROM generate_series(1, n / 2) AS i) AS c
  FROM unnest('{%s}'::int[]) AS n;
CREATE TABLE counters (n int PRIMARY KEY, c bloomcounter NOT NULL) %s;
CREATE TABLE deltas (added bloomcounter, removed bloomcounter) %s;
CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer bigint,
  paid boolean NOT NULL DEFAULT false);
""" % (",".join(map(str, SIZES)), QUIET, QUIET) + "".join(FUNCTIONS % {"n": n} for n in SIZES)
TABLES = ["orders"] + ["orders_%d" % n for n in SIZES] + ["orders_delta_%d" % n for n in SIZES]
RESET = "TRUNCATE counters, deltas, %s RESTART IDENTITY; INSERT INTO counters SELECT * FROM given" % ", ".join(TABLES)

INSERT = ("\\set first random(1, %d)\nINSERT INTO %s (customer) "
          "SELECT (:first + i) %% %d FROM generate_series(1, %d) AS i;\n")  # fmt: skip
FOLD = """
WITH folded AS (DELETE FROM deltas RETURNING added, removed)
UPDATE counters
SET c = c + (SELECT bloom_sum_agg(added) FROM folded) - (SELECT bloom_sum_agg(removed) FROM folded)
WHERE n = %d AND EXISTS (SELECT FROM folded);
"""


def insert(table, n, number):
    return INSERT % (n, table, n, number)


def measure(session, name, base, work, transactions, goal=None, clients=1, before=""):
    """Runs both by turns, each beginning with the same counters."""
    pairs = []
    for _ in range(PAIRS):
        pair = []
        for script, number in zip((base, work), transactions):
            session.ask(RESET)
            session.ask(before or "SELECT")
            pair.append(pgbench(session, script, number, clients))
        pairs.append(pair)
    report_transactions(name, pairs, goal)


def repetitions(number, n=0):
    return max(4, 4 * (min(4000, 20000 // number, 2 * 10**7 // max(n, 1)) // 4))


def triggers(session):
    for n in SIZES:
        for number in ROWS_OF_STATEMENT:
            goal = 1.5 if (n, number) == (100000, 10000) else None
            measure(session, "INSERT of %d rows, trigger : none, %d elements" % (number, n),
                    insert("orders", n, number), insert("orders_%d" % n, n, number),
                    (repetitions(number), repetitions(number, n)), goal)  # fmt: skip
    for column, value in ("customer", "customer + 1"), ("paid", "NOT paid"):
        update = "UPDATE %%s SET %s = %s WHERE id <= 100;\n" % (column, value)
        rows_100 = "".join("INSERT INTO %s (customer) SELECT i FROM generate_series(1, 100) AS i;" % table
                           for table in ("orders", "orders_100000"))  # fmt: skip
        measure(session, "UPDATE of %s in 100 rows, trigger : none, 100000 elements" % column,
                update % "orders", update % "orders_100000", (200, 200), before=rows_100)  # fmt: skip


def deltas(session):
    for n in SIZES:
        for number in ROWS_OF_STATEMENT:
            measure(session, "INSERT of %d rows, delta : none, %d elements" % (number, n),
                    insert("orders", n, number), insert("orders_delta_%d" % n, n, number),
                    (repetitions(number), repetitions(number)))  # fmt: skip
        for number in 1, 100, 10000:
            session.ask(RESET)
            times = []
            for _ in range(PAIRS):
                session.ask("INSERT INTO deltas SELECT bloom_add(bloom_create_counter(%d), i) "
                            "FROM generate_series(1, %d) AS i" % (n, number))  # fmt: skip
                times.append(1000 * session.seconds(FOLD % n))
            print("fold %d deltas of 1 row, %d elements: %.2f %.2f %.2f ms" % (
                number, n, min(times), statistics.median(times), max(times)), flush=True)  # fmt: skip
    for clients in 1, 4:
        measure(session, "INSERT of 1 row, delta : counter, 100000 elements, %d clients" % clients,
                insert("orders_100000", 100000, 1), insert("orders_delta_100000", 100000, 1), (500, 20000),
                clients=clients)  # fmt: skip


def probes(session):
    """A probe of a counter and its deltas, against one of the counter alone."""
    whole = "\\set key random(1, 100000)\nSELECT c @> :key::bigint%s FROM counters WHERE n = 100000;\n"
    both = " OR EXISTS (SELECT FROM deltas WHERE added @> :key::bigint)"
    for number in 0, 100, 10000:
        before = ("INSERT INTO deltas SELECT bloom_add(bloom_create_counter(100000), -i) "
                  "FROM generate_series(1, %d) AS i" % number)  # fmt: skip
        measure(session, "probe of counter and %d deltas : of the counter" % number, whole % "", whole % both,
                (4000, 4000 if number < 1000 else 400), before=before)  # fmt: skip


def expressions():
    session = Session(*SERIAL)
    for n in SIZES:
        for number in 1, 100, 1000, 10000, 100000:
            form = ("SELECT count(*) FROM counters, generate_series(1, %d) AS again WHERE n = %d "
                    "AND bloom_count(%%s, 1) < 0" % (max(1, 10**7 // max(n, 20 * number)), n))  # fmt: skip
            values = "FROM generate_series(1, %d) AS i WHERE i >= again - again" % number
            compare("agg(value, c) : c + agg(value, n), %d rows, %d elements" % (number, n),
                    form % ("c + (SELECT bloom_counter_agg(i, %d) %s)" % (n, values)),
                    form % ("(SELECT bloom_counter_agg(i, c) %s)" % values), None, session=session)  # fmt: skip


# Sliding days: visitors by Zipf's law, each as often as he comes

DAYS = """
CREATE TABLE visits AS SELECT i / ({rows} / 8) AS day, exp(ln({rows}::float8 / 2) * random())::bigint AS visitor
  FROM generate_series(0, {rows} - 1) AS i;
ANALYZE visits;
CREATE TABLE days AS SELECT day, bits, bloom_counter_agg(visitor, bloom_create_counter({n}, 0.01, bits)) AS c
  FROM (SELECT DISTINCT day, visitor FROM visits) AS v, (VALUES (4), (8)) AS b (bits) GROUP BY day, bits;
CREATE TABLE weeks AS SELECT bits, bloom_sum_agg(c) AS c FROM days WHERE day < 7 GROUP BY bits;
"""
SLID = """(SELECT w.c - ago.c + today.c FROM weeks AS w, days AS today, days AS ago
    WHERE w.bits = {bits} AND today.bits = {bits} AND ago.bits = {bits} AND today.day = 7 AND ago.day = 0)"""
FROM_ROWS = """(SELECT bloom_counter_agg(visitor, bloom_create_counter({n}, 0.01, {bits}))
    FROM (SELECT DISTINCT day, visitor FROM visits WHERE day BETWEEN 1 AND 7) AS v)"""
FROM_DAYS = "(SELECT bloom_sum_agg(c) FROM days WHERE bits = {bits} AND day BETWEEN 1 AND 7)"


def sliding():
    session = Session(*SERIAL, "work_mem = '1GB'")
    count = rows(4000000)
    session.ask("SELECT setseed(0.5)")
    n = count // 5
    session.ask(DAYS.format(rows=count, n=n))
    visitors = session.ask("""
        SELECT count(DISTINCT visitor), round(count(*)::numeric / count(DISTINCT visitor), 2), bloom_counter_bytes(%d)
        FROM (SELECT DISTINCT day, visitor FROM visits WHERE day < 7) AS v""" % n)[0]  # fmt: skip
    print("%d visits; visitors of a week, days of each, bytes at 4 bits: %s" % (count, visitors), flush=True)
    for bits in 4, 8:
        forms = {name: form.format(bits=bits, n=n) for name, form in
                 (("slid", SLID), ("from rows", FROM_ROWS), ("from days", FROM_DAYS))}  # fmt: skip
        reading = "SELECT bloom_count(%s, 1)"
        for other in "from rows", "from days":
            compare("%s : c - a week ago + today, %d bits" % (other, bits), reading % forms["slid"],
                    reading % forms[other], None, session=session)  # fmt: skip
        print("%d bits, saturated positions of slid and counted, of all: %s" % (bits, session.ask("""
            SELECT (bloom_info(a)).saturated, (bloom_info(b)).saturated, (bloom_info(a)).positions, a = b
            FROM (SELECT %s, %s) AS v (a, b)""" % (forms["slid"], forms["from rows"]))[0]), flush=True)  # fmt: skip


def collecting():
    """What a sum of 4 bits collects in 30 days, against one that is made anew."""
    session = Session(*SERIAL, "work_mem = '1GB'")
    session.ask("SELECT setseed(0.5)")
    session.ask("""CREATE TABLE month AS SELECT day, bloom_counter_agg(visitor, 200000) AS c
        FROM (SELECT DISTINCT i / 100000 AS day, exp(ln(500000) * random())::bigint AS visitor
              FROM generate_series(0, 3699999) AS i) AS v GROUP BY day;
        CREATE TABLE sliding AS SELECT bloom_sum_agg(c) AS c FROM month WHERE day < 7""")
    for day in range(7, 37):
        session.ask("UPDATE sliding SET c = sliding.c - ago.c + today.c FROM month AS ago, month AS today "
                    "WHERE ago.day = %d AND today.day = %d" % (day - 7, day))  # fmt: skip
    for name, query in ("slid 30 times", "SELECT c FROM sliding"), \
                       ("made anew", "SELECT bloom_sum_agg(c) FROM month WHERE day >= 30"):  # fmt: skip
        print("%s: distinct, positions, saturated, false positives of a million: %s" % (name, session.ask("""
            WITH given (c) AS MATERIALIZED (%s)
            SELECT # c, (bloom_info(c)).positions, (bloom_info(c)).saturated,
              (SELECT count(*) FROM generate_series(1, 1000000) AS i WHERE c @> -i) FROM given""" % query)[0]))


def main():
    session = Session()
    session.ask("DROP SCHEMA IF EXISTS counting_upkeep CASCADE")
    session.ask(SETUP)
    transactions_heading()
    triggers(session)
    deltas(session)
    probes(session)
    heading()
    expressions()
    sliding()
    collecting()
    session.ask("DROP SCHEMA counting_upkeep CASCADE")


main()
