#!/usr/bin/python3 -B
"""The types that psycopg 3 gives to values, as doc/applications.md says."""

import datetime
import decimal
import uuid

from session import NO_WORKERS, extension_schema, psycopg
from tap import done, same

FILTERS = {
    "bigint": "bloom_agg(i)",
    "text": "bloom_agg(i::text)",
    "uuid": "bloom_agg(lpad(i::text, 32, '0')::uuid)",
    "timestamptz": "bloom_agg('2024-01-01 00:00+00'::timestamptz + i * interval '1 day')",
}
DAY = datetime.datetime(2024, 1, 3)

# Filter, the form in SQL, the value, and the result: found or not, or the SQLSTATE.
CASES = [
    ("bigint", "%s", 2, True),
    ("bigint", "%s", 2**40, False),
    ("bigint", "%s", "2", "42804"),
    ("bigint", "%s::bigint", "2", True),
    ("bigint", "%s", decimal.Decimal(2), "42804"),
    ("bigint", "%s", 2.0, "42804"),
    ("bigint", "ANY (%s)", [-1, 2], True),
    ("bigint", "ANY (%s)", ["2"], "42804"),
    ("bigint", "ANY (%s::bigint[])", ["2"], True),
    ("bigint", "%s", None, None),
    ("text", "%s", "2", True),
    ("text", "%s", 2, "42804"),
    ("text", "%s::text", 2, True),
    ("uuid", "%s", uuid.UUID(int=2), True),
    ("uuid", "%s", str(uuid.UUID(int=2)), "42804"),
    ("uuid", "%s::uuid", str(uuid.UUID(int=2)), True),
    ("timestamptz", "%s", DAY.replace(tzinfo=datetime.timezone.utc), True),
    ("timestamptz", "%s", DAY, "42804"),
]

# A column with a bloomset, the value, and the same.
SETS = [
    ("i", 2, True),
    ("i", "2", True),
    ("i", "-2", False),
    ("i", "two", "22P02"),
    ("id", uuid.UUID(int=2), True),
    ("id", str(uuid.UUID(int=2)), True),
    ("day", "2024-01-03", True),
    ("day", datetime.date(2024, 1, 3), True),
    ("day", DAY, "42804"),
    ("i", None, None),
]


def main():
    with psycopg.connect(autocommit=True) as connection:
        connection.execute(f"SET search_path = {extension_schema()}")
        connection.execute("SET timezone = 'UTC'")
        for element_type, written, value, expected in CASES:
            try:
                query = f"SELECT ({FILTERS[element_type]}) @> {written} FROM generate_series(1, 3) AS i"
                got = connection.execute(query, (value,)).fetchone()[0]
            except psycopg.Error as problem:
                got = problem.sqlstate
            same(got, expected, f"{type(value).__name__} as {written} in a filter of {element_type}")
        connection.execute(NO_WORKERS)  # which say "maybe" of a temporary table
        connection.execute("CREATE TEMP TABLE days AS SELECT i, lpad(i::text, 32, '0')::uuid AS id, "
                           "date '2024-01-01' + i::int AS day FROM generate_series(1::bigint, 3) AS i")  # fmt: skip
        for column, value, expected in SETS:
            connection.execute(f"CREATE INDEX IF NOT EXISTS days_{column} ON days USING bloomset ({column})")
            try:
                got = connection.execute(f"SELECT bloomset_contains('days', '{column}', %s)", (value,)).fetchone()[0]
            except psycopg.Error as problem:
                got = problem.sqlstate
            same(got, expected, f"{type(value).__name__} {value} in a bloomset of {column}")
        for value, expected in (7, "bigint"), ("7", "text"), (b"7", "bytea"):
            got = connection.execute("SELECT element_type::text FROM bloom_info(bloom_add(bloom_create(10), %s))",
                                     (value,)).fetchone()[0]  # fmt: skip
            same(got, expected, f"the first element, {type(value).__name__}, decides")
        for kind, cast in (str, "::bloomfilter"), (bytes, "::bytea::bloomfilter"):
            cursor = connection.cursor(binary=kind is bytes)
            f = cursor.execute("SELECT bloom_agg(i) FROM generate_series(1, 3) AS i").fetchone()[0]
            same(type(f), kind, f"a filter comes as {kind.__name__}")
            same(cursor.execute(f"SELECT %s{cast} @> 2", (f,)).fetchone(), (True,), f"and goes back as {cast}")
    done()


main()
