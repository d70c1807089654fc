-- bloomset in queries: "column = constant" gives the same rows by a scan of the set as by a
-- scan of the table, for all types that = compares, and reads no page of the table if the
-- value is not there.
BEGIN;
SET LOCAL client_min_messages = warning;
SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0;
SELECT * FROM no_plan();

CREATE DOMAIN small AS smallint CHECK (VALUE < 10000);
CREATE TABLE scanned (i2 smallint, i4 int, i8 bigint, f4 real, f8 float8, t text, vc varchar(20), n name, c char(20),
    num numeric, d date, ts timestamp, iv interval, inet inet, cidr cidr, u uuid, flag bool, dom small);
INSERT INTO scanned
SELECT i, i, i, i / 2.0, i / 2.0, 't' || i, 't' || i, 't' || i, 't' || i, i / 4.0, date '2000-01-01' + i,
    timestamp '2000-01-01' + i * interval '1 hour', i * interval '1 hour', inet '10.0.0.0' + i,
    (inet '10.0.0.0' + i)::cidr, md5(i::text)::uuid, i % 2 = 0, i
FROM generate_series(1, 3000) i;
INSERT INTO scanned DEFAULT VALUES;
CREATE FUNCTION pg_temp.make_sets() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    c name;
BEGIN
    FOR c IN SELECT attname FROM pg_attribute WHERE attrelid = 'scanned'::regclass AND attnum > 0 LOOP
        EXECUTE format('CREATE INDEX ON scanned USING bloomset (%I)
            WITH (false_positive_rate = 1e-6, expected_items = 100)', c);
    END LOOP;
END
$$;
SELECT is(pg_temp.make_sets()::text, '', 'a set of each column');
CREATE INDEX ON scanned USING bloomset (lower(upper(t)));
CREATE INDEX ON scanned USING bloomset (i8) WHERE i2 > 1000;
-- Rows that come later.
INSERT INTO scanned SELECT s.* FROM scanned s WHERE i4 % 10 = 0;
INSERT INTO scanned (i4, i8, t, vc, n) SELECT i, i, 't' || i, 't' || i, 't' || i FROM generate_series(3001, 6000) i;
ANALYZE scanned;

-- What differs if the set is scanned instead of the table; NULL if nothing.
CREATE FUNCTION pg_temp.difference(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    rows constant text := format('SELECT array_agg(q::text ORDER BY q::text) FROM (%s) q', query);
    by_table text[];
    by_set text[];
    plan json;
BEGIN
    PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'off', true);
    EXECUTE rows INTO STRICT by_table;
    PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'on', true);
    EXECUTE rows INTO STRICT by_set;
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO STRICT plan;
    PERFORM set_config('enable_seqscan', 'on', true);
    RETURN CASE
        WHEN by_table IS DISTINCT FROM by_set THEN format('%s rows, not %s', cardinality(by_set), cardinality(by_table))
        WHEN plan::text !~ 'Bitmap Index Scan' THEN 'the plan does not scan the set'
        END;
END
$$;

-- Constants of each type that is compared with the column's

SELECT unnest(ARRAY[
    is(pg_temp.difference(format('SELECT ctid FROM scanned WHERE %I = %s', c, v)), NULL, format('%s = %s', c, v)),
    is(pg_temp.difference(format('SELECT ctid FROM scanned WHERE %s = %I', v, c)), NULL, format('%s = %s', v, c))])
FROM (VALUES
    (1, 'i2', '70'), (2, 'i2', '70::smallint'), (3, 'i2', '70::bigint'), (4, 'i2', '70000'), (5, 'i2', '65606'),
    (6, 'i4', '70'), (7, 'i4', '70::smallint'), (8, 'i4', '70::bigint'), (9, 'i4', '4294967366'),
    (10, 'i8', '70'), (11, 'i8', '70::smallint'), (12, 'i8', '5000'), (13, 'i8', '-70'), (14, 'i8', '''70'''),
    (15, 'f4', '12.5'), (16, 'f4', '12.5::float8'), (17, 'f4', '12.5::real'), (18, 'f4', '0.1::float8'), (19, 'f4', '-0.0'),
    (20, 'f8', '12.5'), (21, 'f8', '12.5::real'), (22, 'f8', '7'), (23, 'f8', '''NaN'''),
    (24, 't', '''t70'''), (25, 't', '''t70''::varchar'), (27, 't', '''t70 '''),
    (28, 'vc', '''t70'''), (29, 'vc', '''t70''::text'), (30, 'vc', '''t5000'''), (31, 'n', '''t70'''),
    (32, 'n', '''t70''::text'), (33, 'n', '''t70''::name'), (34, 'n', '''t70''::varchar'),
    (35, 'c', '''t70'''), (36, 'c', '''t70     '''), (37, 'c', '''t70  ''::bpchar'), (38, 'c', '''t70  ''::varchar'),
    (39, 'num', '10.25'), (40, 'num', '10.2500'), (41, 'num', '10'), (42, 'num', '''1e1'''), (43, 'd', '''2000-02-01'''),
    (44, 'd', 'date ''2000-02-01'''), (45, 'ts', 'timestamp ''2000-01-02 05:00'''), (46, 'ts', '''2000-01-02 05:00:01'''),
    (47, 'iv', '''1 day'''), (48, 'iv', 'interval ''24 hours'''), (49, 'iv', 'interval ''1 mon'''),
    (50, 'inet', '''10.0.0.70'''), (51, 'inet', 'cidr ''10.0.0.70/32'''), (52, 'inet', '''10.0.0.70/24'''),
    (53, 'cidr', '''10.0.0.70'''), (54, 'cidr', 'inet ''10.0.0.70'''), (55, 'u', quote_literal(md5('70'))),
    (57, 'dom', '70'), (58, 'dom', '70::small'), (59, 'dom', '70::bigint'),
    (60, 'i4', '(SELECT 70)'), (61, 't', 'concat(''t'', 7, 0)'), (62, 'i8', '(SELECT 1234567)')) v (n, c, v)
ORDER BY n;
-- The other sides of = that are not in a class: whatever the plan, the rows are the same.
SELECT is(coalesce(nullif(pg_temp.difference(format('SELECT ctid FROM scanned WHERE %I = %s', c, v)),
    'the plan does not scan the set'), 'same'), 'same', format('%s = %s', c, v))
FROM (VALUES (1, 'i4', '70.0'), (2, 'i4', '70::float8'), (3, 'num', '10.25::float8'), (4, 'd', 'timestamp ''2000-02-01'''),
    (5, 'd', 'timestamptz ''2000-02-01'''), (6, 'ts', 'date ''2000-02-01'''), (7, 'ts', 'timestamptz ''2000-01-02 05:00'''),
    (8, 'c', '''t70  ''::text'), (9, 'c', '''t70''::text'), (10, 't', '''t70  ''::bpchar'), (11, 'n', '''t70  ''::bpchar'),
    (12, 'i4', 'NULL'), (13, 't', 'NULL'), (14, 't', 't'), (15, 'i4', 'i8'), (16, 't', '''t70'' COLLATE "C"'),
    (17, 'i4', 'ANY (''{70,71,-1}'')'), (18, 'i4', 'ALL (''{70}'')'), (19, 'i4', '70 AND i4 IS NOT NULL'),
    -- The server's rules for collations, and before PostgreSQL 16 for boolean columns, allow no index here.
    (20, 't', '''t70''::name'), (21, 'flag', 'true'), (22, 'flag', 'false')) v (n, c, v)
ORDER BY n;

-- Shapes of queries

SELECT is(pg_temp.difference(query), NULL, query)
FROM unnest(ARRAY['SELECT ctid FROM scanned WHERE t = ''t70'' AND i4 = 70',
    'SELECT ctid FROM scanned WHERE t = ''t70'' OR i4 = 71',
    'SELECT ctid FROM scanned WHERE t = ''t70'' AND i4 > 5', 'SELECT ctid FROM scanned WHERE lower(upper(t)) = ''t70''',
    'SELECT ctid FROM scanned WHERE i8 = 2000 AND i2 > 1000', 'SELECT count(*) FROM scanned WHERE num = 10',
    'SELECT ctid FROM scanned WHERE t = ''t70'' FOR UPDATE',
    'SELECT s.ctid, x FROM (VALUES (70), (71), (-1), (NULL)) v (x)
        CROSS JOIN LATERAL (SELECT ctid FROM scanned WHERE i8 = x OFFSET 0) s']) query;
-- A generic plan does not know the value when it is made.
SET LOCAL plan_cache_mode = force_generic_plan;
SET LOCAL enable_seqscan = off;
PREPARE by_number (bigint) AS SELECT count(*) FROM scanned WHERE i4 = $1;
PREPARE by_name (text) AS SELECT count(*) FROM scanned WHERE n = $1;
CREATE FUNCTION pg_temp.executed(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n text;
BEGIN
    EXECUTE 'EXECUTE ' || call INTO STRICT n;
    RETURN n;
END
$$;
SELECT is(pg_temp.executed(call), n, 'generic plan: ' || call)
FROM (VALUES ('by_number(70)', '2'), ('by_number(71)', '1'), ('by_number(-1)', '0'), ('by_number(NULL)', '0'),
    ('by_number(4294967366)', '0'), ('by_number(6000)', '1'), ('by_name(''t70'')', '2'), ('by_name(''t'')', '0'))
    v (call, n);
DEALLOCATE ALL;
RESET plan_cache_mode;
-- UPDATE and DELETE.
UPDATE scanned SET i4 = -5 WHERE t = 't75';
DELETE FROM scanned WHERE t = 't77';
RESET enable_seqscan;
SELECT is(array_agg(i4 ORDER BY i4), '{-5}', 'an UPDATE by the set') FROM scanned WHERE t = 't75';
SELECT is(count(*), 0::bigint, 'a DELETE by the set') FROM scanned WHERE t = 't77';
SELECT is(pg_temp.difference('SELECT ctid, * FROM scanned WHERE i4 = -5'), NULL, 'a row that was updated');
-- A cursor does not see what comes while it is open, and the set's "yes" is not a row.
SET LOCAL enable_seqscan = off;
DECLARE two CURSOR FOR SELECT i4 FROM scanned WHERE t = 't70';
SET LOCAL enable_seqscan = on;
INSERT INTO scanned (i4, t) VALUES (70, 't70');
SELECT results_eq('two'::refcursor, ARRAY[70, 70], 'a cursor');
CLOSE two;

-- Pages

CREATE FUNCTION pg_temp.heap_pages(condition text, OUT exact int, OUT lossy int) LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT json, TIMING off) SELECT ctid FROM scanned WHERE ' || condition INTO STRICT plan;
    plan := jsonb_path_query_first(plan, 'strict $.** ? (@."Node Type" == "Bitmap Heap Scan")');
    exact := plan ->> 'Exact Heap Blocks';
    lossy := plan ->> 'Lossy Heap Blocks';
END
$$;
SET LOCAL enable_seqscan = off;
SELECT is(p::text, '(0,0)', 'absent: no page of the table: ' || condition)
FROM unnest(ARRAY['i4 = -70', 't = ''nobody''', 'i8 = 123456789', 'i4 = (SELECT -70)']) condition,
    pg_temp.heap_pages(condition) p;
SELECT is(p::text, format('(0,%s)', pg_relation_size('scanned') / current_setting('block_size')::int),
    'present: all pages: ' || condition)
FROM unnest(ARRAY['i4 = 70', 't = ''t70''']) condition, pg_temp.heap_pages(condition) p;

-- Where a better plan is known, the set is not in its way

RESET enable_seqscan;
CREATE INDEX scanned_i4_btree ON scanned (i4);
ANALYZE scanned;
CREATE FUNCTION pg_temp.plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO STRICT plan;
    RETURN plan::text;
END
$$;
SELECT matches(pg_temp.plan_of('SELECT * FROM scanned WHERE i4 = 70'), 'scanned_i4_btree', 'a B-tree finds a row sooner');
SELECT doesnt_match(pg_temp.plan_of(query), 'bloomset|scanned_t_idx|scanned_i8_idx', query)
FROM unnest(ARRAY['SELECT * FROM scanned ORDER BY t', 'SELECT * FROM scanned WHERE t > ''t70''',
    'SELECT * FROM scanned WHERE t IS NULL', 'SELECT * FROM scanned WHERE t LIKE ''t70''', 'SELECT count(*) FROM scanned',
    'SELECT t FROM scanned GROUP BY t', 'SELECT min(t) FROM scanned', 'SELECT * FROM scanned WHERE i8 <> 70']) query;

-- Partitions

CREATE TABLE parts (k int, v text) PARTITION BY RANGE (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE parts_2 (v text, k int);
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (1000) TO (2000);
CREATE INDEX ON parts USING bloomset (v);
INSERT INTO parts SELECT k, 'v' || k FROM generate_series(0, 1999) k;
SELECT is(pg_temp.difference('SELECT * FROM parts WHERE v = ' || quote_literal(v)), NULL, 'partitions: ' || v)
FROM unnest('{v7,v1007,nobody}'::text[]) v;

SELECT * FROM finish();
ROLLBACK;
