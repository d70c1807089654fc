-- bloomslices: an index over filters.
CREATE TABLE segments (id int, seen bloomfilter);
INSERT INTO segments
SELECT i, bloom_agg(i * 1000 + j, 1000, 0.001) FROM generate_series(1, 600) i, generate_series(1, 1000) j GROUP BY i;
CREATE INDEX segments_seen ON segments USING bloomslices (seen);
ANALYZE segments;

-- the planner uses it by itself
EXPLAIN (COSTS off) SELECT id FROM segments WHERE seen @> 42042;
SELECT id FROM segments WHERE seen @> 42042 AND id BETWEEN 40 AND 50;
SELECT count(*) < 10 AS few FROM segments WHERE seen @> -1;
EXPLAIN (COSTS off) SELECT id FROM segments WHERE 42042 <@ seen AND seen @> 42043;
SELECT id FROM segments WHERE 42042 <@ seen AND seen @> 42043;
EXPLAIN (COSTS off) SELECT id FROM segments WHERE bloom_contains_any(seen, ARRAY[42042, 77077]);
SELECT id FROM segments WHERE bloom_contains_any(seen, ARRAY[42042, 77077]) AND id IN (42, 77, 78) ORDER BY id;
SELECT id FROM segments WHERE bloom_contains_all(seen, ARRAY[42042, 42043, 42044]);
SELECT id FROM segments WHERE bloom_contains_least(seen, ARRAY[42042, 42043, 77077, 77078, 77079], 3);
SELECT id FROM segments WHERE seen @@ bloom_query(ARRAY[42042, 42043, 77077, 77078], 2) ORDER BY id;
EXPLAIN (COSTS off) SELECT id, seen <-> bloom_query(ARRAY[42042, 42043, 42044, 77077]) AS absent FROM segments
ORDER BY seen <-> bloom_query(ARRAY[42042, 42043, 42044, 77077]) LIMIT 1;
SELECT id, seen <-> bloom_query(ARRAY[42042, 42043, 42044, 77077]) AS absent FROM segments
ORDER BY seen <-> bloom_query(ARRAY[42042, 42043, 42044, 77077]) LIMIT 1;
-- keys from a join, and from a parameter
EXPLAIN (COSTS off) SELECT s.id FROM (VALUES (42042), (77077)) v (key) JOIN segments s ON seen @> key;
SELECT s.id FROM (VALUES (42042), (77077)) v (key) JOIN segments s ON seen @> key AND s.id = key / 1000 ORDER BY s.id;
PREPARE with_key (int) AS SELECT id FROM segments WHERE seen @> $1 AND id > 76;
EXECUTE with_key (77077);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS off) EXECUTE with_key (77077);
EXECUTE with_key (77077);
RESET plan_cache_mode;
-- supersets
CREATE INDEX segments_id ON segments (id);
SET enable_seqscan = off;
EXPLAIN (COSTS off) SELECT a.id FROM segments a JOIN segments b ON a.seen @>= b.seen WHERE b.id = 42;
SELECT a.id FROM segments a JOIN segments b ON a.seen @>= b.seen WHERE b.id = 42;
RESET enable_seqscan;
DROP INDEX segments_id;
-- another class of elements
SELECT id FROM segments WHERE seen @> '42042'::text;
-- not for few rows
CREATE TABLE few AS SELECT * FROM segments WHERE id <= 5;
CREATE INDEX ON few USING bloomslices (seen);
ANALYZE few;
EXPLAIN (COSTS off) SELECT id FROM few WHERE seen @> 4042;

-- what changes
INSERT INTO segments SELECT 1001, bloom_agg(1001000 + j, 1000, 0.001) FROM generate_series(1, 1000) j;
INSERT INTO segments VALUES (1002, NULL), (1003, bloom_create(1000, 0.001)), (1004, bloom_add(bloom_create(7), 1001042));
SELECT id FROM segments WHERE seen @> 1001042 AND id > 1000 ORDER BY id;
DELETE FROM segments WHERE id % 3 = 0;
SELECT element_type, bits, hashes, requested_rate, seed, rows, rechecked, dead, pages > 0 AS pages,
	bytes = pg_relation_size('segments_seen') AS bytes
FROM bloomslices_info('segments_seen');
SELECT bloomslices_check('segments_seen');
VACUUM segments;
SELECT rows, rechecked FROM bloomslices_info('segments_seen');
SELECT bloomslices_merge('segments_seen');
SELECT bloomslices_check('segments_seen');
SELECT id FROM segments WHERE seen @> 1001042 AND id > 1000 ORDER BY id;
REINDEX INDEX CONCURRENTLY segments_seen;
SELECT slabs, rows, dead FROM bloomslices_info('segments_seen');
SELECT bloomslices_check('segments_seen');

-- the shape of the index by its parameters
CREATE INDEX CONCURRENTLY segments_wide ON segments USING bloomslices (seen)
	WITH (expected_items = 3000, false_positive_rate = 0.01, seed = 7);
SELECT element_type, requested_rate, seed, rows, rechecked FROM bloomslices_info('segments_wide');
DROP INDEX segments_wide;

-- by the elements of the filters; here 1,536 bits keep the rate of 1 % for 150
CREATE TABLE roomy AS
SELECT i AS id, bloom_agg(i * 1000 + j, 10000) AS seen FROM generate_series(1, 600) i, generate_series(1, 150) j GROUP BY i;
CREATE INDEX roomy_seen ON roomy USING bloomslices (seen);
SELECT bits, hashes, requested_rate, rows, rechecked FROM bloomslices_info('roomy_seen');
SET enable_seqscan = off;
SELECT id FROM roomy WHERE seen @> 42042;
RESET enable_seqscan;
SELECT bloomslices_check('roomy_seen');
ALTER INDEX roomy_seen SET (expected_items = 10000);
REINDEX INDEX roomy_seen;
SELECT bits FROM bloomslices_info('roomy_seen');

-- the phases of a build
SELECT n, pg_indexam_progress_phasename(oid, n) FROM pg_am, generate_series(0, 4) AS n WHERE amname = 'bloomslices';
CREATE FUNCTION telling(value bloomfilter) RETURNS bloomfilter IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_stat_clear_snapshot();
	RAISE NOTICE '%', (SELECT (phase, tuples_done, tuples_total) FROM pg_stat_progress_create_index WHERE pid = pg_backend_pid());
	RETURN value;
END $$;
CREATE TABLE told AS SELECT seen FROM roomy LIMIT 2;
CREATE INDEX ON told USING bloomslices (telling(seen));

-- partitions, and an expression with a predicate
CREATE TABLE days (day int, seen bloomfilter) PARTITION BY LIST (day);
CREATE TABLE days_1 PARTITION OF days FOR VALUES IN (1);
CREATE TABLE days_2 PARTITION OF days FOR VALUES IN (2);
CREATE INDEX days_seen ON days USING bloomslices (seen);
SELECT bits, rows FROM bloomslices_info('days_seen');
INSERT INTO days SELECT 1 + i % 2, bloom_agg(i * 10 + j, 10) FROM generate_series(1, 20) i, generate_series(1, 5) j GROUP BY i;
SELECT element_type, rows FROM bloomslices_info('days_seen');
SELECT bloomslices_check('days_seen'), bloomslices_merge('days_seen');
CREATE INDEX ON days_1 USING bloomslices ((seen | seen)) WHERE day = 1;
SET enable_seqscan = off;
EXPLAIN (COSTS off) SELECT count(*) FROM days WHERE seen @> 52;
SELECT count(*) FROM days WHERE seen @> 52;
EXPLAIN (COSTS off) SELECT count(*) FROM days_1 WHERE (seen | seen) @> 123 AND day = 1;
SELECT count(*) FROM days_1 WHERE (seen | seen) @> 123 AND day = 1;
RESET enable_seqscan;
CREATE UNLOGGED TABLE unlogged AS SELECT id, seen FROM segments WHERE id < 50;
CREATE INDEX unlogged_seen ON unlogged USING bloomslices (seen);
SELECT rows FROM bloomslices_info('unlogged_seen');

-- what cannot be
CREATE INDEX ON segments USING bloomslices (id);
CREATE INDEX ON segments USING bloomslices (seen, seen);
CREATE UNIQUE INDEX ON segments USING bloomslices (seen);
CREATE INDEX ON segments USING bloomslices (seen) INCLUDE (id);
CREATE INDEX ON segments USING bloomslices (seen) WITH (false_positive_rate = 0.01);
CREATE INDEX ON segments USING bloomslices (seen) WITH (seed = 1);
CREATE INDEX ON segments USING bloomslices (seen) WITH (expected_items = 0);
CREATE INDEX ON segments USING bloomslices (seen) WITH (expected_items = 10, false_positive_rate = 0.6);
CREATE INDEX ON segments USING bloomslices (seen) WITH (expected_items = 10, seed = 'one');
CREATE INDEX ON segments USING bloomslices (seen) WITH (fillfactor = 50);
SELECT bloomslices_info('segments');
SELECT bloomslices_check('pg_class_oid_index');
SELECT bloomslices_merge('pg_class_oid_index');
SELECT bloomslices_info(0);

-- who may ask
CREATE ROLE bloomslices_reader;
SET ROLE bloomslices_reader;
SELECT bloomslices_info('segments_seen');
SELECT bloomslices_check('segments_seen');
SELECT bloomslices_merge('segments_seen');
RESET ROLE;
GRANT SELECT (seen) ON segments TO bloomslices_reader;
SET ROLE bloomslices_reader;
SELECT rows FROM bloomslices_info('segments_seen');
RESET ROLE;
ALTER TABLE segments ENABLE ROW LEVEL SECURITY;
SET ROLE bloomslices_reader;
SELECT rows FROM bloomslices_info('segments_seen');
RESET ROLE;

-- a row that the index lacks, because the server did not take it to be ready
CREATE TABLE lacking (seen bloomfilter);
CREATE INDEX lacking_seen ON lacking USING bloomslices (seen);
UPDATE pg_index SET indisready = false WHERE indexrelid = 'lacking_seen'::regclass;
INSERT INTO lacking VALUES (bloom_add(bloom_create(10), 1));
SELECT bloomslices_check('lacking_seen');
UPDATE pg_index SET indisready = true WHERE indexrelid = 'lacking_seen'::regclass;
SELECT bloomslices_check('lacking_seen');

DROP TABLE segments, few, roomy, told, days, unlogged, lacking;
DROP FUNCTION telling(bloomfilter);
DROP ROLE bloomslices_reader;
