-- bloomset: an index that is the Bloom filter of a column.
CREATE TABLE users (id bigint, name text, joined date);
INSERT INTO users SELECT i, 'user' || i, date '2024-01-01' + i FROM generate_series(1, 1000) i;
CREATE INDEX users_name_set ON users USING bloomset (name)
	WITH (false_positive_rate = 0.001, expected_items = 2000, seed = 7);
SELECT pg_get_indexdef('users_name_set'::regclass);

SELECT bloomset_contains('users', 'name', 'user42') AS present, bloomset_contains('users', 'name', 'nobody') AS absent,
	bloomset_contains('users_name_set', 'user42') AS by_index, bloomset_contains('users', 'name', NULL) IS NULL AS "null";
INSERT INTO users VALUES (1001, 'alice', '2024-12-24');
SELECT bloomset_contains('users', 'name', 'alice') AS inserted;
SELECT count(*) AS missed FROM users WHERE NOT bloomset_contains('users', 'name', name);
SELECT count(*) < 50 AS few_others FROM generate_series(1, 10000) i
WHERE bloomset_contains('users', 'name', 'nobody' || i);
SELECT bloomset_partitions('users', 'name', 'user42'), bloomset_partitions('users', 'name', 'nobody');
SELECT partition, generation, element_type, layout, seed, filter @> 'user42' AS present
FROM bloomset_filters('users', 'name'), bloom_info(filter);
SELECT elements, capacity >= 2000 AS enough, generations, requested_rate, current_rate < 0.001 AS better,
	bytes = pg_relation_size('users_name_set') AS bytes, reindex_pays
FROM bloomset_info('users_name_set');
SELECT bloomset_check('users_name_set');

-- an untyped literal is converted to the type of the column
CREATE INDEX CONCURRENTLY users_joined_set ON users USING bloomset (joined);
SELECT bloomset_contains('users', 'joined', '2024-01-02') AS literal,
	bloomset_contains('users', 'joined', date '2024-01-01') AS "date";
SELECT bloomset_contains('users', 'joined', 'soon');
-- partial, and of an expression: by index only
CREATE INDEX users_upper_set ON users USING bloomset (upper(name)) WHERE id > 500;
SELECT bloomset_contains('users_upper_set', 'USER501') AS present,
	bloomset_contains('users_upper_set', 'user501') AS absent,
	bloomset_contains('users_upper_set', 'USER500') AS not_in_predicate;

-- a scan: no page of the table, if the value is absent
SET enable_seqscan = off;
EXPLAIN (COSTS off) SELECT id FROM users WHERE name = 'user42';
SELECT id FROM users WHERE name = 'user42';
SELECT id FROM users WHERE name = 'nobody';
RESET enable_seqscan;

-- a set grows, and REINDEX makes one generation of it
CREATE TABLE grown (id bigint);
CREATE INDEX grown_set ON grown USING bloomset (id) WITH (expected_items = 100);
INSERT INTO grown SELECT generate_series(1, 20000);
SELECT elements > 19500 AS elements, capacity >= elements AS capacity, generations > 1 AS generations, reindex_pays
FROM bloomset_info('grown_set');
SELECT count(*) AS missed FROM grown WHERE NOT bloomset_contains('grown', 'id', id);
SELECT max(generation) > 1 AS generations FROM bloomset_filters('grown', 'id');
REINDEX INDEX CONCURRENTLY grown_set;
SELECT elements > 19500 AS elements, capacity >= elements AS capacity, generations, reindex_pays
FROM bloomset_info('grown_set');
SELECT count(*) AS missed FROM grown WHERE NOT bloomset_contains('grown', 'id', id);
VACUUM grown;
-- options act when the index is built
ALTER INDEX grown_set SET (false_positive_rate = 0.1);
SELECT requested_rate FROM bloomset_info('grown_set');
REINDEX INDEX grown_set;
SELECT requested_rate FROM bloomset_info('grown_set');

-- partitions
CREATE TABLE events (day int, trace text) PARTITION BY LIST (day);
CREATE TABLE events_1 PARTITION OF events FOR VALUES IN (1);
CREATE TABLE events_2 PARTITION OF events FOR VALUES IN (2);
CREATE INDEX events_trace_set ON events USING bloomset (trace);
INSERT INTO events SELECT 1 + i % 2, 'trace' || i FROM generate_series(1, 1000) i;
SELECT bloomset_contains('events', 'trace', 'trace500') AS present,
	bloomset_contains('events', 'trace', 'nobody') AS absent;
SELECT bloomset_partitions('events', 'trace', 'trace500') AS leaf;
SELECT partition, generation, filter @> 'trace500' AS found FROM bloomset_filters('events', 'trace')
ORDER BY partition::text;
SELECT elements > 980 AS elements, requested_rate FROM bloomset_info('events_trace_set');
SELECT partition, index, elements > 490 AS elements, requested_rate FROM bloomset_info('events', 'trace')
ORDER BY partition::text;
SELECT * FROM bloomset_find(NULL::events, 'trace', 'trace500');
SELECT * FROM bloomset_find(NULL::events, 'trace', 'nobody');
SELECT bloomset_new('events', 'trace', '{trace1,nobody,trace2,nobody}'::text[]);

-- what cannot be a set
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TABLE refused (mood mood, document json, id int, name text);
CREATE INDEX ON refused USING bloomset (mood);
CREATE INDEX ON refused USING bloomset (document);
CREATE INDEX ON refused USING bloomset (id, name);
CREATE UNIQUE INDEX ON refused USING bloomset (id);
CREATE INDEX ON refused USING bloomset (id) INCLUDE (name);
ALTER TABLE refused ADD EXCLUDE USING bloomset (id WITH =);
CREATE INDEX ON refused USING bloomset (id) WITH (false_positive_rate = 0.6);
CREATE INDEX ON refused USING bloomset (id) WITH (false_positive_rate = 1e-10);
CREATE INDEX ON refused USING bloomset (name bpchar_ops);
CREATE INDEX ON refused USING bloomset (id) WITH (expected_items = 0);
CREATE INDEX ON refused USING bloomset (id) WITH (seed = 'one');
CREATE INDEX ON refused USING bloomset (id) WITH (seed = 9223372036854775808);
CREATE INDEX ON refused USING bloomset (id) WITH (fillfactor = 50);
CREATE ACCESS METHOD other_heap TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE elsewhere (id int) USING other_heap;
CREATE INDEX ON elsewhere USING bloomset (id);

-- what cannot be asked
SELECT bloomset_contains('users', 'id', 7);
SELECT bloomset_partitions('users', 'id', 7);
SELECT bloomset_filters('users', 'id');
SELECT bloomset_contains('users', 'nothing', 7);
SELECT bloomset_contains('users', 'name', 7);
SELECT bloomset_contains('users', 'joined', timestamp '2024-01-02');
SELECT bloomset_contains('users', 'name', 'user42'::char(6));
SELECT bloomset_contains('grown', 'id', 7.0);
SELECT bloomset_contains('grown', 'id', '7.0');
SELECT bloomset_contains('grown', 'id', '{}'::json);
SELECT bloomset_contains('refused', 'mood', 'sad');
SELECT bloomset_contains('refused', 'tableoid', 7);
SELECT bloomset_contains('pg_class', 'relpages', 7);
SELECT bloomset_contains('users', 7);
CREATE INDEX users_id ON users (id);
SELECT bloomset_contains('users_id', 7);
SELECT bloomset_info('users_id');
SELECT bloomset_check('users_id');
SELECT bloomset_find(NULL::users, 'id', 7);
SELECT bloomset_find(7, 'id', 7);
SELECT bloomset_find(NULL::users, 'name', 'sad'::mood);
SELECT bloomset_new('users', 'name', ARRAY['user42', NULL]);
SELECT bloomset_new('users', 'joined', ARRAY['2024-01-02']);
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT bloomset_new('users', 'name', ARRAY['user42']);
ROLLBACK;
CREATE VIEW some_users AS SELECT * FROM users;
SELECT bloomset_contains('some_users', 'name', 'user42');
CREATE TABLE bare (day int, trace text);
ALTER TABLE events ATTACH PARTITION bare FOR VALUES IN (3);
DROP INDEX events_trace_set;
CREATE INDEX ON events_1 USING bloomset (trace);
SELECT bloomset_contains('events', 'trace', 'nobody') AS maybe;
SELECT bloomset_filters('events', 'trace');
CREATE INDEX events_set ON ONLY events USING bloomset (trace);
ALTER INDEX events_set ATTACH PARTITION events_1_trace_idx;
SELECT elements > 480 AS elements, round(requested_rate::numeric, 2) AS requested_rate, current_rate
FROM bloomset_info('events_set');
SELECT partition, index, elements > 480 AS elements, requested_rate, current_rate < 0.01 AS kept, reindex_pays
FROM bloomset_info('events', 'trace') ORDER BY partition::text;

-- who may ask
CREATE ROLE bloomset_reader;
SET ROLE bloomset_reader;
SELECT bloomset_contains('users', 'name', 'user42');
SELECT bloomset_contains('users_name_set', 'user42');
SELECT bloomset_info('users_name_set');
SELECT bloomset_check('users_name_set');
RESET ROLE;
GRANT SELECT (name) ON users TO bloomset_reader;
SET ROLE bloomset_reader;
SELECT bloomset_contains('users', 'name', 'user42') AS column_granted;
SELECT bloomset_contains('users', 'joined', '2024-01-02');
SELECT bloomset_contains('users_upper_set', 'USER501');
SELECT bloomset_new('users', 'name', ARRAY['user42', 'nobody']);
SELECT bloomset_find(NULL::users, 'name', 'user42');
RESET ROLE;
ALTER TABLE users ENABLE ROW LEVEL SECURITY;
SET ROLE bloomset_reader;
SELECT bloomset_contains('users', 'name', 'user42');
RESET ROLE;

-- a row that the set lacks, because the server did not take the index to be ready
CREATE TABLE lacking (x int);
CREATE INDEX lacking_set ON lacking USING bloomset (x);
INSERT INTO lacking VALUES (1);
UPDATE pg_index SET indisready = false WHERE indexrelid = 'lacking_set'::regclass;
INSERT INTO lacking VALUES (2);
SELECT bloomset_contains('lacking_set', 3) AS maybe;
SELECT bloomset_check('lacking_set');
UPDATE pg_index SET indisready = true WHERE indexrelid = 'lacking_set'::regclass;
SELECT bloomset_check('lacking_set');
REINDEX INDEX lacking_set;
SELECT bloomset_check('lacking_set');
-- a view that names its index survives REINDEX CONCURRENTLY
CREATE VIEW by_name AS SELECT bloomset_contains('lacking_set'::text::regclass, 2);
REINDEX INDEX CONCURRENTLY lacking_set;
TABLE by_name;
DROP VIEW by_name;

-- an index that CREATE INDEX CONCURRENTLY could not build
CREATE TABLE halves (x int);
INSERT INTO halves VALUES (0);
CREATE INDEX CONCURRENTLY halves_set ON halves USING bloomset ((1 / x));
SELECT bloomset_check('halves_set');
DROP TABLE halves;

-- the phases of a build
SELECT n, pg_indexam_progress_phasename(oid, n) FROM pg_am, generate_series(0, 4) AS n WHERE amname = 'bloomset';
CREATE FUNCTION telling(value int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE '%', (SELECT phase FROM pg_stat_progress_create_index WHERE pid = pg_backend_pid());
	RETURN value;
END $$;
CREATE INDEX ON lacking USING bloomset (telling(x)) WHERE x = 1;

DROP VIEW some_users;
DROP TABLE users, grown, events, refused, elsewhere, lacking;
DROP FUNCTION telling(int);
DROP ACCESS METHOD other_heap;
DROP TYPE mood;
DROP ROLE bloomset_reader;
