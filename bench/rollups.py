#!/usr/bin/python3
"""The guides doc/daily-rollups.md, doc/similarity.md and doc/sizing.md: distinct visitors of some days, pairs of shops,
and the report on all filters.

Connects as psql does, to a database with bloomtype in it. Compares with hll if the server has it. The times are
processor times of the backend.
"""
import statistics

from measure import Session, compare, heading, rows
from recipes import block  # measure lets this line find it

DAYS = 28
CUSTOMERS = 100000
FILTERS, ITEMS = 1000, 1000000

UNIFORM = """
CREATE OR REPLACE FUNCTION uniform(i bigint, seed bigint) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN (hashint8extended(i, seed) & 4294967295) / 4294967296.0::float8"""

# A visitor is drawn with a density that falls as 1 / sqrt: a few come often, most of them rarely.
VISITS = """
CREATE UNLOGGED TABLE visits AS
  SELECT 1 + i %% %d AS day, floor(%d * uniform(i, 1) ^ 2)::bigint AS visitor FROM generate_series(1, %d) AS i"""

PURCHASES = """
CREATE UNLOGGED TABLE purchases AS
  SELECT 10 * kind + number AS shop, customer
  FROM generate_series(0, 4) AS kind, generate_series(0, 9) AS number, generate_series(1, %d) AS customer
  WHERE uniform(100 * customer + 10 * kind + number, 1) * (number + 1) ^ 0.2::float8 <
    CASE WHEN customer %% 5 = kind THEN 0.7 ELSE 0.15 END"""

# The summaries of a day: how to build them, how to count the visitors of their union, and those in both of two.
HLL = "hll_add_agg(hll_hash_bigint(visitor), %d, 5)"
HLL_COMMON = "((# a.f) + (# b.f) - (# hll_union(a.f, b.f)))"
SUMMARIES = {
    "filters": ("bloom_agg(visitor, %(n)d)", "# bloom_union_agg(f)", "bloom_intersection_cardinality(a.f, b.f)"),
    "hll, default": (HLL % 11, "# hll_union_agg(f)", HLL_COMMON),
    "hll, log2m = 17": (HLL % 17, "# hll_union_agg(f)", HLL_COMMON),
}


class ProcessorTime(Session):
    """Measures what other processes disturb less. All queries are serial."""

    seconds = Session.cpu_seconds


def has_hll(session):
    if session.ask("SELECT FROM pg_available_extensions WHERE name = 'hll'"):
        session.ask("CREATE EXTENSION IF NOT EXISTS hll")
        return True
    print("hll is not installed: no comparison")
    return False


def make_visits(session):
    number = rows(2000000)
    session.ask(VISITS % (DAYS, number // 5, number))
    session.ask("VACUUM ANALYZE visits")
    n = int(session.ask("SELECT count(DISTINCT visitor) FROM visits")[0])
    names = list(SUMMARIES) if has_hll(session) else list(SUMMARIES)[:1]
    for table, name in enumerate(names):
        build = SUMMARIES[name][0].replace("%(n)d", str(n))
        session.ask("CREATE UNLOGGED TABLE daily_%d AS SELECT day, %s AS f FROM visits GROUP BY day" % (table, build))
        session.ask("VACUUM ANALYZE daily_%d" % table)
        size, rows_size = session.ask("SELECT pg_table_size('daily_%d'), pg_table_size('visits')" % table)[0].split("|")
        print("%s: %d kB for %d days; %d visits of %d visitors take %d kB" % (
            name, int(size) // 1000, DAYS, number, n, int(rows_size) // 1000))  # fmt: skip
    return names


def counted(table, name, days):
    return "SELECT %s FROM daily_%d WHERE day <= %d" % (SUMMARIES[name][1], table, days)


def compare_counts(session, names):
    exact = "SELECT count(DISTINCT visitor) FROM visits WHERE day <= %d"
    for days in 1, 7, DAYS:
        compare("distinct visitors, range of %d days, filters : count(DISTINCT)" % days, exact % days,
                counted(0, names[0], days), 1, session=session, repeats=9, faster=True)  # fmt: skip
    for table, name in list(enumerate(names))[1:]:
        compare("distinct visitors, range of %d days, filters : %s" % (DAYS, name), counted(table, name, DAYS),
                counted(0, names[0], DAYS), None, session=session, repeats=9)  # fmt: skip


def true_counts(session):
    """The number of distinct visitors by the first and the last day."""
    counts = {}
    for first in range(1, DAYS, 7):
        lines = session.ask("SELECT day, sum(count(*)) OVER (ORDER BY day) FROM (SELECT min(day) AS day FROM visits "
                            "WHERE day >= %d GROUP BY visitor) AS v GROUP BY day ORDER BY day" % first)  # fmt: skip
        counts.update({(first, int(last)): int(number) for last, number in (line.split("|") for line in lines)})
    return counts


def show_errors(session, names):
    counts = true_counts(session)
    for table, name in enumerate(names):
        errors = [abs(float(session.ask(counted(table, name, last) + " AND day >= %d" % first)[0]) / number - 1)
                  for (first, last), number in counts.items()]  # fmt: skip
        print("%s: error of %d ranges of days: median %.3f %%, greatest %.3f %%" % (
            name, len(errors), 100 * statistics.median(errors), 100 * max(errors)), flush=True)  # fmt: skip


def show_errors_of_pairs(session, names):
    """Of the number of visitors of both of two days."""
    session.ask("CREATE TEMP TABLE common AS SELECT s.day AS a, t.day AS b, count(*) AS common FROM "
                "(SELECT DISTINCT day, visitor FROM visits) AS s JOIN (SELECT DISTINCT day, visitor FROM visits) AS t "
                "USING (visitor) WHERE s.day < t.day GROUP BY s.day, t.day")  # fmt: skip
    for table, name in enumerate(names):
        figures = session.ask("""
            SELECT count(*), round(avg(common)), round(sqrt(avg(error ^ 2))), round(max(abs(error)))
            FROM (SELECT common, %s - common AS error
                  FROM common JOIN daily_%d AS a ON a.day = common.a JOIN daily_%d AS b ON b.day = common.b) AS errors
            """ % (SUMMARIES[name][2], table, table))[0].split("|")
        print("%s: visitors of both of two days, %s pairs: %s on average, root mean square error %s, greatest %s" % (
            name, *figures), flush=True)  # fmt: skip


def days_of_visits(session):
    names = make_visits(session)
    compare_counts(session, names)
    show_errors(session, names)
    show_errors_of_pairs(session, names)
    session.ask("DROP TABLE visits, " + ", ".join("daily_%d" % table for table in range(len(names))))


SELF_JOIN = """
SELECT s.shop AS a, t.shop AS b, count(*) AS common FROM purchases AS s JOIN purchases AS t USING (customer)
WHERE s.shop < t.shop GROUP BY s.shop, t.shop"""


def pairs_of_shops(session):
    session.ask(PURCHASES % CUSTOMERS)
    session.ask("CREATE TABLE shops AS SELECT shop, bloom_agg(customer, %d) AS f FROM purchases GROUP BY shop" % (
        CUSTOMERS))  # fmt: skip
    session.ask("VACUUM ANALYZE purchases, shops")
    similar = "SELECT count(bloom_jaccard(a.f, b.f)) FROM shops AS a, shops AS b WHERE a.shop < b.shop"
    compare("Jaccard of 1,225 pairs of shops, filters : self-join", "SELECT count(*) FROM (%s) AS pairs" % SELF_JOIN,
            similar, 1, session=session, faster=True)  # fmt: skip
    figures = session.ask("""
        WITH sizes AS (SELECT shop, count(*) AS size FROM purchases GROUP BY shop)
        SELECT round(max(abs(bloom_jaccard(a.f, b.f) - common / (s.size + t.size - common)::float8))::numeric, 5),
            round(max(abs(bloom_intersection_cardinality(a.f, b.f) - common))), min(common), max(common),
            least(min(s.size), min(t.size)), greatest(max(s.size), max(t.size))
        FROM (%s) AS pairs JOIN shops AS a ON a.shop = pairs.a JOIN shops AS b ON b.shop = pairs.b
            JOIN sizes AS s ON s.shop = pairs.a JOIN sizes AS t ON t.shop = pairs.b""" % SELF_JOIN)[0].split("|")
    print("greatest error of Jaccard %s, of the intersection %s; intersections of %s to %s, sets of %s to %s" % tuple(
        figures), flush=True)  # fmt: skip
    session.ask("DROP TABLE purchases, shops")


def report_on_filters(session):
    session.ask("CREATE UNLOGGED TABLE large (id int, f bloomfilter)")
    session.ask("INSERT INTO large SELECT i, f FROM generate_series(1, %d) AS i, "
                "(SELECT bloom_agg(x, %d) AS f FROM generate_series(1, %d) AS x) AS one" % (
                    FILTERS, ITEMS, ITEMS))  # fmt: skip
    session.ask("VACUUM ANALYZE large")
    session.ask(block("sizing.md", "CREATE FUNCTION filter_report"))
    sample, everything = ("SELECT sum(looked_at) FROM filter_report(%d)" % number for number in (100, FILTERS))
    compare("report on %d filters of 1.2 MB, all : a sample of 100" % FILTERS, sample, everything, None,
            session=session)  # fmt: skip
    compare("report on all of them : reading their bytes", "SELECT sum(length(f::bytea)) FROM large", everything, None,
            session=session)  # fmt: skip
    session.ask("DROP FUNCTION filter_report; DROP TABLE large")


def main():
    session = ProcessorTime("max_parallel_workers_per_gather = 0", "jit = off", "work_mem = '256MB'",
                            "client_min_messages = error")  # fmt: skip
    session.ask(UNIFORM)
    heading()
    for part in days_of_visits, pairs_of_shops, report_on_filters:
        part(session)


main()
