"""Bloomset indexes that a dump builds anew and pg_upgrade carries over: what they must still find, and deny."""

from tap import ok, same

SCHEMA = """
    CREATE TABLE set_names (name text);
    CREATE INDEX set_names_set ON set_names USING bloomset (name);
    CREATE INDEX set_lower_set ON set_names USING bloomset (lower(name));
    CREATE TABLE set_numbers (n bigint);
    CREATE INDEX set_numbers_set ON set_numbers USING bloomset (n)
        WITH (false_positive_rate = 0.001, expected_items = 5000, seed = 77);
    CREATE INDEX set_even_set ON set_numbers USING bloomset (n) WHERE n % 2 = 0;
    CREATE TABLE set_grown (n bigint);
    CREATE INDEX set_grown_set ON set_grown USING bloomset (n) WITH (expected_items = 100);
    CREATE TABLE set_days (day int, trace uuid) PARTITION BY LIST (day);
    CREATE TABLE set_days_1 PARTITION OF set_days FOR VALUES IN (1);
    CREATE TABLE set_days_2 PARTITION OF set_days FOR VALUES IN (2);
    CREATE INDEX set_days_set ON set_days USING bloomset (trace);
    CREATE UNLOGGED TABLE set_unlogged (n int);
    CREATE INDEX set_unlogged_set ON set_unlogged USING bloomset (n);
"""
TABLES = ["set_names", "set_numbers", "set_grown", "set_days_1", "set_days_2", "set_unlogged"]

# The rows from a number to another.
FILL = """
    INSERT INTO set_names SELECT 'Name ' || i FROM generate_series({0}, {1}) AS i;
    INSERT INTO set_numbers SELECT i * 7919 FROM generate_series({0}, {1}) AS i;
    INSERT INTO set_grown SELECT i FROM generate_series({0}, {1}) AS i;
    INSERT INTO set_days SELECT 1 + i % 2, md5(i::text)::uuid FROM generate_series({0}, {1}) AS i;
    INSERT INTO set_unlogged SELECT i FROM generate_series({0}, {1}) AS i;
"""
ROWS = 3000
ABSENT = 1000
MOST_PRESENT = 50  # of the absent values at a rate of 0.01, which is twelve standard deviations above their mean

# Of each index the table with the rows, the value of a row, and a value that no row has, made from i.
INDEXES = {
    "set_names_set": ("set_names", "name", "'Nobody ' || i"),
    "set_lower_set": ("set_names", "lower(name)", "'Name ' || i"),
    "set_numbers_set": ("set_numbers", "n", "-i"),
    "set_even_set": ("set_numbers WHERE n % 2 = 0", "n", "-i"),
    "set_grown_set": ("set_grown", "n", "-i"),
    "set_days_set": ("set_days", "trace", "md5((-i)::text)::uuid"),
    "set_unlogged_set": ("set_unlogged", "n", "-i"),
}


def setup_sets(server, database):
    server.sql(SCHEMA, FILL.format(1, ROWS), database=database)


def infos(server, database):
    """What the pages say, which pg_upgrade does not change."""
    return server.sql("SELECT relname, i.elements, i.capacity, i.generations, i.requested_rate, i.current_rate "
                      "FROM pg_class AS c, bloomset_info(c.oid) AS i "
                      f"WHERE relname IN ({', '.join(map(repr, INDEXES))}) ORDER BY relname", database=database)


def verify_sets(server, label, database, rows=ROWS):
    for index, (source, value, absent) in INDEXES.items():
        expected = rows // 2 if "WHERE" in source else rows
        same(server.sql(f"SELECT count(*), count(*) FILTER (WHERE bloomset_contains('{index}'::regclass, {value})) "
                        f"FROM {source}", database=database),
             [[str(expected), str(expected)]], f"{label}: {index} has all rows")
        present = server.value(f"SELECT count(*) FILTER (WHERE bloomset_contains('{index}'::regclass, {absent})) "
                               f"FROM generate_series(1, {ABSENT}) AS i", database=database)
        ok(int(present) < MOST_PRESENT, f"{label}: {index} denies absent values", f"{present} are present")
        server.sql(f"SELECT bloomset_check('{index}')", database=database)


def verify_upgraded(server, before, label, database):
    """The sets that pg_upgrade has carried over are the same, and take values."""
    same(infos(server, database), before, f"{label}: bloomset_info is the same")
    verify_sets(server, label, database)
    server.sql(FILL.format(ROWS + 1, 2 * ROWS), database=database)
    verify_sets(server, f"{label}, with more rows", database, 2 * ROWS)
