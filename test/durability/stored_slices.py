"""Bloomslices indexes that a dump builds anew and pg_upgrade carries over: they must answer as the scan does."""

from tap import ok, same

# Filters of the shape of the index, sparse ones, and rows without bits or of another seed, which are kept in lists.
# Autovacuum would merge slabs.
SCHEMA = """
    CREATE TABLE sliced (id int, f bloomfilter) WITH (autovacuum_enabled = off);
    CREATE INDEX sliced_f ON sliced USING bloomslices (f) WITH (expected_items = 100, false_positive_rate = 0.01);
    CREATE INDEX sliced_even ON sliced USING bloomslices (f) WHERE id % 2 = 0;
    CREATE TABLE sliced_days (day int, f bloomfilter) PARTITION BY LIST (day);
    CREATE TABLE sliced_days_1 PARTITION OF sliced_days FOR VALUES IN (1) WITH (autovacuum_enabled = off);
    CREATE TABLE sliced_days_2 PARTITION OF sliced_days FOR VALUES IN (2) WITH (autovacuum_enabled = off);
    CREATE INDEX sliced_days_f ON sliced_days USING bloomslices (f);
    CREATE UNLOGGED TABLE sliced_unlogged (f bloomfilter) WITH (autovacuum_enabled = off);
    CREATE INDEX sliced_unlogged_f ON sliced_unlogged USING bloomslices (f);
    CREATE TABLE sliced_questions AS
        SELECT i AS id, bloom_query(ARRAY[i * 50, i * 50 + 1, i * 50 + 2]::bigint[], 2) AS q
        FROM generate_series(1, 40) AS i;
"""
TABLES = ["sliced", "sliced_days_1", "sliced_days_2", "sliced_unlogged", "sliced_questions"]

# The rows from a number to another. Row i has the keys from 10 i, in most rows 50 of them.
FILL = """
    INSERT INTO sliced SELECT i, CASE
            WHEN i % 50 = 0 THEN NULL
            WHEN i % 50 = 1 THEN bloom_create(100, 0.01)
            WHEN i % 50 = 2 THEN bloom_add(bloom_create(100, 0.01, seed => 7), i * 10::bigint)
            WHEN i % 50 = 3 THEN bloom_agg(i * 10::bigint, 100, 0.01)
            ELSE (SELECT bloom_agg(k, 100, 0.01) FROM generate_series(i * 10::bigint, i * 10 + 49) AS k) END
        FROM generate_series({0}, {1}) AS i GROUP BY i;
    INSERT INTO sliced_days SELECT 1 + id % 2, f FROM sliced WHERE id BETWEEN {0} AND {1};
    INSERT INTO sliced_unlogged SELECT f FROM sliced WHERE id BETWEEN {0} AND {1};
"""
ROWS = 1500  # at first: more than one slab takes

# Of each index the table and the condition that it is for, and what plans name.
INDEXES = {
    "sliced_f": ("sliced WHERE true", "sliced_f"),
    "sliced_even": ("sliced WHERE id % 2 = 0", "sliced_even"),
    "sliced_days_f": ("sliced_days WHERE true", "sliced_days_1_f_idx"),
    "sliced_unlogged_f": ("sliced_unlogged WHERE true", "sliced_unlogged_f"),
}
BY_INDEX = ["SET enable_seqscan = off", "SET enable_bitmapscan = off"]
BY_SCAN = ["SET enable_indexscan = off", "SET enable_bitmapscan = off"]


def setup_slices(server, database):
    server.sql(SCHEMA, FILL.format(1, ROWS // 2), database=database)
    server.sql(*(f"SELECT bloomslices_merge('{index}')" for index in INDEXES), database=database)
    server.sql(FILL.format(ROWS // 2 + 1, ROWS), "DELETE FROM sliced WHERE id % 7 = 0", database=database)


def infos(server, database):
    """What the pages say, which pg_upgrade does not change."""
    return server.sql("SELECT relname, i.* FROM pg_class AS c, bloomslices_info(c.oid) AS i "
                      f"WHERE relname IN ({', '.join(map(repr, INDEXES))}) ORDER BY relname", database=database)


def verify_slices(server, label, database):
    for index, (source, in_plan) in INDEXES.items():
        question = (f"SELECT q.id, count(*), md5(string_agg(f::text, ' ' ORDER BY f::text)) FROM sliced_questions AS q, "
                    f"LATERAL (SELECT f FROM {source} AND f @@ q OFFSET 0) AS found GROUP BY q.id ORDER BY q.id")
        plan = server.sql(*BY_INDEX, f"EXPLAIN {question}", database=database)
        ok(any(f"Index Scan using {in_plan}" in line for line, in plan), f"{label}: {index} is scanned", str(plan))
        by_index, by_scan = (server.sql(*settings, question, database=database) for settings in (BY_INDEX, BY_SCAN))
        ok(len(by_scan) > 20, f"{label}: {index} has rows to find", f"{len(by_scan)} questions have answers")
        same(by_index, by_scan, f"{label}: {index} answers as the scan does")
        server.sql(f"SELECT bloomslices_check('{index}')", database=database)


def verify_upgraded(server, before, label, database):
    """The indexes that pg_upgrade has carried over are the same, take rows, and merge."""
    same(infos(server, database), before, f"{label}: bloomslices_info is the same")
    verify_slices(server, label, database)
    server.sql(FILL.format(ROWS + 1, 2 * ROWS), database=database)
    verify_slices(server, f"{label}, with more rows", database)
    server.sql("DELETE FROM sliced WHERE id % 5 = 0", "VACUUM sliced",
               *(f"SELECT bloomslices_merge('{index}')" for index in INDEXES), database=database)
    verify_slices(server, f"{label}, merged", database)
