-- bloomset_new: the distinct elements that no row of a table has, as NOT IN finds them, whatever
-- the tree of tables and the types.
BEGIN;
SET LOCAL client_min_messages = warning;
SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0;
SELECT * FROM no_plan();

\ir lib/answer.sql

-- Sets of several generations, seeds and rates, one so bad that it denies little; a leaf without a set; one that is
-- foreign; with and without B-trees.
CREATE EXTENSION file_fdw;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE TABLE events (k int NOT NULL, "Id" bigint, body text) PARTITION BY RANGE (k);
CREATE TABLE events_a PARTITION OF events FOR VALUES FROM (0) TO (1000);
CREATE TABLE events_b (body text, gone int, "Id" bigint, k int NOT NULL);
ALTER TABLE events_b DROP gone;
ALTER TABLE events ATTACH PARTITION events_b FOR VALUES FROM (1000) TO (2000);
CREATE TABLE events_c PARTITION OF events FOR VALUES FROM (2000) TO (3000) PARTITION BY RANGE (k);
CREATE TABLE events_c1 PARTITION OF events_c FOR VALUES FROM (2000) TO (2500);
CREATE TABLE events_c2 PARTITION OF events_c DEFAULT;
CREATE TABLE events_d PARTITION OF events FOR VALUES FROM (3000) TO (4000);
CREATE INDEX ON events_a USING bloomset ("Id") WITH (false_positive_rate = 0.5, expected_items = 1);
CREATE INDEX ON events_a ("Id");
CREATE INDEX ON events_b USING bloomset ("Id") WITH (false_positive_rate = 0.001, expected_items = 1, seed = 5);
CREATE INDEX ON events_c USING bloomset ("Id") WITH (expected_items = 1);
CREATE INDEX ON events_c1 USING bloomset ("Id") WITH (seed = -1);
INSERT INTO events SELECT i % 4000, i * 2, '' FROM generate_series(0, 39999) i;
INSERT INTO events VALUES (1, NULL, '');
SELECT ok(max(generations) > 1 AND max(current_rate) > 0.3, 'sets of several generations, and bad ones')
FROM bloomset_info('events', 'Id');
DO $$
BEGIN
    EXECUTE format('COPY (SELECT 4000, n * 10 + 1, '''' FROM generate_series(1, 100) n) TO %L CSV',
        current_setting('data_directory') || '/bloomset_new.csv');
    EXECUTE format('CREATE FOREIGN TABLE events_f PARTITION OF events FOR VALUES FROM (4000) TO (5000)
        SERVER files OPTIONS (filename %L, format ''csv'')', current_setting('data_directory') || '/bloomset_new.csv');
END
$$;
CREATE TABLE expected AS SELECT "Id" FROM events WHERE "Id" IS NOT NULL;
CREATE FUNCTION pg_temp.differences(wanted bigint[]) RETURNS bigint LANGUAGE sql AS $$
    SELECT count(*) FROM bloomset_new('events', 'Id', wanted) AS n (id)
        FULL JOIN (SELECT DISTINCT w AS id FROM unnest(wanted) w WHERE w NOT IN (SELECT "Id" FROM expected)) e USING (id)
    WHERE n.id IS NULL OR e.id IS NULL
$$;
SELECT is(pg_temp.differences(ARRAY(SELECT generate_series(first, last, step))), 0::bigint,
    format('%s to %s by %s', first, last, step))
FROM (VALUES (0, -1, 1), (0, 0, 1), (1, 1, 1), (0, 3000, 1), (-5, 90000, 1), (80000, 80001, 1), (1, 1001, 10)) v (first, last, step);
SELECT is(pg_temp.differences(ARRAY(SELECT i / 3 FROM generate_series(79000, 260000) i)), 0::bigint, 'repetitions in the array');
SELECT is(count(*), count(DISTINCT id), 'are returned once') FROM bloomset_new('events', 'Id', '{1,3,3,1,3}'::bigint[]) id;
SELECT is(ARRAY(SELECT bloomset_new('events', 'Id', '{{1,2},{3,4}}'::int[]) ORDER BY 1), '{1,3}', 'an array of arrays');
SELECT is(count(*), 0::bigint, 'no array') FROM bloomset_new('events', 'Id', NULL::bigint[]);

-- A tree of inheritance, whose tables in the middle are leaves, too.
CREATE TABLE top (v text);
CREATE TABLE middle () INHERITS (top);
CREATE TABLE bottom (w int) INHERITS (middle);
CREATE INDEX ON top USING bloomset (v);
CREATE INDEX ON bottom USING bloomset (v);
INSERT INTO top VALUES ('a');
INSERT INTO middle VALUES ('b');
INSERT INTO bottom VALUES ('c');
SELECT is(ARRAY(SELECT bloomset_new('top', 'v', '{a,b,c,d}'::text[])), '{d}', 'a tree of inheritance');
SELECT is(ARRAY(SELECT bloomset_new('middle', 'v', '{a,b,c,d}'::text[]) ORDER BY 1), '{a,d}', 'a part of it');

-- Types: what is returned has that of the elements.
CREATE DOMAIN counted AS int CHECK (VALUE > 0);
CREATE TABLE typed (i2 int2, i8 int8, d counted, f float8, n numeric, t text, v varchar(20), c char(6), a name, u uuid, net inet);
INSERT INTO typed SELECT i, i, i, i / 4.0, i / 10.0, 'x' || i, 'x' || i, 'x' || i, 'x' || i, lpad(i::text, 32, '0')::uuid, inet '10.0.0.0' + i
FROM generate_series(1, 9) i;
DO $$
DECLARE
    name name;
BEGIN
    FOR name IN SELECT attname FROM pg_attribute WHERE attrelid = 'typed'::regclass AND attnum > 0 LOOP
        EXECUTE format('CREATE INDEX ON typed USING bloomset (%I)', name);
    END LOOP;
END
$$;
SELECT is(pg_temp.answer(format('SELECT string_agg(n || '' '' || pg_typeof(n), '', '' ORDER BY n) FROM bloomset_new(''typed'', %L, %s) n',
    name, elements)), result, name || ' ' || elements)
FROM (VALUES ('i2', '''{1,10}''::int8[]', '10 bigint'), ('i8', '''{1,10}''::int2[]', '10 smallint'), ('d', 'ARRAY[1, 10]', '10 integer'),
    ('i8', 'ARRAY[1, 10]::counted[]', '10 counted'), ('d', '''{1,10}''::counted[]', '10 counted'),
    ('f', '''{0.25,0.3}''::real[]', '0.3 real'), ('n', '''{0.10,1.00,1.0}''::numeric[]', NULL),
    ('t', '''{x1,x10}''::varchar[]', 'x10 character varying'), ('v', '''{x1,x10}''::text[]', 'x10 text'),
    ('v', '''{x1,x10}''::varchar(9)[]', 'x10 character varying'),
    ('c', '''{"x1 ",x10}''::char(5)[]', 'x10 character'), ('c', '''{x1,x10}''::text[]', '42804'),
    ('a', '''{x1,x10}''::text[]', '42804'), ('a', '''{x1,x10}''::name[]', 'x10 name'), ('t', '''{x1,x10}''::name[]', 'x10 name'),
    ('t', '''{x1,x10}''', 'x10 text'), ('t', 'ARRAY[''x1'', ''x10'']', 'x10 text'), ('net', '''{10.0.0.1,10.0.0.10/32}''::cidr[]', '10.0.0.10/32 cidr'),
    ('u', 'ARRAY[lpad(''1'', 32, ''0'')::uuid]', NULL), ('i8', 'ARRAY[NULL, 1]', '22004'), ('t', '''{x1,NULL}''::text[]', '22004'),
    ('u', 'ARRAY[lpad(''1'', 32, ''0'')]', '42804'), ('i8', '''{1}''::numeric[]', '42804'), ('t', '''{x1}''::char(3)[]', '42804'),
    ('t', 'ARRAY[now()]', '42804'), ('x', 'ARRAY[1]', '42703')) v (name, elements, result)
WHERE name <> 'n' OR NOT elements ~ '0.10';
SELECT is(count(*), 1::bigint, 'numerics of any scale are equal') FROM bloomset_new('typed', 'n', '{0.10,0.4,1.00,1.0,0.20}'::numeric[]);

-- Errors
CREATE TYPE mood AS ENUM ('x1');
CREATE TABLE plain (v int);
CREATE VIEW seen AS SELECT * FROM top;
CREATE COLLATION nd (PROVIDER = icu, LOCALE = 'und', DETERMINISTIC = false);
SELECT is(pg_temp.answer('SELECT count(*) FROM bloomset_new(' || arguments || ')'), state, arguments)
FROM (VALUES ('''plain'', ''v'', ARRAY[1]', '55000'), ('''seen'', ''v'', ARRAY[''a'']', '42809'), ('0, ''v'', ARRAY[1]', '42P01'),
    ('''typed'', ''t'', ''{x1}''::mood[]', '42804'), ('''typed'', ''t'', ARRAY[''x1'' COLLATE nd]', '0A000'),
    ('''typed'', ''t'', ARRAY[point ''(1,2)'']', '42804')) v (arguments, state);

-- The locks: one for an element, all 256 for many, held on.
CREATE TABLE locked (v int);
CREATE INDEX ON locked USING bloomset (v);
CREATE FUNCTION pg_temp.locks() RETURNS bigint LANGUAGE sql AS $$
    SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 'locked'::regclass AND objsubid > 2
        AND mode = 'ExclusiveLock' AND granted AND pid = pg_backend_pid()
$$;
SELECT is(ARRAY(SELECT bloomset_new('locked', 'v', ARRAY[7, 7])), '{7}', 'an element');
SELECT is(pg_temp.locks(), 1::bigint, 'takes a lock');
SELECT is(ARRAY(SELECT bloomset_new('locked', 'v', '{7}'::bigint[])), '{7}', 'of another type');
SELECT is(pg_temp.locks(), 1::bigint, 'takes the same one');
SELECT is(count(*), 5000::bigint, '5,000 elements') FROM bloomset_new('locked', 'v', ARRAY(SELECT generate_series(1, 5000)));
SELECT is(pg_temp.locks(), 256::bigint, 'take all');

-- Rows that the own transaction has written are seen, also those of the same statement.
INSERT INTO locked VALUES (1);
SELECT is(ARRAY(SELECT bloomset_new('locked', 'v', ARRAY[1, 2])), '{2}', 'own rows are there');
CREATE FUNCTION pg_temp.import(elements int[]) RETURNS bigint LANGUAGE sql AS $$
    WITH stored AS (INSERT INTO locked SELECT bloomset_new('locked', 'v', elements) RETURNING 1) SELECT count(*) FROM stored
$$;
SELECT is(ARRAY(SELECT pg_temp.import(ARRAY[i, i + 1]) FROM generate_series(10, 12) i), '{2,1,1}', 'also within a statement');

SELECT * FROM finish();
ROLLBACK;
