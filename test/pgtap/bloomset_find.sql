-- bloomset_find: the rows with a value, as a query of the table finds them, whatever the tree
-- of tables, the type of the value and the names.
BEGIN;
SET LOCAL client_min_messages = warning;
SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0;
SELECT * FROM no_plan();

\ir lib/answer.sql

-- Partitions of partitions, with columns at other places, dropped columns, a foreign partition, one without a set, and
-- names that need quotes.
CREATE EXTENSION file_fdw;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE SCHEMA "odd schema";
CREATE TABLE "odd schema"."Tree" (gone int, k int, "a ""value""" text, note text DEFAULT 'n') PARTITION BY RANGE (k);
ALTER TABLE "odd schema"."Tree" DROP gone;
CREATE TABLE "odd schema"."A 1" PARTITION OF "odd schema"."Tree" FOR VALUES FROM (0) TO (100);
CREATE TABLE "odd schema"."B" (note text DEFAULT 'n', gone_too date, "a ""value""" text, k int, gone_last int);
ALTER TABLE "odd schema"."B" DROP gone_too, DROP gone_last;
ALTER TABLE "odd schema"."Tree" ATTACH PARTITION "odd schema"."B" FOR VALUES FROM (100) TO (200);
CREATE TABLE "odd schema"."C" (k int, note text DEFAULT 'n', "a ""value""" text) PARTITION BY LIST ((k % 2));
ALTER TABLE "odd schema"."Tree" ATTACH PARTITION "odd schema"."C" FOR VALUES FROM (200) TO (300);
CREATE TABLE "odd schema"."C0" PARTITION OF "odd schema"."C" FOR VALUES IN (0);
CREATE TABLE "odd schema"."C1" PARTITION OF "odd schema"."C" DEFAULT;
CREATE INDEX ON "odd schema"."Tree" USING bloomset ("a ""value""") WITH (false_positive_rate = 1e-7);
CREATE TABLE "odd schema"."D" (LIKE "odd schema"."Tree" INCLUDING DEFAULTS);
CREATE INDEX ON "odd schema"."C" ("a ""value""");
INSERT INTO "odd schema"."Tree" (k, "a ""value""") SELECT k, 'v' || k % 150 FROM generate_series(0, 299) k;
SELECT is((SELECT count(*) FROM generate_series(0, 159) n WHERE
        ARRAY(SELECT r::text FROM bloomset_find(NULL::"odd schema"."Tree", 'a "value"', 'v' || n) r ORDER BY 1)
        <> ARRAY(SELECT r::text FROM "odd schema"."Tree" r WHERE "a ""value""" = 'v' || n ORDER BY 1)), 0::bigint,
    'the rows of a tree of partitions');
SELECT results_eq($$SELECT * FROM bloomset_find(NULL::"odd schema"."Tree", 'a "value"', 'v7') ORDER BY k$$,
    $$VALUES (7, 'v7', 'n'), (157, 'v7', 'n')$$, 'the columns are those of the table');
SELECT results_eq($$SELECT * FROM bloomset_find(NULL::"odd schema"."C", 'a "value"', 'v77')$$,
    $$VALUES (227, 'n', 'v77')$$, 'a partition that has partitions');
SELECT results_eq($$SELECT * FROM bloomset_find(NULL::"odd schema"."B", 'a "value"', 'v7')$$, $$VALUES ('n', 'v7', 157)$$,
    'a leaf');
SELECT is(pg_temp.answer($$SELECT bloomset_find(NULL::"odd schema"."Tree", 'a "value"', 'v8') ORDER BY 1 LIMIT 1$$),
    '(8,v8,n)', 'in a list of expressions');
SELECT is(pg_temp.answer($$SELECT (bloomset_find(NULL::"odd schema"."Tree", 'a "value"', 'v149')).k$$), '149', 'a column of it');
SELECT is(pg_temp.answer($$SELECT count(*) FROM bloomset_find(NULL::"odd schema"."Tree", 'a "value"', NULL::text)$$), '0',
    'NULL is found nowhere');
SELECT is(pg_temp.answer($$SELECT count(*) FROM bloomset_find(NULL::"odd schema"."Tree", NULL, 'v8')$$), '0',
    'nor is a value in the column NULL');
SELECT is(pg_temp.answer($$SELECT count(*) FROM bloomset_find(t, 'a "value"', 'v8') FROM "odd schema"."Tree" t LIMIT 1$$),
    '42601', 'a query with a mistake');
SELECT is(pg_temp.answer($$SELECT count(*) FROM (SELECT t FROM "odd schema"."Tree" t LIMIT 1) s,
    bloomset_find(t, 'a "value"', 'v8')$$), '2', 'any row stands for its table');

-- Leaves that are always asked: here without a set, and a foreign table.
DO $$
BEGIN
    EXECUTE format('COPY (SELECT 400, ''v7'', ''far'') TO %L CSV', current_setting('data_directory') || '/bloomset_find.csv');
    EXECUTE format('CREATE FOREIGN TABLE "odd schema"."F" PARTITION OF "odd schema"."Tree" FOR VALUES FROM (400) TO (500)
        SERVER files OPTIONS (filename %L, format ''csv'')', current_setting('data_directory') || '/bloomset_find.csv');
END
$$;
ALTER TABLE "odd schema"."Tree" ATTACH PARTITION "odd schema"."D" FOR VALUES FROM (300) TO (400);
DO $$
DECLARE
    index regclass := (SELECT indexrelid FROM pg_index WHERE indrelid = '"odd schema"."D"'::regclass);
BEGIN
    UPDATE pg_index SET indisvalid = false WHERE indexrelid = index;
END
$$;
INSERT INTO "odd schema"."Tree" (k, "a ""value""") VALUES (300, 'v7');
SELECT is(pg_temp.answer($$SELECT string_agg(k || note, ' ' ORDER BY k) FROM
    bloomset_find(NULL::"odd schema"."Tree", 'a "value"', 'v7')$$), '7n 157n 300n 400far',
    'leaves without a usable set, and foreign ones');

-- Plain inheritance: each table of the tree is a leaf, also one in the middle, and one with two parents.
CREATE TABLE top (id int, v bigint);
CREATE TABLE middle (more text) INHERITS (top);
CREATE TABLE other (v bigint, id int);
CREATE TABLE bottom () INHERITS (middle, other);
CREATE INDEX ON top USING bloomset (v);
CREATE INDEX ON middle USING bloomset (v);
CREATE INDEX ON bottom USING bloomset (v);
ALTER TABLE other INHERIT top;
INSERT INTO top SELECT i, i FROM generate_series(1, 10) i;
INSERT INTO middle SELECT i, i, 'm' FROM generate_series(5, 15) i;
INSERT INTO bottom SELECT i, i, 'b' FROM generate_series(9, 20) i;
INSERT INTO other SELECT i, i FROM generate_series(10, 12) i;
SELECT is(array_agg(n), NULL, 'a tree of inheritance') FROM generate_series(0, 21) n, unnest('{top,middle,other,bottom}'::text[]) t
WHERE pg_temp.answer(format('SELECT count(*) FROM bloomset_find(NULL::%I, ''v'', %s)', t, n))
    IS DISTINCT FROM pg_temp.answer(format('SELECT count(*) FROM %I WHERE v = %s', t, n))
    AND t <> 'other' OR t = 'other' AND n = 10
    AND pg_temp.answer(format('SELECT count(*) FROM bloomset_find(NULL::%I, ''v'', %s)', t, n)) <> '2';

-- Types: every pair of types that one set answers, as the column's own operator does; untyped literals.
CREATE DOMAIN counted AS int CHECK (VALUE > 0);
CREATE TABLE typed (i2 int2, i4 int4, i8 int8, d counted, r real, f float8, n numeric, t text, v varchar(20), c char(6), a name,
    b bytea, u uuid, day date, at timestamptz, net inet, flag bool);
INSERT INTO typed
SELECT i, i, i, i, i / 4.0, i / 4.0, i / 10.0, 'x' || i, 'x' || i, 'x' || i, 'x' || i, ('x' || i)::bytea,
    md5(i::text)::uuid, date '2026-01-01' + i, timestamptz '2026-01-01' + i * interval '1 h', inet '10.0.0.0' + i, i > 7
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
CREATE TABLE value (x text);
INSERT INTO value VALUES ('7::int2'), ('7'), ('7::int8'), ('7::counted'), ('1.75::real'), ('1.75::float8'), ('0.7'), ('0.70'),
    ('''x7''::text'), ('''x7''::varchar'), ('''x7''::char(9)'), ('''x7''::name'), ('''x7''::bytea'), ('md5(''7'')::uuid'),
    ('date ''2026-01-08'''), ('timestamptz ''2026-01-01 07:00'''), ('inet ''10.0.0.7'''), ('cidr ''10.0.0.7'''), ('false');
SELECT is(array_agg(attname || ' ' || x || ' ' || asked), NULL, 'each type of value, in each column')
FROM pg_attribute, value, pg_temp.answer(format('SELECT string_agg(i4::text, '' '') FROM bloomset_find(NULL::typed, %L, %s)',
    attname, x)) asked, pg_temp.answer(format('SELECT string_agg(i4::text, '' '') FROM typed WHERE %I = %s', attname, x)) found
WHERE attrelid = 'typed'::regclass AND attnum > 0 AND asked IS DISTINCT FROM found
    -- what has another hash is refused, and what is text is converted
    AND asked <> '42804' AND NOT (x LIKE '%::text' AND found = '42883');
SELECT is(count(*)::int, number, name || ' is asked by ' || number)
FROM (VALUES ('i2', 4), ('i4', 4), ('i8', 4), ('d', 4), ('r', 2), ('f', 2), ('n', 2), ('t', 3), ('v', 3), ('c', 4), ('a', 3),
    ('net', 2), ('u', 1), ('flag', 1)) v (name, number), value,
    pg_temp.answer(format('SELECT i4 FROM bloomset_find(NULL::typed, %L, %s) ORDER BY i4 DESC', name, x)) a
WHERE a = '7' GROUP BY name, number;
SELECT is(pg_temp.answer(format('SELECT i4 FROM bloomset_find(NULL::typed, %L, %L)', name, literal)), result,
    name || ': an untyped literal')
FROM (VALUES ('i2', '7', '7'), ('i8', '7', '7'), ('d', '7', '7'), ('n', '0.70', '7'), ('t', 'x7', '7'), ('c', 'x7', '7'), ('a', 'x7', '7'),
    ('u', md5('7'), '7'), ('day', '2026-01-08', '7'), ('net', '10.0.0.7', '7'), ('b', '\x7837', '7'), ('i4', 'seven', '22P02'),
    ('day', 'x', '22007'), ('c', 'x7  ', '7')) v (name, literal, result);

-- A function that the planner calls drops the next partition; names with signs of formats.
CREATE TABLE doomed (p int, b text) PARTITION BY LIST (p);
CREATE TABLE doomed_1 PARTITION OF doomed FOR VALUES IN (1);
CREATE TABLE doomed_2 PARTITION OF doomed FOR VALUES IN (2);
CREATE INDEX ON doomed_1 USING bloomset (b);
INSERT INTO doomed VALUES (1, 'x'), (2, 'x');
CREATE FUNCTION drops() RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('test.drops', true) = 'yes' THEN
        DROP TABLE doomed_2;
    END IF;
    RETURN true;
END $$;
CREATE FUNCTION check_drops() RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN drops(); END $$;
ALTER TABLE doomed_1 ADD CHECK (p > 0 AND check_drops());
SET LOCAL constraint_exclusion = on;
SELECT is(pg_temp.answer($$SELECT count(*) FROM bloomset_find(NULL::doomed, 'b', 'x')$$), '2', 'both partitions');
SET LOCAL test.drops = yes;
SELECT is(pg_temp.answer($$SELECT count(*) FROM bloomset_find(NULL::doomed, 'b', 'x')$$), '42P01', 'one that is dropped meanwhile');
RESET test.drops;
RESET constraint_exclusion;
CREATE TABLE "100 %s" ("%d" int);
CREATE INDEX ON "100 %s" USING bloomset ("%d");
INSERT INTO "100 %s" VALUES (1);
SELECT is(pg_temp.answer($$SELECT count(*) FROM bloomset_find(NULL::"100 %s", '%d', 1)$$), '1', 'signs of a format in names');
SELECT is(pg_temp.answer($$SELECT bloomset_new('"100 %s"', '%d', '{1,2}'::int[])$$), '2', 'also of bloomset_new()');

-- Prepared statements, cursors, and a search_path that hides operators.
PREPARE find (bigint) AS SELECT id FROM bloomset_find(NULL::top, 'v', $1) ORDER BY id;
SELECT is(pg_temp.answer(format('EXECUTE find(%s)', n)), nullif(n % 22, 21)::text, 'prepared: ' || n) FROM generate_series(1, 21) n;
DECLARE found CURSOR FOR SELECT id FROM bloomset_find(NULL::top, 'v', 9);
FETCH 1 FROM found;
INSERT INTO top VALUES (90, 9);
SELECT is(count(*), 4::bigint, 'a row that came is found') FROM bloomset_find(NULL::top, 'v', 9);
SELECT results_eq('FETCH ALL FROM found', 'VALUES (9), (9)', 'but not by a cursor that is open');
CREATE SCHEMA trap;
CREATE FUNCTION trap.equal(bigint, bigint) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
CREATE OPERATOR trap.= (FUNCTION = trap.equal, LEFTARG = bigint, RIGHTARG = bigint);
CREATE FUNCTION trap.unnest(uuid[]) RETURNS SETOF uuid LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
CREATE TABLE trap.top (id int, v bigint);
SELECT set_config('search_path', 'trap, ' || current_setting('search_path') || ', pg_catalog', true);
SELECT is(count(*)::text, '4', 'operators and tables of another schema do not matter') FROM bloomset_find(NULL::public.top, 'v', 9::bigint);
DROP SCHEMA trap CASCADE;

-- One snapshot: rows that the own statement adds are not found, as in a query.
CREATE FUNCTION pg_temp.add() RETURNS int LANGUAGE sql VOLATILE AS 'INSERT INTO top VALUES (500, 500) RETURNING 1';
SELECT is(ARRAY(SELECT count(b) FROM (SELECT pg_temp.add() AS n OFFSET 0) a
    LEFT JOIN LATERAL bloomset_find(NULL::top, 'v', 499 + a.n) b ON true), '{0}'::bigint[], 'the rows of the own statement');
SELECT is(count(*), 1::bigint, 'the next one sees them') FROM bloomset_find(NULL::top, 'v', 500);

-- Errors
CREATE TABLE plain (v int, w text);
CREATE TYPE pair AS (v int, w text);
CREATE TYPE mood AS ENUM ('x7');
CREATE DOMAIN tops AS top;
CREATE VIEW seen AS SELECT * FROM top;
CREATE INDEX ON plain USING bloomset (lower(w));
CREATE COLLATION nd (PROVIDER = icu, LOCALE = 'und', DETERMINISTIC = false);
SELECT is(pg_temp.answer('SELECT count(*) FROM bloomset_find(' || arguments || ')'), state, arguments)
FROM (VALUES ('NULL::plain, ''v'', 1', '55000'), ('NULL::plain, ''w'', ''a''', '55000'), ('NULL::plain, ''x'', 1', '42703'),
    ('NULL::pair, ''v'', 1', '42809'), ('NULL::seen, ''v'', 1', '42809'), ('NULL::int, ''v'', 1', '42804'),
    ('NULL::tops, ''v'', 1', '42804'), ('NULL, ''v'', 1', '42804'), ('NULL::top, ''v'', now()', '42804'),
    ('NULL::typed, ''day'', now()', '42804'), ('NULL::typed, ''t'', ''x7''::mood', '42804'), ('NULL::top, ''v'', ''x''', '22P02'),
    ('NULL::typed, ''t'', ''x7'' COLLATE nd', '0A000'), ('ROW (1), ''v'', 1', '42601'), ('NULL::top, ''ctid'', 1', '55000')) v (arguments, state);
SELECT throws_ok($$SELECT * FROM bloomset_find(NULL::int, 'v', 1)$$, '42804', 'the first argument must have the row type of a table');

SELECT * FROM finish();
ROLLBACK;
