"""The counters of the durability tests: how they are made, and the places where they are stored. Each has the columns
type, first and n, as a filter has: it holds the elements made from first to first + n - 1, each as often, or at least
at the level, that TIMES says.
"""

TIMES = "(1 + i % 3)"

# First element, number of elements, capacity, rate: one element, sparse, dense, overfull. Each with every type, width
# and layout, as counts and as levels.
SHAPES = [(1, 1, 1000, 0.01), (5, 20, 2000, 0.001), (1, 300, 300, 0.01), (7, 60, 1, 0.1)]
WIDTHS = [4, 8, 16]
# Large ones of one type: dense at 4 bits and sparse with more, up to 2 MB; and sparse with 200 kB at every width.
LARGE = [(1, 60000, 100000, 0.01), (9, 20000, 100000, 0.01)]

PLACES = {
    "counter": "SELECT id * 10 + array_position('{external,extended,lz4,main,plain}', storage), type, first, n, c "
               "FROM counters",
    "counter in a hash partition": "SELECT id, type, first, n, c FROM counters_by_hash",
    "counter in an array": "SELECT id * 1000 + at, type, first[at], n[at], cs[at] "
                           "FROM counter_lists, generate_subscripts(cs, 1) at",
    "counter in a domain": "SELECT id, type, first, n, c FROM counters_in_domain",
    "counter in a composite": "SELECT id, type, first, n, (v).c FROM counter_composites",
    "counter by default": "SELECT id, 'text', 1, 1, a FROM counter_defaults",
    "counter by a literal default": "SELECT id, 'text', 2, 49, b FROM counter_defaults",
    "generated counter": "SELECT id, 'text', 3, 1, c FROM counter_defaults",
    "counter in a materialized view": "SELECT id, type, first, n, c FROM counters_summed",
}

TABLES = ["counters_external", "counters_extended", "counters_lz4", "counters_main", "counters_plain",
          "counters_by_hash_0", "counters_by_hash_1", "counters_in_domain", "counter_lists", "counter_composites",
          "counter_defaults"]  # fmt: skip

SCHEMA = """
CREATE DOMAIN blocked_counter AS bloomcounter CHECK ((bloom_info(VALUE)).layout = 'blocked');
CREATE TYPE named_counter AS (name text, c bloomcounter);
CREATE TABLE counters (id integer, storage text, how text, type text, first integer, n integer, c bloomcounter,
    PRIMARY KEY (id, storage)) PARTITION BY LIST (storage);
CREATE TABLE counters_external PARTITION OF counters FOR VALUES IN ('external');
CREATE TABLE counters_extended PARTITION OF counters FOR VALUES IN ('extended');
CREATE TABLE counters_lz4 PARTITION OF counters FOR VALUES IN ('lz4');
CREATE TABLE counters_main PARTITION OF counters FOR VALUES IN ('main');
CREATE TABLE counters_plain PARTITION OF counters FOR VALUES IN ('plain');
ALTER TABLE counters_extended ALTER c SET STORAGE extended;
ALTER TABLE counters_lz4 ALTER c SET STORAGE extended, ALTER c SET COMPRESSION lz4;
ALTER TABLE counters_main ALTER c SET STORAGE main;
ALTER TABLE counters_plain ALTER c SET STORAGE plain;
CREATE INDEX ON counters USING hash (c);
CREATE TABLE counters_by_hash (id integer, type text, first integer, n integer, c bloomcounter) PARTITION BY HASH (c);
CREATE TABLE counters_by_hash_0 PARTITION OF counters_by_hash FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE counters_by_hash_1 PARTITION OF counters_by_hash FOR VALUES WITH (MODULUS 2, REMAINDER 1);
"""

MADE = """CREATE TEMPORARY TABLE made_counters
    (id serial, how text, type text, first integer, n integer, c bloomcounter)"""


def rows(values):
    return ", ".join("(" + ", ".join(map(repr, value)) + ")" for value in values)


def fill_type(name, element, large):
    """INSERTs of counters of elements of one type, made from a number i, into made_counters."""
    repeated = f"generate_series(1, {TIMES}) AS t"
    shapes = rows(SHAPES + (LARGE if large else []))
    insert = "INSERT INTO made_counters (how, type, first, n, c)"
    return f"""
        {insert}
        SELECT format('%s, %s bits, %s, room for %s at %s', layout, width, contents, room, rate), '{name}', first, n,
            CASE contents
            WHEN 'counts' THEN (SELECT bloom_counter_agg({element}, empty)
                FROM generate_series(first, first + n - 1) AS i, {repeated})
            ELSE (SELECT bloom_level_agg({element}, {TIMES}, empty) FROM generate_series(first, first + n - 1) AS i)
            END
        FROM (VALUES {shapes}) AS shape (first, n, room, rate), unnest(ARRAY{WIDTHS}) AS width,
            unnest(ARRAY['blocked', 'classic']) AS layout, unnest(ARRAY['counts', 'levels']) AS contents,
            LATERAL (SELECT bloom_create_counter(room, rate, width, layout, 42) AS empty OFFSET 0) AS e;
        {insert}
        SELECT 'sized itself', '{name}', 1, n, bloom_counter_agg({element})
        FROM (VALUES (1), (10), (900)) AS v (n), generate_series(1, n) AS i, {repeated} GROUP BY n;
        {insert}
        SELECT 'sum', '{name}', 1, 600, bloom_sum_agg(c)
        FROM (SELECT bloom_counter_agg({element}, 600) AS c FROM generate_series(1, 600) AS i, {repeated} GROUP BY t)
            AS v;
        {insert}
        SELECT 'difference', '{name}', 1, 300, more.c - less.c
        FROM (SELECT bloom_counter_agg({element}, 300) AS c FROM generate_series(1, 350) AS i, {repeated}) AS more,
            (SELECT bloom_counter_agg({element}, 300) AS c FROM generate_series(301, 350) AS i, {repeated}) AS less;
        {insert}
        SELECT 'greater', '{name}', 1, 600, bloom_union_agg(c)
        FROM (SELECT bloom_level_agg({element}, {TIMES}, 600) AS c FROM generate_series(1, 600) AS i GROUP BY i % 4)
            AS v;
        {insert}
        SELECT 'decayed', '{name}', 1, 200, bloom_decay(bloom_level_agg({element}, 5 + {TIMES}, 200), 5)
        FROM generate_series(1, 200) AS i;
    """


# Counters without elements, at the cap, and with all numbers at the limit or 0.
SPECIAL = """
    INSERT INTO made_counters (how, type, first, n, c)
    SELECT 'empty without a size', NULL, 1, 0, bloom_sum_agg(c) FROM made_counters WHERE false
    UNION ALL
    SELECT 'empty', NULL, 1, 0, bloom_create_counter(room, rate, width, layout, -7)
        FROM (VALUES (1, 0.01), (1000, 1e-9)) AS v (room, rate), unnest('{4,8,16}'::int[]) AS width,
            unnest('{blocked,classic}'::text[]) AS layout
    UNION ALL
    SELECT 'sparse, at the cap', 'bigint', 1, 2000, bloom_counter_agg(i::bigint * 1000003, 50e6)
        FROM generate_series(1, 2000) AS i, generate_series(1, 1 + i % 3);
    CREATE TEMPORARY TABLE dense_counters AS SELECT c::bytea AS b FROM made_counters
        WHERE type = 'bigint' AND how ~ ' room for (300|100000) ' AND (bloom_info(c)).representation = 'dense';
    INSERT INTO made_counters (how, type, first, n, c)
        SELECT 'all saturated', 'bigint', 1, 1000,
            (substr(b, 1, 28) || decode(repeat('ff', length(b) - 28), 'hex'))::bloomcounter FROM dense_counters
        UNION ALL
        SELECT 'all 0', NULL, 1, 0,
            (substr(b, 1, 28) || decode(repeat('00', length(b) - 28), 'hex'))::bloomcounter FROM dense_counters;
"""

PLACE = """
    INSERT INTO counters
        SELECT id, storage, how, type, first, n, c
        FROM made_counters, unnest('{external,extended,lz4,main,plain}'::text[]) AS storage
        WHERE (storage <> 'plain' OR length(c::bytea) < 7000) ORDER BY id;
    INSERT INTO counters_by_hash SELECT id, type, first, n, c FROM made_counters WHERE n < 300;
    CREATE TABLE counter_lists AS
        SELECT row_number() OVER () AS id, type, array_agg(first ORDER BY id) || 1 AS first,
            array_agg(n ORDER BY id) || 0 AS n, array_agg(c ORDER BY id) || NULL::bloomcounter AS cs
        FROM made_counters WHERE n < 10000 GROUP BY type, id / 20;
    ALTER TABLE counter_lists ADD PRIMARY KEY (id);
    CREATE TABLE counters_in_domain (id integer PRIMARY KEY, type text, first integer, n integer, c blocked_counter);
    INSERT INTO counters_in_domain SELECT id, type, first, n, c FROM made_counters
        WHERE (bloom_info(c)).layout = 'blocked' AND n < 10000;
    CREATE TABLE counter_composites (id integer PRIMARY KEY, type text, first integer, n integer, v named_counter);
    INSERT INTO counter_composites SELECT id, type, first, n, (how, c)::named_counter FROM made_counters
        WHERE n < 10000;
    CREATE MATERIALIZED VIEW counters_summed AS
        SELECT min(id) AS id, type, 1 AS first, 600 AS n, bloom_sum_agg(c) AS c
        FROM counters WHERE how = 'sum' GROUP BY type;
    DO $$ BEGIN
        EXECUTE format('CREATE TABLE counter_defaults (id integer PRIMARY KEY,
            a bloomcounter DEFAULT bloom_add(bloom_create_counter(100, seed => 5), ''ключ 1''::text, 2),
            b bloomcounter DEFAULT %L::bloomcounter,
            c bloomcounter GENERATED ALWAYS AS (bloom_add(a, ''ключ 3''::text)) STORED)',
            (SELECT bloom_counter_agg('ключ ' || i)
             FROM generate_series(2, 50) AS i, generate_series(1, 1 + i % 3)));
    END $$;
    INSERT INTO counter_defaults (id) VALUES (1);
"""
